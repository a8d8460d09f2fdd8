package gnb_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
)

// stored writes a dataset to a directory and opens it.
func stored(t *testing.T, ds *gnb.Dataset, o dataset.WriteOptions) *gnb.Dataset {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "stored")
	if err := dataset.WriteWith(t.Context(), dir, ds, o); err != nil {
		t.Fatal(err)
	}
	return load(t, dir)
}

// trainAndInfer trains a model and computes its outputs by Infer.
func trainAndInfer(t *testing.T, ds *gnb.Dataset, name string, o gnb.TrainOptions) partsRun {
	t.Helper()
	model, err := gnb.ModelByName(name)
	if err != nil {
		t.Fatal(err)
	}
	o.Threads, o.Seed, o.Quiet, o.RunDir, o.Digest, o.Device = 1, 3, true, t.TempDir(), true, "cpu"
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "logits.npy")
	if _, err := gnb.Infer(t.Context(), run, ds, out, gnb.InferOptions{Workers: o.Workers, Threads: 1, Device: "cpu", Features: o.Features, Final: true, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	logits, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return partsRun{run, weights(t, run), logits}
}

// Runs that read features from disk have, to the bit, the samples, weights and outputs of runs that
// map them. This holds for any model, cache, prefetch, number of workers and kind of evaluation, in
// float32 and float16.
func TestTrainFromDisk(t *testing.T) {
	testneed.Raced(t, "it trains a dozen times")
	ds := load(t, "planted?nodes=3000&features=33&classes=4&seed=2")
	single, half := stored(t, ds, dataset.WriteOptions{}), stored(t, ds, dataset.WriteOptions{FeatureType: "f16"})
	type diskCase struct {
		name     string
		ds       *gnb.Dataset
		model    string
		workers  int
		cache    string
		prefetch int
		eval     string
		together bool
	}
	cases := []diskCase{
		{"default", single, "sage", 1, "", 0, "", false},
		{"no cache", single, "gcn", 2, "0", 1, "", false},
		{"everything cached", single, "gat", 1, "100%", 0, "", false},
		{"float16", half, "sage", 2, "10KB", 8, "", false},
		{"sampled evaluation", half, "gin", 1, "0.1", 3, "sampled", false},
		{"2 workers together", single, "sage", 2, "0.1", 2, "", true},
	}
	if testneed.UnderRace() {
		cases = cases[4:] // the others run the same goroutines with other models and caches
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Workers: c.workers, PlaneOptions: gnb.PlaneOptions{Features: "memory"}}, EvaluationOptions: gnb.EvaluationOptions{Eval: c.eval}, Cooperative: c.together}
			want := trainAndInfer(t, c.ds, c.model, o)
			if want.run.Result.Rows != nil {
				t.Errorf("rows of mapped features were counted: %v", want.run.Result.Rows)
			}
			o.Features, o.Cache, o.Prefetch = "disk", c.cache, c.prefetch
			got := trainAndInfer(t, c.ds, c.model, o)
			if a, b := got.run.Result.Text["digest"], want.run.Result.Text["digest"]; a != b || a == "" {
				t.Errorf("the digest is %q, want %q", a, b)
			}
			if !bytes.Equal(got.weights, want.weights) {
				t.Error("the weights differ from those with mapped features")
			}
			if !bytes.Equal(got.logits, want.logits) {
				t.Error("the outputs differ from those with mapped features")
			}
			rows := got.run.Result.Rows
			switch {
			case rows == nil || rows.Bytes == 0 || rows.Requests == 0 || rows.Seconds <= 0 || rows.Own != 0 || rows.Remote != 0:
				t.Fatalf("the rows by source are %+v", rows)
			case (rows.Cached > 0) != (c.cache != "0"), (rows.Disk > 0) != (c.cache != "100%" && c.cache != ""):
				t.Errorf("with a cache of %q the rows by source are %+v", c.cache, rows)
			}
			if s := got.run.String(); !strings.Contains(s, "B read at ") {
				t.Errorf("the run's output lacks the bytes read from disk: %s", s)
			}
		})
	}
}

// Options that are invalid for any run are refused with an error that says what to do.
func TestFeaturesRefused(t *testing.T) {
	ds := load(t, "planted?nodes=300&features=8&classes=3&seed=2")
	onDisk := stored(t, ds, dataset.WriteOptions{})
	for _, c := range []struct {
		ds   *gnb.Dataset
		o    gnb.TrainOptions
		want string
	}{
		{onDisk, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "ssd"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, `Features is "ssd"`},
		{ds, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, "are in memory; write the dataset"},
		{onDisk, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "1MB"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, `set Features to "disk"`},
		{onDisk, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk", Cache: "much"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, `Cache is "much"`},
		{onDisk, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Features: "disk", Prefetch: -1}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, "Prefetch is -1"},
	} {
		c.o.Quiet, c.o.Resume = true, gnb.Never
		model, err := gnb.ModelByName("sage")
		if err != nil {
			t.Fatal(err)
		}
		_, err = gnb.Train(context.Background(), c.ds, model, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
