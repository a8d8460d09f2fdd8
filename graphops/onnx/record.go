package onnx

import (
	"errors"
	"math"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

var _ ops.Backend = (*recorder)(nil)

// recorder is a backend that records the operations of a pass as a graph.
type recorder struct {
	g      *graph
	params map[*float32]weight // by their first element
	inputs map[*float32]value  // by their first element
	dims   map[int]string      // the name of a number of rows in the model; "" if several have it
	bounds map[bound]string    // the name of a row at which a part of a matrix begins or ends
	all    []*edges            // of the batch and derived from them
	found  map[*graphops.Block]*edges
	groups []*edges // of rows to graphs, and back
	graphs bool     // the batch is of whole graphs
	facts  []fact
	// unknown are the numbers of the host that are no weights and that no fact is, in their order.
	unknown []tensorData
	output  value
	kinds   int       // of nodes, 0 without types
	means   []float32 // the parameters of one element
	last    bool      // the next Download is of the output
}

// weight is a parameter of the network.
type weight struct {
	name       string
	rows, cols int
	w          []float32
}

// named gives a number of rows its name in the model.
func (r *recorder) named(n int, name string) {
	if was, ok := r.dims[n]; ok && was != name {
		name = ""
	}
	r.dims[n] = name
}

// bound is a row of a matrix of some rows.
type bound struct{ rows, at int }

// bounded gives a row at which a part of matrices of some rows begins or ends its name in the model.
func (r *recorder) bounded(rows, at int, name string) {
	k := bound{rows, at}
	if was, ok := r.bounds[k]; ok && was != name {
		name = ""
	}
	r.bounds[k] = name
}

// boundAt is the name of a row at which a part of a matrix begins or ends.
func (r *recorder) boundAt(rows, at int) string {
	name, ok := r.bounds[bound{rows, at}]
	if !ok {
		refuse("it takes rows apart at row %d of %d, which is no boundary of nodes or edges of the batch", at, rows)
	}
	if name == "" {
		panic(&ops.Failure{Err: errTwice})
	}
	return name
}

// errTwice is the failure of two numbers of a made-up batch that are equal by chance.
var errTwice = chance{errors.New("two numbers of rows of the recorded batch are equal")}

// dim is the name of a number of rows: a vector of one integer.
func (r *recorder) dim(n int) string {
	name, ok := r.dims[n]
	if !ok {
		refuse("it makes a matrix of %d rows, which is the number of no nodes or edges of the batch", n)
	}
	if name == "" {
		panic(&ops.Failure{Err: errTwice})
	}
	return name
}

// wrapped finds out what host memory is.
func (r *recorder) wrapped(host []float32, rows, cols, lo, hi int) value {
	if len(host) == 0 {
		return value{kind: zeros, static: true}
	}
	if v, ok := r.inputs[&host[0]]; ok && len(host) == v.rows*v.cols {
		return v
	}
	if p, ok := r.params[&host[0]]; ok && len(p.w) == len(host) {
		r.g.constant(p.name, tensorData{floats: p.w, shape: []int64{int64(p.rows), int64(p.cols)}})
		return r.result(p.rows, p.cols, true, p.name)
	}
	if hi-lo != len(host) {
		if cols = max(cols, 1); len(host)%cols != 0 {
			cols = 1
		}
		rows = len(host) / cols
	}
	if name, ok := r.fact(host, cols); ok {
		return r.result(rows, cols, false, name)
	}
	if _, dynamic := r.dims[rows]; dynamic && equal(host) {
		v := value{rows: rows, cols: cols}
		if host[0] == 0 {
			v.kind = zeros
			return v
		}
		return r.filled(host[0], v)
	}
	name := "constant" + strconv.Itoa(len(r.unknown))
	r.unknown = append(r.unknown, tensorData{floats: append([]float32(nil), host...), shape: []int64{int64(rows), int64(cols)}})
	r.g.constant(name, r.unknown[len(r.unknown)-1])
	return r.result(rows, cols, true, name)
}

func equal(x []float32) bool {
	for _, v := range x {
		if v != x[0] {
			return false
		}
	}
	return true
}

// indices is the name of integers of the host: of a fact, or a constant.
func (r *recorder) indices(x []int32) (name string, static bool) {
	if name, ok := r.integers(x); ok {
		return name, false
	}
	name = "constant" + strconv.Itoa(len(r.unknown))
	t := tensorData{ints: make([]int64, len(x)), shape: []int64{int64(len(x))}}
	for i, v := range x {
		t.ints[i] = int64(v)
	}
	r.unknown = append(r.unknown, t)
	return r.g.constant(name, t), true
}

func (*recorder) Name() string           { return "onnx" }
func (*recorder) Free(ops.Buffer)        {}
func (*recorder) Alloc(n int) ops.Buffer { return ops.Buffer{Dev: &memory{}, N: n} }
func (*recorder) WrapHalf([]uint16) ops.Buffer {
	refuse("it reads a table of float16")
	return ops.Buffer{}
}

func (*recorder) Wrap(host []float32) ops.Buffer {
	m := &memory{}
	if len(host) > 0 {
		m.host = host
	}
	return ops.Buffer{Dev: m, N: len(host)}
}

// Upload implements [ops.Backend]: of features of edges, and of what the host computed.
func (r *recorder) Upload(dst ops.Buffer, src []float32) {
	if len(src) == 0 {
		return
	}
	if name, cols, ok := r.uploaded(src); ok {
		r.store(dst, len(src)/cols, cols, r.result(len(src)/cols, cols, false, name), false)
		return
	}
	r.store(dst, 1, len(src), r.wrapped(src, 1, len(src), 0, len(src)), false)
}

// Download implements [ops.Backend].
func (r *recorder) Download(_ []float32, src ops.Buffer) {
	if !r.last {
		refuse("it computes on the host, from elements that it reads in the pass (tensor.Fwd.Custom, Tensor.Data)")
	}
	r.output = r.whole(r.readAny(src))
}

func (r *recorder) Zero(dst ops.Buffer) {
	if dst.N > 0 {
		memoryOf(dst).put(dst.Off, dst.Off+dst.N, value{kind: zeros, rows: 1, cols: dst.N})
	}
}

func (r *recorder) Affine(out ops.Buffer, m, n int, products []ops.Product, e ops.Epilogue) {
	if e.Drop != nil {
		refuse("it trains")
	}
	if m*n == 0 {
		return
	}
	var sum value
	have := false
	if e.Base.N > 0 {
		sum, have = r.read(e.Base, m, n), true
	}
	bias := ""
	static := true
	if e.Bias.N > 0 {
		bias = r.whole(r.read(e.Bias, 1, n)).name
	}
	for _, p := range products {
		x := r.whole(r.read(p.X, m, p.K))
		var w value
		t := int64(0)
		if p.T {
			w, t = r.whole(r.read(p.W, n, p.K)), 1
		} else {
			w = r.whole(r.read(p.W, p.K, n))
		}
		static = static && x.static && w.static
		in := of(x.name, w.name)
		switch {
		case have:
			in = append(in, r.whole(sum).name)
			static = static && sum.static
		case bias != "":
			in, bias = append(in, bias), ""
		}
		sum, have = r.result(m, n, static, r.g.do("Gemm", in, withInt("transB", t))), true
	}
	if bias != "" {
		sum = r.whole(sum)
		sum = r.result(m, n, sum.static, r.g.do("Add", of(sum.name, bias)))
	}
	if e.ReLU {
		sum = r.whole(sum)
		sum = r.result(m, n, sum.static, r.g.do("Relu", of(sum.name)))
	}
	r.store(out, m, n, sum, false)
}

func (r *recorder) AddRow(out, row ops.Buffer, rows, cols int, acc bool) {
	v := r.whole(r.read(row, 1, cols))
	v.kind, v.rows, v.static = oneRow, rows, false
	if rows == 1 {
		v.kind, v.static = matrix, true
	}
	r.store(out, rows, cols, v, acc)
}

// over applies a reduction over an axis to a matrix.
func (r *recorder) over(op string, x value, axis int64) string {
	return r.g.do(op, of(r.whole(x).name, r.g.ints(axis)), withInt("keepdims", 1))
}

func (r *recorder) ColSum(out, x ops.Buffer, rows, cols int, acc bool) {
	r.store(out, 1, cols, r.result(1, cols, true, r.over("ReduceSum", r.read(x, rows, cols), 0)), acc)
}

func (r *recorder) Sum(out, x ops.Buffer, acc bool) {
	v := r.whole(r.readAny(x))
	name := r.g.do("ReduceSum", of(v.name, r.g.ints(0, 1)), withInt("keepdims", 1))
	r.store(out, 1, 1, r.result(1, 1, true, name), acc)
}

func (r *recorder) Spread(out, x ops.Buffer, acc bool) {
	v := r.whole(r.read(x, 1, 1))
	v.kind, v.static = number, false
	r.store(out, out.N, 1, v, acc)
}

func (r *recorder) RowScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	if rows*cols == 0 {
		return
	}
	by := r.read(w, rows, 1)
	if by.kind == number && !acc {
		r.scaled(out, x, by.name, rows, cols)
		return
	}
	v := r.whole(r.read(x, rows, cols))
	name := r.g.do("Mul", of(v.name, r.broadcast(by)))
	r.store(out, rows, cols, r.result(rows, cols, v.static && r.adapts(by), name), acc)
}

