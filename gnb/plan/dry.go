package plan

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// pass is what a dry pass over batches found.
type pass struct {
	held int64 // bytes of tensors
	left int64 // bytes that larger tensors have replaced, in all batches so far
	work tensor.Work
	made int64 // bytes made anew for each batch, which become garbage
}

// dry runs forward and backward passes of a network on shares, without arithmetic.
type dry struct {
	fwd     *nn.Fwd
	c       nn.Config
	m       nn.Model
	params  *nn.Params
	now     pass
	learned int                      // columns of the learned rows of nodes that are the input; 0 if features are
	zeros   []float32                // rows of batches that have their input in memory of their own
	turned  map[*graphops.Block]bool // blocks whose transposes were counted
	keep    func(rows []float32)     // is called with the input of each layer of an evaluation, unless it is nil
}

func newDry(j *Job, train bool) (*dry, error) {
	d := &dry{learned: j.Embedding, turned: map[*graphops.Block]bool{}}
	err := nn.Try(func() { d.m = j.Build() })
	if err == nil {
		d.params, err = nn.Collect(d.m)
	}
	if err != nil {
		return nil, fmt.Errorf("plan: model %q: %w", j.Model, err)
	}
	d.params.SetGrad(make([]float32, d.params.Len()))
	d.c = nn.Config{Train: train, Threads: j.Threads, Seed: j.Seed, Exchanger: tensor.DryExchanger{}}
	d.c.Backend = tensor.Dry(&d.now.work, func(b *graphops.Block) {
		if !b.HasTransposed() && !d.turned[b] {
			d.turned[b] = true
			d.now.made += b.TransposeBytes()
		}
	})
	d.fwd = nn.NewFwd(d.c)
	return d, nil
}

// begin starts a pass.
func (d *dry) begin(step int) {
	d.now = pass{left: d.now.left}
	clear(d.turned)
	d.c.Step = step
	d.fwd.Reset(d.c)
}

// batch runs a share.
func (d *dry) batch(ds *dataset.Dataset, s sampled, gathered bool) (pass, error) {
	d.begin(s.b.Step)
	out, err := nn.TryForward(d.m, d.fwd, s.b.Blocks, d.input(ds, s, gathered))
	if err == nil {
		err = nn.Try(func() {
			l := loss(ds, out)
			if d.c.Train {
				l.Backward()
			}
			_ = l.Correct()
		})
	}
	d.now.held, d.now.left = d.fwd.Held()
	return d.now, err
}

// loss computes the loss of zeros; labels of all nodes are class 0.
func loss(ds *dataset.Dataset, out *nn.Tensor) *nn.Loss {
	if y := ds.MultiLabels; y != nil {
		return nn.BCEWithLogits(out, make([]int8, out.Rows()*out.Cols()))
	}
	return nn.CrossEntropy(out, make([]int32, out.Rows()))
}

// input returns the first layer's input as a run gives it.
func (d *dry) input(ds *dataset.Dataset, s sampled, gathered bool) *nn.Tensor {
	b, f := s.b.Blocks[0], d.fwd
	if cols := d.learned; cols > 0 {
		return f.Leaf(b.NumSrc, cols, d.rows(b.NumSrc*cols), tensor.SrcSpace(b))
	}
	if x := ds.SparseFeatures; x != nil && ds.Features == nil {
		var rows dataset.Sparse
		x.Gather(b.SrcIDs(), &rows, d.c.Threads)
		return f.SparseInput(rows.Rows, rows.Cols, rows.Indptr, rows.Indices, rows.Values, tensor.SrcSpace(b))
	}
	cols := ds.FeatureDim()
	if gathered {
		return f.Input(b.NumSrc, cols, d.rows(b.NumSrc*cols), tensor.SrcSpace(b))
	}
	return f.SourceTable(nn.Table{F32: ds.Features.F32, F16: ds.Features.F16}, cols, b)
}

// rows returns n zeros.
func (d *dry) rows(n int) []float32 {
	if n > len(d.zeros) {
		d.zeros = make([]float32, n)
	}
	return d.zeros[:n]
}
