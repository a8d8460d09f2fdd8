package temporal

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
)

// WalkOptions are the options of [NewWalks]. The zero value counts walks of up to 3 events that do not fade.
type WalkOptions struct {
	// Hops is the most events of a walk, 1 to 4; 0 means 3.
	Hops int
	// Dim is the number of columns of a node's row; 0 means 10·⌊ln 2E⌋ for E events, rounded up to a multiple of 16, but at most the
	// number of nodes. The error of an inner product is about the product of the lengths / √Dim.
	Dim int
	// Decay is λ: an event that is Δt old counts e^(-λ·Δt), in the unit of the events' times; 0 means that events do not fade.
	// Walks of two rates together say more than those of one: try 16/d and 1/(16·d) for the mean time d between two events of a node.
	Decay float64
	// Exact keeps the matrices themselves instead of projections of them: Dim is the number of nodes. It is for small graphs.
	Exact bool
	// Seed determines the projection; 0 is a seed as any other.
	Seed uint64
	// Threads is the number of threads that compute; 0 means GOMAXPROCS. It changes no bit.
	Threads int
}

// Walks keeps, for each node u and each number of hops i, a row that says to which nodes walks of i events lead from u back in time:
//
//	A⁽⁰⁾ = 1,  A⁽ⁱ⁾(t)[u,v] = Σ over walks u = w₀, w₁, …, w_i = v of Π_k e^(-λ·(t - t_k))
//
// where w_{k-1} and w_k are the ends of an event at t_k, in either direction, and t ≥ t₁ > … > t_i: events of one time do not
// follow one another. An event of a node with itself is one step. A row is u's row of A⁽ⁱ⁾(t)·P, for a random P [nodes, Dim] of ±1/√Dim, so inner products
// of two rows are nearly those of the rows of A⁽ⁱ⁾, which say how many common nodes the walks of two nodes lead to.
//
// The rows are a function of the events that happened, the options and the seed: not of the steps in which [Walks.See] was told of the events, nor of the
// number of threads. They are stored as of the time T_u of the node's row, multiplied by e^(iλ(t - T_u)), and T_u follows when λ·(t - T_u) exceeds 2: so an
// event costs one addition of a row for each hop and end, old events fade without being touched, and no factor grows with the length of the stream.
//
// Memory: (Hops+1)·Nodes·Dim float32, and (Hops-1)·Dim more for each node of the events of the last time that was seen. Methods may not be called at the same time.
//
// Source: X. Lu, L. Sun, T. Zhu, W. Lv, "Improving temporal link prediction via temporal walk matrix projection", NeurIPS 2024,
// arXiv:2410.04013. The authors' code lets events of one batch not follow one another, whose rows depend on the batches.
type Walks struct {
	o     WalkOptions
	nodes int
	h     [][]float32 // [Hops+1] rows [nodes, Dim], of the hops 0 to Hops
	at    []int64     // [nodes] T_u; never for a node without events

	// seen are the events that are in the rows, and before the rows of the nodes of those of the last time as they were before that time:
	// more events of that time may follow, which do not follow these.
	seen   *Events
	count  int
	before struct {
		slot map[int32]int32 // of a node
		rows []float32       // [slots, Hops-1] rows, of the hops 1 to Hops-1
	}
	ops []walkOp

	// own has the inner products of a node's rows with each other, as stored, if known.
	own   []float32
	known []bool
	// fade has e^(-lag) of a node's rows as of the last event that was seen, for the nodes of the last call of Features.
	fade []float64
}

// never is the time of the rows of a node without events.
const never = math.MinInt64

// maxLag is the greatest λ·(t - T_u) before a node's rows are multiplied by what has faded.
const maxLag = 2

// walkOp adds w times a row of hop-1 to a row of hop, or multiplies a row by w if from is negative.
type walkOp struct {
	to, from int32
	hop      int32
	w        float32
	before   bool // from is a slot of before
}

