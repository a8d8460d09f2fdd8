package nn

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/parallel"
)

var (
	_ Conv     = (*GCNConv)(nil)
	_ Resetter = (*GCNConv)(nil)
)

// GCNConv is the graph convolution
//
//	y_v = W · Σ_u w_uv / √(d_u·d_v) · x_u + b
//
// over the in-edges u → v of a block's destinations and one self-loop of each: the graph's own if
// there is one, else one of weight 1. w are the edges' weights (1 if the graph has none), and d_v
// is the weight of all in-edges of v, including the self-loop. If a degree is not positive, 1/√d is
// 0.
//
// The degrees are those of the whole graph, whatever was sampled. If k_v of d_v in-edges were
// sampled, their sum is multiplied by d_v/k_v (counts, not weights), so that it is unbiased for
// uniform sampling and exact with all neighbours; the self-loop is always present and not scaled.
// Blocks must have their Graph or Degrees set, as those of package sample and of graphops.Graph have.
//
// BatchDegrees selects PyG's rule for a sampled batch: d is counted over the edges of the block,
// and nothing is scaled. A node's row then depends on the rest of the batch, so results differ with
// the number of workers. For blocks of the whole graph and its slices both rules use the graph's
// degrees.
//
// Parameters and semantics are those of torch_geometric.nn.GCNConv: lin.weight
// [out, in] and bias [out].
//
// Source: T. N. Kipf, M. Welling, "Semi-supervised classification with graph
// convolutional networks", ICLR 2017, arXiv:1609.02907, equation 8.
type GCNConv struct {
	Lin  *Linear `nn:"lin"`
	Bias *Param  `nn:"bias,vector,optional"` // nil: none

	BatchDegrees bool

	factors gcnFactors
}

// GCNOptions are the options of a GCNConv. The zero value is PyG's layer on the
// whole graph.
type GCNOptions struct {
	BatchDegrees bool // degrees of the sampled batch, as in PyG, instead of the graph's
	NoBias       bool // omit b
}

// NewGCN returns a GCNConv.
func NewGCN(in, out int) *GCNConv { return NewGCNWith(in, out, GCNOptions{}) }

// NewGCNWith returns a GCNConv with options.
func NewGCNWith(in, out int, o GCNOptions) *GCNConv {
	c := &GCNConv{Lin: NewLinear(in, out, false), BatchDegrees: o.BatchDegrees}
	if !o.NoBias {
		c.Bias = NewParam(1, out)
	}
	return c
}

// Reset initialises the parameters as PyG does: Glorot's weights, a bias of zeros.
func (c *GCNConv) Reset(init func(p *Param, bound float64)) {
	init(c.Lin.Weight, glorot(c.Lin.Weight.Cols, c.Lin.Weight.Rows))
	init(c.Bias, 0)
}

// Forward returns y [NumDst, out] for h [NumSrc, in], in the space of the block's destinations. It
// aggregates the narrower of x and W·x (W·x if x is sparse): one pass over the edges and one matrix
// product.
func (c *GCNConv) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if c == nil {
		fail("GCNConv", "the layer is nil; create it with NewGCN")
	}
	first := c.transformsFirst(h.Sparse())
	sum := c.byFactors(f, b)
	switch {
	case sum == nil:
		l := b.SelfLooped()
		w := c.weights(f, b, l)
		sum = func(h *Tensor) *Tensor { return f.AggregateWeighted(l, h, w, Sum) }
	case f.Recording() && !h.RequiresGrad() && !h.Sparse():
		first = false // the gradient of a sum of the features needs no edges by source, which a device does not have for them
	}
	var y *Tensor
	if first {
		y = sum(c.Lin.Product(f, h))
	} else {
		y = c.Lin.Product(f, sum(h))
	}
	if c.Bias != nil {
		y = f.AddRow(y, f.Param(c.Bias))
	}
	return y
}

// gcnFactors are numbers of each node of a graph.
type gcnFactors struct {
	of     *graphops.Graph
	looped bool      // the graph has self-loops
	inv    []float32 // 1/√d; nil if the graph has weights and self-loops
	all    []float32 // the number of in-edges, multiplied by 1/√d
}

