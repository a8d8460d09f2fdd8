package graphops

import (
	"fmt"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Reverse returns the graph with every edge reversed, duplicates kept: the in-edges of v in the
// result are v's out-edges in g. Threads (0: GOMAXPROCS) does not change the result. Cost: that of
// [FromEdges].
func (g *Graph) Reverse(threads int) *Graph {
	b := builder{nodes: g.NumNodes(), edges: len(g.Indices), threads: threads}
	b.pack = func(buf []uint64, lo, hi int) []uint64 {
		g.eachEdge(lo, hi, func(src, dst int32) { buf = append(buf, packEdge(dst, src)) })
		return buf
	}
	return b.build()
}

// Undirected returns the graph with the reverse of every edge added and every edge kept once.
// Threads (0: GOMAXPROCS) does not change the result. Cost: that of [FromEdges].
func (g *Graph) Undirected(threads int) *Graph {
	b := builder{nodes: g.NumNodes(), edges: len(g.Indices), dedup: true, threads: threads}
	b.pack = func(buf []uint64, lo, hi int) []uint64 {
		g.eachEdge(lo, hi, func(src, dst int32) {
			buf = append(buf, packEdge(src, dst))
			if src != dst {
				buf = append(buf, packEdge(dst, src))
			}
		})
		return buf
	}
	return b.build()
}

// AddSelfLoops returns the graph with a self-loop added to every node that has none; existing
// self-loops are kept.
func (g *Graph) AddSelfLoops(threads int) *Graph {
	return g.mapRows(threads, func(out []int32, v int32, row []int32) []int32 {
		done := false
		for _, u := range row {
			if u >= v && !done {
				done = true
				if u > v {
					out = append(out, v)
				}
			}
			out = append(out, u)
		}
		if !done {
			out = append(out, v)
		}
		return out
	})
}

// RemoveSelfLoops returns the graph without the edges from a node to itself.
func (g *Graph) RemoveSelfLoops(threads int) *Graph {
	return g.mapRows(threads, func(out []int32, v int32, row []int32) []int32 {
		for _, u := range row {
			if u != v {
				out = append(out, u)
			}
		}
		return out
	})
}

// Dedup returns the graph with every edge kept once.
func (g *Graph) Dedup(threads int) *Graph {
	return g.mapRows(threads, func(out []int32, _ int32, row []int32) []int32 {
		for i, u := range row {
			if i == 0 || u != row[i-1] {
				out = append(out, u)
			}
		}
		return out
	})
}

// mapRows builds the graph whose row v is what edit appends for row v. It runs edit twice, first to
// learn the sizes, so that no memory beyond the result is needed.
func (g *Graph) mapRows(threads int, edit func(out []int32, v int32, row []int32) []int32) *Graph {
	n := g.NumNodes()
	r := &Graph{Indptr: make([]int64, n+1)}
	parallel.For(threads, n, rowGrain, func(lo, hi int) {
		var buf []int32
		for v := lo; v < hi; v++ {
			buf = edit(buf[:0], int32(v), g.InNeighbors(int32(v)))
			r.Indptr[v+1] = int64(len(buf))
		}
	})
	for v := range n {
		r.Indptr[v+1] += r.Indptr[v]
	}
	r.Indices = make([]int32, r.Indptr[n])
	parallel.For(threads, n, rowGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			// The capacity ends with the row, so edit can never write past it.
			row := r.Indices[r.Indptr[v]:r.Indptr[v]:r.Indptr[v+1]]
			edit(row, int32(v), g.InNeighbors(int32(v)))
		}
	})
	return r
}

// InDegrees returns the number of in-edges of each node: [NumNodes], a new slice.
func (g *Graph) InDegrees() []int32 {
	degrees := make([]int32, g.NumNodes())
	for v := range degrees {
		degrees[v] = int32(g.Indptr[v+1] - g.Indptr[v])
	}
	return degrees
}

// OutDegrees returns the number of out-edges of each node: [NumNodes], a new slice. Cost: one pass
// over the edges.
func (g *Graph) OutDegrees() []int32 {
	degrees := make([]int32, g.NumNodes())
	for _, u := range g.Indices {
		degrees[u]++
	}
	return degrees
}

// Symmetric reports whether every edge occurs as often as its reverse. It needs 8 bytes per node
// and stops at the first edge without a reverse. The graph must be valid. Cost: one pass over the
// edges.
func (g *Graph) Symmetric() bool {
	// Rows are ascending. So as v ascends, each row that holds v as a source meets it exactly at
	// the row's current position.
	at := make([]int64, g.NumNodes())
	copy(at, g.Indptr)
	for v := range int32(g.NumNodes()) {
		for _, u := range g.InNeighbors(v) {
			if at[u] == g.Indptr[u+1] || g.Indices[at[u]] != v {
				return false
			}
			at[u]++
		}
	}
	return true
}

