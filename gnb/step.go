package gnb

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/finite"
	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// What follows the gradient in a slot: the sum of weights, the sum of losses, and how
// many of how many rows were right. Counts are exact up to 2^24 rows a step.
const (
	tailWeight = iota
	tailLoss
	tailCorrect
	tailCount
	tailLen
)

// Step trains on one batch's loss: backward, one sum over all ranks, and one step
// of the optimiser, which divides by the total weight. It returns the mean loss
// over all ranks. Collective.
//
// On a device, with one rank, Step returns when the step is asked for and the step
// before it has its loss: so the device has work while the next batch is prepared.
// Reading what Step returns, EpochLoss, Log, Evaluate, a checkpoint and the end of a
// loop wait for it.
//
// With virtual ranks a worker has several batches a step; the sum and the
// optimiser's step come with the last of them ([Batch.EndsStep]), and before it
// Step returns NaN.
//
// Outside a loop over batches a step counts by itself, for full-graph training.
// Such steps belong into [Worker.Epochs] where the program keeps values
// ([Worker.Keep]): it then resumes at the beginning of an epoch. Otherwise a run
// that resumes leaves out the steps that are done, and Step returns NaN for them.
func (w *Worker) Step(loss *nn.Loss, opt *Optimizer) StepLoss {
	if opt == nil {
		w.Fail(fmt.Errorf("gnb: Step got no optimiser, at %s; make one with Worker.Adam, SGD or Optimizer", callSite()))
	}
	n, bare := opt.n, !w.loop.InLoop()
	if w.loop.SkipStep() {
		return StepLoss{mean: math.NaN()}
	}
	w.checkLoss(loss, n)
	w.stage(names.Backward)
	if n.grads == nil {
		g, err := n.gradients()
		w.check(err)
		n.grads = g
	}
	if n.micro == w.job.Virtual {
		w.Fail(fmt.Errorf("gnb: Step was called twice for one batch of model %q, at %s", n.name, callSite()))
	}
	n.grads.begin(n.micro)
	if err := nn.Try(func() {
		n.grads.note(n.micro, loss)
		w.watchLoss(n, n.micro)
		loss.Backward()
	}); err != nil {
		w.Fail(fmt.Errorf("gnb: backward pass of model %q: %w", n.name, err))
	}
	n.micro++
	virtual := w.job.Virtual
	if bare && n.micro < virtual {
		// One batch outside a loop is the whole step: the other virtual ranks add
		// nothing to it.
		for ; n.micro < virtual; n.micro++ {
			n.grads.empty(n.micro)
		}
	}
	if n.micro < virtual {
		w.stage(names.Program)
		return StepLoss{mean: math.NaN()}
	}
	w.stage(names.Reduce)
	waited := w.waited()
	grad, tail, late, err := n.grads.sum(w)
	w.check(err)
	w.p.MoveTime(names.Reduce, names.Idle, w.waited()-waited)
	w.watchSum(n, tail)
	w.stage(names.Optimizer)
	mean := w.apply(opt, grad, tail, late)
	w.stage(names.Backward) // where the host waits for a device
	w.catchUp(1)
	w.stage(names.Program)
	w.flush(false)
	// A step outside of loops is a place to go on from where the program keeps
	// nothing: what it keeps may belong to a later statement of the epoch.
	if bare && (w.saving.Kept.Len() == 0 || !w.loop.InEpoch()) {
		w.boundary(false)
	}
	return mean
}

// checkLoss finds what would train nothing, or something else than n.
func (w *Worker) checkLoss(loss *nn.Loss, n *network) {
	if loss == nil || loss.Sum == nil {
		w.Fail(fmt.Errorf("gnb: Step got a loss without a Sum, at %s; make one with nn.CrossEntropy, or nn.Loss{Sum: …, Weight: …}", callSite()))
	}
	for _, other := range w.nets {
		if other != n && loss.Sum.Fwd() == other.fwd {
			w.Fail(fmt.Errorf("gnb: Step got a loss of network %q and the optimiser of network %q, at %s; give it the optimiser that was made with the loss's network", other.name, n.name, callSite()))
		}
	}
	if !(loss.Weight >= 0) || math.IsInf(loss.Weight, 0) {
		w.Fail(fmt.Errorf("gnb: Step got a loss of weight %v, at %s; the weight is the number of rows that count, 0 where there is none", loss.Weight, callSite()))
	}
}

