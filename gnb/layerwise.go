package gnb

import (
	"cmp"
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// layerwise is an evaluation of a model with all neighbours: each layer for all nodes before the next one, in matrices that the
// ranks share, or on their devices; see [feed.PartLayers] for a dataset in parts, whose rows stay with the ranks that own them.
type layerwise struct {
	comm  collective.Comm
	site  collective.Site
	name  string // of the model, for errors
	model nn.Model
	count int // layers to compute, the first ones; 0 means all
	graph graphops.Slicer
	nodes int
	// input returns the first layer's input, with inputCols columns; free is called when that layer is computed. first
	// computes the rows [lo, hi) of that layer without input, where no memory has the features of all nodes; else nil.
	input     func(f *nn.Fwd) *nn.Tensor
	inputCols int
	free      func()
	first     func(fwd *nn.Fwd, lo, hi int, out []float32, done func(rows int)) error
	// fwd returns the pass in which layers are computed. It is called again after hold, which may change it.
	fwd func() *nn.Fwd
	// cols returns the columns of a layer's output, of a number of input columns.
	cols func(layer, cols int) (int, error)
	// hold keeps a layer's input rows, nil for the first layer, where layers are computed, until release is called.
	hold func(rows []float32) (release func(), err error)
	// between keeps a layer's output rows where the next layer is computed, in place of the matrix rows of all nodes, until
	// release is called; share sends this rank's rows to the other ranks. Both are nil if the rows cannot stay there. It is nil
	// if rows always pass through the matrix. Collective.
	between func(rows []float32, cols int) (share, release func(), err error)
	// done is called with the number of rows of a layer computed so far.
	done func(layer, rows int)
	// look gets this rank's rows of each layer, from node lo on; nil to leave it out.
	look func(layer, lo, cols int, rows []float32)
}

// layers computes the network's output for all nodes, in memory that all ranks share: each rank computes its share of the
// rows of each layer, from all rows of the previous layer. When it returns, only this rank's rows are guaranteed to
// be present; Publish makes all rows visible. Collective.
func (m *layerMatrices) layers(o layerwise) (collective.Matrix, error) {
	lo, hi := sample.Share(o.nodes, o.comm.Rank(), o.comm.Size())
	input, cols := o.input, o.inputCols
	var before collective.Matrix
	var rows []float32 // the layer's input; nil for the first layer
	release := func() {}
	count := cmp.Or(o.count, o.model.NumLayers())
	for i := range count {
		next, free, err := m.layer(&o, i, i < count-1, lo, hi, input, cols, rows)
		release()
		release = free
		if before != nil {
			before.Release()
		} else {
			o.free()
		}
		if err != nil {
			release()
			return nil, err
		}
		h, out := next.Data(), next.Cols()
		before, rows, cols = next, h, out
		input = func(f *nn.Fwd) *nn.Tensor { return f.Input(o.nodes, out, h, &nn.Space{}) }
	}
	return before, nil
}

// layer computes this rank's rows [lo, hi) of layer i. If there is a next layer, they may stay where it is computed until free
// is called.
func (m *layerMatrices) layer(o *layerwise, i int, next bool, lo, hi int, input func(f *nn.Fwd) *nn.Tensor, cols int, rows []float32) (out collective.Matrix, free func(), err error) {
	free = func() {}
	err = mapped.Guard(func() error {
		width, err := o.cols(i, cols)
		if err != nil {
			return fmt.Errorf("gnb: model %q: %w", o.name, err)
		}
		if out, err = m.get(o.comm, o.site, i, o.nodes, width); err != nil {
			return err
		}
		release, err := o.hold(rows)
		if err != nil {
			return err
		}
		defer release()
		own, done := out.Data()[lo*width:hi*width], func(rows int) { o.done(i, rows) }
		first := i == 0 && o.first != nil
		var share func() // nil: the rows do not stay
		if next && !first && o.look == nil && o.between != nil {
			kept, release, err := o.between(out.Data(), width)
			if err != nil {
				return err
			}
			if share = kept; share != nil {
				free = release
			}
		}
		if first {
			err = o.first(o.fwd(), lo, hi, own, done)
		} else {
			err = nn.LayerRowsFrom(o.model, o.fwd(), i, o.graph, input, lo, hi, own, done)
		}
		if err != nil {
			return fmt.Errorf("gnb: model %q: %w", o.name, err)
		}
		if share != nil {
			share()
			return nil
		}
		if o.look != nil {
			o.look(i, lo, width, own)
		}
		return out.Publish(o.site, lo, hi)
	})
	return out, free, err
}
