package gnb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
)

// Comparison is several runs side by side: first what they were started with
// where that differs, then how they ended. See [CompareRuns].
type Comparison struct {
	Runs []*Run
	// Settings are the settings that are not the same in all runs, by name, one
	// value a run; "" where a run has none.
	Settings []Row
	// Results are what any of the runs reported, one value a run.
	Results []Row
}

// Row is one line of a [Comparison].
type Row struct {
	Name   string
	Values []string
}

// CompareRuns puts runs side by side.
func CompareRuns(runs ...*Run) Comparison {
	multigpuEnter()
	c := Comparison{Runs: runs}
	settings, results := make([]map[string]string, len(runs)), make([]map[string]string, len(runs))
	for i, r := range runs {
		settings[i], results[i] = r.settings(), r.outcome()
	}
	c.Settings = slices.DeleteFunc(rows(settings), func(row Row) bool { return len(slices.Compact(slices.Clone(row.Values))) == 1 })
	c.Results = rows(results)
	return c
}

func rows(of []map[string]string) []Row {
	names := map[string]bool{}
	for _, m := range of {
		for n := range m {
			names[n] = true
		}
	}
	var out []Row
	for _, n := range slices.Sorted(maps.Keys(names)) {
		row := Row{Name: n}
		for _, m := range of {
			row.Values = append(row.Values, m[n])
		}
		out = append(out, row)
	}
	return out
}

// settings are all that a run was started with, by name.
func (r *Run) settings() map[string]string {
	c := r.Config
	out := map[string]string{
		"program": c.Program, "dataset": c.Dataset, "seed": fmt.Sprint(c.Seed), "workers": fmt.Sprint(c.Workers),
		"virtual_ranks": fmt.Sprint(c.VirtualRanks), "threads": fmt.Sprint(c.Threads), "device": c.Device,
		"precision": cmp.Or(c.Precision, "float32"), "split_set": fmt.Sprint(c.SplitSet),
		"graphnb_version": c.Version, "go": c.Go, "cpu": c.CPU,
	}
	var args any
	if json.Unmarshal(c.Args, &args) == nil {
		flatten("args", args, out)
	}
	return out
}

func flatten(name string, v any, out map[string]string) {
	m, ok := v.(map[string]any)
	if !ok {
		b, err := json.Marshal(v)
		if err == nil {
			out[name] = strings.Trim(string(b), `"`)
		}
		return
	}
	for k, x := range m {
		flatten(name+"."+k, x, out)
	}
}

// outcome is how a run ended, by name.
func (r *Run) outcome() map[string]string {
	res := r.Result
	out := map[string]string{"state": res.State, "epochs": fmt.Sprint(res.Epochs), "steps": fmt.Sprint(res.Steps), "seconds": fmt.Sprintf("%.2f", res.Seconds)}
	if res.Epochs > 0 {
		out["loss"] = fmt.Sprintf("%.4f", float64(res.Loss))
		secs := slices.Clone(res.EpochSeconds)
		sort.Float64s(secs)
		if len(secs) > 0 {
			out["epoch_seconds (median)"] = fmt.Sprintf("%.3f", secs[len(secs)/2])
		}
	}
	for n, v := range res.Values {
		out[n] = fmt.Sprintf("%.4g", v)
	}
	return out
}

func (c Comparison) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name string, values []string) { fmt.Fprintf(w, "%s\t%s\n", name, strings.Join(values, "\t")) }
	ids := make([]string, len(c.Runs))
	for i, r := range c.Runs {
		ids[i] = r.Config.ID
	}
	line("", ids)
	for _, row := range c.Settings {
		line(row.Name, row.Values)
	}
	line("", make([]string, len(ids)))
	for _, row := range c.Results {
		line(row.Name, row.Values)
	}
	_ = w.Flush() // to memory
	return b.String()
}
