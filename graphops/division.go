package graphops

import (
	"math"
	"slices"
)

// MaxDivision is the largest number of ranks of a [Division].
const MaxDivision = 8

// Division divides batches that all ranks compute together (see [Halo]) into the parts of the ranks. It keeps
// memory, so it is for one goroutine at a time.
//
// Cost: each edge of the batch is looked at twice, and nodes and edges take 10 bytes for each node and rank.
type Division struct {
	// World is the number of ranks, at most MaxDivision.
	World int
	// Owners sets owner[i] to the rank that owns nodes[i].
	Owners func(nodes []int32, owner []uint8)

	owner []uint8
	row   []int32   // of each node at its owner
	rows  [][]int32 // of each rank's nodes in the whole batch
	// levels[h] has the numbers of each rank's nodes that are reached before hop h.
	levels [][]int32
	// place[r] has the place of each node in rank r's block: of its own nodes, and of those of others that the hop
	// reaches. seen[r] says whether edges of the rank's destinations have reached the node, at this hop or an earlier
	// one, and reach[r][o] lists these nodes by their owners, as they are reached; count[r][o] is their number.
	place [][]int32
	seen  [][]byte
	reach [][][]int32
	count [][]int
	lists [MaxDivision][]int32 // of a rank's edges, by the owners of their sources: the rows there
	next  [MaxDivision]int
}

const (
	everSeen = 1 << iota
	seenNow
)

// RankHop is what a hop's block has in a cooperative batch alone, at one rank. Its memory is used again.
type RankHop struct {
	IDs  []int32 // of the sources
	Halo Halo
	// Sums is Halo.Sums after SetSums. Indptr and Indices are the arrays of its Block.
	Sums    HaloSums
	Indptr  []int64
	Indices []int32
	block   Block
}

// Reset makes the lists of the first batch of world ranks, and leaves out the Sums.
func (k *RankHop) Reset(world int) {
	if k.Halo.To == nil {
		lists := make([][]int32, 4*world)
		k.Halo.From, k.Halo.To, k.Halo.At = lists[:world:world], lists[world:2*world:2*world], make([]int, world)
		k.Sums.Halo.From, k.Sums.Halo.To, k.Sums.Halo.At = lists[2*world:3*world:3*world], lists[3*world:], make([]int, world)
		k.Sums.Reads = make([]Segments, world)
	}
	k.Halo.Sums = nil
}

// SetSums makes the hop's Halo.Sums, with a Block of the given level and graph.
func (k *RankHop) SetSums(level int, g *Graph) {
	k.block.SetHost(HostBlock{
		NumDst: len(k.Indptr) - 1, NumSrc: k.Halo.Own, Level: level, Graph: g, SrcIDs: k.IDs[:k.Halo.Own],
		Indptr: k.Indptr, Indices: k.Indices,
	})
	k.Sums.Block, k.Halo.Sums = &k.block, &k.Sums
}

// RankPart is one rank's part of a batch: its nodes, of which the first ones, as many as Seeds, are destinations of
// the first hop, and its block at each hop, without SrcIDs and Halo, which Coop has.
type RankPart struct {
	IDs   []int32
	Seeds int
	Hops  []HostBlock
	Coop  []RankHop // at least as many
}

// Nodes begins with a batch of all ranks, whose nodes are ids and whose destinations at each hop are the first ones,
// as many as hops[h].NumDst; the nodes that the last of these hops reaches are no destinations of these. It divides
// the nodes into parts, one for each rank, in the memory of their arrays.
func (d *Division) Nodes(parts []RankPart, ids []int32, hops []HostBlock) {
	n, world := len(ids), d.World
	if d.rows == nil {
		d.rows, d.place, d.seen = make([][]int32, world), make([][]int32, world), make([][]byte, world)
		d.reach, d.count = make([][][]int32, world), make([][]int, world)
		for r := range world {
			d.reach[r], d.count[r] = make([][]int32, world), make([]int, world)
		}
	}
	d.owner, d.row, d.levels = resized(d.owner, n), resized(d.row, n), resized(d.levels, len(hops)+1)
	for r := range world {
		d.rows[r], d.place[r], d.seen[r] = resized(d.rows[r], n+1), resized(d.place[r], n), resized(d.seen[r], n)
		clear(d.seen[r])
		clear(d.count[r])
		for o := range world {
			d.reach[r][o] = resized(d.reach[r][o], n+1)
		}
	}
	d.Owners(ids, d.owner)
	var at [MaxDivision]int32
	from := 0
	for hop := range d.levels {
		to := n
		if hop < len(hops) {
			to = hops[hop].NumDst
		}
		row := d.row[from:to]
		for i, r := range d.owner[from:to] {
			k := at[r%MaxDivision]
			row[i] = k
			d.rows[r][k] = int32(from + i)
			d.place[r][from+i] = k
			at[r%MaxDivision] = k + 1
		}
		d.levels[hop] = append(d.levels[hop][:0], at[:world]...)
		from = to
	}
	for r := range parts {
		p, mine := &parts[r], d.rows[r][:at[r]]
		p.IDs, p.Seeds = resized(p.IDs, len(mine)), int(d.levels[0][r])
		for i, v := range mine {
			p.IDs[i] = ids[v]
		}
		p.Hops = resized(p.Hops, len(hops))
		if len(p.Coop) < len(hops) {
			p.Coop = make([]RankHop, len(hops))
		}
	}
}