// For returns the options for a stream, with the defaults filled in. It reads the numbers of nodes and events alone, and returns an error
// for options that have no meaning.
func (o WalkOptions) For(e *Events) (WalkOptions, error) {
	if o.Hops == 0 {
		o.Hops = 3
	}
	switch {
	case o.Hops < 1 || o.Hops > 4:
		return o, fmt.Errorf("temporal: walks of %d hops were asked for; Hops is 1 to 4", o.Hops)
	case o.Dim < 0:
		return o, fmt.Errorf("temporal: walks with rows of %d columns were asked for; Dim is a number of columns, or 0 for the default", o.Dim)
	case !(o.Decay >= 0) || math.IsInf(o.Decay, 1):
		return o, fmt.Errorf("temporal: walks whose events fade at a rate of %g were asked for; Decay is 0 or a positive number, per unit of time", o.Decay)
	case o.Exact && o.Dim != 0 && o.Dim != e.Nodes:
		return o, fmt.Errorf("temporal: exact walks have a column for each of the %d nodes, but Dim is %d; leave it out", e.Nodes, o.Dim)
	}
	if o.Dim == 0 {
		o.Dim = walkDim(e.Nodes, e.Len())
	}
	if o.Exact {
		o.Dim = e.Nodes
	}
	return o, nil
}

// ownCols is the number of inner products of a node's rows with each other.
func (o WalkOptions) ownCols() int { return (o.Hops + 1) * (o.Hops + 2) / 2 }

// Cols is the number of columns of [Walks.Features]: 36 for 3 hops.
func (o WalkOptions) Cols() int { return 2*o.ownCols() + (o.Hops+1)*(o.Hops+1) }

// NewWalks returns the walks before the first event of a stream, of which it reads the numbers of nodes and events alone.
func NewWalks(e *Events, o WalkOptions) (*Walks, error) {
	o, err := o.For(e)
	if err != nil {
		return nil, err
	}
	if err := machine.Room(fmt.Sprintf("the walks of %d nodes with %d rows of %d columns", e.Nodes, o.Hops+1, o.Dim), 4*float64(o.Hops+1)*float64(e.Nodes)*float64(o.Dim)); err != nil {
		return nil, fmt.Errorf("temporal: %w; give a smaller Dim", err)
	}
	w := &Walks{o: o, nodes: e.Nodes, h: make([][]float32, o.Hops+1), at: make([]int64, e.Nodes), known: make([]bool, e.Nodes), fade: make([]float64, e.Nodes)}
	for i := range w.h {
		w.h[i] = make([]float32, e.Nodes*o.Dim)
	}
	w.own = make([]float32, e.Nodes*o.ownCols())
	w.before.slot = map[int32]int32{}
	w.project()
	w.Reset()
	return w, nil
}

// walkDim is the default of WalkOptions.Dim.
func walkDim(nodes, events int) int {
	dim := 10 * int(math.Log(2*float64(max(events, 1))))
	return max(min((dim+15)/16*16, nodes), 1)
}

// project fills the rows of no hop: P, or the unit matrix.
func (w *Walks) project() {
	p, dim := w.h[0], w.o.Dim
	if w.o.Exact {
		for u := range w.nodes {
			p[u*dim+u] = 1
		}
		return
	}
	size := math.Float32bits(float32(1 / math.Sqrt(float64(dim))))
	c3 := philox.C3(philox.Init, 0, 0)
	parallel.For(w.o.Threads, w.nodes, 64, func(lo, hi int) {
		for u := lo; u < hi; u++ {
			s := philox.NewStream(w.o.Seed, int64(u), 0, c3)
			bits, left := uint32(0), 0
			for j := range dim {
				if left == 0 {
					bits, left = s.Next(), 32
				}
				p[u*dim+j] = math.Float32frombits(size | bits<<31)
				bits >>= 1
				left--
			}
		}
	})
}

// Reset forgets all events.
func (w *Walks) Reset() {
	for _, h := range w.h[1:] {
		clear(h)
	}
	for u := range w.at {
		w.at[u] = never
	}
	clear(w.known)
	w.seen, w.count = nil, 0
	w.forget()
}

// Options returns the options, with the defaults filled in.
func (w *Walks) Options() WalkOptions { return w.o }

