package partition

import "slices"

// flows improves a division by minimum cuts between pairs of parts: it takes the nodes near the
// border of a pair, finds the minimum cut between what lies behind them on either side, and keeps
// it if the parts stay within their limits. It returns the weight of the edges saved.
//
// Source: P. Sanders, C. Schulz, "Engineering multilevel graph partitioning algorithms", ESA 2011,
// arXiv:1012.0006, section 4.1.
func (s *search) flows(r *moves) (total int64) {
	k := len(r.size)
	active := make([]bool, k)
	for p := range active {
		active[p] = true
	}
	for range 4 {
		pairs := s.pairs(r, active)
		for p := range active {
			active[p] = false
		}
		var saved int64
		for _, pair := range pairs {
			if s.ctx.Err() != nil {
				return total
			}
			if gain := s.between(r, pair[0], pair[1]); gain > 0 {
				saved += gain
				active[pair[0]], active[pair[1]] = true, true
			}
		}
		total += saved
		if saved == 0 {
			break
		}
	}
	return total
}

// pairs lists the pairs of neighbouring parts of which one is active, in random order.
func (s *search) pairs(r *moves, active []bool) (pairs [][2]int32) {
	seen := map[[2]int32]bool{}
	for v, p := range r.of {
		for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
			if q := r.of[u]; p < q && (active[p] || active[q]) {
				seen[[2]int32{p, q}] = true
			}
		}
	}
	for pair := range seen {
		pairs = append(pairs, pair)
	}
	s.work += int64(len(r.g.adj))
	slices.SortFunc(pairs, func(x, y [2]int32) int { return slices.Compare(x[:], y[:]) })
	for i := range pairs {
		j := i + s.below(len(pairs)-i)
		pairs[i], pairs[j] = pairs[j], pairs[i]
	}
	return pairs
}

// between improves the border of two parts. The corridor that may change sides is first wide: a
// minimum cut in it may make a part too heavy. Then it is tried half as wide, until every cut
// in it is allowed.
func (s *search) between(r *moves, a, b int32) (total int64) {
	for width := int64(8); width > 0 && s.ctx.Err() == nil; width /= 2 {
		gain, moved := s.once(r, a, b, width)
		total += gain
		if gain > 0 && width < 8 {
			width *= 4
		} else if moved && width > 1 {
			break // the cut is as small as before, and allowed
		}
	}
	return total
}

// once replaces the cut between two parts by a minimum cut through the nodes near it. On each side
// these weigh at most width times what the other part can take. It reports the weight of the edges
// saved and whether the cut was replaced.
func (s *search) once(r *moves, a, b int32, width int64) (saved int64, moved bool) {
	f := &s.net
	f.reset(len(r.of))
	defer f.clear()
	for i, p := range [2]int32{a, b} {
		other := a + b - p
		f.corridor(r, p, other, min(width*(r.most[other]-r.size[other]), r.size[p]*9/10))
		if i == 0 {
			f.first = len(f.nodes)
		}
	}
	if f.first == 0 || f.first == len(f.nodes) {
		return 0, false
	}
	before := f.connect(r, a, b)
	flow, ok := f.maximum(s)
	s.work += f.looked
	if !ok || flow > before {
		return 0, false
	}
	if !f.choose(s, r, a, b) || flow == before && !f.changed(r, a) {
		return 0, false
	}
	for i, v := range f.nodes {
		to := b
		if f.side[i] {
			to = a
		}
		if r.of[v] != to {
			r.move(v, to)
		}
	}
	return before - flow, true
}

// network is a flow network of the nodes of a corridor, a source (everything behind the corridor in
// part a) and a sink (in part b). Capacities are the weights of edges. Its slices are used again.
type network struct {
	local  []int32 // of each node of the graph: its number in nodes plus 1, or 0
	nodes  []int32 // the corridor: nodes of part a, then of part b
	first  int     // the number of nodes of part a
	looked int64

	// Arcs by node; source and sink are the last two. rev is the index of the arc the other way.
	start   []int32
	to, rev []int32
	left    []int64 // residual capacity
	depth   []int32
	at      []int32 // next arc to try
	queue   []int32
	side    []bool  // whether the node belongs to part a
	number  []int32 // of Tarjan's search
	link    []int32
}

func (f *network) reset(n int) {
	if len(f.local) < n {
		f.local = make([]int32, n)
	}
	f.nodes, f.looked = f.nodes[:0], 0
}

func (f *network) clear() {
	for _, v := range f.nodes {
		f.local[v] = 0
	}
}

