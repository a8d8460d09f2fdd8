package numbers

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

var (
	_ gnb.Task  = (*numberTask)(nil)
	_ gnb.Ender = (*numberTask)(nil)
)

// numberTask predicts numbers in a worker.
type numberTask struct {
	w       *gnb.Worker
	o       recorded
	net     *gnb.Net[nn.Model]
	loader  gnb.Loader
	targets *dataset.Matrix // those that are predicted, of all nodes
	chooses gnb.Metric
	// without are the splits that are not measured, since none of their targets is known.
	without []string
}

// network makes the network of a run's options.
func network(w *gnb.Worker, o recorded) *gnb.Net[nn.Model] {
	if o.Embedding > 0 {
		w.WithoutFeatures()
	}
	return w.Network(o.Model, o.Config(w.Dataset(), o.Columns(len(o.Options.Targets))))
}

func start(w *gnb.Worker, o recorded) (*numberTask, error) {
	ds := w.Dataset()
	t := &numberTask{w: w, o: o, net: network(w, o), loader: w.LoaderOf(o.SamplerOptions, o.OptimizerOptions)}
	t.loader.InputHalo = o.BatchDegrees
	var err error
	if t.chooses, err = MetricOf(o.Metric); err != nil {
		return nil, err
	}
	return t, mapped.Guard(func() error {
		chosen, _, err := choose(ds, o.Options.Targets)
		if err != nil {
			return err
		}
		t.targets = columnsOf(ds.Targets, chosen)
		for _, split := range []string{"train", "val", "test"} {
			s, err := o.inspect(ds, t.targets, split)
			if err != nil {
				return err
			}
			if s.unknown > 0 {
				w.Printf("%s of the split %s no known target and %s", phrase.Count(s.unknown, "node"), map[bool]string{true: split + " has", false: split + " have"}[s.unknown == 1], map[bool]string{true: "is skipped", false: "are skipped"}[s.unknown == 1])
			}
			switch {
			case split == "train" || o.Eval == "none" || s.nodes == 0:
			case s.unknown == s.nodes:
				t.without = append(t.without, split)
				w.Printf("the split %s is not measured, because all targets of its nodes are unknown", split)
			case s.why != "":
				w.Printf("%s_%s will not exist: %s", split, o.Metric, s.why)
			case len(s.without) > 0:
				w.Printf("%s_%s is the mean over %d of %d targets, without %s, whose known values are none or all equal", split, o.Metric, t.targets.Cols-len(s.without), t.targets.Cols, listed(s.without))
			}
		}
		return nil
	})
}

// Network implements [gnb.Task].
func (t *numberTask) Network() gnb.Network { return t.net }

// Batches implements [gnb.Task].
func (t *numberTask) Batches(int) iter.Seq[*gnb.Batch] { return t.w.Batches("train", t.loader) }

// Steps implements [gnb.Task].
func (t *numberTask) Steps() int { return t.w.StepsPerEpoch("train", t.loader) }

// of returns the targets of a node, in the memory of the task.
func (t *numberTask) of(v int32) []float32 { return t.targets.Row(int(v)) }

// Loss implements [gnb.Task].
func (t *numberTask) Loss(b *gnb.Batch) *nn.Loss {
	rows := make([]float32, 0, len(b.Seeds)*t.targets.Cols)
	if err := mapped.Guard(func() error {
		for _, v := range b.Seeds {
			rows = append(rows, t.of(v)...)
		}
		return nil
	}); err != nil {
		t.w.Fail(err)
	}
	return t.o.LossOf(t.net.Forward(b), rows)
}

// Splits implements [gnb.Task].
func (t *numberTask) Splits() (names []string) {
	for _, split := range []string{"val", "test"} {
		if ids, err := t.w.Dataset().Split(split); err == nil && len(ids) > 0 && !slices.Contains(t.without, split) {
			names = append(names, split)
		}
	}
	return names
}

// Chooses implements [gnb.Task].
func (t *numberTask) Chooses() gnb.Metric { return t.chooses }

// Measure implements [gnb.Task].
func (t *numberTask) Measure(splits ...string) (values []runs.NamedValue, err error) {
	tallies := make([]*Tally, len(splits))
	for i := range splits {
		if tallies[i], err = t.o.NewTally(t.o.Metric); err != nil {
			return nil, err
		}
	}
	if err := t.w.Outputs(t.net, nil, func(rows []float32, cols, _ int) error {
		lo, hi := sample.Share(t.w.Dataset().Nodes(), t.w.Rank(), t.w.World())
		for i, split := range splits {
			ids, err := t.w.Dataset().Split(split)
			if err != nil {
				return err
			}
			for _, v := range ids {
				if int(v) >= lo && int(v) < hi {
					tallies[i].Add(rows[int(v)*cols:(int(v)+1)*cols], t.of(v))
				}
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for i, split := range splits {
		whole, err := t.joined(tallies[i])
		if err != nil {
			return nil, err
		}
		found := whole.Values(split, t.o.Options.Targets)
		if split == "val" && !slices.ContainsFunc(found, func(v runs.NamedValue) bool { return v.Name == "val_"+t.o.Metric }) {
			return nil, fmt.Errorf("numbers: the %s of the validation does not exist; choose another metric (Metric, --metric)", t.chooses)
		}
		values = append(values, found...)
	}
	return values, nil
}

// joined returns what all ranks have counted. Collective.
func (t *numberTask) joined(mine *Tally) (*Tally, error) {
	whole, err := t.o.NewTally(t.o.Metric)
	if err != nil {
		return nil, err
	}
	for _, b := range t.w.AllGather(mine.Encode()) {
		if err := whole.Merge(b); err != nil {
			return nil, err
		}
	}
	return whole, nil
}

// End implements [gnb.Ender]: it measures the training mean as the prediction of every node of the test split, or of the
// validation split without one.
func (t *numberTask) End() error {
	splits := t.Splits()
	if t.o.Eval == "none" || len(splits) == 0 || t.w.Rank() != 0 {
		return nil
	}
	ids, err := t.w.Dataset().Split(splits[len(splits)-1])
	if err != nil {
		return err
	}
	mean, err := t.o.NewTally(t.o.Metric)
	if err != nil {
		return err
	}
	row := make([]float32, t.o.Columns(t.targets.Cols)) // 0 is the mean of a standardised target
	if err := mapped.Guard(func() error {
		for _, v := range ids {
			mean.Add(row, t.of(v))
		}
		return nil
	}); err != nil {
		return err
	}
	w, of := t.w, splits[len(splits)-1]
	for _, v := range mean.Values("mean", nil) {
		if v.Name == "mean_"+t.chooses.Name {
			w.Printf("the training mean as the prediction for each node of the split %s has the %s %s", of, t.chooses, t.chooses.Text(v.Value))
		}
		if v.Name != "mean_r2" && v.Name != "mean_coverage" && !math.IsNaN(v.Value) {
			w.Result(v.Name, v.Value)
		}
	}
	return nil
}