// scaled is a product of a part of a matrix by a number; other parts follow.
func (r *recorder) scaled(out, x ops.Buffer, by string, rows, cols int) {
	lo, hi := x.Off, x.Off+rows*cols
	r.resolve(memoryOf(x), rows, cols, lo, hi)
	found := memoryOf(x).within(lo, hi)
	if len(found) != 1 || found[0].v.kind != matrix || found[0].lo == lo && found[0].hi == hi {
		v := r.whole(r.read(x, rows, cols))
		r.store(out, rows, cols, r.result(rows, cols, v.static, r.g.do("Mul", of(v.name, by))), false)
		return
	}
	v := found[0].v
	memoryOf(out).put(out.Off, out.Off+rows*cols, value{kind: piece, of: &v, by: by, from: lo - found[0].lo, rows: rows, cols: cols})
}

func (r *recorder) RowDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	a, b := r.whole(r.read(x, rows, cols)), r.whole(r.read(y, rows, cols))
	p := r.result(rows, cols, a.static && b.static, r.g.do("Mul", of(a.name, b.name)))
	r.store(out, rows, 1, r.result(rows, 1, p.static, r.over("ReduceSum", p, 1)), acc)
}

func (r *recorder) ColScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	a, b := r.whole(r.read(x, rows, cols)), r.whole(r.read(w, 1, cols))
	r.store(out, rows, cols, r.result(rows, cols, a.static, r.g.do("Mul", of(a.name, b.name))), acc)
}

