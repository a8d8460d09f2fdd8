package partition

import "math"

// tries is the number of attempts per bisection; the best is kept.
const tries = 8

// initial divides the smallest graph by recursive bisection.
func (m *divider) initial(g *weighted) []int32 {
	of := make([]int32, g.nodes())
	all := make([]int32, g.nodes())
	for v := range all {
		all[v] = int32(v)
	}
	m.bisect(g, all, of, 0, m.parts)
	return of
}

// bisect divides nodes, whose subgraph is g, into the parts [first, first+parts).
func (m *divider) bisect(g *weighted, nodes, of []int32, first, parts int) {
	if parts == 1 {
		for _, v := range nodes {
			of[v] = int32(first)
		}
		return
	}
	if m.ctx.Err() != nil {
		return
	}
	half := parts / 2
	share := float64(half) / float64(parts)
	best, bestCut, bestOver := []int32(nil), int64(math.MaxInt64), int64(math.MaxInt64)
	for try := range tries {
		side := m.start(g, share, draw(m.o.Seed, first*m.parts+parts, 1000+try))
		cut, over := m.improve(g, side, share, parts)
		if over < bestOver || over == bestOver && cut < bestCut {
			best, bestCut, bestOver = side, cut, over
		}
	}
	for i, count := range []int{half, parts - half} {
		sub, members := g.part(best, int32(i))
		for j, v := range members {
			members[j] = nodes[v]
		}
		m.bisect(sub, members, of, first+i*half, count)
	}
}

// grow makes side 0 around one node.
func grow(g *weighted, share float64, random uint32) []int32 { return g.grow(share, int(random), 0) }

// grow grows side 0 from a node, and from so many more that it is made to take. It always adds the node that cuts the fewest additional edges,
// until the side has its share of the weight; the other nodes are side 1.
func (g *weighted) grow(share float64, from, more int) []int32 {
	n := g.nodes()
	side := make([]int32, n)
	for v := range side {
		side[v] = 1
	}
	target := int64(share * float64(g.total))
	gain := make([]int64, n) // edges of a node into side 0, less its edges to side 1
	for v := range gain {
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			gain[v] -= g.weightOf(e)
		}
	}
	var h heap
	var weight int64
	for next := 0; weight < target && next < n; {
		var v int32
		if more > 0 {
			more--
			from = int(mix(uint32(from), uint32(more), 0))
			if v = int32(from % n); side[v] == 0 {
				continue
			}
		} else if len(h) > 0 {
			it := h.pop()
			if v = it.node; side[v] == 0 || it.gain != gain[v] {
				continue
			}
		} else { // start in another component
			v = int32((from + next) % n)
			if next++; side[v] == 0 {
				continue
			}
		}
		if weight > 0 && weight+g.node[v] > target+(target-weight) { // adding the node is worse than leaving it out
			continue
		}
		side[v] = 0
		weight += g.node[v]
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			if u := g.adj[e]; side[u] == 1 {
				gain[u] += 2 * g.weightOf(e)
				h.push(item{gain[u], u})
			}
		}
	}
	return side
}

// improve refines a bisection in place. It returns the cut and the excess weight of the sides.
func (m *divider) improve(g *weighted, side []int32, share float64, parts int) (cut, over int64) {
	// Each of log2(parts) bisections may use an equal share of the imbalance.
	slack := m.o.Imbalance / math.Ceil(math.Log2(float64(parts)))
	most := []int64{int64((1 + slack) * share * float64(g.total)), int64((1 + slack) * (1 - share) * float64(g.total))}
	r := newMoves(g, side, most)
	r.rebalance()
	r.tabulate()
	for range 8 {
		if !r.climb() {
			break
		}
	}
	for v := range side {
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			if side[g.adj[e]] != side[v] {
				cut += g.weightOf(e)
			}
		}
	}
	for i, s := range r.size {
		over += max(0, s-most[i])
	}
	return cut, over
}

// part returns the subgraph of one side's nodes, and their numbers in g.
func (g *weighted) part(side []int32, of int32) (*weighted, []int32) {
	number := make([]int32, g.nodes())
	var members []int32
	for v, s := range side {
		if s == of {
			number[v] = int32(len(members))
			members = append(members, int32(v))
		}
	}
	p := &weighted{indptr: make([]int64, len(members)+1), node: make([]int64, len(members)), edge: []int32{}}
	for i, v := range members {
		p.node[i] = g.node[v]
		p.total += g.node[v]
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			if u := g.adj[e]; side[u] == of {
				p.adj = append(p.adj, number[u])
				p.edge = append(p.edge, int32(g.weightOf(e)))
			}
		}
		p.indptr[i+1] = int64(len(p.adj))
	}
	return p, members
}
