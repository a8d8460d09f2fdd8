package partition

import "context"

// limits are the maximum weights of parts.
type limits struct {
	most []int64   // of each part
	more [][]int64 // by further quantity: of each part
}

// limits gives each part its share of every quantity and the imbalance above it. The shares are in
// proportion to the given numbers.
func (g *weighted) limits(shares []int, imbalance float64) (l limits) {
	whole := 0
	for _, share := range shares {
		whole += share
	}
	of := func(total int64) []int64 {
		most := make([]int64, len(shares))
		for p, share := range shares {
			most[p] = limit(total*int64(share), whole, imbalance)
		}
		return most
	}
	l.most = of(g.total)
	for _, w := range g.more {
		l.more = append(l.more, of(sum(w)))
	}
	return l
}

func sum[T int32 | int64](weights []T) (total int64) {
	for _, w := range weights {
		total += int64(w)
	}
	return total
}

// moves is the state of a division while nodes move.
type moves struct {
	limits
	g     *weighted
	of    []int32
	size  []int64   // of each part
	sizes [][]int64 // by further quantity: of each part

	near  []int64 // a node's edges to each part, zeros between calls
	parts []int32 // parts in near
	home  int64   // the node's edges into its own part

	table  []int64 // each node's edges to each part, or nil: see tabulate
	looked int64   // edges looked at

	border []int32 // nodes that may have edges into other parts; nil: not known
	listed []bool  // whether a node is in border

	h     heap
	best  []int64 // the gain under which a node is in the heap
	round int32
	moved []int32 // the round in which a node has moved
	done  []step
	dice  *dice // breaks ties
}

// step is a move that can be undone.
type step struct{ node, from int32 }

func newMoves(g *weighted, of []int32, l limits) *moves {
	r := &moves{limits: l, g: g, of: of, near: make([]int64, len(l.most)), dice: new(dice)}
	count := func(weights []int64) []int64 {
		size := make([]int64, len(l.most))
		for v, p := range of {
			size[p] += weights[v]
		}
		return size
	}
	r.size = count(g.node)
	for _, w := range g.more {
		r.sizes = append(r.sizes, count(w))
	}
	return r
}

// fits reports whether part p stays within its limits if node v moves there.
func (r *moves) fits(v, p int32) bool {
	if r.size[p]+r.g.node[v] > r.most[p] {
		return false
	}
	for i, w := range r.g.more {
		if w[v] > 0 && r.sizes[i][p]+w[v] > r.more[i][p] {
			return false
		}
	}
	return true
}

// look returns the best part for v to move to, or -1 if there is none, and the number of cut edges
// that the move saves. It sets r.home to v's edges into its own part. Among equal parts it prefers
// the lightest, then the first.
func (r *moves) look(v int32) (to int32, gain int64) {
	own := r.of[v]
	if r.table != nil {
		r.looked += int64(len(r.size))
		row := r.row(v)
		to = -1
		for q, w := range row {
			p := int32(q)
			if w == 0 || p == own || w < gain || !r.fits(v, p) {
				continue
			}
			if to < 0 || w > gain || r.size[p] < r.size[to] {
				to, gain = p, w
			}
		}
		if r.home = row[own]; to < 0 {
			return to, 0
		}
		return to, gain - r.home
	}
	r.looked += r.g.indptr[v+1] - r.g.indptr[v]
	r.parts = r.g.clustersNear(v, r.of, r.near, r.parts[:0])
	to = -1
	for _, p := range r.parts {
		w := r.near[p]
		if p == own || w < gain || !r.fits(v, p) {
			continue
		}
		if to < 0 || w > gain || r.size[p] < r.size[to] || r.size[p] == r.size[to] && p < to {
			to, gain = p, w
		}
	}
	r.home = r.near[own]
	for _, p := range r.parts {
		r.near[p] = 0
	}
	if to < 0 {
		return to, 0
	}
	return to, gain - r.home
}

// tabulate makes look cost the number of parts rather than a node's edges: without it, moving the
// neighbours of hubs costs the hubs' edges each time. It does nothing if the table would be larger
// than the graph.
func (r *moves) tabulate() {
	if len(r.of)*len(r.size) > 2*len(r.g.adj) {
		return
	}
	r.table = make([]int64, len(r.of)*len(r.size))
	for v := range int32(len(r.of)) {
		row := r.row(v)
		for e := r.g.indptr[v]; e < r.g.indptr[v+1]; e++ {
			row[r.of[r.g.adj[e]]] += r.g.weightOf(e)
		}
	}
}

