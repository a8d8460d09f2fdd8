package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/record"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// ErrInterrupted matches (errors.Is) the error of an interrupted run. The run has written a
// checkpoint; running the same cell again resumes from it.
var ErrInterrupted = errors.New("interrupted")

// recorder implements [record.Recorder].
type recorder struct {
	run   *Run
	o     record.Options
	tell  Observer // of the options; nil without one
	start time.Time

	mu    sync.Mutex // serialises events
	panel *panel
	watch lossWatch

	endWatch func()      // ends watching the workers
	peak     int64       // peak of the workers' memory in bytes, set when watching has ended
	edges    int64       // edges that workers sampled before the last restart
	rows     FeatureRows // that workers read until then
}

func init() {
	record.New = func(run any, o record.Options) (record.Recorder, error) { return newRecorder(run.(*Run), o) }
	record.OpenToResume = func(dir string) (any, error) { return openToResume(dir) }
	record.Submitted = func(ctx context.Context, dir, identity string) (any, string) {
		r, id := submitted(ctx, dir, identity)
		if r == nil {
			return nil, ""
		}
		return r, id
	}
	record.Follow = func(ctx context.Context, run any, o record.Options) (any, error) {
		dir := run.(*Run).Dir
		r, err := follow(ctx, dir, following{Options: o, job: jobOf(dir), owned: true})
		if r == nil {
			return nil, err
		}
		return r, err
	}
	record.TensorBoard = func(run any) (end func() error, err error) {
		b, err := newBoard(run.(*Run), run.(*Run).Dir)
		if err != nil {
			return nil, err
		}
		return b.follow(), nil
	}
}

func newRecorder(r *Run, o record.Options) (*recorder, error) {
	rec := &recorder{run: r, o: o, start: time.Now(), endWatch: func() {}}
	rec.tell, _ = o.Observer.(Observer)
	rec.panel = newPanel(r.Config, live.New(screen.Options{Quiet: o.Quiet}), cmp.Or(o.Title, r.Config.title()), r.Config.Workers)
	rec.panel.noPassing = o.Metric != "" && o.Metric != runfile.Accuracy
	if err := rec.reread(); err != nil {
		return nil, err
	}
	for _, n := range o.Notes {
		rec.Observe(Event{Kind: KindStart, Text: n})
	}
	rec.panel.update()
	return rec, nil
}

// reread sets the record and the panel to the run's metrics.
func (rec *recorder) reread() error {
	rec.run.Result = Result{State: StateRunning, Values: map[string]float64{}, Text: map[string]string{}}
	if rec.run.Dir != "" {
		_, err := readFrom(rec.run.Dir, 0, rec.take)
		switch {
		case runfile.IgnoreDamage(err) != nil:
			return err
		case err != nil:
			rec.panel.print(err.Error())
		}
	}
	rec.panel.steps0 = rec.panel.total
	return nil
}

// Receive takes a worker's message, an event as JSON.
func (rec *recorder) Receive(rank int, message json.RawMessage) {
	var e Event
	if err := json.Unmarshal(message, &e); err != nil {
		e = Event{Kind: KindOutput, Text: fmt.Sprintf("rank %d sent something unreadable: %v", rank, err)}
	}
	e.Rank = rank
	if rank == 0 || e.Kind == KindRate || e.Kind == KindOutput { // facts that all ranks share come from rank 0
		rec.Observe(e)
	}
}

// Output takes a line that a worker has written to its standard output or standard error.
func (rec *recorder) Output(rank int, _, line string) {
	if rec.run.Config.Workers > 1 {
		line = fmt.Sprintf("[rank %d] %s", rank, line)
	}
	rec.Observe(Event{Kind: KindOutput, Rank: rank, Text: line})
}

// Observe takes an event of the run into its record, shows it, and passes it on. Any goroutine may call it.
func (rec *recorder) Observe(e Event) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if e.Kind == KindLog {
		e.Text = logLine(e.Values)
	}
	rec.observe(e)
	if e.Model != nil { // at other times a restart may be changing Config
		rec.watch.model(rec.run.Config, rec.o.Metric, e.Model)
	}
	if e.Rank == 0 {
		if text := rec.watch.see(e); text != "" {
			rec.observe(Event{Kind: KindPrint, Text: text, Epoch: e.Epoch, Total: e.Total})
		}
	}
}

