// Package plan predicts what a run takes before it runs: the memory of each worker, the bytes of a batch by stage and
// by source, and the time of a step, for the run's options and for others that may suit the machine better.
//
// # Basics
//
// gnb.Plan plans a run of gnb.Train and shows the plan in a cell; print the [Plan] for its tables:
//
//	ds := gnb.Must(gnb.Load(ctx, "planted"))
//	fmt.Println(gnb.Must(gnb.Plan(ctx, ds, gnb.SAGE, gnb.TrainOptions{Workers: 2})))
//
// The command "gnb plan" does the same in a terminal. gnb.Train calls [Check], which takes milliseconds, and refuses a run
// that cannot fit into memory.
//
// # How it predicts
//
// The plan samples the first steps of the run: the sampler gives a step the same batch wherever it runs. It then passes the model over
// these batches forward and backward on a backend without memory and arithmetic (tensor.Dry): layers ask for the memory that they
// will ask for, and the backend counts their work. The time follows from this machine's [Rates], which are measured once and kept in a
// file, from the time that sampling these batches took, and from a trial: for about a second, if the run fits into the free memory, the
// plan computes steps in this process, and corrects what the rates say by what they took. Other ways to run are corrected alike.
//
// # Caveats
//
// The time is that of an otherwise idle machine. What a Program does beside its network is not known. Of runs on GPUs the plan has
// the memory ([GPU]) and no times: it does not know the rates of a GPU.
package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops/gemm"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Plan is the prediction for a run.
type Plan struct {
	Dataset string `json:"dataset"`
	Nodes   int    `json:"nodes"`
	Edges   int64  `json:"edges"`
	Model   string `json:"model"`
	Weights int    `json:"weights"`
	Fanouts []int  `json:"fanouts"`
	Sampler string `json:"sampler,omitempty"` // if it is not uniform
	Batch   int    `json:"batch"`
	Steps   int    `json:"steps"` // of an epoch

	Choice
	// Hops is a virtual rank's mean share of a step, the seeds' hop first.
	Hops []Hop `json:"hops"`
	// Stages are those of a step on one worker. Preparing batches overlaps the other stages.
	Stages []Stage `json:"stages"`
	// Sources say where a worker reads the rows of a step's input from.
	Sources []Source `json:"sources"`
	Memory  Memory   `json:"memory"`
	GPU     *GPU     `json:"gpu,omitempty"`     // of a run on GPUs, what each worker takes of its own
	Network *Network `json:"network,omitempty"` // that joins the machines, if it is known
	// StepRange are the times of a step by the fastest and by the slowest of the groups of steps that were computed to correct the times.
	StepRange []float64 `json:"step_seconds_range,omitempty"`
	// Tried is the number of steps that were computed to correct the times, 0 if none were.
	Tried int `json:"tried,omitempty"`
	// Free and Limit are the machine's memory: what is free now, and the limit of the container, 0 for none.
	Free  int64 `json:"free"`
	Limit int64 `json:"limit,omitempty"`
	// Fit says whether the run fits: "fits", "near", if it takes more than nine tenths of the free memory, or "no".
	Fit string `json:"fit"`
	// Choices are this plan's and others that give the same or a similar result, the fastest first.
	Choices []Choice `json:"choices"`
	// Notes say what the plan does not know, and what it advises.
	Notes []string `json:"notes,omitempty"`
	Rates *Rates   `json:"rates,omitempty"`
}

// Choice is a way to run.
type Choice struct {
	Workers   int    `json:"workers"`
	Machines  int    `json:"machines,omitempty"` // that have the workers, if they are several
	Virtual   int    `json:"virtual_ranks"`
	Threads   int    `json:"threads"`
	Mode      string `json:"mode"` // "independent" or "cooperative"
	Precision string `json:"precision"`
	Topology  string `json:"topology"` // "replicated" or "divided"
	// StepSeconds and EpochSeconds are predicted times, without and with the evaluation; 0 if unknown.
	StepSeconds  float64 `json:"step_seconds"`
	EpochSeconds float64 `json:"epoch_seconds"`
	WorkerBytes  int64   `json:"worker_bytes"` // memory of one worker
	TotalBytes   int64   `json:"total_bytes"`  // of all workers of a machine and what they share
	// Same is set if the weights are those of the planned run, to the bit.
	Same bool `json:"same"`
}

