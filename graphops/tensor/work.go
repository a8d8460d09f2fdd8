package tensor

import "github.com/graphnb/graphnb/graphops"

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

// metered is the CPU's backend with counting.
type metered struct {
	*cpu
	w *Work
}

// move counts elements that are read or written in order; if acc is set, results of them are also
// read before.
func (m *metered) move(elements int, acc bool, results int) {
	if acc {
		elements += results
	}
	m.w.StreamBytes += 4 * int64(elements)
}

// edges counts an aggregation along a block's edges: a row of cols per edge, its index, and the
// results.
func (m *metered) edges(b *graphops.Block, cols int, acc bool, results int) {
	e := b.NumEdges()
	m.w.RowBytes += 4 * int64(e) * int64(cols)
	m.move(e+results, acc, results)
}

func (m *metered) Affine(out Buffer, rows, n int, products []Product, e Epilogue) {
	m.cpu.Affine(out, rows, n, products, e)
	for _, p := range products {
		m.product(rows, n, p.K)
	}
	m.move(rows*n, false, 0)
}

// product counts a product [m,k]·[k,n], except its result.
func (m *metered) product(rows, n, k int) {
	m.w.FLOP += 2 * int64(rows) * int64(n) * int64(k)
	m.move(rows*k+k*n, false, 0)
}

