package gemm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// BenchmarkPlain compares the rate of the plain Go kernels, which processors without AVX2 run, with
// gonum's Sgemm on the same matrices, in alternation: it reports the medians of both and of the
// ratio. With -tags noasm gonum is plain Go too, as on arm64.
func BenchmarkPlain(b *testing.B) {
	for _, s := range []shape{
		{256, 256, 256, false, false},
		{1024, 256, 128, false, true},
		{512, 47, 256, false, true},
		{256, 128, 4096, true, false},
	} {
		a := Operand{Data: make([]float32, s.m*s.k), Stride: s.k, Trans: s.tA}
		tA, tB := blas.NoTrans, blas.NoTrans
		if s.tA {
			a.Stride, tA = s.m, blas.Trans
		}
		w := Operand{Data: make([]float32, s.k*s.n), Stride: s.n, Trans: s.tB}
		if s.tB {
			w.Stride, tB = s.k, blas.Trans
		}
		for _, x := range [][]float32{a.Data, w.Data} {
			for i := range x {
				x[i] = float32(i%7) - 2.5 // gonum skips zeros
			}
		}
		c := make([]float32, s.m*s.n)
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			var ours, theirs, ratios []float64
			for b.Loop() {
				begin := time.Now()
				multiply(&plain, s.m, s.n, c, s.n, []Term{{K: s.k, A: a, B: w}}, Options{Threads: 1})
				middle := time.Now()
				gonum.Implementation{}.Sgemm(tA, tB, s.m, s.n, s.k, 1, a.Data, a.Stride, w.Data, w.Stride, 0, c, s.n)
				t, g := middle.Sub(begin).Seconds(), time.Since(middle).Seconds()
				flops := 2e-9 * float64(s.m) * float64(s.n) * float64(s.k)
				ours, theirs, ratios = append(ours, flops/t), append(theirs, flops/g), append(ratios, g/t)
			}
			for _, x := range [][]float64{ours, theirs, ratios} {
				slices.Sort(x)
			}
			b.ReportMetric(ours[len(ours)/2], "GFLOP/s")
			b.ReportMetric(theirs[len(theirs)/2], "gonum-GFLOP/s")
			b.ReportMetric(ratios[len(ratios)/2], "×gonum")
		})
	}
}