// Stage is one stage of a step.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"` // memory traffic or, on a network, what a machine sends
	// Network is set for what a machine sends to others and gets from them. Rows and edges that are asked for before the step
	// overlap the other stages of earlier steps.
	Network bool `json:"network,omitempty"`
}

const (
	messageStage = "messages to other workers"
	aheadStage   = "network: rows and edges ahead of use"
	withinStage  = "network: sum of gradients"
)

// Source is a place from which a batch's rows of features come.
type Source struct {
	Name  string `json:"name"` // "GPU", "host", "remote" or "disk"
	Bytes int64  `json:"bytes"`
}

const (
	// unsteady is the ratio of times of a step from which on a plan states both.
	unsteady = 1.3
	// planSteps is the largest number of steps that are sampled, in planTime.
	planSteps = 64
	planTime  = 2 * time.Second
	// choiceSteps and choiceTime are those of each other choice.
	choiceSteps = 8
	choiceTime  = 300 * time.Millisecond
)

// Make plans a job. It starts no worker; it samples and computes a few steps, and measures the machine's rates if there are none yet.
// A job of several machines is planned as if all were like this one, joined by the network of [Over].
func Make(ctx context.Context, j Job) (*Plan, error) { return planned(ctx, j, Measured) }

// planned is Make with the machine's rates; without them it has no times and no choices.
func planned(ctx context.Context, j Job, measured func(again bool) (*Rates, error)) (*Plan, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	if err := j.begin(); err != nil {
		return nil, err
	}
	defer j.parts.close()
	if j.Workers == 1 { // which is a batch of its own either way
		j.Cooperative = false
	}
	var rates *Rates
	var crowded error // there is no room to measure rates
	if measured != nil && !j.GPU {
		var err error
		if rates, err = measured(false); errors.Is(err, ErrNoRoom) {
			crowded = err
		} else if err != nil {
			return nil, err
		}
	}
	j.counts = allCounts
	j.network, _ = ctx.Value(networkKey{}).(Network)
	m, unknown := machine.ReadMemory()
	j.free, j.spread = m.Free, trialTime
	if j.GPU && gpus != nil {
		gpus.locate(ctx, &j, m.Free)
	}
	l, err := j.loads(ctx, planSteps, planTime)
	if err != nil {
		return nil, err
	}
	seeds := j.seedsOf()
	p := &Plan{
		Dataset: j.Data.Name(), Nodes: j.Data.Nodes(), Edges: j.Data.Edges(), Model: j.Model, Weights: l.params,
		Fanouts: j.Fanouts, Sampler: j.samplerName(), Batch: j.batch(seeds), Steps: j.steps(seeds), Hops: l.hops, Rates: rates,
	}
	p.Memory = j.memory(l, m.Free)
	p.Choice = j.choice(p.Memory)
	if p.Machines > 0 && j.network.BytesPerSecond > 0 {
		p.Network = &j.network
	}
	p.Same = true
	p.Sources = j.sources(l, m)
	if unknown == nil {
		p.Free, p.Limit = m.Free, m.Limit
		p.Fit = fit(p.TotalBytes, m.Free)
	}
	if text := j.policyNote(l, m.Free); text != "" {
		p.note("%s", text)
	}
	if j.GPU && gpus != nil {
		p.GPU = gpus.memory(&j, l)
	}
	if rates != nil && !j.far() && (p.Fit == "" || p.Fit == "fits") {
		t, err := j.try(ctx, l, rates)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		case t.Steps > 0:
			own := *rates
			own.Together, p.Tried = t.Factor, t.Steps
			rates = &own
			for _, group := range []float64{t.Least, t.Most} {
				at := own
				at.Together *= group / t.Seconds
				p.StepRange = append(p.StepRange, j.stepSeconds(l, &at))
			}
		}
	}
	p.Stages = j.stages(l, rates)
	if rates != nil {
		p.StepSeconds = j.stepSeconds(l, rates)
		p.EpochSeconds = float64(p.Steps)*p.StepSeconds + j.evaluationSeconds(l, rates)
		if err := p.others(ctx, j, rates); err != nil {
			return nil, err
		}
	}
	if p.Tried > 0 {
		p.note("Times are corrected by those of %s, which this plan has computed.", phrase.Count(p.Tried, "step"))
		if r := p.StepRange; r[1] > unsteady*r[0] {
			p.note("This machine's speed changed meanwhile: by the fastest and the slowest %d of these steps, a step takes %s to %s ms.", groupSteps, ms(r[0]), ms(r[1]))
		}
	}
	if text := j.networkNote(l, rates); text != "" {
		p.note("%s", text)
	}
	if j.Data.Graph == nil && j.lacksParts() {
		p.note("Parts that are not on this machine are taken to be like those that are here.")
	}
	p.advise(j)
	if crowded != nil {
		p.note("Times are unknown: %s.", strings.TrimPrefix(crowded.Error(), "plan: "))
	}
	return p, nil
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// choice describes a job.
func (j *Job) choice(m Memory) Choice {
	c := Choice{
		Workers: j.Workers, Virtual: j.Virtual, Threads: j.Threads, Mode: "independent", Precision: j.Precision, Topology: "replicated",
		WorkerBytes: m.PerWorker(), TotalBytes: m.Total(j.here()),
	}
	if n := j.machines(); n > 1 {
		c.Machines = n
	}
	if j.Cooperative && j.Workers > 1 {
		c.Mode = "cooperative"
	}
	if j.Divided {
		c.Topology = "divided"
	}
	return c
}

