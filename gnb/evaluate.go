package gnb

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/device"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Evaluation configures the neighbourhoods of [Worker.Evaluate]. The zero value is [FullNeighbors].
type Evaluation struct {
	// Fanouts samples neighbours instead of taking all, with draws that do not depend on the
	// epoch, so that epochs are comparable; nil takes all neighbours.
	Fanouts []int
	// Batch is the number of nodes per sampled step over all workers; 0 means 1024.
	Batch int
	// MaxBatches bounds the sampled batches of each split; 0 means all.
	MaxBatches int
	// Loss also computes the mean loss of each split, without dropout. It costs one exponential
	// per class and node.
	Loss bool
	// Timer, unless nil, gets a Lap after each sampled and computed batch of all splits; its Mean
	// is then the time per inference iteration.
	Timer *Timer
}

// FullNeighbors evaluates with all neighbours, layer by layer over the whole graph: one of the
// workers computes each node's row of each layer, once. Memory is two matrices of [nodes, widest
// layer], shared by all workers.
var FullNeighbors = Evaluation{}

// Sampled evaluates on sampled neighbourhoods, at most maxBatches batches of each split (0 means
// all). fanouts has one fanout per layer; [Worker.Evaluate] fails if it is empty.
func Sampled(fanouts []int, batch, maxBatches int) Evaluation {
	if fanouts == nil {
		fanouts = []int{} // nil would mean all neighbours
	}
	return Evaluation{Fanouts: fanouts, Batch: batch, MaxBatches: maxBatches}
}

// SplitMetric is the exact result of a network on a split: every labelled node counts once.
type SplitMetric struct {
	Split  string
	Metric Metric
	// Score is the value of the metric; NaN for a split without labelled nodes, or without both positives and negatives
	// for a metric that ranks.
	Score float64
	// Count is the number of labelled nodes, or of known labels if a node can have several and the metric does not rank.
	Count int64
	// Loss is the mean over labelled nodes (or labels) of the cross-entropy, or of the binary
	// cross-entropy if a node can have several labels. It is the same for any number of workers,
	// +Inf if one node's loss is 2^20 or more, and set only if [Evaluation] requests it.
	Loss float64
}

// Value is the metric.
func (m SplitMetric) Value() float64 { return m.Score }

func (m SplitMetric) String() string {
	of := fmt.Sprintf("%d answers", m.Count)
	switch {
	case m.Metric.Ranks:
		of = fmt.Sprintf("%d nodes", m.Count)
	case m.Metric.Name == metrics.AccuracyMetric.Name:
		right := int64(0)
		if m.Count > 0 {
			right = int64(math.Round(m.Score * float64(m.Count)))
		}
		of = fmt.Sprintf("%d of %d", right, m.Count)
	}
	return fmt.Sprintf("%s %s %s (%s)", m.Split, m.Metric.Name, m.Metric.Text(m.Score), of)
}

// Metrics is the result of an evaluation. It can be given to [Worker.Log].
type Metrics struct {
	Metric Metric
	Splits []SplitMetric

	withLoss bool
	named    []runs.NamedValue // of an evaluation above this package, instead of Splits
}

// Of returns the metric of a split, NaN if the split was not evaluated.
func (m Metrics) Of(split string) float64 {
	for _, s := range m.Splits {
		if s.Split == split {
			return s.Value()
		}
	}
	return math.NaN()
}

func (m Metrics) values() []runs.NamedValue {
	vs := m.named
	for _, s := range m.Splits {
		vs = append(vs, runs.NamedValue{Name: s.Split + "_" + m.Metric.Name, Value: s.Value()})
		if m.withLoss {
			vs = append(vs, runs.NamedValue{Name: s.Split + "_loss", Value: s.Loss})
		}
	}
	return vs
}

func (m Metrics) String() string {
	out := ""
	for i, s := range m.Splits {
		if i > 0 {
			out += "  "
		}
		out += s.String()
	}
	return out
}

// Evaluate measures the network on splits, which the workers divide: every node of a split counts
// once, whatever the number of workers, and the counts are summed exactly. Nodes without a label
// are skipped. An output that is not finite for a node of the splits ends the run with
// [ErrNotFinite]. Collective.
func (w *Worker) Evaluate(net Network, how Evaluation, splits ...string) Metrics {
	m := w.measure(net, how, splits...)
	w.report.last = m
	w.flush(true)
	w.emitFirst(runs.Event{Kind: runs.KindMetrics, Values: m.values()})
	w.stage(runfile.StageProgram)
	return m
}

