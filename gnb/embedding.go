package gnb

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// newTable makes the table of a network whose input are learned rows, with the rows of the checkpoint if
// the run resumes. Collective.
func (n *network) newTable() error {
	if !n.sizes.Embedding && n.sizes.Learned == nil {
		return nil
	}
	w, nodes, cols := n.w, n.w.Dataset().Nodes(), n.sizes.In
	spans, err := feed.SpansOf(w.Dataset().Schema(), n.sizes.Learned)
	switch {
	case err != nil:
		return err
	case cols < 1 || cols > maxEmbedding:
		return fmt.Errorf("gnb: model %q has learned embeddings of %d columns (ModelConfig.In); they have 1 to %d", n.name, cols, maxEmbedding)
	case w.gpu != nil:
		return fmt.Errorf("gnb: model %q has learned embeddings, which train on CPUs only so far; choose the CPU (Device: \"cpu\", --device cpu)", n.name)
	case n.params.Get(saving.EmbeddingWeights) != nil:
		return fmt.Errorf("gnb: model %q has a parameter %s, which is the name of its learned embeddings in files; give the parameter another name", n.name, saving.EmbeddingWeights)
	}
	if err := w.tableRoom(n.name, nodes, cols); err != nil {
		return err
	}
	t, err := feed.NewEmbeddings(feed.EmbeddingOptions{
		Comm: w.comm, Site: w.site, Machine: w.p.Machine, Nodes: nodes, Cols: cols, Seed: w.job.Seed + uint64(n.index), Parts: w.feed.parts, Spans: spans,
	})
	if err != nil {
		return err
	}
	n.table = t
	w.feed.turnInput = true
	return w.saving.Resumed.Table(n.index, n.name, t)
}

// tableRoom returns an error if this machine has no memory for its rows of a table with its optimiser's
// state, and for the copies that rank 0 writes checkpoints from.
func (w *Worker) tableRoom(name string, nodes, cols int) error {
	need := feed.EmbeddingBytes((nodes*w.p.LocalWorld+w.World()-1)/w.World(), cols)
	if w.saving.On() && w.p.Machine == 0 {
		need += feed.SavedEmbeddingBytes(nodes, cols)
	}
	return w.room(fmt.Sprintf("the learned embeddings of %d nodes in %d columns of model %q", nodes, cols, name), float64(need), fewerColumns)
}

// input returns the input rows of a batch without a gradient: learned rows or features.
func (n *network) input(f *nn.Fwd, b *Batch) *nn.Tensor {
	switch t := n.table; {
	case t == nil:
		return b.input(f)
	case t.Mixed():
		x, err := t.MixedInput(f, n.inputIDs(b), b.inputRows(), b.space())
		n.w.check(err)
		return x
	case t.Apart():
		_, err := t.Read(n.inputIDs(b))
		n.w.check(err)
		return t.Again(f, b.space())
	case b.full:
		return n.allInputs(f)
	case len(b.Blocks) > 0:
		return f.SourceTable(nn.Table{F32: t.W}, t.Cols, b.Blocks[0])
	default:
		return f.TableRows(nn.Table{F32: t.W}, t.Cols, b.InputIDs(), b.space())
	}
}

// allInputs returns the input rows of all nodes, for layer-wise evaluation.
func (n *network) allInputs(f *nn.Fwd) *nn.Tensor {
	if t := n.table; t != nil {
		return f.Input(t.Rows(), t.Cols, t.W, &nn.Space{})
	}
	return feed.AllFeatures(f, n.w.ds)
}

// gatherInputs returns allInputs for a layer-wise evaluation, and what frees their memory. Collective.
func (n *network) gatherInputs() (input func(f *nn.Fwd) *nn.Tensor, free func(), err error) {
	if t := n.table; t != nil && (t.Mixed() || t.Apart()) {
		m, err := t.AllInputs(n.w.site("input rows of all nodes"), n.w.ds, n.w.feed.parts, n.w.threads)
		if err != nil {
			return nil, nil, err
		}
		return func(f *nn.Fwd) *nn.Tensor { return f.Input(n.w.ds.Nodes(), t.Cols, m.Data(), &nn.Space{}) }, m.Release, nil
	}
	return n.allInputs, func() {}, nil
}

// inputAgain is input for the batch that was computed last, on one rank alone.
func (n *network) inputAgain(f *nn.Fwd, b *Batch) *nn.Tensor {
	if t := n.table; t != nil && t.Apart() {
		return t.Again(f, b.space())
	}
	return n.input(f, b)
}

