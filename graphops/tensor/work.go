package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// Work counts the arithmetic and memory traffic of operations on the CPU. The counts are exact for
// the requested operations and ignore caches. A Fwd whose [Config] has a Work adds to it.
//
//   - FLOP counts matrix products, forward and backward: 2·m·n·k per product, two for
//     each multiplication and its addition. It leaves out the additions of
//     aggregations and elementwise operations, which are limited by memory.
//   - RowBytes counts rows at places that the graph chooses: a row for each edge that
//     an aggregation or its gradient reads, and for each gathered row.
//   - StreamBytes counts all other operands and results, which are contiguous: 4
//     bytes for each element that an operation reads or writes, and 4 bytes for the
//     index of an edge. It leaves out what an operation keeps in registers or in a
//     core's cache between its steps (a product's bias, ReLU and dropout).
type Work struct {
	FLOP, RowBytes, StreamBytes int64
}

var (
	_ ops.Normer     = (*metered)(nil)
	_ ops.PartSummer = (*metered)(nil)
)

// metered is a backend with counting.
type metered struct {
	ops.Normer
	w *Work
	// turns is called with each block along whose transpose an operation goes, unless it is nil.
	turns func(b *graphops.Block)
}

// move counts elements that are read or written in order; if acc is set, results of them are also
// read before.
func (m *metered) move(elements int, acc bool, results int) {
	if acc {
		elements += results
	}
	m.w.StreamBytes += 4 * int64(elements)
}

// edges counts an aggregation along a block's edges: a row of cols per edge, its index, and the results.
func (m *metered) edges(b *graphops.Block, cols int, acc bool, results int) {
	m.rows(b.NumEdges(), cols)
	m.move(b.NumEdges()+results, acc, results)
}

// rows counts rows of cols elements at places that the graph chooses.
func (m *metered) rows(n, cols int) { m.w.RowBytes += 4 * int64(n) * int64(cols) }

// edgeRows counts rows of edges that are read, and written.
func (m *metered) edgeRows(edges, cols int) {
	m.rows(edges, cols)
	m.move(edges*cols, false, 0)
}

func (m *metered) transposes(b *graphops.Block) {
	if m.turns != nil {
		m.turns(b)
	}
}

func (m *metered) Affine(out ops.Buffer, rows, n int, products []ops.Product, e ops.Epilogue) {
	m.Normer.Affine(out, rows, n, products, e)
	for _, p := range products {
		m.product(rows, n, p.K)
	}
	m.move(rows*n+e.Base.N, false, 0)
}

// product counts a product [m,k]·[k,n], except its result.
func (m *metered) product(rows, n, k int) {
	m.w.FLOP += 2 * int64(rows) * int64(n) * int64(k)
	m.move(rows*k+k*n, false, 0)
}

func (m *metered) AffineGrad(d ops.Buffer, rows, n int, products []ops.Product, grads []ops.ProductGrad, e ops.Epilogue, db ops.Buffer, accB bool) {
	m.Normer.AffineGrad(d, rows, n, products, grads, e, db, accB)
	for i, p := range products {
		if g := grads[i]; g.WantX {
			m.product(rows, p.K, n)
			m.move(rows*p.K, g.AccX, rows*p.K)
		}
		if g := grads[i]; g.WantW {
			m.product(p.K, n, rows)
			m.move(p.K*n, g.AccW, p.K*n)
		}
	}
	if db.N > 0 {
		m.move(rows*n+n, accB, n)
	}
}

func (m *metered) Zero(dst ops.Buffer) {
	m.Normer.Zero(dst)
	m.move(dst.N, false, 0)
}

func (m *metered) AddRow(out, row ops.Buffer, rows, cols int, acc bool) {
	m.Normer.AddRow(out, row, rows, cols, acc)
	m.move(rows*cols, acc, rows*cols)
}

func (m *metered) ColSum(out, x ops.Buffer, rows, cols int, acc bool) {
	m.Normer.ColSum(out, x, rows, cols, acc)
	m.move(rows*cols, acc, cols)
}

func (m *metered) Sum(out, x ops.Buffer, acc bool) {
	m.Normer.Sum(out, x, acc)
	m.move(x.N, acc, 1)
}

