package convert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// This file has what readers of datasets of many graphs share: labels, targets and splits of graphs.

// readAnswers reads a line for each graph into the labels or targets of graphs. Whole numbers and words are classes in ascending
// order, of which -1 is one like any other; several columns of 0, 1 and -1 are several labels; other numbers are targets. With
// asNumbers they are targets in any case. Nothing, NaN and the words for a missing value are unknown.
func readAnswers(ctx context.Context, f *tabular.File, graphs *dataset.Dataset, column string, asNumbers bool, o Options) error {
	where := filepath.Base(f.Path)
	if asNumbers = o.numberKind(column) || asNumbers; !asNumbers {
		w := newAnswerWords(o)
		wide, err := w.read(ctx, f, o.Threads)
		if err != nil {
			return err
		}
		if !wide {
			numeric, err := w.numeric(f)
			if err != nil {
				return err
			}
			if !numeric {
				return w.store(f, graphs, where, o)
			}
			o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "numbers with fractions are targets, not classes", Count: int64(len(w.y))})
		}
	}
	again, err := tabular.OpenFile(f.Path, o.meter)
	if err != nil {
		return err
	}
	defer again.Close()
	t, err := tabular.ReadTable(ctx, again, true, MaxNodes, o.Threads)
	if err != nil {
		return err
	}
	return setAnswers(graphs, t, asNumbers, f.Wrong, where, nil, o)
}

// answerWords are the labels of graphs as they stand.
type answerWords struct {
	terms   *tabular.Terms
	missing *columns.Missing
	all     []string // by number
	line    []int64  // the first line of each
	y       []int32
	unknown tabular.Unknown
	column  string
}

// read reads the words. wide reports that a line has several columns; the rest is not read then.
func (w *answerWords) read(ctx context.Context, f *tabular.File, threads int) (wide bool, err error) {
	type lines struct {
		text  []byte
		ends  []int32
		first int64
		wide  bool
	}
	blank := int64(0)
	err = tabular.EachBlock(ctx, f, threads, func(b tabular.Block) (lines, error) {
		l := lines{first: b.Line}
		err := b.Lines(func(line []byte, _ int64) error {
			line = bytes.TrimSpace(line)
			l.wide = l.wide || bytes.ContainsAny(line, ",;\t")
			l.text = append(l.text, line...)
			l.ends = append(l.ends, int32(len(l.text)))
			return nil
		})
		return l, err
	}, func(l lines) error {
		if wide = wide || l.wide; wide {
			return nil
		}
		from := int32(0)
		for i, end := range l.ends {
			text, line := l.text[from:end], l.first+int64(i)
			from = end
			switch {
			case len(text) == 0:
				blank = line
				continue
			case blank > 0:
				return f.Wrong("line %d is empty; each graph has a line, in which ? or nan is an unknown label", blank)
			case len(w.y) == MaxNodes:
				return f.Wrong("line %d: there are more graphs than %d", line, MaxNodes)
			}
			if err := w.add(string(text), line); err != nil {
				return f.Wrong("%w", err)
			}
		}
		return nil
	})
	return wide, err
}

func newAnswerWords(o Options) *answerWords {
	return &answerWords{terms: tabular.NewTerms(), missing: columns.NewMissing(o.Missing, o.Present)}
}

// add takes the label of the next graph.
func (w *answerWords) add(word string, line int64) error {
	if word == "" || word != "-1" && w.missing.Label(word) {
		w.unknown.Add(word)
		w.y = append(w.y, -1)
		return nil
	}
	k, full := w.terms.Add(word)
	if full {
		return errors.New("there are 4 GiB of labels")
	}
	if int(k) == len(w.all) {
		w.all, w.line = append(w.all, word), append(w.line, line)
	}
	w.y = append(w.y, k)
	return nil
}

// numeric reports whether the labels are numbers of which some have fractions.
func (w *answerWords) numeric(f *tabular.File) (bool, error) {
	fractions := false
	for i, word := range w.all {
		x, ok := tabular.Decimal([]byte(word))
		switch {
		case ok && math.IsInf(x, 0):
			return false, f.Wrong("line %d: the label is %s; it is a class or a finite number", w.line[i], tabular.Shown([]byte(word)))
		case !ok:
			return false, nil
		}
		fractions = fractions || x != math.Trunc(x)
	}
	return fractions, nil
}

