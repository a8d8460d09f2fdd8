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

	correct, count int64      // accuracy: exact
	f1             metrics.F1 // micro-F1: exact
	scores         []float32  // AUC: [rows, cols]
	labels         []int8     // labels of the scores, -1 if unknown

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
	return &Tally{kind: Metric(ds), ds: ds, book: book, withLoss: withLoss}
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

// Metric returns the name of a dataset's metric, one of package names.
func Metric(ds *dataset.Dataset) string {
	switch ds.Meta.Metric {
	case dataset.MetricROCAUC:
		return runfile.AUC
	case dataset.MetricMicroF1:
		return runfile.MicroF1
	}
	return runfile.Accuracy
}

// CheckLabels returns an error if a dataset's labels do not suit its metric.
func CheckLabels(ds *dataset.Dataset) error {
	switch {
	case ds.Labels == nil && ds.MultiLabels == nil && (!divided.Is(ds) || ds.Classes() == 0):
		return fmt.Errorf("gnb: %s has no labels", ds.Name())
	case Metric(ds) == runfile.AUC && !multi(ds) && ds.Classes() != 2:
		return fmt.Errorf("gnb: %s is to be measured by ROC AUC, which takes two classes or several labels a node, and it has %d classes", ds.Name(), ds.Classes())
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
	if t.kind == runfile.AUC {
		t.cols = 1
		t.scores = append(t.scores, metrics.BinaryScores(row, len(row))...)
		t.labels = append(t.labels, int8(y))
		return
	}
	if nn.Argmax(row) == int(y) {
		t.correct++
		t.f1.TruePositives++
	} else { // one class was missed and another was predicted
		t.f1.FalsePositives++
		t.f1.FalseNegatives++
	}
}

func (t *Tally) addMulti(row []float32, labels []int8) {
	if t.withLoss {
		t.loss.add(nn.RowBCE(row, labels))
	}
	if t.kind == runfile.AUC {
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
	}
	t.f1.AddRow(row, labels)
}

// NotFinite reports whether an output had numbers that are not finite.
func (t *Tally) NotFinite() bool { return t.bad > 0 }

// Sums returns the counts to add over ranks.
func (t *Tally) Sums() []int64 {
	return []int64{t.correct, t.count, t.f1.TruePositives, t.f1.FalsePositives, t.f1.FalseNegatives, t.loss.units, t.loss.count, t.loss.bad}
}

// Ranked reports whether the metric needs the scores of all ranks together, see [Tally.Encode].
func (t *Tally) Ranked() bool { return t.kind == runfile.AUC }

// Result is a split's metric over all ranks.
type Result struct {
	Correct, Count     int64
	MicroF1, AUC, Loss float64
}

// Result computes the metric from the sums of all ranks and the scores of whole, which holds those
// of all ranks.
func (t *Tally) Result(sums []int64, whole *Tally) Result {
	r := Result{Correct: sums[0], Count: sums[1]}
	switch {
	case t.kind == runfile.MicroF1:
		r.MicroF1 = metrics.F1{TruePositives: sums[2], FalsePositives: sums[3], FalseNegatives: sums[4]}.Micro()
	case t.kind == runfile.AUC && multi(t.ds):
		r.AUC, _ = metrics.MultiLabelAUC(whole.scores, max(whole.cols, 1), whole.labels)
	case t.kind == runfile.AUC:
		r.AUC = metrics.ROCAUC(whole.scores, whole.labels)
	}
	if t.withLoss {
		r.Loss = lossSum{sums[5], sums[6], sums[7]}.mean()
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
