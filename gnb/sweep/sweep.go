// Package sweep searches for the hyper-parameters that train a model best: learning rate, width,
// dropout, or any other option of [gnb.Train].
//
// # Basics
//
// A function requests values from a [Trial] by name and returns training options; [Run] calls it
// for each trial and trains with these options:
//
//	study := gnb.Must(sweep.Run(ctx, ds, gnb.SAGE, func(t *sweep.Trial) gnb.TrainOptions {
//		return gnb.TrainOptions{
//			LR:     t.LogFloat("lr", 1e-3, 1e-1),
//			Hidden: sweep.Choice(t, "hidden", 32, 64, 128),
//			Epochs: 20,
//		}
//	}, sweep.Options{Trials: 30}))
//	fmt.Println(study.BestCode())
//
// Options.Method chooses the search: a grid, random or Sobol' points, TPE, or ASHA, which stops trials early.
//
// [Repeat] trains one configuration with several seeds, and gives the mean and deviation of its results.
//
// The [Study] holds the trials and the importance of each hyper-parameter. Its directory has one
// run of [gnb.Train] per trial: [List] finds all sweeps, and [Open] reads one. Run the same cell
// again to resume an interrupted sweep.
//
// # Caveats
//
// A package-level variable must not be named sweep in a cell that uses this package; study is a good name.
//
// Runs of trials take their seed from the options that the function returns, not from Options.Seed, which is
// the seed of the proposals.
package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
	"github.com/graphnb/graphnb/multigpu"
)

// Options control a search. The zero value tries 20 configurations one after the other, proposed by TPE, for the
// highest validation metric.
type Options struct {
	// Method proposes configurations:
	//
	//   - "grid": every combination of the values of choices and whole numbers, and of Levels
	//     values of continuous ranges; the hyper-parameter requested last changes first;
	//   - "random": each hyper-parameter uniformly over its range;
	//   - "sobol": like random, with fewer gaps (a Sobol' sequence);
	//   - "tpe" (the default): near good earlier trials, after 10 random ones;
	//   - "asha": random, but a trial that is not among the best 1/Reduction
	//     after MinEpochs, MinEpochs·Reduction, MinEpochs·Reduction², … epochs is
	//     stopped there.
	Method string
	// Trials is the number of trials, including those of a sweep that is continued; 0 means 20, or the whole grid
	// of a grid search.
	Trials int
	// Parallel is the number of trials that run at the same time; 0 means 1. They share the CPUs unless
	// TrainOptions.Threads is set. "tpe" and "asha" use the results of the trials up to N - Parallel when they
	// propose and judge trial N, so their results depend on Parallel, but never on which trial was faster. With
	// the other methods Parallel changes only the time.
	//
	// On GPUs, trials that run at the same time use different GPUs. A trial whose options leave Workers 0 gets an
	// even share of them. A trial waits until enough GPUs for its workers are free (GNB_CUDA_SHARE=1 lets
	// workers share GPUs instead).
	Parallel int
	// Seed is the random seed of the proposals; 0 means the seed 0.
	Seed uint64
	// Metric is a value of the runs' results by name, such as "val_loss" or "val_auc", or a metric of nodes alone, such as
	// "auc", which means its value on the validation split. A metric that is not the dataset's own becomes that of the runs
	// (TrainOptions.Metric). By default it is the metric of the first trial's options on the validation split, or the
	// dataset's. The highest value is best, or with Minimize the lowest, as for "val_loss".
	Metric   string
	Minimize bool
	// Levels is the number of values of a continuous range in a grid, including its ends; 0 means 5.
	Levels int
	// MinEpochs is the number of epochs before "asha" stops a trial; 0 means 1/27 of the first trial's epochs, at
	// least 1.
	MinEpochs int
	// Reduction is the factor by which the number of trials falls at each stage of "asha"; 0 means 3.
	Reduction int
	// Dir is the sweep's directory, by default a new one in [runs.Dir]. A sweep that is already there is
	// continued.
	Dir string
	// Resume is the directory of a sweep to continue in place. By default the last sweep in [runs.Dir] is
	// continued if it was interrupted and had the same data, model code, settings and function; if not, a note
	// says what differs. [gnb.Never] always starts a new one. Threads, checkpoints, TensorBoard and Quiet may
	// differ, because they do not change a trial's result.
	Resume string
	// ResumeChanged continues the sweep of Resume or Dir although its data or model code has changed, so that old
	// and new trials cannot be compared; sweep.json records what changed and when.
	ResumeChanged bool
	// Quiet shows nothing.
	Quiet bool
	// Events is called with each trial when it starts and when it ends, one call at a time.
	Events func(TrialResult)
}

