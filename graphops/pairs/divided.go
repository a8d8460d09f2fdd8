package pairs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// Divided is what a rank has of the training edges of a split whose graph is divided (see [Peers]): each edge to predict is
// on one rank, that of the destination in the graph.
type Divided struct {
	peers Peers
	total int
	items []int32 // the numbers of this rank's edges among all, ascending
	edges Edges   // in the order of items
	first []int64 // of Message: the position of each node's first in-edge among those of all ranks
}

// First are the positions of each node's first in-edge in the whole message graph, [nodes+1].
func (d *Divided) First() []int64 { return d.first }

// Peers are the ranks among which the split is divided.
func (d *Divided) Peers() Peers { return d.peers }

// Edges returns the edges to predict with the given numbers, from the ranks that have them. x connects the ranks, all of
// which ask for the same edges. Collective. Cost: a search for each number on each rank, and 12 bytes for each edge.
func (d *Divided) Edges(x Exchange, items []int32) (Edges, error) {
	e := Edges{Src: make([]int32, len(items)), Dst: make([]int32, len(items))}
	found := 0
	err := d.peers.records(x, 3, func(put func(to int, words ...int32)) {
		for k, i := range items {
			if at, ok := slices.BinarySearch(d.items, i); ok {
				put(-1, int32(k), d.edges.Src[at], d.edges.Dst[at])
			}
		}
	}, func(w []int32) {
		if uint(w[0]) < uint(len(items)) {
			e.Src[w[0]], e.Dst[w[0]] = w[1], w[2]
			found++
		}
	})
	if err == nil && found != len(items) {
		err = fmt.Errorf("pairs: %d edges were asked for and %d found; all ranks must have the same split and ask for the same edges", len(items), found)
	}
	return e, err
}

// place says where a pair is in a split: its part, 0 for training, and its number there.
type place struct{ part, number int }

// RandomDivided is [Random] for a divided graph: the split has the same edges, negatives and numbers. Collective.
//
// Memory: 8 bytes for each node, and 4 bytes for each edge (pair, if undirected) of the whole graph until it returns. Of the
// edges of validation and test, with their negatives, each rank has all.
func RandomDivided(p Peers, own *graphops.Graph, o SplitOptions) (*Split, error) {
	val, test, err := o.fractions()
	if err != nil {
		return nil, err
	}
	d, err := dividedPairs(p, own, &o)
	if err != nil {
		return nil, err
	}
	nVal, nTest, err := o.sizes(val, test, d.total)
	if err != nil {
		return nil, err
	}
	at := d.shuffled(o.Seed, 0, d.total)
	return d.build(own, o, [3]int{d.total - nVal - nTest, nVal, nTest}, func(k int) place {
		switch i := int(at[d.number(k)]); {
		case i < nVal:
			return place{1, i}
		case i < nVal+nTest:
			return place{2, i - nVal}
		default:
			return place{0, i - nVal - nTest}
		}
	})
}

// ByTimeDivided is [ByTime] for a divided graph with EdgeTimes. Collective.
func ByTimeDivided(p Peers, own *graphops.Graph, val, test int64, o SplitOptions) (*Split, error) {
	if own.EdgeTimes == nil {
		return nil, noTimes()
	}
	if err := checkTimes(val, test); err != nil {
		return nil, err
	}
	d, err := dividedPairs(p, own, &o)
	if err != nil {
		return nil, err
	}
	times := make([]int64, len(d.pairs))
	for k, e := range d.pairs {
		times[k] = latest(own, own.EdgeTimes, e.a, e.b)
	}
	if err := d.latestOfReverses(own, times); err != nil {
		return nil, err
	}
	d.cut = &timeCut{own.EdgeTimes, val, test}
	parts, sizes, err := d.inOrder(own.NumNodes(), func(k int) int { return partByTime(times[k], val, test) })
	if err != nil {
		return nil, err
	}
	for i, n := range sizes {
		if n == 0 {
			return nil, noEdgeAt(i, val, test)
		}
	}
	return d.build(own, o, sizes, parts)
}

