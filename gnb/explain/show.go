package explain

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/internal/phrase"
)

// shown is the number of rows of a table or bars of a chart.
const shown = 12

// title names what is explained, and the answer.
func (e *Explanation) title() string {
	answer := fmt.Sprintf("%s %.4g", e.Output, e.Value)
	if e.Than != "" {
		answer += " rather than " + e.Than
	}
	switch {
	case e.Pair != nil:
		return fmt.Sprintf("the pair %s of %s: %s", shownPair(e.Pair), e.Dataset, answer)
	case e.Graph != "":
		return fmt.Sprintf("graph %s of %s: %s", e.Graph, e.Dataset, answer)
	}
	return fmt.Sprintf("node %s of %s: %s", e.Node, e.Dataset, answer)
}

// line is a column as it is shown: a raw one of the tables, or a column of features.
type line struct {
	name, value, target string
	own, targetOwn, all float64
}

// lines are the columns as they are shown: those of the tables if there are some.
func (e *Explanation) lines() (all []line) {
	if e.Raw != nil {
		for _, r := range e.Raw {
			all = append(all, line{named(r.Type, r.Name), rawValue(r.Value, r.Exact), rawValue(r.TargetValue, r.TargetExact), r.Own, r.Target, r.All})
		}
		return all
	}
	for _, c := range e.Columns {
		l := line{named(c.Type, c.Name), fmt.Sprintf("%.4g", c.Value), fmt.Sprintf("%.4g", c.TargetValue), c.Own, c.Target, c.All}
		if e.Graph != "" && c.Type != "graph" {
			l.value = "–"
		}
		all = append(all, l)
	}
	return all
}

// rawValue shows a value of a table.
func rawValue(value string, exact bool) string {
	switch {
	case value == "" && exact:
		return "missing"
	case value == "": // of nodes of another type
		return "–"
	case !exact:
		return "(" + value + ")"
	}
	return value
}

// String shows the answer, the columns, neighbours and edges with the largest scores, and the fidelity.
func (e *Explanation) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, by %s\n", e.title(), e.Method)
	if why := e.why(); why != "" {
		s.WriteString(why + "\n")
	}
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintf(w, "%s\t\n", strings.Join(cells, "\t")) }
	rest := func(n int) {
		_ = w.Flush() // to memory
		if n > shown {
			fmt.Fprintf(&s, "and %d more\n", n-shown)
		}
	}
	lines := e.lines()
	switch {
	case e.Pair != nil:
		row("column", "of "+e.Pair.Source, "score", "of "+e.Pair.Target, "score", "with neighbours")
	case e.Graph != "":
		row("column", "value", "score")
	default:
		row("column", "value", "score of its own", "with neighbours")
	}
	for _, l := range lines[:min(shown, len(lines))] {
		switch {
		case e.Pair != nil:
			row(l.name, l.value, signed(l.own), l.target, signed(l.targetOwn), signed(l.all))
		case e.Graph != "":
			row(l.name, l.value, signed(l.all))
		default:
			row(l.name, l.value, signed(l.own), signed(l.all))
		}
	}
	rest(len(lines))
	if len(e.Nodes) > 1 {
		if e.Graph != "" {
			row("node", "score of its features", "most by")
		} else {
			row("node", "hops away", "score of its features", "most by")
		}
		for _, n := range e.Nodes[:min(shown, len(e.Nodes))] {
			if e.Graph != "" {
				row(n.Node, signed(n.Score), n.Most)
			} else {
				row(n.Node, fmt.Sprint(n.Hop), signed(n.Score), n.Most)
			}
		}
		rest(len(e.Nodes))
	}
	if len(e.Edges) > 0 {
		row("edge", "relation", "score")
		for _, x := range e.Edges[:min(shown, len(e.Edges))] {
			row(x.Src+" → "+x.Dst, x.Relation, signed(x.Score))
		}
		rest(len(e.Edges))
	}
	s.WriteString(e.Fidelity.describe(e.Output))
	for _, note := range e.Notes {
		s.WriteString(note + "\n")
	}
	return phrase.Clean(s.String())
}

// why is one line of the largest scores: the columns of the node itself, and the edges.
func (e *Explanation) why() string {
	type part struct {
		text  string
		score float64
	}
	var parts []part
	for _, l := range e.lines() {
		switch {
		case e.Pair != nil:
			parts = append(parts, part{fmt.Sprintf("%s of %s = %s", l.name, e.Pair.Source, l.value), l.own}, part{fmt.Sprintf("%s of %s = %s", l.name, e.Pair.Target, l.target), l.targetOwn})
		case e.Graph != "":
			parts = append(parts, part{l.name, l.all})
		default:
			parts = append(parts, part{l.name + " = " + l.value, l.own})
		}
	}
	for _, x := range e.Edges {
		parts = append(parts, part{x.Src + " → " + x.Dst, x.Score})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return bySize(a.score, b.score) })
	var texts []string
	for _, p := range parts[:min(len(parts), 4)] {
		if p.score != 0 {
			texts = append(texts, fmt.Sprintf("%s %+.2f", p.text, p.score))
		}
	}
	return strings.Join(texts, ", ")
}

func signed(x float64) string { return fmt.Sprintf("%+.4f", x) }

func (f Fidelity) describe(output string) string {
	if f.Edges == 0 {
		return "it has no in-edges\n"
	}
	text := fmt.Sprintf("%s without the %s with the highest scores: %.4g (at random %.4g); with them alone: %.4g (at random %.4g)\n",
		output, phrase.Count(f.Top, "edge"), f.Without, f.RandomWithout, f.Only, f.RandomOnly)
	if f.Top == f.Edges {
		text += "these are all edges, so no other ones can be compared with them\n"
	} else if !f.Says() {
		text += "as many edges at random do as much: do not believe the scores of edges\n"
	}
	return text
}

// listed names outputs in an error, at most ten.
func listed(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + fmt.Sprintf(" and %d more", len(names)-10)
	}
	return strings.Join(names, ", ")
}
