package main

import (
	"context"
	"flag"
	"io"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/plan"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/scaling"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/phrase"
)

// task is what "gnb train --task" trains for.
type task struct {
	name    string
	options any // a pointer to the task's options, of which flags are made
	// defaults are those that differ from the ones of nodes, for the help.
	defaults map[string]string
	launch   *gnb.LaunchOptions
	eval     *gnb.EvaluationOptions
	// take returns the options of a run of the task.
	take func(run *runs.Run) (any, error)
	// load loads the dataset, and finishes the options.
	load func(ctx context.Context, out *cli.Output, fs *flag.FlagSet, spec string) (*dataset.Dataset, error)
	// train trains on it.
	train func(ctx context.Context, ds *dataset.Dataset) (*runs.Run, error)

	// hint says what another way of training would add, "" if nothing.
	hint func(ds *dataset.Dataset) string
	// sets says that a dataset can have several sets of splits for the task, of which --split chooses one.
	sets bool
	// metric returns the metric that measures the task on a dataset unless the user names one; nil is that of nodes.
	metric func(ds *dataset.Dataset) gnb.Metric
	// finish finishes the options of a trial of a sweep, and search searches: trial returns the task with a trial's options.
	finish func(fs *flag.FlagSet, ds *dataset.Dataset) error
	search func(ctx context.Context, ds *dataset.Dataset, trial func(*sweep.Trial) *task, o sweep.Options) (*sweep.Study, error)
	// scale measures the speed with numbers of workers.
	scale func(ctx context.Context, ds *dataset.Dataset, how scaling.How, workers []int) (scaling.Curve, error)
	// plan predicts what training takes.
	plan func(ctx context.Context, ds *dataset.Dataset) (*plan.Plan, error)
}

// taskNames are the names of the tasks, the default first.
var taskNames = []string{"nodes", "links", "triples", "numbers", "graphs", "events", "node-events"}

// taskOfProgram are the names of tasks by the programs that their runs record.
var taskOfProgram = map[string]string{"gnb.train": "nodes", links.TrainProgram: "links", kg.TrainProgram: "triples", numbers.TrainProgram: "numbers", graphs.TrainProgram: "graphs", events.TrainProgram: "events", events.NodeTrainProgram: "node-events"}

// newTask makes a task by its name.
func newTask(name string) (*task, error) {
	switch name {
	case "nodes":
		o, model := &options.Nodes{}, gnb.AnyModel(nil)
		return &task{
			name: name, options: o, launch: &o.LaunchOptions, eval: &o.EvaluationOptions, sets: true,
			take: func(run *runs.Run) (any, error) {
				name, had, err := gnb.OptionsOf(run)
				if err != nil {
					return nil, err
				}
				m, err := gnb.ModelByName(name)
				return &options.Nodes{Model: m, TrainOptions: had}, err
			},
			load: func(ctx context.Context, out *cli.Output, fs *flag.FlagSet, spec string) (ds *dataset.Dataset, err error) {
				model, ds, err = o.Load(ctx, out, fs, spec)
				return ds, err
			},
			train: func(ctx context.Context, ds *dataset.Dataset) (*runs.Run, error) {
				return gnb.Train(ctx, ds, model, o.TrainOptions)
			},
			finish: func(fs *flag.FlagSet, ds *dataset.Dataset) error { _, err := o.Finish(fs, ds); return err },
			scale: func(ctx context.Context, ds *dataset.Dataset, how scaling.How, workers []int) (scaling.Curve, error) {
				return scaling.Measure(ctx, ds, model, scaling.Options{TrainOptions: o.TrainOptions, Weak: how.Weak, Repeats: how.Repeats, Steps: how.Steps, WarmUp: how.WarmUp}, workers)
			},
			plan: func(ctx context.Context, ds *dataset.Dataset) (*plan.Plan, error) {
				return gnb.Plan(ctx, ds, model, o.TrainOptions)
			},
			hint: func(ds *dataset.Dataset) string { return o.RecipeHint(ds, model.Name()) },
			search: func(ctx context.Context, ds *dataset.Dataset, trial func(*sweep.Trial) *task, so sweep.Options) (*sweep.Study, error) {
				return sweep.Run(ctx, ds, model, func(t *sweep.Trial) gnb.TrainOptions { return trial(t).options.(*options.Nodes).TrainOptions }, so)
			},
		}, nil
	case "links":
		o := &links.Options{}
		spread := func(fs *flag.FlagSet) { options.SpreadFanouts(fs, o.Layers) }
		t := taskFrom(name, o, &o.LaunchOptions, &o.EvaluationOptions, links.Task, spread)
		t.defaults = map[string]string{"epochs": "10, or 200 with --full-graph", "lr": "0.01, or 0.001 for large features", "metric": "auc"}
		t.metric = always(gnb.Metric{Name: "auc"})
		return t, nil
	case "triples":
		o := &kg.Options{}
		t := taskFrom(name, o, &o.LaunchOptions, &o.EvaluationOptions, kg.Task, nil)
		t.defaults = map[string]string{"batch": "128", "epochs": "100", "lr": "0.003", "eval-every": "10", "metric": "mrr", "dropout": "none"}
		t.metric = always(gnb.Metric{Name: "mrr"})
		return t, nil
	case "numbers":
		o := &numbers.Options{}
		spread := func(fs *flag.FlagSet) { options.SpreadFanouts(fs, o.Layers) }
		t := taskFrom(name, o, &o.LaunchOptions, &o.EvaluationOptions, numbers.Task, spread)
		t.defaults = map[string]string{"metric": "mae"}
		t.sets, t.metric = true, always(metrics.MAEMetric)
		return t, nil
	case "graphs":
		o := &graphs.Options{}
		t := taskFrom(name, o, &o.LaunchOptions, &o.EvaluationOptions, graphs.Task, nil)
		t.defaults = map[string]string{"batch": "128", "epochs": "100", "lr": "0.001", "layers": "4", "norm": "batch"}
		t.sets, t.metric = true, func(ds *dataset.Dataset) gnb.Metric { return graphs.MetricOf(ds, o.Predict) }
		return t, nil
	case "events":
		o := &events.Options{}
		t := taskFrom(name, o, &o.LaunchOptions, &o.EvaluationOptions, events.Task, nil)
		t.defaults = map[string]string{"batch": "200", "epochs": "20", "lr": "0.001, networks 0.0001", "hidden": "64, networks 100", "heads": "2", "layers": "2", "metric": "mrr"}
		t.metric = always(gnb.Metric{Name: "mrr"})
		return t, nil
	case "node-events":
		o := &events.NodeOptions{}
		t := taskFrom(name, o, &o.LaunchOptions, &o.EvaluationOptions, events.NodeTask, nil)
		t.defaults = map[string]string{"batch": "200", "epochs": "20", "lr": "0.001", "loss": "absolute", "metric": "mae, or auc with --ask any"}
		t.metric = func(ds *dataset.Dataset) gnb.Metric { return events.NodeMetricOf(ds, *o) }
		return t, nil
	}
	return nil, cli.Usagef("--task is %q; it is %s", name, strings.Join(taskNames, ", "))
}

