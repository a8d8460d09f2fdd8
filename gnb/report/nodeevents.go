package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/phrase"
)

// NodeEvents is the result of [OfNodeEvents]: how good a run's answers about nodes are over time, beside predictions that learn nothing.
type NodeEvents struct {
	Dataset, Model string
	events.NodeBreakdown
}

// OfNodeEvents reports on a run of events.TrainNodes, from what the run has recorded when it measured its test, and shows the picture and the
// table in the current cell, unless quiet. Print the result for the table as text.
func OfNodeEvents(run *runs.Run, quiet bool) (*NodeEvents, error) {
	if run == nil {
		return nil, errors.New("report: a report needs a run (runs.Last, runs.Open)")
	}
	b, err := events.NodeBreakdownOf(run)
	if err != nil {
		return nil, err
	}
	r := &NodeEvents{Dataset: run.Config.Dataset, NodeBreakdown: b}
	r.Model = modelName(run)
	if quiet {
		return r, nil
	}
	return r, r.Show()
}

func (r *NodeEvents) title() string {
	over := ""
	if r.Window != "0" { // of given answers that are known at once
		over = " over " + r.Window
	}
	return fmt.Sprintf("%s on %s: %s%s, split test", r.Model, r.Dataset, r.Ask, over)
}

// value writes a metric that may not exist.
func (r *NodeEvents) value(x *float64) string {
	if x == nil {
		return ""
	}
	return r.Metric.Text(*x)
}

func (r *NodeEvents) summary() string {
	text := fmt.Sprintf("%s %s", r.Metric, r.value(r.Whole.Model))
	for i, x := range r.Whole.Baselines {
		text += fmt.Sprintf(", %s %s", r.Baselines[i], r.value(x))
	}
	return text + "; " + phrase.Count(r.Whole.Questions, "question")
}

// tables returns the report's table.
func (r *NodeEvents) tables() []table {
	t := table{name: "by time", head: append([]string{"time", "questions", r.Metric.String()}, r.Baselines...)}
	for _, p := range r.ByTime {
		row := []string{p.Name, fmt.Sprint(p.Questions), r.value(p.Model)}
		for _, x := range p.Baselines {
			row = append(row, r.value(x))
		}
		t.rows = append(t.rows, row)
	}
	return []table{t}
}

// String returns the report as text.
func (r *NodeEvents) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.title())
	fmt.Fprintln(&b, r.summary())
	writeTables(&b, r.tables())
	return phrase.Clean(b.String())
}

// Figures returns the report as a picture: the metric over time.
func (r *NodeEvents) Figures() []*figure.Figure {
	f := figure.New(r.title()).Note(r.summary())
	curves := []figure.Curve{{Name: r.Model, Points: true}}
	for _, name := range r.Baselines {
		curves = append(curves, figure.Curve{Name: name, Points: true})
	}
	for i, p := range r.ByTime {
		for k, x := range append([]*float64{p.Model}, p.Baselines...) {
			if x != nil {
				curves[k].X, curves[k].Y = append(curves[k].X, float64(i+1)), append(curves[k].Y, *x)
			}
		}
	}
	label := "part of the test, in the order of time"
	if n := len(r.ByTime); n > 0 {
		first, _, _ := strings.Cut(r.ByTime[0].Name, " to ")
		last := r.ByTime[n-1].Name
		if _, to, ok := strings.Cut(last, " to "); ok {
			last = to
		}
		label += fmt.Sprintf(", %s to %s", first, last)
	}
	return []*figure.Figure{f.Lines(figure.Lines{Title: r.Metric.String() + " over time", XLabel: label, Curves: curves})}
}

// Show shows the picture and the table in the current cell.
func (r *NodeEvents) Show() error {
	for _, f := range r.Figures() {
		if err := f.Show(); err != nil {
			return err
		}
	}
	return showTables(r.tables(), r.String())
}

// WriteHTML is [Report.WriteHTML] for answers about nodes.
func (r *NodeEvents) WriteHTML(path string) error {
	return writeHTML(path, r.title(), []string{r.summary()}, r.Figures(), r.tables())
}
