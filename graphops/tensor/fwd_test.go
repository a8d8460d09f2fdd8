package tensor_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testkit/backendtest"
)

// The number of threads changes no bit of values and gradients, whether the backend limits it or
// GOMAXPROCS, which gonum uses, does.
func TestThreadsDoNotShow(t *testing.T) {
	backendtest.Equal(t, ops.CPU(1), ops.CPU(3))
	if testing.Short() {
		return
	}
	backendtest.Equal(t, ops.CPU(1), ops.CPU(2))
	var want map[string]uint64
	for procs := 1; procs <= 3; procs++ {
		old := runtime.GOMAXPROCS(procs)
		got := backendtest.Bits(t, ops.CPU(0))
		runtime.GOMAXPROCS(old)
		if want == nil {
			want = got
		}
		for name, h := range got {
			if h != want[name] {
				t.Errorf("%s has other bits with GOMAXPROCS %d than with 1", name, procs)
			}
		}
	}
}

// counting counts the calls of some of the backend's methods.
type counting struct {
	ops.Backend
	allocs, frees, affines, products, spmms, spmmGrads int
}

func (c *counting) Alloc(n int) ops.Buffer { c.allocs++; return c.Backend.Alloc(n) }
func (c *counting) Free(b ops.Buffer)      { c.frees++; c.Backend.Free(b) }

func (c *counting) Affine(out ops.Buffer, m, n int, products []ops.Product, e ops.Epilogue) {
	c.affines++
	c.products += len(products)
	c.Backend.Affine(out, m, n, products, e)
}

func (c *counting) AffineGrad(d ops.Buffer, m, n int, products []ops.Product, grads []ops.ProductGrad, e ops.Epilogue, db ops.Buffer, accB bool) {
	for _, g := range grads {
		if g.WantX {
			c.products++
		}
		if g.WantW {
			c.products++
		}
	}
	c.Backend.AffineGrad(d, m, n, products, grads, e, db, accB)
}

func (c *counting) SpMM(op tensor.Op, out, arg ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	c.spmms++
	c.Backend.SpMM(op, out, arg, b, h, cols)
}

func (c *counting) SpMMGrad(op tensor.Op, dh, dOut, arg ops.Buffer, b *graphops.Block, cols int, acc bool) {
	c.spmmGrads++
	c.Backend.SpMMGrad(op, dh, dOut, arg, b, cols, acc)
}

func param(name string, rows, cols int) *tensor.Param {
	p := &tensor.Param{Name: name, Rows: rows, Cols: cols, W: make([]float32, rows*cols), G: make([]float32, rows*cols)}
	for i := range p.W {
		p.W[i] = float32(i%7) - 3
	}
	return p
}

func ramp(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i%5) - 1.5
	}
	return out
}

// Backward computes no gradient for tensors that need none: raw features and constants.
func TestNoGradientsNobodyNeeds(t *testing.T) {
	be := &counting{Backend: ops.CPU(1)}
	b := graphops.HostBlock{NumDst: 1, NumSrc: 3, Indptr: []int64{0, 2}, Indices: []int32{1, 2}}.Block()
	f := tensor.NewFwd(tensor.Config{Backend: be, Train: true})
	w, frozen := param("w", 2, 4), param("frozen", 2, 4)
	frozen.G = nil
	x := f.Input(3, 4, ramp(12), nil)
	y := f.Add(f.Linear(f.Aggregate(b, x, tensor.Mean), f.Param(w), nil), f.Linear(f.Dst(b, x), f.Param(frozen), nil))
	if err := f.SumAll(y).Backward(); err != nil {
		t.Fatal(err)
	}
	if be.affines != 1 || be.products != 3 || be.spmms != 1 || be.spmmGrads != 0 {
		t.Errorf("%d products, forward at %d times, %d aggregations, %d of them backward; want 3 (two forward at one time, one weight gradient), 1, 1, 0", be.products, be.affines, be.spmms, be.spmmGrads)
	}
	// Both rows are the mean of x's rows 1 and 2.
	if want := slices.Repeat([]float32{2, 0.5, -1, 0}, 2); !slices.Equal(w.G, want) {
		t.Errorf("the gradient of w is %v, want %v", w.G, want)
	}
	f.Reset(tensor.Config{Backend: be})
	be.products = 0
	y = f.Linear(f.Input(3, 4, ramp(12), nil), f.Param(w), nil)
	if y.Data(); y.RequiresGrad() || be.products != 1 {
		t.Errorf("inference: RequiresGrad %v after %d products", y.RequiresGrad(), be.products)
	}
}