// always returns the same metric for every dataset.
func always(m gnb.Metric) func(*dataset.Dataset) gnb.Metric {
	return func(*dataset.Dataset) gnb.Metric { return m }
}

// trainable is a task of a package beside gnb.
type trainable[O any] interface {
	sweep.Task[O]
	scaling.Task[O]
	Plan(ctx context.Context, ds *dataset.Dataset, o O) (*plan.Plan, error)
	OptionsOf(run *runs.Run) (O, error)
}

// taskFrom makes the task of a package beside gnb, whose options are o with the given parts; finish, unless nil, finishes them
// once flags are parsed.
func taskFrom[O any](name string, o *O, l *gnb.LaunchOptions, e *gnb.EvaluationOptions, of trainable[O], finish func(*flag.FlagSet)) *task {
	if finish == nil {
		finish = func(*flag.FlagSet) {}
	}
	t := &task{name: name, options: o, launch: l, eval: e}
	t.take = func(run *runs.Run) (any, error) { had, err := of.OptionsOf(run); return &had, err }
	t.load = func(ctx context.Context, out *cli.Output, fs *flag.FlagSet, spec string) (*dataset.Dataset, error) {
		finish(fs)
		if t.sets {
			return options.LoadSplitSet(ctx, out, spec, options.SplitOf(fs))
		}
		return options.Load(ctx, out, spec)
	}
	t.train = func(ctx context.Context, ds *dataset.Dataset) (*runs.Run, error) { return of.Train(ctx, ds, *o) }
	t.finish = func(fs *flag.FlagSet, _ *dataset.Dataset) error { finish(fs); return nil }
	t.search = func(ctx context.Context, ds *dataset.Dataset, trial func(*sweep.Trial) *task, so sweep.Options) (*sweep.Study, error) {
		return sweep.RunTask(ctx, ds, of, func(s *sweep.Trial) O { return *trial(s).options.(*O) }, so)
	}
	t.plan = func(ctx context.Context, ds *dataset.Dataset) (*plan.Plan, error) { return of.Plan(ctx, ds, *o) }
	t.scale = func(ctx context.Context, ds *dataset.Dataset, how scaling.How, workers []int) (scaling.Curve, error) {
		return scaling.MeasureTask(ctx, ds, of, *o, how, workers)
	}
	return t
}

// flags makes the flags of the task.
func (t *task) flags(fs *flag.FlagSet, but ...string) {
	fs.String("task", t.name, "what to predict: nodes (their classes), "+phrase.List(taskNames[1:]))
	options.Bind(fs, t.options, but...)
	options.Defaults(fs, t.defaults)
	if t.sets {
		options.SplitFlag(fs)
	}
}

