package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Trier computes steps of a job in worker processes, by the code of the run. Package gnb has the implementation.
type Trier interface {
	Try(ctx context.Context, w Way, o TrialSpec) (Trial, error)
}

// Way is how a job is divided among workers.
type Way struct {
	Workers, Virtual, Threads int
	Cooperative               bool
	Precision                 string
}

// TrialSpec bound a trial.
type TrialSpec struct {
	Seconds  float64 // in which steps are timed, about
	Evaluate bool    // evaluate after the steps
	Garbage  int64   // of a worker in the whole run, besides that of its steps and evaluations
}

// Trial is what a few steps took that worker processes computed for the plan, with the load that they were measured under. A plan
// keeps it nowhere: each plan measures anew.
type Trial struct {
	Steps int `json:"steps"` // that were timed, after those that warm up
	// StepSeconds is the median over groups of steps, and Range the least and the largest of them.
	StepSeconds float64            `json:"step_seconds"`
	Range       [2]float64         `json:"step_seconds_range"`
	Stages      map[string]float64 `json:"stages"`                       // seconds of a step, the mean over the workers
	Evaluation  float64            `json:"evaluation_seconds,omitempty"` // 0 if there was none
	// Read are the rows of features that all workers read for a step, and Asked those of them that came from other workers, servers
	// or a disk. Both are 0 if each worker has all rows in memory.
	Read  float64 `json:"rows_read,omitempty"`
	Asked float64 `json:"rows_asked,omitempty"`
	// WorkerBytes is the largest memory of all workers in the trial, and Garbage what their heaps will grow by in the whole run.
	WorkerBytes int64 `json:"worker_bytes"`
	Garbage     int64 `json:"garbage"`
	// OtherCPUs is the number of CPUs that other programs used meanwhile, of CPUs; both are 0 if the system does not say it.
	OtherCPUs float64 `json:"other_cpus"`
	CPUs      float64 `json:"cpus"`

	// What the trial's workers computed: the name and the number of weights of the network, the mean sizes of a batch's hops, what a
	// step has Batch of, such as "graphs" ("" if steps are over the whole graph), and the number of steps of an epoch.
	Model      string `json:"-"`
	Weights    int    `json:"-"`
	Hops       []Hop  `json:"-"`
	Unit       string `json:"-"`
	Batch      int    `json:"-"`
	EpochSteps int    `json:"-"`
}

// ErrTrialTook is matched by the error of a trial that was given up after too long a time.
var ErrTrialTook = errors.New("they took more than")

const (
	// trialSeconds is the time of the planned run's timed steps, and choiceSeconds that of another way's. After choicesTime no
	// other way is tried.
	trialSeconds, choiceSeconds = 1.5, 0.7
	choicesTime                 = 12.0
	// longStep is the time of a step from which on other ways are not tried.
	longStep = 2.0
	// unsteady is the ratio of times of a step from which on a plan states both.
	unsteady = 1.3
	// busy is the share of the CPUs that other programs use from which on a plan says so.
	busy = 0.1
	// evaluatedEdges is the number of edges, over all layers, up to which a trial evaluates with all neighbours.
	evaluatedEdges = 60e6
	// forwardShare is the share of a training step's time that its forward pass takes, about: an evaluation has no backward pass.
	forwardShare = 1.0 / 3
)

// busyNote says that a trial was measured on a busy machine; "" if it was not.
func (t *Trial) busyNote() string {
	if t.CPUs == 0 || t.OtherCPUs < busy*t.CPUs {
		return ""
	}
	return fmt.Sprintf("Other programs used %.1f of %.3g CPUs during the trial: these are times under that load. Plan again when the machine is idle; nothing is kept from this plan.", t.OtherCPUs, t.CPUs)
}

// way is how a trial runs a job here. The workers of other machines are virtual ranks of this machine's, for as many steps: a machine's
// share of a step takes the divisor's part of the time.
func (j *Job) way() (w Way, divisor float64) {
	w = Way{j.Workers, j.Virtual, j.Threads, j.Cooperative && j.Workers > 1, j.Precision}
	n := j.machines()
	if n == 1 {
		return w, 1
	}
	if !w.Cooperative && j.Workers%n == 0 {
		w.Workers, w.Virtual = j.here(), j.Virtual*n
	}
	return w, float64(n)
}

