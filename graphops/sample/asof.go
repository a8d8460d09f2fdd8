package sample

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// The strategies by which a seed with a time takes some of the edges that it sees: see [AsOf].
const (
	// TakeUniform takes edges uniformly without replacement; so does "".
	TakeUniform = "uniform"
	// TakeRecent takes the edges with the latest times.
	TakeRecent = "recent"
	// TakeByAge takes edges in proportion to 2^(-age/HalfLife), one after the other without replacement.
	TakeByAge = "age"
)

// AsOf says what a seed with a time t sees of a graph, at every hop of its tree, and what it takes of that. The zero value
// shows it the edges up to t, and takes of them as its picker does.
//
// # What is seen
//
// An edge is known from its own time on or, if nodes have times (NodeTimes), from the latest of its own time and the times
// of both its ends. A seed sees the edges that are known at t, the time t included unless Strict is set. With a Window w,
// those known before t-w are not seen; t-w is.
//
// # What is taken
//
// The edges of a node that a seed sees are in the order in which they are known; those of the same time are in CSC order.
// A picker sees them in this order, as if they were all in-edges of the node. With k the fanout and m > k edges seen:
//
//   - uniform: the edges at the places [Hop.Uniform] of m and k.
//   - recent: the last k; no draw. Of edges with equal times, the last ones in CSC order are taken.
//   - age: with the age of an edge counted from the latest edge seen, h its whole half-lives (age div HalfLife) and j the
//     1024ths of a half-life above them ((age mod HalfLife)·1024 div HalfLife), edges with h > 30 are left out. If at most k
//     edges are left, the last k of all are taken. Otherwise picks are drawn one after the other, until there are k: r =
//     ⌊(first·2^32 + second)·S / 2^64⌋ from two draws, where S is the sum of n(h)·2^(30-h) over h ascending and n(h) the number
//     of edges of h that are not picked yet; h is the first one at which the running sum exceeds r; the edge is the one of
//     these n(h) at the place [Hop.Bounded] of n(h), the third draw, in the order of time; and it is picked if the fourth draw
//     is below ⌊2^(32-j/1024)⌋. So each pick has probabilities in proportion to 2^-(h+j/1024) over the edges that are left.
//
// Strategies other than uniform are for [Fanouts], [RelationFanouts] (of each relation) and [Excluding] with one of them.
// Other pickers choose by themselves from the edges that they see.
//
// Cost: a sort of each node's in-edges at the first batch, once for each graph, unless they are in order, with 4 bytes for
// each edge ([graphops.Graph.TimeOrder]); then, for Fanouts and RelationFanouts, two binary searches for each node and
// relation. Other pickers see, and get copies of, all edges in view.
type AsOf struct {
	// Window is how far a seed sees into the past, in the unit of the edges' times; 0 means without end.
	Window int64 `json:",omitempty"`
	// Strict hides the edges of the seed's own time, too.
	Strict bool `json:",omitempty"`
	// Strategy is TakeUniform, TakeRecent or TakeByAge; "" means TakeUniform.
	Strategy string `json:",omitempty"`
	// HalfLife is that of TakeByAge, in the unit of the edges' times: an edge that is older by it is half as probable.
	HalfLife int64 `json:",omitempty"`
	// NodeTimes are times of the nodes: before its time, a node does not exist. Nil means that nodes have no times. They take 12
	// bytes for each edge if some edge's time is before that of one of its ends, or edges have no times. See [KnownTimes].
	NodeTimes []int64 `json:"-"`
}

// maxHalfLife keeps the 1024ths of a half-life in 64 bits.
const maxHalfLife = 1 << 53

// IsZero reports whether a has no options.
func (a *AsOf) IsZero() bool {
	return a.Window == 0 && !a.Strict && a.Strategy == "" && a.HalfLife == 0 && a.NodeTimes == nil
}

// Same reports whether two values are certain to stay equal, for which their NodeTimes must be the same memory.
func (a *AsOf) Same(b *AsOf) bool {
	same := len(a.NodeTimes) == len(b.NodeTimes) && (len(a.NodeTimes) == 0 || &a.NodeTimes[0] == &b.NodeTimes[0])
	return same && a.Window == b.Window && a.Strict == b.Strict && a.Strategy == b.Strategy && a.HalfLife == b.HalfLife
}

