package backendtest

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// runAccumulate checks that a method with acc adds exactly the values that it writes without acc.
// It covers every method that has acc, whether or not an operation uses acc.
func runAccumulate(t *testing.T, be ops.Backend) {
	b := randomBlock(33, 66)
	edges := b.NumEdges()
	const rows, cols = 33, 18
	in := func(r, c int) ops.Buffer { return be.Wrap(random(r, c).data) }
	x, y := in(rows, cols), in(rows, cols)
	mask := be.Alloc(ops.MaskWords(rows, cols))
	be.Dropout(be.Alloc(rows*cols), mask, x, rows, cols, ops.DropoutKey{Space: &tensor.Space{}, Threshold: 1 << 15, Scale: 2})
	norm := be.Alloc(rows)
	be.L2Normalize(be.Alloc(rows*cols), norm, x, rows, cols)
	arg, argEdges := be.Alloc(b.NumDst*cols), be.Alloc(b.NumDst*cols)
	be.SpMM(tensor.Max, be.Alloc(b.NumDst*cols), arg, b, in(b.NumSrc, cols), cols)
	be.Segment(tensor.Max, be.Alloc(b.NumDst*cols), argEdges, b, in(edges, cols), cols, false)

	type method struct {
		name string
		n    int
		run  func(out ops.Buffer, acc bool)
	}
	methods := []method{
		{"AddRow", rows * cols, func(o ops.Buffer, acc bool) { be.AddRow(o, in(1, cols), rows, cols, acc) }},
		{"ColSum", cols, func(o ops.Buffer, acc bool) { be.ColSum(o, x, rows, cols, acc) }},
		{"Sum", 1, func(o ops.Buffer, acc bool) { be.Sum(o, x, acc) }},
		{"Spread", cols, func(o ops.Buffer, acc bool) { be.Spread(o, in(1, 1), acc) }},
		{"RowScale", rows * cols, func(o ops.Buffer, acc bool) { be.RowScale(o, x, in(rows, 1), rows, cols, acc) }},
		{"RowDot", rows, func(o ops.Buffer, acc bool) { be.RowDot(o, x, y, rows, cols, acc) }},
		{"CopyCols", rows * cols, func(o ops.Buffer, acc bool) { be.CopyCols(o, cols, 0, in(rows, 20), 20, 2, rows, cols, acc) }},
		{"LogSoftmaxGrad", rows * cols, func(o ops.Buffer, acc bool) { be.LogSoftmaxGrad(o, x, y, rows, cols, acc) }},
		{"L2NormalizeGrad", rows * cols, func(o ops.Buffer, acc bool) { be.L2NormalizeGrad(o, x, y, norm, rows, cols, acc) }},
		{"Mask", rows * cols, func(o ops.Buffer, acc bool) { be.Mask(o, x, mask, rows, cols, 2, acc) }},
		{"ScatterSrc", b.NumSrc * cols, func(o ops.Buffer, acc bool) { be.ScatterSrc(o, b, in(edges, cols), cols, acc) }},
	}
	normInv := be.Alloc(rows)
	be.RowNorm(be.Alloc(rows*cols), normInv, x, rows, cols, 0.1)
	methods = append(methods,
		method{"ColScale", rows * cols, func(o ops.Buffer, acc bool) { be.ColScale(o, x, in(1, cols), rows, cols, acc) }},
		method{"ColDot", cols, func(o ops.Buffer, acc bool) { be.ColDot(o, x, y, rows, cols, acc) }},
		method{"Transpose", rows * cols, func(o ops.Buffer, acc bool) { be.Transpose(o, x, rows, cols, acc) }},
		method{"RowNormGrad", rows * cols, func(o ops.Buffer, acc bool) { be.RowNormGrad(o, x, y, normInv, rows, cols, acc) }},
		method{"SpMMWeighted", b.NumDst * cols, func(o ops.Buffer, acc bool) {
			be.SpMMWeighted(o, b, in(edges, 3), 3, in(b.NumSrc, cols), cols, acc)
		}},
		method{"SpMMWeighted without weights", b.NumDst * cols, func(o ops.Buffer, acc bool) {
			be.SpMMWeighted(o, b, ops.Buffer{}, 1, in(b.NumSrc, cols), cols, acc)
		}},
		method{"SpMMWeightedGrad", b.NumSrc * cols, func(o ops.Buffer, acc bool) {
			be.SpMMWeightedGrad(o, in(b.NumDst, cols), in(edges, 3), 3, b, cols, acc)
		}},
		method{"EdgeDot", edges * 3, func(o ops.Buffer, acc bool) {
			be.EdgeDot(o, b, in(b.NumDst, cols), in(b.NumSrc, cols), 3, cols, acc)
		}},
		method{"SpMMTypedGrad", b.NumSrc * cols, func(o ops.Buffer, acc bool) {
			be.SpMMTypedGrad(o, in(b.NumDst, 2*cols), b, someKinds(edges), in(3, 2), 2, cols, acc)
		}},
		method{"TypedDot", 6, func(o ops.Buffer, acc bool) {
			be.TypedDot(o, b, someKinds(edges), in(b.NumDst, 2*cols), in(b.NumSrc, cols), 2, cols, acc)
		}},
		method{"EdgeSoftmaxGrad", edges * 3, func(o ops.Buffer, acc bool) {
			be.EdgeSoftmaxGrad(o, in(edges, 3), in(edges, 3), b, 3, acc)
		}})
	for _, op := range []ops.BinaryOp{ops.AddOp, ops.SubOp, ops.MulOp} {
		methods = append(methods, method{"Binary", rows * cols, func(o ops.Buffer, acc bool) { be.Binary(op, o, x, y, acc) }})
	}
	for op := ops.ScaleOp; op <= ops.ReciprocalOp; op++ {
		methods = append(methods,
			method{"Unary", rows * cols, func(o ops.Buffer, acc bool) { be.Unary(op, o, x, 0.5, acc) }},
			method{"UnaryGrad", rows * cols, func(o ops.Buffer, acc bool) { be.UnaryGrad(op, o, y, x, x, 0.5, acc) }})
	}
	for _, op := range []tensor.Op{tensor.Mean, tensor.Sum, tensor.Max} {
		methods = append(methods,
			method{"SpMMGrad " + op.String(), b.NumSrc * cols, func(o ops.Buffer, acc bool) {
				be.SpMMGrad(op, o, in(b.NumDst, cols), arg, b, cols, acc)
			}},
			method{"Segment " + op.String(), b.NumDst * cols, func(o ops.Buffer, acc bool) {
				be.Segment(op, o, be.Alloc(b.NumDst*cols), b, in(edges, cols), cols, acc)
			}},
			method{"SegmentGrad " + op.String(), edges * cols, func(o ops.Buffer, acc bool) {
				be.SegmentGrad(op, o, in(b.NumDst, cols), argEdges, b, cols, acc)
			}})
	}
	for _, m := range methods {
		base := random(m.n, 1).data
		out := be.Alloc(m.n)
		m.run(out, false)
		plain := make([]float32, m.n)
		be.Download(plain, out)
		be.Upload(out, base)
		m.run(out, true)
		added := make([]float32, m.n)
		be.Download(added, out)
		for i, v := range added {
			// Terms may be added to the base one by one: some 20 roundings.
			w := float64(base[i]) + float64(plain[i])
			if !(math.Abs(float64(v)-w) <= 1e-5*(1+math.Abs(w))) {
				t.Errorf("%s: element %d is %g, want %g + %g", m.name, i, v, base[i], plain[i])
				break
			}
		}
	}
}

