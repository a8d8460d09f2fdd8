package gemm

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// shape is a product of the engine.
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

func shapes() []shape {
	if env := os.Getenv("GEMM_SHAPE"); env != "" { // m,k,n[,tA][,tB]
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

var peakOf = sync.OnceValue(func() [3]float64 { return [3]float64{0, PeakGFLOPS(1), PeakGFLOPS(2)} })

// BenchmarkMultiply reports the rate of the fastest call and its share of the
// measured peak: the machine may be busy with other things.
func BenchmarkMultiply(b *testing.B) {
	for _, s := range shapes() {
		for threads := 1; threads <= 2; threads++ {
			b.Run(fmt.Sprintf("%v/threads=%d", s, threads), func(b *testing.B) {
				fill := func(n int) []float32 {
					x := make([]float32, n)
					for i := range x {
						x[i] = float32(i%7) - 3
					}
					return x
				}
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
				best := 0.0
				terms := []Term{{K: s.k, A: a, B: w}}
				b.ReportAllocs()
				for b.Loop() {
					begin := time.Now()
					Multiply(s.m, s.n, c, s.n, terms, Options{Threads: threads, BF16: os.Getenv("GEMM_BF16") != ""})
					best = max(best, flops/time.Since(begin).Seconds()/1e9)
				}
				b.ReportMetric(best, "GFLOP/s")
				b.ReportMetric(100*best/peakOf()[threads], "%peak")
			})
		}
	}
}

func BenchmarkPeak(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(PeakGFLOPS(1), "GFLOP/s/1")
		b.ReportMetric(PeakGFLOPS(2), "GFLOP/s/2")
	}
}
