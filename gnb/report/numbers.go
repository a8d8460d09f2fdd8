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
// split, or over its edges. What is said of nodes here holds for edges then.
type Numbers struct {
	Dataset string         `json:"dataset"`
	Edges   bool           `json:"edges,omitempty"` // the numbers are of edges
	Model   string         `json:"model,omitempty"`
	Split   string         `json:"split"`
	Targets []TargetErrors `json:"targets"`
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
	ByDegree []ErrorGroup `json:"by_degree"` // by the number of in-neighbours, of an edge those of both ends
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
	Node      int     `json:"node"` // the row of the predictions
	ID        string  `json:"id"`   // of an edge, those of both ends
	Target    float64 `json:"target"`
	Predicted float64 `json:"predicted"`
	Error     float64 `json:"error"`
	Degree    int     `json:"degree"` // in-neighbours; of an edge, those of its source and target in all
}

// rangeParts is the number of parts of [TargetErrors].ByRange.
const rangeParts = 10

// OfNumbers computes the numbers that a run of numbers.Train predicts for all nodes of a dataset, by [numbers.Predict], or for its
// edges, by [numbers.PredictEdges] with the messages of training, reports on them, and shows the pictures and tables in the current cell. Print the result for the tables as text.
func OfNumbers(ctx context.Context, run *runs.Run, ds *gnb.Dataset, o Options) (*Numbers, error) {
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
	if m := run.Result.Model; m != nil {
		r.Model = m.Name
	}
	if !o.Quiet {
		err = r.Show()
	}
	return r, err
}

