package sample

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// Answerer answers the requests of [Divided] samplers from the rows that are here: those of a whole
// graph ([RowsOf]) or of some of its parts. An answer holds what a [Sampler] over the whole graph
// picks for the same nodes.
//
// An Answerer keeps buffers, so it is for one goroutine at a time; it uses several inside.
type Answerer struct {
	rows  Rows
	shape graphops.EdgeShape // of rows
	o     AnswererOptions
	name  string // of o.Picker

	q       *HopRequest
	r       *HopReply
	h       Hop
	k       int // the fanout, MaxInt for all; unused if the picker is asked
	uniform bool
	picker  Picker
	trees   trees      // of the request
	arrays  []RowArray // of rows
	orders  [][]int32  // by array, of a request of seeds with times: see RowArray.TimeOrder
	sorts   bool       // rows of the request are sorted one by one
	byType  bool       // rows are ordered by types first
	found   []Place    // by node of the request
	ends    []int64
	chunks  []answerChunk
	workers []*answerScratch
	next    atomic.Int64
	asker   Sampler // checks picks and names the picker in errors
}

// AnswererOptions configure an [Answerer]. The zero value answers for [Fanouts] and [Weighted], on
// all threads, without a limit.
type AnswererOptions struct {
	// Picker answers requests for pickers of its type; nil refuses them.
	Picker Picker
	// Threads is the number of goroutines; 0 means GOMAXPROCS. No answer depends on it.
	Threads int
	// MaxEdges is the largest number of edges of an answer; 0 means that there is no limit. A request
	// for more is a [*LimitError], and is refused before memory is allocated.
	MaxEdges int
	// NodeTimes are the times of all nodes, for requests of seeds that see nodes from their times on (AsOf.NodeTimes). A request
	// then reads, and sorts, all in-edges of a node.
	NodeTimes []int64
}

// LimitError is the refusal of a request whose answer would be larger than an [Answerer] may give.
type LimitError struct{ Edges, Limit int64 }

func (e *LimitError) Error() string {
	return fmt.Sprintf("sample: a request asks for up to %d edges, but an answer has at most %d; ask for fewer nodes at once, or take smaller fanouts", e.Edges, e.Limit)
}

type answerChunk struct {
	edges int64
	picks []int32
	err   error
}

type answerScratch struct {
	hop   Hop
	lanes lanes
	nbrs  []int32
	known []int64
	out   []int32
	rows  [grain]inEdges
	pos   []int64
}

// NewAnswerer returns an Answerer.
func NewAnswerer(rows Rows, o AnswererOptions) *Answerer {
	a := &Answerer{rows: rows, arrays: rows.Arrays(), shape: rows.Edges(), o: o}
	if _, ok := SpecOf(o.Picker); o.Picker != nil && !ok {
		a.name = pickerName(o.Picker)
	}
	return a
}

// Reset makes the answerer answer from other rows. It keeps its buffers.
func (a *Answerer) Reset(rows Rows) { a.rows, a.arrays, a.shape = rows, rows.Arrays(), rows.Edges() }

// pickerName is the value of HopRequest.Picker.
func pickerName(p Picker) string {
	if spec, ok := SpecOf(p); ok {
		return spec.name()
	}
	return fmt.Sprintf("%T", p)
}

