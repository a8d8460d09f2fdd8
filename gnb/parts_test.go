package gnb_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/partition"
	"github.com/graphnb/graphnb/internal/testneed"
)

// divideWell divides a dataset by package partition and loads the directory.
func divideWell(t *testing.T, ds *gnb.Dataset, n int, o divided.Options) *gnb.Dataset {
	t.Helper()
	p, err := partition.Divide(t.Context(), ds.Graph, n, partition.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if err := divided.Write(t.Context(), dir, ds, p.Of, n, o); err != nil {
		t.Fatal(err)
	}
	return load(t, dir)
}

// partsRun holds the results by which runs on parts are compared.
type partsRun struct {
	run     *runs.Run
	weights []byte
	logits  []byte
}

func tradivideWell(t *testing.T, ds *gnb.Dataset, o gnb.TrainOptions) partsRun {
	t.Helper()
	o.Threads, o.Seed, o.Quiet, o.RunDir, o.Digest, o.Device = 1, 3, true, t.TempDir(), true, "cpu"
	run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "logits.npy")
	if _, err := gnb.Infer(t.Context(), run, ds, out, gnb.InferOptions{Workers: o.Workers, Threads: 1, Device: "cpu", Final: true, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	logits, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return partsRun{run, weights(t, run), logits}
}

// comparePartsRuns trains on a dataset and on its division into 8 parts with 1, 2 and 4 workers,
// and with 2 workers that lack the whole graph. Each virtual rank is a part. The runs on parts have
// the same weights to the bit, and the digest and losses of the run on the undivided dataset.
func comparePartsRuns(t *testing.T, ds *gnb.Dataset, o gnb.TrainOptions) {
	t.Helper()
	parts := divideWell(t, ds, 8, divided.Options{})
	bare := divideWell(t, ds, 8, divided.Options{NoTopology: true})
	plain := o
	plain.Workers, plain.VirtualRanks = 1, 8
	whole := tradivideWell(t, ds, plain)
	var first partsRun
	for i, workers := range []int{1, 2, 4, 2} {
		o.Workers = workers
		got := tradivideWell(t, []*gnb.Dataset{parts, parts, parts, bare}[i], o)
		if i == 3 && bare.Graph != nil {
			t.Error("a worker without the topology has a graph")
		}
		if v := got.run.Config.VirtualRanks; v != 8/workers {
			t.Errorf("%d workers have %d virtual ranks each, want %d", workers, v, 8/workers)
		}
		if a, b := got.run.Result.Text["digest"], whole.run.Result.Text["digest"]; a != b || a == "" {
			t.Errorf("%d workers sampled %q, the run on the undivided dataset %q", workers, a, b)
		}
		if first.weights == nil {
			first = got
		}
		if !bytes.Equal(got.weights, first.weights) || !bytes.Equal(got.logits, first.logits) {
			t.Errorf("%d workers have other weights or outputs than 1", workers)
		}
		a, err := got.run.Losses()
		if err != nil {
			t.Fatal(err)
		}
		b, err := whole.run.Losses()
		if err != nil || len(a) != len(b) || len(a) == 0 {
			t.Fatal(len(a), len(b), err)
		}
		for i := range a {
			if d := math.Abs(a[i] - b[i]); !(d <= 1e-5*math.Abs(b[i])) {
				t.Errorf("%d workers, step %d: the loss is %v, that of the run on the undivided dataset is %v", workers, i, a[i], b[i])
			}
		}
	}
}

func TestTrainOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains a dozen times")
	ds := load(t, "planted?nodes=1500&features=12&classes=4&seed=2")
	comparePartsRuns(t, ds, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}})
}

// Learned embeddings of a dataset in parts are those of the undivided one: the same losses and, however
// the parts are divided among workers, the same bits.
func TestEmbeddingOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := featureless(t, "planted?nodes=900&classes=4&seed=2")
	comparePartsRuns(t, ds, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Embedding: 6, Dropout: 0.5, Hidden: 16}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}})
}

// Layer-wise evaluation on parts has the bits of evaluation on the whole graph, including models
// that read degrees, edge weights and attention.
func TestEvaluateOnParts(t *testing.T) {
	ds := load(t, "planted?nodes=900&features=9&classes=4&seed=3")
	weighted := *ds
	w := make([]float32, ds.Edges())
	for i := range w {
		w[i] = float32(1+i%7) / 8
	}
	weighted.Graph = ds.Graph.WithEdgeWeights(w)
	for name, c := range map[string]struct {
		ds    *gnb.Dataset
		model gnb.AnyModel
	}{"sage": {ds, gnb.SAGE}, "gcn": {ds, gnb.GCN}, "gcn with weights": {&weighted, gnb.GCN}, "gat": {ds, gnb.GAT}} {
		t.Run(name, func(t *testing.T) {
			if name != "gcn with weights" {
				testneed.NotShort(t, "another model")
			}
			run, err := gnb.Train(t.Context(), c.ds, c.model, gnb.TrainOptions{
				ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
				SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{4, 4}},
				OptimizerOptions: gnb.OptimizerOptions{Epochs: 1},
				LaunchOptions: gnb.LaunchOptions{
					Workers: 1,
					Threads: 1,
					Quiet:   true,
					RunDir:  t.TempDir(),
					Device:  "cpu",
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			parts := divideWell(t, c.ds, 4, divided.Options{})
			var files [][]byte
			var values []float64
			for i, on := range []*gnb.Dataset{c.ds, parts, parts} {
				out := filepath.Join(t.TempDir(), "logits.npy")
				r, err := gnb.Infer(t.Context(), run, on, out, gnb.InferOptions{Workers: []int{2, 1, 4}[i], Threads: 1, Device: "cpu", Quiet: true})
				if err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				files, values = append(files, b), append(values, r.Value)
			}
			if !bytes.Equal(files[0], files[1]) || !bytes.Equal(files[0], files[2]) || slices.Max(values) != slices.Min(values) {
				t.Errorf("the outputs differ; the accuracies are %v", values)
			}
		})
	}
}

// If a division does not allow a run, the error says why.
func TestPartsRefused(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=4&classes=3")
	train := func(ds *gnb.Dataset, o gnb.TrainOptions) error {
		o.Quiet, o.Threads, o.Epochs, o.RunDir = true, 1, 1, t.TempDir()
		_, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
		return err
	}
	parts := divideWell(t, ds, 4, divided.Options{})
	readable(t, train(parts, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 3}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}), `4 parts .* cannot be divided evenly among 3 workers`)
	readable(t, train(parts, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, VirtualRanks: 3}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}), `with 3 virtual ranks each`)
	if err := os.RemoveAll(dataset.PartDir(parts.Dir(), 2)); err != nil {
		t.Fatal(err)
	}
	readable(t, train(parts, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}), `part-0002 does not exist`)
}
