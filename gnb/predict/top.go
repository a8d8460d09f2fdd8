package predict

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Ranked is a node that [Predictor.Top] returns, with its score.
type Ranked struct {
	ID    string  `json:"id"`
	Score float32 `json:"score"`
}

// TopQuery says what [Predictor.Top] ranks.
type TopQuery struct {
	// ID is the source of the edges: a known node, or one of Additions.
	ID string `json:"id"`
	// K is the number of targets, 10 if it is 0.
	K int `json:"k,omitempty"`
	// Known also ranks targets to which the source has an edge (of the relation) already.
	Known bool `json:"known,omitempty"`
	// Additions are new nodes and edges as for [Predictor.New]. They change the embedding of the source, and not those of the targets.
	Additions
}

const (
	defaultTop = 10
	maxTop     = 1 << 16
)

// Top returns the targets with the highest scores of an edge from a node, by a run that predicts links: an exact ranking of all nodes
// of the type that the edges lead to, of equal scores the first in the order of the dataset. The node itself is none of them. There are
// fewer than K if no more are left. Without new edges the ranking and the scores are those of links.Recommend.
//
// It needs the embeddings of all nodes, [Options].Precompute at the last layer, and is refused without them, and for a decoder that
// reads the graph around a pair. Cost: a score of each target.
func (p *Predictor) Top(ctx context.Context, q TopQuery) (ranked []Ranked, err error) {
	err = p.call(func(st *state) (err error) {
		ranked, err = p.top(ctx, st, q)
		return err
	})
	return ranked, err
}

func (p *Predictor) top(ctx context.Context, st *state, q TopQuery) ([]Ranked, error) {
	switch _, around := p.decoder.(pairs.GraphDecoder); {
	case p.decoder == nil || p.o.Layer != 0:
		return nil, bad("run %s does not predict links, so it ranks no targets (or Options.Layer is set); train one by links.Train", p.run)
	case around:
		return nil, bad("the decoder of run %s reads the graph around each pair, and a ranking of all nodes here rests on their embeddings alone; take links.Recommend (gnb infer)", p.run)
	case st.rows == nil || st.rows.layer != p.model.NumLayers():
		return nil, bad("a ranking needs the embeddings of all nodes; open the predictor with Options.Precompute %d (--precompute %d)", p.model.NumLayers(), p.model.NumLayers())
	case q.K < 0 || q.K > maxTop:
		return nil, bad("a ranking of %d targets is asked for; at most %d can be, and 0 means %d", q.K, maxTop, defaultTop)
	case q.K == 0:
		q.K = defaultTop
	}
	srcType, dstType, relation, err := p.scoredEnds()
	if err != nil {
		return nil, err
	}
	x := newAdding(p, st)
	o, _, err := x.add(ctx, q.Additions)
	if err != nil {
		return nil, err
	}
	from, err := x.end(srcType, q.ID)
	if err != nil {
		return nil, at(err, "the source of the ranking")
	}
	place := int32(p.first[srcType] + from.number)
	rank, err := p.ranking(ctx, st, o, place, dstType)
	if err != nil {
		return nil, err
	}
	// Whether there is an edge is asked of those at the top alone; the more are known, the more have to be ranked.
	for n := q.K; ; n *= 4 {
		best, err := rank(n)
		if err != nil {
			return nil, err
		}
		all := len(best) < n
		if !q.Known {
			best = slices.DeleteFunc(best, func(t target) bool { return joined(o, place, t.place, relation) })
		}
		if len(best) < q.K && !all {
			continue
		}
		out := make([]Ranked, min(q.K, len(best)))
		for i := range out {
			out[i] = Ranked{p.idAt(st.over, best[i].place), best[i].score}
		}
		return out, nil
	}
}

// scoredEnds are the types of the ends of the edges that the run scores, and their relation; -1 without types.
func (p *Predictor) scoredEnds() (src, dst, relation int, err error) {
	switch {
	case p.decoder == nil || p.o.Layer != 0:
		return 0, 0, 0, bad("run %s does not predict links, so it has no scores of pairs (or Options.Layer is set); train one by links.Train", p.run)
	case p.schema == nil:
		return 0, 0, -1, nil
	case p.scored == "":
		return 0, 0, 0, bad("run %s has not recorded the relation whose edges it scores", p.run)
	}
	r, err := p.schema.Relation(p.scored)
	if err != nil {
		return 0, 0, 0, bad("the relation of run %s: %w", p.run, err)
	}
	src, dst = p.schema.Ends(r)
	return src, dst, r, nil
}

