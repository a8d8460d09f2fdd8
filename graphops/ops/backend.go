// Package ops defines the operations on float32 arrays and graphs that a [Backend] computes, and
// computes them on the CPU. Package tensor records them on a tape and differentiates them; package
// internal/cuda/backend computes them on a GPU. A program needs this package only to
// implement a backend; models use tensor and nn.
//
// A [Buffer] is a range of a backend's memory, and a [Space] names the nodes of a matrix's rows, from
// which dropout draws. The results of [CPU] have the same bits on any number of threads: a loop is
// cut into chunks by its length alone, and partial sums are combined in a fixed pairwise tree. Callers
// check the shapes. Package internal/testkit/backendtest is the conformance suite of backends.
package ops

import (
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
)

// Buffer is a range of float32 in a backend's memory: host memory that the CPU backend computes on,
// or a device's memory, which only the backend can read. Buffers also hold masks and indices, as
// 32-bit words. Buffer is a small value to copy.
type Buffer struct {
	Host []float32 // the memory, if the backend computes on the host
	Half []uint16  // of [Backend.WrapHalf], instead of Host
	Dev  any       // the backend's own handle otherwise
	Off  int       // first element within Dev
	N    int       // elements
}

// HostBuffer returns a slice of host memory as a buffer, without a copy.
func HostBuffer(s []float32) Buffer { return Buffer{Host: s, N: len(s)} }

// Slice returns the elements [lo, hi) of the buffer, sharing its memory.
func (b Buffer) Slice(lo, hi int) Buffer {
	switch {
	case b.Half != nil:
		b.Half = b.Half[lo:hi:hi]
	case b.Dev == nil:
		b.Host = b.Host[lo:hi:hi]
	}
	b.Off += lo
	b.N = hi - lo
	return b
}

// Words returns a host buffer's memory as 32-bit words.
func (b Buffer) Words() []uint32 {
	if len(b.Host) == 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b.Host[0])), len(b.Host))
}

// Op is an aggregation: how the messages to a destination become one row.
type Op int

// The aggregations. Each gives a row of zeros for a destination without in-edges.
const (
	Mean Op = iota
	Sum
	Max
)

func (o Op) String() string {
	switch o {
	case Mean:
		return "mean"
	case Sum:
		return "sum"
	case Max:
		return "max"
	}
	return "unknown aggregation"
}

// BinaryOp is an elementwise operation of two buffers.
type BinaryOp int

// The binary operations: a+b, a-b, a·b.
const (
	AddOp BinaryOp = iota
	SubOp
	MulOp
)

// UnaryOp is an elementwise operation y = op(x) with one parameter alpha.
type UnaryOp int

// The unary operations.
const (
	ScaleOp     UnaryOp = iota // alpha·x
	ReLUOp                     // max(x, 0)
	LeakyReLUOp                // x where x > 0, else alpha·x
	ELUOp                      // x where x > 0, else alpha·(e^x - 1)
	SigmoidOp                  // 1/(1+e^-x)
	TanhOp
	ExpOp
	GELUOp       // x·Φ(x), with the distribution function Φ of the normal distribution, within 4e-7 of it, relative to it
	SqrtOp       // 0 where x <= alpha, else √x; its slope where y = 0 is 0
	ReciprocalOp // 1/(x + alpha)
)

// DropoutKey and the row and column determine a dropout mask. Column c of a row draws lane c%8 of
// Philox block c/8 of the counter (Space.ID(row), Step, C3) under Seed; lane l is the low (l even)
// or high half of word l/2. The element is dropped if the lane is below Threshold, otherwise scaled
// by Scale.
type DropoutKey struct {
	Space     *Space
	Seed      uint64
	Step      int
	C3        uint32
	Threshold uint32
	Scale     float32
}

// Rows selects N rows of a table: row r is row IDs[r]. If Of is not nil, the ids are those of its
// source rows From to From+N. A device may have these ids in its own memory only; then IDs is nil.
type Rows struct {
	N    int
	IDs  []int32
	Of   *graphops.Block
	From int
}

// MaskWords is the number of 32-bit words of a dropout mask of [rows, cols]: a
// bit an element, 1 = kept, each row padded to whole bytes (bit c%8 of byte
// row·⌈cols/8⌉ + c/8, bytes in the order of little-endian words).
func MaskWords(rows, cols int) int { return (rows*((cols+7)/8) + 3) / 4 }

