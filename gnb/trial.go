package gnb

import (
	"cmp"
	"context"
	"fmt"
	"math"
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

// trier tries the ways to run a task that a plan compares.
type trier[O any] struct {
	task *TaskOf[O]
	of   O
	o    LaunchOptions
}

var _ planning.Trier = trier[nodeOptions]{}

// Try implements [planning.Trier].
func (t trier[O]) Try(ctx context.Context, w planning.Way, how planning.TrialSpec) (planning.Trial, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(whole, trialLimit)
	defer cancel()
	of, l := t.of, t.o.briefly()
	subject := t.task.subject(&of)
	if c, ok := subject.(interface{ cooperate(on bool) }); ok {
		c.cooperate(w.Cooperative)
	}
	if s := samplerOf(subject); s != nil {
		s.Digest = false
	}
	l.Workers, l.VirtualRanks, l.Threads, l.Precision = w.Workers, w.Virtual, w.Threads, w.Precision
	run, err := Launch(ctx, t.task.trial, withTask[O, planning.TrialSpec]{of, how}, l)
	if err != nil {
		if ctx.Err() != nil && whole.Err() == nil {
			err = fmt.Errorf("gnb: %w %s", planning.ErrTrialTook, trialLimit)
		}
		return planning.Trial{}, err
	}
	v := run.Value
	r := planning.Trial{
		Steps: int(v("steps")), StepSeconds: v("seconds"), Range: [2]float64{v("least"), v("most")}, Stages: map[string]float64{}, Evaluation: v("evaluation"),
		Read: v("read"), Asked: v("asked"), WorkerBytes: int64(v("bytes")), Garbage: int64(v("garbage")), OtherCPUs: v("others"), CPUs: v("cpus"),
		Unit: run.Result.Text["unit"], Batch: int(v("batch")), EpochSteps: int(v("epoch_steps")),
	}
	if m := run.Result.Model; m != nil {
		r.Model, r.Weights = m.Name, m.Parameters
	}
	for i := range int(v("hops")) {
		of := func(what string) int { return int(math.Round(v(fmt.Sprintf("hop%d_%s", i, what)))) }
		r.Hops = append(r.Hops, planning.Hop{Destinations: of("destinations"), Sources: of("sources"), Edges: of("edges")})
	}
	for _, s := range runfile.Stages {
		if x := v("stage." + s); x > 0 {
			r.Stages[s] = x
		}
	}
	return r, nil
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

// tryTask trains a task for some steps, and times them.
func (w *Worker) tryTask(t Task, options TaskOptions, how planning.TrialSpec) error {
	o, eval := *options.optimizer(), EvaluationOptions{Eval: "none"}
	if e := evaluationOf(options); e != nil {
		eval = *e
	}
	epoch := t.Steps()
	if epoch == 0 {
		return fmt.Errorf("gnb: an epoch of %s has no steps, so there is nothing to try", w.Dataset().Name())
	}
	opt := w.OptimizerOf(t.Network(), o, t.Steps)
	whole, fill, group := 1, trialFill, trialGroup
	if epoch <= trialWhole {
		whole, fill = epoch, 0
	}
	warm := (trialWarm + whole - 1) / whole * whole
	var ends []time.Time          // of the steps
	var before, middle trialState // of the timed ones
	var most int64                // bytes of this process
	var hops hopCounts
	from, all := warm, warm // the timed steps are those after from
	bound := &w.feed.atMost
	for len(ends) < all {
		bound.steps = all - len(ends)
		for b := range t.Batches(0) {
			if len(ends) == all { // of a task with several loops an epoch
				break
			}
			if len(ends) < warm {
				hops.add(b)
			}
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
			n := int(min(trialMost, how.Seconds*float64(w.World())/max(took[0], 1e-9)))
			from = warm + fill
			all = from + max(2, (n+whole-1)/whole*whole)
			most = ownMemory()
			before, ends[warm-1] = w.trialState(), time.Now()
		}
	}
	bound.steps = 0
	after := w.trialState()
	most = max(most, ownMemory())
	w.reportHops(hops, bound.last, epoch)
	w.reportTrial(ends[from-1:], group, before, after)
	seconds, perEvaluation := w.trialEvaluation(t, eval, how)
	w.Result("evaluation", seconds)
	timed := len(ends) - from
	// Arrays that still grow make one half's garbage larger.
	perStep := min((middle.allocated-before.allocated)/float64(timed/2), (after.allocated-middle.allocated)/float64(timed-timed/2))
	left := perStep*float64(max(0, epoch*o.Epochs-len(ends))) + perEvaluation*float64(o.Epochs/max(1, eval.EvalEvery))
	end := w.trialState()
	most = max(most, ownMemory())
	runtime.GC() // then the heap's live bytes are known
	grows := min(left+float64(how.Garbage), w.trialState().live+entry.HeapRoom-end.taken)
	sums := []float64{float64(most), max(0, grows)}
	w.AllReduce(sums)
	w.Result("bytes", sums[0])
	w.Result("garbage", sums[1])
	return nil
}

// hopCounts adds up the sizes of the different blocks of batches, the seeds' hop first.
type hopCounts struct {
	batches int
	of      [][3]float64 // destinations, sources and edges
}

func (h *hopCounts) add(b *Batch) {
	h.batches++
	at := -1
	for i, k := range slices.Backward(b.Blocks) {
		if i < len(b.Blocks)-1 && k == b.Blocks[i+1] { // one block for all layers
			continue
		}
		at++
		for len(h.of) <= at {
			h.of = append(h.of, [3]float64{})
		}
		of := &h.of[at]
		of[0], of[1], of[2] = of[0]+float64(k.NumDst), of[1]+float64(k.NumSrc), of[2]+float64(k.NumEdges())
	}
}

// reportHops reports the mean sizes of the blocks of a batch over all ranks, and what an epoch goes through: the loop p, nil if steps
// are over the whole graph.
func (w *Worker) reportHops(h hopCounts, p *plan, epochSteps int) {
	sums := []float64{float64(h.batches), float64(len(h.of))}
	for _, of := range h.of {
		sums = append(sums, of[:]...)
	}
	w.AllReduce(sums)
	hops := int(sums[1]) / w.World()
	w.Result("hops", float64(hops))
	for i := range hops {
		for k, what := range []string{"destinations", "sources", "edges"} {
			w.Result(fmt.Sprintf("hop%d_%s", i, what), sums[2+3*i+k]/max(1, sums[0]))
		}
	}
	w.Result("epoch_steps", float64(epochSteps))
	if p == nil {
		return
	}
	w.ResultText("unit", cmp.Or(p.unit(), "seeds"))
	w.Result("batch", float64(min(p.Batch, len(p.ids))))
}

// trialEvaluator is a Task whose evaluation is tried in another way than by measuring the first split.
type trialEvaluator interface {
	// tryEvaluation evaluates a part of a split, and returns how many times longer the whole evaluation is.
	tryEvaluation(split string) (times float64, err error)
}

// trialEvaluation returns the time of an evaluation, and the bytes of garbage that it leaves; 0 if the trial has none. The first one
// makes its memory, so that the last one counts of three, unless they take long.
func (w *Worker) trialEvaluation(t Task, eval EvaluationOptions, by planning.TrialSpec) (seconds, garbage float64) {
	splits := t.Splits()
	if !by.Evaluate || eval.Eval == "none" || len(splits) == 0 {
		return 0, 0
	}
	for again := range 3 {
		start, times := w.trialState(), 1.0
		var err error
		if e, ok := t.(trialEvaluator); ok {
			times, err = e.tryEvaluation(splits[0])
		} else {
			_, err = t.Measure(splits[0])
		}
		w.check(err)
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
