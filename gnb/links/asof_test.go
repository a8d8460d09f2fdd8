package links_test

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// withTimes gives the edges of an undirected dataset times: both directions of a pair have one.
func withTimes(ds *gnb.Dataset) *gnb.Dataset {
	g := ds.Graph
	times := make([]int64, g.NumEdges())
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			a, b := int64(min(v, g.Indices[e])), int64(max(v, g.Indices[e]))
			times[e] = (a*7919 + b*104729) % 200
		}
	}
	return ds.WithGraph(g.WithEdgeData(nil, times))
}

// With AsOf, links are predicted from strictly earlier edges, in training and in evaluation: every batch is proved, on any
// number of workers, on parts and at servers with the same bits.
func TestAsOf(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := withTimes(load(t, planted))
	options := func(workers int) links.Options {
		return links.Options{
			OptimizerOptions:  gnb.OptimizerOptions{Epochs: 2, Batch: 256},
			EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 1},
			LaunchOptions:     gnb.LaunchOptions{Workers: workers, VirtualRanks: 4 / workers, Threads: 1, Quiet: true, RunDir: t.TempDir()},
			SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{5, 3}, TimeWindow: 150, TimeStrategy: sample.TakeRecent, ProveTime: true, Digest: true},
			ModelOptions:      gnb.ModelOptions{Hidden: 8},
			EvalNegatives:     2,
			AsOf:              true,
		}
	}
	var bits []byte
	var first map[string]float64
	digest := ""
	t.Setenv(envknob.Home.Name, t.TempDir())
	parts := dividedtest.Parts(t, ds, divided.Options{})
	served := load(t, "grpc://"+servetest.Start(t, parts, serve.Options{}).Addr+"?copy=topology")
	for _, c := range []struct {
		ds      *gnb.Dataset
		workers int
	}{{ds, 1}, {ds, 2}, {ds, 4}, {parts, 1}, {parts, 2}, {served, 1}, {served, 2}} {
		workers := c.workers
		run, err := links.Train(t.Context(), c.ds, options(workers))
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, name := range []string{"val_auc", "test_auc", "test_ap", "test_mrr", "proved_batches", "proved_edges"} {
			if values[name] = run.Value(name); math.IsNaN(values[name]) {
				t.Errorf("the run has no %s", name)
			}
		}
		delete(values, "proved_edges") // of the ends that several workers have
		if bits == nil {
			bits, first, digest = weights(t, run), values, run.Result.Text["digest"]
			if run.Value("hidden_edges") == 0 || run.Value("proved_edges") == 0 || !strings.Contains(run.Result.Text["proof"], "no seed saw its future") {
				t.Errorf("the proof is %q", run.Result.Text["proof"])
			}
		}
		if !bytes.Equal(bits, weights(t, run)) || !maps.Equal(first, values) || run.Result.Text["digest"] != digest {
			t.Errorf("%d workers on %v have other weights, samples or values than one: %v, %v", workers, c.ds, values, first)
		}
	}
	for want, change := range map[string]func(o *links.Options){
		"edge sees all earlier edges, also those of validation": func(o *links.Options) { o.SplitBy = "random" },
		"leave FullGraph, KnownMessages and Disjoint out":       func(o *links.Options) { o.KnownMessages = true },
		"choose auc, ap, mrr or hits_K":                         func(o *links.Options) { o.Metric = "recall_20" },
		"without their times":                                   func(o *links.Options) { o.Decoder = "structural" },
	} {
		o := options(1)
		change(&o)
		if _, err := links.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	o := options(1)
	for way, apart := range map[string]*gnb.Dataset{
		"?copy=topology":    load(t, strings.TrimSuffix(served.Meta.Parts.Servers, "?copy=topology")),
		"with its topology": dividedtest.Parts(t, ds, divided.Options{NoTopology: true}),
	} {
		if _, err := links.Train(t.Context(), apart, o); err == nil || !strings.Contains(err.Error(), way) {
			t.Errorf("%v, want the way out %q", err, way)
		}
	}
	if _, err := links.Train(t.Context(), load(t, planted), o); err == nil || !strings.Contains(err.Error(), "have none; convert the dataset with --edge-times") {
		t.Errorf("without times: %v", err)
	}
	o.AsOf = false
	if _, err := links.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), "this loop's seeds have no times") {
		t.Errorf("without AsOf: %v", err)
	}
}

