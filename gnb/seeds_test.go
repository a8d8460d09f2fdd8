package gnb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// ownSeeds trains on pairs of nodes (i, i+1) as items, and counts each item.
var ownSeeds = gnb.Program("test.own-seeds", func(w *gnb.Worker, bad string) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.01)
	w.Digest()
	seen := make([]float64, ds.Nodes()/2)
	s := gnb.Items{Count: len(seen), Of: func(_, _ int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
		for _, i := range items[lo:hi] {
			seeds.IDs = append(seeds.IDs, 2*i, 2*i+1)
		}
		if bad == "repeated" && seeds.Len() > 0 {
			seeds.IDs = append(seeds.IDs, seeds.IDs[0])
		}
		if bad == "error" {
			return seeds, nil, errors.New("no seeds today")
		}
		return seeds, hi - lo, nil
	}}
	l := gnb.Loader{Fanouts: []int{4, 3}, Batch: 50}
	switch bad {
	case "nothing":
		s.Of = nil
	case "negative":
		s.Count = -1
	case "cooperative":
		l.Cooperative = true
	}
	for range w.Epochs(2) {
		for b := range w.BatchesOf(s, l) {
			if b.Value.(int) != len(b.Items) || len(b.Seeds) != 2*len(b.Items) {
				return fmt.Errorf("a batch of %d items has %d seeds and the value %v", len(b.Items), len(b.Seeds), b.Value)
			}
			for k, i := range b.Items {
				if !slices.Equal(b.Seeds[2*k:2*k+2], []int32{2 * i, 2*i + 1}) {
					return fmt.Errorf("item %d has the seeds %v", i, b.Seeds[2*k:2*k+2])
				}
				seen[i]++
			}
			w.Step(b.Loss(net.Forward(b)), opt)
		}
	}
	w.AllReduce(seen)
	for i, n := range seen {
		if n != 2 {
			return fmt.Errorf("item %d was in %v batches of 2 epochs", i, n)
		}
	}
	return nil
})

