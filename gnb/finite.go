package gnb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu"
)

// ErrNotFinite matches the error of a run that stopped because its loss, its gradient, its weights
// or the output of its network were no longer finite numbers. The error names epoch, step and rank,
// and the first value that was not finite: a node's features, an edge's weight, a layer's output,
// the loss, a parameter's gradient, or a parameter. Neither a checkpoint nor the best weights ever
// hold such numbers.
var ErrNotFinite error = multigpu.ErrorKind("numbers stopped being finite")

// notFiniteKey is the key in a run's result whose text describes what was not finite.
const notFiniteKey = "not_finite"

// found is the part of a Worker that searches for numbers that are not finite.
type found struct {
	what string     // this rank's finding
	rows *rowSearch // of a layer-wise evaluation that is repeated to locate the number
	loop *looping   // the current loop over batches, to recreate its batches
}

// notFiniteError returns the error message for a rank's finding.
func (w *Worker) notFiniteError(n *network, at atStep, rank int, what string) error {
	lr := ""
	for _, o := range w.opts {
		if o.n == n {
			lr = fmt.Sprintf(" (it is %.4g)", o.opt.LR())
		}
	}
	kept := ""
	if epoch, ok := w.saving.Best.Epoch(n.index); ok && w.job.RunDir != "" {
		kept = fmt.Sprintf("; the best epoch before that, %d, is kept in %s", epoch, n.saved().File("best"))
	}
	return fmt.Errorf("gnb: %w at %v, on rank %d: %s; the usual ways out are a lower learning rate%s, a bound on the gradient (ClipNorm, Optimizer.Clip or --clip), and a check of the data (gnb data check)%s", ErrNotFinite, at, rank, what, lr, kept)
}

// stopNotFinite ends the run on all ranks with the finding of the lowest rank that has one, or
// with otherwise if no rank has one. Collective.
func (w *Worker) stopNotFinite(n *network, at atStep, found, otherwise string) {
	rank, what, err := firstFinding(w.comm, w.site("numbers that are not finite"), found)
	w.check(err)
	w.endNotFinite(n, at, rank, cmp.Or(what, otherwise))
}

// endNotFinite ends the run with the given rank's finding; every rank that calls it passes the
// same arguments.
func (w *Worker) endNotFinite(n *network, at atStep, rank int, what string) {
	w.emitFirst(runs.Event{Kind: runs.KindResult, Split: notFiniteKey, Text: what})
	if rank != w.p.Rank {
		w.Barrier() // until that rank has ended the run
	}
	w.Fail(w.notFiniteError(n, at, rank, what))
}

// watchLoss checks, before the backward pass, whether the loss of a step's micro-th batch is
// finite, if the host knows it. If it is not, watchLoss searches the network's layers for the
// cause while the batch still exists.
func (w *Worker) watchLoss(n *network, micro int) {
	loss, known := n.grads.Loss(micro)
	if !known || isFinite(loss) || w.found.what != "" {
		return
	}
	w.found.what = n.culprit(n.last.batch, n.last.at, true, false)
	if w.found.what == "" && !n.last.together {
		w.found.what = n.search().loss(loss)
	}
}

// watchSum ends a run whose summed loss is not finite before weights change. Collective.
func (w *Worker) watchSum(n *network, t device.Totals) {
	if loss := t.Loss; !isFinite(loss) {
		if n.last.together && w.found.what == "" {
			w.found.what = n.culprit(n.last.batch, n.last.at, true, false)
		}
		w.stopNotFinite(n, w.here(), w.found.what, fmt.Sprintf("the sum of all ranks' losses is %v", loss))
	}
}

// search returns the network to search.
func (n *network) search() searched {
	return searched{name: n.name, model: n.model, params: n.params.Params}
}

// thisEpoch returns the current epoch as the position of a finding that belongs to no step.
func (w *Worker) thisEpoch() atStep {
	return atStep{epoch: w.loop.Pos.ReportedEpoch(), step: -1}
}

// here returns the program's current step.
func (w *Worker) here() atStep {
	return atStep{epoch: w.loop.Pos.ReportedEpoch(), step: w.loop.Pos.EpochStep()}
}

