package graphops

import (
	"fmt"
	"slices"
)

// Shape is what a graph looks like, apart from features and labels.
type Shape struct {
	Nodes int   `json:"nodes"`
	Edges int64 `json:"edges"` // an undirected edge counts twice
	// SelfLoops are edges from a node to itself. Repeated are the edges beyond the first from one node to another; those of
	// different types repeat nothing.
	SelfLoops int64 `json:"self_loops"`
	Repeated  int64 `json:"repeated"`
	// Isolated are nodes without an edge to or from another node.
	Isolated int `json:"isolated"`
	// Components are weakly connected, and Largest is the number of nodes of the largest one.
	Components int `json:"components"`
	Largest    int `json:"largest"`
	// InDegree are the quantiles 0, 0.5, 0.9, 0.99 and 1 of the nodes' numbers of in-edges, and MeanDegree is their mean.
	InDegree   [5]int  `json:"in_degree"`
	MeanDegree float64 `json:"mean_degree"`
}

// Shape describes the graph. Cost: one pass over the edges, and about 12 bytes for each node.
func (g *Graph) Shape() Shape {
	n := g.NumNodes()
	s := Shape{Nodes: n, Edges: g.NumEdges()}
	if n == 0 {
		return s
	}
	degrees, joined := make([]int, n), make([]bool, n)
	for v := range int32(n) {
		degrees[v] = g.InDegree(v)
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := g.Indices[e]
			if u == v {
				s.SelfLoops++
			} else {
				joined[u], joined[v] = true, true
			}
			if e > g.Indptr[v] && g.Indices[e-1] == u && (g.EdgeTypes == nil || g.EdgeTypes[e-1] == g.EdgeTypes[e]) {
				s.Repeated++
			}
		}
	}
	sizes := make([]int, n)
	for _, r := range g.components() {
		sizes[r]++
	}
	for v, size := range sizes {
		if size > 0 {
			s.Components++
		}
		s.Largest = max(s.Largest, size)
		if !joined[v] {
			s.Isolated++
		}
	}
	slices.Sort(degrees)
	for i, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
		s.InDegree[i] = degrees[int(q*float64(n-1))]
	}
	s.MeanDegree = float64(s.Edges) / float64(n)
	return s
}

// String describes the shape in two lines.
func (s Shape) String() string {
	return fmt.Sprintf("components: %d, the largest with %d of %d nodes; isolated nodes: %d; self-loops: %d; repeated edges: %d\n"+
		"in-degree: mean %.1f, median %d, 90 %% at most %d, 99 %% at most %d, largest %d",
		s.Components, s.Largest, s.Nodes, s.Isolated, s.SelfLoops, s.Repeated, s.MeanDegree, s.InDegree[1], s.InDegree[2], s.InDegree[3], s.InDegree[4])
}

// Homophily says how often edges join nodes of one class. Self-loops and nodes without a label do not count. A value is NaN if
// nothing counts for it.
type Homophily struct {
	// Edge is the share of the edges whose ends have one class.
	Edge float64 `json:"edge"`
	// Node is the mean over the nodes of the share of their in-neighbours that have their class.
	Node float64 `json:"node"`
	// Adjusted is Edge, corrected for what edges between random nodes of the same degrees would reach: 0 for those, and 1 if all
	// edges stay within a class, whatever the sizes of the classes. It is the one to compare datasets by. It is NaN for one class.
	Adjusted float64 `json:"adjusted"`
	// Edges and Nodes are the numbers of edges and nodes that count.
	Edges int64 `json:"edges"`
	Nodes int   `json:"nodes"`
}

// Homophily measures the graph with the classes of its nodes, -1 for a node without a label.
//
//	Edge = |{(u,v): y[u] = y[v]}| / |E|,  Node = mean over v of |{u → v: y[u] = y[v]}| / |{u → v}|
//	Adjusted = (Edge - Σ_k (D_k/2|E|)²) / (1 - Σ_k (D_k/2|E|)²),  D_k the number of ends of edges at nodes of class k
//
// It panics if there are not as many labels as nodes, or a label is below -1. Cost: one pass over the edges.
//
// Source: O. Platonov, D. Kuznedelev, A. Babenko, L. Prokhorenkova, "Characterizing graph datasets for node classification:
// homophily-heterophily dichotomy and beyond", NeurIPS 2023, arXiv:2209.06177.
func (g *Graph) Homophily(labels []int32) (h Homophily) {
	n := g.NumNodes()
	if len(labels) != n {
		panic(fmt.Sprintf("graphops: Homophily: %d labels for %d nodes", len(labels), n))
	}
	classes := int32(0)
	for v, y := range labels {
		if y < -1 {
			panic(fmt.Sprintf("graphops: Homophily: the label of node %d is %d; it is a class from 0, or -1 for none", v, y))
		}
		classes = max(classes, y+1)
	}
	ends, within, sum := make([]int64, classes), int64(0), 0.0
	for v := range int32(n) {
		y := labels[v]
		if y < 0 {
			continue
		}
		same, all := int64(0), int64(0)
		for _, u := range g.InNeighbors(v) {
			if x := labels[u]; u != v && x >= 0 {
				all++
				ends[x]++
				ends[y]++
				if x == y {
					same++
				}
			}
		}
		if all > 0 {
			h.Nodes++
			sum += float64(same) / float64(all)
		}
		h.Edges, within = h.Edges+all, within+same
	}
	h.Edge, h.Node = float64(within)/float64(h.Edges), sum/float64(h.Nodes)
	random := 0.0
	for _, d := range ends {
		share := float64(d) / float64(2*h.Edges)
		random += share * share
	}
	h.Adjusted = (h.Edge - random) / (1 - random)
	return h
}

// String describes the homophily in a line.
func (h Homophily) String() string {
	if h.Edges == 0 {
		return "homophily: no edge joins two nodes with a label"
	}
	return fmt.Sprintf("homophily: edge %.3f, node %.3f, adjusted %.3f (%d edges between nodes with a label)", h.Edge, h.Node, h.Adjusted, h.Edges)
}
