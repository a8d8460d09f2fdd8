package graphops

import (
	"math/bits"
	"slices"
)

// MaxDivision is the largest number of ranks of a [Division].
const MaxDivision = 8

// Division finds one rank's part of batches that all ranks compute together (see [Halo]): its nodes, and its
// block at each hop. It keeps memory, so it is for one goroutine at a time.
//
// Cost: each edge of the batch is looked at once, and nodes and edges of all ranks take 14 bytes for each node
// and rank.
type Division struct {
	// Rank is this rank, and World the number of ranks, at most MaxDivision.
	Rank, World int
	// Owners sets owner[i] to the rank that owns nodes[i], equally on all ranks.
	Owners func(nodes []int32, owner []uint8)

	owner []uint8
	row   []int32   // of each node at its owner
	place []int32   // in this rank's block: of its own nodes, and of those of others that the hop reaches
	rows  [][]int32 // of each rank's nodes in the whole batch
	// levels[h] has the numbers of each rank's nodes that are reached before hop h.
	levels [][]int32
	// seen says of each rank and node whether edges of the rank's destinations have reached the node, at this hop or
	// an earlier one, and reach lists these nodes by rank and owner, as they are reached.
	seen  []byte
	reach [][]int32
	count []int     // of reach
	halo  [][]int   // halo[r][o]: rows of rank r's block that rank o owns
	sums  [][]int   // sums[o][r]: destinations of rank r that rank o's rows reach
	lists [][]int32 // of rows at their owners; by owner
	next  []int
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

// SetSums makes the hop's Halo.Sums, with the given number of destinations. The Level and the Graph of its Block
// are those of h.
func (k *RankHop) SetSums(dst int, h HostBlock) {
	k.block.SetHost(HostBlock{
		NumDst: dst, NumSrc: k.Halo.Own, Level: h.Level, Graph: h.Graph, SrcIDs: k.IDs[:k.Halo.Own],
		Indptr: k.Indptr, Indices: k.Indices,
	})
	k.Sums.Block, k.Halo.Sums = &k.block, &k.Sums
}

// Nodes begins with a batch of all ranks, whose nodes are ids and whose destinations at each hop are the first
// ones, as many as hops[h].NumDst; the nodes that the last of these hops reaches are no destinations of these.
// It returns the ids of this rank's nodes, in own's memory, and how many of them are destinations of the first hop.
func (d *Division) Nodes(own, ids []int32, hops []HostBlock) ([]int32, int) {
	n, world := len(ids), d.World
	d.owner, d.row, d.place = resized(d.owner, n), resized(d.row, n), resized(d.place, n)
	d.rows, d.levels = resized(d.rows, world), resized(d.levels, len(hops)+1)
	for r := range d.rows {
		d.rows[r] = resized(d.rows[r], n+1)
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
			at[r%MaxDivision] = k + 1
		}
		d.levels[hop] = append(d.levels[hop][:0], at[:world]...)
		from = to
	}
	copy(d.place, d.row)
	d.seen = resized(d.seen, world*n)
	clear(d.seen)
	d.reach = resized(d.reach, world*world)
	for i := range d.reach {
		d.reach[i] = resized(d.reach[i], n+1)
	}
	d.count = resized(d.count, world*world)
	clear(d.count)
	d.next, d.lists = resized(d.next, world), resized(d.lists, world)
	for len(d.halo) < world {
		d.halo, d.sums = append(d.halo, make([]int, world)), append(d.sums, make([]int, world))
	}
	mine := d.rows[d.Rank][:at[d.Rank]]
	own = resized(own, len(mine))
	for i, v := range mine {
		own[i] = ids[v]
	}
	return own, int(d.levels[0][d.Rank])
}

// Valid reports whether a batch of all ranks that another rank has sent can be divided.
func (d *Division) Valid(ids []int32, hops []HostBlock) bool {
	before := 0
	for i := range hops {
		h, sources := &hops[i], len(ids)
		if i+1 < len(hops) {
			sources = hops[i+1].NumDst
		}
		if h.NumDst < before || h.NumDst > len(ids) || len(h.Indptr) != h.NumDst+1 || len(h.EdgePos) != len(h.Indices) ||
			h.Indptr[0] != 0 || h.Indptr[h.NumDst] != int64(len(h.Indices)) || !slices.IsSorted(h.Indptr) || !within(h.Indices, sources) {
			return false
		}
		before = h.NumDst
	}
	return len(hops) > 0 && within(ids, hops[0].Graph.NumNodes())
}

