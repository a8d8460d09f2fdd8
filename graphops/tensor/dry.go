package tensor

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// Dry returns a backend that neither computes nor has memory, to plan with: a pass on it makes tensors of the
// same shapes, asks for the same memory as a pass on the CPU ([Fwd.Held]), and reads as zeros. It counts
// the pass's work in work, and calls each, unless it is nil, with every part of an operation. What a program
// computes itself on the elements of tensors ([Fwd.Custom]) is computed, of zeros, and not counted.
//
// A Fwd on it takes microseconds for each operation, whatever the shapes.
func Dry(work *Work, each func(Cost)) ops.Backend {
	return &dry{metered{LayerNormer: nothing{}, w: work, each: each}}
}

// DryExchanger exchanges no rows, for passes on [Dry] over blocks of cooperative batches.
type DryExchanger struct{}

// Exchange implements [Exchanger].
func (DryExchanger) Exchange(*graphops.Halo, int) (Exchange, error) { return noRows{}, nil }

type noRows struct{}

func (noRows) Fill([]float32) error        { return nil }
func (noRows) Add([]float32) error         { return nil }
func (noRows) FillDevice(ops.Buffer) error { return nil }
func (noRows) AddDevice(ops.Buffer) error  { return nil }

// dry keeps the gradients of parameters where they are, as the CPU does.
type dry struct{ metered }

func (*dry) Kept(host []float32) (ops.Buffer, bool) { return noMemory(len(host)), true }

func (*dry) Hold([]float32) (release func(), err error) { return func() {}, nil }

// absent is the handle of memory that does not exist.
type absent struct{}

func noMemory(n int) ops.Buffer { return ops.Buffer{Dev: absent{}, N: n} }

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

func (nothing) LayerNormGrad(_, _, _ ops.Buffer, _, _ int, _ ops.Buffer, _ ops.Epilogue, _ ops.LayerNormGrads) {
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
