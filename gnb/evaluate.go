package gnb

import (
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/philox"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Evaluation says how [Worker.Evaluate] sees a node's neighbourhood. The zero
// value is [FullNeighbors].
type Evaluation struct {
	// Fanouts samples neighbours instead of taking all, with draws that do not
	// depend on the epoch, so that epochs can be compared.
	Fanouts []int
	// Batch is the number of nodes of a sampled step over all workers (1024).
	Batch int
	// MaxBatches bounds the sampled batches of each split; 0 means all.
	MaxBatches int
}

// FullNeighbors evaluates with all neighbours, layer by layer over the whole
// graph: each node's row of each layer is computed once, by one of the workers.
// Memory is two matrices of [nodes, widest layer], shared by all workers.
var FullNeighbors = Evaluation{}

// Sampled evaluates on sampled neighbourhoods, at most maxBatches batches of each
// split (0 means all).
func Sampled(fanouts []int, batch, maxBatches int) Evaluation {
	return Evaluation{Fanouts: fanouts, Batch: batch, MaxBatches: maxBatches}
}

// SplitMetric is the exact accuracy over a split: Correct of Count labelled nodes.
type SplitMetric struct {
	Split   string
	Correct int64
	Count   int64
}

// Value is Correct / Count, NaN for a split without labelled nodes.
func (m SplitMetric) Value() float64 { return float64(m.Correct) / float64(m.Count) }

// Metrics is the result of an evaluation. It can be given to [Worker.Log].
type Metrics struct {
	Kind   string // "accuracy"
	Splits []SplitMetric
}

// Of is the metric of a split, NaN if it was not evaluated.
func (m Metrics) Of(split string) float64 {
	for _, s := range m.Splits {
		if s.Split == split {
			return s.Value()
		}
	}
	return SplitMetric{}.Value()
}

func (m Metrics) values() []Value {
	var vs []Value
	for _, s := range m.Splits {
		vs = append(vs, Value{s.Split + "_" + m.Kind, s.Value()})
	}
	return vs
}

func (m Metrics) String() string {
	out := ""
	for i, s := range m.Splits {
		if i > 0 {
			out += "  "
		}
		out += fmt.Sprintf("%s %s %.4f (%d of %d)", s.Split, m.Kind, s.Value(), s.Correct, s.Count)
	}
	return out
}

// Evaluate measures the network on splits, shared among the workers: every node
// of a split counts once, whatever the number of workers, and the counts are
// added exactly. Nodes without a label are skipped. Collective.
func (w *Worker) Evaluate(net Network, how Evaluation, splits ...string) Metrics {
	n := w.netOf(net, "Evaluate")
	ds := w.Dataset()
	if ds.Y == nil {
		w.Fail(fmt.Errorf("gnb: %s has no labels to evaluate against", ds.Name()))
	}
	if len(splits) == 0 {
		w.Fail(errors.New(`gnb: Evaluate needs the names of splits, such as "val" and "test"`))
	}
	m := Metrics{Kind: "accuracy"}
	ids := make([][]int32, len(splits))
	for i, s := range splits {
		var err error
		ids[i], err = ds.Split(s)
		w.check(err)
	}
	counts := make([]int64, 2*len(splits))
	w.stage(stageEvaluate)
	if how.Fanouts == nil {
		w.evaluateFull(n, ids, counts)
	} else {
		w.evaluateSampled(n, how, splits, counts)
	}
	w.check(w.comm.SumInt64(w.site("evaluate"), counts))
	for i, s := range splits {
		m.Splits = append(m.Splits, SplitMetric{s, counts[2*i], counts[2*i+1]})
	}
	w.last = m
	w.flush(true)
	w.emitFirst(event{Type: evMetrics, Values: m.values()})
	w.stage(stageProgram)
	return m
}

func (w *Worker) evaluateFull(n *network, ids [][]int32, counts []int64) {
	logits := w.layerwise(n)
	defer logits.Release()
	lo, hi := sample.Share(w.ds.Nodes(), w.p.Rank, w.World())
	h, c := logits.Data(), n.outCols
	w.check(mapped.Guard(func() error {
		for i, split := range ids {
			for _, v := range split {
				if y := w.ds.Y[v]; int(v) >= lo && int(v) < hi && y >= 0 {
					counts[2*i+1]++
					if nn.Argmax(h[int(v)*c:int(v+1)*c]) == int(y) {
						counts[2*i]++
					}
				}
			}
		}
		return nil
	}))
}

// layerwise computes the network's output for all nodes, in memory that all
// ranks share: each rank computes its share of the rows of each layer, from all
// rows of the layer before. When it returns only this rank's rows are certain to
// be there; Publish makes all visible.
func (w *Worker) layerwise(n *network) collective.Matrix {
	ds := w.Dataset()
	if ds.X == nil {
		w.Fail(fmt.Errorf("gnb: %s has no features to compute on", ds.Name()))
	}
	layers := n.model.NumLayers()
	lo, hi := sample.Share(ds.Nodes(), w.p.Rank, w.World())
	progress := w.Progress("evaluate", layers*(hi-lo))
	h, cols := ds.X.F32, ds.Features()
	var before collective.Matrix
	for i := range layers {
		var m collective.Matrix
		w.check(mapped.Guard(func() error {
			out, err := nn.LayerCols(n.model, n.evalFwd(), i, cols)
			if err != nil {
				return fmt.Errorf("gnb: model %q: %w", n.name, err)
			}
			if m, err = w.comm.NewMatrix(w.site("evaluate"), ds.Nodes(), out); err != nil {
				return err
			}
			err = nn.LayerRows(n.model, n.evalFwd(), i, ds.Graph, h, cols, lo, hi, m.Data()[lo*out:hi*out], func(done int) {
				progress(i*(hi-lo) + done)
				w.stopIfAsked()
			})
			if err != nil {
				return fmt.Errorf("gnb: model %q: %w", n.name, err)
			}
			h, cols = m.Data(), out
			return m.Publish(w.site("evaluate"))
		}))
		if before != nil {
			before.Release()
		}
		before = m
	}
	n.outCols = cols
	return before
}

func (n *network) evalFwd() *nn.Fwd {
	if n.eval == nil {
		n.eval = nn.NewFwd(n.config(false, 0, 0))
	}
	return n.eval
}

func (w *Worker) evaluateSampled(n *network, how Evaluation, splits []string, counts []int64) {
	for i, split := range splits {
		p, err := w.plan(split, Loader{Fanouts: how.Fanouts, Batch: how.Batch, MaxSteps: how.MaxBatches, InOrder: true})
		w.check(err)
		progress := w.Progress("evaluate "+split, p.steps)
		for b, err := range w.load(p, philox.Evaluate, 0, 0, 0) {
			w.check(err)
			w.stage(stageEvaluate)
			w.stopIfAsked()
			w.checkBatch(b, n.name)
			f := n.evalFwd()
			f.Reset(n.config(false, 0, b.Step))
			out, err := nn.TryForward(n.model, f, b.Blocks, f.Input(b.rows, w.ds.Features(), b.X, b.space()))
			if err != nil {
				w.Fail(fmt.Errorf("gnb: model %q: %w", n.name, err))
			}
			h, c := out.Data(), out.Cols()
			for r, y := range b.Labels {
				if y >= 0 {
					counts[2*i+1]++
					if nn.Argmax(h[r*c:(r+1)*c]) == int(y) {
						counts[2*i]++
					}
				}
			}
			progress(b.Step + 1)
		}
		w.stage(stageEvaluate)
	}
}
