//go:build cuda && linux && cgo

package backend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/testneed"
)

// A GCN of 16 hidden units on a graph of Cora's size, with sparse features, has the CPU's losses on
// the device and allocates no memory in a later step.
func TestCoraSize(t *testing.T) {
	testneed.NotShort(t, "it trains on a graph of Cora's size on the interpreter")
	const n, words, each, classes, degree = 2708, 1433, 18, 7, 4
	r := rand.New(rand.NewPCG(1, 2))
	g := &graphops.Graph{Indptr: make([]int64, 1, n+1)}
	indptr := make([]int64, 1, n+1)
	var indices []int32
	labels := make([]int32, n)
	for v := range n {
		labels[v] = -1
		if v%19 == 0 {
			labels[v] = int32(v % classes)
		}
		var sources, columns []int32
		for range degree {
			sources = append(sources, r.Int32N(n))
		}
		for range each {
			columns = append(columns, r.Int32N(words))
		}
		slices.Sort(sources)
		slices.Sort(columns)
		g.Indices = append(g.Indices, sources...)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		indices = append(indices, slices.Compact(columns)...)
		indptr = append(indptr, int64(len(indices)))
	}
	run := func(be *Backend) (losses []float64, calls []int64) {
		model := nn.NewGCNModel(nn.ModelConfig{In: words, Hidden: 16, Out: classes, Layers: 2, Dropout: 0.5})
		p, err := nn.Collect(model)
		if err != nil {
			t.Fatal(err)
		}
		p.Init(1)
		adam := optim.NewAdam(optim.AdamOptions{LR: 0.01, WeightDecay: 5e-4})
		c := tensor.Config{Train: true, Seed: 1}
		var w *Weights
		if be != nil {
			c.Backend = be
			if w, err = be.Weights(p); err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		f := nn.NewFwd(c)
		defer f.Close()
		blocks := nn.FullGraph(g, 2)
		for step := range 3 {
			c.Step = step
			f.Reset(c)
			x := f.SparseInput(n, words, indptr, indices, nil, &nn.Space{})
			l := nn.CrossEntropy(nn.Forward(model, f, blocks, x), labels)
			losses = append(losses, l.Mean())
			if be == nil {
				p.ZeroGrad()
				l.Backward()
				adam.Step(p.Flat(), p.Grad(), 1/float32(l.Weight))
				continue
			}
			w.ZeroGrad()
			l.Backward()
			if err := w.Step(adam, 1/float32(l.Weight)); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, be.Device().Memory().Calls)
		}
		blocks[0].Reset()
		return losses, calls
	}
	want, _ := run(nil)
	got, calls := run(open(t, fakegpu.Config{NoRaces: true}))
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-5*float64(i+1)) {
			t.Errorf("step %d: loss %g, on the CPU %g", i, got[i], want[i])
		}
	}
	if !(want[2] < want[0]) {
		t.Errorf("the loss does not fall: %g, then %g", want[0], want[2])
	}
	if calls[2] != calls[1] {
		t.Errorf("%d allocations in the third step", calls[2]-calls[1])
	}
}
