package gnb

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// RunTable is a list of runs, which prints as a table; see [Runs].
type RunTable []*Run

// fields are those of each run.
func (t RunTable) fields() []map[string]string {
	out := make([]map[string]string, len(t))
	for i, r := range t {
		out[i] = r.Fields()
	}
	return out
}

// Filter keeps the runs for which all terms of a query hold, in their order:
//
//	model=sage lr<0.01 test_accuracy>0.7 state!=failed dataset=ogbn*
//
// A term is a field's name (see [Run.Fields]; its last part is enough, in either
// case, with or without - and _), one of = != < <= > >= and a value. Numbers are
// compared as such, other values as text, in which times order as they should; =
// takes patterns with * and ?, and several values with | between them. A value
// with spaces is written in double quotes. For a run that lacks the field only !=
// holds. A field that no run has is an error that names those there are.
func (t RunTable) Filter(query string) (RunTable, error) {
	multigpuEnter()
	terms, err := parseFilter(query)
	if err != nil || len(t) == 0 || len(terms) == 0 {
		return t, err
	}
	fields := t.fields()
	for i := range terms {
		if terms[i].field, err = findField(terms[i].name, fields); err != nil {
			return nil, err
		}
	}
	var out RunTable
	for i, r := range t {
		if !slices.ContainsFunc(terms, func(f filterTerm) bool { return !f.holds(fields[i]) }) {
			out = append(out, r)
		}
	}
	return out, nil
}

// filterTerm is one comparison of a filter.
type filterTerm struct {
	name, op, value string
	field           field
}

// filterOps are the comparisons, the longer ones first.
var filterOps = []string{"!=", "<=", ">=", "==", "=", "<", ">"}

func parseFilter(query string) (terms []filterTerm, err error) {
	words, err := filterWords(query)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		at := strings.IndexAny(w, "!<>=")
		if at <= 0 {
			return nil, fmt.Errorf("gnb: the filter's %q is no comparison; it is a field, one of = != < <= > >=, and a value, as in lr<0.01, with spaces between comparisons only", w)
		}
		i := slices.IndexFunc(filterOps, func(op string) bool { return strings.HasPrefix(w[at:], op) })
		if i < 0 || len(w) == at+len(filterOps[i]) {
			return nil, fmt.Errorf("gnb: the filter's %q lacks one of = != < <= > >=, or the value behind it", w)
		}
		f := filterTerm{name: w[:at], op: strings.Replace(filterOps[i], "==", "=", 1), value: w[at+len(filterOps[i]):]}
		if _, err := path.Match(f.value, ""); err != nil {
			return nil, fmt.Errorf("gnb: the filter's %q is no pattern: a [ in it has no ]", f.value)
		}
		terms = append(terms, f)
	}
	return terms, nil
}

// filterWords cuts a query at white space outside of double quotes, which it
// drops.
func filterWords(query string) (words []string, err error) {
	var word strings.Builder
	quoted := false
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, c := range query {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune(" \t\r\n", c):
			end()
		default:
			word.WriteRune(c)
		}
	}
	end()
	if quoted {
		return nil, fmt.Errorf("gnb: the filter %s has a quote without its other half", query)
	}
	return words, nil
}

func (f filterTerm) holds(fields map[string]string) bool {
	got, ok := f.field.of(fields)
	if !ok {
		return f.op == "!="
	}
	switch f.op {
	case "=":
		return f.matches(got)
	case "!=":
		return !f.matches(got)
	}
	order := compareText(got, f.value)
	switch f.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// matches says whether a field has one of the values.
func (f filterTerm) matches(got string) bool {
	for value := range strings.SplitSeq(f.value, "|") {
		if compareText(got, value) == 0 || strings.Trim(got, "[]") == value {
			return true
		}
		if ok, err := path.Match(strings.ToLower(value), strings.ToLower(got)); ok && err == nil {
			return true
		}
	}
	return false
}

// compareText compares as numbers what are numbers, and else as text.
func compareText(a, b string) int {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err == nil && err2 == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// Sort orders runs by a field, or by several with spaces or commas between them;
// "-val_accuracy" puts the greatest first. Runs that lack the field come last, and
// runs that are alike stay in their order.
func (t RunTable) Sort(by string) (RunTable, error) {
	multigpuEnter()
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
	out := make(RunTable, len(t))
	for i, j := range at {
		out[i] = t[j]
	}
	return out, nil
}

// mostSettings is how many settings that differ the table has a column for.
const mostSettings = 8

// leastTelling are settings that differ without being what somebody has varied.
var leastTelling = []string{"seed", "threads", "split_set", "graphnb_version", "go", "cpu"}

// columns are the fields that tell the runs apart and how they ended.
func (t RunTable) columns(fields []map[string]string) []string {
	all, settings, differ := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, r := range t {
		for name := range fields[i] {
			all[name] = true
		}
		for name := range r.settings() {
			settings[name] = true
			for _, f := range fields {
				differ[name] = differ[name] || f[name] != fields[i][name]
			}
		}
	}
	cols := []string{"name", "state"}
	for _, name := range []string{"model", "dataset"} { // whatever they are
		if all[name] {
			cols = append(cols, name)
		}
	}
	var varied []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if differ[name] && name != "dataset" && !(name == "args.Model" && all["model"]) {
			varied = append(varied, name)
		}
	}
	slices.SortStableFunc(varied, func(a, b string) int { return slices.Index(leastTelling, a) - slices.Index(leastTelling, b) })
	cols = append(cols, varied[:min(len(varied), mostSettings)]...)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, _, ok := cutKind(name); ok {
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

// Text is the runs as a table of the given fields, by default their name, state,
// model and dataset, the settings in which they differ, and how they ended.
func (t RunTable) Text(columns ...string) (string, error) {
	multigpuEnter()
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

// oneLineOf is a text that does not break a table.
func oneLineOf(s string) string { return strings.Join(strings.Fields(s), " ") }

// String is Text without columns of one's own.
func (t RunTable) String() string {
	s, err := t.Text()
	if err != nil {
		return err.Error()
	}
	return s
}