// The ends of a batch's pairs are seeds at the time of the pair's edge, in a tree each, and a seed sees no edge of that time.
var asOfProgram = gnb.Program("test.links.as-of", func(w *gnb.Worker, _ int) error {
	ds := w.Dataset()
	split, err := links.TimeSplit(ds, 120, 160, links.SplitOptions{Negatives: 1})
	if err != nil {
		return err
	}
	l := links.NewLoader(w, split, links.LoaderOptions{Loader: gnb.Loader{Fanouts: []int{-1, 2}, Batch: 64, ProveTime: true}, Negatives: links.NegativeOptions{PerEdge: 3}, AsOf: true})
	net := links.New(w, gnb.SAGE, "dot", gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: 8, Layers: 2})
	opt := w.Adam(net, 0.01)
	bad, pairs := 0.0, 0.0
	for range w.Epochs(1) {
		for b := range l.Batches() {
			times, err := split.TimesOf(b.Edges)
			if err != nil {
				return err
			}
			for i, u := range b.Pairs.Src {
				at := times[i/(1+b.PerEdge)]
				pairs++
				if b.Seeds[b.Src[i]] != u || b.Seeds[b.Dst[i]] != b.Pairs.Dst[i] || b.Times[b.Src[i]] != at || b.Times[b.Dst[i]] != at {
					bad++
				}
			}
			for _, v := range b.Views() {
				if v.Edges > 0 && v.Latest >= v.Time {
					bad++
				}
			}
			ages := b.Blocks[0].Ages()
			if len(ages) > 0 && slices.Min(ages) < 1 {
				bad++
			}
			w.Step(links.BCE(net.Score(b), b.PerEdge), opt)
		}
		w.Log("val_auc", l.Evaluate(net, "val").AUC)
	}
	w.Result("bad", bad)
	w.Result("pairs", pairs)
	return nil
})

func TestAsOfLoader(t *testing.T) {
	testneed.NotShort(t, "it trains")
	run, err := gnb.Launch(t.Context(), asOfProgram, 0, gnb.LaunchOptions{Data: withTimes(load(t, planted)), Quiet: true, RunDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if run.Value("bad") != 0 || !(run.Value("pairs") > 0) || !(run.Value("proved_batches") > 1) {
		t.Errorf("%v of %v pairs are wrong; %s", run.Value("bad"), run.Value("pairs"), run.Result.Text["proof"])
	}
}

// With AsOf, the edges of a node that does not exist yet are hidden, and every batch is proved.
func TestAsOfHidesLaterNodes(t *testing.T) {
	testneed.NotShort(t, "it trains twice")
	seen := func(late int64) float64 {
		ds := withTimes(load(t, planted))
		ds.NodeTimes = make([]int64, ds.Nodes())
		for v := range ds.NodeTimes {
			if v%3 == 0 {
				ds.NodeTimes[v] = late
			}
		}
		run, err := links.Train(t.Context(), ds, links.Options{
			OptimizerOptions:  gnb.OptimizerOptions{Epochs: 1, Batch: 256},
			EvaluationOptions: gnb.EvaluationOptions{EvalEvery: 1},
			LaunchOptions:     gnb.LaunchOptions{Threads: 1, Quiet: true, RunDir: t.TempDir()},
			SamplerOptions:    gnb.SamplerOptions{Fanouts: []int{-1, -1}, ProveTime: true},
			ModelOptions:      gnb.ModelOptions{Hidden: 8},
			EvalNegatives:     2,
			AsOf:              true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return run.Value("proved_edges")
	}
	if a, b := seen(0), seen(150); !(b > 0 && b < 0.9*a) {
		t.Errorf("%v edges are seen where some nodes are late, and %v where none is", b, a)
	}
}
