package partition

import "math/bits"

// match merges pairs of neighbours, none too heavy for a graph of the smallest number of nodes. It
// visits the nodes in random order, those of low degree first; each takes the free neighbour with
// the greatest weight of the edge squared over the neighbour's weight. If fewer than half of the
// nodes find a partner, the others are merged by the method pair; on roads, where more do, that
// would make the division worse. It returns each node's pair, numbered from 0, and the number of
// pairs and single nodes. Nodes of a pair have the same number in keep.
//
// Source: M. Holtgrewe, P. Sanders, C. Schulz, "Engineering a scalable high quality graph
// partitioner", IPDPS 2010, arXiv:0910.2004, section 3.1.
func (s *search) match(g *weighted, smallest int, keep []int32) (into []int32, count int) {
	n := g.nodes()
	bound := heaviest(g.total, smallest)
	more := make([]int64, len(g.more)) // bounds of further quantities
	for i, w := range g.more {
		more[i] = heaviest(sum(w), smallest)
	}
	heavy := func(v, u int32) bool { // in a further quantity
		for i, w := range g.more {
			if w[v] > 0 && w[u] > 0 && w[v]+w[u] > more[i] {
				return true
			}
		}
		return false
	}
	label := make([]int32, n)
	free := make([]bool, n)
	for v := range label {
		label[v], free[v] = int32(v), true
	}
	salt := uint32(s.next())
	pairs := 0
	for _, v := range s.visits(g) {
		if !free[v] {
			continue
		}
		best, most, tie := int32(-1), 0.0, uint32(0)
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			u := g.adj[e]
			if !free[u] || g.node[v]+g.node[u] > bound || keep != nil && keep[u] != keep[v] || heavy(v, u) {
				continue
			}
			w := float64(g.weightOf(e))
			rating := w * w / float64(max(g.node[u], 1))
			if rating < most {
				continue
			}
			if t := mix(salt, uint32(u), uint32(v)); rating > most || t > tie {
				best, most, tie = u, rating, t
			}
		}
		if best >= 0 {
			free[v], free[best] = false, false
			label[best] = v
			pairs++
		}
	}
	if pairs < n/4 {
		size := make([]int64, n)
		for v, c := range label {
			size[c] += g.node[v]
		}
		s.pair(g, label, size, make([]int64, n), bound, keep)
	}
	return compact(label)
}

// heaviest is the maximum weight of two nodes that match merges on the way to a graph of the given
// size.
func heaviest(total int64, smallest int) int64 { return 3*total/int64(2*smallest) + 1 }

// visits returns the nodes in random order, those of low degree first.
func (s *search) visits(g *weighted) []int32 {
	random := s.shuffled(g.nodes())
	size := make([]int32, len(random))
	for i, v := range random {
		size[i] = int32(bits.Len64(uint64(g.indptr[v+1] - g.indptr[v])))
	}
	_, order := group(size, 65)
	for i, j := range order {
		order[i] = random[j]
	}
	return order
}

// cluster merges nodes that have many edges between them, by label propagation. It visits nodes of
// low degree first; each joins the cluster to which it has most edges. No cluster of several nodes
// weighs more than bound. It returns each node's cluster, numbered from 0, and the number of
// clusters.
func (s *search) cluster(g *weighted, bound int64, keep []int32) (into []int32, count int) {
	const rounds = 3
	n := g.nodes()
	label := make([]int32, n)
	size := make([]int64, n)
	for v := range label {
		label[v] = int32(v)
	}
	copy(size, g.node)
	order := g.byDegree()
	near := make([]int64, n)
	var touched []int32
	for range rounds {
		moved := 0
		salt := uint32(s.next())
		s.work += int64(len(g.adj))
		for i, v := range order {
			if i&0xffff == 0 && s.ctx.Err() != nil {
				break
			}
			own := label[v]
			touched = g.clustersNear(v, label, near, touched[:0])
			best, most, tie := own, near[own], uint32(0)
			for _, c := range touched {
				if c == own || near[c] < most || size[c]+g.node[v] > bound || keep != nil && keep[c] != keep[v] {
					continue
				}
				t := mix(salt, uint32(v), uint32(c))
				if near[c] > most || best != own && t > tie {
					best, most, tie = c, near[c], t
				}
			}
			for _, c := range touched {
				near[c] = 0
			}
			if best != own {
				label[v] = best
				size[own] -= g.node[v]
				size[best] += g.node[v]
				moved++
			}
		}
		if moved < n/100 {
			break
		}
	}
	s.pair(g, label, size, near, bound, keep)
	return compact(label)
}

