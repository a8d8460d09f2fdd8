// Package temporal provides graphs as streams of events: edges that happen at a time, one after the other. What a model
// may know at a moment is what the stream holds before it.
//
// # Order
//
// Events are numbered in the order of their times; events of one time keep the order of the data. "Before event e" means the
// events with smaller numbers. So each view of the past is a function of the stream and a number, which any process
// can compute again and check.
package temporal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Events are the events of a graph in the order of time. They are read-only, and safe for concurrent use.
type Events struct {
	Nodes int
	// Src and Dst [events] are the ends of each event.
	Src, Dst []int32
	// Time [events] are their times, which never decrease, in the unit of the edges' times.
	Time []int64
	// Edge [events] is the position of each event's edge in Graph.Indices; nil if the events are not those of a graph.
	Edge []int64
	// Features are those of the edges, by Edge; nil if there are none.
	Features *graphops.EdgeFeatures
	// NodeTimes [Nodes] are the times from which nodes exist; nil if they have none.
	NodeTimes []int64

	byNode func() incidence
}

// incidence lists the events of each node in their order.
type incidence struct {
	starts []int64 // [nodes + 1]
	events []int32
}

// New returns events src[i] → dst[i] at time[i] of a graph of nodes. Times must not decrease. The slices are kept.
func New(nodes int, src, dst []int32, time []int64) (*Events, error) {
	switch {
	case len(src) != len(dst) || len(src) != len(time):
		return nil, fmt.Errorf("temporal: there are %d sources, %d destinations and %d times; an event has one of each", len(src), len(dst), len(time))
	case len(src) >= math.MaxInt32/2:
		return nil, fmt.Errorf("temporal: there are %d events, and at most %d are numbered; take a part of them", len(src), math.MaxInt32/2-1)
	}
	for i, u := range src {
		switch v := dst[i]; {
		case uint(u) >= uint(nodes) || uint(v) >= uint(nodes):
			return nil, fmt.Errorf("temporal: event %d joins the nodes %d and %d, but the graph's nodes are 0 to %d", i, u, v, nodes-1)
		case i > 0 && time[i] < time[i-1]:
			return nil, fmt.Errorf("temporal: event %d has time %d, and event %d before it has time %d; sort the events by time", i, time[i], i-1, time[i-1])
		}
	}
	e := &Events{Nodes: nodes, Src: src, Dst: dst, Time: time}
	e.byNode = sync.OnceValue(e.index)
	return e, nil
}

// Of returns the events of a dataset in their own order ([dataset.Dataset.Events]). If the dataset lists none, they are its edges in the
// order of their times, equal times by position. It returns an error for a dataset whose edges have no times, that has no whole graph
// here, or that lists no events and has each edge in both directions, so that each event would be there twice.
func Of(ds *dataset.Dataset) (*Events, error) {
	g := ds.Graph
	switch {
	case g == nil:
		return nil, fmt.Errorf("temporal: the edges of %s are in parts or at servers; get them first (divided.WithEdges), or take the undivided dataset", ds.Name())
	case g.EdgeTimes == nil:
		return nil, fmt.Errorf("temporal: the edges of %s have no times, so they are no events; convert the data with its column of times", ds.Name())
	case ds.Events != nil:
		return eventsAt(g, ds.Events, ds.NodeTimes)
	case g.NumEdges() >= math.MaxInt32/2:
		return nil, fmt.Errorf("temporal: %s has %d edges, and at most %d events are numbered", ds.Name(), g.NumEdges(), math.MaxInt32/2-1)
	case bothWays(g):
		return nil, fmt.Errorf("temporal: %s has each edge in both directions at the same time, so that each event would be there twice; convert the data without --undirected", ds.Name())
	}
	at := make([]int64, g.NumEdges())
	for i := range at {
		at[i] = int64(i)
	}
	slices.SortStableFunc(at, func(a, b int64) int { return cmp.Compare(g.EdgeTimes[a], g.EdgeTimes[b]) })
	return eventsAt(g, at, ds.NodeTimes)
}

