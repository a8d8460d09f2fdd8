package kg

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

func start(w *gnb.Worker, o Options) (gnb.Task, error) {
	data, err := Triples(w.Dataset())
	if err != nil {
		return nil, err
	}
	if data.Train.Len() == 0 {
		return nil, fmt.Errorf("kg: %s has no training triples", w.Dataset().Name())
	}
	for _, note := range w.Dataset().EdgeOverlaps().Notes() {
		w.Printf("%s", note)
	}
	d, err := kge.NewDecoder(o.Decoder, o.Dim, o.Of)
	if err != nil {
		return nil, err
	}
	model := withEncoder(data.Entities, data.Relations, d, o.Encoder)
	t := &trainer{w: w, o: o, data: data, net: w.NetworkOf(o.Decoder, nn.ModelConfig{}, model), model: model}
	w.WithoutFeatures() // the network reads rows of its own
	if o.OwnLoss != "" {
		if t.own, err = losses.Get(o.OwnLoss); err != nil {
			return nil, err
		}
	}
	return t, t.prepare()
}

// trainer is a worker's part of a training run.
type trainer struct {
	w     *gnb.Worker
	o     Options
	data  *Data
	net   *gnb.Net[nn.Model]
	model *Model
	own   func(scores *nn.Tensor, perTriple int) *nn.Loss // the loss that the program declares

	both      kge.Triples  // training triples and their reverses
	queries   *kge.Queries // of both
	filter    *kge.Queries // of all three parts and their reverses
	negatives *kge.Negatives
	// wrongVal and wrongTest are the median numbers of wrong answers to the queries of validation and test.
	wrongVal, wrongTest int
	whole               *nn.Block // the messages of all training triples, for an encoder
}

// prepare makes what the losses and the ranking need of the triples.
func (t *trainer) prepare() (err error) {
	d := t.data
	t.both = kge.Reciprocal(d.Train, d.Relations)
	t.filter = d.filter()
	t.wrongVal, t.wrongTest = d.wrongAnswers(d.Val, t.filter), d.wrongAnswers(d.Test, t.filter)
	if t.model.Encoder != nil {
		if t.whole, err = messages(d.Train, d.Entities, d.Relations); err != nil {
			return err
		}
	}
	switch t.o.Loss {
	case "kvsall", "1vsall":
		t.queries = kge.NewQueries(t.both)
	default:
		if t.o.Decoder == "conve" { // it answers queries for tails alone
			return errors.New("kg: ConvE trains with all entities; take the loss kvsall or 1vsall")
		}
		// Another tail of a reverse triple is another head of the triple.
		t.negatives, err = kge.NewNegatives(t.both, d.Entities, 2*d.Relations, kge.NegativeOptions{PerSide: t.o.Negatives, Sides: kge.TailSide, Strict: !t.o.AnyNegatives, Seed: t.w.Seed()})
	}
	return err
}

// items is the number of queries or triples of an epoch.
func (t *trainer) items() int {
	if t.queries != nil {
		return t.queries.Len()
	}
	return t.both.Len()
}

// share is what a batch needs of its items.
type share struct {
	ids     []int32
	triples kge.Triples // of the items, each followed by its negatives if there are some
	block   *nn.Block   // the messages of an encoder
}

// of implements gnb.Items.Of: it returns the items of a share, and the distinct heads as seeds.
func (t *trainer) of(epoch, step int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
	s := &share{ids: append([]int32(nil), items[lo:hi]...), block: t.whole}
	if t.whole != nil && t.negatives != nil {
		if s.block, err = t.some(items); err != nil {
			return seeds, nil, err
		}
	}
	from := t.both
	for _, i := range s.ids {
		if t.queries != nil {
			s.triples = s.triples.Append(t.queries.Head[i], t.queries.Rel[i], -1)
		} else {
			s.triples = s.triples.Append(from.Head[i], from.Rel[i], from.Tail[i])
		}
	}
	seen := make(map[int32]bool, len(s.ids))
	for _, h := range s.triples.Head {
		if !seen[h] {
			seen[h] = true
			seeds.IDs = append(seeds.IDs, h)
		}
	}
	if t.negatives == nil {
		return seeds, s, nil
	}
	neg, err := t.negatives.Draw(epoch, step, s.ids, s.triples)
	if err != nil {
		return seeds, nil, err
	}
	var all kge.Triples
	for i, k := 0, t.negatives.PerTriple(); i < s.triples.Len(); i++ {
		all = all.Append(s.triples.Head[i], s.triples.Rel[i], s.triples.Tail[i])
		for j := i * k; j < (i+1)*k; j++ {
			all = all.Append(neg.Head[j], neg.Rel[j], neg.Tail[j])
		}
	}
	s.triples = all
	return seeds, s, nil
}

// Network implements [gnb.Task].
func (t *trainer) Network() gnb.Network { return t.net }

