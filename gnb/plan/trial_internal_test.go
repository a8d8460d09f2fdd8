package plan

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/divided"
)

// stopwatch is a Trier whose steps take a time for each seed of a worker, in all of a machine's workers at the same time.
type stopwatch struct {
	ways  []Way
	how   []TrialSpec
	trial Trial           // what every trial returns; StepSeconds 0 means 0.1 s for each worker and virtual rank
	fails func(Way) error // nil if none does
}

func (s *stopwatch) Try(_ context.Context, w Way, o TrialSpec) (Trial, error) {
	s.ways, s.how = append(s.ways, w), append(s.how, o)
	if s.fails != nil {
		if err := s.fails(w); err != nil {
			return Trial{}, err
		}
	}
	t := s.trial
	if t.StepSeconds == 0 {
		t.StepSeconds = 0.1 * float64(w.Workers*w.Virtual)
	}
	t.Steps, t.Range = 12, [2]float64{t.StepSeconds, t.StepSeconds}
	t.Stages = map[string]float64{runfile.StageForward: t.StepSeconds}
	if o.Evaluate {
		t.Evaluation = 7
	}
	return t, nil
}

// A plan has the times of its trial: of the planned way first, with an evaluation, and then of the others.
func TestPlanIsTried(t *testing.T) {
	j, s := job(t), &stopwatch{trial: Trial{StepSeconds: 0.5}}
	j.Workers, j.Trier = 2, s
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if s.ways[0] != (Way{2, 1, 1, false, "float32"}) || !s.how[0].Evaluate || !p.Measured || p.StepSeconds != 0.5 || p.EpochSeconds != float64(p.Steps)*0.5+7 {
		t.Errorf("%+v of %+v takes %g s a step and %g an epoch of %d steps", s.ways[0], s.how[0], p.StepSeconds, p.EpochSeconds, p.Steps)
	}
	for i, w := range s.ways[1:] {
		if s.how[i+1].Evaluate || !slices.ContainsFunc(p.Choices, func(c Choice) bool {
			return c.Measured && c.Workers == w.Workers && c.Virtual == w.Virtual && (c.Mode == "cooperative") == w.Cooperative
		}) {
			t.Errorf("%+v was tried, and the choices are %+v", w, p.Choices)
		}
	}
	sum := 0.0
	for _, s := range p.Stages {
		sum += s.Seconds
	}
	if math.Abs(sum-0.5) > 1e-9 || !strings.Contains(p.String(), "Times are those of 12 steps, computed for this plan in 2 workers") || strings.Contains(p.String(), "~") {
		t.Errorf("the stages take %g s:\n%s", sum, p)
	}
}

// Other ways are extrapolated where a step takes long, and are marked.
func TestExtrapolated(t *testing.T) {
	j, s := job(t), &stopwatch{trial: Trial{StepSeconds: 2 * longStep}}
	j.Trier, j.Workers = s, 4
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.ways) != 1 || !strings.Contains(p.String(), "Times marked ~ are extrapolated") {
		t.Errorf("%+v were tried:\n%s", s.ways, p)
	}
	for _, c := range p.Choices {
		if c.Measured != (c.Workers == 4 && c.Virtual == 1 && c.Mode == "independent" && c.Precision == "float32") || c.StepSeconds <= 0 {
			t.Errorf("%+v", c)
		}
	}
	// One worker that computes four shares after each other, on one thread of two CPUs, takes twice as long as four workers there, and
	// one worker of as many threads as CPUs as long.
	l, err := j.loads(t.Context(), 4, planTime)
	if err != nil {
		t.Fatal(err)
	}
	one := j
	one.Workers, one.Virtual = 1, 4
	j.Threads = 1
	cpus := float64(processors())
	if got, want := one.extrapolate(l, &j, l, p.Trial)/p.StepSeconds, 4*min(1, cpus/4)/min(float64(one.Threads), cpus); math.Abs(got-want) > 1e-9 {
		t.Errorf("one worker takes %g times as long as four, want %g", got, want)
	}
}

// A plan says which load its times were measured under, and that its speed changed.
func TestBusyTrial(t *testing.T) {
	for _, c := range []struct {
		others float64
		said   bool
	}{{0, false}, {0.1, false}, {1.5, true}} {
		j := job(t)
		j.Trier = &stopwatch{trial: Trial{StepSeconds: 0.1, OtherCPUs: c.others, CPUs: 2}}
		p, err := Make(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(p.String(), "Other programs used 1.5 of 2 CPUs during the trial"); said != c.said || p.Trial.OtherCPUs != c.others {
			t.Errorf("%g CPUs of others: %q", c.others, p.Notes)
		}
	}
}

// What cannot be tried here has no times, and a plan says why. A way that fails is left out, and a planned run that fails has no times.
func TestNotTried(t *testing.T) {
	for want, change := range map[string]func(j *Job, s *stopwatch) context.Context{
		"these GPUs are not here to try": func(j *Job, _ *stopwatch) context.Context {
			j.GPU = true
			return ForGPU(t.Context(), 1<<40)
		},
		"parts that are on other machines": func(j *Job, _ *stopwatch) context.Context {
			of := jobOnParts(t, divided.Options{NoTopology: true})
			withParts(t, &of, 1)
			j.Data, j.Workers, j.Here, j.First = of.Data, 4, 1, 1
			return t.Context()
		},
		"steps of the run failed: it is broken": func(_ *Job, s *stopwatch) context.Context {
			s.fails = func(Way) error { return errors.New("gnb: it is broken") }
			return t.Context()
		},
	} {
		j, s := job(t), &stopwatch{}
		ctx := change(&j, s)
		j.Trier = s
		p, err := Make(ctx, j)
		if err != nil || p.StepSeconds != 0 || p.Trial != nil || len(p.Choices) != 0 || !strings.Contains(p.String(), want) {
			t.Errorf("%q: %v, %+v\n%s", want, err, p.Trial, p)
		}
	}
	j := job(t)
	j.Workers = 2
	j.Trier = &stopwatch{fails: func(w Way) error {
		if w.Workers == 1 {
			return errors.New("gnb: one is too few")
		}
		return nil
	}}
	p, err := Make(t.Context(), j)
	if err != nil || len(p.Choices) < 2 || !strings.Contains(p.String(), "2 virtual ranks each cannot be planned: one is too few") {
		t.Errorf("%v\n%s", err, p)
	}
	ended, cancel := context.WithCancel(t.Context())
	j.Trier = &stopwatch{fails: func(Way) error { cancel(); return ended.Err() }}
	if _, err := Make(ended, j); !errors.Is(err, context.Canceled) {
		t.Errorf("a plan whose context ends during the trial has the error %v", err)
	}
}
