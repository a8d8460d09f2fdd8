package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Numbers is the result of [OfNumbers] and [NewNumbers]: how far predicted numbers are from known targets, over the nodes of a
// split.
//
// In a report of whole graphs ([OfGraphs]) Of is "graphs": then graphs take the place of nodes in all fields, and the sizes of
// graphs that of degrees. In one of numbers of edges it is "edges", and the degree of an edge is that of both its ends.
type Numbers struct {
	Dataset string         `json:"dataset"`
	Of      string         `json:"of"` // "nodes", "edges" or "graphs"
	Model   string         `json:"model,omitempty"`
	Split   string         `json:"split"`
	Targets []TargetErrors `json:"targets"`

	rows rows
}

// TargetErrors are the errors of one target's predictions. An error is the prediction minus the target; with quantiles, the
// prediction is that of the quantile next to the median.
type TargetErrors struct {
	Name    string `json:"name"`
	Nodes   int    `json:"nodes"`             // of the split, with a known target
	Skipped int    `json:"skipped,omitempty"` // of the split, without one
	Errors
	// MeanMAE is the MAE of the training split's mean as the prediction of every node; nil without that split.
	MeanMAE *float64 `json:"mean_mae,omitempty"`
	// BySplit are the errors on each of train, val and test that has known targets.
	BySplit []SplitErrors `json:"by_split"`
	// ByRange are the errors by tenths of the nodes in the order of their targets, fewer if targets are equal.
	ByRange  []ErrorGroup `json:"by_range"`
	ByDegree []ErrorGroup `json:"by_degree,omitempty"` // by the number of in-neighbours, of an edge those of both ends
	ByNodes  []ErrorGroup `json:"by_nodes,omitempty"`  // graphs by their number of nodes, in parts of about equally many
	ByEdges  []ErrorGroup `json:"by_edges,omitempty"`  // graphs by their number of directed edges, in such parts
	// Quantiles say how many targets are below the prediction of each quantile; nil if the model predicts none.
	Quantiles []QuantileShare `json:"quantiles,omitempty"`
	Worst     []WorstError    `json:"worst"` // the largest errors first

	known, predicted []float64
}

// Errors are measures of errors, as those of [metrics.Numbers]. R2 and NMAE are nil if all targets are equal.
type Errors struct {
	MAE  float64  `json:"mae"`
	RMSE float64  `json:"rmse"`
	R2   *float64 `json:"r2,omitempty"`
	NMAE *float64 `json:"nmae,omitempty"`
	// Bias is the mean error: above 0 if predictions are too high.
	Bias float64 `json:"bias"`
}

// SplitErrors are the errors on a split.
type SplitErrors struct {
	Split string `json:"split"`
	Nodes int    `json:"nodes"`
	Errors
}

// ErrorGroup holds the errors of nodes with a property in common.
type ErrorGroup struct {
	Name  string  `json:"name"`
	Nodes int     `json:"nodes"`
	MAE   float64 `json:"mae"`
	Bias  float64 `json:"bias"`
}

// QuantileShare is the share of known targets that are at most the prediction of a quantile; of a calibrated model both are
// equal.
type QuantileShare struct {
	Quantile float64 `json:"quantile"`
	Below    float64 `json:"below"`
}

// WorstError is one of the largest errors.
type WorstError struct {
	Node      int     `json:"node"`
	ID        string  `json:"id"`
	Target    float64 `json:"target"`
	Predicted float64 `json:"predicted"`
	Error     float64 `json:"error"`
	Degree    int     `json:"degree"`         // in-neighbours; of an edge those of both ends, 0 of a graph
	Size      *Size   `json:"size,omitempty"` // of a graph; nil of a node
}

// rangeParts is the number of parts of [TargetErrors].ByRange.
const rangeParts = 10

