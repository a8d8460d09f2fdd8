// Package scaling measures how training speed grows with the number of workers.
//
// # Basics
//
//	curve := gnb.Must(scaling.Measure(ctx, ds, gnb.SAGE, scaling.Options{}, []int{1, 2, 4}))
//	fmt.Println(curve)
//
// The [Curve] has a [Point] for each number of workers: the speed-up with its spread and the
// ideal, the efficiency, the time of a step by stage, and the work that workers repeat because
// each samples its own neighbours. In a cell, [Measure] draws it; [Curve.PNG] is the same picture
// as a file.
//
// # Caveats
//
// More workers than cores, or than GPUs, cannot be faster; the curve's text points out such cases.
// Other programs on the machine change the result: the spread between repeats shows how much.
//
// A package-level variable must not be named scaling in a cell that uses this package; curve is a good name.
package scaling

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Options control a measurement.
type Options struct {
	// TrainOptions are the training options. Nothing is evaluated or saved, so Epochs, Eval and
	// related options have no effect; Workers, RunDir and Digest cannot be set, and Resume only to gnb.Never. Threads is
	// the number of threads of each worker, the same at each point; by default the CPUs are
	// divided among the largest number of workers, so that the cores in use grow with the workers.
	// With Cooperative, each number of workers above 1 has two points: one for independent workers,
	// and one for workers that make cooperative batches.
	gnb.TrainOptions
	// Weak gives every worker the same batch (BatchPerWorker, 1024), so that more workers do more work in a step.
	// The default, strong scaling, divides the same batch (Batch, 1024) among them.
	Weak bool
	// Repeats is the number of measurements of each number of workers; 0 means 5. The numbers of
	// workers take turns, so that a slowdown of the machine affects all of them. The result is the
	// median.
	Repeats int
	// Steps is the number of timed steps; 0 means 30. After the last seed of the training split they start again
	// at the first.
	Steps int
	// WarmUp is the number of untimed steps before the timed ones; 0 means 5.
	WarmUp int
}