// row is node v's edges to each part.
func (r *moves) row(v int32) []int64 {
	k := len(r.size)
	return r.table[int(v)*k : (int(v)+1)*k]
}

func (r *moves) move(v, to int32) {
	own := r.of[v]
	if r.table != nil {
		r.looked += r.g.indptr[v+1] - r.g.indptr[v]
		for e := r.g.indptr[v]; e < r.g.indptr[v+1]; e++ {
			row, w := r.row(r.g.adj[e]), r.g.weightOf(e)
			row[own] -= w
			row[to] += w
		}
	}
	w := r.g.node[v]
	r.size[own] -= w
	r.size[to] += w
	for i, w := range r.g.more {
		r.sizes[i][own] -= w[v]
		r.sizes[i][to] += w[v]
	}
	r.of[v] = to
}

// excess returns the weight of a part above its limits if node v is added so many times, which may be
// negative: the sum over the quantities, each in units of the limit.
func (r *moves) excess(p, v int32, times int64) float64 {
	all := above(r.size[p]+times*r.g.node[v], r.most[p])
	for i, w := range r.g.more {
		all += above(r.sizes[i][p]+times*w[v], r.more[i][p])
	}
	return all
}

// above is a size's excess over a limit, in units of the limit.
func above(size, most int64) float64 {
	return float64(max(0, size-most)) / float64(max(1, most))
}

// over returns the weight of all parts above their limits, as excess does. The graph may be empty.
func (r *moves) over() (all float64) {
	for p := range r.size {
		one := above(r.size[p], r.most[p])
		for i, size := range r.sizes {
			one += above(size[p], r.more[i][p])
		}
		all += one
	}
	return all
}

// relief returns the cheapest move of a node that takes excess away, or -1, and how good it is: the
// cut edges that it saves or, if it costs some, their number for the excess taken away, negative.
func (r *moves) relief(v int32) (to int32, value int64) {
	own := r.of[v]
	here := r.excess(own, v, 0) - r.excess(own, v, -1)
	if here <= 0 {
		return -1, 0
	}
	r.parts = r.g.clustersNear(v, r.of, r.near, r.parts[:0])
	to = -1
	for p := range int32(len(r.size)) {
		if p == own {
			continue
		}
		less := here - (r.excess(p, v, 1) - r.excess(p, v, 0))
		if less <= here*1e-6 {
			continue
		}
		gain := float64(r.near[p]-r.near[own]) - 0.5
		if gain < 0 {
			gain /= less * float64(len(r.of))
		}
		x := int64(max(-1<<50, gain*1024))
		if to < 0 || x > value || x == value && r.size[p] < r.size[to] {
			to, value = p, x
		}
	}
	for _, p := range r.parts {
		r.near[p] = 0
	}
	return to, value
}

// rebalance moves nodes out of parts that are too heavy, first those that cost least for their
// weight.
func (r *moves) rebalance(ctx context.Context) {
	if r.over() == 0 {
		return
	}
	h := r.h[:0]
	offer := func(v int32) {
		if to, value := r.relief(v); to >= 0 {
			h.push(item{value, v, 0})
		}
	}
	for v := range int32(len(r.of)) {
		if v&0x3ff == 0 && ctx.Err() != nil {
			break
		}
		offer(v)
	}
	moved := 0
	for turn := 0; len(h) > 0 && moved < 4*len(r.of); turn++ {
		if turn&0x3ff == 0 && ctx.Err() != nil {
			break
		}
		it := h.pop()
		to, value := r.relief(it.node)
		if to < 0 {
			continue
		}
		if value < it.gain { // its neighbours have moved, or parts have filled up
			h.push(item{value, it.node, 0})
			continue
		}
		r.move(it.node, to)
		moved++
		for _, u := range r.g.adj[r.g.indptr[it.node]:r.g.indptr[it.node+1]] {
			offer(u)
		}
	}
	r.h, r.border = h, nil
}

