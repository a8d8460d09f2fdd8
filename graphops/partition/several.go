package partition

import "slices"

// quantities holds the weights that are balanced in addition to a graph's own weights: several
// weights of each node.
type quantities struct {
	of    [][]int32 // by quantity: the nodes' weights, [NumNodes]
	size  [][]int64 // by quantity: the parts' weights
	most  []int64   // by quantity: the maximum weight of a part
	total []int64
}

func newQuantities(weights [][]int32, of []int32, parts int, imbalance float64) *quantities {
	q := &quantities{of: weights}
	for _, w := range weights {
		size := make([]int64, parts)
		var total int64
		for v, x := range w {
			size[of[v]] += int64(x)
			total += int64(x)
		}
		q.size = append(q.size, size)
		q.total = append(q.total, max(total, 1))
		q.most = append(q.most, limit(total, parts, imbalance))
	}
	return q
}

// fits reports whether node v may move to part p.
func (q *quantities) fits(v, p int32) bool {
	for i, w := range q.of {
		if w[v] > 0 && q.size[i][p]+int64(w[v]) > q.most[i] {
			return false
		}
	}
	return true
}

func (q *quantities) move(v, from, to int32) {
	for i, w := range q.of {
		q.size[i][from] -= int64(w[v])
		q.size[i][to] += int64(w[v])
	}
}

// excess returns the weight of a part above its limits if node v is added sign times: the sum over
// the quantities, each as a fraction of its total.
func (q *quantities) excess(p, v int32, sign int64) (sum float64) {
	for i, w := range q.of {
		sum += float64(max(0, q.size[i][p]+sign*int64(w[v])-q.most[i])) / float64(q.total[i])
	}
	return sum
}

// blend returns one weight for each node: the mean of its shares of all quantities, in units of
// which a node has 1000 on average. The parts of a division by it differ in each quantity, but
// usually so little that few nodes have to move.
func blend(weights [][]int32, nodes int) []int32 {
	mean := make([]float64, nodes)
	for _, w := range weights {
		var total int64
		for _, x := range w {
			total += int64(x)
		}
		for v, x := range w {
			mean[v] += 1000 * float64(nodes) / float64(len(weights)) * float64(x) / float64(max(total, 1))
		}
	}
	blended := make([]int32, nodes)
	for v, x := range mean {
		blended[v] = int32(min(x+0.5, 1<<30))
	}
	return blended
}

// balanceAll moves nodes until no part exceeds its limit of any quantity, if it can, and then
// refines the division within these limits. First it moves the nodes that cost the fewest cut edges
// for the excess that they take away.
func (m *divider) balanceAll(g *weighted, of []int32, weights [][]int32) {
	q := newQuantities(weights, of, m.parts, m.o.Imbalance)
	loose := make([]int64, m.parts)
	for p := range loose {
		loose[p] = 1 << 62 // only the quantities bind
	}
	r := newMoves(g, of, loose)
	type offer struct {
		node, to int32
		value    float64 // edges lost for the excess taken away; less is better
	}
	// best returns the cheapest move of a node that takes excess away.
	row := make([]int64, m.parts) // a node's edges to each part
	best := func(v int32) (offer, bool) {
		own := of[v]
		here := q.excess(own, v, 0) - q.excess(own, v, -1)
		if here <= 0 {
			return offer{}, false
		}
		clear(row)
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			row[of[g.adj[e]]] += g.weightOf(e)
		}
		o, found := offer{node: v}, false
		for p := range int32(m.parts) {
			if p == own {
				continue
			}
			less := here - (q.excess(p, v, 1) - q.excess(p, v, 0))
			if less <= here*1e-6 {
				continue
			}
			loss := float64(row[own]-row[p]) + 0.5
			value := loss / less
			if loss < 0 {
				value = loss * less
			}
			if !found || value < o.value {
				o.to, o.value, found = p, value, true
			}
		}
		return o, found
	}
	for range 40 {
		if m.ctx.Err() != nil {
			return
		}
		var offers []offer
		for v := range int32(len(of)) {
			if o, ok := best(v); ok {
				offers = append(offers, o)
			}
		}
		slices.SortFunc(offers, func(a, b offer) int {
			switch {
			case a.value < b.value:
				return -1
			case a.value > b.value:
				return 1
			}
			return int(a.node) - int(b.node)
		})
		moved := 0
		for _, o := range offers {
			now, ok := best(o.node) // others have moved since
			if !ok {
				continue
			}
			q.move(o.node, of[o.node], now.to)
			r.move(o.node, now.to)
			moved++
		}
		if moved == 0 {
			break
		}
	}
	r.more = q
	r.propagate(m)
	if len(g.adj) <= fewEdges {
		r.tabulate()
		for range 4 {
			if m.ctx.Err() != nil || !r.climb() {
				break
			}
		}
	}
}
