package gnb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Comparison is several runs side by side: first what they were started with
// where that differs, then how they ended. See [Compare].
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

// Compare puts runs side by side.
func Compare(runs ...*Run) Comparison {
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

func (c Comparison) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name string, values []string) {
		fmt.Fprint(w, name)
		for _, v := range values {
			fmt.Fprintf(w, "\t%s", readable(oneLineOf(v)))
		}
		fmt.Fprintln(w)
	}
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