// within reports whether all numbers are 0 to n-1.
func within(numbers []int32, n int) bool {
	wrong := int32(0)
	for _, v := range numbers {
		wrong |= v | (int32(n) - 1 - v) // negative if one of them is
	}
	return wrong >= 0
}

// Hop finds this rank's part of the next hop of the batch with which Nodes has begun: h is the block of all ranks,
// ids the batch's nodes, and own this rank's. It writes to the arrays of e, and to k, and makes k.Halo.Sums if
// sums is true.
func (d *Division) Hop(e *HostBlock, k *RankHop, h *HostBlock, ids, own []int32, sums bool) {
	k.Reset(d.World)
	d.edges(e, k, h)
	d.sources(e, k, h.Level, ids, own)
	if sums {
		d.haloSums(k, h)
	}
	e.NumDst, e.NumSrc, e.SrcIDs = int(d.levels[h.Level][d.Rank]), len(k.IDs), k.IDs
}

// edges divides the edges of a hop.
func (d *Division) edges(e *HostBlock, s *RankHop, h *HostBlock) {
	world, me, n := d.World, d.Rank, len(d.owner)
	own := d.rows[me][:d.levels[h.Level][me]]
	edges := 0
	for _, v := range own {
		edges += int(h.Indptr[v+1] - h.Indptr[v])
	}
	e.Indptr, e.Indices, e.EdgePos = resized(e.Indptr, len(own)+1), resized(e.Indices, edges), resized(e.EdgePos, edges)
	if h.Weights != nil {
		e.Weights = resized(e.Weights, edges)
	}
	s.Indptr, s.Indices = resized(s.Indptr, len(h.Indptr)), resized(s.Indices, len(h.Indices)+1)
	for r := range world {
		if r == me {
			d.lists[r] = s.Indices
			continue
		}
		l := &s.Sums.Reads[r]
		l.Indptr, l.Indices = resized(l.Indptr, len(own)+2), resized(l.Indices, edges+1)
		s.Sums.Halo.To[r] = resized(s.Sums.Halo.To[r], len(own)+1)
		l.Indptr[0] = 0
		d.lists[r] = l.Indices
	}
	for o := range d.sums {
		clear(d.sums[o])
	}
	clear(d.next)
	owner, row := d.owner, d.row
	e.Indptr[0], s.Indptr[0] = 0, 0
	at := 0
	seen, reach, count := d.seen[me*n:(me+1)*n], d.reach[me*world:(me+1)*world], d.count[me*world:(me+1)*world]
	for i, v := range own {
		lo, hi := h.Indptr[v], h.Indptr[v+1]
		mask := 0
		for j, u := range h.Indices[lo:hi] {
			e.Indices[at+j] = u
			o := int(owner[u])
			mask |= 1 << o
			next := d.next[o]
			d.lists[o][next] = row[u]
			d.next[o] = next + 1
			mark(seen, reach[o], &count[o], u)
		}
		copy(e.EdgePos[at:], h.EdgePos[lo:hi])
		if h.Weights != nil {
			copy(e.Weights[at:], h.Weights[lo:hi])
		}
		at += int(hi - lo)
		e.Indptr[i+1] = int64(at)
		s.Indptr[i+1] = int64(d.next[me])
		for o := range world {
			if o != me {
				k := d.sums[o][me]
				s.Sums.Halo.To[o][k], s.Sums.Reads[o].Indptr[k+1] = int32(i), int64(d.next[o])
				d.sums[o][me] = k + mask>>o&1
			}
		}
	}
	// The edges of other ranks' destinations from this rank's nodes.
	sums, next := len(own), d.next[me]
	for r := range world {
		if r == me {
			continue
		}
		theirs := d.rows[r][:d.levels[h.Level][r]]
		from := resized(s.Sums.Halo.From[r], len(theirs)+1)
		seen, reach, count := d.seen[r*n:(r+1)*n], d.reach[r*world:(r+1)*world], d.count[r*world:(r+1)*world]
		mine := 0
		for i, v := range theirs {
			mask := 0
			for _, u := range h.Indices[h.Indptr[v]:h.Indptr[v+1]] {
				o := int(owner[u])
				mask |= 1 << o
				mark(seen, reach[o], &count[o], u)
				s.Indices[next] = row[u]
				x := o - me
				next += 1 + (x|-x)>>(bits.UintSize-1) // one more if x is 0
			}
			from[mine], s.Indptr[sums+1] = int32(i), int64(next)
			mine, sums = mine+mask>>me&1, sums+mask>>me&1
			for o := range world {
				d.sums[o][r] += mask >> o & 1
			}
		}
		s.Sums.Halo.From[r] = from[:mine]
	}
	s.Indptr, s.Indices = s.Indptr[:sums+1], s.Indices[:next]
	for r := range world {
		if r != me {
			k := d.sums[r][me]
			s.Sums.Halo.To[r] = s.Sums.Halo.To[r][:k]
			l := &s.Sums.Reads[r]
			l.Indptr, l.Indices = l.Indptr[:k+1], l.Indices[:d.next[r]]
		}
	}
	mine := &s.Sums.Reads[me]
	mine.Indptr, mine.Indices = s.Indptr[:len(own)+1], s.Indices[:s.Indptr[len(own)]]
}

