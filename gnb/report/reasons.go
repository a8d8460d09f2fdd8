package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/figure"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Explainer explains answers of a run for single nodes. explain.Sample is one.
type Explainer interface {
	// Size returns the number of nodes of a split to explain, and the seed by which they are drawn.
	Size() (nodes int, seed uint64)
	// Explain calls use for each question in turn, with a nil answer for one whose node has too large a neighbourhood. It returns what a
	// reader must know to understand the answers.
	Explain(ctx context.Context, run *runs.Run, ds *gnb.Dataset, all []Question, use func(i int, a *Answer) error) (notes []string, err error)
}

// Question asks what makes an output of the network for a node larger than another one.
type Question struct {
	Node   int32
	Output int // a column of the outputs
	Than   int // another column, or -1 for none
}

// Answer is the answer to a [Question]: scores that add up to about the difference.
type Answer struct {
	// Columns are the scores of columns over the whole neighbourhood, in the same order in all answers as far as types of nodes occur.
	Columns []ColumnScore
	Nodes   []NodeScore // of the neighbourhood; the node itself is the first
}

// ColumnScore is the score of a column of the tables that the dataset was made of, or of a feature.
type ColumnScore struct {
	Name, Type string
	Score      float64
}

// NodeScore is the score of all features of a node.
type NodeScore struct {
	Node  int32
	Score float64
}

// Reasons say on what answers rest, by a sample of the split: see [Options].Explain. Scores are in logits: those of the predicted class, less
// those of the true class for a wrong answer, and less those of the second class for a right one; of several labels, those of the most
// probable label.
type Reasons struct {
	Nodes   int    `json:"nodes"` // explained ones
	LeftOut int    `json:"left_out,omitempty"`
	Seed    uint64 `json:"seed"`
	// Classes are the predicted classes that occur.
	Classes []ClassReasons `json:"classes"`
	// Errors compare wrong with right answers; nil without wrong ones, and if a node can have several classes.
	Errors *ErrorReasons `json:"errors,omitempty"`
	Notes  []string      `json:"notes,omitempty"`
}

// ClassReasons say on what the answers rest that are of one class.
type ClassReasons struct {
	Class   string          `json:"class"`
	Nodes   int             `json:"nodes"`
	Columns []ColumnReasons `json:"columns"` // the largest Size first
}

// ColumnReasons are the scores of a column over some nodes.
type ColumnReasons struct {
	Name string  `json:"name"`
	Type string  `json:"type,omitempty"`
	Mean float64 `json:"mean"` // the mean score: above 0 it speaks for the answers
	Size float64 `json:"size"` // the mean absolute score
}

func (c ColumnReasons) name() string {
	if c.Type == "" {
		return c.Name
	}
	return c.Type + ":" + c.Name
}

// ErrorReasons compare wrong answers with right ones.
type ErrorReasons struct {
	Wrong int `json:"wrong"`
	Right int `json:"right"`
	// WrongDisagree and RightDisagree are the shares of wrong and of right answers most of whose labelled in-neighbours have another
	// class than the node, among those with labelled in-neighbours.
	WrongDisagree float64 `json:"wrong_disagree"`
	RightDisagree float64 `json:"right_disagree"`
	// Columns are the scores of columns in wrong answers, and From where in the neighbourhood the pull to the wrong class comes from.
	Columns []ErrorColumn `json:"columns"`
	From    []Pull        `json:"from"`
}

// ErrorColumn compares the mean scores of a column in wrong and in right answers.
type ErrorColumn struct {
	Name  string  `json:"name"`
	Type  string  `json:"type,omitempty"`
	Wrong float64 `json:"wrong"`
	Right float64 `json:"right"`
}

// Pull is the mean score of a kind of nodes, in wrong and in right answers.
type Pull struct {
	From  string  `json:"from"`
	Wrong float64 `json:"wrong"`
	Right float64 `json:"right"`
}

// pulls are the kinds of nodes.
var pulls = [...]string{"the node itself", "neighbours of the predicted class", "neighbours of the other class", "neighbours of further classes", "neighbours without a label"}

