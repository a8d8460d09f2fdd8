package tensor

import "github.com/graphnb/graphnb/graphops"

// Dry returns a backend that neither computes nor has memory, to plan with: a pass on it makes tensors of the
// same shapes, asks for the same memory as a pass on the CPU ([Fwd.Held]), and reads as zeros. It counts
// the pass's work in work, and calls each, unless it is nil, with every part of an operation. What a program
// computes itself on the elements of tensors ([Fwd.Custom]) is computed, of zeros, and not counted.
//
// A Fwd on it takes microseconds for each operation, whatever the shapes.
func Dry(work *Work, each func(Cost)) Backend {
	return &dry{metered{LayerNormer: nothing{}, w: work, each: each}}
}

// DryExchanger exchanges no rows, for passes on [Dry] over blocks of cooperative batches.
type DryExchanger struct{}

// Exchange implements [Exchanger].
func (DryExchanger) Exchange(*graphops.Halo, int) (Exchange, error) { return noRows{}, nil }

type noRows struct{}

func (noRows) Fill([]float32) error    { return nil }
func (noRows) Add([]float32) error     { return nil }
func (noRows) FillDevice(Buffer) error { return nil }
func (noRows) AddDevice(Buffer) error  { return nil }

// dry keeps the gradients of parameters where they are, as the CPU does.
type dry struct{ metered }

func (*dry) Kept(host []float32) (Buffer, bool) { return noMemory(len(host)), true }

func (*dry) Hold([]float32) (release func(), err error) { return func() {}, nil }

// absent is the handle of memory that does not exist.
type absent struct{}

func noMemory(n int) Buffer { return Buffer{Dev: absent{}, N: n} }

// nothing is the arithmetic of [Dry].
type nothing struct{}

func (nothing) Name() string                  { return "dry" }
func (nothing) Alloc(n int) Buffer            { return noMemory(n) }
func (nothing) Free(Buffer)                   {}
func (nothing) Wrap(host []float32) Buffer    { return noMemory(len(host)) }
func (nothing) WrapHalf(host []uint16) Buffer { return noMemory(len(host)) }
func (nothing) Upload(Buffer, []float32)      {}
func (nothing) Download([]float32, Buffer)    {}
func (nothing) Zero(Buffer)                   {}

func (nothing) Affine(Buffer, int, int, []Product, Epilogue) {}
func (nothing) AffineGrad(Buffer, int, int, []Product, []ProductGrad, Epilogue, Buffer, bool) {
}
func (nothing) AddRow(_, _ Buffer, _, _ int, _ bool)                          {}
func (nothing) ColSum(_, _ Buffer, _, _ int, _ bool)                          {}
func (nothing) Sum(_, _ Buffer, _ bool)                                       {}
func (nothing) Spread(_, _ Buffer, _ bool)                                    {}
func (nothing) RowScale(_, _, _ Buffer, _, _ int, _ bool)                     {}
func (nothing) RowDot(_, _, _ Buffer, _, _ int, _ bool)                       {}
func (nothing) ColScale(_, _, _ Buffer, _, _ int, _ bool)                     {}
func (nothing) ColDot(_, _, _ Buffer, _, _ int, _ bool)                       {}
func (nothing) Transpose(_, _ Buffer, _, _ int, _ bool)                       {}
func (nothing) CopyCols(_ Buffer, _, _ int, _ Buffer, _, _, _, _ int, _ bool) {}
func (nothing) Binary(_ BinaryOp, _, _, _ Buffer, _ bool)                     {}
func (nothing) Unary(_ UnaryOp, _, _ Buffer, _ float32, _ bool)               {}
func (nothing) UnaryGrad(_ UnaryOp, _, _, _, _ Buffer, _ float32, _ bool)     {}
func (nothing) LogSoftmax(_, _ Buffer, _, _ int)                              {}
func (nothing) LogSoftmaxGrad(_, _, _ Buffer, _, _ int, _ bool)               {}
func (nothing) L2Normalize(_, _, _ Buffer, _, _ int)                          {}
func (nothing) L2NormalizeGrad(_, _, _, _ Buffer, _, _ int, _ bool)           {}
func (nothing) RowNorm(_, _, _ Buffer, _, _ int, _ float32)                   {}
func (nothing) RowNormGrad(_, _, _, _ Buffer, _, _ int, _ bool)               {}
func (nothing) ColMeans(_, _, _ Buffer, _ int)                                {}
func (nothing) ColInverses(_, _, _ Buffer, _ int, _ float64)                  {}
func (nothing) Track(_, _ Buffer, _, _ float64)                               {}
func (nothing) LayerNorm(_, _, _, _ Buffer, _, _ int, _ float32, _ Buffer, _ Epilogue) {
}

func (nothing) LayerNormGrad(_, _, _ Buffer, _, _ int, _ Buffer, _ Epilogue, _ LayerNormGrads) {
}
func (nothing) Dropout(_, _, _ Buffer, _, _ int, _ DropoutKey)                         {}
func (nothing) Mask(_, _, _ Buffer, _, _ int, _ float32, _ bool)                       {}
func (nothing) SpMM(_ Op, _, _ Buffer, _ *graphops.Block, _ Buffer, _ int)             {}
func (nothing) SpMMRows(_ Op, _ Buffer, _ *graphops.Block, _, _ Buffer, _ Rows, _ int) {}
func (nothing) GatherRows(_, _ Buffer, _ Rows, _ int)                                  {}
func (nothing) SpMMGrad(_ Op, _, _, _ Buffer, _ *graphops.Block, _ int, _ bool)        {}
func (nothing) GatherSrc(_ Buffer, _ *graphops.Block, _ Buffer, _ int)                 {}
func (nothing) ScatterSrc(_ Buffer, _ *graphops.Block, _ Buffer, _ int, _ bool)        {}
func (nothing) Segment(_ Op, _, _ Buffer, _ *graphops.Block, _ Buffer, _ int, _ bool)  {}
func (nothing) SegmentGrad(_ Op, _, _, _ Buffer, _ *graphops.Block, _ int, _ bool)     {}
func (nothing) SpMMWeighted(_ Buffer, _ *graphops.Block, _ Buffer, _ int, _ Buffer, _ int, _ bool) {
}
func (nothing) SpMMWeightedGrad(_, _, _ Buffer, _ int, _ *graphops.Block, _ int, _ bool) {}
func (nothing) EdgeDot(_ Buffer, _ *graphops.Block, _, _ Buffer, _, _ int, _ bool)       {}
func (nothing) EdgeSoftmax(_ Buffer, _ *graphops.Block, _ Buffer, _ int)                 {}
func (nothing) EdgeSoftmaxGrad(_, _, _ Buffer, _ *graphops.Block, _ int, _ bool)         {}
func (nothing) SpMMTyped(Buffer, *graphops.Block, Kinds, Buffer, int, Buffer, *Rows, int) {
}

func (nothing) SpMMTypedGrad(_, _ Buffer, _ *graphops.Block, _ Kinds, _ Buffer, _, _ int, _ bool) {
}
func (nothing) TypedDot(_ Buffer, _ *graphops.Block, _ Kinds, _, _ Buffer, _, _ int, _ bool) {}
func (nothing) SparseDense(_ Buffer, _ *graphops.Block, _ Buffer)                            {}
func (nothing) SparseDropout(_ Buffer, _ *graphops.Block, _ Buffer, _ DropoutKey)            {}
