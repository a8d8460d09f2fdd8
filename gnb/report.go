package gnb

import (
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/runs"
)

// place sets an event's position.
func (w *Worker) place(e *runs.Event) {
	e.At, e.Total, e.Epoch = w.loop.Pos.Place(), w.loop.Pos.Total, w.loop.Pos.ReportedEpoch()
	if w.report.of > 0 {
		e.Epoch = w.report.of - 1
	}
}

func (w *Worker) emit(e runs.Event) {
	w.place(&e)
	w.by.See(e)
	w.check(w.report.out.send(e))
}

// emitFirst sends an event from rank 0 only, for facts that are the same on all ranks.
func (w *Worker) emitFirst(e runs.Event) {
	if w.p.Rank == 0 {
		w.emit(e)
	}
}

// reporting is the part of a Worker that reports what the run does.
type reporting struct {
	out       outbox
	rate      rates
	missing   []string // the metrics that do not exist, as the result says
	told      []string // those of which the start of the run has said it
	last      Metrics  // result of the epoch's last evaluation
	of        int      // the epoch, from 1, that reports are about instead of the current one; 0 for none
	lastFlush time.Time

	epochStart  time.Time
	epochStages map[string]time.Duration
}

// enterEpoch starts measuring an epoch.
func (r *reporting) enterEpoch(stages map[string]time.Duration) {
	r.epochStart, r.epochStages, r.last = time.Now(), stages, Metrics{}
}

// endEpoch adds the epoch's total time, its time per stage and the metrics of its last evaluation
// to an event.
func (r *reporting) endEpoch(e *runs.Event, stages map[string]time.Duration) {
	e.Seconds, e.Values, e.Stages = time.Since(r.epochStart).Seconds(), r.last.values(), map[string]float64{}
	for s, d := range stages {
		if d -= r.epochStages[s]; d > 0 {
			e.Stages[s] = d.Seconds()
		}
	}
}

func (w *Worker) flush(now bool) {
	if !now && time.Since(w.report.lastFlush) < sendEvery {
		return
	}
	if now {
		w.catchUp(0)
	}
	w.report.lastFlush = time.Now()
	w.check(w.report.out.sendRecords())
	w.check(w.saving.Best.Write(false))
	r := &w.report.rate
	work := runs.Work(r.work)
	w.emit(runs.Event{Kind: runs.KindRate, Seeds: r.seeds, Edges: r.edges, Work: &work, Rows: (*runs.FeatureRows)(w.feed.fetcher.Counts()), Seconds: r.busy.Seconds()})
}

// Log reports values from rank 0: they appear in the cell, in the run's metrics and in TensorBoard, each name but epoch,
// step and loss as a curve over steps, val_f1 and test_f1 in one chart; the last value of a name is in the run's result.
// Arguments are pairs of a name and a number, or results of [Worker.Evaluate]; in the place of a number also a chart, a
// Figure or a Table of package gnb/figure, or an image.Image, in a program that imports that package:
//
//	w.Log("epoch", epoch, "loss", w.EpochLoss(), "grad_norm", opt.GradNorm())
//	w.Log(w.Evaluate(net, gnb.FullNeighbors, "val", "test"))
func (w *Worker) Log(args ...any) {
	var vs []runs.NamedValue
	for i := 0; i < len(args); i++ {
		switch a := args[i].(type) {
		case Metrics:
			vs = append(vs, a.values()...)
		case string:
			if i+1 == len(args) {
				w.Fail(fmt.Errorf("gnb: Log at %s got the name %q without a value", entry.CallSite(), a))
			}
			if draw := drawable(args[i+1]); draw != nil {
				w.logDrawn(a, draw)
				i++
				continue
			}
			x, ok := numberOf(args[i+1])
			if !ok {
				w.Fail(fmt.Errorf("gnb: Log at %s got %T for %q; values are numbers, or what package gnb/figure draws (Printf takes anything)", entry.CallSite(), args[i+1], a))
			}
			vs = append(vs, runs.NamedValue{Name: a, Value: x})
			i++
		default:
			w.Fail(fmt.Errorf("gnb: Log at %s got %T where it takes a name or the result of Evaluate", entry.CallSite(), a))
		}
	}
	w.flush(true)
	if len(vs) > 0 || len(args) == 0 {
		w.emitFirst(runs.Event{Kind: runs.KindLog, Values: vs})
	}
}

// logDrawn logs what is to be looked at, from rank 0.
func (w *Worker) logDrawn(name string, draw func() (runfile.Drawn, error)) {
	e := runs.Event{Kind: runs.KindDrawn}
	if w.place(&e); w.p.Rank != 0 {
		return
	}
	if err := w.report.out.sendDrawn(e, name, draw); err != nil {
		w.Fail(fmt.Errorf("gnb: Log of %q at %s: %w", name, entry.CallSite(), err))
	}
}

// Printf prints one or more lines from rank 0 to the cell or the terminal.
func (w *Worker) Printf(format string, args ...any) {
	w.emitFirst(runs.Event{Kind: runs.KindPrint, Text: fmt.Sprintf(format, args...)})
}

// Result stores a number in the run's result under the given name. Only rank 0's value counts.
func (w *Worker) Result(name string, value float64) {
	w.emitFirst(runs.Event{Kind: runs.KindResult, Values: []runs.NamedValue{{Name: name, Value: value}}})
}

// ResultText stores a text in the run's result under the given name. Only rank 0's text counts.
func (w *Worker) ResultText(name, text string) {
	w.emitFirst(runs.Event{Kind: runs.KindResult, Split: name, Text: text})
}

// Report reports the values of an evaluation, such as "val_mrr", as [Worker.Evaluate] reports its own. Every rank calls it
// with the same values.
func (w *Worker) Report(values ...runs.NamedValue) {
	w.report.last.named = values
	w.flush(true)
	w.emitFirst(runs.Event{Kind: runs.KindMetrics, Values: values})
}

// Progress shows the progress of a long operation on rank 0: call the returned function, as often
// as you like, with the amount done out of total.
//
// An operation of less than 40 ms is not shown.
func (w *Worker) Progress(label string, total int) func(done int) {
	last, shown := time.Now(), false
	return func(done int) {
		if now := time.Now(); now.Sub(last) > sendEvery || shown && done >= total {
			last, shown = now, true
			w.emitFirst(runs.Event{Kind: runs.KindProgress, Text: label, Done: int64(done), Of: int64(total)})
		}
		w.stopIfAsked()
	}
}

// Timer measures iterations after a warm-up; see [Worker.Timer].
type Timer struct {
	warm, n int
	last    time.Time
	sum     time.Duration
}

// Timer measures the mean time of iterations, leaving out the first warmup ones.
// Call Lap at the end of each iteration; the first starts when the timer is made.
func (w *Worker) Timer(warmup int) *Timer { return &Timer{warm: warmup, last: time.Now()} }

// Lap ends an iteration and starts the next.
func (t *Timer) Lap() {
	now := time.Now()
	if t.n >= t.warm {
		t.sum += now.Sub(t.last)
	}
	t.n++
	t.last = now
}

// Mean returns the mean time of the iterations after the warm-up, 0 if there was none.
func (t *Timer) Mean() time.Duration {
	if t.n <= t.warm {
		return 0
	}
	return t.sum / time.Duration(t.n-t.warm)
}
