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

// sage is the model of the training loop in the README.
type sage struct{ Convs []*nn.SAGEConv }

func (m *sage) NumLayers() int { return len(m.Convs) }
func (m *sage) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	h = m.Convs[i].Forward(f, b, h)
	if i < len(m.Convs)-1 {
		h = f.Dropout(f.ReLU(h), 0.5)
	}
	return h
}

// reading computes the same as sage, but reads its blocks' arrays on the host, as a layer may: here
// to divide each row by its degree.
type reading struct {
	sage
	Positions bool // reads the edges' positions as well
}

func (m *reading) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	indptr, indices := b.Indptr(), b.Indices()
	share := make([]float32, b.NumEdges())
	for d := range b.NumDst {
		for e := indptr[d]; e < indptr[d+1]; e++ {
			if int(indices[e]) >= b.NumSrc || m.Positions && b.Pos(e) < 0 {
				panic("an edge has an invalid source or position")
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

// residual adds a layer's input to its output if both have the same width, so it combines rows of
// one block with rows of the next.
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
	Looks   int // number of batches whose ids and features the program reads
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

// A program's own model computes on the blocks that are on the device. The README's model copies no
// more to the host than the built-in SAGE and has its losses bit for bit; a model with residual
// connections has the CPU's losses. If a layer reads arrays on the host, only these arrays are
// copied.
func TestOwnModels(t *testing.T) {
	testneed.NotShort(t, "it trains several models on the interpreter")
	ds := load(t, "planted?nodes=300&classes=3&features=8&degree=5")
	run := func(t *testing.T, a ownArgs, device string) (losses []float64, read int) {
		t.Helper()
		log := cluster(t, 1, machine{Races: true})
		_, err := gnb.Launch(t.Context(), own, a, gnb.LaunchOptions{
			Data:            ds,
			Device:          device,
			Workers:         1,
			Quiet:           true,
			Resume:          gnb.Never,
			CheckpointEvery: -1,
			Events: func(e runs.Event) {
				if e.Kind == "epoch" {
					losses = append(losses, e.Loss)
				}
			},
		})
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
		t.Errorf("the README's model has losses %v and copies %d bytes to the host; the built-in model has %v and copies %d", losses, read, builtin, least)
	}
	if losses, looked := run(t, ownArgs{Model: "e2e.readme", Looks: 1}, "cuda"); !slices.Equal(losses, builtin) || looked <= least || looked > least+6*4*300 {
		t.Errorf("reading one batch copies %d more bytes to the host, losses %v", looked-least, losses)
	}
	t.Run("residual", func(t *testing.T) {
		want, _ := run(t, ownArgs{Model: "e2e.residual"}, "cpu")
		losses, read := run(t, ownArgs{Model: "e2e.residual"}, "cuda")
		same(t, losses, want)
		if read != least {
			t.Errorf("%d bytes are copied to the host, want %d as without residuals", read, least)
		}
	})
	t.Run("reading", func(t *testing.T) {
		want, _ := run(t, ownArgs{Model: "e2e.reading"}, "cpu")
		losses, read := run(t, ownArgs{Model: "e2e.reading"}, "cuda")
		same(t, losses, want)
		if read <= least {
			t.Errorf("%d bytes are copied to the host, want more than the %d of a model that reads nothing", read, least)
		}
	})
}
