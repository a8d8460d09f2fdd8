package plan

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/nn"
)

// A trial computes steps of the run, on one worker or several, of a whole dataset, in parts, with learned rows or
// cooperatively, and its factor is by how much they differ from what the rates say. It leaves no goroutine.
func TestTrial(t *testing.T) {
	for name, change := range map[string]func(*Job){
		"one worker":      func(*Job) {},
		"two workers":     func(j *Job) { j.Workers, j.Threads = 2, 1 },
		"virtual ranks":   func(j *Job) { j.Virtual = 2 },
		"cooperative":     func(j *Job) { j.Workers, j.Threads, j.Cooperative = 2, 1, true },
		"learned rows":    func(j *Job) { j.Embedding = 16 },
		"bf16":            func(j *Job) { j.Precision = "bf16" },
		"in parts":        func(j *Job) { j.Data, j.Workers = inTwo(t, j.Data), 2 },
		"small last step": func(j *Job) { j.Batch = j.seedsOf()*2/3 + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			j, r := job(t), flat(2)
			change(&j)
			l, err := j.loads(t.Context(), 4, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			before := runtime.NumGoroutine()
			got, err := j.try(t.Context(), l, r)
			if err != nil {
				t.Fatal(err)
			}
			if got.Steps < 1 || got.Steps > trialSteps || !(got.Seconds > 0) || !(got.Factor >= leastFactor && got.Factor <= mostFactor) {
				t.Errorf("the trial is %+v", got)
			}
			for range 100 { // those that have ended may still be counted
				if runtime.NumGoroutine() <= before {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if n := runtime.NumGoroutine(); n > before {
				t.Errorf("%d goroutines were left", n-before)
			}
			if name != "one worker" {
				return
			}
			// On rates by which the steps take as long as they did, the factor is 1.
			r.Together = 1
			base := l.busy*l.sampling*j.crowded(r) + j.computeSeconds(l, r)
			if want := (got.Seconds - float64(28*l.params)/r.FarStream) / base; want > leastFactor && want < mostFactor && math.Abs(got.Factor/want-1) > 1e-9 {
				t.Errorf("steps of %g s, predicted %g s, have the factor %g", got.Seconds, base, got.Factor)
			}
		})
	}
}

// Steps that would take long are not tried, a trial ends with its context, and the error of a model is passed
// on.
func TestTrialEnds(t *testing.T) {
	j, r := job(t), flat(2)
	l, err := j.loads(t.Context(), 2, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	slow := flat(2)
	slow.Operations[otherOperations] = Operation{Seconds: []float64{1}, Factor: []float64{1e9}}
	if got, err := j.try(t.Context(), l, slow); err != nil || got.Steps != 0 || got.Factor != 1 {
		t.Errorf("a share that takes %g s is tried: %+v, %v", j.computeSeconds(l, slow), got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := j.try(ended, l, r); err != nil || got.Steps != 0 {
		t.Errorf("after the end of its context a trial has %+v, %v", got, err)
	}
	if _, err := planned(ended, j, func(bool) (*Rates, error) { return r, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a plan whose context has ended has the error %v", err)
	}
	broken := j
	build := j.Build
	broken.Build = func() nn.Model { return failing{build()} }
	if _, err := broken.try(t.Context(), l, r); err == nil || !strings.Contains(err.Error(), "trying steps") {
		t.Errorf("a model that fails on real numbers has the error %v", err)
	}
}

// failing is a model that fails.
type failing struct{ nn.Model }

func (failing) Layer(*nn.Fwd, int, *nn.Block, *nn.Tensor) *nn.Tensor { panic(errors.New("no numbers")) }

// A plan says how many steps it has tried, and its stages add up to the time of a step. A run that does not fit is not tried.
func TestPlanTries(t *testing.T) {
	j := job(t)
	rates := func(bool) (*Rates, error) { return flat(2), nil }
	p, err := planned(t.Context(), j, rates)
	if err != nil {
		t.Fatal(err)
	}
	sum := stepCost
	for _, s := range p.Stages {
		sum += s.Seconds
	}
	if p.Tried == 0 || math.Abs(p.StepSeconds/sum-1) > 1e-9 || !strings.Contains(p.String(), "which this plan has computed") {
		t.Errorf("%d steps were tried; a step takes %g s, its stages %g s:\n%v", p.Tried, p.StepSeconds, sum, p)
	}
	if p.Rates.Together != 1 {
		t.Errorf("the trial changed the machine's rates: %g", p.Rates.Together)
	}
	j.GPU = true
	if p, err = planned(t.Context(), j, rates); err != nil || p.Tried != 0 {
		t.Errorf("a run on a GPU was tried on the CPU: %+v, %v", p, err)
	}
}

// A group that the machine holds up does not count; the fastest and the slowest ones are known.
func TestTake(t *testing.T) {
	var got trial
	if got.take(nil); got != (trial{}) {
		t.Errorf("without a group: %+v", got)
	}
	if got.take([]float64{3, 1, 100, 2, 4}); got.Seconds != 3 || got.Least != 1 || got.Most != 100 {
		t.Errorf("%+v", got)
	}
}

// A plan says so if the groups of its steps took times that differ.
func TestStepRange(t *testing.T) {
	j := job(t)
	p, err := planned(t.Context(), j, func(bool) (*Rates, error) { return flat(2), nil })
	if err != nil {
		t.Fatal(err)
	}
	r := p.StepRange
	if len(r) != 2 || r[0] > p.StepSeconds || r[1] < p.StepSeconds || !(r[0] > 0) {
		t.Fatalf("a step takes %v s, in %v", p.StepSeconds, r)
	}
	if said := strings.Contains(p.String(), "speed changed meanwhile"); said != (r[1] > unsteady*r[0]) {
		t.Errorf("with %v the plan says %v", r, p.Notes)
	}
}
