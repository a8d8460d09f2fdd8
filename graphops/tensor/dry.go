package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// Dry returns a backend that neither computes nor has memory, to plan with: a pass on it makes tensors of the
// same shapes, asks for the same memory as a pass on the CPU ([Fwd.Held]), and reads as zeros. It counts
// the pass's work in work, and calls turns, unless it is nil, with the block of each operation along its transpose. What a program
// computes itself on the elements of tensors ([Fwd.Custom]) is computed, of zeros, and not counted.
//
// A Fwd on it takes microseconds for each operation, whatever the shapes.
func Dry(work *Work, turns func(b *graphops.Block)) ops.Backend {
	return &dry{metered{Normer: nothing{}, w: work, turns: turns}}
}

// DryDevice returns a backend as [Dry] that asks for the same memory as a pass on a GPU. It calls change with the bytes of
// each buffer that it takes, and with a negative number for those that it gives back. kept says which host memory the GPU
// keeps between passes, so that they take none for it. block is called with the parts of blocks that operations read
// there, with what else the operation takes.
func DryDevice(kept func(host []float32) bool, change func(bytes int64), block func(b *graphops.Block, part BlockPart, use BlockUse)) ops.Backend {
	return &dryDevice{nothing{}, kept, change, block}
}

// BlockUse is what an operation on a block takes beside the block's parts.
type BlockUse struct {
	TableCols int // columns of the table from which it reads the rows of the block's sources, 0 if it does not
	Partial   int // bytes of the partial result for a piece of a row with many edges
}

// BlockPart is a part of a block's arrays.
type BlockPart int

// The parts of a block: its edges by destination, by source, and their positions in the graph.
const (
	BlockEdges BlockPart = iota
	BlockTransposes
	BlockPositions
)

var (
	_ ops.CrossEntropies = (*dryDevice)(nil)
	_ ops.Deferrer       = (*dryDevice)(nil)
	_ ops.Keeper         = (*dryDevice)(nil)
)

// dryDevice has [nothing] as an interface, so that it has no LayerNorm: a GPU computes that in steps.
type dryDevice struct {
	ops.Backend
	kept   func([]float32) bool
	change func(int64)
	block  func(*graphops.Block, BlockPart, BlockUse)
}

// taken is the handle of memory that a dryDevice has taken.
type taken struct{}

func (d *dryDevice) Alloc(n int) ops.Buffer {
	d.change(4 * int64(n))
	return ops.Buffer{Dev: taken{}, N: n}
}

func (d *dryDevice) Free(x ops.Buffer) {
	if x.Dev == (taken{}) {
		d.change(-4 * int64(x.N))
	}
}

func (d *dryDevice) Wrap(host []float32) ops.Buffer {
	if x, ok := d.Kept(host); ok {
		return x
	}
	return d.Alloc(len(host))
}

func (d *dryDevice) Kept(host []float32) (ops.Buffer, bool) {
	return noMemory(len(host)), len(host) == 0 || d.kept(host)
}

func (*dryDevice) Hold([]float32) (release func(), err error) { return func() {}, nil }
func (*dryDevice) Room([]float32) (release func(), ok bool)   { return nil, false }

func (*dryDevice) CrossEntropy(_, _, _ ops.Buffer, _, _ int) (figures func() (float32, int64)) {
	return func() (float32, int64) { return 0, 0 }
}

func (*dryDevice) CrossEntropyGrad(_, _, _, _ ops.Buffer, _, _ int, _ bool) {}

func (*dryDevice) Later(ops.Buffer) (wait func() float32) { return func() float32 { return 0 } }

// partial is the bytes of a partial result of a sum or mean over edges, or of a maximum with its edges.
func partial(op ops.Op, cols int) BlockUse {
	if op == Max {
		return BlockUse{Partial: 8 * cols}
	}
	return BlockUse{Partial: 4 * cols}
}

func (d *dryDevice) SpMM(op ops.Op, _, _ ops.Buffer, m *graphops.Block, _ ops.Buffer, cols int) {
	d.block(m, BlockEdges, partial(op, cols))
}

