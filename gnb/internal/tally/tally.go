// Package tally computes a network's metric on a split node by node. Ranks combine their tallies,
// and the result does not depend on the distribution of nodes over ranks. It also computes the digest of what all ranks
// sample, and counts what they sample more often than one rank would.
package tally

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/simd"
)

// Tally counts one rank's results on a split.
type Tally struct {
	kind string
	ds   *dataset.Dataset
	// Of a divided dataset, the labels are in the parts.
	book *divided.Book
	cols int // scores per row

	correct, count int64        // accuracy: exact
	f1             []metrics.F1 // of the classes: exact
	scores         []float32    // AUC and average precision: [rows, cols]
	labels         []int8       // labels of the scores, -1 if unknown

	withLoss bool
	loss     lossSum
	bad      int64 // rows with numbers that are not finite
}

// lossSum adds losses as integers in units of 2^-24, so that the sum has the same bits for any
// distribution of rows over workers. It holds up to 2^39: 2^31 rows at a mean of 256.
type lossSum struct{ units, count, bad int64 }

const (
	lossUnits = 1 << 24
	lossMost  = 1 << 20 // largest loss of a row; larger ones count as infinite
)

// add adds the loss of count rows or labels.
func (l *lossSum) add(sum float64, count int64) {
	l.count += count
	if sum < lossMost {
		l.units += int64(math.Round(sum * lossUnits))
	} else {
		l.bad++ // also NaN
	}
}

// mean returns the mean loss: NaN without rows, and +Inf if a row's loss was out of bounds.
func (l lossSum) mean() float64 {
	if l.bad > 0 {
		return math.Inf(1)
	}
	return float64(l.units) / lossUnits / float64(l.count)
}

// New makes a Tally for nodes of a dataset; with withLoss it also sums their losses. book is that of
// a divided dataset, else nil; nodes to count are those whose parts it has.
func New(ds *dataset.Dataset, book *divided.Book, withLoss bool) *Tally {
	return &Tally{kind: Metric(ds), ds: ds, book: book, f1: make([]metrics.F1, max(ds.Classes(), 1)), withLoss: withLoss}
}

// multi reports whether a node can have several labels.
func multi(ds *dataset.Dataset) bool {
	return ds.MultiLabels != nil || divided.Is(ds) && ds.Meta.MultiLabel
}

// label returns a node's label, and targets its row of several labels.
func (t *Tally) label(v int32) int32 {
	if t.book == nil {
		return t.ds.Labels[v]
	}
	labels, _, err := t.book.Answers(t.book.PartOf(v))
	if err != nil {
		panic(err)
	}
	return labels[t.book.Row(v)]
}

func (t *Tally) targets(v int32) []int8 {
	if t.book == nil {
		return t.ds.MultiLabels.Row(int(v))
	}
	_, rows, err := t.book.Answers(t.book.PartOf(v))
	if err != nil {
		panic(err)
	}
	return rows.Row(t.book.Row(v))
}

// named are the metrics: by the name in a run, that in a dataset's metadata.
var named = [][2]string{
	{runfile.Accuracy, dataset.MetricAccuracy},
	{runfile.AUC, dataset.MetricROCAUC},
	{runfile.AP, dataset.MetricAP},
	{runfile.MicroF1, dataset.MetricMicroF1},
	{runfile.MacroF1, dataset.MetricMacroF1},
}

// Metric returns the name of a dataset's metric in runs, one of package runfile.
func Metric(ds *dataset.Dataset) string {
	for _, n := range named {
		if n[1] == ds.Metric() {
			return n[0]
		}
	}
	return runfile.Accuracy
}

// Known reports whether there is a metric of nodes of that name in runs.
func Known(name string) bool {
	return slices.ContainsFunc(named, func(n [2]string) bool { return n[0] == name })
}

// Named returns the dataset measured by the metric of that name in runs; "" keeps it.
func Named(ds *dataset.Dataset, name string) (*dataset.Dataset, error) {
	if name == "" || ds == nil {
		return ds, nil
	}
	var all []string
	for _, n := range named {
		if n[0] == name {
			return ds.WithMetric(n[1])
		}
		all = append(all, n[0])
	}
	return nil, fmt.Errorf("gnb: Metric is %q; nodes are measured by %s", name, strings.Join(all, ", "))
}

// title is the metric's name in sentences.
func title(kind string) string {
	_, t, _ := runfile.CutMetric("_" + kind)
	return t
}

// ranks reports whether a metric ranks nodes by their scores.
func ranks(kind string) bool { return kind == runfile.AUC || kind == runfile.AP }

// CheckLabels returns an error if a dataset's labels do not suit its metric.
func CheckLabels(ds *dataset.Dataset) error {
	switch {
	case ds.Labels == nil && ds.MultiLabels == nil && (!divided.Is(ds) || ds.Classes() == 0):
		return fmt.Errorf("gnb: %s has no labels", ds.Name())
	case ranks(Metric(ds)) && !multi(ds) && ds.Classes() != 2:
		return fmt.Errorf("gnb: %s is to be measured by %s, which takes two classes or several labels a node, and it has %d classes; choose another metric (Metric, --metric)", ds.Name(), title(Metric(ds)), ds.Classes())
	}
	return nil
}

