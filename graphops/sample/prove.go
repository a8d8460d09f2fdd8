package sample

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// LeakKind is the way in which a batch of seeds with times is not what it must be.
type LeakKind string

// The kinds of leaks, by which a [Prover] names them.
const (
	LeakLater     = LeakKind("later edge")               // the edge's time is after the seed's
	LeakEqual     = LeakKind("edge of the same time")    // the edge has the seed's time, and AsOf.Strict is set
	LeakWindow    = LeakKind("edge outside the window")  // the edge is before the window
	LeakNode      = LeakKind("later node")               // an end of the edge has a time after the seed's
	LeakReversed  = LeakKind("reversed edge")            // the graph has the edge from destination to source alone
	LeakUnknown   = LeakKind("edge that does not exist") // the graph has no such edge at this position
	LeakDuplicate = LeakKind("edge taken twice")
	LeakExcluded  = LeakKind("excluded edge")              // see [Excluding]
	LeakTree      = LeakKind("edge of another tree")       // trees of two seeds share a row
	LeakOrder     = LeakKind("edges out of order")         // other edges are hidden than the times say, or the picks are not the latest
	LeakClock     = LeakKind("times in another unit")      // the seeds' times and the edges' are in different units
	LeakTimes     = LeakKind("other time of an edge")      // the batch has another time for the edge than the graph
	LeakSeeds     = LeakKind("other seeds than asked for") // the batch's seeds or their times are others
)

// Leak is what a [Prover] found in a batch. An edge is known from Time on.
type Leak struct {
	Kind         LeakKind
	Epoch, Step  int
	Seed         int32
	SeedTime     int64
	Hop          int   // -1 if it is not about a hop
	From, To     int32 // the edge
	Position     int64 // of the edge, by CSC; -1 if it is not about an edge
	Time, Before int64 // the edge's, and that of the window's begin
	What         string
}

func (l *Leak) Error() string {
	where := fmt.Sprintf("sample: proof of epoch %d, step %d: %s", l.Epoch, l.Step, l.Kind)
	if l.Hop < 0 {
		return where + ": " + l.What
	}
	where += fmt.Sprintf(": seed %d at time %d, hop %d", l.Seed, l.SeedTime, l.Hop)
	if l.Position < 0 {
		return where + ": " + l.What
	}
	return where + fmt.Sprintf(", edge %d→%d at position %d, of time %d: %s", l.From, l.To, l.Position, l.Time, l.What)
}

// Proof is what a [Prover] has checked.
type Proof struct {
	Batches, Seeds int64
	// Edges is the number of edges, at all hops, that the batches have: each was compared with the graph's arrays, but for those
	// counted by Elsewhere, whose rows are not here: of these, the times that their owners sent were compared.
	Edges, Elsewhere int64
	// Hidden is the number of in-edges, at all hops, that the seeds did not see because of their times.
	Hidden int64
}

// Add adds what another prover has checked.
func (p *Proof) Add(q Proof) {
	p.Batches += q.Batches
	p.Seeds += q.Seeds
	p.Edges += q.Edges
	p.Elsewhere += q.Elsewhere
	p.Hidden += q.Hidden
}

func (p Proof) String() string {
	s := fmt.Sprintf("no seed saw its future: %d batches with %d seeds and %d edges were checked, from which %d later or older edges were hidden", p.Batches, p.Seeds, p.Edges, p.Hidden)
	if p.Elsewhere > 0 {
		s += fmt.Sprintf("; of %d edges, only the times were checked, because their rows are elsewhere", p.Elsewhere)
	}
	return s
}

// Prover checks that batches of seeds with times have nothing of the seeds' future. It shares no code with the samplers: it
// compares each edge with the rows of the graph, whose order it does not use. It checks that
//
//   - the seeds and their times are those that were asked for, in trees that have no row in common;
//   - each edge is in the graph, at its position and with its time, from its source to its destination, and taken once;
//   - each edge is known at the seed's time, or before it, and inside the window: see [AsOf];
//   - as many edges of each node were hidden as the times of its in-edges say;
//   - with the strategy recent, no edge that was seen is later than one that was taken;
//   - no edge is one that [Excluding] takes out;
//   - the seeds' times and those of edges are not in different units, as seconds and milliseconds are.
//
// Prove may be called by several goroutines at the same time, and uses several itself. Cost: one pass over all in-edges of each node at each hop.
type Prover struct {
	rows      Rows
	asOf      AsOf
	excluding *Excluding
	byType    bool
	once      bool // edges are taken at most once
	threads   int
	first     int64 // the times of the edges are between these
	last      int64
	proof     Proof
}

