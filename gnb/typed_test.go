package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// shop is a dataset of items and users, with features of widths of their own and a brand type without any. The
// class of an item shows only in the relations of its users: one who likes an item has its class's features, one
// who dislikes it those of the next class, and one who returns it those of the class after that.
func shop(t testing.TB, items, users int) *gnb.Dataset {
	t.Helper()
	const classes, brands = 3, 5
	r := rand.New(rand.NewPCG(7, 7))
	n := items + users + brands
	class := make([]int32, n)
	for v := range class {
		class[v] = int32(r.IntN(classes))
	}
	var src, dst []int32
	var types []uint16
	add := func(u, v int, kind uint16) {
		src, dst, types = append(src, int32(u), int32(v)), append(dst, int32(v), int32(u)), append(types, kind, kind+5)
	}
	for v := range items {
		for range 30 {
			u, kind := items+r.IntN(users), uint16(r.IntN(3))
			if class[u] == (class[v]+int32(kind))%classes {
				add(u, v, kind)
			}
		}
		add(items+users+r.IntN(brands), v, 3)
	}
	g, err := graphops.FromEdgesWith(n, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(&graphops.Schema{
			Nodes: []graphops.NodeType{{Name: "item", Count: items}, {Name: "user", Count: users}, {Name: "brand", Count: brands}, {Name: "shelf", Count: 0}},
			Relations: []graphops.Relation{
				{Src: "user", Name: "likes", Dst: "item"},
				{Src: "user", Name: "dislikes", Dst: "item"},
				{Src: "user", Name: "returns", Dst: "item"},
				{Src: "brand", Name: "makes", Dst: "item"},
				{Src: "shelf", Name: "holds", Dst: "item"},
				{Src: "item", Name: "rev_likes", Dst: "user"},
				{Src: "item", Name: "rev_dislikes", Dst: "user"},
				{Src: "item", Name: "rev_returns", Dst: "user"},
				{Src: "item", Name: "rev_makes", Dst: "brand"},
			},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 2*items), make([]float32, classes*users)
	for i := range x {
		x[i] = r.Float32()
	}
	labels := make([]int32, n)
	splits := map[string][]int32{}
	for v := range labels {
		if labels[v] = class[v]; v >= items {
			labels[v] = -1
			if v < items+users {
				y[(v-items)*classes+int(class[v])] = 1
			}
			continue
		}
		split := []string{"train", "train", "val", "test"}[v%4]
		splits[split] = append(splits[split], int32(v))
	}
	return &gnb.Dataset{
		Graph: g, Labels: labels, Splits: splits, Meta: dataset.Metadata{Name: "shop", NumClasses: classes},
		NodeFeatures: []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: items, Cols: 2, F32: x}}, {Dense: &dataset.Matrix{Rows: users, Cols: classes, F32: y}}, {}, {}},
	}
}

// trainTyped trains a model on a dataset in a directory of the test.
func trainTyped(t *testing.T, ds *gnb.Dataset, name string, o gnb.TrainOptions) *runs.Run {
	t.Helper()
	o.Quiet = true
	if o.Resume == "" {
		o.Resume = gnb.Never
	}
	if o.RunDir == "" && o.Resume == gnb.Never {
		o.RunDir = t.TempDir()
	}
	run, err := gnb.Train(t.Context(), ds, typedModel(name, &o), o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func typedModel(name string, o *gnb.TrainOptions) gnb.AnyModel {
	switch name {
	case "hgt":
		o.Heads = 2
		return gnb.HGT
	case "rgcn bases":
		o.Bases = 3
	}
	return gnb.RGCN
}

// Models over typed graphs learn what the relations say, from the dataset in memory and in a directory, with the
// same weights, on one and two workers with the same samples; and gnb.Infer has the run's accuracy.
func TestTrainOnTypes(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t, 600, 400)
	dir := filepath.Join(t.TempDir(), "shop")
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	opened := load(t, dir)
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 1, Threads: 1, Seed: 3, CheckpointEvery: -1}, ModelOptions: gnb.ModelOptions{Layers: 1, Hidden: 16}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{12}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 100, Epochs: 20, LR: 0.03}}
	plain := trainModel(t, ds, gnb.SAGE, o).Value("test_accuracy")
	for _, name := range typedNames {
		one := trainTyped(t, ds, name, o)
		if got := one.Value("test_accuracy"); got < 0.9 || got < plain+0.3 {
			t.Errorf("%s has a test accuracy of %v; GraphSAGE, which ignores the relations, has %v", name, got, plain)
		}
		run := trainTyped(t, opened, name, o)
		if got := run.DatasetSpec(); got != dir {
			t.Errorf("%s: the run's dataset is %q, want its directory %q", name, got, dir)
		}
		if !bytes.Equal(weights(t, one), weights(t, run)) {
			t.Errorf("%s: the dataset in a directory gives other weights than the one in memory", name)
		}
		result, err := gnb.Infer(t.Context(), run, opened, filepath.Join(t.TempDir(), "out.npy"), gnb.InferOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if !(result.Value > 0.9) {
			t.Errorf("%s: Infer gives the accuracy %v over all items", name, result.Value)
		}
		short := o
		short.Epochs, short.Digest, short.Eval = 1, true, "none"
		one = trainTyped(t, ds, name, short)
		short.Workers = 2
		sameAs(t, one, trainTyped(t, opened, name, short))
	}
}

