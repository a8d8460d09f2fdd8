package numbers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Options configure [Train]. The zero value trains a GraphSAGE of two layers, or an RGCN on a dataset with types, by the
// squared error of all targets.
//
// Batch counts nodes, or edges. Metric chooses the best epoch: mae, rmse, r2, nmae, or one that the program declares
// ([gnb.DeclareMetric]); "" means mae. Eval is full or none.
type Options struct {
	gnb.ModelOptions
	gnb.SamplerOptions
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
	LossOptions
	// Model is the network; nil means gnb.SAGE, or gnb.RGCN with types.
	Model gnb.AnyModel `json:"-" flag:"model" help:"network: sage, gcn, gat, … (default sage, or rgcn with types)"`
	// Targets are the names or the numbers, from 0, of the dataset's targets to predict; nil means all.
	Targets []string `json:",omitempty" flag:"targets" help:"<targets> to predict, by name or number (default all)"`
	// Of is what the targets are of: "nodes" or "edges"; "" means the one that the dataset has targets of.
	Of string `json:",omitempty" flag:"of" help:"nodes or edges, if both have targets"`
	EdgeOptions
}

// The values of Options.Of.
const (
	ofNodes = "nodes"
	ofEdges = "edges"
)

// recorded are the options as a run records them: with the model by its name.
type recorded struct {
	Model string
	Options
	EdgeWidth int `json:",omitempty"` // features of an edge that the network takes
}

// edges reports whether the run predicts numbers of edges.
func (o *recorded) edges() bool { return o.Of == ofEdges }

// kind is what has the targets, for messages.
func (o *recorded) kind() string {
	if o.edges() {
		return "edge"
	}
	return "node"
}

// rows returns what has the targets as a dataset whose nodes it is: the nodes, or the edges with numbers.
func (o *recorded) rows(ds *gnb.Dataset) (*gnb.Dataset, error) {
	if o.edges() {
		return o.edgeRows(ds)
	}
	return ds, nil
}

// TrainProgram is the name of Train's task, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.numbers"

// task is the task of [Train].
var task = gnb.DeclareTask(TrainProgram, gnb.TaskDef[recorded]{
	Check: func(ctx context.Context, ds *gnb.Dataset, o *recorded) error { return o.complete(ctx, ds) },
	Title: func(ds *gnb.Dataset, o *recorded) string {
		if o.edges() {
			return "numbers of the edges of " + ds.Name() + " by " + o.Model
		}
		return "numbers of " + ds.Name() + " by " + o.Model
	},
	Start: func(w *gnb.Worker, o recorded) (gnb.Task, error) { return start(w, o) },
})

// Train trains a network that predicts numbers of nodes or of edges, and shows loss, metric and workers live. It runs as [gnb.Train]
// does: with interrupts, checkpoints, exact resumption and a run directory.
//
// The number of an edge is predicted by a perceptron of two layers over the embeddings of both ends and their product, and the
// edge's own features, unless EndsOnly is set. See [EdgeOptions] for which edges are messages.
//
// The run's val_mae, test_mae and those of rmse, r2 and nmae ([metrics.Numbers]) are those of the epoch with the best
// Metric on the validation split ("best_epoch"); without one, of the last epoch. Of several targets each is the mean over
// the targets, as scikit-learn's, and val_mae_NAME is the Metric of one target. With two or more Quantiles, test_coverage is the share
// of known targets between the lowest and the highest of them. "mean_mae", "mean_rmse" and "mean_nmae" are those of a
// prediction that is the training mean for every node or edge, on the test split: what a network must beat.
//
// It returns an error for a dataset without targets, and for a target that is infinite, unknown for all training nodes or
// edges, or equal for all of them; and if nodes and edges have targets, or edges of several relations, and the options do not say which.
func Train(ctx context.Context, ds *gnb.Dataset, o Options) (*runs.Run, error) {
	if ds == nil {
		return nil, errors.New("numbers: Train needs a dataset; get one from gnb.Load")
	}
	return task.Train(ctx, ds, o.record(ds))
}

