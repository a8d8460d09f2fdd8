package report_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/report"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

// found trains a GraphSAGE, logs the share of class 1 of the validation split that it finds, and keeps the best epoch by it.
var found = gnb.Program("report.found", func(w *gnb.Worker, epochs int) error {
	ds := w.Dataset()
	val, err := ds.Split("val")
	if err != nil {
		return err
	}
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	opt := w.Adam(net, 0.01)
	w.BestBy(net, gnb.Best{By: "val_recall"})
	for range w.Epochs(epochs) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 5}, Batch: 256}) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		report.Outputs(w, net, func(logits *dataset.Matrix) {
			right, all, sum := 0.0, 0.0, 0.0
			for _, v := range val {
				if ds.Labels[v] == 1 {
					all++
					if nn.Argmax(logits.Row(int(v))) == 1 {
						right++
					}
				}
			}
			for _, x := range logits.F32 {
				sum += float64(x)
			}
			w.Log("val_recall", right/all)
			w.Log("sum", sum)
		})
	}
	return nil
})

// The logits within a program are those of gnb.Infer with the same weights, on one worker and on two, of dense and of sparse
// features.
func TestOutputs(t *testing.T) {
	dense, err := gnb.Load(t.Context(), "planted?nodes=600&features=8&classes=3")
	if err != nil {
		t.Fatal(err)
	}
	thin := *dense
	thin.Features, thin.SparseFeatures = nil, sparseOf(dense.Features)
	var sums []float64
	for name, ds := range map[string]*gnb.Dataset{"dense": dense, "sparse": &thin} {
		for _, workers := range []int{1, 2} {
			run, err := gnb.Launch(t.Context(), found, 3, gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 2 / workers, Threads: 1, Quiet: true, RunDir: filepath.Join(t.TempDir(), "run")})
			if err != nil {
				t.Fatal(err)
			}
			out, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
			if err != nil {
				t.Fatal(err)
			}
			logits, err := out.Logits()
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, x := range logits.F32 {
				sum += float64(x)
			}
			if run.Value("sum") != sum || !(run.Value("val_recall") > 0) {
				t.Errorf("%s, %d workers: the logits of the best epoch add up to %v in the program and to %v in gnb.Infer; recall %v", name, workers, run.Value("sum"), sum, run.Value("val_recall"))
			}
			sums = append(sums, sum)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(sums)))) > 2 {
		t.Errorf("workers change the logits: %v", sums)
	}
}

// sparseOf returns the features without zeros.
func sparseOf(m *dataset.Matrix) *dataset.Sparse {
	s := &dataset.Sparse{Rows: m.Rows, Cols: m.Cols, Indptr: []int64{0}}
	for v := range m.Rows {
		for c, x := range m.Row(v) {
			if x != 0 {
				s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, x)
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	return s
}

// A loop of one's own measures what the library does not, and keeps the epoch that is best by it.
func ExampleOutputs() {
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=600&features=8&classes=3"))
	run := gnb.Must(gnb.Launch(ctx, found, 2, gnb.LaunchOptions{Data: ds, Quiet: true})) // found calls Outputs after each epoch
	fmt.Println(run.Value("val_recall") > 0.1)
	// Output: true
}