// explain answers for a sample of the nodes of the report.
func (r *Report) explain(ctx context.Context, run *runs.Run, nodes []int32, o Options) error {
	want, seed := o.Explain.Size()
	if want < 1 {
		return fmt.Errorf("report: Options.Explain is of %d nodes; give a number above 0", want)
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(v int32) bool { return !r.labelled(v) })
	rng := rand.New(rand.NewPCG(seed, 0x726561736f6e))
	rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	nodes = nodes[:min(len(nodes), want)]
	all := make([]Question, len(nodes))
	for i, v := range nodes {
		all[i] = r.question(v)
	}
	bar := screen.Progress("explaining "+phrase.Count(len(all), r.rows.unit)+" of "+r.Dataset, int64(len(all)), screen.BarOptions{Options: screen.Options{Quiet: o.Quiet}, Unit: "nodes"})
	c := &reasoner{r: r, of: &Reasons{Seed: seed}, classes: map[int]*tallied{}}
	notes, err := o.Explain.Explain(ctx, run, r.ds, all, func(i int, a *Answer) error {
		bar.Add(1)
		c.add(all[i], a)
		return nil
	})
	bar.Done()
	if err != nil {
		return err
	}
	if c.of.Nodes == 0 {
		return fmt.Errorf("report: none of the %d nodes could be explained, because their neighbourhoods are too large; bound them (explain.Sample.Fanouts)", len(all))
	}
	c.of.Notes = notes
	r.Reasons = c.reasons()
	return nil
}

// question asks for the predicted class of a node against its true class, or against the second one.
func (r *Report) question(v int32) Question {
	row := r.logits.Row(int(v))
	q := Question{Node: v, Output: nn.Argmax(row), Than: -1}
	if r.several || len(row) < 2 {
		return q
	}
	if y := int(r.ds.Labels[v]); y != q.Output {
		q.Than = y
		return q
	}
	for k, x := range row {
		if k != q.Output && (q.Than < 0 || x > row[q.Than]) {
			q.Than = k
		}
	}
	return q
}

// reasoner adds up answers.
type reasoner struct {
	r            *Report
	of           *Reasons
	columns      []ColumnScore // all that occur, by their first occurrence
	at           map[[2]string]int
	classes      map[int]*tallied
	wrong, right tallied
	pulls        [2][len(pulls)]float64 // of right and wrong answers
	disagree     [2]int
	labelled     [2]int
}

// tallied are sums over some answers.
type tallied struct {
	nodes     int
	sum, size []float64 // by column
}

func (t *tallied) add(columns []int, scores []ColumnScore) {
	t.nodes++
	for i, k := range columns {
		for len(t.sum) <= k {
			t.sum, t.size = append(t.sum, 0), append(t.size, 0)
		}
		t.sum[k] += scores[i].Score
		t.size[k] += math.Abs(scores[i].Score)
	}
}

// mean returns the means of column k.
func (t *tallied) mean(k int) (mean, size float64) {
	if k >= len(t.sum) || t.nodes == 0 {
		return 0, 0
	}
	return t.sum[k] / float64(t.nodes), t.size[k] / float64(t.nodes)
}

func (c *reasoner) add(q Question, a *Answer) {
	if a == nil {
		c.of.LeftOut++
		return
	}
	c.of.Nodes++
	if c.at == nil {
		c.at = map[[2]string]int{}
	}
	columns := make([]int, len(a.Columns))
	for i, s := range a.Columns {
		key := [2]string{s.Type, s.Name}
		k, ok := c.at[key]
		if !ok {
			k = len(c.columns)
			c.at[key], c.columns = k, append(c.columns, s)
		}
		columns[i] = k
	}
	if c.classes[q.Output] == nil {
		c.classes[q.Output] = &tallied{}
	}
	c.classes[q.Output].add(columns, a.Columns)
	if c.r.several {
		return
	}
	y := c.r.ds.Labels[q.Node]
	is := 0
	if int(y) != q.Output {
		is = 1
		c.wrong.add(columns, a.Columns)
	} else {
		c.right.add(columns, a.Columns)
	}
	for i, n := range a.Nodes {
		k := 0
		if i > 0 {
			switch z := int(c.label(n.Node)); z {
			case -1:
				k = 4
			case q.Output:
				k = 1
			case q.Than:
				k = 2
			default:
				k = 3
			}
		}
		c.pulls[is][k] += n.Score
	}
	same, labelled := 0, 0
	for _, u := range c.r.rows.neighbors(q.Node) {
		if z := c.label(u); z >= 0 && u != q.Node {
			if labelled++; z == y {
				same++
			}
		}
	}
	if labelled > 0 {
		if c.labelled[is]++; 2*same < labelled {
			c.disagree[is]++
		}
	}
}