// See brings the walks to what happened: all events of a head of a stream ([Events.Head]). If it holds fewer events than the walks have
// seen, or is another stream, they forget all and begin again.
// Cost: 2·Hops·Dim multiplications for each new event, and a copy of the rows of each node of the last time.
func (w *Walks) See(happened *Events) {
	n := happened.Len()
	if n < w.count || w.count > 0 && (&happened.Src[0] != &w.seen.Src[0] || &happened.Time[0] != &w.seen.Time[0]) {
		w.Reset()
	}
	if happened.Nodes != w.nodes {
		panic(fmt.Sprintf("temporal: the walks of %d nodes were told of events of %d", w.nodes, happened.Nodes))
	}
	from := w.count
	if from > 0 && from < n && happened.Time[from] == happened.Time[from-1] {
		to := from + 1
		for to < n && happened.Time[to] == happened.Time[from] {
			to++
		}
		w.latest(happened, from, to)
		from = to
	}
	for from < n {
		// Some events of a program, up to the end of those of one time.
		const together = 4096
		to := min(from+together, n)
		for to < n && happened.Time[to] == happened.Time[to-1] {
			to++
		}
		w.ops = w.ops[:0]
		last := to // the first event of the last time, of which there may be more
		for to == n && last > from && happened.Time[last-1] == happened.Time[to-1] {
			last--
		}
		w.plan(happened, from, last)
		w.run()
		if last < to {
			w.forget()
			w.latest(happened, last, to)
		}
		from = to
	}
	w.seen, w.count = happened, n
}

// latest takes in the events [lo, hi), which are some of the last time. They do not follow earlier ones of that time: what they add are the rows
// before it, which are kept.
func (w *Walks) latest(e *Events, lo, hi int) {
	t := e.Time[lo]
	w.ops = w.ops[:0]
	for i := lo; i < hi; i++ {
		w.touch(e.Src[i], t)
		w.touch(e.Dst[i], t)
	}
	w.run()
	w.ops = w.ops[:0]
	for hop := 1; hop <= w.o.Hops; hop++ {
		add := func(u, v int32) {
			op := walkOp{to: u, from: v, hop: int32(hop), w: w.weight(u, v, hop, t)}
			if hop > 1 { // rows of no hop do not change
				op.from, op.before = w.keep(v), true
			}
			w.ops = append(w.ops, op)
		}
		for i := lo; i < hi; i++ {
			u, v := e.Src[i], e.Dst[i]
			add(u, v)
			if u != v {
				add(v, u)
			}
		}
	}
	w.run()
}

// keep returns the slot of a node in before, whose rows it keeps unless they are there. It is called before they change.
func (w *Walks) keep(u int32) int32 {
	b, dim := &w.before, w.o.Dim
	slot, ok := b.slot[u]
	if !ok {
		slot = int32(len(b.slot))
		b.slot[u] = slot
		for _, h := range w.h[1:w.o.Hops] {
			b.rows = append(b.rows, h[int(u)*dim:int(u+1)*dim]...)
		}
	}
	return slot
}

// forget empties before.
func (w *Walks) forget() {
	clear(w.before.slot)
	w.before.rows = w.before.rows[:0]
}

// plan appends the operations of the events [lo, hi), which are all events of their times.
func (w *Walks) plan(e *Events, lo, hi int) {
	for lo < hi {
		t, end := e.Time[lo], lo+1
		for end < hi && e.Time[end] == t {
			end++
		}
		for i := lo; i < end; i++ {
			w.touch(e.Src[i], t)
			w.touch(e.Dst[i], t)
		}
		// The rows of hop-1 are those before t, since greater hops come first.
		for hop := w.o.Hops; hop > 0; hop-- {
			for i := lo; i < end; i++ {
				u, v := e.Src[i], e.Dst[i]
				w.ops = append(w.ops, walkOp{to: u, from: v, hop: int32(hop), w: w.weight(u, v, hop, t)})
				if u != v {
					w.ops = append(w.ops, walkOp{to: v, from: u, hop: int32(hop), w: w.weight(v, u, hop, t)})
				}
			}
		}
		lo = end
	}
}

