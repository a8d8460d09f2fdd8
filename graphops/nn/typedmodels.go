package nn

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// typedRows gives the nodes of each type a linear layer of their own before the first layer of a model, if nodes
// have several types. Features of types that differ in width come in rows of the greatest width, with zeros
// behind those of the other types.
type typedRows struct {
	Lins map[string]*Linear `nn:"lins,optional"` // nil: one type

	Schema *graphops.Schema `nn:"-"`
}

// newTypedRows returns the layer, and the configuration of the model behind it.
func newTypedRows(s ModelConfig) (typedRows, ModelConfig) {
	r := typedRows{Schema: s.Schema}
	if len(s.Schema.Nodes) > 1 {
		r.Lins = map[string]*Linear{}
		for _, t := range s.Schema.Nodes {
			r.Lins[t.Name] = NewLinear(s.In, s.Hidden, true)
		}
		s.In = s.Hidden
	}
	return r, s
}

func (r *typedRows) forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	if r.Lins == nil {
		return h
	}
	g := nodesOf("typed rows", b, r.Schema, false)
	cols := r.Lins[r.Schema.Nodes[0].Name].Weight.Rows
	y := g.stack(f, g.grouped(f, h), cols, func(t int, rows *Tensor) *Tensor {
		return r.Lins[r.Schema.Nodes[t].Name].Forward(f, rows)
	})
	return g.back(f, y).SetSpace(tensor.SrcSpace(b))
}

// typed checks a configuration of a model over typed graphs.
func (s ModelConfig) typed(op string) {
	if s.Schema == nil {
		fail(op, "the graph has no types of nodes and edges, which this model needs; train on a dataset with types (ModelConfig.Schema), or choose a model without relations, such as sage")
	}
	checkSchema(op, s.Schema)
	if s.Hidden < 1 {
		fail(op, "ModelConfig.Hidden is %d; a model over several types needs at least 1 hidden column", s.Hidden)
	}
	if s.Bases < 0 {
		fail(op, "ModelConfig.Bases is %d; it is the number of bases of each layer, or 0 for none", s.Bases)
	}
}

var (
	_ Model             = (*RGCN)(nil)
	_ Reader            = (*RGCN)(nil)
	_ SourceTransformer = (*RGCN)(nil)
)

// RGCN is a stack of RGCNConv layers with ReLU and dropout between them, for graphs with types (ModelConfig.Schema).
// If nodes have several types, a linear layer for each comes first (lins.TYPE.weight [Hidden, In] and bias), and
// the first convolution has Hidden columns in. The other parameters are convs.0.weight, convs.0.comp,
// convs.0.root, convs.0.bias, convs.1.…, as in torch_geometric.nn.RGCNConv.
type RGCN struct {
	typedRows
	Convs []*RGCNConv `nn:"convs"`
	Between
}

// NewRGCNModel returns an RGCN with mean aggregation. It panics with a [*tensor.Error] without a schema.
func NewRGCNModel(s ModelConfig) *RGCN {
	s.typed("NewRGCNModel")
	rows, s := newTypedRows(s)
	relations, o := len(s.Schema.Relations), RGCNOptions{Bases: s.Bases}
	return &RGCN{
		typedRows: rows,
		Convs:     Stack(s.Inner(), func(in, out int) *RGCNConv { return NewRGCNWith(in, out, relations, o) }),
		Between:   NewBetween(s),
	}
}

// NumLayers implements [Model].
func (m *RGCN) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *RGCN) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	if i == 0 {
		h = m.forward(f, b, h)
	}
	return m.Around(f, i, len(m.Convs), b, h, m.Convs[i].Forward)
}

// SourceChunks implements [SourceTransformer].
func (m *RGCN) SourceChunks(i, nodes int) int {
	if i == 0 && m.Lins != nil {
		return 1
	}
	return m.Between.SourceChunks(i, nodes)
}

var (
	_ Model             = (*HGT)(nil)
	_ Reader            = (*HGT)(nil)
	_ SourceTransformer = (*HGT)(nil)
)

// HGT is a stack of HGTConv layers of Heads heads and Hidden columns, for graphs with types (ModelConfig.Schema).
// A linear layer with ReLU for each type comes first, even if there is one (lins.TYPE.weight [Hidden, In] and bias), and
// a linear layer to the classes last (lin.weight [Out, Hidden] and bias), as in PyG's example. Dropout precedes
// each convolution but the first. The other parameters are convs.0.…, as in torch_geometric.nn.HGTConv.
type HGT struct {
	Lins  map[string]*Linear `nn:"lins"`
	Convs []*HGTConv         `nn:"convs"`
	Lin   *Linear            `nn:"lin"`

	Dropout float64
	rows    typedRows `nn:"-"`
}

// NewHGTModel returns an HGT. It panics with a [*tensor.Error] without a schema, or if Hidden is not a multiple of
// Heads. Norm, Residual and Activation are not used: each convolution has a trained residual connection.
func NewHGTModel(s ModelConfig) *HGT {
	s.typed("NewHGTModel")
	s.check("NewHGTModel")
	if s.JK != "" {
		fail("NewHGTModel", "an HGT has no jumping knowledge, and ModelConfig.JK is %q; leave it out, or choose another model, such as rgcn", s.JK)
	}
	if s.Arrangement != "" || s.PreLinear {
		fail("NewHGTModel", "an HGT has an arrangement of its own; leave ModelConfig.Arrangement and PreLinear out, or choose another model, such as rgcn")
	}
	m := &HGT{Lins: map[string]*Linear{}, Lin: NewLinear(s.Hidden, s.Out, true), Dropout: s.Dropout}
	for _, t := range s.Schema.Nodes {
		m.Lins[t.Name] = NewLinear(s.In, s.Hidden, true)
	}
	for range s.Layers {
		m.Convs = append(m.Convs, NewHGT(s.Hidden, s.Hidden, max(s.Heads, 1), s.Schema))
	}
	m.rows = typedRows{m.Lins, s.Schema}
	return m
}

// NumLayers implements [Model].
func (m *HGT) NumLayers() int { return len(m.Convs) }

// Layer implements [Model].
func (m *HGT) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	if i == 0 {
		h = f.ReLU(m.rows.forward(f, b, h))
	} else if m.Dropout > 0 {
		h = f.Dropout(h, m.Dropout)
	}
	y := m.Convs[i].Forward(f, b, h)
	if i == len(m.Convs)-1 {
		y = m.Lin.Forward(f, y)
	}
	return y
}

// SourceChunks implements [SourceTransformer].
func (m *HGT) SourceChunks(int, int) int { return gatChunks }
