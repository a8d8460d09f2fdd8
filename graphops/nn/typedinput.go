package nn

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// TypedInput computes the rows of a first layer for nodes of several types, which all have width columns:
//
//	x_v = W_τ·features_v + b_τ   or, for a type τ without features, a learned row of v's own
//
// Its parameters are lins.TYPE.weight [width, features] and bias, and embs.TYPE.weight [nodes of the type, width].
// The gradient of a learned table has all of its rows; for large types, take [Embedding] instead.
type TypedInput struct {
	Lins map[string]*Linear        `nn:"lins"`
	Embs map[string]*EmbeddingRows `nn:"embs"`

	Schema *graphops.Schema `nn:"-"`
	Width  int
}

var _ Resetter = (*EmbeddingRows)(nil)

// EmbeddingRows is a table [rows, columns] of learned rows that is trained as every other parameter, as
// torch.nn.Embedding without sparse gradients.
type EmbeddingRows struct {
	Weight *Param `nn:"weight"`
}

// Reset draws the rows from U(±√(3/columns)), whose norm is about 1, as [Embedding.Init] does.
func (e *EmbeddingRows) Reset(init func(p *Param, bound float64)) {
	init(e.Weight, math.Sqrt(3/float64(max(e.Weight.Cols, 1))))
}

// NewTypedInput returns a TypedInput for the node types of a schema. features [types] is the number of features
// of a node of each type, 0 for a learned row.
func NewTypedInput(s *graphops.Schema, features []int, width int) *TypedInput {
	const op = "TypedInput"
	switch {
	case s == nil || len(features) != len(s.Nodes):
		fail(op, "there are %d numbers of features; give a schema, and one number for each of its node types", len(features))
	case width < 1:
		fail(op, "its rows cannot have %d columns", width)
	}
	c := &TypedInput{Lins: map[string]*Linear{}, Embs: map[string]*EmbeddingRows{}, Schema: s, Width: width}
	for t, n := range s.Nodes {
		switch {
		case features[t] < 0:
			fail(op, "the nodes of type %s cannot have %d features", n.Name, features[t])
		case features[t] > 0:
			c.Lins[n.Name] = NewLinear(features[t], width, true)
		default:
			c.Embs[n.Name] = &EmbeddingRows{NewParam(n.Count, width)}
		}
	}
	return c
}

// Forward returns the rows [NumSrc, width] of a block's sources, in their space. tables [types] holds the
// features of the nodes of each type, [nodes of the type, features] row-major, in the order of their ids; that
// of a type with learned rows is ignored. It reads only the rows of the block. A type of which the block has no
// nodes adds no rows.
func (c *TypedInput) Forward(f *Fwd, b *Block, tables []Table) *Tensor {
	const op = "TypedInput"
	if c == nil || c.Schema == nil {
		fail(op, "the layer is nil; create it with NewTypedInput")
	}
	if len(tables) != len(c.Schema.Nodes) {
		fail(op, "there are %d tables of features; give one for each of the %d node types", len(tables), len(c.Schema.Nodes))
	}
	g, starts := nodesOf(op, b, c.Schema, false), c.Schema.Starts()
	parts := make([]*Tensor, len(tables))
	for t, n := range c.Schema.Nodes {
		lo, hi := g.of(t)
		ids := make([]int32, hi-lo)
		for i, row := range g.rows[lo:hi] {
			ids[i] = b.SrcID(int(row)) - int32(starts[t])
		}
		if e := c.Embs[n.Name]; e != nil {
			parts[t] = f.Gather(f.Param(e.Weight), ids)
			continue
		}
		l := c.Lins[n.Name]
		if have := max(len(tables[t].F32), len(tables[t].F16)); have != n.Count*l.Weight.Cols {
			fail(op, "the features of type %s are %d numbers, but [%d,%d] needs %d", n.Name, have, n.Count, l.Weight.Cols, n.Count*l.Weight.Cols)
		}
		parts[t] = l.Forward(f, f.TableRows(tables[t], l.Weight.Cols, ids, nil))
	}
	return g.back(f, f.Stack(parts...)).SetSpace(tensor.SrcSpace(b))
}