// takeFlags sets the options that the user did not give to those of a run, so that "gnb train --resume RUN" alone resumes it.
func (t *task) takeFlags(fs *flag.FlagSet, run *runs.Run) error {
	had, err := t.take(run)
	if err != nil {
		return err
	}
	options.Take(fs, t.options, had)
	split := false
	fs.Visit(func(f *flag.Flag) { split = split || f.Name == "split" })
	if t.sets && !split {
		return fs.Set("split", strconv.Itoa(run.Config.SplitSet))
	}
	return nil
}

// argument returns the value of a flag that is needed before the flags of the task are known.
func argument(args []string, name string) (value string, ok bool) {
	for i, a := range args {
		flag, text, with := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case a == "--":
			return value, ok
		case flag != name || !strings.HasPrefix(a, "-"):
		case with:
			value, ok = text, true
		case i+1 < len(args):
			value, ok = args[i+1], true
		}
	}
	return value, ok
}

// checkRead returns an error if the flags, once parsed, say another task or run than argument read: a word such as --task was
// the value of another flag.
func (t *task) checkRead(fs *flag.FlagSet, old *runs.Run) error {
	resume := ""
	if r := t.launch.Resume; r != gnb.Never {
		resume = r
	}
	if name := fs.Lookup("task").Value.String(); name != t.name {
		return cli.Usagef("--task is %s, and another word of the command reads as --task %s; write the values of other flags with an equals sign, as in --title=TEXT", name, t.name)
	}
	if (old == nil) != (resume == "") {
		return cli.Usagef("another word of the command reads as --resume; write the values of other flags with an equals sign, as in --title=TEXT")
	}
	return nil
}

// chosenTask returns the task that the arguments of a command without runs choose.
func chosenTask(args []string) (*task, error) {
	name, chosen := argument(args, "task")
	if !chosen {
		name = taskNames[0]
	}
	return newTask(name)
}

// taskOf returns the task that the arguments choose, or that of the run to resume, and this run; nil for a new run.
func taskOf(args []string) (*task, *runs.Run, error) {
	name, chosen := argument(args, "task")
	old, err := resumedRun(args)
	if err != nil {
		return nil, nil, err
	}
	if old != nil {
		theirs := taskOfProgram[old.Config.Program]
		switch {
		case old.Config.Program == "gnb.embed":
			return nil, nil, cli.Usagef("run %s learns embeddings by walks; resume it by gnb embed --resume %s", old.Dir, old.Dir)
		case theirs == "":
			return nil, nil, cli.Usagef("run %s is one of the program %q, not of gnb train; resume it in its own program", old.Dir, old.Config.Program)
		}
		if chosen && name != theirs {
			return nil, nil, cli.Usagef("run %s predicts %s, and --task is %s; leave --task out to resume it, or begin another run (--from %s starts with its weights)", old.Dir, theirs, name, old.Dir)
		}
		name = theirs
	} else if !chosen {
		name = taskNames[0]
	}
	t, err := newTask(name)
	return t, old, err
}

// strange returns an error for a flag that another task has.
func (t *task) strange(fs *flag.FlagSet, args []string) error {
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if a == "--" {
			return nil
		}
		if !strings.HasPrefix(a, "--") || fs.Lookup(name) != nil {
			continue
		}
		var have []string
		for _, other := range taskNames {
			o, err := newTask(other)
			if err != nil {
				return err
			}
			theirs := flag.NewFlagSet("", flag.ContinueOnError)
			theirs.SetOutput(io.Discard)
			o.flags(theirs)
			if theirs.Lookup(name) != nil {
				have = append(have, other)
			}
		}
		if len(have) > 0 {
			return cli.Usagef("--%s is for %s, and this task is %s; add --task %s, or leave --%s out", name, phrase.List(have), t.name, strings.Join(have, " or --task "), name)
		}
	}
	return nil
}

// checkResume returns an error for flags of resumption that exclude each other.
func checkResume(o *gnb.LaunchOptions) error {
	resumes := o.Resume != "" && o.Resume != gnb.Never
	switch {
	case o.ResumeChanged && !resumes:
		return cli.Usagef("--resume-changed needs --resume with the directory of the run")
	case o.From != "" && resumes:
		return cli.Usagef("--from begins a new run with the weights of another one, and --resume continues a run; give one of them")
	}
	return nil
}

// datasetOf returns the dataset of the arguments rest, else that of the run to resume, nil for none.
func datasetOf(rest []string, old *runs.Run) (spec string, err error) {
	switch {
	case len(rest) > 0:
		return rest[0], nil
	case old == nil:
		return "", cli.Usagef("the DATASET is missing")
	case old.DatasetSpec() == "":
		return "", cli.Usagef("run %s did not record where its dataset %s came from; give DATASET", old.Dir, old.Config.Dataset)
	}
	return old.DatasetSpec(), nil
}

// resumedRun returns the run named by --resume, nil if there is none.
func resumedRun(args []string) (*runs.Run, error) {
	name, ok := argument(args, "resume")
	if !ok || name == "" || name == gnb.Never {
		return nil, nil
	}
	return saving.OpenToResume(options.RunDir(name))
}
