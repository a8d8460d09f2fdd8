package links_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Runs whose edges stay with the workers that own their destinations sample, predict, learn and measure what a run on the
// undivided dataset does, to the bit; each of their batches is checked for leaks. make soak tests each loader with 1, 2, 4
// and 8 workers.
func TestDivided(t *testing.T) {
	quick := map[string]int{"uniform fanouts": 2, "labor": 4, "weighted": 2, "in-batch": 4, "any pair, directed": 2, "structural": 2, "structural, disjoint, known messages": 4, "known messages, disjoint": 4}
	for _, s := range promised(linkstest.Divided) {
		workers := []int{quick[s.Name]}
		switch {
		case envknob.Soak.On():
			workers = []int{1, 2, 4, 8}
		case quick[s.Name] == 0:
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Name != "uniform fanouts" {
				testneed.NotShort(t, "it trains several times")
			}
			ds := s.Dataset(load(t, planted))
			s.Epochs = 2
			want := launched(t, "undivided", s.Setting, gnb.LaunchOptions{Data: ds, Workers: 1, VirtualRanks: 8})
			s.Asks = true
			bare := eighths(t, ds, divided.Options{NoTopology: true})
			for _, n := range workers {
				got := launched(t, "divided", s.Setting, gnb.LaunchOptions{Data: bare, Workers: n})
				what := fmt.Sprint(n, " workers")
				alike(t, what, got, want, false)
				if v := got.Value; v("checked") != want.Value("checked") || v("checked") == 0 || v("predicted") != v("train_edges") {
					t.Errorf("%s: %v batches were checked, want %v", what, v("checked"), want.Value("checked"))
				}
			}
		})
	}
}

// Planted leaks are found where the edges are divided too.
func TestPlantedLeaksOnDivided(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	bare := eighths(t, load(t, planted), divided.Options{NoTopology: true})
	for want, s := range map[string]linkstest.Setting{
		"which is an edge that the batch predicts, or the reverse of one": {KeepEdges: true}, "which is an edge of validation or test": {HeldOut: true},
	} {
		s.Asks = true
		if _, err := launch(t, s, gnb.LaunchOptions{Data: bare, Workers: 2}); err == nil || !strings.Contains(err.Error(), "a leak: the messages of layer") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a leak %q", err, want)
		}
	}
}

// Train where the edges are divided gives the run that it gives on the undivided dataset, to the bit, by each way to split,
// and so do embeddings, scores and recommendations of the trained network; also if the machines have the whole graph and the run asks all the same.
func TestTrainOnDivided(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	edges := withEdges(t)
	base := links.Options{LaunchOptions: gnb.LaunchOptions{Threads: 1, Seed: 3, Quiet: true, Device: "cpu"}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, Batch: 200}, ModelOptions: gnb.ModelOptions{Hidden: 8}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 3}, Digest: true}}
	file := edgesFile(t, edges)
	for name, o := range map[string]links.Options{
		"at random": with(base, func(o *links.Options) { o.Metric, o.KnownMessages, o.Disjoint = "recall_5", true, 0.3 }),
		"by time":   with(base, func(o *links.Options) { o.Model, o.Times = gnb.GATv2, []int64{80, 90} }),
		"given, ranked": with(base, func(o *links.Options) {
			o.Model, o.ValEdges, o.Metric, o.EvalNegatives, o.KeepSource = gnb.GCN, file, "mrr", 4, true
		}),
		"structural": with(base, func(o *links.Options) { o.Decoder, o.Negatives, o.Loss, o.Disjoint = "structural", 2, "softmax", 0.5 }),
	} {
		t.Run(name, func(t *testing.T) {
			train := func(ds *gnb.Dataset, workers, virtual int, topology string) linkFiles {
				o.Workers, o.VirtualRanks, o.RunDir, o.Topology = workers, virtual, t.TempDir(), topology
				run, err := links.Train(t.Context(), ds, o)
				if err != nil {
					t.Fatalf("%d workers on %s: %v", workers, ds.Name(), err)
				}
				return filesOf(t, run, ds, workers, o.Decoder != "structural")
			}
			want := train(edges, 1, 8, "")
			for name := range want.run.Result.Values { // recommendations of heuristics are left out
				if strings.Contains(name, "adamic") || strings.Contains(name, "common_n") || strings.Contains(name, "resource") {
					if !strings.HasSuffix(name, "_auc") {
						delete(want.run.Result.Values, name)
					}
				}
			}
			got := train(eighths(t, edges, divided.Options{NoTopology: true}), 2, 0, "")
			alike(t, "2 workers", got.run, want.run, false)
			for i, b := range got.files {
				if !bytes.Equal(b, want.files[i]) || len(b) == 0 {
					t.Errorf("file %d of inference differs", i)
				}
			}
			if name == "by time" {
				alike(t, "4 workers with the topology", train(eighths(t, edges, divided.Options{}), 4, 0, "divided").run, want.run, false)
			}
		})
	}
}

