package pairs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// The sites of the counters of package pairs: each use of random numbers has its own.
const (
	siteSplit = iota
	siteDirection
	siteTrain
	siteVal
	siteTest
)

// Part is the edges of one part of a split: those to predict, and the negatives to rank them
// against.
type Part struct {
	Edges
	// Reverses are the other directions of pairs of validation and test, where the graph has both and the split is not
	// undirected. They are held out, and not predicted.
	Reverses Edges
	// Neg are the negatives, equally many for each edge: those of edge i are the i-th group. It is
	// empty for training edges, whose negatives are drawn anew in each step.
	Neg Edges
}

// Split divides the edges of a graph. An edge, all its copies and its reverse, if the graph has it,
// are in one part. Self-loops are messages, and never predicted.
type Split struct {
	// Message is the graph that a network may see.
	Message *graphops.Graph
	// Training has all edges but those of Val and Test: Message and, if the split is disjoint, Train.
	Training *graphops.Graph
	// All is the graph that was split. Negatives of Val and Test are none of its edges.
	All *graphops.Graph
	// Train, Val and Test are the edges to predict. A pair with edges in both directions is there once, in
	// a random direction, unless both were given.
	Train, Val, Test Part
	// Undirected says that every edge (of the relation) has its reverse.
	Undirected bool
	// Pairs is the number of pairs of nodes with an edge (of the relation), and Both that of those with an
	// edge in both directions.
	Pairs, Both int
	// Later is the number of edges that are left out of Training only because they are not earlier than
	// the validation of a split by time: edges of other relations, and self-loops.
	Later int64
	// Unused is the number of edges that are neither messages nor predicted, because their reverse is an
	// edge that was given for validation or the test.
	Unused int
	// Divided is set if the graph is divided among ranks: Message, Training and All then have the in-edges of this rank's
	// nodes alone, Train has no edges, and Divided has them.
	Divided *Divided
	// Relation is what is predicted of a graph with types, nil if all edges are. Edges of other relations
	// are in Message and Training, except for the reverses of edges that are not.
	Relation *Relation

	cut *timeCut // of a split by time
}

// Check returns an error for a split that [Random] and its likes do not make: without graphs, with graphs of different
// nodes, or with an edge or a negative of a node that they do not have. Cost: O(edges to predict).
func (s *Split) Check() error {
	for name, g := range map[string]*graphops.Graph{"Message": s.Message, "Training": s.Training, "All": s.All} {
		switch {
		case hasNodes(g) != nil:
			return fmt.Errorf("pairs: %s of a split has no graph; make splits by Random, ByTime or Given", name)
		case s.All != nil && g.NumNodes() != s.All.NumNodes():
			return fmt.Errorf("pairs: the graph %s of a split has %d nodes and the graph All %d; make splits by Random, ByTime or Given", name, g.NumNodes(), s.All.NumNodes())
		}
	}
	for name, p := range map[string]Part{"Train": s.Train, "Val": s.Val, "Test": s.Test} {
		if err := cmp.Or(p.check("the edges "+name, s.All.NumNodes()), p.Neg.check("the negatives of "+name, s.All.NumNodes())); err != nil {
			return err
		}
		if n := p.Neg.Len(); n > 0 && (p.Len() == 0 || n%p.Len() != 0) {
			return fmt.Errorf("pairs: a split has %d edges %s and %d negatives of them; give equally many for each edge", p.Len(), name, n)
		}
	}
	if s.Predicted() == 0 {
		return errors.New("pairs: a split has no training edges to predict; set Train")
	}
	return nil
}

// Cut returns the times from which validation and the test begin, of a split by time.
func (s *Split) Cut() (val, test int64, ok bool) {
	if s.cut == nil {
		return 0, 0, false
	}
	return s.cut.val, s.cut.test, true
}

// TimesOf returns the time of each of some edges of All: that of the latest edge of the pair, in either direction, by which
// [ByTime] splits. It returns an error if the edges of All have no times, or for an edge that is none of them.
func (s *Split) TimesOf(e Edges) ([]int64, error) {
	if s.All.EdgeTimes == nil {
		return nil, noTimes()
	}
	g := s.All
	if s.Relation != nil {
		g = s.Relation.with(g, g.EdgeTimes)
	}
	times := make([]int64, e.Len())
	for i, u := range e.Src {
		v := e.Dst[i]
		if !hasEdge(g, u, v) && !hasEdge(g, v, u) {
			return nil, fmt.Errorf("pairs: the graph has no edge between %d and %d, so there is no time of it", u, v)
		}
		times[i] = timeOf(g, g.EdgeTimes, pair{u, v})
	}
	return times, nil
}

