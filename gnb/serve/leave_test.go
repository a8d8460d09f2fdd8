package serve_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// leaves trains in loops that it leaves after each of their first steps, one after the other.
var leaves = gnb.Program("test.serve.leaves", func(w *gnb.Worker, _ struct{}) error {
	ds := w.Dataset()
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2})
	opt := w.Adam(net, 0.02)
	for epoch := range w.Epochs(12) {
		last := -1
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 4}, Batch: 90, Cooperative: true}) {
			w.Step(b.Loss(net.Forward(b)), opt)
			if last = b.Step; last == epoch%6 {
				break
			}
		}
		if last != epoch%6 {
			return fmt.Errorf("a loop ended after step %d", last)
		}
	}
	return nil
})

// A program may leave a loop over cooperative batches after any step, also where rows come beside the sampler, which is
// ahead of the program, and further ahead on some workers than on others. The weights are those with features in memory.
func TestLeaveCooperativeLoops(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1500, Features: 13, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(t.TempDir(), "stored")
	if err := dataset.Write(stored, ds); err != nil {
		t.Fatal(err)
	}
	whole, parts := load(t, stored), dividedtest.Parts(t, ds, divided.Options{})
	for _, workers := range []int{2, 4} {
		if workers > 2 {
			testneed.Raced(t, "another number of workers")
		}
		want := map[bool][]byte{} // by whether the dataset is divided, on which it depends which worker owns a node
		for _, c := range []struct {
			from string
			o    gnb.LaunchOptions
		}{
			{"memory", gnb.LaunchOptions{Data: whole}},
			{"memory", gnb.LaunchOptions{Data: parts}},
			{"servers", gnb.LaunchOptions{Data: load(t, "grpc://"+servetest.Start(t, parts, serve.Options{}).Addr+"?copy=topology")}},
			{"disk", gnb.LaunchOptions{Data: whole, PlaneOptions: gnb.PlaneOptions{Features: "disk", Cache: "0"}}},
			{"parts with a cache", gnb.LaunchOptions{Data: parts, PlaneOptions: gnb.PlaneOptions{Cache: "10%"}}},
			{"parts with the cache of a plan", gnb.LaunchOptions{Data: parts, PlaneOptions: gnb.PlaneOptions{Cache: "10%", CachePolicy: "belady"}}},
		} {
			o := c.o
			o.Workers, o.VirtualRanks, o.Threads, o.Seed, o.Quiet, o.Resume, o.Device = workers, 1, 1, 3, true, gnb.Never, "cpu"
			o.RunDir = filepath.Join(t.TempDir(), "run")
			run, err := gnb.Launch(t.Context(), leaves, struct{}{}, o)
			if err != nil {
				t.Errorf("%d workers, features from %s: %v", workers, c.from, err)
				continue
			}
			weights, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			of := divided.Is(c.o.Data)
			if want[of] == nil {
				want[of] = weights
			}
			if !bytes.Equal(weights, want[of]) {
				t.Errorf("%d workers, features from %s: the weights differ from those with features in memory", workers, c.from)
			}
		}
	}
}
