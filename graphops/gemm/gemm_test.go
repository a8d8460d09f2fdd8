package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// matrix is a test operand with the logical values beside it.
type matrix struct {
	rows, cols int
	at         []float64 // [rows, cols]
	op         Operand
}

// random makes a factor [rows,cols] with the given storage: not aligned, with
// NaN wherever nothing may be read.
func random(r *rand.Rand, rows, cols int, trans, indexed bool) matrix {
	m := matrix{rows: rows, cols: cols, at: make([]float64, rows*cols)}
	sr, sc := rows, cols
	if trans {
		sr, sc = cols, rows
	}
	stride, have := sc+r.IntN(4), sr
	if indexed {
		have = sr + 3
		m.op.Index = make([]int32, sr)
		for i, p := range r.Perm(have)[:sr] {
			m.op.Index[i] = int32(p)
		}
	}
	off := r.IntN(5)
	data := make([]float32, off+have*stride+5)
	for i := range data {
		data[i] = float32(math.NaN())
	}
	m.op.Data, m.op.Stride, m.op.Trans = data[off:off+have*stride], stride, trans
	for i := range rows {
		for j := range cols {
			v := float32(r.NormFloat64())
			m.at[i*cols+j] = float64(v)
			si, sj := i, j
			if trans {
				si, sj = j, i
			}
			if indexed {
				si = int(m.op.Index[si])
			}
			m.op.Data[si*stride+sj] = v
		}
	}
	return m
}

type testCase struct {
	m, n           int
	k              []int // one a term
	tA, tB, iA, iB bool
	acc, bias      bool
	threads        int
}

func (tc testCase) String() string {
	return fmt.Sprintf("%dx%dx%v tA=%v tB=%v iA=%v iB=%v acc=%v bias=%v threads=%d",
		tc.m, tc.n, tc.k, tc.tA, tc.tB, tc.iA, tc.iB, tc.acc, tc.bias, tc.threads)
}

// run computes the case and compares it with a float64 sum. It returns the bits.
func (tc testCase) run(t *testing.T, seed uint64) []float32 {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	want, size := make([]float64, tc.m*tc.n), make([]float64, tc.m*tc.n)
	terms := make([]Term, len(tc.k))
	depth := 0
	for i, k := range tc.k {
		a, b := random(r, tc.m, k, tc.tA, tc.iA), random(r, k, tc.n, tc.tB, tc.iB)
		terms[i] = Term{K: k, A: a.op, B: b.op}
		depth += k
		for i := range tc.m {
			for p := range k {
				for j := range tc.n {
					v := a.at[i*k+p] * b.at[p*tc.n+j]
					want[i*tc.n+j] += v
					size[i*tc.n+j] += math.Abs(v)
				}
			}
		}
	}
	o := Options{Threads: tc.threads, Acc: tc.acc}
	if tc.bias {
		o.Bias = make([]float32, tc.n)
		for j := range o.Bias {
			o.Bias[j] = float32(r.NormFloat64())
		}
	}
	ldc, off := tc.n+r.IntN(4), r.IntN(5)
	c := make([]float32, off+tc.m*ldc+5)
	for i := range c {
		c[i] = float32(math.NaN())
	}
	out := c[off : off+tc.m*ldc]
	for i := range tc.m {
		for j := range tc.n {
			if tc.acc {
				v := float32(r.NormFloat64())
				out[i*ldc+j] = v
				want[i*tc.n+j] += float64(v)
				size[i*tc.n+j] += math.Abs(float64(v))
			}
			if tc.bias {
				want[i*tc.n+j] += float64(o.Bias[j])
				size[i*tc.n+j] += math.Abs(float64(o.Bias[j]))
			}
		}
	}
	var before, after ranges
	o.Before, o.After = before.add, after.add
	Multiply(tc.m, tc.n, out, ldc, terms, o)

	// A sum of d rounded products is off by at most (d+2)·2⁻²⁴·Σ|terms|, to first order.
	tol := float64(depth+3) * 0x1p-24
	got := make([]float32, tc.m*tc.n)
	for i := range tc.m {
		for j := range tc.n {
			v := out[i*ldc+j]
			got[i*tc.n+j] = v
			if w := want[i*tc.n+j]; !(math.Abs(float64(v)-w) <= tol*size[i*tc.n+j]) {
				t.Fatalf("%v: C[%d,%d] is %v, want %v ± %.2g", tc, i, j, v, w, tol*size[i*tc.n+j])
			}
		}
	}
	for i, v := range c {
		if p := i - off; p >= 0 && p < len(out) && p%ldc < tc.n {
			continue
		}
		if v == v {
			t.Fatalf("%v: element %d outside of C was written", tc, i-off)
		}
	}
	after.covers(t, tc, "After", tc.m)
	if len(terms) > 0 {
		rows := tc.m
		if tc.tA {
			rows = tc.k[0]
		}
		before.covers(t, tc, "Before", rows)
	}
	return got
}

// ranges records the ranges of a hook.
type ranges struct {
	mu   sync.Mutex
	list [][2]int
}

func (r *ranges) add(lo, hi int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, [2]int{lo, hi})
}

func (r *ranges) covers(t *testing.T, tc testCase, name string, rows int) {
	t.Helper()
	seen := make([]int, rows)
	for _, g := range r.list {
		for i := g[0]; i < g[1]; i++ {
			seen[i]++
		}
	}
	for i, s := range seen {
		if s != 1 {
			t.Fatalf("%v: %s saw row %d %d times", tc, name, i, s)
		}
	}
}

// sides are the interesting lengths: none, one, primes, and around tiles of 4,
// 6, 12, 16 and 32.
var sides = []int{0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 64, 65, 97}

func TestMultiplyAtOddShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for seed := range uint64(400) {
		tc := testCase{
			m: sides[r.IntN(len(sides))], n: sides[r.IntN(len(sides))], k: []int{sides[r.IntN(len(sides))]},
			tA: r.IntN(2) == 0, tB: r.IntN(2) == 0, iA: r.IntN(4) == 0, iB: r.IntN(4) == 0,
			acc: r.IntN(2) == 0, bias: r.IntN(2) == 0, threads: 1 + r.IntN(3),
		}
		for r.IntN(3) == 0 {
			tc.k = append(tc.k, sides[r.IntN(len(sides))])
		}
		tc.run(t, seed)
	}
}
