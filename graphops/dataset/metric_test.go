package dataset_test

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// A view is measured by its metric, and so are datasets computed from it; the dataset itself is not.
func TestMetricOfAView(t *testing.T) {
	ds := dataset.Karate()
	ds.Features = &dataset.Matrix{Rows: 34, Cols: 2, F32: make([]float32, 68)}
	ds.SparseFeatures, ds.Meta.FeatureNames = nil, []string{"a", "b"}
	ds.Meta.FeatureDim = 2
	own := ds.Metric()
	if _, err := ds.WithMetric("no name"); err == nil {
		t.Error("an unknown metric is taken")
	}
	view, err := ds.WithMetric(dataset.MetricMacroF1)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func() (*dataset.Dataset, error){
		"the view":        func() (*dataset.Dataset, error) { return view, nil },
		"another graph":   func() (*dataset.Dataset, error) { return view.WithGraph(ds.Graph), nil },
		"self-loops":      view.WithSelfLoops,
		"some nodes":      func() (*dataset.Dataset, error) { return view.Subset([]int32{0, 1, 2}) },
		"a set of splits": func() (*dataset.Dataset, error) { return view.WithSplitSet(0) },
		"ordered features": func() (*dataset.Dataset, error) {
			return view.InOrder(map[string][]string{"": {"b", "a"}}, func(notice.Notice) {})
		},
	} {
		d, err := of()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m := d.Metric(); m != dataset.MetricMacroF1 {
			t.Errorf("%s is measured by %s", name, m)
		}
	}
	if m := ds.Metric(); m != own || m == dataset.MetricMacroF1 {
		t.Errorf("the dataset itself is measured by %s", m)
	}
}