// Backend is the memory and arithmetic of tensors: the CPU in this package, CUDA elsewhere.
// Matrices are row-major without gaps. Every method accepts sizes of 0. A method adds to its first
// buffer if acc is set; otherwise it overwrites the buffer, whatever it held (even NaN). Output
// buffers never overlap inputs. Results are bit-equal from run to run, on any number of threads.
//
// Callers check the shapes; a backend may rely on them. backendtest.Run is the conformance suite.
type Backend interface {
	Name() string

	// Alloc returns n elements with any content. Free frees a buffer that Alloc or Wrap returned.
	Alloc(n int) Buffer
	Free(b Buffer)
	// Wrap returns a buffer with the content of host memory: on the CPU that memory itself. Neither
	// side changes the content during the pass.
	Wrap(host []float32) Buffer
	// WrapHalf is Wrap for a table of float16. Only SpMMRows and GatherRows read it; they compute
	// the same as from these numbers in float32.
	WrapHalf(host []uint16) Buffer
	// Upload and Download copy between host and backend; lengths are equal.
	Upload(dst Buffer, src []float32)
	Download(dst []float32, src Buffer)
	Zero(dst Buffer)

	// Affine is out [m,n] = drop(relu(base + Σ X·W + bias)) over the products, see
	// [Epilogue]; dropout's masks are those of Dropout.
	Affine(out Buffer, m, n int, products []Product, e Epilogue)
	// AffineGrad is the adjoint of Affine: it computes the gradients of the products' factors, in
	// their order, and, unless db has no elements, of the bias, from d [m,n], which it may
	// overwrite. e.Keep holds the mask written by Affine. If e has a base, d is the base's gradient afterwards.
	AffineGrad(d Buffer, m, n int, products []Product, grads []ProductGrad, e Epilogue, db Buffer, accB bool)
	// AddRow is out[r,:] = row for all r.
	AddRow(out, row Buffer, rows, cols int, acc bool)
	// ColSum is out[c] = Σ_r x[r,c].
	ColSum(out, x Buffer, rows, cols int, acc bool)
	// Sum is out[0] = Σ x. Spread is out[i] = x[0] for all i.
	Sum(out, x Buffer, acc bool)
	Spread(out, x Buffer, acc bool)
	// RowScale is out[r,:] = w[r]·x[r,:]. RowDot is out[r] = Σ_c x[r,c]·y[r,c].
	RowScale(out, x, w Buffer, rows, cols int, acc bool)
	RowDot(out, x, y Buffer, rows, cols int, acc bool)
	// ColScale is out[r,c] = w[c]·x[r,c]. ColDot is out[c] = Σ_r x[r,c]·y[r,c].
	ColScale(out, x, w Buffer, rows, cols int, acc bool)
	ColDot(out, x, y Buffer, rows, cols int, acc bool)
	// Transpose is out [cols,rows] = xᵀ of x [rows,cols].
	Transpose(out, x Buffer, rows, cols int, acc bool)
	// CopyCols is out[r,outAt+c] = x[r,xAt+c] for c < cols; the other columns of out do not change.
	// outCols and xCols are the widths.
	CopyCols(out Buffer, outCols, outAt int, x Buffer, xCols, xAt, rows, cols int, acc bool)

	Binary(op BinaryOp, out, a, b Buffer, acc bool)
	Unary(op UnaryOp, out, x Buffer, alpha float32, acc bool)
	// UnaryGrad is dx = dy · op'(x), with y = op(x).
	UnaryGrad(op UnaryOp, dx, dy, x, y Buffer, alpha float32, acc bool)

	// LogSoftmax is y[r,c] = x[r,c] - log Σ_j e^x[r,j].
	LogSoftmax(y, x Buffer, rows, cols int)
	LogSoftmaxGrad(dx, dy, y Buffer, rows, cols int, acc bool)
	// L2Normalize is y[r,:] = x[r,:] / max(‖x[r,:]‖, L2Eps); norm [rows] receives the norms for the
	// gradient.
	L2Normalize(y, norm, x Buffer, rows, cols int)
	L2NormalizeGrad(dx, dy, y, norm Buffer, rows, cols int, acc bool)

	// RowNorm is y[r,:] = (x[r,:] - mean) / √(variance + eps), with the row's mean and variance
	// (the mean of the squared distances); inv [rows] receives 1/√(variance + eps) for the
	// gradient.
	RowNorm(y, inv, x Buffer, rows, cols int, eps float32)
	RowNormGrad(dx, dy, y, inv Buffer, rows, cols int, acc bool)
	// ColMeans is mean[c] = sum[c]/n and minus[c] = -mean[c], of sums over n > 0 rows;
	// ColInverses is variance[c] = sum[c]/n and inv[c] = 1/√(variance[c] + eps).
	ColMeans(mean, minus, sum Buffer, n int)
	ColInverses(variance, inv, sum Buffer, n int, eps float64)
	// Track is y ← keep·y + share·x, element by element in float64.
	Track(y, x Buffer, keep, share float64)

	// Dropout writes the mask [MaskWords] and out = x masked and scaled.
	Dropout(out, mask, x Buffer, rows, cols int, k DropoutKey)
	// Mask is out = x where the mask's bit is set, times scale, else 0.
	Mask(out, x, mask Buffer, rows, cols int, scale float32, acc bool)

	// SpMM is out [NumDst,cols] = op over in-edges e of d of h[Indices[e],:], with h [NumSrc,cols].
	// For Max, arg [NumDst,cols] receives, as 32-bit words, the number (from 0) of the first edge
	// with the maximum, or -1 without in-edges; arg may have no elements if no gradient is needed.
	SpMM(op Op, out, arg Buffer, b *graphops.Block, h Buffer, cols int)
	// SpMMRows is SpMM, except Max, of h[s,:] = table[rows[s],:]. GatherRows is out[s,:] =
	// table[rows[s],:]. table has cols columns and any number of rows; see [Rows]. With weights w
	// [E], SpMMRows is SpMMWeighted with one head, and op is Sum.
	SpMMRows(op Op, out Buffer, b *graphops.Block, w, table Buffer, rows Rows, cols int)
	GatherRows(out, table Buffer, rows Rows, cols int)
	// SpMMGrad is SpMM's adjoint, dh [NumSrc,cols] from dOut, in ascending order
	// of the edges of each source.
	SpMMGrad(op Op, dh, dOut, arg Buffer, b *graphops.Block, cols int, acc bool)
	// GatherSrc is msg [E,cols]: row e = h[Indices[Indptr[0]+e],:]. ScatterSrc
	// is its adjoint.
	GatherSrc(msg Buffer, b *graphops.Block, h Buffer, cols int)
	ScatterSrc(dh Buffer, b *graphops.Block, dMsg Buffer, cols int, acc bool)
	// Segment is out [NumDst,cols] = op over the rows of msg [E,cols] of d's in-edges; arg as in
	// SpMM. SegmentGrad is its adjoint; with op Sum it copies d's row to each of d's edges.
	Segment(op Op, out, arg Buffer, b *graphops.Block, msg Buffer, cols int, acc bool)
	SegmentGrad(op Op, dMsg, dOut, arg Buffer, b *graphops.Block, cols int, acc bool)

	// SpMMWeighted is out[d,c] = Σ over in-edges e of d, ascending, of w[e,k]·h[Indices[e],c], with
	// w [E,heads] (no elements: all 1; edges counted from 0) and k = c/(cols/heads); heads divides
	// cols. An edge of weight 0 adds nothing, whatever h is. SpMMWeightedGrad is its adjoint in h:
	// dh [NumSrc,cols] from dOut, in ascending order of the edges of each source. EdgeDot is its
	// adjoint in w: dw[e,k] = Σ of dOut[d,c]·h[Indices[e],c] over the columns c of head k.
	SpMMWeighted(out Buffer, b *graphops.Block, w Buffer, heads int, h Buffer, cols int, acc bool)
	SpMMWeightedGrad(dh, dOut, w Buffer, heads int, b *graphops.Block, cols int, acc bool)
	EdgeDot(dw Buffer, b *graphops.Block, dOut, h Buffer, heads, cols int, acc bool)
	// EdgeSoftmax is, column by column of x [E,cols] and for each destination,
	// the softmax over its in-edges.
	EdgeSoftmax(y Buffer, b *graphops.Block, x Buffer, cols int)
	EdgeSoftmaxGrad(dx, dy, y Buffer, b *graphops.Block, cols int, acc bool)

	// SpMMTyped is out[d,k·cols+c] = Σ over in-edges e of d, ascending, of
	// shares[e]·coef[types[e],k]·h[Indices[e],c], with coef [t.N,bases], bases times cols columns in out,
	// and h the rows of a table that rows selects unless it is nil. SpMMTypedGrad is its adjoint in h, in
	// ascending order of the edges of each source, and TypedDot its adjoint in coef: dCoef[r,k] = Σ over
	// the edges e of type r of shares[e]·Σ_c dOut[d,k·cols+c]·h[Indices[e],c].
	SpMMTyped(out Buffer, b *graphops.Block, t Kinds, coef Buffer, bases int, h Buffer, rows *Rows, cols int)
	SpMMTypedGrad(dh, dOut Buffer, b *graphops.Block, t Kinds, coef Buffer, bases, cols int, acc bool)
	TypedDot(dCoef Buffer, b *graphops.Block, t Kinds, dOut, h Buffer, bases, cols int, acc bool)

	// A sparse matrix [NumDst,NumSrc] is a block with values [E] (no elements: all 1): element (d,
	// Indices[e]). SparseDense writes it as a dense matrix. SparseDropout applies Dropout to its
	// elements only and returns their values.
	SparseDense(out Buffer, b *graphops.Block, values Buffer)
	SparseDropout(out Buffer, b *graphops.Block, values Buffer, k DropoutKey)
}