// StateStopped is the state of a trial that the sweep stopped early because it was not among the best. Its run can
// be resumed like an interrupted one.
const StateStopped = "stopped"

// TrialResult is a trial of a [Study]: its hyper-parameters, its training options, and how it ended.
type TrialResult struct {
	Number int              `json:"trial"` // from 0
	State  string           `json:"state"` // runs.StateRunning, runs.StateDone, StateStopped or runs.StateFailed
	Params []Hyperparameter `json:"params"`
	// Value is the metric; the best value so far for a stopped trial, and 0 for a failed one.
	Value float64 `json:"value"`
	// Evaluations holds the metric after each evaluation.
	Evaluations []Evaluation     `json:"reports,omitempty"`
	Error       string           `json:"error,omitempty"` // why it failed
	Seconds     float64          `json:"seconds"`
	Run         string           `json:"run"` // the run's directory
	Options     gnb.TrainOptions `json:"options"`
	// Task has all options of a trial of a task ([RunTask]), as its runs record them; Options are then those that it shares
	// with other tasks.
	Task json.RawMessage `json:"task,omitempty"`
}

// Evaluation is a trial's metric after a number of epochs.
type Evaluation struct {
	Epochs int     `json:"epochs"`
	Value  float64 `json:"value"`
}

// epochs returns the number of epochs before the last evaluation.
func (t TrialResult) epochs() int {
	if len(t.Evaluations) == 0 {
		return 0
	}
	return t.Evaluations[len(t.Evaluations)-1].Epochs
}

// Study is the result of a search: the settings in its directory's sweep.json, and the trials. "gnb runs show DIR"
// prints it in a terminal.
type Study struct {
	ID        string    `json:"id"`
	Dir       string    `json:"-"`
	State     string    `json:"state"`
	Dataset   string    `json:"dataset"`
	Nodes     int       `json:"nodes"`
	Edges     int64     `json:"edges"`
	SplitSet  int       `json:"split_set,omitempty"`
	Model     string    `json:"model"`
	Method    string    `json:"method"`
	Metric    string    `json:"metric"`
	Minimize  bool      `json:"minimize,omitempty"`
	Seed      uint64    `json:"seed"`
	Parallel  int       `json:"parallel"`
	Levels    int       `json:"levels,omitempty"`     // values of a continuous range in a grid
	MinEpochs int       `json:"min_epochs,omitempty"` // epochs before asha stops a trial
	Reduction int       `json:"reduction,omitempty"`
	Created   time.Time `json:"created"`
	// Identity identifies the data and the model's code; it is nil in sweeps of versions that did not record it.
	// Changes records what differed when the sweep was continued; Change.Step is the number of trials before.
	Identity *runs.Identity `json:"identity,omitempty"`
	Changes  []runs.Change  `json:"changes,omitempty"`
	// Trials are the ended trials, by number.
	Trials []TrialResult `json:"trials,omitempty"`

	lost error // names the damaged lines of trials.jsonl
}

// Best is the trial with the best metric among those that finished training, or nil if none has.
func (s *Study) Best() *TrialResult {
	sorted := s.Sorted()
	if len(sorted) == 0 || sorted[0].State != runs.StateDone {
		return nil
	}
	return &sorted[0]
}

// Sorted returns the trials, the best first: finished trials, then stopped ones, those with more epochs first, then
// failed ones.
func (s *Study) Sorted() []TrialResult {
	return slices.SortedFunc(slices.Values(s.Trials), func(a, b TrialResult) int { return compareTrials(a, b, s.better) })
}

func (s *Study) better(a, b float64) bool { return a != b && (a < b) == s.Minimize }

// known returns the trials whose results may be used for the trial with the given number.
func (s *Study) known(number int, trials []TrialResult) []TrialResult {
	if !learns(s.Method) {
		return nil
	}
	known := slices.DeleteFunc(slices.Clone(trials), func(t TrialResult) bool { return t.Number > number-s.Parallel })
	slices.SortFunc(known, func(a, b TrialResult) int { return a.Number - b.Number })
	return known
}