// loader is that of the batches of heads, which have no neighbours.
func (t *trainer) loader() gnb.Loader {
	return t.w.LoaderOf(gnb.SamplerOptions{Fanouts: []int{0}}, t.o.OptimizerOptions)
}

// Batches implements [gnb.Task].
func (t *trainer) Batches(int) iter.Seq[*gnb.Batch] {
	return t.w.BatchesOf(gnb.Items{Name: "triples", Count: t.items(), Of: t.of}, t.loader())
}

// Steps implements [gnb.Task].
func (t *trainer) Steps() int { return t.w.StepsOf(t.items(), t.loader()) }

// Loss implements [gnb.Task].
func (t *trainer) Loss(b *gnb.Batch) (loss *nn.Loss) {
	f := t.net.Begin(b)
	if err := nn.Try(func() { loss = t.loss(f, b.Value.(*share)) }); err != nil {
		t.w.Fail(fmt.Errorf("kg: the scores of %s: %w", t.o.Decoder, err))
	}
	return loss
}

// loss computes the loss of a share.
func (t *trainer) loss(f *nn.Fwd, s *share) *nn.Loss {
	m := t.model
	all := m.tables(f, s.block)
	if t.negatives == nil {
		h, r, e := all.rows(f, s.ids, s.triples.Head, s.triples.Rel, t.o.Dropout)
		scores := m.Decoder.Tails(f, h, r, e)
		if t.o.Loss == "kvsall" {
			return kge.KvsAll(scores, t.queries, s.ids, t.o.Smoothing)
		}
		l := kge.OneVsAllSmooth(scores, t.queries, s.ids, t.o.LabelSmoothing)
		if t.o.N3 > 0 {
			l.Sum = f.Add(l.Sum, t.regulariser(f, s, all))
		}
		return l
	}
	k := t.negatives.PerTriple()
	scores := t.scores(f, s, all, k)
	switch t.o.Loss {
	case ownLoss:
		return t.own(scores, k)
	case "softmax":
		return t.o.labels().Softmax(scores, k)
	case "max-margin":
		return pairs.MaxMargin(scores, k, t.o.Margin)
	}
	return t.o.labels().BCE(scores, k)
}

// scores returns those of the triples of a share, each followed by its k negatives, which have other tails.
func (t *trainer) scores(f *nn.Fwd, s *share, all tables, k int) *nn.Tensor {
	d, products := t.model.Decoder.(kge.QueryDecoder)
	if products {
		heads, rels := make([]int32, len(s.ids)), make([]int32, len(s.ids))
		for i := range s.ids {
			heads[i], rels[i] = s.triples.Head[i*(1+k)], s.triples.Rel[i*(1+k)]
		}
		h, r, e := all.rows(f, s.ids, heads, rels, t.o.Dropout)
		return kge.Each(f, d.Query(f, h, r), e, s.triples.Tail, 1+k)
	}
	ids := make([]int32, 0, s.triples.Len()) // a triple and its negatives share a mask
	for _, i := range s.ids {
		for range 1 + k {
			ids = append(ids, i)
		}
	}
	h, r, e := all.rows(f, ids, s.triples.Head, s.triples.Rel, t.o.Dropout)
	return t.model.Decoder.Score(f, h, r, f.Gather(e, s.triples.Tail))
}

// regulariser is N3 times the nuclear 3-norm of the rows of each triple that answers the queries of a share.
func (t *trainer) regulariser(f *nn.Fwd, s *share, all tables) *nn.Tensor {
	var tails []int32
	answers := make([]float32, len(s.ids))
	for i, id := range s.ids {
		of := t.queries.Of(int(id))
		tails, answers[i] = append(tails, of...), float32(len(of))
	}
	ones := make([]float32, len(tails))
	for i := range ones {
		ones[i] = 1
	}
	_, isComplex := t.model.Decoder.(kge.ComplEx)
	sum := kge.N3(f, f.Gather(all.e, s.triples.Head), answers, isComplex)
	sum = f.Add(sum, kge.N3(f, f.Gather(all.z, s.triples.Rel), answers, isComplex))
	sum = f.Add(sum, kge.N3(f, f.Gather(all.e, tails), ones, isComplex))
	return f.Scale(sum, t.o.N3)
}

// some returns the messages of a step: a fraction of its items, which are in random order, as triples.
func (t *trainer) some(items []int32) (*nn.Block, error) {
	n := int32(t.data.Train.Len())
	chosen := make([]int32, 0, len(items))
	for _, i := range items[:int(math.Ceil(t.o.Encoder.Messages*float64(len(items))))] {
		chosen = append(chosen, i%n) // of a triple or its reverse
	}
	slices.Sort(chosen)
	var of kge.Triples
	for _, i := range slices.Compact(chosen) {
		of = of.Append(t.data.Train.Head[i], t.data.Train.Rel[i], t.data.Train.Tail[i])
	}
	return messages(of, t.data.Entities, t.data.Relations)
}
