package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/gnb"
)

var runsCommand = command{"runs", "list, show, compare or watch runs", runRuns}

func runRuns(ctx context.Context, args []string, out *output) error {
	fs := out.flags("list|show|compare|attach [RUN...]", "list shows the runs in $GNB_RUNS, or the folder runs; show one of them, by default the last; compare several, first the settings in which they differ; attach watches one that another process is running, by default the last, until it ends. RUN is a run's directory or its name.")
	rest, err := out.parse(fs, args, 1, -1)
	if err != nil {
		return err
	}
	if rest[0] == "show" && len(rest) == 2 {
		if study, err := gnb.OpenStudy(runDir(rest[1])); err == nil {
			out.printf("%s", study)
			out.result(newSweepResult(study))
			return nil
		}
	}
	var (
		runs   []*gnb.Run
		sweeps []*gnb.Study
	)
	for _, name := range rest[1:] {
		r, err := openRun(name)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	switch what := rest[0]; {
	case what == "list" && len(runs) == 0:
		if runs, err = gnb.Runs(ctx); err != nil {
			return err
		}
		for _, r := range runs {
			out.printf("%s\n", strings.ReplaceAll(r.String(), "\n", "  "))
		}
		if sweeps, err = gnb.Studies(ctx); err != nil {
			return err
		}
		for _, s := range sweeps {
			line, _, _ := strings.Cut(s.String(), "\n")
			out.printf("sweep %s: %s  %s\n", s.ID, line, s.Dir)
		}
	case (what == "show" || what == "attach") && len(runs) <= 1:
		if len(runs) == 0 {
			r, err := gnb.LastRun(ctx)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		if what == "attach" {
			if runs[0], err = gnb.Attach(ctx, runs[0]); err != nil {
				return err
			}
		}
		out.printf("%s\n%s", runs[0], gnb.CompareRuns(runs[0]))
	case what == "compare" && len(runs) >= 2:
		out.printf("%s", gnb.CompareRuns(runs...))
	default:
		return usagef("it is: runs list, runs show [RUN], runs attach [RUN], or runs compare RUN RUN..., and got %q", strings.Join(rest, " "))
	}
	list := make([]map[string]any, len(runs))
	for i, r := range runs {
		list[i] = map[string]any{"id": r.Config.ID, "dir": r.Dir, "config": r.Config, "result": r.Result}
	}
	fields := map[string]any{"runs": list}
	if rest[0] == "list" {
		found := make([]sweepResult, len(sweeps))
		for i, s := range sweeps {
			found[i] = newSweepResult(s)
		}
		fields["sweeps"] = found
	}
	if rest[0] == "compare" {
		c := gnb.CompareRuns(runs...)
		fields["settings"], fields["results"] = c.Settings, c.Results
	}
	out.result(fields)
	return nil
}

// openRun opens a run by its directory, or by its name among the runs.
func openRun(name string) (*gnb.Run, error) { return gnb.OpenRun(runDir(name)) }

// runDir is the directory that a name means.
func runDir(name string) string {
	if _, err := os.Stat(name); err != nil && !strings.ContainsRune(name, filepath.Separator) {
		if dir := filepath.Join(gnb.RunsDir(), name); exists(dir) {
			return dir
		}
	}
	return name
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
