package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/fence"
	"github.com/graphnb/graphnb/internal/testneed"
)

// matrix is a test operand together with its logical values.
type matrix struct {
	rows, cols int
	at         []float64 // [rows, cols]
	op         Operand
}

// random returns a factor [rows,cols] with the given storage: an unreadable page follows its last
// element, and every element that the product may not use is NaN.
func random(t *testing.T, r *rand.Rand, rows, cols int, trans, indexed bool) matrix {
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
	data := fence.Slice[float32](t, span(have, sc, stride))
	for i := range data {
		data[i] = float32(math.NaN())
	}
	m.op.Data, m.op.Stride, m.op.Trans = data, stride, trans
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

// span returns the number of elements from the first to the last of a matrix.
func span(rows, cols, stride int) int {
	if rows == 0 || cols == 0 {
		return 0
	}
	return (rows-1)*stride + cols
}

// round rounds the logical values to bfloat16.
func (m *matrix) round() {
	for i, v := range m.at {
		m.at[i] = float64(RoundBF16(float32(v)))
	}
}

type testCase struct {
	m, n           int
	k              []int // one per term
	tA, tB, iA, iB bool
	acc, bias      bool
	bf16           bool
	threads        int
	onlyBits       bool // skip the comparison with the reference
}

func (tc testCase) String() string {
	return fmt.Sprintf("%dx%dx%v tA=%v tB=%v iA=%v iB=%v acc=%v bias=%v bf16=%v threads=%d",
		tc.m, tc.n, tc.k, tc.tA, tc.tB, tc.iA, tc.iB, tc.acc, tc.bias, tc.bf16, tc.threads)
}

// run computes the case, compares it with a float64 sum and returns the result.
func (tc testCase) run(t *testing.T, seed uint64) []float32 {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	want, size := make([]float64, tc.m*tc.n), make([]float64, tc.m*tc.n)
	terms := make([]Term, len(tc.k))
	depth := 0
	for i, k := range tc.k {
		a, b := random(t, r, tc.m, k, tc.tA, tc.iA), random(t, r, k, tc.n, tc.tB, tc.iB)
		if tc.bf16 {
			a.round()
			b.round()
		}
		terms[i] = Term{K: k, A: a.op, B: b.op}
		depth += k
		for i := range tc.m {
			for p := range k {
				if tc.onlyBits {
					break
				}
				for j := range tc.n {
					v := a.at[i*k+p] * b.at[p*tc.n+j]
					want[i*tc.n+j] += v
					size[i*tc.n+j] += math.Abs(v)
				}
			}
		}
	}
	o := Options{Threads: tc.threads, Acc: tc.acc, BF16: tc.bf16}
	if tc.bias {
		o.Bias = fence.Slice[float32](t, tc.n)
		for j := range o.Bias {
			o.Bias[j] = float32(r.NormFloat64())
		}
	}
	const margin = 5
	ldc := tc.n + r.IntN(4)
	c := fence.Slice[float32](t, margin+span(tc.m, tc.n, ldc))
	for i := range c {
		c[i] = float32(math.NaN())
	}
	out := c[margin:]
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

	// A sum of d rounded products has an error of at most (d+2)·2⁻²⁴·Σ|terms|, to first order.
	tol := float64(depth+3) * 0x1p-24
	got := make([]float32, tc.m*tc.n)
	for i := range tc.m {
		for j := range tc.n {
			v := out[i*ldc+j]
			got[i*tc.n+j] = v
			if w := want[i*tc.n+j]; !tc.onlyBits && !(math.Abs(float64(v)-w) <= tol*size[i*tc.n+j]) {
				t.Fatalf("%v: C[%d,%d] is %v, want %v ± %.2g", tc, i, j, v, w, tol*size[i*tc.n+j])
			}
		}
	}
	for i, v := range c {
		if p := i - margin; p >= 0 && p%ldc < tc.n {
			continue
		}
		if v == v {
			t.Fatalf("%v: element %d outside of C was changed", tc, i-margin)
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

// ranges records the ranges passed to a hook.
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

// sides lists lengths to test: zero, one, primes, and values around tiles of 4, 6, 12, 16 and 32.
var sides = []int{0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 64, 65, 97}

// onEachPath calls f once for each path of this processor.
func onEachPath(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := active.Load()
	defer active.Store(before)
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			active.Store(p)
			f(t)
		})
	}
}

func oddCase(r *rand.Rand) testCase {
	side := func() int { return sides[r.IntN(len(sides))] }
	tc := testCase{
		m: side(), n: side(), k: []int{side()},
		tA: r.IntN(2) == 0, tB: r.IntN(2) == 0, iA: r.IntN(4) == 0, iB: r.IntN(4) == 0,
		acc: r.IntN(2) == 0, bias: r.IntN(2) == 0, threads: 1 + r.IntN(3),
	}
	for r.IntN(3) == 0 {
		tc.k = append(tc.k, side())
	}
	return tc
}

func TestMultiplyAtOddShapes(t *testing.T) {
	var bits [][]float32
	onEachPath(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		var all [][]float32
		for seed := range uint64(400) {
			all = append(all, oddCase(r).run(t, seed))
		}
		if bits != nil && active.Load() != &plain {
			for i := range all {
				same(t, fmt.Sprintf("case %d, %s against %s", i, active.Load().name, paths[0].name), all[i], bits[i])
			}
		}
		bits = all
	})
}

