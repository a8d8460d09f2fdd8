package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
)

// view shows a sweep in progress.
type view struct {
	s       *sweep
	sink    boards.SweepSink
	skipped int // trials that ended before this start
	// shares are the importances computed over the first trials, whose number is of.
	shares []Importance
	of     int
}

func newView(s *sweep) *view {
	v := &view{s: s, sink: boards.NewSweep(screen.Options{Quiet: s.o.Quiet}), skipped: len(s.past)}
	v.sink.Tell(s.study.Dir)
	for _, n := range s.notes {
		v.sink.Tell(n)
	}
	if v.skipped > 0 {
		v.sink.Tell(fmt.Sprintf("continuing after %s", phrase.Count(v.skipped, "trial")))
	}
	v.update()
	return v
}

// update shows the sweep's current state.
func (v *view) update() {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	v.sink.Update(v.snapshot(runs.StateRunning))
}

// snapshot returns the sweep in the form that package live shows; the caller holds mu.
func (v *view) snapshot(state string) boards.Sweep {
	s := v.s
	study := s.study
	study.Trials = slices.Clone(study.Trials)
	for _, t := range s.running {
		r := *t
		r.Value = math.NaN()
		if len(r.Evaluations) > 0 {
			r.Value = study.bestReport(r)
		}
		study.Trials = append(study.Trials, r)
	}
	if v.of != len(s.study.Trials) {
		v.shares, v.of = s.study.Importance(), len(s.study.Trials)
	}
	p := study.picture(v.shares)
	p.State, p.Done, p.Elapsed = state, len(s.study.Trials), time.Since(s.start)
	if s.o.Trials < math.MaxInt {
		p.Total = s.o.Trials
		if n := p.Done - v.skipped; n > 0 && p.Total > p.Done {
			p.Left = time.Duration(float64(p.Elapsed) / float64(n) * float64(p.Total-p.Done))
		}
	}
	return p
}

// ended prints a line about an ended trial.
func (v *view) ended(t TrialResult) {
	line := fmt.Sprintf("trial %d %s", t.Number, t.State)
	switch t.State {
	case runs.StateFailed:
		line += ": " + t.Error
	case StateStopped:
		line += " after " + phrase.Count(t.epochs(), "epoch")
	}
	if t.State != runs.StateFailed {
		line += fmt.Sprintf(", %s %.4f", v.s.study.Metric, t.Value)
	}
	for _, p := range t.Params {
		line += "  " + p.String()
	}
	v.sink.Tell(line)
}

func (v *view) close(err error) {
	s := v.s
	s.mu.Lock()
	p := v.snapshot(s.study.State)
	s.mu.Unlock()
	if err != nil {
		p.Detail = err.Error()
	}
	_ = v.sink.Close(p) // a broken display is no failure of the sweep
}

// bestReport returns the best value that a trial has reported.
func (s *Study) bestReport(t TrialResult) float64 {
	best := t.Evaluations[0].Value
	for _, r := range t.Evaluations {
		if s.better(r.Value, best) {
			best = r.Value
		}
	}
	return best
}

// params returns the parameters of all trials, in the order of their first use.
func (s *Study) params() []Hyperparameter {
	var all []Hyperparameter
	seen := map[string]bool{}
	for _, t := range s.Trials {
		for _, p := range t.Params {
			if !seen[p.Name] {
				seen[p.Name] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// picture returns the study in the form that package live draws.
func (s *Study) picture(shares []Importance) boards.Sweep {
	l := boards.Sweep{Title: s.title(), State: s.State, Metric: s.Metric, Done: len(s.Trials)}
	axes := s.params()
	for _, p := range axes {
		l.Axes = append(l.Axes, boards.SweepAxis{Name: p.Name, Marks: p.marks()})
	}
	for _, t := range s.Sorted() {
		r := boards.SweepTrial{Number: t.Number, State: t.State, Value: t.Value, Epochs: t.epochs(), Seconds: t.Seconds, Note: t.Error}
		for _, a := range axes {
			at, text := math.NaN(), ""
			if i := slices.IndexFunc(t.Params, func(p Hyperparameter) bool { return p.Name == a.Name }); i >= 0 {
				at, text = t.Params[i].share(), t.Params[i].Text()
			}
			r.At, r.Values = append(r.At, at), append(r.Values, text)
		}
		l.Trials = append(l.Trials, r)
	}
	for _, x := range shares {
		l.Shares = append(l.Shares, boards.SweepShare(x))
	}
	return l
}

// marks label a parameter's axis: each value of a choice and of a short range, the
// ends and the middle of others.
func (p Hyperparameter) marks() []boards.SweepMark {
	var out []boards.SweepMark
	mark := func(value float64) {
		p.Value = value
		text := p.Text()
		if p.Kind != kindChoice {
			text = strconv.FormatFloat(value, 'g', 2, 64)
			if value == math.Trunc(value) && math.Abs(value) < 1e6 {
				text = strconv.FormatFloat(value, 'f', 0, 64)
			}
		}
		out = append(out, boards.SweepMark{At: p.share(), Text: text})
	}
	if n := int(min(p.High-p.Low, 6)) + 1; p.Kind == kindChoice || p.Kind == kindInt && n <= 6 {
		if p.Kind == kindChoice {
			n = len(p.Choices)
		}
		for i := range n {
			mark(p.Low + float64(i))
		}
		return out
	}
	for _, u := range []float64{0, 0.5, 1} {
		mark(p.at(u))
	}
	return out
}

func (s *Study) title() string {
	if s.Method == methodSeeds {
		return fmt.Sprintf("repetition of %s on %s", s.Model, s.Dataset)
	}
	return fmt.Sprintf("%s of %s on %s", s.Method+" search", s.Model, s.Dataset)
}
