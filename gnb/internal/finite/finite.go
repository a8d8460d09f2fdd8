// Package finite finds the first number that is not finite (NaN or an infinity) in the computation
// of a network's output: parameters, input features, edge weights, and the layers' outputs, in
// this order. Each search returns its finding as text for an error, or "" if every number is
// finite.
package finite

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/simd"
)

// Is reports whether a number is finite.
func Is[T float32 | float64](x T) bool { return x-x == 0 }

// Step is a position in a run. Its field Step is -1 for the whole epoch.
type Step struct{ Epoch, Step int }

func (at Step) String() string {
	if at.Step < 0 {
		return fmt.Sprintf("epoch %d", at.Epoch)
	}
	return fmt.Sprintf("epoch %d, step %d", at.Epoch, at.Step)
}

// Network is a network to search, with its parameters in host memory.
type Network struct {
	Name   string // name of its model
	Model  nn.Model
	Params *nn.Params
}

// Parameter searches the parameters.
func (n Network) Parameter() string {
	for _, p := range n.Params.List() {
		if i := simd.NotFinite(p.W); i >= 0 {
			return fmt.Sprintf("parameter %s of model %q %v", p.Name, n.Name, p.W[i])
		}
	}
	return ""
}

// Gradient searches a gradient, a buffer with the layout of the trained parameters.
func (n Network) Gradient(g []float32) string {
	i := simd.NotFinite(g)
	if i < 0 {
		return ""
	}
	name, at := "?", 0
	for _, p := range n.Params.List() {
		if p.Fixed {
			continue
		}
		if at += len(p.W); i < at {
			name = p.Name
			break
		}
	}
	return fmt.Sprintf("the gradient of parameter %s of model %q has %v, though the loss is finite", name, n.Name, g[i])
}

// Loss describes a loss that is not finite although everything before it is.
func (n Network) Loss(loss float32) string {
	return fmt.Sprintf("the loss is %v, though every layer of model %q has finite output: check how it is computed, and its targets", loss, n.Name)
}

// Pass searches the parameters, then the input and the layers of a pass that is configured by c and computed for this
// search: first returns its input, dense or sparse, and its blocks. name returns the name of an input row's node.
func (n Network) Pass(c nn.Config, first func(f *nn.Fwd) (x *nn.Tensor, sparse *dataset.Sparse, blocks []*graphops.Block), name func(row int) string) (what string) {
	if what = n.Parameter(); what != "" {
		return what
	}
	f := nn.NewFwd(c)
	defer f.Close()
	if err := nn.Try(func() {
		x, sparse, blocks := first(f)
		if what = Input(x, sparse, name); what == "" {
			what = n.Layers(f, blocks, x)
		}
	}); err != nil { // the pass that is searched succeeded
		return fmt.Sprintf("the output of model %q, whose layers could not be looked at: %v", n.Name, err)
	}
	return what
}

// Layers computes the layers over blocks, from the input x, and searches the weights of each block's edges
// and each layer's output. It ends at a block whose sources other ranks compute. A layer that fails panics, see [nn.Try].
func (n Network) Layers(f *nn.Fwd, blocks []*graphops.Block, x *nn.Tensor) string {
	for i, b := range blocks {
		if what := edges(b); what != "" || i > 0 && b.Halo != nil {
			return what
		}
		x = n.Model.Layer(f, i, b, x)
		if what := n.Output(i, x.Data(), x.Cols(), func(r int) int { return int(b.DstID(r)) }); what != "" {
			return what
		}
	}
	return ""
}

// Output searches a layer's output y, with cols columns per row; node returns the node of a row,
// or a negative number if it has none.
func (n Network) Output(layer int, y []float32, cols int, node func(row int) int) string {
	i := simd.NotFinite(y)
	if i < 0 {
		return ""
	}
	kind := nn.LayerType(n.Model, layer)
	if kind != "" {
		kind = " (" + kind + ")"
	}
	at := fmt.Sprintf("row %d", i/cols)
	if v := node(i / cols); v >= 0 {
		at = fmt.Sprintf("node %d", v)
	}
	return fmt.Sprintf("layer %d%s of model %q gives %v for %s in column %d, of finite input", layer, kind, n.Name, y[i], at, i%cols)
}

// Input searches a batch's input: the sparse rows if there are any, else the dense x. name returns
// the name of a row's node.
func Input(x *nn.Tensor, sparse *dataset.Sparse, name func(row int) string) string {
	if s := sparse; s != nil {
		i := simd.NotFinite(s.Values)
		if i < 0 {
			return ""
		}
		row := 0
		for row+1 < len(s.Indptr) && s.Indptr[row+1] <= int64(i) {
			row++
		}
		return feature(name(row), int(s.Indices[i]), s.Values[i])
	}
	data, cols := x.Data(), x.Cols()
	i := simd.NotFinite(data)
	if i < 0 {
		return ""
	}
	return feature(name(i/cols), i%cols, data[i])
}

func feature(node string, col int, v float32) string {
	return fmt.Sprintf("the input features of %s have %v in column %d", node, v, col)
}

// edges searches the weights of a block's edges.
func edges(b *graphops.Block) string {
	weights := b.Weights()
	i := simd.NotFinite(weights)
	if i < 0 {
		return ""
	}
	row, indptr := 0, b.Indptr()
	for row+1 < b.NumDst && indptr[row+1]-indptr[0] <= int64(i) {
		row++
	}
	return fmt.Sprintf("the weight of an edge into node %d is %v", b.DstID(row), weights[i])
}
