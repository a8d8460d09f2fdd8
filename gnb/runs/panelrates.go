package runs

import (
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/graphops/gemm"
	"github.com/graphnb/graphnb/internal/machine"
)

// worked is the work of a rank in sec seconds within loops over batches,
// or in steps outside of them.
type worked struct {
	seeds, edges int64
	work         Work
	seconds      float64
}

func workedOf(e Event) worked {
	w := worked{seeds: e.Seeds, edges: e.Edges, seconds: e.Seconds}
	if e.Work != nil {
		w.work = *e.Work
	}
	return w
}

// pace is what a rank works off in a second.
type pace struct{ seeds, edges, flop, rowBytes, streamBytes float64 }

// since is the pace since before; false where no time has passed.
func (w worked) since(before worked) (pace, bool) {
	dt := w.seconds - before.seconds
	if !(dt > 0) {
		return pace{}, false
	}
	return pace{
		float64(w.seeds-before.seeds) / dt, float64(w.edges-before.edges) / dt,
		float64(w.work.FLOP-before.work.FLOP) / dt,
		float64(w.work.RowBytes-before.work.RowBytes) / dt, float64(w.work.StreamBytes-before.work.StreamBytes) / dt,
	}, true
}

// ceiling is what a run is set beside: what its machine can do at most.
//
// FLOP/s are those of matrix products, forward and backward, and B/s those of what
// operations on tensors read and write; both are counted from the sizes of the
// operations that the run's layers do on its blocks ([tensor.Work]). Sampling, the sum
// over workers, the optimiser and what a program computes by itself are not counted.
// What B/s can be at most is the rates of random rows and of copies, in the
// proportion in which the run reads rows by edges and everything else; a run whose
// matrices stay in caches may exceed it. For edges/s it is what would be if products
// ran at the peak, then rows at theirs, then the rest at a copy's, and nothing else took
// time: the floor of "gnb bench train".
type ceiling struct {
	limits machine.Limits
	known  bool
	// products and memory tell whether the limits are those of this run: on a GPU
	// they are not, and products in bfloat16 have another peak.
	products, memory bool
}

func newCeiling(run Config) (c ceiling) {
	c.memory = run.Device == "cpu"
	c.products = c.memory && run.Precision != "bf16"
	if c.memory {
		c.limits, c.known = machine.Known()
	}
	return c
}

// rates are those of all ranks together, beside the machine's.
func (c *ceiling) rates(ranks []rank) []live.Rate {
	var p pace
	for i := range ranks {
		q := &ranks[i].perSec
		p.edges += q.edges
		p.flop += q.flop
		p.rowBytes += q.rowBytes
		p.streamBytes += q.streamBytes
	}
	edges := live.Rate{Unit: "edges/s", PerSec: p.edges}
	flop := live.Rate{Unit: "FLOP/s", PerSec: p.flop}
	bytes := live.Rate{Unit: "B/s", PerSec: p.rowBytes + p.streamBytes}
	if c.known && bytes.PerSec > 0 {
		// Of each second of the run, what its bytes and its products would take.
		moving := p.rowBytes/(1e9*c.limits.RowGBs) + p.streamBytes/(1e9*c.limits.CopyGBs)
		if c.memory {
			bytes.Limit = bytes.PerSec / moving
		}
		if c.products {
			flop.Limit = 1e9 * c.limits.GFLOPS
			edges.Limit = p.edges / (moving + p.flop/flop.Limit)
		}
	}
	return []live.Rate{edges, flop, bytes}
}

// learnAfter is how long a run has to last for its machine to be measured after it.
const learnAfter = time.Second

// learn measures the machine where nothing is known of it, or too little: after a run that has ended well, whose workers
// are gone, and that was long enough for nobody to mind half a second more.
func (c *ceiling) learn(ranks []rank) {
	if !c.memory {
		return
	}
	flop := 0.0
	for i := range ranks {
		flop += ranks[i].perSec.flop
	}
	if c.known && !(c.products && flop > 1e9*c.limits.GFLOPS) {
		return
	}
	if l, err := machine.Measure(gemm.PeakGFLOPS); err == nil { // else what was known stays
		c.limits, c.known = l, true
	}
}

// rank is what one rank has done.
type rank struct {
	now, before worked // in all, and when the rates were last computed
	perSec      pace
}

// update takes what the rank has done so far. Its rates are those of the last quarter of a second that it spent in loops
// over batches, or somewhat more.
func (r *rank) update(now worked) {
	r.now = now
	if r.perSec.seeds == 0 || now.seconds-r.before.seconds >= 0.25 {
		r.rates(r.before)
		r.before = now
	}
}

// rates sets the rates to those since before.
func (r *rank) rates(before worked) {
	if p, ok := r.now.since(before); ok {
		r.perSec = p
	}
}

// rateWholeRun shows the rates over the whole run, beside those of the machine, which is measured first if learn says so.
func (p *panel) rateWholeRun(learn bool) {
	for i := range p.ranks {
		r := &p.ranks[i]
		r.rates(worked{})
		p.snap.Workers[i].SeedsPerSec, p.snap.Workers[i].EdgesPerSec = r.perSec.seeds, r.perSec.edges
	}
	if learn {
		p.ceiling.learn(p.ranks)
	}
	p.snap.Rates = p.ceiling.rates(p.ranks)
}
