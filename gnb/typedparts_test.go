package gnb_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Models over typed graphs train on the parts of a dataset to the digest of the whole one, and to the same bits on any
// number of workers, whether these map all edges or ask each other for them; and Infer has the run's accuracy.
func TestTrainOnTypesInParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t, 300, 200)
	whole, bare := divideWell(t, ds, 8, divided.Options{}), divideWell(t, ds, 8, divided.Options{NoTopology: true})
	if !whole.Schema().Equal(ds.Schema()) || !bare.Schema().Equal(ds.Schema()) || bare.Graph != nil || whole.Meta.NodeTypes[1].FeatureDim != 3 {
		t.Fatalf("the parts have the schema %v, and %v without topology, want %v", whole.Schema(), bare.Schema(), ds.Schema())
	}
	for _, name := range []string{"rgcn bases", "hgt"} {
		o := typedRun
		o.Digest, o.Workers, o.Epochs = true, 1, 2
		digest := trainTyped(t, ds, name, o).Result.Text["digest"]
		var want []byte
		for _, c := range []struct {
			ds       *gnb.Dataset
			topology string
			workers  int
		}{{whole, "replicated", 1}, {whole, "divided", 2}, {bare, "", 4}, {whole, "replicated", 8}} {
			o.Workers, o.Topology = c.workers, c.topology
			run := trainTyped(t, c.ds, name, o)
			if got := run.Result.Text["digest"]; got != digest || digest == "" {
				t.Errorf("%s, %d workers, topology %q: the digest is %q, and that of the whole dataset %q", name, c.workers, c.topology, got, digest)
			}
			if want == nil {
				want = weights(t, run)
			} else if !bytes.Equal(weights(t, run), want) {
				t.Errorf("%s: %d workers with topology %q have other weights than one worker on the parts", name, c.workers, c.topology)
			}
		}
	}
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 3, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Layers: 1, Hidden: 16}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{12}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 30, LR: 0.03}}
	if got := trainTyped(t, bare, "rgcn", o).Value("test_accuracy"); got < 0.9 {
		t.Errorf("R-GCN on parts has a test accuracy of %v", got)
	}
}

// Fanouts by relation pick the same edges where workers ask each other for them.
func TestRelationFanoutsInParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	parts := divideWell(t, shop(t, 200, 150), 4, divided.Options{})
	var want []byte
	for _, topology := range []string{"replicated", "divided"} {
		run, err := gnb.Launch(t.Context(), relationProgram, false, gnb.LaunchOptions{Data: parts, Workers: 2, PlaneOptions: gnb.PlaneOptions{Topology: topology}, Threads: 1, Seed: 5, Quiet: true, RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if got := weights(t, run); want == nil {
			want = got
		} else if !bytes.Equal(got, want) {
			t.Error("the divided topology has other weights than the replicated one")
		}
	}
}

// wideShop is shop where the features of users are sparse and have many columns, so that one width for all types is
// sparse too.
func wideShop(t testing.TB, items, users int) *gnb.Dataset {
	t.Helper()
	ds := shop(t, items, users)
	const words = 2000
	x := &dataset.Sparse{Rows: users, Cols: words, Indptr: []int64{0}}
	for u := range users {
		class := 0
		for c, has := range ds.NodeFeatures[1].Dense.Row(u) {
			if has == 1 {
				class = c
			}
		}
		x.Indices = append(x.Indices, int32(class*600), int32(1801+u%7))
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	ds.NodeFeatures[1] = dataset.NodeFeatures{Sparse: x}
	return ds
}

// Sparse features of types stay sparse: in memory, in parts and where workers ask each other for edges. Models learn
// from them, with the same samples and, for the same parts, the same bits.
func TestTrainOnSparseTypes(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := wideShop(t, 300, 200)
	parts := divideWell(t, ds, 4, divided.Options{})
	if parts.Meta.FeatureFormat != dataset.FormatCSR || parts.FeatureDim() != 2000 || parts.Meta.NodeTypes[1].FeatureFormat != dataset.FormatCSROnes {
		t.Fatalf("the features of the parts are %d in format %q", parts.FeatureDim(), parts.Meta.FeatureFormat)
	}
	for _, name := range []string{"rgcn", "hgt"} {
		o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 3, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Layers: 1, Hidden: 16}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{12}, Digest: true}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 20, LR: 0.03}}
		whole := trainTyped(t, ds, name, o)
		if got := whole.Value("test_accuracy"); got < 0.9 {
			t.Errorf("%s has a test accuracy of %v", name, got)
		}
		result, err := gnb.Infer(t.Context(), whole, ds, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
		if err != nil || !(result.Value > 0.9) {
			t.Errorf("%s: Infer gives the accuracy %v over all items, %v", name, result, err)
		}
		o.Epochs = 2
		want := trainTyped(t, ds, name, o)
		for _, topology := range []string{"replicated", "divided"} {
			o.Workers, o.Topology = 2, topology
			run := trainTyped(t, parts, name, o)
			if got := run.Result.Text["digest"]; got != want.Result.Text["digest"] || got == "" {
				t.Errorf("%s, topology %s: the digest is %q, and that of the whole dataset %q", name, topology, got, want.Result.Text["digest"])
			}
			o.Workers, o.Topology = 1, ""
			if one := trainTyped(t, parts, name, o); !bytes.Equal(weights(t, one), weights(t, run)) {
				t.Errorf("%s, topology %s: two workers have other weights than one", name, topology)
			}
		}
	}
}
