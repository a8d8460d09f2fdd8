package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/simd"
)

// rowsOf is a matrix as chosen rows of a table.
type rowsOf struct {
	table Buffer
	rows  Rows
}

// some is rows [lo, hi) of them.
func (r Rows) some(lo, hi int) Rows {
	if r.IDs != nil {
		r.IDs = r.IDs[lo:hi:hi]
	}
	r.From += lo
	r.N = hi - lo
	return r
}

// RowsInput is an Input [len(rows), cols] given as rows of a table of cols columns:
// row r is table[rows[r],:]. It is for the first layer's input, whose rows lie in
// the features of all nodes: Aggregate reads them from there and Dst chooses among
// them, so that the matrix itself, with a row for each source of a batch, need not
// be made. Other operations, and Data, make it, once. It has no gradient. Slices
// are kept until the next Reset and must not change until then.
//
// It panics where a row is not in the table.
func (f *Fwd) RowsInput(table []float32, cols int, rows []int32, sp *Space) *Tensor {
	const op = "RowsInput"
	if cols < 0 {
		fail(op, "it cannot have %d columns", cols)
	}
	n := uint32(1 << 31)
	if cols > 0 {
		n = uint32(min(len(table)/cols, 1<<31-1))
	}
	for i, r := range rows {
		if uint32(r) >= n {
			fail(op, "row %d is row %d of the table, which has %d rows", i, r, n)
		}
	}
	checkSpace(op, sp, len(rows))
	return f.rows(&rowsOf{f.wrap(table), Rows{N: len(rows), IDs: rows}}, cols, sp)
}

// SourceRows is the RowsInput of a block's sources [b.NumSrc, cols]: row s is
// table[b.SrcID(s),:], in the space of the sources. A block that was
// sampled on a device has its ids there, where they are not checked.
func (f *Fwd) SourceRows(table []float32, cols int, b *graphops.Block) *Tensor {
	const op = "SourceRows"
	sp := SrcSpace(b)
	switch {
	case sp.onDevice():
		if cols < 0 || cols > 0 && len(table)%cols != 0 {
			fail(op, "a table of %d elements has no %d columns", len(table), cols)
		}
	case b.RowsAreNodes():
		if cols < 0 || len(table) < b.NumSrc*cols {
			fail(op, "[%d,%d] needs %d elements but the table has %d", b.NumSrc, cols, b.NumSrc*cols, len(table))
		}
		return f.Input(b.NumSrc, cols, table[:b.NumSrc*cols], sp)
	default:
		x := f.RowsInput(table, cols, b.SrcIDs(), sp)
		x.rowsOf.rows.Of = b
		return x
	}
	return f.rows(&rowsOf{f.wrap(table), Rows{N: b.NumSrc, Of: b}}, cols, sp)
}

// ids are the rows' ids in the host's memory.
func (r Rows) ids() []int32 {
	if r.IDs == nil && r.Of != nil && !r.Of.RowsAreNodes() {
		return r.Of.SrcIDs()[r.From : r.From+r.N]
	}
	return r.IDs
}

func (f *Fwd) rows(r *rowsOf, cols int, sp *Space) *Tensor {
	return &Tensor{f: f, pass: f.pass, rows: r.rows.N, cols: cols, sp: sp, rowsOf: r}
}

// someRows is rows [lo, hi) of such a tensor under the space sp.
func (f *Fwd) someRows(x *Tensor, lo, hi int, sp *Space) *Tensor {
	return f.rows(&rowsOf{x.rowsOf.table, x.rowsOf.rows.some(lo, hi)}, x.cols, sp)
}

// gather gives such a tensor its elements.
func (f *Fwd) gather(x *Tensor) {
	r := x.rowsOf
	x.rowsOf = nil
	x.buf = f.mem.get(x.rows * x.cols).buf(x.rows * x.cols)
	f.be.GatherRows(x.buf, r.table, r.rows, x.cols)
}

func (c *cpu) GatherRows(out, table Buffer, rows Rows, cols int) {
	t, ids := simd.Rows{Data: table.Host, Stride: cols}, rows.ids()
	c.eachRow(rows.N, cols, func(lo, hi int) {
		gatherRows(out.Host[lo*cols:hi*cols], &t, cols, ids[lo:hi], out.N)
	})
}

func (c *cpu) SpMMRows(op Op, out Buffer, b *graphops.Block, w, table Buffer, rows Rows, cols int) {
	t := &simd.Rows{Data: table.Host, Stride: cols, Via: rows.ids()}
	if w.N == 0 {
		c.sumSources(op, out.Host, b, t, cols)
		return
	}
	c.sumWeighted(out.Host, b, weights(w), 1, t, cols, false)
}
