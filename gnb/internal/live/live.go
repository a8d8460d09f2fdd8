// Package live shows a training run while it happens: a panel in a notebook
// cell, a progress bar in a terminal, plain lines in a pipe.
//
// # Basics
//
// The side that trains fills a [Snapshot], plain numbers and strings, and hands
// it to a [Sink] as often as it likes:
//
//	sink := live.New(live.Options{})
//	for … {
//		sink.Update(live.Snapshot{Title: "sage on karate", State: live.Running, …})
//	}
//	err := sink.Close(final)
//
// Update stores the snapshot and returns. A goroutine of the sink draws the
// latest one, at most Options.MaxFPS times a second, so drawing, a slow browser
// or a full pipe never hold up the training. Snapshots that come faster are
// skipped; the one given to Close is always shown.
//
// [New] picks what fits the surroundings:
//
//   - a notebook cell (GoNB): one output, updated in place, as HTML with an
//     image; at the end it becomes one PNG figure, and the numbers follow as
//     one table. Where a run ended before its time, the reason stands above
//     both, once. That, and what Say was given, which goes to standard output,
//     is all a saved notebook holds;
//   - a terminal: a progress bar on standard error, log lines above it;
//   - a pipe or a file: a line per epoch and log line, and a progress line
//     every few seconds;
//   - nothing with Options.Quiet and in worker processes (GNB_WORKER is set):
//     only the launching process displays.
//
// GNB_HEADLESS (set, and not 0) means that nobody is watching: a terminal gets
// plain lines. A notebook's panel is the same with and without a browser.
// NO_COLOR is honoured, and so is TERM=dumb.
//
// [Progress] is the same for any task with a count: a download, a conversion.
//
// # Caveats
//
// A sink owns a goroutine until Close. What it shows is never an error of the
// training: a broken display pipe ends the display, Close reports it after a
// bounded wait, and the run goes on.
package live

import (
	"io"
	"os"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/janpfeifer/gonb/gonbui"
)

// States of a run. Interrupted, Failed and Done are final.
const (
	Starting    = "starting"
	Running     = "running"
	Evaluating  = "evaluating"
	Interrupted = "interrupted"
	Failed      = "failed"
	Done        = "done"
)

// Point is a value at a step of the run (a loss) or at an epoch (a metric).
type Point = chart.Point

// Series is a named curve, such as the accuracy on the split "val".
type Series struct {
	Name   string
	Points []Point
}

// StageShare is the share, 0 to 1, of a worker's time that one stage takes.
// Shares need not add up to 1: what is missing is drawn as empty.
type StageShare struct {
	Name  string
	Share float64
}

// Worker is the row of one worker process.
type Worker struct {
	Rank, Epoch, Step        int // Epoch and Step count from 1; 0 is "not yet"
	SeedsPerSec, EdgesPerSec float64
	Stages                   []StageShare // in the order they are drawn
	Stage                    string       // what the worker does now
	RSS                      int64        // bytes; 0 is unknown
}

// Snapshot is everything a sink shows, at one moment. Zero values mean unknown
// and are left out. Text from users may hold any characters: it is escaped.
//
// A sink keeps the arrays behind Loss, LR, the Points of Metrics, and Text until
// the next snapshot: elements that it has been given must not change, but
// appending to the same slices is fine. Workers and Rates are copied.
type Snapshot struct {
	Title  string
	State  string // one of the constants above; "" is Running
	Detail string // a note, or the reason of Interrupted and Failed

	// Epoch is the epoch in progress, 1 to Epochs; Step is the number of steps
	// done in it, of Steps. Progress is (Epoch-1 + Step/Steps) / Epochs.
	Epoch, Epochs, Step, Steps int
	Unit                       string        // what a step is called; "" is "step"
	Elapsed, Left              time.Duration // Left 0: unknown

	Loss    []Point  // by step of the whole run, ascending, any length; NaN and Inf are gaps
	LR      []Point  // the learning rate: a point for each step from which on it is another
	Metric  string   // what Metrics measure; "" is "accuracy" where all are splits (train, val, test)
	Metrics []Series // by epoch

	Workers []Worker
	GPUs    []GPU    // those that the run computes on, now; a sink keeps the slice
	Rates   []Rate   // the rates of all workers together, and the machine's limits
	Text    []string // the log so far: it only grows. A line given by Print does not belong here too
}