// byFactors returns the sum over the in-edges of a sampled batch on a device, or nil if that needs a weight for each edge of a
// block with self-loops, which the host computes. The weights are products of a number for each node and w_uv:
//
//	Σ_u s_v·w_uv·x_u / √(d_u·d_v) + x_v/d_v = a_v · mean_u(w_uv·i_u·x_u) + i_v·(i_v·x_v)
//
// where i_v = 1/√d_v, and a_v = i_v times the number of in-edges of v in the graph, of which s_v is the ratio to those in the
// batch. The mean is that over the edges of the batch, without self-loops but divided by the number of all. It rounds otherwise
// than the sum over weighted edges.
func (c *GCNConv) byFactors(f *Fwd, b *Block) func(h *Tensor) *Tensor {
	k, ok := f.Backend().(ops.Keeper)
	_, device := f.Backend().(ops.Deferrer)
	if !ok || !device || c.BatchDegrees || b.Graph == nil || b.AsOf() || b.Halo != nil || b.RowsAreNodes() || b.Weighted() != (b.Graph.EdgeWeights != nil) {
		return nil
	}
	t := &c.factors
	if t.of != b.Graph {
		*t = factorsOf(b.Graph, f.Config().Threads)
	}
	if t.inv == nil {
		return nil
	}
	_, _ = k.Hold(t.inv) // without room, each pass copies it
	_, _ = k.Hold(t.all)
	inv, all := f.SourceRows(t.inv, 1, b), f.SourceRows(t.all, 1, b)
	mean := func(x, _ *Tensor) *Tensor { return f.Aggregate(b, x, Mean) }
	switch {
	case t.looped:
		l, parts := b.SelfLooped(), partsOf(f, b)
		mean = func(x, own *Tensor) *Tensor { return f.MulRows(f.Sub(f.Aggregate(l, x, Sum), own), parts) }
	case b.Weighted():
		parts := partsOf(f, b)
		mean = func(x, _ *Tensor) *Tensor { return f.MulRows(f.AggregateWeighted(b, x, b.Weights(), Sum), parts) }
	}
	return func(h *Tensor) *Tensor {
		x := f.MulRows(h, inv)
		own := f.Dst(b, x)
		return f.Add(f.MulRows(mean(x, own), f.Dst(b, all)), f.MulRows(own, f.Dst(b, inv)))
	}
}

// partsOf returns 1 divided by the number of in-edges of each destination [NumDst, 1], 1 if there are none.
func partsOf(f *Fwd, b *Block) *Tensor {
	type key struct{}
	parts := b.MemoIn(key{}, func(old any) any {
		mem, _ := old.([]float32)
		parts, indptr := slices.Grow(mem[:0], b.NumDst)[:b.NumDst], b.Indptr()
		for d := range parts {
			parts[d] = 1 / float32(max(indptr[d+1]-indptr[d], 1))
		}
		return parts
	}).([]float32)
	return f.Input(b.NumDst, 1, parts, tensor.DstSpace(b))
}

// factorsOf computes the factors of a graph in one pass over its nodes.
func factorsOf(g *graphops.Graph, threads int) gcnFactors {
	n := g.NumNodes()
	t := gcnFactors{of: g, inv: make([]float32, n), all: make([]float32, n)}
	var looped atomic.Bool
	parallel.For(threads, n, degreeGrain, func(lo, hi int) {
		for v := int32(lo); v < int32(hi); v++ {
			if _, ok := g.SelfLoop(v); ok {
				looped.Store(true)
			}
			t.inv[v] = invSqrt(g.LoopedDegree(v))
			t.all[v] = t.inv[v] * float32(g.InDegree(v))
		}
	})
	if t.looped = looped.Load(); t.looped && g.EdgeWeights != nil {
		t.inv, t.all = nil, nil
	}
	return t
}

// transformsFirst reports whether the product precedes the aggregation. It must not depend on the
// block, because the two orders round differently.
func (c *GCNConv) transformsFirst(sparse bool) bool {
	return sparse || c.Lin.Weight.Rows < c.Lin.Weight.Cols
}

// degreeGrain is the number of rows of a chunk of the loops over degrees.
const degreeGrain = 4096

// gcnWeights is the key of a block's weights, by whether the degrees are the graph's.
type gcnWeights struct{ whole bool }

