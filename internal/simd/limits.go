package simd

import (
	"time"

	"github.com/graphnb/graphnb/internal/parallel"
)

// limitRuns is the number of measurements of a limit. The best one counts, because other load on
// the machine can only make a run slower.
const limitRuns = 16

// CopyGBs returns the bandwidth of copying memory far larger than the caches, in 10⁹ bytes per
// second, counting bytes read and bytes written. It takes about a second and 256 MiB.
func CopyGBs(threads int) float64 {
	const n = 1 << 25
	return copyGBs(threads, limitRuns, touched(threads, n), touched(threads, n))
}

func copyGBs(threads, runs int, dst, src []float32) float64 {
	const piece = 1 << 18
	return bestRate(runs, 2*4*float64(len(src)), func(int) {
		parallel.For(threads, len(src), piece, func(lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
	})
}

// RandomRowGBs returns the rate of reading rows of rowBytes (a multiple of 4) at random places of a
// table of 512 MiB, in 10⁹ bytes per second. The rows are summed in registers, and nothing is
// written. Rows are prefetched at the distance that turns out fastest. It takes about a second.
func RandomRowGBs(threads, rowBytes int) float64 {
	return rowGBs(threads, limitRuns, rowBytes, touched(threads, 1<<27))
}

func rowGBs(threads, runs, rowBytes int, table []float32) float64 {
	const group = 16
	cols := rowBytes / 4
	t := Rows{Data: table, Stride: cols}
	n := (1<<21/cols + group - 1) / group * group // per run: 8 MiB
	ids := make([]int32, runs*n)
	state := uint64(1)
	for i := range ids {
		state = state*6364136223846793005 + 1442695040888963407 // the multiplier of Knuth's MMIX
		ids[i] = int32((state >> 33) % uint64(len(table)/cols))
	}
	rate := 0.0
	for _, ahead := range []int{4, 8, 16, 32} {
		rate = max(rate, bestRate(runs, float64(4*cols*n), func(run int) {
			ids := ids[run*n : (run+1)*n] // each run reads different rows
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

// QuickGBs measures CopyGBs and RandomRowGBs in less than half a second. Both use the same 512 MiB,
// because some caches are nearly as large, and few runs.
func QuickGBs(threads, rowBytes int) (copied, rows float64) {
	const n, runs = 1 << 27, 4
	table := touched(threads, n)
	return copyGBs(threads, runs, table[:n/2], table[n/2:]), rowGBs(threads, runs, rowBytes, table)
}

// touched returns memory in which every page has been written.
func touched(threads, n int) []float32 {
	s := make([]float32, n)
	parallel.For(threads, n, 1<<20, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			s[i] = 1
		}
	})
	return s
}

// bestRate returns the highest rate of several runs of f, each of which moves the given number of bytes,
// in 10⁹ per second.
func bestRate(runs int, bytes float64, f func(run int)) float64 {
	rate := 0.0
	for run := range runs {
		start := time.Now()
		f(run)
		rate = max(rate, bytes/time.Since(start).Seconds()/1e9)
	}
	return rate
}
