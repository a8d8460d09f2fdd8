package gnb_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/safetensors"
)

// A hidden layer's rows are what the last layer reads: GraphSAGE's formula applied to them by hand gives the logits. The
// number of workers changes no bit, nor does a division into parts.
func TestInferHiddenLayer(t *testing.T) {
	ds := load(t, smallSet)
	run := train(t, ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 3}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2}, ModelOptions: gnb.ModelOptions{Hidden: 12, Dropout: 0.5, Layers: 2}})
	infer := func(ds *gnb.Dataset, o gnb.InferOptions) (gnb.InferResult, *dataset.Matrix) {
		t.Helper()
		o.Quiet, o.Threads = true, 1
		r, err := gnb.Infer(t.Context(), run, ds, filepath.Join(t.TempDir(), "out.npy"), o)
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.Logits()
		if err != nil {
			t.Fatal(err)
		}
		return r, m
	}
	last, logits := infer(ds, gnb.InferOptions{Workers: 1})
	r, hidden := infer(ds, gnb.InferOptions{Workers: 1, Layer: 1})
	if hidden.Rows != ds.Nodes() || hidden.Cols != 12 || !math.IsNaN(r.Value) || math.IsNaN(last.Value) {
		t.Fatalf("the hidden layer is %d × %d with metric %v; the logits have %v", hidden.Rows, hidden.Cols, r.Value, last.Value)
	}
	ts, _, err := safetensors.ReadFile(run.BestWeights())
	if err != nil {
		t.Fatal(err)
	}
	w := map[string]safetensors.Tensor{}
	for _, x := range ts {
		w[x.Name] = x
	}
	neigh, bias, self := w["convs.1.lin_l.weight"], w["convs.1.lin_l.bias"], w["convs.1.lin_r.weight"]
	for v := range int32(ds.Nodes()) {
		mean := make([]float64, hidden.Cols)
		sources := ds.Graph.InNeighbors(v)
		for _, u := range sources {
			for c, x := range hidden.Row(int(u)) {
				mean[c] += float64(x) / float64(len(sources))
			}
		}
		for k, got := range logits.Row(int(v)) {
			want := float64(bias.F32[k])
			for c, x := range hidden.Row(int(v)) {
				want += float64(neigh.F32[k*hidden.Cols+c])*mean[c] + float64(self.F32[k*hidden.Cols+c])*float64(x)
			}
			if math.Abs(float64(got)-want) > 1e-4*(1+math.Abs(want)) {
				t.Fatalf("node %d, class %d: the last layer of the hidden rows is %v, and the logit %v", v, k, want, got)
			}
		}
	}
	if _, two := infer(ds, gnb.InferOptions{Workers: 2, Layer: 1}); !slices.Equal(two.F32, hidden.F32) {
		t.Error("two workers computed another hidden layer than one")
	}
	if _, parts := infer(divideWell(t, ds, 2, divided.Options{}), gnb.InferOptions{Workers: 2, Layer: 1}); !slices.Equal(parts.F32, hidden.F32) {
		t.Error("two parts give another hidden layer than the undivided dataset")
	}
	if r, same := infer(ds, gnb.InferOptions{Workers: 1, Layer: 2}); !slices.Equal(same.F32, logits.F32) || r.Value != last.Value {
		t.Error("layer 2 of two is not the logits")
	}
	for layer, want := range map[int]string{-1: "InferOptions.Layer is -1", 3: "has the layers 1 to 2"} {
		out := filepath.Join(t.TempDir(), "out.npy")
		if _, err := gnb.Infer(t.Context(), run, ds, out, gnb.InferOptions{Layer: layer, Quiet: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("layer %d: error %v, want %q", layer, err, want)
		}
	}
}
