package links

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Metrics are the metrics of a part of a split. They are equal on all ranks, for any number of them.
type Metrics struct {
	Part  string // "val" or "test"
	Edges int
	// AUC and AP compare all edges with all negatives.
	AUC, AP float64
	// MRR is the mean reciprocal rank of each edge among its own negatives, ties counted as their
	// mean rank.
	MRR float64
	// Ranks are the ranks, by edge; see [pairs.HitsAt].
	Ranks []float64
	// Pos and Neg are the scores of edges and negatives.
	Pos, Neg []float32
}

// Hits is Hits@K of each edge among its own negatives.
func (m Metrics) Hits(k int) float64 { return pairs.HitsAt(m.Ranks, k) }

// SharedHits is Hits@K of all edges against all negatives, as OGB's evaluators of ogbl-collab, -ppa
// and -ddi compute it.
func (m Metrics) SharedHits(k int) float64 { return pairs.SharedHitsAt(m.Pos, m.Neg, k) }

// Value returns a metric by its name: auc, ap, mrr or hits_10.
func (m Metrics) Value(name string) (float64, error) {
	switch name {
	case "auc":
		return m.AUC, nil
	case "ap":
		return m.AP, nil
	case "mrr":
		return m.MRR, nil
	case "hits_10":
		return m.Hits(10), nil
	}
	return 0, fmt.Errorf("links: there is no metric %q; choose auc, ap, mrr or hits_10", name)
}

func (m Metrics) String() string {
	return fmt.Sprintf("%s AUC %.4f, AP %.4f, MRR %.4f (%d edges)", m.Part, m.AUC, m.AP, m.MRR, m.Edges)
}

// scoreChunk is the number of pairs that are scored together.
const scoreChunk = 4096

// Evaluate measures a network on a part of the split, "val" or "test": it computes the embeddings of
// all nodes with all message edges (see also LoaderOptions.KnownMessages), and scores the part's edges and
// negatives, which the workers divide. Scores are computed on the CPU. Collective.
func (l *Loader) Evaluate(n *Net, part string) Metrics { return l.evaluate(n, part)[0] }

// evaluate is Evaluate for several parts, with one computation of the embeddings if their messages are
// the same.
func (l *Loader) evaluate(n *Net, names ...string) []Metrics {
	if l.messages != nil && len(names) > 1 {
		var out []Metrics
		for _, name := range names {
			out = append(out, l.evaluate(n, name)...)
		}
		return out
	}
	var parts []Part
	var all []Edges
	for _, name := range names {
		p, err := l.part(name)
		if err != nil {
			l.w.Fail(err)
		}
		parts, all = append(parts, p), append(all, p.Edges.Join(p.Neg))
	}
	out := make([]Metrics, len(names))
	for i, scores := range l.scores(n, l.messages[names[0]], all) {
		pos := parts[i].Len()
		out[i] = measure(names[i], scores[:pos], scores[pos:])
	}
	return out
}

func (l *Loader) part(name string) (Part, error) {
	p, ok := map[string]Part{"val": l.split.Val, "test": l.split.Test}[name]
	switch {
	case !ok:
		return p, fmt.Errorf(`links: there is no part %q to evaluate; it is "val" or "test"`, name)
	case p.Len() == 0:
		return p, fmt.Errorf("links: the split has no edges for %q; choose a fraction above 0", name)
	case p.Neg.Len() == 0:
		return p, fmt.Errorf("links: the edges for %q have no negatives; give the split some", name)
	}
	return p, nil
}

func measure(part string, pos, neg []float32) Metrics {
	m := Metrics{Part: part, Edges: len(pos), AUC: pairs.AUC(pos, neg), AP: pairs.AP(pos, neg), MRR: math.NaN(), Pos: pos, Neg: neg}
	if ranks, err := pairs.Ranks(pos, neg); err == nil {
		m.Ranks, m.MRR = ranks, pairs.MRR(ranks)
	}
	return m
}

// scores computes the scores of lists of pairs, which the workers divide, with the messages of g. Collective.
func (l *Loader) scores(n *Net, g graphops.Slicer, lists []Edges) [][]float32 {
	sums := make([][]float64, len(lists))
	err := inside.Embed(l.w, n.Net, g, func(rows []float32, cols, threads int) error {
		n.Params() // the host's copies of the decoder's parameters are now those of the network
		for i, e := range lists {
			sums[i] = make([]float64, e.Len())
			lo, hi := sample.Share(e.Len(), l.w.Rank(), l.w.World())
			if err := scoreInto(n.Decoder, rows, cols, threads, e.Slice(lo, hi), func(k int, s float32) { sums[i][lo+k] = float64(s) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.w.Fail(err)
	}
	out := make([][]float32, len(lists))
	for i, s := range sums {
		l.w.AllReduce(s) // each score is on one rank, and 0 on the others
		out[i] = make([]float32, len(s))
		for k, x := range s {
			out[i][k] = float32(x)
		}
	}
	return out
}

// scoreInto scores pairs in chunks by embeddings [_, cols].
func scoreInto(d Decoder, rows []float32, cols, threads int, e Edges, put func(i int, score float32)) error {
	f := nn.NewFwd(nn.Config{})
	for lo := 0; lo < e.Len(); lo += scoreChunk {
		part := e.Slice(lo, min(lo+scoreChunk, e.Len()))
		if err := nn.Try(func() {
			f.Reset(nn.Config{Threads: threads})
			s := d.Score(f, f.Input(len(rows)/cols, cols, rows, nil), part.Src, part.Dst)
			for i, x := range s.Data() {
				put(lo+i, x)
			}
		}); err != nil {
			return fmt.Errorf("links: scoring pairs: %w", err)
		}
	}
	return nil
}

// report reports metrics to the panel and the run's metrics. The panel draws the chosen one; it draws
// one metric alone, so a second one that it knows is left out.
func (l *Loader) report(metric string, ms ...Metrics) {
	names := []string{"auc", "ap"}
	if metric == "mrr" || metric == "hits_10" {
		names = []string{"mrr", "hits_10", "ap"}
	}
	var values []runs.NamedValue
	for _, m := range ms {
		for _, name := range names {
			x, err := m.Value(name)
			if err != nil {
				l.w.Fail(err)
			}
			values = append(values, runs.NamedValue{Name: m.Part + "_" + name, Value: x})
		}
	}
	inside.Report(l.w, values)
}

// Log reports the metrics of an evaluation, as gnb.Worker.Log reports those of nodes.
func (l *Loader) Log(ms ...Metrics) { l.report("auc", ms...) }

var _ gnb.Network = (*Net)(nil)
