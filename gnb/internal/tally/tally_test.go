package tally

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

const nodes, classes = 60, 3

// sets returns a dataset for each metric.
func sets() map[string]*dataset.Dataset {
	r := rand.New(rand.NewPCG(1, 2))
	labels, many := make([]int32, nodes), make([]int8, nodes*classes)
	for v := range labels {
		labels[v] = int32(r.IntN(classes+1)) - 1 // -1 means no label
	}
	for i := range many {
		many[i] = int8(r.IntN(3)) - 1
	}
	multi := &dataset.Multi{Rows: nodes, Cols: classes, Data: many}
	two := make([]int32, nodes)
	for v := range two {
		two[v] = int32(r.IntN(2))
	}
	return map[string]*dataset.Dataset{
		"accuracy":                       {Labels: labels, Meta: dataset.Metadata{NumClasses: classes}},
		"accuracy, many labels":          {MultiLabels: multi, Meta: dataset.Metadata{NumClasses: classes}},
		"micro-F1":                       {MultiLabels: multi, Meta: dataset.Metadata{NumClasses: classes, Metric: dataset.MetricMicroF1}},
		"AUC":                            {Labels: two, Meta: dataset.Metadata{NumClasses: 2, Metric: dataset.MetricROCAUC}},
		"average precision":              {Labels: two, Meta: dataset.Metadata{NumClasses: 2, Metric: dataset.MetricAP}},
		"average precision, many labels": {MultiLabels: multi, Meta: dataset.Metadata{NumClasses: classes, Metric: dataset.MetricAP}},
		"macro-F1":                       {Labels: labels, Meta: dataset.Metadata{NumClasses: classes, Metric: dataset.MetricMacroF1}},
		"macro-F1, many labels":          {MultiLabels: multi, Meta: dataset.Metadata{NumClasses: classes, Metric: dataset.MetricMacroF1}},
		"AUC, many labels":               {MultiLabels: multi, Meta: dataset.Metadata{NumClasses: classes, Metric: dataset.MetricROCAUC}},
	}
}

// The result is the same to the bit for any number of ranks that share the nodes.
func TestResultDoesNotDependOnRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, ds := range sets() {
		cols := ds.Meta.NumClasses
		rows := make([]float32, nodes*cols)
		for i := range rows {
			rows[i] = r.Float32()*4 - 2
		}
		count := func(ranks int) Result {
			whole := New(ds, nil, true)
			for rank := range ranks {
				one := New(ds, nil, true)
				for v := rank * nodes / ranks; v < (rank+1)*nodes/ranks; v++ {
					one.Add(int32(v), rows[v*cols:(v+1)*cols])
				}
				if err := whole.Merge(one.Encode()); err != nil {
					t.Fatal(err)
				}
				for n := range len(one.Encode()) {
					if New(ds, nil, true).Merge(one.Encode()[:n]) == nil {
						t.Fatalf("%s: %d of %d bytes are accepted", name, n, len(one.Encode()))
					}
				}
			}
			return whole.Result()
		}
		one := count(1)
		if one.Count == 0 || !(one.Loss > 0) || !(one.Value > 0 && one.Value < 1) {
			t.Errorf("%s: %+v of %d nodes", name, one, nodes)
		}
		for _, ranks := range []int{2, 3, 7} {
			if got := count(ranks); got != one {
				t.Errorf("%s: %+v by %d ranks, %+v by one", name, got, ranks, one)
			}
		}
	}
}

func TestAccuracyIsExact(t *testing.T) {
	ds := &dataset.Dataset{Labels: []int32{0, 1, -1, 1}, Meta: dataset.Metadata{NumClasses: 2}}
	y := New(ds, nil, true)
	for v, row := range [][]float32{{1, 0}, {1, 0}, {1, 0}, {0, 1}} {
		y.Add(int32(v), row)
	}
	r := y.Result()
	want := (nn.RowCrossEntropy([]float32{1, 0}, 0)*2 + nn.RowCrossEntropy([]float32{1, 0}, 1)) / 3
	if r.Value != 2./3 || r.Count != 3 || math.Abs(r.Loss-want) > 1e-6 {
		t.Errorf("%+v, want 2 of 3 with loss %v", r, want)
	}
	y.Add(0, []float32{float32(math.NaN()), 0})
	if !y.NotFinite() {
		t.Error("NotFinite does not report a row with NaN")
	}
}

func TestLossBeyondBounds(t *testing.T) {
	var l lossSum
	if !math.IsNaN(l.mean()) {
		t.Errorf("for no nodes the value is %v, want NaN", l.mean())
	}
	l.add(1, 1)
	l.add(math.NaN(), 1)
	if !math.IsInf(l.mean(), 1) {
		t.Errorf("with a loss that is NaN: %v, want +Inf", l.mean())
	}
}

func TestCheckLabels(t *testing.T) {
	for name, ds := range sets() {
		if err := CheckLabels(ds); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if CheckLabels(&dataset.Dataset{}) == nil {
		t.Error("a dataset without labels gave no error")
	}
	three := &dataset.Dataset{Labels: []int32{0}, Meta: dataset.Metadata{NumClasses: 3, Metric: dataset.MetricROCAUC}}
	if Metric(three).Name != "auc" || CheckLabels(three) == nil {
		t.Error("ROC AUC for three classes gave no error")
	}
}
