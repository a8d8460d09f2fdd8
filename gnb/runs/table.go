package runs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Table is a list of runs that prints as a table; see [List].
type Table []*Run

// fields returns the fields of each run.
func (t Table) fields() []map[string]string {
	out := make([]map[string]string, len(t))
	for i, r := range t {
		out[i] = r.Fields()
	}
	return out
}

// Sort sorts runs by a field, or by several separated by spaces or commas; "-val_accuracy" sorts
// the largest value first. Runs without the field come last; equal runs keep their order.
func (t Table) Sort(by string) (Table, error) {
	entry.Enter()
	keys := strings.FieldsFunc(by, func(c rune) bool { return strings.ContainsRune(", \t\r\n", c) })
	if len(t) == 0 || len(keys) == 0 {
		return t, nil
	}
	fields := t.fields()
	type key struct {
		field field
		sign  int
	}
	var order []key
	for _, k := range keys {
		name, down := strings.CutPrefix(k, "-")
		field, err := findField(name, fields)
		if err != nil {
			return nil, err
		}
		order = append(order, key{field, map[bool]int{false: 1, true: -1}[down]})
	}
	at := make([]int, len(t))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(i, j int) int {
		for _, k := range order {
			a, hasA := k.field.of(fields[i])
			b, hasB := k.field.of(fields[j])
			c := k.sign * compareText(a, b)
			if hasA != hasB {
				c = map[bool]int{true: -1, false: 1}[hasA]
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	out := make(Table, len(t))
	for i, j := range at {
		out[i] = t[j]
	}
	return out, nil
}

// mostSettings is the maximum number of columns for settings that differ.
const mostSettings = 8

// leastTelling are settings that often differ although the user did not vary them on purpose.
var leastTelling = []string{"seed", "threads", "split_set", "graphnb_version", "go", "cpu"}

// differ returns the settings that are not the same in all runs: those with several values, and
// those that only some runs of a program have.
func (t Table) differ() map[string]bool {
	type of struct{ program, name string }
	with, runs, values := map[of]int{}, map[string]int{}, map[string]map[string]bool{}
	for _, r := range t {
		if r.Result.State == StateDamaged {
			continue
		}
		runs[r.Config.Program]++
		for name, value := range r.settings() {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
			with[of{r.Config.Program, name}]++
		}
	}
	out := map[string]bool{}
	for name, v := range values {
		if len(v) > 1 {
			out[name] = true
		}
	}
	for k, n := range with {
		if n < runs[k.program] {
			out[k.name] = true
		}
	}
	return out
}

// columns returns the fields that distinguish the runs and those of their results.
func (t Table) columns(fields []map[string]string) []string {
	all, differ := map[string]bool{}, t.differ()
	for _, f := range fields {
		for name := range f {
			all[name] = true
		}
	}
	cols := []string{"name", "state"}
	named := slices.ContainsFunc(t, func(r *Run) bool { return r.named() })
	for _, name := range []string{"title", "tag", "model", "dataset"} { // always shown, where a run has one
		if all[name] && (name != "title" || named) {
			cols = append(cols, name)
		}
	}
	var varied []string
	for _, name := range slices.Sorted(maps.Keys(differ)) {
		if name != "dataset" && !(name == "args.Model" && all["model"]) {
			varied = append(varied, name)
		}
	}
	slices.SortStableFunc(varied, func(a, b string) int { return slices.Index(leastTelling, a) - slices.Index(leastTelling, b) })
	cols = append(cols, varied[:min(len(varied), mostSettings)]...)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(t, func(r *Run) bool { _, ok := r.hasMetric(name); return ok }) {
			cols = append(cols, name)
		}
	}
	for _, name := range []string{"loss", "epochs", "seconds"} {
		if all[name] {
			cols = append(cols, name)
		}
	}
	return cols
}

// Text formats the runs as a table of the given fields. By default these are name, state, model
// and dataset, up to eight settings in which the runs differ, and the results.
func (t Table) Text(columns ...string) (string, error) {
	entry.Enter()
	if len(t) == 0 {
		return "no runs\n", nil
	}
	fields := t.fields()
	if len(columns) == 0 {
		columns = t.columns(fields)
	}
	cols := make([]field, len(columns))
	for i, c := range columns {
		var err error
		if cols[i], err = findField(c, fields); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, c := range cols {
		fmt.Fprintf(w, "%s%s", strings.Repeat("\t", min(i, 1)), shortName(c[0], fields))
	}
	for _, f := range fields {
		fmt.Fprintln(w)
		for i, c := range cols {
			v, _ := c.of(f)
			fmt.Fprintf(w, "%s%s", strings.Repeat("\t", min(i, 1)), cmp.Or(readable(oneLineOf(v)), "–"))
		}
	}
	fmt.Fprintln(w)
	_ = w.Flush() // to memory
	return b.String(), nil
}

// oneLineOf returns a text without line breaks and terminal control characters.
func oneLineOf(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// String returns [Table.Text] with the default fields.
func (t Table) String() string {
	s, err := t.Text()
	if err != nil {
		return err.Error()
	}
	return phrase.Clean(s)
}
