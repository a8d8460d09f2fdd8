package gnb_test

import (
	"bytes"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/testneed"
)

// cacheRun is a run on parts whose rows of features are counted, and what package hotness knows of it.
type cacheRun struct {
	job    hotness.Job
	traces []hotness.Trace // of the run's epoch, by part
	vip    [][]float32
	nodes  int
}

// newCacheRun describes an epoch of training with the seed 3 on a dataset in n parts.
func newCacheRun(t *testing.T, ds *gnb.Dataset, n int, o gnb.TrainOptions) (*gnb.Dataset, *cacheRun) {
	t.Helper()
	parts := divideWell(t, ds, n, divided.Options{})
	book, err := divided.Of(parts)
	if err != nil {
		t.Fatal(err)
	}
	seeds, err := ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	r := &cacheRun{nodes: ds.Nodes(), job: hotness.Job{Graph: ds.Graph, Of: book.Of(), Parts: n, Fanouts: sample.Fanouts(o.Fanouts), Seeds: seeds, Batch: o.Batch, Threads: 1}}
	if r.traces, err = hotness.Record(t.Context(), r.job, 3, 0); err != nil {
		t.Fatal(err)
	}
	if r.vip, err = hotness.Propagate(t.Context(), r.job); err != nil {
		t.Fatal(err)
	}
	return parts, r
}

// score is how often a part is expected to read rows of other parts.
func (r *cacheRun) score(part int) []float32 {
	s := make([]float32, r.nodes)
	for v, x := range r.vip[part] {
		if int(r.job.Of[v]) != part {
			s[v] = x
		}
	}
	return s
}

func rowsOf(t *testing.T, run *runs.Run) runs.FeatureRows {
	t.Helper()
	if run.Result.Rows == nil {
		t.Fatal("the run has not counted rows")
	}
	return *run.Result.Rows
}

// The workers of a machine have one cache of the rows that they read most together, which is asked for once. The rows that
// they find there are those that package hotness counts in the run's own trace.
func TestCacheHitsAreTheSimulations(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=2000&features=12&classes=4&seed=2")
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Prefetch: 2}}}
	for _, workers := range []int{1, 2, 4} {
		parts, sim := newCacheRun(t, ds, workers, o)
		o.Workers, o.Cache = workers, "0.2"
		got := rowsOf(t, tradivideWell(t, parts, o).run)
		all := make([]float32, sim.nodes)
		for p := range workers {
			for v, x := range sim.score(p) {
				all[v] += x
			}
		}
		cached := hotness.Hottest(all, sim.job.Of, -1, workers*(2000/workers/5))
		var reads, misses int64
		for _, tr := range sim.traces {
			reads += tr.Rows()
			misses += tr.Static(cached)
		}
		if got.Cached != reads-misses || got.Window+got.Remote != misses || workers > 1 && (got.Cached == 0 || misses == 0) {
			t.Errorf("%d workers read %d rows from the cache and %d others; the simulation %d and %d", workers, got.Cached, got.Window+got.Remote, reads-misses, misses)
		}
		// Each row of the cache is asked for at most once, by one of the workers.
		if fill := got.Bytes - 48*got.Remote; fill < 0 || fill > 48*int64(len(cached)) {
			t.Errorf("%d workers: filling the cache of %d rows took %d bytes", workers, len(cached), fill)
		}
	}
}

