// Package screen writes to where a program's output goes: a cell of a notebook, a terminal, or a
// pipe. It knows no run and no picture; packages live and boards build on it.
//
// [Pick] says which of the three it is. A sink that shows a changing state owns a [Pump], a
// goroutine that draws the latest state at a limited rate, so that a slow reader never delays the
// program. For a cell there are pieces of HTML and pictures ([HTMLData], [LastData],
// [ShowPicture]), for a terminal lines that are redrawn in place ([Block]). Numbers, durations and
// texts from users become strings in one way everywhere ([Number], [Value], [Clock], [OneLine]).
//
// [Progress] shows the progress of any task with a count: a download, a conversion. [ShowGrids]
// shows small tables.
package screen

import (
	"io"
	"os"

	"github.com/janpfeifer/gonb/gonbui"

	"github.com/graphnb/graphnb/internal/envknob"
)

// Options configure a sink; the zero value is the default.
type Options struct {
	Quiet  bool      // show nothing
	MaxFPS int       // maximum updates per second; 0 means 20
	Out    io.Writer // where a terminal or plain sink writes; nil is os.Stderr
	// Display receives a notebook's output; nil means the GoNB kernel if the program runs in a
	// cell. If it is set, the sink is always that of a notebook.
	Display Display
	// Said is where a notebook's sink writes the lines of Say; nil means os.Stdout, the cell's
	// output.
	Said io.Writer
}

// mode is the kind of place that output goes to.
type mode int

const (
	modeNone mode = iota
	Notebook
	Terminal
	Plain
)

// Pick chooses the mode for the environment and fills in the defaults of o.
func Pick(o *Options) mode {
	if o.MaxFPS <= 0 {
		o.MaxFPS = 20
	}
	if o.Quiet || (envknob.Worker.Get() != "" && o.Display == nil && o.Out == nil) {
		return modeNone
	}
	if o.Display == nil && gonbui.IsNotebook && o.Out == nil {
		o.Display = kernel{}
	}
	if o.Display != nil {
		return Notebook
	}
	if o.Out == nil {
		o.Out = os.Stderr
	}
	if !envknob.Headless.On() && os.Getenv("TERM") != "dumb" && TermWidth(o.Out) > 0 {
		return Terminal
	}
	return Plain
}

// States of a run. Interrupted, Failed and Done are final.
const (
	Starting    = "starting"
	Running     = "running"
	Evaluating  = "evaluating"
	Interrupted = "interrupted"
	Failed      = "failed"
	Done        = "done"
)