func (r *recorder) ColDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	a, b := r.whole(r.read(x, rows, cols)), r.whole(r.read(y, rows, cols))
	p := r.result(rows, cols, a.static && b.static, r.g.do("Mul", of(a.name, b.name)))
	r.store(out, 1, cols, r.result(1, cols, true, r.over("ReduceSum", p, 0)), acc)
}

func (r *recorder) Transpose(out, x ops.Buffer, rows, cols int, acc bool) {
	v := r.whole(r.read(x, rows, cols))
	if !v.static {
		refuse("it transposes a matrix of nodes or edges")
	}
	r.store(out, cols, rows, r.result(cols, rows, true, r.g.do("Transpose", of(v.name))), acc)
}

func (r *recorder) CopyCols(out ops.Buffer, outCols, outAt int, x ops.Buffer, xCols, xAt, rows, cols int, acc bool) {
	if rows*cols == 0 {
		return
	}
	v := r.read(x, rows, xCols)
	if cols != xCols {
		v = r.whole(v)
		v = r.result(rows, cols, v.static, r.g.do("Slice", of(v.name, r.g.ints(int64(xAt)), r.g.ints(int64(xAt+cols)), r.g.ints(1))))
	}
	r.storeColumns(out, rows, outCols, outAt, v, acc)
}

func (r *recorder) Binary(op ops.BinaryOp, out, a, b ops.Buffer, acc bool) {
	if out.N == 0 {
		return
	}
	x := r.whole(r.readAny(a, b))
	y := r.read(b, x.rows, x.cols)
	name := map[ops.BinaryOp]string{ops.AddOp: "Add", ops.SubOp: "Sub", ops.MulOp: "Mul"}[op]
	v := r.result(x.rows, x.cols, x.static && r.adapts(y), r.g.do(name, of(x.name, r.broadcast(y))))
	r.store(out, x.rows, x.cols, v, acc)
}

func (r *recorder) Unary(op ops.UnaryOp, out, x ops.Buffer, alpha float32, acc bool) {
	if out.N == 0 {
		return
	}
	var v value
	if acc {
		v = r.readAny(x, out)
	} else {
		v = r.readAny(x)
	}
	if op == ops.ScaleOp && alpha == 1 {
		r.store(out, v.rows, v.cols, v, acc)
		return
	}
	v = r.whole(v)
	r.store(out, v.rows, v.cols, r.result(v.rows, v.cols, v.static, r.unary(op, v.name, alpha)), acc)
}