// Predicted is the number of edges to predict in training, of all ranks.
func (s *Split) Predicted() int {
	if s.Divided != nil {
		return s.Divided.total
	}
	return s.Train.Len()
}

// SplitOptions configure a split. The zero value takes 5 % of the edges for validation and 10 % for
// the test, from a directed graph.
type SplitOptions struct {
	// Val and Test are the fractions of the edges; 0 means 0.05 and 0.1, a negative number none.
	// [ByTime] and [Given] ignore them.
	Val, Test float64
	// Disjoint is the fraction of the training edges that are predicted and are no messages. 0 means
	// that all training edges are both; a loader then takes a batch's edges out of its messages.
	Disjoint float64
	// Undirected says that the graph has the reverse of each edge: if it has not, the split is an error. It
	// changes nothing else, because an edge and its reverse are always together, and is not used with a
	// Relation: see [Split.Undirected].
	Undirected bool
	// Relation is the relation of a graph with types that is predicted, and Reverse one that has its edges in
	// the other direction; see [FindRelation]. "" means all edges, whatever their types, and no further
	// reverse.
	Relation string `json:",omitempty"`
	Reverse  string `json:",omitempty"`
	// Negatives is the number of negatives for each edge of Val and Test; 0 means 1. They are drawn
	// uniformly from the pairs of nodes without an edge (KeepSource: with the edge's source).
	Negatives  int
	KeepSource bool
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
}

// pair is two nodes with an edge: a → b, with the smaller node first if both directions are edges.
type pair struct{ a, b int32 }

// Random splits the edges at random: of the P pairs of nodes with an edge, in one direction or both,
// ⌊Val·P⌋ are for validation and ⌊Test·P⌋ for the test.
//
// It returns an error if a fraction is not in [0, 1), or if a part that was asked for gets no edge.
// Cost: a search for each edge, and 8 bytes per pair.
func Random(g *graphops.Graph, o SplitOptions) (*Split, error) {
	val, test, err := o.fractions()
	if err != nil {
		return nil, err
	}
	f, err := o.find(g, nil)
	if err != nil {
		return nil, err
	}
	p := len(f.pairs)
	nVal, nTest, err := o.sizes(val, test, p)
	if err != nil {
		return nil, err
	}
	order := shuffled(o.Seed, 0, p)
	part := func(lo, hi int) []pair {
		out := make([]pair, 0, hi-lo)
		for _, i := range order[lo:hi] {
			out = append(out, f.pairs[i])
		}
		return out
	}
	return f.build(g, part(nVal+nTest, p), f.part(part(0, nVal)), f.part(part(nVal, nVal+nTest)), nil)
}

// fractions returns the fractions of the edges for validation and the test.
func (o SplitOptions) fractions() (val, test float64, err error) {
	if val, err = fraction("Val", o.Val, 0.05); err != nil {
		return 0, 0, err
	}
	if test, err = fraction("Test", o.Test, 0.1); err != nil {
		return 0, 0, err
	}
	if val+test >= 1 {
		return 0, 0, fmt.Errorf("pairs: Val is %v and Test %v of the edges, which leaves none to train on; their sum must be below 1", val, test)
	}
	return val, test, nil
}

// sizes returns the sizes of validation and test of p pairs.
func (o SplitOptions) sizes(val, test float64, p int) (nVal, nTest int, err error) {
	nVal, nTest = int(val*float64(p)), int(test*float64(p))
	switch {
	case p == 0 && val+test > 0:
		return 0, 0, errors.New("pairs: the graph has no edges to predict; edges of weight 0 do not count")
	case val > 0 && nVal == 0:
		return 0, 0, fmt.Errorf("pairs: %v of %s leaves no edge for validation; take a larger Val, or a negative one for none", val, count(p, "pair"))
	case test > 0 && nTest == 0:
		return 0, 0, fmt.Errorf("pairs: %v of %s leaves no edge for the test; take a larger Test, or a negative one for none", test, count(p, "pair"))
	}
	return nVal, nTest, nil
}

