package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	planning "github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Task is what a network is trained for, in one worker: the batches of an epoch, the loss of a batch, and the measures of a
// split. The training loop has everything else: epochs, schedule, accumulated gradients, averages of weights, the best
// epoch, patience, the test at the end, results, checkpoints, resumption. Declare a task by [DeclareTask].
//
// Methods that measure are collective: every rank calls them, and all return the same.
type Task interface {
	// Network is the network that is trained.
	Network() Network
	// Batches are the batches of an epoch, from [Worker.Batches], [Worker.BatchesOf] or [Worker.FullGraph].
	Batches(epoch int) iter.Seq[*Batch]
	// Steps is the number of steps of an epoch; see [Worker.StepsPerEpoch] and [Worker.StepsOf].
	Steps() int
	// Loss computes the loss of a batch: a forward pass of the network.
	Loss(b *Batch) *nn.Loss
	// Splits are the splits that can be measured: those of "val" and "test" that have items.
	Splits() []string
	// Measure measures the network on splits, and returns values by names that begin with that of their split: "val_mrr".
	Measure(splits ...string) ([]runs.NamedValue, error)
	// Chooses is the metric that chooses the best epoch by its value on "val".
	Chooses() Metric
}

// Ender is a Task that has work after training, such as files of outputs. Collective.
type Ender interface {
	End() error
}

// Inferrer is a Task that can write what its network says, for [TaskOf.Infer].
type Inferrer interface {
	// Infer writes the outputs of the network, which has the weights of a run, to a file. Collective.
	Infer(file string) error
}

// Metric is a measure as a value: see [metrics.Metric]. A task that measures by itself ([Task].Measure) needs Name and
// Lower; Title and Format say how people read it.
type Metric = metrics.Metric

// DeclareMetric declares a metric of nodes, which [TrainOptions].Metric then chooses by its name, and returns the name. Its
// tallies must combine exactly; see [metrics.Tally]. Declare it at package level:
//
//	var top3 = gnb.DeclareMetric(gnb.Metric{Name: "top3", New: func(classes int) metrics.Tally { … }})
func DeclareMetric(m Metric) string {
	tally.Declared.Add(m.Name, m.New != nil, m.New, m)
	return m.Name
}

// TaskDef is what a task with options of type O consists of.
type TaskDef[O any] struct {
	// Defaults returns what the shared options mean by zero; nil means as those of [Train].
	Defaults func(ds *Dataset, o *O) Defaults
	// Check fills in the defaults of the task's own options, and returns an error for options that do not fit the dataset
	// or each other. It runs where the run is launched, after the shared options have been checked and completed. nil
	// accepts all.
	Check func(ctx context.Context, ds *Dataset, o *O) error
	// Title is the title of a run that the user has not named; nil means the task's name and the dataset's.
	Title func(ds *Dataset, o *O) string
	// Whole leaves edges of weight 0 in the dataset, as events of any weight are events. Other tasks get a dataset without
	// them, as they are no messages; samplers leave them out in any case.
	Whole bool
	// prepare changes the options before defaults are filled in and the shared options are checked.
	prepare func(ds *Dataset, o *O) error
	// job describes a run to package plan, which then counts its memory; nil means that all is tried.
	job func(r resolved, o *O) (planning.Job, error)
	// Start makes the task in a worker. Every rank calls it.
	Start func(w *Worker, o O) (Task, error)
}

// TaskOf is a declared task whose options are of type O.
type TaskOf[O any] struct {
	program *ProgramOf[O]
	infer   *ProgramOf[withTask[O, outputArgs]]
	timed   *ProgramOf[withTask[O, StepsSpec]]
	trial   *ProgramOf[withTask[O, planning.TrialSpec]]
	def     TaskDef[O]
	subject func(o *O) TaskOptions
}

// withTask is the argument of a program that makes the task of a run, and does something else with it than to train.
type withTask[O, A any] struct {
	Options O
	Do      A
}

