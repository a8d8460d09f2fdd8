package gnb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/internal/simd"
)

// ErrNotFinite is matched by the error of a run that stopped because its loss, its
// gradient, its weights or the output of its network were no longer finite numbers. The
// error names epoch, step and rank, and the first thing that was not finite: a node's
// features, an edge's weight, a layer's output, the loss, a parameter's gradient, or a
// parameter. Neither a checkpoint nor the best weights ever hold such numbers.
var ErrNotFinite = errors.New("numbers stopped being finite")

// notFiniteKey is the name under which a run's result has what was not finite.
const notFiniteKey = "not_finite"

// notFinite is the error of a run that ErrNotFinite matches.
type notFinite struct{ error }

func (e notFinite) Is(target error) bool { return target == ErrNotFinite }
func (e notFinite) Unwrap() error        { return e.error }

// finite says whether a number is one.
func finite[T float32 | float64](x T) bool { return x-x == 0 }

// foundAt is where in a run something was found.
type foundAt struct{ epoch, step int }

func (at foundAt) String() string {
	if at.step < 0 {
		return fmt.Sprintf("epoch %d", at.epoch)
	}
	return fmt.Sprintf("epoch %d, step %d", at.epoch, at.step)
}

// notFiniteError is the whole sentence about what a rank has found.
func (w *Worker) notFiniteError(n *network, at foundAt, rank int, what string) error {
	lr := ""
	for _, o := range w.opts {
		if o.n == n {
			lr = fmt.Sprintf(" (it is %.4g)", o.opt.LR())
		}
	}
	text := fmt.Sprintf("gnb: numbers stopped being finite at %v, on rank %d: %s; the usual ways out are a lower learning rate%s, a bound on the gradient (ClipNorm, Optimizer.Clip or --clip), and a check of the data (gnb data check)", at, rank, what, lr)
	if epoch, ok := w.saving.Best.Epoch(n.index); ok && w.job.RunDir != "" {
		text += fmt.Sprintf("; the best epoch before that, %d, is kept in %s", epoch, n.file("best"))
	}
	return errors.New(text)
}

// stopNotFinite ends the run on all ranks with what the first rank has found that has
// found something, else with otherwise. Collective.
func (w *Worker) stopNotFinite(n *network, at foundAt, found, otherwise string) {
	rank, what := 0, otherwise
	if w.World() > 1 {
		all, err := w.comm.AllGather(w.site("numbers that are not finite"), []byte(found))
		w.check(err)
		for r, text := range all {
			if len(text) > 0 {
				rank, what = r, string(text)
				break
			}
		}
	} else if found != "" {
		what = found
	}
	w.endNotFinite(n, at, rank, what)
}

// endNotFinite ends the run with what rank has found; every rank that calls it passes the
// same.
func (w *Worker) endNotFinite(n *network, at foundAt, rank int, what string) {
	w.emitFirst(runs.Event{Kind: runs.KindResult, Split: notFiniteKey, Text: what})
	if rank != w.p.Rank {
		w.Barrier() // until that rank has ended the run
	}
	w.Fail(w.notFiniteError(n, at, rank, what))
}

// watchLoss looks, before the backward pass, whether the micro-th batch of a step has a
// loss that is not finite, where that is known, and then at what comes before it: while
// the batch is there.
func (w *Worker) watchLoss(n *network, micro int) {
	loss, known := n.grads.loss(micro)
	if !known || finite(loss) || w.found != "" {
		return
	}
	w.found = n.culprit(n.batch, n.batchAt, true, false)
	if w.found == "" {
		w.found = n.badLoss(loss)
	}
}

func (n *network) badLoss(loss float32) string {
	return fmt.Sprintf("the loss is %v, though every layer of model %q has finite output: check how it is computed, and its targets", loss, n.name)
}

// watchSum ends a run whose summed loss is not finite, before that changes weights.
// Collective.
func (w *Worker) watchSum(n *network, tail []float32) {
	if loss := tail[tailLoss]; !finite(loss) {
		w.stopNotFinite(n, w.here(), w.found, fmt.Sprintf("the sum of all ranks' losses is %v", loss))
	}
}

// here is the step that the program is at.
func (w *Worker) here() foundAt { return foundAt{w.loop.Pos.ReportedEpoch(), w.loop.Pos.EpochStep()} }

// watchWeights ends a run whose weights are not finite after a step on the CPU; all ranks
// have the same. Collective.
func (w *Worker) watchWeights(n *network, opt *Optimizer) {
	if simd.Finite(n.params.Flat()) {
		return
	}
	found := ""
	for micro := range w.job.Virtual {
		if g := n.grads.own(micro); found == "" && !simd.Finite(g) {
			name, v := n.paramAt(simd.NotFinite(g), g)
			found = fmt.Sprintf("the gradient of parameter %s of model %q has %v, though the loss is finite", name, n.name, v)
		}
	}
	w.stopNotFinite(n, w.here(), found, fmt.Sprintf("the step of optimiser %s makes %s", opt.opt.Name(), n.badParam()))
}

// paramAt is the name of the parameter that element i of the flat buffer x belongs to,
// and that element.
func (n *network) paramAt(i int, x []float32) (name string, v float32) {
	at := 0
	for _, p := range n.params.List() {
		if !p.Fixed {
			if at += len(p.W); i < at {
				return p.Name, x[i]
			}
		}
	}
	return "?", x[i]
}

// badParam says which parameter is not finite, in host memory; "" where all are.
func (n *network) badParam() string {
	for _, p := range n.params.List() {
		if i := simd.NotFinite(p.W); i >= 0 {
			return fmt.Sprintf("parameter %s of model %q %v", p.Name, n.name, p.W[i])
		}
	}
	return ""
}

