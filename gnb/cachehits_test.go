package gnb_test

import (
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
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
	o := gnb.TrainOptions{Hidden: 8, Fanouts: []int{5, 4}, Batch: 128, Epochs: 1, Eval: "none", Prefetch: 2}
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