// Curve is the speed of training over the number of workers: the result of [Measure].
type Curve struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`
	Weak    bool   `json:"weak"`
	Cores   int    `json:"cores"`   // cores that this process may use
	Threads int    `json:"threads"` // threads per worker
	// GPUs is the number of GPUs of the machine, if the workers compute on them.
	GPUs    int     `json:"gpus,omitempty"`
	Device  string  `json:"device"`
	Steps   int     `json:"steps"` // timed steps per measurement
	Repeats int     `json:"repeats"`
	Points  []Point `json:"points"` // by ascending number of workers, a cooperative point after the other
}

// Point is one number of workers in a [Curve]. All values but the rates are those of the median repeat.
type Point struct {
	Workers int `json:"workers"`
	// Cooperative is set if the workers made batches together; see [gnb.Loader].
	Cooperative bool `json:"cooperative,omitempty"`
	// Cores is the number of cores in use: Workers × Threads, at most Curve.Cores.
	Cores int `json:"cores"`
	Batch int `json:"batch"` // seeds per step over all workers
	// Rate is the median of Rates, the seeds per second of each repeat in the order of measurement.
	Rate  float64   `json:"seeds_per_second"`
	Rates []float64 `json:"repeats"`
	// Speedup is Rate divided by that of the first point; Low and High are the same for the slowest and the fastest
	// repeat. Ideal is the number of cores (or GPUs) in use divided by that of the first point: the Speedup if each did
	// as much work per second. Efficiency is Speedup/Ideal.
	Speedup    float64 `json:"speedup"`
	Low        float64 `json:"speedup_low"`
	High       float64 `json:"speedup_high"`
	Ideal      float64 `json:"ideal"`
	Efficiency float64 `json:"efficiency"`
	// Seconds is the time of a step, and Stages its parts, the mean over the workers. Sampling and fetching run in the
	// background, so their parts are the time that a worker waits for them; "idle" is waiting for the slowest worker.
	Seconds float64            `json:"step_seconds"`
	Stages  map[string]float64 `json:"stages"`
	// Edges and Rows are the numbers of edges that all workers sample and of rows of features that they read per step;
	// UniqueEdges and UniqueRows are the numbers of different ones, which one worker would need for the same batch.
	Edges       float64 `json:"edges"`
	UniqueEdges float64 `json:"unique_edges"`
	Rows        float64 `json:"rows"`
	UniqueRows  float64 `json:"unique_rows"`
	// Moved is the number of bytes per step that cooperative workers get from one another: ids in
	// sampling, features, rows between layers and their gradients. A row counts in Rows once, at its
	// owner.
	Moved float64 `json:"moved_bytes,omitempty"`
	// RepeatedEdges is Edges/UniqueEdges, and RepeatedRows is Rows/UniqueRows: 1 if no work is repeated.
	RepeatedEdges float64 `json:"repeated_edges"`
	RepeatedRows  float64 `json:"repeated_rows"`
	PeakMemory    int64   `json:"peak_memory"` // memory of all workers, in bytes
}

// Measure times the same training steps, on the same seeds, with each of the given numbers of workers in turn. In
// a cell it ends with a picture: the speed-up next to the ideal, the time of a step by stage, and the work that
// is repeated because each worker samples its own neighbours. Printing the curve gives the numbers.
//
// When it is interrupted, the curve has the points measured until then. The same measurement, called again, measures the
// rest: of the same data, model code and settings, in the same folder of runs. Resume: [gnb.Never] starts anew.
func Measure(ctx context.Context, ds *gnb.Dataset, model gnb.AnyModel, o Options, workers []int) (Curve, error) {
	var c Curve
	if err := entry.Start(); err != nil {
		return c, err
	}
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return c, errors.New("scaling: Measure needs a model, such as gnb.SAGE")
	}
	if _, err := gnb.ModelByName(model.Name()); err != nil {
		return c, err
	}
	workers = slices.Sorted(slices.Values(workers))
	a, err := o.args(ds, model, workers)
	if err != nil {
		return c, err
	}
	c = Curve{
		Dataset: ds.Name(), Model: model.Name(), Weak: o.Weak, Cores: min(runtime.NumCPU(), runtime.GOMAXPROCS(0)),
		Steps: a.Steps, Repeats: cmp.Or(o.Repeats, 5),
	}
	c.Threads = cmp.Or(o.Threads, max(1, c.Cores/slices.Max(workers)))
	var modes []mode
	for _, n := range workers {
		if modes = append(modes, mode{n, false}); o.Cooperative && n > 1 {
			modes = append(modes, mode{n, true})
		}
	}
	k, err := c.keeping(ctx, ds, model, a, modes, o)
	if err != nil {
		return c, err
	}
	all := c.Repeats * len(modes)
	if n := k.runs(); n > 0 && !o.Quiet {
		fmt.Printf("resuming an interrupted measurement: %d of %d runs are measured\n", n, all)
	}
	bar := screen.Progress(c.title(), int64(all), screen.BarOptions{Options: screen.Options{Quiet: o.Quiet}, Unit: "runs"})
	bar.Add(int64(k.runs()))
	for repeat := range c.Repeats {
		for i, m := range modes {
			if repeat < len(k.Measured[i]) {
				continue
			}
			a.Count = repeat == 0 // the counts are the same every time
			a.Cooperative = m.cooperative
			var p Point
			if p, err = c.measure(ctx, ds, a, o, m.workers); err != nil {
				break
			}
			k.add(i, p, &c)
			bar.Add(1)
		}
		if err != nil {
			break
		}
	}
	bar.Done()
	c.fill(k.Measured)
	switch {
	case err == nil:
		k.done()
	case errors.Is(err, gnb.ErrInterrupted) || ctx.Err() != nil:
		err = fmt.Errorf("scaling: the measurement was interrupted after %d of %d runs; run it again to continue: %w", k.runs(), all, err)
	}
	if err == nil && !o.Quiet {
		_ = boards.ShowScaling(c.picture(), c.String()) // a broken display does not fail the measurement
	}
	return c, err
}

// mode is how the steps of a point are computed.
type mode struct {
	workers     int
	cooperative bool
}

// args is the argument of the measuring program: part of the argument of gnb.Train, and the
// options of the measurement.
type args struct {
	Model string
	gnb.TrainOptions
	Virtual       int
	WarmUp, Steps int
	Count         bool
}

// args checks the options and the numbers of workers, which ascend.
func (o Options) args(ds *gnb.Dataset, model gnb.AnyModel, workers []int) (args, error) {
	var a args
	if err := cmp.Or(
		entry.Check("Repeats", o.Repeats, 1, math.MaxInt32), entry.Check("Steps", o.Steps, 1, math.MaxInt32), entry.Check("WarmUp", o.WarmUp, 1, math.MaxInt32),
	); err != nil {
		return a, err
	}
	switch {
	case len(workers) == 0:
		return a, errors.New("scaling: Measure needs the numbers of workers to measure, such as []int{1, 2, 4}")
	case workers[0] < 1 || len(slices.Compact(slices.Clone(workers))) != len(workers):
		return a, fmt.Errorf("scaling: Measure takes different numbers of workers of 1 or more, and got %v", workers)
	case o.Workers != 0 || o.RunDir != "" || o.Resume != "" && o.Resume != gnb.Never || o.Digest || o.Accumulate > 1:
		return a, errors.New("scaling: Measure starts short runs of its own: leave Workers, RunDir, Resume (but Never), Digest and Accumulate out of its options")
	case o.Weak && o.Batch > 0:
		return a, fmt.Errorf("scaling: Batch (%d, over all workers) cannot stay the same in weak scaling; set BatchPerWorker", o.Batch)
	case !o.Weak && o.BatchPerWorker > 0:
		return a, fmt.Errorf("scaling: BatchPerWorker (%d) cannot stay the same in strong scaling; set Batch, over all workers, or Weak", o.BatchPerWorker)
	}
	if o.Weak {
		o.BatchPerWorker = cmp.Or(o.BatchPerWorker, 1024)
	} else {
		o.Batch = cmp.Or(o.Batch, 1024)
	}
	raw, err := o.Recorded(ds, model)
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err != nil {
		return a, err
	}
	ids, err := ds.Split("train")
	if err != nil {
		return a, err
	}
	most := slices.Max(workers)
	if err := entry.Check("Workers", most, 1, entry.MaxWorkers()); err != nil {
		return a, err
	}
	if len(ids) < most || o.Weak && len(ids) < most*max(1, o.VirtualRanks)*o.BatchPerWorker {
		return a, fmt.Errorf("scaling: %s has %d nodes to train on, too few for a batch of %d workers; take fewer workers or a smaller batch", ds.Name(), len(ids), most)
	}
	a.Virtual, a.WarmUp, a.Steps = max(1, o.VirtualRanks), cmp.Or(o.WarmUp, 5), cmp.Or(o.Steps, 30)
	return a, nil
}

// measure runs the steps once with n workers, and records the device.
func (c *Curve) measure(ctx context.Context, ds *gnb.Dataset, a args, o Options, n int) (Point, error) {
	run, err := gnb.Launch(ctx, program, a, gnb.LaunchOptions{
		Data:         ds,
		Scratch:      true,
		Workers:      n,
		VirtualRanks: o.VirtualRanks,
		Threads:      c.Threads,
		Device:       o.Device,
		Precision:    o.Precision,
		Seed:         o.Seed,
		Quiet:        true,
	})
	if err != nil {
		return Point{}, fmt.Errorf("scaling: measuring %d workers: %w", n, err)
	}
	if c.Device = run.Config.Device; c.Device == "cuda" {
		if c.GPUs, err = device.Count(); err != nil {
			return Point{}, err
		}
	}
	v := run.Value
	p := Point{
		Workers: n, Cooperative: a.Cooperative, Moved: v("moved"), Batch: int(v("batch")), Rate: v("seeds") / v("seconds"), Seconds: v("seconds") / float64(a.Steps), Stages: map[string]float64{},
		Edges: v("edges"), UniqueEdges: v("unique_edges"), Rows: v("rows"), UniqueRows: v("unique_rows"), PeakMemory: run.Result.PeakMemory,
	}
	for _, s := range runfile.Stages {
		if x := v("stage." + s); x > 0 {
			p.Stages[s] = x / float64(a.Steps)
		}
	}
	return p, nil
}

// fill computes the points from the measurements of each number of workers.
func (c *Curve) fill(measured [][]Point) {
	for _, repeats := range measured {
		if len(repeats) == 0 { // interrupted before the first measurement
			return
		}
		first := repeats[0]
		sorted := slices.SortedFunc(slices.Values(repeats), func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
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

// units is the number of GPUs or cores in use with n workers: one GPU each, or one core per thread, at most those of the
// machine.
func (c *Curve) units(n int) (units int, what string) {
	if c.GPUs > 0 {
		return min(n, c.GPUs), "GPU"
	}
	return min(n*c.Threads, c.Cores), "core"
}

// ideal returns the speed-up of n workers over base workers if each unit did the same work per
// second.
func (c *Curve) ideal(n, base int) float64 {
	of, _ := c.units(n)
	over, _ := c.units(base)
	return float64(of) / float64(over)
}

// ratio returns a/b, or 1 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 1
	}
	return a / b
}

// program trains as gnb.Train does and times the steps after the warm-up. The clock starts and stops at the end of
// a step, when all ranks have just met and a device has delivered the step's loss.
var program = gnb.Program("gnb.scaling", func(w *gnb.Worker, a args) error {
	ids, err := w.Dataset().Split("train")
	if err != nil {
		return err
	}
	net := w.Network(a.Model, a.Config(w.Dataset(), w.Dataset().Classes()))
	opt := w.Optimizer(net, optim.NewAdam(optim.AdamOptions{LR: a.LR, WeightDecay: a.WeightDecay})).Clip(a.ClipNorm)
	loader := w.LoaderOf(a.SamplerOptions, a.OptimizerOptions)
	loader.Cooperative = a.Cooperative
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
				start, before = time.Now(), w.StageTimes()
			case all:
				took, after = time.Since(start), w.StageTimes()
			}
		}
	}
	sums := []float64{float64(seeds), took.Seconds(), float64(w.Moved()) / float64(all)}
	for _, s := range runfile.Stages {
		sums = append(sums, (after[s] - before[s]).Seconds())
	}
	w.AllReduce(sums)
	world := float64(w.World())
	w.Result("seeds", sums[0])
	w.Result("seconds", sums[1]/world)
	for i, s := range runfile.Stages {
		w.Result("stage."+s, sums[3+i]/world)
	}
	w.Result("moved", sums[2])
	batch := a.Batch
	if batch == 0 {
		batch = a.BatchPerWorker * w.World() * a.Virtual
	}
	batch = min(batch, len(ids))
	w.Result("batch", float64(batch))
	if !a.Count {
		return nil
	}
	loader.MaxSteps = 0
	steps := min(a.Steps, (len(ids)+batch-1)/batch)
	counts := w.CountRepeated(loader, steps)
	w.Result("edges", counts.Edges/float64(steps))
	w.Result("rows", counts.Rows/float64(steps))
	w.Result("unique_edges", counts.UniqueEdges/float64(steps))
	w.Result("unique_rows", counts.UniqueRows/float64(steps))
	return nil
})

// stageTime is the part of a step's time spent in one stage.
type stageTime struct {
	stage   string
	seconds float64
}

// lost returns the time of a step at p beyond the ideal, by stage: the stages with at least 2 % of
// the step, the largest first.
func (p Point) lost(base Point) []stageTime {
	share := float64(p.Batch) / float64(base.Batch) / p.Ideal
	var out []stageTime
	for _, s := range slices.Sorted(maps.Keys(p.Stages)) {
		if d := p.Stages[s] - share*base.Stages[s]; d > 0.02*p.Seconds {
			out = append(out, stageTime{s, d})
		}
	}
	slices.SortStableFunc(out, func(a, b stageTime) int { return cmp.Compare(b.seconds, a.seconds) })
	return out
}