// Run searches for the options that train a model best. For each trial it calls f, which requests
// values from the trial and returns the training options.
//
// f runs in this process, one call at a time. Run also calls it to check a sweep that is continued and to count
// the trials of a grid, so it must return the same options for the same values. Every trial is a run of
// [gnb.Train] in its own directory below the sweep's; all trials share one copy of the dataset. A table of the
// trials, a picture of them and the importance of each hyper-parameter show the progress.
//
// The same seed gives the same trials with the same results, also in a sweep that was interrupted or killed and
// is continued: finished trials are not run again, and unfinished ones resume from their checkpoints. A larger
// Options.Trials extends a finished sweep.
//
// Cancelling ctx, or the notebook's ■, ends all workers as it does for a run. The error is then
// [gnb.ErrInterrupted], and the study has the trials so far. A trial that fails is shown with its
// reason and does not end the sweep; if all trials fail, Run returns an error.
func Run(ctx context.Context, ds *gnb.Dataset, model gnb.AnyModel, f func(*Trial) gnb.TrainOptions, o Options) (*Study, error) {
	if err := notRepeat(o.Method); err != nil {
		return nil, err
	}
	of, err := nodes(ds, model)
	if err != nil {
		return nil, err
	}
	return run(ctx, ds, of, f, o)
}

// Task is what [RunTask] searches the options of: a task of a program's own ([gnb.TaskOf]), links.Task, or kg.Task.
type Task[O any] interface {
	// Name is the name of the task's program.
	Name() string
	// Train trains on a dataset.
	Train(ctx context.Context, ds *gnb.Dataset, o O) (*runs.Run, error)
	// SharedOptions are those that the task shares with others, and WithLaunch returns options with others of the launch.
	SharedOptions(o O) gnb.TrainOptions
	WithLaunch(o O, l gnb.LaunchOptions) O
	// Recorded returns what a run with these options records of them, and Options the options of such a record.
	Recorded(ctx context.Context, ds *gnb.Dataset, o O) (json.RawMessage, error)
	Options(recorded json.RawMessage) (O, error)
	// Identify returns the identity of a dataset's content and the task's code.
	Identify(ctx context.Context, ds *gnb.Dataset) (*runs.Identity, error)
}

var _ Task[int] = (*gnb.TaskOf[int])(nil)

// RunTask is [Run] for a task: f returns the task's own options. Options.Metric names the value to compare, such as
// "val_accuracy" or "val_auc".
func RunTask[O any](ctx context.Context, ds *gnb.Dataset, task Task[O], f func(*Trial) O, o Options) (*Study, error) {
	switch {
	case task == nil || f == nil:
		return nil, errors.New("sweep: RunTask needs a task and a function that makes a trial's options")
	case o.Metric == "":
		return nil, errors.New("sweep: RunTask needs the Metric to compare, a value of the runs' results such as val_accuracy")
	}
	if err := notRepeat(o.Method); err != nil {
		return nil, err
	}
	var refused sync.Map // why the task refuses a trial's options, by its number: the trial then fails
	with := func(t *TrialResult, l gnb.LaunchOptions) (all O, err error) {
		if why, ok := refused.Load(t.Number); ok {
			return all, why.(error)
		}
		if all, err = task.Options(t.Task); err != nil {
			return all, fmt.Errorf("sweep: trial %d: %w", t.Number, err)
		}
		return task.WithLaunch(all, l), nil
	}
	of := trained{
		name:     task.Name(),
		own:      true,
		identify: func(ctx context.Context) (*runs.Identity, error) { return task.Identify(ctx, ds) },
		train: func(ctx context.Context, t *TrialResult, o gnb.TrainOptions) (*runs.Run, error) {
			all, err := with(t, o.LaunchOptions)
			if err != nil {
				return nil, err
			}
			return task.Train(ctx, ds, all)
		},
		recorded: func(t *TrialResult, o gnb.TrainOptions) (json.RawMessage, error) {
			all, err := with(t, o.LaunchOptions)
			if err != nil {
				return nil, err
			}
			return task.Recorded(ctx, ds, all)
		},
	}
	return run(ctx, ds, of, func(t *Trial) gnb.TrainOptions {
		all := f(t)
		shared := task.SharedOptions(all)
		full, err := task.Recorded(ctx, ds, all)
		var o O
		if err == nil {
			o, err = task.Options(full)
		}
		if err != nil {
			if ctx.Err() == nil {
				refused.Store(t.Number, err)
			}
			return shared
		}
		refused.Delete(t.Number) // f is also asked for sizes of grids, with other values
		t.task = full
		l := shared.LaunchOptions
		shared = task.SharedOptions(o)
		shared.LaunchOptions = l
		return shared
	}, o)
}

