package gnb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/names"
	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu"
)

// ScalingOptions say what [Scaling] measures.
type ScalingOptions struct {
	// What is trained. Evaluation and checkpoints are left out of the measurement,
	// so Epochs, Eval and what belongs to them have no influence; Workers, RunDir,
	// Resume and Digest cannot be set. Threads is that of each worker, the same at
	// each point; by default the CPUs are divided among the largest number of
	// workers, so that each point uses as many more of them as it has workers.
	TrainOptions
	// Weak gives every worker the same batch (BatchPerWorker, 1024), so that more
	// workers do more work in a step. The default, strong scaling, divides the same
	// batch (Batch, 1024) among them.
	Weak bool
	// Repeats is how often each number of workers is measured; 0 means 5. They take
	// turns, so that a machine that grows slower does so for all. What counts is the
	// median.
	Repeats int
	// Steps is the number of steps that are timed; 0 means 30. Steps beyond the
	// training split go on in its next round.
	Steps int
	// WarmUp is the number of steps before them; 0 means 5.
	WarmUp int
}

// Curve is how the speed of training changes with the number of workers: the
// result of [Scaling].
type Curve struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`
	Weak    bool   `json:"weak"`
	Cores   int    `json:"cores"`   // of the machine, as far as this process may use them
	Threads int    `json:"threads"` // of each worker
	// GPUs of the machine, where the workers compute on them.
	GPUs    int            `json:"gpus,omitempty"`
	Device  string         `json:"device"`
	Steps   int            `json:"steps"` // of a measurement
	Repeats int            `json:"repeats"`
	Points  []ScalingPoint `json:"points"` // by ascending number of workers
}

// ScalingPoint is one number of workers in a [Curve]. All but the rates is that
// of the median repeat.
type ScalingPoint struct {
	Workers int `json:"workers"`
	// Cores are those in use: Workers × Threads, or all there are where that is
	// more.
	Cores int `json:"cores"`
	Batch int `json:"batch"` // seeds of a step over all workers
	// Rate is the median of Rates, the seeds a second of each repeat in the order
	// of measurement.
	Rate  float64   `json:"seeds_per_second"`
	Rates []float64 `json:"repeats"`
	// Speedup is Rate over that of the first point, Low and High the same for the
	// slowest and the fastest repeat. Ideal is how many times the cores (or GPUs)
	// of the first point are in use: what Speedup would be if each did as much.
	// Efficiency is Speedup/Ideal.
	Speedup    float64 `json:"speedup"`
	Low        float64 `json:"speedup_low"`
	High       float64 `json:"speedup_high"`
	Ideal      float64 `json:"ideal"`
	Efficiency float64 `json:"efficiency"`
	// Seconds is the time of a step and Stages what it went to, the mean over the
	// workers. Sampling and fetching run beside the rest: what they take here is
	// what a worker has waited for them; "idle" is waiting for the slowest of them.
	Seconds float64            `json:"step_seconds"`
	Stages  map[string]float64 `json:"stages"`
	// Edges and Rows are how many edges all workers sample in a step and how many
	// rows of features they read, UniqueEdges and UniqueRows how many of them are
	// different: what one worker would need for the same batch.
	Edges       float64 `json:"edges"`
	UniqueEdges float64 `json:"unique_edges"`
	Rows        float64 `json:"rows"`
	UniqueRows  float64 `json:"unique_rows"`
	// RepeatedEdges is Edges/UniqueEdges, how often the mean edge is sampled, and
	// RepeatedRows how often the mean row is read: 1 where no work is done twice.
	RepeatedEdges float64 `json:"repeated_edges"`
	RepeatedRows  float64 `json:"repeated_rows"`
	PeakMemory    int64   `json:"peak_memory"` // of all workers, in bytes
}

// Scaling measures how training gets faster with more workers: the same steps,
// of the same seeds, by each of the given numbers of workers in turn. In a cell it
// ends with a picture of the speed-up beside the ideal, of where the time went,
// and of the work that is done more than once because workers sample neighbours
// apart. Print the curve for the numbers.
//
// On an interrupt the curve holds what was measured until then.
func Scaling(ctx context.Context, ds *Dataset, model AnyModel, o ScalingOptions, workers []int) (Curve, error) {
	multigpuEnter()
	var c Curve
	if multigpu.InWorker() {
		return c, errWorker
	}
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return c, errors.New("gnb: Scaling needs a model, such as gnb.SAGE")
	}
	if _, err := models.Get(model.Name()); err != nil {
		return c, err
	}
	workers = slices.Sorted(slices.Values(workers))
	a, err := o.scalingArgs(ds, model.Name(), workers)
	if err != nil {
		return c, err
	}
	c = Curve{
		Dataset: ds.Name(), Model: model.Name(), Weak: o.Weak, Cores: min(runtime.NumCPU(), runtime.GOMAXPROCS(0)),
		Steps: a.Steps, Repeats: cmp.Or(o.Repeats, 5),
	}
	c.Threads = cmp.Or(o.Threads, max(1, c.Cores/slices.Max(workers)))
	measured := make([][]ScalingPoint, len(workers))
	bar := live.ProgressWith(c.title(), int64(c.Repeats*len(workers)), live.BarOptions{Options: live.Options{Quiet: o.Quiet}, Unit: "runs"})
	for repeat := range c.Repeats {
		for i, n := range workers {
			a.Count = repeat == 0 // it is the same every time
			var p ScalingPoint
			if p, err = c.measure(ctx, ds, a, o, n); err != nil {
				break
			}
			measured[i] = append(measured[i], p)
			bar.Add(1)
		}
		if err != nil {
			break
		}
	}
	bar.Done()
	c.fill(measured)
	if err == nil && !o.Quiet {
		_ = live.ShowScaling(c.picture(), c.String()) // a broken display is no failure of the measurement
	}
	return c, err
}

// scalingArgs is the argument of the program that measures.
type scalingArgs struct {
	trainArgs
	WarmUp, Steps int
	Count         bool
}

func (o ScalingOptions) scalingArgs(ds *Dataset, model string, workers []int) (scalingArgs, error) {
	var a scalingArgs
	if err := cmp.Or(inBounds(
		bound{"Repeats", o.Repeats, 1, maxCount}, bound{"Steps", o.Steps, 1, maxCount}, bound{"WarmUp", o.WarmUp, 1, maxCount},
	), LaunchOptions{VirtualRanks: o.VirtualRanks, Threads: o.Threads}.inBounds()); err != nil {
		return a, err
	}
	switch {
	case len(workers) == 0:
		return a, errors.New("gnb: Scaling needs the numbers of workers to measure, such as []int{1, 2, 4}")
	case workers[0] < 1 || len(slices.Compact(slices.Clone(workers))) != len(workers):
		return a, fmt.Errorf("gnb: Scaling takes different numbers of workers of 1 or more, and got %v", workers)
	case o.Workers != 0 || o.RunDir != "" || o.Resume != "" || o.Digest:
		return a, errors.New("gnb: Scaling starts short runs of its own: leave Workers, RunDir, Resume and Digest out of its options")
	case o.Weak && o.Batch > 0:
		return a, fmt.Errorf("gnb: Batch (%d, over all workers) cannot stay the same in weak scaling; set BatchPerWorker", o.Batch)
	case !o.Weak && o.BatchPerWorker > 0:
		return a, fmt.Errorf("gnb: BatchPerWorker (%d) cannot stay the same in strong scaling; set Batch, over all workers, or Weak", o.BatchPerWorker)
	}
	if o.Weak {
		o.BatchPerWorker = cmp.Or(o.BatchPerWorker, 1024)
	} else {
		o.Batch = cmp.Or(o.Batch, 1024)
	}
	var err error
	if a.trainArgs, err = o.args(ds, model); err != nil {
		return a, err
	}
	ids, err := ds.Split("train")
	if err != nil {
		return a, err
	}
	if err := (LaunchOptions{Workers: slices.Max(workers)}).inBounds(); err != nil {
		return a, err
	}
	if most := slices.Max(workers); len(ids) < most || o.Weak && len(ids) < most*max(1, o.VirtualRanks)*o.BatchPerWorker {
		return a, fmt.Errorf("gnb: %s has %d nodes to train on, too few for a batch of %d workers; take fewer workers or a smaller batch", ds.Name(), len(ids), most)
	}
	a.WarmUp, a.Steps = cmp.Or(o.WarmUp, 5), cmp.Or(o.Steps, 30)
	return a, nil
}

// measure runs the steps once with n workers, and notes the device.
func (c *Curve) measure(ctx context.Context, ds *Dataset, a scalingArgs, o ScalingOptions, n int) (ScalingPoint, error) {
	run, err := launchScratch(ctx, scalingProgram, a, LaunchOptions{
		Data: ds, Workers: n, VirtualRanks: o.VirtualRanks, Threads: c.Threads, Device: o.Device, Precision: o.Precision, Seed: o.Seed, Quiet: true,
	})
	if err != nil {
		return ScalingPoint{}, fmt.Errorf("gnb: measuring %d workers: %w", n, err)
	}
	if c.Device = run.Config.Device; c.Device == "cuda" {
		if c.GPUs, err = device.Count(); err != nil {
			return ScalingPoint{}, err
		}
	}
	v := run.Value
	p := ScalingPoint{
		Workers: n, Batch: int(v("batch")), Rate: v("seeds") / v("seconds"), Seconds: v("seconds") / float64(a.Steps), Stages: map[string]float64{},
		Edges: v("edges"), UniqueEdges: v("unique_edges"), Rows: v("rows"), UniqueRows: v("unique_rows"), PeakMemory: run.Result.PeakMemory,
	}
	for _, s := range names.Stages {
		if x := v("stage." + s); x > 0 {
			p.Stages[s] = x / float64(a.Steps)
		}
	}
	return p, nil
}

// fill makes the points of what was measured, by number of workers.
func (c *Curve) fill(measured [][]ScalingPoint) {
	for _, repeats := range measured {
		if len(repeats) == 0 { // interrupted before
			return
		}
		first := repeats[0]
		sorted := slices.SortedFunc(slices.Values(repeats), func(a, b ScalingPoint) int { return cmp.Compare(a.Rate, b.Rate) })
		p := sorted[len(sorted)/2]
		p.Edges, p.UniqueEdges, p.Rows, p.UniqueRows = first.Edges, first.UniqueEdges, first.Rows, first.UniqueRows
		p.RepeatedEdges, p.RepeatedRows = ratio(p.Edges, p.UniqueEdges), ratio(p.Rows, p.UniqueRows)
		p.Cores = min(p.Workers*c.Threads, c.Cores)
		for _, r := range repeats {
			p.Rates = append(p.Rates, r.Rate)
		}
		base := p
		if len(c.Points) > 0 {
			base = c.Points[0]
		}
		p.Speedup, p.Low, p.High = p.Rate/base.Rate, sorted[0].Rate/base.Rate, sorted[len(sorted)-1].Rate/base.Rate
		p.Ideal = c.ideal(p.Workers, base.Workers)
		p.Efficiency = p.Speedup / p.Ideal
		c.Points = append(c.Points, p)
	}
}

// units is how many of what computes are in use with n workers: a GPU each, or
// their threads' cores, as far as there are any.
func (c *Curve) units(n int) (units int, what string) {
	if c.GPUs > 0 {
		return min(n, c.GPUs), "GPU"
	}
	return min(n*c.Threads, c.Cores), "core"
}

// ideal is the speed-up of n workers over base if each unit did as much as there.
func (c *Curve) ideal(n, base int) float64 {
	of, _ := c.units(n)
	over, _ := c.units(base)
	return float64(of) / float64(over)
}

// ratio is a/b, 1 where there is nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 1
	}
	return a / b
}

// scalingProgram trains as Train does and times the steps after the warm-up. The
// clock starts and stops at the end of a step, where all ranks have just met and a
// device has brought the step's loss.
var scalingProgram = Program("gnb.scaling", func(w *Worker, a scalingArgs) error {
	net := w.Network(a.Model, a.Sizes)
	opt := a.optimizer(w, net)
	loader := Loader{Fanouts: a.Fanouts, Batch: a.Batch, BatchPerWorker: a.BatchPerWorker}
	p, err := w.plan("train", loader)
	if err != nil {
		return err
	}
	var (
		seeds         int
		start         time.Time
		took          time.Duration
		before, after map[string]time.Duration
	)
	all := a.WarmUp + a.Steps
	for done := 0; done < all; {
		loader.MaxSteps = all - done
		for b := range w.Batches("train", loader) {
			w.Step(b.Loss(net.Forward(b)), opt)
			if start != (time.Time{}) {
				seeds += len(b.Seeds)
			}
			if !b.EndsStep {
				continue
			}
			if done++; done == a.WarmUp || done == all {
				w.EpochLoss()
			}
			switch done {
			case a.WarmUp:
				start, before = time.Now(), w.p.StageTimes()
			case all:
				took, after = time.Since(start), w.p.StageTimes()
			}
		}
	}
	sums := []float64{float64(seeds), took.Seconds()}
	for _, s := range names.Stages {
		sums = append(sums, (after[s] - before[s]).Seconds())
	}
	w.AllReduce(sums)
	world := float64(w.World())
	w.Result("batch", float64(p.Batch))
	w.Result("seeds", sums[0])
	w.Result("seconds", sums[1]/world)
	for i, s := range names.Stages {
		w.Result("stage."+s, sums[2+i]/world)
	}
	if a.Count {
		return w.countRepeated(p, min(a.Steps, p.steps))
	}
	return nil
})

// countRepeated counts what all ranks sample in the epoch's first steps, and what
// of that is different: a pick does not depend on who asks for it, so that is
// what one rank samples for the whole batch. Each rank does some of the steps.
func (w *Worker) countRepeated(p plan, steps int) error {
	s, done, err := w.sampler(p.Loader, philox.Sample)
	if err != nil {
		return err
	}
	defer done()
	ids := sample.EpochOrder(w.job.Seed, 0, p.ids)
	count := make([]float64, 4)
	add := func(b *sample.Batch, to []float64) {
		to[0] += float64(b.Edges())
		to[1] += float64(b.Inputs())
		b.Release()
	}
	for step := range steps {
		for v := range w.job.Virtual {
			b := w.sampleShare(s, p, ids, 0, 0, step, v)
			if b.err != nil {
				return b.err
			}
			add(b.Batch, count[:2])
		}
		if step%w.World() == w.Rank() {
			b, err := s.Sample(0, step, ids[step*p.Batch:min((step+1)*p.Batch, len(ids))])
			if err != nil {
				return err
			}
			add(b, count[2:])
		}
	}
	w.AllReduce(count)
	for i, name := range []string{"edges", "rows", "unique_edges", "unique_rows"} {
		w.Result(name, count[i]/float64(steps))
	}
	return nil
}

// lost is where the time of point p went that it would not have taken if
// everything had become as much faster as its cores are more than base's: the
// seconds of a step by stage, those of 2 % of the step or more, the most first.
func (p ScalingPoint) lost(base ScalingPoint) []runs.NamedValue {
	share := float64(p.Batch) / float64(base.Batch) / p.Ideal
	var out []runs.NamedValue
	for _, s := range slices.Sorted(maps.Keys(p.Stages)) {
		if d := p.Stages[s] - share*base.Stages[s]; d > 0.02*p.Seconds {
			out = append(out, runs.NamedValue{Name: s, Value: d})
		}
	}
	slices.SortStableFunc(out, func(a, b runs.NamedValue) int { return cmp.Compare(b.Value, a.Value) })
	return out
}