// runParams: gradients reach the parameters' own memory and add up there.
func runParams(t *testing.T, be ops.Backend) {
	param := func(rows, cols int) *tensor.Param {
		return &tensor.Param{Name: "p", Rows: rows, Cols: cols, W: random(rows, cols).data, G: make([]float32, rows*cols)}
	}
	w, bias, frozen := param(3, 4), param(1, 3), param(3, 4)
	frozen.G = nil
	x := random(5, 4).data
	cfg := config
	cfg.Backend = be
	f := tensor.NewFwd(cfg)
	const passes = 3
	for range passes {
		f.Reset(cfg)
		in := f.Input(5, 4, x, nil)
		y := f.Add(f.Linear(in, f.Param(w), f.Param(bias)), f.Linear(in, f.Param(w), nil))
		y = f.Add(y, f.Linear(in, f.Param(frozen), nil))
		if err := f.Backward(f.SumAll(y), 0.5); err != nil {
			t.Fatal(err)
		}
	}
	for i, g := range w.G {
		want := 0.0 // used twice, scaled by half
		for r := range 5 {
			want += passes * float64(x[r*4+i%4])
		}
		if math.Abs(float64(g)-want) > 1e-5 {
			t.Errorf("weight gradient %d is %g, want %g", i, g, want)
		}
	}
	for i, g := range bias.G {
		if g != passes*2.5 {
			t.Errorf("bias gradient %d is %g, want %g", i, g, passes*2.5)
		}
	}
}
