package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/simd"
)

// sparse is a matrix with few non-zeros in compressed rows: the edges of the block run from columns
// to rows, and values [nnz], by the edge's number from 0, are the elements (no elements: all 1). A
// product with it is therefore an aggregation.
type sparse struct {
	b      *graphops.Block
	values ops.Buffer
}

// SparseInput is an Input given by its non-zero elements, in compressed rows: row r has the
// elements values[i] (1 if values is nil) in the columns indices[i], for i in [indptr[r],
// indptr[r+1]). Columns ascend within a row. indptr[0] need not be 0, so rows of a larger matrix
// can be given without copying its indices; values are counted from 0 whatever indptr[0] is.
//
// The tensor stays sparse in MatMul and Linear (as the left factor), Dropout, Dst, Rows and Gather: their
// cost is that of the non-zeros alone, and their result equals the dense tensor's (Dropout's to the
// bit, products up to the order of sums). Every other operation, and Data, makes it dense, once. It
// has no gradient. Slices are kept until the next Reset and must not change until then.
//
// It panics if the arrays do not describe a matrix [rows, cols].
func (f *Fwd) SparseInput(rows, cols int, indptr []int64, indices []int32, values []float32, sp *ops.Space) *Tensor {
	b := f.sparseBlock(compressed("SparseInput", rows, cols, indptr, indices, values))
	return f.sparseTensor(b, rows, cols, values, sp)
}

// Compressed is a matrix of few non-zeros that many passes read: its elements by columns, which the gradient of a weight sums
// over, are ordered once and not in each pass. It is for one goroutine at a time.
type Compressed struct {
	b          *graphops.Block
	rows, cols int
	indptr     []int64
	indices    []int32
	values     []float32
}

// NewCompressed returns the matrix that [Fwd.SparseInput] describes. The slices must not change while it is used.
func NewCompressed(rows, cols int, indptr []int64, indices []int32, values []float32) *Compressed {
	return &Compressed{compressed("NewCompressed", rows, cols, indptr, indices, values), rows, cols, indptr, indices, values}
}

// CompressedInput is [Fwd.SparseInput] of a matrix that stays from pass to pass. On a device it is copied for each pass.
func (f *Fwd) CompressedInput(m *Compressed, sp *ops.Space) *Tensor {
	if f.cfg.Backend != nil {
		return f.SparseInput(m.rows, m.cols, m.indptr, m.indices, m.values, sp)
	}
	return f.sparseTensor(m.b, m.rows, m.cols, m.values, sp)
}

// sparseTensor returns the tensor of a block of elements.
func (f *Fwd) sparseTensor(b *graphops.Block, rows, cols int, values []float32, sp *ops.Space) *Tensor {
	checkSpace("SparseInput", sp, rows)
	s := &sparse{b: b}
	if values != nil {
		s.values = f.wrap(values[b.Indptr()[0]:b.Indptr()[rows]])
	}
	return &Tensor{f: f, pass: f.pass, rows: rows, cols: cols, sp: sp, sparse: s}
}

// compressed checks a matrix in compressed rows, and returns the block of its elements.
func compressed(op string, rows, cols int, indptr []int64, indices []int32, values []float32) *graphops.Block {
	if rows < 0 || cols < 0 || len(indptr) != rows+1 {
		fail(op, "[%d,%d] needs %d offsets but indptr has %d", rows, cols, rows+1, len(indptr))
	}
	first, last := indptr[0], indptr[rows]
	if first < 0 || last < first || last > int64(len(indices)) {
		fail(op, "indptr goes from %d to %d but there are %d indices", first, last, len(indices))
	}
	if values != nil && int64(len(values)) < last {
		fail(op, "indptr ends at %d but there are %d values", last, len(values))
	}
	for r := range rows {
		if indptr[r+1] < indptr[r] || indptr[r+1] > last {
			fail(op, "indptr[%d] is %d after %d", r+1, indptr[r+1], indptr[r])
		}
	}
	if !simd.Ascending(indptr, indices[first:], cols) {
		for r := range rows {
			before := int32(-1)
			for _, c := range indices[indptr[r]:indptr[r+1]] {
				if c <= before || int(c) >= cols {
					fail(op, "row %d has column %d after column %d; columns ascend and lie in [0,%d)", r, c, before, cols)
				}
				before = c
			}
		}
	}
	return graphops.HostBlock{NumDst: rows, NumSrc: cols, Indptr: indptr, Indices: indices}.Block()
}

// Sparse reports whether the tensor is stored by its non-zero elements: see [Fwd.SparseInput].
func (t *Tensor) Sparse() bool { return t.sparse != nil }

// dense computes all elements of a tensor.
func (f *Fwd) dense(x *Tensor) {
	switch {
	case x.affine != nil:
		f.compute(x)
	case x.rowsOf != nil:
		f.gather(x)
	case x.halo != nil:
		f.fetch(x)
	case x.sparse != nil:
		x.buf = f.mem.get(x.rows * x.cols).buf(x.rows * x.cols)
		f.be.SparseDense(x.buf, x.sparse.b, x.sparse.values)
		x.sparse = nil
	}
}

// sparseRows is rows [lo, hi) of a sparse tensor under the space sp.
func (f *Fwd) sparseRows(x *Tensor, lo, hi int, sp *ops.Space) *Tensor {
	b, v := x.sparse.b, x.sparse.values
	if lo == 0 && hi == x.rows { // with the order by columns, if it was made
		return &Tensor{f: f, pass: f.pass, rows: hi, cols: x.cols, sp: sp, sparse: &sparse{b, v}}
	}
	indptr := b.Indptr()
	if v.N > 0 {
		v = v.Slice(int(indptr[lo]-indptr[0]), int(indptr[hi]-indptr[0]))
	}
	rows := f.sparseBlock(graphops.HostBlock{NumDst: hi - lo, NumSrc: b.NumSrc, Indptr: indptr[lo : hi+1], Indices: b.Indices()}.Block())
	return &Tensor{f: f, pass: f.pass, rows: hi - lo, cols: x.cols, sp: sp, sparse: &sparse{rows, v}}
}

