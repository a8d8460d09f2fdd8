// Package linkstest trains on links for tests: a program that verifies each batch, the settings with
// which every promise of package links is tested, and which setting has which promise. The tests of
// gnb/links and of internal/cuda/internal/e2e test a promise with each setting that has it, and write the table
// of bench/notes/links.md from the same list.
package linkstest

import (
	"cmp"
	"fmt"
	"hash/fnv"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Setting is the argument of [Program]. The zero value trains a GraphSAGE of two layers for 3 epochs
// of steps of 120 edges, with uniform sampling and one uniform negative for each edge.
type Setting struct {
	Model         string // "" means sage
	Decoder       string
	Loss          string
	Negatives     links.NegativeOptions
	Any           bool      // negatives may be edges
	Disjoint      float64   // see links.SplitOptions
	Directed      bool      // of a third of the pairs, one direction alone is an edge
	Labor         gnb.Labor // the sampler, if it has Fanouts
	Fanouts       []int     // nil means 5 and 3
	Weighted      bool      // picks by weights, which the program gives to the edges
	Own           bool      // picks by a sampler of its own, [Middle]
	Whole         bool      // full-graph training
	KnownMessages bool      // see links.LoaderOptions
	Relation      string    // of a dataset with types, such as Shop; the model is then rgcn unless given
	ByRelation    bool      // samples 2 edges of relation 1 and 3 of the others, at both hops
	KeepEdges     bool      // plants a leak: a batch's own edges are messages
	HeldOut       bool      // plants a leak: validation and test edges are messages
	Batch         int       // 0 means 120
	Epochs        int       // 0 means 3
	Hidden        int       // 0 means 16
	NoDigest      bool      // a resumed run has none
	LastMetrics   bool      // evaluates after the last epoch alone
	Asks          bool      // splits where the edges are: the run may ask the owners of edges
	Far           bool      // fetches no neighbours for a decoder that reads them
}

// Named is a setting with a name, and with the words for its sampler and its negatives in bench/notes/links.md.
type Named struct {
	Name, Sampler, Negatives string
	Setting
}

// Promise is what runs with a setting promise.
type Promise string

// The promises.
const (
	Clean   Promise = "no leak"
	Digest  Promise = "one digest"
	GPU     Promise = "GPU"
	Bits    Promise = "equal bits"
	Resume  Promise = "exact resume"
	Parts   Promise = "parts"
	Servers Promise = "servers"
	Divided Promise = "divided topology"
)

// Promises returns all promises.
func Promises() []Promise {
	return []Promise{Clean, Digest, GPU, Bits, Resume, Parts, Servers, Divided}
}

// Has reports whether runs with the setting have a promise. Training on the whole graph is refused where
// features are in parts or at servers, or the edges are divided.
func (n Named) Has(p Promise) bool {
	switch p {
	case Parts, Servers, Divided:
		return !n.Whole
	}
	return true
}

// Settings returns a setting for each loader, each sampler and each distribution of negatives.
func Settings() []Named {
	five := gnb.Fanouts{5, 3}
	return []Named{
		{"uniform fanouts", "fanouts", "uniform", Setting{}},
		{"all neighbours", "fanouts with -1", "uniform", Setting{Fanouts: []int{-1, 4}, Decoder: "hadamard", Negatives: links.NegativeOptions{PerEdge: 2}}},
		{"labor", "`gnb.Labor`", "both ends", Setting{Labor: gnb.Labor{Fanouts: five}, Negatives: links.NegativeOptions{BothEnds: true}}},
		{"labor-poisson", "`gnb.Labor`, Poisson", "by degree", Setting{Labor: gnb.Labor{Fanouts: five, Poisson: true}, Loss: "softmax", Negatives: links.NegativeOptions{PerEdge: 3, From: links.ByDegree}}},
		{"labor with dependencies", "`gnb.Labor`, layer and batch dependency", "uniform", Setting{Labor: gnb.Labor{Fanouts: five, LayerDependency: true, BatchDependency: 4}, Decoder: "bilinear"}},
		{"weighted", "`sample.Weighted`", "uniform", Setting{Weighted: true, Loss: "softmax", Negatives: links.NegativeOptions{PerEdge: 2}}},
		{"own sampler", "one of your own, by `Pick`", "uniform", Setting{Own: true}},
		{"by degree^0.75", "fanouts", "by degree^0.75", Setting{Decoder: "hadamard", Loss: "softmax", Negatives: links.NegativeOptions{PerEdge: 4, From: links.ByDegree75}}},
		{"by degree, both ends", "fanouts", "by degree, both ends", Setting{Negatives: links.NegativeOptions{From: links.ByDegree, BothEnds: true}}},
		{"structural", "fanouts", "uniform", Setting{Decoder: "structural", Loss: "softmax", Negatives: links.NegativeOptions{PerEdge: 2}}},
		{"structural, disjoint, known messages", "fanouts", "uniform", Setting{Decoder: "structural", Disjoint: 0.4, KnownMessages: true}},
		{"in-batch", "fanouts", "from the batch", Setting{Decoder: "bilinear", Loss: "max-margin", Negatives: links.NegativeOptions{PerEdge: 2, From: links.InBatch}}},
		{"any pair, directed", "fanouts", "by degree, edges by chance", Setting{Negatives: links.NegativeOptions{From: links.ByDegree}, Any: true, Directed: true}},
		{"disjoint", "fanouts", "both ends", Setting{Decoder: "mlp", Negatives: links.NegativeOptions{BothEnds: true}, Disjoint: 0.4}},
		{"disjoint, labor", "`gnb.Labor`", "uniform", Setting{Labor: gnb.Labor{Fanouts: five}, Disjoint: 0.4}},
		{"known messages, disjoint", "fanouts", "uniform", Setting{KnownMessages: true, Disjoint: 0.3}},
		{"full graph", "none: the whole graph", "both ends", Setting{Whole: true, Negatives: links.NegativeOptions{BothEnds: true}}},
		{"full graph, disjoint", "none: the whole graph", "uniform", Setting{Whole: true, Disjoint: 0.5, Negatives: links.NegativeOptions{PerEdge: 2}}},
	}
}

// Middle picks the in-edges in the middle of a node's list, as many as fanouts say, from a random one on.
type Middle []int

// Hops is the number of hops.
func (m Middle) Hops() int { return len(m) }

// Pick implements [gnb.Sampler].
func (m Middle) Pick(h *gnb.Hop, _ int32, nbrs, out []int32) []int32 {
	if len(nbrs) == 0 {
		return out
	}
	at := len(nbrs)/4 + h.Bounded(max(1, len(nbrs)/2))
	for i := range min(m[h.Index], len(nbrs)) {
		out = append(out, int32((at+i)%len(nbrs)))
	}
	return out
}

// directed leaves out one direction of a third of a graph's pairs.
func directed(g *graphops.Graph) *graphops.Graph {
	var e links.Edges
	for v := range int32(g.NumNodes()) {
		for _, u := range g.InNeighbors(v) {
			if u > v && (u+v)%3 == 0 {
				e = e.Append(u, v)
			}
		}
	}
	gone := gnb.Must(graphops.FromEdges(g.NumNodes(), e.Src, e.Dst, graphops.BuildOptions{}))
	return gnb.Must(g.Without(gone, 0))
}

// weighted gives a graph's edges weights that are the same in both directions.
func weighted(g *graphops.Graph) *graphops.Graph {
	weights := make([]float32, g.NumEdges())
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			weights[e] = 1 + float32((v+g.Indices[e])%7)
		}
	}
	return g.WithEdgeWeights(weights)
}