// mark notes that a rank's edge reaches a node. It has no branch: whether an edge is the first cannot be
// predicted.
func mark(seen []byte, reach []int32, count *int, u int32) {
	b := seen[u]
	reach[*count] = u
	*count += int(1 - b&everSeen)
	seen[u] = everSeen | seenNow
}

// sources lists the sources of this rank's block, those of other ranks behind its own.
func (d *Division) sources(e *HostBlock, k *RankHop, hop int, all, own []int32) {
	world, me, n := d.World, d.Rank, len(d.owner)
	h, levels := &k.Halo, d.levels[hop+1]
	h.Own, h.Most, h.Others = int(levels[me]), 0, 0
	k.IDs = append(k.IDs[:0], own[:h.Own]...)
	for r := range world {
		most, seen := int(levels[r]), d.seen[r*n:(r+1)*n]
		for o := range world {
			if d.halo[r][o] = 0; o == r {
				continue
			}
			list := d.reach[r*world+o][:d.count[r*world+o]]
			switch {
			case r == me:
				ids, from, i := slices.Grow(k.IDs, len(list)+1), resized(h.From[o], len(list)+1), 0
				at := len(k.IDs)
				ids = ids[:at+len(list)+1]
				for _, u := range list {
					ids[at+i], from[i], d.place[u] = all[u], d.row[u], int32(at+i)
					i += int(seen[u] >> 1)
					seen[u] = everSeen
				}
				k.IDs, h.From[o], d.halo[r][o] = ids[:at+i], from[:i], i
			case o == me:
				to, i := resized(h.To[r], len(list)+1), 0
				for _, u := range list {
					to[i] = d.row[u]
					i += int(seen[u] >> 1)
					seen[u] = everSeen
				}
				h.To[r], d.halo[r][o] = to[:i], i
			default:
				i := 0
				for _, u := range list {
					i += int(seen[u] >> 1)
					seen[u] = everSeen
				}
				d.halo[r][o] = i
			}
			most += d.halo[r][o]
		}
		h.Most = max(h.Most, most)
		h.At[r] = before(d.halo[r], me, r)
	}
	h.Others = len(k.IDs) - h.Own
	h.From[me], h.To[me], h.At[me] = h.From[me][:0], h.To[me][:0], 0
	for i, u := range e.Indices {
		e.Indices[i] = d.place[u]
	}
}

// before is the sum of the counts of ranks below one, but for rank r's.
func before(counts []int, rank, r int) (n int) {
	for o, k := range counts[:rank] {
		if o != r {
			n += k
		}
	}
	return n
}

// haloSums completes the hop's HaloSums.
func (d *Division) haloSums(k *RankHop, b *HostBlock) {
	h, me := &k.Sums.Halo, d.Rank
	h.Own, h.Most = int(d.levels[b.Level][me]), 0
	for r := range d.World {
		most := int(d.levels[b.Level][r])
		for o, n := range d.sums[r] {
			if o != r {
				most += n
			}
		}
		h.Most = max(h.Most, most)
		h.At[r] = before(d.sums[r], me, r)
	}
	h.From[me], h.To[me], h.At[me] = h.From[me][:0], h.To[me][:0], 0
	k.SetSums(len(k.Indptr)-1, *b)
}

// resized returns a slice of length n that is never nil, in x's memory if that is large enough, with arbitrary
// elements behind those of x.
func resized[T any](x []T, n int) []T {
	if x == nil || cap(x) < n {
		return append(make([]T, 0, n+n/8), x...)[:n]
	}
	return x[:n]
}