// shuffled returns the numbers below n in a random order. Pairs are in the graph's order, so what is taken of them is drawn.
func shuffled(seed uint64, step, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	philox.Permute(seed, step, philox.C3(philox.Links, siteSplit, 0), order)
	return order
}

// ByTime splits the edges by their times [edges], by CSC position; nil means the graph's EdgeTimes. An
// edge before val is for training, one from val on and before test for validation, and a later one for
// the test. The time of a pair with edges in both directions, or of an edge with several copies, is the
// latest of its edges. Nothing from val on is a message: edges of other relations and self-loops of that
// time are left out too, and [Split.Later] counts them.
//
// It returns an error if there are no times, or if a part gets no edge. Cost: O(nodes + edges·log
// degree), and 8 bytes per pair.
func ByTime(g *graphops.Graph, times []int64, val, test int64, o SplitOptions) (*Split, error) {
	if err := hasNodes(g); err != nil {
		return nil, err
	}
	if times == nil {
		times = g.EdgeTimes
	}
	switch {
	case times == nil && g.NumEdges() > 0:
		return nil, noTimes()
	case int64(len(times)) != g.NumEdges():
		return nil, fmt.Errorf("pairs: there are %d times but the graph has %d edges; give one for each, by CSC position", len(times), g.NumEdges())
	}
	if err := checkTimes(val, test); err != nil {
		return nil, err
	}
	f, err := o.find(g, times)
	if err != nil {
		return nil, err
	}
	var parts [3][]pair
	for _, p := range f.pairs {
		at := partByTime(timeOf(f.of, f.times, p), val, test)
		parts[at] = append(parts[at], p)
	}
	for i, part := range parts {
		if len(part) == 0 {
			return nil, noEdgeAt(i, val, test)
		}
	}
	return f.build(g, parts[0], f.part(parts[1]), f.part(parts[2]), &timeCut{times, val, test})
}

// timeCut is how a split by time divides the edges of a graph, by the times of its edges.
type timeCut struct {
	times     []int64
	val, test int64
}

// earlier returns the edges of g that are earlier than validation; all without a cut.
func (c *timeCut) earlier(g *graphops.Graph) *graphops.Graph {
	if c == nil {
		return g
	}
	return c.before(g, c.val)
}

// before returns the edges of g that are earlier than t, g itself if all are.
func (c *timeCut) before(g *graphops.Graph, t int64) *graphops.Graph {
	if !slices.ContainsFunc(c.times, func(x int64) bool { return x >= t }) {
		return g
	}
	all := g.EdgeData()
	var kept graphops.EdgeData
	kept.SetLen(all.Shape(), 0)
	n := &graphops.Graph{Indptr: make([]int64, g.NumNodes()+1), Indices: []int32{}}
	for v := range g.NumNodes() {
		lo := g.Indptr[v]
		for lo < g.Indptr[v+1] { // the rows' runs of earlier edges
			hi := lo
			for hi < g.Indptr[v+1] && c.times[hi] < t {
				hi++
			}
			if hi > lo {
				n.Indices = append(n.Indices, g.Indices[lo:hi]...)
				kept.Append(all.Slice(lo, hi))
			}
			lo = hi + 1
		}
		n.Indptr[v+1] = int64(len(n.Indices))
	}
	n = n.WithEdges(kept)
	n.Schema = g.Schema
	return n
}

// later counts the edges that are not earlier than validation and in none of the sets of held-out edges.
func (c *timeCut) later(g *graphops.Graph, held []*sample.EdgeSet) (n int64) {
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if c.times[e] >= c.val && !slices.ContainsFunc(held, func(s *sample.EdgeSet) bool {
				if g.EdgeTypes == nil {
					return s.Has(g.Indices[e], v)
				}
				return s.HasOf(g.Indices[e], v, g.EdgeTypes[e])
			}) {
				n++
			}
		}
	}
	return n
}

func checkTimes(val, test int64) error {
	if val > test {
		return fmt.Errorf("pairs: validation begins at time %d and the test at %d; the test must not begin earlier", val, test)
	}
	return nil
}

