package links

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// LoaderOptions configure a [Loader]. The zero value predicts 1024 edges per step, with one uniform
// negative each, of which a training edge is none, from ten in-neighbours per hop.
type LoaderOptions struct {
	// Loader is the loader of the neighbourhoods; its Batch counts edges. Frontier and Cooperative
	// are refused.
	Loader gnb.Loader
	// Negatives configures the negatives. Seed 0 means the run's seed, and Undirected is the split's.
	// Strict refers to the training edges alone: what is held out must not be known to training. With a
	// relation, negatives are pairs of its types, and Relation is the split's.
	Negatives NegativeOptions
	// AnyNegatives lets a negative be a training edge by chance, which Strict cannot say: the zero
	// value of LoaderOptions is strict.
	AnyNegatives bool
	// KnownMessages makes Evaluate compute embeddings with all edges that are known before a part as
	// messages, as the data of PyG's RandomLinkSplit has them: for validation all training edges, also
	// those of a disjoint split, and for the test those of validation too. Messages in training are as
	// without it. It costs another computation of the embeddings.
	KnownMessages bool
	// Neighbours is for decoders that read the graph around a pair, such as "structural", in a run that asks the owners
	// of edges (Topology "divided"): each step fetches the in-neighbours of the ends of its pairs. Other runs have them
	// anyway.
	Neighbours bool
	// NoNegatives makes batches without negatives, for programs that predict something else of edges than whether they are there:
	// the pairs of a batch are its edges, and Evaluate is refused.
	NoNegatives bool
	// KeepEdges leaves the edges that a step predicts among its messages: a leak, to compare with.
	KeepEdges bool
	// AsOf sees both ends of each edge, and of its negatives, as of the edge's own time: their neighbourhoods have the edges of
	// the whole graph that are strictly earlier, in training and in evaluation, in a tree for each end. The time of an edge is
	// that of the latest edge of the pair. The split must be by time. Evaluate then samples neighbourhoods too, by the Loader.
	// Loader.AsOf says what else is hidden, such as by a Window, and which edges are taken; Loader.ProveTime checks it all.
	AsOf bool
}

// Loader makes the batches of a program that predicts links. It belongs to the worker's goroutine.
type Loader struct {
	w         *gnb.Worker
	split     *Split
	o         LoaderOptions
	negatives *pairs.Negatives
	held      []*sample.EdgeSet   // of validation and test
	messages  map[string]messages // with KnownMessages, by part
	loop      *loop               // the next loop's
	known     *graphops.Graph     // training edges, by their source
	parted    *parted             // in a run that asks the owners of edges, else nil
	times     *partTimes          // with AsOf, else nil
	constant  []string            // parts of which sayConstant has told
}

// loop makes the steps of loops over batches, until one ends early: the goroutines that prepared the next steps of that one
// may still use it, and those steps have the numbers of steps of the next loop, with other edges.
type loop struct {
	l      *Loader
	loader gnb.Loader
	step   atomic.Pointer[stepEdges]
}

func (l *Loader) newLoop() *loop {
	p := &loop{l: l, loader: l.o.Loader}
	if l.o.AsOf { // what is predicted is not earlier than itself
		p.loader.Disjoint, p.loader.AsOf.Strict, p.loader.AsOf.NodeTimes = true, true, l.w.Dataset().NodeTimes
		return p
	}
	if !l.o.KeepEdges && l.split.Message == l.split.Training {
		p.loader.Sampler, p.loader.Fanouts = &sample.Excluding{Picker: picker(l.o.Loader), Of: p.excluded}, nil
	}
	return p
}

// messages are the edges on which embeddings are computed.
type messages struct {
	graph  *graphops.Graph
	slices graphops.Slicer
	parted *parted // if the graph is divided
	in     []int32 // its in-degrees then
}

