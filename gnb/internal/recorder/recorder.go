// Package recorder turns the events of a training run into its record and its panel: [New] for the run
// that this process trains, [Follow] for the run of another process.
package recorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Options say how a run is shown, and who receives its events.
type Options struct {
	// Title is the panel's title, by default the program and the dataset.
	Title string
	// Quiet shows nothing.
	Quiet bool
	// Metric is the dataset's metric; "" means accuracy.
	Metric string
	// Notes are printed at the start, for example that the run is resumed.
	Notes []string
	// Observe receives every event, one at a time; it may be nil. It must not block, because the run
	// waits for it.
	Observe func(runs.Event)
}

// tell passes an event on.
func (o *Options) tell(e runs.Event) {
	if o.Observe != nil {
		o.Observe(e)
	}
}

// Recorder turns the workers' events into a run's result, a panel in a cell or terminal, and calls of
// an observer.
type Recorder struct {
	run      *runs.Run
	o        Options
	firstGPU int          // the GPU of rank 0; 0 is the first one
	removed  func() error // tells whether the run's directory was removed
	start    time.Time

	mu    sync.Mutex // serialises events
	panel *panel
	watch lossWatch

	endWatch func()           // ends watching the workers
	peak     int64            // peak of the workers' memory in bytes, set when watching has ended
	edges    int64            // edges that workers sampled before the last restart
	rows     runs.FeatureRows // that workers read until then
}

// New starts recording a run that this process trains. For a resumed run it also shows the values
// reported before. firstGPU is the GPU of rank 0. removed returns an error if the run's directory was
// removed.
func New(r *runs.Run, o Options, firstGPU int, removed func() error) (*Recorder, error) {
	rec := &Recorder{run: r, o: o, firstGPU: firstGPU, removed: removed, start: time.Now(), endWatch: func() {}}
	rec.panel = newPanel(r.Config, o, r.Config.Workers)
	if err := rec.reread(); err != nil {
		return nil, err
	}
	for _, n := range o.Notes {
		rec.Observe(runs.Event{Kind: runs.KindStart, Text: n})
	}
	rec.panel.update()
	return rec, nil
}

// begun is the result of a run before its first event.
func begun() runs.Result {
	return runs.Result{State: runs.StateRunning, Values: map[string]float64{}, Text: map[string]string{}}
}

// reread sets the record and the panel to the run's metrics.
func (rec *Recorder) reread() error {
	rec.run.Result = begun()
	if rec.run.Dir != "" {
		err := rec.run.Events(rec.take)
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
	var e runs.Event
	if err := json.Unmarshal(message, &e); err != nil {
		e = runs.Event{Kind: runs.KindOutput, Text: fmt.Sprintf("rank %d sent something unreadable: %v", rank, err)}
	}
	e.Rank = rank
	if rank == 0 || e.Kind == runs.KindRate || e.Kind == runs.KindOutput { // facts that all ranks share come from rank 0
		rec.Observe(e)
	}
}

// Output takes a line that a worker has written to its standard output or standard error.
func (rec *Recorder) Output(rank int, _, line string) {
	if rec.run.Config.Workers > 1 {
		line = fmt.Sprintf("[rank %d] %s", rank, line)
	}
	rec.Observe(runs.Event{Kind: runs.KindOutput, Rank: rank, Text: line})
}

// Observe takes an event of the run into its record, shows it, and passes it on. Any goroutine may call it.
func (rec *Recorder) Observe(e runs.Event) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if e.Kind == runs.KindLog {
		e.Text = logLine(e.Values)
	}
	rec.observe(e)
	if e.Model != nil { // at other times a restart may be changing Config
		rec.watch.model(rec.run.Config, rec.o.Metric, e.Model)
	}
	if e.Rank == 0 {
		if text := rec.watch.see(e); text != "" {
			rec.observe(runs.Event{Kind: runs.KindPrint, Text: text, Epoch: e.Epoch, Total: e.Total})
		}
	}
}

// observe is Observe; the caller holds mu.
func (rec *Recorder) observe(e runs.Event) {
	rec.run.Observe(e)
	rec.panel.Observe(e)
	rec.o.tell(e)
}

// take records an event of an earlier start of the run.
func (rec *Recorder) take(e runs.Event) {
	rec.run.Observe(e)
	rec.panel.apply(e)
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
	e := runs.Event{Kind: runs.KindStatus, Workers: make([]runs.WorkerStatus, len(status))}
	share := int64(0) // memory is measured for all workers together
	if memory && len(status) > 0 {
		share = g.MemoryPss() / int64(len(status))
	}
	for i, s := range status {
		e.Workers[i] = runs.WorkerStatus{Epoch: s.Epoch, Step: s.Step, Stage: s.Stage, Stages: s.Seconds, Memory: share}
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
	gone := rec.removed()
	state := screen.Done
	res.State = runs.StateDone
	switch {
	case errors.Is(runErr, runs.ErrInterrupted):
		res.State, state = runs.StateInterrupted, screen.Interrupted
	case runErr != nil || gone != nil:
		res.State, state = runs.StateFailed, screen.Failed
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
	case gone != nil && !errors.Is(runErr, runfile.ErrRemoved):
		err = gone
	case gone == nil && rec.run.Dir != "":
		err = errors.Join(runfile.WriteJSON("runs", filepath.Join(rec.run.Dir, runfile.Result), res), p.writeFigure(rec.run.Dir), p.writeDrawn(rec.run.Dir))
	}
	p.close()
	return err
}

// Restart shows a restart of the run's workers, and the run from there on. The run's configuration
// has the restart, and its metrics are cut to the part before the checkpoint and contain the event e.
// The workers must have ended; firstGPU is the GPU of the next rank 0.
func (rec *Recorder) Restart(e runs.Event, firstGPU int, notes ...string) error {
	rec.endWatch()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.firstGPU = firstGPU
	for _, k := range rec.panel.ranks {
		rec.edges += k.now.edges
		addRows(&rec.rows, k.now.rows)
	}
	rec.panel.restart(rec.run.Config.Workers)
	if err := rec.reread(); err != nil {
		return err
	}
	rec.run.Result.Restarts = len(rec.run.Config.Restarts)
	for _, n := range notes {
		rec.panel.print(n)
	}
	rec.panel.Observe(e)
	rec.panel.update()
	rec.o.tell(e)
	return nil
}
