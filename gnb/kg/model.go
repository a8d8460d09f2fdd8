package kg

import (
	"math"

	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Model is the rows of all entities and relations with a decoder. The relations' rows are followed by
// those of their reverses. Its parameters are entity [entities, columns], relation [2·relations,
// columns], and the decoder's with the prefix decoder.
type Model struct {
	Entity   *nn.Param   `nn:"entity"`
	Relation *nn.Param   `nn:"relation"`
	Decoder  kge.Decoder `nn:"decoder"`
}

// NewModel makes a model of that many entities and relations.
func NewModel(entities, relations int, d kge.Decoder) *Model {
	e, r := d.Cols()
	return &Model{Entity: nn.NewParam(entities, e), Relation: nn.NewParam(2*relations, r), Decoder: d}
}

// Reset initialises the rows; nn.Params.Init calls it. Entities are drawn from ±0.1, and relations too, but
// the angles of RotatE from ±π.
func (m *Model) Reset(init func(p *nn.Param, bound float64)) {
	init(m.Entity, 0.1)
	bound := 0.1
	if _, ok := m.Decoder.(kge.RotatE); ok {
		bound = math.Pi
	}
	init(m.Relation, bound)
}

// NumLayers implements [nn.Model]: there is one layer, which computes nothing.
func (m *Model) NumLayers() int { return 1 }

// Layer implements [nn.Model]. It returns the rows of the block's destinations.
func (m *Model) Layer(f *nn.Fwd, _ int, b *nn.Block, _ *nn.Tensor) *nn.Tensor {
	ids := make([]int32, b.NumDst)
	for d := range ids {
		ids[d] = b.DstID(d)
	}
	return f.Gather(f.Param(m.Entity), ids).SetSpace(&nn.Space{IDs: ids})
}

// rows are the rows of queries' heads and relations, whose dropout is drawn by the queries' numbers ids.
func (m *Model) rows(f *nn.Fwd, ids, heads, rels []int32, dropout float64) (h, r, e *nn.Tensor) {
	sp := &nn.Space{IDs: ids}
	e = f.Param(m.Entity)
	h, r = f.Gather(e, heads).SetSpace(sp), f.Gather(f.Param(m.Relation), rels).SetSpace(sp)
	if dropout > 0 {
		h, r = f.Dropout(h, dropout), f.Dropout(r, dropout)
	}
	return h, r, e
}
