package gnb

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Step trains on one batch's loss: backward, one sum over all ranks, and one step
// of the optimiser, which divides by the total weight. It returns the mean loss
// over all ranks. Collective.
//
// On a device, with one rank, Step returns when the step is queued and the loss of the step before
// it is known, so that the device computes while the next batch is prepared. Reading Step's result
// waits for the step; so do EpochLoss, Log, Evaluate, a checkpoint and the end of a loop.
//
// With virtual ranks a worker has several batches per step. The last of them ([Batch.EndsStep])
// triggers the sum and the optimiser's step; for the earlier ones Step returns NaN.
//
// Outside a loop over batches each batch is one step, for full-graph training. If the program
// keeps values ([Worker.Keep]), put such steps into [Worker.Epochs]: the run then resumes at the
// beginning of an epoch. Otherwise a resumed run skips the steps already done, and Step returns
// NaN for them.
func (w *Worker) Step(loss *nn.Loss, opt *Optimizer) StepLoss {
	if opt == nil {
		w.Fail(fmt.Errorf("gnb: Step got no optimiser, at %s; make one with Worker.Adam, SGD or Optimizer", entry.CallSite()))
	}
	n, bare := opt.n, !w.loop.InLoop()
	if w.loop.SkipStep() {
		return StepLoss{mean: math.NaN()}
	}
	w.checkLoss(loss, n)
	w.stage(runfile.StageBackward)
	if n.grads == nil {
		g, err := n.gradients()
		w.check(err)
		n.grads = g
	}
	if n.micro == w.job.Virtual {
		w.Fail(fmt.Errorf("gnb: Step was called twice for one batch of model %q, at %s", n.name, entry.CallSite()))
	}
	n.grads.Begin(n.micro)
	if err := nn.Try(func() {
		n.grads.Note(n.micro, loss)
		w.watchLoss(n, n.micro)
		loss.Backward()
	}); err != nil {
		w.Fail(fmt.Errorf("gnb: backward pass of model %q: %w", n.name, err))
	}
	n.keepRows()
	n.micro++
	virtual := w.job.Virtual
	if bare && n.micro < virtual {
		// A batch outside a loop is the whole step: the other virtual ranks contribute nothing.
		for ; n.micro < virtual; n.micro++ {
			n.grads.Empty(n.micro)
		}
	}
	if n.micro < virtual {
		w.stage(runfile.StageProgram)
		return StepLoss{mean: math.NaN()}
	}
	w.stage(runfile.StageReduce)
	waited := w.waited()
	grad, totals, losses, err := n.grads.Sum()
	w.check(err)
	w.p.MoveTime(runfile.StageReduce, runfile.StageIdle, w.waited()-waited)
	w.watchSum(n, totals)
	var late *lateStep
	if losses != nil {
		late = &lateStep{w: w, n: n, losses: losses, made: n.madeOf(), applied: n.params.Applied()}
	}
	w.stage(runfile.StageOptimizer)
	mean := w.apply(opt, grad, totals, late)
	w.stage(runfile.StageBackward) // the host waits here for a device
	w.catchUp(1)
	w.stage(runfile.StageProgram)
	w.flush(false)
	// A run can resume after a step outside loops only if the program keeps no values: a kept
	// value may belong to a later statement of the epoch.
	if bare && (w.keeps() == 0 || !w.loop.InEpoch()) {
		w.boundary(false)
	}
	return mean
}

// keeps is the number of values that the program keeps; the digest changes in loops alone.
func (w *Worker) keeps() int {
	if w.digest != nil {
		return w.saving.Kept.Len() - 1
	}
	return w.saving.Kept.Len()
}

// checkLoss refuses a loss that would train nothing, or a network other than n.
func (w *Worker) checkLoss(loss *nn.Loss, n *network) {
	if loss == nil || loss.Sum == nil {
		w.Fail(fmt.Errorf("gnb: Step got a loss without a Sum, at %s; make one with nn.CrossEntropy, or nn.Loss{Sum: …, Weight: …}", entry.CallSite()))
	}
	for _, other := range w.nets {
		if other != n && loss.Sum.Fwd() == other.fwd {
			w.Fail(fmt.Errorf("gnb: Step got a loss of network %q and the optimiser of network %q, at %s; give it the optimiser that was made with the loss's network", other.name, n.name, entry.CallSite()))
		}
	}
	if !(loss.Weight >= 0) || math.IsInf(loss.Weight, 0) {
		w.Fail(fmt.Errorf("gnb: Step got a loss of weight %v, at %s; the weight is the number of rows that count, 0 where there is none", loss.Weight, entry.CallSite()))
	}
}

// waited returns the time that this rank has waited for others in collectives.
func (w *Worker) waited() time.Duration {
	if c, ok := w.comm.(collective.Waiter); ok {
		return c.Waited()
	}
	return 0
}

