// Package encode computes positional encodings of nodes, which tell a network where in its graph a node is, and stores them as
// further features.
//
// # Basics
//
//	o, err := encode.Parse("rw:16,laplacian:8")
//	d, err = encode.Add(ctx, d, o)
//
// Random walks: feature k of node v is the probability that a random walk from v is at v after k steps,
//
//	p_k(v) = (P^k)[v, v]    P[u, w] = weight(u→w) / sum of the weights of u's out-edges
//
// for k = 1, 2, …, Steps (V. P. Dwivedi et al., Graph neural networks with learnable structural and positional representations,
// ICLR 2022, arXiv:2110.07875, equation 12). A node without out-edges has zeros.
//
// Laplacian: the eigenvectors of the k smallest eigenvalues above 0 of
//
//	L = I - D^(-1/2) A D^(-1/2)
//
// in ascending order of eigenvalue, of norm 1 over each graph (V. P. Dwivedi and X. Bresson, A generalization of transformer
// networks to graphs, 2021, arXiv:2012.09699). A is without self-loops, and an edge counts half in each direction, so the
// directions of an undirected graph's edges count as one. The eigenvalue 0, which each component has once, is left out. Nodes
// without edges have zeros, as have all nodes where a graph has fewer eigenvalues.
//
// # Signs
//
// If x is an eigenvector, so is -x. The sign stored is that by which the entry of the largest absolute value is positive, the
// first one if there are several within a millionth of it. That sign depends on the order of the nodes where a graph is symmetric,
// so a network should not rely on it: draw signs at random for each step of training, as the papers do, or store absolute values
// (Options.Absolute), which lose what tells the two sides apart. Of an eigenvalue that occurs several times, the vectors are one
// orthonormal basis of many, and depend on the order of the nodes too.
//
// # Cost and determinism
//
// Each graph is computed by itself, in float64. Random walks take steps · nodes · edges operations for a graph, at most
// [MaxWalkWork]; eigenvectors take about 9 · nodes^3, with a dense matrix, for graphs of at most [MaxLaplacianNodes] nodes. The
// results do not depend on the number of threads. Memory: the result, and for each thread one vector or matrix of a graph.
package encode

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Limits of a graph.
const (
	MaxWalkWork       = 1e13 // steps · nodes · edges
	MaxLaplacianNodes = 2048
	maxColumns        = 1024
)

// Options say what to compute. The zero value computes nothing.
type Options struct {
	// Steps is the number of steps of random walks; 0 means none.
	Steps int
	// Laplacian is the number of eigenvectors; 0 means none. Absolute stores their absolute values.
	Laplacian int
	Absolute  bool
	// Threads is the number of threads; 0 means GOMAXPROCS.
	Threads int
	// Progress, if not nil, is called with the number of nodes that are done, from any thread.
	Progress func(nodes int)
}

// Parse reads options as a list: rw:STEPS, laplacian:K or laplacian-abs:K, separated by commas.
func Parse(list string) (Options, error) {
	var o Options
	for word := range strings.SplitSeq(list, ",") {
		kind, value, _ := strings.Cut(strings.TrimSpace(word), ":")
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxColumns {
			return o, fmt.Errorf("encode: %q is no encoding; give rw:STEPS, laplacian:K or laplacian-abs:K, with a number from 1 to %d, as in rw:16,laplacian:8", word, maxColumns)
		}
		switch {
		case kind == "rw" && o.Steps == 0:
			o.Steps = n
		case (kind == "laplacian" || kind == "laplacian-abs") && o.Laplacian == 0:
			o.Laplacian, o.Absolute = n, kind == "laplacian-abs"
		case kind == "rw" || kind == "laplacian" || kind == "laplacian-abs":
			return o, fmt.Errorf("encode: %q names an encoding twice", list)
		default:
			return o, fmt.Errorf("encode: there is no encoding %q; there are rw:STEPS, laplacian:K and laplacian-abs:K", kind)
		}
	}
	return o, nil
}

