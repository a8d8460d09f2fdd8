package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/phrase"
)

func (r *Report) title() string {
	if r.Model == "" {
		return fmt.Sprintf("%s: %s of the split %s", r.Dataset, r.nodes(), r.Split)
	}
	return fmt.Sprintf("%s on %s: %s of the split %s", r.Model, r.Dataset, r.nodes(), r.Split)
}

func (r *Report) summary() string {
	s := fmt.Sprintf("accuracy %.4f, macro F1 %.4f", r.Accuracy, r.MacroF1)
	if r.several {
		s += fmt.Sprintf(", micro F1 %.4f", r.MicroF1)
	}
	if r.AUC != nil {
		s += fmt.Sprintf(", ROC AUC %.4f, average precision %.4f", *r.AUC, *r.AP)
	}
	s += fmt.Sprintf(", loss %.4f, calibration error %.4f", r.Loss, r.CalibrationError)
	if r.Skipped > 0 {
		s += fmt.Sprintf("; %s without a label", phrase.Count(r.Skipped, r.rows.unit))
	}
	return s
}

// table is a table of text: a name, a head and rows.
type table struct {
	name string
	head []string
	rows [][]string
}

// mostRows is the number of rows of a table that are shown.
const mostRows = 50

// tables returns the report's tables in the order in which they are shown.
func (r *Report) tables() []table {
	classes := table{"classes", []string{"class", r.Of, "predicted", "precision", "recall", "F1"}, nil}
	if r.several {
		classes.head = append(classes.head, "AUC")
	}
	for _, c := range r.Classes {
		row := []string{c.Name, fmt.Sprint(c.Nodes), fmt.Sprint(c.Predicted), decimals(c.Precision), decimals(c.Recall), decimals(c.F1)}
		if r.several {
			row = append(row, decimals(c.AUC))
		}
		classes.rows = append(classes.rows, row)
	}
	list := []table{classes}
	if pairs := r.confused(10); len(pairs) > 0 {
		t := table{"most often confused", []string{"class", "predicted", r.Of, "of the class"}, nil}
		for _, p := range pairs {
			t.rows = append(t.rows, []string{r.Classes[p[0]].Name, r.Classes[p[1]].Name, fmt.Sprint(r.Confusion[p[0]][p[1]]), fmt.Sprintf("%.1f %%", 100*float64(r.Confusion[p[0]][p[1]])/float64(r.Classes[p[0]].Nodes))})
		}
		list = append(list, t)
	}
	groups := func(name, head string, gs []Group) {
		t := table{name, []string{head, r.Of, "accuracy"}, nil}
		for _, g := range gs {
			t.rows = append(t.rows, []string{g.Name, fmt.Sprint(g.Nodes), decimals(g.Accuracy)})
		}
		if len(t.rows) > 0 {
			list = append(list, t)
		}
	}
	groups("accuracy by degree", "in-neighbours", r.ByDegree)
	groups("accuracy by neighbourhood", "neighbours of its class", r.ByHomophily)
	groups("accuracy by nodes", "nodes of the graph", r.ByNodes)
	groups("accuracy by edges", "edges of the graph", r.ByEdges)
	if len(r.Mistakes) > 0 {
		t := table{"most confident mistakes", append([]string{r.rows.unit, "class", "predicted", "probability"}, r.rows.about()...), nil}
		kin := !r.several && r.rows.whole == nil
		if kin {
			t.head = append(t.head, "of its class")
		}
		for _, m := range r.Mistakes {
			row := append([]string{m.ID, m.Class, m.Predicted, decimals(m.Probability)}, aboutOf(m.Degree, m.Size)...)
			if kin {
				row = append(row, fmt.Sprintf("%d of %d", m.SameClass, m.Labelled))
			}
			t.rows = append(t.rows, row)
		}
		list = append(list, t)
	}
	if r.Reasons != nil {
		list = append(list, r.Reasons.tables(r.rows.unit)...)
	}
	return list
}

