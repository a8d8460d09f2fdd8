package walk

import (
	"cmp"
	"fmt"

	"github.com/graphnb/graphnb/graphops"
)

// PageRankOptions configure [PageRank]. The zero value keeps the 32 nodes of the largest scores, with a
// restart probability of 0.15.
type PageRankOptions struct {
	// K is the number of neighbours that a node keeps; 0 means 32.
	K int
	// Alpha is the probability that a walk ends at each node that it visits; 0 means 0.15.
	Alpha float64
	// Epsilon bounds what is left out; 0 means 0.0001. See [PageRank].
	Epsilon float64
	// Self keeps the node among its own neighbours; layers add a node's own row anyway, but those that
	// normalise by weights (gnb.GCN) give it the weight 1 unless it is there.
	Self bool
	// Threads is the number of concurrent goroutines; 0 means GOMAXPROCS.
	Threads int
}

// PageRank returns the graph of personalised-PageRank neighbourhoods: the in-neighbours of node s are the
// K nodes v of the largest scores p_s(v) (of equal ones, the lower id), which are the edge weights.
// p_s(v) approximates
//
//	π_s(v) = Σ_k α·(1-α)^k · Pr(a walk from s is at v after k steps)
//
// the probability that a walk from s ends at v, if it ends at each node with probability α. Steps are in
// proportion to edge weights, and a walk vanishes at a node without in-neighbours.
//
// Scores come from local pushes: p_s starts at 0, with a residue r of 1 at s; while a node u has
// r(u) > ε·degree(u), α·r(u) moves to p_s(u), and the rest of r(u) to the residues of u's in-neighbours.
// Thus 0 ≤ π_s(v)-p_s(v) = Σ_u r(u)·π_u(v), which is at most ε·degree(v) in an undirected graph without
// weights.
//
// It returns an error for options out of range, and those of [New]. Nothing is random, and bits do not
// depend on threads. Cost: at most 1/(α·ε) edges for each node, whatever the size of the graph; 20 bytes
// per node and goroutine; the result has at most K edges for each node.
//
// Source: R. Andersen, F. Chung, K. Lang, "Local graph partitioning using PageRank vectors", FOCS 2006,
// doi:10.1109/FOCS.2006.44; top K for each node as in A. Bojchevski et al., "Scaling graph neural networks
// with approximate PageRank", KDD 2020, doi:10.1145/3394486.3403296.
func PageRank(g *graphops.Graph, o PageRankOptions) (*graphops.Graph, error) {
	o.K, o.Alpha, o.Epsilon = cmp.Or(o.K, 32), cmp.Or(o.Alpha, 0.15), cmp.Or(o.Epsilon, 1e-4)
	switch {
	case o.K < 1:
		return nil, fmt.Errorf("walk: K is %d; a node keeps 1 neighbour or more (0 means 32)", o.K)
	case !(o.Alpha > 0 && o.Alpha <= 1):
		return nil, fmt.Errorf("walk: Alpha is %v; it is a probability above 0 (0 means 0.15)", o.Alpha)
	case !(o.Epsilon >= 1e-12 && o.Epsilon <= 1):
		return nil, fmt.Errorf("walk: Epsilon is %v; it is a number from 1e-12 to 1 (0 means 0.0001)", o.Epsilon)
	}
	w, err := New(g, Options{Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	return collect(g.NumNodes(), o.Threads, func(s int32, m *memory) []near {
		if m.push == nil {
			m.push = newPush(g.NumNodes())
		}
		m.push.from(w, s, o.Alpha, o.Epsilon)
		m.near = m.near[:0]
		for _, v := range m.push.touched {
			if p := m.push.score[v]; p > 0 && (v != s || o.Self) {
				m.near = append(m.near, near{v, p})
			}
		}
		m.push.reset()
		return m.near
	}, o.K), nil
}

// push is the state of the pushes of one node. Its arrays are zeros between nodes.
type push struct {
	score, residue []float64
	mark           []uint8 // whether a node is touched, and whether it is queued
	touched        []int32
	queue          []int32
}

const (
	isTouched = 1 << iota
	isQueued
)

func newPush(nodes int) *push {
	return &push{score: make([]float64, nodes), residue: make([]float64, nodes), mark: make([]uint8, nodes)}
}

func (p *push) reset() {
	for _, v := range p.touched {
		p.score[v], p.residue[v], p.mark[v] = 0, 0, 0
	}
	p.touched, p.queue = p.touched[:0], p.queue[:0]
}

// from pushes the residue of s until none is above its bound.
func (p *push) from(w *Walker, s int32, alpha, epsilon float64) {
	g := w.g
	p.add(g, s, 1, epsilon)
	for at := 0; at < len(p.queue); at++ {
		if at >= 4096 && 2*at > len(p.queue) { // the queue keeps its memory small
			p.queue = p.queue[:copy(p.queue, p.queue[at:])]
			at = 0
		}
		u := p.queue[at]
		r := p.residue[u]
		p.mark[u] &^= isQueued
		p.residue[u] = 0
		p.score[u] += float64(alpha * r) // each product is rounded, so that no machine fuses it with the sum
		rest := (1 - alpha) * r
		lo, hi := g.Indptr[u], g.Indptr[u+1]
		if lo == hi || rest == 0 {
			continue
		}
		if w.below == nil {
			share := rest / float64(hi-lo)
			for _, v := range g.Indices[lo:hi] {
				p.add(g, v, share, epsilon)
			}
			continue
		}
		if total := w.below[hi-1]; total > 0 {
			for e := lo; e < hi; e++ {
				p.add(g, g.Indices[e], float64(rest*(float64(g.EdgeWeights[e])/total)), epsilon)
			}
		}
	}
}

// add adds to the residue of a node, and queues the node if that is above its bound.
func (p *push) add(g *graphops.Graph, v int32, x, epsilon float64) {
	if p.mark[v]&isTouched == 0 {
		p.mark[v] |= isTouched
		p.touched = append(p.touched, v)
	}
	p.residue[v] += x
	if p.mark[v]&isQueued == 0 && p.residue[v] > epsilon*float64(max(1, g.InDegree(v))) {
		p.mark[v] |= isQueued
		p.queue = append(p.queue, v)
	}
}
