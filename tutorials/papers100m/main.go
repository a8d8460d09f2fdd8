// Command papers100m trains a GCN on ogbn-papers100M with as many workers as
// there are GPUs: the notebook 02-papers100m-gcn as a plain program, its code
// unchanged.
//
//	go run ./tutorials/papers100m -hidden 128 -epochs 5
//	GNB_SMALL=1 GNB_WORKERS=2 go run ./tutorials/papers100m
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Papers100M is the dataset, or its small stand-in.
var Papers100M = gnb.Small("ogbn-papers100M", "planted?nodes=20000&classes=16&features=128&homophily=0.5&noise=3")

var (
	hidden = flag.Int("hidden", 64, "width of the hidden layer")
	lr     = flag.Float64("lr", 0.01, "learning rate")
	epochs = flag.Int("epochs", 3, "passes over the training nodes")
	batch  = flag.Int("batch", 128, "training nodes of a worker's batch")
	fanout = flag.Int("fanout", 50, "neighbours sampled for a node at each of two hops")
)

// gcn drops half of each layer's input, then convolves.
type gcn struct{ Convs []*nn.GCNConv }

func (m *gcn) NumLayers() int { return len(m.Convs) }

func (m *gcn) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = m.Convs[i].Forward(f, b, f.Dropout(h, 0.5))
	if i < len(m.Convs)-1 {
		h = f.ReLU(h)
	}
	return h
}

var GCN = gnb.Model("papers-gcn", func(s gnb.ModelConfig) *gcn { return &gcn{nn.Stack(s, nn.NewGCN)} })

type Args struct {
	Hidden, Epochs, Batch, Fanout int
	LR                            float64
}

var Papers = gnb.Program("papers100m", func(w *gnb.Worker, a Args) error {
	ds := w.Dataset()
	net := GCN.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: a.Hidden, Out: ds.Classes(), Layers: 2})
	opt := w.Optimizer(net, optim.NewAdam(optim.AdamOptions{LR: a.LR, WeightDecay: 5e-4}))
	fanouts := []int{a.Fanout, a.Fanout}
	sampled := gnb.Sampled(fanouts, a.Batch*w.World(), 0)
	for epoch := range w.Epochs(a.Epochs) {
		train := w.Timer(10)
		for b := range w.Batches("train", gnb.Loader{Fanouts: fanouts, BatchPerWorker: a.Batch}) {
			loss := w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			if b.Step%10 == 0 {
				w.Printf("epoch %d, step %d, loss %.4f", epoch, b.Step, loss)
			}
			train.Lap()
		}
		some := sampled
		some.MaxBatches, some.Timer = 100, w.Timer(10)
		val := w.Evaluate(net, some, "val")
		w.Printf("epoch %d: validation accuracy %.4f; %.4f s an iteration of training, %.4f s of inference",
			epoch, val.Of("val"), train.Mean().Seconds(), some.Timer.Mean().Seconds())
	}
	w.Evaluate(net, sampled, "test") // the last evaluation is the run's result
	return nil
})

func main() {
	flag.Parse()
	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, Papers100M))
	run := gnb.Must(gnb.Launch(ctx, Papers, Args{*hidden, *epochs, *batch, *fanout, *lr}, gnb.LaunchOptions{Data: ds, Seed: 1}))
	fmt.Printf("test accuracy: %.4f\n", run.TestAccuracy())
}