// pair merges two nodes each of those that are still single: nodes whose preferred cluster is full
// join nodes with the same preference, and nodes without edges join each other. Without it the leaves of a star
// would never become fewer.
func (s *search) pair(g *weighted, label []int32, size, near []int64, bound int64, keep []int32) {
	last := int32(0)
	for _, p := range keep {
		last = max(last, p)
	}
	waiting := make([]int32, len(label)+int(last)+1) // by cluster, the last ones for none: a waiting node + 1
	joined := make([]bool, len(label))               // by others
	for v, c := range label {
		if int32(v) != c {
			joined[c] = true
		}
	}
	var touched []int32
	for v := range int32(len(label)) {
		if label[v] != v || joined[v] {
			continue
		}
		touched = g.clustersNear(v, label, near, touched[:0])
		at, most := int32(len(label)), int64(0)
		if keep != nil {
			at += keep[v]
		}
		for _, c := range touched {
			if near[c] > most {
				at, most = c, near[c]
			}
		}
		for _, c := range touched {
			near[c] = 0
		}
		if u := waiting[at] - 1; u >= 0 && size[u]+g.node[v] <= bound && (keep == nil || keep[u] == keep[v]) {
			label[v] = u
			size[u] += g.node[v]
			size[v] = 0
			waiting[at] = 0
		} else {
			waiting[at] = v + 1
		}
	}
}

// clustersNear sums v's edges to each cluster in near and lists the clusters.
func (g *weighted) clustersNear(v int32, label []int32, near []int64, touched []int32) []int32 {
	for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
		c := label[g.adj[e]]
		if near[c] == 0 {
			touched = append(touched, c)
		}
		near[c] += g.weightOf(e)
	}
	return touched
}

// byDegree returns the nodes sorted by the magnitude of their degrees and by id, ascending.
func (g *weighted) byDegree() []int32 {
	size := make([]int32, g.nodes())
	for v := range size {
		size[v] = int32(bits.Len64(uint64(g.indptr[v+1] - g.indptr[v])))
	}
	_, order := group(size, 65)
	return order
}

// compact numbers the labels from 0 in the order of their first node.
func compact(label []int32) (into []int32, count int) {
	number := make([]int32, len(label))
	for v, c := range label {
		if number[c] == 0 {
			count++
			number[c] = int32(count)
		}
		label[v] = number[c] - 1
	}
	return label, count
}

// mix hashes three numbers to one, to break ties.
func mix(a, b, c uint32) uint32 {
	h := a ^ b*0x9E3779B9 ^ c*0x85EBCA6B
	h = (h ^ h>>15) * 0x2C1B3C6D
	h = (h ^ h>>12) * 0x297A2D39
	return h ^ h>>15
}

// contract returns the graph of clusters: the weight of an edge is the total weight of the edges
// between two clusters.
func (g *weighted) contract(into []int32, count int) *weighted {
	start, members := group(into, count)
	c := &weighted{
		indptr: make([]int64, count+1), node: make([]int64, count), total: g.total,
		adj: make([]int32, 0, len(g.adj)/2), edge: make([]int32, 0, len(g.adj)/2),
	}
	place := make([]int64, count) // of a neighbour in adj, plus 1
	for v := range int32(count) {
		first := int64(len(c.adj))
		for _, u := range members[start[v]:start[v+1]] {
			c.node[v] += g.node[u]
			for e := g.indptr[u]; e < g.indptr[u+1]; e++ {
				d := into[g.adj[e]]
				if d == v {
					continue
				}
				if place[d] <= first {
					c.adj, c.edge = append(c.adj, d), append(c.edge, 0)
					place[d] = int64(len(c.adj))
				}
				// The sum saturates above 2 billion edges; the weight is only a heuristic.
				at := place[d] - 1
				c.edge[at] = int32(min(int64(c.edge[at])+g.weightOf(e), 1<<31-1))
			}
		}
		c.indptr[v+1] = int64(len(c.adj))
	}
	for _, w := range g.more {
		sum := make([]int64, count)
		for v, x := range w {
			sum[into[v]] += x
		}
		c.more = append(c.more, sum)
	}
	return c
}
