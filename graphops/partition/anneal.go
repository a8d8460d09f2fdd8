package partition

import "math"

const (
	// fewSweeps is the smallest number of sweeps over the nodes at which annealing beats fresh
	// divisions.
	fewSweeps = 10000
	// visit is the cost of offering a node to a part, in edges looked at.
	visit = 2
)

// sweeps returns the number of times that annealing visits each node, if it may take the given
// effort, or 0 if the graph is not for annealing: local searches and flows divide graphs without
// hubs better, and large ones allow too few visits.
func (g *weighted) sweeps(effort int64) int {
	if n := int(effort / int64(visit*g.nodes())); n >= fewSweeps && g.skewed() {
		return n
	}
	return 0
}

// anneal makes a division at random and improves it by simulated annealing: it offers nodes at
// random to other parts at random. A move that costs d edges is made with the probability
// exp(-d/t), and the temperature t falls from a fifth of the mean degree to a sixth of that. Moves
// that make a part too heavy are never made. On graphs with hubs the best parts are in many pieces;
// this collects them, since it does not prefer nodes at a border.
//
// Source: D. S. Johnson, C. R. Aragon, L. A. McGeoch, C. Schevon, "Optimization by simulated
// annealing: an experimental evaluation; part I, graph partitioning", Operations Research 37 (1989),
// doi:10.1287/opre.37.6.865.
func (s *search) anneal(g *weighted, sweeps int) []int32 {
	n, k := g.nodes(), s.parts
	of := make([]int32, n)
	for v := range of {
		of[v] = int32(s.below(k))
	}
	r := newMoves(g, of, s.limits)
	r.rebalance(s.ctx)
	r.tabulate()
	hot := 0.2 * float64(len(g.adj)) / float64(n)
	const cooling, certain = 6, 1 << 31
	chance := make([]uint64, int(math.Log(certain)*hot)+2) // by cost, out of certain; above these it is 0
	for i := range sweeps {
		if s.ctx.Err() != nil {
			break
		}
		t := hot * math.Pow(cooling, -float64(i)/float64(sweeps))
		for d := range chance {
			chance[d] = uint64(math.Exp(-float64(d)/t) * certain)
		}
		for range n {
			v := int32(s.below(n))
			own, to := of[v], int32(1)
			if k > 2 {
				to = 1 + int32(s.below(k-1))
			}
			if to += own; to >= int32(k) {
				to -= int32(k)
			}
			if !r.fits(v, to) {
				continue
			}
			cost := r.cost(v, own, to)
			if cost > 0 && (cost >= int64(len(chance)) || s.next()>>33 >= chance[cost]) {
				continue
			}
			r.move(v, to)
		}
		s.work += visit * int64(n)
	}
	s.work += r.looked
	s.refine(g, of)
	return of
}

// cost returns the number of edges that a move of v from its own part cuts, less those that it
// saves.
func (r *moves) cost(v, own, to int32) (cost int64) {
	if r.table != nil {
		row := r.row(v)
		return row[own] - row[to]
	}
	for e := r.g.indptr[v]; e < r.g.indptr[v+1]; e++ {
		switch r.of[r.g.adj[e]] {
		case own:
			cost += r.g.weightOf(e)
		case to:
			cost -= r.g.weightOf(e)
		}
	}
	r.looked += r.g.indptr[v+1] - r.g.indptr[v]
	return cost
}