// Hop divides the next hop of the batch with which Nodes has begun: h is the block of all ranks, and ids are the
// batch's nodes.
func (d *Division) Hop(parts []RankPart, h *HostBlock, ids []int32) {
	for r := range parts {
		parts[r].Coop[h.Level].Reset(d.World)
	}
	d.edges(parts, h)
	d.sources(parts, ids, h.Level)
	d.sums(parts, h.Level)
}

// edges divides the edges of a hop by the ranks of their destinations, and each rank's by the owners of their sources.
func (d *Division) edges(parts []RankPart, h *HostBlock) {
	for r := range parts {
		e, k := &parts[r].Hops[h.Level], &parts[r].Coop[h.Level]
		s := &k.Sums
		own := d.rows[r][:d.levels[h.Level][r]]
		edges := 0
		for _, v := range own {
			edges += int(h.Indptr[v+1] - h.Indptr[v])
		}
		*e = HostBlock{
			NumDst: len(own), Level: h.Level, Graph: h.Graph,
			Indptr: resized(e.Indptr, len(own)+1), Indices: resized(e.Indices, edges), EdgePos: resized(e.EdgePos, edges), Weights: e.Weights,
		}
		if h.Weights != nil {
			e.Weights = resized(e.Weights, edges)
		}
		s.Reads[r] = Segments{k.Indptr, k.Indices}
		for o := range parts {
			l := &s.Reads[o]
			l.Indptr, l.Indices = resized(l.Indptr, len(own)+2), resized(l.Indices, edges+1)
			l.Indptr[0], d.lists[o], d.next[o] = 0, l.Indices, 0
			s.Halo.To[o] = resized(s.Halo.To[o], len(own)+1)
		}
		d.rankEdges(e, s, h, own, r)
		k.Indptr, k.Indices = s.Reads[r].Indptr, s.Reads[r].Indices
	}
}

// rankEdges divides the edges of one rank's destinations.
func (d *Division) rankEdges(e *HostBlock, s *HaloSums, h *HostBlock, own []int32, rank int) {
	owner, row, lists, next := d.owner, d.row, &d.lists, &d.next
	seen, reach, count := d.seen[rank], d.reach[rank], d.count[rank]
	var sums [MaxDivision]int
	at := 0
	e.Indptr[0] = 0
	for i, v := range own {
		lo, hi := h.Indptr[v], h.Indptr[v+1]
		mask := 0
		for j, u := range h.Indices[lo:hi] {
			e.Indices[at+j] = u
			o := owner[u] % MaxDivision
			mask |= 1 << o
			n := next[o]
			lists[o][n] = row[u]
			next[o] = n + 1
			// Marks the source. There is no branch: whether an edge is the first that reaches it cannot be predicted.
			b := seen[u]
			reach[o][count[o]] = u
			count[o] += int(1 - b&everSeen)
			seen[u] = everSeen | seenNow
		}
		copy(e.EdgePos[at:], h.EdgePos[lo:hi])
		if h.Weights != nil {
			copy(e.Weights[at:], h.Weights[lo:hi])
		}
		at += int(hi - lo)
		e.Indptr[i+1] = int64(at)
		for o := range s.Reads {
			k := sums[o]
			s.Halo.To[o][k], s.Reads[o].Indptr[k+1] = int32(i), int64(next[o])
			sums[o] = k + mask>>o&1
		}
		// All of the rank's own destinations have a place in its sums.
		s.Reads[rank].Indptr[i+1], sums[rank] = int64(next[rank]), i+1
	}
	for o := range s.Reads {
		l := &s.Reads[o]
		l.Indptr, l.Indices, s.Halo.To[o] = l.Indptr[:sums[o]+1], l.Indices[:next[o]], s.Halo.To[o][:sums[o]]
	}
	s.Halo.To[rank] = s.Halo.To[rank][:0]
}

// sources lists the sources of the ranks' blocks, those of other ranks behind their own.
func (d *Division) sources(parts []RankPart, ids []int32, hop int) {
	levels := d.levels[hop+1]
	most := 0
	for r := range parts {
		k := &parts[r].Coop[hop]
		h := &k.Halo
		h.Own = int(levels[r])
		k.IDs = append(k.IDs[:0], parts[r].IDs[:h.Own]...)
		seen, place := d.seen[r], d.place[r]
		h.From[r], h.At[r] = h.From[r][:0], 0
		for o := range parts {
			if o == r {
				continue
			}
			list := d.reach[r][o][:d.count[r][o]]
			from, i, at := resized(h.From[o], len(list)+1), 0, len(k.IDs)
			k.IDs = resized(k.IDs, at+len(list)+1)
			for _, u := range list {
				k.IDs[at+i], from[i], place[u] = ids[u], d.row[u], int32(at+i)
				i += int(seen[u] >> 1)
				seen[u] = everSeen
			}
			k.IDs, h.From[o] = k.IDs[:at+i], from[:i]
			to := &parts[o].Coop[hop].Halo
			to.To[r], to.At[r] = append(to.To[r][:0], h.From[o]...), at-h.Own
		}
		h.To[r], h.Others = h.To[r][:0], len(k.IDs)-h.Own
		most = max(most, len(k.IDs))
		e := &parts[r].Hops[hop]
		for i, u := range e.Indices {
			e.Indices[i] = place[u]
		}
		e.NumSrc = len(k.IDs)
	}
	for r := range parts {
		parts[r].Coop[hop].Halo.Most = most
	}
}