// notRepeat refuses the method that [Repeat] alone uses.
func notRepeat(method string) error {
	if method == methodSeeds {
		return fmt.Errorf("sweep: Method is %q, that of Repeat; it is one of %s", method, strings.Join(methods, ", "))
	}
	return nil
}

// trained is what the trials of a sweep train.
type trained struct {
	name     string // of the model or task
	own      bool   // a task, whose metric is the name of one of its values
	identify func(ctx context.Context) (*runs.Identity, error)
	train    func(ctx context.Context, t *TrialResult, o gnb.TrainOptions) (*runs.Run, error)
	recorded func(t *TrialResult, o gnb.TrainOptions) (json.RawMessage, error)
}

// nodes trains a model on nodes.
func nodes(ds *gnb.Dataset, model gnb.AnyModel) (trained, error) {
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return trained{}, errors.New("sweep: Run needs a model, such as gnb.SAGE")
	}
	if _, err := gnb.ModelByName(model.Name()); err != nil {
		return trained{}, err
	}
	return trained{
		name:     model.Name(),
		identify: func(ctx context.Context) (*runs.Identity, error) { return gnb.Identify(ctx, ds, model) },
		train: func(ctx context.Context, _ *TrialResult, o gnb.TrainOptions) (*runs.Run, error) {
			return gnb.Train(ctx, ds, model, o)
		},
		recorded: func(_ *TrialResult, o gnb.TrainOptions) (json.RawMessage, error) { return o.Recorded(ds, model) },
	}, nil
}

