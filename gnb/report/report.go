// Package report says how good a trained model of nodes or of whole graphs is, where it errs and how sure it is. Of classes:
// confusion matrix, precision, recall and F1 by class, calibration, accuracy by degree and by neighbourhood, or by the size of
// graphs, and the most confident mistakes. Of numbers: predicted against true, errors by degree or size and by part of the
// range, and the worst errors.
//
// # Basics
//
//	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{}))
//	r := gnb.Must(report.Of(ctx, run, ds, report.Options{}))
//	fmt.Println(r)                             // the tables as text
//	err := r.WriteCSV("predictions.csv")       // the probabilities of every node; tables.Write writes Parquet
//
// In a cell, [Of] also shows a picture and the tables. [New] makes a report of predictions from elsewhere. [OfNumbers] and
// [NewNumbers] report on numbers, [OfGraphs] and [NewGraphs] on whole graphs.
//
// Hidden layers are seen with [Project]:
//
//	res := gnb.Must(gnb.Infer(ctx, run, ds, "hidden.npy", gnb.InferOptions{Layer: 1}))
//	p := gnb.Must(report.Project(gnb.Must(res.Logits()), ds, report.ProjectOptions{}))
//
// # Caveats
//
// A report of a node's neighbourhood needs the graph in one place: a dataset divided into parts is refused.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Options configure [Of], [New] and their siblings for numbers and graphs. The zero value is a good default.
type Options struct {
	Split    string   // the nodes, or graphs, to report on; "" means "test", or all labelled ones if there is no such split
	Type     string   // of a typed dataset, the type of the nodes to report on; needed if several types have labels
	Mistakes int      // the number of mistakes to list; 0 means 10, -1 means none
	IDs      []string // the names of nodes, or graphs, in the report and in files; nil means those of the dataset's tables, or numbers
	Quiet    bool     // show nothing in a cell
	// Explain also says on what answers rest, by a sample of the split: explain.Sample{Nodes: 500}. Of only: it needs the run, which
	// predicts classes or labels of nodes. Nil explains nothing.
	Explain Explainer
}

// Report is the result of [Of] and [New], over the labelled nodes of a split. If a node can have several classes
// ([dataset.Dataset.MultiLabels]), each pair of a node and a class with a known label counts as one prediction of yes
// (a logit above 0) or no; then there is no confusion matrix.
//
// In a report of whole graphs ([OfGraphs]) Of is "graphs": then graphs take the place of nodes in all fields, and the sizes of
// graphs that of degrees and neighbourhoods.
type Report struct {
	Dataset string `json:"dataset"`
	Of      string `json:"of"` // "nodes" or "graphs"
	Model   string `json:"model,omitempty"`
	Split   string `json:"split"`
	Type    string `json:"type,omitempty"`    // of the nodes, in a typed dataset
	Nodes   int    `json:"nodes"`             // labelled nodes of the split
	Skipped int    `json:"skipped,omitempty"` // nodes of the split without a label

	Accuracy float64 `json:"accuracy"`
	// MacroF1 is the mean of F1 over the classes that occur among labels or predictions, as
	// sklearn.metrics.f1_score(average="macro").
	MacroF1 float64 `json:"macro_f1"`
	// MicroF1 is the F1 of all predictions together: the accuracy, unless a node can have several classes.
	MicroF1 float64 `json:"micro_f1"`
	// AUC is the area under the ROC curve and AP the average precision, of two classes by the difference of their logits;
	// if a node can have several classes, the mean over those that have both kinds of nodes. Nil if they do not exist.
	AUC *float64 `json:"auc,omitempty"`
	AP  *float64 `json:"ap,omitempty"`
	// Loss is the mean cross-entropy in nats, of each class separately if a node can have several.
	Loss float64 `json:"loss"`
	// CalibrationError is the expected calibration error over [Report.Calibration]: the mean distance of confidence and
	// accuracy of a bin, weighted by its predictions.
	//
	// Source: C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017, equation 3.
	CalibrationError float64 `json:"calibration_error"`

	Classes []Class `json:"classes"`
	// Confusion [classes][classes] counts the nodes by their class and, within it, by the predicted one; nil if a node can
	// have several classes.
	Confusion   [][]int   `json:"confusion,omitempty"`
	Calibration []Bin     `json:"calibration"`
	ByDegree    []Group   `json:"by_degree,omitempty"`    // by the number of in-neighbours
	ByHomophily []Group   `json:"by_homophily,omitempty"` // by the share of labelled in-neighbours that have the node's class
	ByNodes     []Group   `json:"by_nodes,omitempty"`     // graphs by their number of nodes, in parts of about equally many
	ByEdges     []Group   `json:"by_edges,omitempty"`     // graphs by their number of directed edges, in such parts
	Mistakes    []Mistake `json:"mistakes"`               // the most confident ones first
	Reasons     *Reasons  `json:"reasons,omitempty"`      // what answers rest on; nil without [Options].Explain

	several bool
	names   []string // of the classes
	rows    rows
	ds      *dataset.Dataset // that of the rows
	logits  *dataset.Matrix
	ids     []string
	nodesOf []int32 // those of the split
}

