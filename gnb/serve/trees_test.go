package serve_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// trees trains on seeds with times, each with a tree of its own.
var trees = gnb.Program("test.serve.trees", func(w *gnb.Worker, asOf gnb.AsOf) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: 2, Layers: 2})
	opt := w.Adam(net, 0.01)
	w.Digest()
	events := gnb.Items{Count: 200, Of: func(_, _ int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
		var labels []int32
		for _, i := range items[lo:hi] {
			for at := range int32(2) {
				seeds.IDs, seeds.Times, labels = append(seeds.IDs, i), append(seeds.Times, int64(20*at+i%30)), append(labels, at)
			}
		}
		return seeds, labels, nil
	}}
	for range w.Epochs(2) {
		for b := range w.BatchesOf(events, gnb.Loader{Fanouts: []int{4, 3}, Batch: 50, Disjoint: true, AsOf: asOf, ProveTime: true}) {
			for _, k := range b.Blocks {
				for e, at := range k.Times() {
					if tree := b.Trees[k.Indices()[e]]; at > b.Times[tree] {
						return fmt.Errorf("a seed of time %d sees an edge of time %d", b.Times[tree], at)
					}
				}
			}
			w.Step(nn.CrossEntropy(net.Forward(b), b.Value.([]int32)), opt)
		}
	}
	return nil
})

// Seeds with times have the same trees at servers as in the graph itself, also if a hop takes many requests.
func TestTreesAtServers(t *testing.T) {
	testneed.Raced(t, "it starts servers and trains several times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds := load(t, "planted?nodes=400&features=6&classes=2&degree=12&seed=3")
	times := make([]int64, ds.Edges())
	for e := range times {
		times[e] = int64(e * e % 61)
	}
	ds = ds.WithGraph(ds.Graph.WithEdgeData(nil, times))
	bare := dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	a := servetest.Start(t, bare, serve.Options{Parts: []int{0, 3}, Limits: serve.Limits{Nodes: 100, Edges: 400, Bytes: 3000}})
	b := servetest.Start(t, bare, serve.Options{Parts: []int{1, 2}})
	digest := func(ds *gnb.Dataset, asOf gnb.AsOf, workers int) string {
		run, err := gnb.Launch(t.Context(), trees, asOf, gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 2 / workers, Threads: 1, Quiet: true, Seed: 7, RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		weights, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("digest %s, weights %x and a proof of %v edges without %v", run.Result.Text["digest"], sha256.Sum256(weights), run.Value("proved_edges"), run.Value("hidden_edges"))
	}
	for _, asOf := range []gnb.AsOf{{}, {Window: 15, Strict: true, Strategy: sample.TakeRecent}, {Strategy: sample.TakeByAge, HalfLife: 4}} {
		want := digest(ds, asOf, 1)
		for workers := 1; workers <= 2; workers++ {
			if got := digest(load(t, "grpc://"+a.Addr+","+b.Addr), asOf, workers); got != want {
				t.Errorf("as of %+v, %d workers at servers have %s, want %s", asOf, workers, got, want)
			}
		}
	}
}