// corridor adds the nodes of part p nearest to part q, breadth first, up to a weight.
func (f *network) corridor(r *moves, p, q int32, most int64) {
	var weight int64
	begin := len(f.nodes)
	add := func(v int32) {
		if f.local[v] == 0 && weight+r.g.node[v] <= most {
			weight += r.g.node[v]
			f.nodes = append(f.nodes, v)
			f.local[v] = int32(len(f.nodes))
		}
	}
	for v, o := range r.of {
		if o != p {
			continue
		}
		row := r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]]
		f.looked += int64(len(row))
		for _, u := range row {
			if r.of[u] == q {
				add(int32(v))
				break
			}
		}
	}
	for i := begin; i < len(f.nodes); i++ {
		v := f.nodes[i]
		row := r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]]
		f.looked += int64(len(row))
		for _, u := range row {
			if r.of[u] == p {
				add(u)
			}
		}
	}
}

// connect makes the arcs and returns the weight of the present cut between the two parts as far as
// the corridor touches it.
func (f *network) connect(r *moves, a, b int32) (cut int64) {
	n := len(f.nodes)
	source, sink := int32(n), int32(n+1)
	f.start = append(f.start[:0], make([]int32, n+3)...)
	// ends returns the local number of an edge's end, or -1 if it is in a third part.
	end := func(u int32) int32 {
		switch l := f.local[u]; {
		case l > 0:
			return l - 1
		case r.of[u] == a:
			return source
		case r.of[u] == b:
			return sink
		}
		return -1
	}
	arcs := int32(0)
	for i, v := range f.nodes {
		for _, u := range r.g.adj[r.g.indptr[v]:r.g.indptr[v+1]] {
			if t := end(u); t >= 0 {
				f.start[i+1]++
				if t >= source {
					f.start[t+1]++
					arcs++
				}
				arcs++
			}
		}
	}
	for i := range n + 2 {
		f.start[i+1] += f.start[i]
	}
	f.to = resize(f.to, int(arcs))
	f.rev = resize(f.rev, int(arcs))
	f.left = resize(f.left, int(arcs))
	f.at = append(f.at[:0], f.start[:n+2]...)
	link := func(x, y int32, w int64) {
		i, j := f.at[x], f.at[y]
		f.at[x]++
		f.at[y]++
		f.to[i], f.to[j] = y, x
		f.rev[i], f.rev[j] = j, i
		f.left[i], f.left[j] = w, w
	}
	for i, v := range f.nodes {
		i := int32(i)
		for e := r.g.indptr[v]; e < r.g.indptr[v+1]; e++ {
			t := end(r.g.adj[e])
			if t < 0 || t < i {
				continue
			}
			w := r.g.weightOf(e)
			link(i, t, w)
			inA := t == source || t < int32(f.first)
			if inA != (i < int32(f.first)) {
				cut += w
			}
		}
	}
	f.looked += 2 * int64(arcs)
	return cut
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// maximum sends the maximum flow from the source to the sink by blocking flows; ok is false
// if that takes too long.
//
// Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in a network with power
// estimation", Soviet Math. Doklady 11 (1970).
func (f *network) maximum(s *search) (flow int64, ok bool) {
	n := len(f.nodes)
	source, sink := int32(n), int32(n+1)
	for phase := 0; ; phase++ {
		if phase > 200 || s.ctx.Err() != nil {
			return 0, false
		}
		if !f.layers(sink, source) {
			return flow, true
		}
		copy(f.at, f.start[:n+2])
		// Walk from the source along arcs toward the sink; path holds the arcs.
		path := f.queue[:0]
		v := source
		for {
			if v == sink {
				least := int64(1) << 62
				for _, e := range path {
					least = min(least, f.left[e])
				}
				flow += least
				cut := len(path)
				for i := len(path) - 1; i >= 0; i-- {
					e := path[i]
					f.left[e] -= least
					f.left[f.rev[e]] += least
					if f.left[e] == 0 {
						cut = i
					}
				}
				f.looked += int64(len(path))
				v = f.to[f.rev[path[cut]]]
				path = path[:cut]
			}
			advanced := false
			for ; f.at[v] < f.start[v+1]; f.at[v]++ {
				e := f.at[v]
				f.looked++
				if f.left[e] > 0 && f.depth[f.to[e]] == f.depth[v]-1 {
					path = append(path, e)
					v = f.to[e]
					advanced = true
					break
				}
			}
			if advanced {
				continue
			}
			if v == source {
				break
			}
			e := path[len(path)-1]
			path = path[:len(path)-1]
			v = f.to[f.rev[e]]
			f.at[v]++
		}
		f.queue = path
	}
}

// layers numbers the nodes by their distance to the sink along arcs with capacity left, and reports
// whether the source is among them.
func (f *network) layers(sink, source int32) bool {
	f.depth = resize(f.depth, len(f.nodes)+2)
	for i := range f.depth {
		f.depth[i] = -1
	}
	f.depth[sink] = 0
	queue := append(f.queue[:0], sink)
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		f.looked += int64(f.start[v+1] - f.start[v])
		for e := f.start[v]; e < f.start[v+1]; e++ {
			if u := f.to[e]; f.depth[u] < 0 && f.left[f.rev[e]] > 0 {
				f.depth[u] = f.depth[v] + 1
				queue = append(queue, u)
			}
		}
	}
	f.queue = queue
	return f.depth[source] >= 0
}