// NewProver returns a prover of batches that a sampler of this configuration makes of the graph with these rows. Rows that
// are not here, of a divided graph, are checked as far as the batch has their times.
func NewProver(rows Rows, c Config) (*Prover, error) {
	p := &Prover{rows: rows, asOf: c.AsOf, threads: c.Threads, byType: wantsTypes(c.Picker), first: math.MaxInt64, last: math.MinInt64}
	if err := p.asOf.Check(); err != nil {
		return nil, err
	}
	if !rows.Edges().Times && p.asOf.NodeTimes == nil {
		return nil, errors.New("sample: neither edges nor nodes have times, so there is nothing to prove; leave the proof out")
	}
	picker := c.Picker
	if x, ok := picker.(*Excluding); ok {
		p.excluding, picker = x, x.Picker
	}
	_, known := SpecOf(picker)
	p.once = known || p.byType
	for _, x := range rows.Arrays() {
		if x.Edges == nil {
			continue
		}
		for _, t := range x.Edges.Times {
			p.first, p.last = min(p.first, t), max(p.last, t)
		}
	}
	return p, nil
}

// ProverOf returns a prover for samplers of a whole graph. As they do, it leaves out edges of weight 0.
func ProverOf(g *graphops.Graph, c Config) (*Prover, error) {
	if c.Weights != nil {
		g = g.WithEdgeWeights(c.Weights)
	}
	g, _ = g.WithoutZeroWeights()
	return NewProver(RowsOf(g), c)
}

// Proof returns what was checked so far.
func (p *Prover) Proof() Proof { return p.proof }

// Check is Prove, and counts the batch. It is for one goroutine at a time.
func (p *Prover) Check(b *Batch, seeds Seeds) error {
	done, err := p.Prove(b, seeds)
	if err == nil {
		p.proof.Add(done)
	}
	return err
}

// Prove checks a batch that was sampled for the given seeds, and returns what it has. The error is a [*Leak], or that of
// seeds without times.
func (p *Prover) Prove(b *Batch, seeds Seeds) (Proof, error) {
	if seeds.Times == nil && seeds.Len() > 0 {
		return Proof{}, errors.New("sample: the seeds have no times, so nothing is hidden from them, and there is nothing to prove; give each a time, or leave the proof out")
	}
	if err := p.checkSeeds(b, seeds); err != nil {
		return Proof{}, err
	}
	done := Proof{Batches: 1, Seeds: int64(seeds.Len())}
	for hop := range b.Blocks {
		k := b.Blocks[len(b.Blocks)-1-hop]
		k.EdgePos() // made by the first call, which several goroutines must not be
		k.Times()
		var mu sync.Mutex
		var leak *Leak
		var at int
		parallel.For(p.threads, k.NumDst, proveGrain, func(lo, hi int) {
			var part Proof
			picked := map[int64]bool{}
			for d := lo; d < hi; d++ {
				if l := p.checkRow(b, k, hop, d, picked, &part); l != nil {
					mu.Lock()
					if leak == nil || d < at {
						leak, at = l, d
					}
					mu.Unlock()
					return
				}
			}
			mu.Lock()
			done.Add(part)
			mu.Unlock()
		})
		if leak != nil {
			return Proof{}, leak
		}
	}
	return done, nil
}

const proveGrain = 64

