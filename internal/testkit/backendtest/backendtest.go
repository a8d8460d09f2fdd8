// Package backendtest is the conformance suite of tensor backends: Run compares
// every operation and its gradient with package ref, Equal the bits of two
// backends with each other.
package backendtest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

// Run checks a backend against the float64 reference: values, and gradients by
// central differences of the reference, at sizes 0, 1, 31, 32 and 33 and on
// blocks of every form; results written over memory full of NaN and results
// added to others. Of the pairs of the three large sizes, four run: each size
// and 33×33 are among the four. Each small block runs with one of the three
// large sizes, in turn. With GNB_SOAK, all pairs run.
func Run(t *testing.T, be ops.Backend) { run(t, be, false) }

// RunSlow is Run for a backend that takes a thousand times as long, such as one that interprets its kernels: unless
// GNB_SOAK is set, two pairs of the large sizes run, and no product of more than two million elements.
func RunSlow(t *testing.T, be ops.Backend) { run(t, be, os.Getenv("GNB_SOAK") == "") }

func run(t *testing.T, be ops.Backend, slow bool) {
	be = poison(be)
	sizes := []int{0, 1, 31, 32, 33}
	if testing.Short() {
		sizes = []int{0, 1, 33}
	}
	for _, r := range sizes {
		for _, c := range sizes {
			if !covered(r, c, slow) {
				continue
			}
			t.Run(fmt.Sprintf("%dx%d", r, c), func(t *testing.T) {
				for _, tc := range dense(r, c) {
					t.Run(tc.name, func(t *testing.T) { check(t, be, tc) })
				}
			})
		}
	}
	for i, b := range blocks() {
		for _, c := range sizes {
			small := b.NumDst < 31
			if !covered(b.NumDst, c, slow) || small && c >= 31 && !inTurn(i, c) || testing.Short() && !small && c >= 31 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", b.name, c), func(t *testing.T) {
				for _, tc := range graph(b.Block, c) {
					t.Run(tc.name, func(t *testing.T) { check(t, be, tc) })
				}
			})
		}
	}
	t.Run("groups", func(t *testing.T) { runGroups(t, be) })
	t.Run("Affine", func(t *testing.T) { runAffine(t, be, slow) })
	t.Run("accumulation", func(t *testing.T) { runAccumulate(t, be) })
	t.Run("parameters", func(t *testing.T) { runParams(t, be) })
	t.Run("long sums", func(t *testing.T) { runLong(t, be) })
	t.Run("special values", func(t *testing.T) { runSpecial(t, be) })
	t.Run("max ties", func(t *testing.T) { runTies(t, be) })
}

// covered reports whether a pair of sizes is tested: with a small size, all are.
func covered(r, c int, slow bool) bool {
	if slow && min(r, c) >= 31 {
		return r == 33 && c == 33 || r == 31 && c == 32
	}
	return min(r, c) < 31 || os.Getenv("GNB_SOAK") != "" || slices.Contains([][2]int{{31, 33}, {33, 31}, {32, 32}, {33, 33}}, [2]int{r, c})
}

// inTurn reports whether the i-th small block is tested with c, one of the three large sizes.
func inTurn(i, c int) bool {
	return testing.Short() || os.Getenv("GNB_SOAK") != "" || c == 31+i%3
}

// poisoned fills fresh memory with NaN, so that the result shows if an operation reads memory that
// it should overwrite.
type poisoned struct{ ops.Backend }

// poison is be, poisoned, with the operations that only some backends have.
func poison(be ops.Backend) ops.Backend {
	if n, ok := be.(ops.Normer); ok {
		return poisonedNormer{poisoned{be}, n}
	}
	return poisoned{be}
}

type poisonedNormer struct {
	poisoned
	n ops.Normer
}

func (p poisonedNormer) LayerNorm(out, y, inv, x ops.Buffer, rows, cols int, eps float32, w ops.Buffer, e ops.Epilogue) {
	p.n.LayerNorm(out, y, inv, x, rows, cols, eps, w, e)
}

func (p poisonedNormer) LayerNormGrad(d, y, inv ops.Buffer, rows, cols int, w ops.Buffer, e ops.Epilogue, g ops.NormGrads) {
	p.n.LayerNormGrad(d, y, inv, rows, cols, w, e, g)
}