func (d *dryDevice) SpMMRows(op ops.Op, _ ops.Buffer, m *graphops.Block, _, _ ops.Buffer, rows ops.Rows, cols int) {
	use := partial(op, cols)
	if rows.Of == m && rows.From == 0 && rows.N == m.NumSrc {
		use.TableCols = cols
	}
	d.block(m, BlockEdges, use)
}

func (d *dryDevice) SpMMGrad(_ ops.Op, _, _, _ ops.Buffer, m *graphops.Block, cols int, _ bool) {
	d.block(m, BlockTransposes, partial(Sum, cols))
}

func (d *dryDevice) GatherSrc(_ ops.Buffer, m *graphops.Block, _ ops.Buffer, _ int) {
	d.block(m, BlockEdges, BlockUse{})
}

func (d *dryDevice) ScatterSrc(_ ops.Buffer, m *graphops.Block, _ ops.Buffer, cols int, _ bool) {
	d.block(m, BlockTransposes, partial(Sum, cols))
}

func (d *dryDevice) Segment(op ops.Op, _, _ ops.Buffer, m *graphops.Block, _ ops.Buffer, cols int, _ bool) {
	d.block(m, BlockEdges, partial(op, cols))
}

func (d *dryDevice) SpMMWeighted(_ ops.Buffer, m *graphops.Block, _ ops.Buffer, _ int, _ ops.Buffer, cols int, _ bool) {
	d.block(m, BlockEdges, partial(Sum, cols))
}

func (d *dryDevice) SpMMWeightedGrad(_, _, _ ops.Buffer, _ int, m *graphops.Block, cols int, _ bool) {
	d.block(m, BlockTransposes, partial(Sum, cols))
}

func (d *dryDevice) EdgeSoftmax(_ ops.Buffer, m *graphops.Block, _ ops.Buffer, cols int) {
	d.block(m, BlockEdges, BlockUse{Partial: 12 * cols})
}

func (d *dryDevice) EdgeSoftmaxGrad(_, _, _ ops.Buffer, m *graphops.Block, cols int, _ bool) {
	d.block(m, BlockEdges, BlockUse{Partial: 8 * cols})
}

func (d *dryDevice) SparseDense(_ ops.Buffer, m *graphops.Block, _ ops.Buffer) {
	d.block(m, BlockEdges, BlockUse{})
}

func (d *dryDevice) SpMMTyped(_ ops.Buffer, m *graphops.Block, t ops.Kinds, _ ops.Buffer, bases int, _ ops.Buffer, rows *ops.Rows, cols int) {
	var use BlockUse
	if rows != nil {
		d.use(m.NumDst*cols + 2*len(t.Types)*bases)
		use = partial(Sum, cols)
		use.TableCols = cols
	}
	d.block(m, BlockEdges, use)
}

func (d *dryDevice) SpMMTypedGrad(_, _ ops.Buffer, m *graphops.Block, _ ops.Kinds, _ ops.Buffer, _, _ int, _ bool) {
	d.block(m, BlockTransposes, BlockUse{})
}

func (d *dryDevice) TypedDot(_ ops.Buffer, m *graphops.Block, t ops.Kinds, _, _ ops.Buffer, bases, cols int, _ bool) {
	d.use(m.NumDst*cols + len(t.Types)*(1+2*bases))
}

func (d *dryDevice) Dropout(_, _, _ ops.Buffer, rows, _ int, k ops.DropoutKey) {
	if b := k.Space.Edges(); b != nil && rows > 0 {
		d.block(b, BlockPositions, BlockUse{})
	}
}

// use takes and gives back n elements, which an operation needs while it runs.
func (d *dryDevice) use(n int) {
	d.change(4 * int64(n))
	d.change(-4 * int64(n))
}

var _ Exchanger = DryExchanger{}