// Dataset is a dataset as [Program] makes it for the setting, for runs that split where the edges are.
func (s Setting) Dataset(ds *gnb.Dataset) *gnb.Dataset {
	d := *ds
	if s.Directed {
		d.Graph = directed(d.Graph)
		d.Meta.Undirected = false
	}
	if s.Weighted {
		d.Graph = weighted(d.Graph)
		d.Meta.Weighted = true
	}
	return &d
}

// Program trains on links, and verifies every batch: the first leak ends the run with an error. Its
// results are the batches that were "checked", the edges "predicted" per epoch, the "train_edges", the
// "pairs" (a hash of all edges and negatives), and metrics. The
// digest of sampling is that of the run, unless training is on the whole graph.
var Program = gnb.Program("test.links", func(w *gnb.Worker, s Setting) error {
	ds := *w.Dataset()
	if s.Directed && !s.Asks {
		ds.Graph = directed(ds.Graph)
	}
	if s.Weighted && !s.Asks {
		ds.Graph = weighted(ds.Graph)
	}
	o := links.SplitOptions{Val: 0.1, Test: 0.1, Disjoint: s.Disjoint, Negatives: 3, Seed: 4, Relation: s.Relation}
	var split *links.Split
	var err error
	if s.Asks {
		split, err = links.RandomSplitOf(w, o)
	} else {
		split, err = links.RandomSplit(&ds, o)
	}
	if err != nil {
		return err
	}
	if s.HeldOut {
		split.Message = split.All
		split.Training = split.All
	}
	loader := links.NewLoader(w, split, s.loader())
	model := "sage"
	if s.Relation != "" {
		model = "rgcn"
	}
	encoder, err := gnb.ModelByName(cmp.Or(s.Model, model))
	if err != nil {
		return err
	}
	net := links.New(w, encoder, s.Decoder, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: cmp.Or(s.Hidden, 16), Out: cmp.Or(s.Hidden, 16), Layers: 2, Dropout: 0.1, Schema: ds.Schema()})
	opt := w.Adam(net, 0.01)
	if !s.Whole && !s.NoDigest {
		w.Digest()
	}
	epochs := cmp.Or(s.Epochs, 3)
	var seen struct {
		Checked, Predicted float64
		Pairs              uint64
	}
	w.Keep("seen", &seen)
	step := func(b *links.Batch) error {
		if err := loader.Verify(b); err != nil {
			return err
		}
		if err := check(b, s.Whole); err != nil {
			return err
		}
		// Kept values are equal on all ranks. Sums of float64 are exact below 2^53, so a hash is summed by
		// its halves.
		h := hash(b)
		sums := []float64{1, float64(b.Edges.Len()), float64(h >> 32), float64(uint32(h))}
		w.AllReduce(sums)
		seen.Checked += sums[0]
		seen.Predicted += sums[1]
		seen.Pairs += uint64(sums[2])<<32 + uint64(sums[3])
		w.Step(s.loss(net.Score(b), b.PerEdge), opt)
		return nil
	}
	for epoch := range w.Epochs(epochs) {
		if s.Whole {
			if err := step(loader.Whole(epoch)); err != nil {
				return err
			}
		} else {
			for b := range loader.Batches() {
				if err := step(b); err != nil {
					return err
				}
			}
		}
		if !s.LastMetrics || epoch == epochs-1 {
			m := loader.Evaluate(net, "val")
			loader.Log(m)
			w.SaveBest(net, m.AUC)
		}
	}
	m := loader.Evaluate(net, "test")
	w.Result("checked", seen.Checked)
	w.Result("predicted", seen.Predicted/float64(epochs))
	w.Result("train_edges", float64(split.Predicted()))
	w.Result("pairs", float64(seen.Pairs>>11))
	w.Result("test_auc", m.AUC)
	w.Result("test_ap", m.AP)
	w.Result("test_mrr", m.MRR)
	w.Result("test_hits_1", m.Hits(1))
	w.Result("shared_hits_20", m.SharedHits(20))
	return nil
})

