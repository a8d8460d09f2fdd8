package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// rowsOf is a matrix given as selected rows of a table.
type rowsOf struct {
	table ops.Buffer
	rows  ops.Rows
}

// Table is a matrix in host memory from which rows are selected, row-major without gaps: of
// float32, or of the bits of float16 numbers (IEEE 754 binary16), which are converted when read.
// Exactly one of the two slices is set, unless both are empty.
type Table struct {
	F32 []float32
	F16 []uint16
}

func (t Table) size() int { return max(len(t.F32), len(t.F16)) }

// first returns the first n elements.
func (t Table) first(n int) Table {
	if t.F16 != nil {
		return Table{F16: t.F16[:n]}
	}
	return Table{F32: t.F32[:n]}
}

func (f *Fwd) wrapTable(t Table) ops.Buffer {
	if t.F16 != nil {
		return f.forPass(f.be.WrapHalf(t.F16))
	}
	return f.wrap(t.F32)
}

// RowsInput is an Input [len(rows), cols] given as rows of a table of cols columns: row r is
// table[rows[r],:]. Use it for the input of the first layer, whose rows are features of nodes:
// Aggregate reads the rows from the table and Dst selects among them, so the matrix with one row
// per source of a batch need not be made. Other operations, and Data, make it, once. It has no
// gradient. Slices are kept until the next Reset and must not change until then.
//
// It panics if a row is not in the table.
func (f *Fwd) RowsInput(table []float32, cols int, rows []int32, sp *ops.Space) *Tensor {
	return f.TableRows(Table{F32: table}, cols, rows, sp)
}

// TableRows is RowsInput for a table of float32 or float16.
func (f *Fwd) TableRows(table Table, cols int, rows []int32, sp *ops.Space) *Tensor {
	const op = "RowsInput"
	if cols < 0 {
		fail(op, "it cannot have %d columns", cols)
	}
	checkRows(op, table.size(), cols, rows)
	checkSpace(op, sp, len(rows))
	return f.rows(&rowsOf{f.wrapTable(table), ops.Rows{N: len(rows), IDs: rows}}, cols, sp)
}

// BufferRows is RowsInput for a table in memory of the pass's backend, which the caller keeps until the
// pass ends.
func (f *Fwd) BufferRows(table ops.Buffer, cols int, rows []int32, sp *ops.Space) *Tensor {
	const op = "BufferRows"
	if cols < 0 {
		fail(op, "it cannot have %d columns", cols)
	}
	checkRows(op, table.N, cols, rows)
	checkSpace(op, sp, len(rows))
	return f.rows(&rowsOf{table, ops.Rows{N: len(rows), IDs: rows}}, cols, sp)
}

// checkRows panics if a row is not in a table of n elements.
func checkRows(op string, n, cols int, rows []int32) {
	most := uint32(1 << 31)
	if cols > 0 {
		most = uint32(min(n/cols, 1<<31-1))
	}
	for i, r := range rows {
		if uint32(r) >= most {
			fail(op, "row %d refers to row %d of the table, which has %d rows", i, r, most)
		}
	}
}

// TableInput is the first n rows of a table, of cols columns, as an Input [n, cols]. It is
// [Fwd.Input] for a table of float32; rows of float16 are converted when read.
func (f *Fwd) TableInput(table Table, n, cols int, sp *ops.Space) *Tensor {
	const op = "TableInput"
	if n < 0 || cols < 0 || table.size() < n*cols {
		fail(op, "[%d,%d] needs %d elements but the table has %d", n, cols, n*cols, table.size())
	}
	table = table.first(n * cols)
	if table.F16 == nil {
		return f.Input(n, cols, table.F32, sp)
	}
	checkSpace(op, sp, n)
	buf := f.wrapTable(table)
	rows := ops.Rows{N: n}
	if buf.Dev != nil { // where rows go by ids
		rows.IDs = make([]int32, n)
		for i := range rows.IDs {
			rows.IDs[i] = int32(i)
		}
	}
	return f.rows(&rowsOf{buf, rows}, cols, sp)
}

// SourceRows is the RowsInput of a block's sources [b.NumSrc, cols]: row s is table[b.SrcID(s),:],
// in the space of the sources. The ids of a block sampled on a device stay there and are not
// checked.
func (f *Fwd) SourceRows(table []float32, cols int, b *graphops.Block) *Tensor {
	return f.SourceTable(Table{F32: table}, cols, b)
}

// SourceTable is SourceRows for a table of float32 or float16.
func (f *Fwd) SourceTable(table Table, cols int, b *graphops.Block) *Tensor {
	const op = "SourceRows"
	sp := ops.SrcSpace(b)
	switch {
	case sp.OnDevice():
		if cols < 0 || cols > 0 && table.size()%cols != 0 {
			fail(op, "a table of %d elements cannot have %d columns", table.size(), cols)
		}
	case b.RowsAreNodes():
		if cols < 0 || table.size() < b.NumSrc*cols {
			fail(op, "[%d,%d] needs %d elements but the table has %d", b.NumSrc, cols, b.NumSrc*cols, table.size())
		}
		return f.TableInput(table, b.NumSrc, cols, sp)
	default:
		x := f.TableRows(table, cols, b.SrcIDs(), sp)
		x.rowsOf.rows.Of = b
		return x
	}
	return f.rows(&rowsOf{f.wrapTable(table), ops.Rows{N: b.NumSrc, Of: b}}, cols, sp)
}

func (f *Fwd) rows(r *rowsOf, cols int, sp *ops.Space) *Tensor {
	return &Tensor{f: f, pass: f.pass, rows: r.rows.N, cols: cols, sp: sp, rowsOf: r}
}

// someRows returns rows [lo, hi) of such a tensor in the space sp.
func (f *Fwd) someRows(x *Tensor, lo, hi int, sp *ops.Space) *Tensor {
	return f.rows(&rowsOf{x.rowsOf.table, x.rowsOf.rows.Some(lo, hi)}, x.cols, sp)
}

// gather computes the elements of such a tensor.
func (f *Fwd) gather(x *Tensor) {
	r := x.rowsOf
	x.rowsOf = nil
	x.buf = f.mem.get(x.rows * x.cols).buf(x.rows * x.cols)
	f.be.GatherRows(x.buf, r.table, r.rows, x.cols)
}
