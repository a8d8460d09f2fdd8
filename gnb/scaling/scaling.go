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
// as a file. [MeasureTask] measures what other tasks train: numbers, whole graphs, links, triples, and tasks of your own.
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

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/boards"
	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
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

// How is how [MeasureTask] measures; the fields are those of [Options].
type How struct {
	Weak    bool // with the task's BatchPerWorker
	Repeats int
	Steps   int
	WarmUp  int
}

// Task is what [MeasureTask] measures: a task of a program's own ([gnb.TaskOf]), numbers.Task, graphs.Task, links.Task or kg.Task.
type Task[O any] interface {
	// Name is the name of the task's program.
	Name() string
	// SharedOptions are those that the task shares with others, and WithLaunch returns options with others of the launch.
	SharedOptions(o O) gnb.TrainOptions
	WithLaunch(o O, l gnb.LaunchOptions) O
	// Recorded returns what a run with these options records of them.
	Recorded(ctx context.Context, ds *gnb.Dataset, o O) (json.RawMessage, error)
	// Identify returns the identity of a dataset's content and the task's code.
	Identify(ctx context.Context, ds *gnb.Dataset) (*runs.Identity, error)
	// TimeSteps trains for some steps and times them.
	TimeSteps(ctx context.Context, ds *gnb.Dataset, o O, how gnb.StepsSpec) (gnb.StepTimes, error)
}

var _ Task[int] = (*gnb.TaskOf[int])(nil)

// Curve is the speed of training over the number of workers: the result of [Measure].
type Curve struct {
	Dataset string `json:"dataset"`
	Model   string `json:"model"`          // the name of the network
	Task    string `json:"task,omitempty"` // the name of the task's program, if it is not that of nodes
	Unit    string `json:"unit"`           // what batches and rates count: "seeds", or for instance "graphs"
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
	Batch int `json:"batch"` // seeds, or other items (Curve.Unit), per step over all workers
	// Rate is the median of Rates, the seeds or other items per second of each repeat in the order of measurement.
	Rate  float64   `json:"items_per_second"`
	Rates []float64 `json:"repeats"`
	// SeedsPerSecond is Rate if the items are seeds.
	SeedsPerSecond float64 `json:"seeds_per_second,omitempty"`
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
	if err := entry.Start(); err != nil {
		return Curve{}, err
	}
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Curve{}, errors.New("scaling: Measure needs a model, such as gnb.SAGE")
	}
	of, err := gnb.TaskOfNodes(model)
	if err != nil {
		return Curve{}, err
	}
	switch {
	case o.Weak:
		o.BatchPerWorker = cmp.Or(o.BatchPerWorker, 1024)
	case o.BatchPerWorker == 0:
		o.Batch = cmp.Or(o.Batch, 1024)
	}
	m := measurement[gnb.TrainOptions]{
		of: of, ds: ds, o: o.TrainOptions, model: model.Name(), how: How{o.Weak, o.Repeats, o.Steps, o.WarmUp},
		together: func(o gnb.TrainOptions, on bool) gnb.TrainOptions { o.Cooperative = on; return o },
		identify: func() (*runs.Identity, error) { return gnb.Identify(ctx, ds, model) },
	}
	return m.measure(ctx, workers)
}

// MeasureTask is [Measure] for a task. Its options are as those of Options: Workers, RunDir, Digest and Accumulate cannot be set, nor
// Resume but to gnb.Never, and nothing is evaluated. Batches and rates count the items of the task, such as graphs ([Curve].Unit).
// Strong scaling divides the task's Batch, and weak scaling needs its BatchPerWorker.
//
// Steps over the whole graph are refused: each worker computes all of them.
func MeasureTask[O any](ctx context.Context, ds *gnb.Dataset, task Task[O], o O, how How, workers []int) (Curve, error) {
	if err := entry.Start(); err != nil {
		return Curve{}, err
	}
	if v := reflect.ValueOf(task); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Curve{}, errors.New("scaling: MeasureTask needs a task, such as graphs.Task")
	}
	m := measurement[O]{of: task, ds: ds, o: o, how: how, name: task.Name(), identify: func() (*runs.Identity, error) { return task.Identify(ctx, ds) }}
	return m.measure(ctx, workers)
}

// measurement is what is measured: steps of a task.
type measurement[O any] struct {
	of       Task[O]
	ds       *gnb.Dataset
	o        O
	how      How
	name     string                     // of the task; "" for nodes
	model    string                     // the name of the network; "" if a measurement tells
	together func(options O, on bool) O // sets whether workers make cooperative batches; nil: they never do
	identify func() (*runs.Identity, error)
}

