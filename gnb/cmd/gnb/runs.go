package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/internal/phrase"
)

var runsCommand = cli.Command{Name: "runs", Summary: "list, show, compare or watch runs", Run: runRuns}

func runRuns(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("list|show|compare|attach|export [RUN...]", `list prints a table of the runs and sweeps in $GNB_RUNS or, if it is not set, in the folder runs. show describes one run, by default the last. compare prints the settings in which runs differ, their results and their curves; with --follow it prints them again until all runs have ended or you press ^C, which does not stop the runs. attach watches a run of another process, by default the last, until it ends. export writes the metrics of runs for TensorBoard, by default those of the last. RUN is a run's directory or name; compare and export also take a sweep, for all its trials.

A filter is one or more comparisons, separated by spaces; a run must satisfy all of them: --filter 'model=sage lr<0.01 test_accuracy>0.7'. Every setting and result of a run is a field. The values after = can be patterns with *, and alternatives separated by |.`)
	var (
		o       runs.Options
		export  runs.ExportOptions
		picture = fs.String("png", "", "picture `file` for the comparison")
		columns = fs.String("columns", "", "`fields` to show, as in name,lr,val_accuracy")
	)
	fs.StringVar(&o.Filter, "filter", "", "`comparisons` that listed runs satisfy, as in 'state=done lr<0.01'")
	fs.StringVar(&o.Sort, "sort", "", "`fields` to sort by, as in -val_accuracy (default oldest first)")
	fs.BoolVar(&o.Trials, "trials", false, "also list the trials of sweeps")
	fs.StringVar(&export.TensorBoard, "tensorboard", "", "`directory` to export to (for tensorboard --logdir)")
	fs.BoolVar(&export.Follow, "follow", false, "continue to export or compare until the runs end")
	rest, err := out.Parse(fs, args, 1, -1)
	if err != nil {
		return err
	}
	if what := rest[0]; what != "list" && (o != runs.Options{} || *columns != "") {
		return cli.Usagef("--filter, --sort, --columns and --trials are flags of runs list, not of runs %s", what)
	}
	if rest[0] != "compare" && *picture != "" {
		return cli.Usagef("--png is a flag of runs compare, not of runs %s", rest[0])
	}
	if what := rest[0]; (what == "export") != (export.TensorBoard != "") || export.Follow && what != "export" && what != "compare" {
		return cli.Usagef("--tensorboard DIRECTORY is a flag of runs export, and --follow one of runs export and runs compare")
	}
	switch what, names := rest[0], rest[1:]; {
	case what == "list" && len(names) == 0:
		return listRuns(ctx, out, o, strings.FieldsFunc(*columns, func(c rune) bool { return c == ',' || c == ' ' }))
	case what == "show" && len(names) <= 1:
		return showRun(ctx, out, names)
	case what == "attach" && len(names) <= 1:
		return attachRun(ctx, out, names)
	case what == "export":
		return exportRuns(ctx, out, names, export)
	case what == "compare" && len(names) >= 1:
		return compareRuns(ctx, out, names, *picture, export.Follow)
	}
	return cli.Usagef("there is no runs command %q; it is runs list, runs show [RUN], runs attach [RUN], runs export [RUN...] or runs compare RUN RUN...", strings.Join(rest, " "))
}

func listRuns(ctx context.Context, out *cli.Output, o runs.Options, columns []string) error {
	o.Damaged = true
	table, err := runs.List(ctx, o)
	if err != nil {
		return err
	}
	text, err := table.Text(columns...)
	if err != nil {
		return err
	}
	out.Printf("%s", text)
	for _, r := range table {
		if r.Result.State == runs.StateDamaged {
			out.Logf("%s", r.Result.Error)
		}
	}
	sweeps, err := sweep.List(ctx)
	if err != nil {
		return err
	}
	found := make([]sweepResult, len(sweeps))
	for i, s := range sweeps {
		line, _, _ := strings.Cut(s.String(), "\n")
		out.Printf("sweep %s: %s  %s\n", s.ID, line, s.Dir)
		found[i] = newSweepResult(s)
	}
	out.Result(map[string]any{"runs": runResults(table), "sweeps": found})
	return nil
}