// Keeper is a Backend that keeps copies of host memory, such as of a model's weights and gradients,
// beyond a pass.
type Keeper interface {
	Backend
	// Kept returns the kept copy of host memory, or false if there is none. Wrap of that memory
	// returns the copy, and results written to it stay there.
	Kept(host []float32) (Buffer, bool)
	// Hold keeps a copy of host memory until release is called, for passes that share a large
	// input. Memory that is kept already does not change.
	Hold(host []float32) (release func(), err error)
	// Room keeps memory in place of host memory until release is called, without copying what that holds, for results that
	// later passes read: a tensor that is copied there stays with the Backend. ok is false if there is too little memory.
	Room(host []float32) (release func(), ok bool)
}

// Normer is a Backend that computes a layer norm or a batch norm and the operations after it in one pass over
// the rows, with the same bits as the separate operations.
type Normer interface {
	Backend
	// LayerNorm is out = drop(relu(y·w + e.Bias)), where y is RowNorm of x. It writes y and inv for
	// the gradient, or neither if y has no elements.
	LayerNorm(out, y, inv, x Buffer, rows, cols int, eps float32, w Buffer, e Epilogue)
	// LayerNormGrad masks d, the gradient of out, in place with e.Keep, and computes the gradients
	// that g requests.
	LayerNormGrad(d, y, inv Buffer, rows, cols int, w Buffer, e Epilogue, g NormGrads)
	// ColStats is the mean and the variance (the mean of the squared distances) of each column of x over its rows, 0 without rows,
	// with minus = -mean and inv = 1/√(variance + eps).
	ColStats(mean, variance, minus, inv, x Buffer, rows, cols int, eps float64)
	// ColNorm is out = drop(relu(y·w + e.Bias)), where y[r,c] = (x[r,c] + minus[c])·inv[c].
	ColNorm(out, x, minus, inv, w Buffer, rows, cols int, e Epilogue)
	// ColNormGrad masks d, the gradient of out, in place with e.Keep, and computes the gradients that g requests. With given, minus
	// and inv do not depend on x; otherwise they are those of ColStats.
	ColNormGrad(d, x, minus, inv, w Buffer, rows, cols int, e Epilogue, given bool, g NormGrads)
}

