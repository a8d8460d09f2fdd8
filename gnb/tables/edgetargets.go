package tables

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/convert"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// edgeAnswers is what the rows of tables of edges with numbers to predict are, by which the edges of the graph are found again: each
// row is an edge of its own, also one that is equal to another.
type edgeAnswers struct {
	src, dst       []int32 // by row of all tables
	numbers, times []int64 // see dataset.RowNumbers
	rows           []int32 // those of tables with numbers to predict
	targets        []float32
	parts          []int8
}

// predicts reports whether an edge has numbers to predict.
func (r *Recipe) predicts() bool { return len(r.edgeTargets()) > 0 }

// edgeTargets returns the names of the numbers to predict of edges, each once.
func (r *Recipe) edgeTargets() (names []string) {
	for t := range r.Edges {
		for _, c := range r.Edges[t].Columns {
			if c.Kind == Predict && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// readAnswers reads the numbers to predict and the split of a row.
func (e *edges) readAnswers(b *batch, i int, cols []*Column, values []*vec, split *vec) error {
	for k, v := range values {
		y, err := targetAt(e.t, e.lost, e.missing, cols[k], b, v, i)
		if err != nil {
			return err
		}
		e.targets = append(e.targets, y)
	}
	part := -1
	if split != nil && !isMissing(split, i, e.missing) {
		c, ok := e.t.column(Split), false
		if part, ok = (&columns.Column{Numbered: c.Numbered}).Part(split.value(i)); !ok {
			return fault("%s: the split is %s; it is train, val, test or empty", b.at(i), shown(split.value(i)))
		}
	}
	if len(cols) > 0 {
		e.parts = append(e.parts, int8(part))
	}
	return nil
}

// number collects what the rows of all tables of edges are, whose ends src and dst are nodes of the graph.
func (r *Recipe) number(all []*edges, src, dst []int32, times []int64) *edgeAnswers {
	names := r.edgeTargets()
	n := &edgeAnswers{src: src, dst: dst, times: times, numbers: dataset.RowNumbers(len(src), times)}
	first := int32(0)
	for _, e := range all {
		var place []int // of the table's own numbers among all
		for _, c := range e.t.Columns {
			if c.Kind == Predict {
				place = append(place, slices.Index(names, c.Name))
			}
		}
		count := int32(len(e.from))
		for i := range count {
			if len(place) == 0 {
				break
			}
			row := slices.Repeat([]float32{float32(math.NaN())}, len(names))
			for k, c := range place {
				row[c] = e.targets[int(i)*len(place)+k]
			}
			n.rows, n.targets, n.parts = append(n.rows, first+i), append(n.targets, row...), append(n.parts, e.parts[i])
		}
		first += count
	}
	return n
}

// putEdgeTargets gives a dataset, whose graph has the numbers of rows as times, the numbers to predict of its edges, and their
// splits: those of the columns, those that Options.Split says, or random ones.
func (r *Recipe) putEdgeTargets(d *dataset.Dataset, o *Options) error {
	n := r.rows
	if n == nil {
		return nil
	}
	var at []int64
	d.Graph, at = dataset.FromRowNumbers(d.Graph, n.src, n.dst, n.numbers, n.times)
	r.putEvents(d, at, n.numbers, o)
	if !r.predicts() {
		d.Describe()
		return nil
	}
	own := make([]int64, len(n.rows))
	for i, row := range n.rows {
		own[i] = at[row]
	}
	names := r.edgeTargets()
	rows, err := d.SetEdgeTargets(own, &dataset.Matrix{Rows: len(own), Cols: len(names), F32: n.targets}, names)
	if err != nil {
		return fault("%w", err)
	}
	known := int64(len(d.EdgeAnswers.LabelledRows()))
	if lacking := int64(len(rows)) - known; lacking > 0 {
		o.say(notice.Notice{Kind: notice.Told, Where: "edges", What: "edges have no known number to predict; they are not trained on, and it is predicted for them", Count: lacking, Of: int64(len(rows))})
	}
	split := slices.ContainsFunc(r.Edges, func(t Table) bool { return t.column(Split) != nil })
	switch {
	case split && o.Split != "":
		return fault("Split (--split) is %s, and a column says the splits of the edges; leave one of them out", shown(o.Split))
	case split:
		for k, name := range splitNames {
			ids := []int32{}
			for i, part := range n.parts {
				if int(part) == k {
					ids = append(ids, rows[i])
				}
			}
			slices.Sort(ids)
			d.EdgeAnswers.Splits[name] = ids
		}
	case known > 0 && r.Events && o.Split == "":
		if err := splitEvents(d, o); err != nil {
			return err
		}
	case known > 0:
		how := o.Split
		if how == "" {
			how = "random"
			o.say(notice.Notice{Kind: notice.Guessed, Where: "edges", What: fmt.Sprintf("no column says the split of the edges, so 80 %% are train, 10 %% val and 10 %% test, at random by seed %d", r.Seed), Count: known, Option: "--split time or a column of the kind split divides them otherwise"})
		}
		if err := convert.DivideEdges(d, how, r.Seed); err != nil {
			return fault("%w", err)
		}
	}
	d.Describe()
	return nil
}