// Gradients add up in G over passes and over several uses of a parameter in one pass, multiplied by
// Backward's scale.
func TestParamGradientsAccumulate(t *testing.T) {
	p := param("p", 1, 3)
	f := tensor.NewFwd(tensor.Config{})
	for range 2 {
		f.Reset(tensor.Config{Grad: true})
		sum := f.SumAll(f.Add(f.Param(p), f.Scale(f.Param(p), 3)))
		if err := f.Backward(sum, 0.5); err != nil {
			t.Fatal(err)
		}
	}
	if want := []float32{4, 4, 4}; !slices.Equal(p.G, want) {
		t.Errorf("G = %v, want %v: two passes of (1+3)·0.5", p.G, want)
	}
}

// A tensor used twice gets both contributions; one that does not affect the loss gets none.
func TestDiamond(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{Train: true})
	x := f.Leaf(1, 2, []float32{2, -3}, nil)
	unused := f.Leaf(1, 2, []float32{1, 1}, nil)
	a := f.Mul(x, x)
	_ = f.Mul(a, unused)
	y := f.SumAll(f.Add(f.Mul(a, x), a)) // x³ + x²
	if err := y.Backward(); err != nil {
		t.Fatal(err)
	}
	if want := []float32{3*4 + 2*2, 3*9 - 2*3}; !slices.Equal(x.Grad(), want) {
		t.Errorf("gradient %v, want %v", x.Grad(), want)
	}
	if !slices.Equal(unused.Grad(), []float32{0, 0}) || y.Grad() != nil {
		t.Errorf("the gradient of an unused leaf is %v, that of a result is %v; want zeros and nil", unused.Grad(), y.Grad())
	}
}

func TestBackwardErrors(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{})
	if err := f.SumAll(f.Input(1, 1, []float32{1}, nil)).Backward(); err == nil || !strings.Contains(err.Error(), "set Train or Grad") {
		t.Errorf("Backward without a tape gave %v", err)
	}
	f.Reset(tensor.Config{Grad: true})
	x := f.Leaf(2, 1, []float32{1, 2}, nil)
	if err := x.Backward(); err == nil || !strings.Contains(err.Error(), "is [2,1], not [1,1]") {
		t.Errorf("Backward of a [2,1] tensor gave %v", err)
	}
	y := f.SumAll(x)
	if err := y.Backward(); err != nil {
		t.Error(err)
	}
	if err := y.Backward(); err == nil || !strings.Contains(err.Error(), "has run in this pass") {
		t.Errorf("the second Backward gave %v", err)
	}
	f.Reset(tensor.Config{Grad: true})
	if err := f.SumAll(f.Input(1, 1, []float32{1}, nil)).Backward(); err != nil {
		t.Errorf("Backward of a constant gave %v", err)
	}
}

// misuse runs fn and returns the *Error it panics with.
func misuse(t *testing.T, fn func()) *tensor.Error {
	t.Helper()
	var e *tensor.Error
	func() {
		defer func() {
			if err, ok := recover().(error); ok {
				errors.As(err, &e)
			}
		}()
		fn()
	}()
	return e
}