// OfNumbers computes the numbers that a run of numbers.Train predicts for all nodes of a dataset, by [numbers.Predict], or for its
// edges, by [numbers.PredictEdges] with the messages of training, reports on them, and shows the pictures and tables in the current cell. Print the result for the tables as text.
func OfNumbers(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o Options) (*Numbers, error) {
	if err := noReasons(o, "these are numbers"); err != nil {
		return nil, err
	}
	had, err := numbers.OptionsOf(run)
	if err != nil {
		return nil, err
	}
	var p *numbers.Predictions
	if quiet := (gnb.InferOptions{Quiet: true}); numbers.TrainedEdges(run) {
		p, err = numbers.PredictEdges(ctx, run, ds, nil, numbers.PredictOptions{InferOptions: quiet, Training: true})
	} else {
		p, err = numbers.Predict(ctx, run, ds, quiet)
	}
	if err != nil {
		return nil, err
	}
	r, err := NewNumbers(ds, p, had.Quantiles, o)
	if err != nil {
		return nil, err
	}
	r.Model = modelName(run)
	if !o.Quiet {
		err = r.Show()
	}
	return r, err
}

// NewNumbers reports on predictions for a dataset, whose columns are named after its targets ([numbers.Predictions].Names), with a
// column for each of quantiles if there are some. Options.Mistakes is the number of worst errors of a target, and Type is
// not used: nodes without a known target are skipped, whatever their type.
func NewNumbers(ds *gnb.Dataset, p *numbers.Predictions, quantiles []float64, o Options) (*Numbers, error) {
	if err := noReasons(o, "these are numbers"); err != nil {
		return nil, err
	}
	switch {
	case ds == nil || p == nil || p.Rows == nil:
		return nil, errors.New("report: a report of numbers needs a dataset and predictions for its nodes (numbers.Predict)")
	case ds.Graph == nil:
		return nil, fmt.Errorf("report: %s; a report needs the edges of all nodes", ds.WhyNoGraph())
	}
	if o.IDs == nil {
		o.IDs = p.IDs
	}
	of := nodesOf(ds)
	if p.Pairs != nil {
		answers, err := p.Answers(ds)
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		of = rows{ds: answers, unit: "edge", edges: &ends{ds, p.Pairs.Src, p.Pairs.Dst, p.RowIDs}}
	}
	return newNumbers(of, p.Rows, p.Names, quantiles, o)
}

// newNumbers reports on predictions for rows, whose columns have names.
func newNumbers(of rows, p *dataset.Matrix, names []string, quantiles []float64, o Options) (*Numbers, error) {
	ds := of.ds
	switch {
	case ds.Targets == nil:
		return nil, fmt.Errorf("report: the %ss of %s have no targets to compare predictions with", of.unit, ds.Name())
	case len(names) != p.Cols:
		return nil, fmt.Errorf("report: there are %s and %s of predictions; each column has a name", phrase.Count(len(names), "name"), phrase.Count(p.Cols, "column"))
	}
	if err := of.check(p, &o); err != nil {
		return nil, err
	}
	r := &Numbers{Dataset: ds.Name(), Of: of.unit + "s", rows: of}
	nodes, split, err := of.split(o.Split)
	if err != nil {
		return nil, err
	}
	r.Split = split
	per := max(1, len(quantiles))
	for first := 0; first+per <= p.Cols; first += per {
		name := names[first]
		if len(quantiles) > 0 {
			name = strings.TrimSuffix(name, "_q"+strconv.FormatFloat(quantiles[0], 'g', -1, 64))
		}
		column := targetColumn(ds, name)
		if column < 0 {
			return nil, fmt.Errorf("report: the predictions have %s, which is no target of %s", strconv.Quote(phrase.CleanLine(name)), ds.Name())
		}
		c := &errorCounter{of: of, ds: ds, p: p, column: column, first: first, quantiles: quantiles, ids: o.IDs, most: o.Mistakes}
		e, err := c.report(nodes)
		if err != nil {
			return nil, err
		}
		if e.Name = phrase.CleanLine(name); e.Nodes == 0 {
			return nil, fmt.Errorf("report: no %s of the split %q of %s has a known target %s", of.unit, r.Split, ds.Name(), strconv.Quote(e.Name))
		}
		r.Targets = append(r.Targets, *e)
	}
	if len(r.Targets) == 0 {
		return nil, fmt.Errorf("report: predictions have %s, fewer than the %d quantiles", phrase.Count(p.Cols, "column"), per)
	}
	return r, nil
}

