package partition

import (
	"context"
	"math"
	"math/bits"
)

// tries is the number of attempts at each bisection of the smallest graph; the best is kept.
const tries = 8

// initial divides the smallest graph of a cycle by recursive bisection, several times, and keeps the
// best division. It takes more turns if that graph is small beside the whole one, whose number of
// edges is given, because they cost little then. It may return nil if the context has ended.
func (s *search) initial(g *weighted, whole int) []int32 {
	all := make([]int32, g.nodes())
	for v := range all {
		all[v] = int32(v)
	}
	var best division
	fewest := max(2, 5/bits.Len(uint(s.parts-1))) // the fewer parts, the fewer bisections each turn has
	for range max(fewest, min(8, whole/(8*len(g.adj)+1))) {
		of := make([]int32, g.nodes())
		s.bisect(g, all, of, 0, s.parts)
		if s.ctx.Err() != nil {
			break
		}
		s.refine(g, of)
		if d := s.judge(g, of); best.of == nil || d.compare(best) < 0 {
			best = d
		}
	}
	return best.of
}

// bisect divides nodes, whose subgraph is g, into the parts [first, first+parts). There may be fewer nodes
// than parts, or none: another quantity than their number is balanced.
func (s *search) bisect(g *weighted, nodes, of []int32, first, parts int) {
	if parts == 1 {
		for _, v := range nodes {
			of[v] = int32(first)
		}
		return
	}
	if len(nodes) == 0 || s.ctx.Err() != nil {
		return
	}
	half := parts / 2
	// Each of log2(parts) bisections may use an equal share of the imbalance.
	slack := s.o.Imbalance / math.Ceil(math.Log2(float64(parts)))
	side := s.halve(g, half, parts-half, slack)
	for i, count := range []int{half, parts - half} {
		sub, members := g.part(side, int32(i))
		for j, v := range members {
			members[j] = nodes[v]
		}
		s.bisect(sub, members, of, first+i*half, count)
	}
}

// halve divides a graph into two sides in proportion to two numbers: it merges nodes, grows sides in
// the smallest graph, and refines the best on the way back.
func (s *search) halve(g *weighted, a, b int, slack float64) []int32 {
	const smallest = 60
	l := g.limits([]int{a, b}, slack)
	if n := g.nodes(); n > 2*smallest {
		if into, count := s.match(g, smallest, nil); count <= n*9/10 {
			coarse := s.halve(g.contract(into, count), a, b, slack)
			side := make([]int32, n)
			for v, c := range into {
				side[v] = coarse[c]
			}
			newMoves(g, side, l).improve(s.ctx)
			return side
		}
	}
	var best []int32
	least, over := int64(0), 0.0
	for range tries {
		if best != nil && s.ctx.Err() != nil {
			break
		}
		side := s.grow(g, float64(a)/float64(a+b))
		r := newMoves(g, side, l)
		r.improve(s.ctx)
		if cut, o := g.cut(side), r.over(); best == nil || o < over || o == over && cut < least {
			best, least, over = side, cut, o
		}
	}
	return best
}

// improve refines a division in place: parts that are too heavy give nodes away, and then nodes move
// as long as that saves edges.
func (r *moves) improve(ctx context.Context) {
	r.rebalance(ctx)
	r.tabulate()
	first := int64(0)
	for range 4 {
		if ctx.Err() != nil {
			break
		}
		saved := r.climb(ctx)
		if first = max(first, saved); saved <= first/20 {
			break
		}
	}
}

// grow makes side 0 around one node, or in the strong preset around a few or of any: the best side
// may be in several pieces.
func (s *search) grow(g *weighted, share float64) []int32 {
	seeds := 0
	if s.thorough {
		seeds = []int{0, 0, 1, 2, 4, g.nodes() / 8, g.nodes() / 4, g.nodes()}[s.below(8)]
	}
	return g.grow(share, s.below(g.nodes()), seeds)
}

// grow grows side 0 from a node, and from so many more that it is made to take. It always adds the
// node that cuts the fewest additional edges, until the side has its share of the weight; the other
// nodes are side 1.
func (g *weighted) grow(share float64, from, more int) []int32 {
	n := g.nodes()
	side := make([]int32, n)
	for v := range side {
		side[v] = 1
	}
	size, total := g.blend()
	target := max(int64(share*float64(total)), min(total, 1)) // a side without weight would be empty
	gain := make([]int64, n)                                  // edges of a node into side 0, less its edges to side 1
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
		if weight > 0 && weight+size[v] > target+(target-weight) { // adding the node is worse than leaving it out
			continue
		}
		side[v] = 0
		weight += size[v]
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			if u := g.adj[e]; side[u] == 1 {
				gain[u] += 2 * g.weightOf(e)
				h.push(item{gain[u], u, 0})
			}
		}
	}
	return side
}

// blend returns one weight for each node, and their sum: the node's weight or, if there are further
// quantities, the sum of its shares of all of them, in units of which a node has 1000 on average.
func (g *weighted) blend() (size []int64, total int64) {
	if g.more == nil {
		return g.node, g.total
	}
	size = make([]int64, g.nodes())
	for _, w := range append([][]int64{g.node}, g.more...) {
		unit := 1000 * float64(g.nodes()) / float64(max(1, sum(w)))
		for v, x := range w {
			size[v] += int64(unit*float64(x) + 0.5)
		}
	}
	return size, sum(size)
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
	pick := func(weights []int64) []int64 {
		own := make([]int64, len(members))
		for i, v := range members {
			own[i] = weights[v]
		}
		return own
	}
	p := &weighted{indptr: make([]int64, len(members)+1), node: pick(g.node), edge: []int32{}}
	p.total = sum(p.node)
	for _, w := range g.more {
		p.more = append(p.more, pick(w))
	}
	for i, v := range members {
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