// record returns the options as a run records them.
func (o Options) record(ds *gnb.Dataset) recorded {
	o.Metric = cmp.Or(o.Metric, "mae")
	full := recorded{Model: o.network(ds).Name(), Options: o}
	full.Options.Model = nil
	return full
}

func (o *Options) network(ds *gnb.Dataset) gnb.AnyModel {
	switch {
	case o.Model != nil:
		return o.Model
	case ds != nil && ds.Schema() != nil:
		return gnb.RGCN
	}
	return gnb.SAGE
}

// Task is the task of [Train], for sweep.RunTask.
var Task = gnb.RecordAs(task, func(ds *gnb.Dataset, o Options) recorded { return o.record(ds) }, func(r recorded) (Options, error) {
	o := r.Options
	o.Model = byName(r.Model)
	return o, nil
})

// OptionsOf returns the options of a run of [Train] that determine its result, with its Scale. With them, and the run's
// directory as Resume, Train resumes the run. OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (Options, error) {
	o, err := recordedIn(r)
	o.Options.Model = byName(o.Model)
	return o.Options, err
}

// recordedIn returns the options of a run of Train as it has recorded them.
func recordedIn(r *runs.Run) (o recorded, err error) {
	if o, err = task.OptionsOf(r); err != nil {
		return o, fmt.Errorf("numbers: %w", err)
	}
	if o.edges() && (o.Dim < 1 || o.Hidden < 1 || o.EdgeWidth < 0) {
		return o, fmt.Errorf("numbers: the options of run %s are damaged", r.Dir)
	}
	if n := len(o.Scale.Mean); n == 0 || n != len(o.Scale.Deviation) || n != len(o.Options.Targets) || o.Bounded && (len(o.Scale.Low) != n || len(o.Scale.High) != n) || o.regression().Check() != nil {
		return o, fmt.Errorf("numbers: the options of run %s are damaged", r.Dir)
	}
	return o, nil
}

// Trained reports whether [Train] made a run, so that [Predict] takes it.
func Trained(r *runs.Run) bool { return r != nil && r.Config.Program == TrainProgram }

// TrainedEdges reports whether [Train] made a run of numbers of edges, so that [PredictEdges] takes it.
func TrainedEdges(r *runs.Run) bool {
	o, err := recordedIn(r)
	return err == nil && o.edges()
}

// byName is a registered model, by its name.
type byName string

func (m byName) Name() string { return string(m) }

// complete checks the options, and fills in their defaults.
func (o *recorded) complete(ctx context.Context, ds *gnb.Dataset) error {
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return err
	}
	if err := o.checkTargets(ds); err != nil {
		return err
	}
	o.Metric = cmp.Or(o.Metric, "mae")
	if _, err := MetricOf(o.Metric); err != nil {
		return err
	}
	rows, err := o.rows(ds)
	if err != nil {
		return err
	}
	chosen, names, err := choose(rows, o.targetsIn(rows))
	if err != nil {
		return err
	}
	o.Options.Targets = names
	if o.edges() {
		if err := o.completeEdges(ds, rows); err != nil {
			return err
		}
	}
	train, err := rows.Split("train")
	switch {
	case err != nil:
		return err
	case len(train) == 0:
		return fmt.Errorf("numbers: %s's split %q is empty: there is nothing to train on", ds.Name(), "train")
	}
	return mapped.Guard(func() error {
		of := columnsOf(rows.Targets, chosen)
		if err := o.Complete(of, titles(names), train, o.kind()); err != nil {
			return err
		}
		for _, split := range []string{"val", "test"} {
			s, err := o.inspect(rows, of, split)
			if err != nil {
				return err
			}
			if split == "val" && o.Eval != "none" && s.rows > 0 && s.why != "" {
				return fmt.Errorf("numbers: %s's split %q cannot choose the best epoch by %s, because %s; make the split of other %ss, choose another metric (Metric, --metric), or train without evaluation (Eval: \"none\", --eval none)", ds.Name(), split, o.Metric, s.why, o.kind())
			}
		}
		return nil
	})
}

