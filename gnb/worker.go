package gnb

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/loop"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Worker is one rank of a run, as the program sees it.
//
// Its methods stop the rank with an error when something fails, as
// testing.T.Fatal does, so a program needs no error handling of its own; a
// program can stop its rank with [Worker.Fail]. Methods marked collective must
// be called by every rank, in the same order: when they are not, the run ends
// with an error that names both places.
//
// A Worker belongs to the goroutine that runs the program.
type Worker struct {
	p    *multigpu.Process
	comm collective.Comm
	job  job
	ds   *Dataset

	nets   []*network
	opts   []*Optimizer
	loop   loop.Cursor
	late   []*lateStep // steps that the loop's sums lack yet, in order
	saving saving.Saver

	mu      sync.Mutex
	records []runs.Step     // not sent yet; under mu
	metrics *atomicfile.Log // of the run's directory; rank 0's alone
	out     outbox

	epochStart  time.Time
	epochStages map[string]time.Duration
	lastFlush   time.Time
	rate        rates
	whole       *whole // of a step outside of loops
	digest      *runDigest
	last        Metrics // of the epoch's last evaluation

	feed  feeding
	gpu   device.Device // nil on the CPU
	found found
}

// stopped carries an error out of the program: Worker methods panic with it, and
// the worker's main function recovers it.
type stopped struct{ err error }

// Fail stops this rank, and with it the run, with err.
func (w *Worker) Fail(err error) {
	if err == nil {
		err = errors.New("gnb: Worker.Fail was called without an error")
	}
	panic(stopped{err})
}

func (w *Worker) check(err error) {
	if err != nil {
		w.Fail(err)
	}
}

func (w *Worker) stage(s string) { w.p.Stage(s) }

func (w *Worker) site(kind string) collective.Site {
	return collective.Site{Kind: kind, Epoch: w.loop.Pos.Epoch, Step: w.loop.Pos.InAll, At: callSite()}
}

// Rank is this worker's number, 0 to World()-1.
func (w *Worker) Rank() int { return w.p.Rank }

// World is the number of workers.
func (w *Worker) World() int { return w.p.World }

// Seed is the run's seed.
func (w *Worker) Seed() uint64 { return w.job.Seed }

// RunDir is the run's directory, the same for all ranks.
func (w *Worker) RunDir() string { return w.job.RunDir }

// Dataset is the dataset the run was launched with. It shares its memory with
// all workers.
func (w *Worker) Dataset() *Dataset {
	if w.ds == nil {
		w.Fail(errors.New("gnb: the run was launched without a dataset; set LaunchOptions.Data"))
	}
	return w.ds
}

// Epochs counts epochs from 0 to n-1, from where the checkpoint stands when the
// run resumes. At the end of each it reports the epoch's loss, wall time and the
// time of every stage. A program has one such loop.
//
// When a run resumes within an epoch, the epoch's statements run again from its
// beginning, but loops over batches and steps that are done are left out.
func (w *Worker) Epochs(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if w.loop.EpochsAt != "" {
			w.Fail(fmt.Errorf("gnb: a second loop over Epochs, at %s, after that at %s; a program has one: count all its epochs there, and tell its parts by the epoch", callSite(), w.loop.EpochsAt))
		}
		w.loop.EpochsAt = cmp.Or(callSite(), "a place unknown")
		w.emit(runs.Event{Kind: runs.KindPlan, Epochs: n})
		for e := w.loop.Pos.Epoch; e < n; e++ {
			w.loop.EnterEpoch(e)
			w.epochStart, w.epochStages, w.last = time.Now(), w.p.StageTimes(), Metrics{}
			w.p.SetPosition(e, w.loop.Pos.InAll)
			if !yield(e) {
				w.endEpoch(max(n, e+1), e+1) // a run that resumes does not go on with the epochs left
				return
			}
			w.endEpoch(e+1, 0)
		}
		w.loop.EndEpochs()
	}
}

// endEpoch ends an epoch; see [loop.Cursor.EndEpoch] for next and ended.
func (w *Worker) endEpoch(next, ended int) {
	w.loop.LeaveEpoch()
	w.flush(true)
	w.checkOptimizers()
	if steps := w.loop.EpochSteps(); steps > 0 && w.loop.Sums.Weight == 0 {
		w.Fail(fmt.Errorf("gnb: no node in the %s of epoch %d had a label, so nothing was trained; take a split with labels", phrase.Count(steps, "step"), w.loop.Pos.Epoch))
	}
	stages := map[string]float64{}
	for s, d := range w.p.StageTimes() {
		if d -= w.epochStages[s]; d > 0 {
			stages[s] = d.Seconds()
		}
	}
	w.emit(runs.Event{
		Kind: runs.KindEpoch, Loss: w.EpochLoss(), Accuracy: w.loop.Sums.Accuracy(),
		Seconds: time.Since(w.epochStart).Seconds(), Stages: stages, Values: w.last.values(),
	})
	w.loop.EndEpoch(next, ended)
	w.boundary(false)
}

