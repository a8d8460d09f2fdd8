// Package record offers functions of package runs to the start of a run (package launch) but not to
// users: the record that is kept while a run trains, and the search for the job that trains one.
// Package runs implements it.
package record

import (
	"context"
	"encoding/json"

	"github.com/graphnb/graphnb/multigpu"
)

// Functions of package runs. A run is a *runs.Run.
var (
	// New starts recording a run that this process trains. For a resumed run it also shows the values
	// reported before.
	New func(run any, o Options) (Recorder, error)
	// OpenToResume is runs.Open for a run that will be resumed. A damaged result is no error, because
	// the resumed run writes a new one.
	OpenToResume func(dir string) (run any, err error)
	// Submitted returns the run in dir, or in runs.Dir if dir is empty, that has the identity given and a
	// job that trains it or waits for machines to do so, with the job's number; nil if there is none. For
	// a job that was asked to stop it waits, at most a minute, until it has ended.
	Submitted func(ctx context.Context, dir, identity string) (run any, id string)
	// Follow is runs.Attach for the process that has submitted the run as a job: cancelling ctx
	// interrupts the run. The job then writes a checkpoint and ends, which may be after Follow has
	// returned. It returns a run even with an error, if the run's directory can be read.
	Follow func(ctx context.Context, run any, o Options) (ended any, err error)
	// TensorBoard writes the same event file as runs.Export into the run's own directory, while this
	// process trains the run. Call the returned function after the run's result is written; it ends
	// the export.
	TensorBoard func(run any) (end func() error, err error)
)

// Options say how a run is shown and who hears of it.
type Options struct {
	// Title is the panel's title, by default the program and the dataset.
	Title string
	// Quiet shows nothing.
	Quiet bool
	// Metric is the dataset's metric; "" means accuracy.
	Metric string
	// FirstGPU is the GPU of rank 0; 0 is the first one. [Follow] ignores it.
	FirstGPU int
	// Notes are printed at the start, for example that the run is resumed.
	Notes []string
	// Observer, a runs.Observer, receives every event; it may be nil.
	Observer any
	// Removed returns an error if the run's directory was removed. It may be nil. [Follow] ignores it.
	Removed func() error
}

// Recorder turns the workers' events into a run's result, a panel in a cell or terminal, and calls of
// an observer. It is a runs.Observer too.
type Recorder interface {
	// Receive takes a message of a worker, and Output a line that it printed.
	Receive(rank int, message json.RawMessage)
	Output(rank int, stream, line string)
	// Watch shows the memory and stages of a group of workers until ctx ends.
	Watch(ctx context.Context, g *multigpu.Group)
	// Restart records that the workers start again from a checkpoint; event is a runs.Event.
	Restart(event any, firstGPU int, notes ...string) error
	// Close writes the result of a run that ended with err, and shows the final state.
	Close(err error) error
}