// Signed returns the columns that hold eigenvectors with a sign, by the names of a dataset's features.
func Signed(names []string) (columns []int) {
	for c, name := range names {
		k, ok := strings.CutPrefix(name, "laplacian ")
		if _, err := strconv.Atoi(k); ok && err == nil {
			columns = append(columns, c)
		}
	}
	return columns
}

// Names returns the names of the features, in order: "rw 1", …, "laplacian 1", ….
func (o Options) Names() (names []string) {
	for k := range o.Steps {
		names = append(names, fmt.Sprintf("rw %d", k+1))
	}
	word := "laplacian"
	if o.Absolute {
		word = "laplacian-abs"
	}
	for k := range o.Laplacian {
		names = append(names, fmt.Sprintf("%s %d", word, k+1))
	}
	return names
}

// Add returns a dataset whose nodes have the encodings as features after their own, float32; it shares everything else with d. Features
// without names get some. Of
// a dataset of many graphs, each graph is encoded by itself.
//
// It returns an error for graphs above the limits, for a dataset in parts or with features by type, and if ctx ends.
func Add(ctx context.Context, d *dataset.Dataset, o Options) (*dataset.Dataset, error) {
	if d.Graph == nil || d.NodeFeatures != nil || d.Meta.Parts != nil || d.Meta.Part != nil {
		return nil, fmt.Errorf("encode: %s is in parts, or has features by type; encode a dataset that is whole and without types", d.Name())
	}
	cols := o.Steps + o.Laplacian
	if cols == 0 {
		return d, nil
	}
	x, err := Nodes(ctx, d.Graph, d.GraphOffsets, o)
	if err != nil {
		return nil, err
	}
	e := d.WithGraph(d.Graph)
	own := d.Meta.FeatureNames
	if n := d.FeatureDim(); len(own) != n { // the encodings are known by their names
		own = make([]string, n)
		for c := range own {
			own[c] = fmt.Sprintf("feature %d", c)
		}
	}
	e.Meta.FeatureNames = slices.Concat(own, o.Names())
	n := d.Nodes()
	switch {
	case d.SparseFeatures != nil:
		e.SparseFeatures = joinSparse(d.SparseFeatures, x, cols)
	case d.Features == nil:
		e.Features = &dataset.Matrix{Rows: n, Cols: cols, F32: x}
	default:
		own, from := d.Features.Cols, d.Features.Float32()
		m := &dataset.Matrix{Rows: n, Cols: own + cols, F32: make([]float32, n*(own+cols))}
		parallel.For(o.Threads, n, 1<<10, func(lo, hi int) {
			for v := lo; v < hi; v++ {
				copy(m.Row(v), from.Row(v))
				copy(m.Row(v)[own:], x[v*cols:(v+1)*cols])
			}
		})
		e.Features = m
	}
	return e, nil
}

// joinSparse adds the columns of x to s.
func joinSparse(s *graphops.Sparse, x []float32, cols int) *graphops.Sparse {
	j := &graphops.Sparse{Rows: s.Rows, Cols: s.Cols + cols, Indptr: make([]int64, s.Rows+1), Indices: make([]int32, 0, len(s.Indices)+len(x)), Values: make([]float32, 0, len(s.Indices)+len(x))}
	for v := range s.Rows {
		at, values := s.Row(v)
		j.Indices = append(j.Indices, at...)
		if values == nil {
			for range at {
				j.Values = append(j.Values, 1)
			}
		}
		j.Values = append(j.Values, values...)
		for k, y := range x[v*cols : (v+1)*cols] {
			if y != 0 {
				j.Indices, j.Values = append(j.Indices, int32(s.Cols+k)), append(j.Values, y)
			}
		}
		j.Indptr[v+1] = int64(len(j.Indices))
	}
	return j
}

