package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// NodeTrainProgram is the name of TrainNodes' task, by which the configuration of a run tells that TrainNodes made it.
const NodeTrainProgram = "gnb.events.nodes"

// NodeTask is the task of [TrainNodes], for sweep.RunTask.
var NodeTask = gnb.DeclareTask(NodeTrainProgram, gnb.TaskDef[NodeOptions]{
	Defaults: func(*gnb.Dataset, *NodeOptions) gnb.Defaults {
		return gnb.Defaults{Batch: 200, Epochs: 20, LR: 0.001, EvalEvery: 1}
	},
	Check: func(ctx context.Context, ds *gnb.Dataset, o *NodeOptions) error { return o.complete(ctx, ds) },
	Title: func(ds *gnb.Dataset, o *NodeOptions) string {
		over := ""
		if o.Window != atOnce {
			over = " over " + o.Window
		}
		return fmt.Sprintf("%s%s of %s by %s", o.what(), over, ds.Name(), o.Model)
	},
	Whole: true,
	Start: startNodes,
})

// NodeOptions configure [TrainNodes]. Window must be set.
//
// A model is asked about nodes at moments, the multiples of Every: about each node that has had an event by then. The answer is what
// happens in the window that begins after the moment and includes its end. Batch counts questions, and 0 means 200: at most so many
// of one moment are a step. Epochs 0 means 20, LR 0 means 0.001. Metric chooses the best epoch: mae, rmse, r2 or nmae of numbers, auc, accuracy
// and so on of AskAny; "" means mae, and auc. Eval is full or none. Training is on CPUs only.
type NodeOptions struct {
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
	// LossOptions are for numbers. Loss "" means absolute: counts have many zeros and few large values.
	numbers.LossOptions
	// Ask is count (the number of a node's events in the window), any (whether there is one), sum or mean (of the values Of of these events; a mean of
	// no events is unknown), or given (questions and answers of the data, [dataset.Dataset.Questions]); "" means given if the data has some, else
	// count.
	Ask string `json:",omitempty" flag:"ask" help:"count, any, sum, mean or given (default count)"`
	// Of is the feature of events, by name or number, that sum and mean add up, or "weight"; of given, the answer that is predicted.
	Of string `json:",omitempty" flag:"of" help:"<feature> to add up, weight, or given answer"`
	// Who are the nodes that are asked about, and the events of these that are meant: sources, destinations or all; "" means sources.
	Who string `json:",omitempty" flag:"who" help:"sources, destinations or all (default sources)"`
	// Window is the length of the window: a number with s, m, h, d or w, such as "7d", or one in the unit of the times. Of given it is the time
	// after which an answer is known, and "0" means that it is known at its moment.
	Window string `json:",omitempty" flag:"window" help:"<span> after which an answer is known, such as 7d"`
	// Every is the time between two moments; "" means Window.
	Every string `json:",omitempty" flag:"every" help:"<span> between two moments (default --window)"`
	// Active asks only about nodes with an event in the last so long; "" means all that had one by then.
	Active string `json:",omitempty" flag:"active" help:"ask about nodes with events in this last <span>"`
	// Together lets moments that are at most so far apart share a step, whose answers rest on the events until the first of them; "" means that a
	// step has one moment. It is for given questions of which nearly each has a time of its own.
	Together string `json:",omitempty" flag:"together" help:"moments within this <span> share a step (default none)"`
	// Model is counts (a perceptron on how often and how recently a node had events, and on what its earlier windows held) or tgn (that, and the
	// embedding of a temporal graph network); "" means counts.
	Model string `json:",omitempty" flag:"model" help:"counts or tgn (default counts)"`
	// Hidden is the width of memories and embeddings of tgn, and of the perceptron; 0 means 64.
	Hidden int `json:",omitempty" flag:"hidden" help:"width of memories and layers (default 64)" least:"1"`
	// TimeDim is the number of columns that encode a span of time; 0 means Hidden.
	TimeDim int `json:",omitempty" flag:"time-dim" help:"columns that encode a span of time (default --hidden)" least:"1"`
	// Neighbors is the number of last events of a node that tgn's attention sees; 0 means 10.
	Neighbors int `json:",omitempty" flag:"neighbors" help:"last events of a node that attention sees (default 10)" least:"1"`
	// Heads is the number of heads of tgn's attention, which share Hidden; 0 means 2.
	Heads int `json:",omitempty" flag:"heads" help:"attention heads of tgn (default 2)" least:"1"`
	// Dropout is the dropout probability of attention and of the perceptron; 0 means none.
	Dropout float64 `json:",omitempty" flag:"dropout" help:"dropout probability; 0.1 is usual"`
	// TimeScale is the unit in which the model takes spans of time, in the unit of the times; 0 means Window.
	TimeScale float64 `json:",omitempty" flag:"time-scale" help:"unit of spans of time (default --window)" positive:"true"`
	// Until is the last time of training and that of validation; nil means the 0.70 and the 0.85 quantile of the events' times. The windows of a
	// split end within its time, and begin there.
	Until []int64 `json:",omitempty" flag:"until" help:"last times of training, validation (default quantiles .70, .85)"`
	// Classes are the classes of given answers. The task sets them, and its runs record them.
	Classes []string `json:",omitempty"`
}

