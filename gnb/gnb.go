// Package gnb trains graph neural networks on large graphs by neighbour sampling
// with several worker processes, from a cell of a GoNB notebook or from any Go
// program.
//
// There are three levels, each usable alone:
//
//   - [Train] decides everything and shows a live panel.
//   - A program ([Program], [Launch]) is your own training loop, run once per
//     worker: what mp.spawn(run) is to a PyTorch user.
//   - The pieces: packages graphops and multigpu, in any Go program.
//
// # Basics
//
//	ds  := gnb.Must(gnb.Load(ctx, "planted"))
//	run := gnb.Must(gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{Workers: 2}))
//	fmt.Println(run)
//
// Models and programs are NAMED package-level variables. In a notebook every
// cell is a new process in which only declarations survive, and every worker is
// that same process started again: a worker finds a model or program by its name.
//
// # Caveats
//
// A worker sees declarations, not what main changed: a package variable set in
// main keeps its declared value in a worker. What a run needs travels as the
// program's argument, which must survive a trip through JSON; it is kept in the run's
// config.json.
//
// A zero in options means the default, as each field's comment says; [None] says zero where
// that makes sense.
//
// Workers need Linux. Elsewhere a run has one worker, inside this process.
package gnb

import (
	"math"

	"github.com/graphnb/graphnb/gnb/internal/bounds"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
)

// Version is the version of the library, written into every run and checkpoint.
const Version = "0.1.0"

// The types of the packages below that a notebook meets.
type (
	// Dataset is a graph with features, labels and splits; see [Load].
	Dataset = dataset.Dataset
	// Graph is a graph stored by destination (CSC).
	Graph = graphops.Graph
	// Block is the bipartite graph of one hop, on which a layer computes.
	Block = graphops.Block
	// ModelConfig is what a model is built from: its sizes, dropout and norm.
	ModelConfig = nn.ModelConfig
	// Hop is what a sampler of the user's own sees of one hop.
	Hop = sample.Hop
	// Picker is a sampler of the user's own that picks per destination.
	Picker = sample.Picker
	// FrontierPicker is a sampler of the user's own that sees a whole frontier.
	FrontierPicker = sample.FrontierPicker
	// Fanouts is the neighbour sampler: how many in-neighbours each hop takes.
	Fanouts = sample.Fanouts
)

// ErrInterrupted is what a run returns (errors.Is) that was interrupted: its
// checkpoint is written, and running the same cell again goes on from there.
var ErrInterrupted = runs.ErrInterrupted

var errWorker = entry.ErrWorker

// callSite is the source line of the program that called this package, for errors.
func callSite() string { return entry.CallSite() }

// None says zero to an option whose zero means a default: no dropout, no epoch, no
// checkpoint, a learning rate of 0. A field of this package's options says what its zero
// means, and whether it takes None; the others refuse it.
const None = -1

// The largest values of options. Beyond them a run would not start within minutes, or its
// draws would repeat.
const (
	maxLayers  = sample.MaxHops
	maxEpochs  = sample.MaxEpochs
	maxHidden  = bounds.MaxHidden
	maxVirtual = 1 << 12
	maxCount   = math.MaxInt32 // of nodes, and of what is counted along them: seeds, steps
	maxKept    = 1 << 20
)

// maxWorkers and maxThreads are bounds that grow with the machine.
func maxWorkers() int { return bounds.MaxWorkers() }
func maxThreads() int { return machine.MaxThreads() }

// orNone is v with its default, and 0 where it is None.
func orNone[T int | float64](v, def T) T {
	switch v {
	case 0:
		return def
	case None:
		return 0
	}
	return v
}

// inBounds is the error of the first number among the options that is out of its bounds.
func (o LaunchOptions) inBounds() error {
	every := o.CheckpointEvery
	if every == None {
		every = 0
	}
	return bounds.CheckAll(
		bounds.Whole("Workers", o.Workers, 1, maxWorkers()), bounds.Whole("VirtualRanks", o.VirtualRanks, 1, maxVirtual),
		bounds.Whole("Threads", o.Threads, 1, maxThreads()), bounds.Whole("FirstGPU", o.FirstGPU, 0, maxWorkers()-1), bounds.Whole("CheckpointEvery", every, 1, maxCount), bounds.Whole("KeepCheckpoints", o.KeepCheckpoints, 1, maxKept),
	)
}