// NewNumbers reports on predictions for a dataset, whose columns are named after its targets ([numbers.Predictions].Names), with a
// column for each of quantiles if there are some. Options.Mistakes is the number of worst errors of a target, and Type is
// not used: nodes without a known target are skipped, whatever their type.
func NewNumbers(ds *gnb.Dataset, p *numbers.Predictions, quantiles []float64, o Options) (*Numbers, error) {
	switch {
	case ds == nil || p == nil || p.Rows == nil:
		return nil, errors.New("report: a report of numbers needs a dataset and predictions for its nodes (numbers.Predict)")
	case ds.Graph == nil:
		return nil, fmt.Errorf("report: %s; a report needs the edges of all nodes", ds.WhyNoGraph())
	case p.Pairs == nil && p.Rows.Rows != ds.Nodes():
		return nil, fmt.Errorf("report: there are predictions for %s and %s has %d; they belong to different graphs", phrase.Count(p.Rows.Rows, "node"), ds.Name(), ds.Nodes())
	case len(p.Names) != p.Rows.Cols:
		return nil, fmt.Errorf("report: there are %s and %s of predictions; each column has a name", phrase.Count(len(p.Names), "name"), phrase.Count(p.Rows.Cols, "column"))
	case o.IDs != nil && len(o.IDs) != ds.Nodes():
		return nil, fmt.Errorf("report: Options.IDs has %s and %s has %d nodes", phrase.Count(len(o.IDs), "name"), ds.Name(), ds.Nodes())
	case o.Mistakes < -1:
		return nil, fmt.Errorf("report: Options.Mistakes is %d; give a number of errors to list, 0 for 10, -1 for none", o.Mistakes)
	}
	rows, err := p.Answers(ds)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	r := &Numbers{Dataset: ds.Name(), Edges: p.Pairs != nil, Split: cmp.Or(o.Split, "test")}
	var nodes []int32
	if _, err := rows.Split("test"); err != nil && o.Split == "" {
		r.Split = "all"
		for v := range int32(p.Rows.Rows) {
			nodes = append(nodes, v)
		}
	} else if nodes, err = rows.Split(r.Split); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	per := max(1, len(quantiles))
	for first := 0; first+per <= p.Rows.Cols; first += per {
		name := p.Names[first]
		if len(quantiles) > 0 {
			name = strings.TrimSuffix(name, "_q"+strconv.FormatFloat(quantiles[0], 'g', -1, 64))
		}
		column := targetColumn(rows, name)
		if column < 0 {
			return nil, fmt.Errorf("report: the predictions have %s, which is no target of %s", strconv.Quote(phrase.CleanLine(name)), ds.Name())
		}
		c := &errorCounter{ds: ds, rows: rows, p: p, column: column, first: first, quantiles: quantiles, ids: o.IDs, most: cmp.Or(o.Mistakes, 10)}
		e, err := c.report(nodes)
		if err != nil {
			return nil, err
		}
		if e.Name = phrase.CleanLine(name); e.Nodes == 0 {
			return nil, fmt.Errorf("report: no %s of the split %q of %s has a known target %s", r.row(), r.Split, ds.Name(), strconv.Quote(e.Name))
		}
		r.Targets = append(r.Targets, *e)
	}
	if len(r.Targets) == 0 {
		return nil, fmt.Errorf("report: predictions have %s, fewer than the %d quantiles", phrase.Count(p.Rows.Cols, "column"), per)
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
	ds            *gnb.Dataset
	rows          *gnb.Dataset // the targets and splits of the predictions' rows
	p             *numbers.Predictions
	column, first int // of the target, and of its first prediction
	quantiles     []float64
	ids           []string
	most          int
}

func (c *errorCounter) known(v int32) float64 { return float64(c.rows.Target(v)[c.column]) }

// degree is the number of in-neighbours of a row: of an edge, those of both its ends.
func (c *errorCounter) degree(row int32) int {
	if e := c.p.Pairs; e != nil {
		return c.ds.Graph.InDegree(e.Src[row]) + c.ds.Graph.InDegree(e.Dst[row])
	}
	return c.ds.Graph.InDegree(row)
}

// predicted is the prediction of a node: of quantiles, the one next to the median.
func (c *errorCounter) predicted(v int32) float64 {
	best := 0
	for q := range c.quantiles {
		if math.Abs(c.quantiles[q]-0.5) < math.Abs(c.quantiles[best]-0.5) {
			best = q
		}
	}
	return float64(c.p.Rows.Row(int(v))[c.first+best])
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
			if x := float64(c.p.Rows.Row(int(v))[c.first+q]); math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("report: the prediction for node %d is not finite in column %d", v, c.first+q)
			}
		}
		e.known, e.predicted = append(e.known, c.known(v)), append(e.predicted, c.predicted(v))
	}
	if e.Nodes == 0 {
		return e, nil
	}
	e.Errors = c.measure(known)
	for _, split := range []string{"train", "val", "test"} {
		ids, err := c.rows.Split(split)
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
	degrees := map[int][]int32{}
	for _, v := range known {
		g := degreeGroup(c.degree(v))
		degrees[g] = append(degrees[g], v)
	}
	for g := range lastDegree + 1 {
		if len(degrees[g]) > 0 {
			e.ByDegree = append(e.ByDegree, c.group(degreeName(g), degrees[g]))
		}
	}
	for q, quantile := range c.quantiles {
		below := 0
		for _, v := range known {
			if c.known(v) <= float64(c.p.Rows.Row(int(v))[c.first+q]) {
				below++
			}
		}
		e.Quantiles = append(e.Quantiles, QuantileShare{quantile, float64(below) / float64(len(known))})
	}
	c.worst(e, known)
	return e, nil
}

// byRange divides nodes into parts of about equal numbers by their target; equal targets are in one part.
func (c *errorCounter) byRange(e *TargetErrors, known []int32) {
	order := slices.Clone(known)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(c.known(a), c.known(b)) })
	for lo := 0; lo < len(order); {
		hi := lo + max(1, (len(order)-lo)/max(1, rangeParts-len(e.ByRange)))
		for hi < len(order) && c.known(order[hi]) == c.known(order[hi-1]) {
			hi++
		}
		name := number(c.known(order[lo]))
		if last := number(c.known(order[hi-1])); last != name {
			name += " to " + last
		}
		e.ByRange = append(e.ByRange, c.group(name, order[lo:hi]))
		lo = hi
	}
}