// TrainNodes trains a model that says what will happen to nodes, and shows loss, metric and workers live. It runs as gnb.Train does: with
// interrupts, checkpoints, exact resumption and a run directory.
//
// The run's val_mae, test_mae and so on are those of the epoch with the best Metric on the validation questions ("best_epoch"). Beside them are
// those of two predictions that learn nothing: test_persistent_mae repeats what a node's last window held, and test_average_mae is the
// mean of its last 7 windows. Of AskAny these are test_persistent_accuracy and test_frequent_accuracy, the more frequent answer of its
// last 7 windows.
func TrainNodes(ctx context.Context, ds *gnb.Dataset, o NodeOptions) (*runs.Run, error) {
	return NodeTask.Train(ctx, ds, o)
}

// NodeOptionsOf returns the options of a run of [TrainNodes] that determine its result, as [OptionsOf] does for a run of [Train].
func NodeOptionsOf(r *runs.Run) (NodeOptions, error) {
	o, err := NodeTask.OptionsOf(r)
	if err != nil {
		return o, fmt.Errorf("events: %w", err)
	}
	if o.classes() == 0 && len(o.Scale.Mean) != 1 {
		return o, fmt.Errorf("events: the options of run %s are damaged", r.Dir)
	}
	return o, nil
}

// TrainedNodes reports whether [TrainNodes] made a run.
func TrainedNodes(r *runs.Run) bool { return r != nil && r.Config.Program == NodeTrainProgram }

// classes is the number of classes of the answers of a run; 0 for numbers.
func (o *NodeOptions) classes() int {
	if o.Ask == temporal.AskAny {
		return 2
	}
	return len(o.Classes)
}

// NodeMetricOf returns the metric by which [TrainNodes] chooses the best epoch on a dataset unless Metric names another.
func NodeMetricOf(ds *gnb.Dataset, o NodeOptions) gnb.Metric {
	classes := o.classes()
	if ds != nil && (o.Ask == askGiven || o.Ask == "") {
		for _, c := range ds.Meta.Questions {
			if c.Name == o.Of || o.Of == "" {
				classes = len(c.Classes)
			}
		}
	}
	return nodeMetric(classes)
}

func nodeMetric(classes int) gnb.Metric {
	switch {
	case classes == 2:
		return metrics.ROCAUCMetric
	case classes > 0:
		return metrics.AccuracyMetric
	}
	return metrics.MAEMetric
}

// what says what is asked.
func (o *NodeOptions) what() string {
	if o.Ask == askGiven {
		return phrase.CleanLine(o.Of) + " of nodes"
	}
	of := map[string]string{temporal.AsSource: "events by sources", temporal.AsDestination: "events of destinations", temporal.AsEither: "events of nodes"}[o.Who]
	switch o.Ask {
	case temporal.AskAny:
		return "any " + of
	case temporal.AskSum, temporal.AskMean:
		return fmt.Sprintf("%s of %s of %s", o.Ask, phrase.CleanLine(o.Of), of)
	}
	return o.Ask + " of " + of
}

// name is the name of the answers.
func (o *NodeOptions) name() string {
	if o.Ask == askGiven {
		return o.Of
	}
	return o.Ask
}

// metric returns the metric of a name for answers of this kind.
func (o *NodeOptions) metric(classes int) (gnb.Metric, error) {
	if classes == 0 {
		return numbers.MetricOf(o.Metric)
	}
	ds, err := tally.Named(&dataset.Dataset{Meta: dataset.Metadata{Name: "the questions", NumClasses: classes}, Labels: []int32{}}, o.Metric)
	if err != nil {
		return gnb.Metric{}, err
	}
	return tally.Metric(ds), tally.CheckLabels(ds)
}

// nodeFeatures returns the features of nodes, nil if the model reads none.
func (o *NodeOptions) nodeFeatures(ctx context.Context, ds *dataset.Dataset) (*dataset.Matrix, error) {
	if !o.readsFeatures() {
		return nil, nil
	}
	return nodeFeatures(ctx, ds, o.Threads)
}

// readsFeatures reports whether the model reads features of events and of nodes.
func (o *NodeOptions) readsFeatures() bool { return o.Model == "tgn" }

// asksOfFeature reports whether the answers are made of a feature of events.
func (o *NodeOptions) asksOfFeature(ds *dataset.Dataset) bool {
	if o.Ask == askGiven || o.Of == "" {
		return false
	}
	column, err := valueOf(ds, o.Of)
	return err == nil && column >= 0
}