// inputCols returns the number of columns of a node's input.
func (n *network) inputCols() int {
	if n.table != nil {
		return n.table.Cols
	}
	return n.w.ds.FeatureDim()
}

// trainInput returns the input rows of the batch of a training pass; learned ones have a gradient.
func (n *network) trainInput(b *Batch) *nn.Tensor {
	if n.table == nil {
		return b.input(n.fwd)
	}
	n.last.ids = n.inputIDs(b)
	var err error
	n.last.rows, err = n.table.LeafOf(n.fwd, n.last.ids, b.inputRows, b.space())
	n.w.check(err)
	return n.last.rows
}

// inputIDs returns the nodes of a batch's input rows.
func (n *network) inputIDs(b *Batch) []int32 {
	if b.full {
		return n.w.everyNode()
	}
	return b.InputIDs()
}

// everyNode returns the ids of all nodes.
func (w *Worker) everyNode() []int32 {
	if w.feed.every == nil {
		w.feed.every = make([]int32, w.ds.Nodes())
		for v := range w.feed.every {
			w.feed.every[v] = int32(v)
		}
	}
	return w.feed.every
}

// keepRows keeps the gradient of the learned rows that a batch read, until the step's last batch. On the
// whole graph one rank has the seeds, and the gradients of the others are 0.
func (n *network) keepRows() {
	if b := n.last.batch; n.table != nil && n.last.rows != nil && (!b.full || len(b.Seeds) > 0) {
		n.table.Add(n.last.ids, n.last.rows.Grad())
	}
	n.last.ids, n.last.rows = nil, nil
}

// collectRows adds up the gradients of the learned rows that the step's batches read, or forgets them if the step changes no
// weights. It returns the sum of their squares if the gradient is to be clipped. Collective.
func (n *network) collectRows(weight float32, clip float64) (squares float64, err error) {
	switch {
	case n.table == nil:
		return 0, nil
	case !(weight > 0):
		n.table.Drop()
		return 0, nil
	}
	if err := n.table.Collect(); err != nil || clip <= 0 {
		return 0, err
	}
	return n.table.Squares()
}

// tablesApart reports whether a network has learned rows of which each machine has some.
func (w *Worker) tablesApart() bool {
	return slices.ContainsFunc(w.nets, func(n *network) bool { return n.saved().Apart() })
}

// sharedRows returns, on rank 0, the learned rows of which each machine has some, for a checkpoint.
// Collective.
func (w *Worker) sharedRows(memory []safetensors.Tensor) (all []safetensors.Tensor, err error) {
	for _, n := range w.nets {
		ts, err := n.saved().Shares(memory[min(len(all), len(memory)):])
		if err == nil && w.p.Rank == 0 {
			err = w.checkTensors(ts)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, ts...)
	}
	return all, nil
}

// boundaryTogether is the part of [Worker.boundary] with learned rows of which each machine has some: rank 0
// decides, and the others send it their rows. last writes a checkpoint unless there is one of this boundary. Collective.
func (w *Worker) boundaryTogether(always, last bool) {
	stop, wants := false, []byte{0}
	if w.p.Rank == 0 {
		w.check(w.recordChange())
		last = last && w.saving.On() && !w.saving.Holds(w.loop.Pos)
		if stop = w.p.StopRequested(); w.saving.On() && (stop || last || w.saving.Wants(always, w.loop.Pos.Total)) {
			wants[0] = 1
		}
	}
	all, err := w.comm.AllGather(w.site("checkpoint"), wants)
	w.check(err)
	switch save := len(all[0]) == 1 && all[0][0] == 1; {
	case w.p.Rank != 0 && save:
		_, err := w.sharedRows(nil)
		w.check(err)
	case w.p.Rank != 0:
	case save:
		due := last || w.saving.Due(w.loop.Pos.Total)
		w.stage(runfile.StageSave)
		w.check(w.saving.Prepare(true))
		if due && !stop {
			w.check(w.saving.SaveCopy())
		}
		w.stage(runfile.StageProgram)
		fallthrough
	case stop:
		if stop {
			w.Fail(w.leave(w.saving.SavePrepared))
		}
	}
}

// watchTables ends the run if a learned row, or the state of its optimiser, is not finite on a rank that owns it.
// Collective, if a network has learned rows.
func (w *Worker) watchTables() {
	for _, n := range w.nets {
		if n.table == nil {
			continue
		}
		if found := n.table.NotFinite(); w.onAnyRank(found != "") {
			w.stopNotFinite(n, w.thisEpoch(), found, "a learned row is not finite")
		}
	}
}