// programWith declares a program that makes a task as its training does, and calls do on every rank. Its name is that of the task
// with suffix.
func programWith[O, A any](t *TaskOf[O], suffix string, do func(w *Worker, task Task, o TaskOptions, a A) error) *ProgramOf[withTask[O, A]] {
	p := &ProgramOf[withTask[O, A]]{t.Name() + "." + suffix}
	programs.Add(p.name, t.def.Start != nil, t.def.Start, programDef{name: p.name, whole: t.def.Whole, run: decoded("options of task", t.Name(), func(w *Worker, a withTask[O, A]) error {
		task, err := t.def.Start(w, a.Options)
		if err != nil {
			return err
		}
		return do(w, task, t.subject(&a.Options), a.Do)
	})})
	return p
}

// outputArgs says what [TaskOf.Infer] computes.
type outputArgs struct{ Weights, Out string }

// briefly returns the options to launch a short run that leaves nothing, with those of a run that determine how it computes.
func (o LaunchOptions) briefly() LaunchOptions {
	return LaunchOptions{
		Data: o.Data, Workers: o.Workers, VirtualRanks: o.VirtualRanks, Threads: o.Threads, Device: o.Device, FirstGPU: o.FirstGPU, Precision: o.Precision,
		Seed: o.Seed, PlaneOptions: o.PlaneOptions, Quiet: true, Scratch: true,
	}
}

// DeclareTask declares a task under a name that must be unique in the program, for instance
//
//	type Options struct {
//		gnb.ModelOptions
//		gnb.SamplerOptions
//		gnb.OptimizerOptions
//		gnb.EvaluationOptions
//		gnb.LaunchOptions
//	}
//
//	var Mean = gnb.DeclareTask("mean", gnb.TaskDef[Options]{Start: start})
//
// Declare it at package level. [TaskOf.Train] trains.
func DeclareTask[O any, P interface {
	*O
	TaskOptions
}](name string, d TaskDef[O]) *TaskOf[O] {
	t := &TaskOf[O]{program: &ProgramOf[O]{name}, def: d, subject: func(o *O) TaskOptions { return P(o) }}
	programs.Add(name, d.Start != nil, d.Start, programDef{name: name, whole: d.Whole, run: decoded("options of task", name, func(w *Worker, o O) error {
		task, err := d.Start(w, o)
		if err != nil {
			return err
		}
		return w.train(task, t.subject(&o))
	})})
	t.infer = programWith(t, "outputs", func(w *Worker, task Task, _ TaskOptions, a outputArgs) error {
		i, ok := task.(Inferrer)
		if !ok {
			return fmt.Errorf("gnb: task %q writes no outputs; give its %T the method Infer", name, task)
		}
		w.LoadWeights(task.Network(), a.Weights)
		return i.Infer(a.Out)
	})
	t.timed = programWith(t, "steps", (*Worker).timeSteps)
	t.trial = programWith(t, "trial", (*Worker).tryTask)
	return t
}

// Infer writes what the network of a run of this task says of a dataset, with the weights of the best epoch if the run has
// them, to a file. The task's Start makes the network again, with the options of the run, and its method Infer writes.
func (t *TaskOf[O]) Infer(ctx context.Context, run *runs.Run, ds *Dataset, out string, o InferOptions) error {
	had, err := t.OptionsOf(run)
	switch {
	case err != nil:
		return err
	case ds == nil || out == "":
		return fmt.Errorf("gnb: Infer of task %q needs a dataset (gnb.Load) and the name of a file to write", t.Name())
	case o.Layer != 0:
		return fmt.Errorf("gnb: InferOptions.Layer is %d, and what task %q writes is its own; leave Layer out", o.Layer, t.Name())
	}
	if ds, err = feed.AsTrained(ctx, "gnb", run.Config.ID, run.Config.FeatureNames, ds, o.Quiet, &notice.List{}); err != nil {
		return err
	}
	*t.subject(&had).launch() = LaunchOptions{}
	file, _, err := run.WeightsFile(o.Final)
	if err != nil {
		return err
	}
	write, deliver, err := runfile.Output(runfile.Absolute(out), ErrInterrupted)
	if err != nil {
		return err
	}
	_, err = Launch(ctx, t.infer, withTask[O, outputArgs]{had, outputArgs{file, write}}, LaunchOptions{
		Data: ds, Scratch: true, Workers: o.Workers, Threads: o.Threads, Device: o.Device, Seed: run.Config.Seed, Quiet: o.Quiet,
		PlaneOptions: PlaneOptions{Features: o.Features}, Title: t.Name() + " on all of " + ds.Name(),
	})
	return deliver(ctx, err)
}

