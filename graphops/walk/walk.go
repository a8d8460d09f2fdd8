// Package walk draws random walks on a graph, and finds the nodes that walks from a node reach most
// often.
//
// # Basics
//
// A [Walker] draws walks: uniform ones, as DeepWalk takes them, ones by edge weights, and node2vec's,
// which depend on the last two nodes.
//
//	w, err := walk.New(g, walk.Options{Length: 20, P: 1, Q: 0.5, Seed: 1})
//	walks, err := w.Walks(epoch, nodes, 10) // ten from each node
//
// [Visited] and [PageRank] return a graph in which the in-neighbours of a node are those that matter
// most to it, at any distance, with their importance as edge weights. Every sampler and every layer
// takes that graph as any other:
//
//	near, err := walk.PageRank(ds.Graph, walk.PageRankOptions{K: 32})
//	run, err := gnb.Train(ctx, ds.WithGraph(near), gnb.SAGE, gnb.TrainOptions{})
//
// A sampler's picker chooses among the in-edges of a node, and such a neighbourhood reaches further;
// therefore it is a graph, made once, and not a picker.
//
// # Direction
//
// A step goes from a node to one of its in-neighbours, from which messages come. In an undirected graph
// this is no restriction; to walk along the edges of a directed graph, take its [graphops.Graph.Reverse].
//
// # Determinism
//
// A step is a function of the graph, the options and (seed, epoch, start, number of the walk, step): it
// does not depend on threads, on workers, or on the other walks.
package walk

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// The sites of the counters: each use of walks has its own.
const (
	siteWalk = iota
	siteVisit
)

// The limits set by the counter layout of package philox.
const (
	// MaxPerNode is the number of walks that a node can start in an epoch: 16 bits of the counter.
	MaxPerNode = 1 << 16
	maxEpochs  = 1 << 20
	maxLength  = 1 << 20
)

// Options configure a [Walker]. The zero value draws uniform walks of 20 steps.
type Options struct {
	// Length is the number of steps of a walk; 0 means 20.
	Length int
	// P and Q are node2vec's parameters; 0 means 1, which leaves walks as they are. After a step from
	// t to v, the weight of a step back to t is divided by P, and that of a step to a node that is no
	// in-neighbour of t is divided by Q. A small Q leads away from the start, a large P seldom back.
	P, Q float64
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
	// Threads is the number of concurrent goroutines; 0 means GOMAXPROCS. The result does not depend on
	// it.
	Threads int
}

// Walker draws walks on a graph. It is read-only and safe for concurrent use.
type Walker struct {
	g     *graphops.Graph
	o     Options
	below []float64 // the sum of the weights of a row's edges up to and with each; nil if all are 1
	// accept[i] of 2^32 proposals are taken: of steps back, to in-neighbours of the last node, and to others.
	accept [3]uint64
	alpha  [3]float64
	biased bool
	tries  int // proposals before a step computes all probabilities
}

// maxTries bounds the proposals of a step. With P and Q from 0.25 to 4, a proposal is taken with a
// probability of at least 1/16, so that one step in eight computes all probabilities at most.
const maxTries = 32

// New returns a walker over a graph. A step is taken in proportion to the weights of the edges, if the
// graph has any; walks never take an edge of weight 0.
//
// It returns an error for options out of range, and for a weight that is negative or not finite. Cost:
// O(1); with weights one pass over the edges, and 8 bytes for each.
func New(g *graphops.Graph, o Options) (*Walker, error) {
	if g == nil || len(g.Indptr) == 0 {
		return nil, errors.New("walk: the graph is missing: it has no indptr, although even a graph without nodes has one")
	}
	g, _ = g.WithoutZeroWeights()
	if o.Length == 0 {
		o.Length = 20
	}
	if o.Length < 0 || o.Length > maxLength {
		return nil, fmt.Errorf("walk: Length is %d; a walk has 1 to %d steps (0 means 20)", o.Length, maxLength)
	}
	for _, x := range []struct {
		name string
		of   *float64
	}{{"P", &o.P}, {"Q", &o.Q}} {
		if *x.of == 0 {
			*x.of = 1
		}
		if !(*x.of >= 1e-6 && *x.of <= 1e6) {
			return nil, fmt.Errorf("walk: %s is %v; it is a number from 0.000001 to 1000000 (0 means 1)", x.name, *x.of)
		}
	}
	w := &Walker{g: g, o: o, alpha: [3]float64{1 / o.P, 1, 1 / o.Q}, biased: o.P != 1 || o.Q != 1, tries: maxTries}
	most := max(w.alpha[0], w.alpha[1], w.alpha[2])
	for i, a := range w.alpha {
		w.accept[i] = uint64(a / most * (1 << 32))
	}
	if g.EdgeWeights == nil {
		return w, nil
	}
	w.below = make([]float64, len(g.Indices))
	bad := make([]error, parallel.Chunks(g.NumNodes(), rowGrain))
	parallel.For(o.Threads, g.NumNodes(), rowGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			sum := 0.0
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				x := g.EdgeWeights[e]
				if !(x >= 0) || x > math.MaxFloat32 {
					bad[lo/rowGrain] = fmt.Errorf("walk: the edge %d → %d has weight %v, but walks need weights that are finite and not negative", g.Indices[e], v, x)
					return
				}
				sum += float64(x)
				w.below[e] = sum
			}
		}
	})
	for _, err := range bad {
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// rowGrain is the number of nodes of a chunk, walkGrain that of walks.
const rowGrain, walkGrain = 1024, 64

// Length is the number of steps of a walk.
func (w *Walker) Length() int { return w.o.Length }

// Walks returns perNode walks from each start, [len(starts)·perNode, Length+1] row-major: a walk's nodes
// from the start on, and -1 after a node that has no in-neighbour to go to. The walks of starts[i] are
// the rows i·perNode to (i+1)·perNode-1; those of a start that is there twice are equal.
//
// It returns an error for a start that is no node, an epoch that is negative or not below 2^20, or a
// number of walks that is not 1 to [MaxPerNode]. Cost: O(1) for a step; O(log degree) with weights, or
// with P or Q, and O(degree·log degree) for few steps of those.
//
// Source: B. Perozzi, R. Al-Rfou, S. Skiena, "DeepWalk", KDD 2014, doi:10.1145/2623330.2623732;
// A. Grover, J. Leskovec, "node2vec", KDD 2016, doi:10.1145/2939672.2939754, section 3.2. A directed
// graph's distance from t to x is 1 if walks can step from t to x.
func (w *Walker) Walks(epoch int, starts []int32, perNode int) ([]int32, error) {
	if perNode < 1 || perNode > MaxPerNode {
		return nil, fmt.Errorf("walk: %d walks were asked for from each node, but a node starts 1 to %d in an epoch", perNode, MaxPerNode)
	}
	if err := w.check(epoch, starts); err != nil {
		return nil, err
	}
	cols := w.o.Length + 1
	out := make([]int32, len(starts)*perNode*cols)
	parallel.For(w.o.Threads, len(starts)*perNode, walkGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			w.walk(epoch, starts[i/perNode], i%perNode, out[i*cols:(i+1)*cols])
		}
	})
	return out, nil
}

