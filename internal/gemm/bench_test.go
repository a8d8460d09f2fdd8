package gemm

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shape is a matrix product that the training engine computes.
type shape struct {
	m, n, k int
	tA, tB  bool
}

func (s shape) String() string {
	name := fmt.Sprintf("%dx%dx%d", s.m, s.k, s.n)
	if s.tA {
		name += "_dW"
	}
	if !s.tA && !s.tB {
		name += "_dX"
	}
	return name
}

// shapes returns the engine's shapes, or the shape in GEMM_SHAPE=m,k,n[,tA][,tB].
func shapes() []shape {
	if env := os.Getenv("GEMM_SHAPE"); env != "" {
		f := strings.Split(env, ",")
		num := func(i int) int { v, _ := strconv.Atoi(f[i]); return v }
		return []shape{{num(0), num(2), num(1), strings.Contains(env, "tA"), strings.Contains(env, "tB")}}
	}
	return []shape{
		{1024, 1024, 1024, false, false},
		{65536, 256, 100, false, true},
		{65536, 256, 128, false, true},
		{65536, 256, 256, false, true},
		{33529, 256, 128, false, true},
		{7334, 256, 256, false, true},
		{1024, 47, 256, false, true},
		{33529, 256, 256, false, false},
		{256, 128, 65536, true, false},
		{256, 256, 33529, true, false},
		{256, 256, 7334, true, false},
		{47, 256, 1024, true, false},
		{128, 256, 169343, true, false},
		{2708, 16, 1433, false, true},
		{2708, 7, 16, false, true},
	}
}

// BenchmarkMultiply reports the median rate, the best rate, and the median share of the peak, which
// is measured just before and after each product: on a shared machine, or if the frequency changes,
// both change alike.
func BenchmarkMultiply(b *testing.B) { benchmark(b, false) }

// BenchmarkMultiplyBF16 does the same in bfloat16; the peak is still float32's.
func BenchmarkMultiplyBF16(b *testing.B) { benchmark(b, true) }

func benchmark(b *testing.B, bf16 bool) {
	fill := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i%7) - 3
		}
		return x
	}
	for _, s := range shapes() {
		a := Operand{Data: fill(s.m * s.k), Stride: s.k, Trans: s.tA}
		if s.tA {
			a.Stride = s.m
		}
		w := Operand{Data: fill(s.k * s.n), Stride: s.n, Trans: s.tB}
		if s.tB {
			w.Stride = s.k
		}
		c := make([]float32, s.m*s.n)
		flops := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		reps := int(1e8/flops) + 1 // half a millisecond or more between two measurements of the peak
		terms := []Term{{K: s.k, A: a, B: w}}
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%v/threads=%d", s, threads), func(b *testing.B) {
				var rates, shares []float64
				o := Options{Threads: threads, BF16: bf16}
				Multiply(s.m, s.n, c, s.n, terms, o)
				peak := peakNow(active.Load(), threads)
				b.ReportAllocs()
				for b.Loop() {
					begin := time.Now()
					for range reps {
						Multiply(s.m, s.n, c, s.n, terms, o)
					}
					rate := flops * float64(reps) / time.Since(begin).Seconds() / 1e9
					b.StopTimer()
					after := peakNow(active.Load(), threads)
					rates, shares = append(rates, rate), append(shares, 200*rate/(peak+after))
					peak = after
					b.StartTimer()
				}
				slices.Sort(rates)
				slices.Sort(shares)
				b.ReportMetric(rates[len(rates)/2], "GFLOP/s")
				b.ReportMetric(rates[len(rates)-1], "best-GFLOP/s")
				b.ReportMetric(shares[len(shares)/2], "%peak")
			})
		}
	}
}

func BenchmarkPeak(b *testing.B) {
	for threads := 1; threads <= 2; threads++ {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			best := 0.0
			for b.Loop() {
				best = max(best, PeakGFLOPS(threads))
			}
			b.ReportMetric(best, "GFLOP/s")
		})
	}
}