// label is the class of a node of the reported type, -1 if it is unknown.
func (c *reasoner) label(v int32) int32 {
	y := c.r.ds.Labels[v]
	if s := c.r.ds.Schema(); s != nil && c.r.Type != "" && y >= 0 {
		if lo, hi := s.Range(s.NodeType(c.r.Type)); int(v) < lo || int(v) >= hi {
			return -1 // classes of another type are others
		}
	}
	return max(y, -1)
}

// reasons makes means of the sums.
func (c *reasoner) reasons() *Reasons {
	for k := range c.r.Classes {
		t := c.classes[k]
		if t == nil {
			continue
		}
		of := ClassReasons{Class: c.r.Classes[k].Name, Nodes: t.nodes}
		for i, col := range c.columns {
			mean, size := t.mean(i)
			of.Columns = append(of.Columns, ColumnReasons{col.Name, col.Type, mean, size})
		}
		slices.SortStableFunc(of.Columns, func(a, b ColumnReasons) int { return cmp.Compare(b.Size, a.Size) })
		c.of.Classes = append(c.of.Classes, of)
	}
	if c.wrong.nodes == 0 {
		return c.of
	}
	e := &ErrorReasons{Wrong: c.wrong.nodes, Right: c.right.nodes}
	for is, to := range []*float64{&e.RightDisagree, &e.WrongDisagree} {
		if c.labelled[is] > 0 {
			*to = float64(c.disagree[is]) / float64(c.labelled[is])
		}
	}
	for i, col := range c.columns {
		wrong, _ := c.wrong.mean(i)
		right, _ := c.right.mean(i)
		e.Columns = append(e.Columns, ErrorColumn{col.Name, col.Type, wrong, right})
	}
	slices.SortStableFunc(e.Columns, func(a, b ErrorColumn) int { return cmp.Compare(math.Abs(b.Wrong), math.Abs(a.Wrong)) })
	for k, name := range pulls {
		p := Pull{From: name, Wrong: c.pulls[1][k] / float64(e.Wrong)}
		if e.Right > 0 {
			p.Right = c.pulls[0][k] / float64(e.Right)
		}
		if c.pulls[0][k] != 0 || c.pulls[1][k] != 0 {
			e.From = append(e.From, p)
		}
	}
	c.of.Errors = e
	return c.of
}

// columnsOfClass is the number of columns of a class that tables and figures show, and columnsOfErrors that of wrong answers.
const columnsOfClass, columnsOfErrors = 5, 12

func (x *Reasons) summary(unit string) string {
	s := "by " + phrase.Count(x.Nodes, unit) + fmt.Sprintf(" of the split, drawn by seed %d", x.Seed)
	if x.LeftOut > 0 {
		s += fmt.Sprintf("; %d more have too many edges around them", x.LeftOut)
	}
	for _, n := range x.Notes {
		s += "; " + n
	}
	return s
}

func signed(x float64) string { return fmt.Sprintf("%+.4f", x) }

