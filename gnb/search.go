package gnb

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/simd"
)

// isFinite reports whether a number is finite.
func isFinite[T float32 | float64](x T) bool { return x-x == 0 }

// atStep is a position in a run. Its step is -1 for the whole epoch.
type atStep struct{ epoch, step int }

func (at atStep) String() string {
	if at.step < 0 {
		return fmt.Sprintf("epoch %d", at.epoch)
	}
	return fmt.Sprintf("epoch %d, step %d", at.epoch, at.step)
}

// searched is a network to search for the first number that is not finite (NaN or an infinity) in the computation of its
// output: parameters, input features, edge weights, and the layers' outputs, in this order. Each search returns its finding as
// text for an error, or "" if every number is finite. The parameters are in host memory.
type searched struct {
	name   string // name of its model
	model  nn.Model
	params *nn.Params
}

// parameter searches the parameters.
func (n searched) parameter() string {
	for _, p := range n.params.List() {
		if i := simd.NotFinite(p.W); i >= 0 {
			return fmt.Sprintf("parameter %s of model %q %v", p.Name, n.name, p.W[i])
		}
	}
	return ""
}

// gradient searches a gradient, a buffer with the layout of the trained parameters.
func (n searched) gradient(g []float32) string {
	i := simd.NotFinite(g)
	if i < 0 {
		return ""
	}
	name, at := "?", 0
	for _, p := range n.params.List() {
		if p.Fixed {
			continue
		}
		if at += len(p.W); i < at {
			name = p.Name
			break
		}
	}
	return fmt.Sprintf("the gradient of parameter %s of model %q has %v, though the loss is finite", name, n.name, g[i])
}

// loss describes a loss that is not finite although everything before it is.
func (n searched) loss(loss float32) string {
	return fmt.Sprintf("the loss is %v, though every layer of model %q has finite output: check how it is computed, and its targets", loss, n.name)
}

// pass searches the parameters, then the input and the layers of a pass that is configured by c and computed for this
// search: first returns its input, dense or sparse, and its blocks. name returns the name of an input row's node.
func (n searched) pass(c nn.Config, first func(f *nn.Fwd) (x *nn.Tensor, sparse *dataset.Sparse, blocks []*graphops.Block), name func(row int) string) (what string) {
	if what = n.parameter(); what != "" {
		return what
	}
	f := nn.NewFwd(c)
	defer f.Close()
	if err := nn.Try(func() {
		x, sparse, blocks := first(f)
		if what = searchInput(x, sparse, name); what == "" {
			what = n.layers(f, blocks, x)
		}
	}); err != nil { // the pass that is searched succeeded
		return fmt.Sprintf("the output of model %q, whose layers could not be looked at: %v", n.name, err)
	}
	return what
}

// layers computes the layers over blocks, from the input x, and searches the weights of each block's edges
// and each layer's output. It ends at a block whose sources other ranks compute. A layer that fails panics, see [nn.Try].
func (n searched) layers(f *nn.Fwd, blocks []*graphops.Block, x *nn.Tensor) string {
	for i, b := range blocks {
		if what := searchEdges(b); what != "" || i > 0 && b.Halo != nil {
			return what
		}
		x = n.model.Layer(f, i, b, x)
		if what := n.output(i, x.Data(), x.Cols(), func(r int) int { return int(b.DstID(r)) }); what != "" {
			return what
		}
	}
	return ""
}

// output searches a layer's output y, with cols columns per row; node returns the node of a row,
// or a negative number if it has none.
func (n searched) output(layer int, y []float32, cols int, node func(row int) int) string {
	i := simd.NotFinite(y)
	if i < 0 {
		return ""
	}
	kind := nn.LayerType(n.model, layer)
	if kind != "" {
		kind = " (" + kind + ")"
	}
	at := fmt.Sprintf("row %d", i/cols)
	if v := node(i / cols); v >= 0 {
		at = fmt.Sprintf("node %d", v)
	}
	return fmt.Sprintf("layer %d%s of model %q gives %v for %s in column %d, of finite input", layer, kind, n.name, y[i], at, i%cols)
}

// searchInput searches a batch's input: the sparse rows if there are any, else the dense x. name returns
// the name of a row's node.
func searchInput(x *nn.Tensor, sparse *dataset.Sparse, name func(row int) string) string {
	if s := sparse; s != nil {
		i := simd.NotFinite(s.Values)
		if i < 0 {
			return ""
		}
		row := 0
		for row+1 < len(s.Indptr) && s.Indptr[row+1] <= int64(i) {
			row++
		}
		return badFeature(name(row), int(s.Indices[i]), s.Values[i])
	}
	data, cols := x.Data(), x.Cols()
	i := simd.NotFinite(data)
	if i < 0 {
		return ""
	}
	return badFeature(name(i/cols), i%cols, data[i])
}

func badFeature(node string, col int, v float32) string {
	return fmt.Sprintf("the input features of %s have %v in column %d", node, v, col)
}

// searchEdges searches the weights of a block's edges.
func searchEdges(b *graphops.Block) string {
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