// Walk sets out [Length+1] to one walk: number, from 0, of those from start in an epoch. It is the row
// of [Walker.Walks].
func (w *Walker) Walk(epoch int, start int32, number int, out []int32) error {
	if number < 0 || number >= MaxPerNode || len(out) != w.o.Length+1 {
		return fmt.Errorf("walk: walk %d with room for %d nodes; walks are numbered 0 to %d, and have %d nodes", number, len(out), MaxPerNode-1, w.o.Length+1)
	}
	if err := w.check(epoch, []int32{start}); err != nil {
		return err
	}
	w.walk(epoch, start, number, out)
	return nil
}

func (w *Walker) check(epoch int, starts []int32) error {
	if epoch < 0 || epoch >= maxEpochs {
		return fmt.Errorf("walk: epoch %d is out of range: epochs are 0 to %d", epoch, maxEpochs-1)
	}
	for i, v := range starts {
		if v < 0 || int(v) >= w.g.NumNodes() {
			return fmt.Errorf("walk: start %d is node %d, but the graph has %d nodes", i, v, w.g.NumNodes())
		}
	}
	return nil
}

func (w *Walker) walk(epoch int, start int32, number int, out []int32) {
	last, v := int32(-1), start
	out[0] = v
	c3 := philox.C3(philox.Walks, siteWalk, epoch)
	for i := range w.o.Length {
		s := philox.NewStream(w.o.Seed, int64(start)|int64(number)<<32, i, c3)
		next := w.step(&s, last, v)
		out[i+1] = next
		if next < 0 {
			for ; i < w.o.Length; i++ {
				out[i+1] = -1
			}
			return
		}
		last, v = v, next
	}
}

// step draws the node after v, which comes after last (-1 at the start); -1 if v has none.
func (w *Walker) step(s *philox.Stream, last, v int32) int32 {
	if !w.biased || last < 0 {
		return w.propose(s, v)
	}
	before := w.g.InNeighbors(last)
	for range w.tries {
		next := w.propose(s, v)
		if next < 0 || uint64(s.Next()) < w.accept[w.kind(next, last, before)] {
			return next
		}
	}
	// The proposals so far say nothing about the next one, so to draw it otherwise changes no probability.
	row, first := w.g.InNeighbors(v), w.g.Indptr[v]
	total := 0.0
	for i, x := range row {
		total += w.second(first+int64(i), x, last, before)
	}
	r := unit(s) * total
	sum, next := 0.0, int32(-1)
	for i, x := range row {
		a := w.second(first+int64(i), x, last, before)
		if a == 0 {
			continue
		}
		if next, sum = x, sum+a; sum > r {
			break
		}
	}
	return next
}

// second is the weight of a step to x by edge e, after a step from last.
func (w *Walker) second(e int64, x, last int32, before []int32) float64 {
	return float64(float64(w.g.Weight(e)) * w.alpha[w.kind(x, last, before)]) // rounded, so that no machine fuses it with the sum
}

// kind says which of Walker.alpha a step to x has.
func (w *Walker) kind(x, last int32, before []int32) int {
	if x == last {
		return 0
	}
	if _, near := slices.BinarySearch(before, x); near {
		return 1
	}
	return 2
}

// propose draws an in-neighbour of v by the weights of the edges.
func (w *Walker) propose(s *philox.Stream, v int32) int32 {
	lo, hi := w.g.Indptr[v], w.g.Indptr[v+1]
	if lo == hi {
		return -1
	}
	if w.below == nil {
		return w.g.Indices[lo+int64(philox.Bounded(s.Next(), uint32(hi-lo)))]
	}
	sums := w.below[lo:hi]
	total := sums[len(sums)-1]
	if total == 0 {
		return -1
	}
	r := unit(s) * total // below total: see unit
	return w.g.Indices[lo+int64(sort.Search(len(sums), func(i int) bool { return sums[i] > r }))]
}

// unit draws a number in [0, 1) in steps of 2^-52. Its product with a positive number is below that
// number also when rounded.
func unit(s *philox.Stream) float64 {
	hi, lo := uint64(s.Next())>>6, uint64(s.Next())>>6
	return float64(hi<<26|lo) * (1.0 / (1 << 52))
}