func (r *recorder) unary(op ops.UnaryOp, x string, alpha float32) string {
	g := r.g
	switch op {
	case ops.ScaleOp:
		return g.do("Mul", of(x, g.number(alpha)))
	case ops.ReLUOp:
		return g.do("Relu", of(x))
	case ops.LeakyReLUOp:
		return g.do("LeakyRelu", of(x), withFloat("alpha", alpha))
	case ops.ELUOp:
		return g.do("Elu", of(x), withFloat("alpha", alpha))
	case ops.SigmoidOp:
		return g.do("Sigmoid", of(x))
	case ops.TanhOp:
		return g.do("Tanh", of(x))
	case ops.ExpOp:
		return g.do("Exp", of(x))
	case ops.GELUOp: // x/2·(1 + erf(x/√2))
		erf := g.do("Erf", of(g.do("Mul", of(x, g.number(float32(1/math.Sqrt2))))))
		return g.do("Mul", of(g.do("Mul", of(x, g.number(0.5))), g.do("Add", of(erf, g.number(1)))))
	case ops.SqrtOp:
		low := g.do("LessOrEqual", of(x, g.number(alpha)))
		return g.do("Where", of(low, g.number(0), g.do("Sqrt", of(x))))
	case ops.ReciprocalOp:
		return g.do("Reciprocal", of(g.do("Add", of(x, g.number(alpha)))))
	}
	refuse("it computes the elementwise function %d, which has no ONNX form here", op)
	return ""
}

func (r *recorder) LogSoftmax(y, x ops.Buffer, rows, cols int) {
	v := r.whole(r.read(x, rows, cols))
	r.store(y, rows, cols, r.result(rows, cols, v.static, r.g.do("LogSoftmax", of(v.name), withInt("axis", 1))), false)
}

func (r *recorder) L2Normalize(y, _, x ops.Buffer, rows, cols int) {
	v := r.whole(r.read(x, rows, cols))
	norm := r.g.do("Max", of(r.over("ReduceL2", v, 1), r.g.number(ops.L2Eps)))
	r.store(y, rows, cols, r.result(rows, cols, v.static, r.g.do("Div", of(v.name, norm))), false)
}

func (r *recorder) RowNorm(y, _, x ops.Buffer, rows, cols int, eps float32) {
	g, v := r.g, r.whole(r.read(x, rows, cols))
	far := r.result(rows, cols, v.static, g.do("Sub", of(v.name, r.over("ReduceMean", v, 1))))
	square := r.result(rows, cols, v.static, g.do("Mul", of(far.name, far.name)))
	deviation := g.do("Sqrt", of(g.do("Add", of(r.over("ReduceMean", square, 1), g.number(eps)))))
	r.store(y, rows, cols, r.result(rows, cols, v.static, g.do("Div", of(far.name, deviation))), false)
}

func (r *recorder) ColMeans(mean, minus, sum ops.Buffer, n int) {
	if n != 1 {
		refuse("it normalises by the rows of the batch")
	}
	v := r.whole(r.read(sum, 1, sum.N))
	r.store(mean, 1, sum.N, v, false)
	r.store(minus, 1, sum.N, r.result(1, sum.N, v.static, r.g.do("Neg", of(v.name))), false)
}

func (r *recorder) ColInverses(variance, inv, sum ops.Buffer, n int, eps float64) {
	if n != 1 {
		refuse("it normalises by the rows of the batch")
	}
	g := r.g
	v := r.whole(r.read(sum, 1, sum.N))
	r.store(variance, 1, sum.N, v, false)
	name := g.do("Reciprocal", of(g.do("Sqrt", of(g.do("Add", of(v.name, g.number(float32(eps))))))))
	r.store(inv, 1, sum.N, r.result(1, sum.N, v.static, name), false)
}

// rowsOf returns the matrix [n, cols] of the rows that an index selects.
func (r *recorder) rowsOf(h value, index string, n int) value {
	h = r.whole(h)
	return r.result(n, h.cols, false, r.g.do("Gather", of(h.name, index), withInt("axis", 0)))
}

