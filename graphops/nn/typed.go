package nn

import (
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// What the layers over typed edges derive from a block. A block keeps it, as it keeps its transpose.

// edgeTypes returns the types of a block's edges, which must be below relations.
func edgeTypes(op string, b *Block, relations int) []uint16 {
	types := b.EdgeTypes()
	if types == nil && b.NumEdges() > 0 {
		fail(op, "the edges of the block's graph have no types; make the graph with graphops.FromEdgesWith and EdgeData.Types, or use a layer without relations")
	}
	for e, r := range types {
		if int(r) >= relations {
			fail(op, "edge %d of the block has type %d, but the layer was made for %d relations", e, r, relations)
		}
	}
	return types
}

// typeGroups is the rows of one kind of thing, grouped by type: rows[starts[t]:starts[t+1]] are those of type t.
type typeGroups struct {
	rows   []int32
	starts []int
}

func (g *typeGroups) of(t int) (lo, hi int) { return g.starts[t], g.starts[t+1] }

// stack puts the results of do for the rows of each type under one another. x has the rows in their groups;
// types without rows are left out, unless none has any.
func (g *typeGroups) stack(f *Fwd, x *Tensor, cols int, do func(t int, rows *Tensor) *Tensor) *Tensor {
	var parts []*Tensor
	for t, rows := range f.Split(x, g.starts) {
		if rows.Rows() > 0 {
			parts = append(parts, do(t, rows))
		}
	}
	if parts == nil {
		return f.Input(0, cols, nil, nil)
	}
	if len(parts) == 1 {
		return parts[0].SetSpace(nil)
	}
	return f.Stack(parts...)
}

// edgesByType groups the edges of a block, counted from 0, by type. Within a type they ascend.
func edgesByType(types []uint16, relations int) *typeGroups {
	g := &typeGroups{rows: make([]int32, len(types)), starts: make([]int, relations+1)}
	for _, r := range types {
		g.starts[r+1]++
	}
	for r := range relations {
		g.starts[r+1] += g.starts[r]
	}
	next := slices.Clone(g.starts)
	for e, r := range types {
		g.rows[next[r]] = int32(e)
		next[r]++
	}
	return g
}

// edgeEnds returns the source and destination rows of a block's edges, counted from 0.
func edgeEnds(b *Block) (src, dst []int32) {
	indptr := b.Indptr()
	dst = make([]int32, b.NumEdges())
	for d := range b.NumDst {
		for e := indptr[d] - indptr[0]; e < indptr[d+1]-indptr[0]; e++ {
			dst[e] = int32(d)
		}
	}
	return b.Indices()[indptr[0]:indptr[b.NumDst]], dst
}

// dstPairs is the pairs of a destination and a relation that has edges into it: first, aggregate the sources
// of each pair along into, then the pairs of each destination along out.
type dstPairs struct {
	typeGroups // rows are destinations
	into, out  *Block
	edge       []int32 // of the block, for each edge of into
}

type dstPairsKey struct{ relations int }

// pairsOf returns the pairs of a block's destinations. Within a relation they ascend, and so do the edges of a
// pair and the relations of a destination.
func pairsOf(op string, b *Block, relations int) *dstPairs {
	types := edgeTypes(op, b, relations)
	return b.Memo(dstPairsKey{relations}, func() any {
		byType := edgesByType(types, relations)
		src, dst := edgeEnds(b)
		p := &dstPairs{edge: byType.rows}
		p.starts, p.rows = make([]int, relations+1), make([]int32, 0, len(types))
		into := graphops.HostBlock{NumSrc: b.NumSrc, Level: b.Level, Indices: make([]int32, len(types)), Indptr: make([]int64, 1, len(types)+1)}
		for r := range relations {
			lo, hi := byType.of(r)
			before := int32(-1)
			for i := lo; i < hi; i++ {
				e := byType.rows[i]
				into.Indices[i] = src[e]
				if d := dst[e]; d != before {
					if before >= 0 {
						into.Indptr = append(into.Indptr, int64(i))
					}
					p.rows, before = append(p.rows, d), d
				}
			}
			if before >= 0 {
				into.Indptr = append(into.Indptr, int64(hi))
			}
			p.starts[r+1] = len(p.rows)
		}
		into.NumDst = len(p.rows)
		if b.Remote() == nil { // for masks of edges, which passes on a device do not have
			into.EdgePos = make([]int64, len(types))
			for i, e := range byType.rows {
				into.EdgePos[i] = b.Pos(b.Indptr()[0] + int64(e))
			}
		}
		p.into = into.Block()
		out := graphops.HostBlock{NumDst: b.NumDst, NumSrc: len(p.rows), Indptr: make([]int64, b.NumDst+1), Indices: make([]int32, len(p.rows))}
		for _, d := range p.rows {
			out.Indptr[d+1]++
		}
		for d := range b.NumDst {
			out.Indptr[d+1] += out.Indptr[d]
		}
		next := slices.Clone(out.Indptr)
		for i, d := range p.rows {
			out.Indices[next[d]] = int32(i)
			next[d]++
		}
		p.out = out.Block()
		return p
	}).(*dstPairs)
}

// srcPairs is the pairs of a source and a relation that it has edges of: along has the block's edges, in their
// order, from pairs instead of sources.
type srcPairs struct {
	typeGroups // rows are sources
	along      *Block
	types      []int32 // of the block's edges
}

type srcPairsKey struct{ relations int }

// sourcesOf returns the pairs of a block's sources; within a relation they come in the order of their first
// edges.
func sourcesOf(op string, b *Block, relations int) *srcPairs {
	types := edgeTypes(op, b, relations)
	return b.Memo(srcPairsKey{relations}, func() any {
		byType := edgesByType(types, relations)
		src, _ := edgeEnds(b)
		p := &srcPairs{types: make([]int32, len(types))}
		p.starts, p.rows = make([]int, relations+1), make([]int32, 0, len(types))
		indptr := b.Indptr()
		along := graphops.HostBlock{NumDst: b.NumDst, Level: b.Level, Indptr: make([]int64, b.NumDst+1), Indices: make([]int32, len(types)), EdgePos: make([]int64, len(types))}
		for d := range along.Indptr {
			along.Indptr[d] = indptr[d] - indptr[0]
		}
		last := slices.Repeat([]int32{-1}, b.NumSrc)
		for r := range relations {
			lo, hi := byType.of(r)
			for _, e := range byType.rows[lo:hi] {
				u := src[e]
				if int(last[u]) < p.starts[r] {
					last[u] = int32(len(p.rows))
					p.rows = append(p.rows, u)
				}
				along.Indices[e] = last[u]
			}
			p.starts[r+1] = len(p.rows)
		}
		for e, r := range types {
			p.types[e], along.EdgePos[e] = int32(r), b.Pos(indptr[0]+int64(e))
		}
		along.NumSrc = len(p.rows)
		p.along = along.Block()
		return p
	}).(*srcPairs)
}

// nodeGroups is the rows of a block's sources, or of its destinations, grouped by the types of their nodes.
// Within a type they ascend.
type nodeGroups struct {
	typeGroups
	place  []int32 // of each row within the groups
	sorted bool    // rows are in the order of the groups already
}

type nodeGroupsKey struct {
	schema *graphops.Schema
	dst    bool
}

// nodesOf groups a block's sources or, with dst, its destinations.
func nodesOf(op string, b *Block, s *graphops.Schema, dst bool) *nodeGroups {
	return b.Memo(nodeGroupsKey{s, dst}, func() any {
		n, first := b.NumSrc, 0
		if dst {
			n, first = b.NumDst, b.DstStart
		}
		starts := s.Starts()
		g := &nodeGroups{place: make([]int32, n), sorted: true}
		g.starts = make([]int, len(starts))
		types := make([]int32, n)
		for i := range n {
			id := int(b.SrcID(first + i))
			t, exact := slices.BinarySearch(starts, id)
			if !exact {
				t--
			}
			for exact && t+1 < len(starts) && starts[t+1] == id { // types without nodes
				t++
			}
			if id < 0 || t >= len(s.Nodes) {
				fail(op, "row %d of the block is node %d, but the schema has %d nodes", first+i, id, s.NumNodes())
			}
			types[i] = int32(t)
			g.starts[t+1]++
			g.sorted = g.sorted && (i == 0 || types[i-1] <= types[i])
		}
		for t := range s.Nodes {
			g.starts[t+1] += g.starts[t]
		}
		next, rows := slices.Clone(g.starts), make([]int32, n)
		for i, t := range types {
			rows[next[t]], g.place[i] = int32(i), int32(next[t])
			next[t]++
		}
		g.rows = rows
		return g
	}).(*nodeGroups)
}

// grouped returns x with its rows in the order of the groups.
func (g *nodeGroups) grouped(f *Fwd, x *Tensor) *Tensor {
	if g.sorted {
		return x
	}
	return f.Gather(x, g.rows)
}

// back returns the rows, which are in the order of the groups, in the block's order.
func (g *nodeGroups) back(f *Fwd, x *Tensor) *Tensor {
	if g.sorted {
		return x
	}
	return f.Gather(x, g.place)
}