// touch makes the rows of a node ready for events at t.
func (w *Walks) touch(u int32, t int64) {
	w.known[u] = false
	if w.at[u] == never {
		w.at[u] = t
	}
	if lag := w.lag(u, t); lag > maxLag {
		for hop := 1; hop <= w.o.Hops; hop++ {
			w.ops = append(w.ops, walkOp{to: u, from: -1, hop: int32(hop), w: float32(math.Exp(-float64(hop) * lag))})
		}
		w.at[u] = t
	}
}

// lag is λ·(t - T_u).
func (w *Walks) lag(u int32, t int64) float64 {
	if w.at[u] == never {
		return 0
	}
	return w.o.Decay * float64(t-w.at[u])
}

// weight is that of v's row of hop-1, as stored, in u's row of hop.
func (w *Walks) weight(u, v int32, hop int, t int64) float32 {
	return float32(math.Exp(float64(hop)*w.lag(u, t) - float64(hop-1)*w.lag(v, t)))
}

// walkGrain is the number of columns that a thread computes at a time.
const walkGrain = 64

// run does the operations, in order: columns do not depend on one another, so threads divide them.
func (w *Walks) run() {
	threads, dim := w.o.Threads, w.o.Dim
	if len(w.ops)*dim < 1<<18 {
		threads = 1
	}
	parallel.For(threads, dim, walkGrain, func(lo, hi int) {
		for _, op := range w.ops {
			at := int(op.to) * dim
			to := w.h[op.hop][at+lo : at+hi]
			if op.from < 0 {
				simd.Scale(to, to, op.w)
				continue
			}
			rows, from := w.h[op.hop-1], int(op.from)
			if op.before {
				rows, from = w.before.rows, from*(w.o.Hops-1)+int(op.hop)-2
			}
			simd.Axpy(to, rows[from*dim+lo:from*dim+hi], op.w)
		}
	})
}

// Cols is the number of columns of [Walks.Features].
func (w *Walks) Cols() int { return w.o.Cols() }