// fit says whether a run that takes bytes fits into free.
func fit(bytes, free int64) string {
	switch {
	case float64(bytes) > surely*float64(free):
		return "no"
	case float64(bytes) > near*float64(free):
		return "near"
	}
	return "fits"
}

const (
	// A prediction within 15 % of the truth surely exceeds the free memory only if it is this much larger.
	surely = 1 / 0.85
	near   = 0.9
)

// stages returns the stages of a step on one worker, and those of its machine's network.
func (j *Job) stages(l *load, r *Rates) []Stage {
	stages := j.ownStages(l, r)
	t := j.traffic(l)
	if t.rounds > 0 {
		stages = append(stages, Stage{aheadStage, j.network.aheadSeconds(t), t.ahead, true})
	}
	if t.waits > 0 {
		name := withinStage
		if j.Embedding > 0 {
			name += " and learned rows"
		}
		stages = append(stages, Stage{name, j.network.withinSeconds(t), t.within, true})
	}
	return stages
}

// ownStages returns those of them that a machine's processors do.
func (j *Job) ownStages(l *load, r *Rates) []Stage {
	v := float64(j.Virtual)
	var blocks int64
	for _, h := range l.hops {
		blocks += 8*int64(h.Destinations+1) + 12*int64(h.Edges)
	}
	params, rows := 4*int64(l.params), int64(l.inputs*v)
	stages := []Stage{
		{Name: "sample", Bytes: int64(v) * blocks},
		{Name: "forward and backward", Bytes: int64(v) * (l.last.work.RowBytes + l.last.work.StreamBytes)},
		{Name: "all-reduce", Bytes: params * int64(j.here()*j.Virtual+1) / int64(j.here())},
		{Name: "optimizer", Bytes: optimizerTables*params + learnedTables*rows*4*int64(j.Embedding)},
	}
	if j.gathered() {
		stages = slices.Insert(stages, 1, Stage{Name: "fetch", Bytes: 2 * rows * rowBytes(j.Data)})
	}
	if asks := j.messages(l); asks.rounds > 0 {
		stages = slices.Insert(stages, 1, Stage{Name: messageStage, Bytes: 2 * asks.ahead})
	}
	for i := range stages {
		s := &stages[i]
		if s.Seconds = 0; r == nil {
			continue
		}
		switch s.Name {
		case "sample":
			s.Seconds = r.Together * v * l.busy * l.sampling * j.crowded(r)
		case messageStage:
			s.Seconds = j.messageSeconds(l, r)
		case "fetch":
			s.Seconds = r.Together * j.fetchSeconds(l, r)
		case "forward and backward":
			s.Seconds = r.Together * v * j.computeSeconds(l, r)
		case "all-reduce":
			s.Seconds = r.reduceSeconds(j.here(), l.params)
		case "optimizer":
			s.Seconds = j.optimizerSeconds(l, r)
			if j.Embedding > 0 {
				s.Seconds += r.Together * j.crowded(r) * float64(rows) * between(rowWidths, r.Learned, 4*float64(j.Embedding))
			}
		}
	}
	return stages
}

