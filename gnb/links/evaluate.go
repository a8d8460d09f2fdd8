package links

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
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
	// Recall and NDCG are those of the first K nodes that the network recommends to a node, of all
	// nodes: means over the nodes that are the source of an edge of the part, or either end if the edge has
	// its reverse. The relevant nodes are the destinations of these edges (or their other ends), and
	// the node itself and its training edges are not recommended; edges of the other part are, and count
	// as misses. They are NaN unless [Loader.EvaluateTop] computes them.
	K            int
	Recall, NDCG float64
}

// PerEdge is the number of negatives of each edge.
func (m Metrics) PerEdge() int { return len(m.Neg) / max(1, len(m.Pos)) }

// Hits is Hits@K of each edge among its own negatives. It is NaN if an edge has fewer than k of them: then every rank would
// be a hit, whatever the scores.
func (m Metrics) Hits(k int) float64 {
	if m.PerEdge() < k {
		return math.NaN()
	}
	return pairs.HitsAt(m.Ranks, k)
}

// SharedHits is Hits@K of all edges against all negatives, as OGB's evaluators of ogbl-collab, -ppa
// and -ddi compute it; see [pairs.SharedHitsAt].
func (m Metrics) SharedHits(k int) float64 { return pairs.SharedHitsAt(m.Pos, m.Neg, k) }

// FewNegatives is the error of Hits@K among fewer than K negatives, by which every edge is a hit.
type FewNegatives struct {
	Metric    string
	Negatives int // of each edge
}

func (e *FewNegatives) Error() string {
	return fmt.Sprintf("links: %s says nothing among %d negatives for each edge, because even the worst rank is a hit; take at least as many (EvalNegatives, --eval-negatives; SplitOptions.Negatives in a program), or a smaller number", e.Metric, e.Negatives)
}

// Value returns a metric by its name: auc, ap, mrr, hits_K, or recall_K and ndcg_K for the K that was evaluated. The error
// of Hits@K among fewer than K negatives is a [*FewNegatives].
func (m Metrics) Value(name string) (float64, error) {
	kind, k, err := parseMetric(name)
	switch {
	case err != nil:
		return 0, err
	case (kind == "recall" || kind == "ndcg") && k != m.K:
		return 0, fmt.Errorf("links: %s was not evaluated, but the first %d nodes; call EvaluateTop with %d", name, m.K, k)
	case kind == "hits" && m.PerEdge() < k:
		return 0, &FewNegatives{name, m.PerEdge()}
	}
	return map[string]float64{"auc": m.AUC, "ap": m.AP, "mrr": m.MRR, "hits": m.Hits(k), "recall": m.Recall, "ndcg": m.NDCG}[kind], nil
}

// metric is the metric of a name.
func metric(name string) gnb.Metric {
	kind, k, _ := parseMetric(name)
	title := map[string]string{"auc": "ROC AUC", "ap": "average precision", "mrr": "MRR", "ndcg": "NDCG"}[kind]
	if title == "" {
		title = kind
	}
	if k > 0 {
		title = fmt.Sprintf("%s@%d", title, k)
	}
	return gnb.Metric{Name: name, Title: title}
}

// parseMetric splits the name of a metric, such as recall_20.
func parseMetric(name string) (kind string, k int, err error) {
	kind, at, with := strings.Cut(name, "_")
	switch {
	case !with && (kind == "auc" || kind == "ap" || kind == "mrr"):
		return kind, 0, nil
	case with && (kind == "hits" || kind == "recall" || kind == "ndcg"):
		if k, err := strconv.Atoi(at); err == nil && k > 0 && strconv.Itoa(k) == at {
			return kind, k, nil
		}
		return "", 0, fmt.Errorf("links: the metric %s has no number above 0 after the _; write it as in %s_20", name, kind)
	}
	return "", 0, fmt.Errorf("links: there is no metric %q; choose auc, ap, mrr, hits_K, recall_K or ndcg_K, with a number for K", name)
}

// topOf returns the K of a metric of recommendations, 0 for others.
func topOf(metric string) int {
	if kind, k, _ := parseMetric(metric); kind == "recall" || kind == "ndcg" {
		return k
	}
	return 0
}

func (m Metrics) String() string {
	if m.PerEdge() < 2 { // ranks among two say no more than the AUC
		return fmt.Sprintf("%s AUC %.4f, AP %.4f (%d edges)", m.Part, m.AUC, m.AP, m.Edges)
	}
	return fmt.Sprintf("%s AUC %.4f, AP %.4f, MRR %.4f among %d (%d edges)", m.Part, m.AUC, m.AP, m.MRR, m.PerEdge()+1, m.Edges)
}

