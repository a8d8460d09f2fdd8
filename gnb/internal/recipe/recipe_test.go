package recipe

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/internal/launch"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
)

// A recipe becomes settings, and they become the same recipe.
func TestSettingsOfARecipe(t *testing.T) {
	ds := dataset.Karate()
	for name, s := range map[string]Settings{
		"zero": {},
		"none": {Dropout: optim.None, Epochs: optim.None, LR: optim.None},
		"all": {
			Layers: 3, Hidden: 32, Dropout: 0.25, InputDropout: 0.1, Heads: 2, OutHeads: 1, Bases: 3, Norm: "layer", JK: "max", Residual: true, BatchDegrees: true,
			Fanouts: []int{5, -1, 0}, Sampler: "labor", BatchDependency: 4, LayerDependency: true, Batch: 17, Accumulate: 3, Epochs: 3, LR: 0.1, Schedule: optim.Cosine(0).After(1),
			Optimizer: "adamw", Groups: []optim.Group{{Match: "convs.0", LR: 0.2}}, Average: optim.EMA(0.9), WeightDecay: 1e-4, ClipNorm: 2, ClassWeights: make([]float32, ds.Classes()), LabelSmoothing: 0.1,
			Eval: "sampled", EvalEvery: 2, EvalBatches: 5, BestBy: "loss", Patience: 7, WatchTest: true, Digest: true,
		},
		"embedding": {Embedding: 8, BatchPerWorker: 9, OwnLoss: "mine"},
	} {
		for i := range s.ClassWeights {
			s.ClassWeights[i] = 1
		}
		a, err := s.Recipe(ds, "sage")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var read Recipe
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		again, err := read.Settings(runs.Config{VirtualRanks: s.Virtual()}).Recipe(ds, "sage")
		if err != nil || !reflect.DeepEqual(again, read) {
			t.Errorf("%s: %v\n%+v\n%+v", name, err, again, read)
		}
	}
}

// Each setting that a recipe cannot follow is refused by its name.
func TestRefused(t *testing.T) {
	ds := dataset.Karate()
	for want, s := range map[string]Settings{
		"Hidden":                                 {Hidden: -1},
		"Dropout":                                {Dropout: 1.5},
		`Norm is "group"`:                        {Norm: "group"},
		"ClassWeights and LabelSmoothing are of": {LabelSmoothing: 0.1, OwnLoss: "mine"},
		`JK is "mean"`:                           {JK: "mean"},
		`Eval is "some"`:                         {Eval: "some"},
		`BestBy is "luck"`:                       {BestBy: "luck"},
		"2 layers and 1 fanouts":                 {Layers: 2, Fanouts: []int{3}},
		"BatchPerWorker (3), not both":           {Batch: 2, BatchPerWorker: 3},
		"embeddings train on CPUs":               {Embedding: 4, Device: "cuda"},
		"64 hidden columns":                      {Heads: 5},
		"Accumulate is -2":                       {Accumulate: -2},
		"Accumulate adds up batches":             {Accumulate: 2, Cooperative: true},
		`group "a" has the LR`:                   {LR: optim.None, Groups: []optim.Group{{Match: "a", LR: 1}}},
		"an average of weights begins":           {Epochs: 3, Average: optim.SWA(3)},
		`Optimizer is "sgd"`:                     {Optimizer: "sgd"},
		"plateau":                                {Schedule: optim.Plateau(2, 0.5, 0), Eval: "none"},
	} {
		if _, err := s.Recipe(ds, "sage"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, s := range map[string]Settings{
		"ClassWeights": {ClassWeights: []float32{1}}, "LabelSmoothing": {LabelSmoothing: 0.1}, "WatchTest": {WatchTest: true}, "OwnLoss": {OwnLoss: "mine"},
	} {
		if err := s.OnlyTrain(); err == nil || !strings.Contains(err.Error(), want+" is an option of gnb.Train") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := (Settings{Optimizer: "adam"}).OnlyTrain(); err != nil {
		t.Error(err)
	}
}

// A run whose learned rows exceed any memory is refused before it starts; models of others are not made.
func TestFits(t *testing.T) {
	ds := dataset.Karate()
	r := launch.Resolved{Settings: launch.Settings{Data: ds, Workers: 1, VirtualRanks: 1, Threads: 1}}
	never := func(model string) func(nn.ModelConfig) nn.Model {
		if model != "mine" {
			t.Errorf("asked for the model %q", model)
		}
		return nil
	}
	for name, c := range map[string]struct {
		a    Recipe
		want string
	}{
		"small": {Recipe{Model: "mine", Sizes: nn.ModelConfig{In: 34, Hidden: 8, Out: 4, Layers: 2}}, ""},
		"rows":  {Recipe{Model: "mine", Sizes: nn.ModelConfig{Embedding: true, In: 1 << 50}}, FewerColumns},
	} {
		raw, err := json.Marshal(c.a)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Fits(context.Background(), raw, r, never)
		if got := err == nil; got != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Fits(context.Background(), []byte("{"), r, never); err == nil {
		t.Error("a damaged recipe fits")
	}
}
