// Package inside offers functions of package gnb to the packages above it but not to users: runs
// without a directory, single training steps, and the identity of a training run before it starts.
// Package gnb implements it.
package inside

import (
	"context"
	"encoding/json"

	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Functions of package gnb.
var (
	// Identify returns the identity of a dataset's content and a model's code, as runs record it.
	Identify func(ctx context.Context, ds *dataset.Dataset, model string) (*runs.Identity, error)
	// TrainArgs returns the program argument that a run of gnb.Train with options, a
	// gnb.TrainOptions, records: the settings other than data, code and seed that determine its
	// result.
	TrainArgs func(ds *dataset.Dataset, model string, options any) (json.RawMessage, error)
	// Settings returns the gnb.Loader and the sizes that gnb.Train would use for options, a gnb.TrainOptions, with out
	// columns instead of classes: the dataset needs neither labels nor splits.
	Settings func(ds *dataset.Dataset, options any, out int) (loader any, s nn.ModelConfig, err error)
	// OnlyTrain returns an error for an option of a gnb.TrainOptions that only gnb.Train follows; Settings calls it.
	OnlyTrain func(options any) error
	// LaunchOptions returns the gnb.LaunchOptions of a gnb.TrainOptions for a gnb.AnyModel.
	LaunchOptions func(ds *dataset.Dataset, model, options any) any
	// Optimizing returns the recipe.Optimizing of a gnb.TrainOptions, with a learning rate and a number of epochs.
	Optimizing func(options any, lr float64, epochs int) (how any, err error)
	// SetOptimizing sets the options of a *gnb.TrainOptions to those that make the recipe.Optimizing of a run.
	SetOptimizing func(options, how any, c runs.Config)
	// Optimizer makes a network's optimiser, a *gnb.Optimizer, as gnb.Train does. how is a recipe.Optimizing; an epoch
	// has items, in batches of loader, a gnb.Loader, or is one step if items is 0.
	Optimizer func(worker, net, how any, items int, loader any, epochs int) any
	// WithBest calls use with the weights of the last Worker.SaveBest of a network, a *gnb.Net, in a run with a
	// directory, and then restores the network's own. Collective.
	WithBest func(worker, net any, use func())
)

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
