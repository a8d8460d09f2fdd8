package links

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Model is an encoder, which computes embeddings of nodes, with a decoder. Its parameters have the
// prefixes encoder. and decoder.
type Model struct {
	Encoder nn.Model `nn:"encoder"`
	Decoder Decoder  `nn:"decoder"`
}

// NumLayers implements [nn.Model].
func (m *Model) NumLayers() int { return m.Encoder.NumLayers() }

// Layer implements [nn.Model].
func (m *Model) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	return m.Encoder.Layer(f, i, b, h)
}

// NoParams says whether the encoder has no parameters on purpose, as that of [Table]; see [nn.Collect].
func (m *Model) NoParams() bool {
	n, ok := m.Encoder.(interface{ NoParams() bool })
	return ok && n.NoParams()
}

// Reads implements [nn.Reader] for an encoder that does. It says that the model reads everything if the encoder does not say.
func (m *Model) Reads() nn.Reads {
	if r, ok := m.Encoder.(nn.Reader); ok {
		return r.Reads()
	}
	return nn.Reads{Features: true, Edges: true, Weights: true, EdgeFeatures: true, Types: true}
}

// SourceChunks implements [nn.SourceTransformer].
func (m *Model) SourceChunks(layer, nodes int) int {
	if t, ok := m.Encoder.(nn.SourceTransformer); ok {
		return t.SourceChunks(layer, nodes)
	}
	return 0
}

// Build makes the network that a run has recorded under a name such as "sage for links by dot", in the calling process:
// see [gnb.BuildModel].
func Build(name string, sizes gnb.ModelConfig) (*Model, error) {
	encoder, decoder, ok := strings.Cut(name, between)
	if !ok {
		return nil, fmt.Errorf("links: %q is no network that predicts links", name)
	}
	d, err := newDecoder(decoder, sizes.Out)
	if err != nil {
		return nil, err
	}
	e, err := gnb.BuildModel(encoder, sizes)
	if err != nil {
		return nil, err
	}
	return &Model{e, d}, nil
}

// Net is a network of a [Model] in a worker. Optimisers and checkpoints work on it.
type Net struct {
	*gnb.Net[nn.Model]
	Decoder Decoder
}

// New makes a network for a worker: an encoder of a registered model, with sizes.Out columns of
// embeddings, and a decoder by its name (see [pairs.NewDecoder] and [DeclareDecoder]), whose hidden layer
// has as many columns. It ends the rank with an error for a name that is none.
func New(w *gnb.Worker, encoder gnb.AnyModel, decoder string, sizes gnb.ModelConfig) *Net {
	if encoder == nil {
		w.Fail(errors.New("links: New needs an encoder, such as gnb.SAGE"))
	}
	d, err := newDecoder(decoder, sizes.Out)
	if err != nil {
		w.Fail(err)
	}
	return newNet(w, encoder, d, cmp.Or(decoder, "dot"), sizes)
}

// NewWith is New with a decoder of the program's own.
func NewWith(w *gnb.Worker, encoder gnb.AnyModel, d Decoder, sizes gnb.ModelConfig) *Net {
	if encoder == nil || d == nil {
		w.Fail(errors.New("links: NewWith needs an encoder, such as gnb.SAGE, and a decoder"))
	}
	return newNet(w, encoder, d, decoderName(d), sizes)
}

func newNet(w *gnb.Worker, encoder gnb.AnyModel, d Decoder, decoder string, sizes gnb.ModelConfig) *Net {
	return &Net{w.NetworkOf(networkName(encoder.Name(), decoder), sizes, &Model{w.Build(encoder.Name(), sizes), d}), d}
}

// Score computes the embeddings of a batch and returns the scores of its pairs, [len(b.Pairs),1]: in
// groups of an edge and its negatives, as losses take them. It starts a new pass, as Forward does.
func (n *Net) Score(b *Batch) *nn.Tensor { return b.Score(n.Decoder, n.Forward(b.Batch)) }
