// Package monitor shows what a machine does over time: of each GPU utilisation, memory and the share of it that
// runs of GraphNB have, temperature, power, clocks and why they are low, traffic over the bus and NVLink, and
// processes; of the host CPUs, memory, disks and network, within the limits of its container.
//
// # Basics
//
// [Watch] takes a [Sample] each second and returns a [Report] of means and extremes. In a cell it draws the time
// since it began, with a table of the present; in a terminal it shows some lines that change in place.
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
// Another process reads the GPUs: the command gnb, through NVIDIA's library NVML, so that a fault of that library
// never ends the cell. Without a driver, without the command, or where it was built without a C compiler, the
// report and the picture say why GPUs are missing, and show the host. A figure that a machine does not give is
// NaN; see [Value].
package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu"
)

// Options are the settings of [Watch]. The zero value watches the machine until the cell is interrupted (■).
type Options struct {
	// Interval is the time between samples; default 1 s, at least 100 ms.
	Interval time.Duration
	// Duration is how long to watch; 0 watches until ctx is done or the process is interrupted.
	Duration time.Duration
	// While is watched from its beginning to its end. It gets Watch's context, so that an interrupt ends
	// both, and Watch returns its error.
	While func(ctx context.Context) error
	// Run is the ID of the run (runs.Config.ID) whose share of GPU memory is shown; default that of all runs.
	Run string
	// Helper is the gnb program that reads GPUs; default that of GNB_HELPER, else the gnb beside this
	// program, else the one on PATH, which in a notebook is the kernel's.
	Helper string
	// Each is called with every sample, one call at a time.
	Each func(Sample)
	// Quiet shows nothing.
	Quiet bool
}

// Watch shows what this machine does until ctx is done, the process is interrupted, Options.Duration is over or
// Options.While returns. None of these is an error; an error is one of the options, or of While. It leaves no
// process behind. A sample takes under 1 ms of processor time, and a picture, once a second, a few.
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
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	w := newWatch(o)
	watching, enough := context.WithCancel(ctx)
	defer enough()
	worked := make(chan error, 1)
	if o.While != nil {
		go func() {
			defer enough()
			defer close(worked) // also where While ends its goroutine, as a test that fails does
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
	note    string // of the last sample
	sum     machine.Summary
	history machine.History
	sink    live.MonitorSink
}

func newWatch(o Options) *watch {
	return &watch{o: o, start: time.Now(), sink: live.NewMonitor(live.Options{Quiet: o.Quiet})}
}

func (w *watch) add(s machine.Sample) {
	w.history.Add(s)
	w.sum.Add(s, w.o.Run)
	w.note = s.Note
	if w.o.Each != nil {
		w.o.Each(sampleOf(s))
	}
	if !w.o.Quiet {
		w.sink.Update(w.picture(live.Running))
	}
}

// picture is what the sink shows.
func (w *watch) picture(state string) live.Monitor {
	return live.Monitor{
		Title: "monitor", State: state, Elapsed: time.Since(w.start), Samples: w.history.UpToNow(), Run: w.o.Run,
	}
}

// close shows the end and makes the report.
func (w *watch) close(ctx context.Context) *Report {
	r := &Report{Start: w.start, End: time.Now(), Note: w.note}
	p := w.picture(live.Done)
	if errors.Is(ctx.Err(), context.Canceled) {
		p.Detail = "ended by an interrupt"
	}
	_ = w.sink.Close(p) // watching has not failed because its display has
	for _, s := range w.history.Kept {
		r.Samples = append(r.Samples, sampleOf(s))
	}
	r.summed(&w.sum)
	return r
}
