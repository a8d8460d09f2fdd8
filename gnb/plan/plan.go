// Package plan predicts what a run takes before it runs: the memory of each worker, the bytes of a batch by stage and
// by source, and the time of a step, for the run's options and for others that may suit the machine better.
//
// # Basics
//
// gnb.Plan plans a run of gnb.Train and shows the plan in a cell; print the [Plan] for its tables:
//
//	ds := gnb.Must(gnb.Load(ctx, "planted"))
//	fmt.Println(gnb.Must(gnb.Plan(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})))
//
// The command "gnb plan" does the same in a terminal. gnb.Train calls [Check], which takes milliseconds, and refuses a run
// that cannot fit into memory.
//
// # How it predicts
//
// Memory is counted by a dry run: the sampler of the run samples its first steps, and the model passes over these batches forward and
// backward on a backend without memory and arithmetic (tensor.Dry), so that layers ask for the memory that they will ask for. What the
// run makes besides is added by the sizes that the run itself computes.
//
// Times are measured by a [Trial]: worker processes train for about a second and a half, by the code of the run and with its number of
// workers, and so for the other ways to run, each for a shorter time. The trial says how many CPUs other programs used meanwhile. A plan
// keeps no times: the next one measures again. A way that cannot be tried here is extrapolated from the trial, and says so: workers of
// other machines, whose network is added by its rate ([Over]), and ways for which no time was left.
//
// A task other than to classify nodes (numbers, whole graphs, links, triples, a program's own) makes its own network and batches. Its
// plan comes from trials alone: the memory is that of the trial's workers, and it needs a machine that can run the trial.
//
// # Caveats
//
// What a Program does beside its network is not known. Runs that do not fit, and runs on GPUs or with parts that are not on this
// machine, have no times.
package plan

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Plan is the prediction for a run.
type Plan struct {
	Dataset string `json:"dataset"`
	Nodes   int    `json:"nodes"`
	Edges   int64  `json:"edges"`
	Model   string `json:"model"`
	Task    string `json:"task,omitempty"` // if it is not to classify nodes: then all figures come from trials
	Unit    string `json:"unit,omitempty"` // what Batch counts in a plan of a task: "seeds", or for instance "graphs"
	Weights int    `json:"weights"`
	Fanouts []int  `json:"fanouts,omitempty"`
	Sampler string `json:"sampler,omitempty"` // if it is not uniform
	Batch   int    `json:"batch"`
	Steps   int    `json:"steps"` // of an epoch

	Choice
	// Hops is a virtual rank's mean share of a step, the seeds' hop first.
	Hops []Hop `json:"hops"`
	// Stages are those of a step on one worker. Sampling and fetching overlap the other stages: their times are those that a worker
	// waits for them.
	Stages []Stage `json:"stages"`
	// Sources say where a worker reads the rows of a step's input from.
	Sources []Source `json:"sources"`
	Memory  Memory   `json:"memory"`
	GPU     *GPU     `json:"gpu,omitempty"`     // of a run on GPUs, what each worker takes of its own
	Network *Network `json:"network,omitempty"` // that joins the machines, if it is known
	Trial   *Trial   `json:"trial,omitempty"`   // by which the times were measured; nil if there was none
	// Free and Limit are the machine's memory: what is free now, and the limit of the container, 0 for none.
	Free  int64 `json:"free"`
	Limit int64 `json:"limit,omitempty"`
	// Fit says whether the run fits: "fits", "near", if it takes more than nine tenths of the free memory, or "no".
	Fit string `json:"fit"`
	// Choices are this plan's and others that give the same or a similar result, the fastest first.
	Choices []Choice `json:"choices"`
	// Notes say what was measured, what the plan does not know, and what it advises.
	Notes []string `json:"notes,omitempty"`

	way    Way   // of the trial
	beside int64 // memory of a worker that its trial found and the dry run did not
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
	// StepSeconds and EpochSeconds are times, without and with the evaluation; 0 if unknown. Measured is set if steps of just this way
	// were timed; otherwise the times are extrapolated from those of the planned run.
	StepSeconds  float64 `json:"step_seconds"`
	EpochSeconds float64 `json:"epoch_seconds"`
	Measured     bool    `json:"measured"`
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
	passStage   = "forward and backward"
	aheadStage  = "network: rows and edges ahead of use"
	withinStage = "network: sum of gradients"
)

// Source is a place from which a batch's rows of features come.
type Source struct {
	Name  string `json:"name"` // "GPU", "host", "remote" or "disk"
	Bytes int64  `json:"bytes"`
}

