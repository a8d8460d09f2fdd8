// Package nn provides layers, models and losses for graph neural networks, on the tensors of package
// tensor. Optimisers are in package optim, metrics in package metrics.
//
// # Basics
//
// A [Model] is defined by its layers: Layer computes the rows of a block's destinations from the
// rows of its sources. Sampled mini-batches ([Forward] over a sampler's blocks), full-graph
// training ([FullGraph]) and layer-wise inference ([LayerWise]) all call this method.
//
//	m := nn.NewSAGEModel(nn.ModelConfig{In: 128, Hidden: 256, Out: 40, Layers: 3, Dropout: 0.5})
//	params, err := nn.Collect(m) // every parameter, in one flat buffer
//	params.Init(seed)
//	adam := optim.NewAdam(optim.AdamOptions{LR: 0.003})
//	f := nn.NewFwd(nn.Config{})
//	for step := range steps {
//		f.Reset(nn.Config{Train: true, Seed: seed, Step: step})
//		x := f.Input(rows, 128, features, tensor.SrcSpace(blocks[0]))
//		loss := nn.CrossEntropy(nn.Forward(m, f, blocks, x), labels)
//		params.ZeroGrad()
//		loss.Backward()
//		adam.Step(params.Flat(), params.Grad(), 1/float32(loss.Weight))
//	}
//
// The package has the models [SAGE], [GCN], [GAT], [GATv2], [GIN] and [MLP], [GINE], [GatedGCN] and [PNA] for graphs whose edges have features, and [RGCN] and [HGT] for graphs with types. You can use their layers,
// and [TransformerConv], [ResGatedConv], [GraphConv], [LayerNorm] and [BatchNorm], in your own models, with [Between] for the operations
// between layers. Over graphs with types there are [RGCNConv], [HGTConv], [CompGCNConv], [PerRelation] and
// [TypedInput]. [NewPooling] makes layers that make a row of each graph of its nodes' rows. Models of events in time have [GRUCell], [TimeEncoder], [Mixer] and TransformerConv.ForwardEdges.
//
// # Losses are pairs
//
// A [Loss] is a sum over rows and the sum's weight. Gradients are those of the sum; the optimiser
// divides by the total weight. So batches, virtual ranks and workers of different sizes add up to
// the mean over all rows, and a batch without labelled rows adds nothing.
//
// # Names
//
// A parameter's name is the path of exported fields that leads to it. The layers of this package
// have the names of PyTorch Geometric's state_dict, so weights can be exchanged in both directions.
// See [Collect].
//
// # Errors
//
// A model that does not fit its input is a bug in the model. Like the operations of package tensor,
// the functions that run inside a forward or backward pass panic with an error that wraps a
// [*tensor.Error]. [Try] turns such a panic into an error; [TryForward] does this for a whole
// forward pass.
//
// # Determinism
//
// The number of threads never changes bits: reductions run over fixed chunks combined in order. A
// node's row does not depend on the rows computed with it, so a full-graph forward pass, layer-wise
// inference and sampling with all neighbours agree to the bit on one processor, with and without
// dropout. [BatchNorm] and the degrees of a sampled batch (GCNConv.BatchDegrees) are the
// exceptions.
package nn

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/machine"
)

// Types of the lower packages that a model's own code needs, under short names.
type (
	Tensor = tensor.Tensor
	Fwd    = tensor.Fwd
	Config = tensor.Config
	Work   = tensor.Work
	Param  = tensor.Param
	Space  = tensor.Space
	Table  = tensor.Table
	Op     = tensor.Op
	Block  = graphops.Block
)

// The aggregations.
const (
	Mean = tensor.Mean
	Sum  = tensor.Sum
	Max  = tensor.Max
)

// NewFwd starts a pass; it is tensor.NewFwd.
func NewFwd(c Config) *Fwd { return tensor.NewFwd(c) }

// NewParam returns a parameter of zeros [rows, cols]. [Collect] gives it its name and its place in
// the flat buffer, [Params.Init] its initial value.
func NewParam(rows, cols int) *Param {
	if rows < 0 || cols < 0 {
		fail("NewParam", "a parameter cannot be [%d,%d]", rows, cols)
	}
	if err := machine.Room(fmt.Sprintf("a parameter [%d,%d]", rows, cols), 4*float64(rows)*float64(cols)); err != nil {
		fail("NewParam", "%v; make the model smaller", err)
	}
	if float64(rows)*float64(cols) > 1<<40 { // if the system does not report its memory
		fail("NewParam", "a parameter cannot have [%d,%d] elements", rows, cols)
	}
	return &Param{Rows: rows, Cols: cols, W: make([]float32, rows*cols)}
}

// NewFixed returns a parameter [rows, cols] with all elements v, which is saved with the model but
// not trained.
func NewFixed(rows, cols int, v float32) *Param {
	p := NewParam(rows, cols)
	p.Fixed = true
	for i := range p.W {
		p.W[i] = v
	}
	return p
}

// Module computes rows from rows and keeps their order: a [Linear], a normalisation, a
// [Perceptron]. It keeps x's row space.
type Module interface {
	Forward(f *Fwd, x *Tensor) *Tensor
}

// Try runs fn and returns the error that it panicked with, if that error is or wraps a
// [*tensor.Error] (misuse of an operation, a layer or a loss) or a [*ops.Failure] of a device.
// Every other panic continues.
func Try(fn func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if err = misuse(r); err == nil {
				panic(r)
			}
		}
	}()
	fn()
	return nil
}

// misuse returns the error in a panic's value that reports a misused operation or a failed device,
// or nil.
func misuse(r any) error {
	err, ok := r.(error)
	var te *tensor.Error
	var failure *ops.Failure
	if ok && (errors.As(err, &te) || errors.As(err, &failure)) {
		return err
	}
	return nil
}

func fail(op, format string, args ...any) {
	panic(&tensor.Error{Op: op, Detail: fmt.Sprintf(format, args...)})
}