// stepEdges are the edges that a step predicts, in both directions.
type stepEdges struct {
	epoch, step int
	set         *sample.EdgeSet
	times       []int64 // of all, with AsOf
	all, neg    Edges   // of a divided split: the step's edges and the negatives of all of them
	around      pairs.Around
}

// Batch is one worker's share of a step: the edges to predict, their negatives, and the
// neighbourhoods of their ends. It is valid as long as its gnb.Batch is.
type Batch struct {
	*gnb.Batch
	// Edges are the edges of this share.
	Edges Edges
	// Pairs are the edges with their negatives, in groups: an edge, then PerEdge negatives of it.
	Pairs   Edges
	PerEdge int
	// Src and Dst are the rows of the pairs' ends in a network's output for the batch.
	Src, Dst []int32

	graph pairs.Around // of the batch's messages; see pairs.GraphDecoder
	whole bool
}

// Score returns the scores of the batch's pairs by their embeddings h, a network's output for the
// batch.
func (b *Batch) Score(d Decoder, h *nn.Tensor) *nn.Tensor {
	if b.Batch != nil && b.Times != nil && readsGraph(d) {
		panic(&tensor.Error{Op: "Score", Detail: errAsOfDecoder(decoderName(d)).Error()})
	}
	if b.graph == nil && readsGraph(d) {
		panic(&tensor.Error{Op: "Score", Detail: fmt.Sprintf("the decoder %s reads the neighbours of both ends of a pair, and this run asks the owners of edges for them; set LoaderOptions.Neighbours", decoderName(d))})
	}
	return pairs.ScoreIn(d, h.Fwd(), b.graph, b.Pairs, h, b.Src, b.Dst)
}

// NewLoader returns a loader of the training edges of a split, and makes the worker compute on the
// split's message graph from now on: call it before networks are made. It ends the rank with an
// error for options that do not fit.
func NewLoader(w *gnb.Worker, s *Split, o LoaderOptions) *Loader {
	l, err := newLoader(w, s, o)
	if err != nil {
		w.Fail(err)
	}
	return l
}

func newLoader(w *gnb.Worker, s *Split, o LoaderOptions) (*Loader, error) {
	switch {
	case s == nil:
		return nil, errors.New("links: NewLoader needs a split; get one from links.RandomSplit")
	case feed.NeedsSteps(o.Loader.Sampler):
		return nil, fmt.Errorf("links: a Loader needs a sampler that picks for each node alone, because it takes edges out of the messages, and a %T picks by all seeds of a step; take another sampler", o.Loader.Sampler)
	case o.Loader.Frontier != nil:
		return nil, errors.New("links: a Loader needs a sampler that picks for each node alone, because it takes edges out of the messages; leave Frontier out")
	case o.Loader.Fanouts != nil && o.Loader.Sampler != nil:
		return nil, errors.New("links: a Loader takes Fanouts or a sampler of your own, not both; give the sampler its fanouts itself")
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	for _, note := range s.Notes() {
		w.Printf("%s", note)
	}
	l := &Loader{w: w, split: s, o: o}
	var err error
	switch t := w.Owners(); {
	case o.AsOf:
		err = l.useTimes(t != nil)
	case t != nil:
		err = l.useParted(t)
	default:
		w.UseGraph(s.Message)
	}
	if err != nil {
		return nil, err
	}
	n := o.Negatives
	n.Strict, n.Undirected, n.Relation = !o.AnyNegatives, s.Undirected, s.Relation
	if n.Seed == 0 {
		n.Seed = w.Seed()
	}
	if !o.NoNegatives {
		if l.negatives, err = s.Negatives(n); err != nil {
			return nil, err
		}
	}
	if o.KnownMessages {
		g, err := s.WithVal()
		if err != nil {
			return nil, err
		}
		l.messages = map[string]messages{}
		if l.messages["test"], err = l.messagesOf(g); err != nil {
			return nil, err
		}
		if s.Message != s.Training {
			if l.messages["val"], err = l.messagesOf(s.Training); err != nil {
				return nil, err
			}
		}
	}
	l.held = s.HeldOut()
	l.loop = l.newLoop()
	return l, nil
}

// messagesOf returns the edges of a graph as messages of an evaluation.
func (l *Loader) messagesOf(g *graphops.Graph) (m messages, err error) {
	if l.parted != nil {
		return l.parted.messagesOf(g)
	}
	return messages{graph: g, slices: graphops.KeepSlices(g)}, nil
}

// picker is the sampler that a loader's options choose.
func picker(l gnb.Loader) sample.Picker {
	switch {
	case l.Sampler != nil:
		return l.Sampler
	case l.Fanouts != nil:
		return sample.Fanouts(l.Fanouts)
	}
	return ten{}
}

// ten picks ten in-edges at every hop, for as many hops as the network has layers.
type ten struct{}

func (ten) Pick(h *sample.Hop, _ int32, nbrs, out []int32) []int32 {
	return h.Uniform(len(nbrs), 10, out)
}

// excluded returns the edges that a step predicts. Seeds is called for a step before its sampling.
func (p *loop) excluded(epoch, step int) *sample.EdgeSet {
	s := p.step.Load()
	if s == nil || s.epoch != epoch || s.step != step {
		panic(fmt.Errorf("the edges of epoch %d, step %d are not known; take batches from links.Loader.Batches", epoch, step))
	}
	return s.set
}

// Split is the split whose edges the loader predicts.
func (l *Loader) Split() *Split { return l.split }

// Batches loops over the training edges in mini-batches, as gnb.Worker.Batches loops over nodes:
// shuffled, in even shares of a step over the ranks, with exact resumption.
func (l *Loader) Batches() iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		for b := range l.batches() {
			if !yield(pairsIn(b)) {
				return
			}
		}
	}
}