// optimizerSeconds is the time in which the optimiser changes the weights. It reads and writes its state too.
func (j *Job) optimizerSeconds(l *load, r *Rates) float64 {
	return j.slower(r) * float64(optimizerTables*4*l.params) / r.FarStream
}

// optimizerTables is how often a step reads and writes the weights, their gradients, and both tables of the optimiser's state.
const optimizerTables = 7

// learnedTables is how often a step reads and writes a learned row: the rows, their gradients as they are added up, and
// both tables of the optimiser's state.
const learnedTables = 10

// crowded is the factor by which a thread is slower because there are more threads than cores.
func (j *Job) crowded(r *Rates) float64 {
	return max(1, float64(j.Threads*j.here())/float64(r.Threads))
}

// fetchSeconds is the time in which a worker gets the rows of a step that other workers of this machine have, and copies
// all of them.
func (j *Job) fetchSeconds(l *load, r *Rates) float64 {
	width := float64(rowBytes(j.Data))
	rows, away := l.busy*l.inputs*float64(j.Virtual), 0.0
	if !j.Disk && !j.far() {
		away = l.busy * l.window.asked * float64(j.Virtual)
	}
	return j.crowded(r) * ((rows-away)*between(rowWidths, r.Own, width) + away*between(rowWidths, r.Sent, width))
}

// slower is the factor by which a worker's threads are slower than all of the machine's.
func (j *Job) slower(r *Rates) float64 {
	busy := max(j.Threads*j.here(), 1) // threads that compute at the same time
	return max(1, float64(r.Threads)/float64(j.Threads), float64(busy)/float64(j.Threads))
}

// computeSeconds is the time of a share's forward and backward pass.
func (j *Job) computeSeconds(l *load, r *Rates) float64 {
	return l.busy * (l.derived*j.crowded(r) + j.slower(r)*(float64(l.made)/r.FarStream+r.passSeconds(l.last.costs, j.Precision == "bf16")/l.whole))
}

// partCost is the time in which goroutines begin and end a part of an operation.
const partCost = 2e-6

// stepSeconds is the time of a step. The preparation of batches is not hidden by the other stages, since all take the same
// cores. The network brings the rows and edges of later steps meanwhile, and the sum of gradients waits for both.
func (j *Job) stepSeconds(l *load, r *Rates) float64 {
	return max(j.ownSeconds(l, r), j.aheadSeconds(l, r)) + j.network.withinSeconds(j.traffic(l))
}

// ownSeconds is the time of a step without networks.
func (j *Job) ownSeconds(l *load, r *Rates) float64 {
	sum := stepCost
	for _, s := range j.ownStages(l, r) {
		sum += s.Seconds
	}
	return sum
}