// runResults returns runs in the form of --json.
func runResults(of []*runs.Run) []map[string]any {
	list := make([]map[string]any, len(of))
	for i, r := range of {
		list[i] = map[string]any{"id": r.Config.ID, "dir": r.Dir, "config": r.Config, "result": r.Result, "fields": r.Fields()}
	}
	return list
}

// namedRun returns the run of the given name, or the last run without a name.
func namedRun(ctx context.Context, names []string) (*runs.Run, error) {
	if len(names) == 0 {
		return runs.Last(ctx)
	}
	return options.OpenRun(names[0])
}

func showRun(ctx context.Context, out *cli.Output, names []string) error {
	if len(names) == 1 {
		if study, err := sweep.Open(options.RunDir(names[0])); err == nil {
			out.Printf("%s", study)
			out.Result(newSweepResult(study))
			return nil
		}
	}
	r, err := namedRun(ctx, names)
	if err != nil {
		return err
	}
	tellRun(out, r)
	return nil
}

func attachRun(ctx context.Context, out *cli.Output, names []string) error {
	r, err := namedRun(ctx, names)
	if err != nil {
		return err
	}
	if r, err = gnb.Attach(ctx, r); err != nil {
		return err
	}
	tellRun(out, r)
	return nil
}

// tellRun prints everything known about a run.
func tellRun(out *cli.Output, r *runs.Run) {
	out.Printf("%s\n", r)
	f := r.Fields()
	w := 0
	for name := range f {
		w = max(w, len(name))
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		out.Printf("%-*s  %s\n", w, name, strings.Join(strings.Fields(f[name]), " "))
	}
	out.Result(map[string]any{"runs": runResults([]*runs.Run{r})})
}

func exportRuns(ctx context.Context, out *cli.Output, names []string, o runs.ExportOptions) error {
	named, err := openRuns(ctx, names)
	if err != nil {
		return err
	}
	if len(named) == 0 {
		r, err := runs.Last(ctx)
		if err != nil {
			return err
		}
		named = append(named, r)
	}
	if o.Follow && len(named) > 1 {
		return cli.Usagef("--follow takes one run, and got %d", len(named))
	}
	for _, r := range named {
		if err := runs.Export(ctx, r, o); err != nil {
			return err
		}
	}
	out.Printf("%s in %s; tensorboard --logdir %s shows %s\n", phrase.Count(len(named), "run"), o.TensorBoard, o.TensorBoard, map[bool]string{true: "it", false: "them"}[len(named) == 1])
	out.Result(map[string]any{"runs": runResults(named), "tensorboard": o.TensorBoard})
	return nil
}

func compareRuns(ctx context.Context, out *cli.Output, names []string, picture string, follow bool) error {
	named, err := openRuns(ctx, names)
	if err != nil {
		return err
	}
	if len(named) < 2 {
		return cli.Usagef("runs compare takes two runs or more, or a sweep, and got %s", phrase.Count(len(named), "run"))
	}
	var c runs.Comparison
	if follow {
		if c, err = runs.CompareLive(ctx, named...); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	} else {
		c = runs.Compare(named...)
	}
	if !follow || !out.Together() { // otherwise it was just shown there
		out.Printf("%s", c)
	}
	if err := drawTo(picture, c.PNG); err != nil {
		return err
	}
	out.Result(map[string]any{"runs": runResults(c.Runs), "settings": c.Settings, "results": c.Results})
	return err // an interrupt
}

// openRuns opens runs by their names; a sweep's name means all its trials.
func openRuns(ctx context.Context, names []string) (named []*runs.Run, err error) {
	for _, name := range names {
		if study, err := sweep.Open(options.RunDir(name)); err == nil {
			trials, err := runs.List(ctx, runs.Options{Dir: study.Dir})
			if err != nil {
				return nil, err
			}
			named = append(named, trials...)
			continue
		}
		r, err := options.OpenRun(name)
		if err != nil {
			return nil, err
		}
		named = append(named, r)
	}
	return named, nil
}
