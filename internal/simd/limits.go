package simd

import (
	"time"

	"github.com/graphnb/graphnb/internal/parallel"
)

// limitRuns is how often a limit is measured. The best run counts: whatever else
// the machine does can only make one slower.
const limitRuns = 16

// CopyGBs is the bandwidth of copying memory far larger than caches, the bytes
// read and those written, in 10⁹ a second. It takes about a second and 256 MiB.
func CopyGBs(threads int) float64 {
	const n, piece = 1 << 25, 1 << 18
	src, dst := touched(n), touched(n)
	return bestRate(2*4*n, func(int) {
		parallel.For(threads, n, piece, func(lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
	})
}

// RandomRowGBs is how fast rows of rowBytes (a multiple of 4) are read at random
// places of a table of 512 MiB, in 10⁹ bytes a second: each row is added to
// others in registers, and nothing is written. Rows are prefetched, as far ahead
// as turns out best. It takes about a second.
func RandomRowGBs(threads, rowBytes int) float64 {
	const table, group = 1 << 27, 16
	cols := rowBytes / 4
	t := Rows{Data: touched(table), Stride: cols}
	n := (1<<21/cols + group - 1) / group * group // of one run: 8 MiB
	ids := make([]int32, limitRuns*n)
	state := uint64(1)
	for i := range ids {
		state = state*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
		ids[i] = int32((state >> 33) % uint64(table/cols))
	}
	rate := 0.0
	for _, ahead := range []int{4, 8, 16, 32} {
		rate = max(rate, bestRate(float64(4*cols*n), func(run int) {
			ids := ids[run*n : (run+1)*n] // other rows than the last run's
			parallel.For(threads, n/group, max(1, 1<<16/cols/group), func(lo, hi int) {
				sum := make([]float32, cols)
				for i := lo * group; i < hi*group; i += group {
					if !sumRows(&sum[0], &t.Data[0], cols, &ids[i], group, n-i, ahead, cols, 0, 1, nil) {
						SumRows(sum, &t, ids[i:], group, 1, false)
					}
				}
			})
		}))
	}
	return rate
}

// touched is memory whose every page has been written.
func touched(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

// bestRate is the highest rate of several runs of f, each of which moves so many
// bytes, in 10⁹ a second.
func bestRate(bytes float64, f func(run int)) float64 {
	rate := 0.0
	for run := range limitRuns {
		start := time.Now()
		f(run)
		rate = max(rate, bytes/time.Since(start).Seconds()/1e9)
	}
	return rate
}
