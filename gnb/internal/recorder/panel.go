package recorder

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/machine"
)

// panel turns the events of a run into the display in a cell, a terminal or a pipe. A recorder
// feeds it while the run trains; [Follow] replays a run's metrics into it. Its methods are called
// one at a time.
type panel struct {
	sink  live.Sink
	snap  live.Snapshot
	start time.Time

	series map[string]int // index into snap.Metrics, by name
	// noPassing hides the accuracy on the training batches.
	noPassing bool
	metric    *metrics.Metric // what chooses the best epoch; nil if nothing does, or it is not known yet
	task      task

	total, steps0 int64     // steps done in total, and before this start of the run
	first         time.Time // time of the first step since this start

	ranks   []rank
	ceiling ceiling
	gpus    machine.Summary // summary of the run's GPU samples
}

// newPanel returns the panel of a run; workers is 0 for Follow, to which no worker reports.
func newPanel(c runs.Config, o Options, workers int) *panel {
	p := newPanelOn(live.New(screen.Options{Quiet: o.Quiet}), c, cmp.Or(o.Title, title(c)), workers)
	p.noPassing = o.Metric != "" && o.Metric != runfile.Accuracy
	return p
}

func newPanelOn(sink live.Sink, c runs.Config, title string, workers int) *panel {
	p := &panel{sink: sink, start: time.Now(), ceiling: newCeiling(c)}
	p.snap.Title = title
	p.restart(workers)
	return p
}

// restart forgets what was shown of the run, for a run that begins again or from a checkpoint with
// the given number of workers.
func (p *panel) restart(workers int) {
	old := p.snap
	p.snap = live.Snapshot{Title: old.Title, State: screen.Starting, Epochs: old.Epochs, GPUs: old.GPUs}
	p.series, p.task, p.total, p.first, p.ranks = map[string]int{}, task{}, 0, time.Time{}, make([]rank, workers)
	for r := range workers {
		p.snap.Workers = append(p.snap.Workers, live.Worker{Rank: r})
	}
}

// Observe shows an event.
func (p *panel) Observe(e runs.Event) {
	switch e.Kind {
	case runs.KindRate:
		if e.Rank < len(p.ranks) {
			p.ranks[e.Rank].update(workedOf(e))
		}
		return
	case runs.KindStatus:
		p.status(e.Workers)
		p.update()
		return
	case runs.KindSteps:
		if p.first.IsZero() {
			p.first = time.Now()
		}
	case runs.KindStart, runs.KindOutput, runs.KindRestart:
		p.print(e.Text)
	case runs.KindLog:
		p.print(logLine(e.Values))
	case runs.KindDrawn:
		if e.Drawn != nil {
			p.print(e.Drawn.Name + ": " + strings.TrimPrefix(e.Drawn.Text, e.Drawn.Name+": "))
		}
	case runs.KindPrint:
		p.sink.Say(e.Text)
	}
	p.apply(e)
}

// logLine formats logged values as one line.
func logLine(values []runs.NamedValue) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return strings.Join(words, "  ")
}

func (p *panel) print(line string) { p.sink.Print(line) }

// apply updates the display by an event without printing the event's text: texts of an earlier
// start of the run were already shown.
func (p *panel) apply(e runs.Event) {
	s := &p.snap
	switch e.Kind {
	case runs.KindPlan:
		s.Epochs = e.Epochs
	case runs.KindLoop:
		s.Counted = e.Unit
		s.State, s.Epoch, s.Step, s.Steps, s.Detail = screen.Running, e.Epoch+1, e.Step, e.Steps, ""
	case runs.KindSteps:
		for _, r := range e.Records {
			s.Loss = append(s.Loss, chart.Point{Step: int(r.Total), Y: r.Loss})
			// The rate is also 0 in runs that did not record it.
			if n := len(s.LR); n == 0 && r.LR != 0 || n > 0 && s.LR[n-1].Y != r.LR {
				s.LR = append(s.LR, chart.Point{Step: int(r.Total), Y: r.LR})
			}
			s.State, s.Epoch, s.Step, s.Detail = screen.Running, r.Epoch+1, r.Step+1, ""
			p.total = r.Total
		}
	case runs.KindEpoch:
		s.Mean = chart.Point{Step: e.Epoch + 1, Y: e.Loss}
		p.passing(e.Epoch+1, e.Accuracy)
	case runs.KindMetric:
		p.metric = e.Metric
	case runs.KindMetrics:
		p.evaluated(e)
	case runs.KindLog:
		p.log(e)
	case runs.KindDrawn:
		p.draw(e)
	case runs.KindProgress:
		p.progress(e)
	}
}

