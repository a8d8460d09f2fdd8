package recorder

import (
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/machine"
)

// worked is the work of a rank in sec seconds of loops over batches, or of steps outside them.
type worked struct {
	seeds, edges int64
	work         runs.Work
	rows         runs.FeatureRows
	seconds      float64
}

func workedOf(e runs.Event) worked {
	w := worked{seeds: e.Seeds, edges: e.Edges, seconds: e.Seconds}
	if e.Work != nil {
		w.work = *e.Work
	}
	if e.Rows != nil {
		w.rows = *e.Rows
	}
	return w
}

// pace is the work of a rank per second.
type pace struct{ seeds, edges, flop, rowBytes, streamBytes float64 }

// since returns the pace since an earlier state; false if no time has passed.
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

// ceiling holds the machine's measured limits, with which a run's rates are compared.
//
// FLOP/s counts matrix products, forward and backward, and B/s the bytes that tensor operations
// read and write; both follow from the sizes of the layers' operations on the run's blocks
// ([tensor.Work]). Sampling, the sum over workers, the optimiser and the program's own
// computations are not counted. The limit for B/s combines the measured rates of random rows and
// of copies in the proportion in which the run reads rows by edges and other data; a run whose
// matrices stay in caches may exceed it. The limit for edges/s assumes that products run at their
// peak rate, then random rows at theirs, then other traffic at the copy rate, and that nothing
// else takes time: the floor of "gnb bench train".
type ceiling struct {
	limits machine.Limits
	known  bool
	// products and memory tell whether the limits apply to this run. On a GPU they do not, and
	// products in bfloat16 have another peak.
	products, memory bool
}

func newCeiling(run runs.Config) (c ceiling) {
	c.memory = run.Device == "cpu"
	c.products = c.memory && run.Precision != "bf16"
	if c.memory {
		c.limits, c.known = machine.Known()
	}
	return c
}

// rates returns the rates summed over all ranks, each with the machine's limit.
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
		// The time, per second of the run, that its bytes and its products take at the machine's
		// limits.
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

// learnAfter is the minimal duration of a run after which the machine is measured.
const learnAfter = time.Second

// learn measures the machine if its limits are unknown or incomplete. It does so after a
// successful run whose workers have ended, and only if the run was long compared with the half
// second of the measurement.
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
	if l, err := machine.Measure(gemm.PeakGFLOPS); err == nil { // on an error keep the earlier limits
		c.limits, c.known = l, true
	}
}

// rank is the progress of one rank.
type rank struct {
	now, before worked // in total, and at the last computation of rates
	perSec      pace
}

// update records the rank's progress. Rates cover at least the last quarter of a second that the
// rank spent in loops over batches.
func (r *rank) update(now worked) {
	r.now = now
	if r.perSec.seeds == 0 || now.seconds-r.before.seconds >= 0.25 {
		r.rates(r.before)
		r.before = now
	}
}

// rates computes the rates since an earlier state.
func (r *rank) rates(before worked) {
	if p, ok := r.now.since(before); ok {
		r.perSec = p
	}
}

// rateWholeRun shows the rates over the whole run next to the machine's limits. If learn is set it
// first measures the machine.
func (p *panel) rateWholeRun(learn bool) {
	for i := range p.ranks {
		r := &p.ranks[i]
		r.rates(worked{})
		p.snap.Workers[i].SeedsPerSec, p.snap.Workers[i].EdgesPerSec = r.perSec.seeds, r.perSec.edges
	}
	if learn {
		p.ceiling.learn(p.ranks)
	}
	p.rateTogether()
}

// rateTogether shows the rates of all ranks together, and where their rows of features came from.
func (p *panel) rateTogether() {
	p.snap.Rates = p.ceiling.rates(p.ranks)
	if rows := rowsOf(runs.FeatureRows{}, p.ranks); rows != nil {
		p.snap.Rows = rows.String()
	}
}

// addRows adds o to r.
func addRows(r *runs.FeatureRows, o runs.FeatureRows) {
	r.Own += o.Own
	r.Cached += o.Cached
	r.Window += o.Window
	r.Remote += o.Remote
	r.Bytes += o.Bytes
	r.GPU += o.GPU
	r.Copied += o.Copied
	r.Disk += o.Disk
	r.Requests += o.Requests
	r.Seconds += o.Seconds
	r.Limit = max(r.Limit, o.Limit)
}

// rowsOf adds the rows of ranks, which work at the same time, to earlier ones; it is nil if there are none.
func rowsOf(earlier runs.FeatureRows, ranks []rank) *runs.FeatureRows {
	before, longest := earlier.Seconds, 0.0
	for i := range ranks {
		addRows(&earlier, ranks[i].now.rows)
		longest = max(longest, ranks[i].now.rows.Seconds)
	}
	earlier.Seconds = before + longest
	if earlier == (runs.FeatureRows{}) {
		return nil
	}
	return &earlier
}
