package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/saving"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/safetensors"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// PredictOptions say as of when a run answers.
type PredictOptions struct {
	// AsOf is the moment as of which is answered: events with a later time do not exist. nil means after the last event.
	AsOf *int64
	// Final takes the final weights instead of those of the best epoch.
	Final bool
	// Threads is the number of threads; 0 means GOMAXPROCS. It does not change the result.
	Threads int
}

// RecommendOptions configure [Recommend].
type RecommendOptions struct {
	PredictOptions
	// Candidates are the nodes that can be recommended, ascending and each once; nil means those that have been a destination by then.
	Candidates []int32
	// ExcludeKnown leaves out the nodes that a node has had an event to: what comes next for the first time.
	ExcludeKnown bool
}

// Recommendations are the likeliest destinations of the next events of some nodes.
type Recommendations struct {
	pairs.Top
	Nodes []int32
	// AsOf is the time of the questions, and Events the number of events that were known.
	AsOf   int64
	Events int
}

// answerer is a trained model after some events.
type answerer struct {
	model    model
	state    state
	happened *temporal.Events
	asOf     int64
	threads  int
	atOnce   int // candidates that are scored together
}

// Recommend returns the k likeliest destinations of the next event of each of some nodes; nil nodes are all that have been a source.
// Fewer are returned for a node for which there are fewer candidates. Scores are logits, the higher the likelier.
//
// It computes in this process, without workers: it goes through the events of ds up to the moment, which may be more than the run has
// seen, and between more nodes. It returns an error for a dataset whose events have other features than the run's. Cost: each event once, and
// each pair of node and candidate.
func Recommend(ctx context.Context, run *runs.Run, ds *dataset.Dataset, nodes []int32, k int, o RecommendOptions) (r Recommendations, err error) {
	if k < 1 {
		return r, fmt.Errorf("events: K is %d; it is the number of destinations to recommend, 1 or more", k)
	}
	a, err := open(ctx, run, ds, o.PredictOptions)
	if err != nil {
		return r, err
	}
	known := a.happened
	if nodes == nil {
		nodes = distinct(known.Src)
	}
	if o.Candidates == nil {
		o.Candidates = slices.DeleteFunc(distinct(known.Dst), func(v int32) bool { return !known.Exists(v, a.asOf) })
	}
	if err := errors.Join(checkNodes(known.Nodes, nodes), checkNodes(known.Nodes, o.Candidates)); err != nil {
		return r, err
	}
	r = Recommendations{Top: pairs.Top{K: k}, Nodes: nodes, AsOf: a.asOf, Events: known.Len()}
	cands := func(i int) []int32 {
		if !o.ExcludeKnown {
			return o.Candidates
		}
		u, met := nodes[i], map[int32]bool{}
		for _, e := range known.EventsOf(u) {
			met[known.Dst[e]] = met[known.Dst[e]] || known.Src[e] == u
		}
		return slices.DeleteFunc(slices.Clone(o.Candidates), func(v int32) bool { return met[v] })
	}
	err = a.scores(ctx, nodes, cands, func(i int, cands []int32, scores []float32) error {
		best, ok := pairs.Best(scores, nil, k)
		if !ok {
			return fmt.Errorf("events: a score of node %d is not a number; the run has learned nothing that can be used", nodes[i])
		}
		for i := range k {
			id, score := int32(-1), float32(math.NaN())
			if i < len(best.IDs) {
				id, score = cands[best.IDs[i]], best.Scores[i]
			}
			r.IDs, r.Scores = append(r.IDs, id), append(r.Scores, score)
		}
		return nil
	})
	return r, err
}

// Score returns the score of an event src[i] → dst[i] at the moment, for each pair: logits, the higher the likelier. See [Recommend].
func Score(ctx context.Context, run *runs.Run, ds *dataset.Dataset, src, dst []int32, o PredictOptions) ([]float32, error) {
	if len(src) != len(dst) {
		return nil, fmt.Errorf("events: the pairs have %d sources and %d destinations; give equally many", len(src), len(dst))
	}
	a, err := open(ctx, run, ds, o)
	if err != nil {
		return nil, err
	}
	nodes := a.happened.Nodes
	if err := errors.Join(checkNodes(nodes, src), checkNodes(nodes, dst)); err != nil {
		return nil, err
	}
	of := map[int32][]int{}
	for i, u := range src {
		of[u] = append(of[u], i)
	}
	out := make([]float32, len(src))
	sources := distinct(src)
	cands := func(i int) (list []int32) {
		for _, at := range of[sources[i]] {
			list = append(list, dst[at])
		}
		return list
	}
	err = a.scores(ctx, sources, cands, func(i int, _ []int32, scores []float32) error {
		for k, at := range of[sources[i]] {
			out[at] = scores[k]
		}
		return nil
	})
	return out, err
}