// sparseGather is the given rows of a sparse tensor, which has no gradient; they are there.
func (f *Fwd) sparseGather(x *Tensor, rows []int32) *Tensor {
	b, v := x.sparse.b, x.sparse.values
	from, cols := b.Indptr(), b.Indices()
	indptr := make([]int64, len(rows)+1)
	for i, r := range rows {
		indptr[i+1] = indptr[i] + from[r+1] - from[r]
	}
	n := int(indptr[len(rows)])
	indices, places := make([]int32, n), make([]int32, n)
	for i, r := range rows {
		copy(indices[indptr[i]:indptr[i+1]], cols[from[r]:from[r+1]])
		for k := indptr[i]; k < indptr[i+1]; k++ {
			places[k] = int32(from[r] - from[0] + k - indptr[i])
		}
	}
	if v.N > 0 {
		each := make([]int64, n+1)
		for i := range each {
			each[i] = int64(i)
		}
		picks := f.sparseBlock(graphops.HostBlock{NumDst: n, NumSrc: v.N, Indptr: each, Indices: places}.Block())
		picked := f.mem.get(n).buf(n)
		f.be.GatherSrc(picked, picks, v, 1)
		if v = picked; n == 0 {
			v = ops.Buffer{}
		}
	}
	b = f.sparseBlock(graphops.HostBlock{NumDst: len(rows), NumSrc: x.cols, Indptr: indptr, Indices: indices}.Block())
	return &Tensor{f: f, pass: f.pass, rows: len(rows), cols: x.cols, sparse: &sparse{b, v}}
}

// sparseDropout is Dropout of a sparse tensor: elements that are 0 stay so.
func (f *Fwd) sparseDropout(x *Tensor, k ops.DropoutKey) *Tensor {
	b := x.sparse.b
	n := b.NumEdges()
	v := f.mem.get(n).buf(n)
	f.be.SparseDropout(v, b, x.sparse.values, k)
	if n == 0 {
		v = ops.Buffer{}
	}
	return &Tensor{f: f, pass: f.pass, rows: x.rows, cols: x.cols, sp: x.sp, sparse: &sparse{b, v}}
}

// UnitRows divides each row of a sparse x by the root mean square of its elements that are stored: a bag of words that was
// divided by the sum of its row has ones again, whatever the row's length. A row without elements, or whose elements are all 0,
// stays. It is as sparse as x, in the same space. It panics for an x that is not sparse ([Tensor.Sparse]).
func (f *Fwd) UnitRows(x *Tensor) *Tensor {
	f.check("UnitRows", x)
	if !x.Sparse() {
		fail("UnitRows", "x is %s, stored by all of its elements; it takes a tensor of SparseInput", x.shape())
	}
	b, v := x.sparse.b, x.sparse.values
	if v.N == 0 { // all elements are 1, or there are none
		return x
	}
	const least = 1e-24 // of a mean square; below it a row stays 0
	n := b.NumEdges()
	each, rows := f.mem.get(n), f.mem.get(3*x.rows)
	squares, mean, variance, inverse := each.buf(n), rows.buf(3*x.rows).Slice(0, x.rows), rows.buf(3*x.rows).Slice(x.rows, 2*x.rows), rows.buf(3*x.rows).Slice(2*x.rows, 3*x.rows)
	f.be.Binary(ops.MulOp, squares, v, v, false)
	f.be.Segment(ops.Mean, mean, ops.Buffer{}, b, squares, 1, false)
	f.be.ColInverses(variance, inverse, mean, 1, least)
	f.be.SegmentGrad(ops.Sum, squares, inverse, ops.Buffer{}, b, 1, false) // the factor of each element
	to := f.mem.get(n).buf(n)
	f.be.Binary(ops.MulOp, to, v, squares, false)
	f.mem.put(each)
	f.mem.put(rows)
	return &Tensor{f: f, pass: f.pass, rows: x.rows, cols: x.cols, sp: x.sp, sparse: &sparse{b, to}}
}

// sparseProduct is out = x·w, + out with acc, of a sparse x and w [x.cols,n], or
// x·wᵀ with t and w [n,x.cols].
func (f *Fwd) sparseProduct(out ops.Buffer, x *Tensor, w ops.Buffer, n int, t, acc bool) {
	if t {
		wT := f.mem.get(x.cols * n)
		f.be.Transpose(wT.buf(x.cols*n), w, n, x.cols, false)
		f.be.SpMMWeighted(out, x.sparse.b, x.sparse.values, 1, wT.buf(x.cols*n), n, acc)
		f.mem.put(wT)
		return
	}
	f.be.SpMMWeighted(out, x.sparse.b, x.sparse.values, 1, w, n, acc)
}

// sparseGrad is dw = xᵀ·d of a sparse x and d [x.rows,n], or (xᵀ·d)ᵀ with t.
func (f *Fwd) sparseGrad(dw ops.Buffer, x *Tensor, s *sparse, d ops.Buffer, n int, t, acc bool) {
	if t {
		dwT := f.mem.get(x.cols * n)
		f.be.SpMMWeightedGrad(dwT.buf(x.cols*n), d, s.values, 1, s.b, n, false)
		f.be.Transpose(dw, dwT.buf(x.cols*n), x.cols, n, acc)
		f.mem.put(dwT)
		return
	}
	f.be.SpMMWeightedGrad(dw, d, s.values, 1, s.b, n, acc)
}