// targetColumn returns the column of a target by the name that predictions give it.
func targetColumn(ds *gnb.Dataset, name string) int {
	if t := slices.IndexFunc(ds.Meta.TargetNames, func(n string) bool { return phrase.CleanLine(n) == name }); t >= 0 {
		return t
	}
	if text, ok := strings.CutPrefix(name, "target_"); ok && len(ds.Meta.TargetNames) == 0 {
		if t, err := strconv.Atoi(text); err == nil && t >= 0 && t < ds.Targets.Cols {
			return t
		}
	}
	return -1
}

// errorCounter measures the predictions of a target.
type errorCounter struct {
	of            rows
	ds            *gnb.Dataset // that of the rows
	p             *dataset.Matrix
	column, first int // of the target, and of its first prediction
	quantiles     []float64
	ids           []string
	most          int
}

func (c *errorCounter) known(v int32) float64 { return float64(c.ds.Target(v)[c.column]) }

// predicted is the prediction of a node: of quantiles, the one next to the median.
func (c *errorCounter) predicted(v int32) float64 {
	best := 0
	for q := range c.quantiles {
		if math.Abs(c.quantiles[q]-0.5) < math.Abs(c.quantiles[best]-0.5) {
			best = q
		}
	}
	return float64(c.p.Row(int(v))[c.first+best])
}

// withTarget returns the nodes whose target is known.
func (c *errorCounter) withTarget(nodes []int32) (known []int32) {
	for _, v := range nodes {
		if y := c.known(v); y == y { //nolint:gocritic // not NaN
			known = append(known, v)
		}
	}
	return known
}

// measure returns the errors over nodes with known targets.
func (c *errorCounter) measure(nodes []int32) (e Errors) {
	values := make([]*float64, 0, len(metrics.Numbers))
	for _, m := range metrics.Numbers {
		tally := m.New(0)
		for _, v := range nodes {
			tally.Add([]float32{float32(c.predicted(v))}, metrics.Answer{Numbers: []float32{float32(c.known(v))}})
		}
		x, _ := tally.Value()
		values = append(values, &x)
		if math.IsNaN(x) {
			values[len(values)-1] = nil
		}
	}
	e.MAE, e.RMSE, e.R2, e.NMAE = *values[0], *values[1], values[2], values[3]
	for _, v := range nodes {
		e.Bias += (c.predicted(v) - c.known(v)) / float64(len(nodes))
	}
	return e
}

func (c *errorCounter) group(name string, nodes []int32) ErrorGroup {
	e := c.measure(nodes)
	return ErrorGroup{Name: name, Nodes: len(nodes), MAE: e.MAE, Bias: e.Bias}
}

func (c *errorCounter) report(nodes []int32) (*TargetErrors, error) {
	known := c.withTarget(nodes)
	e := &TargetErrors{Nodes: len(known), Skipped: len(nodes) - len(known)}
	for _, v := range known {
		for q := range max(1, len(c.quantiles)) {
			if x := float64(c.p.Row(int(v))[c.first+q]); math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("report: the prediction for %s %d is not finite in column %d", c.of.unit, v, c.first+q)
			}
		}
		e.known, e.predicted = append(e.known, c.known(v)), append(e.predicted, c.predicted(v))
	}
	if e.Nodes == 0 {
		return e, nil
	}
	e.Errors = c.measure(known)
	for _, split := range []string{"train", "val", "test"} {
		ids, err := c.ds.Split(split)
		if errors.Is(err, dataset.ErrNoSplit) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if ids = c.withTarget(ids); len(ids) == 0 {
			continue
		}
		e.BySplit = append(e.BySplit, SplitErrors{split, len(ids), c.measure(ids)})
		if split == "train" {
			mean := 0.0
			for _, v := range ids {
				mean += c.known(v) / float64(len(ids))
			}
			off := 0.0
			for _, v := range known {
				off += math.Abs(mean-c.known(v)) / float64(len(known))
			}
			e.MeanMAE = &off
		}
	}
	c.byRange(e, known)
	if c.of.whole != nil {
		e.ByNodes, e.ByEdges = c.bySize(known, Size.nodes), c.bySize(known, Size.edges)
	} else {
		e.ByDegree = c.byDegree(known)
	}
	for q, quantile := range c.quantiles {
		below := 0
		for _, v := range known {
			if c.known(v) <= float64(c.p.Row(int(v))[c.first+q]) {
				below++
			}
		}
		e.Quantiles = append(e.Quantiles, QuantileShare{quantile, float64(below) / float64(len(known))})
	}
	c.worst(e, known)
	return e, nil
}