func (m *metered) AffineGrad(d Buffer, rows, n int, products []Product, grads []ProductGrad, e Epilogue, db Buffer, accB bool) {
	m.cpu.AffineGrad(d, rows, n, products, grads, e, db, accB)
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

func (m *metered) Zero(dst Buffer) {
	m.cpu.Zero(dst)
	m.move(dst.N, false, 0)
}

func (m *metered) AddRow(out, row Buffer, rows, cols int, acc bool) {
	m.cpu.AddRow(out, row, rows, cols, acc)
	m.move(rows*cols, acc, rows*cols)
}

func (m *metered) ColSum(out, x Buffer, rows, cols int, acc bool) {
	m.cpu.ColSum(out, x, rows, cols, acc)
	m.move(rows*cols, acc, cols)
}

func (m *metered) Sum(out, x Buffer, acc bool) {
	m.cpu.Sum(out, x, acc)
	m.move(x.N, acc, 1)
}

func (m *metered) Spread(out, x Buffer, acc bool) {
	m.cpu.Spread(out, x, acc)
	m.move(out.N, acc, out.N)
}

func (m *metered) RowScale(out, x, w Buffer, rows, cols int, acc bool) {
	m.cpu.RowScale(out, x, w, rows, cols, acc)
	m.move(2*rows*cols+rows, acc, rows*cols)
}

func (m *metered) RowDot(out, x, y Buffer, rows, cols int, acc bool) {
	m.cpu.RowDot(out, x, y, rows, cols, acc)
	m.move(2*rows*cols+rows, acc, rows)
}

func (m *metered) ColScale(out, x, w Buffer, rows, cols int, acc bool) {
	m.cpu.ColScale(out, x, w, rows, cols, acc)
	m.move(2*rows*cols, acc, rows*cols)
}

func (m *metered) ColDot(out, x, y Buffer, rows, cols int, acc bool) {
	m.cpu.ColDot(out, x, y, rows, cols, acc)
	m.move(2*rows*cols, acc, cols)
}

func (m *metered) Transpose(out, x Buffer, rows, cols int, acc bool) {
	m.cpu.Transpose(out, x, rows, cols, acc)
	m.move(2*rows*cols, acc, rows*cols)
}

func (m *metered) CopyCols(out Buffer, outCols, outAt int, x Buffer, xCols, xAt, rows, cols int, acc bool) {
	m.cpu.CopyCols(out, outCols, outAt, x, xCols, xAt, rows, cols, acc)
	m.move(2*rows*cols, acc, rows*cols)
}

func (m *metered) Binary(op BinaryOp, out, a, b Buffer, acc bool) {
	m.cpu.Binary(op, out, a, b, acc)
	m.move(3*out.N, acc, out.N)
}

func (m *metered) Unary(op UnaryOp, out, x Buffer, alpha float32, acc bool) {
	m.cpu.Unary(op, out, x, alpha, acc)
	m.move(2*out.N, acc, out.N)
}

func (m *metered) UnaryGrad(op UnaryOp, dx, dy, x, y Buffer, alpha float32, acc bool) {
	m.cpu.UnaryGrad(op, dx, dy, x, y, alpha, acc)
	m.move(3*dx.N, acc, dx.N)
}

func (m *metered) LogSoftmax(y, x Buffer, rows, cols int) {
	m.cpu.LogSoftmax(y, x, rows, cols)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) LogSoftmaxGrad(dx, dy, y Buffer, rows, cols int, acc bool) {
	m.cpu.LogSoftmaxGrad(dx, dy, y, rows, cols, acc)
	m.move(3*rows*cols, acc, rows*cols)
}

func (m *metered) L2Normalize(y, norm, x Buffer, rows, cols int) {
	m.cpu.L2Normalize(y, norm, x, rows, cols)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) L2NormalizeGrad(dx, dy, y, norm Buffer, rows, cols int, acc bool) {
	m.cpu.L2NormalizeGrad(dx, dy, y, norm, rows, cols, acc)
	m.move(3*rows*cols, acc, rows*cols)
}

func (m *metered) RowNorm(y, inv, x Buffer, rows, cols int, eps float32) {
	m.cpu.RowNorm(y, inv, x, rows, cols, eps)
	m.move(2*rows*cols, false, 0)
}

func (m *metered) RowNormGrad(dx, dy, y, inv Buffer, rows, cols int, acc bool) {
	m.cpu.RowNormGrad(dx, dy, y, inv, rows, cols, acc)
	m.move(3*rows*cols, acc, rows*cols)
}

func (m *metered) LayerNorm(out, y, inv, x Buffer, rows, cols int, eps float32, w Buffer, e Epilogue) {
	m.cpu.LayerNorm(out, y, inv, x, rows, cols, eps, w, e)
	m.move(2*rows*cols+y.N, false, 0)
}

func (m *metered) LayerNormGrad(d, y, inv Buffer, rows, cols int, w Buffer, e Epilogue, g LayerNormGrads) {
	m.cpu.LayerNormGrad(d, y, inv, rows, cols, w, e, g)
	m.move(2*rows*cols, false, 0)
	m.move(g.DX.N, g.AccX, g.DX.N)
	m.move(g.DW.N, g.AccW, g.DW.N)
	m.move(g.DB.N, g.AccB, g.DB.N)
}

func (m *metered) Dropout(out, mask, x Buffer, rows, cols int, k DropoutKey) {
	m.cpu.Dropout(out, mask, x, rows, cols, k)
	m.move(2*rows*cols+mask.N, false, 0)
}

func (m *metered) Mask(out, x, mask Buffer, rows, cols int, scale float32, acc bool) {
	m.cpu.Mask(out, x, mask, rows, cols, scale, acc)
	m.move(2*rows*cols+mask.N, acc, rows*cols)
}

func (m *metered) SpMM(op Op, out, arg Buffer, b *graphops.Block, h Buffer, cols int) {
	m.cpu.SpMM(op, out, arg, b, h, cols)
	m.edges(b, cols, false, b.NumDst*cols)
	m.move(arg.N, false, 0)
}

func (m *metered) SpMMRows(op Op, out Buffer, b *graphops.Block, w, table Buffer, rows Rows, cols int) {
	m.cpu.SpMMRows(op, out, b, w, table, rows, cols)
	m.edges(b, cols, false, b.NumDst*cols)
	m.move(w.N+rows.N, false, 0)
}

func (m *metered) GatherRows(out, table Buffer, rows Rows, cols int) {
	m.cpu.GatherRows(out, table, rows, cols)
	m.w.RowBytes += 4 * int64(rows.N) * int64(cols)
	m.move(rows.N*cols+rows.N, false, 0)
}

func (m *metered) SpMMGrad(op Op, dh, dOut, arg Buffer, b *graphops.Block, cols int, acc bool) {
	m.cpu.SpMMGrad(op, dh, dOut, arg, b, cols, acc)
	m.edges(b, cols, acc, b.NumSrc*cols)
	m.move(arg.N, false, 0)
}

func (m *metered) GatherSrc(msg Buffer, b *graphops.Block, h Buffer, cols int) {
	m.cpu.GatherSrc(msg, b, h, cols)
	m.edges(b, cols, false, b.NumEdges()*cols)
}

func (m *metered) ScatterSrc(dh Buffer, b *graphops.Block, dMsg Buffer, cols int, acc bool) {
	m.cpu.ScatterSrc(dh, b, dMsg, cols, acc)
	m.edges(b, cols, acc, b.NumSrc*cols)
}

func (m *metered) Segment(op Op, out, arg Buffer, b *graphops.Block, msg Buffer, cols int, acc bool) {
	m.cpu.Segment(op, out, arg, b, msg, cols, acc)
	m.move((b.NumEdges()+b.NumDst)*cols+arg.N, acc, b.NumDst*cols)
}

func (m *metered) SegmentGrad(op Op, dMsg, dOut, arg Buffer, b *graphops.Block, cols int, acc bool) {
	m.cpu.SegmentGrad(op, dMsg, dOut, arg, b, cols, acc)
	m.move((b.NumEdges()+b.NumDst)*cols+arg.N, acc, b.NumEdges()*cols)
}

func (m *metered) SpMMWeighted(out Buffer, b *graphops.Block, w Buffer, heads int, h Buffer, cols int, acc bool) {
	m.cpu.SpMMWeighted(out, b, w, heads, h, cols, acc)
	m.edges(b, cols, acc, b.NumDst*cols)
	m.move(w.N, false, 0)
}

func (m *metered) SpMMWeightedGrad(dh, dOut, w Buffer, heads int, b *graphops.Block, cols int, acc bool) {
	m.cpu.SpMMWeightedGrad(dh, dOut, w, heads, b, cols, acc)
	m.edges(b, cols, acc, b.NumSrc*cols)
	m.move(w.N, false, 0)
}

func (m *metered) EdgeDot(dw Buffer, b *graphops.Block, dOut, h Buffer, heads, cols int, acc bool) {
	m.cpu.EdgeDot(dw, b, dOut, h, heads, cols, acc)
	m.edges(b, cols, acc, b.NumEdges()*heads)
	m.move(b.NumDst*cols, false, 0)
}

func (m *metered) EdgeSoftmax(y Buffer, b *graphops.Block, x Buffer, cols int) {
	m.cpu.EdgeSoftmax(y, b, x, cols)
	m.move(2*b.NumEdges()*cols, false, 0)
}

func (m *metered) EdgeSoftmaxGrad(dx, dy, y Buffer, b *graphops.Block, cols int, acc bool) {
	m.cpu.EdgeSoftmaxGrad(dx, dy, y, b, cols, acc)
	m.move(3*b.NumEdges()*cols, acc, b.NumEdges()*cols)
}

func (m *metered) SparseDense(out Buffer, b *graphops.Block, values Buffer) {
	m.cpu.SparseDense(out, b, values)
	m.move(out.N+b.NumEdges()+values.N, false, 0)
}

func (m *metered) SparseDropout(out Buffer, b *graphops.Block, values Buffer, k DropoutKey) {
	m.cpu.SparseDropout(out, b, values, k)
	m.move(out.N+b.NumEdges()+values.N, false, 0)
}