// On some processors, the plain Go path uses higher tiles; the bits are the same.
func TestPlainTilesGiveTheSameBits(t *testing.T) {
	before := active.Load()
	defer active.Store(before)
	for seed := range uint64(100) {
		var want []float32
		for i := range tallKernels {
			p := plain
			p.kernels, p.slimKernels = tallKernels[i:], tallKernels[i:]
			active.Store(&p)
			got := oddCase(rand.New(rand.NewPCG(seed, 9))).run(t, seed)
			if i > 0 {
				same(t, fmt.Sprintf("case %d, tiles of %d rows", seed, p.kernels[0].rows), got, want)
			}
			want = got
		}
	}
}

// Shapes larger than a block, a panel, a chunk of the long sum, or the packed part of B give the
// same bits on any number of threads and on every vector path.
func TestMultiplyCutsLargeShapes(t *testing.T) {
	testneed.NotShort(t, "it multiplies large matrices")
	bits := map[int][]float32{}
	onEachPath(t, func(t *testing.T) {
		for i, tc := range largeCases {
			for _, threads := range []int{1, 3} {
				tc.threads, tc.onlyBits = threads, threads > 1
				got := tc.run(t, uint64(i))
				if threads > 1 || active.Load() != &plain && bits[i] != nil {
					same(t, tc.String(), got, bits[i])
				}
				bits[i] = got
			}
		}
	})
}

var largeCases = []testCase{
	{m: 401, n: 33, k: []int{260}, tB: true, bias: true},
	{m: 500, n: 7, k: []int{530, 3}, tB: true, acc: true},
	{m: 13, n: 420, k: []int{520}, acc: true, bias: true},
	{m: 12, n: 8200, k: []int{3}, tA: true},
	{m: 3, n: 2100, k: []int{1040}},
	{m: 20, n: 17, k: []int{5000}, tA: true, iB: true},
	{m: 40, n: 100, k: []int{512}, tA: true, iA: true, acc: true},
	{m: 1, n: 1, k: []int{3001}, tA: true, bias: true},
	{m: 30, n: 31, k: []int{700, 900}, tA: true},
}

func same(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, not %v to the bit", name, i, got[i], want[i])
		}
	}
}

// NaN and infinities affect exactly the elements that depend on them.
func TestMultiplyKeepsNaN(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		const m, n, k = 13, 35, 9
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
		for i := range b {
			b[i] = 1
		}
		a[2*k+3], a[12*k] = nan, inf
		for i := range c {
			c[i] = nan
		}
		Multiply(m, n, c, n, []Term{{K: k, A: Operand{Data: a, Stride: k}, B: Operand{Data: b, Stride: n}}}, Options{})
		for i := range m {
			for j := range n {
				v := c[i*n+j]
				if ok := v == 0; i == 2 {
					if v == v {
						t.Fatalf("row 2 holds %v, want NaN", v)
					}
				} else if i == 12 {
					if v != inf {
						t.Fatalf("row 12 holds %v, want +Inf", v)
					}
				} else if !ok {
					t.Fatalf("C[%d,%d] is %v, want 0", i, j, v)
				}
			}
		}
	})
}

func TestMultiplyRefusesShortOperands(t *testing.T) {
	ok := func() (m, n int, c []float32, ldc int, term Term, o Options) {
		return 2, 3, make([]float32, 6), 3, Term{K: 4, A: Operand{Data: make([]float32, 8), Stride: 4}, B: Operand{Data: make([]float32, 12), Stride: 3}}, Options{}
	}
	panics := func(name string, m, n int, c []float32, ldc int, term Term, o Options) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		Multiply(m, n, c, ldc, []Term{term}, o)
	}
	m, n, c, ldc, term, o := ok()
	panics("rows", -1, n, c, ldc, term, o)
	panics("C", m, n, c[:5], ldc, term, o)
	panics("ldc", m, n, c, 2, term, o)
	panics("bias", m, n, c, ldc, term, Options{Bias: c[:2]})
	short := term
	short.A.Data = short.A.Data[:7]
	panics("A", m, n, c, ldc, short, o)
	short = term
	short.B.Stride = 2
	panics("B's stride", m, n, c, ldc, short, o)
	short = term
	short.A.Index = []int32{0}
	panics("A's index", m, n, c, ldc, short, o)
	short = term
	short.K = -1
	panics("K", m, n, c, ldc, short, o)
	// Products with these strides would overflow to numbers that pass the check.
	panics("C's wild stride", 5, 1, c, 1<<62, Term{K: 1, A: Operand{Data: c, Stride: 1}, B: Operand{Data: c, Stride: 1}}, o)
	panics("A's wild stride", 5, 1, c, 1, Term{K: 1, A: Operand{Data: c, Stride: 1 << 62}, B: Operand{Data: c, Stride: 1}}, o)
	Multiply(m, n, c, ldc, []Term{term}, o)
	// The stride of a factor without elements is ignored.
	Multiply(m, n, c, ldc, []Term{term, {K: 0, A: Operand{Stride: -7}, B: Operand{Stride: -7}}}, o)
}
