package tally

import (
	"errors"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// A metric that does not exist on a split is found before any work, with the reason, and only then.
func TestUndefined(t *testing.T) {
	one := func(metric string, y ...int32) *dataset.Dataset {
		return &dataset.Dataset{Labels: y, Meta: dataset.Metadata{NumNodes: len(y), NumClasses: 2, Metric: metric}}
	}
	many := func(metric string, cols int, y ...int8) *dataset.Dataset {
		return &dataset.Dataset{MultiLabels: &dataset.Multi{Rows: len(y) / cols, Cols: cols, Data: y}, Meta: dataset.Metadata{NumNodes: len(y) / cols, NumClasses: cols, Metric: metric}}
	}
	const auc, f1 = dataset.MetricROCAUC, dataset.MetricMicroF1
	for _, c := range []struct {
		name        string
		ds          *dataset.Dataset
		ids         []int32
		why, partly string // "" for none
		byLoss      bool   // the loss exists
	}{
		{"AUC, two classes", one(auc, 0, 1, 0), []int32{0, 1}, "", "", true},
		{"AUC, one class in the split", one(auc, 0, 1, 0), []int32{0, 2}, "all of its 2 labelled nodes are of class 0", "", true},
		{"AUC, one class beside unlabelled nodes", one(auc, -1, 1, -1), []int32{0, 1, 2}, "class 1", "", true},
		{"AUC, no labels", one(auc, -1, 1, -1), []int32{0, 2}, "none of its nodes has a label", "", false},
		{"AUC, empty", one(auc, 0, 1), nil, "empty", "", false},
		{"AUC of labels, all", many(auc, 2, 0, 1, 1, 0), []int32{0, 1}, "", "", true},
		{"AUC of labels, one without negatives", many(auc, 2, 1, 1, 1, 0), []int32{0, 1}, "", "1 of 2 labels", true},
		{"AUC of labels, none has both", many(auc, 2, 1, 0, 1, 0), []int32{0, 1}, "none of its 2 labels has both", "", true},
		{"AUC of labels, both but unlabelled", many(auc, 1, 1, -1), []int32{0, 1}, "none of its 1 label has both", "", true},
		{"AUC of labels, no labels", many(auc, 2, -1, -1, 1, 0), []int32{0}, "none of its nodes has a label", "", false},
		{"accuracy, one class", one("", 0, 0), []int32{0, 1}, "", "", true},
		{"accuracy, no labels", one("", -1, 0), []int32{0}, "none of its nodes has a label", "", false},
		{"accuracy, empty", one("", 0, 0), nil, "empty", "", false},
		{"micro-F1, one class", many(f1, 2, 1, 1, 1, 1), []int32{0, 1}, "", "", true},
		{"micro-F1, no labels", many(f1, 2, -1, -1, 1, 1), []int32{0}, "none of its nodes has a label", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.ds.Splits = map[string][]int32{"val": c.ids}
			why, partly, err := Undefined(c.ds, "val")
			if err != nil || !strings.Contains(why, c.why) || (why == "") != (c.why == "") || !strings.Contains(partly, c.partly) || (partly == "") != (c.partly == "") {
				t.Errorf("%q, %q, %v; want %q and %q", why, partly, err, c.why, c.partly)
			}
			if err := CheckEvaluated(c.ds, "val", false); errors.Is(err, ErrUndefined) != (c.why != "") {
				t.Errorf("choosing the best epoch by the metric: %v", err)
			}
			if err := CheckEvaluated(c.ds, "val", true); errors.Is(err, ErrUndefined) == c.byLoss {
				t.Errorf("choosing the best epoch by the loss: %v", err)
			}
		})
	}
}