// batches is Batches with the pairs as Value; see pairsIn.
func (l *Loader) batches() iter.Seq[*gnb.Batch] {
	return func(yield func(*gnb.Batch) bool) {
		loop := l.loop
		for b := range l.w.BatchesOf(gnb.Items{Name: "links", Count: l.split.Predicted(), Of: loop.seeds}, loop.loader) {
			if !yield(b) {
				l.loop = l.newLoop()
				return
			}
		}
	}
}

// pairsIn returns a batch with the pairs that are its Value.
func pairsIn(b *gnb.Batch) *Batch {
	p := *b.Value.(*Batch)
	p.Batch = b
	return &p
}

// seeds implements gnb.Items.Of: the distinct ends of the edges of a share and of their negatives,
// in the order in which they first occur.
func (p *loop) seeds(epoch, step int, items []int32, lo, hi int) (seeds gnb.Seeds, value any, err error) {
	l, s := p.l, p.step.Load()
	if s == nil || s.epoch != epoch || s.step != step {
		s = &stepEdges{epoch: epoch, step: step, around: l.split.Message}
		if d := l.parted; d != nil {
			s.around = nil
			if s.all, s.neg, err = d.draw(l, epoch, step, items); err == nil && l.o.Neighbours {
				s.around, err = d.around(l, s)
			}
		} else {
			s.all = edgesAt(l.split.Train.Edges, items)
		}
		if l.times != nil {
			s.around, s.times = nil, timesAt(l.times.train, items)
		}
		if err != nil {
			return seeds, nil, err
		}
		s.set = l.split.Excluded(s.all)
		p.step.Store(s)
	}
	b, err := l.pairsOf(s, items, lo, hi)
	if err != nil {
		return seeds, nil, err
	}
	if l.times != nil {
		seeds, b.Src, b.Dst = numberedAt(b.Pairs, s.times[lo:hi])
		return seeds, b, nil
	}
	seeds.IDs, b.Src, b.Dst = numbered(b.Pairs)
	return seeds, b, nil
}