// propagate moves nodes that have more edges into another part than into their own, or equally many
// into a lighter part. It repeats over the neighbours of moved nodes.
func (r *moves) propagate(ctx context.Context) {
	const rounds = 8
	n := len(r.of)
	due := make([]bool, n) // a neighbour has moved
	for v := range due {
		due[v] = true
	}
	for range rounds {
		moved := 0
		for v := range int32(n) {
			if v&0xffff == 0 && ctx.Err() != nil {
				return
			}
			if !due[v] {
				continue
			}
			due[v] = false
			to, gain := r.look(v)
			if to < 0 || gain < 0 || gain == 0 && r.size[to]+r.g.node[v] >= r.size[r.of[v]] {
				continue
			}
			r.move(v, to)
			moved++
			for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
				due[u] = true
			}
		}
		if moved <= n/2000 {
			return
		}
	}
}

// prepare makes the list of border nodes and the memory of the searches.
func (r *moves) prepare() {
	if r.best == nil {
		n := len(r.of)
		r.best, r.moved, r.listed = make([]int64, n), make([]int32, n), make([]bool, n)
	}
	if r.border != nil {
		return
	}
	clear(r.listed)
	r.border = []int32{}
	for v, p := range r.of {
		for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
			if r.of[u] != p {
				r.list(int32(v))
				break
			}
		}
	}
}

func (r *moves) list(v int32) {
	if !r.listed[v] {
		r.listed[v] = true
		r.border = append(r.border, v)
	}
}

// offer puts v into the heap if it can move.
func (r *moves) offer(v int32) {
	to, gain := r.look(v)
	if to < 0 {
		r.best[v] = -1 << 62
		return
	}
	r.list(v)
	r.best[v] = gain
	r.push(gain, v)
}

func (r *moves) push(gain int64, v int32) { r.h.push(item{gain, v, int32(r.dice.next() >> 33)}) }

// climb is a pass of the method of Fiduccia and Mattheyses for any number of parts: it moves each
// node once, always the one that saves most, even if the move adds cut edges. Then it undoes all
// moves after the best moment. It returns the weight of the edges saved.
func (r *moves) climb(ctx context.Context) (saved int64) {
	r.prepare()
	r.round++
	r.h = r.h[:0]
	for _, v := range r.border {
		r.offer(v)
	}
	return r.search(ctx, 25+len(r.of)/50)
}

// search moves nodes of the heap and their neighbours until none is left or so many moves have been
// in vain or the context ends, and undoes the moves after the best moment.
func (r *moves) search(ctx context.Context, patience int) (saved int64) {
	r.done = r.done[:0]
	var now int64
	kept := 0
	for turn := 1; len(r.h) > 0 && len(r.done)-kept < patience; turn++ {
		if turn&0x3ff == 0 && ctx.Err() != nil {
			break
		}
		it := r.h.pop()
		v := it.node
		if r.moved[v] == r.round || it.gain != r.best[v] {
			continue
		}
		to, gain := r.look(v)
		if to < 0 {
			r.best[v] = -1 << 62
			continue
		}
		if gain < it.gain { // parts have filled up since the node was queued
			r.best[v] = gain
			r.push(gain, v)
			continue
		}
		r.done = append(r.done, step{v, r.of[v]})
		r.move(v, to)
		r.moved[v] = r.round
		if now += gain; now > saved {
			saved, kept = now, len(r.done)
		}
		for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
			if r.moved[u] != r.round {
				r.offer(u)
			}
		}
	}
	for i := len(r.done) - 1; i >= kept; i-- {
		r.move(r.done[i].node, r.done[i].from)
	}
	return saved
}

// item is an entry of the heap: the greatest gain first, then the greatest tie, then the lowest node.
type item struct {
	gain int64
	node int32
	tie  int32
}

func (a item) before(b item) bool {
	if a.gain != b.gain {
		return a.gain > b.gain
	}
	return a.tie > b.tie || a.tie == b.tie && a.node < b.node
}

// heap is written for item: with 20,000 items container/heap takes 2.5 times as long, and a generic heap 1.7 times, because
// neither inlines before.
type heap []item

func (h *heap) push(x item) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
	*h = s
}

func (h *heap) pop() item {
	s := *h
	first, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	for i := 0; len(s) > 0; {
		c := 2*i + 1
		if c+1 < len(s) && s[c+1].before(s[c]) {
			c++
		}
		if c >= len(s) || !s[c].before(x) {
			s[i] = x
			break
		}
		s[i] = s[c]
		i = c
	}
	*h = s
	return first
}
