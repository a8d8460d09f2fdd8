package tally

import (
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// CountRepeated counts this rank's part of four numbers, over the first steps of an epoch: the edges
// and rows that all ranks sample, and those that one rank would sample for the same batches. The
// latter are the distinct ones, because a pick does not depend on the rank that samples it; each
// rank counts them in some of the steps. share samples this rank's share of a step for a virtual
// rank, and whole a whole step, or nothing unless it is this rank's to count. If together is set,
// sampling needs all ranks, which then all call whole.
func CountRepeated(c collective.Comm, steps, virtual int, share func(step, v int) (*sample.Batch, error), together bool, whole func(step int, mine bool) (*sample.Batch, error)) (counts [4]float64, err error) {
	add := func(b *sample.Batch, to []float64) {
		to[0] += float64(b.Edges())
		to[1] += float64(b.OwnInputs())
		b.Release()
	}
	for step := range steps {
		for v := range virtual {
			b, err := share(step, v)
			if err != nil {
				return counts, err
			}
			add(b, counts[:2])
		}
		if c.Size()*virtual == 1 {
			continue
		}
		if mine := step%c.Size() == c.Rank(); mine || together {
			b, err := whole(step, mine)
			if err != nil {
				return counts, err
			}
			add(b, counts[2:])
		}
	}
	if c.Size()*virtual == 1 {
		copy(counts[2:], counts[:2])
	}
	return counts, nil
}