// apply is the part of a step that changes parameters.
func (w *Worker) apply(opt *Optimizer, grad []float32, t device.Totals, late *lateStep) (loss StepLoss) {
	waited := w.waited()
	rows, err := opt.n.collectRows(t.Weight, opt.clip)
	w.check(err)
	w.p.MoveTime(runfile.StageOptimizer, runfile.StageIdle, w.waited()-waited)
	if t.Weight > 0 {
		opt.follow()
		opt.n.loaded = false
		bound := device.Bound{Norm: opt.clip, Squares: rows}
		opt.norm, err = opt.n.params.Step(opt.opt, grad, 1/t.Weight, bound, w.World() == 1) // the host sees one rank's losses later
		w.check(err)
		if opt.n.params.Device == nil {
			w.watchWeights(opt.n, opt)
		}
	}
	if opt.n.table != nil && t.Weight > 0 {
		waited := w.waited()
		scale := 1 / t.Weight
		if opt.clip > 0 {
			scale = optim.Clipped(scale, opt.norm, opt.clip)
		}
		w.check(opt.n.table.Step(opt.opt.LR(), scale))
		w.p.MoveTime(runfile.StageOptimizer, runfile.StageIdle, w.waited()-waited)
	}
	w.loop.Pos.Total++
	pos := w.loop.Pos
	record := runs.Step{
		Epoch: pos.ReportedEpoch(), Step: pos.EpochStep(), Total: pos.Total, At: pos.Place(), LR: w.opts[0].opt.LR(),
	}
	if late == nil {
		loss.mean = w.count(record, t)
	} else {
		late.record = record
		w.late = append(w.late, late)
		loss.late = late
	}
	if !w.loop.InLoop() {
		w.loop.EndBareStep()
		opt.n.micro = 0
		w.report.rate.addWhole()
	}
	return loss
}

// count adds a step's totals to the epoch's sums and to what is reported, and returns the mean loss.
func (w *Worker) count(r runs.Step, t device.Totals) float64 {
	loss, weight := float64(t.Loss), float64(t.Weight)
	w.loop.Sums.Add(t.Loss, t.Weight, t.Correct, t.Count)
	if w.p.Rank == 0 {
		r.Loss, r.Accuracy = loss/weight, float64(t.Correct)/float64(t.Count)
		w.report.out.record(r)
	}
	return loss / weight
}

// The host queues the kernels of the next step while a device computes the current one. The host
// therefore reads a step's loss after it has queued the next step, or when the program reads it;
// until then the step is late and is not reported.

// StepLoss is the mean loss of a step over all ranks, as [Worker.Step] returns it. On a device it
// is known one step later: Mean and printing wait for it. It prints as a float64 does, and
// [Worker.Log] takes it as a number.
type StepLoss struct {
	mean float64
	late *lateStep // the step to wait for, if the loss was not known yet
}

// Mean returns the loss, NaN if there is none.
func (l StepLoss) Mean() float64 {
	if l.late == nil {
		return l.mean
	}
	if !l.late.known {
		l.late.w.catchUp(0)
	}
	return l.late.mean
}

// MarshalJSON writes the loss as a number, or null if there is none, so that [Worker.Keep] can
// save it.
func (l StepLoss) MarshalJSON() ([]byte, error) { return runfile.Number(l.Mean()).MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *StepLoss) UnmarshalJSON(b []byte) error {
	var mean runfile.Number
	if err := mean.UnmarshalJSON(b); err != nil {
		return err
	}
	*l = StepLoss{mean: float64(mean)}
	return nil
}

// Format implements [fmt.Formatter].
func (l StepLoss) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), l.Mean())
}

// lateStep is a step whose losses are still on a device.
type lateStep struct {
	w       *Worker
	n       *network
	losses  *device.Late
	record  runs.Step
	made    made  // its batches, to recreate them if its loss is not finite
	applied int64 // number of the network's earlier steps
	known   bool
	mean    float64 // the mean loss, if known
}

// catchUp reads, in order, the losses of the late steps; it leaves the newest ones, as many as
// but, unread.
func (w *Worker) catchUp(but int) {
	for len(w.late) > but {
		s := w.late[0]
		w.late = slices.Delete(w.late, 0, 1)
		s.mean, s.known = math.NaN(), true // the result if reading fails
		totals, err := s.losses.Wait()
		if err != nil {
			w.Fail(fmt.Errorf("gnb: the loss of model %q at epoch %d, step %d: %w", s.n.name, s.record.Epoch, s.record.Step, err))
		}
		if !isFinite(totals.Loss) {
			w.lateNotFinite(s, totals.Loss)
		}
		s.mean = w.count(s.record, totals)
	}
}