// CheckSplit returns an error if no node of a split has a label. It reads nodes up to the first
// one with a label.
func CheckSplit(ds *dataset.Dataset, split string) error {
	ids, err := ds.Split(split)
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return fmt.Errorf("gnb: %s's split %q is empty: there is nothing to train on", ds.Name(), split)
	case divided.Is(ds):
		return nil // an epoch without labels is reported at its end
	}
	has := func(v int32) bool {
		switch {
		case v < 0 || ds.MultiLabels == nil && int(v) >= len(ds.Labels) || ds.MultiLabels != nil && int(v) >= ds.MultiLabels.Rows:
			return true // the dataset's check, or the worker, reports the error
		case ds.MultiLabels != nil:
			return slices.ContainsFunc(ds.MultiLabels.Row(int(v)), func(y int8) bool { return y >= 0 })
		}
		return ds.Labels[v] >= 0
	}
	found := false
	if err := mapped.Guard(func() error {
		found = slices.ContainsFunc(ids, has)
		return nil
	}); err != nil || found {
		return err
	}
	return fmt.Errorf("gnb: none of the %d nodes of %s's split %q has a label: there is nothing to train on; give labels to some of them, or make the split of nodes that have one (gnb data convert)", len(ids), ds.Name(), split)
}

// Add counts node v, whose output is row.
func (t *Tally) Add(v int32, row []float32) {
	if !simd.Finite(row) {
		t.bad++
		return
	}
	if multi(t.ds) {
		t.addMulti(row, t.targets(v))
		return
	}
	y := t.label(v)
	if y < 0 {
		return
	}
	t.count++
	if t.withLoss {
		t.loss.add(nn.RowCrossEntropy(row, int(y)), 1)
	}
	if t.Ranked() {
		t.cols = 1
		t.scores = append(t.scores, metrics.BinaryScores(row, len(row))...)
		t.labels = append(t.labels, int8(y))
		return
	}
	switch answer := nn.Argmax(row); {
	case answer == int(y):
		t.correct++
		t.f1[y].TruePositives++
	default: // one class was missed and another was predicted
		t.f1[min(answer, len(t.f1)-1)].FalsePositives++
		t.f1[y].FalseNegatives++
	}
}

func (t *Tally) addMulti(row []float32, labels []int8) {
	if t.withLoss {
		t.loss.add(nn.RowBCE(row, labels))
	}
	if t.Ranked() {
		t.cols = len(row)
		t.count++
		t.scores, t.labels = append(t.scores, row...), append(t.labels, labels...)
		return
	}
	for c, y := range labels {
		if y >= 0 {
			t.count++
			if (row[c] > 0) == (y == 1) {
				t.correct++
			}
		}
		t.f1[c].AddRow(row[c:c+1], labels[c:c+1])
	}
}

// NotFinite reports whether an output had numbers that are not finite.
func (t *Tally) NotFinite() bool { return t.bad > 0 }

// Sums returns the counts to add over ranks.
func (t *Tally) Sums() []int64 {
	sums := []int64{t.correct, t.count, t.loss.units, t.loss.count, t.loss.bad}
	for _, c := range t.f1 {
		sums = append(sums, c.TruePositives, c.FalsePositives, c.FalseNegatives)
	}
	return sums
}

// Ranked reports whether the metric needs the scores of all ranks together, see [Tally.Encode].
func (t *Tally) Ranked() bool { return ranks(t.kind) }

// Result is a split's metric over all ranks. Score is the metric, except for the accuracy, which is Correct/Count.
type Result struct {
	Correct, Count int64
	Score, Loss    float64
}

// Result computes the metric from the sums of all ranks and the scores of whole, which holds those
// of all ranks.
func (t *Tally) Result(sums []int64, whole *Tally) Result {
	r := Result{Correct: sums[0], Count: sums[1]}
	if t.withLoss {
		r.Loss = lossSum{sums[2], sums[3], sums[4]}.mean()
	}
	var classes []metrics.F1
	var all metrics.F1
	for s := sums[5:]; len(s) > 0; s = s[3:] {
		c := metrics.F1{TruePositives: s[0], FalsePositives: s[1], FalseNegatives: s[2]}
		classes, all = append(classes, c), metrics.F1{TruePositives: all.TruePositives + s[0], FalsePositives: all.FalsePositives + s[1], FalseNegatives: all.FalseNegatives + s[2]}
	}
	switch {
	case t.kind == runfile.MicroF1:
		r.Score = all.Micro()
	case t.kind == runfile.MacroF1:
		r.Score = metrics.MacroF1(classes)
	case t.kind == runfile.AUC && multi(t.ds):
		r.Score, _ = metrics.MultiLabelAUC(whole.scores, max(whole.cols, 1), whole.labels)
	case t.kind == runfile.AUC:
		r.Score = metrics.ROCAUC(whole.scores, whole.labels)
	case t.kind == runfile.AP && multi(t.ds):
		r.Score, _ = metrics.MultiLabelAveragePrecision(whole.scores, max(whole.cols, 1), whole.labels)
	case t.kind == runfile.AP:
		r.Score = metrics.AveragePrecision(whole.scores, whole.labels)
	}
	return r
}

// Encode writes the scores for other ranks.
func (t *Tally) Encode() []byte {
	b := make([]byte, 0, 16+len(t.labels)+4*len(t.scores))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.cols))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(t.scores)))
	for _, x := range t.scores {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	for _, y := range t.labels {
		b = append(b, byte(y))
	}
	return b
}

// Decode appends the encoded scores of another rank.
func (t *Tally) Decode(b []byte) error {
	if len(b) < 16 {
		return errors.New("gnb: the scores of an evaluation were cut short")
	}
	if cols := int(binary.LittleEndian.Uint64(b)); cols > 0 {
		t.cols = cols
	}
	n := int(binary.LittleEndian.Uint64(b[8:]))
	if b = b[16:]; len(b) != 5*n {
		return errors.New("gnb: the scores of an evaluation were cut short")
	}
	for i := range n {
		t.scores = append(t.scores, math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	for _, y := range b[4*n:] {
		t.labels = append(t.labels, int8(y))
	}
	return nil
}
