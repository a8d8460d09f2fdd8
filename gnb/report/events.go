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

// Events is the result of [OfEvents]: how well a run of events ranks the destinations of the events of the test, beside EdgeBank, which
// remembers pairs and learns nothing.
type Events struct {
	Dataset, Model string
	MRR, EdgeBank  float64
	Events         int
	events.Breakdown
}

// OfEvents reports on a run of events.Train, from what the run has recorded when it measured its test, and shows the picture and tables in
// the current cell, unless quiet. Print the result for the tables as text.
func OfEvents(run *runs.Run, quiet bool) (*Events, error) {
	if run == nil {
		return nil, errors.New("report: a report needs a run (runs.Last, runs.Open)")
	}
	b, err := events.BreakdownOf(run)
	if err != nil {
		return nil, err
	}
	r := &Events{Dataset: run.Config.Dataset, MRR: run.Result.Values["test_mrr"], EdgeBank: run.Result.Values["test_edgebank_mrr"], Breakdown: b}
	r.Model = modelName(run)
	for _, p := range b.BySeen {
		r.Events += p.Events
	}
	if quiet {
		return r, nil
	}
	return r, r.Show()
}

func (r *Events) title() string {
	return fmt.Sprintf("%s on %s: events of the split test", r.Model, r.Dataset)
}

func (r *Events) summary() string {
	return fmt.Sprintf("MRR %s, EdgeBank %s; %s", number(r.MRR), number(r.EdgeBank), phrase.Count(r.Events, "event"))
}

// tables returns the report's tables in the order in which they are shown.
func (r *Events) tables() (list []table) {
	for _, of := range []struct {
		name, first string
		parts       []events.Part
	}{{"by time", "time", r.ByTime}, {"by how often the pair was seen before", "seen", r.BySeen}} {
		t := table{name: of.name, head: []string{of.first, "events", "MRR", "EdgeBank"}}
		for _, p := range of.parts {
			row := []string{p.Name, fmt.Sprint(p.Events), "", ""}
			if p.Events > 0 {
				row[2], row[3] = number(p.MRR), number(p.EdgeBank)
			}
			t.rows = append(t.rows, row)
		}
		list = append(list, t)
	}
	return list
}

// String returns the report as text.
func (r *Events) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.title())
	fmt.Fprintln(&b, r.summary())
	writeTables(&b, r.tables())
	return phrase.Clean(b.String())
}

// Figures returns the report as a picture: the MRR over time, and by how often a pair was seen before.
func (r *Events) Figures() []*figure.Figure {
	f := figure.New(r.title()).Note(r.summary())
	model, bank := figure.Curve{Name: r.Model, Points: true}, figure.Curve{Name: "EdgeBank", Points: true}
	for i, p := range r.ByTime {
		model.X, model.Y = append(model.X, float64(i+1)), append(model.Y, p.MRR)
		bank.X, bank.Y = append(bank.X, float64(i+1)), append(bank.Y, p.EdgeBank)
	}
	label := "tenth of the test, in the order of time"
	if n := len(r.ByTime); n > 0 {
		first, _, _ := strings.Cut(r.ByTime[0].Name, " to ")
		_, last, _ := strings.Cut(r.ByTime[n-1].Name, " to ")
		label += fmt.Sprintf(", %s to %s", first, last)
	}
	f.Lines(figure.Lines{Title: "MRR over time", XLabel: label, Curves: []figure.Curve{model, bank}})
	bars := figure.Bars{Title: "MRR by earlier events of the pair", Max: 1, Across: true}
	for _, p := range r.BySeen {
		bars.Names, bars.Values, bars.Notes = append(bars.Names, p.Name), append(bars.Values, p.MRR), append(bars.Notes, short(p.Events))
	}
	return []*figure.Figure{f.Bars(bars)}
}

// Show shows the picture and the tables in the current cell.
func (r *Events) Show() error {
	for _, f := range r.Figures() {
		if err := f.Show(); err != nil {
			return err
		}
	}
	return showTables(r.tables(), r.String())
}

// WriteHTML is [Report.WriteHTML] for events.
func (r *Events) WriteHTML(path string) error {
	return writeHTML(path, r.title(), []string{r.summary()}, r.Figures(), r.tables())
}
