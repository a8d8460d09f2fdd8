package graphops

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/parallel"
)

// WithEdgeWeights returns the graph with the given edge weights [NumEdges] by CSC position; nil
// means weight 1 for each edge. The result shares the graph's arrays, features, times and types, and w. It
// panics if w has another length.
func (g *Graph) WithEdgeWeights(w []float32) *Graph {
	if w != nil && len(w) != len(g.Indices) {
		panic(fmt.Sprintf("graphops: WithEdgeWeights: %d weights for %d edges", len(w), len(g.Indices)))
	}
	return &Graph{Indptr: g.Indptr, Indices: g.Indices, EdgeWeights: w, EdgeFeatures: g.EdgeFeatures, EdgeTimes: g.EdgeTimes, EdgeTypes: g.EdgeTypes, Schema: g.Schema, looped: &loopedDegrees{}, zeros: &zeroWeights{}, byTime: g.byTime}
}

// Weight is the weight of the edge at CSC position e.
func (g *Graph) Weight(e int64) float32 {
	if g.EdgeWeights == nil {
		return 1
	}
	return g.EdgeWeights[e]
}

// selfLoops returns the CSC positions [lo, hi) of v's edges from itself.
func (g *Graph) selfLoops(v int32) (lo, hi int64) {
	row := g.InNeighbors(v)
	at, _ := slices.BinarySearch(row, v)
	end := at
	for end < len(row) && row[end] == v {
		end++
	}
	return g.Indptr[v] + int64(at), g.Indptr[v] + int64(end)
}

// SelfLoop returns the weight of v's self-loop (the last one if there are several), and whether
// there is one. Cost: a binary search.
func (g *Graph) SelfLoop(v int32) (weight float32, ok bool) {
	lo, hi := g.selfLoops(v)
	if lo == hi {
		return 0, false
	}
	return g.Weight(hi - 1), true
}

// Values of Graph.loops: whether an unweighted graph has self-loops.
const (
	loopsUnknown int32 = iota
	loopsNone
	loopsMaybe
)

// withoutLoops reports whether a graph certainly has no self-loop. It is true only for graphs of up
// to 2^22 edges, which the first call searches.
func (g *Graph) withoutLoops() bool {
	const few = 1 << 22
	s := atomic.LoadInt32(&g.loops)
	if s == loopsUnknown {
		s = loopsNone
		if len(g.Indices) > few {
			s = loopsMaybe
		}
		for v := 0; v < g.NumNodes() && s == loopsNone; v++ {
			if lo, hi := g.selfLoops(int32(v)); lo < hi {
				s = loopsMaybe
			}
		}
		atomic.StoreInt32(&g.loops, s)
	}
	return s == loopsNone
}

// loopedDegrees holds the results of LoopedDegree for a weighted graph.
type loopedDegrees struct {
	once sync.Once
	of   []float32
}

// LoopedDegree is the weight of all in-edges of v including exactly one self-loop: its own (see
// [Graph.SelfLoop]), or one of weight 1 if it has none. The symmetric normalisation of graph
// convolutions divides by this degree. Sums run in float64 over ascending sources and are rounded
// once.
//
// Cost: a binary search. For a graph made by WithEdgeWeights, the first call makes one pass over
// all edges and stores the result (4 bytes per node).
func (g *Graph) LoopedDegree(v int32) float32 {
	if g.EdgeWeights == nil {
		if g.withoutLoops() {
			return float32(g.InDegree(v) + 1)
		}
		lo, hi := g.selfLoops(v)
		return float32(int64(g.InDegree(v)) - (hi - lo) + 1)
	}
	if g.looped == nil {
		return g.loopedDegree(v)
	}
	g.looped.once.Do(func() {
		of := make([]float32, g.NumNodes())
		parallel.For(0, len(of), rowGrain, func(lo, hi int) {
			for v := lo; v < hi; v++ {
				of[v] = g.loopedDegree(int32(v))
			}
		})
		g.looped.of = of
	})
	return g.looped.of[v]
}