func decimals(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// confused returns the pairs of a class and a wrongly predicted one with the most nodes.
func (r *Report) confused(most int) (pairs [][2]int) {
	for i, row := range r.Confusion {
		for j, n := range row {
			if n > 0 && i != j {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b [2]int) int { return cmp.Compare(r.Confusion[b[0]][b[1]], r.Confusion[a[0]][a[1]]) })
	return pairs[:min(len(pairs), most)]
}

// String returns the report's tables as text.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.title(), r.summary())
	writeTables(&b, r.tables())
	return phrase.Clean(b.String())
}

// writeTables writes tables as text.
func writeTables(b *strings.Builder, tables []table) {
	for _, t := range tables {
		fmt.Fprintf(b, "\n%s\n", t.name)
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, strings.Join(t.head, "\t"))
		for i, row := range t.rows {
			if i == mostRows {
				break
			}
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush() // to memory
		if n := len(t.rows) - mostRows; n > 0 {
			fmt.Fprintf(b, "and %s\n", phrase.Count(n, "more row"))
		}
	}
}

// gridClasses is the largest number of classes whose confusion matrix is readable beside other charts.
const gridClasses = 12

// Figures returns the report as pictures: F1 by class, calibration, accuracy by degree and by neighbourhood, or by the size of
// graphs, and the confusion matrix, which is a picture of its own if there are more than 12 classes.
func (r *Report) Figures() []*figure.Figure {
	f := figure.New(r.title()).Note(r.summary())
	list := []*figure.Figure{f}
	if !r.several {
		h := r.heatMap()
		if len(r.Classes) <= gridClasses {
			f.HeatMap(h)
		} else {
			list = append(list, figure.New(r.title()).HeatMap(h))
		}
	}
	classes := figure.Bars{Title: "F1 by class", Max: 1, XLabel: "class"}
	for _, c := range r.Classes {
		classes.Names, classes.Values = append(classes.Names, c.Name), append(classes.Values, c.F1)
	}
	f.Bars(classes)
	curve := figure.Curve{Points: true}
	for _, b := range r.Calibration {
		if b.Predictions > 0 {
			curve.X, curve.Y = append(curve.X, b.Confidence), append(curve.Y, b.Accuracy)
		}
	}
	f.Lines(figure.Lines{Title: "accuracy by confidence", XLabel: "mean probability of the prediction", Curves: []figure.Curve{curve}, Diagonal: true})
	groups := func(title, label string, gs []Group) {
		b := figure.Bars{Title: title, Max: 1, XLabel: label}
		for _, g := range gs {
			b.Names, b.Values = append(b.Names, g.Name), append(b.Values, g.Accuracy)
			b.Notes = append(b.Notes, short(g.Nodes))
		}
		if len(gs) > 0 {
			f.Bars(b)
		}
	}
	groups("accuracy by degree", "in-neighbours, nodes", r.ByDegree)
	groups("accuracy by neighbourhood", "share of neighbours of its class, nodes", r.ByHomophily)
	groups("accuracy by nodes", "nodes of the graph, graphs", r.ByNodes)
	groups("accuracy by edges", "edges of the graph, graphs", r.ByEdges)
	if r.Reasons != nil {
		list = append(list, r.Reasons.figure(r.title(), r.rows.unit))
	}
	return list
}

func (r *Report) heatMap() figure.HeatMap {
	h := figure.HeatMap{Title: "confusion, % of a class", RowLabel: "class", ColLabel: "predicted", Max: 1}
	for i, row := range r.Confusion {
		h.Rows, h.Columns = append(h.Rows, r.Classes[i].Name), append(h.Columns, r.Classes[i].Name)
		values, texts := make([]float64, len(row)), make([]string, len(row))
		for j, n := range row {
			if r.Classes[i].Nodes > 0 {
				values[j] = float64(n) / float64(r.Classes[i].Nodes)
			}
			if n > 0 {
				if texts[j] = strconv.FormatFloat(100*values[j], 'f', 0, 64); texts[j] == "0" {
					texts[j] = "<1"
				}
			}
		}
		h.Values, h.Texts = append(h.Values, values), append(h.Texts, texts)
	}
	return h
}

// short formats a number of nodes for a narrow column.
func short(n int) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

// WriteCSV writes the predictions for every node (or graph) of the dataset, also for those without a label, to a CSV file. Its
// columns are node (or graph), id (if the dataset has ids, or [Options.IDs]), label (empty if unknown), predicted, and a column of probabilities for each
// class, named p:CLASS. If a node can have several classes, the columns label and predicted list their names with
// semicolons between them. The file appears completely or not at all. For Parquet and Arrow,
// tables.Write takes a report.
func (r *Report) WriteCSV(path string) error {
	err := atomicfile.WriteWith(path, 0o644, func(w io.Writer) error {
		out := csv.NewWriter(w)
		head := r.head()
		if err := out.Write(head); err != nil {
			return err
		}
		p := make([]float64, r.logits.Cols)
		row := make([]string, 0, len(head))
		for v := range r.ds.Nodes() {
			label, predicted := r.prediction(v, p)
			row = append(row[:0], strconv.Itoa(v))
			if r.ids != nil {
				row = append(row, r.ids[v])
			}
			row = append(row, label, predicted)
			for _, x := range p {
				row = append(row, strconv.FormatFloat(x, 'g', 6, 32))
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
	if err != nil {
		return fmt.Errorf("report: writing predictions: %w", err)
	}
	return nil
}

// Columns returns the predictions for every node as columns, for tables.Write: those of [Report.WriteCSV], where node is
// int64, probabilities are float32, and other columns are strings, empty for an unknown label.
func (r *Report) Columns() (names []string, batches iter.Seq[[]any]) {
	names = r.head()
	return names, func(yield func([]any) bool) {
		const most = 1 << 16
		p := make([]float64, r.logits.Cols)
		for lo := 0; lo < r.ds.Nodes(); lo += most {
			n := min(most, r.ds.Nodes()-lo)
			node, label, predicted := make([]int64, n), make([]string, n), make([]string, n)
			probabilities := make([][]float32, len(p))
			for c := range p {
				probabilities[c] = make([]float32, n)
			}
			for i := range n {
				node[i] = int64(lo + i)
				label[i], predicted[i] = r.prediction(lo+i, p)
				for c, x := range p {
					probabilities[c][i] = float32(x)
				}
			}
			batch := []any{node}
			if r.ids != nil {
				batch = append(batch, r.ids[lo:lo+n])
			}
			batch = append(batch, label, predicted)
			for _, column := range probabilities {
				batch = append(batch, column)
			}
			if !yield(batch) {
				return
			}
		}
	}
}

// head returns the names of the columns of predictions.
func (r *Report) head() []string {
	head := []string{r.rows.unit}
	if r.ids != nil {
		head = append(head, "id")
	}
	head = append(head, "label", "predicted")
	for c := range r.Classes {
		head = append(head, "p:"+r.className(c))
	}
	return head
}

// prediction writes the probabilities of a node's classes to p, and returns the names of its classes and of the
// predicted ones.
func (r *Report) prediction(v int, p []float64) (label, predicted string) {
	row := r.logits.Row(v)
	if !r.several {
		softmax(row, p)
		if y := r.ds.Labels[v]; y >= 0 {
			label = r.className(int(y))
		}
		return label, r.className(nn.Argmax(row))
	}
	var is, said []string
	for c, x := range row {
		p[c] = 1 / (1 + math.Exp(-float64(x)))
		if r.ds.MultiLabels.Row(v)[c] == 1 {
			is = append(is, r.className(c))
		}
		if x > 0 {
			said = append(said, r.className(c))
		}
	}
	return strings.Join(is, ";"), strings.Join(said, ";")
}

// nodes counts the rows of the report, nodes by their type in a typed dataset.
func (r *Report) nodes() string {
	if r.Type == "" {
		return phrase.Count(r.Nodes, r.rows.unit)
	}
	return phrase.Count(r.Nodes, "node") + " of type " + phrase.CleanLine(r.Type)
}