const (
	// planSteps is the largest number of steps that are sampled, in planTime.
	planSteps = 64
	planTime  = 2 * time.Second
	// choiceSteps and choiceTime are those of each other choice.
	choiceSteps = 8
	choiceTime  = 300 * time.Millisecond
)

// processors is the number of threads that compute at the same time.
func processors() int { return parallel.CPUs() }

// Make plans a job. It samples a few steps, and tries some by the job's Trier. A job of several machines is planned as if all were like
// this one, joined by the network of [Over].
//
// A job of a task (Job.Task) is planned by trials alone.
func Make(ctx context.Context, j Job) (*Plan, error) {
	if j.Task != "" {
		return j.byTrial(ctx)
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	if err := j.begin(); err != nil {
		return nil, err
	}
	defer j.parts.close()
	j.Cooperative = j.cooperates() // one worker's batch is its own either way
	j.network, _ = ctx.Value(networkKey{}).(Network)
	m, unknown := machine.ReadMemory()
	j.free = m.Free
	if j.GPU {
		j.locate(ctx)
	}
	l, err := j.loads(ctx, planSteps, planTime)
	if err != nil {
		return nil, err
	}
	seeds := j.seedsOf()
	p := &Plan{
		Dataset: j.Data.Name(), Nodes: j.Data.Nodes(), Edges: j.Data.Edges(), Model: j.Model, Weights: l.params,
		Fanouts: j.Fanouts, Sampler: j.samplerName(), Batch: j.batch(seeds), Steps: j.steps(seeds), Hops: l.hops, Memory: j.memory(l),
	}
	p.Choice = j.choice(p.Memory)
	p.Same = true
	if p.Machines > 0 && j.network.BytesPerSecond > 0 {
		p.Network = &j.network
	}
	if unknown == nil {
		p.Free, p.Limit = m.Free, m.Limit
		p.Fit = fit(p.TotalBytes, m.Free)
	}
	if j.GPU {
		p.GPU = j.gpuMemory(l)
		j.at.Fit = p.GPU.Fit
	}
	if ok, why := j.tries(p.Fit); ok {
		if err := p.try(ctx, &j, l); err != nil {
			return nil, err
		}
	} else if why != "" {
		p.note("%s", why)
	}
	p.Sources = j.sources(l, m, p.Trial)
	p.Stages = j.stages(l, p.Trial)
	if text := j.policyNote(l); text != "" {
		p.note("%s", text)
	}
	if text := j.networkNote(l, p.Trial); text != "" {
		p.note("%s", text)
	}
	if j.Data.Graph == nil && j.lacksParts() {
		p.note("Parts that are not on this machine are taken to be like those that are here.")
	}
	p.advise(j)
	return p, nil
}

// try measures the planned run and the other ways.
func (p *Plan) try(ctx context.Context, j *Job, l *load) error {
	evaluates := j.Eval == "sampled" || float64(j.Data.Edges())*float64(len(j.Fanouts)) <= evaluatedEdges
	t, err := j.tried(ctx, TrialSpec{Seconds: trialSeconds, Evaluate: evaluates, Garbage: j.loopGarbage(l)})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.note("Times are unknown: steps of the run failed: %s.", strings.TrimPrefix(err.Error(), "gnb: "))
		return nil
	}
	p.Trial, p.Measured = &t, j.machines() == 1
	p.way, _ = j.way()
	p.correct(j, &t)
	p.StepSeconds = j.stepSeconds(l, &t)
	p.EpochSeconds = float64(p.Steps)*p.StepSeconds + j.evaluationSeconds(l, &t)
	p.trialNotes(j)
	if j.GPU {
		return nil
	}
	return p.others(ctx, *j, l)
}