// observe is Observe; the caller holds mu.
func (rec *recorder) observe(e Event) {
	rec.run.take(e)
	rec.panel.Observe(e)
	if rec.tell != nil {
		rec.tell.Observe(e)
	}
}

// take records an event of an earlier start of the run.
func (rec *recorder) take(e Event) {
	rec.run.take(e)
	rec.panel.apply(e)
}

// take updates the run's record by an event.
func (r *Run) take(e Event) {
	r.Result.take(e)
	switch e.Kind {
	case KindDevice:
		r.Config.Device = e.Text
	case KindModel:
		if r.Result.Model == nil {
			r.Result.Model = e.Model
		}
	case KindResult:
		for _, v := range e.Values {
			r.Result.Values[v.Name] = v.Value
		}
		if e.Text != "" {
			r.Result.Text[e.Split] = e.Text
		}
	}
}

// Watch shows the state of each worker of g, from their start until [recorder.Restart] or
// [recorder.Close].
func (rec *recorder) Watch(ctx context.Context, g *multigpu.Group) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				rec.refresh(g, false)
				rec.peak = max(rec.peak, g.PeakPss())
				return
			case <-tick.C:
				rec.refresh(g, n%10 == 0)
			}
		}
	})
	endGPUs := rec.watchGPUs(ctx)
	rec.endWatch = sync.OnceFunc(func() {
		close(stop)
		running.Wait()
		endGPUs()
	})
}

// refresh reports the current state of the workers.
func (rec *recorder) refresh(g *multigpu.Group, memory bool) {
	status := g.Status()
	e := Event{Kind: KindStatus, Workers: make([]WorkerStatus, len(status))}
	share := int64(0) // memory is measured for all workers together
	if memory && len(status) > 0 {
		share = g.MemoryPss() / int64(len(status))
	}
	for i, s := range status {
		e.Workers[i] = WorkerStatus{Epoch: s.Epoch, Step: s.Step, Stage: s.Stage, Stages: s.Seconds, Memory: share}
	}
	rec.Observe(e)
}

// Close ends the record with the error that the run ended with: it writes result.json and
// figure.png, and shows the final state. It fails if writing fails or the directory was removed.
func (rec *recorder) Close(runErr error) error {
	rec.endWatch()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	res, p := &rec.run.Result, rec.panel
	var gone error
	if rec.o.Removed != nil {
		gone = rec.o.Removed()
	}
	state := screen.Done
	res.State = StateDone
	switch {
	case errors.Is(runErr, ErrInterrupted):
		res.State, state = StateInterrupted, screen.Interrupted
	case runErr != nil || gone != nil:
		res.State, state = StateFailed, screen.Failed
	}
	if why := cmp.Or(runErr, gone); why != nil {
		res.Error = phrase.Sentence(why.Error())
	}
	res.Seconds, res.PeakMemory, res.SampledEdges = time.Since(rec.start).Seconds(), rec.peak, rec.edges
	for _, k := range p.ranks {
		res.SampledEdges += k.now.edges
		res.WorkerSeeds = append(res.WorkerSeeds, k.now.seeds)
	}
	res.Rows = rowsOf(rec.rows, p.ranks)
	maps.DeleteFunc(res.Values, func(_ string, x float64) bool { return x != x }) // NaN is not JSON
	p.end(state, res.Error, time.Since(rec.start))
	p.rateWholeRun(runErr == nil && !rec.o.Quiet && time.Since(rec.start) >= learnAfter)
	var err error
	switch {
	case gone != nil && (runErr == nil || !strings.Contains(runErr.Error(), gone.Error())):
		err = gone
	case gone == nil && rec.run.Dir != "":
		err = errors.Join(runfile.WriteJSON("runs", filepath.Join(rec.run.Dir, runfile.Result), res), p.writeFigure(rec.run.Dir), p.writeDrawn(rec.run.Dir))
	}
	p.close()
	return err
}
