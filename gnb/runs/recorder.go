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
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/multigpu"
)

// ErrInterrupted matches (errors.Is) the error of an interrupted run. The run has written a
// checkpoint; running the same cell again resumes from it.
var ErrInterrupted = errors.New("interrupted")

// Recorder keeps the record of a run while this process trains it: it turns the workers' events
// into the run's result, the panel in a cell or terminal, and calls of an [Observer]. gnb.Train
// and gnb.Launch make one for each run; a program that wants events gives the option Events to a run, or an Observer
// to [Attach].
type Recorder struct {
	run   *Run
	o     RecorderOptions
	start time.Time

	mu    sync.Mutex // serialises events
	panel *panel

	endWatch func()      // ends watching the workers
	peak     int64       // peak of the workers' memory in bytes, set when watching has ended
	edges    int64       // edges that workers sampled before the last restart
	rows     FeatureRows // that workers read until then
}

// RecorderOptions configure a [Recorder].
type RecorderOptions struct {
	// Title is the panel's title, by default the program and the dataset.
	Title string
	// Quiet shows nothing.
	Quiet bool
	// Metric is the dataset's metric; "" means accuracy.
	Metric string
	// FirstGPU is the GPU of rank 0; 0 is the first one.
	FirstGPU int
	// Notes are printed at the start, for example that the run is resumed.
	Notes []string
	// Observer receives every event; it may be nil.
	Observer Observer
	// Removed returns an error if the run's directory was removed. It may be nil.
	Removed func() error
}

// NewRecorder starts recording a run. For a resumed run it also shows the values reported before.
func NewRecorder(r *Run, o RecorderOptions) (*Recorder, error) {
	rec := &Recorder{run: r, o: o, start: time.Now(), endWatch: func() {}}
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
func (rec *Recorder) reread() error {
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
func (rec *Recorder) Receive(rank int, message json.RawMessage) {
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
func (rec *Recorder) Output(rank int, _, line string) {
	if rec.run.Config.Workers > 1 {
		line = fmt.Sprintf("[rank %d] %s", rank, line)
	}
	rec.Observe(Event{Kind: KindOutput, Rank: rank, Text: line})
}

// Observe takes an event of the run into its record, shows it, and passes it on. Any goroutine may call it.
func (rec *Recorder) Observe(e Event) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if e.Kind == KindLog {
		e.Text = logLine(e.Values)
	}
	rec.run.take(e)
	rec.panel.Observe(e)
	if rec.o.Observer != nil {
		rec.o.Observer.Observe(e)
	}
}

// take records an event of an earlier start of the run.
func (rec *Recorder) take(e Event) {
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

// Watch shows the state of each worker of g, from their start until [Recorder.Restart] or
// [Recorder.Close].
func (rec *Recorder) Watch(ctx context.Context, g *multigpu.Group) {
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
func (rec *Recorder) refresh(g *multigpu.Group, memory bool) {
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
func (rec *Recorder) Close(runErr error) error {
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
		res.Error = why.Error()
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
		err = errors.Join(runfile.WriteJSON("runs", filepath.Join(rec.run.Dir, runfile.Result), res), p.writeFigure(rec.run.Dir))
	}
	p.close()
	return err
}
