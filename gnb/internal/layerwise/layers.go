package layerwise

import (
	"cmp"
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Layers computes a model's layers for all nodes; see [feed.PartLayers] for a dataset in parts, whose rows stay with the ranks
// that own them.
type Layers struct {
	Comm  collective.Comm
	Site  collective.Site
	Name  string // of the model, for errors
	Model nn.Model
	Count int // layers to compute, the first ones; 0 means all
	Graph graphops.Slicer
	Nodes int
	// Input returns the first layer's input, with InputCols columns; Free is called when that layer is computed. First
	// computes the rows [lo, hi) of that layer without Input, where no memory has the features of all nodes; else nil.
	Input     func(f *nn.Fwd) *nn.Tensor
	InputCols int
	Free      func()
	First     func(fwd *nn.Fwd, lo, hi int, out []float32, done func(rows int)) error
	// Fwd returns the pass in which layers are computed. It is called again after Hold, which may change it.
	Fwd func() *nn.Fwd
	// Cols returns the columns of a layer's output, of a number of input columns.
	Cols func(layer, cols int) (int, error)
	// Hold keeps a layer's input rows, nil for the first layer, where layers are computed, until release is called.
	Hold func(rows []float32) (release func(), err error)
	// Between keeps a layer's output rows where the next layer is computed, in place of the matrix rows of all nodes, until
	// release is called; share sends this rank's rows to the other ranks. Both are nil if the rows cannot stay there. It is nil
	// if rows always pass through the matrix. Collective.
	Between func(rows []float32, cols int) (share, release func(), err error)
	// Done is called with the number of rows of a layer computed so far.
	Done func(layer, rows int)
	// Look gets this rank's rows of each layer, from node lo on; nil to leave it out.
	Look func(layer, lo, cols int, rows []float32)
}

// Layers computes the network's output for all nodes, in memory that all ranks share: each rank computes its share of the
// rows of each layer, from all rows of the previous layer. When it returns, only this rank's rows are guaranteed to
// be present; Publish makes all rows visible. Collective.
func (m *Matrices) Layers(o Layers) (collective.Matrix, error) {
	lo, hi := sample.Share(o.Nodes, o.Comm.Rank(), o.Comm.Size())
	input, cols := o.Input, o.InputCols
	var before collective.Matrix
	var rows []float32 // the layer's input; nil for the first layer
	release := func() {}
	count := cmp.Or(o.Count, o.Model.NumLayers())
	for i := range count {
		next, free, err := m.layer(&o, i, i < count-1, lo, hi, input, cols, rows)
		release()
		release = free
		if before != nil {
			before.Release()
		} else {
			o.Free()
		}
		if err != nil {
			release()
			return nil, err
		}
		h, out := next.Data(), next.Cols()
		before, rows, cols = next, h, out
		input = func(f *nn.Fwd) *nn.Tensor { return f.Input(o.Nodes, out, h, &nn.Space{}) }
	}
	return before, nil
}

// layer computes this rank's rows [lo, hi) of layer i. If there is a next layer, they may stay where it is computed until free
// is called.
func (m *Matrices) layer(o *Layers, i int, next bool, lo, hi int, input func(f *nn.Fwd) *nn.Tensor, cols int, rows []float32) (out collective.Matrix, free func(), err error) {
	free = func() {}
	err = mapped.Guard(func() error {
		width, err := o.Cols(i, cols)
		if err != nil {
			return fmt.Errorf("gnb: model %q: %w", o.Name, err)
		}
		if out, err = m.Get(o.Comm, o.Site, i, o.Nodes, width); err != nil {
			return err
		}
		release, err := o.Hold(rows)
		if err != nil {
			return err
		}
		defer release()
		own, done := out.Data()[lo*width:hi*width], func(rows int) { o.Done(i, rows) }
		first := i == 0 && o.First != nil
		var share func() // nil: the rows do not stay
		if next && !first && o.Look == nil && o.Between != nil {
			kept, release, err := o.Between(out.Data(), width)
			if err != nil {
				return err
			}
			if share = kept; share != nil {
				free = release
			}
		}
		if first {
			err = o.First(o.Fwd(), lo, hi, own, done)
		} else {
			err = nn.LayerRowsFrom(o.Model, o.Fwd(), i, o.Graph, input, lo, hi, own, done)
		}
		if err != nil {
			return fmt.Errorf("gnb: model %q: %w", o.Name, err)
		}
		if share != nil {
			share()
			return nil
		}
		if o.Look != nil {
			o.Look(i, lo, width, own)
		}
		return out.Publish(o.Site, lo, hi)
	})
	return out, free, err
}
