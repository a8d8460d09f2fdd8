// Package tensor provides dense and sparse float32 arithmetic with reverse-mode differentiation.
// The layers of package nn are built on it.
//
// # Basics
//
// A [Fwd] is one forward pass. Its methods are the operations; each returns a
// [Tensor], a row-major matrix [Rows, Cols]. With Config.Train or Config.Grad
// set the pass records a tape, and [Tensor.Backward] walks it in reverse and
// adds the gradients of a [1,1] tensor to the G of every [Param] that took part.
//
//	f := tensor.NewFwd(tensor.Config{Train: true, Seed: 1})
//	for step := range steps {
//		f.Reset(tensor.Config{Train: true, Seed: 1, Step: step})
//		x := f.Input(n, 16, features, nil)
//		y := f.ReLU(f.Linear(x, f.Param(w), f.Param(bias)))
//		f.SumAll(y).Backward()
//	}
//
// A pass and its tensors belong to one goroutine; each operation runs on several threads. Memory
// comes from an arena of the Fwd and returns to it at [Fwd.Reset], which ends the life of every
// tensor of the pass: using one later panics.
//
// # Determinism
//
// The bits of every result depend on the inputs and their shapes, never on the number of threads: a
// loop is cut into chunks by its length alone, and partial sums are combined in a fixed pairwise
// tree. A row of a row-wise operation (including MatMul and Linear) and a destination of
// [Fwd.Aggregate] have the same bits whatever other rows are computed with them, so a result does
// not depend on how rows are cut into batches. Between processors of different kinds (fused
// multiply-add or not) bits may differ.
//
// # Row spaces and dropout
//
// A tensor whose rows belong to nodes carries the nodes' ids, its [Space]. Row-wise operations keep
// the space, graph operations set it to the block's destinations (or edges), and other operations
// drop it. Dropout draws its mask from the space, so a node's mask is the same wherever the node is
// computed.
//
// # Sparse inputs
//
// [Fwd.SparseInput] takes a matrix as its non-zero elements, for features such as bags of words.
// Products, dropout and row selections use only these elements; every other operation makes the
// matrix dense.
//
// # Deferred operations
//
// Linear and MatMul are computed together with Add, AddRow, ReLU and Dropout after them, in one
// pass over memory, when another operation or Data needs the elements. [Fwd.RowsInput] is not
// copied if its rows are aggregated. This changes only the rounding of Add: terms are summed before
// they are rounded.
//
// # Errors
//
// Misuse (shapes that do not fit, a tensor of an earlier pass, dropout without a row space) is a
// bug in the model. Operations therefore panic with an [*Error]; packages nn and gnb turn the panic
// into an error that names the layer.
//
// # Caveats
//
// A product with a sparse left factor reads only the right factor's rows for its non-zeros. It
// therefore ignores a NaN or Inf in another row (of a weight), whereas a dense product multiplies
// it by zero and gives NaN.
//
// Dropout masks, Max's choices and the order of sums are part of a run's bits;
// they change only with a version.
package tensor

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/ops"
)

// Error is the misuse of an operation. Operations panic with it.
type Error struct {
	Op     string // the operation, such as "Linear"
	Detail string // what does not fit, with the shapes
}

func (e *Error) Error() string { return "tensor: " + e.Op + ": " + e.Detail }

func fail(op, format string, args ...any) {
	panic(&Error{Op: op, Detail: fmt.Sprintf(format, args...)})
}

// Tensor is a row-major float32 matrix of one pass. The operations of a [Fwd] create it, and it is
// valid until the Fwd's next Reset. The zero value is not useful.
type Tensor struct {
	f          *Fwd
	pass       uint64
	rows, cols int
	buf        ops.Buffer
	sp         *ops.Space
	need       bool // a gradient flows to it
	leaf       bool // its gradient is kept for Grad
	param      *Param
	grad       *slab          // nil until the first contribution
	split      []*Tensor      // the parts that its gradient consists of; nil: its gradient is complete
	part       *part          // what it is a part of, or nil
	later      func() float32 // of a [1,1] tensor that is being copied to the host
	// Set while the elements are not computed: the non-zero ones, the inputs that they are computed
	// from, the place of their rows, or this rank's part of them.
	sparse *sparse
	affine *affine
	rowsOf *rowsOf
	halo   *haloRows
}

// Rows is the number of rows.
func (t *Tensor) Rows() int { return t.rows }

// Cols is the number of columns.
func (t *Tensor) Cols() int { return t.cols }

// Fwd is the pass that the tensor belongs to.
func (t *Tensor) Fwd() *Fwd { return t.f }

// Space identifies the rows; it is nil if they have no identity.
func (t *Tensor) Space() *ops.Space { return t.sp }