// run is Run, also for [Repeat].
func run(ctx context.Context, ds *gnb.Dataset, of trained, f func(*Trial) gnb.TrainOptions, o Options) (*Study, error) {
	if err := entry.Start(); err != nil {
		return nil, err
	}
	s, err := newSweep(ds, of, f, o)
	if err != nil {
		return nil, err
	}
	if err := s.identify(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if err := s.store(); err != nil {
		return nil, err
	}
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	return &s.study, s.run(ctx)
}

// sweep is the state of a running [Run]. Its goroutine proposes trials and records results; each trial trains in a
// goroutine of its own.
type sweep struct {
	lock   *runfile.DirLock // locks the sweep's directory
	ranks  int              // of a launcher, 0 without one
	o      Options
	ds     *gnb.Dataset
	of     trained
	f      func(*Trial) gnb.TrainOptions
	search *search
	past   []TrialResult // trials of the sweep that this one resumes
	gpus   *gpuShare     // nil for one trial at a time, or without GPUs
	start  time.Time
	view   *view
	notes  []string // shown before the first trial

	mu      sync.Mutex
	study   Study
	running []*TrialResult
}

// maxTrials bounds the number of trials and of a grid's levels.
const maxTrials = 1 << 20

// newSweep checks the arguments of [Run].
func newSweep(ds *gnb.Dataset, of trained, f func(*Trial) gnb.TrainOptions, o Options) (*sweep, error) {
	o.Method = cmp.Or(o.Method, methodTPE)
	switch {
	case ds == nil:
		return nil, errors.New("sweep: Run needs a dataset; get one from gnb.Load")
	case ds.Graph == nil && ds.Meta.Parts == nil:
		return nil, errors.New("sweep: " + ds.WhyNoGraph())
	case f == nil:
		return nil, errors.New("sweep: Run needs a function that makes a trial's options")
	case !slices.Contains(methods, o.Method) && o.Method != methodSeeds:
		return nil, fmt.Errorf("sweep: Method is %q; it is one of %s", o.Method, strings.Join(methods, ", "))
	}
	if err := cmp.Or(
		entry.Check("Trials", o.Trials, 1, maxTrials), entry.Check("Parallel", o.Parallel, 1, entry.MaxWorkers()), entry.Check("Levels", o.Levels, 1, maxTrials),
		entry.Check("MinEpochs", o.MinEpochs, 1, sample.MaxEpochs), entry.Check("Reduction", o.Reduction, 2, sample.MaxEpochs),
	); err != nil {
		return nil, err
	}
	if o.Trials == 0 {
		o.Trials = 20
		if o.Method == methodGrid {
			o.Trials = math.MaxInt
		}
	}
	o.Parallel = cmp.Or(o.Parallel, 1)
	ranks, err := entry.Ranks(0, nil)
	if err != nil {
		return nil, err
	}
	if ranks > 0 && o.Parallel > 1 {
		return nil, fmt.Errorf("sweep: Parallel is %d, and the ranks of a launcher train one trial at a time; leave Parallel out", o.Parallel)
	}
	s := &sweep{ranks: ranks, o: o, ds: ds, of: of, start: time.Now()}
	if s.f = f; !of.own {
		s.f, o.Metric = measuredBy(ds, f, o.Metric)
	}
	s.study = Study{
		State: runs.StateRunning, Dataset: ds.Name(), Nodes: ds.Nodes(), Edges: ds.Edges(), SplitSet: ds.SplitSet(), Model: of.name,
		Method: o.Method, Metric: o.Metric, Minimize: o.Minimize, Seed: o.Seed, Parallel: o.Parallel,
	}
	if isGrid(o.Method) {
		s.study.Levels = cmp.Or(o.Levels, 5)
	}
	first := TrialResult{}
	if o.Metric == "" || o.Method == methodASHA {
		if first, err = newSearch(&s.study).propose(0, nil, s.f); err != nil {
			return nil, err
		}
	}
	s.study.Metric = cmp.Or(o.Metric, "val_"+cmp.Or(first.Options.Metric, tally.Metric(ds).Name))
	if split, kind, ok := strings.Cut(s.study.Metric, "_"); ok && (split == "val" || split == "test") && tally.Lower(kind) {
		if o.Metric != "" && !o.Minimize && o.Method != methodSeeds {
			return nil, wrongWay(o.Metric, true)
		}
		s.study.Minimize = true
	}
	switch o.Method {
	case methodGrid, methodSeeds:
		if n := s.study.gridSize(s.f, o.Trials); n > 0 {
			s.o.Trials = n
		}
	case methodASHA:
		s.study.MinEpochs = cmp.Or(o.MinEpochs, max(1, cmp.Or(first.Options.Epochs, 10)/27))
		s.study.Reduction = cmp.Or(o.Reduction, 3)
	}
	return s, nil
}

// measuredBy returns the name in runs of the value that a sweep compares, "" for the default, and f with options whose runs have
// this value.
func measuredBy(ds *gnb.Dataset, f func(*Trial) gnb.TrainOptions, metric string) (func(*Trial) gnb.TrainOptions, string) {
	if tally.Known(metric) {
		metric = "val_" + metric
	}
	_, kind, _ := strings.Cut(metric, "_")
	if !tally.Known(kind) || kind == tally.Metric(ds).Name {
		return f, metric
	}
	return func(t *Trial) gnb.TrainOptions {
		o := f(t)
		o.Metric = cmp.Or(o.Metric, kind)
		return o
	}, metric
}

func newSearch(s *Study) *search {
	return &search{method: s.Method, seed: s.Seed, levels: s.Levels, better: s.better, ranges: map[string]Hyperparameter{}}
}

// run runs the trials.
func (s *sweep) run(ctx context.Context) (err error) {
	s.search = newSearch(&s.study)
	if err := s.check(ctx); err != nil {
		return err
	}
	if s.o.Parallel > 1 {
		if n, err := device.Count(); err == nil && n > 0 {
			s.gpus = newGPUShare(n)
		}
	}
	if err := s.save(runs.StateRunning); err != nil {
		return err
	}
	s.view = newView(s)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan ending)
	next, stopped := 0, error(nil) // the reason why no further trial starts
	for {
		for stopped == nil && s.mayBegin(next) {
			if ctx.Err() != nil {
				stopped = gnb.ErrInterrupted
				break
			}
			if stopped = s.begin(ctx, next, ended); stopped == nil {
				next++
			}
		}
		if s.active() == 0 {
			break
		}
		e := <-ended
		if err := s.end(e); err != nil && stopped == nil {
			stopped = err
			cancel() // end the other trials
		}
	}
	return s.finish(stopped)
}

// check checks the dataset before the first trial, so that a bar shows a check that takes long. The
// trials use its result.
func (s *sweep) check(ctx context.Context) error {
	f, err := getdata.Check(ctx, s.ds, dataset.CheckOnceOptions{}, s.o.Quiet)
	if f != nil {
		_ = f.Close() // the dataset keeps the memory file
	}
	return err
}

