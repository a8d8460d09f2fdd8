package graphops

import "sync"

// memo stores what layers derive from a block, such as the weights of a normalisation, for the next
// layer or step that uses the same block.
type memo struct {
	mu    sync.Mutex
	kept  []kept
	spare []kept // values from before Reset, for reuse of their memory
}

type kept struct{ key, value any }

// Memo returns the value that make returned at the first call with this key, which must be
// comparable. Use it for values that are functions of the block alone and are only read. Blocks of
// the whole graph keep the values from step to step.
func (b *Block) Memo(key any, make func() any) any {
	return b.MemoIn(key, func(any) any { return make() })
}

// MemoIn is [Block.Memo] for values with memory worth reusing: make receives the value that it
// returned for the same key before [Block.Reset], or nil, and may reuse that memory.
func (b *Block) MemoIn(key any, make func(old any) any) any {
	b.memo.mu.Lock()
	defer b.memo.mu.Unlock()
	for _, k := range b.memo.kept {
		if k.key == key {
			return k.value
		}
	}
	var old any
	for i, k := range b.memo.spare {
		if k.key == key {
			old, b.memo.spare[i].value = k.value, nil
		}
	}
	v := make(old)
	b.memo.kept = append(b.memo.kept, kept{key, v})
	return v
}

// Slicer cuts a graph into blocks, as [Graph.Slice] does.
type Slicer interface {
	NumNodes() int
	Slice(lo, hi int) *Block
}

// smallGraph is the largest number of edges of a graph whose slices are kept. In a smaller graph,
// deriving transposes, self-loops and weights again costs more than a layer; in a larger one,
// keeping them costs much memory.
const smallGraph = 1 << 21

// KeepSlices returns a Slicer over the graph. If the graph is small, the Slicer returns the same
// block for the same range, including the values derived from it. It is for one goroutine.
func KeepSlices(g *Graph) Slicer {
	if g.NumEdges() > smallGraph {
		return g
	}
	return &keptSlices{Graph: g, blocks: map[[2]int]*Block{}}
}

// SlicesWith returns a Slicer over a graph that lacks edges of some nodes: d are the degrees of the graph with these edges,
// by which layers normalise. Only nodes whose in-edges are there may be cut out.
func SlicesWith(g *Graph, d Degrees) Slicer { return &slicesWith{g, d} }

var (
	_ Degrees = slicesWith{}
	_ Slicer  = (*slicesWith)(nil)
)

type slicesWith struct {
	*Graph
	degrees Degrees
}

// Slice implements [Slicer].
func (s *slicesWith) Slice(lo, hi int) *Block {
	b := s.Graph.Slice(lo, hi)
	b.degrees = s.degrees
	return b
}

// GraphOf returns the graph that a Slicer cuts and its degrees: a Graph itself, or that of [KeepSlices] or [SlicesWith];
// nil for others.
func GraphOf(s Slicer) (*Graph, Degrees) {
	switch s := s.(type) {
	case *Graph:
		return s, s
	case *keptSlices:
		return s.Graph, s.Graph
	case *slicesWith:
		return s.Graph, s.degrees
	}
	return nil, nil
}

var (
	_ Degrees = keptSlices{}
	_ Slicer  = (*keptSlices)(nil)
)

type keptSlices struct {
	*Graph
	blocks map[[2]int]*Block
}

func (k *keptSlices) Slice(lo, hi int) *Block {
	b := k.blocks[[2]int{lo, hi}]
	if b == nil {
		b = k.Graph.Slice(lo, hi)
		k.blocks[[2]int{lo, hi}] = b
	}
	return b
}
