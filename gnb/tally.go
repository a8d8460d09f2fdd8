package gnb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops/nn"
)

// The metrics that an evaluation can report, by the dataset's own
// (dataset.Metadata.Metric).
const (
	kindAccuracy = "accuracy"
	kindAUC      = "auc"
)

// tally collects what one rank has computed of a split, until all ranks' is put
// together.
type tally struct {
	kind string
	ds   *Dataset
	cols int // of scores a row

	correct, count int64     // accuracy: exact
	scores         []float32 // AUC: [rows, cols]
	labels         []int8    // of the scores, -1 where there is none
}

// metricKind is what the dataset is measured by.
func metricKind(ds *Dataset) string {
	if ds.Meta.Metric == "roc_auc" {
		return kindAUC
	}
	return kindAccuracy
}

// targets says what is wrong with a dataset that an evaluation or a training is
// to learn from, if anything.
func targets(ds *Dataset) error {
	switch {
	case ds.Y == nil && ds.YM == nil:
		return fmt.Errorf("gnb: %s has no labels", ds.Name())
	case metricKind(ds) == kindAUC && ds.YM == nil && ds.Classes() != 2:
		return fmt.Errorf("gnb: %s is to be measured by ROC AUC, which takes two classes or several labels a node, and it has %d classes", ds.Name(), ds.Classes())
	}
	return nil
}

// add counts node v, whose output is row.
func (t *tally) add(v int32, row []float32) {
	if m := t.ds.YM; m != nil {
		t.addMulti(row, m.Row(int(v)))
		return
	}
	y := t.ds.Y[v]
	if y < 0 {
		return
	}
	t.count++
	if t.kind == kindAUC {
		t.cols = 1
		t.scores = append(t.scores, nn.BinaryScores(row, len(row))...)
		t.labels = append(t.labels, int8(y))
		return
	}
	if nn.Argmax(row) == int(y) {
		t.correct++
	}
}

func (t *tally) addMulti(row []float32, labels []int8) {
	if t.kind == kindAUC {
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
}

// join puts all ranks' tallies of a split together. Collective.
func (t *tally) join(w *Worker, split string) SplitMetric {
	m := SplitMetric{Split: split, Metric: t.kind}
	sum := []int64{t.correct, t.count}
	w.check(w.comm.SumInt64(w.site("evaluate"), sum))
	m.Correct, m.Count = sum[0], sum[1]
	if t.kind != kindAUC {
		return m
	}
	all, err := w.comm.AllGather(w.site("evaluate"), t.encode())
	w.check(err)
	var whole tally
	for _, b := range all {
		w.check(whole.decode(b))
	}
	if t.ds.YM != nil {
		m.AUC, _ = nn.MultiLabelAUC(whole.scores, max(whole.cols, 1), whole.labels)
	} else {
		m.AUC = nn.ROCAUC(whole.scores, whole.labels)
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