// Answer sets r to the answer to q, in the memory of r's slices. The error names the node that is
// not here, or is a [*PickError] or a [*LimitError].
func (a *Answerer) Answer(q *HopRequest, r *HopReply) error {
	if err := q.check(); err != nil {
		return err
	}
	a.q, a.r, a.k, a.picker, a.uniform = q, r, q.Fanout, nil, false
	if a.k < 0 {
		a.k = math.MaxInt
	}
	switch q.Picker {
	case UniformPicker:
		if a.uniform = q.Seeds.Len() == 0; !a.uniform {
			a.picker, a.asker.name = uniformOf(q.Fanout), "sample.Fanouts"
		}
	case WeightedPicker:
		if !a.shape.Weighted {
			return errors.New("sample: a request picks by edge weights, but the graph here has none; take sample.Fanouts")
		}
		a.picker, a.asker.name = weightedOf(q.Fanout), "sample.Weighted"
	case a.name:
		a.picker, a.k, a.asker.name = a.o.Picker, math.MaxInt, a.name
	default:
		picked, ok := laborNamed(q.Picker, q.Fanout)
		if !ok {
			return fmt.Errorf("sample: a request is for the picker %s, which is not here; the pickers here are those of sample.Fanouts, sample.Weighted and sample.Labor%s", q.Picker, also(a.name))
		}
		a.picker, a.asker.name = picked, "sample.Labor"
	}
	a.h.enter(&Hop{Index: q.Hop, seed: q.Seed, epoch: q.Epoch, step: q.Step, c3: philox.C3(philox.Purpose(q.Purpose), q.Hop, q.Epoch)})
	a.trees.plant(&Config{Disjoint: q.Seeds.Len() > 0, Seed: q.Seed, AsOf: q.AsOf}, q.Seeds)
	for i, tree := range q.Trees {
		if uint(tree) >= uint(len(a.trees.roots)) {
			return fmt.Errorf("sample: a request has node %d in tree %d, but it has the trees of %d seeds", q.Nodes[i], tree, len(a.trees.roots))
		}
	}
	r.Hidden = r.Hidden[:0:cap(r.Hidden)]
	if err := a.seeInTime(q); err != nil {
		return err
	}
	if a.trees.timed {
		r.Hidden = resize(r.Hidden, len(q.Nodes))
	} else {
		r.Hidden = nil
	}
	n := len(q.Nodes)
	a.found, a.ends = resize(a.found, n), resize(a.ends, n)
	r.Counts, r.First = resize(r.Counts, n), resize(r.First, n)
	chunks := parallel.Chunks(n, grain)
	for len(a.chunks) < chunks {
		a.chunks = append(a.chunks, answerChunk{})
	}
	if err := a.run(chunks, a.look); err != nil {
		return err
	}
	total := int64(0)
	for i := range chunks {
		total += a.chunks[i].edges
	}
	if limit := a.limit(); total > limit && (a.uniform || a.o.MaxEdges > 0) {
		return &LimitError{total, limit}
	}
	if !a.uniform {
		if err := a.run(chunks, a.pick); err != nil {
			return err
		}
		total = 0
		for i := range chunks {
			total += a.chunks[i].edges
		}
		if limit := a.limit(); total > limit { // with replacement, a node can take more edges than it has
			return &LimitError{total, limit}
		}
	}
	at := int64(0)
	for i := range chunks {
		n := a.chunks[i].edges
		a.chunks[i].edges = at // from here on, the place of its first edge
		at += n
	}
	r.Sources, r.Offsets = resize(r.Sources, int(total)), resize(r.Offsets, int(total))
	r.Edges.SetLen(a.shape, int(total))
	return a.run(chunks, a.write)
}

// seeInTime prepares the rows for a request of seeds with times.
func (a *Answerer) seeInTime(q *HopRequest) error {
	switch {
	case !a.trees.timed || len(q.Nodes) == 0: // the picker of no seeds is not set
		return nil
	case q.NodeTimes && a.o.NodeTimes == nil:
		return errors.New("sample: a request has seeds that see nodes from their times on, but the times of the nodes are not here; give them to the owners of the nodes (AnswererOptions.NodeTimes)")
	case !a.shape.Times && !q.NodeTimes:
		return errors.New("sample: a request has seeds with times, but the edges here have none")
	}
	a.h.strategy, a.h.halfLife = q.AsOf.strategy(), q.AsOf.HalfLife
	if err := q.AsOf.check(&Config{Disjoint: true, Picker: fanoutsLike(a.picker)}); err != nil {
		return err
	}
	a.byType = wantsTypes(a.picker) && a.shape.Typed
	a.sorts, a.orders = q.NodeTimes, a.orders[:0]
	for i := range a.arrays {
		var order []int32
		if x := &a.arrays[i]; !a.sorts && x.Edges != nil {
			if x.TimeOrder == nil {
				a.sorts = true
				break
			}
			order = x.TimeOrder(a.byType)
		}
		a.orders = append(a.orders, order)
	}
	return nil
}

// fanoutsLike is a picker, or Fanouts for those that pick as these do.
func fanoutsLike(p Picker) Picker {
	if _, ok := p.(uniformOf); ok {
		return Fanouts{}
	}
	return p
}

