package convert

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/columns"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
	"github.com/graphnb/graphnb/internal/tabular"
)

// labels collects the labels of nodes in any order: for each node a class or a list of 0 and 1.
type labels struct {
	nodes int
	y     []int32 // class of each node, if there is one per node
	// For several classes per node: the rows in the order read, and the row of each node.
	cols  int
	multi []int8
	row   []int32 // row of each node; -1: none
	count int
}

func newLabels(nodes int) *labels {
	l := &labels{nodes: nodes, y: make([]int32, nodes), row: make([]int32, nodes), cols: -1}
	for v := range nodes {
		l.y[v], l.row[v] = -1, -1
	}
	return l
}

// read reads the label of node v at j: a number or a list.
func (l *labels) read(j *tabular.JSON, v int64) error {
	c, err := j.Peek()
	if err != nil {
		return err
	}
	if v < 0 || v >= int64(l.nodes) {
		return j.Wrong("the node %d is out of range: the graph has the nodes 0 to %d", v, l.nodes-1)
	}
	if l.row[v] >= 0 {
		return j.Wrong("the node %d has two labels", v)
	}
	l.row[v] = int32(l.count)
	l.count++
	if c != '[' {
		if l.cols > 0 {
			return j.Wrong("the node %d has one class, but others have a list", v)
		}
		l.cols = 0
		x, err := j.Number()
		if err != nil {
			return err
		}
		if l.y[v], err = tabular.Class(x); err != nil {
			return j.Wrong("node %d: %w", v, err)
		}
		return nil
	}
	n := 0
	err = j.Array(func() error {
		x, err := j.Number()
		if err != nil {
			return err
		}
		t, err := tabular.Target(x)
		if err != nil {
			return j.Wrong("node %d: %w", v, err)
		}
		l.multi = append(l.multi, t)
		n++
		return nil
	})
	switch {
	case err != nil:
		return err
	case n == 0 || n > tabular.MaxClasses:
		return j.Wrong("the node %d has a list of %d classes", v, n)
	case l.cols < 0:
		l.cols = n
	case l.cols != n:
		return j.Wrong("the node %d has a list of %d classes, but others have %d", v, n, l.cols)
	}
	return nil
}

// store moves the labels into d.
func (l *labels) store(d *dataset.Dataset, path string) error {
	switch {
	case l.count == 0:
		return tabular.Errorf("reading %s: it has no labels", path)
	case l.cols == 0:
		d.Labels = l.y
		d.Meta.NumClasses = tabular.Classes(l.y)
		if d.Meta.NumClasses == 0 {
			return tabular.Errorf("reading %s: every label is unknown", path)
		}
		return nil
	case 2*l.count < l.nodes:
		// A row for every node is allocated below.
		return tabular.Errorf("reading %s: only %d of %d nodes have a label", path, l.count, l.nodes)
	}
	ym := &dataset.Multi{Rows: l.nodes, Cols: l.cols, Data: make([]int8, l.nodes*l.cols)}
	for v, row := range l.row {
		if row < 0 {
			for i := range ym.Row(v) {
				ym.Row(v)[i] = -1
			}
			continue
		}
		copy(ym.Row(v), l.multi[int(row)*l.cols:])
	}
	// GraphSAGE and GraphSAINT report the micro-averaged F1 of datasets with several labels per
	// node.
	d.MultiLabels, d.Meta.NumClasses, d.Meta.Metric = ym, ym.Cols, dataset.MetricMicroF1
	return nil
}

// setColumn gives d the labels of a column, or of a table of 0 and 1; numbers with fractions are targets.
func setColumn(d *dataset.Dataset, t *tabular.Table, wrong func(format string, args ...any) error, o Options) error {
	if t.Rows != d.Nodes() {
		return wrong("it has labels for %d nodes, but the graph has %d", t.Rows, d.Nodes())
	}
	if n := slices.IndexFunc(t.Values, func(x float32) bool { return x != float32(math.Trunc(float64(x))) && x == x }); n >= 0 {
		d.Targets = &dataset.Matrix{Rows: t.Rows, Cols: t.Cols, F32: t.Values}
		o.said.Add(notice.Notice{Kind: notice.Guessed, Where: "labels", What: fmt.Sprintf("they have numbers with fractions, first %v, so they are targets, which are numbers to predict, and no classes", t.Values[n]), Count: int64(t.Rows)})
		return nil
	}
	if t.Cols == 1 {
		var err error
		if d.Labels, err = tabular.ClassesOf(t.Values, "labels", o.columnGuide()); err != nil {
			return wrong("%w", err)
		}
		d.Meta.NumClasses = tabular.Classes(d.Labels)
		return nil
	}
	ym := &dataset.Multi{Rows: t.Rows, Cols: t.Cols, Data: make([]int8, len(t.Values))}
	for i, x := range t.Values {
		c, err := tabular.Target(float64(x))
		if err != nil {
			return wrong("row %d, column %d: %w", i/t.Cols, i%t.Cols, err)
		}
		ym.Data[i] = c
	}
	// OGB reports the ROC AUC of ogbn-proteins, its dataset with several labels per node.
	d.MultiLabels, d.Meta.NumClasses, d.Meta.Metric = ym, ym.Cols, dataset.MetricROCAUC
	return nil
}

// checkClasses returns an error if there are more classes than the labels can teach, and says which classes no node has
// where labels are the numbers of classes.
func checkClasses(d *dataset.Dataset, o Options) error {
	if d.Labels == nil {
		return nil
	}
	types, starts := []dataset.NodeType{{NumClasses: d.Classes(), ClassNames: d.Meta.ClassNames}}, []int{0, d.Nodes()}
	if s := d.Schema(); s != nil {
		types, starts = d.Meta.NodeTypes, s.Starts()
	}
	for t, n := range types {
		if n.NumClasses == 0 || len(starts) <= t+1 {
			continue
		}
		seen, known := make([]bool, n.NumClasses), int64(0)
		for _, c := range d.Labels[starts[t]:starts[t+1]] { // Count is not known yet
			if c >= 0 && int(c) < len(seen) {
				seen[c] = true
				known++
			}
		}
		if !o.ManyClasses {
			if err := columns.CheckClasses(int64(n.NumClasses), known); err != nil {
				return fmt.Errorf("the labels: %w", err)
			}
		}
		empty := int64(0)
		for _, is := range seen {
			if !is {
				empty++
			}
		}
		if empty > 0 && len(n.ClassNames) == 0 {
			where := "labels"
			if n.Name != "" {
				where = "labels of type " + n.Name
			}
			o.said.Add(notice.Notice{Kind: notice.Guessed, Where: where, What: "they are taken for the numbers of classes from 0, of which some never occur", Count: empty, Of: int64(n.NumClasses)})
		}
	}
	return nil
}
