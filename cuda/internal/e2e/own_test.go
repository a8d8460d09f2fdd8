//go:build cuda && linux && cgo

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/runs"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testneed"
)

// sage is the model of the README's own training loop.
type sage struct{ Convs []*nn.SAGEConv }

func (m *sage) NumLayers() int { return len(m.Convs) }
func (m *sage) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = m.Convs[i].Forward(f, b, h)
	if i < len(m.Convs)-1 {
		h = f.Dropout(f.ReLU(h), 0.5)
	}
	return h
}

// reading computes what the README's model does, and reads its blocks' arrays on the host on the way, as a layer
// may that derives something of them: here a degree for each row, which it divides by.
type reading struct {
	sage
	Positions bool // reads these as well
}

func (m *reading) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	indptr, indices := b.Indptr(), b.Indices()
	share := make([]float32, b.NumEdges())
	for d := range b.NumDst {
		for e := indptr[d]; e < indptr[d+1]; e++ {
			if int(indices[e]) >= b.NumSrc || m.Positions && b.Pos(e) < 0 {
				panic("an edge from nowhere")
			}
			share[e-indptr[0]] = 1 / float32(b.InDegree(d))
		}
	}
	c := m.Convs[i]
	h = f.Add(c.LinL.Forward(f, f.AggregateWeighted(b, h, share, tensor.Sum)), c.LinR.Forward(f, f.Dst(b, h)))
	if i < len(m.Convs)-1 {
		h = f.Dropout(f.ReLU(h), 0.5)
	}
	return h
}

var (
	_ = gnb.Model("e2e.readme", func(s gnb.ModelConfig) *sage { return &sage{nn.Stack(s, nn.NewSAGE)} })
	_ = gnb.Model("e2e.reading", func(s gnb.ModelConfig) *reading { return &reading{sage{nn.Stack(s, nn.NewSAGE)}, false} })
	_ = gnb.Model("e2e.residual", func(s gnb.ModelConfig) *residual { return &residual{sage{nn.Stack(s, nn.NewSAGE)}} })
)

// residual adds a layer's input to its output where they are as wide: rows of one block to rows of the next.
type residual struct{ sage }

func (m *residual) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	y := m.Convs[i].Forward(f, b, h)
	if y.Cols() == h.Cols() {
		y = f.Add(y, f.Dst(b, h))
	}
	if i < len(m.Convs)-1 {
		y = f.Dropout(f.ReLU(y), 0.5)
	}
	return y
}

type ownArgs struct {
	Model   string
	Looks   int // batches whose arrays the program reads itself, and whose features
	Reading bool
}

var own = gnb.Program("e2e.own", func(w *gnb.Worker, a ownArgs) error {
	net := w.Network(a.Model, gnb.ModelConfig{In: w.Dataset().FeatureDim(), Hidden: 8, Out: w.Dataset().Classes(), Layers: 3, Dropout: 0.5})
	opt := w.Adam(net, 0.01)
	looks := 0
	for range w.Epochs(2) {
		for b := range w.Batches("train", gnb.Loader{Fanouts: []int{3, 3, 2}, Batch: 40}) {
			if looks < a.Looks {
				looks++
				x, cols := b.Features(), w.Dataset().FeatureDim()
				for r, v := range b.InputIDs() {
					if !slices.Equal(x[r*cols:(r+1)*cols], w.Dataset().Features.Row(int(v))) {
						return fmt.Errorf("row %d of the batch's features is not node %d's", r, v)
					}
				}
			}
			w.Step(b.Loss(net.Forward(b)), opt)
		}
	}
	w.Result("accuracy", w.Evaluate(net, gnb.Sampled([]int{3, 3, 2}, 40, 2), "val").Of("val"))
	return nil
})

// A program's own model computes on the blocks that the device has: the README's copies nothing of them to the
// host, has the built-in's losses to the bit, and so has one with residuals the CPU's. A layer that reads arrays
// on the host gets those it asks for, and nothing else is copied.
func TestOwnModels(t *testing.T) {
	testneed.NotShort(t, "it trains several models on the interpreter")
	ds := load(t, "planted?nodes=300&classes=3&features=8&degree=5")
	run := func(t *testing.T, a ownArgs, device string) (losses []float64, read int) {
		t.Helper()
		log := cluster(t, 1, machine{Races: true})
		_, err := gnb.Launch(t.Context(), own, a, gnb.LaunchOptions{Data: ds, Device: device, Workers: 1, Quiet: true, Resume: gnb.Never, CheckpointEvery: -1, Events: func(e runs.Event) {
			if e.Kind == "epoch" {
				losses = append(losses, e.Loss)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if device == "cpu" {
			return losses, 0
		}
		return losses, number(t, devices(t, log)[0], "read_bytes")
	}
	builtin, least := run(t, ownArgs{Model: "sage"}, "cuda")
	cpu, _ := run(t, ownArgs{Model: "sage"}, "cpu")
	same(t, builtin, cpu)
	losses, read := run(t, ownArgs{Model: "e2e.readme"}, "cuda")
	if !slices.Equal(losses, builtin) || read != least {
		t.Errorf("the README's model has losses %v and copies %d bytes to the host; the built-in %v, and %d", losses, read, builtin, least)
	}
	if losses, looked := run(t, ownArgs{Model: "e2e.readme", Looks: 1}, "cuda"); !slices.Equal(losses, builtin) || looked <= least || looked > least+6*4*300 {
		t.Errorf("a look at one batch copies %d bytes more to the host, losses %v", looked-least, losses)
	}
	t.Run("residual", func(t *testing.T) {
		want, _ := run(t, ownArgs{Model: "e2e.residual"}, "cpu")
		losses, read := run(t, ownArgs{Model: "e2e.residual"}, "cuda")
		same(t, losses, want)
		if read != least {
			t.Errorf("%d bytes are copied to the host, %d by one without residuals", read, least)
		}
	})
	t.Run("reading", func(t *testing.T) {
		want, _ := run(t, ownArgs{Model: "e2e.reading"}, "cpu")
		losses, read := run(t, ownArgs{Model: "e2e.reading"}, "cuda")
		same(t, losses, want)
		if read <= least {
			t.Errorf("%d bytes are copied to the host, and %d where no layer reads any", read, least)
		}
	})
}