func TestMisuse(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{Train: true})
	in := func(rows, cols int) *tensor.Tensor { return f.Input(rows, cols, make([]float32, rows*cols), nil) }
	b := graphops.HostBlock{NumDst: 2, NumSrc: 3, Indptr: []int64{0, 1, 2}, Indices: []int32{0, 2}}.Block()
	other := tensor.NewFwd(tensor.Config{})
	foreign := other.Input(1, 1, []float32{1}, nil)
	old := in(2, 2)
	f.Reset(tensor.Config{Train: true})
	named := f.Input(1, 1, []float32{1}, &tensor.Space{})
	for _, c := range []struct {
		name, op, want string
		fn             func()
	}{
		{"matmul", "MatMul", "a is [2,3] and b is [2,3]", func() { f.MatMul(in(2, 3), in(2, 3)) }},
		{"linear", "Linear", "x is [2,3] and the weight is [5,4] [out,in]: x must have 4 columns", func() { f.Linear(in(2, 3), in(5, 4), nil) }},
		{"bias", "Linear", "the bias must be [1,5]", func() { f.Linear(in(2, 4), in(5, 4), in(1, 4)) }},
		{"square bias", "Linear", "the bias must be [1,4]", func() { f.Linear(in(2, 4), in(4, 4), in(2, 2)) }},
		{"add", "Add", "a is [1,2] and b is [2,1]", func() { f.Add(in(1, 2), in(2, 1)) }},
		{"addrow", "AddRow", "the row must be [1,2]", func() { f.AddRow(in(1, 2), in(1, 3)) }},
		{"mulrows", "MulRows", "w must be [2,1]", func() { f.MulRows(in(2, 2), in(2, 2)) }},
		{"concat", "Concat", "argument 0 is [1,2] and argument 1 is [2,2]", func() { f.Concat(in(1, 2), in(2, 2)) }},
		{"concat nothing", "Concat", "at least one", func() { f.Concat() }},
		{"rows", "Rows", "rows [1,4) of a tensor [3,2]", func() { f.Rows(in(3, 2), 1, 4) }},
		{"aggregate", "Aggregate", "h is [2,4] and the block has 3 sources", func() { f.Aggregate(b, in(2, 4), tensor.Sum) }},
		{"aggregation", "Aggregate", "unknown aggregation 7", func() { f.Aggregate(b, in(3, 4), 7) }},
		{"dst", "Dst", "the block has 3 sources", func() { f.Dst(b, in(2, 4)) }},
		{"gather", "GatherDst", "3 sources and 2 destinations", func() { f.GatherDst(b, in(4, 4)) }},
		{"messages", "AggregateEdges", "the block has 2 edges", func() { f.AggregateEdges(b, in(3, 4), tensor.Sum) }},
		{"weights", "AggregateWeighted", "there are 3 weights and the block has 2 edges", func() { f.AggregateWeighted(b, in(3, 4), make([]float32, 3), tensor.Sum) }},
		{"weighted maximum", "AggregateWeighted", "aggregation max does not support weights", func() { f.AggregateWeighted(b, in(3, 4), make([]float32, 2), tensor.Max) }},
		{"heads", "AggregateHeads", "the heads must divide h's columns", func() { f.AggregateHeads(b, in(3, 4), in(2, 3)) }},
		{"no heads", "AggregateHeads", "the heads must divide h's columns", func() { f.AggregateHeads(b, in(3, 4), in(2, 0)) }},
		{"attention", "AggregateHeads", "they need one row per edge", func() { f.AggregateHeads(b, in(3, 4), in(3, 2)) }},
		{"softmax", "EdgeSoftmax", "the block has 2 edges", func() { f.EdgeSoftmax(b, in(3, 2)) }},
		{"mean of heads", "HeadMean", "not divisible by 3 heads", func() { f.HeadMean(in(2, 4), 3) }},
		{"dot of heads", "HeadDot", "a must be [1,4]", func() { f.HeadDot(in(2, 4), in(1, 2), 2) }},
		{"mulcols", "MulCols", "w must be [1,2]", func() { f.MulCols(in(2, 2), in(2, 2)) }},
		{"scaleby", "ScaleBy", "it must be [1,1]", func() { f.ScaleBy(in(2, 2), in(1, 2)) }},
		{"sparse offsets", "SparseInput", "[2,3] needs 3 offsets but indptr has 2", func() { f.SparseInput(2, 3, []int64{0, 0}, nil, nil, nil) }},
		{"sparse falling", "SparseInput", "indptr[2] is 1 after 2", func() { f.SparseInput(3, 3, []int64{0, 2, 1, 2}, []int32{0, 1}, nil, nil) }},
		{"sparse end", "SparseInput", "indptr goes from 0 to 3 but there are 2 indices", func() { f.SparseInput(1, 3, []int64{0, 3}, []int32{0, 1}, nil, nil) }},
		{"sparse values", "SparseInput", "indptr ends at 2 but there are 1 values", func() { f.SparseInput(1, 3, []int64{0, 2}, []int32{0, 1}, []float32{1}, nil) }},
		{"sparse column", "SparseInput", "row 0 has column 3 after column 0", func() { f.SparseInput(1, 3, []int64{0, 2}, []int32{0, 3}, nil, nil) }},
		{"sparse order", "SparseInput", "row 0 has column 1 after column 1", func() { f.SparseInput(1, 3, []int64{0, 2}, []int32{1, 1}, nil, nil) }},
		{"sparse space", "SparseInput", "the space has 1 ids but the tensor has 2 rows", func() { f.SparseInput(2, 1, []int64{0, 0, 0}, nil, nil, &tensor.Space{IDs: []int32{1}}) }},
		{"input", "Input", "[2,2] needs 4 elements but the data has 3", func() { f.Input(2, 2, make([]float32, 3), nil) }},
		{"space", "Input", "the space has 1 ids but the tensor has 2 rows", func() { f.Input(2, 1, make([]float32, 2), &tensor.Space{IDs: []int32{1}}) }},
		{"edge space", "SetSpace", "the space has 2 edges but the tensor has 3 rows", func() { in(3, 1).SetSpace(tensor.EdgeSpace(b)) }},
		{"param", "Param", `parameter "w" is [2,2] but its W has 3 elements`, func() { f.Param(&tensor.Param{Name: "w", Rows: 2, Cols: 2, W: make([]float32, 3)}) }},
		{"gradient", "Param", `parameter "w" has 1 weights but its G has 2 elements`, func() {
			f.Param(&tensor.Param{Name: "w", Rows: 1, Cols: 1, W: make([]float32, 1), G: make([]float32, 2)})
		}},
		{"nil param", "Param", "is nil", func() { f.Param(nil) }},
		{"nil", "Add", "argument 1 is a nil tensor", func() { f.Add(in(1, 1), nil) }},
		{"foreign", "Add", "another Fwd", func() { f.Add(in(1, 1), foreign) }},
		{"earlier pass", "ReLU", "earlier pass", func() { f.ReLU(old) }},
		{"earlier pass's data", "Data", "earlier pass", func() { old.Data() }},
		{"no space", "Dropout", "the tensor has no row space (it is [1,2]); apply dropout to node rows, before an operation that mixes rows", func() { f.Dropout(in(1, 2), 0.5) }},
		{"p", "Dropout", "p is 1.5", func() { f.Dropout(named, 1.5) }},
		{"p NaN", "Dropout", "p is NaN", func() { f.Dropout(named, math.NaN()) }},
		{"custom without backward", "mine", "no backward function", func() {
			f.Custom("mine", []*tensor.Tensor{f.Leaf(1, 1, []float32{1}, nil)}, 1, 1, func([]float32) {}, nil)
		}},
	} {
		e := misuse(t, c.fn)
		if e == nil || e.Op != c.op || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: got %v, want a %s error with %q", c.name, e, c.op, c.want)
		}
	}
	f.Reset(tensor.Config{Train: true})
	x := f.Input(1, 1, []float32{1}, &tensor.Space{})
	for range tensor.MaxDropouts {
		f.Dropout(x, 0)
	}
	if e := misuse(t, func() { f.Dropout(x, 0) }); e == nil || !strings.Contains(e.Detail, "call 257") {
		t.Errorf("the 257th dropout gave %v", e)
	}
}