// Class holds a class's measures.
type Class struct {
	Name      string `json:"name"`
	Nodes     int    `json:"nodes"`     // with this label
	Predicted int    `json:"predicted"` // with this prediction
	// Precision is the share of correct ones among Predicted, Recall among Nodes, and F1 their harmonic mean; 0 if there
	// are none, as in scikit-learn.
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	// AUC is the area under the ROC curve of the class's logits, if a node can have several classes; NaN, and absent from
	// JSON, if it cannot or a label does not occur.
	AUC float64 `json:"-"`
}

// Bin holds the predictions whose confidence is in (Low, High]. The confidence is the probability of the prediction.
type Bin struct {
	Low, High   float64
	Predictions int
	Confidence  float64 // mean; 0 without predictions
	Accuracy    float64
}

// Group holds the nodes of the split with a property in common.
type Group struct {
	Name     string  `json:"name"`
	Nodes    int     `json:"nodes"`
	Accuracy float64 `json:"accuracy"`
}

// Mistake is a wrong prediction.
type Mistake struct {
	Node        int     `json:"node"`
	ID          string  `json:"id"`
	Class       string  `json:"class"`          // what it is; "not C" for a wrong yes if a node can have several classes
	Predicted   string  `json:"predicted"`      // what the model says
	Probability float64 `json:"probability"`    // of the prediction
	Degree      int     `json:"degree"`         // in-neighbours; 0 of a graph
	Size        *Size   `json:"size,omitempty"` // of a graph; nil of a node
	// SameClass is the number of its labelled in-neighbours of its class, of Labelled ones.
	SameClass int `json:"same_class"`
	Labelled  int `json:"labelled"`
}

// bins is the number of bins of a calibration, that of Guo et al.
const bins = 15

// New reports on predictions for a dataset: logits [nodes, classes], as [gnb.Infer] writes them. The report keeps both.
func New(ds *dataset.Dataset, logits *dataset.Matrix, o Options) (*Report, error) {
	if ds == nil || logits == nil {
		return nil, errors.New("report: a report needs a dataset and the output of a model for its nodes (gnb.Infer)")
	}
	if ds.Graph == nil {
		return nil, fmt.Errorf("report: %s; a report needs the edges of all nodes", ds.WhyNoGraph())
	}
	if o.Explain != nil {
		return nil, errors.New("report: Options.Explain needs the run that made the predictions; take report.Of")
	}
	return newReport(nodesOf(ds), logits, o)
}

// newReport reports on predictions for rows.
func newReport(of rows, logits *dataset.Matrix, o Options) (*Report, error) {
	ds := of.ds
	nodes, split, err := check(of, logits, &o)
	if err != nil {
		return nil, err
	}
	if o.IDs, err = of.names(o.IDs); err != nil {
		return nil, err
	}
	r := &Report{Dataset: ds.Name(), Of: of.unit + "s", Split: split, several: ds.MultiLabels != nil, rows: of, ds: ds, logits: logits.Float32(), ids: o.IDs}
	if nodes, err = r.ofType(nodes, o.Type); err != nil {
		return nil, err
	}
	c := &counter{r: r, p: make([]float64, logits.Cols), most: o.Mistakes}
	c.start()
	for _, v := range nodes {
		if !r.labelled(v) {
			r.Skipped++
			continue
		}
		r.Nodes++
		if err := c.node(v); err != nil {
			return nil, err
		}
	}
	if r.Nodes == 0 {
		return nil, fmt.Errorf("report: no %s of the split %q of %s has a label", of.unit, split, ds.Name())
	}
	c.finish(nodes)
	r.nodesOf = nodes
	return r, nil
}