// measure is Evaluate without a report.
func (w *Worker) measure(net Network, how Evaluation, splits ...string) Metrics {
	n := w.netOf(net, "Evaluate")
	ds := w.Dataset()
	w.check(tally.CheckLabels(ds))
	if len(splits) == 0 {
		w.Fail(errors.New(`gnb: Evaluate needs the names of splits, such as "val" and "test"`))
	}
	switch {
	case how.Fanouts != nil && len(how.Fanouts) == 0:
		w.Fail(fmt.Errorf("gnb: Evaluate got no fanouts to sample by, at %s; give Sampled one for each layer, or take FullNeighbors", entry.CallSite()))
	case how.Fanouts == nil && (how.Batch != 0 || how.MaxBatches != 0):
		w.Fail(fmt.Errorf("gnb: Evaluate got a batch of %d and at most %d batches, at %s, which an evaluation with all neighbours has not; give it Fanouts, or take FullNeighbors", how.Batch, how.MaxBatches, entry.CallSite()))
	}
	m := Metrics{Metric: tally.Metric(ds), withLoss: how.Loss}
	ids := make([][]int32, len(splits))
	tallies := make([]*tally.Tally, len(splits))
	for i, s := range splits {
		var err error
		ids[i], err = ds.Split(s)
		w.check(err)
		tallies[i] = tally.New(ds, w.book(), how.Loss)
	}
	w.stage(runfile.StageEvaluate)
	w.check(n.params.Agree(w.comm, w.site("running statistics")))
	n.averaged(func() {
		if how.Fanouts == nil {
			w.evaluateFull(n, ids, tallies)
		} else {
			w.evaluateSampled(n, how, splits, tallies)
		}
		w.watchEvaluation(n, how, tallies)
	})
	for i, s := range splits {
		m.Splits = append(m.Splits, w.joinTallies(tallies[i], s))
		w.sayMissing(m.Splits[i])
	}
	w.stage(runfile.StageProgram)
	return m
}

// sayMissing prints, once for each split, that its metric is not a number and why, and gives the reason to the run's result.
func (w *Worker) sayMissing(m SplitMetric) {
	name := m.Split + "_" + m.Metric.Name
	if w.p.Rank != 0 || !math.IsNaN(m.Value()) || slices.Contains(w.report.missing, name) {
		return
	}
	why := tally.Result{Count: m.Count, Value: m.Score}.Missing(m.Metric)
	if exact, _, err := tally.Undefined(w.ds, m.Split); err == nil && exact != "" {
		why = exact
	}
	w.report.missing = append(w.report.missing, name)
	if !slices.Contains(w.report.told, name) {
		w.Printf("%s does not exist: %s", name, why)
	}
	w.emitFirst(runs.Event{Kind: runs.KindResult, Split: name, Text: runs.Undefined + why})
}

// sayPartly prints that the metric of a split will not exist, or that it is a mean over some of several labels, before the
// work that it is to judge.
func (w *Worker) sayPartly(split string) {
	why, partly, err := tally.Undefined(w.ds, split)
	w.check(err)
	name := split + "_" + tally.Metric(w.ds).Name
	switch {
	case why != "":
		w.report.told = append(w.report.told, name)
		w.Printf("%s will not exist: %s", name, why)
	case partly != "":
		w.Printf("%s: %s", name, partly)
	}
}

// joinTallies combines all ranks' tallies of a split. Collective.
func (w *Worker) joinTallies(t *tally.Tally, split string) SplitMetric {
	all, err := w.comm.AllGather(w.site("evaluate"), t.Encode())
	w.check(err)
	whole := tally.New(w.ds, w.book(), t.WithLoss())
	for _, b := range all {
		w.check(whole.Merge(b))
	}
	return splitMetric(w.ds, split, whole.Result())
}

func splitMetric(ds *Dataset, split string, r tally.Result) SplitMetric {
	return SplitMetric{Split: split, Metric: tally.Metric(ds), Score: r.Value, Count: r.Count, Loss: r.Loss}
}

func (w *Worker) evaluateFull(n *network, ids [][]int32, tallies []*tally.Tally) {
	p := w.feed.parts
	if p != nil && !w.feed.replaced {
		rows := w.partRows(n)
		for i, split := range ids {
			for _, v := range split {
				if p.Mine(v) {
					tallies[i].Add(v, rows.Row(v))
				}
			}
		}
		return
	}
	logits := w.layerwise(n)
	defer logits.Release()
	lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
	h, c := logits.Data(), logits.Cols()
	w.check(mapped.Guard(func() error {
		for i, split := range ids {
			for _, v := range split {
				if p != nil && p.Mine(v) || p == nil && int(v) >= lo && int(v) < hi { // its label is here
					tallies[i].Add(v, h[int(v)*c:int(v+1)*c])
				}
			}
		}
		return nil
	}))
}

