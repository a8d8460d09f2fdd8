package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

// edgeLayersOf are layers with features of edges, 3 of each, from 4 columns to 2.
func edgeLayersOf() map[string]Conv {
	return map[string]Conv{
		"gatedgcn": NewGatedGCN(4, 2, 3), "resgated": NewResGated(4, 2, 3),
		"pna": NewPNA(4, 2, PNAOptions{EdgeDim: 3}), "pna, all": NewPNA(4, 2, PNAOptions{EdgeDim: 3, Aggregators: pnaAggregators, Scalers: pnaScalers}),
	}
}

// The gradients of layers with features of edges are those of their functions, on a graph with an isolated node, a repeated edge
// and a self-loop.
func TestEdgeLayerGradients(t *testing.T) {
	t.Parallel()
	b := pygEdges(pygGraph(t, false), 3, 7).Block()
	for name, c := range edgeLayersOf() {
		t.Run(name, func(t *testing.T) {
			gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor { return c.Forward(f, b, x[0]) }, inputsOf(t, c, 8, 4)...)
		})
	}
}

func TestGatedGCNErrors(t *testing.T) {
	t.Parallel()
	b := pygEdges(pygGraph(t, false), 3, 7).Block()
	f := NewFwd(Config{})
	h := f.Input(8, 4, make([]float32, 32), &Space{})
	for want, bad := range map[string]func(){
		"the layer is nil; create it with NewGatedGCN":                 func() { (*GatedGCNConv)(nil).Forward(f, b, h) },
		"made for edges with rows: true, and got rows of edges: false": func() { NewGatedGCN(4, 2, 3).ForwardEdges(f, b, h, nil) },
		"EdgeDim is -1": func() { NewGatedGCN(4, 2, -1) },
		"the edges need 2 features, but those of the graph have 3":                        func() { NewGatedGCN(4, 2, 2).Forward(f, b, h) },
		"ResGatedConv: EdgeDim is -1; it is the number of features of an edge, or 0":      func() { NewResGated(4, 2, -1) },
		"the edges need 3 features, but neither the block nor a graph has them; add edge": func() { NewResGated(4, 2, 3).Forward(f, sampledBlock(), f.Input(6, 4, make([]float32, 24), nil)) },
	} {
		if err := Try(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
