package links

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

var _ gnb.Ender = (*linkTask)(nil)

// linkTask predicts links in a worker.
type linkTask struct {
	w    *gnb.Worker
	o    recorded
	l    *Loader
	net  *Net
	loss func(b *Batch, scores *nn.Tensor) *nn.Loss
}

func start(w *gnb.Worker, o recorded) (gnb.Task, error) {
	split, err := o.split(w, w.Seed())
	if err != nil {
		return nil, err
	}
	if o.Embedding > 0 {
		w.WithoutFeatures()
	}
	d, err := newDecoder(o.Decoder, o.Dim)
	if err != nil {
		return nil, err
	}
	t := &linkTask{w: w, o: o}
	if t.loss, err = o.loss(); err != nil {
		return nil, err
	}
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return nil, err
	}
	t.l = NewLoader(w, split, LoaderOptions{
		Loader:        w.LoaderOf(o.SamplerOptions, o.OptimizerOptions),
		Negatives:     NegativeOptions{From: from, PerEdge: o.Negatives, BothEnds: !o.KeepSource && from != InBatch},
		KnownMessages: o.KnownMessages, Neighbours: readsGraph(d), AsOf: o.AsOf,
	})
	sayRate(w, o.LR, o.Embedding > 0)
	t.net = New(w, byName(o.Model), o.Decoder, o.Config(w.Dataset(), o.Dim))
	return t, nil
}

// Network implements [gnb.Task].
func (t *linkTask) Network() gnb.Network { return t.net }

// Batches implements [gnb.Task].
func (t *linkTask) Batches(epoch int) iter.Seq[*gnb.Batch] {
	if !t.o.FullGraph {
		return t.l.batches()
	}
	return func(yield func(*gnb.Batch) bool) {
		b := t.l.Whole(epoch)
		b.Value = b
		yield(b.Batch)
	}
}

// Steps implements [gnb.Task].
func (t *linkTask) Steps() int {
	if t.o.FullGraph {
		return 1
	}
	return t.w.StepsOf(t.l.split.Predicted(), t.l.o.Loader)
}

// Loss implements [gnb.Task].
func (t *linkTask) Loss(b *gnb.Batch) *nn.Loss {
	p := pairsIn(b)
	return t.loss(p, t.net.Score(p))
}

// Splits implements [gnb.Task].
func (t *linkTask) Splits() (names []string) {
	if t.l.split.Val.Len() > 0 {
		names = append(names, "val")
	}
	if t.l.split.Test.Len() > 0 {
		names = append(names, "test")
	}
	return names
}

// Chooses implements [gnb.Task].
func (t *linkTask) Chooses() gnb.Metric { return metric(t.o.Metric) }

// Measure implements [gnb.Task].
func (t *linkTask) Measure(splits ...string) (values []runs.NamedValue, err error) {
	for _, m := range t.l.evaluate(t.net, topOf(t.o.Metric), splits...) {
		t.l.sayConstant(m)
		if x, err := m.Value(t.o.Metric); m.Part == "val" && (err != nil || math.IsNaN(x)) {
			if err == nil {
				err = fmt.Errorf("links: the %s of the validation is not a number, because scores are not; take a smaller learning rate (LR, --lr)", t.o.Metric)
			}
			return nil, err
		}
		names := reported(t.o.Metric)
		if also := []string{"auc", "ap"}; m.PerEdge() > 1 { // ranks among two say no more than the AUC
			names = append(names, append(also, "mrr", "hits_10")...)
		} else {
			names = append(names, also...)
		}
		for i, name := range names {
			if x, err := m.Value(name); err == nil && !slices.Contains(names[:i], name) {
				values = append(values, runs.NamedValue{Name: m.Part + "_" + name, Value: x})
			}
		}
	}
	return values, nil
}

// End implements [gnb.Ender]: it measures the baselines on the test edges.
func (t *linkTask) End() error {
	k := topOf(t.o.Metric)
	return t.l.baselines(k, k > 0 && t.o.Eval != "none")
}

// partedBaseline measures a heuristic on the test edges in a run that asks the owners of edges. Collective.
func (l *Loader) partedBaseline(h pairs.Heuristic) error {
	degrees, err := l.parted.peers.Degrees(l.split.Training)
	if err != nil {
		return err
	}
	score := func(e Edges) ([]float32, error) {
		share, err := l.parted.scoreBy(l.split.Training, degrees, e, func(part Edges, around pairs.Around, put func(i int, score float32)) error {
			scores, err := h.Score(around, part, 0)
			for i, x := range scores {
				put(i, x)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return whole(l.w, share), nil
	}
	pos, err := score(l.split.Test.Edges)
	if err != nil {
		return err
	}
	neg, err := score(l.split.Test.Neg)
	if err != nil {
		return err
	}
	l.w.Result(string(h)+"_auc", pairs.AUC(pos, neg))
	return nil
}

// baselines measures the heuristics on the test edges: their AUC on rank 0 and, with ranks, their recommendations of k nodes on
// all ranks. Collective.
func (l *Loader) baselines(k int, ranks bool) error {
	s := l.split
	if s.Test.Len() == 0 {
		return nil
	}
	for _, h := range pairs.Heuristics() {
		if l.parted != nil { // their recommendations would need the neighbours of all neighbours
			if err := l.partedBaseline(h); err != nil {
				return err
			}
			continue
		}
		if l.w.Rank() == 0 {
			pos, err := h.Score(s.Training, s.Test.Edges, 0)
			if err != nil {
				return err
			}
			neg, err := h.Score(s.Training, s.Test.Neg, 0)
			if err != nil {
				return err
			}
			l.w.Result(string(h)+"_auc", pairs.AUC(pos, neg))
		}
		if !ranks {
			continue
		}
		r, err := l.rankBy(s.Test, k, func(nodes []int32, o pairs.TopOptions) (pairs.Top, error) {
			return h.TopK(s.Training, nodes, o)
		})
		if err != nil {
			return err
		}
		l.w.Result(fmt.Sprintf("%s_recall_%d", h, k), l.mean(r.recall))
		l.w.Result(fmt.Sprintf("%s_ndcg_%d", h, k), l.mean(r.ndcg))
	}
	return nil
}
