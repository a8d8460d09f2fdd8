package graphops

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
)

// FromWeightedEdges is [FromEdges] for edges src[i] → dst[i] of weight w[i]. The weights become
// EdgeWeights of the returned graph. The weights of equal edges are added, in float64 and rounded
// once; with Undirected, an edge listed in both directions gets the sum of its two weights. With
// KeepDuplicates parallel edges keep their own weights, in ascending order. A self-loop added by
// SelfLoops has weight 1.
//
// The result depends neither on the order of the edges nor on the number of threads. In addition to
// the errors of FromEdges, it returns an error for a weight that is not finite and for more than
// 2^31-1 edges.
//
// Cost: that of FromEdges, plus 12 bytes of scratch memory per edge and a sort by weight.
func FromWeightedEdges(nodes int, src, dst []int32, w []float32, o BuildOptions) (*Graph, error) {
	if len(w) != len(src) {
		return nil, fmt.Errorf("graphops: %d weights for %d edges", len(w), len(src))
	}
	if len(src) > math.MaxInt32 {
		return nil, fmt.Errorf("graphops: %d weighted edges; at most %d can be built into a graph", len(src), math.MaxInt32)
	}
	if i := slices.IndexFunc(w, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }); i >= 0 {
		return nil, fmt.Errorf("graphops: edge %d has the weight %v; weights must be finite", i, w[i])
	}
	if err := checkEdges(nodes, src, dst, o.Threads); err != nil {
		return nil, err
	}
	b := builder{nodes: nodes, edges: len(src), threads: o.Threads, progress: o.Progress}
	// Instead of its source, an edge carries its number and whether it is reversed: 2i or 2i+1. The
	// value fits in 32 unsigned bits, and the order of a row is corrected below.
	b.pack = func(buf []uint64, lo, hi int) []uint64 {
		for i := lo; i < hi; i++ {
			buf = append(buf, uint64(uint32(dst[i]))<<32|uint64(2*i))
			if o.Undirected && src[i] != dst[i] {
				buf = append(buf, uint64(uint32(src[i]))<<32|uint64(2*i+1))
			}
		}
		return buf
	}
	numbered := b.build()
	weights := make([]float32, len(numbered.Indices))
	ends := make([]int64, nodes) // of each row after equal edges are merged
	parallel.For(o.Threads, nodes, rowGrain, func(lo, hi int) {
		var row []weightedEdge
		for v := lo; v < hi; v++ {
			first, last := numbered.Indptr[v], numbered.Indptr[v+1]
			row = row[:0]
			for _, number := range numbered.Indices[first:last] {
				i := uint32(number) >> 1
				if number&1 != 0 {
					row = append(row, weightedEdge{dst[i], w[i]})
				} else {
					row = append(row, weightedEdge{src[i], w[i]})
				}
			}
			slices.SortFunc(row, weightedEdge.compare)
			end := first
			for i := 0; i < len(row); end++ {
				u, sum := row[i].src, float64(row[i].w)
				for i++; i < len(row) && row[i].src == u && !o.KeepDuplicates; i++ {
					sum += float64(row[i].w)
				}
				numbered.Indices[end], weights[end] = u, float32(sum)
			}
			ends[v] = end
		}
	})
	g, out := packRows(numbered, weights, ends, o)
	return g.WithEdgeWeights(out), nil
}

// weightedEdge is an in-edge of the current node.
type weightedEdge struct {
	src int32
	w   float32
}

// compare orders by source, then by weight, so that the sum over equal edges does not depend on the
// order of the list. Comparing bits distinguishes -0 from 0.
func (e weightedEdge) compare(f weightedEdge) int {
	if e.src != f.src {
		return cmp.Compare(e.src, f.src)
	}
	if e.w != f.w {
		return cmp.Compare(e.w, f.w)
	}
	return cmp.Compare(math.Float32bits(e.w), math.Float32bits(f.w))
}

// packRows closes the gaps between rows and adds the self-loops that o requests.
func packRows(g *Graph, w []float32, ends []int64, o BuildOptions) (*Graph, []float32) {
	n := g.NumNodes()
	r := &Graph{Indptr: make([]int64, n+1)}
	for v := range n {
		row := g.Indices[g.Indptr[v]:ends[v]]
		r.Indptr[v+1] = r.Indptr[v] + int64(len(row))
		if _, has := slices.BinarySearch(row, int32(v)); o.SelfLoops && !has {
			r.Indptr[v+1]++
		}
	}
	r.Indices = make([]int32, r.Indptr[n])
	out := make([]float32, r.Indptr[n])
	parallel.For(o.Threads, n, rowGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			first, at := g.Indptr[v], r.Indptr[v]
			row, rowW := g.Indices[first:ends[v]], w[first:ends[v]]
			if r.Indptr[v+1]-at > int64(len(row)) { // a self-loop is to be added
				before, _ := slices.BinarySearch(row, int32(v))
				copy(r.Indices[at:], row[:before])
				copy(out[at:], rowW[:before])
				at += int64(before)
				r.Indices[at], out[at] = int32(v), 1
				at++
				row, rowW = row[before:], rowW[before:]
			}
			copy(r.Indices[at:], row)
			copy(out[at:], rowW)
		}
	})
	return r, out
}