// setRow sets the in-edges of a node by time. nbrs are its sources.
func (a *Answerer) setRow(w *answerScratch, v int32, p *Place, row *Row, nbrs []int32) error {
	known := row.Times()
	if a.q.NodeTimes {
		w.known = resize(w.known, len(nbrs))
		nodes := a.o.NodeTimes
		for i, u := range nbrs {
			if int(max(u, v)) >= len(nodes) {
				return fmt.Errorf("sample: node %d has no time: there are times of %d nodes here; give one for each", max(u, v), len(nodes))
			}
			if w.known[i] = max(nodes[u], nodes[v]); known != nil {
				w.known[i] = max(w.known[i], known[i])
			}
		}
		known = w.known
	}
	w.hop.row = rowInTime{known: known, byType: a.byType}
	switch {
	case a.sorts:
		types := []uint16(nil)
		if a.byType {
			types = row.Types()
		}
		w.hop.row.order = graphops.OrderByTime([]int64{0, int64(len(nbrs))}, known, types, 1)
	case a.orders[p.Array] != nil:
		w.hop.row.order = a.orders[p.Array][p.At:][:len(nbrs):len(nbrs)]
	}
	return nil
}

// limit is the largest number of edges of an answer. An encoded answer counts them in 32 bits.
func (a *Answerer) limit() int64 {
	if a.o.MaxEdges > 0 {
		return int64(a.o.MaxEdges)
	}
	return math.MaxUint32
}

func also(name string) string {
	if name == "" {
		return ""
	}
	return " and " + name
}

// uniformOf is [Fanouts] with one fanout at every hop.
type uniformOf int

func (k uniformOf) Pick(h *Hop, _ int32, nbrs, out []int32) []int32 {
	return h.choose(len(nbrs), int(k), out)
}

var _, _ Picker = weightedOf(0), uniformOf(0)

// weightedOf is [Weighted] with one fanout at every hop.
type weightedOf int

func (k weightedOf) Pick(h *Hop, v int32, nbrs, out []int32) []int32 {
	if int(k) < 0 || int(k) >= len(nbrs) {
		return h.Uniform(len(nbrs), int(k), out)
	}
	return h.Weighted(h.Weights(), int(k), out)
}

// run calls f for each chunk of nodes [lo, hi) and returns the error of the first chunk that has one.
func (a *Answerer) run(chunks int, f func(w *answerScratch, c *answerChunk, lo, hi int)) error {
	workers := min(parallel.Threads(a.o.Threads), chunks)
	for len(a.workers) < workers {
		a.workers = append(a.workers, &answerScratch{})
	}
	a.next.Store(0)
	n := len(a.q.Nodes)
	parallel.For(a.o.Threads, workers, 1, func(worker, _ int) {
		for {
			i := int(a.next.Add(1) - 1)
			if i >= chunks {
				return
			}
			f(a.workers[worker], &a.chunks[i], i*grain, min((i+1)*grain, n))
		}
	})
	for i := range chunks {
		if err := a.chunks[i].err; err != nil {
			return err
		}
	}
	return nil
}

// look finds the rows of a chunk's nodes, and counts the edges that they take at most.
func (a *Answerer) look(_ *answerScratch, c *answerChunk, lo, hi int) {
	c.edges, c.err = 0, nil
	if n := a.rows.Find(a.q.Nodes[lo:hi], a.found[lo:hi]); n < hi-lo {
		c.err = fmt.Errorf("sample: a request asks for the in-edges of node %d, which are not here", a.q.Nodes[lo+n])
		return
	}
	for i := lo; i < hi; i++ {
		p := &a.found[i]
		k := min(int(p.N), a.k)
		a.r.First[i], a.r.Counts[i] = p.First, int32(k)
		c.edges += int64(k)
	}
}

