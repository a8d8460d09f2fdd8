package gnb

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

// searchedPath returns the path 0 → 1 → 2 with features, and a network of two layers for it.
func searchedPath(t *testing.T) (searched, *dataset.Dataset) {
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
	return searched{"sage", m, params}, &dataset.Dataset{Graph: g, Features: x}
}

// searchLayers searches all layers on the whole graph.
func searchLayers(n searched, ds *dataset.Dataset) (what string) {
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	all := graphops.KeepSlices(ds.Graph).Slice(0, 3)
	err := nn.Try(func() {
		x := f.TableInput(nn.Table{F32: ds.Features.F32}, 3, 2, &nn.Space{})
		if what = searchInput(x, nil, func(row int) string { return fmt.Sprintf("node %d", row) }); what == "" {
			what = n.layers(f, []*graphops.Block{all, all}, x)
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
		damage func(searched, *dataset.Dataset)
		want   string // expected result for the layers and for the rows
	}{
		{"nothing", func(searched, *dataset.Dataset) {}, ""},
		{"a feature", func(_ searched, ds *dataset.Dataset) { ds.Features.F32[3] = nan }, "the input features of node 1 have NaN in column 1"},
		{"an edge's weight", func(_ searched, ds *dataset.Dataset) { ds.Graph.EdgeWeights[1] = inf }, "the weight of an edge into node 2 is +Inf"},
		{"a layer", func(n searched, _ *dataset.Dataset) {
			for _, p := range n.params.List() {
				for i := range p.W {
					p.W[i] = math.MaxFloat32
				}
			}
		}, "layer 0 (*nn.SAGEConv) of model \"sage\" gives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ds := searchedPath(t)
			c.damage(n, ds)
			if got := searchLayers(n, ds); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("found %q, want %q", got, c.want)
			}
			s := &rowSearch{searched: n}
			if s.input(ds, 0, 3); c.name != "a layer" && s.found != c.want {
				t.Errorf("in the rows: %q, want %q", s.found, c.want)
			}
		})
	}
}

func TestParametersAndGradients(t *testing.T) {
	n, ds := searchedPath(t)
	p := n.params.List()[1]
	p.W[0] = inf
	if got, want := n.parameter(), fmt.Sprintf("parameter %s of model \"sage\" +Inf", p.Name); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	s := &rowSearch{searched: n}
	if s.input(ds, 0, 3); !strings.HasPrefix(s.found, "parameter "+p.Name) {
		t.Errorf("in the rows: %q", s.found)
	}
	g := make([]float32, n.params.Len())
	if got := n.gradient(g); got != "" {
		t.Errorf("a gradient of zeros: %q", got)
	}
	g[len(n.params.List()[0].W)] = nan
	if got, want := n.gradient(g), "the gradient of parameter "+p.Name+" of"; !strings.HasPrefix(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestRowsOfALayer(t *testing.T) {
	n, _ := searchedPath(t)
	s := &rowSearch{searched: n}
	s.layer(0, 10, 2, []float32{1, 2, 3, 4})
	s.layer(1, 10, 2, []float32{1, 2, 3, nan})
	s.layer(2, 10, 2, []float32{inf, 2, 3, nan})
	if s.at != 2 || !strings.Contains(s.found, "layer 1") || !strings.Contains(s.found, "NaN for node 11 in column 1") {
		t.Errorf("found %q at %d, want layer 1's at 2", s.found, s.at)
	}
}

func TestIsFinite(t *testing.T) {
	if !isFinite(float32(1)) || isFinite(nan) || isFinite(inf) || isFinite(math.Inf(-1)) {
		t.Error("isFinite is wrong")
	}
	if got := (atStep{3, -1}).String() + "; " + (atStep{3, 4}).String(); got != "epoch 3; epoch 3, step 4" {
		t.Error(got)
	}
}