// titles returns the names of targets for errors; numbers have none.
func titles(names []string) []string {
	if slices.ContainsFunc(names, func(name string) bool { _, err := strconv.Atoi(name); return err != nil }) {
		return names
	}
	return nil
}

// targetsIn returns the wanted targets, nil for all: for edges of one relation, those that some edge in a split has.
func (o *recorded) targetsIn(rows *gnb.Dataset) []string {
	if !o.edges() || o.Options.Targets != nil || rows.Targets.Cols == 1 {
		return o.Options.Targets
	}
	known := make([]bool, rows.Targets.Cols)
	for _, ids := range rows.Splits {
		for _, row := range ids {
			for t, y := range rows.Target(row) {
				known[t] = known[t] || y == y //nolint:gocritic // not NaN
			}
		}
	}
	var some []string
	for t, is := range known {
		if is {
			some = append(some, strconv.Itoa(t))
		}
	}
	return some
}

// checkTargets sets what has the targets, and returns an error for a dataset without numbers to predict.
func (o *recorded) checkTargets(ds *gnb.Dataset) error {
	switch {
	case o.Of != "" && o.Of != ofNodes && o.Of != ofEdges:
		return fmt.Errorf("numbers: Of (--of) is %q; it is nodes or edges", o.Of)
	case o.Of == "" && ds.Targets != nil && ds.EdgeAnswers != nil:
		return fmt.Errorf("numbers: the nodes and the edges of %s have numbers to predict; say which to predict (Of: \"nodes\" or \"edges\", --of)", ds.Name())
	case o.Of == "" && ds.EdgeAnswers != nil:
		o.Of = ofEdges
	case o.Of == ofNodes && ds.EdgeAnswers == nil: // nothing else is there
		o.Of = ""
	}
	switch e := o.EdgeOptions; {
	case o.edges() && ds.Meta.Parts != nil:
		return fmt.Errorf("numbers: %s is divided into parts, and parts keep no targets so far; take the undivided dataset", ds.Name())
	case o.edges() && ds.EdgeAnswers == nil:
		return fmt.Errorf("numbers: the edges of %s have no numbers to predict; set them by Dataset.SetEdgeTargets, convert a folder with edge_targets.npy, or read tables with a column of edges of the kind predict (--kinds COLUMN=predict)", ds.Name())
	case o.edges():
		return nil
	case e != EdgeOptions{}:
		return fmt.Errorf("numbers: Relation, ReverseRelation, Dim, AllMessages and EndsOnly are for numbers of edges, and those of the nodes of %s are predicted; leave them out", ds.Name())
	case ds.Targets != nil:
		return nil
	case ds.Meta.Parts != nil:
		return fmt.Errorf("numbers: %s is divided into parts, and parts keep no targets so far; take the undivided dataset", ds.Name())
	case ds.Graphs != nil && ds.Graphs.Targets != nil:
		return fmt.Errorf("numbers: the targets of %s are those of its graphs, and its nodes have none", ds.Name())
	case ds.Classes() > 0:
		return fmt.Errorf("numbers: the nodes of %s have classes and no numbers to predict; gnb.Train (--task nodes) predicts classes, and tables become targets by the kind target (--kinds COLUMN=target)", ds.Name())
	}
	return fmt.Errorf("numbers: the nodes and edges of %s have no numbers to predict; set Dataset.Targets, convert a folder with targets.npy, or read tables with a column of the kind target (--kinds COLUMN=target)", ds.Name())
}

