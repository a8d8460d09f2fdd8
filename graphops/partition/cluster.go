package partition

import "math/bits"

// cluster merges nodes that have many edges between them, by label propagation. It visits nodes of
// low degree first; each joins the cluster to which it has most edges. No cluster of several nodes
// weighs more than bound. Given a division, clusters stay within its parts. It returns each node's
// cluster, numbered from 0, and the number of clusters.
func (m *divider) cluster(g *weighted, bound int64, level int, given []int32) (into []int32, count int) {
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
	for round := range rounds {
		moved := 0
		salt := draw(m.o.Seed, level, round)
		for i, v := range order {
			if i&0xffff == 0 && m.ctx.Err() != nil {
				return nil, 0
			}
			own := label[v]
			touched = g.clustersNear(v, label, near, touched[:0])
			best, most, tie := own, near[own], uint32(0)
			for _, c := range touched {
				if c == own || near[c] < most || size[c]+g.node[v] > bound || given != nil && given[c] != given[v] {
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
	m.pair(g, label, size, near, bound, given)
	return compact(label)
}

// pair merges nodes that are still single: those whose preferred cluster is full join nodes with
// the same preference, and nodes without edges join each other. Without it the leaves of a star
// would never become fewer.
func (m *divider) pair(g *weighted, label []int32, size, near []int64, bound int64, given []int32) {
	last := int32(0)
	for _, p := range given {
		last = max(last, p)
	}
	waiting := make([]int32, len(label)+int(last)+1) // by cluster, the last ones for none: a waiting node + 1
	var touched []int32
	for v := range int32(len(label)) {
		if label[v] != v || size[v] != g.node[v] {
			continue
		}
		touched = g.clustersNear(v, label, near, touched[:0])
		at, most := int32(len(label)), int64(0)
		if given != nil {
			at += given[v]
		}
		for _, c := range touched {
			if near[c] > most {
				at, most = c, near[c]
			}
		}
		for _, c := range touched {
			near[c] = 0
		}
		if u := waiting[at] - 1; u >= 0 && size[u]+g.node[v] <= bound && (given == nil || given[u] == given[v]) {
			label[v] = u
			size[u] += g.node[v]
			size[v] = 0
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
