//go:build cuda && linux && cgo

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Losses have the same bits wherever a dataset is placed, and the run prints the places. If neither
// the device nor pinned memory has room, rows and blocks are copied for each batch.
func TestPlaces(t *testing.T) {
	testneed.NotShort(t, "it trains seven times on the interpreter")
	ds := load(t, "planted?nodes=900&classes=4&features=64&degree=5") // 225 KB of features, 25 KB of graph
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{2, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 20, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Device: "cuda"}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}}
	var want []float64
	for _, c := range []struct {
		name   string
		gpus   int
		env    map[string]string
		says   []string
		staged bool // features are copied for each batch
	}{
		{"device", 1, nil, []string{"the graph (25.0 KiB) on the device; features of 900 nodes (225 KiB) on the device"}, false},
		{"cached", 1, map[string]string{"GNB_CUDA_FEATURES": "cached", "GNB_CUDA_MEMORY": "400KB"}, []string{"the others in pinned host memory"}, false},
		{"pinned", 1, map[string]string{"GNB_CUDA_FEATURES": "pinned", "GNB_CUDA_GRAPH": "pinned"}, []string{"the graph (25.0 KiB) in pinned host memory", "features of 900 nodes (225 KiB) in pinned host memory"}, false},
		{"features staged", 1, map[string]string{"GNB_CUDA_FEATURES": "staged"}, []string{"the graph (25.0 KiB) on the device", "in host memory, each batch's rows copied to the device;"}, true},
		{"graph staged", 1, map[string]string{"GNB_CUDA_GRAPH": "staged"}, []string{"the graph (25.0 KiB) in host memory, sampled by the CPU; features of 900 nodes (225 KiB) on the device"}, false},
		{"no room", 1, map[string]string{"GNB_CUDA_MEMORY": "400KB", "GNB_CUDA_PINNED": "20KB"}, []string{
			"the graph (25.0 KiB) on the device", "each batch's rows copied to the device (pinning 225 KiB of host memory: out of memory; GNB_CUDA_PINNED=20.0 KiB leaves 20.0 KiB)",
		}, true},
		{"no room for anything", 1, map[string]string{"GNB_CUDA_MEMORY": "400KB", "GNB_CUDA_GRAPH": "staged", "GNB_CUDA_PINNED": "1KB"}, []string{"sampled by the CPU", "each batch's rows copied"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := cluster(t, c.gpus, machine{})
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, text, err := train(t, ds, o)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("losses %v, want those with all data on the device, %v", got, want)
			}
			for _, part := range c.says {
				if !strings.Contains(text, part) {
					t.Errorf("the run does not say %q:\n%s", part, text)
				}
			}
			for _, line := range devices(t, log) {
				if strings.Contains(line, " slots_i32=") != c.staged || !strings.Contains(line, " 0 left behind") {
					t.Error(line)
				}
			}
		})
	}
}

// Staged features give the same losses in everything that reads them: several ranks and virtual
// ranks, evaluation with all neighbours and by sampling, and models of each kind. Layer-wise
// evaluation runs on the CPU then, and the run says so.
func TestStagedFeatures(t *testing.T) {
	testneed.NotShort(t, "it trains four times on the interpreter")
	ds := load(t, "planted?nodes=300&classes=4&features=9&degree=4")
	for name, c := range map[string]struct {
		model gnb.AnyModel
		gpus  int
		o     gnb.TrainOptions
		says  string
	}{
		"ranks, layer-wise": {gnb.SAGE, 2, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{VirtualRanks: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, "layer-wise evaluation runs on the CPU: the device reads no features but a batch's"},
		"gat":               {gnb.GAT, 1, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 2, Dropout: 0.5}, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}}, ""},
		"mlp":               {gnb.MLP, 1, gnb.TrainOptions{EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, ""},
		"gcn":               {gnb.GCN, 1, gnb.TrainOptions{EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			o.Hidden, o.Fanouts, o.Batch, o.Epochs = 8, []int{3, 2}, 40, 2
			var all [2][]float64
			for i, place := range []string{"device", "staged"} {
				cluster(t, c.gpus, machine{})
				t.Setenv("GNB_CUDA_FEATURES", place)
				t.Setenv("GNB_CUDA_GRAPH", place)
				var text string
				p := o
				p.Device, p.Quiet, p.Resume = "cuda", true, gnb.Never
				p.Events = func(e runs.Event) {
					if e.Kind == "epoch" {
						all[i] = append(all[i], e.Loss)
					}
					text += e.Text
				}
				if _, err := gnb.Train(t.Context(), ds, c.model, p); err != nil {
					t.Fatal(err)
				}
				if place == "staged" && !strings.Contains(text, c.says) {
					t.Errorf("the run does not say %q:\n%s", c.says, text)
				}
			}
			if len(all[0]) != 2 || !slices.Equal(all[0], all[1]) {
				t.Errorf("losses %v, want those with all data on the device, %v", all[1], all[0])
			}
		})
	}
}