// check returns the rows to report on, and the name of their split.
func check(of rows, logits *dataset.Matrix, o *Options) (nodes []int32, split string, err error) {
	ds := of.ds
	switch {
	case ds.Labels == nil && ds.MultiLabels == nil:
		return nil, "", fmt.Errorf("report: %s no labels to compare predictions with", of.have())
	case logits.Cols != ds.Classes():
		return nil, "", fmt.Errorf("report: predictions have %s and %s has %d classes; give the output of the model's last layer", phrase.Count(logits.Cols, "column"), ds.Name(), ds.Classes())
	}
	if err := of.check(logits, o); err != nil {
		return nil, "", err
	}
	return of.split(o.Split)
}

// ErrTypes is matched by the error for labels of several node types in one report: class 0 of one type is not class 0 of another.
var ErrTypes = errors.New("classes of several types of nodes are different ones")

// ofType returns the nodes of a type, by default of the only one that has labels, and sets the names of its classes.
func (r *Report) ofType(nodes []int32, name string) ([]int32, error) {
	r.names = r.ds.Meta.ClassNames
	s := r.ds.Schema()
	if s == nil {
		if name != "" {
			return nil, fmt.Errorf("report: Options.Type is %q, but %s has no types of nodes", name, r.ds.Name())
		}
		return nodes, nil
	}
	of := make([][]int32, len(s.Nodes))
	var with []string // types with labels
	for t, kind := range s.Nodes {
		lo, hi := s.Range(t)
		some := 0
		for _, v := range nodes {
			if int(v) >= lo && int(v) < hi {
				if of[t] = append(of[t], v); r.labelled(v) {
					some++
				}
			}
		}
		if some > 0 {
			with = append(with, kind.Name)
		}
	}
	if name == "" && len(with) > 1 {
		return nil, fmt.Errorf("report: the split %q of %s has labels of the types %s: %w; set Options.Type to one of them", r.Split, r.ds.Name(), phrase.List(with), ErrTypes)
	}
	if name == "" && len(with) == 1 {
		name = with[0]
	}
	if name == "" {
		return nodes, nil
	}
	t := slices.IndexFunc(s.Nodes, func(n graphops.NodeType) bool { return n.Name == name })
	if t < 0 {
		return nil, fmt.Errorf("report: Options.Type is %q; the types with labels in the split %q are %s", name, r.Split, phrase.List(with))
	}
	if t < len(r.ds.Meta.NodeTypes) && len(r.ds.Meta.NodeTypes[t].ClassNames) > 0 {
		r.names = r.ds.Meta.NodeTypes[t].ClassNames
	}
	r.Type = name
	return of[t], nil
}

// labelled reports whether a node has a label.
func (r *Report) labelled(v int32) bool {
	if !r.several {
		return r.ds.Labels[v] >= 0
	}
	return slices.ContainsFunc(r.ds.MultiLabels.Row(int(v)), func(y int8) bool { return y >= 0 })
}

func (r *Report) className(c int) string {
	if c < len(r.names) {
		return phrase.CleanLine(r.names[c])
	}
	return fmt.Sprint(c)
}

func (r *Report) id(v int) string {
	if r.ids != nil {
		return phrase.CleanLine(r.ids[v])
	}
	return fmt.Sprint(v)
}

// counter adds up predictions.
type counter struct {
	r    *Report
	row  []float32 // a node's logits
	p    []float64 // and probabilities
	most int       // mistakes to keep

	correct, predictions int
	right                []int // by class: correct predictions of it
	loss                 float64
	sums                 [bins]struct{ confidence, correct float64 }
	byDegree, byKin      groups
	bySize               []sized // of graphs
	mistakes             []wrong
}

// wrong is a mistake before it is described: what it is and what the model says are classes, or yes and no.
type wrong struct {
	node         int32
	class, said  int
	yes          bool // of several classes: the model says yes
	p            float64
	degree       int
	same, labels int
}

type groups struct{ nodes, correct []float64 }

func (g *groups) add(i int, nodes, correct float64) {
	for len(g.nodes) <= i {
		g.nodes, g.correct = append(g.nodes, 0), append(g.correct, 0)
	}
	g.nodes[i] += nodes
	g.correct[i] += correct
}

func (c *counter) start() {
	n := c.r.logits.Cols
	c.r.Classes, c.right = make([]Class, n), make([]int, n)
	for i := range c.r.Classes {
		c.r.Classes[i] = Class{Name: c.r.className(i), AUC: math.NaN()}
	}
	if !c.r.several {
		c.r.Confusion = make([][]int, n)
		for i := range c.r.Confusion {
			c.r.Confusion[i] = make([]int, n)
		}
	}
	for i := range bins {
		c.r.Calibration = append(c.r.Calibration, Bin{Low: float64(i) / bins, High: float64(i+1) / bins})
	}
}

