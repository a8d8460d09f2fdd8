package pairs

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// Distribution is how the nodes of negative edges are drawn.
type Distribution int

// The distributions.
const (
	// Uniform draws each node with the same probability.
	Uniform Distribution = iota
	// ByDegree draws a node in proportion to its in-degree: nodes as often as they occur in edges.
	ByDegree
	// ByDegree75 draws a node in proportion to its in-degree to the power 0.75 (T. Mikolov et al.,
	// "Distributed representations of words and phrases and their compositionality", NeurIPS 2013).
	ByDegree75
	// InBatch takes the destinations of other edges of the batch, so that no further node is
	// computed. An edge that no other edge can serve gets a uniform negative.
	InBatch
)

func (d Distribution) String() string {
	if d < Uniform || d > InBatch {
		return fmt.Sprintf("distribution %d", int(d))
	}
	return [...]string{"uniform", "degree", "degree75", "in-batch"}[d]
}

// ParseDistribution returns the distribution of a name: uniform, degree, degree75 or in-batch; ""
// is uniform.
func ParseDistribution(name string) (Distribution, error) {
	if name == "" {
		return Uniform, nil
	}
	for d := Uniform; d <= InBatch; d++ {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("pairs: there are no negatives %q; choose uniform, degree, degree75 or in-batch", name)
}

// NegativeOptions configure negative edges. The zero value draws one destination, uniformly from
// all nodes but the source, for each edge.
type NegativeOptions struct {
	From Distribution
	// PerEdge is the number of negatives for each edge; 0 means 1.
	PerEdge int
	// Strict draws no known edge. Otherwise a negative may be one by chance.
	Strict bool
	// BothEnds draws both ends of a negative; otherwise it has the source of its edge.
	BothEnds bool
	// Undirected says that the graph of known edges has both directions of each, which saves their
	// reversal.
	Undirected bool
	// Relation draws negatives of one relation of a graph with types: sources and destinations of the
	// relation's types, its edges as the known ones, and degrees in them (those of sources by the edges from
	// them, if they have another type than destinations). nil means all nodes and edges. It is
	// not a part of programs' arguments: loaders set it to that of their split.
	Relation *Relation `json:"-"`
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
}

// Negatives draws negative edges. It is read-only and safe for concurrent use.
type Negatives struct {
	o     NegativeOptions
	site  int
	nodes int
	// srcLo, srcHi, dstLo and dstHi bound the ids of sources and destinations.
	srcLo, srcHi, dstLo, dstHi int32

	peers *Peers // of a divided graph, else nil; then barred has the rows of this rank's nodes
	// barred has, as the row of a source, the destinations that its negatives cannot have,
	// ascending: itself and, if strict, those of its known edges.
	barred *graphops.Graph
	// below[v] is the weight of the nodes before v; nil means 1 for each node.
	below []uint64
	// free[u] is, for negatives of both ends, the weight of the sources before u: the number of
	// destinations that they can have if nodes are drawn uniformly, so that all pairs are equally
	// likely.
	free []uint64
}

// maxPerEdge is the largest number of negatives of an edge: a negative takes up to four of the
// 2^18 draws of a counter.
const maxPerEdge = philox.MaxDraws / 4

// NewNegatives returns a source of negatives for a graph of known edges. Degrees are those of that
// graph.
//
// It returns an error if there can be no negative at all, as in a complete graph. Cost: O(nodes +
// edges) time and memory.
func NewNegatives(known *graphops.Graph, o NegativeOptions) (*Negatives, error) {
	if known == nil || known.NumNodes() == 0 {
		return nil, errors.New("pairs: negatives need a graph with nodes")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	n := &Negatives{o: o, site: siteTrain, nodes: known.NumNodes()}
	n.o.PerEdge = max(1, o.PerEdge)
	n.srcHi, n.dstHi = int32(n.nodes), int32(n.nodes)
	if r := o.Relation; r != nil {
		if known.EdgeTypes != nil {
			known = r.Of(known)
		}
		n.srcLo, n.srcHi, n.dstLo, n.dstHi = r.SrcLo, r.SrcHi, r.DstLo, r.DstHi
	}
	of := known
	if o.Strict && !o.Undirected {
		of = known.Reverse(0)
	}
	if n.needsDegrees() {
		n.weigh(known.InDegree)
	}
	n.bar(of)
	weight := n.sourceWeight
	if n.needsDegrees() && o.BothEnds && !n.oneType() {
		out := known.Reverse(0)
		weight = func(u int32) uint64 {
			if n.room(u) == 0 {
				return 0
			}
			return degreeWeight(out.InDegree(u), o.From)
		}
	}
	weights := make([]uint64, n.nodes)
	for u := n.srcLo; u < n.srcHi; u++ {
		weights[u] = weight(u)
	}
	return n, n.sources(weights)
}

// check returns an error for options that no negatives have.
func (o NegativeOptions) check() error {
	switch {
	case o.PerEdge < 0 || o.PerEdge > maxPerEdge:
		return fmt.Errorf("pairs: PerEdge is %d; an edge has 1 to %d negatives (0 means 1)", o.PerEdge, maxPerEdge)
	case o.From < Uniform || o.From > InBatch:
		return fmt.Errorf("pairs: there is no %v of negatives; use Uniform, ByDegree, ByDegree75 or InBatch", o.From)
	case o.From == InBatch && o.BothEnds:
		return errors.New("pairs: negatives from the batch keep the source of their edge; leave BothEnds out, or draw them from all nodes")
	}
	return nil
}

// needsDegrees reports whether nodes are drawn by degree.
func (n *Negatives) needsDegrees() bool { return n.o.From == ByDegree || n.o.From == ByDegree75 }

// weigh sets the weights of nodes by their degrees.
func (n *Negatives) weigh(degree func(v int32) int) {
	n.below = make([]uint64, n.nodes+1)
	for v := range n.nodes {
		n.below[v+1] = n.below[v] + degreeWeight(degree(int32(v)), n.o.From)
	}
}

// bar sets the destinations that negatives cannot have: those in the rows of a graph, if strict, and the source itself.
func (n *Negatives) bar(known *graphops.Graph) {
	n.barred = known
	if !n.o.Strict {
		n.barred = &graphops.Graph{Indptr: make([]int64, n.nodes+1)}
	}
	if n.oneType() { // a node is no negative of itself
		n.barred = n.barred.AddSelfLoops(0)
	}
	n.barred = n.barred.Dedup(0)
}

// oneType reports whether sources and destinations are of one type.
func (n *Negatives) oneType() bool { return n.srcLo == n.dstLo }

// sourceWeight is the weight of a source whose barred destinations are known: if both ends are drawn, that by which it
// is drawn, otherwise the weight of its destinations.
func (n *Negatives) sourceWeight(u int32) uint64 {
	f := n.room(u)
	if n.o.BothEnds && n.below != nil && f > 0 {
		return n.weight(u)
	}
	return f
}

// sources takes the weights of all sources, and returns an error if there can be no negative at all.
func (n *Negatives) sources(weights []uint64) error {
	some := slices.ContainsFunc(weights, func(f uint64) bool { return f > 0 })
	if n.o.BothEnds {
		n.free = make([]uint64, n.nodes+1)
		for u, f := range weights {
			n.free[u+1] = n.free[u] + f
		}
	}
	switch {
	case some:
		return nil
	case n.o.Strict:
		return &noNegatives{"there can be no negatives: every pair of nodes that could be drawn is a known edge", "turn Strict off, or take another graph"}
	}
	return errors.New("pairs: there can be no negatives: no node can be drawn; take a graph with edges between at least two nodes, or draw uniformly")
}

// noNegatives is the error of a graph or a node without negatives: what is the case, and the way out.
type noNegatives struct{ what, way string }

func (e *noNegatives) Error() string { return "pairs: " + e.what + "; " + e.way }

// PerEdge is the number of negatives for each edge.
func (n *Negatives) PerEdge() int { return n.o.PerEdge }

// at returns the same negatives with the random numbers of another use.
func (n *Negatives) at(site int) *Negatives {
	c := *n
	c.site = site
	return &c
}

// degreeWeight is a degree's weight as an integer: 2^16·d, or 2^16·d^0.75 rounded down. Square
// roots and products are the same on every machine.
func degreeWeight(d int, from Distribution) uint64 {
	if from == ByDegree {
		return uint64(d) << 16
	}
	q := math.Sqrt(math.Sqrt(float64(d)))
	return uint64(q * q * q * (1 << 16))
}

func (n *Negatives) weight(v int32) uint64 {
	if n.below == nil {
		return 1
	}
	return n.below[v+1] - n.below[v]
}

// room is the weight of the destinations that negatives of a source can have.
func (n *Negatives) room(u int32) uint64 {
	row := n.barred.InNeighbors(u)
	if n.below == nil {
		return uint64(int(n.dstHi-n.dstLo) - len(row))
	}
	all := n.below[n.nodes]
	for _, v := range row {
		all -= n.weight(v)
	}
	return all
}

// destination returns the destination at position r, below room(u), among those that negatives of u
// can have.
func (n *Negatives) destination(u int32, r uint64) int32 {
	row := n.barred.InNeighbors(u)
	if n.below == nil {
		// row[i]-dstLo-i destinations before row[i] are free.
		skip := sort.Search(len(row), func(i int) bool { return uint64(row[i]-n.dstLo)-uint64(i) > r })
		return n.dstLo + int32(r+uint64(skip))
	}
	for _, v := range row {
		if n.below[v] > r {
			break
		}
		r += n.weight(v)
	}
	return int32(sort.Search(n.nodes, func(v int) bool { return n.below[v+1] > r }))
}

// wide is a number below limit from two draws.
func wide(s *philox.Stream, limit uint64) uint64 {
	u := uint64(s.Next()) << 32
	hi, _ := bits.Mul64(u|uint64(s.Next()), limit)
	return hi
}

// Draw returns the negatives of positive edges, PerEdge for each: those of edge i are i·PerEdge to
// (i+1)·PerEdge-1. ids [len(of)] are numbers of the edges, by which their negatives are drawn; nil
// means 0, 1, 2 and so on. The negatives of an edge depend on (seed, epoch, step, id) and on the
// edge's source and, with [InBatch], on all edges of the batch, so of must then be the edges of the
// whole step.
//
// It returns an error for a source of which every negative would be a known edge, unless both ends
// are drawn. Cost: O(log degree) for each, O(degree) by degrees; with [InBatch] O(len(of)·log degree)
// for a draw that hits a known edge, which is rare unless the batch surrounds a node of high degree.
func (n *Negatives) Draw(epoch, step int, ids []int32, of Edges) (Edges, error) {
	return n.DrawPart(epoch, step, ids, of, 0, of.Len())
}

// DrawPart is Draw for the edges [lo, hi) of a batch alone.
func (n *Negatives) DrawPart(epoch, step int, ids []int32, of Edges, lo, hi int) (Edges, error) {
	if err := of.check("the batch", n.nodes); err != nil {
		return Edges{}, err
	}
	if n.o.Relation != nil {
		if err := n.o.Relation.Check(of); err != nil {
			return Edges{}, err
		}
	}
	if ids != nil && len(ids) != of.Len() {
		return Edges{}, fmt.Errorf("pairs: a batch of %d edges has %d numbers; give one for each edge", of.Len(), len(ids))
	}
	if lo < 0 || hi < lo || hi > of.Len() {
		return Edges{}, fmt.Errorf("pairs: the edges %d to %d were asked for, of a batch of %d", lo, hi, of.Len())
	}
	k := n.o.PerEdge
	out := Edges{make([]int32, (hi-lo)*k), make([]int32, (hi-lo)*k)}
	err := n.draw(epoch, step, ids, of, lo, hi, nil, func(at int, src, dst int32) { out.Src[at], out.Dst[at] = src, dst })
	if err != nil {
		return Edges{}, err
	}
	return out, nil
}

// draw draws the negatives of the edges [lo, hi), and calls put with each, by its place among them. Unless own is nil,
// it leaves out those of which own(source) is false: their destinations are not known here.
func (n *Negatives) draw(epoch, step int, ids []int32, of Edges, lo, hi int, own func(u int32) bool, put func(at int, src, dst int32)) error {
	c3 := philox.C3(philox.Links, n.site, epoch)
	for i := lo; i < hi; i++ {
		u := of.Src[i]
		if !n.o.BothEnds && own != nil && !own(u) {
			continue
		}
		id := int64(i)
		if ids != nil {
			id = int64(ids[i])
		}
		s := philox.NewStream(n.o.Seed, id, step, c3)
		room := uint64(0)
		if !n.o.BothEnds {
			if room = n.room(u); room == 0 {
				return &noNegatives{
					fmt.Sprintf("node %d, the source of edge %d → %d, can have no negative: each node that could be drawn is one of its known edges", u, u, of.Dst[i]),
					"draw both ends (BothEnds), or turn Strict off",
				}
			}
		}
		for at := (i - lo) * n.o.PerEdge; at < (i-lo+1)*n.o.PerEdge; at++ {
			switch {
			case n.o.BothEnds:
				src := n.source(&s)
				if own != nil && !own(src) {
					s.Next() // the destination's draws
					s.Next()
					continue
				}
				put(at, src, n.destination(src, wide(&s, n.room(src))))
			case n.o.From == InBatch:
				put(at, u, n.inBatch(&s, of, i, room))
			default:
				put(at, u, n.destination(u, wide(&s, room)))
			}
		}
	}
	return nil
}

// source draws the source of a negative whose both ends are drawn.
func (n *Negatives) source(s *philox.Stream) int32 {
	r := wide(s, n.free[n.nodes])
	return int32(sort.Search(n.nodes, func(v int) bool { return n.free[v+1] > r }))
}

// inBatch draws the destination of another edge of the batch.
func (n *Negatives) inBatch(s *philox.Stream, of Edges, i int, room uint64) int32 {
	barred := n.barred.InNeighbors(of.Src[i])
	allowed := func(at int) bool {
		if at == i {
			return false
		}
		_, known := slices.BinarySearch(barred, of.Dst[at])
		return !known
	}
	first := int(philox.Bounded(s.Next(), uint32(of.Len())))
	if allowed(first) {
		return of.Dst[first]
	}
	// A second draw decides among those that are allowed, so that all have the same probability.
	var others []int32
	for at := range of.Src {
		if allowed(at) {
			others = append(others, of.Dst[at])
		}
	}
	if len(others) > 0 {
		return others[philox.Bounded(s.Next(), uint32(len(others)))]
	}
	return n.destination(of.Src[i], wide(s, room))
}