func (m *metered) Spread(out, x ops.Buffer, acc bool) {
	m.Normer.Spread(out, x, acc)
	m.move(out.N, acc, out.N)
}

func (m *metered) RowScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	m.Normer.RowScale(out, x, w, rows, cols, acc)
	m.move(2*rows*cols+rows, acc, rows*cols)
}

func (m *metered) RowDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	m.Normer.RowDot(out, x, y, rows, cols, acc)
	m.move(2*rows*cols+rows, acc, rows)
}

func (m *metered) ColScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	m.Normer.ColScale(out, x, w, rows, cols, acc)
	m.move(2*rows*cols, acc, rows*cols)
}

func (m *metered) ColDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	m.Normer.ColDot(out, x, y, rows, cols, acc)
	m.move(2*rows*cols, acc, cols)
}

func (m *metered) Transpose(out, x ops.Buffer, rows, cols int, acc bool) {
	m.Normer.Transpose(out, x, rows, cols, acc)
	m.move(2*rows*cols, acc, rows*cols)
}

func (m *metered) CopyCols(out ops.Buffer, outCols, outAt int, x ops.Buffer, xCols, xAt, rows, cols int, acc bool) {
	m.Normer.CopyCols(out, outCols, outAt, x, xCols, xAt, rows, cols, acc)
	m.move(2*rows*cols, acc, rows*cols)
}

func (m *metered) Binary(op ops.BinaryOp, out, a, b ops.Buffer, acc bool) {
	m.Normer.Binary(op, out, a, b, acc)
	m.move(3*out.N, acc, out.N)
}

func (m *metered) Unary(op ops.UnaryOp, out, x ops.Buffer, alpha float32, acc bool) {
	m.Normer.Unary(op, out, x, alpha, acc)
	m.move(2*out.N, acc, out.N)
}

func (m *metered) UnaryGrad(op ops.UnaryOp, dx, dy, x, y ops.Buffer, alpha float32, acc bool) {
	m.Normer.UnaryGrad(op, dx, dy, x, y, alpha, acc)
	m.move(3*dx.N, acc, dx.N)
}

func (m *metered) LogSoftmax(y, x ops.Buffer, rows, cols int) {
	m.Normer.LogSoftmax(y, x, rows, cols)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) LogSoftmaxGrad(dx, dy, y ops.Buffer, rows, cols int, acc bool) {
	m.Normer.LogSoftmaxGrad(dx, dy, y, rows, cols, acc)
	m.move(3*rows*cols, acc, rows*cols)
}

func (m *metered) L2Normalize(y, norm, x ops.Buffer, rows, cols int) {
	m.Normer.L2Normalize(y, norm, x, rows, cols)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) L2NormalizeGrad(dx, dy, y, norm ops.Buffer, rows, cols int, acc bool) {
	m.Normer.L2NormalizeGrad(dx, dy, y, norm, rows, cols, acc)
	m.move(3*rows*cols, acc, rows*cols)
}

func (m *metered) RowNorm(y, inv, x ops.Buffer, rows, cols int, eps float32) {
	m.Normer.RowNorm(y, inv, x, rows, cols, eps)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) RowNormGrad(dx, dy, y, inv ops.Buffer, rows, cols int, acc bool) {
	m.Normer.RowNormGrad(dx, dy, y, inv, rows, cols, acc)
	m.move(3*rows*cols, acc, rows*cols)
}

func (m *metered) LayerNorm(out, y, inv, x ops.Buffer, rows, cols int, eps float32, w ops.Buffer, e ops.Epilogue) {
	m.Normer.LayerNorm(out, y, inv, x, rows, cols, eps, w, e)
	m.move(2*rows*cols+y.N, false, 0)
}

func (m *metered) LayerNormGrad(d, y, inv ops.Buffer, rows, cols int, w ops.Buffer, e ops.Epilogue, g ops.NormGrads) {
	m.Normer.LayerNormGrad(d, y, inv, rows, cols, w, e, g)
	m.move(2*rows*cols, false, 0)
	m.move(g.DX.N, g.AccX, g.DX.N)
	m.move(g.DW.N, g.AccW, g.DW.N)
	m.move(g.DB.N, g.AccB, g.DB.N)
}

