package gnb_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Workers that request edges from each other sample what one worker samples from the whole graph,
// although their own files hold only parts of it.
func TestSampleDividedTopology(t *testing.T) {
	testneed.Raced(t, "it samples several epochs")
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 4000, Features: 4, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	o := gnb.SampleOptions{Fanouts: []int{6, 4, 3}, Batch: 250, Seed: 5, Workers: 1, Quiet: true, Device: "cpu"}
	want, err := gnb.Sample(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	whole, bare := dividedtest.Parts(t, ds, divided.Options{}), dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	for name, c := range map[string]struct {
		ds       *gnb.Dataset
		topology string
		workers  int
	}{
		"replicated": {whole, "", 2}, "1 worker": {whole, "divided", 1}, "2 workers": {whole, "divided", 2}, "4 workers": {bare, "", 4},
	} {
		o.Topology, o.Workers = c.topology, c.workers
		got, err := gnb.Sample(t.Context(), c.ds, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Digest != want.Digest || got.UniqueEdges != want.Edges || got.UniqueNodes != want.Nodes {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if moved := name == "2 workers" || name == "4 workers"; got.MovedBytes > 0 != moved {
			t.Errorf("%s: %d bytes moved", name, got.MovedBytes)
		}
	}
	for _, c := range []struct {
		ds       *gnb.Dataset
		topology string
		want     string
	}{
		{ds, "divided", "is not divided into parts"}, {whole, "half", `Topology is "half"`}, {bare, "replicated", "was divided without its topology"},
	} {
		o.Topology = c.topology
		if _, err := gnb.Sample(t.Context(), c.ds, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A plan predicts the messages of a divided topology from the batches of the run.
func TestPlannedMessages(t *testing.T) {
	testneed.NotShort(t, "it samples an epoch")
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 4000, Features: 4, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	parts := dividedtest.Parts(t, ds, divided.Options{})
	fanouts, batch, seed := []int{6, 4, 3}, 250, uint64(5)
	p, err := gnb.Plan(t.Context(), parts, gnb.SAGE, gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: fanouts}, OptimizerOptions: gnb.OptimizerOptions{Batch: batch}, LaunchOptions: gnb.LaunchOptions{Seed: seed, Workers: 2, PlaneOptions: gnb.PlaneOptions{Topology: "divided"}, Quiet: true}, ModelOptions: gnb.ModelOptions{Hidden: 4, Dropout: 0.5}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := gnb.Sample(t.Context(), parts, gnb.SampleOptions{Fanouts: fanouts, Batch: batch, Seed: seed, Workers: 2, Topology: "divided", Quiet: true, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	planned, messages := 0.0, 0
	for _, h := range p.Hops {
		planned += float64(h.Asked + h.Answered)
		messages += h.Messages
	}
	planned *= float64(got.Batches * 2 * p.Virtual)
	if messages != 2*3 || math.Abs(planned-float64(got.MovedBytes)) > 0.03*planned {
		t.Errorf("%.0f bytes and %d messages of a share are planned, and %d bytes moved", planned, messages, got.MovedBytes)
	}
	t.Logf("%.0f bytes planned, %d moved", planned, got.MovedBytes)
}

// Training with features of edges has the same bits on parts for each number of workers and where the edges
// are: on the whole graph, in the parts, and in parts without the whole graph. It has the digest and the losses
// of training on the undivided dataset, and the features of edges matter.
func TestTrainEdgeFeaturesOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1200, Features: 8, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	edges := func(ds gnb.Dataset, by int) *gnb.Dataset {
		x, times := &graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 3*ds.Edges())}, make([]int64, ds.Edges())
		for i := range x.F32 {
			x.F32[i] = float32(i*by%31) / 31
			times[i/3] = int64(i % 101)
		}
		ds.Graph = ds.Graph.WithEdgeData(x, times)
		return &ds
	}
	with, other := edges(*ds, 7), edges(*ds, 11)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Threads: 1, Seed: 6, Device: "cpu"}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5, Heads: 2}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}, Digest: true}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}}
	train := func(ds *gnb.Dataset, topology string, workers, virtual int) (*runs.Run, []float64) {
		o.Topology, o.Workers, o.VirtualRanks = topology, workers, virtual
		run := trainModel(t, ds, gnb.GATv2, o)
		losses, err := run.Losses()
		if err != nil || len(losses) == 0 {
			t.Fatal(len(losses), err)
		}
		return run, losses
	}
	want, wanted := train(with, "", 1, 4)
	if _, l := train(other, "", 1, 4); slices.Equal(l, wanted) {
		t.Error("the features of edges change no loss")
	}
	whole, bare := dividedtest.Parts(t, with, divided.Options{}), dividedtest.Parts(t, with, divided.Options{NoTopology: true})
	var first []byte
	for _, c := range []struct {
		name     string
		ds       *gnb.Dataset
		topology string
		workers  int
	}{
		{"replicated, 2 workers", whole, "replicated", 2},
		{"divided, 2 workers", whole, "divided", 2},
		{"replicated, 1 worker", whole, "replicated", 1},
		{"replicated, 4 workers", whole, "replicated", 4},
		{"divided, 1 worker", whole, "divided", 1},
		{"divided, 4 workers", whole, "divided", 4},
		{"no topology, 1 worker", bare, "", 1},
		{"no topology, 2 workers", bare, "", 2},
		{"no topology, 4 workers", bare, "", 4},
	} {
		if first != nil && c.topology != "divided" && testing.Short() {
			continue
		}
		run, losses := train(c.ds, c.topology, c.workers, 0)
		if a, b := run.Result.Text["digest"], want.Result.Text["digest"]; a != b || a == "" {
			t.Errorf("%s: the digest is %q, that of the undivided dataset is %q", c.name, a, b)
		}
		if got := weights(t, run); first == nil {
			first = got
		} else if !bytes.Equal(got, first) {
			t.Errorf("%s: other weights than with a replicated topology and 2 workers", c.name)
		}
		for i, l := range losses {
			if d := math.Abs(l - wanted[i]); !(d <= 1e-5*math.Abs(wanted[i])) {
				t.Errorf("%s, step %d: the loss is %v, on the undivided dataset %v", c.name, i, l, wanted[i])
			}
		}
	}
}

