package gnb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Batch is one worker's share of one step: its seeds, the blocks sampled for them, features of the
// first block's sources and the seeds' labels. It is valid until the loop's next iteration, or
// until the next loop if this one was broken off, because later batches reuse its memory. Copy
// values that you keep longer, including labels.
type Batch struct {
	*sample.Batch
	// Sparse are the features of the first block's sources if the dataset has sparse features; see
	// Features for dense ones.
	Sparse *dataset.Sparse
	// Labels are the seeds' labels, -1 if unknown. If a node can have several labels they are in
	// Targets [seeds, classes] instead: 1, 0, or -1 if unknown.
	Labels  []int32
	Targets []int8
	// Items are the items of this share of a step, and Value what Seeds.Of returned for them, if the
	// program chooses seeds itself ([Worker.BatchesOf]).
	Items []int32
	Value any
	// Last is true for the last step of the loop.
	Last bool
	// EndsStep is true for this worker's last batch of a step, the one at which
	// parameters change: for each batch, unless the run has virtual ranks.
	EndsStep bool

	x       *dataset.Matrix // the features of all nodes, unless gathered; nil if they are sparse
	threads int
	// gathered says that x has the batch's rows alone, in the order of InputIDs.
	gathered bool
	full     bool // the batch is the whole graph and belongs to no particular step
	// kept has the sparse features of the whole graph, keptOf, from step to step.
	kept   *tensor.Compressed
	keptOf *dataset.Sparse
	global Seeds // the seeds of the step over all ranks
	proof  sample.Proof
	err    error // the error of sampling or fetching

	fetchErr error

	rows   *feed.Ticket // of features that are not mapped here; nil if all are
	memory *feed.Memory // holds Sparse, Labels and Targets
	spare  *feed.Spares // takes memory back on release
	staged device.Batch // the features copied to a device; nil if the device reads x
}

func (b *Batch) space() *nn.Space {
	if len(b.Blocks) == 0 {
		return &nn.Space{}
	}
	return tensor.SrcSpace(b.Blocks[0])
}

// counted is the number of items of the batch, or of its seeds if a loop goes through seeds.
func (b *Batch) counted() int {
	if b.Items != nil {
		return len(b.Items)
	}
	return len(b.Seeds)
}

func (b *Batch) String() string {
	s := fmt.Sprintf("batch of %d seeds, epoch %d, step %d", len(b.Seeds), b.Epoch, b.Step)
	for i, k := range b.Blocks {
		s += fmt.Sprintf("\n  layer %d: %v", i, k)
	}
	return s
}

// fetch gets what a batch needs besides its blocks: sparse features and labels. The first layer
// reads dense features in place, unless a stager copies them to the device. Closing stop ends the
// stager's wait for earlier batches.
func (w *Worker) fetch(b *Batch, st device.Stager, stop <-chan struct{}) error {
	var err error
	failed := nn.Try(func() { err = w.fetchAll(b, st, stop) }) // fails if a device cannot return ids
	return cmp.Or(err, failed)
}

func (w *Worker) fetchAll(b *Batch, st device.Stager, stop <-chan struct{}) error {
	return mapped.Guard(func() (err error) {
		b.threads = w.threads
		m := w.feed.spare.Get()
		b.memory, b.spare = m, &w.feed.spare
		b.gathered = b.rows != nil || w.feed.parts != nil
		var places []int32
		p := w.feed.parts
		switch {
		case b.rows != nil:
			places = b.rows.Places
			if b.x = nil; st == nil {
				if b.x, err = b.rows.Table(m, stop); err != nil {
					return err
				}
			}
			if b.gathered = b.x == nil; b.gathered {
				if b.x, b.Sparse, err = b.rows.Features(m, stop); err != nil {
					return err
				}
			}
		case w.feed.noFeatures:
		case p != nil:
			if b.x, b.Sparse, err = m.Rows(p, b.InputIDs(), w.threads); err != nil {
				return err
			}
		case w.ds.Features != nil:
			b.x = w.ds.Features
		case w.ds.SparseFeatures != nil:
			b.Sparse = m.Sparse(w.ds.SparseFeatures, b.InputIDs(), w.threads)
		}
		if st != nil {
			if b.staged, err = st.Prepare(stop, b.Batch, places, b.x); err != nil {
				return err
			}
		}
		if p != nil && b.Items == nil { // the labels of a program's own seeds can be on any machine
			b.Labels, b.Targets, err = m.Answers(p, b.Seeds)
		} else if p == nil {
			b.Labels, b.Targets = m.Known(w.ds, b.Seeds)
		}
		return err
	})
}

// unstage frees the batch's staged features on the device.
func (b *Batch) unstage() {
	if b.staged != nil {
		b.staged.Done()
		b.staged = nil
	}
}

