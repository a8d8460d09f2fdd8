package kg

import (
	"math"
	"slices"

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
	// Encoder is the graph network before the decoder, nil without one. With it, Entity and Relation are
	// what its first layer reads.
	Encoder *Encoder `nn:"encoder,optional"`
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

// withEncoder makes a model with an encoder if the options name one.
func withEncoder(entities, relations int, d kge.Decoder, o EncoderOptions) *Model {
	m := NewModel(entities, relations, d)
	if m.Encoder = newEncoder(entities, relations, d, o); m.Encoder != nil {
		m.Entity = nn.NewParam(entities, m.Relation.Cols)
	}
	return m
}

// tables are the rows of all entities and relations, which the decoder takes.
type tables struct{ e, z *nn.Tensor }

// tables computes the rows of all entities and relations; b has the messages of an encoder.
func (m *Model) tables(f *nn.Fwd, b *nn.Block) tables {
	t := tables{f.Param(m.Entity), f.Param(m.Relation)}
	if m.Encoder != nil {
		t.e, t.z = m.Encoder.forward(f, b, t.e, t.z)
	}
	return t
}

// fixed computes the rows of all entities and relations once, for evaluation: the result makes them the input
// of a pass.
func (m *Model) fixed(threads int, b *nn.Block) (input func(f *nn.Fwd) tables, err error) {
	if m.Encoder == nil {
		return func(f *nn.Fwd) tables { return m.tables(f, nil) }, nil
	}
	f := nn.NewFwd(nn.Config{Threads: threads})
	defer f.Close()
	var e, z []float32
	var cols [2]int
	err = nn.Try(func() {
		t := m.tables(f, b)
		e, z, cols = slices.Clone(t.e.Data()), slices.Clone(t.z.Data()), [2]int{t.e.Cols(), t.z.Cols()}
	})
	return func(f *nn.Fwd) tables {
		return tables{f.Input(len(e)/cols[0], cols[0], e, nil), f.Input(len(z)/cols[1], cols[1], z, nil)}
	}, err
}

// rows are the rows of queries' heads and relations, whose dropout is drawn by the queries' numbers ids.
func (t tables) rows(f *nn.Fwd, ids, heads, rels []int32, dropout float64) (h, r, e *nn.Tensor) {
	sp := &nn.Space{IDs: ids}
	h, r = f.Gather(t.e, heads).SetSpace(sp), f.Gather(t.z, rels).SetSpace(sp)
	if dropout > 0 {
		h, r = f.Dropout(h, dropout), f.Dropout(r, dropout)
	}
	return h, r, t.e
}

// Reads implements [nn.Reader]: a model of a knowledge graph reads its triples alone.
func (m *Model) Reads() nn.Reads { return nn.Reads{Edges: true, Types: true} }