// waited is how long this rank has waited for others in collectives.
func (w *Worker) waited() time.Duration {
	if c, ok := w.comm.(collective.Waiter); ok {
		return c.Waited()
	}
	return 0
}

// apply is the part of a step that changes parameters.
func (w *Worker) apply(opt *Optimizer, grad, t []float32, late *lateStep) (loss StepLoss) {
	if weight := t[tailWeight]; weight > 0 {
		w.check(opt.apply(grad, 1/weight))
		if opt.n.dev == nil {
			w.watchWeights(opt.n, opt)
		}
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
		if w.report.whole != nil {
			w.report.rate.add(w.report.whole.seeds, w.report.whole.edges)
			w.report.whole = nil
		}
	}
	return loss
}

// count adds a step's tail to the epoch's sums and to what is reported, and returns
// the mean loss.
func (w *Worker) count(r runs.Step, t []float32) float64 {
	loss, weight := float64(t[tailLoss]), float64(t[tailWeight])
	w.loop.Sums.Add(t[tailLoss], t[tailWeight], t[tailCorrect], t[tailCount])
	if w.p.Rank == 0 {
		r.Loss, r.Accuracy = loss/weight, float64(t[tailCorrect])/float64(t[tailCount])
		w.report.out.Record(r)
	}
	return loss / weight
}

// A device is a step behind the host, which launches the kernels of the next step
// meanwhile. So a step's loss is read when the next step has been asked for, or when
// the program reads it; until then the step is late, and what is reported of it waits.

// StepLoss is the mean loss of a step over all ranks, as [Worker.Step] returns it. On
// a device it is known a step later than asked for: Mean and whatever prints it wait.
// It prints as a float64 does, and [Worker.Log] takes it as a number.
type StepLoss struct {
	mean float64
	late *lateStep // whose mean it is, where that was not known
}

// Mean is the loss, NaN where there is none.
func (l StepLoss) Mean() float64 {
	if l.late == nil {
		return l.mean
	}
	if !l.late.known {
		l.late.w.catchUp(0)
	}
	return l.late.mean
}

// MarshalJSON writes the loss as a number, null where there is none, so that
// [Worker.Keep] keeps it; UnmarshalJSON reads that.
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

// lossFigures wait for a batch's loss and its right rows; see [nn.Loss.Figures].
type lossFigures func() (sum float32, correct int64)

// lateStep is a step whose losses a device still has.
type lateStep struct {
	w       *Worker
	n       *network
	tails   []float32
	figures []lossFigures // of each batch of the step; nil for one that adds nothing
	record  runs.Step
	made    made  // of what, should its loss not be finite
	applied int64 // steps of the network before it
	known   bool
	mean    float64 // where known
}

// readFigures waits for the figures of batches and puts them into their tails.
func readFigures(tails []float32, figures []lossFigures) error {
	return nn.Try(func() {
		for i, f := range figures {
			if f != nil {
				sum, correct := f()
				tails[tailLen*i+tailLoss], tails[tailLen*i+tailCorrect] = sum, float32(correct)
			}
		}
	})
}

// catchUp reads the losses of the late steps but the last few, in their order.
func (w *Worker) catchUp(but int) {
	for len(w.late) > but {
		s := w.late[0]
		w.late = slices.Delete(w.late, 0, 1)
		s.mean, s.known = math.NaN(), true // where reading fails
		if err := readFigures(s.tails, s.figures); err != nil {
			w.Fail(fmt.Errorf("gnb: the loss of model %q at epoch %d, step %d: %w", s.n.name, s.record.Epoch, s.record.Step, err))
		}
		tail := rounded(sumTails(s.tails))
		if !finite.Is(tail[tailLoss]) {
			w.lateNotFinite(s, tail[tailLoss])
		}
		s.mean = w.count(s.record, tail)
	}
}

// sumTails adds up the tails of a step's batches.
func sumTails(tails []float32) []float64 {
	sum := make([]float64, tailLen)
	for i, v := range tails {
		sum[i%tailLen] += float64(v)
	}
	return sum
}

// rounded is a tail as a slot holds it.
func rounded(sum []float64) []float32 {
	tail := make([]float32, len(sum))
	for i, v := range sum {
		tail[i] = float32(v)
	}
	return tail
}