// byDegree groups nodes by their number of in-neighbours.
func (c *errorCounter) byDegree(known []int32) (list []ErrorGroup) {
	degrees := map[int][]int32{}
	for _, v := range known {
		g := degreeGroup(c.of.degree(v))
		degrees[g] = append(degrees[g], v)
	}
	for g := range lastDegree + 1 {
		if len(degrees[g]) > 0 {
			list = append(list, c.group(degreeName(g), degrees[g]))
		}
	}
	return list
}

// bySize groups graphs by their number of nodes or edges.
func (c *errorCounter) bySize(known []int32, measure func(Size) int) (list []ErrorGroup) {
	for part := range equalParts(known, sizeParts, func(v int32) int { return measure(c.of.size(v)) }) {
		list = append(list, c.group(part.name(strconv.Itoa, "–"), part.rows))
	}
	return list
}

// byRange divides rows into parts of about equal numbers by their target.
func (c *errorCounter) byRange(e *TargetErrors, known []int32) {
	for part := range equalParts(known, rangeParts, c.known) {
		e.ByRange = append(e.ByRange, c.group(part.name(number, " to "), part.rows))
	}
}

func (c *errorCounter) worst(e *TargetErrors, known []int32) {
	size := func(v int32) float64 { return math.Abs(c.predicted(v) - c.known(v)) }
	order := slices.Clone(known)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(size(b), size(a)) })
	for _, v := range order[:min(len(order), max(0, c.most))] {
		w := WorstError{Node: int(v), ID: phrase.CleanLine(c.of.name(v, c.ids)), Target: c.known(v), Predicted: c.predicted(v), Degree: c.of.degree(v)}
		w.Error = w.Predicted - w.Target
		if c.of.whole != nil {
			size := c.of.size(v)
			w.Size = &size
		}
		e.Worst = append(e.Worst, w)
	}
}

// number writes a number for people, and known one that may not exist.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }

func known(x *float64) string {
	if x == nil {
		return "–"
	}
	return decimals(*x)
}

func (r *Numbers) title() string {
	if r.Model == "" {
		return fmt.Sprintf("%s: numbers of the split %s", r.Dataset, r.Split)
	}
	return fmt.Sprintf("%s on %s: numbers of the split %s", r.Model, r.Dataset, r.Split)
}

func (e *TargetErrors) summary(unit string) string {
	s := fmt.Sprintf("%s: MAE %s, RMSE %s, R² %s, bias %s", e.Name, number(e.MAE), number(e.RMSE), known(e.R2), number(e.Bias))
	if e.MeanMAE != nil {
		s += fmt.Sprintf("; MAE %s by the training mean", number(*e.MeanMAE))
	}
	s += "; " + phrase.Count(e.Nodes, unit)
	if e.Skipped > 0 {
		s += fmt.Sprintf(", %d more without a known target", e.Skipped)
	}
	return s
}

