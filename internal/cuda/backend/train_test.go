//go:build cuda && linux && cgo

package backend

import (
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// karate trains on the karate club's graph, with full-graph steps and the labels of the training
// split.
type karate struct {
	ds     *dataset.Dataset
	labels []int32
	model  nn.Model
	params *nn.Params
}

func newKarate(t *testing.T, model nn.Model) *karate {
	t.Helper()
	k := &karate{ds: dataset.Karate(), model: model}
	train, err := k.ds.Split("train")
	if err != nil {
		t.Fatal(err)
	}
	k.labels = make([]int32, k.ds.Nodes())
	for v := range k.labels {
		k.labels[v] = -1
	}
	for _, v := range train {
		k.labels[v] = k.ds.Labels[v]
	}
	if k.params, err = nn.Collect(model); err != nil {
		t.Fatal(err)
	}
	k.params.Init(1)
	return k
}

// run trains on the CPU, or on be, and returns the loss and the number of correct rows of each
// step.
func (k *karate) run(t *testing.T, be *Backend, o optim.Optimizer, steps int) (losses []float64, right []int64) {
	t.Helper()
	c := tensor.Config{Train: true, Seed: 1}
	var w *Weights
	if be != nil {
		c.Backend = be
		var err error
		if w, err = be.Weights(k.params); err != nil {
			t.Fatal(err)
		}
		defer w.Close()
	}
	f := nn.NewFwd(c)
	defer f.Close()
	blocks := nn.FullGraph(k.ds.Graph, k.model.NumLayers())
	n := k.ds.Nodes()
	for step := range steps {
		c.Step = step
		f.Reset(c)
		l := nn.CrossEntropy(nn.Forward(k.model, f, blocks, f.Input(n, n, k.ds.Features.F32, &nn.Space{})), k.labels)
		losses, right = append(losses, l.Mean()), append(right, l.Correct())
		if be == nil {
			k.params.ZeroGrad()
			l.Backward()
			scale, _ := optim.ClipScale(k.params.Grad(), 1/float32(l.Weight), 1)
			o.Step(k.params.Flat(), k.params.Grad(), scale)
			continue
		}
		w.ZeroGrad()
		l.Backward()
		scale, _, err := w.ClipScale(1/float32(l.Weight), 1)
		if err == nil {
			err = w.Step(o, scale)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if w != nil {
		if err := w.Pull(o); err != nil {
			t.Fatal(err)
		}
	}
	return losses, right
}

// Models of each kind train on the device with the CPU's losses, including dropout, with each
// optimiser, and allocate no memory in later steps.
func TestKarate(t *testing.T) {
	const steps = 12
	sizes := nn.ModelConfig{In: 34, Hidden: 16, Out: 2, Layers: 2, Dropout: 0.2}
	for _, c := range []struct {
		name  string
		model func() nn.Model
		opt   func() optim.Optimizer
	}{
		{"SAGE, Adam", func() nn.Model { return nn.NewSAGEModel(sizes) }, func() optim.Optimizer { return optim.NewAdam(optim.AdamOptions{LR: 0.02, WeightDecay: 5e-3}) }},
		{"SAGE max, AdamW", func() nn.Model {
			return nn.NewSAGEModelWith(sizes, nn.SAGEOptions{Aggr: nn.Max, Normalize: true})
		}, func() optim.Optimizer { return optim.NewAdamW(optim.AdamOptions{LR: 0.02}) }},
		{"GCN, SGD", func() nn.Model { return nn.NewGCNModel(sizes) }, func() optim.Optimizer { return optim.NewSGD(optim.SGDOptions{LR: 0.1}) }},
		{"GAT, momentum", func() nn.Model { return nn.NewGATModel(sizes) }, func() optim.Optimizer { return optim.NewSGD(optim.SGDOptions{LR: 0.05, Momentum: 0.9}) }},
		{"GIN, Nesterov", func() nn.Model { return nn.NewGINModel(sizes) }, func() optim.Optimizer {
			return optim.NewSGD(optim.SGDOptions{LR: 0.01, Momentum: 0.9, Nesterov: true})
		}},
		{"SAGE, an optimiser of the host", func() nn.Model { return nn.NewSAGEModel(sizes) }, func() optim.Optimizer {
			return struct{ optim.Optimizer }{optim.NewAdam(optim.AdamOptions{LR: 0.02})}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "SAGE, Adam" {
				testneed.NotShort(t, "it trains on the interpreter")
			}
			host, hostOpt := newKarate(t, c.model()), c.opt()
			want, wantRight := host.run(t, nil, hostOpt, steps)
			dev, devOpt := newKarate(t, c.model()), c.opt()
			be := open(t, fakegpu.Config{Schedule: fakegpu.Random, Seed: 3})
			got, right := dev.run(t, be, devOpt, steps)
			for i := range want {
				// The device adds float32 in another order, so the difference grows with the steps.
				if !(math.Abs(got[i]-want[i]) <= 1e-5*float64(i+1)) || right[i] != wantRight[i] {
					t.Fatalf("step %d: loss %g, %d correct; on the CPU %g, %d", i, got[i], right[i], want[i], wantRight[i])
				}
			}
			if !(want[steps-1] < want[0]) {
				t.Errorf("the loss does not fall: %g, then %g", want[0], want[steps-1])
			}
			for i, v := range dev.params.Flat() {
				if w := host.params.Flat()[i]; math.Abs(float64(v-w)) > 1e-3 {
					t.Fatalf("weight %d ends at %g, on the CPU at %g", i, v, w)
				}
			}
			if devOpt.Steps() != steps {
				t.Errorf("the optimiser counts %d steps", devOpt.Steps())
			}
			// Training continues from the weights that Pull copied to the host, as it does on the
			// CPU.
			more, _ := dev.run(t, be, devOpt, 2)
			calls := be.Device().Memory().Calls
			want, _ = host.run(t, nil, hostOpt, 2)
			for i := range want {
				if !(math.Abs(more[i]-want[i]) <= 1e-3) {
					t.Errorf("step %d after a Pull: loss %g, on the CPU %g", i, more[i], want[i])
				}
			}
			dev.run(t, be, devOpt, 3)
			if n := be.Device().Memory().Calls; n != calls {
				t.Errorf("%d allocations in steady state", n-calls)
			}
		})
	}
}

// The loss that the host gets together with the count equals the loss on the device, and the CPU's.
func TestLossOnBothSides(t *testing.T) {
	be := open(t, fakegpu.Config{Schedule: fakegpu.Lazy})
	logits, labels := []float32{1, 2, 3, -1, 0, 5, 4, 4, 1, 0, 0, 0}, []int32{2, 0, -1, 0}
	loss := func(b ops.Backend) (*nn.Loss, []float32) {
		f := nn.NewFwd(tensor.Config{Backend: b, Grad: true})
		t.Cleanup(f.Close)
		x := f.Leaf(4, 3, logits, nil)
		l := nn.CrossEntropy(x, labels)
		at := l.Sum.Data()
		l.Backward()
		at[0]++ // changes only the caller's copy
		return l, x.Grad()
	}
	want, wantGrad := loss(nil)
	l, grad := loss(be)
	there := make([]float32, 1)
	l.Sum.CopyTo(there)
	if got := l.Sum.Data()[0]; got != there[0] || l.Correct() != 2 || want.Correct() != 2 {
		t.Errorf("loss %g with %d correct rows on the host, %g on the device", got, l.Correct(), there[0])
	}
	near(t, "loss", there, []float32{want.Sum.Data()[0] - 1}) // on the CPU, Data is the tensor's own memory, which at[0]++ has changed
	near(t, "gradient", grad, wantGrad)
}
