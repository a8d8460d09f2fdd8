package sample

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// allToAll exchanges c.send, and leaves what the other ranks have sent in c.got.
func (c *Cooperative) allToAll() (err error) {
	c.got, err = c.p.AllToAll(c.send)
	return err
}

// exchangeQuestions sends the questions and receives those of the other ranks.
func (c *Cooperative) exchangeQuestions(b *Batch) error {
	for r := range c.send {
		q, out := &c.ask[r], c.send[r][:0]
		if r != c.p.Rank {
			x := &c.across[r]
			out = slices.Grow(out, 32+4*(len(q.known)+len(x.rows)+len(x.ends)+len(x.at))+12*len(q.nodes))
			for _, v := range [...]uint32{asking, uint32(b.Epoch), uint32(b.Step), uint32(q.at), uint32(len(q.known)), uint32(len(q.nodes)), uint32(len(x.rows)), uint32(len(x.at))} {
				out = binary.LittleEndian.AppendUint32(out, v)
			}
			out = appendWords(out, q.known)
			at := len(out)
			out = out[:at+4*len(q.nodes)]
			for i, n := range q.nodes {
				binary.LittleEndian.PutUint32(out[at+4*i:], uint32(c.nodes[n]))
			}
			out = appendKeys(out, q.keys)
			for _, words := range [...][]int32{x.rows, x.ends, x.at} {
				out = appendWords(out, words)
			}
		}
		c.send[r] = out
	}
	if err := c.allToAll(); err != nil {
		return err
	}
	for r := range c.asked {
		if r == c.p.Rank {
			continue
		}
		in := message{rest: c.got[r]}
		kind, err := in.kind(r, b)
		if err != nil {
			return err
		}
		if epoch, step := in.word(), in.word(); in.short || kind != asking || epoch != uint32(b.Epoch) || step != uint32(b.Step) {
			return otherBatch(c.p.Rank, r, b)
		}
		q := &c.asked[r]
		q.at = int(in.word())
		known, n := int(in.word()), int(in.word())
		rows, edges := int(in.word()), int(in.word())
		q.known = in.words(q.known, known)
		q.nodes = in.words(q.nodes, n)
		q.keys = in.keys(q.keys, n)
		q.edges.rows, q.edges.ends, q.edges.at = in.words(q.edges.rows, rows), in.words(q.edges.ends, rows), in.words(q.edges.at, edges)
		if err := in.end(r); err != nil {
			return err
		}
		if err := c.check(r, q); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a question of rank r asks for what this rank does not have.
func (c *Cooperative) check(r int, q *question) error {
	for _, v := range q.nodes {
		if uint(v) >= uint(c.s.g.NumNodes()) {
			return fmt.Errorf("sample: rank %d asked for node %d, but the graph's nodes are 0 to %d", r, v, c.s.g.NumNodes()-1)
		}
	}
	for _, row := range q.known {
		if uint(row) >= uint(len(c.global)) {
			return fmt.Errorf("sample: rank %d asked for row %d of rank %d, which has %d rows; all ranks must run the same program", r, row, c.p.Rank, len(c.global))
		}
	}
	if !q.edges.valid(len(q.known) + len(q.nodes)) {
		return fmt.Errorf("sample: rank %d sent edges from nodes for whose rows it did not ask; all ranks must run the same program", r)
	}
	return nil
}

// exchangeAnswers sends the rows that were asked for and receives those of this rank's sources. The
// last hop's new nodes are no destinations, so no rank needs their keys.
func (c *Cooperative) exchangeAnswers(k *graphops.RankHop, own int, last bool) error {
	if last {
		c.fresh = c.fresh[:0]
	}
	sources := own
	for r := range c.ask {
		sources += len(c.ask[r].halo)
	}
	sums := c.across[c.p.Rank].destinations()
	for r := range c.asked {
		if r != c.p.Rank {
			c.next[r] = sums - c.across[c.p.Rank].destinations()
			sums += len(c.asked[r].edges.rows)
		}
	}
	for r := range c.send {
		out := c.send[r][:0]
		if r != c.p.Rank {
			rows := k.Halo.To[r][len(c.asked[r].known):]
			out = slices.Grow(out, 20+4*len(rows)+8*len(c.fresh))
			for _, v := range [...]int{sources, sums, c.next[r], len(rows), len(c.fresh)} {
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			}
			out = appendWords(out, rows)
			out = appendKeys(out, c.fresh)
		}
		c.send[r] = out
	}
	if err := c.allToAll(); err != nil {
		return err
	}
	for r := range c.answers {
		a, q := &c.answers[r], &c.ask[r]
		if r == c.p.Rank {
			a.sources, a.sums, a.fresh = sources, sums, append(a.fresh[:0], c.fresh...)
			continue
		}
		in := message{rest: c.got[r]}
		a.sources, a.sums, a.sumsAt = int(in.word()), int(in.word()), int(in.word())
		n, keys := int(in.word()), int(in.word())
		a.rows = in.words(a.rows, n)
		a.fresh = in.keys(a.fresh, keys)
		if err := in.end(r); err != nil {
			return err
		}
		if n != len(q.nodes) {
			return fmt.Errorf("sample: rank %d answered %d of %d questions", r, n, len(q.nodes))
		}
		for i, n := range q.nodes {
			c.row[n] = a.rows[i]
		}
	}
	return nil
}