// After the first pass, passes of the same shapes request no memory from the backend, and the
// memory of a larger evaluation is freed after some passes.
func TestMemoryIsReused(t *testing.T) {
	be := &counting{Backend: ops.CPU(1)}
	f := tensor.NewFwd(tensor.Config{Backend: be})
	w := param("w", 8, 16)
	step := func(rows int) {
		f.Reset(tensor.Config{Backend: be, Train: true})
		x := f.Input(rows, 16, make([]float32, rows*16), &tensor.Space{})
		y := f.Dropout(f.ReLU(f.L2Normalize(f.Linear(x, f.Param(w), nil))), 0.5)
		if err := f.SumAll(f.LogSoftmax(y)).Backward(); err != nil {
			t.Fatal(err)
		}
	}
	step(1000)
	first := be.allocs
	for i := range 20 {
		step(1000 - i)
	}
	if be.allocs != first {
		t.Errorf("%d buffers after the first pass, %d after 20 more", first, be.allocs)
	}
	step(100_000)
	grown := be.allocs
	for range 100 {
		step(1000)
	}
	if be.frees < grown-first {
		t.Errorf("of the %d buffers of one large pass, %d were freed after 100 small ones", grown-first, be.frees)
	}
	f.Close()
	if be.frees != be.allocs {
		t.Errorf("%d buffers taken, %d freed at Close", be.allocs, be.frees)
	}
}

