//go:build cuda && linux && cgo

package e2e

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/optim"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Every built-in model has the CPU's losses and metrics, with the options of a run: clipping,
// virtual ranks, normalisation, weight decay, evaluation and the best epoch. GNB_CUDA_EXACT makes
// each buffer an allocation of its own, so that the interpreter detects an access past its end.
func TestModels(t *testing.T) {
	testneed.NotShort(t, "it trains eleven models on the interpreter")
	ds := load(t, "planted?nodes=120&classes=3&features=6&degree=4")
	base := gnb.TrainOptions{ModelOptions: gnb.ModelOptions{Hidden: 8, Dropout: 0.5}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{3, 2}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 40, Epochs: 2}, LaunchOptions: gnb.LaunchOptions{Quiet: true, Resume: gnb.Never}}
	edged := withEdgeFeatures(ds)
	for name, c := range map[string]struct {
		model gnb.AnyModel
		gpus  int
		set   func(o *gnb.TrainOptions)
	}{
		"gcn":             {gnb.GCN, 1, func(o *gnb.TrainOptions) { o.WeightDecay = 5e-4 }},
		"gat":             {gnb.GAT, 1, func(o *gnb.TrainOptions) { o.Heads = 2 }},
		"gatv2":           {gnb.GATv2, 1, func(o *gnb.TrainOptions) { o.Heads = 2 }},
		"gatv2, edges":    {gnb.GATv2, 2, func(o *gnb.TrainOptions) { o.Heads = 2 }},
		"gine, edges":     {gnb.GINE, 1, func(o *gnb.TrainOptions) { o.FeedForward, o.Norm = true, "batch" }},
		"pna, edges":      {gnb.PNA, 2, func(o *gnb.TrainOptions) { o.Residual = true }},
		"gatedgcn, edges": {gnb.GatedGCN, 1, func(o *gnb.TrainOptions) { o.Residual = true }},
		"gin, clipped":    {gnb.GIN, 2, func(o *gnb.TrainOptions) { o.ClipNorm, o.VirtualRanks = 0.5, 2 }},
		"mlp":             {gnb.MLP, 1, func(o *gnb.TrainOptions) {}},
		"batch norm":      {gnb.SAGE, 2, func(o *gnb.TrainOptions) { o.Norm, o.CheckpointEvery = "batch", 1 }},
		"all neighbours": {gnb.SAGE, 1, func(o *gnb.TrainOptions) {
			o.Norm, o.Residual, o.Eval, o.Fanouts = "layer", true, "sampled", []int{-1, -1}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster(t, c.gpus, machine{})
			t.Setenv("GNB_CUDA_EXACT", "1")
			ds := ds
			if strings.HasSuffix(name, "edges") {
				ds = edged
			}
			var losses [2][]float64
			var both [2]*runs.Run
			for i, device := range []string{"cpu", "cuda"} {
				o := base
				c.set(&o)
				o.Device = device
				if device == "cpu" {
					o.Workers = c.gpus
				}
				o.Events = func(e runs.Event) {
					if e.Kind == "epoch" {
						losses[i] = append(losses[i], e.Loss)
					}
				}
				var err error
				if both[i], err = gnb.Train(t.Context(), ds, c.model, o); err != nil {
					t.Fatal(err)
				}
			}
			same(t, losses[1], losses[0])
			for _, name := range []string{"val_accuracy", "test_accuracy"} {
				// Rounding can move a few nodes on the border between classes to another class.
				if a, b := both[0].Value(name), both[1].Value(name); !(math.Abs(a-b) <= 0.1) {
					t.Errorf("%s is %v, on the CPU %v", name, b, a)
				}
			}
			if both[1].Config.Device != "cuda" {
				t.Errorf("the run used device %s", both[1].Config.Device)
			}
		})
	}
}

// whole is a program that trains on the whole graph, saves the best weights, and loads them at the
// end.
var whole = gnb.Program("e2e.whole", func(w *gnb.Worker, steps int) error {
	net := gnb.SAGE.New(w, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: w.Dataset().Classes(), Layers: 2})
	opt := w.Optimizer(net, optim.NewSGD(optim.SGDOptions{LR: 0.05, Momentum: 0.9}))
	b := w.FullGraph("train")
	var before []float32
	for e := range w.Epochs(steps) {
		w.Step(b.Loss(net.Forward(b)), opt)
		if w.SaveBest(net, -float64((e-1)*(e-1))) { // the second epoch is the best
			before = append(before[:0], net.Params().Flat()...)
		}
	}
	w.LoadBest(net)
	for i, v := range net.Params().Flat() {
		if v != before[i] {
			return errors.New("LoadBest returns other weights than SaveBest saved")
		}
	}
	m := w.Evaluate(net, gnb.FullNeighbors, "val")
	w.Result("val", m.Of("val"))
	w.Result("loss", w.EpochLoss())
	return nil
})

func TestWholeGraph(t *testing.T) {
	testneed.NotShort(t, "it trains several times on the interpreter")
	ds := load(t, "karate")
	var val [2]float64
	var losses [2][]float64
	for i, device := range []string{"cpu", "cuda"} {
		cluster(t, 1, machine{Races: true})
		run, err := gnb.Launch(t.Context(), whole, 4, gnb.LaunchOptions{
			Data:    ds,
			Device:  device,
			Workers: 1,
			Quiet:   true,
			Resume:  gnb.Never,
			Events: func(e runs.Event) {
				if e.Kind == "epoch" {
					losses[i] = append(losses[i], e.Loss)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		val[i] = run.Value("val")
	}
	same(t, losses[1], losses[0])
	if val[0] != val[1] {
		t.Errorf("accuracy %v with the best weights, on the CPU %v", val[1], val[0])
	}
}
