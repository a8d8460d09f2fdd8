package graphs

import (
	"fmt"
	"iter"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
)

var (
	_ gnb.Task     = (*graphTask)(nil)
	_ gnb.Inferrer = (*graphTask)(nil)
)

// graphTask predicts labels or targets of graphs in a worker.
type graphTask struct {
	w      *gnb.Worker
	o      recorded
	g      *gnb.Dataset // the graphs
	net    *gnb.Net[nn.Model]
	model  *Model
	loader gnb.Loader
}

func start(w *gnb.Worker, o recorded) (gnb.Task, error) {
	ds := w.Dataset()
	g, err := graphsOf(ds)
	if err != nil {
		return nil, err
	}
	if !o.numeric() {
		if g, err = tally.Named(g, o.Metric); err != nil {
			return nil, err
		}
	}
	sizes := o.Config(ds, o.Hidden)
	sizes.EdgeStates = o.Model == "gatedgcn" // all layers of a batch share one block
	t := &graphTask{w: w, o: o, g: g, model: newModel(w.Build(o.Model, sizes), &o, sizes.Norm, g.FeatureDim())}
	t.net = w.NetworkOf(o.Model+" for graphs", sizes, t.model)
	t.loader = w.LoaderOf(gnb.SamplerOptions{}, o.OptimizerOptions)
	t.loader.Induced = true
	return t, nil
}

// Network implements [gnb.Task].
func (t *graphTask) Network() gnb.Network { return t.net }

// items are graphs, as items of batches.
func (t *graphTask) items(name string, ids []int32) gnb.Items {
	ds := t.w.Dataset()
	return gnb.Items{
		Name: name, Count: len(ids),
		Size: func(i int32) int64 { lo, hi := ds.GraphSpan(ids[i]); return int64(hi - lo) },
		Of: func(_, _ int, items []int32, lo, hi int) (gnb.Seeds, any, error) {
			graphs := make([]int32, 0, hi-lo)
			for _, i := range items[lo:hi] {
				graphs = append(graphs, ids[i])
			}
			nodes, u := unionOf(ds, graphs)
			return gnb.Seeds{IDs: nodes}, u, nil
		},
	}
}

func (t *graphTask) split(name string) []int32 {
	ids, err := t.g.Split(name)
	if err != nil {
		t.w.Fail(err)
	}
	return ids
}

// Batches implements [gnb.Task].
func (t *graphTask) Batches(int) iter.Seq[*gnb.Batch] {
	return t.w.BatchesOf(t.items("graphs", t.split("train")), t.loader)
}

// Steps implements [gnb.Task].
func (t *graphTask) Steps() int { return t.w.StepsOf(len(t.split("train")), t.loader) }

// pooled returns the graphs of a batch, and their pooled rows.
func (t *graphTask) pooled(b *gnb.Batch) (*union, *nn.Tensor) {
	u := b.Value.(*union)
	t.model.at = u
	return u, t.model.pooled(t.net.Forward(b), u, gather(t.g, u.graphs))
}

// gather returns the features of graphs, row by row, nil if they have none.
func gather(g *gnb.Dataset, graphs []int32) []float32 {
	if g.FeatureDim() == 0 {
		return nil
	}
	own := make([]float32, len(graphs)*g.FeatureDim())
	if g.Features != nil {
		g.Features.Gather(own, graphs, 1)
		return own
	}
	s := g.SparseFeatures
	for r, i := range graphs {
		for e := s.Indptr[i]; e < s.Indptr[i+1]; e++ {
			x := float32(1)
			if s.Values != nil {
				x = s.Values[e]
			}
			own[r*s.Cols+int(s.Indices[e])] = x
		}
	}
	return own
}

// Loss implements [gnb.Task].
func (t *graphTask) Loss(b *gnb.Batch) *nn.Loss {
	u, rows := t.pooled(b)
	out := t.model.answer(rows)
	switch {
	case t.o.numeric():
		y := make([]float32, 0, len(u.graphs)*t.g.Targets.Cols)
		for _, i := range u.graphs {
			y = append(y, t.g.Target(i)...)
		}
		return t.o.LossOf(out, y)
	case t.g.MultiLabels != nil:
		var y []int8
		for _, i := range u.graphs {
			y = append(y, t.g.MultiLabels.Row(int(i))...)
		}
		return nn.BCEWithLogits(out, y)
	}
	y := make([]int32, 0, len(u.graphs))
	for _, i := range u.graphs {
		y = append(y, t.g.Labels[i])
	}
	return nn.CrossEntropy(out, y)
}

// Splits implements [gnb.Task].
func (t *graphTask) Splits() (names []string) {
	for _, name := range []string{"val", "test"} {
		if len(t.g.Splits[name]) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Chooses implements [gnb.Task].
func (t *graphTask) Chooses() gnb.Metric {
	if t.o.numeric() {
		m, _ := numbers.MetricOf(t.o.Metric)
		return m
	}
	return tally.Metric(t.g)
}

// Measure implements [gnb.Task].
func (t *graphTask) Measure(splits ...string) (values []runs.NamedValue, err error) {
	for _, split := range splits {
		mine, err := t.counter()
		if err != nil {
			return nil, err
		}
		bad := []float64{0}
		ids := t.split(split)
		err = t.each(split, ids, func(i int32, row []float32) {
			if !mine.add(i, row) {
				bad[0]++
			}
		})
		if err != nil {
			return nil, err
		}
		if t.w.AllReduce(bad); bad[0] > 0 {
			t.w.Fail(fmt.Errorf("graphs: the outputs for %v of the %d graphs of the split %s: %w; take a smaller learning rate (LR, --lr), or a normalisation (Norm, --norm)", bad[0], len(ids), split, gnb.ErrNotFinite))
		}
		all, err := t.counter()
		if err != nil {
			return nil, err
		}
		for _, b := range t.w.AllGather(mine.Encode()) {
			if err := all.Merge(b); err != nil {
				return nil, err
			}
		}
		values = append(values, all.values(split)...)
	}
	return values, nil
}

// each calls use with the network's outputs for graphs: on each rank with those of its share. Collective.
func (t *graphTask) each(name string, ids []int32, use func(i int32, row []float32)) error {
	return t.rows(name, ids, t.model.answer, use)
}

// eachPooled calls use with the pooled rows of graphs: on each rank with those of its share. Collective.
func (t *graphTask) eachPooled(name string, ids []int32, use func(i int32, row []float32)) error {
	return t.rows(name, ids, func(h *nn.Tensor) *nn.Tensor { return h }, use)
}

// rows calls use with the rows that answer makes of the pooled rows of graphs.
func (t *graphTask) rows(name string, ids []int32, answer func(*nn.Tensor) *nn.Tensor, use func(i int32, row []float32)) error {
	return t.w.EvaluateOf(t.net, name, t.items(name, ids), gnb.Loader{Induced: true, BatchPerWorker: evaluationBatch}, func(b *gnb.Batch) error {
		u, h := t.pooled(b)
		out := answer(h)
		x, cols := out.Data(), out.Cols()
		for r, i := range u.graphs {
			use(i, x[r*cols:(r+1)*cols])
		}
		return nil
	})
}

// evaluationBatch is the number of graphs of a worker's batch in an evaluation.
const evaluationBatch = 512

// Infer implements [gnb.Inferrer]: it writes the outputs for all graphs.
func (t *graphTask) Infer(file string) error { return t.write(file, false) }