// leaving leaves the loop of its first epoch after two steps, while its workers sample later ones together.
var leaving = gnb.Program("test.links.leaving", func(w *gnb.Worker, epochs int) error {
	split, err := links.RandomSplitOf(w, links.SplitOptions{Seed: 5})
	if err != nil {
		return err
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{Loader: gnb.Loader{Fanouts: []int{4, 4}, Batch: 60}})
	net := links.New(w, gnb.SAGE, "dot", gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: 8, Layers: 2})
	opt := w.Adam(net, 0.01)
	w.Digest()
	for epoch := range w.Epochs(epochs) {
		for b := range loader.Batches() {
			w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
			if epoch == 0 && b.Step == 1 && b.EndsStep {
				break
			}
		}
		loader.Log(loader.Evaluate(net, "val"))
	}
	return nil
})

func TestLeaveOnDivided(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	run := func(o gnb.LaunchOptions) *runs.Run {
		o.Threads, o.Seed, o.RunDir, o.Quiet, o.Device = 1, 3, t.TempDir(), true, "cpu"
		r, err := gnb.Launch(t.Context(), leaving, 2, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := run(gnb.LaunchOptions{Data: ds, Workers: 1, VirtualRanks: 8})
	alike(t, "4 workers", run(gnb.LaunchOptions{Data: eighths(t, ds, divided.Options{NoTopology: true}), Workers: 4}), want, false)
}

// edgesFile writes some edges of a dataset into a file.
func edgesFile(t *testing.T, ds *gnb.Dataset) string {
	t.Helper()
	var b strings.Builder
	for v := int32(1); v < 200; v += 3 {
		if row := ds.Graph.InNeighbors(v); len(row) > 1 {
			fmt.Fprintf(&b, "%d,%d\n", row[len(row)/2], v)
		}
	}
	path := filepath.Join(t.TempDir(), "edges.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// What needs more than the neighbours of single nodes is refused in a sentence.
func TestRefusedOnDivided(t *testing.T) {
	ds := load(t, planted)
	bare, parts := eighths(t, ds, divided.Options{NoTopology: true}), eighths(t, ds, divided.Options{})
	for want, o := range map[string]links.Options{
		"to recommend nodes, the decoder structural reads":       {Decoder: "structural", EvaluationOptions: gnb.EvaluationOptions{Metric: "recall_5"}},
		"needs the Times from which on":                          {SplitBy: "time"},
		"FullGraph reads the features of all nodes in each step": {FullGraph: true},
	} {
		if _, err := links.Train(t.Context(), bare, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := links.Embed(t.Context(), bare, links.EmbedOptions{}); err == nil || !strings.Contains(err.Error(), "divided into parts without its topology") {
		t.Error(err)
	}
	if _, err := links.Embed(t.Context(), parts, links.EmbedOptions{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Topology: "divided"}}}); err == nil || !strings.Contains(err.Error(), `Topology is "divided"`) {
		t.Error(err)
	}
	testneed.NotShort(t, "it starts workers")
	for want, s := range map[string]linkstest.Setting{
		"make the split by links.RandomSplitOf": {}, "Whole needs the whole graph": {Asks: true, Whole: true}, "set LoaderOptions.Neighbours": {Asks: true, Decoder: "structural", Far: true},
	} {
		if _, err := launch(t, s, gnb.LaunchOptions{Data: parts, Workers: 1, PlaneOptions: gnb.PlaneOptions{Topology: "divided"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
