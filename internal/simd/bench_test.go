package simd

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// report runs f many times and reports the rate at the 90th percentile of the runs: on a shared
// machine the mean depends mostly on other programs.
func report(b *testing.B, amount float64, unit string, f func()) {
	b.ReportAllocs()
	times := make([]float64, 0, 1<<16)
	for b.Loop() {
		start := time.Now()
		f()
		if len(times) < cap(times) {
			times = append(times, time.Since(start).Seconds())
		}
	}
	slices.Sort(times)
	b.ReportMetric(amount/times[len(times)/10]/1e9, unit)
}

func eachPath(b *testing.B, f func(b *testing.B)) {
	for p := Go; p <= Best(); p++ {
		b.Run(p.String(), func(b *testing.B) {
			defer Use(Use(p))
			f(b)
		})
	}
}

// The rate at which one thread reads random rows of a table too large for any cache, compared with
// the machine's limit.
func BenchmarkRows(b *testing.B) {
	const table, n, deg = 1 << 26, 1 << 13, 16
	r := testRand()
	data := touched(1, table)
	for _, cols := range []int{16, 100, 128, 256} {
		limit := RandomRowGBs(1, 4*cols)
		tab := &Rows{Data: data, Stride: cols}
		ids := make([]int32, 16*n)
		for i := range ids {
			ids[i] = r.Int32N(int32(table / cols))
		}
		weights, args, at := touched(1, table/cols), make([]uint32, table), make([]int32, 16*n)
		o, out := make([]float32, cols), make([]float32, n*cols)
		part := 0
		next := func() []int32 { // other rows each time, too many for any cache
			part = (part + 1) % 16
			return ids[part*n : (part+1)*n]
		}
		for _, k := range []struct {
			name string
			rows float64 // number of rows read per id
			run  func(ids []int32)
		}{
			{"SumRows", 1, func(ids []int32) { SumRows(o, tab, ids, deg, 1, false) }},
			{"WeightedSumRows", 1, func(ids []int32) { WeightedSumRows(o, tab, ids, deg, weights, 1, ids, false) }},
			{"SumRowsWhere", 2, func(ids []int32) { SumRowsWhere(o, tab, ids, deg, args, at, false) }},
			{"MaxRows", 1, func(ids []int32) { MaxRows(o, nil, tab, ids, deg, 0) }},
			{"DotRows", 1, func(ids []int32) { DotRows(out, 1, o, tab, ids, deg) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", k.name, cols), func(b *testing.B) {
				eachPath(b, func(b *testing.B) {
					report(b, k.rows*4*n*float64(cols), "GB/s", func() {
						for ids := next(); len(ids) > 0; ids = ids[deg:] {
							k.run(ids)
						}
					})
					b.ReportMetric(limit, "limit-GB/s")
				})
			})
		}
		for name, gather := range map[string]func([]float32, *Rows, int, []int32){"GatherRows": GatherRows, "GatherRowsFar": GatherRowsFar} {
			b.Run(fmt.Sprintf("%s/%d", name, cols), func(b *testing.B) {
				eachPath(b, func(b *testing.B) {
					report(b, 4*n*float64(cols), "GB/s", func() { gather(out, tab, cols, next()) })
					b.ReportMetric(limit, "limit-GB/s")
				})
			})
		}
	}
}

// The speed of kernels over slices in the first-level cache, where instructions are the limit.
func BenchmarkStreams(b *testing.B) {
	const n = 1024
	r := testRand()
	o, x, y, m, v := randoms(r, n, 0), randoms(r, n, 0), randoms(r, n, 0), make([]float32, n), make([]float32, n)
	bits := randomBits(r, n)
	step := AdamStep{Scale: 1, B1: 0.9, C1: 0.1, B2: 0.999, C2: 0.001, Keep: 1, Size: 1e-6, Root: 1, Eps: 1e-8}
	for _, k := range []struct {
		name string
		run  func()
	}{
		{"Add", func() { Add(o, x) }},
		{"Axpy", func() { Axpy(o, x, 1e-9) }},
		{"Plus", func() { Plus(o, x, y, false) }},
		{"ReLUGrad", func() { ReLUGrad(o, x, y, false) }},
		{"Mask", func() { Mask(o, x, bits, 2, false) }},
		{"KeepReLU", func() { KeepReLU(o, x, bits, 1) }},
		{"KeepBits", func() { KeepBits(bits, 1, [4]uint32{2, 0, 3, 4}, 1<<15) }},
		{"Dot", func() { o[0] = Dot(x, y) }},
		{"Sum", func() { o[0] = float32(Sum(x)) }},
		{"Exp", func() { Exp(o, x, 0) }},
		{"LogSoftmax", func() { LogSoftmax(o, x) }},
		{"LogSoftmaxGrad", func() { LogSoftmaxGrad(o, x, y, false) }},
		{"Adam", func() { Adam(o, m, v, x, &step) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			eachPath(b, func(b *testing.B) {
				const times = 16 // long compared with reading the clock
				report(b, times*n, "Gelem/s", func() {
					for range times {
						k.run()
					}
				})
			})
		})
	}
}

// Layer norm of a matrix too large for any cache, on one thread: nanoseconds per element, and the
// rate of the bytes read and written once each, compared with a copy's rate.
func BenchmarkNorm(b *testing.B) {
	const size = 1 << 24
	x, dy, y, dx := touched(1, size), touched(1, size), touched(1, size), touched(1, size)
	for i := range x {
		x[i], dy[i] = float32(i%13)-6, float32(i%7)-3
	}
	for _, cols := range []int{100, 128, 256} {
		rows := size / cols
		inv := make([]float32, rows)
		n := rows * cols
		for _, k := range []struct {
			name  string
			moved float64 // number of float32 moved per element
			run   func()
		}{
			{"NormRows", 2, func() { NormRows(y[:n], inv, x[:n], cols, 1e-5) }},
			{"NormRowsGrad", 3, func() { NormRowsGrad(dx[:n], dy[:n], y[:n], inv, cols, false) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", k.name, cols), func(b *testing.B) {
				eachPath(b, func(b *testing.B) {
					limit := CopyGBs(1)
					times := []float64{}
					for b.Loop() {
						start := time.Now()
						k.run()
						times = append(times, time.Since(start).Seconds())
					}
					slices.Sort(times)
					t := times[len(times)/10]
					b.ReportMetric(1e9*t/float64(n), "ns/elem")
					b.ReportMetric(4e-9*k.moved*float64(n)/t, "GB/s")
					b.ReportMetric(limit, "copy-GB/s")
				})
			})
		}
	}
}