// NormGrads says where to write the gradients of x [rows,cols] and of w and the bias [1,cols]
// of a layer norm or a batch norm; a gradient whose buffer has no elements is not computed. With Acc they are
// added.
type NormGrads struct {
	DX, DW, DB       Buffer
	AccX, AccW, AccB bool
}

// Deferrer is a Backend that can copy an element to the host while it continues to compute.
type Deferrer interface {
	Backend
	// Later requests the current value of the first element of src. wait waits for it, but not for
	// later operations. wait may be called when src is freed, and more than once.
	Later(src Buffer) (wait func() float32)
}

// CrossEntropies is a Backend that computes the loss of package nn's CrossEntropy itself. labels
// hold one word per row, a class or -1 for none, as written by Upload; out and d have one element.
type CrossEntropies interface {
	Backend
	// CrossEntropy is out = Σ log Σ_c e^x[r,c] - x[r,labels[r]] over the labelled rows. figures
	// waits for this sum and for the number of rows whose greatest logit (the first of equal ones)
	// is the label's. figures may be called when out is freed, and more than once.
	CrossEntropy(out, x, labels Buffer, rows, cols int) (figures func() (sum float32, correct int64))
	// CrossEntropyGrad is dx[r,c] = d·(softmax(x[r,:])[c] - [c = labels[r]]), and 0 for
	// rows without a label.
	CrossEntropyGrad(dx, d, x, labels Buffer, rows, cols int, acc bool)
}

// Failure is the panic value of a backend that cannot compute: memory ran out, or the device is
// lost. Err is the cause.
type Failure struct{ Err error }

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap is Err.
func (f *Failure) Unwrap() error { return f.Err }

// L2Eps is the norm below which L2Normalize divides by L2Eps instead, PyTorch's
// default for torch.nn.functional.normalize.
const L2Eps = 1e-12
