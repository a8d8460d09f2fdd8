package gnb

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu"
)

// view turns what workers report into what the panel shows and what the run's
// directory keeps.
type view struct {
	l     *launched
	sink  live.Sink
	start time.Time

	mu     sync.Mutex
	snap   live.Snapshot
	series map[string]int // index into snap.Metrics
	rank   []rankView
	first  time.Time // of the first step
	steps0 int64     // steps done before this start of the run
	total  int64
	read   int64 // how much of the run's metrics was read
	done   chan struct{}
	ended  chan struct{}
	// watching is whether watch was called: the workers have started.
	watching bool
	peak     int64
	gpus     machine.Summary // what the run's GPUs did
	machine  ceiling
	task     task
	// noPassing says that the accuracy in passing is not shown.
	noPassing bool
}

type rankView struct {
	now, before worked // in all, and when the rates were last computed
	perSec      pace
}

func newView(l *launched, sink live.Sink, title string) (*view, error) {
	v := &view{
		l: l, sink: sink, start: time.Now(), series: map[string]int{}, rank: make([]rankView, l.o.Workers),
		done: make(chan struct{}), ended: make(chan struct{}),
	}
	v.l.run.Result = runs.Result{State: runs.StateRunning, Values: map[string]float64{}, Text: map[string]string{}}
	v.snap = live.Snapshot{Title: title, State: live.Starting}
	v.machine = newCeiling(l)
	v.noPassing = l.o.Data != nil && metricKind(l.o.Data) != names.Accuracy
	for r := range l.o.Workers {
		v.snap.Workers = append(v.snap.Workers, live.Worker{Rank: r})
	}
	if l.run.Dir != "" { // what a resumed run had shown before
		var err error
		if v.read, err = runs.ReadFrom(l.run.Dir, 0, v.apply); runfile.IgnoreDamage(err) != nil {
			return nil, err
		} else if err != nil {
			v.print(err.Error())
		}
	}
	v.steps0 = v.total
	for _, n := range l.notes {
		v.print(n)
		v.tell(runs.Event{Kind: "start", Text: n})
	}
	v.sink.Update(v.snap)
	return v, nil
}

func (v *view) print(line string) { v.sink.Print(line) }

func (v *view) tell(e runs.Event) {
	if f := v.l.o.Events; f != nil {
		f(e)
	}
}

