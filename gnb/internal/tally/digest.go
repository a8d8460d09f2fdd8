package tally

import (
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Digest is the digest, kept on rank 0, of the samples of all ranks.
type Digest struct {
	*sample.Digest
	picked [][]byte // picks of the current step, per rank and virtual rank
}

// NewDigest returns the digest of no batches.
func NewDigest() *Digest { return &Digest{Digest: sample.NewDigest()} }

// Add adds one batch of each rank; seeds are those of the step over all ranks. ends is set for the
// step's last batch. Collective.
func (d *Digest) Add(c collective.Comm, at collective.Site, b *sample.Batch, seeds sample.Seeds, ends bool) error {
	all, err := c.AllGather(at, sample.EncodePicks(b))
	if err != nil {
		return err
	}
	for _, p := range all {
		d.picked = append(d.picked, slices.Clone(p))
	}
	if !ends {
		return nil
	}
	if c.Rank() == 0 {
		err = d.AddStep(seeds, d.picked)
	}
	d.picked = d.picked[:0]
	return err
}