// A program's own items are each in one batch of an epoch; digest and, with equal virtual ranks,
// weights do not depend on workers.
func TestBatchesOf(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=601&features=8&classes=3&seed=2")
	var digest, bits string
	for _, workers := range []int{1, 2, 4} {
		run, err := gnb.Launch(t.Context(), ownSeeds, "", gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 4 / workers, Threads: 1, Quiet: true, RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		d, b := run.Result.Text["digest"], string(weights(t, run))
		if workers == 1 {
			digest, bits = d, b
		}
		if d != digest || d == "" || b != bits {
			t.Errorf("%d workers have the digest %q, and one %q; equal weights: %v", workers, d, digest, b == bits)
		}
	}
	for bad, want := range map[string]string{
		"nothing": `BatchesOf needs the seeds of items, Items\.Of`, "negative": `Items\.Count is -1`, "cooperative": "BatchesOf makes no cooperative batches",
		"repeated": "occurs twice", "error": "no seeds today",
	} {
		_, err := gnb.Launch(t.Context(), ownSeeds, bad, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
		readable(t, err, want)
	}
}

type treesOptions struct {
	Batch   int
	Untimed bool
	AsOf    gnb.AsOf
	ByNodes bool  // nodes have times
	OfData  bool  // the times of the nodes of the dataset
	From    int64 // the first time of seeds
}

// trees trains on events: a node at a time, twice in each batch, and every row must belong to the past of its seed.
var trees = gnb.Program("test.trees", func(w *gnb.Worker, o treesOptions) error {
	ds := w.Dataset()
	cfg := gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: 3, Layers: 2}
	net := gnb.SAGE.New(w, cfg)
	opt := w.Adam(net, 0.01)
	w.Digest()
	hidden := 0.0
	// The last step has one item, so other ranks have none.
	events := gnb.Items{Name: "events", Count: 257, Of: func(_, _ int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
		var labels []int32
		for _, i := range items[lo:hi] {
			for range 2 {
				seeds.IDs, seeds.Times = append(seeds.IDs, 2*i), append(seeds.Times, o.From+int64(i%50))
				labels = append(labels, i%3)
			}
		}
		if o.Untimed {
			seeds.Times = nil
		}
		return seeds, labels, nil
	}}
	loader := gnb.Loader{Fanouts: []int{4, -1}, Batch: o.Batch, Disjoint: true, AsOf: o.AsOf, ProveTime: !o.Untimed}
	if o.OfData {
		loader.AsOf.NodeTimes = ds.NodeTimes
	}
	if o.ByNodes {
		loader.AsOf.NodeTimes = make([]int64, ds.Nodes())
		for v := range loader.AsOf.NodeTimes {
			loader.AsOf.NodeTimes[v] = int64(v%60) - 20
		}
	}
	for range w.Epochs(2) {
		for b := range w.BatchesOf(events, loader) {
			if len(b.Trees) != b.Inputs() || !o.Untimed && len(b.Times) != len(b.Seeds) {
				return fmt.Errorf("a batch of %d seeds and %d rows has %d times and %d trees", len(b.Seeds), b.Inputs(), len(b.Times), len(b.Trees))
			}
			for _, k := range b.Blocks {
				times := k.Times()
				for d := range k.NumDst {
					for e := k.Indptr()[d]; e < k.Indptr()[d+1]; e++ {
						if !o.Untimed && times[e] > b.Times[b.Trees[d]] {
							return fmt.Errorf("a seed of time %d sees an edge of time %d", b.Times[b.Trees[d]], times[e])
						}
						if b.Trees[k.Indices()[e]] != b.Trees[d] {
							return fmt.Errorf("an edge leads from tree %d to tree %d", b.Trees[k.Indices()[e]], b.Trees[d])
						}
						if times[e] > 40 {
							hidden++ // seen by few
						}
					}
				}
			}
			w.Step(nn.CrossEntropy(net.Forward(b), b.Value.([]int32)), opt)
		}
	}
	seen := []float64{hidden}
	w.AllReduce(seen)
	w.Result("late", seen[0])
	return nil
})

// Seeds with times see the past alone, each in a tree of its own, and the bits of a run depend neither on workers nor on
// whether edges and features are in one process, at other ranks, or on disk.
func TestTreesOfEvents(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	times := make([]int64, ds.Edges())
	for e := range times {
		times[e] = int64(e * e % 53)
	}
	ds = ds.WithGraph(ds.Graph.WithEdgeData(nil, times))
	whole, bare := dividedtest.Parts(t, ds, divided.Options{}), dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	var digest, bits string
	for _, c := range []struct {
		name    string
		ds      *gnb.Dataset
		workers int
		plane   gnb.PlaneOptions
	}{
		{"one worker", ds, 1, gnb.PlaneOptions{}},
		{"two workers", ds, 2, gnb.PlaneOptions{}},
		{"four workers", ds, 4, gnb.PlaneOptions{}},
		{"parts", whole, 2, gnb.PlaneOptions{}},
		{"edges and features of others", bare, 2, gnb.PlaneOptions{Cache: "1KB"}},
		{"features on disk", stored(t, ds, dataset.WriteOptions{}), 2, gnb.PlaneOptions{Features: "disk", Cache: "1KB", CachePolicy: "belady"}},
	} {
		run, err := gnb.Launch(t.Context(), trees, treesOptions{Batch: 64}, gnb.LaunchOptions{Data: c.ds, Workers: c.workers, VirtualRanks: 4 / c.workers, Threads: 1, Quiet: true, Seed: 3, RunDir: t.TempDir(), PlaneOptions: c.plane})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		d, b := run.Result.Text["digest"], string(weights(t, run))
		if digest == "" {
			digest, bits = d, b
			if run.Value("late") == 0 {
				t.Error("no seed has seen a late edge")
			}
		}
		if d != digest || d == "" || b != bits {
			t.Errorf("%s: the digest %q, and with one worker %q; equal weights: %v", c.name, d, digest, b == bits)
		}
		if run.Value("proved_batches") != 10 || run.Value("proved_seeds") != 2*2*257 || run.Value("hidden_edges") == 0 || !strings.Contains(run.Result.Text["proof"], "no seed saw its future: 10 batches") {
			t.Errorf("%s: %v", c.name, run.Result.Text["proof"])
		}
	}
	run, err := gnb.Launch(t.Context(), trees, treesOptions{Batch: 64, Untimed: true}, gnb.LaunchOptions{Data: ds, Quiet: true, Seed: 3, RunDir: t.TempDir()})
	if err != nil || run.Result.Text["digest"] == digest {
		t.Errorf("without times: %v, digest %v", err, run)
	}
}

// The options of seeds with times reach the sampler on whole graphs and on parts, with the same bits, and batches are proved.
func TestAsOfOptions(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	times := make([]int64, ds.Edges())
	for e := range times {
		times[e] = int64(e * e % 53)
	}
	ds = ds.WithGraph(ds.Graph.WithEdgeData(nil, times))
	whole := dividedtest.Parts(t, ds, divided.Options{})
	seen := map[string]bool{}
	for name, o := range map[string]treesOptions{
		"strictly":         {AsOf: gnb.AsOf{Strict: true}},
		"recent in window": {AsOf: gnb.AsOf{Window: 20, Strategy: sample.TakeRecent}},
		"by age, nodes":    {AsOf: gnb.AsOf{Strategy: sample.TakeByAge, HalfLife: 5}, ByNodes: true},
	} {
		o.Batch = 64
		var digest, bits string
		for i, d := range []*gnb.Dataset{ds, ds, whole} {
			workers := 1 + min(i, 1)
			run, err := gnb.Launch(t.Context(), trees, o, gnb.LaunchOptions{Data: d, Workers: workers, VirtualRanks: 4 / workers, Threads: 1, Quiet: true, Seed: 3, RunDir: t.TempDir(), PlaneOptions: gnb.PlaneOptions{Topology: []string{"", "", "divided"}[i]}})
			if err != nil {
				t.Fatalf("%s, %d workers: %v", name, workers, err)
			}
			sum, b := run.Result.Text["digest"], string(weights(t, run))
			if i == 0 {
				digest, bits = sum, b
			}
			if sum != digest || b != bits || run.Value("proved_batches") != 10 || run.Value("proved_edges") == 0 {
				t.Errorf("%s: run %d has another digest or other weights than the first, or no proof: %s", name, i, run.Result.Text["proof"])
			}
		}
		if seen[digest] {
			t.Errorf("%s has the samples of other options", name)
		}
		seen[digest] = true
	}
	for want, o := range map[string]treesOptions{
		`the strategy of seeds with times is "last"`: {AsOf: gnb.AsOf{Strategy: "last"}},
		"but the seeds have none":                    {AsOf: gnb.AsOf{Window: 3}, Untimed: true},
	} {
		_, err := gnb.Launch(t.Context(), trees, o, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
		readable(t, err, want)
	}
	// Times of nodes of the dataset reach the workers, which may not leave them out.
	timed := ds.WithGraph(ds.Graph)
	timed.NodeTimes = make([]int64, ds.Nodes())
	for v := range timed.NodeTimes {
		timed.NodeTimes[v] = int64(v%60) - 20
	}
	sums := map[bool]string{}
	for _, of := range []bool{false, true} {
		o, data := treesOptions{Batch: 64, ByNodes: !of, OfData: of}, ds
		if of {
			data = timed
		}
		run, err := gnb.Launch(t.Context(), trees, o, gnb.LaunchOptions{Data: data, Workers: 2, Quiet: true, Seed: 3, RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		sums[of] = run.Result.Text["digest"]
	}
	if sums[true] != sums[false] || sums[true] == "" {
		t.Errorf("with the times of the dataset's nodes the samples are %s, and with the same times %s", sums[true], sums[false])
	}
	_, err := gnb.Launch(t.Context(), trees, treesOptions{Batch: 64}, gnb.LaunchOptions{Data: timed, Quiet: true, RunDir: t.TempDir()})
	readable(t, err, "which would be seen before they exist; set AsOf.NodeTimes of the Loader to NodeTimes of the dataset")
	// What a proof finds ends the run.
	for e := range times {
		times[e] += 1_600_000_000
	}
	seconds := ds.WithGraph(ds.Graph.WithEdgeData(nil, times))
	for from, want := range map[int64]string{1_600_000_000: "", 1_600_000_000_000: "times in another unit: the seeds' times begin at 1600000000"} {
		_, err := gnb.Launch(t.Context(), trees, treesOptions{Batch: 64, From: from}, gnb.LaunchOptions{Data: seconds, Quiet: true, RunDir: t.TempDir()})
		if want == "" && err != nil {
			t.Error(err)
		} else if want != "" {
			readable(t, err, want)
		}
	}
	_, err = gnb.Train(t.Context(), ds, gnb.SAGE, gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{TimeWindow: 3}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}})
	readable(t, err, "this loop's seeds have no times")
}

// ownSampler trains on batches of a sampler of its own, without a loop over batches.
var ownSampler = gnb.Program("test.own-sampler", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: 3, Layers: 2})
	opt := w.Adam(net, 0.01)
	s, err := sample.New(ds.Graph, sample.Config{Picker: sample.Fanouts{4, 3}})
	if err != nil {
		return err
	}
	for step := range 4 {
		b, err := s.Sample(0, step, sample.Seeds{IDs: []int32{int32(step), 20, 40}})
		if err != nil {
			return err
		}
		w.Step(nn.CrossEntropy(net.Forward(&gnb.Batch{Batch: b}), []int32{0, 1, 2}), opt)
		b.Release()
	}
	return nil
})

// Batches of a program's own sampler train, also of a dataset without labels and splits.
func TestOwnSampler(t *testing.T) {
	ds := load(t, "planted?nodes=600&features=8&classes=3&seed=2")
	bare := &gnb.Dataset{Graph: ds.Graph, Features: ds.Features}
	bare.Meta.Name, bare.Meta.Undirected = "bare", true
	for _, d := range []*gnb.Dataset{ds, bare} {
		if _, err := gnb.Launch(t.Context(), ownSampler, 0, gnb.LaunchOptions{Data: d, Quiet: true, RunDir: t.TempDir()}); err != nil {
			t.Errorf("%s: %v", d.Name(), err)
		}
	}
}
