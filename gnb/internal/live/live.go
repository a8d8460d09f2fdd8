// Package live shows a training run in progress: a panel in a notebook cell, a progress bar in a
// terminal, plain lines in a pipe.
//
// # Basics
//
// The side that trains fills a [Snapshot], plain numbers and strings, and hands
// it to a [Sink] as often as it likes:
//
//	sink := live.New(screen.Options{})
//	for … {
//		sink.Update(live.Snapshot{Title: "sage on karate", State: live.Running, …})
//	}
//	err := sink.Close(final)
//
// Update stores the snapshot and returns. A goroutine of the sink draws the latest one, at most
// Options.MaxFPS times per second, so drawing, a slow browser or a full pipe never delay the
// training. Snapshots that arrive faster are skipped; the one given to Close is always shown.
//
// [New] chooses the sink for the environment:
//
//   - a notebook cell (GoNB): one output, updated in place, as HTML with an image; at the end it
//     becomes one PNG figure, and the numbers follow as one table. If a run ended early, the
//     reason is shown above both, once. A saved notebook holds these and the lines of Say, which
//     go to standard output;
//   - a terminal: a progress bar on standard error, log lines above it;
//   - a pipe or a file: a line per epoch and log line, and a progress line
//     every few seconds;
//   - nothing with Options.Quiet and in worker processes (GNB_WORKER is set):
//     only the launching process displays.
//
// With GNB_HEADLESS (set, and not 0) a terminal gets plain lines. A notebook's panel is the same
// with and without a browser. NO_COLOR and TERM=dumb are respected.
//
// [screen.Progress] is the same for any task with a count: a download, a conversion.
//
// # Caveats
//
// A sink owns a goroutine until Close. A display error never fails the training: a broken display
// pipe ends the display, Close reports it after a bounded wait, and the run continues.
package live

import (
	"time"

	"github.com/graphnb/graphnb/gnb/internal/chart"
	"github.com/graphnb/graphnb/gnb/internal/screen"
)

// Series is a named curve, such as the accuracy on the split "val".
type Series struct {
	Name   string
	Points []chart.Point
}

// StageShare is the share, 0 to 1, of a worker's time that one stage takes. If shares add up to
// less than 1, the rest is drawn empty.
type StageShare struct {
	Name  string
	Share float64
}

// Worker is the row of one worker process.
type Worker struct {
	Rank, Epoch, Step        int          // Epoch and Step count from 1; 0 is "not yet"
	SeedsPerSec, EdgesPerSec float64      // seeds, or what Snapshot.Counted names
	Stages                   []StageShare // in the order they are drawn
	Stage                    string       // the worker's current stage
	RSS                      int64        // bytes; 0 is unknown
}

// Snapshot is the state of a run that a sink shows. Zero values mean unknown and are omitted. Text
// from users may hold any characters: it is escaped.
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
	Unit                       string        // name of a step; "" means "step"
	Counted                    string        // what SeedsPerSec of workers count, such as "graphs"; "" means seeds
	Elapsed, Left              time.Duration // Left 0: unknown

	Loss    []chart.Point // by step of the whole run, ascending, any length; NaN and Inf are gaps
	Mean    chart.Point   // mean loss of the last epoch that ended; its Step is that epoch, 0 before
	LR      []chart.Point // the learning rate: one point for each step at which it changes
	Lower   bool          // a lower value of Metrics is better
	Metric  string        // what Metrics measure; "" means "accuracy" if all are splits (train, val, test)
	Metrics []Series      // by epoch
	Logged  []Series      // what the program logged, by step
	Drawn   []Drawn       // what it logged to look at; a sink keeps the slice

	Workers []Worker
	GPUs    []GPU    // current state of the run's GPUs; a sink keeps the slice
	Rates   []Rate   // the rates of all workers together, and the machine's limits
	Rows    string   // where rows of features came from; "" if workers have all
	Text    []string // the log so far, append-only, without lines given to Print
}

// Rate is the rate of a run and the machine's limit for it; a Limit of 0 means unknown. Units are
// for example "edges/s", "B/s", "FLOP/s".
type Rate struct {
	Unit          string
	PerSec, Limit float64
}

// Sink shows snapshots. Its methods may be called from several goroutines; all except Close return
// at once.
type Sink interface {
	// Update makes s the state to show.
	Update(s Snapshot)
	// Print adds a line (or several) to the log: above the bar in a terminal,
	// below the workers in a cell.
	Print(line string)
	// Say is Print for output that the reader keeps: in a cell it goes to Options.Said, without a
	// limit on lines.
	Say(line string)
	// Close shows the final state, waits until it is shown (a few seconds at most) and ends the
	// sink. It returns an error if the display is broken, which does not affect the run. Later
	// calls of any method do nothing.
	Close(final Snapshot) error
}

// New returns the sink for the environment; see the package comment. It never fails: in doubt it
// writes plain lines.
func New(o screen.Options) Sink {
	switch screen.Pick(&o) {
	case screen.Notebook:
		return newNotebook(o)
	case screen.Terminal:
		return newTerminal(o)
	case screen.Plain:
		return newPlain(o)
	}
	return none{}
}

// none shows nothing.
type none struct{}

func (none) Update(Snapshot)      {}
func (none) Print(string)         {}
func (none) Say(string)           {}
func (none) Close(Snapshot) error { return nil }

// final reports whether the state is final.
func (s *Snapshot) final() bool {
	return s.State == screen.Done || s.State == screen.Failed || s.State == screen.Interrupted
}

// state returns State or its default.
func (s *Snapshot) state() string {
	if s.State == "" {
		return screen.Running
	}
	return s.State
}

// metric returns Metric or its default; "" means several metrics.
func (s *Snapshot) metric() string {
	if s.Metric != "" {
		return screen.OneLine(s.Metric)
	}
	for _, m := range s.Metrics {
		if !usualSplit(m.Name) {
			return ""
		}
	}
	return "accuracy"
}

// progress is the share of the run that is done, and whether that is known. stopped reports
// whether the run ended early, with a reason.
func (s *Snapshot) stopped() bool {
	return (s.State == screen.Failed || s.State == screen.Interrupted) && s.Detail != ""
}

func (s *Snapshot) progress() (share float64, known bool) {
	if s.State == screen.Done {
		return 1, true
	}
	if s.Epochs <= 0 {
		if s.Steps <= 0 {
			return 0, false
		}
		return screen.Clamp(float64(s.Step) / float64(s.Steps)), true
	}
	done := float64(max(s.Epoch, 1) - 1)
	if s.Steps > 0 {
		done += screen.Clamp(float64(s.Step) / float64(s.Steps))
	}
	return screen.Clamp(done / float64(s.Epochs)), true
}

// own returns s with its own copies of the parts that callers refill in place.
func (s Snapshot) own() Snapshot {
	s.Metrics, s.Logged = append([]Series(nil), s.Metrics...), append([]Series(nil), s.Logged...)
	s.Rates = append([]Rate(nil), s.Rates...)
	s.Workers = append([]Worker(nil), s.Workers...)
	for i := range s.Workers {
		s.Workers[i].Stages = append([]StageShare(nil), s.Workers[i].Stages...)
	}
	return s
}

// lastOf returns the last finite value of points, if there is one.
func lastOf(p []chart.Point) (chart.Point, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if chart.Finite(p[i].Y) {
			return p[i], true
		}
	}
	return chart.Point{}, false
}