// DryExchanger exchanges no rows, for passes on [Dry] over blocks of cooperative batches.
type DryExchanger struct {
	// Each, unless it is nil, is called with the rows that each pass would exchange, and their columns.
	Each func(h *graphops.Halo, cols int)
}

// Exchange implements [Exchanger].
func (d DryExchanger) Exchange(h *graphops.Halo, cols int) (Exchange, error) {
	if d.Each != nil {
		d.Each(h, cols)
	}
	return noRows{}, nil
}

var _ DeviceExchange = noRows{}

type noRows struct{}

func (noRows) Fill([]float32) error        { return nil }
func (noRows) Add([]float32) error         { return nil }
func (noRows) FillDevice(ops.Buffer) error { return nil }
func (noRows) AddDevice(ops.Buffer) error  { return nil }

var (
	_ ops.Keeper     = (*dry)(nil)
	_ ops.Normer     = (*dry)(nil)
	_ ops.PartSummer = (*dry)(nil)
)

// dry keeps the gradients of parameters where they are, as the CPU does.
type dry struct{ metered }

func (*dry) Kept(host []float32) (ops.Buffer, bool) { return noMemory(len(host)), true }

func (*dry) Hold([]float32) (release func(), err error) { return func() {}, nil }
func (*dry) Room([]float32) (release func(), ok bool)   { return nil, false }

// absent is the handle of memory that does not exist.
type absent struct{}

func noMemory(n int) ops.Buffer { return ops.Buffer{Dev: absent{}, N: n} }

var _ ops.Normer = nothing{}

// nothing is the arithmetic of [Dry].
type nothing struct{}

func (nothing) Name() string                      { return "dry" }
func (nothing) Alloc(n int) ops.Buffer            { return noMemory(n) }
func (nothing) Free(ops.Buffer)                   {}
func (nothing) Wrap(host []float32) ops.Buffer    { return noMemory(len(host)) }
func (nothing) WrapHalf(host []uint16) ops.Buffer { return noMemory(len(host)) }
func (nothing) Upload(ops.Buffer, []float32)      {}
func (nothing) Download([]float32, ops.Buffer)    {}
func (nothing) Zero(ops.Buffer)                   {}

func (nothing) Affine(ops.Buffer, int, int, []ops.Product, ops.Epilogue) {}
func (nothing) AffineGrad(ops.Buffer, int, int, []ops.Product, []ops.ProductGrad, ops.Epilogue, ops.Buffer, bool) {
}
func (nothing) AddRow(_, _ ops.Buffer, _, _ int, _ bool)                              {}
func (nothing) ColSum(_, _ ops.Buffer, _, _ int, _ bool)                              {}
func (nothing) Sum(_, _ ops.Buffer, _ bool)                                           {}
func (nothing) Spread(_, _ ops.Buffer, _ bool)                                        {}
func (nothing) RowScale(_, _, _ ops.Buffer, _, _ int, _ bool)                         {}
func (nothing) RowDot(_, _, _ ops.Buffer, _, _ int, _ bool)                           {}
func (nothing) ColScale(_, _, _ ops.Buffer, _, _ int, _ bool)                         {}
func (nothing) ColDot(_, _, _ ops.Buffer, _, _ int, _ bool)                           {}
func (nothing) Transpose(_, _ ops.Buffer, _, _ int, _ bool)                           {}
func (nothing) CopyCols(_ ops.Buffer, _, _ int, _ ops.Buffer, _, _, _, _ int, _ bool) {}
func (nothing) Binary(_ ops.BinaryOp, _, _, _ ops.Buffer, _ bool)                     {}
func (nothing) Unary(_ ops.UnaryOp, _, _ ops.Buffer, _ float32, _ bool)               {}
func (nothing) UnaryGrad(_ ops.UnaryOp, _, _, _, _ ops.Buffer, _ float32, _ bool)     {}
func (nothing) LogSoftmax(_, _ ops.Buffer, _, _ int)                                  {}
func (nothing) LogSoftmaxGrad(_, _, _ ops.Buffer, _, _ int, _ bool)                   {}
func (nothing) L2Normalize(_, _, _ ops.Buffer, _, _ int)                              {}
func (nothing) L2NormalizeGrad(_, _, _, _ ops.Buffer, _, _ int, _ bool)               {}
func (nothing) RowNorm(_, _, _ ops.Buffer, _, _ int, _ float32)                       {}
func (nothing) RowNormGrad(_, _, _, _ ops.Buffer, _, _ int, _ bool)                   {}
func (nothing) ColMeans(_, _, _ ops.Buffer, _ int)                                    {}
func (nothing) ColInverses(_, _, _ ops.Buffer, _ int, _ float64)                      {}
func (nothing) Track(_, _ ops.Buffer, _, _ float64)                                   {}
func (nothing) LayerNorm(_, _, _, _ ops.Buffer, _, _ int, _ float32, _ ops.Buffer, _ ops.Epilogue) {
}

