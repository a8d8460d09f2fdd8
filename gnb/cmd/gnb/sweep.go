package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/internal/phrase"
)

var sweepCommand = cli.Command{Name: "sweep", Summary: "search the hyper-parameters that train a model best", Run: runSweep}

// sweepParam is one --param: a flag of "gnb train" and the values that trials give it.
type sweepParam struct {
	name      string
	log       bool
	whole     bool
	low, high float64
	choices   []string // instead of a range
}

// sweepParams is the flag --param, which can be given more than once.
type sweepParams []sweepParam

func (p *sweepParams) String() string { return "" }

// Set reads lr=log:1e-4:1e-1, dropout=0:0.7 or hidden=64,128,256.
func (p *sweepParams) Set(s string) error {
	name, spec, ok := strings.Cut(s, "=")
	if !ok || name == "" || spec == "" {
		return fmt.Errorf("it is NAME=VALUES, such as lr=log:1e-4:1e-1, dropout=0:0.7 or hidden=64,128")
	}
	if slices.ContainsFunc(*p, func(q sweepParam) bool { return q.name == name }) {
		return fmt.Errorf("%s is given twice", name)
	}
	q := sweepParam{name: name}
	spec, q.log = strings.CutPrefix(spec, "log:")
	low, high, span := strings.Cut(spec, ":")
	switch {
	case span:
		var err, err2 error
		q.low, err = strconv.ParseFloat(low, 64)
		q.high, err2 = strconv.ParseFloat(high, 64)
		if err != nil || err2 != nil {
			return fmt.Errorf("%q is not a range; it is LOW:HIGH or log:LOW:HIGH", spec)
		}
	case q.log:
		return fmt.Errorf("%q is not a range; it is log:LOW:HIGH", spec)
	case strings.Contains(spec, "|"): // separates values that contain commas, such as fanouts
		q.choices = strings.Split(spec, "|")
	default:
		q.choices = strings.Split(spec, ",")
	}
	*p = append(*p, q)
	return nil
}

// notSwept are the flags of "gnb train" that are not a trial's: sweeps have their own of these names, or directories.
var notSwept = append([]string{"metric"}, notPlanned...)