// choose sets side to the minimum cut that balances the two parts best, among many: a set of nodes
// that no residual arc leaves is a minimum cut, and so is each prefix of Tarjan's order of the
// strongly connected components. It reports whether the parts stay within their limits.
//
// Source: J. Picard, M. Queyranne, "On the structure of all minimum cuts in a network and
// applications", Math. Programming Study 13 (1980).
func (f *network) choose(s *search, r *moves, a, b int32) bool {
	n := len(f.nodes)
	// The cut is tried out on the parts' sizes.
	shift := func(v int32, times int64) {
		r.size[a] += times * r.g.node[v]
		r.size[b] -= times * r.g.node[v]
		for i, w := range r.g.more {
			r.sizes[i][a] += times * w[v]
			r.sizes[i][b] -= times * w[v]
		}
	}
	rate := func() float64 { return r.excess(a, 0, 0) + r.excess(b, 0, 0) }
	allowed := rate()
	for _, v := range f.nodes[:f.first] {
		shift(v, -1)
	}
	// Nodes that reach the sink (depth >= 0, from the last call of layers) stay in b.
	order, ends := f.components(s)
	best, least := -1, 0.0
	balance := int64(0)
	at := 0
	for i, e := range ends {
		for ; at < e; at++ {
			if v := order[at]; v < int32(n) {
				shift(f.nodes[v], 1)
			}
		}
		over, gap := rate(), max(r.size[a]-r.size[b], r.size[b]-r.size[a])
		if best < 0 || over < least || over == least && gap < balance {
			best, least, balance = i, over, gap
		}
	}
	for _, v := range order[:at] { // restore the sizes
		if v < int32(n) {
			shift(f.nodes[v], -1)
		}
	}
	for _, v := range f.nodes[:f.first] {
		shift(v, 1)
	}
	if best < 0 || least > allowed {
		return false
	}
	f.side = resize(f.side, n)
	for i := range f.side {
		f.side[i] = false
	}
	for _, v := range order[:ends[best]] {
		if v < int32(n) {
			f.side[v] = true
		}
	}
	return true
}

// components returns the nodes that cannot reach the sink, ordered by strongly connected components
// of the residual network so that no arc leaves a prefix of components, and where each component
// ends. The first one is the source's with all that it reaches.
func (f *network) components(s *search) (order []int32, ends []int) {
	n := int32(len(f.nodes) + 2)
	source := n - 2
	f.number = resize(f.number, int(n))
	f.link = resize(f.link, int(n))
	next, link := f.at, f.link // the next arc of each node
	copy(next, f.start[:n])
	for i := range f.number {
		f.number[i] = -1
	}
	const done = 1 << 30
	var stack, path []int32
	count := int32(0)
	visit := func(root int32) {
		path = append(path, root)
		f.number[root] = count
		count++
		stack = append(stack, root)
		link[root] = f.number[root]
		for len(path) > 0 {
			v := path[len(path)-1]
			if next[v] < f.start[v+1] {
				e := next[v]
				next[v]++
				u := f.to[e]
				f.looked++
				if f.left[e] == 0 {
					continue
				}
				if f.number[u] < 0 {
					f.number[u] = count
					count++
					link[u] = f.number[u]
					stack = append(stack, u)
					path = append(path, u)
				} else if f.number[u] < done {
					link[v] = min(link[v], f.number[u])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				p := path[len(path)-1]
				link[p] = min(link[p], link[v])
			}
			if link[v] == f.number[v] {
				for {
					u := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					f.number[u] = done
					order = append(order, u)
					if u == v {
						break
					}
				}
				ends = append(ends, len(order))
			}
		}
	}
	visit(source)
	ends = append(ends[:0], len(order))
	from := int32(s.below(int(n)))
	for i := range n {
		if v := (from + i) % n; f.depth[v] < 0 && f.number[v] < 0 {
			visit(v)
		}
	}
	return order, ends
}

// changed reports whether the chosen cut differs from the present one.
func (f *network) changed(r *moves, a int32) bool {
	for i, v := range f.nodes {
		if f.side[i] != (r.of[v] == a) {
			return true
		}
	}
	return false
}