func (g *Graph) loopedDegree(v int32) float32 {
	loop, sum := 1.0, 0.0
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		if g.Indices[e] == v {
			loop = float64(g.EdgeWeights[e])
		} else {
			sum += float64(g.EdgeWeights[e])
		}
	}
	return float32(sum + loop)
}

// LoopPos is the value of [Block.Pos] for the self-loop of node v in a block made by
// [Block.SelfLooped]. It is greater than every CSC position, so random draws keyed by positions can
// use it.
func LoopPos(v int32) int64 { return firstLoopPos | int64(v) }

const firstLoopPos = 1 << 47

// SelfLooped returns the block in which every destination has exactly one edge from itself, as the
// last of its in-edges. Existing self-loops are removed; the other edges keep their order,
// positions and weights. The new self-loop has the weight of the node's self-loop in the graph (if
// the graph is known, otherwise in the block), or 1 if there is none. The first call makes the
// block in O(destinations + edges) and stores it. If the block's arrays are on a device, it may be there too
// (see [LoopedRemote]).
func (b *Block) SelfLooped() *Block {
	b.loopOnce.Do(func() {
		b.looped = b.selfLooped()
		b.loopMade.Store(true)
	})
	return b.looped
}

// HasSelfLooped reports whether the block with self-loops has been made.
func (b *Block) HasSelfLooped() bool { return b.loopMade.Load() }

func (b *Block) selfLooped() *Block {
	if b.apart {
		panic("graphops: SelfLooped: the block's destinations are no sources (Groups and Spread make such blocks), so it has no self-loops")
	}
	l := b.spare
	if l == nil {
		l = &Block{}
	}
	if r, ok := b.remote.(LoopedRemote); ok && r.SelfLooped(b, l) {
		return l
	}
	most := b.NumEdges() + b.NumDst
	h := HostBlock{
		NumDst: b.NumDst, NumSrc: b.NumSrc, Level: b.Level, DstStart: b.DstStart, SrcIDs: b.SrcIDs(), Graph: b.Graph, Degrees: b.degrees, Relation: b.relation, AsOf: b.asOf, Trees: b.trees, TreeTimes: b.times,
		Indptr: room(l.indptr, b.NumDst+1), Indices: room(l.indices, most), EdgePos: room(l.edgePos, most),
	}
	weighted := b.Weighted() || b.Graph != nil && b.Graph.EdgeWeights != nil
	if weighted {
		h.Weights = room(l.weights, most)
	}
	var own []int32
	if b.hasOwn() {
		own = setLen(l.ownRows, true, most)
	}
	indptr, indices, pos, weights := b.Indptr(), b.Indices(), b.EdgePos(), b.Weights()
	at, first, g := 0, indptr[0], b.Degrees()
	h.Indptr[0] = 0
	for d := range b.NumDst {
		self, loop := int32(b.DstStart+d), float32(1)
		for e := indptr[d]; e < indptr[d+1]; e++ {
			w := float32(1)
			if weights != nil {
				w = weights[e-first]
			}
			if indices[e] == self {
				loop = w
				continue
			}
			h.Indices[at], h.EdgePos[at] = indices[e], e
			if pos != nil {
				h.EdgePos[at] = pos[e-first]
			}
			if weighted {
				h.Weights[at] = w
			}
			if own != nil {
				own[at] = int32(e - first)
			}
			at++
		}
		if own != nil {
			own[at] = -1
		}
		id := self
		if h.SrcIDs != nil {
			id = h.SrcIDs[self]
		}
		h.Indices[at], h.EdgePos[at] = self, LoopPos(id)
		if weighted {
			if g != nil {
				loop = 1
				if w, ok := g.SelfLoop(id); ok {
					loop = w
				}
			}
			h.Weights[at] = loop
		}
		at++
		h.Indptr[d+1] = int64(at)
	}
	h.Indices, h.EdgePos = h.Indices[:at], h.EdgePos[:at]
	if weighted {
		h.Weights = h.Weights[:at]
	}
	l.SetHost(h)
	if own != nil {
		l.setOwn(b.own, own[:at])
	}
	return l
}