// scatter reduces the rows of x to those of their edges' destinations; rows that none comes to are 0. ScatterND would take whole rows
// and less time, but ONNX Runtime computes it on several threads without a lock, so sums are wrong where destinations have several edges.
func (r *recorder) scatter(op ops.Op, x string, cols int, b *edges) string {
	g := r.g
	shape := g.do("Concat", of(b.nDst, g.ints(int64(cols))), withInt("axis", 0))
	index := g.do("Expand", of(b.column(r), g.do("Shape", of(x))))
	into := func(first float32, reduction string) string {
		return g.do("ScatterElements", of(g.do("Expand", of(g.number(first), shape)), index, x), withInt("axis", 0), withText("reduction", reduction))
	}
	switch op {
	case ops.Sum:
		return into(0, "add")
	case ops.Mean:
		return g.do("Div", of(into(0, "add"), g.do("Max", of(b.degree(r), g.number(1)))))
	}
	most := into(-math.MaxFloat32, "max")
	return g.do("Where", of(g.do("Greater", of(b.degree(r), g.number(0))), most, g.number(0)))
}

func (r *recorder) SpMM(op ops.Op, out, _ ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	e := r.edges(b)
	x := r.rowsOf(r.read(h, b.NumSrc, cols), e.src, e.n)
	r.store(out, b.NumDst, cols, r.result(b.NumDst, cols, false, r.scatter(op, x.name, cols, e)), false)
}

func (r *recorder) GatherSrc(msg ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	if b.NumDst*cols == 0 {
		return
	}
	if rows, ok := selection(b); ok {
		index, static := r.indices(rows)
		v := r.read(h, b.NumSrc, cols)
		w := r.rowsOf(v, index, b.NumDst)
		w.static = static
		r.store(msg, b.NumDst, cols, w, false)
		return
	}
	e := r.edges(b)
	r.store(msg, e.n, cols, r.rowsOf(r.read(h, b.NumSrc, cols), e.src, e.n), false)
}

func (r *recorder) Segment(op ops.Op, out, _ ops.Buffer, b *graphops.Block, msg ops.Buffer, cols int, acc bool) {
	e := r.edges(b)
	x := r.whole(r.read(msg, e.n, cols))
	r.store(out, b.NumDst, cols, r.result(b.NumDst, cols, false, r.scatter(op, x.name, cols, e)), acc)
}

// SegmentGrad implements [ops.Backend]. With Sum it is no gradient but the rows of the edges' destinations.
func (r *recorder) SegmentGrad(op ops.Op, dMsg, dOut, _ ops.Buffer, b *graphops.Block, cols int, acc bool) {
	if op != ops.Sum {
		refuse("it computes a gradient")
	}
	e := r.edges(b)
	r.store(dMsg, e.n, cols, r.rowsOf(r.read(dOut, b.NumDst, cols), e.dst, e.n), acc)
}

// heads splits the columns of rows into heads: [rows, heads, cols/heads].
func (r *recorder) heads(x string, heads, cols int) string {
	return r.g.do("Reshape", of(x, r.g.ints(0, int64(heads), int64(cols/heads))))
}

func (r *recorder) SpMMWeighted(out ops.Buffer, b *graphops.Block, w ops.Buffer, heads int, h ops.Buffer, cols int, acc bool) {
	e, g := r.edges(b), r.g
	x := r.rowsOf(r.read(h, b.NumSrc, cols), e.src, e.n).name
	switch {
	case w.N == 0:
	case heads == 1:
		x = g.do("Mul", of(x, r.broadcast(r.read(w, e.n, 1))))
	default:
		by := r.heads(r.whole(r.read(w, e.n, heads)).name, heads, heads)
		x = g.do("Reshape", of(g.do("Mul", of(r.heads(x, heads, cols), by)), g.ints(-1, int64(cols))))
	}
	r.store(out, b.NumDst, cols, r.result(b.NumDst, cols, false, r.scatter(ops.Sum, x, cols, e)), acc)
}

// EdgeDot implements [ops.Backend].
func (r *recorder) EdgeDot(dw ops.Buffer, b *graphops.Block, dOut, h ops.Buffer, heads, cols int, acc bool) {
	e, g := r.edges(b), r.g
	x, y := r.rowsOf(r.read(dOut, b.NumDst, cols), e.dst, e.n), r.rowsOf(r.read(h, b.NumSrc, cols), e.src, e.n)
	p := r.heads(g.do("Mul", of(x.name, y.name)), heads, cols)
	r.store(dw, e.n, heads, r.result(e.n, heads, false, g.do("ReduceSum", of(p, g.ints(2)), withInt("keepdims", 0))), acc)
}