// Nodes returns the encodings of all nodes, [nodes, Steps+Laplacian] row-major. The nodes of graph i are offsets[i] to
// offsets[i+1]-1; nil means one graph.
func Nodes(ctx context.Context, g *graphops.Graph, offsets []int64, o Options) ([]float32, error) {
	if offsets == nil {
		offsets = []int64{0, int64(g.NumNodes())}
	}
	cols := o.Steps + o.Laplacian
	if o.Steps < 0 || o.Laplacian < 0 || cols > 2*maxColumns {
		return nil, fmt.Errorf("encode: %d steps and %d eigenvectors; both are from 0 to %d", o.Steps, o.Laplacian, maxColumns)
	}
	for i := range len(offsets) - 1 {
		n := offsets[i+1] - offsets[i]
		edges := g.Indptr[offsets[i+1]] - g.Indptr[offsets[i]]
		switch {
		case o.Laplacian > 0 && n > MaxLaplacianNodes:
			return nil, fmt.Errorf("encode: graph %d has %d nodes; eigenvectors are computed from dense matrices, of graphs of at most %d nodes: leave laplacian out, and take rw", i, n, MaxLaplacianNodes)
		case float64(o.Steps)*float64(n)*float64(edges) > MaxWalkWork:
			return nil, fmt.Errorf("encode: graph %d has %d nodes and %d edges; random walks of %d steps would take %.0e operations, and the limit is %.0e: take fewer steps", i, n, edges, o.Steps, float64(o.Steps)*float64(n)*float64(edges), float64(MaxWalkWork))
		}
	}
	x := make([]float32, g.NumNodes()*cols)
	if o.Steps > 0 {
		walks(ctx, g, offsets, x, cols, o)
	}
	var failed error
	if o.Laplacian > 0 {
		failed = laplacians(ctx, g, offsets, x, cols, o)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return x, failed
}

// walks writes the return probabilities into the first columns of x.
func walks(ctx context.Context, g *graphops.Graph, offsets []int64, x []float32, cols int, o Options) {
	out := make([]float64, g.NumNodes()) // sums of the weights of out-edges
	for e, u := range g.Indices {
		out[u] += weight(g, int64(e))
	}
	parallel.For(o.Threads, g.NumNodes(), 64, func(first, end int) {
		if ctx.Err() != nil {
			return
		}
		var p, q []float64
		i := sort.Search(len(offsets)-1, func(i int) bool { return offsets[i+1] > int64(first) })
		for v := int64(first); v < int64(end); v++ {
			for v >= offsets[i+1] {
				i++
			}
			lo, hi := offsets[i], offsets[i+1]
			n := int(hi - lo)
			if cap(p) < n {
				p, q = make([]float64, n), make([]float64, n)
			}
			p, q = p[:n], q[:n]
			clear(p)
			if p[v-lo] = 1; out[v] == 0 {
				continue
			}
			for k := range o.Steps {
				for u := range p { // what goes along each out-edge of weight 1
					if p[u] != 0 {
						p[u] /= out[lo+int64(u)]
					}
				}
				for w := range q {
					sum, at, end := 0.0, g.Indptr[lo+int64(w)], g.Indptr[lo+int64(w)+1]
					if g.EdgeWeights == nil {
						for _, u := range g.Indices[at:end] {
							sum += p[int64(u)-lo]
						}
					} else {
						for e := at; e < end; e++ {
							sum += p[int64(g.Indices[e])-lo] * float64(g.EdgeWeights[e])
						}
					}
					q[w] = sum
				}
				p, q = q, p
				x[int(v)*cols+k] = float32(p[v-lo])
			}
		}
		if o.Progress != nil {
			o.Progress(end - first)
		}
	})
}

func weight(g *graphops.Graph, e int64) float64 {
	if g.EdgeWeights == nil {
		return 1
	}
	return float64(g.EdgeWeights[e])
}