// targets are the places of the nodes of a type.
func (s *state) targets(typ int) []int32 {
	s.listed.Do(func() {
		s.list = make([]int32, s.count(typ)) // a run has one type of targets
		for i := range s.list {
			s.list[i] = int32(s.p.first[typ] + i)
		}
	})
	return s.list
}

// target is a node with the score of an edge to it.
type target struct {
	place int32
	score float32
}

// appendTop appends the targets of a ranking's one source, whose places at returns.
func appendTop(to []target, t pairs.Top, at func(id int32) int32) []target {
	ids, scores := t.Of(0)
	for i, id := range ids {
		to = append(to, target{at(id), scores[i]})
	}
	return to
}

// rankChunk is the number of targets whose rows are copied beside that of a new source. No ranking depends on it.
const rankChunk = 1 << 13

// ranking returns a function that ranks the n best targets of the source at a place.
func (p *Predictor) ranking(ctx context.Context, st *state, o *overlay, place int32, dstType int) (func(n int) ([]target, error), error) {
	all, cols := st.targets(dstType), p.cols
	top := func(h []float32, source int32, candidates []int32, n int) (pairs.Top, error) {
		t, err := pairs.TopK(p.decoder, h, cols, []int32{source}, pairs.TopOptions{K: min(n, len(candidates)), Candidates: candidates, Threads: p.o.Threads})
		if err != nil {
			return t, fmt.Errorf("predict: ranking: %w", err)
		}
		return t, ctx.Err()
	}
	if o == st.over {
		return func(n int) ([]target, error) {
			free, err := p.read(st)
			if err != nil {
				return nil, err
			}
			defer free()
			t, err := top(st.rows.rows, place, all, n)
			if err != nil {
				return nil, err
			}
			return appendTop(nil, t, func(id int32) int32 { return id }), nil
		}, nil
	}
	// The source has a row of its own, at the end of a copy of the targets' rows in chunks.
	row := make([]float32, cols)
	if err := p.outputsOf(ctx, st, o, []int32{place}, row); err != nil {
		return nil, err
	}
	part, local := make([]float32, 0, (rankChunk+1)*cols), make([]int32, rankChunk)
	for i := range local {
		local[i] = int32(i)
	}
	return func(n int) (best []target, err error) {
		for some := range slices.Chunk(all, rankChunk) {
			if i, found := slices.BinarySearch(some, place); found { // itself
				some = slices.Delete(slices.Clone(some), i, i+1)
			}
			if len(some) == 0 {
				continue
			}
			if part, err = p.appendRows(part[:0], st, some); err != nil {
				return nil, err
			}
			t, err := top(append(part, row...), int32(len(some)), local[:len(some)], n)
			if err != nil {
				return nil, err
			}
			best = appendTop(best, t, func(id int32) int32 { return some[id] })
			slices.SortFunc(best, func(a, b target) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.place, b.place)) })
			best = best[:min(n, len(best))]
		}
		return best, nil
	}, nil
}

// appendRows appends the rows of places that were computed beforehand.
func (p *Predictor) appendRows(to []float32, st *state, places []int32) ([]float32, error) {
	free, err := p.read(st)
	if err != nil {
		return to, err
	}
	defer free()
	for _, at := range places {
		to = append(to, st.rows.of(at)...)
	}
	return to, nil
}

// joined reports whether there is an edge of a relation, any for -1.
func joined(rows sample.Rows, from, to int32, relation int) bool {
	r, _ := rows.Row(to)
	lo, hi := loops(&r, from)
	for i := lo; i < hi; i++ {
		if relation < 0 || r.Edges == nil || r.Edges.Types == nil || int(r.Edges.Types[r.At+int64(i)]) == relation {
			return true
		}
	}
	return false
}