// tries reports whether a trial can run a job here, and why not.
func (j *Job) tries(fit string) (ok bool, why string) {
	switch {
	case j.Trier == nil:
		return false, ""
	case fit == "no" || j.at.Fit == "no":
		return false, "Times are unknown: nothing is tried of a run that does not fit."
	case fit == "near" || j.at.Fit == "near":
		return false, "Times are unknown: nothing is tried of a run that is near the limit."
	case j.GPU && j.imagined:
		return false, "Times are unknown: these GPUs are not here to try."
	case j.Data.Meta.Parts != nil && !j.far() && j.lacksParts():
		return false, "Times are unknown: parts that are on other machines cannot be tried here."
	}
	return true, ""
}

// extrapolate predicts another way's time of a step from one that was tried: by the edges of a worker's share, and by the threads
// that a worker has of the machine's CPUs.
func (o *Job) extrapolate(l *load, j *Job, tried *load, t *Trial) float64 {
	cpus := float64(processors())
	threads := func(j *Job) float64 { return math.Min(float64(j.Threads), cpus/float64(j.here())) }
	work := func(j *Job, l *load) float64 { return math.Max(1, l.edges*float64(j.Virtual)) / threads(j) }
	return t.StepSeconds * work(o, l) / work(j, tried)
}

// evaluationSeconds is the mean time that evaluations take in an epoch: as tried, or by the edges that they pass.
func (j *Job) evaluationSeconds(l *load, t *Trial) float64 {
	if j.evaluations() == 0 {
		return 0
	}
	once := t.Evaluation
	if once == 0 {
		perEdge := t.StepSeconds / math.Max(1, l.edges*float64(j.world()))
		once = forwardShare * perEdge * float64(j.Data.Edges()) * float64(len(j.Fanouts))
	}
	return once * float64(j.evaluations()) / float64(max(1, j.Epochs))
}

// trialNotes say what was measured.
func (p *Plan) trialNotes(j *Job) {
	t := p.Trial
	p.note("Times are those of %s, computed for this plan in %s by the code of the run.", phrase.Count(t.Steps, "step"), phrase.Count(p.way.Workers, "worker"))
	if j.machines() > 1 {
		p.note("The workers of one machine were tried, with the shares of all %d machines after each other; the network is added by its rate.", j.machines())
	}
	if r := t.Range; r[1] > unsteady*r[0] {
		p.note("This machine's speed changed meanwhile: a step took %s to %s ms.", ms(r[0]), ms(r[1]))
	}
	if text := t.busyNote(); text != "" {
		p.note("%s", text)
	}
	if j.evaluations() > 0 && t.Evaluation == 0 && j.Task == "" {
		p.note("The time of an evaluation is extrapolated from that of the steps, by the edges of the graph.")
	}
}

// correct replaces what a dry run cannot count, a worker's process and its garbage, by what the trial's workers took beside the parts
// that are counted.
func (p *Plan) correct(j *Job, t *Trial) {
	if t.WorkerBytes == 0 || j.machines() > 1 {
		return
	}
	took := t.WorkerBytes + t.Garbage
	for _, i := range p.Memory.Shared {
		switch {
		case i.Name == launcherItem || strings.HasPrefix(i.Name, copiesItem) || i.Name == outputsItem && t.Evaluation == 0:
		case i.Name == datasetItem: // which this process maps too
			took -= i.Bytes / 2 * int64(j.Workers) / int64(j.Workers+1)
		default:
			took -= i.Bytes
		}
	}
	rest := took / int64(j.Workers)
	kept := []Item{{Name: processItem + " and " + garbageItem}}
	for _, i := range p.Memory.Worker {
		if i.Name == processItem || i.Name == garbageItem {
			continue
		}
		kept = append(kept, i)
		if i.Name != evaluationItem || t.Evaluation > 0 {
			rest -= i.Bytes
		}
	}
	kept[0].Bytes = max(rest, processBytes)
	p.beside = kept[0].Bytes + sumOf(kept[1:]) - p.Memory.PerWorker()
	p.Memory.Worker = kept
	p.WorkerBytes, p.TotalBytes = p.Memory.PerWorker(), p.Memory.Total(j.here())
	if p.Fit != "" {
		p.Fit = fit(p.TotalBytes, p.Free)
	}
}
