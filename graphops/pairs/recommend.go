package pairs

import (
	"fmt"
	"math"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Heuristic is a baseline that scores pairs by their common neighbours.
type Heuristic string

// The heuristics of [CommonNeighbours], [AdamicAdar] and [ResourceAllocation].
const (
	ByCommonNeighbours   Heuristic = "common_neighbours"
	ByAdamicAdar         Heuristic = "adamic_adar"
	ByResourceAllocation Heuristic = "resource_allocation"
)

// Heuristics returns the names of the heuristics.
func Heuristics() []Heuristic {
	return []Heuristic{ByCommonNeighbours, ByAdamicAdar, ByResourceAllocation}
}

// Score returns the scores of pairs in g; see [CommonNeighbours].
func (h Heuristic) Score(g Around, pairs Edges, threads int) ([]float32, error) {
	of, err := h.of()
	if err != nil {
		return nil, err
	}
	return score(g, pairs, threads, of)
}

func (h Heuristic) of() (heuristic, error) {
	switch h {
	case ByCommonNeighbours:
		return commonNeighbours, nil
	case ByAdamicAdar:
		return adamicAdar, nil
	case ByResourceAllocation:
		return resourceAllocation, nil
	}
	return nil, fmt.Errorf("pairs: there is no heuristic %q; choose common_neighbours, adamic_adar or resource_allocation", string(h))
}

// TopK returns, for each of the given nodes, the K candidates with the highest scores in g, as the
// function TopK does for embeddings: exactly, and of equal scores the smaller id first. The scores are
// those of Score.
//
// Cost for a node: the degrees of its neighbours and the number of candidates. Memory: 8 bytes for each
// node and thread.
func (h Heuristic) TopK(g *graphops.Graph, nodes []int32, o TopOptions) (Top, error) {
	if err := hasNodes(g); err != nil {
		return Top{}, err
	}
	of, err := h.of()
	if err != nil {
		return Top{}, err
	}
	candidates, err := o.check(nodes, g.NumNodes())
	if err != nil {
		return Top{}, err
	}
	out, t := Destinations(g), newTop(len(nodes), o.K)
	var failed firstError
	memory := sync.Pool{New: func() any { return &sums{make([]float64, g.NumNodes()), nil} }}
	parallel.For(o.Threads, len(nodes), 8, func(lo, hi int) {
		m := memory.Get().(*sums)
		defer memory.Put(m)
		scores := make([]float32, len(candidates))
		for i := lo; i < hi; i++ {
			u := nodes[i]
			m.add(g, out, u, of)
			for j, v := range candidates {
				scores[j] = float32(m.of[v])
			}
			m.clear()
			row := o.selection(u)
			if err := row.offer(candidates, scores); err != nil {
				failed.put(lo, err)
				return
			}
			row.write(t, i)
		}
	})
	return t, failed.err
}

// sums are the scores of all nodes with one.
type sums struct {
	of      []float64
	touched []int32
}

// add adds, in ascending order, what each in-neighbour of u adds to the nodes that it has edges to.
func (m *sums) add(g, out *graphops.Graph, u int32, of heuristic) {
	last := int32(-1)
	for _, z := range g.InNeighbors(u) {
		if z == last || z == u {
			continue
		}
		last = z
		x, before := of(g.InDegree(z)), int32(-1)
		for _, v := range out.InNeighbors(z) {
			if v == before || v == z {
				continue
			}
			before = v
			m.of[v] += x
			m.touched = append(m.touched, v)
		}
	}
}

func (m *sums) clear() {
	for _, v := range m.touched {
		m.of[v] = 0
	}
	m.touched = m.touched[:0]
}

// Relevant groups edges by their source: nodes are the sources, ascending, and the row of a source has
// its destinations, ascending. If undirected, an edge counts in both directions. It returns an error
// for an edge between nodes that are not 0 to count-1.
func Relevant(count int, e Edges, undirected bool) (nodes []int32, rows *graphops.Graph, err error) {
	if err := e.check("the edges", count); err != nil {
		return nil, nil, err
	}
	if rows, err = graphops.FromEdges(count, e.Dst, e.Src, graphops.BuildOptions{Undirected: undirected}); err != nil {
		return nil, nil, err
	}
	for v := range int32(count) {
		if rows.InDegree(v) > 0 {
			nodes = append(nodes, v)
		}
	}
	return nodes, rows, nil
}

// Mean returns the mean of values in their order, NaN without any.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	if len(values) == 0 {
		return math.NaN()
	}
	return sum / float64(len(values))
}

// RecallNDCG returns the mean over nodes of [RecallAt] and [NDCGAt] of their first K, where the relevant
// nodes of a node are its row. Every node must have one.
func (t Top) RecallNDCG(nodes []int32, relevant *graphops.Graph) (recall, ndcg float64) {
	recalls, ndcgs := t.Each(nodes, relevant)
	return Mean(recalls), Mean(ndcgs)
}

// Each returns the recall and NDCG of each node; see RecallNDCG.
func (t Top) Each(nodes []int32, relevant *graphops.Graph) (recall, ndcg []float64) {
	recall, ndcg = make([]float64, len(nodes)), make([]float64, len(nodes))
	for i, u := range nodes {
		ids, _ := t.Of(i)
		recall[i], ndcg[i] = RecallAt(ids, relevant.InNeighbors(u), t.K), NDCGAt(ids, relevant.InNeighbors(u), t.K)
	}
	return recall, ndcg
}
