package gnb

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Fetching reuses the memory of an earlier batch and keeps none of its content. A batch without
// seeds has labels and targets of length 0, not nil.
func TestFetchedMemoryGoesFromBatchToBatch(t *testing.T) {
	w := &Worker{ds: &dataset.Dataset{
		Labels: []int32{7, 8, 9}, MultiLabels: &dataset.Multi{Rows: 3, Cols: 2, Data: []int8{1, 0, 0, 1, -1, 1}},
		SparseFeatures: &dataset.Sparse{Rows: 3, Cols: 4, Indptr: []int64{0, 1, 1, 3}, Indices: []int32{3, 0, 2}},
	}}
	fetch := func(seeds ...int32) *Batch {
		b := &Batch{Batch: &sample.Batch{Seeds: seeds}}
		if err := w.fetch(b, nil, nil); err != nil {
			t.Fatal(err)
		}
		return b
	}
	empty, full := fetch(), fetch(2, 0)
	if empty.Labels == nil || empty.Targets == nil || len(empty.Labels)+len(empty.Targets)+empty.Sparse.Rows > 0 {
		t.Errorf("a batch without seeds has labels %v, targets %v, features %v; want slices of length 0", empty.Labels, empty.Targets, empty.Sparse)
	}
	if !slices.Equal(full.Labels, []int32{9, 7}) || !slices.Equal(full.Targets, []int8{-1, 1, 1, 0}) || !slices.Equal(full.Sparse.Indices, []int32{0, 2, 3}) {
		t.Errorf("labels %v, targets %v, features %v", full.Labels, full.Targets, full.Sparse)
	}
	labels, again := full.Labels, full
	full.release()
	if again.Labels != nil || again.Targets != nil || again.Sparse != nil {
		t.Errorf("a released batch has labels %v, targets %v, features %v", again.Labels, again.Targets, again.Sparse)
	}
	if next := fetch(1); next.Labels[0] != 8 || &next.Labels[0] != &labels[0] {
		t.Errorf("the next batch has labels %v in new memory", next.Labels)
	}
}