// scoreChunk is the number of pairs that are scored together.
const scoreChunk = 4096

// Evaluate measures a network on a part of the split, "val" or "test": it computes the embeddings of
// all nodes with all message edges (see also LoaderOptions.KnownMessages), and scores the part's edges and
// negatives, which the workers divide. Scores are computed on the CPU. Collective.
func (l *Loader) Evaluate(n *Net, part string) Metrics { return l.evaluate(n, 0, part)[0] }

// EvaluateTop is Evaluate with Recall and NDCG of the first k nodes: it also ranks all nodes for each
// node with an edge in the part, which the workers divide. Cost: as many scores as these nodes times
// all nodes. Collective.
func (l *Loader) EvaluateTop(n *Net, part string, k int) Metrics {
	if most := candidatesOf(l.split.Relation, l.split.All.NumNodes()); k < 1 || k > most {
		l.w.Fail(fmt.Errorf("links: recommendations of %d nodes were asked for, of %d; ask for 1 to %d", k, l.split.All.NumNodes(), most))
	}
	return l.evaluate(n, k, part)[0]
}

// evaluate is EvaluateTop for several parts, with one computation of the embeddings if their messages are
// the same. It ranks nothing if k is 0.
func (l *Loader) evaluate(n *Net, k int, names ...string) []Metrics {
	if l.times != nil {
		return l.evaluateAsOf(n, k, names...)
	}
	if l.messages != nil && len(names) > 1 {
		var out []Metrics
		for _, name := range names {
			out = append(out, l.evaluate(n, k, name)...)
		}
		return out
	}
	out := make([]Metrics, len(names))
	parts := make([]Part, len(names))
	scores, tops := make([][]float64, len(names)), make([]ranking, len(names))
	for i, name := range names {
		var err error
		if parts[i], err = l.part(name); err != nil {
			l.w.Fail(err)
		}
	}
	on := l.current()
	if k > 0 && l.parted != nil && readsGraph(n.Decoder) {
		l.w.Fail(errGraphTop(decoderName(n.Decoder)))
	}
	if m, ok := l.messages[names[0]]; ok {
		on = m
	}
	err := l.w.Outputs(n.Net, on.slices, func(rows []float32, cols, threads int) (err error) {
		n.Params() // the host's copies of the decoder's parameters are now those of the network
		for i, p := range parts {
			if scores[i], err = scoreShare(l.w, n.Decoder, on, rows, cols, threads, p.Edges.Join(p.Neg)); err != nil {
				return err
			}
			if k > 0 {
				if tops[i], err = l.rank(n.Decoder, on.graph, rows, cols, threads, p, k); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		l.w.Fail(err)
	}
	for i, name := range names {
		all := whole(l.w, scores[i])
		out[i] = measure(name, all[:parts[i].Len()], all[parts[i].Len():])
		if k > 0 {
			out[i].K, out[i].Recall, out[i].NDCG = k, l.mean(tops[i].recall), l.mean(tops[i].ndcg)
		}
	}
	return out
}

// ranking has the recall and the NDCG of the nodes with edges in a part: this rank's share, 0 for the
// others.
type ranking struct{ recall, ndcg []float64 }

// rank ranks all nodes for this rank's share of the nodes with edges in a part.
func (l *Loader) rank(d Decoder, g *graphops.Graph, rows []float32, cols, threads int, p Part, k int) (ranking, error) {
	return l.rankBy(p, k, func(nodes []int32, o pairs.TopOptions) (pairs.Top, error) {
		o.Threads, o.Graph = threads, g
		return pairs.TopK(d, rows, cols, nodes, o)
	})
}

// rankBy is rank by any choice of the best nodes.
func (l *Loader) rankBy(p Part, k int, choose func(nodes []int32, o pairs.TopOptions) (pairs.Top, error)) (r ranking, err error) {
	nodes, relevant, err := pairs.Relevant(l.split.All.NumNodes(), p.Edges.Join(p.Reverses), l.split.Undirected)
	if err != nil {
		return r, err
	}
	known := l.known
	switch {
	case l.parted != nil:
		if known, err = l.parted.destinations(l.split.Training, l.split.Undirected, nodes); err != nil {
			return r, err
		}
	case known == nil:
		known = l.knownEdges()
	}
	lo, hi := sample.Share(len(nodes), l.w.Rank(), l.w.World())
	o := pairs.TopOptions{K: k, Known: known}
	if of := l.split.Relation; of != nil {
		o.Candidates = of.Destinations()
	}
	top, err := choose(nodes[lo:hi], o)
	if err != nil {
		return r, err
	}
	r = ranking{make([]float64, len(nodes)), make([]float64, len(nodes))}
	recall, ndcg := top.Each(nodes[lo:hi], relevant)
	copy(r.recall[lo:], recall)
	copy(r.ndcg[lo:], ndcg)
	return r, nil
}

// knownEdges returns the training edges that are of the predicted kind, by their source.
func (l *Loader) knownEdges() *graphops.Graph {
	if l.known == nil {
		l.known = pairs.Destinations(l.split.OfRelation(l.split.Training))
	}
	return l.known
}

// candidatesOf is the number of nodes that can be recommended to a node.
func candidatesOf(r *Relation, nodes int) int {
	switch {
	case r == nil:
		return nodes - 1
	case r.Src == r.Dst:
		return int(r.DstHi-r.DstLo) - 1
	}
	return int(r.DstHi - r.DstLo)
}

// mean is the mean of values of which each rank has some and 0 for the others, in their order. Collective.
func (l *Loader) mean(values []float64) float64 {
	l.w.AllReduce(values)
	return pairs.Mean(values)
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
	m := Metrics{Part: part, Edges: len(pos), AUC: pairs.AUC(pos, neg), AP: pairs.AP(pos, neg), MRR: math.NaN(), Recall: math.NaN(), NDCG: math.NaN(), Pos: pos, Neg: neg}
	if ranks, err := pairs.Ranks(pos, neg); err == nil {
		m.Ranks, m.MRR = ranks, pairs.MRR(ranks)
	}
	return m
}

// scoreShare scores this rank's share of pairs; the others are 0.
func scoreShare(w *gnb.Worker, d Decoder, on messages, rows []float32, cols, threads int, e Edges) ([]float64, error) {
	if on.parted != nil && readsGraph(d) {
		return on.parted.scoreBy(on.graph, on.in, e, func(part Edges, around pairs.Around, put func(i int, score float32)) error {
			return scoreInto(d, around, rows, cols, threads, part, put)
		})
	}
	sums := make([]float64, e.Len())
	lo, hi := sample.Share(e.Len(), w.Rank(), w.World())
	return sums, scoreInto(d, on.graph, rows, cols, threads, e.Slice(lo, hi), func(k int, s float32) { sums[lo+k] = float64(s) })
}

// whole returns all ranks' scores. Collective.
func whole(w *gnb.Worker, share []float64) []float32 {
	w.AllReduce(share) // each score is on one rank, and 0 on the others
	out := make([]float32, len(share))
	for k, x := range share {
		out[k] = float32(x)
	}
	return out
}

// scoreInto scores pairs in chunks by embeddings [_, cols] on a graph.
func scoreInto(d Decoder, g pairs.Around, rows []float32, cols, threads int, e Edges, put func(i int, score float32)) error {
	f := nn.NewFwd(nn.Config{})
	for lo := 0; lo < e.Len(); lo += scoreChunk {
		part := e.Slice(lo, min(lo+scoreChunk, e.Len()))
		if err := nn.Try(func() {
			f.Reset(nn.Config{Threads: threads})
			s := pairs.ScoreIn(d, f, g, part, f.Input(len(rows)/cols, cols, rows, nil), part.Src, part.Dst)
			for i, x := range s.Data() {
				put(lo+i, x)
			}
		}); err != nil {
			return fmt.Errorf("links: scoring pairs: %w", err)
		}
	}
	return nil
}

// reported returns the names of the metrics that an evaluation by a metric reports. The panel draws the
// first of auc, mrr and recall_K among them.
func reported(metric string) []string {
	switch kind, k, _ := parseMetric(metric); kind {
	case "mrr":
		return []string{"mrr", "hits_10", "ap"}
	case "hits":
		return []string{"mrr", metric, "ap"}
	case "recall", "ndcg":
		return []string{fmt.Sprintf("recall_%d", k), fmt.Sprintf("ndcg_%d", k), "ap"}
	}
	return []string{"auc", "ap"}
}

// report reports metrics to the panel and the run's metrics.
func (l *Loader) report(metric string, ms ...Metrics) {
	names := reported(metric)
	var values []runs.NamedValue
	for _, m := range ms {
		for _, name := range names {
			x, err := m.Value(name)
			if few := (*FewNegatives)(nil); errors.As(err, &few) && name != metric {
				continue
			}
			if err != nil {
				l.w.Fail(err)
			}
			values = append(values, runs.NamedValue{Name: m.Part + "_" + name, Value: x})
		}
	}
	l.w.Report(values...)
}

// Log reports the metrics of an evaluation, as gnb.Worker.Log reports those of nodes.
func (l *Loader) Log(ms ...Metrics) { l.report("auc", ms...) }

var _ gnb.Network = (*Net)(nil)
