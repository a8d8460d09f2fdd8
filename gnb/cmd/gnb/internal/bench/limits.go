package bench

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// limits are the machine's measured limits, with which all other figures are compared.
type limits struct {
	Threads    int     `json:"threads"`
	GFLOPS     float64 `json:"peak_gflops"` // float32 fused multiply-adds in registers
	CopyGBs    float64 `json:"copy_gb_per_second"`
	RandomGBs  float64 `json:"random_row_gb_per_second"`
	RandomRows int     `json:"random_row_bytes"`
}

// measureLimits takes a second or two.
func measureLimits(threads, rowBytes int) limits {
	return limits{
		Threads: threads, RandomRows: rowBytes,
		GFLOPS: gemm.PeakGFLOPS(threads), CopyGBs: copyGBs(threads), RandomGBs: randomRowGBs(threads, rowBytes),
	}
}

func benchLimits(_ context.Context, args []string, out *cli.Output) error {
	var t timing
	fs := benchFlags(out, "limits", "Measures what other figures are compared with: the rate of float32 fused multiply-adds in registers, the bandwidth of a copy (bytes read and written) and that of random rows (bytes of rows).", &t)
	row := fs.Int("row-bytes", 512, "bytes per random row")
	if err := t.parse(out, fs, args); err != nil {
		return err
	}
	if *row < 4 || *row > 1<<20 {
		return cli.Usagef("--row-bytes is %d; it must lie in [4, 1048576]", *row)
	}
	start := time.Now()
	l := measureLimits(t.threads, *row)
	if t.threads == runtime.NumCPU() && *row == machine.RowBytes {
		// The panel of runs shows the limits. If they cannot be saved they are measured again.
		_, _ = machine.Keep(machine.Limits{GFLOPS: l.GFLOPS, CopyGBs: l.CopyGBs, RowGBs: l.RandomGBs})
	}
	out.Result(struct {
		limits
		Seconds float64 `json:"seconds"`
	}{l, time.Since(start).Seconds()})
	out.Printf("%d threads: %.0f GFLOP/s, copy %.1f GB/s (read and written), random rows of %d bytes %.1f GB/s\n", l.Threads, l.GFLOPS, l.CopyGBs, l.RandomRows, l.RandomGBs)
	return nil
}

// limitRuns is the number of measurements of a limit; the best one counts.
const limitRuns = 7

// copyGBs returns the bandwidth of a copy between two tables much larger than caches, in 10⁹ bytes
// read and written per second.
func copyGBs(threads int) float64 {
	const n = 1 << 26 // float32: 256 MiB
	src, dst := make([]float32, n), make([]float32, n)
	fill(threads, src)
	fill(threads, dst)
	return best(2*4*n, func() {
		parallel.For(threads, n, 1<<18, func(lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
	})
}

// randomRowGBs returns the rate at which random rows of a table of 1 GiB are copied into
// consecutive memory, with prefetch, in 10⁹ bytes of rows per second.
func randomRowGBs(threads, rowBytes int) float64 {
	const table, picked = 1 << 28, 1 << 24 // float32: 1 GiB and 64 MiB
	row := rowBytes / 4
	t := simd.Rows{Data: make([]float32, table), Stride: row}
	fill(threads, t.Data)
	ids := make([]int32, picked/row)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range ids {
		ids[i] = r.Int32N(int32(table / row))
	}
	dst := make([]float32, len(ids)*row)
	fill(threads, dst)
	return best(4*float64(len(dst)), func() {
		parallel.For(threads, len(ids), max(1, 1<<16/row), func(lo, hi int) {
			simd.GatherRows(dst[lo*row:hi*row], &t, row, ids[lo:hi])
		})
	})
}

// fill touches every page.
func fill(threads int, v []float32) {
	parallel.For(threads, len(v), 1<<20, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			v[i] = 1
		}
	})
}

// best is the highest rate of several runs of f, each of which moves the given number of bytes.
func best(bytes float64, f func()) float64 {
	rate := 0.0
	for range limitRuns {
		start := time.Now()
		f()
		rate = max(rate, bytes/time.Since(start).Seconds()/1e9)
	}
	return rate
}
