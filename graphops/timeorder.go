package graphops

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/parallel"
)

// timeOrders holds the results of TimeOrder for a graph.
type timeOrders struct {
	of [2]struct { // by time, and by type and time
		once  sync.Once
		order []int32
	}
}

// TimeOrder returns the in-edges of each node in the order of their times: order[Indptr[v]+i] is the place, among the
// in-edges of v, of its i-th one by time. Equal times are in the order of positions. With byType, types ascend first, and
// times within them. It is nil if the in-edges of each node are in this order already. Edges without times are an error of
// the caller: it panics.
//
// Cost: a sort of the in-edges of each node, in parallel, and 4 bytes for each edge. A graph made by WithEdgeData, as those
// of FromEdgesWith and of datasets are, stores the result. It must not be written to.
func (g *Graph) TimeOrder(byType bool) []int32 {
	if int64(len(g.EdgeTimes)) != g.NumEdges() {
		panic("graphops: TimeOrder: the edges have no times")
	}
	which, types := 0, []uint16(nil)
	if byType && g.EdgeTypes != nil {
		which, types = 1, g.EdgeTypes
	}
	if g.byTime == nil {
		return OrderByTime(g.Indptr, g.EdgeTimes, types, 0)
	}
	o := &g.byTime.of[which]
	o.once.Do(func() { o.order = OrderByTime(g.Indptr, g.EdgeTimes, types, 0) })
	return o.order
}

// timedEdge is an in-edge of a node: its time, its type, and its place among the node's in-edges.
type timedEdge struct {
	time  int64
	place int32
	typ   uint16
}

// OrderByTime returns what [Graph.TimeOrder] returns for the in-edges at positions indptr[v] to indptr[v+1] of each node v,
// which have these times and, unless types is nil, types. It runs on the given number of threads (0: GOMAXPROCS), which
// does not change the result.
func OrderByTime(indptr []int64, times []int64, types []uint16, threads int) []int32 {
	nodes := len(indptr) - 1
	var unsorted atomic.Bool
	parallel.For(threads, nodes, orderGrain, func(lo, hi int) {
		for v := lo; v < hi && !unsorted.Load(); v++ {
			if from, to := indptr[v], indptr[v+1]; !inTimeOrder(times[from:to], between(types, from, to)) {
				unsorted.Store(true)
			}
		}
	})
	if !unsorted.Load() {
		return nil
	}
	order := make([]int32, indptr[nodes])
	parallel.For(threads, nodes, orderGrain, func(lo, hi int) {
		var edges []timedEdge
		for v := lo; v < hi; v++ {
			from, to := indptr[v], indptr[v+1]
			edges = sortByTime(order[from:to], times[from:to], between(types, from, to), edges)
		}
	})
	return order
}

// orderGrain is the number of nodes of one chunk of the loop that sorts their in-edges.
const orderGrain = 256

// inTimeOrder reports whether the in-edges of a node are in order.
func inTimeOrder(times []int64, types []uint16) bool {
	for i := 1; i < len(times); i++ {
		if types != nil && types[i] != types[i-1] {
			if types[i] < types[i-1] {
				return false
			}
			continue
		}
		if times[i] < times[i-1] {
			return false
		}
	}
	return true
}

// sortByTime writes the places of the in-edges of a node in their order, by means of the memory that it returns.
func sortByTime(order []int32, times []int64, types []uint16, edges []timedEdge) []timedEdge {
	edges = edges[:0]
	for i, t := range times {
		e := timedEdge{time: t, place: int32(i)}
		if types != nil {
			e.typ = types[i]
		}
		edges = append(edges, e)
	}
	slices.SortFunc(edges, func(a, b timedEdge) int {
		switch {
		case a.typ != b.typ:
			return int(a.typ) - int(b.typ)
		case a.time != b.time:
			return cmp.Compare(a.time, b.time)
		}
		return int(a.place) - int(b.place)
	})
	for i := range edges {
		order[i] = edges[i].place
	}
	return edges
}

// between are the elements [lo, hi) of x, nil if x is nil.
func between[T any](x []T, lo, hi int64) []T {
	if x == nil {
		return nil
	}
	return x[lo:hi]
}
