package sample

import "github.com/graphnb/graphnb/graphops"

// across is the edges of one rank's destinations at a hop whose sources one rank owns, of destinations
// in ascending order, each with its edges in their order.
type across struct {
	rows []int32 // destinations that have such an edge
	ends []int32 // of each of them, the number of edges up to its last one
	at   []int32 // of each edge, the place of its source in the question of that rank
}

func (x *across) clear() { x.rows, x.ends, x.at = x.rows[:0], x.ends[:0], x.at[:0] }

// destinations is the number of destinations.
func (x *across) destinations() int { return len(x.ends) }

// valid reports whether edges that another rank has sent can be used; nodes is the number of nodes whose
// rows it has asked for.
func (x *across) valid(nodes int) bool {
	row, end := int32(-1), int32(0)
	for i := range x.rows {
		if x.rows[i] <= row || x.ends[i] <= end {
			return false
		}
		row, end = x.rows[i], x.ends[i]
	}
	for _, at := range x.at {
		if uint(at) >= uint(nodes) {
			return false
		}
	}
	return int(end) == len(x.at)
}

// cross divides the hop's edges by the owners of their sources, for which this rank asks. Those of this
// rank have all its destinations, without a list of rows, and in the place of the sources their numbers.
func (c *Cooperative) cross(e *edges, dst int) {
	for r := range c.ask {
		if r != c.p.Rank {
			for i, n := range c.ask[r].halo {
				c.source[n] = int32(i)
			}
		}
	}
	clear(c.next)
	for _, i := range e.indices {
		c.next[c.owner[i]]++
	}
	for r := range c.across {
		c.across[r].at = resize(c.across[r].at, c.next[r])
		c.next[r] = 0
	}
	rank := uint16(c.p.Rank)
	for d := range dst {
		for _, i := range e.indices[e.indptr[d]:e.indptr[d+1]] {
			r, at := c.owner[i], c.source[i]
			if r == rank {
				at = i // a conditional move
			}
			n := c.next[r]
			c.across[r].at[n] = at
			c.next[r] = n + 1
		}
		for r := range c.across {
			x, end := &c.across[r], int32(c.next[r])
			switch n := len(x.ends); {
			case r == c.p.Rank:
				x.ends = append(x.ends, end)
			case n == 0 && end > 0 || n > 0 && end > x.ends[n-1]:
				x.rows, x.ends = append(x.rows, int32(d)), append(x.ends, end)
			}
		}
	}
}

// sums makes the hop's HaloSums, when the ranks have exchanged questions and answers.
func (c *Cooperative) sums(k *graphops.RankHop, dst, hop int) {
	own, h := &c.across[c.p.Rank], &k.Sums.Halo
	edges, rows := len(own.at), dst
	for r := range c.asked {
		if r != c.p.Rank {
			edges, rows = edges+len(c.asked[r].edges.at), rows+len(c.asked[r].edges.rows)
		}
	}
	k.Indptr, k.Indices = resize(k.Indptr, rows+1), resize(k.Indices, edges)
	h.Own, h.Most = dst, 0
	k.Indptr[0] = 0
	n := copyEnds(k.Indptr[1:], own.ends, 0)
	for i, number := range own.at {
		k.Indices[i] = c.source[number]
	}
	at := len(own.at)
	for r := range c.asked {
		h.Most = max(h.Most, c.answers[r].sums)
		if r == c.p.Rank {
			continue
		}
		q := &c.asked[r].edges
		n += copyEnds(k.Indptr[1+n:], q.ends, int64(at))
		to := k.Halo.To[r]
		for i, place := range q.at {
			k.Indices[at+i] = to[place]
		}
		at += len(q.at)
		h.From[r] = append(h.From[r][:0], q.rows...)
		h.To[r] = append(h.To[r][:0], c.across[r].rows...)
		h.At[r] = c.answers[r].sumsAt
	}
	k.SetSums(hop, c.s.g)
	c.reads(k, dst)
}

// reads lists the edges by the ranks that own their sources.
func (c *Cooperative) reads(k *graphops.RankHop, dst int) {
	for r := range k.Sums.Reads {
		l := &k.Sums.Reads[r]
		if r == c.p.Rank {
			l.Indptr, l.Indices = k.Indptr[:dst+1], k.Indices[:k.Indptr[dst]]
			continue
		}
		x, from := &c.across[r], k.Halo.From[r]
		l.Indptr, l.Indices = resize(l.Indptr, len(x.ends)+1), resize(l.Indices, len(x.at))
		l.Indptr[0] = 0
		copyEnds(l.Indptr[1:], x.ends, 0)
		for i, at := range x.at {
			l.Indices[i] = from[at]
		}
	}
}

// copyEnds writes ends, counted from at, and returns their number.
func copyEnds(indptr []int64, ends []int32, at int64) int {
	for i, end := range ends {
		indptr[i] = at + int64(end)
	}
	return len(ends)
}