// onEvent takes one message of a worker.
func (v *view) onEvent(rank int, data json.RawMessage) {
	var e runs.Event
	if err := json.Unmarshal(data, &e); err != nil {
		v.print(fmt.Sprintf("rank %d sent something unreadable: %v", rank, err))
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Kind == runs.KindRate {
		v.rank[rank].update(workedOf(e))
		return
	}
	if rank != 0 {
		return // what all ranks know alike is taken from rank 0
	}
	if v.first.IsZero() && e.Kind == runs.KindSteps {
		v.first = time.Now()
	}
	v.apply(e)
	v.report(e)
}

// apply changes the state by an event; events read back from a resumed run's
// metrics go through it too.
func (v *view) apply(e runs.Event) {
	s, res := &v.snap, &v.l.run.Result
	res.Take(e)
	switch e.Kind {
	case runs.KindPlan:
		s.Epochs = e.Epochs
	case runs.KindLoop:
		s.State, s.Epoch, s.Step, s.Steps, s.Detail = live.Running, e.Epoch+1, e.Step, e.Steps, ""
	case runs.KindDevice:
		v.l.run.Config.Device = e.Text
	case runs.KindModel:
		if res.Model == nil {
			res.Model = e.Model
		}
	case runs.KindSteps:
		for _, r := range e.Records {
			s.Loss = append(s.Loss, live.Point{Step: int(r.Total), Y: float64(r.Loss)})
			// It is 0 where it was not kept, too.
			if n := len(s.LR); n == 0 && r.LR != 0 || n > 0 && s.LR[n-1].Y != float64(r.LR) {
				s.LR = append(s.LR, live.Point{Step: int(r.Total), Y: float64(r.LR)})
			}
			s.State, s.Epoch, s.Step = live.Running, r.Epoch+1, r.Step+1
			v.total = r.Total
		}
	case runs.KindEpoch:
		v.passing(e.Epoch+1, float64(e.Accuracy))
	case runs.KindMetrics:
		for _, m := range e.Values {
			split, title, ok := names.CutMetric(m.Name)
			if !ok {
				continue
			}
			s.Metric = title
			if title != "" || split == "train" {
				v.dropPassing()
			}
			i := v.seriesOf(m.Name, split)
			epoch := e.Epoch + 1
			if s.Epochs > 0 {
				epoch = min(epoch, s.Epochs) // one after the last epoch measures what that has left
			}
			s.Metrics[i].Points = append(s.Metrics[i].Points, live.Point{Step: epoch, Y: m.Value})
		}
		s.State, s.Detail = live.Running, ""
	case runs.KindResult:
		for _, r := range e.Values {
			res.Values[r.Name] = r.Value
		}
		if e.Text != "" {
			res.Text[e.Split] = e.Text
		}
	case runs.KindProgress:
		left := v.task.left(e, time.Now())
		s.State = live.Evaluating
		s.Detail = fmt.Sprintf("%s: %d of %d", e.Text, e.Done, e.Of)
		if left >= time.Second {
			s.Detail += fmt.Sprintf(", %v left", left.Round(time.Second))
		}
		if s.Epochs == 0 { // all that the run does
			s.Unit, s.Step, s.Steps, s.Left = e.Text, int(e.Done), int(e.Of), left
		}
	}
}

// report shows an event's words, and passes it on.
func (v *view) report(e runs.Event) {
	out := runs.Event{Kind: e.Kind, Epoch: e.Epoch, Loss: float64(e.Loss), Seconds: e.Seconds, Stages: e.Stages, Values: e.Values, Text: e.Text}
	switch e.Kind {
	case runs.KindLog:
		line := ""
		for i, x := range e.Values {
			if i > 0 {
				line += "  "
			}
			line += x.String()
		}
		v.print(line)
		out.Text = line
	case runs.KindPrint:
		v.sink.Say(e.Text)
	case runs.KindEpoch, runs.KindMetrics, runs.KindCheckpoint:
	default:
		return
	}
	v.tell(out)
}

// onOutput shows what a worker writes to its standard output or error.
func (v *view) onOutput(rank int, _, line string) {
	if v.l.o.Workers > 1 {
		line = fmt.Sprintf("[rank %d] %s", rank, line)
	}
	v.print(line)
}

// update takes what a rank has worked off so far. Its rates are those of the last
// quarter of a second that it spent in loops over batches, or somewhat more.
func (r *rankView) update(now worked) {
	r.now = now
	if r.perSec.seeds == 0 || now.seconds-r.before.seconds >= 0.25 {
		r.rates(r.before)
		r.before = now
	}
}

// rates sets the rates to those since before.
func (r *rankView) rates(before worked) {
	if p, ok := r.now.since(before); ok {
		r.perSec = p
	}
}

// watch refreshes the panel while the workers run.
func (v *view) watch(g *multigpu.Group) {
	v.watching = true
	go func() {
		defer close(v.ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-v.done:
				v.refresh(g, false)
				v.peak = g.PeakPss()
				return
			case <-tick.C:
				v.refresh(g, n%10 == 0)
			}
		}
	}()
}

