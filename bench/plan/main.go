// Command plan compares what gnb plan predicts with what gnb train takes: memory and the time of a step.
//
//	plan [--set test|seen|tuning] [--only WORD] [--what memory,time] [--runs 3] [--budget 4m] [--again] [--gnb gnb] [--out FILE] DATA
//
// The constants of memory of package gnb/plan were chosen with the configurations of the sets tuning and seen alone; those of the set
// test are compared in docs/plan.md. DATA is a directory with the datasets that the configurations name; [sets] says how they are made.
//
// Memory is anonymous and shared memory of all processes of the run (Pss of smaps_rollup without pages of files) at its
// peak, in a run of its own because reading it slows a run. The time of a step is the median over the epochs but the first.
// Each figure is the median over the runs. The file of --out keeps
// what was measured: a further call measures what is missing, or with --again the chosen configurations anew.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	set := flag.String("set", "test", "set of configurations: test, seen or tuning")
	only := flag.String("only", "", "word that a configuration must contain")
	what := flag.String("what", "memory,time", "what to measure: memory, time or both")
	runs := flag.Int("runs", 3, "runs of each configuration")
	budget := flag.Duration("budget", 24*time.Hour, "time after which no further run starts")
	again := flag.Bool("again", false, "drop earlier runs of these configurations")
	gnb := flag.String("gnb", "gnb", "the command gnb")
	out := flag.String("out", "", "file for the results as JSON, which keeps those of earlier calls")
	flag.Parse()
	kinds := strings.Split(*what, ",")
	unknown := func(s string) bool { return s != "memory" && s != "time" }
	if flag.NArg() != 1 || sets[*set] == nil || slices.ContainsFunc(kinds, unknown) {
		fmt.Fprintln(os.Stderr, "plan: it takes --set test, seen or tuning, --what memory,time, and the directory with the datasets")
		os.Exit(2)
	}
	c := comparison{gnb: *gnb, data: flag.Arg(0), out: *out, only: *only, kinds: kinds, runs: *runs, end: time.Now().Add(*budget)}
	err := c.load(sets[*set], *again)
	if err == nil {
		err = c.measure()
	}
	for _, r := range c.rows {
		if c.chosen(r) {
			fmt.Println(r)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(1)
	}
}

// row is one configuration's comparison. The figures at its head are medians over its runs.
type row struct {
	Flags          string        `json:"flags"`
	PredictedBytes int64         `json:"predicted_bytes"`
	MeasuredBytes  int64         `json:"measured_bytes"`
	PredictedStep  float64       `json:"predicted_step_seconds"`
	MeasuredStep   float64       `json:"measured_step_seconds"`
	Load           float64       `json:"load_average"` // the largest of the runs that were timed
	Memory         []memoryOfRun `json:"memory"`
	Times          []timeOfRun   `json:"times"`
}

func (r row) String() string {
	s := fmt.Sprintf("%-110s", r.Flags)
	if len(r.Memory) > 0 {
		p, m := float64(r.PredictedBytes), float64(r.MeasuredBytes)
		s += fmt.Sprintf(" %7.1f MB, measured %7.1f (%+.0f %%);", p/1e6, m/1e6, 100*(p/m-1))
	}
	if len(r.Times) > 0 {
		s += fmt.Sprintf(" %7.2f ms, measured %7.2f (%+.0f %%); load %.1f", 1e3*r.PredictedStep, 1e3*r.MeasuredStep, 100*(r.PredictedStep/r.MeasuredStep-1), r.Load)
	}
	return s
}

// sum computes the figures at the row's head.
func (r *row) sum() {
	r.PredictedBytes = median(r.Memory, func(m memoryOfRun) int64 { return m.Predicted })
	r.MeasuredBytes = median(r.Memory, func(m memoryOfRun) int64 { return m.Bytes })
	r.PredictedStep = median(r.Times, func(t timeOfRun) float64 { return t.Predicted })
	r.MeasuredStep = median(r.Times, func(t timeOfRun) float64 { return t.Step })
	r.Load = 0
	for _, t := range r.Times {
		r.Load = max(r.Load, t.Load)
	}
}

func median[R any, T int64 | float64](runs []R, of func(R) T) (zero T) {
	if len(runs) == 0 {
		return zero
	}
	var all []T
	for _, r := range runs {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// comparison measures the rows of a set.
type comparison struct {
	gnb, data, out, only string
	kinds                []string
	runs                 int
	end                  time.Time
	rows                 []row
	others               []row // of the file, of configurations that are not in the set
}

func (c *comparison) chosen(r row) bool { return strings.Contains(r.Flags, c.only) }

// load makes the rows of the configurations, with the runs that the file of results has.
func (c *comparison) load(flags []string, again bool) error {
	var old []row
	if c.out != "" {
		text, err := os.ReadFile(c.out)
		if err == nil {
			err = json.Unmarshal(text, &old)
		}
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("reading earlier results of %s: %w", c.out, err)
		}
	}
	for _, f := range flags {
		r := row{Flags: f}
		if i := slices.IndexFunc(old, func(o row) bool { return o.Flags == f }); i >= 0 {
			r = old[i]
		}
		if again && c.chosen(r) {
			for _, kind := range c.kinds {
				if kind == "memory" {
					r.Memory = nil
				} else {
					r.Times = nil
				}
			}
		}
		c.rows = append(c.rows, r)
	}
	c.others = slices.DeleteFunc(old, func(o row) bool { return slices.Contains(flags, o.Flags) })
	return nil
}

// measure measures the runs that are missing, one of every row before a second of any.
func (c *comparison) measure() error {
	for n := range c.runs {
		for i := range c.rows {
			r := &c.rows[i]
			for _, kind := range c.kinds {
				if !c.chosen(*r) || kind == "memory" && len(r.Memory) > n || kind == "time" && len(r.Times) > n {
					continue
				}
				if time.Now().After(c.end) {
					return nil
				}
				if err := c.run(r, kind); err != nil {
					return err
				}
				r.sum()
				if err := c.save(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *comparison) save() error {
	if c.out == "" {
		return nil
	}
	text, err := json.MarshalIndent(slices.Concat(c.rows, c.others), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.out, append(text, '\n'), 0o644)
}

// run plans a row's configuration and runs it.
func (c *comparison) run(r *row, kind string) error {
	args := strings.Fields(r.Flags)
	if !strings.Contains(args[0], "?") {
		args[0] = filepath.Join(c.data, args[0])
	}
	args = append(args[1:], args[0])
	p, err := c.planned(args)
	if err != nil {
		return err
	}
	if kind == "memory" {
		m, err := c.memory(args)
		m.Predicted = p.TotalBytes
		r.Memory = append(r.Memory, m)
		return err
	}
	t, err := c.time(args)
	t.Predicted = p.StepSeconds
	r.Times = append(r.Times, t)
	return err
}

type plan struct {
	TotalBytes  int64   `json:"total_bytes"`
	StepSeconds float64 `json:"step_seconds"`
}

// planned returns gnb's plan.
func (c *comparison) planned(args []string) (p plan, err error) {
	args = append([]string{"plan", "--json"}, args...)
	text, err := exec.Command(c.gnb, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return p, fmt.Errorf("gnb %s: %w", strings.Join(args, " "), err)
	}
	return p, json.Unmarshal(text, &p)
}