// tables returns the reasons as tables.
func (x *Reasons) tables(unit string) []table {
	t := table{"columns that matter, " + x.summary(unit), []string{"predicted", unit + "s", "column", "mean score", "mean size"}, nil}
	for _, c := range x.Classes {
		for i, col := range c.Columns[:min(columnsOfClass, len(c.Columns))] {
			row := []string{"", "", col.name(), signed(col.Mean), decimals(col.Size)}
			if i == 0 {
				row[0], row[1] = c.Class, fmt.Sprint(c.Nodes)
			}
			t.rows = append(t.rows, row)
		}
	}
	list := []table{t}
	e := x.Errors
	if e == nil {
		return list
	}
	t = table{"where errors come from", []string{"", "wrong answers", "right answers"}, [][]string{
		{unit + "s", fmt.Sprint(e.Wrong), fmt.Sprint(e.Right)},
		{"most labelled neighbours are of another class", fmt.Sprintf("%.0f %%", 100*e.WrongDisagree), fmt.Sprintf("%.0f %%", 100*e.RightDisagree)},
	}}
	for _, p := range e.From {
		t.rows = append(t.rows, []string{"pull to the predicted class by " + p.From, signed(p.Wrong), signed(p.Right)})
	}
	for _, c := range e.Columns[:min(columnsOfErrors, len(e.Columns))] {
		t.rows = append(t.rows, []string{"by the column " + ColumnReasons{Name: c.Name, Type: c.Type}.name(), signed(c.Wrong), signed(c.Right)})
	}
	return append(list, t)
}

// figure draws the reasons: the mean size of the scores of columns by class, and what pulls wrong answers to the wrong class.
func (x *Reasons) figure(title, unit string) *figure.Figure {
	f := figure.New(title + ": what answers rest on").Note(x.summary(unit))
	f.HeatMap(x.heatMap())
	if e := x.Errors; e != nil {
		from := figure.Bars{Title: "pull to the wrong class, by neighbours", Across: true}
		for _, p := range e.From {
			from.Names, from.Values = append(from.Names, strings.TrimPrefix(p.From, "neighbours ")), append(from.Values, p.Wrong)
		}
		f.Bars(from)
		columns := figure.Bars{Title: "the same, by column", Across: true}
		for _, c := range e.Columns[:min(columnsOfErrors, len(e.Columns))] {
			columns.Names, columns.Values = append(columns.Names, ColumnReasons{Name: c.Name, Type: c.Type}.name()), append(columns.Values, c.Wrong)
		}
		f.Bars(columns)
	}
	return f
}

// heatColumns and heatClasses bound the matrix of columns and classes.
const heatColumns, heatClasses = 14, 20

// heatMap has the columns with the largest scores of any class. Cells are mean sizes, and their texts mean scores.
func (x *Reasons) heatMap() figure.HeatMap {
	h := figure.HeatMap{Title: "mean size of scores; numbers are means", RowLabel: "column", ColLabel: "predicted"}
	classes := x.Classes
	if len(classes) > heatClasses { // those of most nodes
		classes = slices.Clone(classes)
		slices.SortStableFunc(classes, func(a, b ClassReasons) int { return cmp.Compare(b.Nodes, a.Nodes) })
		classes = classes[:heatClasses]
	}
	largest := map[string]float64{}
	var names []string
	for _, c := range classes {
		for _, col := range c.Columns {
			if _, ok := largest[col.name()]; !ok {
				names = append(names, col.name())
			}
			largest[col.name()] = max(largest[col.name()], col.Size)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(largest[b], largest[a]) })
	names = names[:min(len(names), heatColumns)]
	for _, c := range classes {
		h.Columns = append(h.Columns, c.Class)
	}
	for _, name := range names {
		h.Rows = append(h.Rows, name)
		values, texts := make([]float64, len(classes)), make([]string, len(classes))
		for k, c := range classes {
			for _, col := range c.Columns {
				if col.name() == name {
					values[k], texts[k] = col.Size, fmt.Sprintf("%+.2g", col.Mean)
				}
			}
		}
		h.Values, h.Texts = append(h.Values, values), append(h.Texts, texts)
	}
	return h
}

// noReasons is the error for Options.Explain where it has no meaning.
func noReasons(o Options, of string) error {
	if o.Explain == nil {
		return nil
	}
	return errors.New("report: Options.Explain explains classes and labels of nodes, and " + of + "; leave it out, and explain single answers (package explain)")
}