func (nothing) LayerNormGrad(_, _, _ ops.Buffer, _, _ int, _ ops.Buffer, _ ops.Epilogue, _ ops.NormGrads) {
}

func (nothing) ColStats(_, _, _, _, _ ops.Buffer, _, _ int, _ float64) {}

func (nothing) ColNorm(_, _, _, _, _ ops.Buffer, _, _ int, _ ops.Epilogue) {}

func (nothing) ColNormGrad(_, _, _, _, _ ops.Buffer, _, _ int, _ ops.Epilogue, _ bool, _ ops.NormGrads) {
}

func (nothing) Dropout(_, _, _ ops.Buffer, _, _ int, _ ops.DropoutKey)                 {}
func (nothing) Mask(_, _, _ ops.Buffer, _, _ int, _ float32, _ bool)                   {}
func (nothing) SpMM(_ ops.Op, _, _ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ int) {}
func (nothing) SpMMRows(_ ops.Op, _ ops.Buffer, _ *graphops.Block, _, _ ops.Buffer, _ ops.Rows, _ int) {
}
func (nothing) GatherRows(_, _ ops.Buffer, _ ops.Rows, _ int)                                     {}
func (nothing) SpMMGrad(_ ops.Op, _, _, _ ops.Buffer, _ *graphops.Block, _ int, _ bool)           {}
func (nothing) GatherSrc(_ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ int)                    {}
func (nothing) ScatterSrc(_ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ int, _ bool)           {}
func (nothing) Segment(_ ops.Op, _, _ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ int, _ bool) {}
func (nothing) SegmentGrad(_ ops.Op, _, _, _ ops.Buffer, _ *graphops.Block, _ int, _ bool)        {}
func (nothing) SpMMWeighted(_ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ int, _ ops.Buffer, _ int, _ bool) {
}
func (nothing) SpMMWeightedGrad(_, _, _ ops.Buffer, _ int, _ *graphops.Block, _ int, _ bool) {}
func (nothing) EdgeDot(_ ops.Buffer, _ *graphops.Block, _, _ ops.Buffer, _, _ int, _ bool)   {}
func (nothing) EdgeSoftmax(_ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ int)             {}
func (nothing) EdgeSoftmaxGrad(_, _, _ ops.Buffer, _ *graphops.Block, _ int, _ bool)         {}
func (nothing) SpMMTyped(ops.Buffer, *graphops.Block, ops.Kinds, ops.Buffer, int, ops.Buffer, *ops.Rows, int) {
}

func (nothing) SpMMTypedGrad(_, _ ops.Buffer, _ *graphops.Block, _ ops.Kinds, _ ops.Buffer, _, _ int, _ bool) {
}

func (nothing) TypedDot(_ ops.Buffer, _ *graphops.Block, _ ops.Kinds, _, _ ops.Buffer, _, _ int, _ bool) {
}
func (nothing) SparseDense(_ ops.Buffer, _ *graphops.Block, _ ops.Buffer)                     {}
func (nothing) SparseDropout(_ ops.Buffer, _ *graphops.Block, _ ops.Buffer, _ ops.DropoutKey) {}
