package gnb

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	planning "github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/machine"
)

// trier tries the ways to run that a plan compares.
type trier struct {
	of nodeOptions
	o  LaunchOptions
}

var _ planning.Trier = trier{}

// Try implements [planning.Trier].
func (t trier) Try(ctx context.Context, w planning.Way, how planning.TrialSpec) (planning.Trial, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(whole, trialLimit)
	defer cancel()
	a, o := trialArgs{t.of, how}, t.o
	a.Of.Cooperative, a.Of.Digest = w.Cooperative, false
	run, err := Launch(ctx, trialProgram, a, LaunchOptions{
		Data: o.Data, Workers: w.Workers, VirtualRanks: w.Virtual, Threads: w.Threads, Device: o.Device, FirstGPU: o.FirstGPU, Precision: w.Precision,
		Seed: o.Seed, PlaneOptions: o.PlaneOptions, Quiet: true, Scratch: true,
	})
	if err != nil {
		if ctx.Err() != nil && whole.Err() == nil {
			err = fmt.Errorf("gnb: they took more than %s", trialLimit)
		}
		return planning.Trial{}, err
	}
	v := run.Value
	r := planning.Trial{
		Steps: int(v("steps")), StepSeconds: v("seconds"), Range: [2]float64{v("least"), v("most")}, Stages: map[string]float64{}, Evaluation: v("evaluation"),
		Read: v("read"), Asked: v("asked"), WorkerBytes: int64(v("bytes")), Garbage: int64(v("garbage")), OtherCPUs: v("others"), CPUs: v("cpus"),
	}
	for _, s := range runfile.Stages {
		if x := v("stage." + s); x > 0 {
			r.Stages[s] = x
		}
	}
	return r, nil
}

// trialArgs is the argument of a trial.
type trialArgs struct {
	Of  nodeOptions
	How planning.TrialSpec
}

const (
	// trialWarm is the number of steps before those that are timed: memory gets its size in them, and the batches ahead are sampled.
	// trialMost is the largest number of timed steps, and trialGroup that of a group: within one, collections of garbage count.
	trialWarm, trialMost, trialGroup = 3, 96, 6
	// trialWhole is the number of steps up to which whole epochs are timed, because their first steps wait for batches; the first
	// trialFill steps of a longer one are not timed. If rows come from a disk or from other ranks, all steps of a pass are timed, as one
	// group: the first step waits for the rows of many.
	trialWhole, trialFill = 8, 2
	// trialEvaluated is the number of batches of a sampled evaluation that are tried, of each split.
	trialEvaluated = 4
	// trialLimit is the time after which a trial is given up.
	trialLimit = 2 * time.Minute
	// trialAgain is the time of an evaluation, in seconds, up to which another one follows.
	trialAgain = 0.5
)

// trialProgram trains as [Train] does for some steps, and times them.
var trialProgram = Program("gnb.trial", func(w *Worker, a trialArgs) error {
	o := a.Of
	t, err := startNodes(w, o)
	if err != nil {
		return err
	}
	epoch := t.Steps()
	opt := w.OptimizerOf(t.net, o.OptimizerOptions, t.Steps)
	whole, fill, group := 1, trialFill, trialGroup
	if epoch <= trialWhole {
		whole, fill = epoch, 0
	}
	warm := (trialWarm + whole - 1) / whole * whole
	var ends []time.Time          // of the steps
	var before, middle trialState // of the timed ones
	var most int64                // bytes of this process
	from, all := warm, warm       // the timed steps are those after from
	for len(ends) < all {
		t.loader.MaxSteps = min(all-len(ends), epoch)
		for b := range t.Batches(0) {
			w.Step(t.Loss(b), opt)
			if !b.EndsStep {
				continue
			}
			if n := len(ends) + 1; n == from || n == all {
				w.EpochLoss() // waits for a device
			}
			ends = append(ends, time.Now())
			switch {
			case len(ends) == from && from < all:
				before = w.trialState()
			case len(ends) == (from+all)/2:
				middle = w.trialState()
			}
		}
		if len(ends) == warm && all == warm { // then all ranks agree on the number of steps
			took := []float64{ends[warm-1].Sub(ends[0]).Seconds() / float64(max(1, warm-1)), w.trialState().fetched()}
			w.AllReduce(took)
			if took[1] > 0 {
				fill, group = 0, trialMost
			}
			n := int(min(trialMost, a.How.Seconds*float64(w.World())/max(took[0], 1e-9)))
			from = warm + fill
			all = from + max(2, (n+whole-1)/whole*whole)
			most = ownMemory()
			before, ends[warm-1] = w.trialState(), time.Now()
		}
	}
	after := w.trialState()
	most = max(most, ownMemory())
	w.reportTrial(ends[from-1:], group, before, after)
	seconds, perEvaluation := w.trialEvaluation(t, a.How)
	w.Result("evaluation", seconds)
	timed := len(ends) - from
	// Arrays that still grow make one half's garbage larger.
	perStep := min((middle.allocated-before.allocated)/float64(timed/2), (after.allocated-middle.allocated)/float64(timed-timed/2))
	left := perStep*float64(max(0, epoch*o.Epochs-len(ends))) + perEvaluation*float64(o.Epochs/o.EvalEvery)
	end := w.trialState()
	most = max(most, ownMemory())
	runtime.GC() // then the heap's live bytes are known
	grows := min(left+float64(a.How.Garbage), w.trialState().live+entry.HeapRoom-end.taken)
	sums := []float64{float64(most), max(0, grows)}
	w.AllReduce(sums)
	w.Result("bytes", sums[0])
	w.Result("garbage", sums[1])
	return nil
})

