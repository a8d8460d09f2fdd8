package gnb_test

import (
	"fmt"
	"os"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
)

// smallSet trains in seconds: an epoch has 25 steps with batches of 64.
const smallSet = "planted?nodes=3000&features=16&classes=4&seed=5"

// loopArgs configure the tests' program; Kind names the mistake that it makes.
type loopArgs struct {
	Kind     string
	Epochs   int
	FailRank int
	FailStep int
	SlowMS   int
	Digest   bool
}

// faulty is a model whose layer fails as the test requests, at one step of one rank. The program
// sets this in package variables of the worker.
type faulty struct {
	nn.SAGE
	before func()
}

func (m *faulty) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	if m.before != nil {
		m.before()
	}
	return m.SAGE.Layer(f, i, b, h)
}

var faultyModel = gnb.Model("test.faulty", func(s gnb.ModelConfig) *faulty {
	return &faulty{SAGE: *nn.NewSAGEModel(s)}
})

var loop = gnb.Program("test.loop", func(w *gnb.Worker, a loopArgs) error {
	ds := w.Dataset()
	net := faultyModel.New(w, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 16, Out: ds.Classes(), Layers: 2, Dropout: 0.5})
	opt := w.Adam(net, 1e-3)
	visits := 0
	w.Keep("visits", &visits)
	if a.Digest {
		w.Digest()
	}
	for range w.Epochs(a.Epochs) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{5, 5}, Batch: 64}) {
			total := visits
			hit := w.Rank() == a.FailRank && total == a.FailStep && a.FailStep > 0
			net.Model.before = nil
			if hit {
				switch a.Kind {
				case "panic":
					net.Model.before = func() { panic("the user's layer went wrong") }
				case "hang":
					net.Model.before = func() { select {} }
				case "exit":
					net.Model.before = func() { os.Exit(7) }
				}
			}
			if a.Kind == "break" && hit {
				break
			}
			w.Step(nn.CrossEntropy(net.Forward(b), b.Labels), opt)
			visits++
			if a.SlowMS > 0 {
				time.Sleep(time.Duration(a.SlowMS) * time.Millisecond)
			}
		}
		w.Evaluate(net, gnb.FullNeighbors, "val")
	}
	w.Result("visits", float64(visits))
	if a.Kind == "error" {
		return fmt.Errorf("the program gave up")
	}
	return nil
})