func (m *metered) ColStats(mean, variance, minus, inv, x ops.Buffer, rows, cols int, eps float64) {
	m.Normer.ColStats(mean, variance, minus, inv, x, rows, cols, eps)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) ColNorm(out, x, minus, inv, w ops.Buffer, rows, cols int, e ops.Epilogue) {
	m.Normer.ColNorm(out, x, minus, inv, w, rows, cols, e)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) ColNormGrad(d, x, minus, inv, w ops.Buffer, rows, cols int, e ops.Epilogue, given bool, g ops.NormGrads) {
	m.Normer.ColNormGrad(d, x, minus, inv, w, rows, cols, e, given, g)
	m.move(2*rows*cols, false, 0)
	if g.DX.N > 0 {
		m.move(3*rows*cols, g.AccX, g.DX.N)
	}
}

func (m *metered) Dropout(out, mask, x ops.Buffer, rows, cols int, k ops.DropoutKey) {
	m.Normer.Dropout(out, mask, x, rows, cols, k)
	m.move(2*rows*cols+mask.N, false, 0)
}

func (m *metered) Mask(out, x, mask ops.Buffer, rows, cols int, scale float32, acc bool) {
	m.Normer.Mask(out, x, mask, rows, cols, scale, acc)
	m.move(2*rows*cols+mask.N, acc, rows*cols)
}

func (m *metered) SpMM(op ops.Op, out, arg ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	m.Normer.SpMM(op, out, arg, b, h, cols)
	m.edges(b, cols, false, b.NumDst*cols)
	m.move(arg.N, false, 0)
}

func (m *metered) SpMMRows(op ops.Op, out ops.Buffer, b *graphops.Block, w, table ops.Buffer, rows ops.Rows, cols int) {
	m.Normer.SpMMRows(op, out, b, w, table, rows, cols)
	m.edges(b, cols, false, b.NumDst*cols)
	m.move(w.N+rows.N, false, 0)
}

func (m *metered) GatherRows(out, table ops.Buffer, rows ops.Rows, cols int) {
	m.Normer.GatherRows(out, table, rows, cols)
	m.rows(rows.N, cols)
	m.move(rows.N*cols+rows.N, false, 0)
}

func (m *metered) SpMMGrad(op ops.Op, dh, dOut, arg ops.Buffer, b *graphops.Block, cols int, acc bool) {
	m.Normer.SpMMGrad(op, dh, dOut, arg, b, cols, acc)
	m.transposes(b)
	m.edges(b, cols, acc, b.NumSrc*cols)
	m.move(arg.N, false, 0)
}

// SumParts implements [ops.PartSummer].
func (m *metered) SumParts(out ops.Buffer, w []float32, parts []ops.Part, cols int) {
	m.Normer.(ops.PartSummer).SumParts(out, w, parts, cols)
	for _, p := range parts {
		edges := len(p.Edges.Indices)
		m.rows(edges, cols)
		m.move(edges, false, 0)
	}
	m.move(out.N+len(w), false, 0)
}

// SumPartsGrad implements [ops.PartSummer].
func (m *metered) SumPartsGrad(dh ops.Buffer, table []float32, at []int32, b *graphops.Block, cols int, acc bool) {
	m.Normer.(ops.PartSummer).SumPartsGrad(dh, table, at, b, cols, acc)
	m.transposes(b)
	m.edges(b, cols, acc, b.NumSrc*cols)
	m.move(len(at), false, 0)
}

func (m *metered) GatherSrc(msg ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	m.Normer.GatherSrc(msg, b, h, cols)
	m.edges(b, cols, false, b.NumEdges()*cols)
}

func (m *metered) ScatterSrc(dh ops.Buffer, b *graphops.Block, dMsg ops.Buffer, cols int, acc bool) {
	m.Normer.ScatterSrc(dh, b, dMsg, cols, acc)
	m.transposes(b)
	m.edges(b, cols, acc, b.NumSrc*cols)
}