// checkOptimizers ends the run where an optimiser's state in host memory is not finite: the
// weights would never move again.
func (w *Worker) checkOptimizers() {
	for _, o := range w.opts {
		if o.n.dev != nil {
			continue
		}
		for _, s := range o.opt.State() {
			if !simd.Finite(s.Data) {
				w.stopNotFinite(o.n, foundAt{w.loop.Pos.ReportedEpoch(), -1}, "", fmt.Sprintf("the state %s of optimiser %s has %v, by gradients too large to be squared", s.Name, o.opt.Name(), s.Data[simd.NotFinite(s.Data)]))
			}
		}
	}
}

// checkNetworks is the error of a network whose weights, in host memory, are not finite.
func (w *Worker) checkNetworks() error {
	for _, n := range w.nets {
		if err := w.checkTensors(n.tensors(n.prefix())); err != nil {
			return err
		}
	}
	return nil
}

// checkTensors is the error of what is to be kept of a network and its optimiser and is not
// finite: what steps on a device have made so, which are watched by their losses alone.
func (w *Worker) checkTensors(ts []safetensors.Tensor) error {
	for _, t := range ts {
		if simd.Finite(t.F32) {
			continue
		}
		i := simd.NotFinite(t.F32)
		what := fmt.Sprintf("%s has %v", t.Name, t.F32[i])
		at := slices.IndexFunc(w.nets, func(n *network) bool { return strings.HasPrefix(t.Name, n.prefix()) })
		if at >= 0 {
			what = fmt.Sprintf("parameter %s of model %q has %v", strings.TrimPrefix(t.Name, w.nets[at].prefix()), w.nets[at].name, t.F32[i])
		}
		w.emitFirst(runs.Event{Kind: runs.KindResult, Split: notFiniteKey, Text: what})
		return w.notFiniteError(w.nets[max(0, at)], foundAt{w.loop.Pos.ReportedEpoch(), -1}, w.p.Rank, what)
	}
	return nil
}

// culprit looks for the first thing that is not finite in what leads to a network's output
// for a batch: it computes the batch once more, layer by layer, with the dropout of its
// step where train is set, and by the CPU with onHost. It is "" where everything is finite.
func (n *network) culprit(b *Batch, at foundAt, train, onHost bool) (what string) {
	if what = n.badParam(); what != "" {
		return what
	}
	if b == nil || b.Batch == nil || len(b.Blocks) == 0 {
		return ""
	}
	c := n.config(train, at.epoch, at.step)
	if onHost {
		c.Backend = nil
	}
	f := nn.NewFwd(c)
	defer f.Close()
	err := nn.Try(func() {
		x := b.input(f)
		if what = n.badInput(b, x); what != "" {
			return
		}
		for i, block := range b.blocks(n.model.NumLayers()) {
			if what = badEdges(block); what != "" {
				return
			}
			x = n.model.Layer(f, i, block, x)
			if what = n.badOutput(i, x.Data(), x.Cols(), func(r int) int { return int(block.DstID(r)) }); what != "" {
				return
			}
		}
	})
	if err != nil { // it had worked before
		return fmt.Sprintf("the output of model %q, whose layers could not be looked at: %v", n.name, err)
	}
	return what
}

// badInput says which node's features are not finite; "" where all are.
func (n *network) badInput(b *Batch, x *nn.Tensor) string {
	if s := b.Sparse; s != nil {
		i := simd.NotFinite(s.Values)
		if i < 0 {
			return ""
		}
		row := 0
		for row+1 < len(s.Indptr) && s.Indptr[row+1] <= int64(i) {
			row++
		}
		return badFeature(inputNode(b, row), int(s.Indices[i]), s.Values[i])
	}
	data, cols := x.Data(), x.Cols()
	i := simd.NotFinite(data)
	if i < 0 {
		return ""
	}
	return badFeature(inputNode(b, i/cols), i%cols, data[i])
}

func badFeature(node string, col int, v float32) string {
	return fmt.Sprintf("the input features of %s have %v in column %d", node, v, col)
}

// inputNode names the node of a batch's input row.
func inputNode(b *Batch, row int) string {
	if ids := b.InputIDs(); row < len(ids) {
		return fmt.Sprintf("node %d", ids[row])
	}
	if b.full {
		return fmt.Sprintf("node %d", row)
	}
	return fmt.Sprintf("input row %d", row)
}

// badEdges says that the weight of an edge of a block is not finite; "" where all are.
func badEdges(b *graphops.Block) string {
	weights := b.Weights()
	i := simd.NotFinite(weights)
	if i < 0 {
		return ""
	}
	row, indptr := 0, b.Indptr()
	for row+1 < b.NumDst && indptr[row+1]-indptr[0] <= int64(i) {
		row++
	}
	return fmt.Sprintf("the weight of an edge into node %d is %v", b.DstID(row), weights[i])
}

// badOutput says what of a layer's output is not finite; node names a row of it.
func (n *network) badOutput(layer int, y []float32, cols int, node func(row int) int) string {
	i := simd.NotFinite(y)
	if i < 0 {
		return ""
	}
	kind := nn.LayerType(n.model, layer)
	if kind != "" {
		kind = " (" + kind + ")"
	}
	at := fmt.Sprintf("row %d", i/cols)
	if v := node(i / cols); v >= 0 {
		at = fmt.Sprintf("node %d", v)
	}
	return fmt.Sprintf("layer %d%s of model %q gives %v for %s in column %d, of finite input", layer, kind, n.name, y[i], at, i%cols)
}

// typed is a run's error as [ErrNotFinite] matches it, where it is one.
func (l *launched) typed(err error) error {
	if err != nil && l.run.Result.Text[notFiniteKey] != "" && strings.Contains(err.Error(), ErrNotFinite.Error()) {
		return notFinite{err}
	}
	return err
}