// choose returns the columns of the dataset's targets that names or numbers name, nil for all, and their names, or their
// numbers if the dataset has no names.
func choose(ds *gnb.Dataset, wanted []string) (chosen []int, names []string, err error) {
	all := make([]string, ds.Targets.Cols)
	for t := range all {
		if all[t] = strconv.Itoa(t); t < len(ds.Meta.TargetNames) {
			all[t] = ds.Meta.TargetNames[t]
		}
	}
	if wanted == nil {
		wanted = all
	}
	for _, name := range wanted {
		t := slices.Index(all, name)
		if n, err := strconv.Atoi(name); t < 0 && err == nil && n >= 0 && n < len(all) {
			t = n
		}
		switch {
		case t < 0:
			return nil, nil, fmt.Errorf("numbers: Targets (--targets) has %q, and the targets of %s are %s", phrase.CleanLine(name), ds.Name(), phrase.CleanLine(phrase.List(all[:min(len(all), 50)])))
		case slices.Contains(chosen, t):
			return nil, nil, fmt.Errorf("numbers: Targets (--targets) has %q twice", phrase.CleanLine(name))
		}
		chosen, names = append(chosen, t), append(names, all[t])
	}
	if len(chosen) == 0 {
		return nil, nil, errors.New("numbers: Targets is an empty list; name the targets to predict, or leave it nil for all")
	}
	return chosen, names, nil
}

// columnsOf returns some columns of targets, of all the matrix itself.
func columnsOf(all *dataset.Matrix, chosen []int) *dataset.Matrix {
	if slices.Equal(chosen, upTo(all.Cols)) {
		return all
	}
	some := &dataset.Matrix{Rows: all.Rows, Cols: len(chosen), F32: make([]float32, all.Rows*len(chosen))}
	for v := range all.Rows {
		for i, t := range chosen {
			some.F32[v*len(chosen)+i] = all.F32[v*all.Cols+t]
		}
	}
	return some
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// seen is what the targets of a split are like.
type seen struct {
	rows, unknown int      // all, and those without any known target
	why           string   // why the metric does not exist; "" if it does
	without       []string // targets for which it does not, if it is the mean over others
}

// inspect looks at the targets of a split of nodes or edges; one that is missing has none. It returns an error for one that is infinite.
func (o *recorded) inspect(ds *gnb.Dataset, targets *dataset.Matrix, split string) (s seen, err error) {
	ids, err := ds.Split(split)
	if errors.Is(err, dataset.ErrNoSplit) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	known, low, high := make([]int, targets.Cols), make([]float32, targets.Cols), make([]float32, targets.Cols)
	for _, v := range ids {
		if v < 0 || int(v) >= targets.Rows {
			return s, fmt.Errorf("numbers: the split %q of %s has %s %d, and there are the %ss 0 to %d; gnb data check finds what is wrong", split, ds.Name(), o.kind(), v, o.kind(), targets.Rows-1)
		}
		any := false
		for t, y := range targets.F32[int(v)*targets.Cols : (int(v)+1)*targets.Cols] {
			if math.IsInf(float64(y), 0) {
				return s, fmt.Errorf("numbers: target %q of %s %d of the split %q is %v; a target is a number, or NaN if unknown", o.Options.Targets[t], o.kind(), v, split, y)
			}
			if y != y {
				continue
			}
			if known[t]++; known[t] == 1 {
				low[t], high[t] = y, y
			}
			low[t], high[t], any = min(low[t], y), max(high[t], y), true
		}
		if s.rows++; !any {
			s.unknown++
		}
	}
	scaled := o.Metric == "r2" || o.Metric == "nmae"
	var none, equal []string
	for t, name := range o.Options.Targets {
		switch {
		case known[t] == 0:
			none = append(none, name)
		case scaled && low[t] == high[t]:
			equal = append(equal, name)
		}
	}
	if s.without = append(none, equal...); len(s.without) == targets.Cols {
		switch {
		case len(equal) == 0 && targets.Cols == 1:
			s.why = "the target of all its " + o.kind() + "s is unknown (NaN)"
		case len(equal) == 0:
			s.why = "all targets of its " + o.kind() + "s are unknown (NaN)"
		default:
			s.why = "its known targets are all equal"
		}
		s.without = nil
	}
	return s, nil
}

// listed joins at most a few names.
func listed(names []string) string {
	if len(names) > 5 {
		names = append(slices.Clone(names[:4]), fmt.Sprintf("%d more", len(names)-4))
	}
	return phrase.CleanLine(phrase.List(names))
}

// nameOf is a target's name in the names of values: val_mae_NAME.
func nameOf(target string) string { return strings.ReplaceAll(phrase.CleanLine(target), " ", "_") }
