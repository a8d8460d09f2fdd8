// Package inside is what the rooms above package gnb may ask of it, and users may not: runs without a
// directory, single steps of training, and what identifies a run of training before it begins. Package gnb
// implements it.
package inside

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Functions of package gnb.
var (
	// Identify identifies a dataset's content and a model's code, as a run of both records them.
	Identify func(ctx context.Context, ds *dataset.Dataset, model string) (*runs.Identity, error)
	// TrainArgs is what a run of gnb.Train with options, a gnb.TrainOptions, records as its program's argument:
	// what decides its result beside data, code and seed.
	TrainArgs func(ds *dataset.Dataset, model string, options any) (json.RawMessage, error)
	// Metric names the metric that a dataset is measured by: "accuracy", "auc" or "micro_f1".
	Metric func(ds *dataset.Dataset) string
	// StageTimes are the times of a worker, a *gnb.Worker, so far, by stage.
	StageTimes func(worker any) map[string]time.Duration
	// CountRepeated counts per step, over the first steps of an epoch, the edges and rows that all ranks sample, and
	// those that one rank would sample for the same batches. worker is a *gnb.Worker and loader a gnb.Loader. Collective.
	CountRepeated func(worker, loader any, steps int) (counts [4]float64, err error)
)

type withoutDir struct{}

// WithoutDir makes gnb.Launch run a program without a directory for the run: nothing is kept but the Run that it
// returns.
func WithoutDir(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutDir{}, true)
}

// HasDir says whether a run that is launched with ctx has a directory.
func HasDir(ctx context.Context) bool { return ctx.Value(withoutDir{}) == nil }

// Steps makes the parts of training steps one after the other, without overlap, in a program of one worker. A
// batch is a *gnb.Batch.
type Steps interface {
	// Sample samples the neighbourhoods of seeds with the random draws of a step, which counts from 0 over the
	// epoch's loops.
	Sample(seeds []int32, epoch, step int) (batch any, err error)
	// Fetch fetches the batch's labels and features.
	Fetch(batch any) error
	// Release gives the batch's memory to later batches.
	Release(batch any)
	// StageTimes are the worker's times so far, by stage.
	StageTimes() map[string]time.Duration
	// Text puts a text into the run's result.
	Text(name, text string)
	// Close ends the use of the sampler.
	Close()
}

// NewSteps makes the Steps of a worker, a *gnb.Worker, with a number of neighbours for each hop.
var NewSteps func(worker any, fanouts []int) (Steps, error)
