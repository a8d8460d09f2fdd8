package predict

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Pair is a pair of nodes, of the dataset or new ones.
type Pair struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Score returns the scores of edges Source → Target by the network of a run that predicts links: logits, the higher the more
// likely an edge. The new nodes of a are there as for [Predictor.New]; without any the graph is the dataset. In a dataset with types
// the ends are of the types of the relation that the run was trained on. Scores have the bits of links.Score.
//
// Cost: the embeddings of the nodes of the pairs, each computed once, and a decoder's score of each pair.
func (p *Predictor) Score(ctx context.Context, all []Pair, a Additions) (scores []float32, err error) {
	err = p.call(func(st *state) (err error) {
		scores, err = p.score(ctx, st, all, a)
		return err
	})
	return scores, err
}

func (p *Predictor) score(ctx context.Context, st *state, all []Pair, a Additions) ([]float32, error) {
	srcType, dstType, _, err := p.scoredEnds()
	if err != nil {
		return nil, err
	}
	x := newAdding(p, st)
	o, _, err := x.add(ctx, a)
	if err != nil {
		return nil, err
	}
	e := pairs.Edges{Src: make([]int32, len(all)), Dst: make([]int32, len(all))}
	var places []int32
	row := map[int32]int32{}
	src, dst := make([]int32, len(all)), make([]int32, len(all))
	of := func(typ int, id string) (place, at int32, err error) {
		n, err := x.end(typ, id)
		if err != nil {
			return 0, 0, err
		}
		place = int32(p.first[typ] + n.number)
		at, ok := row[place]
		if !ok {
			at = int32(len(places))
			row[place], places = at, append(places, place)
		}
		return place, at, nil
	}
	for i, pair := range all {
		if e.Src[i], src[i], err = of(srcType, pair.Source); err != nil {
			return nil, at(err, "the source of pair %d", i)
		}
		if e.Dst[i], dst[i], err = of(dstType, pair.Target); err != nil {
			return nil, at(err, "the target of pair %d", i)
		}
	}
	h := make([]float32, len(places)*p.cols)
	if err := p.outputsOf(ctx, st, o, places, h); err != nil {
		return nil, err
	}
	return p.decode(o, e, h, src, dst)
}

// scoreChunk is the number of pairs that are scored together. No score depends on it.
const scoreChunk = 1 << 12

// decode scores pairs of places by their embeddings, the rows src and dst of h.
func (p *Predictor) decode(o *overlay, e pairs.Edges, h []float32, src, dst []int32) ([]float32, error) {
	scores, f := make([]float32, 0, e.Len()), nn.NewFwd(nn.Config{Threads: p.o.Threads})
	for lo := 0; lo < e.Len(); lo += scoreChunk {
		hi := min(lo+scoreChunk, e.Len())
		err := nn.Try(func() {
			f.Reset(nn.Config{Threads: p.o.Threads})
			x := f.Input(len(h)/max(p.cols, 1), p.cols, h, nil)
			scores = append(scores, pairs.ScoreIn(p.decoder, f, o, e.Slice(lo, hi), x, src[lo:hi], dst[lo:hi]).Data()...)
		})
		if err != nil {
			return nil, fmt.Errorf("predict: scoring pairs: %w", err)
		}
	}
	return scores, nil
}