// trialOf makes the task of a trial, and its flags with the values in given.
func trialOf(name string, given *flag.FlagSet) (*task, *flag.FlagSet, error) {
	t, err := newTask(name)
	if err != nil {
		return nil, nil, err
	}
	fs := flag.NewFlagSet("trial", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	options.Bind(fs, t.options, notSwept...)
	given.Visit(func(f *flag.Flag) {
		if fs.Lookup(f.Name) != nil && err == nil {
			err = fs.Set(f.Name, f.Value.String())
		}
	})
	return t, fs, err
}

// check finds each parameter's flag, and tries its values.
func (p sweepParams) check(task string, given *flag.FlagSet) error {
	for i := range p {
		_, fs, err := trialOf(task, given)
		if err != nil {
			return err
		}
		q := &p[i]
		f := fs.Lookup(q.name)
		if f == nil || q.name == "model" {
			return cli.Usagef("--param %s: it must be a flag of \"gnb train\" that changes how a model is trained, such as lr, hidden, dropout or fanout", q.name)
		}
		try := q.choices
		if q.choices == nil {
			var kind any
			if g, ok := f.Value.(flag.Getter); ok {
				kind = g.Get()
			}
			switch kind.(type) {
			case float64:
			case int:
				q.whole = true
				if q.low != float64(int(q.low)) || q.high != float64(int(q.high)) {
					return cli.Usagef("--param %s: %v to %v; its values must be whole numbers", q.name, q.low, q.high)
				}
			default:
				return cli.Usagef("--param %s: it takes no range; list its values, as in %s=a,b", q.name, q.name)
			}
		}
		for _, v := range try {
			if err := fs.Set(q.name, v); err != nil {
				return cli.Usagef("--param %s: %q: %v", q.name, v, err)
			}
		}
	}
	return nil
}

// value requests the parameter from a trial, and returns the flag's value.
func (p sweepParam) value(t *sweep.Trial) string {
	switch {
	case p.choices != nil:
		return sweep.Choice(t, p.name, p.choices...)
	case p.whole && p.log:
		return strconv.Itoa(t.LogInt(p.name, int(p.low), int(p.high)))
	case p.whole:
		return strconv.Itoa(t.Int(p.name, int(p.low), int(p.high)))
	case p.log:
		return strconv.FormatFloat(t.LogFloat(p.name, p.low, p.high), 'g', -1, 64)
	}
	return strconv.FormatFloat(t.Float(p.name, p.low, p.high), 'g', -1, 64)
}

// sweepResult is the result of "gnb sweep".
type sweepResult struct {
	*sweep.Study
	Dir        string             `json:"dir"`
	Best       *sweep.TrialResult `json:"best"`
	Importance []sweep.Importance `json:"importance"`
}

func newSweepResult(s *sweep.Study) sweepResult {
	return sweepResult{Study: s, Dir: s.Dir, Best: s.Best(), Importance: s.Importance()}
}

func runSweep(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("DATASET", "Trains a model many times to find the options that do best on validation. Each --param is a flag of \"gnb train\" (of the --task) with a range (lr=log:1e-4:1e-1, dropout=0:0.7, hidden=log:16:256) or values (hidden=64,128, fanout=\"10,10|15,10\"); all other flags of training apply to every trial.")
	ranks.InsecureFlag(fs)
	name, chosen := argument(args, "task")
	if !chosen {
		name = taskNames[0]
		for _, flag := range []string{"dir", "resume"} { // a sweep that is continued has its task
			if dir, ok := argument(args, flag); ok {
				if old, err := sweep.Open(options.RunDir(dir)); err == nil {
					name = cmp.Or(taskOfProgram[old.Model], name) // of nodes it is the model's name
				}
			}
		}
	}
	base, err := newTask(name)
	if err != nil {
		return err
	}
	var (
		o      sweep.Options
		params sweepParams
		draw   = fs.String("png", "", "picture `file` for the trials")
		seeds  = fs.Int("seeds", 0, "seeds to repeat training with, instead of --param")
	)
	base.flags(fs, notSwept...)
	options.Verify(out, fs)
	fs.Var(&params, "param", "training flag to search, as `NAME=VALUES` (repeatable)")
	fs.StringVar(&o.Method, "method", "tpe", "grid, random, sobol, tpe or asha")
	fs.IntVar(&o.Trials, "trials", 0, "number of trials (default 20, or the whole grid)")
	fs.IntVar(&o.Parallel, "parallel", 1, "number of concurrent trials")
	fs.StringVar(&o.Metric, "metric", "", "`value` to optimise: val_loss, auc, … (default the validation metric)")
	fs.BoolVar(&o.Minimize, "minimize", false, "minimise instead of maximise")
	fs.IntVar(&o.Levels, "levels", 0, "grid values per range (default 5)")
	fs.IntVar(&o.MinEpochs, "min-epochs", 0, "epochs before asha stops a trial (default 1/27 of --epochs)")
	fs.IntVar(&o.Reduction, "reduction", 0, "asha keeps the best 1/N per rung (default 3)")
	fs.StringVar(&o.Dir, "dir", "", "`directory` of the sweep, resumed if it exists (default new)")
	fs.StringVar(&o.Resume, "resume", "", "`directory` of a sweep to resume or extend, or never")
	fs.BoolVar(&o.ResumeChanged, "resume-changed", false, "resume even if the data differs, and record it")
	rest, err := out.Parse(fs, args, 1, 1)
	if err != nil {
		return cmp.Or(base.strange(fs, args), err)
	}
	if err := base.checkRead(fs, nil); err != nil {
		return err
	}
	if err := cli.NotZero(fs, "trials", "parallel", "levels", "min-epochs", "reduction", "seeds"); err != nil {
		return err
	}
	if *seeds > 0 {
		nodes, ok := base.options.(*options.Nodes)
		if !ok {
			return cli.Usagef("--seeds repeats the training of nodes, and --task is %s; search over seeds instead: --param seed=1,2,3", name)
		}
		return runRepeat(ctx, out, fs, repeated{n: *seeds, base: nodes, o: o, params: len(params), dataset: rest[0], png: *draw})
	}
	if len(params) == 0 {
		return cli.Usagef("a --param is missing, such as --param lr=log:1e-4:1e-1, or --seeds, such as --seeds 10")
	}
	if err := params.check(name, fs); err != nil {
		return err
	}
	ds, err := base.load(ctx, out, fs, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	kind := ""
	if base.metric != nil { // of nodes, package sweep decides
		usual := base.metric(ds)
		split, of, _ := strings.Cut(o.Metric, "_")
		if split != "val" && split != "test" {
			split, of = "val", cmp.Or(o.Metric, usual.Name)
		}
		if of == "" || of == "loss" {
			return cli.Usagef("--metric %s: the task %s is measured by %s and such; give one of its metrics", o.Metric, name, usual.Name)
		}
		o.Minimize = o.Minimize || o.Metric == "" && usual.Lower
		kind, o.Metric = of, split+"_"+of
	}
	o.Seed, o.Quiet = base.launch.Seed, out.JSON
	o.Events = func(r sweep.TrialResult) { trialEvent(out, r) }
	var wrong error // error of a flag; check has already tried its values
	study, err := base.search(ctx, ds, func(t *sweep.Trial) *task {
		trial, own, err := trialOf(name, fs)
		for _, p := range params {
			if err == nil {
				err = own.Set(p.name, p.value(t))
			}
		}
		if err == nil {
			err = trial.finish(own, ds)
		}
		if err != nil && wrong == nil {
			wrong = err
		}
		if kind != "" {
			trial.eval.Metric = kind
		}
		return trial
	}, o)
	if wrong != nil {
		return wrong
	}
	if study != nil && len(study.Trials) > 0 {
		out.Printf("%s", study)
	}
	if err != nil {
		return err
	}
	if err := drawTo(*draw, study.PNG); err != nil {
		return err
	}
	if best := study.Best(); best != nil {
		out.Printf("to train the best trial again: %s\n", trainCommandLine(name, fs, rest[0], best))
	}
	out.Result(newSweepResult(study))
	return nil
}

// trainCommandLine returns the "gnb train" command that trains a trial again.
func trainCommandLine(task string, fs *flag.FlagSet, dataset string, best *sweep.TrialResult) string {
	words := []string{"gnb", "train", shellWord(dataset)}
	if task != taskNames[0] {
		words = append(words, "--task="+task)
	}
	_, known, err := trialOf(task, fs)
	if err != nil {
		return ""
	}
	fs.Visit(func(f *flag.Flag) {
		swept := slices.ContainsFunc(best.Params, func(p sweep.Hyperparameter) bool { return p.Name == f.Name })
		if f.Name == "split" || known.Lookup(f.Name) != nil && !swept {
			words = append(words, "--"+f.Name+"="+shellWord(f.Value.String()))
		}
	})
	if m := best.Options.Metric; m != "" {
		words = append(words, "--metric="+m)
	}
	for _, p := range best.Params {
		words = append(words, "--"+p.Name+"="+shellWord(p.Text()))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word for a shell if it needs quotes.
func shellWord(s string) string {
	if strings.ContainsAny(s, " ?&*$|;<>()'\"\\`") {
		return phrase.ShellQuoted(s)
	}
	return s
}

// trialEvent writes the event of a trial that started or ended.
func trialEvent(out *cli.Output, r sweep.TrialResult) {
	values := map[string]string{}
	for _, p := range r.Params {
		values[p.Name] = p.Text()
	}
	fields := map[string]any{"trial": r.Number, "state": r.State, "values": values, "run": r.Run}
	switch r.State {
	case runs.StateRunning:
	case runs.StateFailed:
		fields["error"] = r.Error
	default:
		fields["value"], fields["seconds"] = r.Value, r.Seconds
	}
	out.Event("trial", fields)
}
