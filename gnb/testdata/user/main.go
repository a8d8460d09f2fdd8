// Command user is a program of somebody who uses the library from a module of
// their own: a layer, a loss, a sampler and a training loop, written with
// exported names only. The tests of package gnb build and run it.
//
//	user LINES_FILE WORKERS
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// concat is a layer of the user's own: a linear map of a node's row beside the
// mean of messages that the user computes per edge.
type concat struct {
	Lin *nn.Linear `nn:"lin"`
}

func newConcat(in, out int) *concat { return &concat{nn.NewLinear(2*in, out, true)} }

func (c *concat) Forward(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	m := f.Propagate(b, h, func(f *nn.Fwd, src, dst *nn.Tensor) *nn.Tensor { return f.ReLU(src) }, tensor.Mean)
	return c.Lin.Forward(f, f.Concat(f.Dst(b, h), m))
}

type net struct {
	Convs   []*concat `nn:"convs"`
	Dropout float64
}

func (n *net) NumLayers() int { return len(n.Convs) }

func (n *net) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = n.Convs[i].Forward(f, b, h)
	if i < len(n.Convs)-1 {
		h = f.Dropout(f.ReLU(h), n.Dropout)
	}
	return h
}

// spread is a sampler of the user's own: at most Fan neighbours, and of nodes
// with an even number only half as many.
type spread struct{ Fan []int }

func (s spread) Hops() int { return len(s.Fan) }

func (s spread) Pick(h *gnb.Hop, v int32, nbrs, out []int32) []int32 {
	k := s.Fan[h.Index]
	if v%2 == 0 {
		k = (k + 1) / 2
	}
	return h.Uniform(len(nbrs), k, out)
}

// squared is a loss of the user's own: the squared distance of the softmax from
// the one-hot label.
func squared(out *nn.Tensor, labels []int32) *nn.Loss {
	f := out.Fwd()
	oneHot := make([]float32, out.Rows()*out.Cols())
	for i, y := range labels {
		oneHot[i*out.Cols()+int(y)] = 1
	}
	p := f.Exp(f.LogSoftmax(out))
	d := f.Sub(p, f.Input(out.Rows(), out.Cols(), oneHot, out.Space()))
	return &nn.Loss{Sum: f.SumAll(f.Mul(d, d)), Weight: float64(out.Rows())}
}

// Args is the program's argument.
type Args struct {
	Epochs, Hidden int
	LR             float64
}

// GNN is the user's model.
var GNN = gnb.Model("user-net", func(s gnb.ModelConfig) *net {
	return &net{Convs: nn.Stack(s, newConcat), Dropout: s.Dropout}
})

// Loop is the user's training loop.
var Loop = gnb.Program("user-loop", func(w *gnb.Worker, a Args) error {
	ds := w.Dataset()
	model := GNN.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: a.Hidden, Out: ds.Classes(), Layers: 2, Dropout: 0.2})
	opt := w.Adam(model, a.LR)
	for epoch := range w.Epochs(a.Epochs) {
		for b := range w.Batches("train", gnb.Loader{Sampler: spread{[]int{8, 4}}, Batch: 256}) {
			w.Step(squared(model.Forward(b), b.Labels), opt)
		}
		w.Log("epoch", epoch, "loss", w.EpochLoss())
	}
	m := w.Evaluate(model, gnb.FullNeighbors, "val", "test")
	w.Result("test", m.Of("test"))
	return nil
})

func main() {
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: user LINES_FILE WORKERS")
		os.Exit(2)
	}
	// What a cell does before it trains happens once, however many workers.
	f, err := os.OpenFile(flag.Arg(0), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	gnb.Check(err)
	_, err = fmt.Fprintln(f, "main ran")
	gnb.Check(err)
	gnb.Check(f.Close())
	workers := gnb.Must(strconv.Atoi(flag.Arg(1)))

	ctx := context.Background()
	ds := gnb.Must(gnb.Load(ctx, "planted?nodes=2000&seed=3"))
	run := gnb.Must(gnb.Launch(ctx, Loop, Args{Epochs: 6, Hidden: 32, LR: 0.01}, gnb.LaunchOptions{Data: ds, Workers: workers, Quiet: true}))
	fmt.Printf("test accuracy %.4f\n", run.Value("test"))
}