// mayBegin reports whether the trial with the given number may start now.
func (s *sweep) mayBegin(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number >= s.o.Trials || len(s.running) >= s.o.Parallel || s.search.spent {
		return false
	}
	// The results that the method uses must be complete.
	return !learns(s.o.Method) || !slices.ContainsFunc(s.running, func(t *TrialResult) bool { return t.Number <= number-s.o.Parallel })
}

func (s *sweep) active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// ending is the end of a trial's run.
type ending struct {
	trial   *TrialResult
	run     *runs.Run
	err     error
	stopped bool
}

// begin makes a trial and starts it, unless it has already ended.
func (s *sweep) begin(ctx context.Context, number int, ended chan<- ending) error {
	known := s.study.known(number, s.study.Trials)
	t, err := s.search.propose(number, known, s.f)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(s.past, func(p TrialResult) bool { return p.Number == number }); i >= 0 {
		s.mu.Lock()
		s.study.Trials = append(s.study.Trials, s.past[i])
		s.mu.Unlock()
		s.view.update()
		return nil
	}
	t.State, t.Run = runs.StateRunning, filepath.Join(s.study.Dir, fmt.Sprintf("trial-%04d", number))
	trial := &t
	s.mu.Lock()
	s.running = append(s.running, trial)
	s.mu.Unlock()
	s.view.update()
	s.tell(t)
	go func() { ended <- s.train(ctx, trial, known) }()
	return nil
}

func (s *sweep) tell(t TrialResult) {
	if s.o.Events != nil {
		s.o.Events(t)
	}
}

