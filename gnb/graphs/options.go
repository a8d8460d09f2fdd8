package graphs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/encode"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Options configure [Train]. The zero value trains a GIN of four layers (GINE, where edges have features) and the mean of its
// rows on the split "train" of the graphs, chooses the best epoch on "val" and measures it on "test".
//
// Batch counts graphs; 0 means 128. Epochs 0 means 100, LR 0 means 0.001, Layers 0 means 4, Norm "" means batch. Metric is a metric of classes, or
// of numbers: mae, rmse, r2 or nmae; "" means the dataset's, or mae. The options of losses are for numbers.
type Options struct {
	gnb.ModelOptions
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
	numbers.LossOptions
	// Model computes the rows of nodes; nil means gnb.GIN, or gnb.GINE where edges have features.
	Model gnb.AnyModel `json:"-" flag:"model" help:"model of nodes: gin, gine, gatedgcn, … (default gin)"`
	// Pool makes a graph's row of its nodes' rows: sum, mean, max, attention or set2set; "" means mean. See [nn.NewPooling].
	Pool string `json:",omitempty" flag:"pool" help:"sum, mean, max, attention or set2set (default mean)"`
	// VirtualNode gives each graph of a batch one more node, which all its nodes read and write between layers. See
	// [nn.VirtualNode].
	VirtualNode bool `json:",omitempty" flag:"virtual-node" help:"one more node in each graph, next to all others"`
	// KeepSigns leaves the signs of Laplacian eigenvectors among the features (package encode) as they are stored. Otherwise each
	// training step draws a sign for each of them and each graph, since an eigenvector has none of its own.
	KeepSigns bool `json:",omitempty" flag:"keep-signs" help:"do not flip signs of Laplacian eigenvectors in training"`
	// Predict is what is predicted: "labels" or "targets" of the graphs; "" means the one that the dataset has.
	Predict string `json:",omitempty" flag:"predict" help:"labels or targets, if graphs have both"`
}

// recorded are the options as a run records them: with the model by its name.
type recorded struct {
	Model string
	Options
	// Out is the number of the network's outputs for a graph; Several says that each is the logit of one of several labels.
	Out     int
	Several bool `json:",omitempty"`
	// Shape and names are those of the training data, for data to predict.
	Shape                   shape
	ClassNames, TargetNames []string `json:",omitempty"`
	// Signed are the features whose signs are drawn.
	Signed []int `json:",omitempty"`
}

// shape has the numbers of features that a network takes.
type shape struct{ Node, Edge, Graph int }

// TrainProgram is the name of Train's task, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.graphs"

var task = gnb.DeclareTask(TrainProgram, gnb.TaskDef[recorded]{
	Defaults: func(_ *gnb.Dataset, o *recorded) gnb.Defaults {
		o.Layers, o.Norm = cmp.Or(o.Layers, 4), cmp.Or(o.Norm, "batch")
		return gnb.Defaults{Epochs: 100, Batch: 128, LR: 0.001}
	},
	Check: func(_ context.Context, ds *gnb.Dataset, o *recorded) error { return o.complete(ds) },
	Title: func(ds *gnb.Dataset, o *recorded) string { return o.Model + " on the graphs of " + ds.Name() },
	Start: start,
})

// Task is the task of [Train], for sweep.RunTask.
var Task = gnb.RecordAs(task, record, func(r recorded) (Options, error) {
	o := r.Options
	var err error
	o.Model, err = gnb.ModelByName(r.Model)
	return o, err
})

// record returns the options as a run records them.
func record(ds *gnb.Dataset, o Options) recorded {
	r := recorded{Options: o}
	r.Options.Model = nil
	switch {
	case o.Model != nil:
		r.Model = o.Model.Name()
	case ds != nil && ds.EdgeFeatureDim() > 0:
		r.Model = gnb.GINE.Name()
	default:
		r.Model = gnb.GIN.Name()
	}
	return r
}

// Train trains a network that predicts the labels or targets of the graphs of a dataset, and shows loss, metric and workers
// live. It runs as gnb.Train does: with interrupts, checkpoints, exact resumption and a run directory.
//
// The run's results have the metrics of the epoch with the best one on the validation split ("best_epoch"), and those of the
// test split, which is measured once, with the weights of that epoch. Targets are standardised by the mean and deviation of the
// training split, which the run records; metrics and outputs have the unit of the targets.
//
// It returns an error for a dataset that is one graph ([dataset.ErrNoGraphs]), whose nodes have no features, or whose training
// split has no graph with a known answer.
func Train(ctx context.Context, ds *gnb.Dataset, o Options) (*runs.Run, error) {
	return Task.Train(ctx, ds, o)
}

// OptionsOf returns the options of a run of [Train] that determine its result. With them, and the run's directory as Resume,
// Train resumes the run. OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (Options, error) { return Task.OptionsOf(r) }

