package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// methodSeeds is the grid of one choice, the seed.
const methodSeeds = "seeds"

// maxSeeds bounds the runs of one call.
const maxSeeds = 10000

// Repeated is the result of [Repeat].
type Repeated struct {
	Study *Study
	Seeds []uint64    // of the runs that finished, ascending
	Runs  []*runs.Run // by seed
}

// Summary is the mean of a value over runs.
type Summary struct {
	Name string  `json:"name"`
	Mean float64 `json:"mean"`
	// Deviation is the sample standard deviation, with the divisor N - 1; NaN for one run.
	Deviation float64 `json:"deviation"`
	N         int     `json:"n"`
}

func (s Summary) String() string {
	if s.N < 2 {
		return fmt.Sprintf("%s %.4f", s.Name, s.Mean)
	}
	return fmt.Sprintf("%s %.4f ± %.4f", s.Name, s.Mean, s.Deviation)
}

// Repeat trains a model n times with the same options and the seeds o.Seed, o.Seed + 1, and so on, and returns the mean and
// the deviation of what the runs report:
//
//	r := gnb.Must(sweep.Repeat(ctx, 10, ds, gnb.SAGE, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 20}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))
//	fmt.Println(r.Of("test_accuracy")) // test_accuracy 0.8123 ± 0.0042
//
// As many runs as the machine has room for train at the same time: one for each GPU, or CPU, that a run's workers do not
// take (Threads CPUs for each worker if it is set). A run's result does not depend on what runs beside it, and values
// are added in the order of the seeds, so the averages have the same bits as those of one run after the other. One
// Options, if given, sets Parallel, Dir, Resume, Quiet or Events; its other fields do not apply.
//
// The runs are the trials of a sweep, with its table while they train, and its directory. Run the same cell again to
// resume an interrupted call: finished runs are not trained again. If some runs fail, the error names them, and the
// result has the others.
func Repeat(ctx context.Context, n int, ds *gnb.Dataset, model gnb.AnyModel, o gnb.TrainOptions, options ...Options) (*Repeated, error) {
	if n < 1 || n > maxSeeds {
		return nil, fmt.Errorf("sweep: Repeat got %d runs; it takes 1 to %d", n, maxSeeds)
	}
	if o.Seed > math.MaxUint64-uint64(n) {
		return nil, fmt.Errorf("sweep: %d seeds from %d on pass the largest one; take a smaller Seed", n, o.Seed)
	}
	var given Options
	switch len(options) {
	case 0:
	case 1:
		given = options[0]
	default:
		return nil, fmt.Errorf("sweep: Repeat takes one Options and got %d; put them into one", len(options))
	}
	s := Options{Method: methodSeeds, Trials: n, Parallel: given.Parallel, Dir: given.Dir, Resume: given.Resume, ResumeChanged: given.ResumeChanged, Quiet: given.Quiet, Events: given.Events}
	if s.Parallel == 0 {
		s.Parallel = room(n, o)
	}
	if ds != nil {
		if _, err := ds.Split("val"); err != nil {
			s.Metric = "test_" + cmp.Or(o.Metric, tally.Metric(ds).Name)
		}
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = o.Seed + uint64(i)
	}
	of, err := nodes(ds, model)
	if err != nil {
		return nil, err
	}
	study, err := run(ctx, ds, of, func(t *Trial) gnb.TrainOptions {
		o := o
		o.Seed = Choice(t, "seed", seeds...)
		return o
	}, s)
	if study == nil {
		return nil, err
	}
	r := &Repeated{Study: study}
	var failed []error
	for i, t := range slices.SortedFunc(slices.Values(study.Trials), func(a, b TrialResult) int { return a.Number - b.Number }) {
		if t.State == runs.StateFailed {
			failed = append(failed, fmt.Errorf("sweep: the run with seed %d failed: %s", t.Options.Seed, t.Error))
			continue
		}
		one, e := runs.Open(t.Run)
		if e != nil {
			failed = append(failed, fmt.Errorf("sweep: run %d: %w", i, e))
			continue
		}
		r.Seeds, r.Runs = append(r.Seeds, t.Options.Seed), append(r.Runs, one)
	}
	if err == nil {
		err = errors.Join(failed...)
	}
	return r, err
}

// room returns the number of runs to train at the same time: as many as there are GPUs or CPUs for their workers.
func room(n int, o gnb.TrainOptions) int {
	if ranks, err := entry.Ranks(0, nil); err != nil || ranks > 0 {
		return 1
	}
	workers := o.Workers
	if workers == 0 {
		workers, _ = entry.Workers()
	}
	all := parallel.CPUs() / max(1, o.Threads)
	if gpus, err := device.Count(); err == nil && gpus > 0 && o.Device != "cpu" {
		all = gpus
	}
	return max(1, min(n, all/max(1, workers), entry.MaxWorkers()))
}

// Of returns the mean and deviation of a value of the runs' results, such as "test_accuracy", over the runs that have it.
func (r *Repeated) Of(name string) Summary {
	s := Summary{Name: name, Mean: math.NaN(), Deviation: math.NaN()}
	var xs []float64
	for _, run := range r.Runs {
		if x, ok := run.Result.Values[name]; ok {
			xs = append(xs, x)
		}
	}
	if s.N = len(xs); s.N == 0 {
		return s
	}
	s.Mean = 0
	for _, x := range xs {
		s.Mean += x
	}
	s.Mean /= float64(s.N)
	if s.N > 1 {
		squares := 0.0
		for _, x := range xs {
			squares += (x - s.Mean) * (x - s.Mean)
		}
		s.Deviation = math.Sqrt(squares / float64(s.N-1))
	}
	return s
}

// Summaries returns the mean and deviation of each value that all runs have, by name, but for the best epoch.
func (r *Repeated) Summaries() (out []Summary) {
	names := map[string]bool{}
	for _, run := range r.Runs {
		for name := range run.Result.Values {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if s := r.Of(name); s.N == len(r.Runs) && name != "best_epoch" {
			out = append(out, s)
		}
	}
	return out
}

// String returns the summaries, and a line for each run.
func (r *Repeated) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, %s\n%s\n", r.Study.Model, r.Study.Dataset, phrase.Count(len(r.Runs), "seed"), r.Study.Dir)
	sums := r.Summaries()
	for _, s := range sums {
		fmt.Fprintln(&b, s)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "seed\t")
	for _, s := range sums {
		fmt.Fprintf(w, "%s\t", s.Name)
	}
	fmt.Fprint(w, "epochs\tseconds\t\n")
	for i, run := range r.Runs[:min(len(r.Runs), mostRows)] {
		fmt.Fprintf(w, "%d\t", r.Seeds[i])
		for _, s := range sums {
			fmt.Fprintf(w, "%.4f\t", run.Value(s.Name))
		}
		fmt.Fprintf(w, "%d\t%.1f\t\n", run.Result.Epochs, run.Result.Seconds)
	}
	_ = w.Flush() // to memory
	if n := len(r.Runs) - mostRows; n > 0 {
		fmt.Fprintf(&b, "and %s\n", phrase.Count(n, "more run"))
	}
	return phrase.Clean(b.String())
}

// isGrid reports whether a method tries every value of a choice.
func isGrid(method string) bool { return method == methodGrid || method == methodSeeds }