// train starts a trial's run, or resumes it after an interrupt or a kill.
func (s *sweep) train(ctx context.Context, t *TrialResult, known []TrialResult) ending {
	start := time.Now()
	e := ending{trial: t}
	o := t.Options
	if o.RunDir != "" || o.Resume != "" || o.ResumeChanged {
		e.err = errors.New("sweep: the sweep sets the directories of its runs: leave RunDir and Resume out of the options")
		return e
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	halve := halving{s.study.MinEpochs, s.study.Reduction, cmp.Or(o.Epochs, 10), s.study.better}
	report := func(epoch int, values []runs.NamedValue) {
		if s.report(t, epoch, values) && s.o.Method == methodASHA && halve.stops(t.Evaluations, known) {
			e.stopped = true
			stop()
		}
	}
	o.Quiet, o.RunDir, o.Resume = true, t.Run, gnb.Never
	workers := o.Workers
	if workers == 0 {
		workers, _ = entry.Workers() // the run reports the error
	}
	if s.gpus != nil && o.Device != "cpu" {
		workers = cmp.Or(workers, s.gpus.workers(s.o.Parallel))
		o.Workers = workers
		var release func()
		o.FirstGPU, release = s.gpus.take(ctx, workers)
		defer release()
	}
	if s.ranks == 0 { // ranks take their own shares
		o.Threads = cmp.Or(o.Threads, max(1, parallel.CPUs()/(s.o.Parallel*max(1, workers))))
	}
	old, err := saving.OpenToResume(t.Run)
	if err != nil && runfile.Exists(filepath.Join(t.Run, runfile.Config)) {
		e.err = os.RemoveAll(t.Run) // a damaged run of this sweep is removed and started again
	} else if err == nil {
		switch {
		case (&runs.Run{Dir: t.Run}).Events(func(runs.Event) {}) != nil: // early stopping needs all evaluations
			e.err = os.RemoveAll(t.Run)
		case !s.resumes(old, t, o):
			e.err = os.RemoveAll(t.Run) // a run of another function, from before the sweep's first trial ended
		default:
			o.RunDir, o.Resume, o.ResumeChanged = "", t.Run, len(s.study.Changes) > 0
			e.err = (&runs.Run{Dir: t.Run}).Events(func(ev runs.Event) {
				if ev.Kind == runs.KindMetrics && !e.stopped {
					report(ev.Epoch, ev.Values)
				}
			})
			if old.Result.State == runs.StateDone { // the sweep was killed before it recorded the trial
				e.run = old
			}
		}
	}
	told := o.Events
	o.Events = func(ev runs.Event) {
		if ev.Kind == runs.KindMetrics && !e.stopped {
			report(ev.Epoch, ev.Values)
		}
		if told != nil {
			told(ev)
		}
	}
	if e.err == nil && e.run == nil && !e.stopped {
		e.run, e.err = s.of.train(ctx, t, o)
	}
	s.mu.Lock()
	t.Seconds += time.Since(start).Seconds()
	s.mu.Unlock()
	return e
}

// resumes reports whether an existing run has the settings of a trial.
func (s *sweep) resumes(r *runs.Run, t *TrialResult, o gnb.TrainOptions) bool {
	args, err := s.of.recorded(t, o)
	return err == nil && compact(args) == compact(r.Config.Args) && r.Config.Seed == o.Seed
}

// report records a trial's metric, and reports whether it is new: a resumed run repeats the
// evaluations after its checkpoint.
func (s *sweep) report(t *TrialResult, epoch int, values []runs.NamedValue) bool {
	i := slices.IndexFunc(values, func(v runs.NamedValue) bool { return v.Name == s.study.Metric })
	if i < 0 || epoch+1 <= t.epochs() || math.IsNaN(values[i].Value) || math.IsInf(values[i].Value, 0) {
		return false
	}
	s.mu.Lock()
	t.Evaluations = append(t.Evaluations, Evaluation{epoch + 1, values[i].Value})
	s.mu.Unlock()
	s.view.update()
	return true
}

// end records an ended trial. An error ends the sweep.
func (s *sweep) end(e ending) error {
	t := e.trial
	s.mu.Lock()
	s.running = slices.DeleteFunc(s.running, func(r *TrialResult) bool { return r == t })
	s.mu.Unlock()
	switch {
	case e.stopped:
		t.State = StateStopped
		t.Value = s.study.bestReport(*t)
	case errors.Is(e.err, gnb.ErrInterrupted):
		s.view.update()
		return gnb.ErrInterrupted
	case e.err != nil:
		t.State, t.Error = runs.StateFailed, e.err.Error()
	default:
		t.State, t.Value = runs.StateDone, e.run.Value(s.study.Metric)
		if m := e.run.Result.Metric; m != nil && s.study.Method != methodSeeds {
			if _, ok := m.Of(s.study.Metric); ok && m.Lower != s.study.Minimize {
				return wrongWay(s.study.Metric, m.Lower)
			}
		}
		if math.IsNaN(t.Value) || math.IsInf(t.Value, 0) {
			t.State, t.Value, t.Error = runs.StateFailed, 0, fmt.Sprintf("sweep: the run has no %s to compare; evaluate the split, or set Metric%s", s.study.Metric, either(strings.HasSuffix(s.study.Metric, "_loss"), " (a loss is evaluated with BestBy \"loss\", --best-by loss)", ""))
		}
	}
	s.mu.Lock()
	s.study.Trials = append(s.study.Trials, *t)
	s.mu.Unlock()
	s.view.update()
	s.view.ended(*t)
	s.tell(*t)
	return s.append(*t)
}

// wrongWay is the error of a sweep that looks for the other end of a metric than its best.
func wrongWay(metric string, lower bool) error {
	return fmt.Errorf("sweep: %s is better when it is %s, and the sweep looks for the %s value; %s Minimize (--minimize)", metric,
		either(lower, "lower", "higher"), either(lower, "highest", "lowest"), either(lower, "set", "leave out"))
}

func either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// finish records the sweep's final state.
func (s *sweep) finish(err error) error {
	s.study.sort()
	state := runs.StateDone
	switch {
	case errors.Is(err, gnb.ErrInterrupted):
		state = runs.StateInterrupted
		err = fmt.Errorf("sweep: sweep %s was %w after %s; run it again to continue", s.study.ID, gnb.ErrInterrupted, phrase.Count(len(s.study.Trials), "trial"))
	case err != nil:
		state = runs.StateFailed
	case len(s.study.Trials) > 0 && !slices.ContainsFunc(s.study.Trials, func(t TrialResult) bool { return t.State != runs.StateFailed }):
		err = fmt.Errorf("sweep: all %s failed, the first one with: %s", phrase.Count(len(s.study.Trials), "trial"), s.study.Trials[0].Error)
	}
	err = errors.Join(err, s.save(state))
	s.view.close(err)
	return err
}

// compact removes white space from JSON, so that JSON from files compares with JSON in memory.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