// pick asks the picker about a chunk's nodes.
func (a *Answerer) pick(w *answerScratch, c *answerChunk, lo, hi int) {
	c.picks, c.edges = c.picks[:0], 0
	v := int32(-1)
	w.hop.enter(&a.h)
	defer func() {
		if r := recover(); r != nil {
			c.err = a.asker.recovered(r, a.h.Index, v)
			w.hop.seen = nil // it may have bits set
		}
	}()
	for i := lo; i < hi; i++ {
		p := &a.found[i]
		row := a.arrays[p.Array].row(p)
		before := len(c.picks)
		if a.trees.timed {
			a.r.Hidden[i] = 0
		}
		if v = a.q.Nodes[i]; len(row.Sources) > 0 {
			nbrs := row.Sources
			if row.IDs != nil {
				w.nbrs = resize(w.nbrs, len(nbrs))
				if !row.translate(w.nbrs, nbrs) {
					c.err = damagedRow(v)
					return
				}
				nbrs = w.nbrs
			}
			w.hop.pos, w.hop.weights, w.hop.times, w.hop.types = row.First, row.Weights(), row.Times(), row.Types()
			tree := int32(0)
			if len(a.q.Trees) > 0 {
				tree = a.q.Trees[i]
			}
			if a.trees.timed {
				if c.err = a.setRow(w, v, p, &row, nbrs); c.err != nil {
					return
				}
			}
			out, hidden := w.hop.pickFor(a.picker, &a.trees, tree, v, nbrs, w.out[:0:cap(w.out)])
			if a.trees.timed {
				a.r.Hidden[i] = int32(hidden)
			}
			// Copying lets the picker return any slice, including one of its own.
			c.picks = append(c.picks, out...)
			if c.err = a.asker.sorted(a.h.Index, v, c.picks[before:], len(nbrs)); c.err != nil {
				return
			}
			if len(out) > cap(w.out) {
				w.out = make([]int32, 0, 2*len(out))
			}
		}
		a.r.Counts[i] = int32(len(c.picks) - before)
	}
	c.edges = int64(len(c.picks))
}

func damagedRow(v int32) error {
	return fmt.Errorf("sample: the part is damaged: an in-edge of node %d comes from a node that the part does not list; check the part's files", v)
}

// write writes the edges of a chunk's nodes.
func (a *Answerer) write(w *answerScratch, c *answerChunk, lo, hi int) {
	found, counts, total := a.found[lo:hi], a.r.Counts[lo:hi], 0
	for i := range found {
		w.rows[i] = inEdges{found[i].At, int(found[i].N)}
		total += int(counts[i])
	}
	offsets, sources := a.r.Offsets[c.edges:][:total], a.r.Sources[c.edges:][:total]
	w.pos = resize(w.pos, total)
	at := 0
	if a.uniform {
		w.lanes.draw(&a.h, a.k, a.q.Nodes[lo:hi], w.rows[:hi-lo], w.pos)
		for i := range found {
			to := at + int(counts[i])
			for ; at < to; at++ {
				offsets[at] = int32(w.pos[at] - found[i].At)
			}
		}
	} else {
		copy(offsets, c.picks)
		for i := range found {
			to := at + int(counts[i])
			for ; at < to; at++ {
				w.pos[at] = found[i].At + int64(offsets[at])
			}
		}
	}
	// Rows of one array are read together: the loops over their edges contain only independent random accesses.
	for i, from := 0, 0; i < len(found); {
		first, to := i, from
		for ; i < len(found) && found[i].Array == found[first].Array; i++ {
			to += int(counts[i])
		}
		x := &a.arrays[found[first].Array]
		if !x.read(sources[from:to], w.pos[from:to]) {
			c.err = a.damaged(lo+first, lo+i)
			return
		}
		from = to
	}
	if a.shape.Bytes() == 0 {
		return
	}
	at = 0
	for i := range found {
		n := int(counts[i])
		a.r.Edges.Pick(int(c.edges)+at, a.arrays[found[i].Array].Edges, found[i].At, offsets[at:at+n])
		at += n
	}
}

// read writes the ids, in the whole graph, of the sources of the edges at the given positions. It returns false if one of
// them has no id.
func (x *RowArray) read(out []int32, pos []int64) bool {
	all, ids := x.Sources, x.IDs
	for j, p := range pos {
		out[j] = all[p]
	}
	if ids == nil {
		return true
	}
	for j, s := range out {
		if uint(s) >= uint(len(ids)) {
			return false
		}
		out[j] = ids[s]
	}
	return true
}

// damaged names the first of the nodes [lo, hi) of the request that has a source without an id.
func (a *Answerer) damaged(lo, hi int) error {
	for i := lo; i < hi; i++ {
		p := &a.found[i]
		row := a.arrays[p.Array].row(p)
		if !row.translate(make([]int32, len(row.Sources)), row.Sources) {
			return damagedRow(a.q.Nodes[i])
		}
	}
	panic("unreachable: a source without an id is that of a row")
}
