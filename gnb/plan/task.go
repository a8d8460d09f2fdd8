package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// trialItem is what the workers of a trial took that has no part of its own.
const trialItem = "process, batches, network and garbage, as tried"

// byTrial plans a job whose network and batches only its task can make: all figures come from trials.
func (j *Job) byTrial(ctx context.Context) (*Plan, error) {
	if err := j.canBeTried(ctx); err != nil {
		return nil, err
	}
	defer j.parts.close()
	m, unknown := machine.ReadMemory()
	j.free = m.Free
	begin := time.Now()
	t, unmeasured, err := j.firstTrial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s is planned by trying it, and steps of the run failed: %w", j.Task, err)
	}
	l := j.loadOf(&t)
	p := &Plan{
		Dataset: j.Data.Name(), Nodes: j.Data.Nodes(), Edges: j.Data.Edges(), Model: cmp.Or(t.Model, j.Task), Task: j.Task, Unit: t.Unit, Weights: t.Weights,
		Batch: t.Batch, Steps: t.EpochSteps, Hops: t.Hops, Trial: &t,
	}
	p.way, _ = j.way()
	p.Memory = j.triedMemory(l, &t)
	p.Choice = j.choice(p.Memory)
	p.Same, p.Measured, p.StepSeconds = true, true, t.StepSeconds
	p.EpochSeconds = j.epochSeconds(&t, t.Evaluation)
	if unknown == nil {
		p.Free, p.Limit = m.Free, m.Limit
		p.Fit = fit(p.TotalBytes, m.Free)
	}
	if p.Stages = j.stages(l, &t); !j.GPU {
		p.Sources = j.sources(l, m, &t)
	}
	p.trialNotes(j)
	p.note("Memory is that of the trial's workers, with what their heaps grow by in the whole run; it is not counted part by part, because only the task knows its batches.")
	if unmeasured != "" {
		p.note("%s", unmeasured)
	}
	if j.GPU {
		p.note("What a worker takes of its GPU is not known for this task.")
		return p, nil
	}
	if err := p.othersByTrial(ctx, j, begin); err != nil {
		return nil, err
	}
	p.advise(*j)
	return p, nil
}

// canBeTried returns an error for a job whose workers cannot run here.
func (j *Job) canBeTried(ctx context.Context) error {
	why := ""
	switch {
	case j.Data == nil:
		return errors.New("plan: it needs a dataset; get one from gnb.Load")
	case j.Trier == nil || j.Task == "":
		return errors.New("plan: it needs a model and fanouts, or a task to try")
	case j.machines() > 1:
		why = "its workers are on several machines; leave --machines (Cluster) out, and plan one of them"
	case j.GPU && GPUOf(ctx) > 0:
		why = "the GPUs of --gpu-memory are not here; plan on a machine that has them"
	default:
		if err := j.begin(); err != nil {
			return err
		}
		if j.Data.Meta.Parts != nil && !j.far() && j.lacksParts() {
			j.parts.close()
			why = "some parts are on other machines; plan where all are"
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s on %s is planned by trying it, and %s", j.Task, j.Data.Name(), why)
}

// firstTrial tries the planned run, without an evaluation if that takes too long; unmeasured then says so.
func (j *Job) firstTrial(ctx context.Context) (t Trial, unmeasured string, err error) {
	if j.evaluations() == 0 {
		t, err = j.tried(ctx, TrialSpec{Seconds: trialSeconds})
		return t, "", err
	}
	t, err = j.tried(ctx, TrialSpec{Seconds: trialSeconds, Evaluate: true})
	if !errors.Is(err, ErrTrialTook) {
		if err == nil && t.Evaluation == 0 {
			unmeasured = "Nothing is evaluated: there is no split to measure."
		}
		return t, unmeasured, err
	}
	long := err
	t, err = j.tried(ctx, TrialSpec{Seconds: trialSeconds})
	return t, fmt.Sprintf("The time and the memory of an evaluation are unknown and not in the plan: steps and an evaluation were given up because %s.", strings.TrimPrefix(long.Error(), "gnb: ")), err
}

// loadOf is what the batches of a virtual rank took in a trial.
func (j *Job) loadOf(t *Trial) *load {
	l := &load{shares: 1, hops: t.Hops, params: t.Weights}
	for _, h := range t.Hops {
		l.edges += float64(h.Edges)
	}
	if n := len(t.Hops); n > 0 {
		l.seeds, l.inputs = float64(t.Hops[0].Destinations), float64(t.Hops[n-1].Sources)
	}
	return l
}

// triedMemory divides what the workers of a trial took among what each has and what they share.
func (j *Job) triedMemory(l *load, t *Trial) Memory {
	whole := j.memory(l)
	m := Memory{Mapped: whole.Mapped}
	took := t.WorkerBytes + t.Garbage
	for _, i := range whole.Shared {
		switch {
		case i.Name == outputsItem:
			continue // in the workers' memory
		case i.Name == launcherItem || strings.HasPrefix(i.Name, copiesItem):
		case i.Name == datasetItem: // which this process maps too
			took -= i.Bytes / 2 * int64(j.Workers) / int64(j.Workers+1)
		default:
			took -= i.Bytes
		}
		m.Shared = append(m.Shared, i)
	}
	m.Worker = []Item{{trialItem, max(took/int64(j.Workers), processBytes)}}
	return m
}

// epochSeconds is the time of an epoch with its share of evaluations, which take a time each.
func (j *Job) epochSeconds(t *Trial, evaluation float64) float64 {
	return float64(t.EpochSteps)*t.StepSeconds + evaluation*float64(j.evaluations())/float64(max(1, j.Epochs))
}

// othersByTrial adds the plan's choices, which are tried while there is time. One that fails is left out, with a note.
func (p *Plan) othersByTrial(ctx context.Context, j *Job, begin time.Time) error {
	p.Choices = []Choice{p.Choice}
	evaluate := p.Trial.Evaluation > 0 && p.Trial.Evaluation < choiceSeconds
	left := 0
	for _, o := range j.alternatives() {
		if p.StepSeconds >= longStep || time.Since(begin).Seconds() > choicesTime || p.Fit == "no" || p.Fit == "near" {
			left++
			continue
		}
		t, err := o.tried(ctx, TrialSpec{Seconds: choiceSeconds, Evaluate: evaluate})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.note("%s cannot be planned: %s.", o.choice(Memory{}).describe(), strings.TrimPrefix(err.Error(), "gnb: "))
			continue
		}
		c := o.choice(o.triedMemory(o.loadOf(&t), &t))
		if !evaluate && c.WorkerBytes < p.WorkerBytes { // it has not evaluated
			c.TotalBytes += (p.WorkerBytes - c.WorkerBytes) * int64(o.here())
			c.WorkerBytes = p.WorkerBytes
		}
		c.Measured, c.StepSeconds = true, t.StepSeconds
		c.EpochSeconds = o.epochSeconds(&t, cmp.Or(t.Evaluation, p.Trial.Evaluation))
		c.Same = o.world() == j.world() && o.Precision == j.Precision
		p.Choices = append(p.Choices, c)
	}
	sortChoices(p.Choices)
	if left > 0 {
		p.note("%s not tried, because a step takes long, or the run nearly all memory.", phrase.Count(left, "other way")+map[bool]string{true: " was", false: " were"}[left == 1])
	}
	return nil
}