// trialEvaluation returns the time of an evaluation, and the bytes of garbage that it leaves; 0 if the trial has none. The first one
// makes its memory, so that the last one counts of three, unless they take long.
func (w *Worker) trialEvaluation(t *nodeTask, by planning.TrialSpec) (seconds, garbage float64) {
	o, splits := t.o, t.Splits()
	if !by.Evaluate || o.Eval == "none" || len(splits) == 0 {
		return 0, 0
	}
	how, times := FullNeighbors, 1.0
	if o.Eval == "sampled" {
		batches := w.StepsPerEpoch(splits[0], Loader{Fanouts: o.Fanouts, MaxSteps: o.EvalBatches, InOrder: true})
		how, times = Sampled(o.Fanouts, 0, trialEvaluated), float64(batches)/float64(min(batches, trialEvaluated))
	}
	how.Loss = t.how.Loss
	for again := range 3 {
		start := w.trialState()
		w.Evaluate(t.net, how, splits[0])
		end := w.trialState()
		took := []float64{end.at.Sub(start.at).Seconds() / float64(w.World())}
		w.AllReduce(took)
		if seconds = times * took[0]; again > 0 {
			garbage = times * (end.allocated - start.allocated)
		}
		if took[0] > trialAgain {
			break
		}
	}
	return seconds, garbage
}

// trialState is what a worker counts between the steps of a trial.
type trialState struct {
	at     time.Time
	stages map[string]time.Duration
	rows   runs.FeatureRows
	cpu    float64 // seconds of this process
	host   machine.Host
	// Bytes of the heap: allocated so far, in use at the last collection of garbage, and taken of the system.
	allocated, live, taken float64
}

func (w *Worker) trialState() (s trialState) {
	heap := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(heap)
	n := func(i int) float64 { return float64(heap[i].Value.Uint64()) }
	s.allocated, s.live, s.taken = n(0), n(1), n(2)+n(3)+n(4)
	s.at, s.stages, s.cpu = time.Now(), w.p.StageTimes(), machine.CPUSeconds()
	if r := w.feed.fetcher.Counts(); r != nil {
		s.rows = runs.FeatureRows(*r)
	}
	if h, err := new(machine.HostReader).Read(); err == nil && h.Totals.CPUSeconds.Known() {
		s.host = h
	}
	return s
}

// fetched returns the number of rows that came from a disk or from other ranks.
func (s trialState) fetched() float64 { return float64(s.rows.Remote + s.rows.Disk) }

// reportTrial reports the times of groups of steps, whose ends begin with the start of the first.
func (w *Worker) reportTrial(ends []time.Time, group int, before, after trialState) {
	n := len(ends) - 1
	took := after.at.Sub(before.at).Seconds()
	sums := []float64{
		after.cpu - before.cpu, after.fetched() - before.fetched(),
		float64(after.rows.All() - before.rows.All()),
	}
	for _, s := range runfile.Stages {
		sums = append(sums, (after.stages[s] - before.stages[s]).Seconds())
	}
	w.AllReduce(sums)
	var means []float64
	for at := 0; at < n; at += group {
		to := min(at+group, n)
		if n-to < group {
			to = n
		}
		means = append(means, ends[to].Sub(ends[at]).Seconds()/float64(to-at))
		if to == n {
			break
		}
	}
	slices.Sort(means)
	w.Result("steps", float64(n))
	w.Result("seconds", means[len(means)/2])
	w.Result("least", means[0])
	w.Result("most", means[len(means)-1])
	w.Result("asked", sums[1]/float64(n))
	w.Result("read", sums[2]/float64(n))
	for i, s := range runfile.Stages {
		w.Result("stage."+s, sums[3+i]/float64(w.World()*n))
	}
	others := 0.0
	if before.host.Cores > 0 && after.host.Cores > 0 {
		others = max(0, float64(after.host.Totals.CPUSeconds-before.host.Totals.CPUSeconds)-sums[0]) / max(took, 1e-9)
	}
	w.Result("others", others)
	w.Result("cpus", after.host.Cores)
}

// ownMemory is the anonymous and shared memory of this process, 0 if the system does not say it.
func ownMemory() int64 {
	own, _, err := machine.Resident(os.Getpid())
	if err != nil {
		return 0
	}
	return own
}