// With Belady's policy a worker asks for the rows that the simulation of its own trace misses, with what it knows of the
// next steps; digest and weights are those of the static cache.
func TestBeladyHitsAreTheSimulations(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=2000&features=12&classes=4&seed=2")
	const n = 4
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 1}, EvaluationOptions: gnb.EvaluationOptions{Eval: "none"}, LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{Cache: "0.2"}}}
	parts, sim := newCacheRun(t, ds, n, o)
	for _, workers := range []int{2, 4} {
		o.Workers, o.CachePolicy = workers, ""
		static := tradivideWell(t, parts, o)
		fewest := int64(1 << 40)
		for _, prefetch := range []int{1, 6} {
			o.CachePolicy, o.Prefetch = "belady", prefetch
			run := tradivideWell(t, parts, o)
			got := rowsOf(t, run.run)
			var reads, misses int64
			limit := 2000 / workers / 5
			for r := range workers {
				here := func(v int32) bool { return int(sim.job.Of[v])*workers/n == r }
				score := make([]float32, sim.nodes)
				var trace hotness.Trace
				for step := range sim.traces[0] {
					for p := r * n / workers; p < (r+1)*n/workers; p++ {
						trace = append(trace, sim.traces[p][step])
					}
				}
				for p := r * n / workers; p < (r+1)*n/workers; p++ {
					for v, x := range sim.vip[p] {
						if !here(int32(v)) {
							score[v] += x
						}
					}
				}
				trace = trace.Without(here)
				reads += trace.Rows()
				misses += trace.Belady(limit, prefetch*n/workers, score, hotness.Hottest(score, sim.job.Of, -1, limit))
			}
			if got.Remote != misses || got.Cached != reads-misses || got.Window != 0 || misses == 0 {
				t.Errorf("%d workers, %d steps ahead: %d rows were asked for, %d were in the cache and %d in a window; the simulation misses %d of %d", workers, prefetch, got.Remote, got.Cached, got.Window, misses, reads)
			}
			if misses >= fewest {
				t.Errorf("%d workers, %d steps ahead: the simulation misses %d rows, and %d with fewer known steps", workers, prefetch, misses, fewest)
			}
			fewest = misses
			if run.run.Result.Text["digest"] != static.run.Result.Text["digest"] || !bytes.Equal(run.weights, static.weights) {
				t.Errorf("%d workers, %d steps ahead: the digest or the weights differ from those of a static cache", workers, prefetch)
			}
		}
	}
}

// Belady's policy changes no result in any kind of run, and its counts are there.
func TestBeladyChangesNoResult(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, "planted?nodes=1500&features=12&classes=4&seed=2")
	parts := divideWell(t, ds, 4, divided.Options{})
	o := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Workers: 2, PlaneOptions: gnb.PlaneOptions{Cache: "0.2", Prefetch: 3}}}
	evals, once := []string{"", "sampled"}, testneed.UnderRace() // the detector finds no more in the others
	for name, set := range map[string]func(o *gnb.TrainOptions){
		"parts":              func(*gnb.TrainOptions) {},
		"sampled evaluation": func(o *gnb.TrainOptions) { o.Eval = "sampled" },
		"divided topology":   func(o *gnb.TrainOptions) { o.Topology = "divided" },
		"cooperative":        func(o *gnb.TrainOptions) { o.Cooperative = true },
	} {
		if once && name != "divided topology" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := o
			set(&o)
			want := tradivideWell(t, parts, o)
			o.CachePolicy = "belady"
			got := tradivideWell(t, parts, o)
			if got.run.Result.Text["digest"] != want.run.Result.Text["digest"] || !bytes.Equal(got.weights, want.weights) || !bytes.Equal(got.logits, want.logits) {
				t.Error("the digest, the weights or the outputs differ from those of a static cache")
			}
			if r := rowsOf(t, got.run); r.Cached == 0 || r.Remote == 0 {
				t.Errorf("the rows by source are %+v", r)
			}
		})
	}
	disk := stored(t, ds, dataset.WriteOptions{})
	o = gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 16, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 4}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Workers: 2}}
	want := tradivideWell(t, disk, o)
	o.Features, o.Cache, o.CachePolicy = "disk", "20%", "belady"
	if once {
		evals = evals[1:]
	}
	for _, eval := range evals {
		o.Eval = eval
		got := tradivideWell(t, disk, o)
		if !bytes.Equal(got.weights, want.weights) || !bytes.Equal(got.logits, want.logits) {
			t.Errorf("features on disk, evaluation %q: the weights or outputs differ from those in memory", eval)
		}
		if r := rowsOf(t, got.run); r.Cached == 0 || r.Disk == 0 {
			t.Errorf("features on disk: the rows by source are %+v", r)
		}
	}
	for _, c := range []gnb.TrainOptions{{LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{CachePolicy: "lru", Cache: "0.1"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}, {LaunchOptions: gnb.LaunchOptions{PlaneOptions: gnb.PlaneOptions{CachePolicy: "belady"}}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}} {
		c.Quiet, c.RunDir = true, t.TempDir()
		_, err := gnb.Train(t.Context(), parts, gnb.SAGE, c)
		readable(t, err, "CachePolicy is")
	}
}
