package gnb_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A step over the whole graph has the same bits for any number of workers, its run resumes, and the exact evaluation is that
// of gnb.Infer, for each model in the arrangement of the strong baselines.
func TestTrainFullGraph(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	t.Parallel()
	ds := load(t, scheduleSet)
	for _, m := range []gnb.AnyModel{gnb.SAGE, gnb.GCN, gnb.GAT, gnb.GATv2, gnb.GIN} {
		o := gnb.TrainOptions{
			FullGraph:        true,
			ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.3, Layers: 3, Norm: "layer", Residual: true, Arrangement: "strong", PreLinear: true, JK: "sum"},
			OptimizerOptions: gnb.OptimizerOptions{Epochs: 12, LR: 0.02}, LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 1, CheckpointEvery: -1, Quiet: true, Resume: gnb.Never},
		}
		run := func(o gnb.TrainOptions) *runs.Run {
			o.RunDir = t.TempDir()
			r, err := gnb.Train(t.Context(), ds, m, o)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		one := run(o)
		o.Workers = 2
		sameRun(t, one, run(o))
		half := o
		half.Workers, half.Epochs, half.CheckpointEvery = 1, 5, 2
		begun := run(half)
		half.Epochs, half.RunDir, half.Resume, half.ResumeChanged = 12, "", begun.Dir, true
		resumed, err := gnb.Train(t.Context(), ds, m, half)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(weights(t, one), weights(t, resumed)) {
			t.Errorf("%s: a run that resumed after 5 of 12 epochs has other weights", m.Name())
		}
		if one.Result.Steps != 12 {
			t.Errorf("%s: %d steps of 12 epochs", m.Name(), one.Result.Steps)
		}
		r, err := gnb.Infer(t.Context(), one, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := accuracyOn(t, ds, r, "val"), one.Value("val_accuracy"); got != want || !(got > 0.4) {
			t.Errorf("%s: the accuracy is %v by gnb.Infer, and the run says %v", m.Name(), got, want)
		}
	}
	for want, o := range map[string]gnb.TrainOptions{
		"Fanouts.* take":       {FullGraph: true, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 5}}},
		"Batch is 7":           {FullGraph: true, OptimizerOptions: gnb.OptimizerOptions{Batch: 7}},
		"Accumulate":           {FullGraph: true, OptimizerOptions: gnb.OptimizerOptions{Accumulate: 2}},
		"sampled.*FullGraph":   {FullGraph: true, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}},
		"own.*Arrangement":     {ModelOptions: gnb.ModelOptions{Arrangement: "weak"}},
		"there is no recipe":   {Recipe: "nobody"},
		"settings for.*is mlp": {Recipe: "cora"},
	} {
		if strings.HasPrefix(want, "own") {
			want = `Arrangement is "weak"`
		}
		o.Quiet, o.RunDir = true, t.TempDir()
		_, err := gnb.Train(t.Context(), ds, gnb.MLP, o)
		readable(t, err, want)
	}
}

// A recipe fills in what is not given, the run records what it chose, and applying it to the record changes nothing.
func TestRecipe(t *testing.T) {
	t.Parallel()
	ds := load(t, scheduleSet)
	r, err := gnb.RecipeFor(ds, nil, "strong")
	if err != nil || r.Model != "gcn" || r.Options.Arrangement != "strong" || r.Options.Epochs < 100 || !strings.Contains(r.String(), "because of") {
		t.Fatalf("%v, %v", r, err)
	}
	o := gnb.TrainOptions{Recipe: "strong", ModelOptions: gnb.ModelOptions{Hidden: 8}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 3}}
	recorded, err := o.Recorded(ds, gnb.SAGE)
	if err != nil {
		t.Fatal(err)
	}
	var had gnb.TrainOptions
	if err := json.Unmarshal(recorded, &had); err != nil {
		t.Fatal(err)
	}
	if had.Hidden != 8 || had.Epochs != 3 || had.Recipe != "strong" || had.Arrangement != "strong" || had.LR != r.Options.LR || had.Layers != r.Options.Layers || !had.FullGraph || !strings.Contains(had.Chosen, "because of 600 nodes") {
		t.Errorf("recorded are %s", recorded)
	}
	if again, err := had.Recorded(ds, gnb.SAGE); err != nil || string(again) != string(recorded) {
		t.Errorf("recorded again are %s, %v; want %s", again, err, recorded)
	}
	if _, _, err := o.Loader(ds); err == nil || !strings.Contains(err.Error(), "Worker.FullGraph") {
		t.Errorf("a Loader of steps over the whole graph: %v", err)
	}
	o.Fanouts = []int{5, 5}
	if l, sizes, err := o.Loader(ds); err != nil || sizes.Layers != 2 || sizes.Arrangement != "strong" || len(l.Fanouts) != 2 || l.Fanouts[0] != 5 {
		t.Errorf("with fanouts: %+v %+v, %v", l, sizes, err)
	}
	if _, err := gnb.RecipeFor(ds, gnb.HGT, "strong"); err == nil || !strings.Contains(err.Error(), "rgcn") {
		t.Errorf("for hgt: %v", err)
	}
	hint := gnb.TrainOptions{}.RecipeHint(ds, "sage")
	if !strings.Contains(hint, "--recipe strong") {
		t.Errorf("the hint is %q", hint)
	}
	for _, o := range []gnb.TrainOptions{{Recipe: "strong"}, {ModelOptions: gnb.ModelOptions{Norm: "layer"}}, {SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3}}}} {
		if hint := o.RecipeHint(ds, "sage"); hint != "" {
			t.Errorf("a run with %+v gets the hint %q", o, hint)
		}
	}
}
