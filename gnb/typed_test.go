package gnb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
	"github.com/graphnb/graphnb/multigpu/checkpoint"
)

// twoTypes returns the graph with a first half of its nodes of one type and the second of another, and edges of
// five relations: one for each pair of types, and a second one for a third of the edges within the first.
func twoTypes(g *graphops.Graph) (*graphops.Graph, error) {
	n, half := g.NumNodes(), g.NumNodes()/2
	s := &graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "a", Count: half}, {Name: "b", Count: n - half}},
		Relations: []graphops.Relation{
			{Src: "a", Name: "r", Dst: "a"},
			{Src: "b", Name: "r", Dst: "a"},
			{Src: "a", Name: "r", Dst: "b"},
			{Src: "b", Name: "r", Dst: "b"},
			{Src: "a", Name: "other", Dst: "a"},
		},
	}
	types := make([]uint16, 0, len(g.Indices))
	for v := range n {
		for _, u := range g.InNeighbors(int32(v)) {
			kind := uint16(0)
			if int(u) >= half {
				kind++
			}
			if v >= half {
				kind += 2
			}
			if kind == 0 && (int(u)+v)%3 == 0 {
				kind = 4
			}
			types = append(types, kind)
		}
	}
	return g.WithTypes(s, types)
}

// typedProgram trains a model over typed graphs, on the worker's dataset with types: datasets in memory and in
// files do not have types yet.
var typedProgram = gnb.Program("test.typed", func(w *gnb.Worker, model string) error {
	ds := w.Dataset()
	g, err := twoTypes(ds.Graph)
	if err != nil {
		return err
	}
	ds.Graph = g
	s := gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: ds.Classes(), Layers: 2, Dropout: 0.3, Heads: 2, Schema: g.Schema}
	var net gnb.Network
	var forward func(b *gnb.Batch) *nn.Tensor
	if model == "hgt" {
		n := gnb.HGT.New(w, s)
		net, forward = n, n.Forward
	} else {
		if model == "rgcn bases" {
			s.Bases = 3
		}
		n := gnb.RGCN.New(w, s)
		net, forward = n, n.Forward
	}
	opt := w.Adam(net, 0.02)
	for epoch := range w.Epochs(12) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{4, 3}, Batch: 96}) {
			w.Step(nn.CrossEntropy(forward(b), b.Labels), opt)
		}
		w.Log("epoch", epoch, w.Evaluate(net, gnb.FullNeighbors, "val"))
	}
	return nil
})

const typedSet = "planted?nodes=600&features=8&classes=3&seed=2"

var typedNames = []string{"rgcn", "rgcn bases", "hgt"}

// Every division of 8 into workers × virtual ranks gives models over typed graphs the same bits.
func TestTypedVirtualRanksGiveEqualBits(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, typedSet)
	for _, name := range typedNames {
		var want []byte
		for _, workers := range []int{1, 2, 4, 8} {
			run, err := gnb.Launch(t.Context(), typedProgram, name, gnb.LaunchOptions{Data: ds, Workers: workers, VirtualRanks: 8 / workers, Threads: 1 + workers%2, Seed: 5, Quiet: true, RunDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
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
	ds := load(t, typedSet)
	for _, name := range typedNames {
		o := gnb.LaunchOptions{Data: ds, Workers: 2, VirtualRanks: 2, Threads: 1, Seed: 5, Quiet: true, CheckpointEvery: 2}
		whole := o
		whole.RunDir = t.TempDir()
		want, err := gnb.Launch(t.Context(), typedProgram, name, whole)
		if err != nil {
			t.Fatal(err)
		}
		for _, lose := range []bool{false, true} {
			cut := o
			cut.RunDir, cut.Resume = filepath.Join(t.TempDir(), "run"), gnb.Never
			ctx, cancel := context.WithCancel(t.Context())
			cut.Events = func(e runs.Event) {
				if e.Kind == runs.KindEpoch && e.Epoch >= 1 {
					cancel()
				}
			}
			_, err := gnb.Launch(ctx, typedProgram, name, cut)
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
			run, err := gnb.Launch(t.Context(), typedProgram, name, cut)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(weights(t, run), weights(t, want)) {
				t.Errorf("%s, lost %v: the resumed run has other weights than the undisturbed one", name, lose)
			}
		}
	}
}

// On a dataset without types, models over typed graphs say what they need.
func TestTypedModelWithoutTypes(t *testing.T) {
	ds := load(t, "karate")
	for _, m := range []gnb.AnyModel{gnb.RGCN, gnb.HGT} {
		_, err := gnb.Train(t.Context(), ds, m, gnb.TrainOptions{Epochs: 1, Quiet: true, RunDir: t.TempDir()})
		readable(t, err, fmt.Sprintf(`model "%s".*no types of nodes and edges`, m.Name()))
	}
}
