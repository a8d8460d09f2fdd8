// Package monitor measures and shows the load of a machine over time. For each GPU: utilisation,
// memory and the share used by runs of GraphNB, temperature, power, clocks and the reasons for low
// clocks, traffic over the bus and NVLink, and processes. For the host: CPUs, memory, disks and
// network, within the limits of its container.
//
// # Basics
//
// [Watch] takes a [Sample] each second and returns a [Report] of means and extremes. In a cell it
// draws curves since its start and a table of current values; in a terminal it updates a few lines
// in place.
//
//	report, err := monitor.Watch(ctx, monitor.Options{}) // until ■
//
// Watch a training run from its beginning to its end:
//
//	report, err := monitor.Watch(ctx, monitor.Options{While: func(ctx context.Context) (err error) {
//		run, err = gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{})
//		return err
//	}})
//
// The command "gnb monitor" does the same in a terminal, and serves samples to Prometheus.
//
// # Caveats
//
// Another process, the command gnb, reads the GPUs through NVIDIA's library NVML, so that a fault
// of that library never ends the cell. Without a driver, without the command, or if the command
// was built without a C compiler, the report and the picture show only the host and why GPUs are
// missing. A figure that the machine does not provide is NaN; see [Value].
package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu"
)

// Options are the settings of [Watch]. The zero value watches the machine until the cell is interrupted (■).
type Options struct {
	// Interval is the time between samples, at least 100 ms; 0 means 1 s.
	Interval time.Duration
	// Duration is the time to watch; 0 means until ctx is done or the process is interrupted. Watch lasts longer if there is
	// no sample by then, or if the driver has not answered for the first time, which takes it a second or two; it waits for
	// the driver up to 15 s.
	Duration time.Duration
	// While is a function to watch: Watch calls it and ends when it returns, with its error. While
	// gets Watch's context, so that an interrupt ends both.
	While func(ctx context.Context) error
	// Run is the ID of the run (runs.Config.ID) whose share of GPU memory is shown; by default the
	// share of all runs.
	Run string
	// Helper is the gnb program that reads GPUs; by default $GNB_HELPER, else the gnb in this
	// program's directory, else the gnb on PATH, which in a notebook is the kernel's PATH.
	Helper string
	// Each is called with every sample, one call at a time.
	Each func(Sample)
	// Quiet shows nothing.
	Quiet bool
}

// Watch shows the load of this machine until ctx is done, the process is interrupted,
// Options.Duration has passed or Options.While returns. None of these is an error; Watch fails
// only if the options are invalid or While fails. It leaves no process running. A sample takes
// under 1 ms of processor time; a picture, drawn once per second, takes a few.
func Watch(ctx context.Context, o Options) (*Report, error) {
	multigpu.EnterIfWorker()
	if multigpu.InWorker() {
		return nil, errors.New("monitor: this is a worker process; call Watch in the program that launches the workers")
	}
	if o.Interval < 0 || o.Duration < 0 || o.Interval > 0 && o.Interval < machine.MinInterval {
		return nil, fmt.Errorf("monitor: an Interval of %v and a Duration of %v: Interval is %v or more, and neither is negative", o.Interval, o.Duration, machine.MinInterval)
	}
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	w := newWatch(o)
	watching, enough := context.WithCancel(ctx)
	defer enough()
	if o.Duration > 0 {
		defer w.last(o.Duration, enough)()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	worked := make(chan error, 1)
	if o.While != nil {
		go func() {
			defer enough()
			defer close(worked) // also if While ends its goroutine, as a failing test does
			worked <- o.While(ctx)
		}()
	}
	err := machine.Watch(watching, machine.WatchOptions{Interval: o.Interval, Helper: o.Helper}, w.add)
	if watching.Err() != nil {
		err = nil
	}
	if o.While != nil {
		err = errors.Join(err, <-worked)
	}
	return w.close(ctx), err
}

// watch is the state of [Watch].
type watch struct {
	o       Options
	start   time.Time
	note    string // note of the last sample
	sum     machine.Summary
	history machine.History
	sink    live.MonitorSink
	// over is set when the time to watch has passed, and answered when a sample has the driver's answer; enough, if not nil,
	// ends the watch.
	over, answered atomic.Bool
	enough         func()
}

// last makes the watch end after d, but not before a sample has the driver's answer, unless that takes it very long.
func (w *watch) last(d time.Duration, enough func()) (stop func()) {
	w.enough = enough
	over := time.AfterFunc(d, func() {
		w.over.Store(true)
		if w.answered.Load() {
			enough()
		}
	})
	silent := time.AfterFunc(d+15*time.Second, enough)
	return func() { over.Stop(); silent.Stop() }
}

func newWatch(o Options) *watch {
	return &watch{o: o, start: time.Now(), sink: live.NewMonitor(screen.Options{Quiet: o.Quiet})}
}

func (w *watch) add(s machine.Sample) {
	w.history.Add(s)
	w.sum.Add(s, w.o.Run)
	w.note = s.Note
	if w.o.Each != nil {
		w.o.Each(s)
	}
	if s.Note != machine.Starting {
		w.answered.Store(true)
		if w.over.Load() && w.enough != nil {
			w.enough()
		}
	}
	if !w.o.Quiet {
		w.sink.Update(w.picture(screen.Running))
	}
}

// picture returns the data that the sink shows.
func (w *watch) picture(state string) live.Monitor {
	return live.Monitor{
		Title: "monitor", State: state, Elapsed: time.Since(w.start), Samples: w.history.UpToNow(), Run: w.o.Run,
	}
}

// close shows the final state and makes the report.
func (w *watch) close(ctx context.Context) *Report {
	r := &Report{Start: w.start, End: time.Now(), Note: w.note}
	p := w.picture(screen.Done)
	if errors.Is(ctx.Err(), context.Canceled) {
		p.Detail = "ended by an interrupt"
	}
	_ = w.sink.Close(p) // a broken display does not fail the watch
	r.Samples = append(r.Samples, w.history.Kept...)
	r.Host, r.GPUs = w.sum.Host, w.sum.GPUs
	return r
}
