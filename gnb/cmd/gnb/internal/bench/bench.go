// Package bench is the command "gnb bench": it measures one operation and compares it with the machine's limit.
package bench

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Command is "gnb bench".
var Command = cli.Command{Name: "bench", Summary: "measure one operation, with its share of the machine's limit", Run: runBench}

// benches are the benchmarks of "gnb bench". run gets the words after the name; it makes its flags
// with benchFlags.
var benches = []struct {
	name, summary string
	run           func(ctx context.Context, args []string, out *cli.Output) error
}{
	{"limits", "floating point peak, copy bandwidth, random rows", benchLimits},
	{"gemm", "a product of matrices", benchGEMM},
	{"spmm", "the mean over in-neighbours of a whole graph", benchSpMM},
	{"gather", "fetching the features of sampled batches", benchGather},
	{"sample", "neighbour sampling", benchSample},
	{"allreduce", "the sum of gradients over ranks", benchAllReduce},
	{"network", "the network between two machines", benchNetwork},
	{"train", "training steps, compared with the floor that the machine sets", benchTrain},
	{"infer", "layer-wise inference of all nodes", benchInfer},
}

func runBench(ctx context.Context, args []string, out *cli.Output) error {
	if len(args) > 0 {
		for _, b := range benches {
			if args[0] == b.name {
				return b.run(ctx, args[1:], out)
			}
		}
	}
	detail := "Measures one operation and compares it with the machine's limit, measured in the same process. \"gnb bench WHAT --help\" lists its options. WHAT is\n"
	for _, b := range benches {
		detail += fmt.Sprintf("\n  %-10s %s", b.name, b.summary)
	}
	rest, err := out.Parse(out.Flags("WHAT", detail), args, 1, 1)
	if err != nil {
		return err
	}
	return cli.Usagef("there is no benchmark %q; \"gnb bench --help\" lists them", rest[0])
}

// timing holds the flags for the number of timed repetitions.
type timing struct {
	threads, steps, warmup int
	limits                 bool // whether to measure the machine's limits too
}

// benchFlags makes the flags of one benchmark with those of timing among them.
func benchFlags(out *cli.Output, name, detail string, t *timing) *flag.FlagSet {
	fs := out.Flags(name, detail)
	fs.IntVar(&t.threads, "threads", 0, "number of threads (default all CPUs)")
	fs.IntVar(&t.steps, "steps", 0, "timed repetitions (default one second's worth, at least 3)")
	fs.IntVar(&t.warmup, "warmup", 1, "warm-up repetitions")
	fs.BoolVar(&t.limits, "limits", true, "measure the machine's limit too")
	return fs
}

// parse parses a benchmark's flags, which has no arguments, and sets the process's threads.
func (t *timing) parse(out *cli.Output, fs *flag.FlagSet, args []string) error {
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	if err := cmp.Or(cli.CountFlag("threads", t.threads, 0, machine.MaxThreads()), cli.CountFlag("steps", t.steps, 0, cli.MaxCount), cli.CountFlag("warmup", t.warmup, 0, cli.MaxCount)); err != nil {
		return err
	}
	if t.threads == 0 {
		t.threads = parallel.CPUs()
	}
	runtime.GOMAXPROCS(t.threads)
	return nil
}

// timed holds the times of repetitions. Rates are those of the median repetition.
type timed struct {
	Seconds float64 `json:"seconds"` // of all repetitions
	Steps   int     `json:"steps"`
	Median  float64 `json:"median_seconds"` // of one
	Min     float64 `json:"min_seconds"`
	Threads int     `json:"threads"`
}

// run times f, which takes much less than a second. If f is too short for the clock's resolution,
// run times several calls together.
func (t *timing) run(f func()) timed {
	const moment, budget = 200 * time.Microsecond, time.Second
	for range t.warmup {
		f()
	}
	start := time.Now()
	f()
	once := max(time.Since(start), 1)
	steps := t.steps
	if steps == 0 {
		steps = max(3, int(budget/once))
	}
	group := min(steps, max(1, int(moment/once)))
	var (
		total time.Duration
		each  []float64
	)
	for range (steps + group - 1) / group {
		start := time.Now()
		for range group {
			f()
		}
		took := time.Since(start)
		total += took
		each = append(each, took.Seconds()/float64(group))
	}
	r := newTimed(t.threads, total, each)
	r.Steps *= group
	return r
}

// newTimed returns the times of repetitions that were timed one by one.
func newTimed(threads int, total time.Duration, each []float64) timed {
	return timed{Seconds: total.Seconds(), Steps: len(each), Median: median(each), Min: slices.Min(each), Threads: threads}
}

// median is the middle value, or the mean of the two in the middle.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