// Check returns an error for options that no sampler takes.
func (a *AsOf) Check() error {
	switch a.Strategy {
	case "", TakeUniform, TakeRecent, TakeByAge:
	default:
		return fmt.Errorf("sample: the strategy of seeds with times is %q; it is %q, %q or %q", a.Strategy, TakeUniform, TakeRecent, TakeByAge)
	}
	switch {
	case a.Window < 0:
		return fmt.Errorf("sample: the window of seeds with times is %d; it is a length of time, or 0 for no limit", a.Window)
	case a.Strategy == TakeByAge && (a.HalfLife < 1 || a.HalfLife > maxHalfLife):
		return fmt.Errorf("sample: the half-life of the strategy %q is %d; set it to a length of time from 1 to 2^53, in the unit of the edges' times", TakeByAge, a.HalfLife)
	case a.Strategy != TakeByAge && a.HalfLife != 0:
		return fmt.Errorf("sample: there is a half-life, %d, but only the strategy %q weighs edges by their age; choose it, or leave the half-life out", a.HalfLife, TakeByAge)
	}
	return nil
}

// check returns an error for options that a sampler with this picker does not take.
func (a *AsOf) check(c *Config) error {
	if a.IsZero() {
		return nil
	}
	if !c.Disjoint {
		return errors.New("sample: there are options of seeds with times (AsOf), which need a tree of their own each; set Disjoint")
	}
	if err := a.Check(); err != nil || a.strategy() == takeUniform {
		return err
	}
	p := c.Picker
	if x, ok := p.(*Excluding); ok {
		p = x.Picker
	}
	switch q := p.(type) {
	case Fanouts:
		return nil
	case *RelationFanouts:
		if q.Labor == nil {
			return nil
		}
	}
	return fmt.Errorf("sample: the strategy %q takes edges by their times, and a %T takes them by a rule of its own; leave the strategy out, or take sample.Fanouts", a.Strategy, p)
}

// strategy is a strategy as a number.
type strategy uint8

const (
	takeUniform strategy = iota
	takeRecent
	takeByAge
)

func (a *AsOf) strategy() strategy {
	switch a.Strategy {
	case TakeRecent:
		return takeRecent
	case TakeByAge:
		return takeByAge
	}
	return takeUniform
}

// strategyName is the inverse of strategy: a name that Check refuses for a number that no strategy has.
func strategyName(s uint32) string {
	switch s {
	case uint32(takeUniform):
		return ""
	case uint32(takeRecent):
		return TakeRecent
	case uint32(takeByAge):
		return TakeByAge
	}
	return fmt.Sprintf("number %d", s)
}

// span returns the first and the last time that a seed of time t sees; none if the first is later.
func (a *AsOf) span(t int64) (from, until int64) {
	from, until = math.MinInt64, t
	if a.Window > 0 && t >= math.MinInt64+a.Window {
		from = t - a.Window
	}
	if a.Strict {
		if t == math.MinInt64 {
			return 1, 0
		}
		until--
	}
	return from, until
}

// KnownTimes returns the times from which the edges of a graph are known, by CSC position, if its nodes have these times:
// the latest of the edge's own, if it has one, and those of its two ends. late is the number of edges that have a time, and
// an end that is later. If that is 0 and edges have times, known is the graph's own memory. See [AsOf].
func KnownTimes(g *graphops.Graph, nodeTimes []int64, threads int) (known []int64, late int64, err error) {
	n := g.NumNodes()
	if len(nodeTimes) != n {
		return nil, 0, fmt.Errorf("sample: there are times of %d nodes, but the graph has %d nodes; give one for each", len(nodeTimes), n)
	}
	known = make([]int64, g.NumEdges())
	lates := make([]int64, parallel.Chunks(n, knownGrain))
	parallel.For(threads, n, knownGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				ends := max(nodeTimes[v], nodeTimes[g.Indices[e]])
				if known[e] = ends; g.EdgeTimes != nil {
					if known[e] = max(ends, g.EdgeTimes[e]); ends > g.EdgeTimes[e] {
						lates[lo/knownGrain]++
					}
				}
			}
		}
	})
	for _, n := range lates {
		late += n
	}
	if late == 0 && g.EdgeTimes != nil {
		known = g.EdgeTimes
	}
	return known, late, nil
}

const knownGrain = 1 << 10

// timeline is what a sampler keeps of a graph for seeds with times.
type timeline struct {
	known  []int64 // by CSC position; nil until a batch needs it
	order  []int32 // see [graphops.Graph.TimeOrder]; nil: in order
	byType bool    // types ascend first
}

// wantsTypes reports whether a picker takes edges by relation from those of one relation alone, without seeing the others.
func wantsTypes(p Picker) bool {
	if x, ok := p.(*Excluding); ok {
		p = x.Picker
	}
	r, ok := p.(*RelationFanouts)
	return ok && r.Labor == nil
}