// broken evaluates within a loop over batches and breaks off the loop, in two epochs.
var broken = gnb.Program("e2e.broken", func(w *gnb.Worker, _ int) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 4, Out: w.Dataset().Classes(), Layers: 2})
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 2}, Batch: 8}) {
			out := net.Forward(b)
			w.Evaluate(net, gnb.Sampled([]int{2, 2}, 20, 2), "val")
			w.Result("loss", b.Loss(out).Mean())
			if b.Step%2 == 1 {
				break
			}
		}
	}
	return nil
})

func TestStagedLoopsWithinLoops(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "planted?nodes=300&classes=4&features=9&degree=4")
	var loss [2]float64
	for i, place := range []string{"device", "staged"} {
		cluster(t, 1, machine{})
		t.Setenv("GNB_CUDA_FEATURES", place)
		run, err := gnb.Launch(t.Context(), broken, 0, gnb.LaunchOptions{Data: ds, Device: "cuda", Quiet: true, Resume: gnb.Never})
		if err != nil {
			t.Fatal(err)
		}
		loss[i] = run.Value("loss")
	}
	if !(loss[0] > 0) || loss[0] != loss[1] {
		t.Errorf("loss %v, want that with all data on the device, %v", loss[1], loss[0])
	}
	_, err := gnb.Launch(t.Context(), whole, 2, gnb.LaunchOptions{Data: ds, Device: "cuda", Quiet: true, Resume: gnb.Never})
	if err == nil || !strings.Contains(err.Error(), "full-graph training reads the features of all nodes in every step") {
		t.Errorf("%v", err)
	}
}

// Layer-wise evaluation over pinned features gathers the rows that a rank's nodes reach, and gives
// the same metrics as with features on the device.
func TestEvaluationOverPinnedFeatures(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "planted?nodes=900&classes=4&features=8&degree=6")
	var want *runs.Run
	for _, place := range []string{"device", "pinned"} {
		log := cluster(t, 2, machine{})
		t.Setenv("GNB_CUDA_FEATURES", place)
		o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 60, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Device: "cuda", Quiet: true, Resume: gnb.Never}}
		run, err := gnb.Train(t.Context(), ds, gnb.SAGE, o)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = run
		}
		for _, name := range []string{"val_accuracy", "test_accuracy"} {
			if got := run.Value(name); got != want.Value(name) {
				t.Errorf("%s: %s is %v, with features on the device %v", place, name, got, want.Value(name))
			}
		}
		for _, line := range devices(t, log) {
			if strings.Contains(line, " distinct_local=") != (place == "pinned") {
				t.Errorf("%s: %s", place, line)
			}
		}
	}
}

// With features in pinned memory, the copy stream gathers the rows of each batch but the first ones, sampled and used for
// training or for evaluation, and no kernel gathers them again; losses and metrics have the same bits as with features on the
// device.
func TestGatheredOneBatchAhead(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "planted?nodes=600&classes=4&features=8&degree=12")
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{6, 6}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 60, Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Device: "cuda", Quiet: true, Resume: gnb.Never}, EvaluationOptions: gnb.EvaluationOptions{Eval: "sampled"}}
	var want []float64
	var wantRun *runs.Run
	batches := 0 // the destinations' rows of each are gathered from features on the device
	for _, place := range []string{"device", "pinned", "cached"} {
		trace := filepath.Join(t.TempDir(), "trace")
		cluster(t, 1, machine{})
		t.Setenv("GNB_CUDA_FEATURES", place)
		t.Setenv("GNB_CUDA_TRACE", trace)
		losses, _, run, err := trained(t, ds, gnb.SAGE, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		ahead, here := strings.Count(string(b), "launch copy gather_"), strings.Count(string(b), "launch compute gather_")
		if want == nil {
			want, wantRun, batches = losses, run, here
		}
		if !slices.Equal(losses, want) {
			t.Errorf("%s: losses %v, with features on the device %v", place, losses, want)
		}
		for _, name := range []string{"val_accuracy", "test_accuracy"} {
			if got := run.Value(name); got != wantRun.Value(name) {
				t.Errorf("%s: %s is %v, with features on the device %v", place, name, got, wantRun.Value(name))
			}
		}
		if place == "device" && ahead > 0 || place != "device" && (ahead == 0 || ahead+here != batches) {
			t.Errorf("%s: of %d batches the rows of %d are gathered ahead, and of %d by the backend", place, batches, ahead, here)
		}
	}
}