// weights returns the factor of each edge of l, which is b with self-loops.
func (c *GCNConv) weights(f *Fwd, b, l *Block) []float32 {
	g := b.Degrees()
	whole := !c.BatchDegrees || g != nil && b.SliceOf() > 0
	if whole && b.AsOf() && b.NumDst > 0 {
		fail("GCNConv", "the batch is of seeds with times, and the degrees of the whole graph count edges later than these; use BatchDegrees")
	}
	if whole && g == nil && b.NumDst > 0 {
		fail("GCNConv", "the block has neither Graph nor Degrees, and degrees are needed; set one of them, or use BatchDegrees")
	}
	var degrees []float32
	if !whole && b.Halo != nil {
		degrees = batchDegrees(f, b, l)
	}
	return b.MemoIn(gcnWeights{whole}, func(old any) any {
		mem, _ := old.([]float32)
		return normalised(f.Config().Threads, b, l, whole, degrees, mem)
	}).([]float32)
}

// batchDegrees returns the degree of each source in a cooperative batch: that of a destination is
// counted by its owner.
func batchDegrees(f *Fwd, b, l *Block) []float32 {
	d := make([]float32, b.Halo.Own)
	for s := range d {
		d[s] = blockDegree(l, s)
	}
	return f.Sources(b, f.Input(len(d), 1, d, nil)).Data()
}

// blockDegree is the weight of the in-edges of source row s of a block with self-loops.
func blockDegree(l *Block, s int) float32 {
	d := s - l.DstStart
	if d < 0 || d >= l.NumDst {
		return 1 // its self-loop alone
	}
	sum, indptr := 0.0, l.Indptr()
	for e := indptr[d]; e < indptr[d+1]; e++ {
		sum += float64(l.Weight(e))
	}
	return float32(sum)
}

// inverses is scratch memory of normalised.
var inverses sync.Pool

// normalised returns a GCN's weights by the degrees of the graph (whole), by the given degrees or by
// those of the block, in the memory of w if that is large enough.
func normalised(threads int, b, l *Block, whole bool, degrees, w []float32) []float32 {
	g := b.Degrees()
	mem, _ := inverses.Get().(*[]float32)
	if mem == nil || cap(*mem) < b.NumSrc {
		s := make([]float32, b.NumSrc+b.NumSrc/8)
		mem = &s
	}
	defer inverses.Put(mem)
	inv := (*mem)[:b.NumSrc] // 1/√d of each source
	// l begins at edge 0. The arrays are taken once, because those of a block on a device are behind a lock.
	indptr, indices, weights := l.Indptr(), l.Indices(), l.Weights()
	sampled, ids := b.Indptr(), []int32(nil)
	if !b.RowsAreNodes() {
		ids = b.SrcIDs()
	}
	id := func(s int) int32 {
		if ids == nil {
			return int32(s)
		}
		return ids[s]
	}
	weight := func(e int64) float32 {
		if weights == nil {
			return 1
		}
		return weights[e]
	}
	parallel.For(threads, b.NumSrc, degreeGrain, func(lo, hi int) {
		for s := lo; s < hi; s++ {
			switch {
			case whole && g != nil:
				inv[s] = invSqrt(g.LoopedDegree(id(s)))
			case degrees != nil:
				inv[s] = invSqrt(degrees[s])
			default:
				inv[s] = invSqrt(blockDegree(l, s))
			}
		}
	})
	if n := l.NumEdges(); cap(w) < n {
		w = make([]float32, n, n+n/8)
	} else {
		w = w[:n]
	}
	parallel.For(threads, b.NumDst, degreeGrain, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			own, scale := inv[b.DstStart+d], float32(1)
			if whole {
				if all, some := g.InDegree(id(b.DstStart+d)), sampled[d+1]-sampled[d]; some > 0 {
					scale = float32(all) / float32(some)
				}
			}
			loop := indptr[d+1] - 1
			for e := indptr[d]; e < loop; e++ {
				w[e] = inv[indices[e]] * weight(e) * own * scale
			}
			w[loop] = own * weight(loop) * own
		}
	})
	return w
}

func invSqrt(d float32) float32 {
	if !(d > 0) {
		return 0
	}
	return float32(1 / math.Sqrt(float64(d)))
}