// layerwise computes the network's output for all nodes, in memory that all ranks share: each rank
// computes its share of the rows of each layer, from all rows of the previous layer. When it
// returns, only this rank's rows are guaranteed to be present; Publish makes all rows visible.
func (w *Worker) layerwise(n *network) collective.Matrix {
	ds := w.Dataset()
	if n.inputCols() == 0 {
		w.Fail(fmt.Errorf("gnb: %s has no features to compute on", ds.Name()))
	}
	lo, hi := sample.Share(ds.Nodes(), w.p.Rank, w.World())
	progress := w.Progress("evaluate", cmp.Or(n.eval.layers, n.model.NumLayers())*(hi-lo))
	input, free, err := n.gatherInputs()
	w.check(err)
	o := layerwise{
		comm: w.comm, site: w.site("evaluate"), name: n.name, model: n.model, count: n.eval.layers, graph: w.graph(), nodes: ds.Nodes(),
		input: input, inputCols: n.inputCols(), free: free, fwd: n.evalFwd, cols: n.layerCols, hold: n.holdInput, between: device.Between(w.gpu, w.comm, w.site("rows between layers"), func() bool { return n.eval.onHost }),
		done: func(layer, rows int) {
			progress(layer*(hi-lo) + rows)
			w.stopIfAsked()
		},
	}
	switch g, degrees := graphops.GraphOf(o.graph); {
	case n.table != nil:
	case w.feed.fetcher.FromDisk():
		o.first = func(fwd *nn.Fwd, lo, hi int, out []float32, done func(rows int)) error {
			return w.feed.fetcher.FirstLayer(g, n.model, fwd, lo, hi, out, done)
		}
	case w.feed.parts != nil:
		o.first = func(fwd *nn.Fwd, lo, hi int, out []float32, done func(rows int)) error {
			return w.feed.parts.FirstLayer(feed.PartFirst{Comm: w.comm, Site: o.site, Graph: g, Degrees: degrees, Model: n.model, Threads: w.threads}, fwd, lo, hi, out, done)
		}
	}
	if s := w.found.rows; s != nil {
		o.look = s.layer
	}
	out, err := w.feed.matrices.layers(o)
	w.check(err)
	return out
}

// Outputs computes a network's output for all nodes, layer by layer with all neighbours, and calls use with the rows
// [nodes, cols], which are valid during the call, and the number of threads of the worker. The edges are those of g; nil
// means the worker's graph. It returns the error of use. Collective.
func (w *Worker) Outputs(net Network, g graphops.Slicer, use func(rows []float32, cols, threads int) error) (err error) {
	n := w.netOf(net, "Outputs")
	if g != nil {
		defer func(own graphops.Slicer) { w.feed.slices = own }(w.graph())
		w.feed.slices = g
	}
	w.stage(runfile.StageEvaluate)
	w.check(n.params.Agree(w.comm, w.site("running statistics")))
	defer w.stage(runfile.StageProgram)
	n.averaged(func() {
		rows := w.layerwise(n)
		defer rows.Release()
		lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
		w.watchRows(n, !simd.Finite(rows.Data()[lo*rows.Cols():hi*rows.Cols()]))
		err = mapped.Guard(func() error { return use(rows.Data(), rows.Cols(), w.threads) })
	})
	return err
}

// EvaluateOf goes through items in their order, in mini-batches as [Worker.BatchesOf] makes them, and calls use with each batch of
// this worker. During the call, Forward and Pass of the network make passes of evaluation: without dropout, with the running
// statistics of batch norms, and with the averaged weights if the optimiser keeps some. Sampled neighbours do not depend on the
// epoch. name is what the progress is called. It returns the first error of use on this worker.
//
// An item is at one worker, as by Items.Size, and its outputs do not depend on the others of its batch unless its neighbours are
// sampled. Collective.
func (w *Worker) EvaluateOf(net Network, name string, each Items, l Loader, use func(b *Batch) error) (err error) {
	n := w.netOf(net, "EvaluateOf")
	l.InOrder = true
	p, err := w.planOfItems(each, l)
	w.check(err)
	w.stage(runfile.StageEvaluate)
	w.check(n.params.Agree(w.comm, w.site("running statistics")))
	defer w.stage(runfile.StageProgram)
	n.averaged(func() {
		n.eval.batches = true
		defer func() { n.eval.batches = false }()
		progress := w.Progress("evaluate "+name, p.steps)
		for b, failed := range w.load(p, philox.Evaluate, 0, 0, 0) {
			w.check(failed)
			w.stage(runfile.StageEvaluate)
			w.stopIfAsked()
			w.addProof(p, b)
			if err == nil && len(b.Items) > 0 {
				err = mapped.Guard(func() error { return use(b) })
			}
			progress(b.Step + 1)
		}
	})
	return err
}

