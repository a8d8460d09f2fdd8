package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

var _ blas.Float32 = BLAS{}

// Sgemm against gonum's, with which it shares the meaning of every argument.
func TestSgemmIsGonums(t *testing.T) { onEachPath(t, testSgemm) }

func testSgemm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	fill := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = float32(r.NormFloat64())
		}
		return s
	}
	for _, d := range [][3]int{{0, 3, 2}, {1, 1, 1}, {5, 7, 0}, {13, 33, 17}, {64, 48, 100}} {
		m, n, k := d[0], d[1], d[2]
		for _, tA := range []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans} {
			for _, tB := range []blas.Transpose{blas.NoTrans, blas.Trans} {
				for _, alpha := range []float32{0, 1, -0.5} {
					for _, beta := range []float32{0, 1, 2.5} {
						side := max(m, n, k) + 3
						a, b, c := fill(side*side), fill(side*side), fill(side*side)
						if beta == 0 && len(c) > 0 {
							c[0] = float32(math.NaN())
						}
						want := append([]float32(nil), c...)
						if beta == 0 { // gonum multiplies by 0 in some versions
							want[0] = 0
						}
						gonum.Implementation{}.Sgemm(tA, tB, m, n, k, alpha, a, side, b, side, beta, want, side)
						BLAS{}.Sgemm(tA, tB, m, n, k, alpha, a, side, b, side, beta, c, side)
						for i := range c {
							if i%side >= n || i/side >= m {
								continue
							}
							if d := math.Abs(float64(c[i] - want[i])); !(d <= 1e-4) {
								t.Fatalf("%v %c %c alpha %v beta %v: element %d is %v, gonum has %v", d, tA, tB, alpha, beta, i, c[i], want[i])
							}
						}
					}
				}
			}
		}
	}
}

func TestSgemmPanicsAsGonum(t *testing.T) {
	caught := func(f func()) (r any) {
		defer func() { r = recover() }()
		f()
		return nil
	}
	a := make([]float32, 6)
	for _, args := range [][5]int{{-1, 2, 2, 2, 2}, {2, 3, 2, 1, 3}, {2, 3, 3, 3, 3}, {4, 3, 2, 2, 3}} {
		call := func(s blas.Float32) func() {
			return func() {
				s.Sgemm(blas.NoTrans, blas.NoTrans, args[0], args[1], args[2], 1, a, args[3], a, args[4], 0, a, 3)
			}
		}
		got, want := caught(call(BLAS{})), caught(call(gonum.Implementation{}))
		if got == nil || got != want {
			t.Errorf("%v: panic %v, gonum's %v", args, got, want)
		}
	}
}

func ExampleBLAS() {
	blas32.Use(BLAS{Threads: 2})
	defer blas32.Use(gonum.Implementation{})
	a := blas32.General{Rows: 1, Cols: 2, Stride: 2, Data: []float32{1, 2}}
	b := blas32.General{Rows: 2, Cols: 1, Stride: 1, Data: []float32{3, 4}}
	c := blas32.General{Rows: 1, Cols: 1, Stride: 1, Data: make([]float32, 1)}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c)
	fmt.Println(c.Data)
	// Output: [11]
}