func (r *recorder) EdgeSoftmax(y ops.Buffer, b *graphops.Block, x ops.Buffer, cols int) {
	e, g := r.edges(b), r.g
	v := r.whole(r.read(x, e.n, cols))
	each := func(rows string) string { return g.do("Gather", of(rows, e.dst), withInt("axis", 0)) }
	exp := g.do("Exp", of(g.do("Sub", of(v.name, each(r.scatter(ops.Max, v.name, cols, e))))))
	share := g.do("Div", of(exp, each(r.scatter(ops.Sum, exp, cols, e))))
	r.store(y, e.n, cols, r.result(e.n, cols, false, share), false)
}

func (r *recorder) SpMMTyped(out ops.Buffer, b *graphops.Block, t ops.Kinds, coef ops.Buffer, bases int, h ops.Buffer, rows *ops.Rows, cols int) {
	if rows != nil {
		refuse("it reads rows of a table")
	}
	e, g := r.edges(b), r.g
	if !e.hasTypes(t.Types) {
		refuse("it reads types of edges that are not the block's")
	}
	x := r.rowsOf(r.read(h, b.NumSrc, cols), e.src, e.n).name
	by := r.rowsOf(r.read(coef, t.N, bases), e.types, e.n).name
	if t.Shares.N > 0 { // of a mean
		by = g.do("Div", of(by, e.pairs(r).each(r)))
	}
	wide := g.do("Mul", of(g.do("Unsqueeze", of(x, g.ints(1))), g.do("Unsqueeze", of(by, g.ints(2)))))
	msg := g.do("Reshape", of(wide, g.ints(-1, int64(bases*cols))))
	r.store(out, b.NumDst, bases*cols, r.result(b.NumDst, bases*cols, false, r.scatter(ops.Sum, msg, bases*cols, e)), false)
}

// The operations that no evaluation of dense features needs.

func (*recorder) SpMMRows(ops.Op, ops.Buffer, *graphops.Block, ops.Buffer, ops.Buffer, ops.Rows, int) {
	refuse("it reads rows of a table")
}

func (*recorder) GatherRows(ops.Buffer, ops.Buffer, ops.Rows, int) {
	refuse("it reads rows of a table")
}

func (*recorder) AffineGrad(ops.Buffer, int, int, []ops.Product, []ops.ProductGrad, ops.Epilogue, ops.Buffer, bool) {
	refuse("it computes a gradient")
}

func (*recorder) UnaryGrad(ops.UnaryOp, ops.Buffer, ops.Buffer, ops.Buffer, ops.Buffer, float32, bool) {
	refuse("it computes a gradient")
}

func (*recorder) LogSoftmaxGrad(ops.Buffer, ops.Buffer, ops.Buffer, int, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) L2NormalizeGrad(ops.Buffer, ops.Buffer, ops.Buffer, ops.Buffer, int, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) RowNormGrad(ops.Buffer, ops.Buffer, ops.Buffer, ops.Buffer, int, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) Track(ops.Buffer, ops.Buffer, float64, float64) { refuse("it trains") }

func (*recorder) Dropout(ops.Buffer, ops.Buffer, ops.Buffer, int, int, ops.DropoutKey) {
	refuse("it trains")
}

func (*recorder) Mask(ops.Buffer, ops.Buffer, ops.Buffer, int, int, float32, bool) {
	refuse("it computes a gradient")
}

func (*recorder) SpMMGrad(ops.Op, ops.Buffer, ops.Buffer, ops.Buffer, *graphops.Block, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) ScatterSrc(ops.Buffer, *graphops.Block, ops.Buffer, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) SpMMWeightedGrad(ops.Buffer, ops.Buffer, ops.Buffer, int, *graphops.Block, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) EdgeSoftmaxGrad(ops.Buffer, ops.Buffer, ops.Buffer, *graphops.Block, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) SpMMTypedGrad(ops.Buffer, ops.Buffer, *graphops.Block, ops.Kinds, ops.Buffer, int, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) TypedDot(ops.Buffer, *graphops.Block, ops.Kinds, ops.Buffer, ops.Buffer, int, int, bool) {
	refuse("it computes a gradient")
}

func (*recorder) SparseDense(ops.Buffer, *graphops.Block, ops.Buffer) { refuse("its input is sparse") }

func (*recorder) SparseDropout(ops.Buffer, *graphops.Block, ops.Buffer, ops.DropoutKey) {
	refuse("its input is sparse")
}