// watchWeights ends a run whose weights are not finite after a step on the CPU. All ranks have the
// same weights. Collective.
func (w *Worker) watchWeights(n *network, opt *Optimizer) {
	if simd.Finite(n.params.Flat()) {
		return
	}
	found := ""
	for micro := range w.job.Virtual {
		if found == "" {
			found = n.search().gradient(n.grads.Own(micro))
		}
	}
	w.stopNotFinite(n, w.here(), found, fmt.Sprintf("the step of optimiser %s makes %s", opt.opt.Name(), n.search().parameter()))
}

// checkOptimizers ends the run if an optimiser's state in host memory is not finite: such a state
// would never change the weights again.
func (w *Worker) checkOptimizers() {
	w.watchTables()
	for _, o := range w.opts {
		if o.n.params.Device != nil {
			continue
		}
		for _, s := range o.opt.State() {
			if !simd.Finite(s.Data) {
				w.stopNotFinite(o.n, w.thisEpoch(), "", fmt.Sprintf("the state %s of optimiser %s has %v, by gradients too large to be squared", s.Name, o.opt.Name(), s.Data[simd.NotFinite(s.Data)]))
			}
		}
	}
}

// checkNetworks returns an error if a network's weights in host memory are not finite.
func (w *Worker) checkNetworks() error {
	for _, n := range w.nets {
		if err := w.checkTensors(n.saved().Tensors()); err != nil {
			return err
		}
	}
	return nil
}

// checkTensors returns an error if a tensor of a network or its optimiser that is about to be
// saved is not finite. Steps on a device are otherwise checked by their losses only.
func (w *Worker) checkTensors(ts []safetensors.Tensor) error {
	for _, t := range ts {
		if simd.Finite(t.F32) {
			continue
		}
		i := simd.NotFinite(t.F32)
		what := fmt.Sprintf("%s has %v", t.Name, t.F32[i])
		at := slices.IndexFunc(w.nets, func(n *network) bool { return strings.HasPrefix(t.Name, n.saved().Prefix()) })
		if at >= 0 {
			what = fmt.Sprintf("parameter %s of model %q has %v", strings.TrimPrefix(t.Name, w.nets[at].saved().Prefix()), w.nets[at].name, t.F32[i])
		}
		w.emitFirst(runs.Event{Kind: runs.KindResult, Split: notFiniteKey, Text: what})
		return w.notFiniteError(w.nets[max(0, at)], w.thisEpoch(), w.p.Rank, what)
	}
	return nil
}

// culprit finds the first number that is not finite in the computation of a network's output for a
// batch. It computes the batch again layer by layer, with the dropout of its step if train is set,
// and on the CPU if onHost is set. It returns "" if everything is finite.
func (n *network) culprit(b *Batch, at atStep, train, onHost bool) (what string) {
	if what = n.search().parameter(); what != "" {
		return what
	}
	if b == nil || b.Batch == nil || len(b.Blocks) == 0 {
		return ""
	}
	c := n.config(train, at.epoch, at.step)
	c.Exchanger = nil // this rank may be alone here
	if onHost {
		c.Backend = nil
	}
	return n.search().pass(c, func(f *nn.Fwd) (*nn.Tensor, *dataset.Sparse, []*graphops.Block) {
		x, sparse := n.inputAgain(f, b), b.Sparse
		if n.table != nil {
			sparse = nil
		}
		return x, sparse, b.blocks(n.model.NumLayers())
	}, b.inputNode)
}

// inputNode names the node of one of the batch's input rows, for errors.
func (b *Batch) inputNode(row int) string {
	if ids := b.InputIDs(); row < len(ids) {
		return fmt.Sprintf("node %d", ids[row])
	}
	if b.full {
		return fmt.Sprintf("node %d", row)
	}
	return fmt.Sprintf("input row %d", row)
}

// watchRows ends the run if a layer-wise evaluation has output rows that are not finite on any
// rank; it repeats the evaluation to find the first such layer. bad tells whether this rank has
// such rows. Collective.
func (w *Worker) watchRows(n *network, bad bool) {
	if !w.onAnyRank(bad) {
		return
	}
	s := &rowSearch{searched: n.search()}
	w.found.rows = s
	if w.feed.parts != nil {
		if s.found = s.parameter(); s.found == "" && n.table != nil {
			s.found = n.table.NotFinite()
		}
		if w.feed.replaced {
			w.layerwise(n).Release()
		} else {
			w.partRows(n)
		}
	} else {
		lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
		if n.table != nil {
			s.found = cmp.Or(s.parameter(), n.table.NotFinite())
		} else {
			s.input(w.ds, lo, hi)
		}
		w.layerwise(n).Release()
	}
	w.found.rows = nil
	w.check(s.agree(w.comm, w.site("evaluate")))
	w.stopNotFinite(n, w.thisEpoch(), s.found, fmt.Sprintf("the output of model %q in an evaluation, once", n.name))
}