// OnHost calls use in the stage "evaluate", with the network's parameters in host memory, equal on all ranks, and the number
// of threads of the worker. It returns the error of use. Collective.
func (w *Worker) OnHost(net Network, use func(threads int) error) (err error) {
	n := w.netOf(net, "OnHost")
	w.stage(runfile.StageEvaluate)
	defer w.stage(runfile.StageProgram)
	w.check(n.params.Agree(w.comm, w.site("running statistics")))
	n.averaged(func() {
		n.Params()
		err = mapped.Guard(func() error { return use(w.threads) })
	})
	return err
}

// partRows computes the network's output for the nodes of this rank's parts, without a matrix of all
// nodes. Collective.
func (w *Worker) partRows(n *network) *feed.PartRows {
	own := w.feed.parts.OwnRows()
	degrees, err := w.team().Degrees()
	w.check(err)
	progress := w.Progress("evaluate", cmp.Or(n.eval.layers, n.model.NumLayers())*own)
	o := feed.PartLayers{
		Comm: w.comm, Site: w.site("evaluate"), Model: n.model, Count: n.eval.layers, Fwd: n.evalFwd(), Cols: n.layerCols, Degrees: degrees, Threads: w.threads,
		Done: func(layer, rows int) {
			progress(layer*own + rows)
			w.stopIfAsked()
		},
	}
	o.Learned = n.table
	if s := w.found.rows; s != nil {
		o.Look = s.layerOf
	}
	rows, err := w.feed.parts.Layers(o)
	if err != nil {
		w.Fail(fmt.Errorf("gnb: model %q: %w", n.name, err))
	}
	return rows
}

// layerCols is nn.LayerCols, computed once.
func (n *network) layerCols(i, cols int) (int, error) {
	if i == len(n.eval.widths) {
		out, err := nn.LayerCols(n.model, n.evalFwd(), i, cols)
		if err != nil {
			return 0, err
		}
		n.eval.widths = append(n.eval.widths, out)
	}
	return n.eval.widths[i], nil
}

func (n *network) evalFwd() *nn.Fwd {
	if n.eval.pass == nil {
		c := n.config(false, 0, 0)
		if n.eval.onHost {
			c.Backend = nil
		}
		n.eval.pass = nn.NewFwd(c)
	}
	return n.eval.pass
}

func (w *Worker) evaluateSampled(n *network, how Evaluation, splits []string, tallies []*tally.Tally) {
	for i, split := range splits {
		p, err := w.plan(split, Loader{Fanouts: how.Fanouts, Batch: how.Batch, MaxSteps: how.MaxBatches, InOrder: true})
		w.check(err)
		progress := w.Progress("evaluate "+split, p.steps)
		for b, err := range w.load(p, philox.Evaluate, 0, 0, 0) {
			w.check(err)
			w.stage(runfile.StageEvaluate)
			w.stopIfAsked()
			w.checkBatch(b, n)
			f := n.evalFwd()
			f.Reset(n.config(false, 0, b.Step))
			out, err := nn.TryForward(n.model, f, b.Blocks, n.input(f, b))
			if err != nil {
				w.Fail(fmt.Errorf("gnb: model %q: %w", n.name, err))
			}
			h, c := out.Data(), out.Cols()
			w.check(mapped.Guard(func() error {
				for r, v := range b.Seeds {
					tallies[i].Add(v, h[r*c:(r+1)*c])
				}
				if tallies[i].NotFinite() && w.found.what == "" {
					w.found.what = n.culprit(b, atStep{step: b.Step}, false, false)
				}
				return nil
			}))
			progress(b.Step + 1)
			if how.Timer != nil {
				how.Timer.Lap()
			}
		}
		w.stage(runfile.StageEvaluate)
	}
}
