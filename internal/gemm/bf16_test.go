package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

func onEachBF16Path(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	defer forcedBF16.Store(nil)
	for i, p := range bf16Paths() {
		t.Run(fmt.Sprintf("%s %d", p.name, i), func(t *testing.T) {
			forcedBF16.Store(p)
			f(t)
		})
	}
}

func TestRoundBF16(t *testing.T) {
	for _, c := range []struct{ in, want uint32 }{
		{0, 0},
		{0x80000000, 0x80000000},
		{0x3f800000, 0x3f800000},
		{0x3f807fff, 0x3f800000},
		{0x3f808000, 0x3f800000}, // a tie, rounded to even
		{0x3f818000, 0x3f820000},
		{0x3f808001, 0x3f810000},
		{0x7f7fffff, 0x7f800000}, // rounded to infinity
		{0x7f800000, 0x7f800000},
		{0xff800000, 0xff800000},
		{0x00000001, 0},
	} {
		if got := math.Float32bits(RoundBF16(math.Float32frombits(c.in))); got != c.want {
			t.Errorf("%08x is rounded to %08x, want %08x", c.in, got, c.want)
		}
	}
	if v := RoundBF16(math.Float32frombits(0x7f800001)); v == v {
		t.Errorf("a NaN is rounded to %v", v)
	}
}

// A product with 1 shows the rounding of each element, for every layout of the factors.
func TestBF16RoundsAsRoundBF16(t *testing.T) {
	onEachBF16Path(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 5))
		const rows = 333
		x, c := make([]float32, rows), make([]float32, rows)
		for i := range x {
			for {
				x[i] = math.Float32frombits(r.Uint32())
				if i%3 == 0 { // a tie
					x[i] = math.Float32frombits(r.Uint32()&^0xffff | 0x8000)
				}
				if a := math.Abs(float64(x[i])); a > 1e-30 && a < 1e30 {
					break
				}
			}
		}
		one := Operand{Data: []float32{1}, Stride: 1}
		check := func(name string, m, n int, a, b Operand) {
			Multiply(m, n, c, n, []Term{{K: 1, A: a, B: b}}, Options{BF16: true})
			for i := range c {
				if want := RoundBF16(x[i]); c[i] != want {
					t.Fatalf("%s: %v is rounded to %v, want %v", name, x[i], c[i], want)
				}
			}
		}
		check("A", rows, 1, Operand{Data: x, Stride: 1}, one)
		check("A transposed", rows, 1, Operand{Data: x, Stride: rows, Trans: true}, one)
		check("B", 1, rows, one, Operand{Data: x, Stride: rows})
		check("B transposed", 1, rows, one, Operand{Data: x, Stride: 1, Trans: true})
	})
}

func TestBF16AtOddShapes(t *testing.T) {
	onEachBF16Path(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		for seed := range uint64(300) {
			tc := oddCase(r)
			tc.bf16 = true
			tc.run(t, seed)
		}
	})
}

func TestBF16CutsLargeShapes(t *testing.T) {
	testneed.NotShort(t, "it multiplies large matrices")
	onEachBF16Path(t, func(t *testing.T) {
		for i, tc := range largeCases {
			tc.bf16, tc.threads = true, 1
			want := tc.run(t, uint64(i))
			tc.threads, tc.onlyBits = 3, true
			same(t, tc.String(), tc.run(t, uint64(i)), want)
		}
	})
}

// Infinities and NaN reach the result, and padding adds none.
func TestBF16KeepsNaN(t *testing.T) {
	onEachBF16Path(t, func(t *testing.T) {
		const m, n, k = 19, 35, 21
		a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
		for i := range b {
			b[i] = 1
		}
		a[3*k], a[17*k+6] = float32(math.NaN()), float32(math.Inf(-1))
		Multiply(m, n, c, n, []Term{{K: k, A: Operand{Data: a, Stride: k}, B: Operand{Data: b, Stride: n}}}, Options{BF16: true})
		for i, v := range c {
			ok := v == 0
			switch i / n {
			case 3:
				ok = v != v
			case 17:
				ok = math.IsInf(float64(v), -1)
			}
			if !ok {
				t.Fatalf("C[%d,%d] is %v", i/n, i%n, v)
			}
		}
	})
}