// make sets the timeline of a graph, unless it is set.
func (t *timeline) make(g *graphops.Graph, c *Config) (err error) {
	if t.known != nil {
		return nil
	}
	byType, known := wantsTypes(c.Picker) && g.EdgeTypes != nil, g.EdgeTimes
	if nodes := c.AsOf.NodeTimes; nodes != nil {
		if known, _, err = KnownTimes(g, nodes, c.Threads); err != nil {
			return err
		}
	}
	switch {
	case g.EdgeTimes != nil && (len(known) == 0 || &known[0] == &g.EdgeTimes[0]):
		t.order = g.TimeOrder(byType)
	case byType:
		t.order = graphops.OrderByTime(g.Indptr, known, g.EdgeTypes, c.Threads)
	default:
		t.order = graphops.OrderByTime(g.Indptr, known, nil, c.Threads)
	}
	t.known, t.byType = known, byType
	return nil
}

// touch reads something of the in-edges of each node. The reads are independent of each other, so that the processor waits for
// many of them at once, which a search does not let it do.
func (t *timeline) touch(rows []inEdges) (sum int64) {
	for _, r := range rows {
		if r.n > 0 {
			sum += t.known[r.at] + t.known[r.at+int64(r.n/2)]
			if t.order != nil {
				sum += int64(t.order[r.at+int64(r.n/2)])
			}
		}
	}
	return sum
}

// row is the in-edges of a node.
func (t *timeline) row(of inEdges) rowInTime {
	r := rowInTime{known: t.known[of.at:][:of.n:of.n], byType: t.byType}
	if t.order != nil {
		r.order = t.order[of.at:][:of.n:of.n]
	}
	return r
}

// rowInTime is the in-edges of a node for a seed with a time.
type rowInTime struct {
	known  []int64 // by place among the in-edges
	order  []int32 // places by time; nil: they are in order
	byType bool    // types ascend first in the order
}

// at is the time of the edge at place i of the order.
func (r *rowInTime) at(i int) int64 {
	if r.order != nil {
		i = int(r.order[i])
	}
	return r.known[i]
}

