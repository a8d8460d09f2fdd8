// Package inside offers functions of package gnb to the packages above it but not to users: runs
// without a directory, single training steps, and the identity of a training run before it starts.
// Package gnb implements it.
package inside

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/codeid"
)

// Functions of package gnb.
var (
	// Identify returns the identity of a dataset's content and a model's code, as runs record it.
	Identify func(ctx context.Context, ds *dataset.Dataset, model string) (*runs.Identity, error)
	// TrainArgs returns the program argument that a run of gnb.Train with options, a
	// gnb.TrainOptions, records: the settings other than data, code and seed that determine its
	// result.
	TrainArgs func(ds *dataset.Dataset, model string, options any) (json.RawMessage, error)
	// StageTimes returns the time per stage of a worker, a *gnb.Worker, so far.
	StageTimes func(worker any) map[string]time.Duration
	// Moved returns the bytes of rows and ids that a worker, a *gnb.Worker, has got from others for
	// cooperative batches so far.
	Moved func(worker any) int64
	// UseGraph makes a worker, a *gnb.Worker, sample from and compute on another graph of its dataset's
	// nodes, from now on. It fails after the first network or loop over batches.
	UseGraph func(worker any, g *graphops.Graph) error
	// Divided returns the *feed.Team of a worker, a *gnb.Worker, if the run asks the owners of edges; else nil.
	Divided func(worker any) any
	// UseRows is UseGraph for a run that asks the owners of edges: rows are those of this rank's nodes, inDegrees of all
	// nodes, and slices cuts out this rank's share of the nodes. Collective.
	UseRows func(worker any, rows sample.Rows, inDegrees []int32, slices func(d graphops.Degrees) graphops.Slicer) error
	// Settings returns the gnb.Loader and the sizes that gnb.Train would use for options, a gnb.TrainOptions, with out
	// columns instead of classes: the dataset needs neither labels nor splits.
	Settings func(ds *dataset.Dataset, options any, out int) (loader any, s nn.ModelConfig, err error)
	// OnlyTrain returns an error for an option of a gnb.TrainOptions that only gnb.Train follows; Settings calls it.
	OnlyTrain func(options any) error
	// LaunchOptions returns the gnb.LaunchOptions of a gnb.TrainOptions for a gnb.AnyModel.
	LaunchOptions func(ds *dataset.Dataset, model, options any) any
	// NewNetwork makes a network of a worker of the registered model encoder: build returns the
	// network's model for that of the encoder, which is nil if encoder is "". The result is a
	// *gnb.Net[nn.Model].
	NewNetwork func(worker any, encoder, name string, s nn.ModelConfig, build func(nn.Model) nn.Model) any
	// Optimizing returns the recipe.Optimizing of a gnb.TrainOptions, with a learning rate and a number of epochs.
	Optimizing func(options any, lr float64, epochs int) (how any, err error)
	// SetOptimizing sets the options of a *gnb.TrainOptions to those that make the recipe.Optimizing of a run.
	SetOptimizing func(options, how any, c runs.Config)
	// Optimizer makes a network's optimiser, a *gnb.Optimizer, as gnb.Train does. how is a recipe.Optimizing; an epoch
	// has items, in batches of loader, a gnb.Loader, or is one step if items is 0.
	Optimizer func(worker, net, how any, items int, loader any, epochs int) any
	// NoFeatures leaves the features out of a worker's batches, because its only network reads learned rows.
	NoFeatures func(worker any)
	// LoadWeights loads a file of weights, which rank 0 alone reads, into a network, a *gnb.Net. Collective.
	LoadWeights func(worker, net any, path string)
	// WithBest calls use with the weights of the last Worker.SaveBest of a network, a *gnb.Net, in a run with a
	// directory, and then restores the network's own. Collective.
	WithBest func(worker, net any, use func())
	// Embed computes a network's output for all nodes, layer by layer, and calls use with the rows [nodes, cols],
	// which are valid during the call, and the number of threads of the worker. The edges are those of g; nil means
	// the worker's graph. Collective.
	Embed func(worker, net any, g graphops.Slicer, use func(rows []float32, cols, threads int) error) error
	// Start starts a new pass of a network for a *gnb.Batch, without the batch's features as input.
	Start func(net, batch any) *nn.Fwd
	// OnHost calls use in the stage "evaluate", with the network's parameters in host memory, equal on
	// all ranks, and the number of threads of the worker. Collective.
	OnHost func(worker, net any, use func(threads int) error) error
	// FullGraph returns the whole graph as a batch, a *gnb.Batch, with the given seeds on rank 0.
	FullGraph func(worker any, seeds []int32) any
	// Report reports the values of an evaluation, as Worker.Evaluate reports its own.
	Report func(worker any, values []runs.NamedValue)
	// CountRepeated counts, over the first steps of an epoch, the edges and rows that all ranks sample, and
	// those that one rank would sample for the same batches. worker is a *gnb.Worker and loader a gnb.Loader. Collective.
	CountRepeated func(worker, loader any, steps int) (counts [4]float64, err error)
)

// moreRoots are the functions of AddRoots.
var moreRoots []func(name string) []codeid.Root

// AddRoots adds functions that return the roots of the code that a package above gnb has declared under a name. It is
// called from init functions.
func AddRoots(of ...func(name string) []codeid.Root) { moreRoots = append(moreRoots, of...) }

// MoreRoots returns the roots of the code that packages above gnb have declared under a name.
func MoreRoots(name string) (roots []codeid.Root) {
	for _, of := range moreRoots {
		roots = append(roots, of(name)...)
	}
	return roots
}

// OrNone returns v, the default if v is 0, and 0 if v is None: the value of an option whose zero value means a default.
func OrNone[T int | float64](v, def T) T {
	switch v {
	case 0:
		return def
	case optim.None:
		return 0
	}
	return v
}

// Given is the option from which [OrNone] makes v.
func Given[T int | float64](v T) T {
	if v == 0 {
		return optim.None
	}
	return v
}

type withoutDir struct{}

// WithoutDir makes gnb.Launch run a program without a run directory: it keeps only the Run that it
// returns.
func WithoutDir(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutDir{}, true)
}

// HasDir reports whether a run launched with ctx has a directory.
func HasDir(ctx context.Context) bool { return ctx.Value(withoutDir{}) == nil }

// Steps runs the stages of training steps one after the other, without overlap, in a program with
// one worker. A batch is a *gnb.Batch.
type Steps interface {
	// Sample samples the neighbourhoods of seeds with the random draws of a step, counted from 0
	// over the epoch's loops.
	Sample(seeds []int32, epoch, step int) (batch any, err error)
	// Fetch fetches the batch's labels and features.
	Fetch(batch any) error
	// Release returns the batch's memory for reuse.
	Release(batch any)
	// StageTimes returns the worker's time per stage so far.
	StageTimes() map[string]time.Duration
	// Text stores a text in the run's result.
	Text(name, text string)
	// Close releases the sampler.
	Close()
}

// NewSteps makes the Steps of a worker, a *gnb.Worker, with a number of neighbours per hop.
var NewSteps func(worker any, fanouts []int) (Steps, error)