// MetricOf returns the metric by which [Train] chooses the best epoch on a dataset, unless Metric names another; predict is
// Options.Predict.
func MetricOf(ds *gnb.Dataset, predict string) gnb.Metric {
	g := ds.Graphs
	if g == nil || predict == "targets" || predict == "" && g.Labels == nil && g.MultiLabels == nil {
		return metrics.MAEMetric
	}
	return tally.Metric(g)
}

// Trained reports whether a run is one of [Train].
func Trained(r *runs.Run) bool { return r != nil && r.Config.Program == TrainProgram }

// graphsOf returns the description of the graphs of a dataset, with the name and number that errors need.
func graphsOf(ds *gnb.Dataset) (*gnb.Dataset, error) {
	if ds.Graphs == nil {
		return nil, fmt.Errorf("graphs: %s: %w; train on its nodes (gnb.Train), or make a dataset of many graphs (see docs/graphs.md)", ds.Name(), dataset.ErrNoGraphs)
	}
	return ds.NamedGraphs(), nil
}

// numeric reports whether the task predicts numbers.
func (o *recorded) numeric() bool { return o.Predict == "targets" }

// complete checks the options, and fills in their defaults.
func (o *recorded) complete(ds *gnb.Dataset) error {
	g, err := graphsOf(ds)
	if err != nil {
		return err
	}
	labels, targets := g.Labels != nil || g.MultiLabels != nil, g.Targets != nil
	switch {
	case o.Predict == "" && labels && targets:
		return fmt.Errorf(`graphs: the graphs of %s have labels and targets; say which to predict (Predict: "labels" or "targets", --predict)`, ds.Name())
	case o.Predict == "" && targets:
		o.Predict = "targets"
	case o.Predict == "":
		o.Predict = "labels"
	}
	switch {
	case o.Predict != "labels" && o.Predict != "targets":
		return fmt.Errorf(`graphs: Predict is %q; it is "labels" or "targets"`, o.Predict)
	case o.Predict == "labels" && !labels || o.numeric() && !targets:
		return fmt.Errorf("graphs: the graphs of %s have no %s to learn; convert the dataset with them", ds.Name(), o.Predict)
	case o.Embedding > 0:
		return errors.New("graphs: Embedding learns a row for each node, which says nothing of the nodes of other graphs; leave it out, and give nodes features, such as their degree")
	}
	o.Shape, o.ClassNames, o.TargetNames = shape{ds.FeatureDim(), ds.EdgeFeatureDim(), g.FeatureDim()}, g.Meta.ClassNames, g.Meta.TargetNames
	if o.Signed = nil; !o.KeepSigns {
		o.Signed = encode.Signed(ds.Meta.FeatureNames)
	}
	if len(o.Signed) > 0 && o.ScaleInput {
		return errors.New("graphs: ScaleInput (--scale-input) is for bags of words, and the features have Laplacian eigenvectors, whose signs are drawn in training; leave it out, or set KeepSigns (--keep-signs)")
	}
	o.Pool = cmp.Or(o.Pool, "mean")
	if !slices.Contains(nn.PoolingNames(), o.Pool) {
		return fmt.Errorf("graphs: Pool is %q; it is one of %s", o.Pool, strings.Join(nn.PoolingNames(), ", "))
	}
	train, err := g.Split("train")
	if err != nil {
		return fmt.Errorf("graphs: the graphs of %w; give them splits when the dataset is converted (gnb data convert --split)", err)
	}
	if o.numeric() {
		if err := o.LossOptions.Complete(g.Targets, g.Meta.TargetNames, train, "graph"); err != nil {
			return err
		}
		o.Metric = cmp.Or(o.Metric, metrics.MAEMetric.Name)
		if _, err := numbers.MetricOf(o.Metric); err != nil {
			return err
		}
		o.Out = o.LossOptions.Columns(g.Targets.Cols)
		return nil
	}
	if o.Loss != "" || o.Delta != 0 || o.Quantiles != nil || o.Bounded {
		return errors.New("graphs: Loss, Delta, Quantiles and Bounded are for targets, and labels are predicted; leave them out")
	}
	if g, err = tally.Named(g, o.Metric); err != nil {
		return err
	}
	if err := tally.CheckLabels(g); err != nil {
		return err
	}
	if !slices.ContainsFunc(train, func(i int32) bool { return labelled(g, i) }) {
		return fmt.Errorf("graphs: none of the %d graphs of %s's split train has a label, so there is nothing to learn", len(train), ds.Name())
	}
	o.Metric = tally.Metric(g).Name
	o.Out, o.Several = g.Classes(), g.MultiLabels != nil
	return nil
}

// labelled reports whether a label of graph i is known.
func labelled(g *gnb.Dataset, i int32) bool {
	if g.MultiLabels != nil {
		return slices.ContainsFunc(g.MultiLabels.Row(int(i)), func(y int8) bool { return y >= 0 })
	}
	return g.Labels[i] >= 0
}