// Name is the name the task was declared under.
func (t *TaskOf[O]) Name() string { return t.program.name }

// complete returns the options that a run records, with defaults in place of zeros, and those of the launch.
func (t *TaskOf[O]) complete(ctx context.Context, ds *Dataset, o O) (O, LaunchOptions, error) {
	of := t.subject(&o)
	if ds == nil {
		return o, LaunchOptions{}, noDataset(t.Name())
	}
	if t.def.prepare != nil {
		if err := t.def.prepare(ds, &o); err != nil {
			return o, LaunchOptions{}, err
		}
	}
	var d Defaults
	if t.def.Defaults != nil {
		d = t.def.Defaults(ds, &o)
	}
	if err := complete(of, ds, d); err != nil {
		return o, LaunchOptions{}, err
	}
	if t.def.Check != nil {
		if err := t.def.Check(ctx, ds, &o); err != nil {
			return o, LaunchOptions{}, err
		}
	}
	l := *of.launch()
	l.Data, l.VirtualRanks = ds, virtual(of)
	if l.Title == "" && t.def.Title != nil {
		l.Title = t.def.Title(ds, &o)
	}
	l.Title = cmp.Or(l.Title, t.Name()+" on "+ds.Name())
	*of.launch() = LaunchOptions{}
	return o, l, nil
}

// SharedOptions returns the options that a task shares with others: the subjects that it has.
func (t *TaskOf[O]) SharedOptions(o O) TrainOptions { return sharedOf(t.subject(&o)) }

// sharedOf returns the subjects that options of a task have.
func sharedOf(of TaskOptions) (o TrainOptions) {
	o.OptimizerOptions, o.LaunchOptions = *of.optimizer(), *of.launch()
	if m := modelOf(of); m != nil {
		o.ModelOptions = *m
	}
	if s := samplerOf(of); s != nil {
		o.SamplerOptions = *s
	}
	if c, ok := of.(interface{ cooperative() bool }); ok {
		o.Cooperative = c.cooperative()
	}
	if e := evaluationOf(of); e != nil {
		o.EvaluationOptions = *e
	}
	return o
}

// WithLaunch returns options with other ones of the launch.
func (t *TaskOf[O]) WithLaunch(o O, l LaunchOptions) O {
	*t.subject(&o).launch() = l
	return o
}

