package finite

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

// small returns the path 0 → 1 → 2 with features, and a network of two layers for it.
func small(t *testing.T) (Network, *dataset.Dataset) {
	t.Helper()
	g, err := graphops.FromEdges(3, []int32{0, 1}, []int32{1, 2}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g = g.WithEdgeWeights([]float32{1, 1})
	m := nn.NewSAGEModel(nn.ModelConfig{In: 2, Hidden: 4, Out: 2, Layers: 2})
	params, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	params.Init(1)
	x := &dataset.Matrix{Rows: 3, Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6}}
	return Network{"sage", m, params}, &dataset.Dataset{Graph: g, Features: x}
}

// layers searches all layers on the whole graph.
func layers(n Network, ds *dataset.Dataset) (what string) {
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	all := graphops.KeepSlices(ds.Graph).Slice(0, 3)
	err := nn.Try(func() {
		x := f.TableInput(nn.Table{F32: ds.Features.F32}, 3, 2, &nn.Space{})
		if what = Input(x, nil, func(row int) string { return fmt.Sprintf("node %d", row) }); what == "" {
			what = n.Layers(f, []*graphops.Block{all, all}, x)
		}
	})
	if err != nil {
		return err.Error()
	}
	return what
}

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(Network, *dataset.Dataset)
		want   string // expected result for the layers and for the rows
	}{
		{"nothing", func(Network, *dataset.Dataset) {}, ""},
		{"a feature", func(_ Network, ds *dataset.Dataset) { ds.Features.F32[3] = nan }, "the input features of node 1 have NaN in column 1"},
		{"an edge's weight", func(_ Network, ds *dataset.Dataset) { ds.Graph.EdgeWeights[1] = inf }, "the weight of an edge into node 2 is +Inf"},
		{"a layer", func(n Network, _ *dataset.Dataset) {
			for _, p := range n.Params.List() {
				for i := range p.W {
					p.W[i] = math.MaxFloat32
				}
			}
		}, "layer 0 (*nn.SAGEConv) of model \"sage\" gives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ds := small(t)
			c.damage(n, ds)
			if got := layers(n, ds); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("found %q, want %q", got, c.want)
			}
			s := &Rows{Network: n}
			if s.Input(ds, 0, 3); c.name != "a layer" && s.Found != c.want {
				t.Errorf("in the rows: %q, want %q", s.Found, c.want)
			}
		})
	}
}

func TestParametersAndGradients(t *testing.T) {
	n, ds := small(t)
	p := n.Params.List()[1]
	p.W[0] = inf
	if got, want := n.Parameter(), fmt.Sprintf("parameter %s of model \"sage\" +Inf", p.Name); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	s := &Rows{Network: n}
	if s.Input(ds, 0, 3); !strings.HasPrefix(s.Found, "parameter "+p.Name) {
		t.Errorf("in the rows: %q", s.Found)
	}
	g := make([]float32, n.Params.Len())
	if got := n.Gradient(g); got != "" {
		t.Errorf("a gradient of zeros: %q", got)
	}
	g[len(n.Params.List()[0].W)] = nan
	if got, want := n.Gradient(g), "the gradient of parameter "+p.Name+" of"; !strings.HasPrefix(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestRowsOfALayer(t *testing.T) {
	n, _ := small(t)
	s := &Rows{Network: n}
	s.Layer(0, 10, 2, []float32{1, 2, 3, 4})
	s.Layer(1, 10, 2, []float32{1, 2, 3, nan})
	s.Layer(2, 10, 2, []float32{inf, 2, 3, nan})
	if s.At != 2 || !strings.Contains(s.Found, "layer 1") || !strings.Contains(s.Found, "NaN for node 11 in column 1") {
		t.Errorf("found %q at %d, want layer 1's at 2", s.Found, s.At)
	}
}

func TestIs(t *testing.T) {
	if !Is(float32(1)) || Is(nan) || Is(inf) || Is(math.Inf(-1)) {
		t.Error("Is is wrong")
	}
	if got := (Step{3, -1}).String() + "; " + (Step{3, 4}).String(); got != "epoch 3; epoch 3, step 4" {
		t.Error(got)
	}
}