// release returns the batch's memory for reuse by later batches and clears the batch's references
// to it.
func (b *Batch) release() {
	b.unstage()
	if b.Batch != nil { // sampling succeeded
		b.Release()
	}
	b.Labels, b.Targets, b.Sparse, b.Items, b.Value = nil, nil, nil, nil, nil
	if b.memory != nil { // fetching succeeded
		b.spare.Put(b.memory)
		b.memory = nil
	}
}

// input returns the batch's features as the first layer's input.
func (b *Batch) input(f *nn.Fwd) *nn.Tensor {
	if b.staged != nil {
		if x := b.staged.Input(f, b.space()); x != nil {
			return x
		}
	}
	if s := b.Sparse; s != nil && b.full {
		if b.keptOf != s {
			b.keptOf, b.kept = s, tensor.NewCompressed(s.Rows, s.Cols, s.Indptr, s.Indices, s.Values)
		}
		return f.CompressedInput(b.kept, b.space())
	}
	if b.Sparse != nil || b.full || b.gathered {
		return feed.Input(f, b.x, b.Sparse, b.space())
	}
	if len(b.Blocks) > 0 {
		return f.SourceTable(tableOf(b.x), b.x.Cols, b.Blocks[0])
	}
	return f.TableRows(tableOf(b.x), b.x.Cols, b.InputIDs(), b.space())
}

// Features returns a copy of the features of the first block's sources, row-major; nil if they are
// sparse. Networks do not need it: they read the dataset's rows in place.
func (b *Batch) Features() []float32 {
	if b.staged != nil {
		if x := b.staged.Features(); x != nil {
			return x
		}
	}
	switch {
	case b.x == nil:
		return nil
	case b.full, b.gathered:
		return slices.Clone(b.x.Float32().F32)
	}
	ids := b.InputIDs()
	x := make([]float32, len(ids)*b.x.Cols)
	b.x.Gather(x, ids, b.threads)
	return x
}

// inputRows returns the features of the input nodes, for networks that learn the rows of others.
func (b *Batch) inputRows() feed.InputRows {
	return feed.InputRows{X: b.x, Sparse: b.Sparse, Gathered: b.full || b.gathered || b.Sparse != nil}
}

// tableOf returns a matrix as a table from which layers read rows.
func tableOf(m *dataset.Matrix) nn.Table { return nn.Table{F32: m.F32, F16: m.F16} }

// Loss returns the standard loss of a network's output for the batch: cross-entropy over Labels or,
// if a node can have several labels, binary cross-entropy over Targets.
func (b *Batch) Loss(out *nn.Tensor) *nn.Loss { return b.loss(out, nn.CrossEntropyOptions{}) }

// loss is Loss with options of the cross-entropy.
func (b *Batch) loss(out *nn.Tensor, o nn.CrossEntropyOptions) *nn.Loss {
	if b.Targets != nil {
		return nn.BCEWithLogits(out, b.Targets)
	}
	return o.Loss(out, b.Labels)
}

// FullGraph returns the whole graph as one batch, for full-graph training: every layer uses every
// node and edge, and the result has one row per node. Use it for any number of steps, outside loops
// over batches, with networks of any number of layers. For a dataset without labels the batch has
// none.
//
// Each rank computes all rows: more workers do not make it faster. Rank 0 has the split's Seeds
// and Labels; the other ranks have no seeds and label -1 everywhere. The sum of the ranks' losses
// is therefore the loss over the split, with the same bits for any number of workers.
func (w *Worker) FullGraph(split string) *Batch {
	ids, err := w.Dataset().Split(split)
	w.check(err)
	return w.FullGraphOf(ids)
}

// FullGraphOf is FullGraph with any seeds.
func (w *Worker) FullGraphOf(ids []int32) *Batch {
	ds := w.Dataset()
	if w.feed.parts != nil {
		w.Fail(fmt.Errorf("gnb: %s is divided into parts, and full-graph training reads the features of all nodes: train in mini-batches (Worker.Batches), or on the undivided dataset", ds.Name()))
	}
	if w.gpu != nil && w.gpu.Staged() && ds.Features != nil {
		w.Fail(errors.New("gnb: full-graph training reads the features of all nodes in every step, and neither the device nor the host's memory that can be pinned has room for them: train in mini-batches, on the CPU (Device: \"cpu\"), or make room"))
	}
	layers := 1
	for _, n := range w.nets {
		layers = max(layers, n.model.NumLayers())
	}
	whole := w.graph().Slice(0, ds.Nodes())
	b := &Batch{
		Batch:    &sample.Batch{Epoch: w.loop.Pos.Epoch, Step: w.loop.Pos.EpochStep()},
		EndsStep: true, x: ds.Features, full: true,
	}
	if ds.Features == nil {
		b.Sparse = ds.SparseFeatures
	}
	for range layers {
		b.Blocks = append(b.Blocks, whole)
	}
	if w.p.Rank == 0 {
		b.Seeds = ids
	}
	b.Labels, b.Targets = feed.AnswersOf(ds, b.Seeds)
	return b
}
