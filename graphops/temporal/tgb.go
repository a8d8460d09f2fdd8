package temporal

import (
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/phrase"
)

// TGBOptions configure [TGB]. The zero value makes the negatives of the benchmark's small sets.
type TGBOptions struct {
	// Negatives is the number of negatives of an event; 0 means 1000.
	Negatives int
	// History is the share of them that are partners of the source in training, as far as there are that many; 0 means 0.5, and a
	// negative number none: all are then drawn from the range of destinations ("rnd" of py-tgb, instead of "hist_rnd").
	History float64
	// Seed is the random seed; the benchmark's is 42. 0 is a seed like any other.
	Seed uint32
}

// Negatives are destinations that an event is ranked among.
type Negatives struct {
	from   int // the first event that has some
	starts []int64
	of     []int32 // the list of an event
	dst    []int32
}

// Events returns the first event that has negatives, and the one after the last.
func (n *Negatives) Events() (from, to int) { return n.from, n.from + len(n.of) }

// Of returns the negatives of an event, in the order in which they were drawn. The memory is that of n.
func (n *Negatives) Of(event int) []int32 {
	k := n.of[event-n.from]
	return n.dst[n.starts[k]:n.starts[k+1]]
}

// TGB makes the negatives of the events of validation, from train to val-1, and of the test, from val on, as the Temporal Graph
// Benchmark does (Huang et al., 2023, https://arxiv.org/abs/2307.01026): number for number those of NegativeEdgeGenerator of py-tgb
// 2.3.0 with the same events and seed, of which the validation's are drawn first.
//
// An event u → v at time t has up to History·Negatives of the destinations of u in training, and for the rest nodes between the
// smallest and the largest destination of all events that are no destination of u in training. No destination of u at time t in the same part of
// the split is a negative. If there are fewer candidates, an event has fewer negatives. Events with the same ends and time have the negatives of the
// last of them. The benchmark numbers destinations behind sources, where they are of two kinds; the negatives are the same nodes.
//
// Cost: a permutation of the candidates for each event. Memory: 4 bytes for each negative.
func TGB(e *Events, train, val int, o TGBOptions) (*Negatives, error) {
	if o.Negatives == 0 {
		o.Negatives = 1000
	}
	if o.History == 0 {
		o.History = 0.5
	}
	switch {
	case o.Negatives < 0 || o.History > 1 || math.IsNaN(o.History):
		return nil, phrase.Errorf("temporal", "there are to be %d negatives of an event, a share of %v from the training; the number is not negative, and the share at most 1", o.Negatives, o.History)
	case train < 0 || val < train || val > e.Len():
		return nil, phrase.Errorf("temporal", "the validation is from event %d to %d of %d; the parts of a split are in order", train, val, e.Len())
	}
	g := &tgb{e: e, o: o, random: newNumpyRandom(o.Seed), n: &Negatives{from: train, starts: []int64{0}}, known: map[int32][]int32{}}
	if e.Len() > 0 {
		g.lo, g.hi = slices.Min(e.Dst), slices.Max(e.Dst)
	}
	if o.History > 0 {
		for i := range train {
			g.known[e.Src[i]] = append(g.known[e.Src[i]], e.Dst[i])
		}
		for u, of := range g.known {
			slices.Sort(of)
			g.known[u] = slices.Compact(of)
		}
	}
	g.part(train, val)
	g.part(val, e.Len())
	return g.n, nil
}

// tgb makes negatives.
type tgb struct {
	e      *Events
	o      TGBOptions
	random *numpyRandom
	n      *Negatives
	lo, hi int32             // the smallest and the largest destination
	known  map[int32][]int32 // by source, its destinations in training, ascending

	pool []int32
}

// event is what py-tgb stores negatives by.
type event struct {
	src, dst int32
	time     int64
}

// part makes the negatives of the events [lo, hi), a part of the split.
func (g *tgb) part(lo, hi int) {
	last := map[event]int32{} // the list of the last of equal events
	for first := lo; first < hi; {
		end := first // of the events of one time
		for end < hi && g.e.Time[end] == g.e.Time[first] {
			end++
		}
		bySource := map[int32][]int32{}
		for i := first; i < end; i++ {
			bySource[g.e.Src[i]] = append(bySource[g.e.Src[i]], g.e.Dst[i])
		}
		for u, of := range bySource {
			slices.Sort(of)
			bySource[u] = slices.Compact(of)
		}
		clear(last)
		for i := first; i < end; i++ {
			u := g.e.Src[i]
			g.draw(g.known[u], bySource[u])
			last[event{u, g.e.Dst[i], g.e.Time[i]}] = int32(len(g.n.starts) - 2)
		}
		for i := first; i < end; i++ {
			g.n.of = append(g.n.of, last[event{g.e.Src[i], g.e.Dst[i], g.e.Time[i]}])
		}
		first = end
	}
}

// draw appends the negatives of an event whose source has the destinations known in training, and now at the event's time.
func (g *tgb) draw(known, now []int32) {
	of := 0
	if len(known) > 0 {
		g.pool = appendWithout(g.pool[:0], known, now)
		of = min(int(float64(g.o.Negatives)*g.o.History), len(g.pool))
		g.n.dst = g.random.choice(g.n.dst, g.pool, of)
	}
	g.pool = g.pool[:0]
	for v, k, p := g.lo, 0, 0; v <= g.hi; v++ {
		for k < len(known) && known[k] < v {
			k++
		}
		for p < len(now) && now[p] < v {
			p++
		}
		if (k == len(known) || known[k] != v) && (p == len(now) || now[p] != v) {
			g.pool = append(g.pool, v)
		}
	}
	if rest := g.o.Negatives - of; rest > len(g.pool) {
		g.n.dst = append(g.n.dst, g.pool...)
	} else {
		g.n.dst = g.random.choice(g.n.dst, g.pool, rest)
	}
	g.n.starts = append(g.n.starts, int64(len(g.n.dst)))
}

// appendWithout appends the elements of all that are not in without. Both ascend.
func appendWithout(to, all, without []int32) []int32 {
	k := 0
	for _, v := range all {
		for k < len(without) && without[k] < v {
			k++
		}
		if k == len(without) || without[k] != v {
			to = append(to, v)
		}
	}
	return to
}
