package partition

// refine improves a division in place: first, parts that are too heavy give nodes away; then nodes
// move to the part with most of their edges, as long as no part exceeds its maximum weight.
func (m *divider) refine(g *weighted, of []int32) {
	r := newMoves(g, of, m.most)
	r.rebalance()
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

// moves is the state of a division while nodes move.
type moves struct {
	g    *weighted
	of   []int32
	size []int64
	most []int64 // maximum weight of each part

	near  []int64 // a node's edges to each part, zeros between calls
	parts []int32 // parts in near
	home  int64   // the node's edges into its own part

	more   *quantities // further limits, or nil
	table  []int64     // each node's edges to each part, or nil: see tabulate
	looked int64       // edges looked at
}

func newMoves(g *weighted, of []int32, most []int64) *moves {
	r := &moves{g: g, of: of, size: make([]int64, len(most)), most: most, near: make([]int64, len(most))}
	for v, p := range of {
		r.size[p] += g.node[v]
	}
	return r
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
			if w == 0 || p == own || r.size[p]+r.g.node[v] > r.most[p] || r.more != nil && !r.more.fits(v, p) {
				continue
			}
			if to < 0 || w > gain || w == gain && r.size[p] < r.size[to] {
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
		if p == own || r.size[p]+r.g.node[v] > r.most[p] || r.more != nil && !r.more.fits(v, p) {
			continue
		}
		if to < 0 || w > gain || w == gain && (r.size[p] < r.size[to] || r.size[p] == r.size[to] && p < to) {
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

// over returns the weight above the parts' limits.
func (r *moves) over() (over int64) {
	for p, s := range r.size {
		over += max(0, s-r.most[p])
	}
	return over
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
	if r.table != nil {
		r.looked += r.g.indptr[v+1] - r.g.indptr[v]
		for e := r.g.indptr[v]; e < r.g.indptr[v+1]; e++ {
			row, w := r.row(r.g.adj[e]), r.g.weightOf(e)
			row[r.of[v]] -= w
			row[to] += w
		}
	}
	if r.more != nil {
		r.more.move(v, r.of[v], to)
	}
	w := r.g.node[v]
	r.size[r.of[v]] -= w
	r.size[to] += w
	r.of[v] = to
}

// rebalance moves nodes out of parts that are too heavy, first the nodes that cost least for their
// weight. A node without a better part moves to the lightest part.
func (r *moves) rebalance() {
	heavy := false
	for p, s := range r.size {
		heavy = heavy || s > r.most[p]
	}
	if !heavy {
		return
	}
	var h heap
	for v := range int32(len(r.of)) {
		if p := r.of[v]; r.size[p] > r.most[p] && r.g.node[v] > 0 {
			h.push(item{r.loss(v), v})
		}
	}
	for len(h) > 0 {
		v := h.pop().node
		own := r.of[v]
		if r.size[own] <= r.most[own] {
			continue
		}
		to, _ := r.look(v)
		if to < 0 {
			to = int32(lightest(r.size))
		}
		// Do not move to a part that would then be as heavy.
		if r.size[to]+r.g.node[v] < r.size[own] {
			r.move(v, to)
		}
	}
}

// loss is the cost of moving a node away; less is better. It is negative for the heap.
func (r *moves) loss(v int32) int64 {
	to, gain := r.look(v)
	if to < 0 {
		gain = -r.home
	}
	return gain * 1024 / r.g.node[v]
}

// propagate moves nodes that have more edges into another part than into their own, or equally many
// into a lighter part. It repeats over the neighbours of moved nodes.
func (r *moves) propagate(m *divider) {
	const rounds = 8
	n := len(r.of)
	due := make([]bool, n) // a neighbour has moved
	for v := range due {
		due[v] = true
	}
	for range rounds {
		moved := 0
		for v := range int32(n) {
			if v&0xffff == 0 && m.ctx.Err() != nil {
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

// climb is a pass of the method of Fiduccia and Mattheyses for any number of parts: it moves each
// node once, always the one that saves most, even if the move adds cut edges. Then it undoes all
// moves after the best moment. It reports whether the cut has become smaller.
func (r *moves) climb() bool {
	g, n := r.g, len(r.of)
	var h heap
	best := make([]int64, n) // the gain under which a node is in the heap
	waits := make([]bool, n)
	offer := func(v int32) {
		to, gain := r.look(v)
		if waits[v] = to >= 0; waits[v] {
			best[v] = gain
			h.push(item{gain, v})
		}
	}
	for v := range int32(n) {
		offer(v)
	}
	var done []step
	locked := make([]bool, n)
	var saved, top int64
	kept := 0
	patience := 100 + n/50
	for len(h) > 0 && len(done)-kept < patience {
		it := h.pop()
		v := it.node
		if locked[v] || !waits[v] || it.gain != best[v] {
			continue
		}
		to, gain := r.look(v)
		if to < 0 {
			waits[v] = false
			continue
		}
		if gain < it.gain { // parts have filled up since the node was queued
			best[v] = gain
			h.push(item{gain, v})
			continue
		}
		done = append(done, step{v, r.of[v]})
		r.move(v, to)
		locked[v] = true
		if saved += gain; saved > top {
			top, kept = saved, len(done)
		}
		for _, u := range g.adj[g.indptr[v]:g.indptr[v+1]] {
			if !locked[u] {
				offer(u)
			}
		}
	}
	for i := len(done) - 1; i >= kept; i-- {
		r.move(done[i].node, done[i].from)
	}
	return top > 0
}

// item is an entry of the heap: the greatest gain first, then the lowest node.
type item struct {
	gain int64
	node int32
}

func (a item) before(b item) bool { return a.gain > b.gain || a.gain == b.gain && a.node < b.node }

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