// Training that requests edges from other workers has, to the bit, the weights of training that
// maps the whole graph, and its digest. The model reads edge weights and degrees of the whole
// graph.
func TestTrainDividedTopology(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 2000, Features: 8, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float32, ds.Edges())
	for i := range w {
		w[i] = float32(1+i%5) / 4
	}
	ds.Graph = ds.Graph.WithEdgeWeights(w)
	whole, bare := dividedtest.Parts(t, ds, divided.Options{}), dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	var first []byte
	digest := ""
	for _, c := range []struct {
		name     string
		ds       *gnb.Dataset
		topology string
		workers  int
	}{{"replicated", whole, "replicated", 2}, {"1 worker", whole, "divided", 1}, {"4 workers", bare, "divided", 4}} {
		run := trainModel(t, c.ds, gnb.GCN, gnb.TrainOptions{
			LaunchOptions: gnb.LaunchOptions{
				PlaneOptions: gnb.PlaneOptions{Topology: c.topology},
				Workers:      c.workers,
				Threads:      1,
				Seed:         6,
				Device:       "cpu",
			},
			ModelOptions:     gnb.ModelOptions{Hidden: 8, Dropout: 0.5},
			SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{4, 3}, Digest: true},
			OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2},
		})
		if got := weights(t, run); first == nil {
			first, digest = got, run.Result.Text["digest"]
		} else if !bytes.Equal(got, first) || run.Result.Text["digest"] != digest || digest == "" {
			t.Errorf("%s: the weights or the digest differ from those with the replicated topology", c.name)
		}
	}
}