// tried is a trial of a job, with the times of one machine's share of a step.
func (j *Job) tried(ctx context.Context, o TrialSpec) (Trial, error) {
	w, divisor := j.way()
	t, err := j.Trier.Try(ctx, w, o)
	if err != nil {
		return t, err
	}
	for _, s := range []*float64{&t.StepSeconds, &t.Range[0], &t.Range[1]} {
		*s /= divisor
	}
	for name := range t.Stages {
		t.Stages[name] /= divisor
	}
	return t, nil
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
	if j.cooperates() {
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

// stages returns the stages of a step on one worker, and those of its machine's network. t is nil if nothing was tried.
func (j *Job) stages(l *load, t *Trial) (stages []Stage) {
	v, params := int64(j.Virtual), 4*int64(l.params)
	var blocks int64
	for _, h := range l.hops {
		blocks += 8*int64(h.Destinations+1) + 12*int64(h.Edges) + 2*(h.Asked+h.Answered)
	}
	rows := int64(l.inputs) * v
	add := func(name string, bytes int64, of ...string) {
		s := Stage{Name: name, Bytes: bytes}
		for _, stage := range of {
			if t != nil {
				s.Seconds += t.Stages[stage]
			}
		}
		if s.Seconds > 0 || s.Bytes > 0 {
			stages = append(stages, s)
		}
	}
	add("sample", v*blocks, runfile.StageSample)
	if fetched := 2 * rows * rowBytes(j.Data); j.gathered() && j.Embedding == 0 {
		add("fetch", fetched, runfile.StageFetch)
	} else {
		add("fetch", 0, runfile.StageFetch)
	}
	add(passStage, v*l.moved, runfile.StageForward, runfile.StageBackward)
	add("all-reduce", params*int64(j.here()*j.Virtual+1)/int64(j.here()), runfile.StageReduce)
	add("wait for other workers", 0, runfile.StageIdle)
	add("optimizer", optimizerTables*params+learnedTables*rows*4*int64(j.Embedding), runfile.StageOptimizer)
	add("the rest", 0, runfile.StageProgram)
	moves := j.traffic(l, t)
	if moves.rounds > 0 {
		stages = append(stages, Stage{aheadStage, j.network.aheadSeconds(moves), moves.ahead, true})
	}
	if moves.waits > 0 {
		name := withinStage
		if j.Embedding > 0 {
			name += " and learned rows"
		}
		stages = append(stages, Stage{name, j.network.withinSeconds(moves), moves.within, true})
	}
	return stages
}

const (
	// optimizerTables is how often a step reads and writes the weights, their gradients, and both tables of the optimiser's state.
	optimizerTables = 7
	// learnedTables is how often a step reads and writes a learned row: the rows, their gradients as they are added up, and
	// both tables of the optimiser's state.
	learnedTables = 10
)

// stepSeconds is the time of a step: as tried, with the network of several machines. It brings the rows and edges of later steps
// meanwhile, and the sum of gradients waits for both.
func (j *Job) stepSeconds(l *load, t *Trial) float64 {
	moves := j.traffic(l, t)
	return max(t.StepSeconds, j.aheadSeconds(moves, t)) + j.network.withinSeconds(moves)
}

// aheadSeconds is the time from the first message to the last one of those by which a step's rows and edges come from other
// machines. Where the ranks sample together, their messages wait for the hop before.
func (j *Job) aheadSeconds(moves traffic, t *Trial) float64 {
	if moves.rounds == 0 || j.network.BytesPerSecond == 0 {
		return 0
	}
	seconds := j.network.aheadSeconds(moves)
	if j.Divided {
		seconds += t.Stages[runfile.StageSample]
	}
	return seconds
}

// evaluations is the number of evaluations of a run.
func (j *Job) evaluations() int {
	if j.Eval == "none" {
		return 0
	}
	every := max(1, j.EvalEvery)
	return (j.Epochs + every - 1) / every
}

// sources returns where the rows of a worker's share of a step come from. Rows that were not tried are asked for, as far as no cache has
// room for them.
func (j *Job) sources(l *load, m machine.Memory, t *Trial) []Source {
	inputs := int64(l.inputs * float64(j.Virtual))
	bytes, place := inputs*rowBytes(j.Data), "host"
	if j.GPU && !j.gathered() {
		place = "GPU"
	}
	if j.Embedding > 0 {
		bytes := inputs * 4 * int64(j.Embedding)
		remote := bytes - bytes*int64(j.here())/int64(j.Workers) // as if parts were no better than ranges
		return []Source{{place, bytes - remote}, {"remote", remote}, {"disk", 0}}
	}
	onGPU := int64(float64(bytes) * float64(j.gpuRows()) / float64(max(1, j.Data.Nodes()))) // those that are read most are more
	remote, disk := int64(l.remote*float64(bytes-onGPU)), int64(0)
	asked := min(int64(j.asked(l, t)*float64(rowBytes(j.Data))), bytes-onGPU)
	all := int64(j.Data.Nodes()) * rowBytes(j.Data)
	switch {
	case j.Disk:
		disk = asked
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

// asked is the number of rows that a worker asks for in a step, of other workers, servers or a disk: as counted by a trial, else those
// that others have and a cache has no room for.
func (j *Job) asked(l *load, t *Trial) float64 {
	if t != nil && t.Read > 0 {
		return t.Asked / float64(j.Workers)
	}
	share := l.remote
	if j.Disk {
		share = 1
	}
	return share * l.inputs * float64(j.Virtual) * (1 - float64(j.cache(j.sizes(l)))/float64(max(1, int64(j.Data.Nodes())*rowBytes(j.Data))))
}

// policyNote compares a cache of Belady's policy with the static one, whose window keeps the rows of more steps beside it;
// "" for a static one.
func (j *Job) policyNote(l *load) string {
	mine := j.sizes(l)
	if !mine.Alone || mine.Ahead == 0 {
		return ""
	}
	o := *j
	o.CachePolicy = ""
	static, here := o.sizes(l), int64(j.here())
	bytes := o.cache(static) + here*static.Window
	note := fmt.Sprintf("A static cache of this size, with its window of %d steps, would take %s", static.Ahead, phrase.Bytes(bytes))
	if here > 1 {
		note += ", and the workers would share the cache"
	}
	if equal := bytes/here - mine.Window; equal > mine.Cache {
		note += fmt.Sprintf("; with Belady's policy as much memory has room for a cache of %s for each worker", phrase.Bytes(equal))
	}
	return note + "."
}

// others adds the plan's choices, which are tried while there is time. One that cannot be planned is left out, with a note.
func (p *Plan) others(ctx context.Context, j Job, planned *load) error {
	p.Choices = []Choice{p.Choice}
	begin := time.Now()
	evaluation := p.EpochSeconds - float64(p.Steps)*p.StepSeconds
	try := func(o Job) error {
		l, err := o.loads(ctx, choiceSteps, choiceTime)
		var c Choice
		if err == nil {
			c = o.choice(o.memory(l))
			c.WorkerBytes, c.TotalBytes = c.WorkerBytes+p.beside, c.TotalBytes+p.beside*int64(o.here())
			if p.StepSeconds < longStep && time.Since(begin).Seconds() < choicesTime && fit(c.TotalBytes, p.Free) == "fits" {
				var t Trial
				t, err = o.tried(ctx, TrialSpec{Seconds: choiceSeconds})
				c.StepSeconds, c.Measured = t.StepSeconds, o.machines() == 1
			} else {
				c.StepSeconds = o.extrapolate(l, &j, planned, p.Trial)
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.note("%s cannot be planned: %s.", o.choice(Memory{}).describe(), strings.TrimPrefix(strings.TrimPrefix(err.Error(), "plan: "), "gnb: "))
			return nil
		}
		c.EpochSeconds = float64(o.steps(o.seedsOf()))*c.StepSeconds + evaluation
		c.Same = o.world() == j.world() && o.Precision == j.Precision && o.Cooperative == j.Cooperative
		p.Choices = append(p.Choices, c)
		return nil
	}
	for _, o := range j.alternatives() {
		if err := try(o); err != nil {
			return err
		}
	}
	sortChoices(p.Choices)
	if slices.ContainsFunc(p.Choices, func(c Choice) bool { return !c.Measured }) {
		p.note("Times marked ~ are extrapolated from the measured ones, by the edges of a worker's share and the CPUs that it has.")
	}
	return nil
}

// alternatives returns other ways to run a job.
func (j *Job) alternatives() (all []Job) {
	if j.machines() > 1 {
		o := *j // as many workers as a machine has
		o.Workers, o.Here, o.Virtual = j.here(), 0, j.world()/j.here()
		if j.Cooperative { // its workers have no virtual ranks
			o.Workers, o.Virtual = j.Workers, 1
		}
		return []Job{o}
	}
	parts := j.Data.Meta.Parts
	for workers := 1; workers <= max(processors(), j.Workers); workers *= 2 {
		for _, coop := range []bool{false, true} {
			o := *j
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
			o.Threads = max(1, processors()/workers)
			switch {
			case coop && (workers == 1 || j.Task != "" || o.Virtual > 1 || j.Data.Graph == nil || feed.NeedsSteps(j.Picker)), o.Workers == j.Workers && o.Virtual == j.Virtual && o.Cooperative == j.Cooperative:
				continue
			}
			all = append(all, o)
		}
	}
	if j.Precision == "float32" && !j.GPU && gemm.BF16() != "rounded" {
		o := *j
		o.Precision = "bf16"
		all = append(all, o)
	}
	return all
}

// advise adds what the plan does not know and advises.
func (p *Plan) advise(j Job) {
	if n := j.here() * j.Threads; n > 1 && n > processors() && !j.GPU {
		p.note("The workers have %d threads and the machine %d CPUs.", n, processors())
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