func (p poisonedNormer) ColStats(mean, variance, minus, inv, x ops.Buffer, rows, cols int, eps float64) {
	p.n.ColStats(mean, variance, minus, inv, x, rows, cols, eps)
}

func (p poisonedNormer) ColNorm(out, x, minus, inv, w ops.Buffer, rows, cols int, e ops.Epilogue) {
	p.n.ColNorm(out, x, minus, inv, w, rows, cols, e)
}

func (p poisonedNormer) ColNormGrad(d, x, minus, inv, w ops.Buffer, rows, cols int, e ops.Epilogue, given bool, g ops.NormGrads) {
	p.n.ColNormGrad(d, x, minus, inv, w, rows, cols, e, given, g)
}

func (p poisoned) Alloc(n int) ops.Buffer {
	b := p.Backend.Alloc(n)
	nan := make([]float32, n)
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	p.Upload(b, nan)
	return b
}

// pass runs a case forward and, with the cotangent w, backward. extra puts a
// second contribution x·s to each input's gradient, before the operation's own
// (+1: then it is added) or after it (-1).
type pass struct {
	out   []float32
	grads [][]float32
}

const extraScale = 0.75

func runPass(t *testing.T, be ops.Backend, tc testCase, extra int) pass {
	t.Helper()
	cfg := config
	cfg.Backend = be
	f := tensor.NewFwd(cfg)
	var xs []*tns
	for _, in := range tc.inputs {
		xs = append(xs, f.Leaf(in.rows, in.cols, in.data, in.space))
	}
	total := func(sum *tns) *tns {
		for _, x := range xs {
			s := f.Scale(f.SumAll(x), extraScale)
			if sum == nil {
				sum = s
			} else {
				sum = f.Add(sum, s)
			}
		}
		return sum
	}
	var sum *tns
	if extra < 0 {
		sum = total(nil)
	}
	out := tc.build(f, xs)
	w := f.Input(out.Rows(), out.Cols(), cotangent(out.Rows()*out.Cols()), nil)
	loss := f.SumAll(f.Mul(out, w))
	if sum != nil {
		loss = f.Add(sum, loss)
	}
	if extra > 0 {
		loss = total(loss)
	}
	if err := loss.Backward(); err != nil {
		t.Fatal(err)
	}
	p := pass{out: append([]float32(nil), out.Data()...)}
	for _, x := range xs {
		p.grads = append(p.grads, append([]float32(nil), x.Grad()...))
	}
	return p
}

func cotangent(n int) []float32 { return random(n, 1).data }

func check(t *testing.T, be ops.Backend, tc testCase) {
	t.Helper()
	want := tc.want(matrices(tc))
	got := runPass(t, be, tc, 0)
	if len(got.out) != len(want.Data) {
		t.Fatalf("the result has %d elements, want [%d,%d]", len(got.out), want.Rows, want.Cols)
	}
	for i, v := range got.out {
		// Sums of at most 66 products of numbers about 1: 66·2^-24 ≈ 4e-6 of
		// their magnitudes' sum, which is up to about 10 times the result.
		if w := want.Data[i]; !(math.Abs(float64(v)-w) <= 2e-5+2e-5*math.Abs(w)) {
			t.Fatalf("element %d is %g, want %g", i, v, w)
		}
	}
	added := runPass(t, be, tc, 1)
	before := runPass(t, be, tc, -1)
	for k, in := range tc.inputs {
		for _, i := range sample(len(in.data)) {
			num := derivative(tc, k, i)
			// The float32 gradient is as exact as the result; the central
			// difference in float64 with h = 1e-5 has an error below 1e-8.
			limit := 1e-4 + 1e-4*math.Abs(num)
			if g := float64(got.grads[k][i]); !(math.Abs(g-num) <= limit) {
				t.Fatalf("gradient of input %d at element %d is %g, the central difference %g", k, i, g, num)
			}
			for _, p := range []pass{added, before} {
				if g := float64(p.grads[k][i]); !(math.Abs(g-num-extraScale) <= limit) {
					t.Fatalf("gradient of input %d at element %d, which has another contribution of %g, is %g; want %g", k, i, extraScale, g, num+extraScale)
				}
			}
		}
	}
}

func matrices(tc testCase) []ref.Matrix {
	var ms []ref.Matrix
	for _, in := range tc.inputs {
		ms = append(ms, ref.From(in.rows, in.cols, in.data))
	}
	return ms
}

