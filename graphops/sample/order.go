package sample

import "github.com/graphnb/graphnb/internal/philox"

// EpochOrder returns ids in the random order of an epoch, in fresh memory. Global batch s of size B
// is positions [s·B, (s+1)·B) of it.
//
// It is the Fisher–Yates shuffle: for i = len(ids)-1 down to 1, exchange i with (u·(i+1))>>32,
// where u is the first draw of the counter (i, step 0, shuffle, epoch). An epoch has 20 bits of the
// counter; higher bits of the argument become the step, so that an epoch can have several orders.
// Cost: one Philox block per id.
func EpochOrder(seed uint64, epoch int, ids []int32) []int32 {
	out := append([]int32(nil), ids...)
	philox.Permute(seed, epoch>>20, philox.C3(philox.Shuffle, 0, epoch), out)
	return out
}

// Share returns the part [lo, hi) of a batch of n seeds that a rank of world ranks takes:
// ⌊rank·n/world⌋ to ⌊(rank+1)·n/world⌋. Shares differ by at most one seed; with more ranks than
// seeds, some are empty.
func Share(n, rank, world int) (lo, hi int) {
	return int(int64(rank) * int64(n) / int64(world)), int(int64(rank+1) * int64(n) / int64(world))
}