func (m *metered) Segment(op ops.Op, out, arg ops.Buffer, b *graphops.Block, msg ops.Buffer, cols int, acc bool) {
	m.Normer.Segment(op, out, arg, b, msg, cols, acc)
	m.move((b.NumEdges()+b.NumDst)*cols+arg.N, acc, b.NumDst*cols)
}

func (m *metered) SegmentGrad(op ops.Op, dMsg, dOut, arg ops.Buffer, b *graphops.Block, cols int, acc bool) {
	m.Normer.SegmentGrad(op, dMsg, dOut, arg, b, cols, acc)
	m.move((b.NumEdges()+b.NumDst)*cols+arg.N, acc, b.NumEdges()*cols)
}

func (m *metered) SpMMWeighted(out ops.Buffer, b *graphops.Block, w ops.Buffer, heads int, h ops.Buffer, cols int, acc bool) {
	m.Normer.SpMMWeighted(out, b, w, heads, h, cols, acc)
	m.edges(b, cols, acc, b.NumDst*cols)
	m.move(w.N, false, 0)
}

func (m *metered) SpMMWeightedGrad(dh, dOut, w ops.Buffer, heads int, b *graphops.Block, cols int, acc bool) {
	m.Normer.SpMMWeightedGrad(dh, dOut, w, heads, b, cols, acc)
	if !ops.Scatters(b, heads, acc) {
		m.transposes(b)
	}
	m.edges(b, cols, acc, b.NumSrc*cols)
	m.move(w.N, false, 0)
}

func (m *metered) EdgeDot(dw ops.Buffer, b *graphops.Block, dOut, h ops.Buffer, heads, cols int, acc bool) {
	m.Normer.EdgeDot(dw, b, dOut, h, heads, cols, acc)
	m.edges(b, cols, acc, b.NumEdges()*heads)
	m.move(b.NumDst*cols, false, 0)
}

func (m *metered) SpMMTyped(out ops.Buffer, b *graphops.Block, t ops.Kinds, coef ops.Buffer, bases int, h ops.Buffer, rows *ops.Rows, cols int) {
	m.Normer.SpMMTyped(out, b, t, coef, bases, h, rows, cols)
	m.edges(b, cols, false, out.N)
	m.move(t.Shares.N+coef.N, false, 0)
}

func (m *metered) SpMMTypedGrad(dh, dOut ops.Buffer, b *graphops.Block, t ops.Kinds, coef ops.Buffer, bases, cols int, acc bool) {
	m.Normer.SpMMTypedGrad(dh, dOut, b, t, coef, bases, cols, acc)
	m.transposes(b)
	m.edges(b, bases*cols, acc, dh.N)
	m.move(t.Shares.N+coef.N, false, 0)
}

func (m *metered) TypedDot(dCoef ops.Buffer, b *graphops.Block, t ops.Kinds, dOut, h ops.Buffer, bases, cols int, acc bool) {
	m.Normer.TypedDot(dCoef, b, t, dOut, h, bases, cols, acc)
	m.edges(b, cols, acc, dCoef.N)
	m.move(t.Shares.N+dOut.N, false, 0)
}

func (m *metered) EdgeSoftmax(y ops.Buffer, b *graphops.Block, x ops.Buffer, cols int) {
	m.Normer.EdgeSoftmax(y, b, x, cols)
	m.move(2*b.NumEdges()*cols, false, 0)
}

func (m *metered) EdgeSoftmaxGrad(dx, dy, y ops.Buffer, b *graphops.Block, cols int, acc bool) {
	m.Normer.EdgeSoftmaxGrad(dx, dy, y, b, cols, acc)
	m.move(3*b.NumEdges()*cols, acc, b.NumEdges()*cols)
}

func (m *metered) SparseDense(out ops.Buffer, b *graphops.Block, values ops.Buffer) {
	m.Normer.SparseDense(out, b, values)
	m.move(out.N+b.NumEdges()+values.N, false, 0)
}

func (m *metered) SparseDropout(out ops.Buffer, b *graphops.Block, values ops.Buffer, k ops.DropoutKey) {
	m.Normer.SparseDropout(out, b, values, k)
	m.move(out.N+b.NumEdges()+values.N, false, 0)
}