// numbered returns the distinct ends of pairs, in the order in which they first occur, and the numbers of
// each pair's ends among them.
func numbered(p Edges) (seeds, src, dst []int32) {
	row := make(map[int32]int32, 2*p.Len())
	number := func(nodes []int32) []int32 {
		rows := make([]int32, len(nodes))
		for i, v := range nodes {
			r, ok := row[v]
			if !ok {
				r = int32(len(seeds))
				row[v] = r
				seeds = append(seeds, v)
			}
			rows[i] = r
		}
		return rows
	}
	src, dst = number(p.Src), number(p.Dst)
	return seeds, src, dst
}

// pairsOf returns a share of a step's edges with their negatives.
func (l *Loader) pairsOf(s *stepEdges, items []int32, lo, hi int) (b *Batch, err error) {
	if l.negatives == nil {
		e := s.all.Slice(lo, hi)
		return &Batch{Edges: e, Pairs: e, graph: s.around}, nil
	}
	k := l.negatives.PerEdge()
	neg := s.neg
	if l.parted != nil {
		neg = neg.Slice(lo*k, hi*k)
	} else if neg, err = l.negatives.DrawPart(s.epoch, s.step, items, s.all, lo, hi); err != nil {
		return nil, err
	}
	b = &Batch{Edges: s.all.Slice(lo, hi), graph: s.around}
	b.Pairs, b.PerEdge, err = pairs.Grouped(b.Edges, neg)
	if b.PerEdge == 0 {
		b.PerEdge = k // an empty share
	}
	return b, err
}

func edgesAt(e Edges, items []int32) Edges {
	out := Edges{Src: make([]int32, len(items)), Dst: make([]int32, len(items))}
	for k, i := range items {
		out.Src[k], out.Dst[k] = e.Src[i], e.Dst[i]
	}
	return out
}

// Whole returns the whole message graph as one batch with all training edges, for full-graph
// training, with the negatives of an epoch. Each rank computes all rows, and rank 0 has the pairs;
// see gnb.Worker.FullGraph. Unless the split is disjoint, the edges to predict are messages too, as
// in graph auto-encoders: the embedding of a node then depends on the edges that it predicts, though
// never on those of validation and test.
func (l *Loader) Whole(epoch int) *Batch {
	if l.parted != nil {
		l.w.Fail(errWhole)
	}
	if l.times != nil {
		l.w.Fail(errors.New("links: Whole has one neighbourhood for each node, and with AsOf a node has one for each time; take Batches, or leave AsOf out"))
	}
	b := &Batch{}
	if l.negatives != nil {
		b.PerEdge = l.negatives.PerEdge()
	}
	var seeds []int32
	if l.w.Rank() == 0 {
		e := l.split.Train.Edges
		made, err := l.pairsOf(&stepEdges{epoch: epoch, all: e}, nil, 0, e.Len())
		if err != nil {
			l.w.Fail(err)
		}
		b = made
	}
	b.Batch, b.Src, b.Dst, b.graph, b.whole = l.w.FullGraphOf(seeds), b.Pairs.Src, b.Pairs.Dst, l.split.Message, true
	return b
}

// Verify returns an error that names a leak in a batch: an edge of validation or test among its
// messages, or an edge that it predicts, or the reverse of one. A whole graph of a split that is not
// disjoint contains the edges that it predicts, so there Verify checks validation and test alone.
// With AsOf, earlier edges of the pairs that are predicted are messages too, and Loader.ProveTime is what checks a batch; here
// Verify checks nothing.
// Cost: a search for each edge of the batch.
func (l *Loader) Verify(b *Batch) error {
	if l.times != nil {
		return nil
	}
	sets := map[string]*sample.EdgeSet{"an edge of validation or test": l.held[0]}
	if len(l.held) > 1 {
		sets["the reverse of an edge of validation or test"] = l.held[1]
	}
	if !b.whole || l.split.Message != l.split.Training {
		sets["an edge that the batch predicts, or the reverse of one"] = l.split.Excluded(b.Edges)
	}
	return pairs.Leak(b.Blocks, sets)
}