// A row of its own for each node takes the place of features.
func TestTrainOnTypesWithEmbedding(t *testing.T) {
	ds := shop(t, 60, 40)
	ds.NodeFeatures = nil
	run := trainTyped(t, ds, "rgcn", gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2, Threads: 1, Seed: 1}, ModelOptions: gnb.ModelOptions{Embedding: 6, Dropout: 0.5, Hidden: 8}, OptimizerOptions: gnb.OptimizerOptions{Batch: 20, Epochs: 2}})
	if got := run.Value("test_accuracy"); !(got >= 0 && got <= 1) {
		t.Errorf("the test accuracy is %v", got)
	}
}

var typedNames = []string{"rgcn", "rgcn bases", "hgt"}

var typedRun = gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Fanouts: []int{4, 3}}, ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.3}, OptimizerOptions: gnb.OptimizerOptions{Batch: 96, Epochs: 6, LR: 0.02}, LaunchOptions: gnb.LaunchOptions{Seed: 5, Threads: 1}}

// Every division of 8 into workers × virtual ranks gives models over typed graphs the same bits.
func TestTypedVirtualRanksGiveEqualBits(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t, 300, 200)
	for _, name := range typedNames {
		var want []byte
		for _, workers := range []int{1, 2, 4, 8} {
			o := typedRun
			o.Workers, o.VirtualRanks, o.Threads = workers, 8/workers, 1+workers%2
			run := trainTyped(t, ds, name, o)
			if want == nil {
				want = weights(t, run)
			} else if !bytes.Equal(weights(t, run), want) {
				t.Errorf("%s: %d workers × %d virtual ranks have other weights than 1 × 8", name, workers, 8/workers)
			}
		}
	}
}

// An interrupted run, and one whose last checkpoint is lost, resume to the bits of an undisturbed run, also on
// another number of workers with the same number of virtual ranks in all.
func TestTypedResume(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := shop(t, 300, 200)
	for _, name := range typedNames {
		o := typedRun
		o.Workers, o.VirtualRanks, o.CheckpointEvery, o.Quiet = 2, 2, 2, true
		want := trainTyped(t, ds, name, o)
		for _, lose := range []bool{false, true} {
			cut := o
			cut.RunDir, cut.Resume = filepath.Join(t.TempDir(), "run"), gnb.Never
			ctx, cancel := context.WithCancel(t.Context())
			cut.Events = func(e runs.Event) {
				if e.Kind == runs.KindEpoch && e.Epoch >= 1 {
					cancel()
				}
			}
			_, err := gnb.Train(ctx, ds, typedModel(name, &cut), cut)
			cancel()
			if !errors.Is(err, gnb.ErrInterrupted) {
				t.Fatalf("%s: the run was not interrupted: %v", name, err)
			}
			if lose {
				path, _, _, err := checkpoint.Latest(filepath.Join(cut.RunDir, "checkpoints"))
				if err == nil {
					err = os.Remove(path)
				}
				if err != nil {
					t.Fatal(err)
				}
				cut.Workers, cut.VirtualRanks = 4, 1
			}
			cut.Resume, cut.RunDir, cut.Events = cut.RunDir, "", nil
			if run := trainTyped(t, ds, name, cut); !bytes.Equal(weights(t, run), weights(t, want)) {
				t.Errorf("%s, lost %v: the resumed run has other weights than the undisturbed one", name, lose)
			}
		}
	}
}

// On a dataset without types, models over typed graphs say what they need.
func TestTypedModelWithoutTypes(t *testing.T) {
	ds := load(t, "karate")
	for _, m := range []gnb.AnyModel{gnb.RGCN, gnb.HGT} {
		_, err := gnb.Train(t.Context(), ds, m, gnb.TrainOptions{OptimizerOptions: gnb.OptimizerOptions{Epochs: 1}, LaunchOptions: gnb.LaunchOptions{Quiet: true, RunDir: t.TempDir()}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
		readable(t, err, fmt.Sprintf(`model "%s".*no types of nodes and edges`, m.Name()))
	}
}