// latestOfReverses raises the times of pairs to the latest of their reverse edges, which other ranks may have.
func (d *dividing) latestOfReverses(own *graphops.Graph, times []int64) error {
	number := make(map[pair]int, len(d.pairs))
	for k, e := range d.pairs {
		number[e] = k
	}
	for lo := 0; lo < own.NumNodes(); lo += pieceNodes {
		err := d.p.records(d.p.Exchange, 4, func(put func(to int, words ...int32)) {
			for v := int32(lo); int(v) < min(lo+pieceNodes, own.NumNodes()); v++ {
				for i, u := range own.InNeighbors(v) {
					if u > v { // the pair v, u is with the owner of u
						t := own.EdgeTimes[own.Indptr[v]+int64(i)]
						put(d.p.Owner(u), v, u, int32(t), int32(t>>32))
					}
				}
			}
		}, func(w []int32) {
			if k, ok := number[pair{w[0], w[1]}]; ok {
				times[k] = max(times[k], int64(uint32(w[2]))|int64(w[3])<<32)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// GivenDivided is [Given] for a divided graph. Collective.
func GivenDivided(p Peers, own *graphops.Graph, val, test Edges, o SplitOptions) (*Split, error) {
	d, err := dividedPairs(p, own, &o)
	if err != nil {
		return nil, err
	}
	where, parts, err := given(own.NumNodes(), val, test, o)
	if err != nil {
		return nil, err
	}
	unused := 0
	of, sizes, err := d.inOrder(own.NumNodes(), func(k int) int {
		e := d.pairs[k]
		return max(where[e], where[pair{e.b, e.a}])
	})
	if err != nil {
		return nil, err
	}
	for k, e := range d.pairs {
		if is, back := where[e], where[pair{e.b, e.a}]; !o.Undirected && max(is, back) > 0 && (is == 0 || d.both[k] && back == 0) {
			unused++
		}
	}
	d.given = &parts
	sizes[1], sizes[2] = len(parts[1]), len(parts[2])
	s, err := d.build(own, o, sizes, of)
	if err != nil {
		return nil, err
	}
	total, err := p.sum(unused)
	s.Unused = int(total)
	return s, err
}

// dividing is a rank's pairs while it splits.
type dividing struct {
	p     Peers
	pairs []pair  // of this rank's nodes, in the order of all pairs
	start []int64 // the number of each node's first pair among all
	total int     // pairs of all ranks
	k     int     // of number: the first pair of its node
	given *[3][]pair
	both  []bool   // by pair: the reverse is an edge too, and the split is directed
	cut   *timeCut // of a split by time
}

// dividedPairs returns this rank's pairs, and sets whether the split is undirected.
func dividedPairs(p Peers, own *graphops.Graph, o *SplitOptions) (*dividing, error) {
	if err := hasNodes(own); err != nil {
		return nil, err
	}
	if o.Relation != "" || o.Reverse != "" {
		return nil, errors.New("pairs: a divided graph is split as a whole, and not by a relation; take the whole graph, or leave Relation and Reverse out")
	}
	d := &dividing{p: p}
	symmetric, err := p.symmetric(own)
	switch {
	case err != nil:
		return nil, err
	case o.Undirected && !symmetric:
		return nil, noReverse()
	}
	o.Undirected = symmetric
	back := always
	if !symmetric {
		out, err := p.Reverse(own) // the destinations of this rank's nodes
		if err != nil {
			return nil, err
		}
		back = func(u, v int32) bool { return hasEdge(out, u, v) }
	}
	d.pairs = pairsIn(own, back)
	d.both = make([]bool, len(d.pairs))
	counts := make([]int32, own.NumNodes())
	for k, e := range d.pairs {
		counts[e.b]++
		d.both[k] = !symmetric && e.a < e.b && back(e.a, e.b)
	}
	if d.start, err = p.starts(own.NumNodes(), func(v int32) int { return int(counts[v]) }); err != nil {
		return nil, err
	}
	if d.start[own.NumNodes()] > math.MaxInt32 {
		return nil, tooManyPairs(d.start[own.NumNodes()])
	}
	d.total = int(d.start[own.NumNodes()])
	return d, nil
}

// symmetric reports whether every edge occurs as often as its reverse: sums of a hash of all edges in one direction and in
// the other are equal. Collective.
func (p Peers) symmetric(own *graphops.Graph) (bool, error) {
	var sum uint64
	for v := range int32(own.NumNodes()) {
		for _, u := range own.InNeighbors(v) {
			h := philox.Block(0, [4]uint32{uint32(min(u, v)), 0, uint32(max(u, v)), philox.C3(philox.Links, siteDirection, 0)})
			if x := uint64(h[2])<<32 | uint64(h[3]); u < v {
				sum += x
			} else if u > v {
				sum -= x
			}
		}
	}
	all, err := p.sum(int(sum))
	return all == 0, err
}

// sum is the sum of a number of each rank. Collective.
func (p Peers) sum(n int) (all int64, err error) {
	err = p.records(p.Exchange, 2, func(put func(to int, words ...int32)) {
		put(-1, int32(n), int32(n>>32))
	}, func(w []int32) { all += int64(uint32(w[0])) | int64(w[1])<<32 })
	return all, err
}

// number is the number of this rank's pair k among all pairs; k ascends from call to call, or begins again at 0.
func (d *dividing) number(k int) int64 {
	b := d.pairs[k].b
	if k == 0 || d.pairs[k-1].b != b {
		d.k = k
	}
	return d.start[b] + int64(k-d.k)
}

// shuffled returns, for each number below n, its place in the random order of [philox.Permute].
func (d *dividing) shuffled(seed uint64, step, n int) []int32 {
	order := shuffled(seed, step, n)
	// The inverse permutation in the same memory: cycle by cycle, done marked by negative numbers.
	for i := range order {
		from, to := int32(i), order[i]
		for to >= 0 {
			next := order[to]
			order[to] = ^from
			from, to = to, next
		}
	}
	for i := range order {
		order[i] = ^order[i]
	}
	return order
}

// inOrder returns the places of pairs whose part is given, and the sizes of the parts: in each part, pairs are in the order
// of all pairs. Collective.
func (d *dividing) inOrder(nodes int, part func(k int) int) (func(k int) place, [3]int, error) {
	parts, sizes := make([]place, len(d.pairs)), [3]int{}
	for i := range sizes {
		counts := make([]int32, nodes)
		for k, e := range d.pairs {
			if part(k) == i {
				parts[k] = place{i, int(counts[e.b])}
				counts[e.b]++
			}
		}
		start, err := d.p.starts(nodes, func(v int32) int { return int(counts[v]) })
		if err != nil {
			return nil, sizes, err
		}
		for k, e := range d.pairs {
			if parts[k].part == i {
				parts[k].number += int(start[e.b])
			}
		}
		sizes[i] = int(start[nodes])
	}
	return func(k int) place { return parts[k] }, sizes, nil
}

// build makes the split of pairs whose places are given.
func (d *dividing) build(own *graphops.Graph, o SplitOptions, sizes [3]int, of func(k int) place) (*Split, error) {
	disjoint, predicted, err := o.predicted(sizes)
	if err != nil {
		return nil, err
	}
	s := &Split{All: own, Undirected: o.Undirected, Pairs: d.total, cut: d.cut, Divided: &Divided{peers: d.p, total: predicted}}
	held := [3][]pair{1: make([]pair, sizes[1]), 2: make([]pair, sizes[2])}
	heldBoth := [3][]bool{1: make([]bool, sizes[1]), 2: make([]bool, sizes[2])}
	var items []int32
	var train []pair
	var trainBoth []bool
	var drawn []int32 // the place of each training pair in the order in which a disjoint split takes them
	if disjoint {
		drawn = d.shuffled(o.Seed, 1, sizes[0])
	}
	// Each rank gets the held-out pairs of all.
	err = d.p.records(d.p.Exchange, 5, func(put func(to int, words ...int32)) {
		for k, e := range d.pairs {
			at := of(k)
			i := int32(at.number)
			switch {
			case at.part > 0:
				both := int32(0)
				if d.both[k] {
					both = 1
				}
				put(-1, int32(at.part), i, e.a, e.b, both)
				continue
			case drawn != nil:
				i = drawn[i]
			}
			if int(i) < predicted {
				items, train, trainBoth = append(items, i), append(train, e), append(trainBoth, d.both[k])
			}
		}
	}, func(w []int32) {
		if w[0] == 1 || w[0] == 2 {
			if part := held[w[0]]; uint(w[1]) < uint(len(part)) {
				part[w[1]], heldBoth[w[0]][w[1]] = pair{w[2], w[3]}, w[4] == 1
			}
		}
	})
	if err != nil {
		return nil, err
	}
	both := func(of []bool) func(k int) bool { return func(k int) bool { return of != nil && of[k] } }
	if d.given != nil { // also those that the graph does not have, in their own order and direction
		held, heldBoth = *d.given, [3][]bool{}
	}
	s.Divided.items, s.Divided.edges = sorted(items, directed(train, o, both(trainBoth)))
	s.Val, s.Test = partOf(held[1], o, both(heldBoth[1])), partOf(held[2], o, both(heldBoth[2]))
	if err := d.count(s, own); err != nil {
		return nil, err
	}
	if s.Training, err = s.without(d.cut.earlier(own), s.Val.Edges.Join(s.Test.Edges)); err != nil {
		return nil, err
	}
	s.Message = s.Training
	if disjoint {
		if s.Message, err = d.withoutPairs(s, train); err != nil {
			return nil, err
		}
	}
	degrees := func(v int32) int { return s.Message.InDegree(v) }
	if s.Divided.first, err = d.p.starts(own.NumNodes(), degrees); err != nil {
		return nil, err
	}
	return s, s.drawNegatives(o)
}

// count sets the numbers of the split's notes. Collective.
func (d *dividing) count(s *Split, own *graphops.Graph) error {
	both, later := 0, int64(0)
	for _, b := range d.both {
		if b {
			both++
		}
	}
	if d.cut != nil {
		later = d.cut.later(own, s.HeldOut())
	}
	all, err := d.p.sum(both)
	if err != nil {
		return err
	}
	if s.Both = int(all); s.Undirected {
		s.Both = s.Pairs
	}
	s.Later, err = d.p.sum(int(later))
	return err
}

// withoutPairs returns the training graph without the given pairs of this rank and of others.
func (d *dividing) withoutPairs(s *Split, train []pair) (*graphops.Graph, error) {
	var gone Edges
	err := d.p.records(d.p.Exchange, 2, func(put func(to int, words ...int32)) {
		for _, e := range train {
			gone = gone.Append(e.a, e.b)
			if r := d.p.Owner(e.a); r != d.p.Rank {
				put(r, e.a, e.b)
			}
		}
	}, func(w []int32) { gone = gone.Append(w[0], w[1]) })
	if err != nil {
		return nil, err
	}
	return s.without(s.Training, gone)
}

// sorted sorts numbered edges by their numbers.
func sorted(items []int32, e Edges) ([]int32, Edges) {
	by := make([]int, len(items))
	for i := range by {
		by[i] = i
	}
	sort.Slice(by, func(i, j int) bool { return items[by[i]] < items[by[j]] })
	numbers, out := make([]int32, len(items)), Edges{make([]int32, len(items)), make([]int32, len(items))}
	for i, k := range by {
		numbers[i], out.Src[i], out.Dst[i] = items[k], e.Src[k], e.Dst[k]
	}
	return numbers, out
}

// NewDividedNegatives is [NewNegatives] for a divided graph of known edges. [Negatives.DrawDivided] draws from the result,
// and Draw does not. Collective.
func NewDividedNegatives(p Peers, known *graphops.Graph, o NegativeOptions) (*Negatives, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Relation != nil {
		return nil, errors.New("pairs: negatives of one relation need its edges in one graph, and this one is divided among ranks; take the whole graph")
	}
	n := &Negatives{o: o, site: siteTrain, nodes: known.NumNodes(), peers: &p}
	n.srcHi, n.dstHi = int32(n.nodes), int32(n.nodes)
	n.o.PerEdge = max(1, o.PerEdge)
	if n.needsDegrees() {
		degrees, err := p.Degrees(known)
		if err != nil {
			return nil, err
		}
		n.weigh(func(v int32) int { return int(degrees[v]) })
	}
	of := known
	if o.Strict && !o.Undirected {
		var err error
		if of, err = p.Reverse(known); err != nil {
			return nil, err
		}
	}
	n.bar(of)
	weights, err := p.ofNodes(n.nodes, n.sourceWeight)
	if err != nil {
		return nil, err
	}
	return n, n.sources(weights)
}

// DrawDivided is [Negatives.Draw] for a divided graph: the owner of a negative's source draws its destination, and all ranks
// get all negatives. x connects the ranks, all of which give the same edges. Collective. Cost: if both ends are drawn, each
// rank draws all sources; 12 bytes for each negative.
func (n *Negatives) DrawDivided(x Exchange, epoch, step int, ids []int32, of Edges) (Edges, error) {
	switch {
	case n.peers == nil:
		return Edges{}, errors.New("pairs: DrawDivided draws negatives of a divided graph; make them by NewDividedNegatives")
	case ids != nil && len(ids) != of.Len():
		return Edges{}, fmt.Errorf("pairs: a batch of %d edges has %d numbers; give one for each edge", of.Len(), len(ids))
	}
	if err := of.check("the batch", n.nodes); err != nil {
		return Edges{}, err
	}
	all := of.Len() * n.o.PerEdge
	out, found := Edges{make([]int32, all), make([]int32, all)}, 0
	var failed error
	err := n.peers.records(x, 3, func(put func(to int, words ...int32)) {
		failed = n.draw(epoch, step, ids, of, 0, of.Len(), n.peers.owns, func(at int, src, dst int32) { put(-1, int32(at), src, dst) })
		if failed != nil {
			put(-1, -1, 0, 0)
		}
	}, func(w []int32) {
		if uint(w[0]) < uint(all) {
			out.Src[w[0]], out.Dst[w[0]] = w[1], w[2]
			found++
		}
	})
	switch {
	case failed != nil:
		return Edges{}, failed
	case err != nil:
		return Edges{}, err
	case found != all:
		return Edges{}, fmt.Errorf("pairs: %d of %d negatives were drawn; another rank could not draw those of its nodes, or has another batch", found, all)
	}
	return out, nil
}
