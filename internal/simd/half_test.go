package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// halfValue returns the number that a float16's bits represent, by the format's definition.
func halfValue(h uint16) float64 {
	m, e := float64(h&0x3ff), int(h>>10&31)
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		m = math.Inf(1)
	case e == 0:
		m = math.Ldexp(m, -24)
	default:
		m = math.Ldexp(m+1024, e-25)
	}
	if h>>15 != 0 {
		return -m
	}
	return m
}

// Every float16 becomes the equal float32 and, converted back, itself.
func TestFromHalf(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	onPaths(t, func(t *testing.T) {
		for _, n := range append(sizes, len(all)) {
			n = min(n, len(all))
			got := make([]float32, n)
			FromHalf(got, all[len(all)-n:])
			back := make([]uint16, n)
			ToHalf(back, got)
			for i, h := range all[len(all)-n:] {
				want := float32(halfValue(h))
				if math.IsNaN(float64(want)) {
					if !math.IsNaN(float64(got[i])) || back[i]&0x7c00 != 0x7c00 || back[i]&0x3ff == 0 || math.Float32bits(got[i])&0x400000 == 0 {
						t.Fatalf("the NaN %#x becomes %#x and then %#x", h, math.Float32bits(got[i]), back[i])
					}
					continue
				}
				if math.Float32bits(got[i]) != math.Float32bits(want) || back[i] != h {
					t.Fatalf("%#x becomes %g and then %#x, want %g", h, got[i], back[i], want)
				}
			}
		}
	})
}

// A number between two float16 is rounded to the nearer one, and from the middle to the even one.
func TestToHalf(t *testing.T) {
	to := func(x float32) uint16 {
		var h [1]uint16
		ToHalf(h[:], []float32{x})
		return h[0]
	}
	for h := range uint16(0x7bff) {
		low, high := halfValue(h), halfValue(h+1)
		mid := float32((low + high) / 2) // exactly the middle
		even := h + h&1
		for _, c := range []struct {
			x    float32
			want uint16
		}{{mid, even}, {math.Nextafter32(mid, 0), h}, {math.Nextafter32(mid, 1e9), h + 1}} {
			if got := to(c.x); got != c.want {
				t.Fatalf("%g, between %g and %g, becomes %#x, want %#x", c.x, low, high, got, c.want)
			}
			if got := to(-c.x); got != c.want|0x8000 {
				t.Fatalf("%g becomes %#x, want %#x", -c.x, got, c.want|0x8000)
			}
		}
	}
	inf := float32(math.Inf(1))
	for x, want := range map[float32]uint16{MaxHalf: 0x7bff, 65519.99: 0x7bff, 65520: 0x7c00, 1e38: 0x7c00, inf: 0x7c00, -inf: 0xfc00, 0x1p-25: 0, 0x1.000002p-25: 1, 1e-30: 0} {
		if got := to(x); got != want {
			t.Errorf("%g becomes %#x, want %#x", x, got, want)
		}
	}
}

// Sums and gathered rows of a float16 table have the bits of those of the table converted to
// float32, on every path.
func TestHalfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rows = 23
	for _, cols := range append(slices.Clone(sizes[1:]), 100, 128, 300) {
		half := make([]uint16, rows*cols)
		for i := range half {
			half[i] = uint16(r.Uint32()) &^ 0x4000 // finite, of many magnitudes
		}
		table := make([]float32, len(half))
		for i, h := range half {
			table[i] = float32(halfValue(h))
		}
		via, ids, at := make([]int32, rows), make([]int32, 41), make([]int32, 41)
		w := make([]float32, 41)
		for i := range via {
			via[i] = r.Int32N(rows)
		}
		for i := range ids {
			ids[i], at[i], w[i] = r.Int32N(rows), r.Int32N(41), float32(r.IntN(5)-1)/3
		}
		indptr := []int64{3, 3, 10, 11, 44}
		onPaths(t, func(t *testing.T) {
			for _, names := range [][]int32{nil, via} {
				f, h := &Rows{Data: table, Stride: cols, Via: names}, &Rows{Half: half, Stride: cols, Via: names}
				if h.Holds([]int32{rows}, cols) || !h.Holds([]int32{rows - 1}, cols) {
					t.Fatal("the table has a wrong number of rows")
				}
				for name, op := range map[string]func(o []float32, t *Rows){
					"SumRows":                 func(o []float32, t *Rows) { SumRows(o[:cols], t, ids, 17, 0.3, false) },
					"SumRows, added":          func(o []float32, t *Rows) { SumRows(o[:cols], t, ids, len(ids), 1, true) },
					"WeightedSumRows":         func(o []float32, t *Rows) { WeightedSumRows(o[:cols], t, ids, 20, w, 2, nil, false) },
					"WeightedSumRows by at":   func(o []float32, t *Rows) { WeightedSumRows(o[:cols], t, ids, len(ids), w, 1, at, true) },
					"SumSegments":             func(o []float32, t *Rows) { SumSegments(o[:4*cols], t, cols, indptr, ids, true, false) },
					"WeightedSumSegments":     func(o []float32, t *Rows) { WeightedSumSegments(o[:4*cols], t, cols, indptr, ids, w, nil, false) },
					"WeightedSumSegments, at": func(o []float32, t *Rows) { WeightedSumSegments(o[:4*cols], t, cols, indptr, ids, w, at, true) },
					"GatherRows":              func(o []float32, t *Rows) { GatherRows(o[:len(ids)*cols], t, cols, ids) },
					"GatherRowsFar":           func(o []float32, t *Rows) { GatherRowsFar(o[:len(ids)*cols], t, cols, ids) },
				} {
					got, want := make([]float32, 41*cols+9), make([]float32, 41*cols+9)
					for i := range got {
						got[i] = float32(i)
					}
					copy(want, got)
					op(got, h)
					op(want, f)
					for i := range got {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("%s of %d columns, names %v: element %d is %g, want %g", name, cols, names != nil, i, got[i], want[i])
						}
					}
				}
			}
		})
	}
}

func BenchmarkHalfRows(b *testing.B) {
	const rows, n, cols = 1 << 18, 1 << 16, 100
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(rows)
	}
	indptr := make([]int64, n/16+1)
	for i := range indptr {
		indptr[i] = int64(16 * i)
	}
	out := make([]float32, n*cols)
	for name, t := range map[string]*Rows{
		"f32": {Data: make([]float32, rows*cols), Stride: cols},
		"f16": {Half: make([]uint16, rows*cols), Stride: cols},
	} {
		b.Run(fmt.Sprintf("gather/%s", name), func(b *testing.B) {
			for b.Loop() {
				GatherRows(out, t, cols, ids)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
		b.Run(fmt.Sprintf("sum/%s", name), func(b *testing.B) {
			for b.Loop() {
				SumSegments(out[:n/16*cols], t, cols, indptr, ids, true, false)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