// sample is up to 24 of n indices, the first and last among them.
func sample(n int) []int {
	const most = 24
	if n <= most {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	r := rand.New(rand.NewPCG(uint64(n), 3))
	some := []int{0, n - 1}
	for len(some) < most {
		some = append(some, r.IntN(n))
	}
	return some
}

// derivative is the central difference of Σ w·want by element i of input k.
func derivative(tc testCase, k, i int) float64 {
	const h = 1e-5
	loss := func(by float64) float64 {
		ms := matrices(tc)
		ms[k].Data[i] += by
		out := tc.want(ms)
		sum := 0.0
		for j, w := range cotangent(len(out.Data)) {
			sum += float64(w) * out.Data[j]
		}
		return sum
	}
	return (loss(h) - loss(-h)) / (2 * h)
}

// runAffine compares sums of one and two products and their gradients, also at
// sizes that cross every block and chunk of a blocked implementation. Those
// take turns to have their factor transposed, unless GNB_SOAK is set; a slow backend leaves out the largest.
func runAffine(t *testing.T, be ops.Backend, slow bool) {
	for i, s := range [][3]int{
		{0, 3, 2},
		{3, 0, 2},
		{3, 2, 0},
		{1, 1, 1},
		{31, 33, 32},
		{33, 31, 65},
		{65, 129, 64},
		{130, 200, 70},
		{1024, 5, 7},
		{1025, 5, 7},
		{4000, 3, 70},
		{40000, 70, 3},
	} {
		m, n, k := s[0], s[1], s[2]
		if m*n*k > 1<<20 && testing.Short() || m*n*k > 1<<21 && slow {
			continue
		}
		x, w, v, bias := random(m, k), random(k, n), random(m, 3), random(1, n)
		u, d := random(3, n), cotangent(m*n)
		for _, transposed := range []bool{false, true} {
			if m*n*k > 1<<19 && transposed == (i%2 == 0) && os.Getenv("GNB_SOAK") == "" {
				continue
			}
			p := param(w, transposed)
			f := tensor.NewFwd(tensor.Config{Backend: be, Grad: true})
			a, c, wide := f.Leaf(m, k, x.data, nil), f.Leaf(m, 3, v.data, nil), f.Leaf(1, n, bias.data, nil)
			var y *tns
			if transposed {
				y = f.Linear(a, f.Param(p), nil)
			} else {
				y = f.MatMul(a, f.Param(p))
			}
			y = f.AddRow(f.Add(y, f.MatMul(c, f.Input(3, n, u.data, nil))), wide)
			if err := f.SumAll(f.Mul(y, f.Input(m, n, d, nil))).Backward(); err != nil {
				t.Fatal(err)
			}
			rx, rw, rv, ru, rd := ref.From(m, k, x.data), ref.From(k, n, w.data), ref.From(m, 3, v.data), ref.From(3, n, u.data), ref.From(m, n, d)
			near := func(what string, got []float32, want ref.Matrix, factors ...ref.Matrix) {
				t.Helper()
				size := ref.New(want.Rows, want.Cols)
				for i := 0; i < len(factors); i += 2 {
					abs := ref.MatMul(factors[i].Map(math.Abs), factors[i+1].Map(math.Abs))
					size = ref.Zip(size, abs, func(a, b float64) float64 { return a + b })
				}
				for i, v := range got {
					// A sum in float32, in any order of blocks.
					if !(math.Abs(float64(v)-want.Data[i]) <= 1e-6*(size.Data[i]+1)) {
						t.Fatalf("%s of m %d n %d k %d, transposed %v: element %d is %g, want %g", what, m, n, k, transposed, i, v, want.Data[i])
					}
				}
			}
			sum := func(a, b float64) float64 { return a + b }
			near("result", y.Data(), ref.AddRow(ref.Zip(ref.MatMul(rx, rw), ref.MatMul(rv, ru), sum), ref.From(1, n, bias.data)), rx, rw, rv, ru)
			near("left gradient", a.Grad(), ref.MatMul(rd, rw.T()), rd, rw.T())
			near("second left gradient", c.Grad(), ref.MatMul(rd, ru.T()), rd, ru.T())
			ones := ref.New(1, m).Map(func(float64) float64 { return 1 })
			near("bias gradient", wide.Grad(), ref.MatMul(ones, rd), ones, rd)
			want := ref.MatMul(rx.T(), rd)
			if transposed {
				near("weight gradient", p.G, want.T(), rd.T(), rx)
			} else {
				near("weight gradient", p.G, want, rx.T(), rd)
			}
		}
	}
}

// param is a trainable matrix, or its transpose.
func param(w input, transposed bool) *tensor.Param {
	p := &tensor.Param{Name: "w", Rows: w.rows, Cols: w.cols, W: w.data}
	if transposed {
		p.Rows, p.Cols = w.cols, w.rows
		p.W = floats(ref.From(w.rows, w.cols, w.data).T())
	}
	p.G = make([]float32, len(p.W))
	return p
}

func floats(m ref.Matrix) []float32 {
	out := make([]float32, len(m.Data))
	for i, v := range m.Data {
		out[i] = float32(v)
	}
	return out
}

// runLong sums over more rows than any chunk has.
func runLong(t *testing.T, be ops.Backend) {
	const rows, cols = 40001, 3
	x := random(rows, cols)
	got := make([]float32, cols)
	out := be.Alloc(cols)
	be.ColSum(out, be.Wrap(x.data), rows, cols, false)
	be.Download(got, out)
	var sums, sizes [cols]float64
	total, size := 0.0, 0.0
	for i, v := range x.data {
		sums[i%cols] += float64(v)
		sizes[i%cols] += math.Abs(float64(v))
	}
	for c := range cols {
		total += sums[c]
		size += sizes[c]
		if math.Abs(float64(got[c])-sums[c]) > 1e-6*sizes[c] {
			t.Errorf("column %d sums to %g, want %g", c, got[c], sums[c])
		}
	}
	be.Sum(out.Slice(0, 1), be.Wrap(x.data), false)
	be.Download(got[:1], out.Slice(0, 1))
	if math.Abs(float64(got[0])-total) > 1e-6*size {
		t.Errorf("all sum to %g, want %g", got[0], total)
	}
}

// runSpecial: NaN and infinities go where arithmetic takes them.
func runSpecial(t *testing.T, be ops.Backend) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	negNaN := math.Float32frombits(0xffc00000)
	cfg := config
	cfg.Backend = be
	f := tensor.NewFwd(cfg)
	row := func(v ...float32) *tns { return f.Input(1, len(v), v, &tensor.Space{}) }
	same := func(name string, got *tns, want ...float32) {
		t.Helper()
		for i, v := range got.Data() {
			if v != want[i] && !(v != v && want[i] != want[i]) {
				t.Errorf("%s: element %d is %g, want %g", name, i, v, want[i])
			}
		}
	}
	minusZero := float32(math.Copysign(0, -1))
	same("ReLU", f.ReLU(row(nan, negNaN, inf, -inf, minusZero, 0, -1e-45, 1e-45)), nan, nan, inf, 0, 0, 0, 0, 1e-45)
	if v := f.ReLU(row(minusZero)).Data()[0]; math.Signbit(float64(v)) {
		t.Error("ReLU: -0 stays -0")
	}
	same("Dropout of everything", f.Dropout(row(inf, nan, 1), 1), 0, 0, 0)
	same("LogSoftmax far from 0", f.LogSoftmax(row(1000, 1000-inf)), 0, -inf)
	same("L2Normalize of zeros", f.L2Normalize(row(0, 0)), 0, 0)
	same("Sigmoid", f.Sigmoid(row(-inf, -200, 0, 200, inf)), 0, 1/(1+float32(math.Exp(200))), 0.5, 1, 1)
	same("Sqrt", f.Sqrt(row(nan, inf, minusZero, 0.25, 0.5, -1), 0.25), nan, inf, 0, 0, float32(math.Sqrt(0.5)), 0)
	same("Reciprocal", f.Reciprocal(row(nan, inf, -inf, 0, 1), 0), nan, 0, 0, inf, 1)
	for _, c := range []struct {
		name string
		run  func(x *tns) *tns
		want float32
	}{
		{"ReLU", f.ReLU, 0},
		{"LeakyReLU", func(x *tns) *tns { return f.LeakyReLU(x, 0.25) }, 0.25},
		{"ELU", f.ELU, 1},
		{"Sqrt", func(x *tns) *tns { return f.Sqrt(x, 0) }, 0},
	} {
		f.Reset(cfg)
		x := f.Leaf(1, 2, []float32{0, minusZero}, nil)
		if err := f.SumAll(c.run(x)).Backward(); err != nil {
			t.Fatal(err)
		}
		if g := x.Grad(); g[0] != c.want || g[1] != c.want {
			t.Errorf("%s: the gradient at 0 and -0 is %v, want %g", c.name, g, c.want)
		}
	}
	b := blocks()[4].Block // duplicate edge: 0 <- 2, 2, 1 and 1 <- 2
	h := f.Input(3, 2, []float32{9, 9, nan, 4, 1, -inf}, nil)
	same("Max", f.Aggregate(b, h, tensor.Max), nan, 4, 1, -inf)
	leaf := f.Leaf(3, 2, []float32{9, 9, negNaN, 4, 1, -inf}, nil)
	same("Max with gradient", f.Aggregate(b, leaf, tensor.Max), nan, 4, 1, -inf)
}

