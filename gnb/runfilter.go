package gnb

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

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
