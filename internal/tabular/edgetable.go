package tabular

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// AllColumns asks for every column of edges that has no other use.
const AllColumns = "all"

// EdgeAsk is what a format and the options ask of a table of edges.
type EdgeAsk struct {
	Guide *Guide
	// Table is what the options call the table in front of a column.
	Table string
	// Source and Target are the names of the columns of ends; "" recognises them.
	Source, Target string
	// Features and Times are names of columns: a list with commas, or "all".
	Features, Times string
	// Graph is the name of a column with the number of the line's graph; "" is none.
	Graph string
	// Lists means that a feature can be a list of numbers.
	Lists bool
	// Some allows that a name of Features is in other tables only.
	Some bool
}

// EdgeTable is a table of edges whose columns are recognised.
type EdgeTable struct {
	*CSVFile
	Names   []string
	Kinds   []columns.Column
	Ends    [2]int
	Weights Pile[float32]
	Times   Pile[int64]
	X       Pile[float32]
	Read    []string // columns that are features

	ask          EdgeAsk
	weight, time int
	features     []int
	widths       []int
	graph        *OneGraph
	rows         int64
	unread       []int
}

// LookEdges reads a table of edges once, to recognise its columns, and opens it again.
func LookEdges(ctx context.Context, open func() (*CSVFile, error), a EdgeAsk) (*EdgeTable, error) {
	t, err := open()
	if err != nil {
		return nil, err
	}
	given := map[string]columns.Kind{}
	give := func(name string, k columns.Kind) {
		if name != "" && given[name] == "" {
			given[name] = k
		}
	}
	give(a.Source, columns.Source)
	give(a.Target, columns.Target)
	give(strings.ToLower(a.Graph), columns.Skip)
	ends := []string{"source", "target", "weight", "src", "dst", "from", "to"} // these keep their use, and the error says so
	if !slices.Contains(ends, columnName(a.Times)) {
		give(columnName(a.Times), columns.Time)
	}
	for _, name := range strings.Split(a.Features, ",") {
		if a.Features != AllColumns && !slices.Contains(ends, columnName(name)) {
			give(columnName(name), columns.Number)
		}
	}
	for _, name := range []string{a.Source, a.Target} {
		if name != "" && t.Column(name) < 0 {
			defer t.Close()
			return nil, t.Wrong("line 1: the columns are %s; an edge has a %q and a %q, and maybe a \"weight\"", ShownNames(t.Header), a.Source, a.Target)
		}
	}
	cols, err := t.look(ctx, look{columns.Edges, a.Table, given, false, a.Lists}, a.Guide)
	_ = t.Close()
	if err != nil {
		return nil, err
	}
	if t, err = open(); err != nil {
		return nil, err
	}
	e := &EdgeTable{CSVFile: t, Names: t.Header, Kinds: cols, ask: a}
	if err := e.find(); err != nil {
		_ = t.Close()
		return nil, err
	}
	return e, nil
}

func columnName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// find sets the places of the columns.
func (e *EdgeTable) find() error {
	a := e.ask
	if len(e.Kinds) != len(e.Header) {
		return e.Wrong("it was changed while it was read")
	}
	e.Ends = [2]int{Of(e.Kinds, columns.Source), Of(e.Kinds, columns.Target)}
	e.weight, e.time = Of(e.Kinds, columns.Weight), -1
	if e.Ends[0] < 0 || e.Ends[1] < 0 {
		names := [2]string{"source", "target"}
		if a.Source != "" {
			names = [2]string{a.Source, a.Target}
		}
		return e.Wrong("line 1: the columns are %s; an edge has a %q and a %q, and maybe a \"weight\"", ShownNames(e.Header), names[0], names[1])
	}
	used := []int{e.Ends[0], e.Ends[1], e.weight}
	e.graph = e.OneGraph(a.Graph)
	if a.Times != "" {
		if e.time = e.Column(columnName(a.Times)); e.time < 0 || slices.Contains(used, e.time) {
			return e.Wrong("line 1: the columns are %s; --edge-times names %s, which is no column for times, and each edge needs a time", ShownNames(e.Header), Shown([]byte(a.Times)))
		}
		used = append(used, e.time)
	}
	switch {
	case a.Features == "":
	case a.Features == AllColumns:
		for i, c := range e.Kinds {
			if !slices.Contains(used, i) && c.Kind != columns.Skip && i != e.graph.column {
				e.features = append(e.features, i)
			}
		}
		if len(e.features) == 0 && !a.Some {
			return e.Wrong("line 1: the columns are %s; none is left for --edge-features", ShownNames(e.Header))
		}
	default:
		for _, name := range strings.Split(a.Features, ",") {
			i := e.Column(columnName(name))
			if i < 0 && a.Some {
				continue
			}
			if i < 0 || slices.Contains(used, i) || slices.Contains(e.features, i) {
				return e.Wrong("line 1: the columns are %s; --edge-features names %s, which is no column for a feature", ShownNames(e.Header), Shown([]byte(name)))
			}
			e.features = append(e.features, i)
		}
	}
	for i, c := range e.Kinds { // as the options say
		if c.Kind == columns.Number && c.Why == "as given" && !slices.Contains(e.features, i) && !slices.Contains(used, i) {
			e.features = append(e.features, i)
		}
		if c.Kind == columns.Time && c.Why == "as given" && e.time < 0 {
			e.time = i
		}
	}
	for i, c := range e.Kinds {
		switch {
		case slices.Contains(used, i) || slices.Contains(e.features, i) || i == e.time || i == e.graph.column || c.Kind == columns.Skip:
		default:
			e.unread = append(e.unread, i)
		}
	}
	for _, i := range e.features {
		e.Read = append(e.Read, e.Header[i])
	}
	e.widths = slices.Repeat([]int{1}, len(e.features))
	return nil
}

