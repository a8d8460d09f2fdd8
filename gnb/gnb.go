// Package gnb trains graph neural networks on large graphs by neighbour sampling
// with several worker processes, from a cell of a GoNB notebook or from any Go
// program.
//
// There are three levels, each usable alone:
//
//   - [Train] trains a model with options that all have defaults, and shows a live panel.
//   - A program ([Program], [Launch]) is your own training loop, run once per worker, like
//     mp.spawn(run) in PyTorch.
//   - Packages graphops and multigpu provide the pieces to any Go program.
//
// # Basics
//
//	ds  := gnb.Must(gnb.Load(ctx, "planted"))
//	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}))
//	fmt.Println(run)
//
// Models and programs are NAMED package-level variables. In a notebook every
// cell is a new process in which only declarations survive, and every worker is
// that same process started again: a worker finds a model or program by its name.
//
// # Caveats
//
// A worker sees declarations, not the changes that main made: a package variable set in main keeps
// its declared value in a worker. Pass what a run needs as the program's argument, which must
// survive encoding to JSON and back; the run's config.json records it.
//
// A zero in options means zero where zero makes sense, such as no dropout, and else the default, as each field's comment
// states.
//
// Workers need Linux. Elsewhere a run has one worker, inside this process.
package gnb

import (
	"errors"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// Version is the version of the library, written into every run and checkpoint.
const Version = "0.1.0"

// Types of lower packages that notebooks use.
type (
	// Dataset is a graph with features, labels and splits; see [Load].
	Dataset = dataset.Dataset
	// Graph is a graph stored by destination (CSC).
	Graph = graphops.Graph
	// Block is the bipartite graph of one hop, on which a layer computes.
	Block = graphops.Block
	// ModelConfig is what a model is built from: its sizes, dropout and norm.
	ModelConfig = nn.ModelConfig
	// Hop is the view of one hop that a custom sampler gets.
	Hop = sample.Hop
	// Picker is a custom sampler that picks per destination.
	Picker = sample.Picker
	// FrontierPicker is a custom sampler that sees a whole frontier.
	FrontierPicker = sample.FrontierPicker
	// Fanouts is the neighbour sampler: the number of in-neighbours sampled at each hop.
	Fanouts = sample.Fanouts
	// Labor is the layer-neighbour sampler: nodes with common neighbours pick the same ones.
	Labor = sample.Labor
)

// ErrInterrupted matches (errors.Is) the error of an interrupted run. The run has written a
// checkpoint; running the same cell again resumes from it.
var ErrInterrupted = runs.ErrInterrupted

// ErrNoCheckpoint matches the error of a finished run that cannot be resumed, because it has no checkpoint. Another run can
// start with its weights ([LaunchOptions].From).
var ErrNoCheckpoint = errors.New("finished and has no checkpoint")

// ErrUndefined matches the error of a dataset whose metric does not exist on the split that chooses the best epoch: none of
// its nodes has a label, or the ROC AUC lacks nodes of one of two classes.
var ErrUndefined = tally.ErrUndefined

// The largest values of options. With larger values a run would not start within minutes, or its
// random draws would repeat.
const (
	maxLayers = sample.MaxHops
	maxEpochs = sample.MaxEpochs
	maxHidden = entry.MaxHidden
	// maxEmbedding is the number of random draws that a row of embeddings has.
	maxEmbedding = philox.MaxDraws
	maxCount     = entry.MaxCount
)
