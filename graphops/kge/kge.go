// Package kge provides what models of knowledge graphs need beside package nn: triples, decoders that
// score them by the embeddings of entities and relations, negative triples, losses over all entities,
// and filtered ranking.
//
// # Basics
//
// A knowledge graph is a list of triples (head, relation, tail). A decoder scores a triple by three
// rows: those of its head, its relation and its tail. The same decoder scores a query (head, relation,
// ?) with every entity at once, which is one product of matrices for most decoders:
//
//	d, err := kge.NewDecoder("complex", 200, kge.Options{})
//	h, r := f.Gather(entities, heads), f.Gather(relations, rels)
//	scores := d.Tails(f, h, r, entities) // [queries, entities]
//	loss := kge.KvsAll(scores, queries, ids, 0.1)
//
// # Reciprocal relations
//
// With R relations, relation r+R is the reverse of relation r. A query for heads (?, r, t) is then
// the query for tails (t, r+R, ?), so a decoder needs tails alone ([Reciprocal]; T. Lacroix,
// N. Usunier, G. Obozinski, "Canonical tensor decomposition for knowledge base completion", ICML 2018,
// arXiv:1806.07297).
//
// # Ranking
//
// [Rank] ranks the true entity of a query among all entities except those that also answer the
// query (the filtered setting of A. Bordes et al., "Translating embeddings for modeling
// multi-relational data", NeurIPS 2013). Ties count as their mean rank, so a decoder that gives every
// entity the same score gets the rank of chance, not 1.
//
// # Determinism
//
// No result depends on the number of threads. Negatives are functions of (seed, epoch, step, triple).
package kge

import (
	"errors"
	"fmt"
	"math"
)

// Triples are the edges of a knowledge graph: Head[i] –Rel[i]→ Tail[i]. The slices are equally long.
type Triples struct{ Head, Rel, Tail []int32 }

// Len is the number of triples.
func (t Triples) Len() int { return len(t.Head) }

// Slice returns the triples [lo, hi), sharing their memory.
func (t Triples) Slice(lo, hi int) Triples {
	return Triples{t.Head[lo:hi], t.Rel[lo:hi], t.Tail[lo:hi]}
}

// Append returns the triples with one more.
func (t Triples) Append(head, rel, tail int32) Triples {
	return Triples{append(t.Head, head), append(t.Rel, rel), append(t.Tail, tail)}
}

// Join returns the triples of both, in new memory.
func (t Triples) Join(other Triples) Triples {
	n := t.Len() + other.Len()
	out := Triples{make([]int32, 0, n), make([]int32, 0, n), make([]int32, 0, n)}
	for _, x := range []Triples{t, other} {
		out = Triples{append(out.Head, x.Head...), append(out.Rel, x.Rel...), append(out.Tail, x.Tail...)}
	}
	return out
}

// Check returns an error if the slices differ in length, or if a triple is not one of that many
// entities and relations.
func (t Triples) Check(entities, relations int) error {
	if len(t.Rel) != len(t.Head) || len(t.Tail) != len(t.Head) {
		return fmt.Errorf("kge: %d heads, %d relations and %d tails are no triples; give equally many", len(t.Head), len(t.Rel), len(t.Tail))
	}
	for i, h := range t.Head {
		for _, v := range []int32{h, t.Tail[i]} {
			if v < 0 || int(v) >= entities {
				return fmt.Errorf("kge: triple %d has entity %d, but entities are numbered 0 to %d", i, v, entities-1)
			}
		}
		if r := t.Rel[i]; r < 0 || int(r) >= relations {
			return fmt.Errorf("kge: triple %d has relation %d, but relations are numbered 0 to %d", i, r, relations-1)
		}
	}
	return nil
}

// Reciprocal returns the triples followed by their reverses: (h, r, t), then (t, r+relations, h).
func Reciprocal(t Triples, relations int) Triples {
	back := Triples{t.Tail, make([]int32, t.Len()), t.Head}
	for i, r := range t.Rel {
		back.Rel[i] = r + int32(relations)
	}
	return t.Join(back)
}

// Options configure a decoder. The zero value is the default of PyTorch Geometric's decoder, where
// there is one.
type Options struct {
	// Norm is the norm of TransE's distance: 1 or 2; 0 means 1.
	Norm int
	// Margin is what RotatE subtracts the distance from. It changes no ranking. 0 means 0.
	Margin float64
	// Height is the number of rows of the picture that ConvE makes of an embedding; it divides the
	// columns. 0 means the largest divisor that is at most the square root of the columns.
	Height int
	// Channels is the number of ConvE's filters; 0 means 32.
	Channels int
	// InputDropout, FeatureDropout and HiddenDropout are ConvE's dropouts; 0 means 0.2, 0.2 and 0.3,
	// as in its paper, and a negative number none.
	InputDropout, FeatureDropout, HiddenDropout float64
}

func (o Options) check() error {
	for _, x := range []float64{o.Margin, o.InputDropout, o.FeatureDropout, o.HiddenDropout} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return errors.New("kge: an option of a decoder is not a finite number")
		}
	}
	switch {
	case o.Norm < 0 || o.Norm > 2:
		return fmt.Errorf("kge: Norm is %d; TransE has the norms 1 and 2", o.Norm)
	case o.InputDropout >= 1 || o.FeatureDropout >= 1 || o.HiddenDropout >= 1:
		return errors.New("kge: a dropout is a probability below 1")
	case o.Channels < 0 || o.Height < 0:
		return errors.New("kge: ConvE's Height and Channels cannot be negative")
	}
	return nil
}
