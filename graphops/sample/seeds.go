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
	rows  treeRows // of the nodes of each tree
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