// aheadSeconds is the time from the first message to the last one of those by which a step's rows and edges come from other
// machines. Where the ranks sample together, their messages wait for the hop before.
func (j *Job) aheadSeconds(l *load, r *Rates) float64 {
	t := j.traffic(l)
	if t.rounds == 0 || j.network.BytesPerSecond == 0 {
		return 0
	}
	seconds := j.network.aheadSeconds(t)
	if j.Divided {
		for _, s := range j.ownStages(l, r) {
			if s.Name == "sample" || s.Name == messageStage {
				seconds += s.Seconds
			}
		}
	}
	return seconds
}

// messages returns what a worker with a divided topology asks the others, and answers, for a step.
func (j *Job) messages(l *load) (t traffic) {
	if j.Divided && j.Workers > 1 {
		for _, h := range l.hops {
			t.ahead += int64(j.Virtual) * (h.Asked + h.Answered)
			t.rounds += 2 * j.Virtual
		}
	}
	return t
}

// messageSeconds is the time in which a worker writes and reads these messages, and waits for those of the workers of its machine.
func (j *Job) messageSeconds(l *load, r *Rates) float64 {
	t := j.messages(l)
	seconds := j.crowded(r) * float64(t.ahead) / r.MessageBytes
	if j.here() > 1 {
		seconds += float64(t.rounds) * r.Message
	}
	return seconds
}

// stepCost is the time of a step's other work: events, position and bookkeeping.
const stepCost = 50e-6

// evaluationSeconds is the mean time that evaluations take in an epoch.
func (j *Job) evaluationSeconds(l *load, r *Rates) float64 {
	e := &l.evalled
	once := e.last.seconds + j.slower(r)*r.passSeconds(e.last.costs, false)
	switch j.Eval {
	case "full":
		once *= max(1, e.times)
	case "sampled":
		once = float64(e.steps) * (once + j.crowded(r)*e.sampling)
	default:
		return 0
	}
	return once * float64(j.evaluations()) / float64(max(1, j.Epochs))
}

// evaluates reports whether an evaluation follows an epoch, as in gnb.Train, and evaluations is the number of them.
func (j *Job) evaluates(epoch int) bool {
	return j.Eval != "none" && ((epoch+1)%max(1, j.EvalEvery) == 0 || epoch+1 == j.Epochs)
}

func (j *Job) evaluations() int {
	if j.Eval == "none" {
		return 0
	}
	every := max(1, j.EvalEvery)
	return (j.Epochs + every - 1) / every
}

// sources returns where the rows of a step's input come from, on a machine with this memory.
func (j *Job) sources(l *load, m machine.Memory) []Source {
	bytes := int64(l.inputs*float64(j.Virtual)) * rowBytes(j.Data)
	place := "host"
	if j.GPU && !j.gathered() {
		place = "GPU"
	}
	if j.Embedding > 0 {
		bytes := int64(l.inputs*float64(j.Virtual)) * 4 * int64(j.Embedding)
		remote := bytes - bytes*int64(j.here())/int64(j.Workers) // as if parts were no better than ranges
		return []Source{{place, bytes - remote}, {"remote", remote}, {"disk", 0}}
	}
	onGPU := int64(l.onGPU * float64(bytes))
	remote := int64((l.remote - l.awayOnGPU) * float64(bytes))
	asked := min(int64(l.window.asked*float64(j.Virtual))*rowBytes(j.Data), bytes-onGPU)
	var disk int64
	all := int64(j.Data.Nodes()) * rowBytes(j.Data)
	switch {
	case j.Disk: // of the rows that are neither in the cache nor in the window, each is read by one worker of the machine
		disk = min(asked, bytes-onGPU-remote)
	case j.far():
		remote = asked
	case m.Free > 0 && j.Data.Dir() != "" && all > m.Free:
		disk = int64(float64(bytes-remote-onGPU) * (1 - float64(m.Free)/float64(all)))
	}
	sources := []Source{{place, bytes - remote - disk - onGPU}, {"remote", remote}, {"disk", disk}}
	if j.GPU && j.gathered() {
		sources = append([]Source{{"GPU", onGPU}}, sources...)
	}
	return sources
}