// runTies: the gradient of a maximum goes to the first of equal messages alone.
func runTies(t *testing.T, be ops.Backend) {
	cfg := config
	cfg.Backend = be
	b := blocks()[5].Block // star: 0 <- 1, 2, 3, 4
	zero, minus := float32(0), float32(math.Copysign(0, -1))
	for _, c := range []struct {
		h, want []float32
	}{
		{[]float32{5, 1, 3, 3, 3}, []float32{0, 0, 2, 0, 0}},
		{[]float32{5, 2, 2, 1, 2}, []float32{0, 2, 0, 0, 0}},
		{[]float32{5, -1, minus, zero, zero}, []float32{0, 0, 2, 0, 0}},
	} {
		for _, edges := range []bool{false, true} {
			f := tensor.NewFwd(cfg)
			h := f.Leaf(5, 1, c.h, nil)
			var y *tns
			if edges {
				y = f.AggregateEdges(b, f.GatherSrc(b, h), tensor.Max)
			} else {
				y = f.Aggregate(b, h, tensor.Max)
			}
			if err := f.Backward(f.SumAll(y), 2); err != nil {
				t.Fatal(err)
			}
			for i, g := range h.Grad() {
				if g != c.want[i] {
					t.Errorf("h %v, messages made %v: gradient %v, want %v", c.h, edges, h.Grad(), c.want)
					break
				}
			}
		}
	}
}