// Recorded returns what a run with these options records of them, as JSON: those that determine its result, with defaults in
// place of zeros.
func (t *TaskOf[O]) Recorded(ctx context.Context, ds *Dataset, o O) (json.RawMessage, error) {
	ds, err := feed.OneWidth(ctx, ds, true) // as Train does
	if err != nil {
		return nil, err
	}
	full, _, err := t.complete(ctx, ds, o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(full)
}

// Options returns the options that [TaskOf.Recorded] has recorded.
func (t *TaskOf[O]) Options(recorded json.RawMessage) (o O, err error) {
	if err := json.Unmarshal(recorded, &o); err != nil {
		return o, fmt.Errorf("gnb: recorded options of %s are damaged: %w", t.Name(), err)
	}
	return o, nil
}

// Identify returns the identity of a dataset's content and the task's code, as runs record it.
func (t *TaskOf[O]) Identify(ctx context.Context, ds *Dataset) (*runs.Identity, error) {
	return identify(ctx, ds, codeOf(t.Name(), nil))
}

// Train trains with options on a dataset and shows loss, metric and workers live. It runs as a program ([Launch]) does: with
// interrupts, checkpoints, exact resumption and a run directory.
//
// The run's results have the values of the epoch with the best metric on the validation split ("best_epoch"), and those of
// the test split, which is measured once, with the weights of that epoch (or the final ones, if nothing chooses an epoch).
// best.safetensors holds the weights of that epoch, model.safetensors the final ones.
func (t *TaskOf[O]) Train(ctx context.Context, ds *Dataset, o O) (*runs.Run, error) {
	entry.Enter()
	if ds == nil {
		return nil, noDataset(t.Name())
	}
	ds, err := feed.OneWidth(ctx, ds, t.subject(&o).launch().Quiet)
	if err != nil {
		return nil, err
	}
	o, l, err := t.complete(ctx, ds, o)
	if err != nil {
		return nil, err
	}
	return Launch(ctx, t.program, o, l)
}

// OptionsOf returns the options of a run of this task that determine its result. With them, and the run's directory as
// Resume, [TaskOf.Train] resumes the run. It fails for a run of another program.
func (t *TaskOf[O]) OptionsOf(r *runs.Run) (o O, err error) {
	switch {
	case r == nil:
		return o, fmt.Errorf("gnb: there is no run; get one from runs.Last or runs.Open")
	case r.Config.Program != t.Name():
		return o, fmt.Errorf("gnb: %s is a run of program %q, not of %q", r.Dir, r.Config.Program, t.Name())
	}
	if err := json.Unmarshal(r.Config.Args, &o); err != nil {
		return o, fmt.Errorf("gnb: the options of run %s are damaged: %w", r.Dir, err)
	}
	again(t.subject(&o), r.Config)
	return o, nil
}

// train is the training loop of every task.
func (w *Worker) train(t Task, o TaskOptions) error {
	of, eval := *o.optimizer(), EvaluationOptions{Eval: "none"}
	if e := evaluationOf(o); e != nil {
		eval = *e
	}
	net, metric := t.Network(), t.Chooses()
	opt := w.OptimizerOf(net, of, t.Steps)
	if s := samplerOf(o); s != nil && s.Digest {
		w.Digest()
	}
	var during, after []string // splits that are measured during training, and after it
	if eval.Eval != "none" {
		splits := t.Splits()
		if slices.Contains(splits, "val") {
			during = []string{"val"}
		}
		if slices.Contains(splits, "test") {
			// One tunes on what one sees, so the test split is for the end. A run without a directory keeps no best weights.
			if eval.WatchTest || len(during) > 0 && w.RunDir() == "" {
				during = append(during, "test")
			} else {
				after = []string{"test"}
			}
		}
	}
	chooses := slices.Contains(during, "val")
	if !chooses && (eval.Patience > 0 || of.Schedule.Kind == "plateau") {
		return errors.New("gnb: Patience and a plateau watch the metric of the validation split, and none is measured here; leave them out, or evaluate a dataset with a validation split")
	}
	if chooses {
		w.emitFirst(runs.Event{Kind: runs.KindMetric, Metric: &metric})
		w.BestBy(net, Best{By: "val_" + metric.Name, Minimize: metric.Lower, Patience: eval.Patience})
	}
	measure := func(splits []string) (score float64, err error) {
		values, err := t.Measure(splits...)
		if err != nil {
			return 0, err
		}
		w.Report(values...)
		if !slices.Contains(splits, "val") {
			return 0, nil
		}
		i := slices.IndexFunc(values, func(v runs.NamedValue) bool { return v.Name == "val_"+metric.Name })
		if i < 0 {
			return 0, fmt.Errorf("gnb: the metric %s chooses the best epoch, and the task's Measure returns no val_%[1]s; return it, or choose another metric", metric.Name)
		}
		if score = values[i].Value; metric.Lower {
			score = -score
		}
		return score, nil
	}
	for epoch := range w.Epochs(of.Epochs) {
		for b := range t.Batches(epoch) {
			w.Step(t.Loss(b), opt)
		}
		if len(during) > 0 && ((epoch+1)%eval.EvalEvery == 0 || epoch+1 == of.Epochs) {
			score, err := measure(during)
			if err != nil {
				return err
			}
			if chooses {
				opt.Observe(score)
			}
		}
	}
	if len(after) > 0 {
		var err error
		last := func() { _, err = measure(after) }
		if _, ok := w.saving.Best.Epoch(net.net().index); ok && chooses {
			w.withBest(net, last)
		} else {
			if chooses {
				w.Printf("no epoch is the best by the validation split, so the test split is measured with the final weights")
			}
			last()
		}
		if err != nil {
			return err
		}
	}
	if e, ok := t.(Ender); ok {
		return e.End()
	}
	return nil
}
