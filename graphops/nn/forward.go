package nn

import (
	"fmt"
	"reflect"

	"github.com/graphnb/graphnb/graphops"
)

// Model is a network, given by its layers. Layer computes layer i for a block: from h [b.NumSrc,
// _], the rows of the block's sources, it computes the rows [b.NumDst, _] of its destinations. It
// must compute the same row for a destination whatever other destinations the block has.
// Normalisation over a batch violates this; training, inference and different world sizes then give
// different results.
type Model interface {
	NumLayers() int
	Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor
}

// LayerError is the error of a layer of a model. It wraps the [*tensor.Error] of the operation that
// failed.
type LayerError struct {
	Model string // Go type of the model
	Layer int    // counted from 0
	Type  string // Go type of the layer, "" where the model does not show it
	Err   error
}

func (e *LayerError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("nn: layer %d of %s: %v", e.Layer, e.Model, e.Err)
	}
	return fmt.Sprintf("nn: layer %d (%s) of %s: %v", e.Layer, e.Type, e.Model, e.Err)
}

func (e *LayerError) Unwrap() error { return e.Err }

// Forward runs all layers of m over the blocks of a batch, starting with blocks[0], from x
// [blocks[0].NumSrc, _]. In a cooperative batch, ranks exchange rows between the layers (see
// tensor.Fwd.Sources). It panics with a [*LayerError] if a layer fails, and with a
// [*tensor.Error] if the blocks or x do not fit; [TryForward] returns these errors instead.
func Forward(m Model, f *Fwd, blocks []*Block, x *Tensor) *Tensor {
	layers := m.NumLayers()
	switch {
	case layers < 1:
		fail("Forward", "%T has no layers", m)
	case len(blocks) != layers:
		fail("Forward", "%T has %d layers but the batch has %d blocks; sample one hop for each layer", m, layers, len(blocks))
	case x == nil:
		fail("Forward", "the input is a nil tensor")
	case x.Rows() != blocks[0].NumSrc:
		fail("Forward", "the input is [%d,%d] but the first block has %d sources; give one row of features for each", x.Rows(), x.Cols(), blocks[0].NumSrc)
	}
	for i := 1; i < layers; i++ {
		if blocks[i].OwnSrc() != blocks[i-1].NumDst {
			fail("Forward", "block %d has %d sources but block %d has %d destinations; they must be the same nodes", i, blocks[i].OwnSrc(), i-1, blocks[i-1].NumDst)
		}
	}
	for i, b := range blocks {
		if i > 0 {
			x = f.Sources(b, x)
		}
		x = runLayer(m, f, i, b, x)
	}
	return x
}

// TryForward is [Forward] with misuse returned as an error.
func TryForward(m Model, f *Fwd, blocks []*Block, x *Tensor) (out *Tensor, err error) {
	err = Try(func() { out = Forward(m, f, blocks, x) })
	return out, err
}

// FullGraph returns the whole graph as the blocks of a batch of all nodes, for full-graph training
// and inference with [Forward]. All blocks are the same block, so its transpose is made once; keep
// them from step to step.
func FullGraph(g *graphops.Graph, layers int) []*Block {
	blocks := make([]*Block, layers)
	b := g.Block()
	for i := range blocks {
		blocks[i] = b
	}
	return blocks
}

// runLayer runs one layer, checks its result, and names the layer in panics.
func runLayer(m Model, f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	defer func() {
		if r := recover(); r != nil {
			if err := misuse(r); err != nil {
				r = &LayerError{Model: fmt.Sprintf("%T", m), Layer: i, Type: LayerType(m, i), Err: err}
			}
			panic(r)
		}
	}()
	y := m.Layer(f, i, b, h)
	switch {
	case y == nil:
		fail("Layer", "it returned a nil tensor")
	case y.Rows() != b.NumDst:
		fail("Layer", "it returned [%d,%d] for a block of %d destinations; a layer returns one row for each destination (f.Dst(b, h) returns the destinations' rows of h)", y.Rows(), y.Cols(), b.NumDst)
	}
	return y
}

// LayerType returns the Go type of layer i: the type of element i of the model's first exported
// slice with one element per layer, also in embedded structs, or "" if there is none.
func LayerType(m Model, i int) string { return layerType(reflect.ValueOf(m), m.NumLayers(), i) }

func layerType(v reflect.Value, layers, i int) string {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	for j := range v.NumField() {
		s := v.Field(j)
		if f := v.Type().Field(j); f.Anonymous && f.IsExported() {
			if t := layerType(s, layers, i); t != "" {
				return t
			}
			continue
		}
		if !v.Type().Field(j).IsExported() || s.Kind() != reflect.Slice && s.Kind() != reflect.Array || s.Len() != layers {
			continue
		}
		e := s.Index(i)
		if e.Kind() == reflect.Interface && !e.IsNil() {
			e = e.Elem()
		}
		if mayHold(e.Type(), false) {
			return e.Type().String()
		}
	}
	return ""
}
