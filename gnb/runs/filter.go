package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/entry"
)

// Filter returns the runs for which all terms of a query hold, in their order:
//
//	model=sage lr<0.01 test_accuracy>0.7 state!=failed dataset=ogbn*
//
// A term is the name of a field, one of = != < <= > >=, and a value. For the fields see
// [Run.Fields]; the last part of a name is enough if only one field ends with it; case, - and _
// are ignored. Numbers compare as numbers, other values as text (RFC 3339 times sort correctly). =
// and != take patterns, where * matches anything and ? one character, and alternatives separated
// by |. tag=baseline holds for a run with that tag among others. A list is written [10,5] or 10,5; a value with spaces in double quotes. A run without the
// field satisfies only !=. A field that no run has is an error that names the nearest fields.
func (t Table) Filter(query string) (Table, error) {
	entry.Enter()
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
	var out Table
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
			return nil, fmt.Errorf("runs: the filter's %q is not a comparison; it is a field, one of = != < <= > >=, and a value, as in lr<0.01, with spaces between comparisons only", w)
		}
		i := slices.IndexFunc(filterOps, func(op string) bool { return strings.HasPrefix(w[at:], op) })
		if i < 0 || len(w) == at+len(filterOps[i]) {
			return nil, fmt.Errorf("runs: the filter's %q lacks one of = != < <= > >=, or the value behind it", w)
		}
		f := filterTerm{name: w[:at], op: strings.Replace(filterOps[i], "==", "=", 1), value: w[at+len(filterOps[i]):]}
		if err := f.check(w); err != nil {
			return nil, err
		}
		terms = append(terms, f)
	}
	return terms, nil
}

// check returns an error for a term that makes no sense.
func (f filterTerm) check(word string) error {
	one := f.op == "=" || f.op == "!="
	switch {
	case strings.ContainsAny(f.value[:1], "<>="):
		return fmt.Errorf("runs: the filter's %q has another comparison behind %s; it is one of = != < <= > >=", word, f.op)
	case !one && strings.Contains(f.value, "|"):
		return fmt.Errorf("runs: the filter's %q compares with several values; only = and != do", word)
	case !one && strings.ContainsAny(f.value, "*?"):
		return fmt.Errorf("runs: the filter's %q compares with a pattern; only = and != do", word)
	case !one:
		return nil
	}
	for value := range strings.SplitSeq(f.value, "|") {
		switch {
		case value == "":
			return fmt.Errorf("runs: the filter's %q has no value beside a |", word)
		case strings.Count(value, "[") != strings.Count(value, "]"):
			return fmt.Errorf("runs: in the filter's %q the value %q has one bracket of two; | stands between whole values, as in model=sage|gcn or fanouts=[10,5]|[15,10], and ? for a bracket that is a character", word, value)
		}
	}
	return nil
}

// filterWords splits a query at white space outside double quotes, and removes the quotes.
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
		return nil, fmt.Errorf("runs: the filter %s has a quote without its other half", query)
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

// matches reports whether a field has one of the values; a list may be written with or without
// brackets.
func (f filterTerm) matches(got string) bool {
	inner := got
	if strings.HasPrefix(got, "[") && strings.HasSuffix(got, "]") {
		inner = got[1 : len(got)-1]
	}
	if slices.Equal(f.field, field{"tag"}) {
		for tag := range strings.SplitSeq(got, ",") {
			if slices.ContainsFunc(strings.Split(f.value, "|"), func(value string) bool { return wildcard(value, tag) }) {
				return true
			}
		}
	}
	for value := range strings.SplitSeq(f.value, "|") {
		if compareText(got, value) == 0 || wildcard(value, got) || wildcard(value, inner) {
			return true
		}
	}
	return false
}

// wildcard reports whether a text matches a pattern, ignoring case: * matches anything, ? one
// character, and any other character itself.
func wildcard(pattern, text string) bool {
	p, t := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(text))
	i, star, again := 0, -1, 0 // the last * so far, and the position to which it matches
	for k := 0; k < len(t); {
		switch {
		case i < len(p) && p[i] == '*':
			star, again = i, k
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[k]):
			i++
			k++
		case star < 0:
			return false
		default: // the * matches one more character
			again++
			i, k = star+1, again
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}

// compareText compares two numbers as numbers, anything else as text.
func compareText(a, b string) int {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err == nil && err2 == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}