func (s Setting) loader() links.LoaderOptions {
	l := gnb.Loader{Fanouts: s.Fanouts, Batch: cmp.Or(s.Batch, 120)}
	switch {
	case s.Labor.Fanouts != nil:
		l.Sampler = s.Labor
	case s.Weighted:
		l.Sampler = sample.Weighted{Fanouts: []int{5, 3}}
	case s.ByRelation:
		l.Sampler = &sample.RelationFanouts{All: sample.Fanouts{3, 3}, By: map[int]sample.Fanouts{1: {2, 2}}}
	case s.Own:
		l.Sampler = Middle{5, 3}
	case s.Fanouts == nil:
		l.Fanouts = []int{5, 3}
	}
	return links.LoaderOptions{Loader: l, Negatives: s.Negatives, AnyNegatives: s.Any, KeepEdges: s.KeepEdges, KnownMessages: s.KnownMessages, Neighbours: s.Decoder == "structural" && !s.Far}
}

func (s Setting) loss(scores *nn.Tensor, k int) *nn.Loss {
	switch s.Loss {
	case "softmax":
		return links.Softmax(scores, k)
	case "max-margin":
		return links.MaxMargin(scores, k, 1)
	}
	return links.BCE(scores, k)
}

// check compares the rows of a batch's pairs with its nodes.
func check(b *links.Batch, whole bool) error {
	if b.Pairs.Len() != b.Edges.Len()*(1+b.PerEdge) || len(b.Src) != b.Pairs.Len() || len(b.Dst) != len(b.Src) {
		return fmt.Errorf("%d edges with %d negatives each are %d pairs", b.Edges.Len(), b.PerEdge, b.Pairs.Len())
	}
	for i := range b.Src {
		u, v := b.Src[i], b.Dst[i]
		if !whole {
			u, v = b.Seeds[u], b.Seeds[v]
		}
		if u != b.Pairs.Src[i] || v != b.Pairs.Dst[i] {
			return fmt.Errorf("rows %d and %d are of other nodes than pair %d → %d", b.Src[i], b.Dst[i], b.Pairs.Src[i], b.Pairs.Dst[i])
		}
	}
	return nil
}

// hash is the sum of a hash of each group, an edge with its negatives: it does not depend on how the
// groups of a step are divided.
func hash(b *links.Batch) (sum uint64) {
	for lo := 0; lo < b.Pairs.Len(); lo += 1 + b.PerEdge {
		h := fnv.New64a()
		group := b.Pairs.Slice(lo, lo+1+b.PerEdge)
		fmt.Fprint(h, b.Epoch, b.Step, group.Src, group.Dst)
		sum += h.Sum64()
	}
	return sum
}