// onAnyRank reports whether bad is set on a rank. Collective.
func (w *Worker) onAnyRank(bad bool) bool {
	yes, err := onAnyRank(w.comm, w.site("evaluate"), bad)
	w.check(err)
	return yes
}

// watchEvaluation is [Worker.watchRows] for an evaluation's tallies. Collective.
func (w *Worker) watchEvaluation(n *network, how Evaluation, tallies []*tally.Tally) {
	bad := slices.ContainsFunc(tallies, (*tally.Tally).NotFinite)
	if how.Fanouts == nil {
		w.watchRows(n, bad)
		return
	}
	if w.onAnyRank(bad) {
		w.stopNotFinite(n, w.thisEpoch(), w.found.what, fmt.Sprintf("the output of model %q in an evaluation, once", n.name))
	}
}

// The host reads a device's losses after the steps have ended and released their batches; with one
// rank that is one or two steps later, when the weights have changed. The search for the cause
// then runs on the CPU, on a recreated batch, with the weights from before the step, of which the
// device keeps copies.

// looping is a loop over batches in progress.
type looping struct {
	p               plan
	epoch, stepBase int
}

// made records how a step's batches were made, so that they can be recreated.
type made struct {
	loop *looping
	full *Batch // the whole graph, or a batch that the program made
	step int    // the step of the batches
	at   atStep // the step whose dropout they used
}

// madeOf describes the batches of the current step.
func (n *network) madeOf() made {
	m := made{loop: n.w.found.loop, at: n.last.at}
	if n.last.batch == nil || n.last.batch.Batch == nil {
		return m
	}
	m.step = n.last.batch.Step
	if n.last.batch.full || !n.w.loop.InLoop() {
		m.full = n.last.batch
	}
	return m
}

// again recreates a loop's batch for this rank's virtual rank v.
func (w *Worker) again(m made, v int) (*Batch, error) {
	if m.full != nil || m.loop == nil || m.loop.p.Cooperative || w.job.Divided {
		return m.full, nil
	}
	l := m.loop
	s, err := w.hostSampler(feed.Key{Picker: l.p.Sampler, Frontier: l.p.Frontier, Hops: l.p.Hops, Disjoint: l.p.Disjoint, AsOf: l.p.AsOf, Purpose: philox.Sample})
	if err != nil {
		return nil, err
	}
	b := w.sampleShare(s, l.p, w.order(l.p, l.epoch, l.stepBase), l.epoch, l.stepBase, m.step-l.stepBase, v)
	if b.err == nil {
		b.err = w.fetch(b, nil, nil)
	}
	return b, b.err
}

// culpritAgain is [network.culprit] for a released batch, with the weights on the device.
func (w *Worker) culpritAgain(n *network, m made, v int) string {
	b, err := w.again(m, v)
	if err == nil {
		err = n.params.ToHost()
	}
	if err != nil {
		return "the loss, of what could not be looked at: " + err.Error()
	}
	return n.culprit(b, m.at, true, true)
}

// watchLosses checks whether the losses of this rank's batches are finite, after they were read
// from the device.
func (w *Worker) watchLosses(n *network, losses []float32) {
	for v, loss := range losses {
		if !isFinite(loss) && w.found.what == "" {
			if w.found.what = w.culpritAgain(n, n.madeOf(), v); w.found.what == "" && !n.last.together {
				w.found.what = n.search().loss(loss)
			}
		}
	}
}

// lateNotFinite ends a run of one rank in which an earlier step's loss was not finite.
func (w *Worker) lateNotFinite(s *lateStep, loss float32) {
	n := s.n
	w.check(n.params.Recall(s.applied))
	what := ""
	for v, l := range s.losses.Losses() {
		if !isFinite(l) && what == "" {
			what = w.culpritAgain(n, s.made, v)
		}
	}
	if what == "" {
		what = n.search().loss(loss)
	}
	w.endNotFinite(n, atStep{epoch: s.record.Epoch, step: s.record.Step}, w.p.Rank, what)
}