// partByTime is the part of an edge of time t: 0 for training, 1 for validation, 2 for the test.
func partByTime(t, val, test int64) int {
	switch {
	case t >= test:
		return 2
	case t >= val:
		return 1
	}
	return 0
}

func noEdgeAt(part int, val, test int64) error {
	return fmt.Errorf("pairs: with validation from time %d and the test from time %d on, no edge is left for %s; choose other times", val, test, partNames[part])
}

// latest returns the latest time of the copies of an edge.
func latest(g *graphops.Graph, times []int64, src, dst int32) int64 {
	row := g.InNeighbors(dst)
	i, _ := slices.BinarySearch(row, src)
	t := int64(math.MinInt64)
	for ; i < len(row) && row[i] == src; i++ {
		t = max(t, times[g.Indptr[dst]+int64(i)])
	}
	return t
}

// Given makes a split of the given validation and test edges of a graph; all other edges are for
// training, except for the reverses of given ones, which [Split.Unused] counts. The graph may lack the given
// edges, as those of OGB's datasets do.
//
// It returns an error for an edge between nodes that the graph does not have, for one that is both
// in val and in test, and if no edge is left for training.
func Given(g *graphops.Graph, val, test Edges, o SplitOptions) (*Split, error) {
	if err := hasNodes(g); err != nil {
		return nil, err
	}
	f, err := o.find(g, nil)
	if err != nil {
		return nil, err
	}
	where, parts, err := given(g.NumNodes(), val, test, f.o)
	if err != nil {
		return nil, err
	}
	if f.r != nil {
		if err := f.r.Check(val.Join(test)); err != nil {
			return nil, err
		}
	}
	unused := 0
	for _, p := range f.pairs {
		switch is, back := where[p], where[pair{p.b, p.a}]; {
		case is == 0 && back == 0:
			parts[0] = append(parts[0], p)
		case f.o.Undirected || is != 0 && back != 0:
		case is == 0 || f.both(p):
			unused++
		}
	}
	s, err := f.build(g, parts[0], f.given(parts[1]), f.given(parts[2]), nil)
	if err == nil {
		s.Unused = unused
	}
	return s, err
}

// given returns the parts of given pairs, 1 and 2, and the pairs of these parts.
func given(nodes int, val, test Edges, o SplitOptions) (where map[pair]int, parts [3][]pair, err error) {
	if err := cmp.Or(val.check("the validation edges", nodes), test.check("the test edges", nodes)); err != nil {
		return nil, parts, err
	}
	where = map[pair]int{}
	for i, e := range []Edges{val, test} {
		for k := range e.Src {
			p := pairOf(e.Src[k], e.Dst[k], o.Undirected)
			if e.Src[k] == e.Dst[k] {
				return nil, parts, fmt.Errorf("pairs: a given edge is the self-loop %d → %d; self-loops are not predicted", e.Src[k], e.Dst[k])
			}
			switch before, ok := where[p]; {
			case ok && before != i+1:
				return nil, parts, fmt.Errorf("pairs: edge %d → %d is given for validation and for the test; give it once", e.Src[k], e.Dst[k])
			case !ok:
				where[p] = i + 1
				parts[i+1] = append(parts[i+1], p)
			}
		}
	}
	return where, parts, nil
}

// predicted returns whether a split is disjoint, and how many of the training edges are to predict. sizes are the numbers of
// pairs in the graph for training, validation and the test.
func (o SplitOptions) predicted(sizes [3]int) (disjoint bool, n int, err error) {
	fraction, err := fraction("Disjoint", o.Disjoint, 0)
	switch {
	case err != nil:
		return false, 0, err
	case sizes[0] == 0:
		return false, 0, fmt.Errorf("pairs: of %s none is left to train on; take a larger graph or smaller parts", count(sizes[0]+sizes[1]+sizes[2], "pair"))
	case o.Negatives < 0 || o.Negatives > maxPerEdge:
		return false, 0, fmt.Errorf("pairs: Negatives is %d; it is the number of negatives for each edge, 1 to %d (0 means 1)", o.Negatives, maxPerEdge)
	case fraction == 0:
		return false, sizes[0], nil
	}
	if n = int(fraction * float64(sizes[0])); n == 0 {
		return false, 0, fmt.Errorf("pairs: Disjoint is %v of %s, which leaves no edge to predict; take a larger fraction", fraction, count(sizes[0], "pair"))
	}
	return true, n, nil
}

