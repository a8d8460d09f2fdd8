package sample

import (
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// Seeds are the nodes that a batch is sampled for and, if the task has them, their times.
type Seeds struct {
	IDs []int32
	// Times has a time for each seed, in the unit of the edges' times: the moment as of which the seed's
	// neighbourhood is seen. Edges with a later time do not exist for it, at any hop; [AsOf] has more options. Nil means that seeds have no
	// times and see all edges.
	//
	// Seeds with times need disjoint trees (Config.Disjoint), because two seeds see a common neighbour at two moments.
	Times []int64
}

// Len is the number of seeds.
func (s Seeds) Len() int { return len(s.IDs) }

// Slice returns the seeds [lo, hi), in the same memory.
func (s Seeds) Slice(lo, hi int) Seeds {
	part := Seeds{IDs: s.IDs[lo:hi:hi]}
	if s.Times != nil {
		part.Times = s.Times[lo:hi:hi]
	}
	return part
}

// Equal reports whether two lists have the same seeds, with the same times, in the same order.
func (s Seeds) Equal(t Seeds) bool {
	return slices.Equal(s.IDs, t.IDs) && (s.Times == nil) == (t.Times == nil) && slices.Equal(s.Times, t.Times)
}

// Check returns an error for seeds that no sampler of a graph with these nodes takes.
func (s Seeds) Check(nodes int) error {
	for i, v := range s.IDs {
		if uint(v) >= uint(nodes) {
			return fmt.Errorf("sample: seed %d at position %d is not a node: the graph's nodes are 0 to %d", v, i, nodes-1)
		}
	}
	if s.Times != nil && len(s.Times) != len(s.IDs) {
		return fmt.Errorf("sample: there are %d seeds and %d times; give one time for each seed, or no times", len(s.IDs), len(s.Times))
	}
	return nil
}

// Batcher samples batches: a [Sampler], [Cooperative] or [Divided] one, or a sampler on a device.
type Batcher interface {
	// Sample draws the batch of the given seeds.
	Sample(epoch, step int, seeds Seeds) (*Batch, error)
	// Hops is the number of hops, which is the number of blocks of each batch.
	Hops() int
}

var (
	_ Batcher = (*Sampler)(nil)
	_ Batcher = (*Cooperative)(nil)
	_ Batcher = (*Divided)(nil)
	_ Batcher = (*Induced)(nil)
)

// trees are the trees of a batch of disjoint trees, by seed. The zero value is a batch without.
type trees struct {
	roots []root
	timed bool
	rows  pairRows // of the nodes of each tree
}

// root is what the nodes of a seed's tree have in common.
type root struct {
	key         uint64 // of their draws
	from, until int64  // the times that the seed sees; none if from is later
}

// treeKey is the key of the draws in the tree of a seed: the first two words of the counter (seed, time) for trees. So a
// tree depends on the seed and its time, and neither on the other seeds of the batch nor on the seed's place among them.
func treeKey(key uint64, seed int32, time int64) uint64 {
	b := philox.Block(key, [4]uint32{uint32(seed), uint32(time), uint32(time >> 32), philox.C3(philox.Trees, 0, 0)})
	return uint64(b[1])<<32 | uint64(b[0])
}

// plant sets the trees to those of a batch's seeds, or to none.
func (t *trees) plant(c *Config, seeds Seeds) {
	t.roots, t.timed = t.roots[:0], seeds.Times != nil
	if !c.Disjoint {
		return
	}
	for i, v := range seeds.IDs {
		r, at := root{}, int64(0)
		if t.timed {
			at = seeds.Times[i]
			r.from, r.until = c.AsOf.span(at)
		}
		r.key = treeKey(c.Seed, v, at)
		t.roots = append(t.roots, r)
	}
}

// checkTimes returns an error for times that a sampler with these options, of a graph whose edges have this, cannot see by.
func (c *Config) checkTimes(seeds Seeds, edges graphops.EdgeShape) error {
	switch {
	case seeds.Times == nil && seeds.Len() > 0 && !c.AsOf.IsZero():
		return errors.New("sample: there are options of seeds with times (AsOf), but the seeds have none; give each a time, or leave the options out")
	case seeds.Times == nil:
		return nil
	case !c.Disjoint:
		return errors.New("sample: the seeds have times, and two seeds may see a common neighbour at two moments, so each needs a tree of its own; set Disjoint")
	case !edges.Times && c.AsOf.NodeTimes == nil:
		return errors.New("sample: the seeds have times, but the graph's edges have none, so nothing would be hidden from them; give the edges times, or leave the seeds' times out")
	}
	return nil
}

// checkDisjoint returns an error for a sampler that cannot have disjoint trees, and whose name is what.
func (c *Config) checkDisjoint(what, why string) error {
	if !c.Disjoint {
		return nil
	}
	return fmt.Errorf("sample: %s samples no disjoint trees, and no seeds with times: %s; leave Disjoint out, or use another sampler", what, why)
}

// pairRows gives the nodes of disjoint trees their rows: (tree, node) pairs are numbered in the order in which they come.
// It is a hash table with linear probing.
type pairRows struct {
	slots []pairRow
	shift uint
	base  uint32 // rows of this batch are above it
	used  int
}

type pairRow struct {
	tree, node int32
	row        uint32 // base + 1 + the row; at most base: an earlier batch's
}

// begin forgets all nodes; the next row is 0.
func (p *pairRows) begin() {
	p.base += uint32(p.used)
	p.used = 0
	if p.base > 1<<31 { // a batch has fewer than 2^31 rows
		clear(p.slots)
		p.base = 0
	}
	if p.slots == nil {
		p.alloc(1 << 12)
	}
}

func (p *pairRows) alloc(n int) {
	p.slots, p.shift = make([]pairRow, n), uint(64)
	for ; n > 1; n /= 2 {
		p.shift--
	}
}

// at returns the place of a pair: its own, or a free one.
func (p *pairRows) at(tree, node int32) *pairRow {
	mask := uint(len(p.slots) - 1)
	for i := uint((uint64(uint32(tree))<<32 | uint64(uint32(node))) * 0x9E3779B97F4A7C15 >> p.shift); ; i++ {
		if s := &p.slots[i&mask]; s.row <= p.base || s.tree == tree && s.node == node {
			return s
		}
	}
}

// number replaces each of a tree's nodes by its row, and appends those that have none yet to ids and, with their tree, to of.
func (p *pairRows) number(ids, of, nodes []int32, tree int32) (_, _ []int32) {
	for i, v := range nodes {
		s := p.at(tree, v)
		if s.row <= p.base {
			if 2*(p.used+1) > len(p.slots) {
				p.grow(ids, of)
				s = p.at(tree, v)
			}
			p.used++
			*s = pairRow{tree, v, p.base + uint32(p.used)}
			ids, of = append(ids, v), append(of, tree)
		}
		nodes[i] = int32(s.row - p.base - 1)
	}
	return ids, of
}

// grow doubles the table of a batch with these rows.
func (p *pairRows) grow(ids, of []int32) {
	p.alloc(2 * len(p.slots))
	for row, v := range ids {
		*p.at(of[row], v) = pairRow{of[row], v, p.base + 1 + uint32(row)}
	}
}