// node counts the predictions for a node.
func (c *counter) node(v int32) error {
	r := c.r
	c.row = r.logits.Row(int(v))
	for i, x := range c.row {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("report: the output for %s %d is not finite in column %d", r.rows.unit, v, i)
		}
	}
	degree := r.rows.degree(v)
	var share float64
	if r.several {
		share = c.severalClasses(v, degree)
	} else {
		share = c.oneClass(v, degree)
	}
	if r.rows.whole != nil {
		c.bySize = append(c.bySize, sized{r.rows.size(v), share})
	} else {
		c.byDegree.add(degreeGroup(degree), 1, share)
	}
	return nil
}

// oneClass counts the prediction of a node's only class, and returns 1 if it is correct.
func (c *counter) oneClass(v int32, degree int) float64 {
	r := c.r
	label, said := int(r.ds.Labels[v]), nn.Argmax(c.row)
	logSum := softmax(c.row, c.p)
	c.loss += logSum - float64(c.row[label])
	r.Confusion[label][said]++
	r.Classes[label].Nodes++
	r.Classes[said].Predicted++
	same, labelled := 0, 0
	for _, u := range r.rows.neighbors(v) {
		if y := r.ds.Labels[u]; y >= 0 && u != v {
			labelled++
			if int(y) == label {
				same++
			}
		}
	}
	hit := 0.0
	if label == said {
		hit = 1
		c.right[label]++
		c.correct++
	} else {
		c.keep(wrong{node: v, class: label, said: said, p: c.p[said], degree: degree, same: same, labels: labelled})
	}
	c.predictions++
	c.bin(c.p[said], hit)
	if labelled > 0 {
		c.byKin.add(kinGroup(same, labelled), 1, hit)
	}
	return hit
}

// severalClasses counts the predictions of each class of a node, and returns the share of correct ones.
func (c *counter) severalClasses(v int32, degree int) float64 {
	r := c.r
	right, known := 0.0, 0.0
	for k, y := range r.ds.MultiLabels.Row(int(v)) {
		if y < 0 {
			continue
		}
		x := float64(c.row[k])
		yes, truth := x > 0, y == 1
		c.loss += max(x, 0) - x*float64(y) + math.Log1p(math.Exp(-math.Abs(x)))
		p := 1 / (1 + math.Exp(-math.Abs(x))) // of what the model says
		if truth {
			r.Classes[k].Nodes++
		}
		if yes {
			r.Classes[k].Predicted++
		}
		hit := 0.0
		if yes == truth {
			hit = 1
			c.correct++
			if truth {
				c.right[k]++
			}
		} else {
			c.keep(wrong{node: v, class: k, yes: yes, p: p, degree: degree})
		}
		right, known = right+hit, known+1
		c.predictions++
		c.bin(p, hit)
	}
	return right / known
}

func (c *counter) bin(p, hit float64) {
	i := min(max(int(math.Ceil(p*bins))-1, 0), bins-1)
	c.r.Calibration[i].Predictions++
	c.sums[i].confidence += p
	c.sums[i].correct += hit
}

// keep keeps a mistake if it is among the most confident ones; of equally confident ones, that of the lower node.
func (c *counter) keep(w wrong) {
	if c.most < 1 {
		return
	}
	c.mistakes = append(c.mistakes, w)
	if len(c.mistakes) >= 2*c.most+64 {
		c.trim()
	}
}

func (c *counter) trim() {
	slices.SortStableFunc(c.mistakes, func(a, b wrong) int {
		return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.node, b.node), cmp.Compare(a.class, b.class))
	})
	c.mistakes = c.mistakes[:min(len(c.mistakes), max(c.most, 0))]
}