// EpochLoss is the mean loss of the epoch's steps so far, over all ranks: the
// sum of their losses over the sum of their weights, NaN before the first step.
func (w *Worker) EpochLoss() float64 {
	w.catchUp(0)
	return w.loop.Sums.MeanLoss()
}

// Barrier waits until every rank has come here. Collective.
func (w *Worker) Barrier() { w.check(w.comm.Barrier(w.site("barrier"))) }

// AllReduce replaces v on every rank by its sum over ranks, added in the order of
// ranks, so that every rank has the same bits. Collective.
func (w *Worker) AllReduce(v []float64) {
	mine := make([]byte, 0, 8*len(v))
	for _, x := range v {
		mine = binary.LittleEndian.AppendUint64(mine, math.Float64bits(x))
	}
	all, err := w.comm.AllGather(w.site("all-reduce"), mine)
	w.check(err)
	for rank, b := range all {
		if len(b) != len(mine) {
			w.Fail(fmt.Errorf("gnb: AllReduce of %d values on rank %d and of %d on rank %d, at %s", len(v), w.p.Rank, len(b)/8, rank, callSite()))
		}
	}
	clear(v)
	for _, b := range all {
		for i := range v {
			v[i] += math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
}

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
		if w.whole != nil {
			w.rate.add(w.whole.seeds, w.whole.edges)
			w.whole = nil
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
		w.mu.Lock()
		w.records = append(w.records, r)
		w.mu.Unlock()
	}
	return loss / weight
}

// boundary is a point between two iterations, where all that a checkpoint holds
// belongs to w.loop.Pos. A checkpoint that is due is written here, and one is prepared
// for an interrupt: always where the program may be busy for long afterwards.
func (w *Worker) boundary(always bool) {
	for _, n := range w.nets {
		if n.micro > 0 && n.micro < w.job.Virtual {
			w.Fail(fmt.Errorf("gnb: Step was called for %d of the %d batches of a step of model %q; with virtual ranks call it for each batch, also one without seeds, and leave a loop only where Batch.EndsStep is true", n.micro, w.job.Virtual, n.name))
		}
		n.micro = 0
	}
	if w.p.Rank != 0 {
		return
	}
	w.check(w.recordChange())
	if w.p.StopRequested() {
		w.Fail(w.saving.Leave(ErrInterrupted, w.saving.Save))
	}
	if !w.saving.On() {
		return
	}
	if w.saving.Due(w.loop.Pos.Total) {
		w.stage(names.Save)
		w.check(w.saving.Save())
		w.stage(names.Program)
	}
	w.check(w.saving.Prepare(always))
}

// newNetwork finishes a network: parameters initialised (or loaded), and equal
// on all ranks.
func (w *Worker) newNetwork(name string, s ModelConfig, m nn.Model) *network {
	if w.loop.InLoop() {
		w.Fail(fmt.Errorf("gnb: a network of model %q is made inside a loop over batches, at %s; make it before the loop", name, callSite()))
	}
	weights, err := nn.Count(m)
	if err == nil {
		w.check(w.networkRoom(name, weights))
	}
	params, err := nn.Collect(m)
	if err == nil && m.NumLayers() < 1 {
		err = errors.New("it has no layers")
	}
	if err != nil {
		w.Fail(fmt.Errorf("gnb: model %q: %w", name, err))
	}
	n := &network{w: w, index: len(w.nets), name: name, sizes: s, model: m, params: params}
	n.fwd = nn.NewFwd(n.config(true, 0, 0))
	// A pass records gradients for parameters that have a place for them; the
	// place is a slot of shared memory from the first step on.
	params.SetGrad(make([]float32, params.Len()))
	params.Init(w.job.Seed + uint64(n.index))
	w.check(w.saving.Resumed.Parameters(n.name, n.prefix(), params))
	// Ranks agree by construction; the broadcast makes it certain even when a
	// layer of the user's own draws its start from somewhere else.
	w.check(w.comm.Broadcast(w.site("parameters of model "+name), 0, params.Flat()))
	if w.gpu != nil {
		n.dev, err = w.gpu.Weights(params)
		w.check(err)
	}
	w.nets = append(w.nets, n)
	w.emit(runs.Event{Kind: runs.KindModel, Model: n.info()})
	return n
}

func (n *network) config(train bool, epoch, step int) nn.Config {
	c := nn.Config{Train: train, Threads: n.w.job.Threads, BF16: train && n.w.job.BF16, Seed: n.w.job.Seed, Epoch: epoch, Step: step}
	if train {
		c.Work = &n.w.rate.work
	}
	if g := n.w.gpu; g != nil {
		c.Backend = g.Backend()
	}
	return c
}