// SetSpace identifies the rows and returns the tensor. Use it for the result of [Fwd.Custom], which
// has no space of its own. It panics if sp lists another number of ids.
func (t *Tensor) SetSpace(sp *ops.Space) *Tensor {
	checkSpace("SetSpace", sp, t.rows)
	t.sp = sp
	return t
}

// RequiresGrad reports whether a gradient flows to the tensor: it depends on a Param with a G or on
// a Leaf, and the pass records a tape.
func (t *Tensor) RequiresGrad() bool { return t.need }

// Data returns the elements [Rows·Cols], row-major. On a backend that computes in host memory (the
// CPU) it is the tensor's own memory, read-only and valid until the next Reset; on others it is a
// copy.
func (t *Tensor) Data() []float32 {
	t.f.use("Data", t)
	if t.later != nil {
		return []float32{t.later()}
	}
	return t.f.host(t.buf)
}

// Later returns a function that waits for the element of a [1,1] tensor. On a device the copy
// starts now, and wait waits for it, but not for later operations. wait may be called after the
// pass, and more than once.
func (t *Tensor) Later() (wait func() float32) {
	t.f.use("Later", t)
	if t.rows != 1 || t.cols != 1 {
		fail("Later", "the tensor is %s, not [1,1]; reduce it first, with SumAll or a loss", t.shape())
	}
	if t.later == nil {
		if be, ok := t.f.be.(ops.Deferrer); ok {
			t.later = be.Later(t.buf)
		} else {
			v := t.f.host(t.buf)[0]
			t.later = func() float32 { return v }
		}
	}
	return t.later
}

// CopyTo writes the elements to dst [Rows·Cols], or to the memory that the backend keeps in its place ([ops.Keeper]).
// If they are not computed yet and the backend computes in host memory, they are computed directly in dst, which saves
// a pass over memory; dst must then not change until the next Reset.
//
// It panics if dst has another length.
func (t *Tensor) CopyTo(dst []float32) {
	f := t.f
	f.check("CopyTo", t)
	checkData("CopyTo", t.rows, t.cols, dst)
	to, kept := f.kept(dst)
	if !kept {
		if none := f.be.Wrap(dst[:0]); none.Dev != nil {
			f.be.Free(none)
			f.dense(t)
			f.be.Download(dst, t.buf)
			return
		}
		to = f.be.Wrap(dst)
	}
	if t.affine != nil {
		f.computeIn(t, to)
		return
	}
	f.dense(t)
	f.be.Unary(ops.ScaleOp, to, t.buf, 1, false)
}

// Grad returns the gradient of a [Fwd.Leaf] after Backward, row-major: zeros if nothing depends on
// the leaf. It is nil for other tensors, whose gradients are not kept. Its memory is that of Data.
func (t *Tensor) Grad() []float32 {
	t.f.use("Grad", t)
	if !t.leaf {
		return nil
	}
	if t.grad == nil {
		return make([]float32, t.rows*t.cols)
	}
	t.f.fill(t)
	return t.f.host(t.grad.buf(t.rows * t.cols))
}

// Backward is Fwd.Backward(t, 1).
func (t *Tensor) Backward() error { return t.f.Backward(t, 1) }

func (t *Tensor) String() string { return fmt.Sprintf("tensor [%d,%d]", t.rows, t.cols) }

func (t *Tensor) shape() string { return fmt.Sprintf("[%d,%d]", t.rows, t.cols) }

// Param is a trainable matrix. W and G are usually views of the flat buffers of all parameters of a
// model, which optimisers and all-reduce work on.
type Param struct {
	Name       string
	Rows, Cols int
	W          []float32 // [Rows·Cols] row-major
	G          []float32 // gradient, which Backward adds to; nil: not trained
	// FileShape is the shape in files, if it is not [Rows, Cols]; the elements are the same.
	FileShape []int
	// Fixed says that the parameter is saved with the model but not trained; PyTorch calls it a
	// buffer.
	Fixed bool
}

// join returns the space of rows computed from rows of all xs at the same index: the space on which
// those with a space agree, or nil.
func join(xs ...*Tensor) *ops.Space {
	var sp *ops.Space
	for _, x := range xs {
		switch {
		case x.sp == nil:
		case sp == nil:
			sp = x.sp
		case !sp.Same(x.sp):
			return nil
		}
	}
	return sp
}

func checkSpace(op string, sp *ops.Space, rows int) {
	switch {
	case sp == nil:
	case sp.Edges() != nil:
		if sp.Edges().NumEdges() != rows {
			fail(op, "the space has %d edges but the tensor has %d rows", sp.Edges().NumEdges(), rows)
		}
	case sp.IDs != nil && len(sp.IDs) != rows:
		fail(op, "the space has %d ids but the tensor has %d rows", len(sp.IDs), rows)
	}
}