// found has the pairs of a graph, from which splits are made.
type found struct {
	o     SplitOptions // Undirected is whether all edges have their reverse
	r     *Relation
	of    *graphops.Graph // the edges that are predicted
	times []int64         // of them, nil for none
	pairs []pair
}

// find finds the pairs of a graph. times are those of the graph's edges, nil for none.
func (o SplitOptions) find(g *graphops.Graph, times []int64) (f found, err error) {
	if err := hasNodes(g); err != nil {
		return f, err
	}
	f = found{of: g, times: times}
	switch {
	case o.Relation == "" && o.Reverse != "":
		return f, errors.New("pairs: there is a reverse relation, but no relation to predict; give both")
	case o.Relation != "":
		if f.r, err = FindRelation(g, o.Relation, o.Reverse); err != nil {
			return f, err
		}
		f.of = f.r.with(g, times)
		f.times = f.of.EdgeTimes
	}
	symmetric := (f.r == nil || f.r.Src == f.r.Dst) && f.of.Symmetric()
	if o.Undirected && !symmetric && f.r == nil {
		return f, noReverse()
	}
	o.Undirected = symmetric
	f.o, f.pairs = o, pairsIn(f.of, f.back())
	if len(f.pairs) > math.MaxInt32 {
		return f, tooManyPairs(int64(len(f.pairs)))
	}
	return f, nil
}

// back returns a function that reports whether the reverse of the edge u → v is there.
func (f found) back() func(u, v int32) bool {
	if f.o.Undirected {
		return always
	}
	return func(u, v int32) bool { return hasEdge(f.of, v, u) }
}

func always(int32, int32) bool { return true }

// hasEdge reports whether u → v is an edge.
func hasEdge(g *graphops.Graph, u, v int32) bool {
	_, ok := slices.BinarySearch(g.InNeighbors(v), u)
	return ok
}

// both reports whether both directions of a pair are edges.
func (f found) both(p pair) bool { return p.a < p.b && f.back()(p.a, p.b) }

// part returns the edges to predict of pairs, and the other directions.
func (f found) part(pairs []pair) Part {
	return partOf(pairs, f.o, func(k int) bool { return f.both(pairs[k]) })
}

// given returns the edges to predict of given pairs, which have the direction in which they were given.
func (f found) given(pairs []pair) Part { return partOf(pairs, f.o, func(int) bool { return false }) }

// partOf is a part of the given pairs; both reports whether pair k has both directions.
func partOf(pairs []pair, o SplitOptions, both func(k int) bool) (p Part) {
	p.Edges = directed(pairs, o, both)
	for k := range pairs {
		if !o.Undirected && both(k) {
			p.Reverses = p.Reverses.Append(p.Dst[k], p.Src[k])
		}
	}
	return p
}

// build makes the split of training pairs, and the edges of validation and test; cut is that of a split by time.
func (f found) build(g *graphops.Graph, train []pair, val, test Part, cut *timeCut) (*Split, error) {
	o := f.o
	disjoint, n, err := o.predicted([3]int{len(train), val.Len(), test.Len()})
	if err != nil {
		return nil, err
	}
	s := &Split{All: g, Undirected: o.Undirected, Relation: f.r, Pairs: len(f.pairs), cut: cut}
	for _, p := range f.pairs {
		if f.both(p) {
			s.Both++
		}
	}
	supervised := train
	if disjoint {
		order := shuffled(o.Seed, 1, len(train))
		supervised = make([]pair, n)
		for i := range supervised {
			supervised[i] = train[order[i]]
		}
	}
	s.Train.Edges, s.Val, s.Test = f.part(supervised).Edges, val, test
	if cut != nil {
		s.Later = cut.later(g, s.HeldOut())
	}
	if s.Training, err = s.without(cut.earlier(g), s.Val.Edges.Join(s.Test.Edges)); err != nil {
		return nil, err
	}
	s.Message = s.Training
	if disjoint {
		if s.Message, err = s.without(s.Training, s.Train.Edges); err != nil {
			return nil, err
		}
	}
	return s, s.drawNegatives(o)
}

