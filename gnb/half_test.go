package gnb_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Training (sampled and full) and evaluation with float16 features have the bits of the same
// features in float32, for every kind of layer that reads features in its own way.
func TestFloat16FeaturesAreThoseConverted(t *testing.T) {
	testneed.NotShort(t, "it converts and trains several times")
	made, err := datasets.Load("planted?nodes=1500&features=37")
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{}
	for _, kind := range []string{"f16", "f32"} {
		dirs[kind] = filepath.Join(t.TempDir(), kind)
		d := made
		if kind == "f32" { // writes the rounded numbers as float32
			h, err := made.Features.Float16()
			if err != nil {
				t.Fatal(err)
			}
			wide := *made
			wide.Features = h.Float32()
			d = &wide
		}
		if err := dataset.WriteWith(t.Context(), dirs[kind], d, dataset.WriteOptions{FeatureType: kind}); err != nil {
			t.Fatal(err)
		}
	}
	models := []struct {
		name  string
		train func(ds *gnb.Dataset, o gnb.TrainOptions) (*runs.Run, error)
	}{
		{"sage", func(ds *gnb.Dataset, o gnb.TrainOptions) (*runs.Run, error) {
			return gnb.Train(t.Context(), ds, gnb.SAGE, o)
		}},
		{"gcn", func(ds *gnb.Dataset, o gnb.TrainOptions) (*runs.Run, error) {
			return gnb.Train(t.Context(), ds, gnb.GCN, o)
		}},
		{"gat", func(ds *gnb.Dataset, o gnb.TrainOptions) (*runs.Run, error) {
			return gnb.Train(t.Context(), ds, gnb.GAT, o)
		}},
		{"mlp", func(ds *gnb.Dataset, o gnb.TrainOptions) (*runs.Run, error) {
			return gnb.Train(t.Context(), ds, gnb.MLP, o)
		}},
	}
	for name, o := range map[string]gnb.TrainOptions{
		"sampled":     {SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 3}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 400}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
		"two workers": {LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{-1, -1}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 500}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}},
	} {
		for _, m := range models {
			t.Run(m.name+", "+name, func(t *testing.T) {
				o.Epochs, o.Seed, o.Hidden, o.Quiet, o.Resume = 2, 3, 16, true, gnb.Never
				var want []byte
				for _, kind := range []string{"f32", "f16"} {
					ds := load(t, dirs[kind])
					defer ds.Close()
					if ds.Features.Half() != (kind == "f16") {
						t.Fatalf("%s is %s", kind, ds)
					}
					o.RunDir = t.TempDir()
					run, err := m.train(ds, o)
					if err != nil {
						t.Fatal(err)
					}
					metrics := fmt.Sprint(run.Result.Loss, run.Result.Values["train_accuracy"], run.Result.Values["val_accuracy"], run.Result.Values["test_accuracy"])
					got := append(weights(t, run), metrics...)
					if want == nil {
						want = got
					} else if !bytes.Equal(got, want) {
						t.Errorf("weights or results differ from those of float32: %s", metrics)
					}
				}
			})
		}
	}
}
