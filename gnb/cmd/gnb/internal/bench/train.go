package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/optim"
)

// benchTrainArgs are the arguments of the program below.
type benchTrainArgs struct {
	Model   string
	Sizes   gnb.ModelConfig
	Split   string
	Loader  gnb.Loader
	Labor   *gnb.Labor `json:",omitempty"` // the Loader's Sampler, which has no form in JSON
	LR      float64
	Decay   float64 // of weights
	Clip    float64 // bound of the gradient's norm, 0 for none
	Warmup  int
	Steps   int // of a window
	Windows int
	Full    bool // steps of the whole graph
}

// benchTrainProgram trains as gnb.Train does, in windows of Steps steps, each a separate epoch;
// the first, of Warmup steps, does not count. With Full a step is one of full-graph training.
var benchTrainProgram = gnb.Program("bench.train", func(w *gnb.Worker, a benchTrainArgs) error {
	if ids, err := w.Dataset().Split(a.Split); err == nil && len(ids) == 0 {
		return fmt.Errorf("split %q of %s has no nodes to train on", a.Split, w.Dataset().Name())
	}
	net := w.Network(a.Model, a.Sizes)
	adam := optim.NewAdam(optim.AdamOptions{WeightDecay: a.Decay})
	adam.SetLR(a.LR) // 0 means a rate of 0 here
	opt := w.Optimizer(net, adam).Clip(a.Clip)
	var (
		sizes         hopSizes
		before, after runtime.MemStats
	)
	for window := range w.Epochs(1 + a.Windows) {
		steps := a.Steps
		switch window {
		case 0:
			steps = a.Warmup
		case 1:
			runtime.ReadMemStats(&before)
		}
		for ; a.Full && steps > 0; steps-- {
			b := w.FullGraph(a.Split)
			w.Step(b.Loss(net.Forward(b)), opt)
			if window > 0 {
				sizes.add(b.Batch)
			}
		}
		for steps > 0 { // a window may be longer than the split
			loader := a.Loader
			if a.Labor != nil {
				loader.Sampler = *a.Labor
			}
			loader.MaxSteps = steps
			for b := range w.Batches(a.Split, loader) {
				w.Step(b.Loss(net.Forward(b)), opt)
				steps--
				if window > 0 {
					sizes.add(b.Batch)
				}
			}
		}
	}
	runtime.ReadMemStats(&after)
	n := float64(a.Steps * a.Windows)
	w.Result("allocs", float64(after.Mallocs-before.Mallocs)/n)
	w.Result("bytes", float64(after.TotalAlloc-before.TotalAlloc)/n)
	for i, s := range sizes {
		w.Result(fmt.Sprintf("dst%d", i), s.Dst/n)
		w.Result(fmt.Sprintf("src%d", i), s.Src/n)
		w.Result(fmt.Sprintf("edges%d", i), s.Edges/n)
	}
	return nil
})

// benchTrainResult is the result of "gnb bench train".
type benchTrainResult struct {
	Seconds   float64            `json:"seconds"` // of all windows
	Steps     int                `json:"steps"`
	Step      float64            `json:"median_seconds"` // of one step, of the median window
	Windows   []float64          `json:"window_seconds"`
	Stages    map[string]float64 `json:"stages"` // seconds of a step, of rank 0
	SeedsRate float64            `json:"seeds_per_second"`
	EdgesRate float64            `json:"edges_per_second"`
	Hops      hopSizes           `json:"hops"` // of a step of one worker
	Allocs    float64            `json:"allocs_per_step"`
	Bytes     float64            `json:"allocated_bytes_per_step"`
	Peak      int64              `json:"peak_rss_bytes"`
	Workers   int                `json:"workers"`
	Threads   int                `json:"threads"`
	Precision string             `json:"precision"`
	bound
}

// bound is the minimal work of a computation, and its time on this machine.
type bound struct {
	Work   *work   `json:"work,omitempty"` // of a step
	Limits *limits `json:"limits,omitempty"`
	Floor  float64 `json:"floor_seconds,omitempty"`
}

func (b *bound) floorOf(w work, threads int, measured bool, rowBytes int) {
	b.Work = &w
	if measured {
		l := measureLimits(threads, rowBytes)
		b.Limits, b.Floor = &l, w.seconds(l)
	}
}

