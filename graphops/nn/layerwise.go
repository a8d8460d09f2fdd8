package nn

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
)

// chunkFloats bounds the widest matrix of a chunk of layer-wise inference: 8 MB fit the caches of a
// server, and a chunk is still large enough for matrix products to run at full speed.
const (
	chunkFloats  = 1 << 21
	chunkMinRows = 1024
)

// LayerWise returns the exact output of m for every node of g, [g.NumNodes(), outCols], from x
// [g.NumNodes(), cols]. It computes all rows of a layer from all in-edges before it begins the next
// layer, so it computes each node once per layer. Sampling all neighbours would compute a node
// again for each batch that reaches it.
//
// It resets f, with dropout and gradients off. Memory: two matrices of all nodes and a chunk. If a
// layer does not fit, the error names it.
func LayerWise(m Model, f *Fwd, g graphops.Slicer, x []float32, cols int) (out []float32, outCols int, err error) {
	if m.NumLayers() < 1 {
		return nil, 0, fmt.Errorf("nn: layer-wise inference: %T has no layers", m)
	}
	n := g.NumNodes()
	h, release := x, func() {}
	defer func() { release() }()
	keeper, _ := f.Backend().(ops.Keeper)
	for i := range m.NumLayers() {
		outCols, err = LayerCols(m, f, i, cols)
		if err != nil {
			return nil, 0, err
		}
		out = make([]float32, n*outCols)
		free := func() {}
		if keeper != nil && i < m.NumLayers()-1 { // the next layer reads the rows on the device
			if there, ok := keeper.Room(out); ok {
				free = there
			}
		}
		err = LayerRows(m, f, i, g, h, cols, 0, n, out, nil)
		release()
		if release = free; err != nil {
			return nil, 0, err
		}
		h, cols = out, outCols
	}
	return out, outCols, nil
}

// LayerCols returns the number of columns of layer i's output for an input of cols columns. It runs
// the layer on 0 rows and resets f.
func LayerCols(m Model, f *Fwd, i, cols int) (int, error) {
	var out int
	err := Try(func() {
		evaluating(f)
		b := graphops.HostBlock{Indptr: []int64{0}}.Block()
		out = runLayer(m, f, i, b, f.Input(0, cols, nil, &Space{})).Cols()
	})
	return out, err
}

// SourceTransformer is a model some of whose layers transform the rows of all sources before they
// aggregate. Layer-wise inference repeats this transformation in each chunk, so it cuts the rows of
// such a layer into as few chunks as memory allows. SourceChunks returns the smallest number of
// chunks of layer i for a graph of nodes nodes; 0 means that the layer aggregates first.
type SourceTransformer interface {
	SourceChunks(layer, nodes int) int
}

// A chunk of a layer that transforms all sources has transformFloats elements, 64 MB, or more if
// that would give more than transformChunks chunks.
const (
	transformFloats = 1 << 24
	transformChunks = 4
)

// LayerRows computes the nodes [lo, hi) of layer i from h [g.NumNodes(), cols], all rows of the
// previous layer, into out [hi-lo, _]. Ranks that share h use it to divide [LayerWise] among
// themselves. A row has the same bits whatever lo and hi are.
//
// It works in chunks of a few thousand rows, which bound the memory of the pass, and resets f for
// each, with dropout and gradients off. If done is not nil, it is called after each chunk with the
// number of rows computed so far. See [SourceTransformer].
func LayerRows(m Model, f *Fwd, i int, g graphops.Slicer, h []float32, cols, lo, hi int, out []float32, done func(rows int)) error {
	if n := g.NumNodes(); len(h) != n*cols {
		return fmt.Errorf("nn: layer-wise inference: layer %d needs [%d,%d] for the graph's nodes but its input has %d elements", i, n, cols, len(h))
	}
	if k, ok := f.Backend().(ops.Keeper); ok { // on a device: copied once, not for each chunk
		release, err := k.Hold(h)
		if err != nil {
			return fmt.Errorf("nn: layer-wise inference: layer %d: %w", i, err)
		}
		defer release()
	}
	return LayerRowsFrom(m, f, i, g, func(f *Fwd) *Tensor { return f.Input(g.NumNodes(), cols, h, &Space{}) }, lo, hi, out, done)
}

// LayerRowsFrom is [LayerRows] with an input that is not a matrix in memory, such as sparse
// features: input returns the tensor of all nodes' rows, in the space &Space{}, and is called after
// each reset of f.
func LayerRowsFrom(m Model, f *Fwd, i int, g graphops.Slicer, input func(f *Fwd) *Tensor, lo, hi int, out []float32, done func(rows int)) error {
	n := g.NumNodes()
	switch {
	case lo < 0 || hi < lo || hi > n:
		return fmt.Errorf("nn: layer-wise inference: rows [%d, %d) are not within the graph's %d nodes", lo, hi, n)
	case lo == hi:
		return nil
	case len(out)%(hi-lo) != 0:
		return fmt.Errorf("nn: layer-wise inference: an output of %d elements is not divisible into %d rows for layer %d", len(out), hi-lo, i)
	}
	outCols := len(out) / (hi - lo)
	chunk := 0
	for at := lo; at < hi; {
		end := at
		err := Try(func() {
			evaluating(f)
			x := input(f)
			if chunk == 0 {
				chunk = chunkRows(m, i, x, outCols, hi-lo)
			}
			end = min(at+chunk, hi)
			y := runLayer(m, f, i, g.Slice(at, end), x)
			if y.Cols() != outCols {
				fail("LayerRows", "layer %d of %T returns %d columns but the output has %d", i, m, y.Cols(), outCols)
			}
			y.CopyTo(out[(at-lo)*outCols : (end-lo)*outCols])
		})
		if err != nil {
			return err
		}
		if done != nil {
			done(end - lo)
		}
		at = end
	}
	return nil
}

// chunkRows returns the number of rows of a chunk of layer i.
func chunkRows(m Model, i int, x *Tensor, outCols, rows int) int {
	wide := max(x.Cols(), outCols, 1)
	if x.Sparse() {
		wide = max(outCols, 1)
	}
	chunk := max(chunkFloats/wide, chunkMinRows)
	least := 0
	if t, ok := m.(SourceTransformer); ok {
		least = t.SourceChunks(i, x.Rows())
	}
	if x.Sparse() {
		least = max(least, 1)
	}
	if least > 0 {
		// A chunk keeps about five matrices.
		pieces := min(max(least, 5*rows*outCols/transformFloats), max(least, transformChunks))
		chunk = max(chunk, (rows+pieces-1)/pieces)
	}
	return chunk
}

// evaluating starts a pass without dropout and gradients on f's backend.
func evaluating(f *Fwd) {
	c := f.Config()
	c.Train, c.Grad = false, false
	f.Reset(c)
}
