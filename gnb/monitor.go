package gnb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/multigpu"
)

// What [Monitor] sees of a machine. A figure that the machine does not give is NaN; its method Known says
// whether it was given.
type (
	// MonitorSample is one moment of a machine: the host, its GPUs, and why something is missing.
	MonitorSample = machine.Sample
	// MonitorHost is the machine without its GPUs, within this process's control group.
	MonitorHost = machine.Host
	// MonitorGPU is one GPU.
	MonitorGPU = machine.GPU
	// MonitorInstance is a part of a GPU that is divided (MIG).
	MonitorInstance = machine.Instance
	// MonitorProcess is a process that uses a GPU.
	MonitorProcess = machine.Process
	// MonitorValue is a figure, or NaN.
	MonitorValue = machine.Value
)

// MonitorOptions say what [Monitor] watches, and until when. The zero value watches the machine until the cell
// is interrupted (■).
type MonitorOptions struct {
	// Interval is the time between samples, 1 s by default, at least 100 ms.
	Interval time.Duration
	// Duration is how long to watch; 0 is until ctx is done, or an interrupt.
	Duration time.Duration
	// While is watched from its beginning to its end: a training run, say. It gets Monitor's context, so
	// that an interrupt ends it too, and Monitor returns its error.
	While func(ctx context.Context) error
	// Run is the run whose share of each GPU's memory is shown; by default that of all runs of GraphNB.
	Run *Run
	// Helper is the gnb program that reads GPUs; by default that of GNB_HELPER, else the one beside
	// this program, else the one on PATH, which
	// in a notebook is the one that the kernel came with.
	Helper string
	// Each is called with every sample, one call at a time.
	Each func(MonitorSample)
	// Quiet shows nothing.
	Quiet bool
}

// Monitor shows what this machine does: of each GPU utilisation, memory and what of it runs of GraphNB have,
// temperature, power, clocks and why they are low, traffic over the bus and NVLink, and processes; beside them
// the host's CPUs, memory, disks and network, within the limits of its container. In a cell it is a picture
// of the time since it began, and a table of now; in a terminal some lines.
//
//	gnb.Monitor(ctx)                        // until ■
//	gnb.Monitor(ctx, gnb.MonitorOptions{While: func(ctx context.Context) error {
//		run, err = gnb.Train(ctx, ds, gnb.SAGE, gnb.TrainOptions{})
//		return err
//	}})
//
// GPUs are read by another process, the command gnb, through NVIDIA's library, so that a fault of it costs the
// cell nothing. Where that cannot be (no driver, no gnb, or one that was built without a C compiler), the
// report and the picture say why, and the host is shown. An interrupt, and ctx's end, are the ways to end
// Monitor and no errors; an error is one of the options, or of While. Nothing is left when it returns. It
// takes under 1 ms of processor time a sample, and a picture a few, once a second.
func Monitor(ctx context.Context, options ...MonitorOptions) (*MonitorReport, error) {
	multigpuEnter()
	if multigpu.InWorker() {
		return nil, errWorker
	}
	var o MonitorOptions
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		return nil, errors.New("gnb: Monitor takes one MonitorOptions, and got several")
	}
	if o.Interval < 0 || o.Duration < 0 || o.Interval > 0 && o.Interval < machine.MinInterval {
		return nil, fmt.Errorf("gnb: an Interval of %v and a Duration of %v: Interval is %v or more, and neither is negative", o.Interval, o.Duration, machine.MinInterval)
	}
	ctx, stop := multigpu.Interruptible(ctx)
	defer stop()
	if o.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	m := newMonitored(o)
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
	err := machine.Watch(watching, machine.WatchOptions{Interval: o.Interval, Helper: o.Helper}, m.add)
	if watching.Err() != nil {
		err = nil
	}
	if o.While != nil {
		err = errors.Join(err, <-worked)
	}
	m.close(ctx)
	return &m.report, err
}

// monitored is a machine while it is watched.
type monitored struct {
	o       MonitorOptions
	run     string // whose share of memory is shown
	report  MonitorReport
	history machine.History
	sink    live.MonitorSink
}

func newMonitored(o MonitorOptions) *monitored {
	m := &monitored{o: o, report: MonitorReport{Start: time.Now()}, sink: live.NewMonitor(live.Options{Quiet: o.Quiet})}
	if o.Run != nil {
		m.run = o.Run.Config.ID
	}
	return m
}

func (m *monitored) add(s MonitorSample) {
	m.history.Add(s)
	m.report.Samples = m.history.Kept
	m.report.add(s, m.run)
	if m.o.Each != nil {
		m.o.Each(s)
	}
	if !m.o.Quiet {
		m.sink.Update(m.picture(live.Running))
	}
}

// picture is what the sink shows.
func (m *monitored) picture(state string) live.Monitor {
	return live.Monitor{
		Title: "monitor", State: state, Elapsed: time.Since(m.report.Start), Samples: m.history.UpToNow(), Run: m.run,
	}
}

func (m *monitored) close(ctx context.Context) {
	m.report.End = time.Now()
	p := m.picture(live.Done)
	if errors.Is(ctx.Err(), context.Canceled) {
		p.Detail = "ended by an interrupt"
	}
	_ = m.sink.Close(p) // a broken display is no failure of the watching
}