// drawNegatives draws the negatives of Val and Test.
func (s *Split) drawNegatives(o SplitOptions) error {
	if s.Val.Len()+s.Test.Len() == 0 {
		return nil
	}
	known, err := s.Known()
	if err != nil {
		return err
	}
	n, err := s.negatives(known, NegativeOptions{PerEdge: o.Negatives, Strict: true, BothEnds: !o.KeepSource, Undirected: o.Undirected, Seed: o.Seed, Relation: s.Relation})
	if err != nil {
		return ofSplit(err, o)
	}
	draw := func(site int, of Edges) (Edges, error) { return n.at(site).Draw(0, 0, nil, of) }
	if d := s.Divided; d != nil {
		draw = func(site int, of Edges) (Edges, error) {
			return n.at(site).DrawDivided(d.peers.Exchange, 0, 0, nil, of)
		}
	}
	if s.Val.Neg, err = draw(siteVal, s.Val.Edges); err != nil {
		return ofSplit(err, o)
	}
	s.Test.Neg, err = draw(siteTest, s.Test.Edges)
	return ofSplit(err, o)
}

// Negatives returns a source of negatives for the training edges; see [NewNegatives] and, if the split is divided,
// [NewDividedNegatives]. Collective then.
func (s *Split) Negatives(o NegativeOptions) (*Negatives, error) { return s.negatives(s.Training, o) }

// negatives returns a source of negatives for a graph of known edges, which is divided if the split is.
func (s *Split) negatives(known *graphops.Graph, o NegativeOptions) (*Negatives, error) {
	if d := s.Divided; d != nil {
		return NewDividedNegatives(d.peers, known, o)
	}
	return NewNegatives(known, o)
}

// ofSplit replaces the way out of an error of drawing negatives, because a split has other options.
func ofSplit(err error, o SplitOptions) error {
	var none *noNegatives
	switch {
	case !errors.As(err, &none):
		return err
	case o.KeepSource:
		return fmt.Errorf("pairs: negatives for validation and the test: %s; leave KeepSource out, or take a graph with fewer edges", none.what)
	}
	return fmt.Errorf("pairs: negatives for validation and the test: %s; take a graph with fewer edges", none.what)
}

// Known returns the graph of all known edges that are of the predicted kind (see [Split.OfRelation]): those of
// All, and those of Val and Test that All lacks.
func (s *Split) Known() (*graphops.Graph, error) {
	return s.with(s.OfRelation(s.All), s.Val.Edges.Join(s.Test.Edges))
}

// with returns g if it has the given edges, otherwise a graph of its edges and these.
func (s *Split) with(g *graphops.Graph, held Edges) (*graphops.Graph, error) {
	extra := Edges{}
	add := func(u, v int32) {
		if s.Divided != nil && !s.Divided.peers.owns(v) {
			return
		}
		if _, ok := slices.BinarySearch(g.InNeighbors(v), u); !ok {
			extra = extra.Append(u, v)
		}
	}
	for i, u := range held.Src {
		add(u, held.Dst[i])
		if s.Divided != nil && s.Undirected { // the reverse can be of another rank
			add(held.Dst[i], u)
		}
	}
	if extra.Len() == 0 {
		return g, nil
	}
	all := extra
	for v := range int32(g.NumNodes()) {
		for _, u := range g.InNeighbors(v) {
			all = all.Append(u, v)
		}
	}
	return graphops.FromEdges(g.NumNodes(), all.Src, all.Dst, graphops.BuildOptions{Undirected: s.Undirected})
}

// WithVal returns the graph of the edges that are known when the test begins: all but those of Test. It
// holds the training edges of a disjoint split too. A network that is measured on the test may see it
// instead of Message, as with the RandomLinkSplit of PyG.
//
// It returns an error if All lacks edges of Val that were given and its edges have weights, features,
// times or types, because the given edges have none. Cost: O(nodes + edges).
func (s *Split) WithVal() (*graphops.Graph, error) {
	of := s.OfRelation(s.All)
	known, err := s.with(of, s.Val.Edges)
	if err != nil {
		return nil, err
	}
	if known == of { // All has the edges of Val
		if s.cut != nil {
			return s.without(s.cut.before(s.All, s.cut.test), s.Test.Edges)
		}
		return s.without(s.All, s.Test.Edges)
	}
	if g := s.All; g.EdgeWeights != nil || g.EdgeFeatures != nil || g.EdgeTimes != nil || g.EdgeTypes != nil {
		return nil, errors.New("pairs: the validation edges cannot be messages: the graph lacks some of them, and its edges have weights, features, times or types that these would need; split a graph that has all edges")
	}
	return s.without(known, s.Test.Edges)
}