// evaluated adds an evaluation to the curves: of each split the metric that chooses the best epoch, or the first one.
func (p *panel) evaluated(e runs.Event) {
	s, drawn := &p.snap, map[string]bool{}
	chooses := func(v runs.NamedValue) bool {
		if p.metric == nil {
			return false
		}
		_, ok := p.metric.Of(v.Name)
		return ok
	}
	values := slices.Clone(e.Values)
	slices.SortStableFunc(values, func(a, b runs.NamedValue) int { // those of the chosen metric first
		switch is, other := chooses(a), chooses(b); {
		case is == other:
			return 0
		case is:
			return -1
		}
		return 1
	})
	for _, m := range values {
		split, title, ok := runfile.CutMetric(m.Name, p.metric)
		if !ok { // of a loop that is not a task's
			split, title, ok = strings.Cut(m.Name, "_")
			ok = ok && (split == "val" || split == "test") && title != "loss"
		}
		if !ok || drawn[split] {
			continue
		}
		drawn[split], s.Metric = true, title
		s.Lower = lowerIsBetter(m.Name)
		if chooses(m) {
			s.Lower = p.metric.Lower
		}
		if title != "" || split == "train" {
			p.dropPassing()
		}
		i := p.seriesOf(m.Name, split)
		epoch := e.Epoch + 1
		if s.Epochs > 0 {
			epoch = min(epoch, s.Epochs) // an evaluation after the last epoch measures that epoch's weights
		}
		s.Metrics[i].Points = append(s.Metrics[i].Points, chart.Point{Step: epoch, Y: m.Value})
	}
	s.State, s.Detail = screen.Running, ""
}

// lowerIsBetter reports whether a value of an evaluation, such as "test_mae", is one of the library's metrics that are better if
// they are lower.
func lowerIsBetter(name string) bool {
	return slices.ContainsFunc(metrics.Numbers, func(m metrics.Metric) bool { _, ok := m.Of(name); return ok && m.Lower })
}

// progress shows the progress of a long task.
func (p *panel) progress(e runs.Event) {
	s, left := &p.snap, p.task.left(e, time.Now())
	s.State = screen.Evaluating
	s.Detail = fmt.Sprintf("%s: %d of %d", e.Text, e.Done, e.Of)
	if left >= time.Second {
		s.Detail += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	if s.Epochs == 0 { // the run consists only of the task
		s.Unit, s.Step, s.Steps, s.Left = e.Text, int(e.Done), int(e.Of), left
	}
}

// status shows the state of each worker.
func (p *panel) status(workers []runs.WorkerStatus) {
	for i, st := range workers[:min(len(workers), len(p.snap.Workers))] {
		w := &p.snap.Workers[i]
		w.Epoch, w.Step, w.Stage = st.Epoch+1, st.Step+1, st.Stage
		w.SeedsPerSec, w.EdgesPerSec = p.ranks[i].perSec.seeds, p.ranks[i].perSec.edges
		if st.Memory > 0 {
			w.RSS = st.Memory
		}
		sum := 0.0
		for _, sec := range st.Stages {
			sum += sec
		}
		w.Stages = w.Stages[:0]
		for _, name := range runfile.Stages {
			if sec := st.Stages[name]; sec > 0.005*sum { // skip stages too short to be visible
				w.Stages = append(w.Stages, live.StageShare{Name: name, Share: sec / sum})
			}
		}
	}
	p.rateTogether()
}

// update draws the current state.
func (p *panel) update() {
	p.timing()
	p.sink.Update(abreast(p.snap))
}

// abreast returns a snapshot whose position is that of the slowest worker. The workers' positions
// are current, whereas rank 0 reports steps several at a time.
func abreast(s live.Snapshot) live.Snapshot {
	if s.State != screen.Running || len(s.Workers) == 0 {
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

// timing sets the elapsed time, and the remaining time at the pace of the steps so far.
func (p *panel) timing() {
	s := &p.snap
	s.Elapsed = time.Since(p.start)
	if s.Epochs == 0 {
		return // the task's progress gives the remaining time
	}
	s.Left = 0
	all := int64(s.Epochs) * int64(s.Steps)
	if done := p.total - p.steps0; done > 0 && all > p.total && !p.first.IsZero() {
		s.Left = time.Duration(float64(time.Since(p.first)) / float64(done) * float64(all-p.total))
	}
}

// end sets the final state and the elapsed time of a run, and the reason if it failed.
func (p *panel) end(state, reason string, elapsed time.Duration) {
	p.snap.State, p.snap.Detail, p.snap.Left, p.snap.Elapsed = state, reason, 0, elapsed
}

// close shows the final state.
func (p *panel) close() { _ = p.sink.Close(p.snap) } // a broken display is no failure of the run

// writeFigure writes the panel's final figure into the run's directory.
func (p *panel) writeFigure(dir string) error {
	if len(p.snap.Loss) == 0 {
		return nil
	}
	png, err := live.PNG(p.snap)
	if err != nil {
		return fmt.Errorf("runs: drawing the run's figure: %w", err)
	}
	path := filepath.Join(dir, "figure.png")
	if err = atomicfile.Replaceable(path); err == nil { // otherwise the write could block on a reader, as for a named pipe
		err = atomicfile.WriteFile(path, png, 0o644)
	}
	if err != nil {
		return fmt.Errorf("runs: writing the run's figure: %w", err)
	}
	return nil
}

// title returns a run's title by default.
func title(c runs.Config) string {
	if c.Title != "" {
		return c.Title
	}
	return strings.TrimPrefix(c.Program, "gnb.") + " on " + cmp.Or(c.Dataset, "no dataset")
}