// distinct returns the nodes of a list, ascending and each once.
func distinct(nodes []int32) []int32 {
	nodes = slices.Clone(nodes)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func checkNodes(n int, nodes []int32) error {
	for _, v := range nodes {
		if uint(v) >= uint(n) {
			return fmt.Errorf("events: %d is not a node; the dataset's nodes are 0 to %d", v, n-1)
		}
	}
	return nil
}

// open makes the model of a run and shows it the events of a dataset up to a moment.
func open(ctx context.Context, run *runs.Run, ds *dataset.Dataset, o PredictOptions) (*answerer, error) {
	had, err := OptionsOf(run)
	if err != nil {
		return nil, err
	}
	if ds, err = feed.OneWidth(ctx, ds, true); err != nil { // as it was trained
		return nil, err
	}
	whole, err := withEdges(ctx, ds, nil)
	if err != nil {
		return nil, err
	}
	s, err := newStream(whole, &had)
	if err != nil {
		return nil, err
	}
	had.Threads = o.Threads
	x, err := had.nodeFeatures(ctx, ds)
	if err != nil {
		return nil, err
	}
	m, err := had.model(s, x, run.Config.Nodes)
	if err != nil {
		return nil, err
	}
	if err := loadWeights(run, m, o.Final, ds.Name()); err != nil {
		return nil, err
	}
	begun, err := m.begin(false)
	if err != nil {
		return nil, err
	}
	a := &answerer{model: m, state: begun, threads: o.Threads, atOnce: scoresAtOnce}
	known := 0
	if a.asOf, known, err = s.asOf(o, ds.Name()); err != nil {
		return nil, err
	}
	a.happened = s.Head(known)
	for lo := 0; lo < known; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, hi := s.stepOf(lo)
		hi = min(hi, known)
		if err := a.state.happen(s.Head(hi), lo, alone(o.Threads)); err != nil {
			return nil, err
		}
		lo = hi
	}
	return a, nil
}

// asOf returns the moment that options say, and the number of events that are known by then.
func (s *stream) asOf(o PredictOptions, data string) (moment int64, known int, err error) {
	moment, known = s.Time[s.Len()-1], s.Len()
	if o.AsOf != nil {
		moment, known = *o.AsOf, s.Until(*o.AsOf)
	}
	if known == 0 {
		return 0, 0, fmt.Errorf("events: nothing has happened in %s by time %d; its first event is at %d", data, moment, s.Time[0])
	}
	return moment, known, nil
}

// loadWeights sets the weights of a model to those of a run.
func loadWeights(run *runs.Run, m nn.Model, final bool, data string) error {
	file, _, err := run.WeightsFile(final)
	if err != nil {
		return err
	}
	tensors, _, err := safetensors.ReadFile(file)
	if err != nil {
		return fmt.Errorf("events: reading the weights of run %s: %w", run.Config.ID, err)
	}
	params, err := nn.Collect(m)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := saving.Load(params, tensors); err != nil {
		return fmt.Errorf("events: the weights of run %s do not fit %s; take a dataset whose events and nodes have the features of the run's: %w", run.Config.ID, data, err)
	}
	return nil
}

// scoresAtOnce is the number of candidates that are scored together.
const scoresAtOnce = 1 << 18

// scores gives take the scores of the next event of each of some nodes to its candidates, node after node. Nodes are asked about together,
// so that what a candidate's score takes of the stream is computed once for many.
func (a *answerer) scores(ctx context.Context, nodes []int32, cands func(i int) []int32, take func(i int, cands []int32, scores []float32) error) error {
	f := nn.NewFwd(nn.Config{})
	defer f.Close()
	var (
		q       *questions
		waiting [][]int32 // the candidates of the nodes from number next on
		next    int
		scores  []float32 // of the first of them
	)
	reset := func() { q = &questions{happened: a.happened, now: a.asOf, starts: []int32{0}} }
	answer := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := try(func() error {
			if len(q.src) == 0 {
				return nil
			}
			f.Reset(nn.Config{Threads: a.threads})
			out, err := a.state.scores(f, q, a.model.view(q))
			if err == nil {
				scores = append(scores, out.Data()...)
			}
			return err
		}); err != nil {
			return fmt.Errorf("events: the scores of the nodes %d to %d: %w", q.src[0], q.src[len(q.src)-1], err)
		}
		reset()
		for len(waiting) > 0 && len(scores) >= len(waiting[0]) {
			n := len(waiting[0])
			if err := take(next, waiting[0], scores[:n]); err != nil {
				return err
			}
			scores, waiting, next = scores[n:], waiting[1:], next+1
		}
		return nil
	}
	reset()
	for i, u := range nodes {
		list := cands(i)
		waiting = append(waiting, list)
		for len(list) > 0 {
			n := min(len(list), a.atOnce-len(q.cands))
			q.src, q.times = append(q.src, u), append(q.times, a.asOf)
			q.cands = append(q.cands, list[:n]...)
			q.starts = append(q.starts, int32(len(q.cands)))
			if list = list[n:]; len(q.cands) < a.atOnce {
				continue
			}
			if err := answer(); err != nil {
				return err
			}
		}
	}
	return answer()
}
