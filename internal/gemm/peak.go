package gemm

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/internal/parallel"
)

// PeakGFLOPS measures the processor's rate of float32 operations on the given number of threads (0:
// GOMAXPROCS), in 10⁹ per second: fused multiply-adds of independent registers, without memory
// access. It is the best of several dozen short measurements, and takes about 20 ms.
func PeakGFLOPS(threads int) float64 {
	best := 0.0
	for range 40 {
		best = max(best, peakNow(active.Load(), threads))
	}
	return best
}

// peakNow returns the rate of one such measurement, about 0.5 ms.
func peakNow(p *path, threads int) float64 {
	threads = parallel.Threads(threads)
	var flops atomic.Uint64
	begin := time.Now()
	parallel.For(threads, threads, 1, func(int, int) {
		f := 0.0
		for range 16 {
			f += p.peak()
		}
		flops.Store(math.Float64bits(f))
	})
	seconds := time.Since(begin).Seconds()
	return math.Float64frombits(flops.Load()) * float64(threads) / seconds / 1e9
}

// sink keeps results, so that the compiler cannot remove their computation.
var sink atomic.Value