// checkSeeds checks the seeds, their clock and the trees.
func (p *Prover) checkSeeds(b *Batch, seeds Seeds) error {
	leak := func(kind LeakKind, what string, args ...any) error {
		return &Leak{Kind: kind, Epoch: b.Epoch, Step: b.Step, Hop: -1, Position: -1, What: fmt.Sprintf(what, args...)}
	}
	if !seeds.Equal(Seeds{b.Seeds, b.Times}) {
		for i := range seeds.IDs {
			if i < len(b.Seeds) && i < len(b.Times) && (seeds.IDs[i] != b.Seeds[i] || i < len(seeds.Times) && seeds.Times[i] != b.Times[i]) {
				return leak(LeakSeeds, "seed %d is node %d at time %d, and was node %d at time %d", i, b.Seeds[i], b.Times[i], seeds.IDs[i], seeds.Times[i])
			}
		}
		return leak(LeakSeeds, "the batch has %d seeds and %d times, and was asked for %d and %d", len(b.Seeds), len(b.Times), len(seeds.IDs), len(seeds.Times))
	}
	if first, last := firstAndLast(seeds.Times); len(seeds.Times) > 0 && p.first <= p.last && first > 0 && p.first > 0 {
		const much = 500 // units of time differ by 1000
		switch {
		case first >= 1e6 && first/much > p.last:
			return leak(LeakClock, "the seeds' times begin at %d, and the last edge is of time %d: seeds in milliseconds and edges in seconds look so; give both in one unit", first, p.last)
		case p.first >= 1e6 && p.first/much > last:
			return leak(LeakClock, "the seeds' times end at %d, and the first edge is of time %d: seeds in seconds and edges in milliseconds look so; give both in one unit", last, p.first)
		}
	}
	ids := b.InputIDs()
	if len(b.Trees) != len(ids) || len(ids) < len(b.Seeds) {
		return leak(LeakTree, "there are %d rows of %d seeds, and the trees of %d rows", len(ids), len(b.Seeds), len(b.Trees))
	}
	type row struct{ tree, node int32 }
	seen := make(map[row]int, len(ids))
	for i, v := range ids {
		at := row{b.Trees[i], v}
		if i < len(b.Seeds) && at != (row{int32(i), b.Seeds[i]}) {
			return leak(LeakTree, "row %d is node %d of tree %d, and seed %d is node %d", i, v, at.tree, i, b.Seeds[i])
		}
		if other, twice := seen[at]; twice || uint(at.tree) >= uint(len(b.Seeds)) {
			return leak(LeakTree, "node %d of tree %d is in row %d and in row %d, of %d trees", v, at.tree, other, i, len(b.Seeds))
		}
		seen[at] = i
	}
	return nil
}

// firstAndLast returns the first and the last of some times; the first is later if there are none.
func firstAndLast(times []int64) (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for _, t := range times {
		first, last = min(first, t), max(last, t)
	}
	return first, last
}

// known is the time from which an edge is known.
func (p *Prover) known(times []int64, place int, src, dst int32) int64 {
	t := int64(math.MinInt64)
	if times != nil {
		t = times[place]
	}
	if n := p.asOf.NodeTimes; n != nil {
		t = max(t, n[src], n[dst])
	}
	return t
}

// sees reports whether a seed of time at sees an edge that is known from t on, and otherwise what it would be.
func (p *Prover) sees(at, t int64) (LeakKind, bool) {
	switch {
	case t > at:
		return LeakLater, false
	case t == at && p.asOf.Strict:
		return LeakEqual, false
	case p.asOf.Window > 0 && uint64(at)-uint64(t) > uint64(p.asOf.Window):
		return LeakWindow, false
	}
	return "", true
}

