package links

import (
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// decoders are the decoders that a program declares.
var decoders = entry.Registry[func(dim int) Decoder]{Kind: "decoder"}

// DeclareDecoder declares a decoder of a program's own under a name that must be unique in the program,
// and returns the name, which [Options], [New] and [InferOptions] take: build makes a decoder of
// embeddings of dim columns. A decoder that implements [pairs.GraphDecoder] also reads the graph around each
// pair. Declare it at package level:
//
//	var cosine = links.DeclareDecoder("cosine", func(dim int) links.Decoder { return &cosineDecoder{} })
//
// A declared decoder, unlike one that NewWith gets, is found by [Score] and [Recommend].
func DeclareDecoder(name string, build func(dim int) Decoder) string {
	decoders.Add(name, build != nil, build, build)
	return name
}

// newDecoder makes a decoder by its name.
func newDecoder(name string, dim int) (Decoder, error) {
	switch name {
	case "", "dot", "bilinear", "mlp", "hadamard", "structural":
		return pairs.NewDecoder(name, dim, 0)
	}
	if !decoders.Has(name) {
		return nil, fmt.Errorf("links: there is no decoder %q; choose %s, or declare your own (links.DeclareDecoder); those of knowledge graphs are in package kg (--task triples)", name, pairs.DecoderNames)
	}
	build, err := decoders.Get(name)
	if err != nil {
		return nil, err
	}
	d := build(dim)
	if d == nil {
		return nil, fmt.Errorf("links: the function of decoder %q returned none", name)
	}
	return d, nil
}

// between separates the encoder and the decoder in the name of a network.
const between = " for links by "

// networkName is the name of a network with a decoder, by which weights tell what they are of.
func networkName(encoder, decoder string) string { return encoder + between + decoder }

// decoderName is the name of a decoder that a program made itself.
func decoderName(d Decoder) string {
	switch d := d.(type) {
	case pairs.Dot:
		return "dot"
	case *pairs.Bilinear:
		return "bilinear"
	case *pairs.MLP:
		if d.Product {
			return "hadamard"
		}
		return "mlp"
	case *pairs.Structural:
		return "structural"
	}
	return fmt.Sprintf("%T", d)
}
