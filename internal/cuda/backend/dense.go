package backend

import (
	"encoding/binary"
	"math"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// AddRow implements [ops.Backend].
func (b *Backend) AddRow(out, row ops.Buffer, rows, cols int, acc bool) {
	b.run("add_row_f32", kernels.Rows(rows, cols), addr(out), addr(row), rows, cols, asFlag(acc))
}

// ColSum implements [ops.Backend].
func (b *Backend) ColSum(out, x ops.Buffer, rows, cols int, acc bool) {
	b.columns(addr(out), addr(x), 0, rows, cols, acc)
}

// ColDot implements [ops.Backend].
func (b *Backend) ColDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	b.columns(addr(out), addr(x), addr(y), rows, cols, acc)
}

// columns sums x, or x·y, over rows: first within chunks of rows, then over the chunks.
func (b *Backend) columns(out, x, y cuda.Ptr, rows, cols int, acc bool) {
	chunk := kernels.RowChunk(rows)
	chunks := (rows + chunk - 1) / chunk
	if chunks > 1 {
		parts := b.room(&b.parts, 4*chunks*cols)
		b.run("col_dot_f32", kernels.Columns(chunks, cols), parts, x, y, rows, cols, chunk, 0)
		x, y, rows = parts, 0, chunks
	}
	b.run("col_dot_f32", kernels.Total(rows, cols), out, x, y, rows, cols, max(rows, 1), asFlag(acc))
}

// Sum implements [ops.Backend].
func (b *Backend) Sum(out, x ops.Buffer, acc bool) {
	chunks := (x.N + kernels.SumChunk - 1) / kernels.SumChunk
	parts := b.room(&b.parts, 8*chunks)
	b.run("sum_chunks_f32", kernels.Blocks(chunks), parts, addr(x), x.N, kernels.SumChunk)
	b.run("sum_parts_f32", kernels.Blocks(1), addr(out), parts, chunks, asFlag(acc))
}

// Spread implements [ops.Backend].
func (b *Backend) Spread(out, x ops.Buffer, acc bool) {
	b.run("spread_f32", kernels.Items(out.N), addr(out), addr(x), out.N, asFlag(acc))
}

// RowScale implements [ops.Backend].
func (b *Backend) RowScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	b.run("row_scale_f32", kernels.Rows(rows, cols), addr(out), addr(x), addr(w), rows, cols, asFlag(acc))
}

// RowDot implements [ops.Backend].
func (b *Backend) RowDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	b.run("row_dot_f32", kernels.Rows(rows, cols), addr(out), addr(x), addr(y), rows, cols, asFlag(acc))
}

// ColScale implements [ops.Backend].
func (b *Backend) ColScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	b.run("col_scale_f32", kernels.Rows(rows, cols), addr(out), addr(x), addr(w), rows, cols, asFlag(acc))
}

// Transpose implements [ops.Backend].
func (b *Backend) Transpose(out, x ops.Buffer, rows, cols int, acc bool) {
	b.run("transpose_f32", kernels.Transpose(rows, cols), addr(out), addr(x), rows, cols, asFlag(acc))
}

// CopyCols implements [ops.Backend].
func (b *Backend) CopyCols(out ops.Buffer, outCols, outAt int, x ops.Buffer, xCols, xAt, rows, cols int, acc bool) {
	b.run("copy_cols_f32", kernels.Rows(rows, cols), addr(out)+cuda.Ptr(4*outAt), outCols, addr(x)+cuda.Ptr(4*xAt), xCols, rows, cols, asFlag(acc))
}

// Binary implements [ops.Backend].
func (b *Backend) Binary(op ops.BinaryOp, out, x, y ops.Buffer, acc bool) {
	b.run("binary_f32", kernels.Rounds(out.N), int(op), addr(out), addr(x), addr(y), out.N, asFlag(acc))
}

// Unary implements [ops.Backend].
func (b *Backend) Unary(op ops.UnaryOp, out, x ops.Buffer, alpha float32, acc bool) {
	if op == ops.ScaleOp && alpha == 1 && !acc {
		b.s.Copy(addr(out), addr(x), int64(4*out.N))
		return
	}
	b.run("unary_f32", kernels.Rounds(out.N), int(op), addr(out), addr(x), alpha, out.N, asFlag(acc))
}

// UnaryGrad implements [ops.Backend].
func (b *Backend) UnaryGrad(op ops.UnaryOp, dx, dy, x, y ops.Buffer, alpha float32, acc bool) {
	of := y
	switch op {
	case ops.ScaleOp:
		b.Unary(op, dx, dy, alpha, acc)
		return
	case ops.ReLUOp, ops.LeakyReLUOp, ops.GELUOp:
		of = x
	}
	b.run("unary_grad_f32", kernels.Rounds(dx.N), int(op), addr(dx), addr(dy), addr(of), alpha, dx.N, asFlag(acc))
}

