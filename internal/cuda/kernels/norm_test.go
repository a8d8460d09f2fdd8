package kernels

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
)

// words wraps 32-bit words for the reference.
func words(w []uint32) ops.Buffer {
	x := make([]float32, len(w))
	copy(buf(x).Words(), w)
	return buf(x)
}

// normCases returns the cases for the normalisations of rows.
func normCases() []kernelCase {
	norm := func(r, c int) (y, n []float32) {
		y, n = make([]float32, r*c), make([]float32, r)
		cpu.L2Normalize(buf(y), buf(n), buf(matrix(r, c)), r, c)
		return y, n
	}
	unit := func(r, c int) (y, inv []float32) {
		y, inv = make([]float32, r*c), make([]float32, r)
		cpu.RowNorm(buf(y), buf(inv), buf(matrix(r, c)), r, c, 0.1)
		return y, inv
	}
	log := func(r, c int) []float32 {
		y := make([]float32, r*c)
		cpu.LogSoftmax(buf(y), buf(matrix(r, c)), r, c)
		return y
	}
	// plain wraps the reference of a kernel that always overwrites its output.
	plain := func(want func(y []float32, r, c int)) func(out []float32, r, c int, acc bool) {
		return func(out []float32, r, c int, _ bool) { want(out, r, c) }
	}
	return []kernelCase{
		{
			"log_softmax_f32", false, area,
			func(g *gpu, out uint64, r, c int, _ bool) {
				g.run("log_softmax_f32", Held(r, c), out, put(g, matrix(r, c)), r, c)
			},
			plain(func(y []float32, r, c int) { copy(y, log(r, c)) }),
		}, {
			"log_softmax_grad_f32", false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("log_softmax_grad_f32", Held(r, c), out, put(g, matrix2(r, c)), put(g, log(r, c)), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.LogSoftmaxGrad(buf(out), buf(matrix2(r, c)), buf(log(r, c)), r, c, acc)
			},
		}, {
			"l2_normalize_f32", false, area,
			func(g *gpu, out uint64, r, c int, _ bool) {
				_, want := norm(r, c)
				n := g.room(4 * r)
				g.run("l2_normalize_f32", Held(r, c), out, n, put(g, matrix(r, c)), r, c)
				near(g.t, "lengths", get[float32](g, n, r), want, 1)
			},
			plain(func(y []float32, r, c int) { x, _ := norm(r, c); copy(y, x) }),
		}, {
			"l2_normalize_grad_f32", false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				y, n := norm(r, c)
				g.run("l2_normalize_grad_f32", Held(r, c), out, put(g, matrix2(r, c)), put(g, y), put(g, n), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				y, n := norm(r, c)
				cpu.L2NormalizeGrad(buf(out), buf(matrix2(r, c)), buf(y), buf(n), r, c, acc)
			},
		}, {
			"row_norm_f32", false, area,
			func(g *gpu, out uint64, r, c int, _ bool) {
				_, want := unit(r, c)
				inv := g.room(4 * r)
				g.run("row_norm_f32", Held(r, c), out, inv, put(g, matrix(r, c)), r, c, float32(0.1))
				near(g.t, "inverses", get[float32](g, inv, r), want, 1)
			},
			plain(func(y []float32, r, c int) { x, _ := unit(r, c); copy(y, x) }),
		}, {
			"row_norm_grad_f32", false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				y, inv := unit(r, c)
				g.run("row_norm_grad_f32", Held(r, c), out, put(g, matrix2(r, c)), put(g, y), put(g, inv), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				y, inv := unit(r, c)
				cpu.RowNormGrad(buf(out), buf(matrix2(r, c)), buf(y), buf(inv), r, c, acc)
			},
		},
	}
}

// Lengths of tiny and of huge rows are right, because sums are in double precision; single
// precision would underflow or overflow.
func TestNormRange(t *testing.T) {
	each(t, func(g *gpu) {
		for _, size := range []float32{1e-25, 1e-13, 1e25} {
			x := []float32{3 * size, 4 * size}
			out, n := g.room(8), g.room(4)
			g.run("l2_normalize_f32", Held(1, 2), out, n, put(g, x), 1, 2)
			want, length := make([]float32, 2), make([]float32, 1)
			cpu.L2Normalize(buf(want), buf(length), buf(x), 1, 2)
			got := get[float32](g, out, 2)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-6*math.Abs(float64(want[i])) {
					g.t.Errorf("%g normalised is %g, want %g", x, got, want)
				}
			}
		}
	})
}

// The kernels that turn a column norm's sums into means, variances and running statistics give the
// CPU's bits.
func TestColumnMoments(t *testing.T) {
	each(t, func(g *gpu) {
		const rows, eps = 7, 1e-5
		for _, n := range []int{0, 1, 31, 33, 1025} {
			sum := random(n, 1)
			stat, of, at := make([]float32, n), make([]float32, n), put(g, sum)
			mean, minus := g.room(4*n), g.room(4*n)
			g.run("col_means_f32", Items(n), mean, minus, at, n, rows)
			cpu.ColMeans(buf(stat), buf(of), buf(sum), rows)
			same(g, "col_means_f32 mean", mean, stat, 0, n)
			same(g, "col_means_f32 minus", minus, of, 0, n)
			for i := range sum {
				sum[i] *= sum[i]
			}
			at = put(g, sum)
			variance, inv := g.room(4*n), g.room(4*n)
			g.run("col_inverses_f32", Items(n), variance, inv, at, n, rows, float64(eps))
			cpu.ColInverses(buf(stat), buf(of), buf(sum), rows, eps)
			same(g, "col_inverses_f32 variance", variance, stat, 0, n)
			same(g, "col_inverses_f32 inv", inv, of, 0, n)

			x := random(n, 2)
			y := put(g, sum)
			g.run("track_f32", Items(n), y, put(g, x), n, 0.9, 0.1*7/6)
			cpu.Track(buf(sum), buf(x), 0.9, 0.1*7/6)
			same(g, "track_f32", y, sum, 0, n)
		}
	})
}
