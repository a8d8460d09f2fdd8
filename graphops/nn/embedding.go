package nn

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// Embedding is a table W [rows, Cols] of learned rows, one per node, row-major: the input of a first
// layer for nodes without features, as torch.nn.Embedding with sparse gradients.
//
// A pass reads the rows of a batch's nodes with [Embedding.Leaf], Backward gives the gradient of
// these rows alone, and optim.SparseAdam changes these rows alone:
//
//	x := table.Leaf(f, blocks[0].SrcIDs(), tensor.SrcSpace(blocks[0]))
//	loss := nn.CrossEntropy(nn.Forward(m, f, blocks, x), labels)
//	loss.Backward()
//	sparse.Step(table.W, table.Cols, blocks[0].SrcIDs(), x.Grad(), 1/float32(loss.Weight))
//
// W may be memory that several processes share. An Embedding belongs to one goroutine.
type Embedding struct {
	Cols int
	W    []float32

	read []float32 // the rows of the current pass
}

// NewEmbedding returns a table of zeros [rows, cols]; see [Embedding.Init].
func NewEmbedding(rows, cols int) *Embedding {
	if rows < 0 || cols < 1 {
		fail("NewEmbedding", "the table is [%d,%d]; it has 0 rows or more and 1 column or more", rows, cols)
	}
	return &Embedding{Cols: cols, W: make([]float32, rows*cols)}
}

// Rows is the number of rows of the table.
func (e *Embedding) Rows() int { return len(e.W) / e.Cols }

// Init draws the rows [lo, hi) from U(±√(3/Cols)): a row's norm is about 1, whatever Cols is.
//
// Column c of row v is draw c of the Philox counter (id v, step 0, C3(Embedding, 0, 0)) under the key
// seed, so any process can make any row, on any number of threads.
func (e *Embedding) Init(seed uint64, lo, hi int) {
	if lo < 0 || hi < lo || hi > e.Rows() {
		fail("Embedding.Init", "rows [%d, %d) are not within a table of %d rows", lo, hi, e.Rows())
	}
	e.checkDraws("Embedding.Init")
	parallel.For(0, hi-lo, 1+4096/e.Cols, func(from, to int) {
		for v := lo + from; v < lo+to; v++ {
			e.InitRow(seed, int32(v), v)
		}
	})
}

// InitRow draws the row of node v as [Embedding.Init] does, and writes it to row at of the table: for a
// table that has the rows of some nodes only.
func (e *Embedding) InitRow(seed uint64, v int32, at int) {
	if at < 0 || at >= e.Rows() {
		fail("Embedding.InitRow", "row %d is not in a table of %d rows", at, e.Rows())
	}
	e.checkDraws("Embedding.InitRow")
	b := float32(math.Sqrt(3 / float64(e.Cols)))
	draws := philox.NewStream(seed, int64(v), 0, philox.C3(philox.Embedding, 0, 0))
	row := e.W[at*e.Cols : (at+1)*e.Cols]
	for c := range row {
		row[c] = b * (2*philox.Float32(draws.Next()) - 1) // the parenthesis is exact: one rounding
	}
}

func (e *Embedding) checkDraws(op string) {
	if e.Cols > philox.MaxDraws {
		fail(op, "a row of %d columns is longer than %d, the number of random draws that a node has", e.Cols, philox.MaxDraws)
	}
}

// Leaf returns a copy of the table's rows ids as a tensor [len(ids), Cols] in the space sp, whose Grad
// after Backward is the gradient of these rows, in the order of ids. The tensor is valid until the
// next Leaf. It panics with a [*tensor.Error] if an id is not in the table. Cost: one copy of the rows.
func (e *Embedding) Leaf(f *Fwd, ids []int32, sp *Space) *Tensor {
	e.check("Embedding.Leaf", ids)
	n := len(ids) * e.Cols
	if cap(e.read) < n {
		e.read = make([]float32, n+n/4)
	}
	e.read = e.read[:n]
	parallel.For(f.Config().Threads, len(ids), 1+8192/e.Cols, func(lo, hi int) {
		for i, v := range ids[lo:hi] {
			copy(e.read[(lo+i)*e.Cols:(lo+i+1)*e.Cols], e.W[int(v)*e.Cols:])
		}
	})
	return f.Leaf(len(ids), e.Cols, e.read, sp)
}

func (e *Embedding) check(op string, ids []int32) {
	rows := e.Rows()
	for i, v := range ids {
		if v < 0 || int(v) >= rows {
			fail(op, "id %d is %d, but the table has %d rows", i, v, rows)
		}
	}
}
