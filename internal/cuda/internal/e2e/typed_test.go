//go:build cuda && linux && cgo

package e2e

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// bought is a dataset of items and users with features of widths of their own, and relations both ways.
func bought(t *testing.T) *gnb.Dataset {
	t.Helper()
	const items, users, classes = 40, 24, 3
	r := rand.New(rand.NewPCG(3, 4))
	var src, dst []int32
	var types []uint16
	for v := range items {
		for range 4 {
			u, kind := items+r.IntN(users), r.IntN(2)
			src, dst = append(src, int32(u), int32(v)), append(dst, int32(v), int32(u))
			types = append(types, uint16(kind), uint16(kind+2))
		}
	}
	g, err := graphops.FromEdgesWith(items+users, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(&graphops.Schema{
			Nodes: []graphops.NodeType{{Name: "item", Count: items}, {Name: "user", Count: users}},
			Relations: []graphops.Relation{
				{Src: "user", Name: "buys", Dst: "item"},
				{Src: "user", Name: "returns", Dst: "item"},
				{Src: "item", Name: "rev_buys", Dst: "user"},
				{Src: "item", Name: "rev_returns", Dst: "user"},
			},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := func(n, cols int) dataset.NodeFeatures {
		x := make([]float32, n*cols)
		for i := range x {
			x[i] = r.Float32()
		}
		return dataset.NodeFeatures{Dense: &dataset.Matrix{Rows: n, Cols: cols, F32: x}}
	}
	labels, splits := make([]int32, items+users), map[string][]int32{}
	for v := range labels {
		if labels[v] = -1; v < items {
			labels[v] = int32(r.IntN(classes))
			split := []string{"train", "train", "val", "test"}[v%4]
			splits[split] = append(splits[split], int32(v))
		}
	}
	return &gnb.Dataset{
		Graph: g, Labels: labels, Splits: splits, Meta: dataset.Metadata{Name: "bought", NumClasses: classes},
		NodeFeatures: []dataset.NodeFeatures{rows(items, 5), rows(users, 2)},
	}
}

// trainBought trains a model over types with eight virtual ranks in all, and returns its epochs' losses and weights.
func trainBought(t *testing.T, ds *gnb.Dataset, model gnb.AnyModel, o gnb.TrainOptions, workers int) (losses []float64, weights []byte, run *runs.Run) {
	t.Helper()
	o.Hidden, o.Fanouts, o.Batch, o.Epochs, o.Quiet, o.VirtualRanks, o.Digest = 8, []int{3, 2}, 16, 2, true, 8/workers, true
	if o.Device == "cpu" {
		o.Workers = workers
	}
	if o.Resume == "" {
		o.Resume = gnb.Never
	}
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch {
			losses = append(losses, e.Loss)
		}
	}
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	if weights, err = os.ReadFile(run.Weights()); err != nil {
		t.Fatal(err)
	}
	return losses, weights, run
}

// Networks over types have the CPU's digest of sampled graphs, and its losses within 1e-5, on one device and several,
// among which eight virtual ranks divide. Devices add gradients in an order of their own, so bits differ.
func TestTyped(t *testing.T) {
	testneed.NotShort(t, "it trains ten times, on the interpreter")
	ds := bought(t)
	for name, c := range map[string]struct {
		model gnb.AnyModel
		o     gnb.TrainOptions
		gpus  []int
	}{
		"rgcn":       {gnb.RGCN, gnb.TrainOptions{}, []int{1, 2, 4}},
		"rgcn bases": {gnb.RGCN, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Bases: 2, Dropout: 0.5}}, []int{1, 2}},
		"hgt":        {gnb.HGT, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Heads: 2, Dropout: 0.5}}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			o.Device = "cpu"
			want, _, cpu := trainBought(t, ds, c.model, o, 1)
			for _, gpus := range c.gpus {
				cluster(t, gpus, machine{})
				o := c.o
				o.Device = "cuda"
				got, _, run := trainBought(t, ds, c.model, o, gpus)
				if run.Config.Device != "cuda" || run.Config.Workers != gpus {
					t.Fatalf("the run had %d workers on %s", run.Config.Workers, run.Config.Device)
				}
				if a, b := run.Result.Text["digest"], cpu.Result.Text["digest"]; a != b || a == "" {
					t.Errorf("%d devices: the digest is %q, on the CPU %q", gpus, a, b)
				}
				for i := range want {
					if len(got) != len(want) || !(math.Abs(got[i]-want[i]) <= 1e-5) {
						t.Errorf("%d devices: the losses are %v, on the CPU %v", gpus, got, want)
						break
					}
				}
			}
		})
	}
}

// A run over types that a lost device ends resumes from its checkpoint, and ends with the bits of a run without a
// fault.
func TestTypedResumeOnADevice(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := bought(t)
	cluster(t, 1, machine{})
	_, want, _ := trainBought(t, ds, gnb.RGCN, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Bases: 2, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Device: "cuda"}}, 1)
	dir := filepath.Join(t.TempDir(), "run")
	o := gnb.TrainOptions{
		ModelOptions: gnb.ModelOptions{Bases: 2, Dropout: 0.5, Hidden: 8},
		LaunchOptions: gnb.LaunchOptions{
			Device:          "cuda",
			RunDir:          dir,
			CheckpointEvery: 1,
			Quiet:           true,
			VirtualRanks:    8,
			Resume:          gnb.Never,
		},
		SamplerOptions:   gnb.SamplerOptions{Fanouts: []int{3, 2}, Digest: true},
		OptimizerOptions: gnb.OptimizerOptions{Batch: 16, Epochs: 2},
	}
	text := os.Getenv(machineEnv)
	cluster(t, 1, machine{Fault: &fakegpu.Fault{Kernel: "adam_f32", After: 2, Status: 719, Lost: true}, Config: fakegpu.Config{Quiet: true}})
	if _, err := gnb.Train(t.Context(), ds, gnb.RGCN, o); err == nil {
		t.Fatal("the run succeeded despite the fault")
	}
	t.Setenv(machineEnv, text)
	losses, weights, _ := trainBought(t, ds, gnb.RGCN, gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Bases: 2, Dropout: 0.5}, LaunchOptions: gnb.LaunchOptions{Device: "cuda", Resume: dir, CheckpointEvery: 1}}, 1)
	if !bytes.Equal(weights, want) {
		t.Errorf("the resumed run has other weights; its epochs have the losses %v", losses)
	}
}