// Features writes, for each source src[q] and each of its candidates v in cands[starts[q]:starts[q+1]], a row of out [len(cands), Cols]:
// log(1 + max(0, x)) of the inner products x, as of the time times[q], of the rows u_0 … u_K of the source and v_0 … v_K of the candidate,
//
//	u_i·u_j for i ≤ j,  then u_i·v_j for all i and j,  then v_i·v_j for i ≤ j
//
// each with j running first. They are TPNet's pairwise features but for the repeated ones. times[q] must not precede the last event that was
// seen, and ids must be nodes. Rows do not depend on one another. Cost: (K+1)²·2·Dim operations for each candidate, and (K+1)·(K+2)·Dim for each
// candidate that had events since it was last asked for.
func (w *Walks) Features(out []float32, src []int32, times []int64, starts, cands []int32) error {
	cols, dim, hops := w.Cols(), w.o.Dim, w.o.Hops
	switch {
	case len(src) != len(times) || len(starts) != len(src)+1:
		return fmt.Errorf("temporal: %d sources have %d times and %d starts of candidates; give a time for each, and one start more", len(src), len(times), len(starts))
	case len(out) != len(cands)*cols:
		return fmt.Errorf("temporal: there is room for %d numbers of %d candidates; give %d for each", len(out), len(cands), cols)
	}
	for q, u := range src {
		switch a, b := starts[q], starts[q+1]; {
		case a < 0 || b < a || int(b) > len(cands):
			return fmt.Errorf("temporal: the candidates of source %d are %d to %d of %d; starts must ascend within them", q, a, b, len(cands))
		case uint(u) >= uint(w.nodes):
			return fmt.Errorf("temporal: source %d is node %d, but the graph's nodes are 0 to %d", q, u, w.nodes-1)
		case w.count > 0 && times[q] < w.seen.Time[w.count-1]:
			return fmt.Errorf("temporal: source %d is asked about as of time %d, but the walks have seen an event at %d; ask before they see it", q, times[q], w.seen.Time[w.count-1])
		}
	}
	tables := make([]simd.Rows, hops+1)
	for i := range tables {
		tables[i] = simd.Rows{Data: w.h[i], Stride: dim}
	}
	if !tables[0].Holds(cands, dim) {
		return fmt.Errorf("temporal: a candidate is no node: the graph's nodes are 0 to %d", w.nodes-1)
	}
	var now int64 // the time of the last event that was seen
	if w.count > 0 {
		now = w.seen.Time[w.count-1]
	} else if len(times) > 0 {
		now = slices.Min(times)
	}
	w.learn(now, src, cands)
	between := w.o.ownCols()
	parallel.For(w.o.Threads, len(src), 1, func(lo, hi int) {
		for q := lo; q < hi; q++ {
			u, t := src[q], times[q]
			ids := cands[starts[q]:starts[q+1]]
			rows := out[int(starts[q])*cols : int(starts[q+1])*cols]
			if len(ids) == 0 {
				continue
			}
			for i := range hops + 1 {
				for j := range hops + 1 {
					g := w.h[i][int(u)*dim : int(u+1)*dim]
					simd.DotRows(rows[between+i*(hops+1)+j:], cols, g, &tables[j], ids, len(ids))
				}
			}
			since := math.Exp(-w.o.Decay * float64(t-now))
			fadeU := fades(w.fade[u] * since)
			for c, v := range ids {
				row, fadeV := rows[c*cols:(c+1)*cols], fades(w.fade[v]*since)
				at, own, others := 0, w.own[int(u)*between:][:between], w.own[int(v)*between:][:between]
				for i := range hops + 1 {
					for j := i; j <= hops; j++ {
						row[at] = faded(own[at], fadeU[i]*fadeU[j], w, u, u, i, j)
						row[len(row)-between+at] = faded(others[at], fadeV[i]*fadeV[j], w, v, v, i, j)
						at++
					}
				}
				for i := range hops + 1 {
					for j := range hops + 1 {
						row[at] = faded(row[at], fadeU[i]*fadeV[j], w, u, v, i, j)
						at++
					}
				}
			}
			simd.Log1p(rows, rows)
		}
	})
	return nil
}

// learn computes the unknown inner products of the rows of nodes with each other, and how the rows have faded until now.
func (w *Walks) learn(now int64, lists ...[]int32) {
	var todo []int32
	for _, ids := range lists {
		for _, v := range ids {
			w.fade[v] = -1
		}
	}
	for _, ids := range lists {
		for _, v := range ids {
			if w.fade[v] < 0 {
				w.fade[v] = math.Exp(-w.lag(v, now))
			}
			if !w.known[v] {
				w.known[v] = true
				todo = append(todo, v)
			}
		}
	}
	cols, dim := w.o.ownCols(), w.o.Dim
	parallel.For(w.o.Threads, len(todo), 64, func(lo, hi int) {
		for _, v := range todo[lo:hi] {
			at := int(v) * cols
			for i := range w.o.Hops + 1 {
				for j := i; j <= w.o.Hops; j++ {
					w.own[at] = simd.Dot(w.h[i][int(v)*dim:int(v+1)*dim], w.h[j][int(v)*dim:int(v+1)*dim])
					at++
				}
			}
		}
	})
}

// fades are the powers of e from 0.
func fades(e float64) (f [5]float64) {
	f[0] = 1
	for i := 1; i < len(f); i++ {
		f[i] = f[i-1] * e
	}
	return f
}

// faded is the product x of stored rows times a factor. A product that is too great for float32 is computed again in float64: it may have faded.
func faded(x float32, factor float64, w *Walks, u, v int32, i, j int) float32 {
	if x-x != 0 {
		sum, dim := 0.0, w.o.Dim
		other := w.h[j][int(v)*dim : int(v+1)*dim]
		for c, a := range w.h[i][int(u)*dim : int(u+1)*dim] {
			sum += float64(a) * float64(other[c])
		}
		return float32(min(sum*factor, math.MaxFloat32))
	}
	return float32(float64(x) * factor)
}