// Validate checks the invariants of the type: Indptr starts at 0, ascends and ends at the number of
// edges; sources lie in [0, NumNodes) and ascend within each row; types of edges are those of the
// schema ([Graph.ValidateTypes]). The error, a [*ValidationError],
// names the first violation. Cost: one pass over the graph, on GOMAXPROCS threads.
func (g *Graph) Validate() error { return g.ValidateRange(0, g.NumNodes()) }

// ValidateRange is [Graph.Validate] for the rows [lo, hi) alone; it always checks the ends of
// Indptr. A caller can check range by range and stop in between.
func (g *Graph) ValidateRange(lo, hi int) error {
	switch n := g.NumNodes(); {
	case n < 0:
		return invalid("Indptr", -1, "it is empty, but a graph of N nodes has N+1 entries")
	case g.Indptr[0] != 0:
		return invalid("Indptr", 0, "it starts at %d instead of 0", g.Indptr[0])
	case g.Indptr[n] != int64(len(g.Indices)):
		return invalid("Indptr", int64(n), "it ends at %d, but there are %d edges", g.Indptr[n], len(g.Indices))
	}
	bad := make([]error, parallel.Chunks(hi-lo, rowGrain))
	parallel.For(0, hi-lo, rowGrain, func(a, b int) {
		bad[a/rowGrain] = g.validateRows(lo+a, lo+b)
	})
	if err := firstError(bad); err != nil {
		return err
	}
	return g.ValidateTypes(lo, hi)
}

func (g *Graph) validateRows(lo, hi int) error {
	nodes, edges := uint32(g.NumNodes()), int64(len(g.Indices))
	for v := lo; v < hi; v++ {
		first, last := g.Indptr[v], g.Indptr[v+1]
		if last < first {
			return invalid("Indptr", int64(v)+1, "it falls from %d to %d", first, last)
		}
		if first < 0 || last > edges {
			return invalid("Indptr", int64(v)+1, "node %d has the edges %d to %d, but there are %d edges", v, first, last, edges)
		}
		row := g.Indices[first:last]
		for i, u := range row {
			if uint32(u) >= nodes {
				return invalid("Indices", first+int64(i), "source %d of node %d, but the graph has the nodes 0 to %d", u, v, int64(nodes)-1)
			}
			if i > 0 && u < row[i-1] {
				return invalid("Indices", first+int64(i), "the sources of node %d do not ascend: %d follows %d", v, u, row[i-1])
			}
		}
	}
	return nil
}

// ValidationError is a place where a graph violates an invariant.
type ValidationError struct {
	Array string // "Indptr", "Indices" or "EdgeTypes"
	Index int64  // -1: the array as a whole
	Why   string
}

func (e *ValidationError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("graphops: invalid graph: %s: %s", e.Array, e.Why)
	}
	return fmt.Sprintf("graphops: invalid graph: %s[%d]: %s", e.Array, e.Index, e.Why)
}

func invalid(array string, index int64, format string, args ...any) error {
	return &ValidationError{Array: array, Index: index, Why: fmt.Sprintf(format, args...)}
}

// Without returns the graph without the edges that other has, all copies of them, in the same
// direction. The graphs have equally many nodes. The remaining edges keep their weights, features and
// times and
// types. If both graphs have types, an edge goes only where other has its type. Threads (0: GOMAXPROCS)
// does not change the result. Cost: one pass over both graphs.
//
// It returns an error if the numbers of nodes differ.
func (g *Graph) Without(other *Graph, threads int) (*Graph, error) {
	if g.NumNodes() != other.NumNodes() {
		return nil, fmt.Errorf("graphops: a graph of %d nodes without the edges of one of %d nodes: the numbers of nodes must be equal", g.NumNodes(), other.NumNodes())
	}
	if g.EdgeTypes != nil && other.EdgeTypes != nil {
		return g.withoutTyped(other, threads), nil
	}
	r := g.mapRows(threads, func(out []int32, v int32, row []int32) []int32 {
		return difference(out, row, other.InNeighbors(v), nil)
	})
	if g.EdgeWeights == nil && g.EdgeFeatures == nil && g.EdgeTimes == nil && g.EdgeTypes == nil {
		return r, nil
	}
	kept := make([]int64, len(r.Indices)) // positions of the edges in g
	parallel.For(threads, g.NumNodes(), rowGrain, func(lo, hi int) {
		var row []int32
		for v := int32(lo); v < int32(hi); v++ {
			at, first := r.Indptr[v], g.Indptr[v]
			row = difference(row[:0], g.InNeighbors(v), other.InNeighbors(v), func(i int) {
				kept[at] = first + int64(i)
				at++
			})
		}
	})
	return r.withDataOf(g, kept, threads), nil
}

// difference appends the elements of row that remove does not have; both ascend. kept, unless nil,
// is called with the index of each.
func difference(out, row, remove []int32, kept func(i int)) []int32 {
	at := 0
	for i, u := range row {
		for at < len(remove) && remove[at] < u {
			at++
		}
		if at < len(remove) && remove[at] == u {
			continue
		}
		out = append(out, u)
		if kept != nil {
			kept(i)
		}
	}
	return out
}