// Rate is how much of something a run does in a second, and how much of it the
// machine could do at most; a Limit of 0 is unknown. Units are as in "edges/s",
// "B/s", "FLOP/s".
type Rate struct {
	Unit          string
	PerSec, Limit float64
}

// Sink shows snapshots. Its methods may be called from several goroutines and
// return at once, save Close.
type Sink interface {
	// Update makes s the state to show.
	Update(s Snapshot)
	// Print adds a line (or several) to the log: above the bar in a terminal,
	// below the workers in a cell.
	Print(line string)
	// Say is Print for what a program says for its reader to keep: in a cell it
	// goes to Options.Said, where it stays, all of it.
	Say(line string)
	// Close shows the final state, waits until it is out (a few seconds at
	// most) and ends the sink. The error says that the display is broken, which
	// is no fault of the run. Later calls of any method do nothing.
	Close(final Snapshot) error
}

// Options of a sink; the zero value is the good default.
type Options struct {
	Quiet  bool      // show nothing
	MaxFPS int       // most updates a second; 0 is 20
	Out    io.Writer // where a terminal or plain sink writes; nil is os.Stderr
	// Display receives what a notebook shows; nil is the GoNB kernel, where the
	// program runs in a cell. Given, the sink is a notebook's, whatever runs it.
	Display Display
	// Said is where a notebook's sink writes what Say is given; nil is os.Stdout,
	// which is the cell's.
	Said io.Writer
}

// New returns the sink that fits the surroundings, see the package's
// documentation. It never fails: in doubt it writes plain lines.
func New(o Options) Sink {
	switch pick(&o) {
	case modeNotebook:
		return newNotebook(o)
	case modeTerminal:
		return newTerminal(o)
	case modePlain:
		return newPlain(o)
	}
	return none{}
}

type mode int

const (
	modeNone mode = iota
	modeNotebook
	modeTerminal
	modePlain
)

// pick chooses by the surroundings and fills in the defaults of o.
func pick(o *Options) mode {
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
		return modeNotebook
	}
	if o.Out == nil {
		o.Out = os.Stderr
	}
	if !envknob.Headless.On() && os.Getenv("TERM") != "dumb" && termWidth(o.Out) > 0 {
		return modeTerminal
	}
	return modePlain
}

// none shows nothing.
type none struct{}

func (none) Update(Snapshot)      {}
func (none) Print(string)         {}
func (none) Say(string)           {}
func (none) Close(Snapshot) error { return nil }

// final reports whether the state is one that a run ends in.
func (s *Snapshot) final() bool {
	return s.State == Done || s.State == Failed || s.State == Interrupted
}

// state is State with its default.
func (s *Snapshot) state() string {
	if s.State == "" {
		return Running
	}
	return s.State
}

// metric is Metric with its default; "" is a mixture.
func (s *Snapshot) metric() string {
	if s.Metric != "" {
		return oneLine(s.Metric)
	}
	for _, m := range s.Metrics {
		if _, split := fixedLooks[m.Name]; !split {
			return ""
		}
	}
	return "accuracy"
}

// progress is the share of the run that is done, and whether that is known.
// stopped says whether the run ended before its time, with a reason.
func (s *Snapshot) stopped() bool {
	return (s.State == Failed || s.State == Interrupted) && s.Detail != ""
}

func (s *Snapshot) progress() (share float64, known bool) {
	if s.State == Done {
		return 1, true
	}
	if s.Epochs <= 0 {
		if s.Steps <= 0 {
			return 0, false
		}
		return clamp01(float64(s.Step) / float64(s.Steps)), true
	}
	done := float64(max(s.Epoch, 1) - 1)
	if s.Steps > 0 {
		done += clamp01(float64(s.Step) / float64(s.Steps))
	}
	return clamp01(done / float64(s.Epochs)), true
}

// own returns s with its own copies of the parts that callers refill in place.
func (s Snapshot) own() Snapshot {
	s.Metrics = append([]Series(nil), s.Metrics...)
	s.Rates = append([]Rate(nil), s.Rates...)
	s.Workers = append([]Worker(nil), s.Workers...)
	for i := range s.Workers {
		s.Workers[i].Stages = append([]StageShare(nil), s.Workers[i].Stages...)
	}
	return s
}