// eventsAt returns the events whose edges are at these positions of a graph, in this order.
func eventsAt(g *graphops.Graph, at, nodeTimes []int64) (*Events, error) {
	src, dst, _ := g.EdgesAt(at)
	time := make([]int64, len(at))
	for i, e := range at {
		time[i] = g.EdgeTimes[e]
	}
	events, err := New(g.NumNodes(), src, dst, time)
	if err != nil {
		return nil, err
	}
	events.Edge, events.Features, events.NodeTimes = at, g.EdgeFeatures, nodeTimes
	return events, nil
}

// bothWays reports whether every edge of g, and there are some between two nodes, has a reverse at the same time.
func bothWays(g *graphops.Graph) bool {
	some := false
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if u := g.Indices[e]; u != v {
				if some = true; !happened(g, v, u, g.EdgeTimes[e]) {
					return false
				}
			}
		}
	}
	return some
}

// happened reports whether g has an edge u → v at a time.
func happened(g *graphops.Graph, u, v int32, time int64) bool {
	from := g.InNeighbors(v)
	for i, _ := slices.BinarySearch(from, u); i < len(from) && from[i] == u; i++ {
		if g.EdgeTimes[g.Indptr[v]+int64(i)] == time {
			return true
		}
	}
	return false
}

// Len is the number of events.
func (e *Events) Len() int { return len(e.Src) }

// index makes the lists of the nodes' events.
func (e *Events) index() incidence {
	x := incidence{make([]int64, e.Nodes+1), nil}
	each := func(use func(v int32, event int32)) {
		for i, u := range e.Src {
			use(u, int32(i))
			if v := e.Dst[i]; v != u {
				use(v, int32(i))
			}
		}
	}
	each(func(v, _ int32) { x.starts[v+1]++ })
	for v := range e.Nodes {
		x.starts[v+1] += x.starts[v]
	}
	x.events = make([]int32, x.starts[e.Nodes])
	next := slices.Clone(x.starts[:e.Nodes])
	each(func(v, event int32) { x.events[next[v]] = event; next[v]++ })
	return x
}

// Head returns the first n events: all that is known before event n. The ends, times and positions of later ones cannot be reached
// through it, and their features only by a position that something else knows. It shares the memory of e. Cost: none that grows with n.
func (e *Events) Head(n int) *Events {
	h := *e
	h.Src, h.Dst, h.Time = e.Src[:n:n], e.Dst[:n:n], e.Time[:n:n]
	if e.Edge != nil {
		h.Edge = e.Edge[:n:n]
	}
	return &h
}

// EventsOf returns the events of a node, as source or destination, in their order; an event between a node and itself is there
// once. The memory is that of e.
func (e *Events) EventsOf(node int32) []int32 {
	x := e.byNode()
	all := x.events[x.starts[node]:x.starts[node+1]]
	if n := len(all); n == 0 || int(all[n-1]) < e.Len() {
		return all
	}
	return below(all, e.Len())
}

// below returns those of ascending events that come before one.
func below(events []int32, before int) []int32 {
	n := sort.Search(len(events), func(i int) bool { return int(events[i]) >= before })
	return events[:n:n]
}

// Before returns the last k events of a node with numbers below before, in their order; all of them if k is negative. The memory is
// that of e. Cost: a binary search in the node's events.
func (e *Events) Before(node int32, before, k int) []int32 {
	all := below(e.EventsOf(node), before)
	if k < 0 || k > len(all) {
		k = len(all)
	}
	return all[len(all)-k:]
}

// Last returns the last k events of a node, in their order; all of them if k is negative. The memory is that of e.
func (e *Events) Last(node int32, k int) []int32 { return e.Before(node, e.Len(), k) }

// Other returns the other end of an event of a node.
func (e *Events) Other(event, node int32) int32 {
	if e.Src[event] == node {
		return e.Dst[event]
	}
	return e.Src[event]
}

// Exists reports whether a node exists at a time: its own time is no later, or it has none.
func (e *Events) Exists(node int32, t int64) bool {
	return e.NodeTimes == nil || e.NodeTimes[node] <= t
}

// Until returns the number of events with a time of at most t: the events before it are those that someone knows at t.
func (e *Events) Until(t int64) int {
	return sort.Search(len(e.Time), func(i int) bool { return e.Time[i] > t })
}