// after returns the first place of [lo, hi) of the order with a time above t, hi if there is none.
func (r *rowInTime) after(lo, hi int, t int64) int {
	if r.order == nil {
		for lo < hi {
			if mid := int(uint(lo+hi) / 2); r.known[mid] > t {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		return lo
	}
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); r.known[r.order[mid]] > t {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// counted is the largest number of in-edges whose times are counted, in the order of memory, instead of searched.
const counted = 48

// seen returns the places [lo, hi) of the part [lo, hi) of the order that a seed sees.
func (r *rowInTime) seen(lo, hi int, of *root) (int, int) {
	if n := len(r.known); hi-lo == n && n <= counted { // the order does not matter for the number of earlier edges
		earlier, seen := 0, 0
		for _, t := range r.known {
			before, until := 0, 0
			if t < of.from {
				before = 1
			}
			if t <= of.until {
				until = 1
			}
			earlier, seen = earlier+before, seen+until
		}
		return min(earlier, seen), seen
	}
	to := r.after(lo, hi, of.until)
	if of.from > math.MinInt64 {
		lo = r.after(lo, to, of.from-1)
	}
	return lo, to
}

// endOfType returns the end of the relation that begins at a place of an order by type.
func (r *rowInTime) endOfType(types []uint16, lo int) int {
	typ, hi := types[r.place(lo)], len(r.known)
	if types[r.place(hi-1)] == typ {
		return hi
	}
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); types[r.place(mid)] > typ {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func (r *rowInTime) place(i int) int {
	if r.order != nil {
		return int(r.order[i])
	}
	return i
}

// pickAsOf asks a picker about those in-edges of a node that the seed of a tree sees. hidden is the number of the others.
func (h *Hop) pickAsOf(p Picker, r *root, v int32, nbrs, out []int32) (_ []int32, hidden int) {
	n := len(nbrs)
	if x, ok := p.(*Excluding); ok && len(x.Of(h.epoch, h.step).into(v)) == 0 {
		p = x.Picker
	}
	if !h.row.byType {
		k, own := 0, true
		switch q := p.(type) {
		case Fanouts:
			k = q[h.Index]
		case uniformOf:
			k = int(q)
		default:
			own = false
		}
		if own {
			lo, hi := h.row.seen(0, n, r)
			return h.take(lo, hi, k, out), n - (hi - lo)
		}
	} else if q, ok := p.(*RelationFanouts); ok && q.Labor == nil {
		hidden = n
		for at := 0; at < n; {
			end := h.row.endOfType(h.types, at)
			lo, hi := h.row.seen(at, end, r)
			hidden -= hi - lo
			out = h.take(lo, hi, q.fanout(h.types[h.row.place(at)], h.Index), out)
			at = end
		}
		return out, hidden
	}
	w := &h.asOf
	w.left = w.left[:0]
	if !h.row.byType {
		lo, hi := h.row.seen(0, n, r)
		if h.row.order == nil && hi-lo == n {
			return p.Pick(h, v, nbrs, out), 0
		}
		for i := lo; i < hi; i++ {
			w.left = append(w.left, int32(h.row.place(i)))
		}
	} else {
		keys := w.keys[:0]
		for at := 0; at < n; {
			end := h.row.endOfType(h.types, at)
			for lo, hi := h.row.seen(at, end, r); lo < hi; lo++ {
				i := h.row.place(lo)
				keys = append(keys, placeInTime{h.row.known[i], int32(i)})
			}
			at = end
		}
		sortPlaces(keys)
		for _, k := range keys {
			w.left = append(w.left, k.place)
		}
		w.keys = keys
	}
	hidden = n - len(w.left)
	if len(w.left) == 0 {
		return out, hidden
	}
	return w.through(h, p, v, nbrs, out), hidden
}

// choose appends k of the positions 0 to n-1 of the in-edges that a picker sees, by the strategy of seeds with times, or
// uniformly.
func (h *Hop) choose(n, k int, out []int32) []int32 {
	if h.strategy == takeUniform {
		return h.Uniform(n, k, out)
	}
	return h.take(0, n, k, out)
}

// take appends the places of k of the edges at [lo, hi) of the order, by the strategy.
func (h *Hop) take(lo, hi, k int, out []int32) []int32 {
	m, first := hi-lo, len(out)
	switch {
	case k < 0 || k >= m:
		for i := lo; i < hi; i++ {
			out = append(out, int32(i))
		}
	case h.strategy == takeRecent:
		for i := hi - k; i < hi; i++ {
			out = append(out, int32(i))
		}
	case h.strategy == takeByAge:
		out = h.byAge(lo, hi, k, out)
	default:
		out = h.Uniform(m, k, out)
		if lo > 0 {
			for i := range out[first:] {
				out[first+i] += int32(lo)
			}
		}
	}
	if order := h.row.order; order != nil {
		for i, at := range out[first:] {
			out[first+i] = order[at]
		}
	}
	return out
}

// halfLives is the number of half-lives from which on edges are left out by [TakeByAge].
const halfLives = 31

// parts of a half-life: partWeights[j] is ⌊2^(32-j/1024)⌋.
const halfLifeParts = 1024

var partWeights = func() (w [halfLifeParts]uint64) {
	for j := range w {
		w[j] = uint64(math.Exp2(32 - float64(j)/halfLifeParts))
	}
	return w
}()

// byAge is take by [TakeByAge], in places of the order; k is less than hi-lo.
func (h *Hop) byAge(lo, hi, k int, out []int32) []int32 {
	r, life := &h.row, uint64(h.halfLife)
	latest := uint64(r.at(hi - 1))
	var begin [halfLives]int   // of the edges of each half-life, whose end is the begin of the next later one
	var left [halfLives]uint64 // edges that are not picked
	bands, end, sum := 0, hi, uint64(0)
	for ; bands < halfLives && end > lo; bands++ {
		oldest := life*uint64(bands+1) - 1 // an age
		from := lo
		if span := latest - uint64(r.at(lo)); span > oldest {
			from = r.after(lo, end, int64(latest-oldest-1))
		}
		begin[bands], left[bands] = from, uint64(end-from)
		sum += left[bands] << (halfLives - 1 - bands)
		end = from
	}
	if hi-end <= k {
		for i := hi - k; i < hi; i++ {
			out = append(out, int32(i))
		}
		return out
	}
	first := len(out)
	for len(out) < first+k {
		u := uint64(h.Next()) << 32
		at, _ := bits.Mul64(u|uint64(h.Next()), sum)
		b := 0
		for w := left[0] << (halfLives - 1); at >= w; w = left[b] << (halfLives - 1 - b) {
			at -= w
			b++
		}
		place := int32(begin[b] + h.Bounded(int(left[b])))
		i := first
		for ; i < len(out) && out[i] <= place; i++ { // the picks of this half-life are left out
			if int(out[i]) >= begin[b] {
				place++
			}
		}
		age := latest - uint64(r.at(int(place))) - life*uint64(b)
		if uint64(h.Next()) >= partWeights[age*halfLifeParts/life] {
			continue
		}
		out = append(out, 0)
		copy(out[i+1:], out[i:])
		out[i] = place
		left[b]--
		sum -= 1 << (halfLives - 1 - b)
	}
	return out
}
