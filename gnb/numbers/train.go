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
	of      rowNumbers
	rows    *gnb.Dataset    // what has the targets, as nodes
	targets *dataset.Matrix // those that are predicted, of all rows
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

// rowNumbers are what a task predicts numbers of: nodes, or edges, which are the rows of its targets.
type rowNumbers interface {
	network() gnb.Network
	batches() iter.Seq[*gnb.Batch]
	steps() int
	// forward returns the network's outputs for a batch, and the rows that they are for.
	forward(b *gnb.Batch) (*nn.Tensor, []int32)
	// each calls use with the outputs for the rows of splits, for each row on one rank. Collective.
	each(splits [][]int32, use func(split int, row int32, out []float32)) error
}

// nodeNumbers are the numbers of nodes, as rows of a task.
type nodeNumbers struct {
	w      *gnb.Worker
	net    *gnb.Net[nn.Model]
	loader gnb.Loader
}

var _ rowNumbers = (*nodeNumbers)(nil)

func (t *nodeNumbers) network() gnb.Network { return t.net }

func (t *nodeNumbers) batches() iter.Seq[*gnb.Batch] { return t.w.Batches("train", t.loader) }

func (t *nodeNumbers) steps() int { return t.w.StepsPerEpoch("train", t.loader) }

func (t *nodeNumbers) forward(b *gnb.Batch) (*nn.Tensor, []int32) { return t.net.Forward(b), b.Seeds }

func (t *nodeNumbers) each(splits [][]int32, use func(split int, row int32, out []float32)) error {
	return t.w.Outputs(t.net, nil, func(rows []float32, cols, _ int) error {
		lo, hi := sample.Share(t.w.Dataset().Nodes(), t.w.Rank(), t.w.World())
		for i, ids := range splits {
			for _, v := range ids {
				if int(v) >= lo && int(v) < hi {
					use(i, v, rows[int(v)*cols:(int(v)+1)*cols])
				}
			}
		}
		return nil
	})
}

func start(w *gnb.Worker, o recorded) (*numberTask, error) {
	t := &numberTask{w: w, o: o}
	var err error
	if t.rows, err = o.rows(w.Dataset()); err != nil {
		return nil, err
	}
	if o.edges() {
		if t.of, err = startEdges(w, &t.o, t.rows); err != nil {
			return nil, err
		}
	} else {
		of := &nodeNumbers{w: w, net: network(w, o), loader: w.LoaderOf(o.SamplerOptions, o.OptimizerOptions)}
		of.loader.InputHalo = o.BatchDegrees
		t.of = of
	}
	if t.chooses, err = MetricOf(o.Metric); err != nil {
		return nil, err
	}
	return t, mapped.Guard(func() error {
		chosen, _, err := choose(t.rows, o.Options.Targets)
		if err != nil {
			return err
		}
		t.targets = columnsOf(t.rows.Targets, chosen)
		for _, split := range []string{"train", "val", "test"} {
			s, err := o.inspect(t.rows, t.targets, split)
			if err != nil {
				return err
			}
			if s.unknown > 0 {
				w.Printf("%s of the split %s no known target and %s", phrase.Count(s.unknown, o.kind()), map[bool]string{true: split + " has", false: split + " have"}[s.unknown == 1], map[bool]string{true: "is skipped", false: "are skipped"}[s.unknown == 1])
			}
			switch {
			case split == "train" || o.Eval == "none" || s.rows == 0:
			case s.unknown == s.rows:
				t.without = append(t.without, split)
				w.Printf("the split %s is not measured, because all targets of its %ss are unknown", split, o.kind())
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
func (t *numberTask) Network() gnb.Network { return t.of.network() }

// Batches implements [gnb.Task].
func (t *numberTask) Batches(int) iter.Seq[*gnb.Batch] { return t.of.batches() }

// Steps implements [gnb.Task].
func (t *numberTask) Steps() int { return t.of.steps() }

// target returns the targets of a row, in the memory of the task.
func (t *numberTask) target(row int32) []float32 { return t.targets.Row(int(row)) }

// Loss implements [gnb.Task].
func (t *numberTask) Loss(b *gnb.Batch) *nn.Loss {
	out, rows := t.of.forward(b)
	y := make([]float32, 0, len(rows)*t.targets.Cols)
	if err := mapped.Guard(func() error {
		for _, row := range rows {
			y = append(y, t.target(row)...)
		}
		return nil
	}); err != nil {
		t.w.Fail(err)
	}
	return t.o.LossOf(out, y)
}

// Splits implements [gnb.Task].
func (t *numberTask) Splits() (names []string) {
	for _, split := range []string{"val", "test"} {
		if ids := t.rows.Splits[split]; len(ids) > 0 && !slices.Contains(t.without, split) {
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
	ids := make([][]int32, len(splits))
	for i, split := range splits {
		if tallies[i], err = t.o.NewTally(t.o.Metric); err != nil {
			return nil, err
		}
		if ids[i], err = t.rows.Split(split); err != nil {
			return nil, err
		}
	}
	if err := t.of.each(ids, func(i int, row int32, out []float32) { tallies[i].Add(out, t.target(row)) }); err != nil {
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

// End implements [gnb.Ender]: it measures the training mean as the prediction of every row of the test split, or of the
// validation split without one.
func (t *numberTask) End() error {
	splits := t.Splits()
	if t.o.Eval == "none" || len(splits) == 0 || t.w.Rank() != 0 {
		return nil
	}
	ids, err := t.rows.Split(splits[len(splits)-1])
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
			mean.Add(row, t.target(v))
		}
		return nil
	}); err != nil {
		return err
	}
	w, of := t.w, splits[len(splits)-1]
	for _, v := range mean.Values("mean", nil) {
		if v.Name == "mean_"+t.chooses.Name {
			w.Printf("the training mean as the prediction for each %s of the split %s has the %s %s", t.o.kind(), of, t.chooses, t.chooses.Text(v.Value))
		}
		if v.Name != "mean_r2" && v.Name != "mean_coverage" && !math.IsNaN(v.Value) {
			w.Result(v.Name, v.Value)
		}
	}
	return nil
}
