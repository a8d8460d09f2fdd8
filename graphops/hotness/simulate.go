package hotness

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/graphnb/graphnb/graphops/sample"
)

// Epochs selects epochs of a run.
type Epochs struct {
	Seed  uint64 // of the run
	First int
	Count int // 0 means 1
}

// Simulate samples epochs and returns, for each part and node, the mean number of the part's batches per epoch that
// read the node's row: [Parts][NumNodes]. The nodes of the part itself are counted too. With the seed and the epochs of
// a run, the numbers are exactly that run's.
//
// It returns the context's error soon after the context is done. Cost: that of sampling the epochs, and 4 bytes per
// node and part.
func Simulate(ctx context.Context, j Job, e Epochs) ([][]float32, error) {
	parts, err := j.check()
	if err != nil {
		return nil, err
	}
	count := max(e.Count, 1)
	hot := make([][]float32, j.Parts)
	for _, p := range parts {
		hot[p] = make([]float32, j.Graph.NumNodes())
	}
	for i := range count {
		err := j.batches(ctx, parts, e.Seed, e.First+i, func(p int, ids []int32) {
			for _, v := range ids {
				hot[p][v]++
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, p := range parts {
		for v := range hot[p] {
			hot[p][v] /= float32(count)
		}
	}
	return hot, nil
}

// Record samples an epoch of a run and returns the trace of each part. With the seed of a run, it is exactly what the
// run's batches read. Cost: as [Simulate], and 4 bytes for each row that a batch reads from other parts.
func Record(ctx context.Context, j Job, seed uint64, epoch int) ([]Trace, error) {
	parts, err := j.check()
	if err != nil {
		return nil, err
	}
	traces := make([]Trace, j.Parts)
	seen := make([]uint64, (j.Graph.NumNodes()+63)/64)
	err = j.batches(ctx, parts, seed, epoch, func(p int, ids []int32) {
		n := 0
		for _, v := range ids {
			if int(j.Of[v]) != p {
				seen[v>>6] |= 1 << (v & 63)
				n++
			}
		}
		batch := make([]int32, 0, n)
		for i, word := range seen {
			for ; word != 0; word &= word - 1 {
				batch = append(batch, int32(i<<6+bits.TrailingZeros64(word)))
			}
			seen[i] = 0
		}
		traces[p] = append(traces[p], batch)
	})
	return traces, err
}

// batches samples the batches of an epoch and calls visit with the rows that each part's share reads.
func (j *Job) batches(ctx context.Context, parts []int, seed uint64, epoch int, visit func(part int, ids []int32)) error {
	s, err := sample.New(j.Graph, sample.Config{Picker: j.Fanouts, Seed: seed, Threads: j.Threads})
	if err != nil {
		return err
	}
	order := sample.EpochOrder(seed, epoch, j.Seeds)
	shares := make([][]int32, j.Parts)
	for step := range j.Steps() {
		for p := range shares {
			shares[p] = shares[p][:0]
		}
		for _, v := range order[step*j.Batch : min((step+1)*j.Batch, len(order))] {
			shares[j.Of[v]] = append(shares[j.Of[v]], v)
		}
		for _, p := range parts {
			if ctx.Err() != nil {
				return fmt.Errorf("hotness: %w", context.Cause(ctx))
			}
			b, err := s.Sample(epoch, step, sample.Seeds{IDs: shares[p]})
			if err != nil {
				return err
			}
			visit(p, b.InputIDs())
			b.Release()
		}
	}
	return nil
}