// checkRow checks the edges of a destination, and counts them. picked is empty memory, before and after.
func (p *Prover) checkRow(b *Batch, k *graphops.Block, hop, d int, picked map[int64]bool, count *Proof) *Leak {
	indptr, indices, positions, own := k.Indptr(), k.Indices(), k.EdgePos(), k.Times()
	v, tree := k.DstID(d), b.Trees[d]
	at := b.Times[tree]
	leak := Leak{Epoch: b.Epoch, Step: b.Step, Seed: b.Seeds[tree], SeedTime: at, Hop: hop, To: v, Position: -1}
	row, here := p.rows.Row(v)
	times := row.Times()
	source := func(place int) int32 {
		if u := row.Sources[place]; row.IDs == nil {
			return u
		} else {
			return row.IDs[u]
		}
	}
	var gone *EdgeSet
	if p.excluding != nil {
		gone = p.excluding.Of(b.Epoch, b.Step)
	}
	types := row.Types()
	clear(picked)
	for e := indptr[d]; e < indptr[d+1]; e++ {
		i := e - indptr[0]
		src, pos := int(indices[e]), positions[i]
		u := k.SrcID(src)
		leak.From, leak.Position = u, pos
		fail := func(kind LeakKind, what string, args ...any) *Leak {
			leak.Kind, leak.What = kind, fmt.Sprintf(what, args...)
			return &leak
		}
		if src >= len(b.Trees) || b.Trees[src] != tree {
			return fail(LeakTree, "its source is a row of another seed's tree")
		}
		count.Edges++
		switch {
		case !here:
			count.Elsewhere++
			if own != nil || p.asOf.NodeTimes != nil {
				leak.Time = p.known(own, int(i), u, v)
			}
		default:
			place := pos - row.First
			if place < 0 || place >= int64(len(row.Sources)) || source(int(place)) != u {
				if own != nil {
					leak.Time = own[i]
				}
				if p.has(u, v) {
					return fail(LeakReversed, "the graph has this edge the other way alone at that position; messages flow from source to destination")
				}
				return fail(LeakUnknown, "node %d has no such in-edge at this position", v)
			}
			leak.Time = p.known(times, int(place), u, v)
			if gone != nil && (types == nil && gone.Has(u, v) || types != nil && gone.HasOf(u, v, types[place])) {
				return fail(LeakExcluded, "it is one of the edges that this step excludes")
			}
		}
		if picked[pos] && p.once {
			return fail(LeakDuplicate, "it is an edge of the node twice")
		}
		picked[pos] = true
		if kind, ok := p.sees(at, leak.Time); !ok {
			switch {
			case kind == LeakWindow:
				return fail(kind, "the window of %d before the seed begins at %d", p.asOf.Window, at-p.asOf.Window)
			case kind == LeakLater && here && times != nil && times[pos-row.First] <= at:
				leak.Time = times[pos-row.First]
				return fail(LeakNode, "an end of the edge exists only from time %d on", p.known(times, int(pos-row.First), u, v))
			case kind == LeakEqual:
				return fail(kind, "only edges before the seed's time may be seen")
			}
			return fail(kind, "it is later than the seed")
		}
		if here && own != nil && times != nil && own[i] != times[pos-row.First] {
			return fail(LeakTimes, "the batch says %d", own[i])
		}
	}
	if !here {
		if hop < len(b.hidden) && d < len(b.hidden[hop]) {
			count.Hidden += int64(b.hidden[hop][d])
		}
		return nil
	}
	// The in-edges that are not taken.
	hidden := int64(0)
	type last struct {
		time int64
		pos  int64
	}
	var earliest map[uint16]last // of the edges taken, by relation
	recent := p.asOf.strategy() == takeRecent
	relation := func(place int) uint16 {
		if p.byType && types != nil {
			return types[place]
		}
		return 0
	}
	after := func(a, b last) bool { return a.time > b.time || a.time == b.time && a.pos > b.pos }
	if recent && len(picked) > 0 {
		earliest = map[uint16]last{}
		for place := range row.Sources {
			if pos := row.First + int64(place); picked[pos] {
				is := last{p.known(times, place, source(place), v), pos}
				if was, ok := earliest[relation(place)]; !ok || after(was, is) {
					earliest[relation(place)] = is
				}
			}
		}
	}
	for place := range row.Sources {
		u, pos := source(place), row.First+int64(place)
		t := p.known(times, place, u, v)
		if _, ok := p.sees(at, t); !ok {
			hidden++
			continue
		}
		if first, ok := earliest[relation(place)]; ok && !picked[pos] && after(last{t, pos}, first) && !(gone != nil && (types == nil && gone.Has(u, v) || types != nil && gone.HasOf(u, v, types[place]))) {
			leak.Kind, leak.From, leak.Position, leak.Time = LeakOrder, u, pos, t
			leak.What = fmt.Sprintf("it was not taken, but one of time %d was, which is not among the most recent", first.time)
			return &leak
		}
	}
	count.Hidden += hidden
	if hop < len(b.hidden) && d < len(b.hidden[hop]) && int64(b.hidden[hop][d]) != hidden {
		leak.Kind, leak.Position = LeakOrder, -1
		leak.What = fmt.Sprintf("the sampler hid %d in-edges of node %d, and by the edges' times %d are hidden; its order of edges by time is wrong", b.hidden[hop][d], v, hidden)
		return &leak
	}
	return nil
}

// has reports whether the graph has an edge from v to u, the reverse of u→v.
func (p *Prover) has(u, v int32) bool {
	row, ok := p.rows.Row(u)
	if !ok {
		return false
	}
	for place, w := range row.Sources {
		if row.IDs != nil {
			w = row.IDs[row.Sources[place]]
		}
		if w == v {
			return true
		}
	}
	return false
}