// store makes classes of the words, in ascending order.
func (w *answerWords) store(f *tabular.File, graphs *dataset.Dataset, where string, o Options) error {
	if len(w.y) == 0 {
		return f.Wrong("it has no lines; each graph has one")
	}
	if len(w.all) == 0 {
		return f.Wrong("%w", tabular.ErrNoLabels)
	}
	known := int64(0)
	for _, k := range w.y {
		if k >= 0 {
			known++
		}
	}
	if !o.ManyClasses {
		if err := columns.CheckClasses(int64(len(w.all)), known); err != nil {
			return f.Wrong("%w; if the labels are numbers to predict, --kinds %s=target makes targets of them", err, cmp.Or(w.column, "graph_labels"))
		}
	}
	values := make([]float64, len(w.all))
	numbers, order := true, make([]int, len(w.all))
	for i, word := range w.all {
		x, ok := tabular.Decimal([]byte(word))
		values[i], order[i], numbers = x, i, numbers && ok
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if numbers && values[a] != values[b] {
			if values[a] < values[b] {
				return -1
			}
			return 1
		}
		return bytes.Compare([]byte(w.all[a]), []byte(w.all[b]))
	})
	place, names, plain := make([]int32, len(w.all)), make([]string, len(w.all)), numbers
	for c, i := range order {
		place[i], names[c] = int32(c), w.all[i]
		plain = plain && w.all[i] == strconv.Itoa(c)
	}
	if len(names) > tabular.MaxClassNames {
		return f.Wrong("there are %d different labels; there can be %d classes with names", len(names), tabular.MaxClassNames)
	}
	for g, k := range w.y {
		if k >= 0 {
			w.y[g] = place[k]
		}
	}
	graphs.Labels, graphs.Meta.NumClasses, graphs.Meta.NumNodes = w.y, len(names), len(w.y)
	w.unknown.Where = where
	w.unknown.Say(int64(len(w.y)), o.said)
	if !plain {
		graphs.Meta.ClassNames = names
		if numbers {
			o.said.Add(notice.Notice{Kind: notice.Renumbered, Where: where, What: fmt.Sprintf("class 0 is %s, and the others follow in ascending order; the classes have their names", names[0]), Count: int64(len(names))})
		}
	}
	return nil
}

// setAnswers gives graphs the labels or targets of a table, whose values can be NaN: several columns of 0, 1 and -1 are several
// labels, unless asNumbers, and others are targets.
func setAnswers(graphs *dataset.Dataset, t *tabular.Table, asNumbers bool, wrong func(string, ...any) error, where string, names []string, o Options) error {
	switch {
	case t.Rows == 0:
		return wrong("it has no lines; each graph has one")
	case graphs.Meta.NumNodes != 0 && graphs.Meta.NumNodes != t.Rows:
		return wrong("it has %d lines, but there are labels of %d graphs", t.Rows, graphs.Meta.NumNodes)
	}
	graphs.Meta.NumNodes = t.Rows
	binary := !asNumbers && t.Cols > 1 && graphs.Labels == nil
	known := int64(0)
	for _, x := range t.Values {
		if x == x {
			known++
			binary = binary && (x == 0 || x == 1 || x == -1)
		}
	}
	if known == 0 {
		return wrong("%w", tabular.ErrNoLabels)
	}
	unknown := int64(len(t.Values)) - known
	if !binary {
		graphs.Targets = &dataset.Matrix{Rows: t.Rows, Cols: t.Cols, F32: t.Values}
		graphs.Meta.TargetNames = names
		if unknown > 0 {
			o.said.Add(notice.Notice{Kind: notice.Told, Where: where, What: "targets that are unknown", Count: unknown, Of: int64(len(t.Values))})
		}
		sayConstant(graphs, where, o)
		return nil
	}
	m := &dataset.Multi{Rows: t.Rows, Cols: t.Cols, Data: make([]int8, len(t.Values))}
	for i, x := range t.Values {
		if m.Data[i] = -1; x == x {
			m.Data[i] = int8(x)
		}
		if x == -1 {
			unknown++
		}
	}
	graphs.MultiLabels, graphs.Meta.NumClasses, graphs.Meta.ClassNames = m, m.Cols, names
	graphs.Meta.Metric = dataset.MetricROCAUC // which OGB and MoleculeNet report for several labels
	if unknown > 0 {
		o.said.Add(notice.Notice{Kind: notice.Told, Where: where, What: "labels that are unknown", Count: unknown, Of: int64(len(t.Values))})
	}
	return nil
}

// sayConstant reports targets whose known values are all equal.
func sayConstant(d *dataset.Dataset, where string, o Options) {
	for j := range d.Targets.Cols {
		first, same, any := float32(0), true, false
		for v := range d.Targets.Rows {
			y := d.Targets.F32[v*d.Targets.Cols+j]
			switch {
			case y != y:
			case !any:
				first, any = y, true
			default:
				same = same && y == first
			}
		}
		name := fmt.Sprintf("target %d", j)
		if j < len(d.Meta.TargetNames) {
			name += " (" + d.Meta.TargetNames[j] + ")"
		}
		switch {
		case !any:
			o.note("%s: %s has no known value", where, name)
		case same && d.Targets.Rows > 1:
			o.note("%s: every known value of %s is %v, so there is nothing to learn about it", where, name, first)
		}
	}
}