func (v *view) refresh(g *multigpu.Group, memory bool) {
	status := g.Status()
	var pss int64
	if memory {
		pss = g.MemoryPss()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, st := range status {
		if i >= len(v.snap.Workers) {
			break
		}
		w := &v.snap.Workers[i]
		w.Epoch, w.Step, w.Stage = st.Epoch+1, st.Step+1, st.Stage
		w.SeedsPerSec, w.EdgesPerSec = v.rank[i].perSec.seeds, v.rank[i].perSec.edges
		if pss > 0 {
			w.RSS = pss / int64(len(status))
		}
		sum := 0.0
		for _, sec := range st.Seconds {
			sum += sec
		}
		w.Stages = w.Stages[:0]
		for _, name := range names.Stages {
			if sec := st.Seconds[name]; sec > 0.005*sum { // what can be seen
				w.Stages = append(w.Stages, live.StageShare{Name: name, Share: sec / sum})
			}
		}
	}
	v.snap.Rates = v.machine.rates(v.rank)
	v.timing()
	v.sink.Update(abreast(v.snap))
}

// abreast is a state in which the run stands where the last of its workers does. Their
// positions are read as they are now; the steps that rank 0 reports come several together.
func abreast(s live.Snapshot) live.Snapshot {
	if s.State != live.Running || len(s.Workers) == 0 {
		return s
	}
	last := slices.MinFunc(s.Workers, func(a, b live.Worker) int {
		return cmp.Or(a.Epoch-b.Epoch, a.Step-b.Step)
	})
	if ahead := cmp.Or(last.Epoch-s.Epoch, last.Step-s.Step); ahead > 0 && (s.Epochs == 0 || last.Epoch <= s.Epochs) {
		s.Epoch, s.Step = last.Epoch, last.Step
		if s.Steps > 0 {
			s.Step = min(s.Step, s.Steps)
		}
	}
	return s
}

// timing sets elapsed and remaining time: at the pace of the steps so far.
func (v *view) timing() {
	s := &v.snap
	s.Elapsed = time.Since(v.start)
	if s.Epochs == 0 {
		return // a task of its own says what is left
	}
	s.Left = 0
	all := int64(s.Epochs) * int64(s.Steps)
	if done := v.total - v.steps0; done > 0 && all > v.total && !v.first.IsZero() {
		s.Left = time.Duration(float64(time.Since(v.first)) / float64(done) * float64(all-v.total))
	}
}

// close shows the final state and writes how the run ended.
func (v *view) close(runErr error) error {
	close(v.done)
	if v.watching {
		<-v.ended
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	res, s := &v.l.run.Result, &v.snap
	gone := v.l.there()
	res.State, s.State = runs.StateDone, live.Done
	s.Left, s.Detail = 0, ""
	switch {
	case errors.Is(runErr, ErrInterrupted):
		res.State, s.State = runs.StateInterrupted, live.Interrupted
	case runErr != nil || gone != nil:
		res.State, s.State = runs.StateFailed, live.Failed
	}
	if why := cmp.Or(runErr, gone); why != nil {
		res.Error, s.Detail = why.Error(), why.Error()
	}
	res.Seconds = time.Since(v.start).Seconds()
	s.Elapsed = time.Since(v.start)
	res.PeakMemory = v.peak
	for i, r := range v.rank {
		r.rates(worked{}) // over the whole run
		s.Workers[i].SeedsPerSec, s.Workers[i].EdgesPerSec = r.perSec.seeds, r.perSec.edges
		v.rank[i] = r
		res.SampledEdges += r.now.edges
		res.WorkerSeeds = append(res.WorkerSeeds, r.now.seeds)
	}
	v.machine.learn(v, runErr)
	s.Rates = v.machine.rates(v.rank)
	maps.DeleteFunc(res.Values, func(_ string, x float64) bool { return x != x }) // NaN is not JSON
	var err error
	switch {
	case gone != nil && !said(runErr, gone):
		err = gone
	case gone == nil && v.l.run.Dir != "":
		res.Weights = saving.SumsIn(v.l.run.Dir)
		err = errors.Join(runfile.WriteJSON(filepath.Join(v.l.run.Dir, runfile.Result), res), v.figure())
	}
	// A broken display is no failure of the run: it is not part of the error.
	_ = v.sink.Close(v.snap)
	return err
}

// figure writes the panel's final figure beside the run's other files.
func (v *view) figure() error {
	if len(v.snap.Loss) == 0 {
		return nil
	}
	png, err := live.PNG(v.snap)
	if err != nil {
		return fmt.Errorf("gnb: drawing the run's figure: %w", err)
	}
	path := filepath.Join(v.l.run.Dir, "figure.png")
	if err = atomicfile.Replaceable(path); err == nil { // else its writing could wait for a reader
		err = atomicfile.WriteFile(path, png, 0o644)
	}
	if err != nil {
		return fmt.Errorf("gnb: writing the run's figure: %w", err)
	}
	return nil
}