func (c *errorCounter) worst(e *TargetErrors, known []int32) {
	size := func(v int32) float64 { return math.Abs(c.predicted(v) - c.known(v)) }
	order := slices.Clone(known)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(size(b), size(a)) })
	for _, v := range order[:min(len(order), max(0, c.most))] {
		w := WorstError{Node: int(v), ID: fmt.Sprint(v), Target: c.known(v), Predicted: c.predicted(v), Degree: c.degree(v)}
		w.Error = w.Predicted - w.Target
		switch e := c.p.Pairs; {
		case c.ids != nil && e != nil:
			w.ID = phrase.CleanLine(c.ids[e.Src[v]] + " → " + c.ids[e.Dst[v]])
		case c.ids != nil:
			w.ID = phrase.CleanLine(c.ids[v])
		default:
			w.ID = phrase.CleanLine(strings.Join(c.p.RowIDs(int(v)), " → "))
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

// row is what a row of the predictions is.
func (r *Numbers) row() string {
	if r.Edges {
		return "edge"
	}
	return "node"
}

func (r *Numbers) title() string {
	if r.Model == "" {
		return fmt.Sprintf("%s: numbers of the split %s", r.Dataset, r.Split)
	}
	return fmt.Sprintf("%s on %s: numbers of the split %s", r.Model, r.Dataset, r.Split)
}

func (e *TargetErrors) summary(row string) string {
	s := fmt.Sprintf("%s: MAE %s, RMSE %s, R² %s, bias %s", e.Name, number(e.MAE), number(e.RMSE), known(e.R2), number(e.Bias))
	if e.MeanMAE != nil {
		s += fmt.Sprintf("; MAE %s by the training mean", number(*e.MeanMAE))
	}
	s += "; " + phrase.Count(e.Nodes, row)
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
		t := table{"errors" + of + " by split", []string{"split", r.row() + "s", "MAE", "RMSE", "R²", "NMAE", "bias"}, nil}
		for _, s := range e.BySplit {
			t.rows = append(t.rows, []string{s.Split, fmt.Sprint(s.Nodes), number(s.MAE), number(s.RMSE), known(s.R2), known(s.NMAE), number(s.Bias)})
		}
		list = append(list, t)
		groups := func(name, head string, gs []ErrorGroup) {
			t := table{name + of, []string{head, r.row() + "s", "MAE", "bias"}, nil}
			for _, g := range gs {
				t.rows = append(t.rows, []string{g.Name, fmt.Sprint(g.Nodes), number(g.MAE), number(g.Bias)})
			}
			list = append(list, t)
		}
		groups("errors by part of the range", "target", e.ByRange)
		groups("errors by degree", "in-neighbours", e.ByDegree)
		if len(e.Quantiles) > 0 {
			t := table{"targets below a quantile" + of, []string{"quantile", "share below"}, nil}
			for _, q := range e.Quantiles {
				t.rows = append(t.rows, []string{number(q.Quantile), decimals(q.Below)})
			}
			list = append(list, t)
		}
		if len(e.Worst) > 0 {
			t := table{"largest errors" + of, []string{r.row(), "target", "predicted", "error", "in-neighbours"}, nil}
			for _, w := range e.Worst {
				t.rows = append(t.rows, []string{w.ID, number(w.Target), number(w.Predicted), number(w.Error), fmt.Sprint(w.Degree)})
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
		fmt.Fprintln(&b, e.summary(r.row()))
	}
	writeTables(&b, r.tables())
	return phrase.Clean(b.String())
}

// Figures returns the report as pictures, one for each target: predicted against true with the line of equals, MAE and bias
// by part of the range, MAE by degree and, with quantiles, the share of targets below each.
func (r *Numbers) Figures() (list []*figure.Figure) {
	for _, e := range r.Targets {
		f := figure.New(r.title()).Note(e.summary(r.row()))
		f.Scatter(figure.Scatter{Title: e.Name + ", predicted", XLabel: "true", X: e.known, Y: e.predicted, Diagonal: true})
		bars := func(title, label string, gs []ErrorGroup) {
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
		bars("MAE by part of the range", fmt.Sprintf("part, from %s to %s; %ss", number(slices.Min(e.known)), number(slices.Max(e.known)), r.row()), ranges)
		f.Lines(figure.Lines{Title: "mean of predicted minus true", XLabel: "part of the range", Curves: []figure.Curve{bias}})
		bars("MAE by degree", "in-neighbours, "+r.row()+"s", e.ByDegree)
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
