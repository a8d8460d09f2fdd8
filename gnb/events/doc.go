// Package events trains models of events in time: who will do what next. Its data is a stream of events (package
// temporal), such as messages between people or changes of files by authors. A model ranks the destinations of an event among
// others, by what happened before it. Or it says what will happen to nodes: [TrainNodes].
//
//	run, err := events.Train(ctx, ds, events.Options{Model: "walks"})
//	run, err := events.TrainNodes(ctx, ds, events.NodeOptions{Window: "7d"})
//
// # Nothing sees its future
//
// An epoch goes through the events in the order of time, Batch of them a step. All that a step's answers rest on is what
// happened before its first event: events of one step do not see each other. Training takes the events up to the 0.70 quantile of
// time, validation those up to the 0.85 quantile, and test the rest, as the Temporal Graph Benchmark does.
//
// A question about a node at a moment knows the events until then, and its answer is made of those in the window after it. The whole window lies
// in the time of the question's split.
//
// A measure is a function of the weights alone: it goes through the stream from its beginning. So the same figures come out again
// later, in another process, or on another number of workers.
package events

import (
	"context"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/runs"
)

// TrainProgram is the name of Train's task, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.events"

// Task is the task of [Train], for sweep.RunTask.
var Task = gnb.DeclareTask(TrainProgram, gnb.TaskDef[Options]{
	Defaults: func(_ *gnb.Dataset, o *Options) gnb.Defaults {
		return gnb.Defaults{Batch: 200, Epochs: 20, LR: defaultLR(o.Model), EvalEvery: 1}
	},
	Check: func(ctx context.Context, ds *gnb.Dataset, o *Options) error { return o.complete(ctx, ds) },
	Title: func(ds *gnb.Dataset, o *Options) string { return ds.Name() + " by " + o.Model },
	Whole: true,
	Start: start,
})

// Train trains a model of a dataset's events and shows loss, metric and workers live. It runs as gnb.Train does: with
// interrupts, checkpoints, exact resumption and a run directory.
//
// The run's val_mrr, test_mrr and so on are those of the epoch with the best Metric on the validation events ("best_epoch").
// Beside them are those of EdgeBank, which remembers pairs and learns nothing: val_edgebank_mrr, test_edgebank_mrr.
func Train(ctx context.Context, ds *gnb.Dataset, o Options) (*runs.Run, error) {
	return Task.Train(ctx, ds, o)
}

// OptionsOf returns the options of a run of [Train] that determine its result. With them, and the run's directory as Resume, Train
// resumes the run. OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (Options, error) {
	o, err := Task.OptionsOf(r)
	if err != nil {
		return o, fmt.Errorf("events: %w", err)
	}
	return o, nil
}

// Trained reports whether [Train] made a run.
func Trained(r *runs.Run) bool { return r != nil && r.Config.Program == TrainProgram }