// Within a pass, the gradient of an intermediate result reuses the memory of an earlier one.
func TestGradientMemoryIsReusedWithinAPass(t *testing.T) {
	be := &counting{Backend: ops.CPU(1)}
	f := tensor.NewFwd(tensor.Config{Backend: be, Train: true})
	x := f.Leaf(100, 100, make([]float32, 10_000), nil)
	for range 20 {
		x = f.Tanh(x)
	}
	sum := f.SumAll(x)
	forward := be.allocs
	if err := sum.Backward(); err != nil {
		t.Fatal(err)
	}
	if more := be.allocs - forward; more > 4 {
		t.Errorf("backward through 20 operations took %d buffers, want 4 at most", more)
	}
}

func TestBackendMayChangeBetweenPasses(t *testing.T) {
	one, two := &counting{Backend: ops.CPU(1)}, &counting{Backend: ops.CPU(2)}
	f := tensor.NewFwd(tensor.Config{Backend: one})
	f.ReLU(f.Input(1, 1, []float32{1}, nil))
	f.Reset(tensor.Config{Backend: two})
	y := f.ReLU(f.Input(1, 1, []float32{2}, nil))
	if one.frees != one.allocs || two.allocs == 0 || y.Data()[0] != 2 {
		t.Errorf("first backend: %d of %d buffers freed; second: %d taken, result %v", one.frees, one.allocs, two.allocs, y.Data())
	}
}

// A row of a product and a destination of an aggregation have the same bits alone as among others.
func TestRowsAreIndependent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(rt, "rows")
		lo := rapid.IntRange(0, n-1).Draw(rt, "lo")
		hi := rapid.IntRange(lo, n).Draw(rt, "hi")
		in, out := rapid.IntRange(1, 150).Draw(rt, "in"), rapid.IntRange(1, 150).Draw(rt, "out")
		f := tensor.NewFwd(tensor.Config{})
		x := f.Input(n, in, noise(n*in, 1), nil)
		w := f.Input(out, in, noise(out*in, 2), nil)
		bias := f.Input(1, out, noise(out, 3), nil)
		whole := f.Linear(x, w, bias).Data()[lo*out : hi*out]
		part := f.Linear(f.Rows(x, lo, hi), w, bias).Data()
		if !slices.Equal(whole, part) {
			rt.Fatal("Linear of some rows differs from those rows of Linear of all")
		}
		g := randomGraph(rt, n)
		for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
			whole := f.Aggregate(g.Block(), x, op).Data()[lo*in : hi*in]
			if part := f.Aggregate(g.Slice(lo, hi), x, op).Data(); !slices.Equal(whole, part) {
				rt.Fatalf("%v over a slice of the graph differs from the whole", op)
			}
		}
	})
}

// If nodes are renumbered, the rows of the result move with them, to the bit.
func TestAggregateIsPermutationEquivariant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "nodes")
		cols := rapid.IntRange(1, 20).Draw(rt, "cols")
		g := randomGraph(rt, n)
		perm := rapid.Permutation(seq(n)).Draw(rt, "perm") // node v becomes perm[v]
		h := noise(n*cols, 4)
		renamed, back := make([]float32, n*cols), make([]int, n)
		for v, p := range perm {
			copy(renamed[p*cols:(p+1)*cols], h[v*cols:(v+1)*cols])
			back[p] = v
		}
		r := &graphops.Graph{Indptr: []int64{0}}
		for _, v := range back {
			for _, s := range g.InNeighbors(int32(v)) { // keeps the order of the sources
				r.Indices = append(r.Indices, int32(perm[s]))
			}
			r.Indptr = append(r.Indptr, int64(len(r.Indices)))
		}
		f := tensor.NewFwd(tensor.Config{})
		for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
			a := f.Aggregate(g.Block(), f.Input(n, cols, h, nil), op).Data()
			b := f.Aggregate(r.Block(), f.Input(n, cols, renamed, nil), op).Data()
			for v, p := range perm {
				if !slices.Equal(a[v*cols:(v+1)*cols], b[p*cols:(p+1)*cols]) {
					rt.Fatalf("%v: node %d, renamed to %d, has another row", op, v, p)
				}
			}
		}
	})
}

