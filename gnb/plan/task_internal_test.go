package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// taskTrier is a Trier of a task: it says what the workers computed, and an evaluation takes too long if slow is set.
type taskTrier struct {
	stopwatch
	slow bool
}

func (s *taskTrier) Try(ctx context.Context, w Way, o TrialSpec) (Trial, error) {
	if s.slow && o.Evaluate {
		s.how = append(s.how, o)
		return Trial{}, fmt.Errorf("gnb: %w 2m0s", ErrTrialTook)
	}
	t, err := s.stopwatch.Try(ctx, w, o)
	if t.Evaluation > 0 {
		t.Evaluation = 0.3
	}
	t.Model, t.Weights, t.Unit, t.Batch, t.EpochSteps = "gin for graphs", 1000, "graphs", 128, 10
	t.Hops = []Hop{{Destinations: 500, Sources: 500, Edges: 2000}}
	t.WorkerBytes, t.Garbage = int64(w.Workers)*(80<<20), int64(w.Workers)*(20<<20)
	return t, err
}

func taskJob(t *testing.T) (Job, *taskTrier) {
	j, s := job(t), &taskTrier{}
	s.trial.StepSeconds = 0.5
	j.Task, j.Model, j.Build, j.Fanouts, j.Batch, j.Workers, j.Trier = "graphs", "", nil, nil, 0, 2, s
	return j, s
}

// A plan of a task has what its trials found, of the planned way and of others.
func TestPlanOfTask(t *testing.T) {
	j, s := taskJob(t)
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if p.Model != "gin for graphs" || p.Weights != 1000 || p.Unit != "graphs" || p.Batch != 128 || p.Steps != 10 || p.StepSeconds != 0.5 || p.EpochSeconds != 10*0.5+0.3 || !p.Measured || !p.Same || p.Fit != "fits" {
		t.Errorf("%+v", p)
	}
	if !s.how[0].Evaluate || s.ways[0] != (Way{2, 1, 1, false, "float32"}) {
		t.Errorf("tried are %+v by %+v", s.ways, s.how)
	}
	// Each worker takes 100 MiB, of which gradients and the dataset's copy are shared.
	if p.WorkerBytes > 100<<20 || p.WorkerBytes < 95<<20 || p.TotalBytes < 2*p.WorkerBytes+launcherBytes {
		t.Errorf("a worker takes %d bytes, all %d", p.WorkerBytes, p.TotalBytes)
	}
	if !slices.ContainsFunc(p.Choices, func(c Choice) bool {
		return c.Workers == 1 && c.Virtual == 2 && c.Same && c.Measured && c.TotalBytes < p.TotalBytes
	}) || slices.ContainsFunc(p.Choices, func(c Choice) bool { return c.Mode == "cooperative" }) {
		t.Errorf("the choices are %+v", p.Choices)
	}
	text := p.String()
	for _, want := range []string{"plan of gin for graphs on planted: 2 workers of 1 thread, batch 128 graphs, 10 steps an epoch", "as tried", "only the task knows its batches", "ways to run"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "fanout") || strings.Contains(text, "extrapolated") {
		t.Errorf("the text is\n%s", text)
	}
	if last := p.Stages[slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Name == passStage })]; last.Seconds != 0.5 || last.Bytes != 0 {
		t.Errorf("the stages are %+v", p.Stages)
	}
}

// Where an evaluation takes too long to be tried, the plan is without it and says so.
func TestPlanOfTaskWithLongEvaluation(t *testing.T) {
	j, s := taskJob(t)
	s.slow = true
	p, err := Make(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if p.EpochSeconds != 10*0.5 || s.how[1].Evaluate || !strings.Contains(p.String(), "of an evaluation are unknown and not in the plan: steps and an evaluation were given up because they took more than 2m0s.") {
		t.Errorf("%s", p)
	}
}

func TestPlanOfTaskRefuses(t *testing.T) {
	for want, set := range map[string]func(j *Job, ctx *context.Context){
		"several machines":          func(j *Job, _ *context.Context) { j.Here = 1 },
		"--gpu-memory are not here": func(j *Job, ctx *context.Context) { j.GPU, *ctx = true, ForGPU(*ctx, 1<<30) },
		"a task to try":             func(j *Job, _ *context.Context) { j.Trier = nil },
		"it needs a dataset":        func(j *Job, _ *context.Context) { j.Data = nil },
		"steps of the run failed: boom": func(j *Job, _ *context.Context) {
			j.Trier.(*taskTrier).fails = func(Way) error { return fmt.Errorf("boom") }
		},
	} {
		j, _ := taskJob(t)
		ctx := t.Context()
		set(&j, &ctx)
		if _, err := Make(ctx, j); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