// sums completes what each rank adds up for the others.
func (d *Division) sums(parts []RankPart, hop int) {
	most := 0
	for o := range parts {
		k := &parts[o].Coop[hop]
		h := &k.Sums.Halo
		own, ends := len(k.Indptr), len(k.Indices)
		h.Own = own - 1
		for r := range parts {
			s := &parts[r].Coop[hop].Sums
			if r == o {
				h.From[r], h.At[r] = h.From[r][:0], 0
				continue
			}
			l, end := &s.Reads[o], int64(len(k.Indices))
			h.From[r], s.Halo.At[o] = append(h.From[r][:0], s.Halo.To[o]...), len(k.Indptr)-own
			k.Indices = append(k.Indices, l.Indices...)
			for _, n := range l.Indptr[1:] {
				k.Indptr = append(k.Indptr, end+n)
			}
		}
		k.Sums.Reads[o] = Segments{k.Indptr[:own], k.Indices[:ends]}
		most = max(most, len(k.Indptr)-1)
	}
	for r := range parts {
		parts[r].Coop[hop].Sums.Halo.Most = most
	}
}

// valid reports whether a part is one of the given rank's that can be computed on.
func (p *RankPart) valid(rank int, sums bool) bool {
	dst, nodes := p.Seeds, p.Hops[0].Graph.NumNodes()
	for i := range p.Hops {
		e, k := &p.Hops[i], &p.Coop[i]
		if k.Halo.Own < dst || k.Halo.Own > len(p.IDs) || e.NumDst != dst || e.NumSrc != len(k.IDs) || len(e.EdgePos) != len(e.Indices) ||
			!segments(e.Indptr, dst, e.Indices, e.NumSrc) || !within(k.IDs, nodes) ||
			k.Halo.Own+k.Halo.Others != e.NumSrc || k.Halo.Others != total(k.Halo.From) || k.Halo.Most < e.NumSrc || !k.Halo.valid(rank, k.Halo.Own) {
			return false
		}
		if s := &k.Sums; sums && (s.Halo.Own != dst || !s.Halo.valid(rank, dst) || s.Halo.Most < len(k.Indptr)-1 ||
			!segments(k.Indptr, dst+total(s.Halo.From), k.Indices, k.Halo.Own) || !s.valid(rank)) {
			return false
		}
		dst = k.Halo.Own
	}
	return dst == len(p.IDs) && within(p.IDs, nodes)
}

// valid reports whether the lists of a Halo at a rank agree with each other; own is the number of rows that other ranks may read.
func (h *Halo) valid(rank, own int) bool {
	for r := range h.To {
		if !within(h.To[r], own) || !within(h.From[r], h.Most) || h.At[r] < 0 || h.At[r]+len(h.To[r]) > h.Most || r == rank && len(h.From[r])+len(h.To[r]) > 0 {
			return false
		}
	}
	return true
}

// valid reports whether the edges into a rank's own destinations can be read; those from its own rows are
// part of its Block.
func (s *HaloSums) valid(rank int) bool {
	for r := range s.Reads {
		if l := &s.Reads[r]; r != rank && !segments(l.Indptr, len(s.Halo.To[r]), l.Indices, math.MaxInt32) {
			return false
		}
	}
	return true
}

// segments reports whether ends divide numbers, each 0 to n-1, into so many lists.
func segments(ends []int64, lists int, numbers []int32, n int) bool {
	return len(ends) == lists+1 && ends[0] == 0 && ends[lists] == int64(len(numbers)) && slices.IsSorted(ends) && within(numbers, n)
}

// within reports whether all numbers are 0 to n-1.
func within(numbers []int32, n int) bool {
	wrong := int32(0)
	for _, v := range numbers {
		wrong |= v | (int32(n) - 1 - v) // negative if one of them is
	}
	return wrong >= 0
}

// total is the number of rows in all lists.
func total(lists [][]int32) (n int) {
	for _, l := range lists {
		n += len(l)
	}
	return n
}

// resized returns a slice of length n that is never nil, in x's memory if that is large enough, with arbitrary
// elements behind those of x.
func resized[T any](x []T, n int) []T {
	if x == nil || cap(x) < n {
		return append(make([]T, 0, n+n/8), x...)[:n]
	}
	return x[:n]
}