// complete checks the options, and fills in their defaults.
func (o *NodeOptions) complete(ctx context.Context, ds *gnb.Dataset) error {
	if err := checkShared(o.OptimizerOptions, o.LaunchOptions, o.Dropout, o.TimeScale, o.Until); err != nil {
		return err
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return err
	}
	model := cmp.Or(o.Model, nodeModels[0])
	if o.Ask == "" && len(ds.Meta.Questions) > 0 {
		o.Ask = askGiven
	}
	o.Ask = cmp.Or(o.Ask, temporal.AskCount)
	given, sums := o.Ask == askGiven, o.Ask == temporal.AskSum || o.Ask == temporal.AskMean
	if !given {
		o.Who, o.Every, o.Classes = cmp.Or(o.Who, temporal.AsSource), cmp.Or(o.Every, o.Window), nil
	}
	switch {
	case given && (o.Who != "" || o.Every != "" || o.Active != ""):
		return errors.New("events: Who, Every and Active are for questions that are made of the events, and Ask (--ask) is given; leave them out")
	case o.Window == "" && given:
		return errNoGivenWindow
	case o.Window == "":
		return errNoWindow
	case !slices.Contains([]string{temporal.AskCount, temporal.AskAny, temporal.AskSum, temporal.AskMean, askGiven}, o.Ask):
		return fmt.Errorf("events: Ask (--ask) is %q; it is count, any, sum, mean or given", o.Ask)
	case !given && !slices.Contains([]string{temporal.AsSource, temporal.AsDestination, temporal.AsEither}, o.Who):
		return fmt.Errorf("events: Who (--who) is %q; it is sources, destinations or all", o.Who)
	case sums && o.Of == "":
		return fmt.Errorf("events: Ask is %s, and Of (--of) does not say of what; name a feature of the events, or weight", o.Ask)
	case !sums && !given && o.Of != "":
		return fmt.Errorf("events: Of (--of) is for sum, mean and given, and Ask (--ask) is %s; leave Of out", o.Ask)
	case o.Hidden < 0 || o.TimeDim < 0 || o.Neighbors < 0 || o.Heads < 0:
		return errors.New("events: Hidden, TimeDim, Neighbors and Heads cannot be negative")
	case !slices.Contains(nodeModels, model):
		return fmt.Errorf("events: there is no model %q of nodes; choose %s", o.Model, strings.Join(nodeModels, " or "))
	case model != "tgn" && o.Neighbors+o.Heads+o.TimeDim > 0:
		return fmt.Errorf("events: Neighbors, Heads and TimeDim are options of the model tgn, and Model is %s; leave them out", model)
	}
	o.Device, o.Model, o.Hidden = "cpu", model, cmp.Or(o.Hidden, 64)
	if model == "tgn" {
		o.Neighbors, o.Heads, o.TimeDim = cmp.Or(o.Neighbors, 10), cmp.Or(o.Heads, 2), cmp.Or(o.TimeDim, o.Hidden)
		if o.Hidden%o.Heads != 0 {
			return fmt.Errorf("events: %d heads cannot share %d columns; take a divisor", o.Heads, o.Hidden)
		}
	}
	if given && len(ds.Meta.Questions) == 0 {
		o.Of = "" // of a run of other data
	}
	whole, err := edgesOf(ctx, ds, o.Quiet)
	if err != nil {
		return err
	}
	r, err := newNodeRows(whole, o)
	if err != nil {
		return err
	}
	if o.readsFeatures() || o.asksOfFeature(whole) {
		if err := checkFitted(whole, r.stream); err != nil {
			return err
		}
	}
	if given {
		o.Of, o.Classes = r.given.column.Name, r.names
	}
	o.Metric = cmp.Or(o.Metric, nodeMetric(r.classes).Name)
	switch {
	case r.classes > 0 && (o.Loss != "" || o.Delta != 0 || o.Quantiles != nil || o.Bounded):
		return errors.New("events: Loss, Delta, Quantiles and Bounded are for numbers, and the answers are classes; leave them out")
	case r.classes == 0:
		o.Loss = cmp.Or(o.Loss, "absolute")
	}
	if err := r.check(ds.Name(), o.Eval != "none"); err != nil {
		return err
	}
	if _, err := o.metric(r.classes); err != nil {
		return err
	}
	o.Until = r.until
	if o.TimeScale = cmp.Or(o.TimeScale, float64(r.ask.Window)); o.TimeScale == 0 {
		o.TimeScale = r.gap()
	}
	for _, of := range []struct {
		text *string
		span int64
	}{{&o.Window, r.ask.Window}, {&o.Every, r.ask.Every}, {&o.Active, r.ask.Active}, {&o.Together, r.together}} {
		if of.span > 0 {
			*of.text = temporal.SpanText(of.span, r.unit)
		}
	}
	if r.classes > 0 {
		return nil
	}
	lo, hi := r.part("train")
	train := make([]int32, hi-lo)
	for i := range train {
		train[i] = int32(lo + i)
	}
	return o.LossOptions.Complete(r.matrix(), []string{o.name()}, train, "question")
}