// others adds the plan's choices. One that cannot be planned is left out, with a note.
func (p *Plan) others(ctx context.Context, j Job, r *Rates) error {
	p.Choices = []Choice{p.Choice}
	try := func(o Job) error {
		l, err := o.loads(ctx, choiceSteps, choiceTime)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.note("%s cannot be planned: %s.", o.choice(Memory{}).describe(), strings.TrimPrefix(err.Error(), "plan: "))
			return nil
		}
		c := o.choice(o.memory(l, p.Free))
		c.StepSeconds = o.stepSeconds(l, r)
		c.EpochSeconds = float64(o.steps(o.seedsOf()))*c.StepSeconds + o.evaluationSeconds(l, r)
		c.Same = o.world() == j.world() && o.Precision == j.Precision && o.Cooperative == j.Cooperative
		p.Choices = append(p.Choices, c)
		return nil
	}
	if j.machines() > 1 {
		o := j // as many workers as a machine has
		o.Workers, o.Here, o.Virtual = j.here(), 0, j.world()/j.here()
		if j.Cooperative { // its workers have no virtual ranks
			o.Workers, o.Virtual = j.Workers, 1
		}
		if err := try(o); err != nil {
			return err
		}
		sortChoices(p.Choices)
		return nil
	}
	parts := j.Data.Meta.Parts
	for workers := 1; workers <= max(r.Threads, j.Workers); workers *= 2 {
		for _, coop := range []bool{false, true} {
			o := j
			o.Workers, o.Here, o.Virtual, o.Cooperative = workers, 0, 1, coop
			if !coop && j.world()%workers == 0 {
				o.Virtual = j.world() / workers // the same weights
			}
			if parts != nil {
				if parts.Count%workers != 0 {
					continue
				}
				o.Virtual = parts.Count / workers
			}
			o.Threads = max(1, r.Threads/workers)
			switch {
			case coop && (workers == 1 || o.Virtual > 1 || j.Data.Graph == nil || feed.NeedsSteps(j.Picker)), o.Workers == j.Workers && o.Virtual == j.Virtual && o.Cooperative == j.Cooperative:
				continue
			}
			if err := try(o); err != nil {
				return err
			}
		}
	}
	if j.Precision == "float32" && gemm.BF16() != "rounded" {
		o := j
		o.Precision = "bf16"
		if err := try(o); err != nil {
			return err
		}
	}
	sortChoices(p.Choices)
	return nil
}

// advise adds what the plan does not know and advises.
func (p *Plan) advise(j Job) {
	if j.here()*j.Threads > 1 && p.Rates != nil && j.here()*j.Threads > p.Rates.Threads {
		p.note("The workers have %d threads and the machine %d CPUs.", j.here()*j.Threads, p.Rates.Threads)
	}
	if len(p.Choices) == 0 {
		return
	}
	fits := func(c Choice) bool { return p.Fit == "" || fit(c.TotalBytes, p.Free) == "fits" }
	at := slices.IndexFunc(p.Choices, fits)
	if at < 0 {
		p.note("None of these ways to run fits.")
		return
	}
	best := p.Choices[at]
	switch gain := p.StepSeconds / math.Max(best.StepSeconds, 1e-12); {
	case !fits(p.Choice):
		p.note("%s would fit, with %s, and take %.0f %% of the time of a step.", best.describe(), phrase.Bytes(best.TotalBytes), 100/gain)
	case gain > 1.1 && best.EpochSeconds < p.EpochSeconds:
		p.note("%s would take %.0f %% of the time.", best.describe(), 100/gain)
	}
}
