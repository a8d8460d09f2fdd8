package partition

import (
	"context"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// ranges cuts the ids where the weight reaches the next part's share.
func ranges(n, parts int, o Options) []int32 {
	of := make([]int32, n)
	var total int64
	for v := range n {
		total += o.weight(v)
	}
	var sum int64
	for v := range n {
		w := o.weight(v)
		// The part into which the middle of the node's weight falls.
		of[v] = int32(min(int64(parts)-1, int64((float64(sum)+float64(w)/2)*float64(parts)/float64(total))))
		sum += w
	}
	return of
}

// random divides a shuffled order of the nodes into ranges.
func random(n, parts int, o Options) []int32 {
	order := shuffled(n, o.Seed)
	dealt := o
	if o.Weights != nil {
		dealt.Weights = make([]int32, n)
		for i, v := range order {
			dealt.Weights[i] = o.Weights[v]
		}
	}
	of := make([]int32, n)
	for i, p := range ranges(n, parts, dealt) {
		of[order[i]] = p
	}
	return of
}

// shuffled returns the numbers below n in a random order.
func shuffled(n int, seed uint64) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	philox.Permute(seed, 0, philox.C3(philox.User, 0, 0), order)
	return order
}

// fennel puts node after node, in the given order or else that of ids, into the part with the greatest
// (in-neighbours there) - α·γ·size^(γ-1), γ = 3/2, α = m·k^(γ-1) / n^γ. Given a division, which it
// overwrites, it moves each node by the same rule.
func fennel(ctx context.Context, g *graphops.Graph, parts int, o Options, order, of []int32) ([]int32, error) {
	n := g.NumNodes()
	var total int64
	for v := range n {
		total += o.weight(v)
	}
	const gamma = 1.5
	m := float64(g.NumEdges()) / 2
	alpha := m * math.Sqrt(float64(parts)) / math.Pow(float64(max(total, 1)), gamma)
	most := limit(total, parts, o.Imbalance)
	size := make([]int64, parts)
	cost := make([]float64, parts)
	near := make([]int64, parts)
	put := func(p int32, w int64) {
		size[p] += w
		cost[p] = alpha * gamma * math.Sqrt(float64(size[p]))
	}
	if of == nil {
		of = make([]int32, n)
		for v := range of {
			of[v] = -1
		}
	} else {
		for v, p := range of {
			put(p, o.weight(v))
		}
	}
	for i := range n {
		v := i
		if order != nil {
			v = int(order[i])
		}
		if i&0xffff == 0 {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			o.Progress(float64(i) / float64(n))
		}
		row := g.InNeighbors(int32(v))
		for _, u := range row {
			if p := of[u]; p >= 0 {
				near[p]++
			}
		}
		w, best := o.weight(v), -1
		if p := of[v]; p >= 0 {
			put(p, -w)
		}
		for p := range parts {
			if size[p]+w > most {
				continue
			}
			if best < 0 || float64(near[p])-cost[p] > float64(near[best])-cost[best] {
				best = p
			}
		}
		if best < 0 { // the node is too heavy for every part
			best = lightest(size)
		}
		for _, u := range row {
			if p := of[u]; p >= 0 {
				near[p] = 0
			}
		}
		of[v] = int32(best)
		put(int32(best), w)
	}
	return of, nil
}

// restream divides by fennel, from the hubs down if there are any, and moves the nodes by the same
// rule in further passes. Of these divisions and ranges of ids, which are best where ids carry the
// structure, it takes the one least above the limits, then that with the fewest cut edges, and moves
// nodes that are too many for their part or cut fewer edges elsewhere.
func restream(ctx context.Context, g *graphops.Graph, parts int, o Options, passes int) ([]int32, error) {
	w := &weighted{indptr: g.Indptr, adj: g.Indices, node: make([]int64, g.NumNodes())}
	for v := range w.node {
		w.node[v] = o.weight(v)
		w.total += w.node[v]
	}
	m := &divider{ctx: ctx, parts: parts, o: o, limits: w.limits(slices.Repeat([]int{1}, parts), o.Imbalance)}
	var order []int32
	if w.skewed() {
		order = w.hubsFirst()
	}
	report := o.Progress
	best := m.judge(w, ranges(g.NumNodes(), parts, o))
	var of []int32
	for pass := range passes {
		o.Progress = func(share float64) { report((float64(pass) + share) / float64(passes+1)) }
		var err error
		if of, err = fennel(ctx, g, parts, o, order, of); err != nil {
			return nil, err
		}
		if d := m.judge(w, of); d.compare(best) < 0 {
			d.of = append(best.of[:0], of...)
			best = d
		}
	}
	r := newMoves(w, best.of, m.limits)
	r.rebalance(ctx)
	r.propagate(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return best.of, nil
}

// lightest returns the part of the least weight.
func lightest(size []int64) int {
	best := 0
	for p, s := range size {
		if s < size[best] {
			best = p
		}
	}
	return best
}
