package tensor

import (
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
)

// Buffer is a run of float32 in a backend's memory: host memory that the CPU
// backend computes on, or a device's, which only the backend can read. Masks and
// indices lie in buffers too, as 32-bit words. It is a small value to copy.
type Buffer struct {
	Host []float32 // the memory, where the backend computes on the host
	Half []uint16  // of [Backend.WrapHalf], in place of Host
	Dev  any       // the backend's own handle elsewhere
	Off  int       // first element within Dev
	N    int       // elements
}

// HostBuffer is the buffer that a slice of host memory is, without a copy.
func HostBuffer(s []float32) Buffer { return Buffer{Host: s, N: len(s)} }

// Slice is the elements [lo, hi) of the buffer, sharing its memory.
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

// Words is a host buffer's memory as 32-bit words.
func (b Buffer) Words() []uint32 {
	if len(b.Host) == 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b.Host[0])), len(b.Host))
}

// Op is how the messages that reach a destination become one row.
type Op int

// The aggregations. A destination without in-edges gets a row of zeros in each.
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
)

// DropoutKey is what a dropout mask is a function of, with the row and column.
// Column c of a row draws lane c%8 of Philox block c/8 of the counter
// (Space.ID(row), Step, C3) under Seed; lane l is the low (l even) or high half
// of word l/2. The element is dropped where the lane is below Threshold, else
// scaled by Scale.
type DropoutKey struct {
	Space     *Space
	Seed      uint64
	Step      int
	C3        uint32
	Threshold uint32
	Scale     float32
}

// Rows choose N rows of a table: row r is row IDs[r]. Where Of is not nil these are the
// ids of its source rows From to From+N, which a device may have in its own memory, and
// perhaps there alone: IDs is nil then.
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

// Backend is where tensors live and how the operations compute: the CPU here,
// CUDA elsewhere. Matrices are row-major without gaps. Every method accepts
// sizes of 0. Where acc is set a method adds to its first buffer, otherwise it
// overwrites it, whatever it held (even NaN). Output buffers never overlap
// inputs. Results are bit-equal from run to run, whatever the threads.
//
// Shapes are checked before: a backend may trust them. backendtest.Run is the
// conformance suite.
type Backend interface {
	Name() string

	// Alloc returns n elements with any content. Free gives back what it or Wrap
	// returned.
	Alloc(n int) Buffer
	Free(b Buffer)
	// Wrap is a buffer with the content of host memory, which neither side
	// changes while the pass lasts: the memory itself on the CPU.
	Wrap(host []float32) Buffer
	// WrapHalf is Wrap for a table of float16, which only SpMMRows and GatherRows
	// read: they compute what they would of the same numbers in float32.
	WrapHalf(host []uint16) Buffer
	// Upload and Download copy between host and backend; lengths are equal.
	Upload(dst Buffer, src []float32)
	Download(dst []float32, src Buffer)
	Zero(dst Buffer)

	// Affine is out [m,n] = drop(relu(Σ X·W + bias)) over the products, see
	// [Epilogue]; dropout's masks are those of Dropout.
	Affine(out Buffer, m, n int, products []Product, e Epilogue)
	// AffineGrad is its adjoint: the gradients of the products' factors, in their
	// order, and, unless db has no elements, that of the bias, from d [m,n], whose
	// content it may change. e.Keep is what Affine left there.
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
	// CopyCols is out[r,outAt+c] = x[r,xAt+c] for c < cols; the other columns of
	// out are left alone. outCols and xCols are the widths.
	CopyCols(out Buffer, outCols, outAt int, x Buffer, xCols, xAt, rows, cols int, acc bool)

	Binary(op BinaryOp, out, a, b Buffer, acc bool)
	Unary(op UnaryOp, out, x Buffer, alpha float32, acc bool)
	// UnaryGrad is dx = dy · op'(x), with y = op(x).
	UnaryGrad(op UnaryOp, dx, dy, x, y Buffer, alpha float32, acc bool)

	// LogSoftmax is y[r,c] = x[r,c] - log Σ_j e^x[r,j].
	LogSoftmax(y, x Buffer, rows, cols int)
	LogSoftmaxGrad(dx, dy, y Buffer, rows, cols int, acc bool)
	// L2Normalize is y[r,:] = x[r,:] / max(‖x[r,:]‖, L2Eps); norm [rows] gets
	// the norms for the gradient.
	L2Normalize(y, norm, x Buffer, rows, cols int)
	L2NormalizeGrad(dx, dy, y, norm Buffer, rows, cols int, acc bool)

	// RowNorm is y[r,:] = (x[r,:] - mean) / √(variance + eps), of the row's mean
	// and its variance (the mean of the squared distances); inv [rows] gets
	// 1/√(variance + eps) for the gradient.
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

	// SpMM is out [NumDst,cols] = op over in-edges e of d of h[Indices[e],:],
	// with h [NumSrc,cols]. For Max, arg [NumDst,cols] gets as 32-bit words the
	// number (from 0) of the first edge with the maximum, -1 without in-edges;
	// it may have no elements where no gradient is needed.
	SpMM(op Op, out, arg Buffer, b *graphops.Block, h Buffer, cols int)
	// SpMMRows is SpMM, Max excepted, of h[s,:] = table[rows[s],:], and GatherRows
	// is out[s,:] = table[rows[s],:]: table has cols columns and any rows. See [Rows].
	// With weights w [E] it is SpMMWeighted with one head, and op is Sum.
	SpMMRows(op Op, out Buffer, b *graphops.Block, w, table Buffer, rows Rows, cols int)
	GatherRows(out, table Buffer, rows Rows, cols int)
	// SpMMGrad is SpMM's adjoint, dh [NumSrc,cols] from dOut, in ascending order
	// of the edges of each source.
	SpMMGrad(op Op, dh, dOut, arg Buffer, b *graphops.Block, cols int, acc bool)
	// GatherSrc is msg [E,cols]: row e = h[Indices[Indptr[0]+e],:]. ScatterSrc
	// is its adjoint.
	GatherSrc(msg Buffer, b *graphops.Block, h Buffer, cols int)
	ScatterSrc(dh Buffer, b *graphops.Block, dMsg Buffer, cols int, acc bool)
	// Segment is out [NumDst,cols] = op over the rows of msg [E,cols] that are
	// d's in-edges; arg as in SpMM. SegmentGrad is its adjoint; with op Sum it
	// is the copy of d's row to each of d's edges.
	Segment(op Op, out, arg Buffer, b *graphops.Block, msg Buffer, cols int, acc bool)
	SegmentGrad(op Op, dMsg, dOut, arg Buffer, b *graphops.Block, cols int, acc bool)

	// SpMMWeighted is out[d,c] = Σ over in-edges e of d, ascending, of
	// w[e,k]·h[Indices[e],c], with w [E,heads] (no elements: all 1; edges counted
	// from 0) and k = c/(cols/heads); heads divides cols. An edge of weight 0 adds
	// nothing, whatever h. SpMMWeightedGrad is its adjoint in h: dh [NumSrc,cols]
	// from dOut, in ascending order of the edges of each source. EdgeDot is its
	// adjoint in w: dw[e,k] = Σ of dOut[d,c]·h[Indices[e],c] over the columns c of
	// head k.
	SpMMWeighted(out Buffer, b *graphops.Block, w Buffer, heads int, h Buffer, cols int, acc bool)
	SpMMWeightedGrad(dh, dOut, w Buffer, heads int, b *graphops.Block, cols int, acc bool)
	EdgeDot(dw Buffer, b *graphops.Block, dOut, h Buffer, heads, cols int, acc bool)
	// EdgeSoftmax is, column by column of x [E,cols] and for each destination,
	// the softmax over its in-edges.
	EdgeSoftmax(y Buffer, b *graphops.Block, x Buffer, cols int)
	EdgeSoftmaxGrad(dx, dy, y Buffer, b *graphops.Block, cols int, acc bool)

	// A sparse matrix [NumDst,NumSrc] is a block with values [E] (no elements: all
	// 1): element (d, Indices[e]). SparseDense is the matrix in full.
	// SparseDropout is Dropout of its elements alone, their values afterwards.
	SparseDense(out Buffer, b *graphops.Block, values Buffer)
	SparseDropout(out Buffer, b *graphops.Block, values Buffer, k DropoutKey)
}