// without returns a graph without the given edges and their reverses, of the predicted kind and of the relation's reverses.
func (s *Split) without(g *graphops.Graph, e Edges) (*graphops.Graph, error) {
	if r := s.Relation; r != nil {
		if e.Len() == 0 {
			return g, nil
		}
		all, types := r.typed(e)
		gone, err := graphops.FromEdgesWith(g.NumNodes(), all.Src, all.Dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
		if err != nil {
			return nil, err
		}
		if gone, err = gone.WithTypes(g.Schema, gone.EdgeTypes); err != nil {
			return nil, err
		}
		return g.Without(gone, 0)
	}
	gone, err := graphops.FromEdges(g.NumNodes(), e.Src, e.Dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		return nil, err
	}
	return g.Without(gone, 0)
}

// HeldOut returns the edges of validation and test with their reverses, of the predicted kind and of the relation's
// reverses: the edges that no message may be.
func (s *Split) HeldOut() []*sample.EdgeSet {
	e, r := s.Val.Edges.Join(s.Test.Edges), s.Relation
	if r == nil {
		return []*sample.EdgeSet{sample.NewEdgeSet(e.Src, e.Dst, true)}
	}
	return []*sample.EdgeSet{
		sample.NewEdgeSet(e.Src, e.Dst, r.Src == r.Dst).OfRelations(r.Number),
		sample.NewEdgeSet(e.Dst, e.Src, r.Src == r.Dst).OfRelations(r.Reverses...),
	}
}

// Excluded returns the edges that a step that predicts e takes out of its messages: e and their reverses,
// of the predicted kind and, with a relation, of its reverses.
func (s *Split) Excluded(e Edges) *sample.EdgeSet {
	set := sample.NewEdgeSet(e.Src, e.Dst, true)
	if r := s.Relation; r != nil {
		return set.OfRelations(append([]int{r.Number}, r.Reverses...)...)
	}
	return set
}

// messages is the number of edges of the message graph, of all ranks.
func (s *Split) messages() int64 {
	if d := s.Divided; d != nil {
		return d.first[len(d.first)-1]
	}
	return s.Message.NumEdges()
}

func (s *Split) String() string {
	return fmt.Sprintf("%d edges as messages; to predict: %d for training, %d for validation, %d for the test", s.messages(), s.Predicted(), s.Val.Len(), s.Test.Len())
}

// Notes are sentences about what the split found in the graph, and what it left out.
func (s *Split) Notes() (notes []string) {
	switch {
	case s.Pairs == 0:
	case s.Undirected:
		notes = append(notes, fmt.Sprintf("every edge has its reverse; %s are split, and predicted in one direction each", count(s.Pairs, "pair")))
	case s.Both > 0:
		notes = append(notes, fmt.Sprintf("%d of %s are edges in both directions (%.4g %%), which stay together and are predicted in one of them", s.Both, count(s.Pairs, "pair"), 100*float64(s.Both)/float64(s.Pairs)))
	default:
		notes = append(notes, fmt.Sprintf("no edge has its reverse; %s are split and predicted", count(s.Pairs, "edge")))
	}
	if s.Later > 0 {
		notes = append(notes, fmt.Sprintf("%s of other relations, or from a node to itself, are not earlier than the validation, and are no messages", count(int(s.Later), "edge")))
	}
	if s.Unused > 0 {
		notes = append(notes, fmt.Sprintf("%s are neither messages nor predicted, because their reverses are given for validation or the test", count(s.Unused, "edge")))
	}
	if s.Relation != nil {
		notes = append(notes, s.Relation.notes()...)
	}
	return notes
}

// hasNodes returns an error for a graph that is nil or empty.
func hasNodes(g *graphops.Graph) error {
	if g == nil || len(g.Indptr) == 0 {
		return errors.New("pairs: the graph is missing")
	}
	return nil
}

func noReverse() error {
	return errors.New("pairs: the split is undirected, but an edge of the graph has no reverse; make the graph undirected (gnb data convert --undirected), or split it as a directed graph")
}

func tooManyPairs(n int64) error {
	return fmt.Errorf("pairs: the graph has %d edges to predict, but a split numbers at most %d", n, math.MaxInt32)
}

// pairsIn returns the pairs of a graph in CSC order, without self-loops: those with both directions where their smaller
// node is the source. back reports whether the reverse of u → v is there, for u > v.
func pairsIn(g *graphops.Graph, back func(u, v int32) bool) (pairs []pair) {
	for v := range int32(g.NumNodes()) {
		row := g.InNeighbors(v)
		for i, u := range row {
			if u == v || i > 0 && row[i-1] == u || u > v && back(u, v) {
				continue
			}
			pairs = append(pairs, pair{u, v})
		}
	}
	return pairs
}

func pairOf(u, v int32, undirected bool) pair {
	if undirected && u > v {
		return pair{v, u}
	}
	return pair{u, v}
}

// directed gives pairs a direction: their own, or a random one if both(k) or the split is undirected.
func directed(pairs []pair, o SplitOptions, both func(k int) bool) Edges {
	e := Edges{make([]int32, len(pairs)), make([]int32, len(pairs))}
	c3 := philox.C3(philox.Links, siteDirection, 0)
	for i, p := range pairs {
		if (o.Undirected || both(i)) && philox.Block(o.Seed, [4]uint32{uint32(p.a), 0, uint32(p.b), c3})[0]&1 == 1 {
			p = pair{p.b, p.a}
		}
		e.Src[i], e.Dst[i] = p.a, p.b
	}
	return e
}

// fraction returns a fraction of the edges: the default for 0, and 0 for a negative number.
func fraction(name string, x, def float64) (float64, error) {
	switch {
	case x == 0:
		return def, nil
	case x < 0:
		return 0, nil
	case !(x < 1):
		return 0, fmt.Errorf("pairs: %s is %v; it is a fraction of the edges, below 1", name, x)
	}
	return x, nil
}

// count is a number of things in words.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// TimesFor returns the times for [ByTime] that leave the fractions val and test of the pairs of nodes with
// an edge for validation and the test: those with the latest times. Edges of one time stay
// together, so a part can be larger than its fraction. The fractions are as in [SplitOptions], but
// each part needs one. Cost: a sort of the edges' times.
func TimesFor(g *graphops.Graph, o SplitOptions) (val, test int64, err error) {
	valShare, err := fraction("Val", o.Val, 0.05)
	if err != nil {
		return 0, 0, err
	}
	testShare, err := fraction("Test", o.Test, 0.1)
	if err != nil {
		return 0, 0, err
	}
	if err := hasNodes(g); err != nil {
		return 0, 0, err
	}
	if g.EdgeTimes == nil && g.NumEdges() > 0 {
		return 0, 0, noTimes()
	}
	f, err := o.find(g, g.EdgeTimes)
	if err != nil {
		return 0, 0, err
	}
	p := len(f.pairs)
	nVal, nTest := int(valShare*float64(p)), int(testShare*float64(p))
	if nVal == 0 || nTest == 0 || nVal+nTest >= p {
		return 0, 0, fmt.Errorf("pairs: %v and %v of %s leave a part of a split by time without edges; take other fractions, or give the times", valShare, testShare, count(p, "pair"))
	}
	times := make([]int64, p)
	for i, e := range f.pairs {
		times[i] = timeOf(f.of, f.times, e)
	}
	slices.Sort(times)
	val, test = times[p-nVal-nTest], times[p-nTest]
	if val == test || times[0] == val {
		return 0, 0, fmt.Errorf("pairs: too many edges have the time %d to leave %v and %v of %s for validation and the test; give the times", val, valShare, testShare, count(p, "pair"))
	}
	return val, test, nil
}

func noTimes() error {
	return errors.New("pairs: the edges of the graph have no times; give them, or convert the dataset with --edge-times")
}

// timeOf is the latest time of the edges of a pair.
func timeOf(g *graphops.Graph, times []int64, p pair) int64 {
	return max(latest(g, times, p.a, p.b), latest(g, times, p.b, p.a))
}
