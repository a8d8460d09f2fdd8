package gnb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb/internal/names"

	"github.com/graphnb/graphnb/internal/simd"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

// tally collects what one rank has computed of a split, until all ranks' is put
// together.
type tally struct {
	kind string
	ds   *Dataset
	cols int // of scores a row

	correct, count int64     // accuracy: exact
	f1             nn.F1     // micro-F1: exact
	scores         []float32 // AUC: [rows, cols]
	labels         []int8    // of the scores, -1 where there is none

	withLoss bool
	loss     lossSum
	bad      int64 // rows with numbers that are not finite
}

// lossSum adds losses in integers, units of 2^-24, so that the sum is the same to
// the bit however the rows are shared among workers. It holds 2^39: 2^31 rows at a
// mean of 256.
type lossSum struct{ units, count, bad int64 }

const (
	lossUnits = 1 << 24
	lossMost  = 1 << 20 // of a row; what is above counts as infinite
)

// add takes the loss of count rows or labels.
func (l *lossSum) add(sum float64, count int64) {
	l.count += count
	if sum < lossMost {
		l.units += int64(math.Round(sum * lossUnits))
	} else {
		l.bad++ // NaN, too
	}
}

// mean is NaN where there is nothing, and +Inf where a row's loss was beyond
// bounds.
func (l lossSum) mean() float64 {
	if l.bad > 0 {
		return math.Inf(1)
	}
	return float64(l.units) / lossUnits / float64(l.count)
}

// metricKind is what the dataset is measured by.
func metricKind(ds *Dataset) string {
	switch ds.Meta.Metric {
	case dataset.MetricROCAUC:
		return names.AUC
	case dataset.MetricMicroF1:
		return names.MicroF1
	}
	return names.Accuracy
}

// targets says what is wrong with a dataset that an evaluation or a training is
// to learn from, if anything.
func targets(ds *Dataset) error {
	switch {
	case ds.Labels == nil && ds.MultiLabels == nil:
		return fmt.Errorf("gnb: %s has no labels", ds.Name())
	case metricKind(ds) == names.AUC && ds.MultiLabels == nil && ds.Classes() != 2:
		return fmt.Errorf("gnb: %s is to be measured by ROC AUC, which takes two classes or several labels a node, and it has %d classes", ds.Name(), ds.Classes())
	}
	return nil
}

// add counts node v, whose output is row.
func (t *tally) add(v int32, row []float32) {
	if !simd.Finite(row) {
		t.bad++
		return
	}
	if m := t.ds.MultiLabels; m != nil {
		t.addMulti(row, m.Row(int(v)))
		return
	}
	y := t.ds.Labels[v]
	if y < 0 {
		return
	}
	t.count++
	if t.withLoss {
		t.loss.add(nn.RowCrossEntropy(row, int(y)), 1)
	}
	if t.kind == names.AUC {
		t.cols = 1
		t.scores = append(t.scores, nn.BinaryScores(row, len(row))...)
		t.labels = append(t.labels, int8(y))
		return
	}
	if nn.Argmax(row) == int(y) {
		t.correct++
		t.f1.TruePositives++
	} else { // a class missed, and another taken for it
		t.f1.FalsePositives++
		t.f1.FalseNegatives++
	}
}

func (t *tally) addMulti(row []float32, labels []int8) {
	if t.withLoss {
		t.loss.add(nn.RowBCE(row, labels))
	}
	if t.kind == names.AUC {
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

// join puts all ranks' tallies of a split together. Collective.
func (t *tally) join(w *Worker, split string) SplitMetric {
	sums, whole := t.sums(), &tally{}
	w.check(w.comm.SumInt64(w.site("evaluate"), sums))
	if t.kind == names.AUC {
		all, err := w.comm.AllGather(w.site("evaluate"), t.encode())
		w.check(err)
		for _, b := range all {
			w.check(whole.decode(b))
		}
	}
	return t.metric(split, sums, whole)
}

// sums are the counts, which are added over the ranks.
func (t *tally) sums() []int64 {
	return []int64{t.correct, t.count, t.f1.TruePositives, t.f1.FalsePositives, t.f1.FalseNegatives, t.loss.units, t.loss.count, t.loss.bad}
}

// metric is what the sums of all ranks, and the scores of whole, come to.
func (t *tally) metric(split string, sums []int64, whole *tally) SplitMetric {
	m := SplitMetric{Split: split, Metric: t.kind, Correct: sums[0], Count: sums[1]}
	switch {
	case t.kind == names.MicroF1:
		m.MicroF1 = nn.F1{TruePositives: sums[2], FalsePositives: sums[3], FalseNegatives: sums[4]}.Micro()
	case t.kind == names.AUC && t.ds.MultiLabels != nil:
		m.AUC, _ = nn.MultiLabelAUC(whole.scores, max(whole.cols, 1), whole.labels)
	case t.kind == names.AUC:
		m.AUC = nn.ROCAUC(whole.scores, whole.labels)
	}
	if t.withLoss {
		m.Loss = lossSum{sums[5], sums[6], sums[7]}.mean()
	}
	return m
}

func (t *tally) encode() []byte {
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

// decode appends what another rank has encoded.
func (t *tally) decode(b []byte) error {
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
