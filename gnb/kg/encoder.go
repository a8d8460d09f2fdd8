package kg

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// EncoderOptions configure the graph network before the decoder.
type EncoderOptions struct {
	// Name is rgcn (nn.RGCNConv) or compgcn (nn.CompGCNConv); "" means none: the decoder takes the
	// entities' rows as they are.
	Name string `flag:"encoder" help:"graph network before the decoder: rgcn or compgcn"`
	// Layers is the number of layers; 0 means 2 for rgcn and 1 for compgcn.
	Layers int `flag:"encoder-layers" help:"layers of --encoder (default 2, or 1 of compgcn)" least:"1"`
	// Bases is the number of bases of rgcn; 0 means 4, or none with Blocks.
	Bases int `flag:"encoder-bases" help:"bases of --encoder rgcn (default 4)"`
	// Blocks makes the matrices of rgcn block-diagonal, of that many blocks; 0 means bases instead.
	Blocks int `json:",omitempty" flag:"encoder-blocks" help:"diagonal blocks of --encoder rgcn, instead of bases"`
	// Composition is that of compgcn: sub, mult or corr; "" means mult.
	Composition string `flag:"composition" help:"of compgcn: sub, mult or corr (default mult)"`
	// Dropout is that of the outputs of all layers but the last, and of the last one with compgcn; 0 means none, and 0.2
	// is usual.
	Dropout float64 `flag:"encoder-dropout" help:"dropout of the layers of --encoder; 0.2 is usual"`
	// Messages is the fraction of the edges that are messages in a training step, for the losses with
	// drawn negatives: a random part of the step's own triples (edge dropout, as in DGL's example, where it
	// is 0.5). 0 means 0.5. The losses over all entities always take all training triples.
	Messages float64 `flag:"messages" help:"fraction of a step's triples as messages (default 0.5)"`
}

// check fills in the defaults, for a decoder and the columns of a relation's row.
func (o EncoderOptions) check(decoder string, cols int) (EncoderOptions, error) {
	switch {
	case o == (EncoderOptions{}):
		return o, nil
	case o.Name == "rgcn":
		o.Layers = cmp.Or(o.Layers, 2)
		if o.Blocks == 0 {
			o.Bases = cmp.Or(o.Bases, 4)
		}
	case o.Name == "compgcn":
		o.Layers, o.Composition = cmp.Or(o.Layers, 1), cmp.Or(o.Composition, "mult")
	default:
		return o, fmt.Errorf("kg: the encoder is %q; it is rgcn, compgcn or \"\" for none", o.Name)
	}
	switch {
	case o.Blocks != 0 && (o.Blocks < 0 || o.Bases != 0 || o.Name != "rgcn" || cols%o.Blocks != 0):
		return o, fmt.Errorf("kg: the encoder %s has %d blocks and %d bases for %d columns; blocks are for rgcn without bases, and divide the columns", o.Name, o.Blocks, o.Bases, cols)
	case o.Layers < 1 || o.Bases < 0:
		return o, fmt.Errorf("kg: an encoder of %d layers and %d bases; give at least one layer, and no negative number of bases", o.Layers, o.Bases)
	case o.Name == "compgcn" && !slices.Contains(compositions, o.Composition):
		return o, fmt.Errorf("kg: the encoder's Composition is %q; it is sub, mult or corr", o.Composition)
	case decoder == "rotate":
		return o, fmt.Errorf("kg: an encoder gives entities and relations rows of the same columns, which rotate does not take; choose another decoder")
	case !(o.Dropout >= 0 && o.Dropout < 1):
		return o, fmt.Errorf("kg: the encoder's Dropout is %v; it is a probability below 1", o.Dropout)
	case !(o.Messages >= 0 && o.Messages <= 1):
		return o, fmt.Errorf("kg: the encoder's Messages is %v; it is a fraction of the edges", o.Messages)
	}
	o.Messages = cmp.Or(o.Messages, 0.5)
	return o, nil
}

// compositions are the names of nn.Composition's values.
var compositions = []string{"sub", "mult", "corr"}

// Encoder is the graph network before the decoder. Its layers have as many columns as a relation's row. The
// messages go along the triples and, as edges of the reverse relations, back.
type Encoder struct {
	RGCN    []*nn.RGCNConv    `nn:"rgcn"`
	CompGCN []*nn.CompGCNConv `nn:"compgcn"`
	// Bias is the last column of an entity's row for ConvE, [entities, 1]; nil for other decoders.
	Bias *nn.Param `nn:"entity_bias,optional"`

	dropout float64
}

// newEncoder makes the encoder, nil if there is none.
func newEncoder(entities, relations int, d kge.Decoder, o EncoderOptions) *Encoder {
	if o.Name == "" {
		return nil
	}
	e, cols := d.Cols()
	enc := &Encoder{dropout: o.Dropout}
	if e > cols {
		enc.Bias = nn.NewParam(entities, e-cols)
	}
	reverse := make([]bool, 2*relations)
	for r := range relations {
		reverse[relations+r] = true
	}
	for range o.Layers {
		if o.Name == "rgcn" {
			enc.RGCN = append(enc.RGCN, nn.NewRGCNWith(cols, cols, 2*relations, nn.RGCNOptions{Bases: o.Bases, Blocks: o.Blocks}))
		} else {
			enc.CompGCN = append(enc.CompGCN, nn.NewCompGCN(cols, cols, reverse, nn.CompGCNOptions{
				Composition: nn.Composition(slices.Index(compositions, o.Composition)), Aggr: nn.Mean,
			}))
		}
	}
	return enc
}

// Reset draws the entities' biases from ±0.1, as those of a model without a network; the layers initialise
// themselves.
func (c *Encoder) Reset(init func(p *nn.Param, bound float64)) { init(c.Bias, 0.1) }

// forward returns the rows of all entities and of all relations, from those before the first layer.
func (c *Encoder) forward(f *nn.Fwd, b *nn.Block, h, z *nn.Tensor) (entities, relations *nn.Tensor) {
	h = h.SetSpace(tensor.SrcSpace(b))
	for i, l := range c.RGCN {
		h = l.Forward(f, b, h)
		if i+1 < len(c.RGCN) {
			h = c.drop(f, f.ReLU(h))
		}
	}
	for i, l := range c.CompGCN {
		h, z = l.Forward(f, b, h, z)
		if i+1 < len(c.CompGCN) {
			h = f.ReLU(h)
		}
		h = c.drop(f, h)
	}
	if c.Bias != nil {
		h = f.Concat(h, f.Param(c.Bias))
	}
	return h, z
}

func (c *Encoder) drop(f *nn.Fwd, h *nn.Tensor) *nn.Tensor {
	if c.dropout == 0 {
		return h
	}
	return f.Dropout(h, c.dropout)
}

// messages returns the whole graph of triples and their reverses as a block.
func messages(t kge.Triples, entities, relations int) (*nn.Block, error) {
	if 2*relations >= int(graphops.LoopType) {
		return nil, fmt.Errorf("kg: a graph network takes fewer than %d relations, and there are %d; leave the encoder out", graphops.LoopType/2, relations)
	}
	both := kge.Reciprocal(t, relations)
	types := make([]uint16, both.Len())
	for i, r := range both.Rel {
		types[i] = uint16(r)
	}
	g, err := graphops.FromEdgesWith(entities, both.Head, both.Tail, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err != nil {
		return nil, fmt.Errorf("kg: the graph of messages: %w", err)
	}
	return g.Slice(0, entities), nil
}
