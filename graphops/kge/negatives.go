package kge

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/internal/philox"
)

// Sides are the ends of a triple that negatives replace.
type Sides int

// The sides.
const (
	BothSides Sides = iota // as many negatives with another head as with another tail
	HeadSide
	TailSide
)

// NegativeOptions configure negative triples. The zero value replaces head and tail once each, by any
// other entity.
type NegativeOptions struct {
	// PerSide is the number of negatives of each triple on each side; 0 means 1.
	PerSide int
	Sides   Sides
	// Strict draws no known triple. Otherwise a negative may be one by chance.
	Strict bool
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
}

// Negatives draws negative triples. It is read-only and safe for concurrent use.
type Negatives struct {
	o         NegativeOptions
	entities  int
	relations int
	known     *Queries // of the triples and, unless tails alone are drawn, their reverses; nil unless strict
}

// The Philox call sites of package kge, beside those of package pairs.
const (
	siteHeads = 64
	siteTails = 65
)

// NewNegatives returns a source of negatives of triples of that many entities and relations.
//
// Cost: a sort of the known triples if strict.
func NewNegatives(known Triples, entities, relations int, o NegativeOptions) (*Negatives, error) {
	if err := known.Check(entities, relations); err != nil {
		return nil, err
	}
	const most = philox.MaxDraws / 2
	switch {
	case entities < 2:
		return nil, fmt.Errorf("kge: there are no negatives among %d entities; there must be another one", entities)
	case o.PerSide < 0 || o.PerSide > most:
		return nil, fmt.Errorf("kge: PerSide is %d; a triple has 1 to %d negatives on a side (0 means 1)", o.PerSide, most)
	case o.Sides < BothSides || o.Sides > TailSide:
		return nil, fmt.Errorf("kge: Sides is %d; use BothSides, HeadSide or TailSide", o.Sides)
	}
	o.PerSide = max(o.PerSide, 1)
	n := &Negatives{o: o, entities: entities, relations: relations}
	if o.Strict {
		if o.Sides != TailSide {
			known = Reciprocal(known, relations)
		}
		n.known = NewQueries(known)
	}
	return n, nil
}

// PerTriple is the number of negatives of each triple.
func (n *Negatives) PerTriple() int {
	if n.o.Sides == BothSides {
		return 2 * n.o.PerSide
	}
	return n.o.PerSide
}

// Draw returns the negatives of triples, PerTriple for each, those of triple i from i·PerTriple on: first
// those with another tail, then those with another head. ids [t.Len()] are numbers of the triples, by
// which their negatives are drawn; nil means 0, 1, 2 and so on. The negatives of a triple depend on
// (seed, epoch, step, id) and the triple alone.
//
// It returns an error for a triple of which every negative on a side would be a known triple. Cost:
// O(log of the query's answers) for each.
func (n *Negatives) Draw(epoch, step int, ids []int32, t Triples) (Triples, error) {
	if err := t.Check(n.entities, n.relations); err != nil {
		return Triples{}, err
	}
	if ids != nil && len(ids) != t.Len() {
		return Triples{}, fmt.Errorf("kge: a batch of %d triples has %d numbers; give one for each triple", t.Len(), len(ids))
	}
	size := t.Len() * n.PerTriple()
	out := Triples{make([]int32, 0, size), make([]int32, 0, size), make([]int32, 0, size)}
	for i := range t.Head {
		id := int64(i)
		if ids != nil {
			id = int64(ids[i])
		}
		h, r, tail := t.Head[i], t.Rel[i], t.Tail[i]
		if n.o.Sides != HeadSide {
			s := philox.NewStream(n.o.Seed, id, step, philox.C3(philox.Links, siteTails, epoch))
			for range n.o.PerSide {
				v, err := n.other(&s, h, r, tail)
				if err != nil {
					return Triples{}, err
				}
				out = out.Append(h, r, v)
			}
		}
		if n.o.Sides != TailSide {
			s := philox.NewStream(n.o.Seed, id, step, philox.C3(philox.Links, siteHeads, epoch))
			for range n.o.PerSide {
				v, err := n.other(&s, tail, r+int32(n.relations), h)
				if err != nil {
					return Triples{}, err
				}
				out = out.Append(v, r, tail)
			}
		}
	}
	return out, nil
}

// other draws an entity that does not answer the query (head, rel, ?): not the answer itself and, if
// strict, none that is known.
func (n *Negatives) other(s *philox.Stream, head, rel, answer int32) (int32, error) {
	barred := []int32{answer}
	if n.o.Strict {
		barred = n.known.Answers(head, rel)
		if at, known := slices.BinarySearch(barred, answer); !known {
			barred = slices.Insert(slices.Clone(barred), at, answer)
		}
	}
	room := n.entities - len(barred)
	if room <= 0 {
		what, r := "tail", int(rel)
		if r >= n.relations {
			what, r = "head", r-n.relations
		}
		return 0, fmt.Errorf("kge: there can be no negative %s for relation %d of entity %d: every entity answers it; turn Strict off", what, r, head)
	}
	v := int32(philox.Bounded(s.Next(), uint32(room)))
	// The v-th entity that is not barred: the barred ones ascend.
	lo, hi := 0, len(barred)
	for lo < hi {
		mid := (lo + hi) / 2
		if barred[mid]-int32(mid) <= v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return v + int32(lo), nil
}