// Each calls ends for each record, whose other values it collects.
func (e *EdgeTable) Each(ctx context.Context, ends func(record []string) error) error {
	err := e.CSVFile.Each(ctx, func(record []string) error {
		if err := e.graph.Check(record); err != nil {
			return err
		}
		if err := ends(record); err != nil {
			return err
		}
		return e.add(record)
	})
	if err != nil {
		return err
	}
	for _, i := range e.unread {
		flag := "--edge-features or --edge-times can name it"
		if e.Kinds[i].Kind == columns.Time {
			flag = "by its name it has times, and --edge-times " + e.Header[i] + " reads it"
		}
		e.ask.Guide.Said.Add(notice.Notice{Kind: notice.Dropped, Where: filepath.Base(e.Path), What: fmt.Sprintf("the column %s is not read", Shown([]byte(e.Header[i]))), Count: e.rows, Option: flag})
	}
	return nil
}

func (e *EdgeTable) add(record []string) error {
	if e.rows++; e.weight >= 0 {
		x, ok := Feature(record[e.weight], e.Kinds[e.weight].Notation)
		if !ok || x < 0 {
			return e.At("the weight is %s; it is a finite number and not negative", Shown([]byte(record[e.weight])))
		}
		if text := record[e.weight]; LostText(text, e.Kinds[e.weight].Notation, x) {
			e.lose(e.weight, text)
		}
		e.Weights.Add(x)
	}
	if e.time >= 0 {
		v, ok := WholeTime([]byte(record[e.time]))
		if !ok {
			return e.At("the time of the edge is %s; a time is a whole number, such as seconds since 1970, and --format tables reads dates", Shown([]byte(record[e.time])))
		}
		e.Times.Add(v)
	}
	for k, i := range e.features {
		width := 0
		for text := range NumbersOf(record[i], e.ask.Lists && e.Kinds[i].Notation == columns.Point) {
			v, ok := Feature(text, e.Kinds[i].Notation)
			if !ok {
				return e.At("the feature %s of the edge is %s; features are finite numbers: fill it in, give each word a column of 0 and 1, leave the column out, or read words and missing values with --format tables",
					Shown([]byte(e.Header[i])), Shown([]byte(record[i])))
			}
			if LostText(text, e.Kinds[i].Notation, v) {
				e.lose(i, text)
			}
			e.X.Add(v)
			width++
		}
		if e.rows == 1 {
			e.widths[k] = width
		}
		if width != e.widths[k] {
			return e.At("the feature %s has %d numbers, and that of the first edge %d", Shown([]byte(e.Header[i])), width, e.widths[k])
		}
	}
	return nil
}

// Columns returns the names of the features of an edge: a list has one for each number.
func (e *EdgeTable) Columns() []string {
	var all []string
	for k, name := range e.Read {
		for c := range e.widths[k] {
			all = append(all, name)
			if e.widths[k] > 1 {
				all[len(all)-1] = fmt.Sprintf("%s %d", name, c)
			}
		}
	}
	return all
}

// WholeTime parses a whole number, which may be written with a decimal point and zeros.
func WholeTime(text []byte) (int64, bool) {
	if n, ok := Whole(text); ok {
		return n, true
	}
	const most = 1 << 53 // float64 has all whole numbers up to it
	x, ok := Decimal(text)
	return int64(x), ok && x == math.Trunc(x) && math.Abs(x) <= most
}