func benchTrain(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("train", "Trains for several windows of steps as gnb train does, without evaluation and checkpoints, and times them after a warm-up. For sage on one worker in float32 it also prints the floor: the time of the step's products at the machine's peak, of its features at the rate of random rows, and of its activations, each written and read once forward and backward, at the rate of a copy.")
	var (
		t       options.Nodes
		spec    = fs.String("dataset", "rmat?scale=17&degree=16", "dataset to train on")
		split   = fs.String("split", "train", "split whose nodes are the seeds")
		windows = fs.Int("windows", 3, "measurement windows, of which the median counts")
		steps   = fs.Int("steps", 30, "steps per window")
		warmup  = fs.Int("warmup", 5, "warm-up steps")
		full    = fs.Bool("full-graph", false, "full-graph steps with one layer per value of --fanout")
		limited = fs.Bool("limits", true, "measure the machine's limits too")
	)
	options.Bind(fs, &t, "recipe", "full-graph", "epochs", "eval", "eval-every", "eval-batches", "metric", "best-by", "patience", "watch-test", "checkpoint-every", "keep", "restarts", "tensorboard", "title", "tags", "notes", "run", "resume", "resume-changed", "from")
	for _, d := range [][2]string{{"hidden", "256"}, {"lr", "0.003"}, {"fanout", "15,10,5"}, {"dropout", "0.5"}, {"workers", "1"}} {
		f := fs.Lookup(d[0])
		f.DefValue = d[1]
		if err := f.Value.Set(d[1]); err != nil {
			return err
		}
	}
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	if err := cli.CountFlags(fs, "windows", "steps", "warmup"); err != nil {
		return err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["layers"] && !given["fanout"] {
		t.Fanouts = nil // 10 a layer, as in training
	}
	ds, err := options.Load(ctx, out, *spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	m, err := t.Finish(fs, ds)
	if err != nil {
		return err
	}
	loader, sizes, err := t.Loader(ds)
	if err != nil {
		return err
	}
	a := benchTrainArgs{
		Model: m.Name(), Sizes: sizes, Split: *split, Loader: loader, LR: t.LR, Decay: t.WeightDecay, Clip: t.ClipNorm,
		Warmup: *warmup, Steps: *steps, Windows: *windows, Full: *full,
	}
	if labor, ok := loader.Sampler.(gnb.Labor); ok {
		a.Loader.Sampler, a.Labor = nil, &labor
	}
	o := gnb.LaunchOptions{Workers: t.Workers, VirtualRanks: t.VirtualRanks, Threads: t.Threads, Device: t.Device, Precision: t.Precision, Seed: t.Seed}
	r, err := launchBench(ctx, ds, benchTrainProgram, a, o, *windows)
	if err != nil {
		return err
	}
	res := r.train(a)
	plain := t.Norm == "" && !t.Residual && t.InputDropout == 0 && t.VirtualRanks <= 1 && r.run.Config.Device == "cpu"
	if m.Name() == "sage" && plain && r.run.Config.Precision == "float32" {
		w, row := sageWork(res.Hops, sizes), 4*sizes.In
		if *full {
			w, row = wholeGraphWork(ds, sizes, true), 4*sizes.Hidden
		}
		res.floorOf(w, res.Threads, *limited && o.Workers == 1, row)
	}
	out.Result(res)
	out.Printf("%.2f ms per step of %d nodes, %.1f M edges/s, on %d × %d threads, %s; %.0f allocations of %.0f KB per step, peak %.0f MB\n",
		res.Step*1e3, int(res.Hops[0].Dst)*res.Workers, res.EdgesRate/1e6, res.Workers, res.Threads, res.Precision, res.Allocs, res.Bytes/1e3, float64(res.Peak)/1e6)
	out.Printf("%s\n", res.share(res.Step))
	return nil
}

// benchRun is a program that ran in windows.
type benchRun struct {
	run     *runs.Run
	seconds []float64 // of each window
	stages  map[string]float64
}

// launchBench runs a program whose first epoch is a warm-up and whose others are windows, in a run
// directory that is removed.
func launchBench[A any](ctx context.Context, ds *dataset.Dataset, p *gnb.ProgramOf[A], a A, o gnb.LaunchOptions, windows int) (r benchRun, err error) {
	dir, err := os.MkdirTemp("", "gnb-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.stages = map[string]float64{}
	o.Data, o.RunDir, o.Resume, o.CheckpointEvery, o.Quiet = ds, dir, gnb.Never, -1, true
	o.Events = func(e runs.Event) {
		if e.Kind != "epoch" || e.Epoch == 0 {
			return
		}
		r.seconds = append(r.seconds, e.Seconds)
		for s, v := range e.Stages {
			r.stages[s] += v
		}
	}
	if r.run, err = gnb.Launch(ctx, p, a, o); err != nil {
		return r, err
	}
	if len(r.seconds) != windows {
		return r, fmt.Errorf("the run reported %d windows, not %d", len(r.seconds), windows)
	}
	return r, nil
}

func (r benchRun) train(a benchTrainArgs) benchTrainResult {
	c, n := r.run.Config, a.Steps*a.Windows
	res := benchTrainResult{
		Steps: n, Windows: r.seconds, Step: median(r.seconds) / float64(a.Steps), Stages: map[string]float64{},
		Allocs: r.run.Value("allocs"), Bytes: r.run.Value("bytes"), Peak: r.run.Result.PeakMemory, Workers: c.Workers, Threads: c.Threads, Precision: c.Precision,
	}
	for _, s := range r.seconds {
		res.Seconds += s
	}
	for s, v := range r.stages {
		res.Stages[s] = v / float64(n)
	}
	for i := range a.Sizes.Layers {
		v := func(name string) float64 { return r.run.Value(fmt.Sprint(name, i)) }
		res.Hops = append(res.Hops, hopSize{v("dst"), v("src"), v("edges")})
	}
	res.SeedsRate = float64(c.Workers) * res.Hops[0].Dst / res.Step
	res.EdgesRate = float64(c.Workers) * res.Hops.edges() / res.Step
	return res
}

// share describes the ratio of the floor to a time.
func (b *bound) share(seconds float64) string {
	if b.Floor == 0 {
		return "no floor was computed"
	}
	return fmt.Sprintf("floor %.2f ms, %.0f %% of the measured time: %s", b.Floor*1e3, 100*b.Floor/seconds, b.Work.Arithmetic)
}

type benchInferResult struct {
	timed
	Rate    float64   `json:"edges_per_second"`
	Windows []float64 `json:"window_seconds"`
	Peak    int64     `json:"peak_rss_bytes"`
	bound
}

// benchInferArgs are the arguments of the program below.
type benchInferArgs struct {
	Model   string
	Sizes   gnb.ModelConfig
	Windows int
}

// benchInferProgram evaluates a network of random weights exactly: layer by layer, for all nodes.
var benchInferProgram = gnb.Program("bench.infer", func(w *gnb.Worker, a benchInferArgs) error {
	net := w.Network(a.Model, a.Sizes)
	for range w.Epochs(1 + a.Windows) {
		w.Evaluate(net, gnb.FullNeighbors, "train")
	}
	return nil
})

func benchInfer(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("infer", "Computes a network with random weights for all nodes with all neighbours, layer by layer, as the evaluation of gnb train does, and times it after a warm-up.")
	var (
		o       gnb.LaunchOptions
		sizes   gnb.ModelConfig
		spec    = fs.String("dataset", "rmat?scale=17&degree=16", "dataset to compute on")
		model   = fs.String("model", "sage", "model")
		windows = fs.Int("steps", 3, "timed repetitions, of which the median counts")
		limited = fs.Bool("limits", true, "measure the machine's limits too")
	)
	fs.IntVar(&sizes.Layers, "layers", 3, "number of layers")
	fs.IntVar(&sizes.Hidden, "hidden", 256, "width of the hidden layers")
	fs.IntVar(&o.Workers, "workers", 1, "number of worker processes")
	fs.IntVar(&o.Threads, "threads", 0, "threads per worker (default an even share of the CPUs)")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	if err := cli.CountFlags(fs, "steps", "layers", "hidden"); err != nil {
		return err
	}
	if _, err := gnb.ModelByName(*model); err != nil {
		return err
	}
	ds, err := options.Load(ctx, out, *spec)
	if err != nil {
		return err
	}
	defer ds.Close()
	if _, sizes, err = (gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Layers: sizes.Layers, Hidden: sizes.Hidden}}).Loader(ds); err != nil {
		return err
	}
	r, err := launchBench(ctx, ds, benchInferProgram, benchInferArgs{*model, sizes, *windows}, o, *windows)
	if err != nil {
		return err
	}
	total := 0.0
	for _, s := range r.seconds {
		total += s
	}
	t := newTimed(r.run.Config.Threads, time.Duration(total*float64(time.Second)), r.seconds)
	res := benchInferResult{
		timed: t, Rate: float64(ds.Edges()) * float64(sizes.Layers) / t.Median, Windows: r.seconds, Peak: r.run.Result.PeakMemory,
	}
	if *model == "sage" {
		res.floorOf(wholeGraphWork(ds, sizes, false), t.Threads, *limited, 4*sizes.Hidden)
	}
	out.Result(res)
	out.Printf("all %d nodes in %.3f s, %.1f M edges/s; %s\n", ds.Nodes(), t.Median, res.Rate/1e6, res.share(t.Median))
	return nil
}
