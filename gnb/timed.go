package gnb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
)

// StepsSpec says which steps [TaskOf.TimeSteps] times.
type StepsSpec struct {
	// WarmUp is the number of untimed steps, 0 means 5, and Steps that of the timed ones after them, 0 means 30. After an epoch the
	// next one begins.
	WarmUp, Steps int
	// Workers is the largest number of workers of a comparison, for which each step must suffice; 0 means that of the run.
	Workers int
	Count   bool // also count edges and rows
}

// StepTimes are what [TaskOf.TimeSteps] has measured.
type StepTimes struct {
	Model string // the name of the network
	Unit  string // what Items and Batch count: "seeds", or the name of the task's items, such as "graphs"
	Batch int    // items of a step, over all workers
	Items int64  // of the timed steps, over all workers
	// Seconds is the time of the timed steps, and Stages its parts, the mean over the workers.
	Seconds float64
	Stages  map[string]float64
	// Counts are those of a step, the mean; 0 unless StepsSpec.Count is set.
	Counts Repeated
	Moved  float64 // bytes that workers get from one another for a step: see [Worker.Moved]
	Device string
	Memory int64 // the peak of the memory of all workers, in bytes
}

// Repeated counts edges that all workers sample, and rows of features that they read. The unique ones are those of one worker with
// the same batches: workers with batches of their own sample some edges, and read some rows, more than once.
type Repeated struct {
	Edges, Rows             float64
	UniqueEdges, UniqueRows float64
}

// TimeSteps trains as [TaskOf.Train] does for some steps, and times them, without evaluations and without a directory. Its options
// say how many workers there are. Package scaling compares numbers of workers by it.
//
// It returns an error for steps over the whole graph, which each worker computes wholly, and for batches that are too small for the
// workers.
func (t *TaskOf[O]) TimeSteps(ctx context.Context, ds *Dataset, o O, how StepsSpec) (r StepTimes, err error) {
	if err := entry.Start(); err != nil {
		return r, err
	}
	if ds == nil {
		return r, noDataset(t.Name())
	}
	if err := entry.CheckAll(entry.Whole("WarmUp", how.WarmUp, 1, maxCount), entry.Whole("Steps", how.Steps, 1, maxCount)); err != nil {
		return r, err
	}
	how.WarmUp, how.Steps = cmp.Or(how.WarmUp, 5), cmp.Or(how.Steps, 30)
	if ds, err = feed.OneWidth(ctx, ds, true); err != nil {
		return r, err
	}
	full, l, err := t.complete(ctx, ds, o)
	if err != nil {
		return r, err
	}
	run, err := Launch(ctx, t.timed, withTask[O, StepsSpec]{full, how}, l.briefly())
	if err != nil {
		return r, err
	}
	v := run.Value
	r = StepTimes{
		Unit: run.Result.Text["unit"], Batch: int(v("batch")), Items: int64(v("items")), Seconds: v("seconds"), Stages: map[string]float64{}, Moved: v("moved"),
		Device: run.Config.Device, Memory: run.Result.PeakMemory,
	}
	if m := run.Result.Model; m != nil {
		r.Model = m.Name
	}
	for _, s := range runfile.Stages {
		if x := v("stage." + s); x > 0 {
			r.Stages[s] = x
		}
	}
	if how.Count {
		r.Counts = Repeated{Edges: v("edges"), Rows: v("rows"), UniqueEdges: v("unique_edges"), UniqueRows: v("unique_rows")}
	}
	return r, nil
}

// TimeSteps is [TaskOf.TimeSteps].
func (t *TaskAs[O, R]) TimeSteps(ctx context.Context, ds *Dataset, o O, how StepsSpec) (StepTimes, error) {
	if ds == nil {
		return StepTimes{}, noDataset(t.Name())
	}
	return t.task.TimeSteps(ctx, ds, t.record(ds, o), how)
}

// errWholeGraph is the error for steps that more workers do not make faster.
var errWholeGraph = errors.New("gnb: the steps are over the whole graph (FullGraph, --full-graph), and each worker computes all of it, so more workers do not make them faster; time steps over batches")

// timeSteps trains a task for some steps and times those after the warm-up. The clock starts and stops at the end of a step, when all
// ranks have just met and a device has delivered the step's loss.
func (w *Worker) timeSteps(t Task, o TaskOptions, how StepsSpec) error {
	opt := w.OptimizerOf(t.Network(), *o.optimizer(), t.Steps)
	var (
		items         int
		start         time.Time
		took          time.Duration
		before, after map[string]time.Duration
	)
	bound := &w.feed.atMost
	all := how.WarmUp + how.Steps
	for done := 0; done < all; {
		bound.steps = all - done
		from := done
		for b := range t.Batches(0) {
			if done == all { // of a task with several loops an epoch
				break
			}
			if bound.last == nil {
				return errWholeGraph
			}
			if done == 0 {
				if err := w.suffices(bound.last, o, how.Workers); err != nil {
					return err
				}
			}
			w.Step(t.Loss(b), opt)
			if start != (time.Time{}) {
				items += b.counted()
			}
			if !b.EndsStep {
				continue
			}
			if done++; done == how.WarmUp || done == all {
				w.EpochLoss()
			}
			switch done {
			case how.WarmUp:
				start, before = time.Now(), w.StageTimes()
			case all:
				took, after = time.Since(start), w.StageTimes()
			}
		}
		if done == from {
			return fmt.Errorf("gnb: an epoch of %s has no steps, so there is nothing to time", w.Dataset().Name())
		}
	}
	bound.steps = 0
	sums := []float64{float64(items), took.Seconds(), float64(w.Moved()) / float64(all)}
	for _, s := range runfile.Stages {
		sums = append(sums, (after[s] - before[s]).Seconds())
	}
	w.AllReduce(sums)
	world := float64(w.World())
	w.Result("items", sums[0])
	w.Result("seconds", sums[1]/world)
	for i, s := range runfile.Stages {
		w.Result("stage."+s, sums[3+i]/world)
	}
	w.Result("moved", sums[2])
	p := *bound.last
	unit := p.unit()
	if unit == "" {
		unit = "seeds"
	}
	w.ResultText("unit", unit)
	batch := min(p.Batch, len(p.ids))
	w.Result("batch", float64(batch))
	if !how.Count {
		return nil
	}
	steps := min(how.Steps, p.steps)
	c, err := w.countRepeated(p, 0, steps, func(int, *Batch) {})
	if err != nil {
		return err
	}
	for i, name := range []string{"edges", "rows", "unique_edges", "unique_rows"} {
		w.Result(name, c[i]/float64(steps))
	}
	return nil
}

// suffices returns an error if a step has too few items for a number of workers, 0 for those of the run.
func (w *Worker) suffices(p *plan, o TaskOptions, workers int) error {
	workers = max(workers, w.World())
	need := workers
	if per := o.optimizer().BatchPerWorker; per > 0 {
		need = workers * w.job.Virtual * per
	}
	if len(p.ids) >= need {
		return nil
	}
	what := "nodes"
	if u := p.unit(); u != "" {
		what = u
	}
	return fmt.Errorf("gnb: %s has %d %s to train on, too few for a batch of %d workers; take fewer workers or a smaller batch", w.Dataset().Name(), len(p.ids), what, workers)
}