// LogSoftmax implements [ops.Backend].
func (b *Backend) LogSoftmax(y, x ops.Buffer, rows, cols int) {
	b.run("log_softmax_f32", kernels.Held(rows, cols), addr(y), addr(x), rows, cols)
}

// LogSoftmaxGrad implements [ops.Backend].
func (b *Backend) LogSoftmaxGrad(dx, dy, y ops.Buffer, rows, cols int, acc bool) {
	b.run("log_softmax_grad_f32", kernels.Held(rows, cols), addr(dx), addr(dy), addr(y), rows, cols, asFlag(acc))
}

// L2Normalize implements [ops.Backend].
func (b *Backend) L2Normalize(y, norm, x ops.Buffer, rows, cols int) {
	b.run("l2_normalize_f32", kernels.Held(rows, cols), addr(y), addr(norm), addr(x), rows, cols)
}

// L2NormalizeGrad implements [ops.Backend].
func (b *Backend) L2NormalizeGrad(dx, dy, y, norm ops.Buffer, rows, cols int, acc bool) {
	b.run("l2_normalize_grad_f32", kernels.Held(rows, cols), addr(dx), addr(dy), addr(y), addr(norm), rows, cols, asFlag(acc))
}

// RowNorm implements [ops.Backend].
func (b *Backend) RowNorm(y, inv, x ops.Buffer, rows, cols int, eps float32) {
	b.run("row_norm_f32", kernels.Held(rows, cols), addr(y), addr(inv), addr(x), rows, cols, eps)
}

// RowNormGrad implements [ops.Backend].
func (b *Backend) RowNormGrad(dx, dy, y, inv ops.Buffer, rows, cols int, acc bool) {
	b.run("row_norm_grad_f32", kernels.Held(rows, cols), addr(dx), addr(dy), addr(y), addr(inv), rows, cols, asFlag(acc))
}

// ColMeans implements [ops.Backend].
func (b *Backend) ColMeans(mean, minus, sum ops.Buffer, n int) {
	b.run("col_means_f32", kernels.Items(sum.N), addr(mean), addr(minus), addr(sum), sum.N, n)
}

// ColInverses implements [ops.Backend].
func (b *Backend) ColInverses(variance, inv, sum ops.Buffer, n int, eps float64) {
	b.run("col_inverses_f32", kernels.Items(sum.N), addr(variance), addr(inv), addr(sum), sum.N, n, eps)
}

// CrossEntropy implements [ops.CrossEntropies].
func (b *Backend) CrossEntropy(out, x, labels ops.Buffer, rows, cols int) (figures func() (sum float32, correct int64)) {
	chunk := kernels.LossChunk(rows)
	chunks := (rows + chunk - 1) / chunk
	parts := b.room(&b.parts, 8*(2*chunks+2))
	right := parts + cuda.Ptr(8*chunks)
	count := right + cuda.Ptr(8*chunks+8)
	loss := count - 4 // beside it, for one copy to the host
	b.run("cross_entropy_f32", kernels.Losses(chunks, cols), parts, right, addr(x), addr(labels), rows, cols, chunk)
	b.run("cross_entropy_sum_f32", kernels.Blocks(1), loss, count, parts, right, chunks)
	b.s.Copy(addr(out), loss, 4)
	bytes := b.later(loss, 12)
	return func() (sum float32, correct int64) {
		v := bytes()
		return math.Float32frombits(binary.NativeEndian.Uint32(v)), int64(binary.NativeEndian.Uint64(v[4:]))
	}
}

// Track implements [ops.Backend].
func (b *Backend) Track(y, x ops.Buffer, keep, share float64) {
	b.run("track_f32", kernels.Items(y.N), addr(y), addr(x), y.N, keep, share)
}

// later starts copying n bytes from src. wait waits for them, and panics if the device failed.
func (b *Backend) later(src cuda.Ptr, n int64) (wait func() []byte) {
	later := b.s.CopyOutLater(src, n)
	return func() []byte {
		bytes, err := later.Wait()
		fail(err)
		return bytes
	}
}

// Later implements [ops.Deferrer].
func (b *Backend) Later(src ops.Buffer) (wait func() float32) {
	bytes := b.later(addr(src), 4)
	return func() float32 { return math.Float32frombits(binary.NativeEndian.Uint32(bytes())) }
}

// CrossEntropyGrad implements [ops.CrossEntropies].
func (b *Backend) CrossEntropyGrad(dx, d, x, labels ops.Buffer, rows, cols int, acc bool) {
	b.run("cross_entropy_grad_f32", kernels.Held(rows, cols), addr(dx), addr(d), addr(x), addr(labels), rows, cols, asFlag(acc))
}