// finish computes the report's figures from the counts.
func (c *counter) finish(nodes []int32) {
	r := c.r
	r.Accuracy, r.Loss = float64(c.correct)/float64(c.predictions), c.loss/float64(c.predictions)
	occur := 0
	for i := range r.Classes {
		k := &r.Classes[i]
		if k.Predicted > 0 {
			k.Precision = float64(c.right[i]) / float64(k.Predicted)
		}
		if k.Nodes > 0 {
			k.Recall = float64(c.right[i]) / float64(k.Nodes)
		}
		if n := k.Nodes + k.Predicted; n > 0 {
			k.F1 = 2 * float64(c.right[i]) / float64(n)
			occur++
			r.MacroF1 += k.F1
		}
	}
	r.MacroF1 /= float64(max(occur, 1))
	r.MicroF1 = r.Accuracy
	if r.several {
		right, all := 0, 0
		for i, k := range r.Classes {
			right, all = right+c.right[i], all+k.Nodes+k.Predicted
		}
		r.MicroF1 = 2 * float64(right) / float64(max(all, 1))
	}
	for i := range r.Calibration {
		b := &r.Calibration[i]
		if b.Predictions == 0 {
			continue
		}
		n := float64(b.Predictions)
		b.Confidence, b.Accuracy = c.sums[i].confidence/n, c.sums[i].correct/n
		r.CalibrationError += n / float64(c.predictions) * math.Abs(b.Confidence-b.Accuracy)
	}
	r.ByDegree = c.byDegree.named(degreeName)
	r.ByHomophily = c.byKin.named(kinName)
	if c.bySize != nil {
		r.ByNodes, r.ByEdges = accuracyBySize(c.bySize, Size.nodes), accuracyBySize(c.bySize, Size.edges)
	}
	c.trim()
	for _, w := range c.mistakes {
		m := Mistake{Node: int(w.node), ID: r.id(int(w.node)), Class: r.className(w.class), Predicted: r.className(w.said), Probability: w.p, Degree: w.degree, SameClass: w.same, Labelled: w.labels}
		if r.rows.whole != nil {
			size := r.rows.size(w.node)
			m.Size = &size
		}
		if r.several {
			m.Predicted = "not " + m.Class
			if w.yes {
				m.Class, m.Predicted = m.Predicted, m.Class
			}
		}
		r.Mistakes = append(r.Mistakes, m)
	}
	c.areas(nodes)
}

// areas computes the area under the ROC curve and the average precision, also of each class if a node can have several.
func (c *counter) areas(nodes []int32) {
	r, cols := c.r, c.r.logits.Cols
	if !r.several && cols != 2 {
		return
	}
	var scores []float32
	var labels []int8
	for _, v := range nodes {
		switch row := r.logits.Row(int(v)); {
		case !r.labelled(v):
		case r.several:
			scores, labels = append(scores, row...), append(labels, r.ds.MultiLabels.Row(int(v))...)
		default:
			scores, labels = append(scores, metrics.BinaryScores(row, cols)...), append(labels, int8(r.ds.Labels[v]))
		}
	}
	if !r.several {
		cols = 1
	}
	auc, areas := metrics.MultiLabelAUC(scores, cols, labels)
	ap, _ := metrics.MultiLabelAveragePrecision(scores, cols, labels)
	if r.several {
		for k, a := range areas {
			r.Classes[k].AUC = a
		}
	}
	if !math.IsNaN(auc) {
		r.AUC, r.AP = &auc, &ap
	}
}

// softmax writes the probabilities of logits to p, and returns the logarithm of the sum of their exponentials.
func softmax(logits []float32, p []float64) (logSum float64) {
	most := float64(slices.Max(logits))
	sum := 0.0
	for i, x := range logits {
		p[i] = math.Exp(float64(x) - most)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return most + math.Log(sum)
}

// lastDegree is the group of the largest degrees.
const lastDegree = 7

// degreeGroup returns the group of a degree: 0, 1, 2 to 3, 4 to 7, and so on.
func degreeGroup(d int) int {
	i := 0
	for ; d > 0; d /= 2 {
		i++
	}
	return min(i, lastDegree)
}

func degreeName(i int) string {
	switch lo := 1 << i >> 1; {
	case i == lastDegree:
		return fmt.Sprintf("%d+", lo)
	case lo > 1:
		return fmt.Sprintf("%d–%d", lo, 2*lo-1)
	}
	return fmt.Sprint(min(i, 1))
}

// kinGroup returns the fifth that the share of neighbours of the same class is in.
func kinGroup(same, labelled int) int { return min(5*same/labelled, 4) }

func kinName(i int) string { return fmt.Sprintf("%d–%d %%", 20*i, 20*(i+1)) }

// named returns the groups that have nodes.
func (g *groups) named(name func(int) string) (list []Group) {
	for i, n := range g.nodes {
		if n > 0 {
			list = append(list, Group{Name: name(i), Nodes: int(n), Accuracy: g.correct[i] / n})
		}
	}
	return list
}

// MarshalJSON returns the class as an object, without "auc" if AUC is NaN.
func (c Class) MarshalJSON() ([]byte, error) {
	type plain Class
	var auc *float64
	if !math.IsNaN(c.AUC) {
		auc = &c.AUC
	}
	return json.Marshal(struct {
		plain
		AUC *float64 `json:"auc,omitempty"`
	}{plain(c), auc})
}
