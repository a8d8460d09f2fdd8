package gnb

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Worker is one rank of a run, as the program sees it.
//
// Its methods stop the rank with an error when something fails, as testing.T.Fatal does, so a
// program needs no error handling of its own; a program can stop its rank with [Worker.Fail].
// Methods marked collective must be called by every rank, in the same order: otherwise the run
// ends with an error that names both calls.
//
// A Worker belongs to the goroutine that runs the program.
type Worker struct {
	p    *multigpu.Process
	comm collective.Comm
	job  job
	ds   *Dataset

	threads int

	nets   []*network
	opts   []*Optimizer
	loop   saving.Cursor
	late   []*lateStep // steps not yet in the loop's sums, in order
	saving saving.Saver
	by     *saving.ByValue // of BestBy, nil without
	byNet  *network
	// leaving is set while the checkpoint of an interrupted run is written.
	leaving atomic.Bool

	report reporting
	digest *tally.Digest
	proof  *sample.Proof // of all ranks; nil without ProveTime

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

func (w *Worker) stage(s string) {
	if !w.leaving.Load() {
		w.p.Stage(s)
	}
}

func (w *Worker) site(kind string) collective.Site {
	return collective.Site{Kind: kind, Epoch: w.loop.Pos.Epoch, Step: w.loop.Pos.InAll, At: entry.CallSite()}
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

// Epochs counts epochs from 0 to n-1; a resumed run starts at the checkpoint's epoch. At the end
// of each epoch it reports the epoch's loss, wall time and the time of every stage. A program has
// one such loop.
//
// When a run resumes within an epoch, the epoch's statements run again from its beginning, but it
// skips the loops over batches and the steps that are already done.
func (w *Worker) Epochs(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if w.loop.EpochsAt != "" {
			w.Fail(fmt.Errorf("gnb: a second loop over Epochs, at %s, after that at %s; a program has one: count all its epochs there, and tell its parts by the epoch", entry.CallSite(), w.loop.EpochsAt))
		}
		w.loop.EpochsAt = cmp.Or(entry.CallSite(), "a place unknown")
		w.emit(runs.Event{Kind: runs.KindPlan, Epochs: n})
		for e := w.loop.Pos.Epoch; e < n; e++ {
			w.loop.EnterEpoch(e)
			w.report.enterEpoch(w.p.StageTimes())
			w.by.EnterEpoch()
			w.p.SetPosition(e, w.loop.Pos.InAll)
			switch {
			case !yield(e):
				// A resumed run skips the remaining epochs. No checkpoint says so yet: the program may be returning an error,
				// after which a resumed run goes on within the epoch. If not, the end of the program writes one.
				w.endEpoch(max(n, e+1), e+1)
				w.by.Report(w.Printf, w.Result)
				return
			case w.judge(e):
				w.endEpoch(max(n, e+1), e+1)
				w.boundary(false)
				w.lastCheckpoint()
				w.by.Report(w.Printf, w.Result)
				return
			}
			w.endEpoch(e+1, 0)
			w.boundary(false)
		}
		w.loop.EndEpochs()
		w.lastCheckpoint()
		w.by.Report(w.Printf, w.Result)
	}
}

// endEpoch ends an epoch, up to its boundary; see [saving.Cursor.EndEpoch] for its arguments.
func (w *Worker) endEpoch(next, ended int) {
	w.loop.LeaveEpoch()
	w.flush(true)
	w.checkOptimizers()
	if steps := w.loop.EpochSteps(); steps > 0 && w.loop.Sums.Weight == 0 {
		w.Fail(fmt.Errorf("gnb: no node in the %s of epoch %d had a label, so nothing was trained; take a split with labels", phrase.Count(steps, "step"), w.loop.Pos.Epoch))
	}
	e := runs.Event{Kind: runs.KindEpoch, Loss: w.EpochLoss(), Accuracy: w.loop.Sums.Accuracy()}
	w.report.endEpoch(&e, w.p.StageTimes())
	w.emit(e)
	w.loop.EndEpoch(next, ended)
}

// EpochLoss returns the mean loss of the epoch's steps so far, over all ranks: the sum of their
// losses over the sum of their weights, NaN before the first step.
func (w *Worker) EpochLoss() float64 {
	w.catchUp(0)
	return w.loop.Sums.MeanLoss()
}

// StageTimes returns the time that this worker has spent in each stage so far.
func (w *Worker) StageTimes() map[string]time.Duration { return w.p.StageTimes() }

// Moved returns the bytes of rows and ids that this worker has got from others for cooperative batches so far, and those of
// the edges of a divided topology.
func (w *Worker) Moved() int64 { return w.team().Moved() }

// WithoutFeatures leaves the features of nodes out of this worker's batches, for a program whose only network reads learned
// rows. Call it before the first loop over batches.
func (w *Worker) WithoutFeatures() { w.feed.noFeatures = true }

// Barrier waits until every rank has called it. Collective.
func (w *Worker) Barrier() { w.check(w.comm.Barrier(w.site("barrier"))) }

// AllReduce replaces v on every rank by its sum over ranks, added in the order of
// ranks, so that every rank has the same bits. Collective.
func (w *Worker) AllReduce(v []float64) {
	w.check(collective.SumFloat64(w.comm, w.site("all-reduce"), v))
}

// AllGather returns what each rank gives, in the order of ranks and in new memory: for what a task counts on its own items, which
// every rank then combines in the same order. Collective.
func (w *Worker) AllGather(mine []byte) [][]byte {
	all, err := w.comm.AllGather(w.site("all-gather"), mine)
	w.check(err)
	return all
}

// boundary is called between two iterations, when the whole state of a checkpoint belongs to
// position w.loop.Pos. It writes a checkpoint that is due, and prepares one for an interrupt; it
// always prepares one if always is set, because the program may then be busy for long.
func (w *Worker) boundary(always bool) {
	for _, n := range w.nets {
		if n.micro > 0 && n.micro < w.job.Virtual {
			w.Fail(fmt.Errorf("gnb: Step was called for %d of the %d batches of a step of model %q; with virtual ranks call it for each batch, also one without seeds, and leave a loop only where Batch.EndsStep is true", n.micro, w.job.Virtual, n.name))
		}
		n.micro = 0
	}
	if w.tablesApart() {
		w.boundaryTogether(always, false)
		return
	}
	if w.p.Rank != 0 {
		return
	}
	w.check(w.recordChange())
	if w.p.StopRequested() {
		w.Fail(w.leave(w.saving.Save))
	}
	if !w.saving.On() {
		return
	}
	if w.saving.Due(w.loop.Pos.Total) {
		w.stage(runfile.StageSave)
		w.check(w.saving.Save())
		w.stage(runfile.StageProgram)
	}
	w.check(w.saving.Prepare(always))
}