func TestAggregateIsLinear(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "nodes")
		g := randomGraph(rt, n)
		a, b := rapid.Float64Range(-3, 3).Draw(rt, "a"), rapid.Float64Range(-3, 3).Draw(rt, "b")
		f := tensor.NewFwd(tensor.Config{})
		x, y := f.Input(n, 3, noise(3*n, 5), nil), f.Input(n, 3, noise(3*n, 6), nil)
		for _, op := range []tensor.Op{tensor.Mean, tensor.Sum} {
			left := f.Aggregate(g.Block(), f.Add(f.Scale(x, a), f.Scale(y, b)), op).Data()
			right := f.Add(f.Scale(f.Aggregate(g.Block(), x, op), a), f.Scale(f.Aggregate(g.Block(), y, op), b)).Data()
			for i := range left {
				// At most 8 messages below about 30 each: 240·2^-24·(a few roundings).
				if math.Abs(float64(left[i]-right[i])) > 2e-4 {
					rt.Fatalf("%v: aggregate of the sum %g, sum of the aggregates %g", op, left[i], right[i])
				}
			}
		}
	})
}

// randomGraph has up to 8 in-edges per node, including duplicates and self-loops.
func randomGraph(rt *rapid.T, n int) *graphops.Graph {
	g := &graphops.Graph{Indptr: []int64{0}}
	deg := rapid.SliceOfN(rapid.IntRange(0, 8), n, n).Draw(rt, "degrees")
	seed := rapid.Uint32().Draw(rt, "edges")
	for _, d := range deg {
		for range d {
			seed = seed*1664525 + 1013904223
			g.Indices = append(g.Indices, int32(uint64(seed)*uint64(n)>>32))
		}
		slices.Sort(g.Indices[g.Indptr[len(g.Indptr)-1]:])
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

func noise(n int, seed uint32) []float32 {
	out := make([]float32, n)
	for i := range out {
		seed = seed*1664525 + 1013904223
		out[i] = float32(int32(seed)) / (1 << 30)
	}
	return out
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// CopyTo copies the same elements as Data, for computed and for not yet computed tensors, and
// reports a wrong size.
func TestCopyTo(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{Train: true})
	w := &tensor.Param{Rows: 2, Cols: 3, W: []float32{1, 0, 2, 0, 1, -1}, G: make([]float32, 6)}
	for name, make := range map[string]func() *tensor.Tensor{
		"input":  func() *tensor.Tensor { return f.Input(2, 2, []float32{5, 6, 7, 8}, nil) },
		"rows":   func() *tensor.Tensor { return f.RowsInput([]float32{1, 2, 3, 4}, 2, []int32{1, 0}, nil) },
		"sparse": func() *tensor.Tensor { return f.SparseInput(2, 2, []int64{0, 1, 1}, []int32{1}, nil, nil) },
		"affine": func() *tensor.Tensor {
			return f.ReLU(f.Linear(f.Input(2, 3, []float32{1, 2, 3, 4, 5, 6}, nil), f.Param(w), nil))
		},
	} {
		got := []float32{-1, -1, -1, -1}
		x := make()
		x.CopyTo(got)
		if want := make().Data(); !slices.Equal(got, want) || !slices.Equal(x.Data(), want) {
			t.Errorf("%s: CopyTo gives %v and Data after it %v, want %v", name, got, x.Data(), want)
		}
	}
	y := f.ReLU(f.Linear(f.Input(1, 3, []float32{1, 2, 3}, nil), f.Param(w), nil))
	out := []float32{0, 0}
	y.CopyTo(out)
	if err := f.SumAll(y).Backward(); err != nil || !slices.Equal(w.G, []float32{1, 2, 3, 0, 0, 0}) {
		t.Errorf("the gradient after CopyTo is %v, error %v", w.G, err)
	}
	defer func() {
		if _, ok := recover().(*tensor.Error); !ok {
			t.Error("CopyTo into memory of a wrong length gave no error")
		}
	}()
	y.CopyTo(out[:1])
}