// tables returns the report's tables in the order in which they are shown.
func (r *Numbers) tables() (list []table) {
	for _, e := range r.Targets {
		of := ""
		if len(r.Targets) > 1 {
			of = " of " + e.Name
		}
		t := table{"errors" + of + " by split", []string{"split", r.Of, "MAE", "RMSE", "R²", "NMAE", "bias"}, nil}
		for _, s := range e.BySplit {
			t.rows = append(t.rows, []string{s.Split, fmt.Sprint(s.Nodes), number(s.MAE), number(s.RMSE), known(s.R2), known(s.NMAE), number(s.Bias)})
		}
		list = append(list, t)
		groups := func(name, head string, gs []ErrorGroup) {
			if len(gs) == 0 {
				return
			}
			t := table{name + of, []string{head, r.Of, "MAE", "bias"}, nil}
			for _, g := range gs {
				t.rows = append(t.rows, []string{g.Name, fmt.Sprint(g.Nodes), number(g.MAE), number(g.Bias)})
			}
			list = append(list, t)
		}
		groups("errors by part of the range", "target", e.ByRange)
		groups("errors by degree", "in-neighbours", e.ByDegree)
		groups("errors by nodes", "nodes of the graph", e.ByNodes)
		groups("errors by edges", "edges of the graph", e.ByEdges)
		if len(e.Quantiles) > 0 {
			t := table{"targets below a quantile" + of, []string{"quantile", "share below"}, nil}
			for _, q := range e.Quantiles {
				t.rows = append(t.rows, []string{number(q.Quantile), decimals(q.Below)})
			}
			list = append(list, t)
		}
		if len(e.Worst) > 0 {
			t := table{"largest errors" + of, append([]string{r.rows.unit, "target", "predicted", "error"}, r.rows.about()...), nil}
			for _, w := range e.Worst {
				t.rows = append(t.rows, append([]string{w.ID, number(w.Target), number(w.Predicted), number(w.Error)}, aboutOf(w.Degree, w.Size)...))
			}
			list = append(list, t)
		}
	}
	return list
}

// String returns the report's tables as text.
func (r *Numbers) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.title())
	for _, e := range r.Targets {
		fmt.Fprintln(&b, e.summary(r.rows.unit))
	}
	writeTables(&b, r.tables())
	return phrase.Clean(b.String())
}

// Figures returns the report as pictures, one for each target: predicted against true with the line of equals, MAE and bias
// by part of the range, MAE by degree or size and, with quantiles, the share of targets below each.
func (r *Numbers) Figures() (list []*figure.Figure) {
	for _, e := range r.Targets {
		f := figure.New(r.title()).Note(e.summary(r.rows.unit))
		f.Scatter(figure.Scatter{Title: e.Name + ", predicted", XLabel: "true", X: e.known, Y: e.predicted, Diagonal: true})
		bars := func(title, label string, gs []ErrorGroup) {
			if len(gs) == 0 {
				return
			}
			b := figure.Bars{Title: title, XLabel: label}
			for _, g := range gs {
				b.Names, b.Values, b.Notes = append(b.Names, g.Name), append(b.Values, g.MAE), append(b.Notes, short(g.Nodes))
			}
			f.Bars(b)
		}
		bias := figure.Curve{Points: true}
		ranges := slices.Clone(e.ByRange)
		for i, g := range ranges {
			bias.X, bias.Y = append(bias.X, float64(i+1)), append(bias.Y, g.Bias)
		}
		for i := range ranges { // long names do not fit below bars
			ranges[i].Name = fmt.Sprint(i + 1)
		}
		bars("MAE by part of the range", fmt.Sprintf("part, from %s to %s; %s", number(slices.Min(e.known)), number(slices.Max(e.known)), r.Of), ranges)
		f.Lines(figure.Lines{Title: "mean of predicted minus true", XLabel: "part of the range", Curves: []figure.Curve{bias}})
		bars("MAE by degree", "in-neighbours, nodes", e.ByDegree)
		bars("MAE by nodes", "nodes of the graph, graphs", e.ByNodes)
		bars("MAE by edges", "edges of the graph, graphs", e.ByEdges)
		if len(e.Quantiles) > 1 {
			c := figure.Curve{Points: true}
			for _, q := range e.Quantiles {
				c.X, c.Y = append(c.X, q.Quantile), append(c.Y, q.Below)
			}
			f.Lines(figure.Lines{Title: "share of targets below", XLabel: "quantile", Curves: []figure.Curve{c}, Diagonal: true})
		}
		list = append(list, f)
	}
	return list
}

// Show shows the pictures and the tables in the current cell; outside a notebook it does nothing.
func (r *Numbers) Show() error {
	for _, f := range r.Figures() {
		if err := f.Show(); err != nil {
			return err
		}
	}
	return showTables(r.tables(), r.String())
}