// bitCases are cases at sizes of many chunks and of one.
func bitCases() []testCase {
	cases := append(dense(4099, 37), dense(33, 31)...)
	cases = append(cases, graph(randomBlock(1500, 3001), 37)...)
	return append(cases, graph(blocks()[11].Block, 33)...)
}

// Equal checks that two backends compute the same bits, values and gradients, at
// sizes of one chunk and of many: two thread counts of the CPU, or a device and
// its emulation.
func Equal(t *testing.T, a, b ops.Backend) {
	t.Helper()
	defer parallel.ShareFrom(parallel.ShareFrom(1))
	for _, tc := range bitCases() {
		x, y := runPass(t, a, tc, 1), runPass(t, b, tc, 1)
		if i := differ(x.out, y.out); i >= 0 {
			t.Errorf("%s: element %d is %x on one and %x on the other", tc.name, i, x.out[i], y.out[i])
		}
		for k := range x.grads {
			if i := differ(x.grads[k], y.grads[k]); i >= 0 {
				t.Errorf("%s: gradient of input %d, element %d is %x on one and %x on the other", tc.name, k, i, x.grads[k][i], y.grads[k][i])
			}
		}
	}
}

// Bits is a hash of all the bits that Equal compares, by case: to compare the
// same backend under settings of the process, such as GOMAXPROCS.
func Bits(t *testing.T, be ops.Backend) map[string]uint64 {
	t.Helper()
	defer parallel.ShareFrom(parallel.ShareFrom(1))
	bits := map[string]uint64{}
	for _, tc := range bitCases() {
		p := runPass(t, be, tc, 1)
		h := fnv.New64a()
		for _, data := range append(p.grads, p.out) {
			var word [4]byte
			for _, v := range data {
				binary.LittleEndian.PutUint32(word[:], math.Float32bits(v))
				h.Write(word[:])
			}
		}
		bits[fmt.Sprintf("%s [%d,%d]", tc.name, tc.inputs[0].rows, tc.inputs[0].cols)] = h.Sum64()
	}
	return bits
}

func differ(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}