// Keeper is a Backend in whose memory copies of host memory are kept beyond a pass,
// such as those of a model's weights and gradients.
type Keeper interface {
	Backend
	// Kept is the copy of host memory; false where there is none. Wrap of that memory
	// is the copy, and what is computed into it stays there.
	Kept(host []float32) (Buffer, bool)
	// Hold keeps a copy of host memory until release, for passes that are all given the
	// same large input; what is kept already stays as it is.
	Hold(host []float32) (release func(), err error)
}

// LayerNormer is a Backend that computes a layer norm and what follows it in one pass
// over the rows, with the bits of the operations one by one.
type LayerNormer interface {
	Backend
	// LayerNorm is out = drop(relu(y·w + e.Bias)) of y as RowNorm gives it, which it
	// keeps with inv for the gradient; where y has no elements it keeps neither.
	LayerNorm(out, y, inv, x Buffer, rows, cols int, eps float32, w Buffer, e Epilogue)
	// LayerNormGrad masks d, the gradient of out, in place by e.Keep, and gives what g
	// wants.
	LayerNormGrad(d, y, inv Buffer, rows, cols int, w Buffer, e Epilogue, g LayerNormGrads)
}

// LayerNormGrads is where the gradients of x [rows,cols] and of w and the bias
// [1,cols] of a layer norm go; a buffer without elements is not wanted. With Acc
// they are added.
type LayerNormGrads struct {
	DX, DW, DB       Buffer
	AccX, AccW, AccB bool
}

// Deferrer is a Backend that brings an element to the host while it computes on.
type Deferrer interface {
	Backend
	// Later asks for the first element of src as it is now. wait waits for it, and for
	// nothing asked for later; it may be called when src is gone, and more than once.
	Later(src Buffer) (wait func() float32)
}

// CrossEntropies is a Backend that computes the loss of package nn's CrossEntropy
// itself. labels hold a word for each of the rows, classes or -1 for none, as
// Upload puts them; out and d have one element.
type CrossEntropies interface {
	Backend
	// CrossEntropy is out = Σ log Σ_c e^x[r,c] - x[r,labels[r]] over the labelled
	// rows. figures waits for that and for the number of those whose greatest logit,
	// the first of equal ones, is the label's; it may be called when out is gone, and
	// more than once.
	CrossEntropy(out, x, labels Buffer, rows, cols int) (figures func() (sum float32, correct int64))
	// CrossEntropyGrad is dx[r,c] = d·(softmax(x[r,:])[c] - [c = labels[r]]), and 0 for
	// rows without a label.
	CrossEntropyGrad(dx, d, x, labels Buffer, rows, cols int, acc bool)
}

// Failure is what a backend panics with where it cannot compute at all: there is no
// memory left, or the device is lost. Err says what happened.
type Failure struct{ Err error }

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap is Err.
func (f *Failure) Unwrap() error { return f.Err }

// L2Eps is the norm below which L2Normalize divides by L2Eps instead, PyTorch's
// default for torch.nn.functional.normalize.
const L2Eps = 1e-12