func (m *measurement[O]) measure(ctx context.Context, workers []int) (c Curve, err error) {
	shared := m.of.SharedOptions(m.o)
	workers = slices.Sorted(slices.Values(workers))
	if err := m.check(&shared, workers); err != nil {
		return c, err
	}
	a := settings{How: m.how}
	a.Steps, a.WarmUp = cmp.Or(a.Steps, 30), cmp.Or(a.WarmUp, 5)
	if a.Options, err = m.of.Recorded(ctx, m.ds, m.o); err != nil {
		return c, err
	}
	most := slices.Max(workers)
	if err := entry.Check("Workers", most, 1, entry.MaxWorkers()); err != nil {
		return c, err
	}
	c = Curve{
		Dataset: m.ds.Name(), Model: m.model, Task: m.name, Weak: a.Weak, Cores: min(runtime.NumCPU(), runtime.GOMAXPROCS(0)),
		Steps: a.Steps, Repeats: cmp.Or(a.Repeats, 5),
	}
	c.Threads = cmp.Or(shared.Threads, max(1, c.Cores/most))
	var modes []mode
	for _, n := range workers {
		if modes = append(modes, mode{n, false}); m.together != nil && shared.Cooperative && n > 1 {
			modes = append(modes, mode{n, true})
		}
	}
	id, err := m.identify()
	if err != nil {
		return c, err
	}
	k, err := c.keeping(id, a, modes, shared.LaunchOptions)
	if err != nil {
		return c, err
	}
	all := c.Repeats * len(modes)
	if n := k.runs(); n > 0 && !shared.Quiet {
		fmt.Printf("resuming an interrupted measurement: %d of %d runs are measured\n", n, all)
	}
	bar := screen.Progress(c.title(), int64(all), screen.BarOptions{Options: screen.Options{Quiet: shared.Quiet}, Unit: "runs"})
	bar.Add(int64(k.runs()))
	for repeat := range c.Repeats {
		for i, mode := range modes {
			if repeat < len(k.Measured[i]) {
				continue
			}
			spec := gnb.StepsSpec{WarmUp: a.WarmUp, Steps: a.Steps, Workers: most, Count: repeat == 0} // the counts are the same every time
			var p Point
			if p, err = m.point(ctx, &c, &shared.LaunchOptions, mode, spec); err != nil {
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
	if err == nil && !shared.Quiet {
		_ = boards.ShowScaling(c.picture(), c.String()) // a broken display does not fail the measurement
	}
	return c, err
}

// mode is how the steps of a point are computed.
type mode struct {
	workers     int
	cooperative bool
}

// settings determine a measurement: the recorded options of the task, and how it is measured.
type settings struct {
	How
	Options json.RawMessage
}

// check checks the options and the numbers of workers, which ascend.
func (m *measurement[O]) check(o *gnb.TrainOptions, workers []int) error {
	if err := cmp.Or(
		entry.Check("Repeats", m.how.Repeats, 1, math.MaxInt32), entry.Check("Steps", m.how.Steps, 1, math.MaxInt32), entry.Check("WarmUp", m.how.WarmUp, 1, math.MaxInt32),
	); err != nil {
		return err
	}
	switch {
	case m.ds == nil:
		return errors.New("scaling: a measurement needs a dataset; get one from gnb.Load")
	case len(workers) == 0:
		return errors.New("scaling: Measure needs the numbers of workers to measure, such as []int{1, 2, 4}")
	case workers[0] < 1 || len(slices.Compact(slices.Clone(workers))) != len(workers):
		return fmt.Errorf("scaling: Measure takes different numbers of workers of 1 or more, and got %v", workers)
	case o.Workers != 0 || o.RunDir != "" || o.Resume != "" && o.Resume != gnb.Never || o.Digest || o.Accumulate > 1:
		return errors.New("scaling: Measure starts short runs of its own: leave Workers, RunDir, Resume (but Never), Digest and Accumulate out of its options")
	case m.how.Weak && o.Batch > 0:
		return fmt.Errorf("scaling: Batch (%d, over all workers) cannot stay the same in weak scaling; set BatchPerWorker", o.Batch)
	case m.how.Weak && o.BatchPerWorker == 0:
		return errors.New("scaling: weak scaling gives each worker a batch of the same size; set BatchPerWorker (--batch-per-worker)")
	case !m.how.Weak && o.BatchPerWorker > 0:
		return fmt.Errorf("scaling: BatchPerWorker (%d) cannot stay the same in strong scaling; set Batch, over all workers, or Weak", o.BatchPerWorker)
	}
	return nil
}

// point times the steps once in a mode, and records the device, the network and the unit.
func (m *measurement[O]) point(ctx context.Context, c *Curve, l *gnb.LaunchOptions, mode mode, how gnb.StepsSpec) (Point, error) {
	o := m.o
	if m.together != nil {
		o = m.together(o, mode.cooperative)
	}
	launch := *l
	launch.Workers, launch.Threads = mode.workers, c.Threads
	t, err := m.of.TimeSteps(ctx, m.ds, m.of.WithLaunch(o, launch), how)
	if err != nil {
		return Point{}, fmt.Errorf("scaling: measuring %d workers: %w", mode.workers, err)
	}
	c.Model, c.Unit = cmp.Or(t.Model, c.Model), t.Unit
	if c.Device = t.Device; c.Device == "cuda" {
		if c.GPUs, err = device.Count(); err != nil {
			return Point{}, err
		}
	}
	p := Point{
		Workers: mode.workers, Cooperative: mode.cooperative, Moved: t.Moved, Batch: t.Batch, Rate: float64(t.Items) / t.Seconds, Seconds: t.Seconds / float64(how.Steps), Stages: map[string]float64{},
		Edges: t.Counts.Edges, UniqueEdges: t.Counts.UniqueEdges, Rows: t.Counts.Rows, UniqueRows: t.Counts.UniqueRows, PeakMemory: t.Memory,
	}
	for s, x := range t.Stages {
		p.Stages[s] = x / float64(how.Steps)
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
		if c.Unit == "seeds" {
			p.SeedsPerSecond = p.Rate
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
