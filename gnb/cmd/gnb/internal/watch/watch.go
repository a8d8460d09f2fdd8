// Package watch is the command "gnb monitor": the load of the machine as it changes, for people, programs and Prometheus, and the
// helper process that reads GPUs.
package watch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/options"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/prometheus"
	"github.com/graphnb/graphnb/gnb/monitor"
	"github.com/graphnb/graphnb/internal/machine"
)

// Command is "gnb monitor".
var Command = cli.Command{Name: "monitor", Summary: "watch GPUs and host: now, over time, as JSON, for Prometheus", Run: runMonitor}

const monitorHelp = `
Shows the load of the machine until it is interrupted. For each GPU: utilisation, memory, the memory
that runs of GraphNB use, temperature, power, clocks and the reason why they are low, PCIe and NVLink
traffic, and processes. For the host, within the limits of its container: CPUs, memory, disks and
network. A separate process reads the GPUs, so a crash of NVIDIA's library does not end the command.
With --json each sample is an event; --listen serves the last sample to Prometheus, and --prometheus
prints one in its text format.`

func runMonitor(ctx context.Context, args []string, out *cli.Output) error {
	fs := out.Flags("", monitorHelp)
	interval := fs.Duration("interval", time.Second, "`time` between samples, at least 100ms")
	duration := fs.Duration("duration", 0, "`time` to watch (default until interrupted)")
	listen := fs.String("listen", "", "`address` of /metrics for Prometheus: \":9400\" locally, \"0.0.0.0:9400\" publicly")
	once := fs.Bool("prometheus", false, "print one sample in Prometheus's text format")
	run := fs.String("run", "", "`run` whose GPU memory is shown (default all runs)")
	helper := fs.Bool("helper", false, "with --json, read only GPUs until standard input ends")
	if _, err := out.Parse(fs, args, 0, 0); err != nil {
		return err
	}
	switch {
	case *interval < 100*time.Millisecond || *duration < 0:
		return cli.Usagef("--interval is 100ms or more, and --duration is not negative")
	case *helper && !out.JSON:
		return cli.Usagef("--helper goes with --json; without both, \"gnb monitor\" shows the machine")
	case *once && (out.JSON || *listen != ""):
		return cli.Usagef("--prometheus prints one sample: leave --json and --listen out")
	case *helper:
		return monitorHelper(ctx, out, os.Stdin, *interval)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	o := monitor.Options{Interval: *interval, Duration: *duration, Helper: self, Quiet: out.JSON || *once}
	if *run != "" {
		r, err := options.OpenRun(*run)
		if err != nil {
			return err
		}
		o.Run = r.Config.ID
	}
	if *once {
		return printOnce(ctx, out, o)
	}
	var last latest
	o.Each = func(s monitor.Sample) {
		last.put(s)
		out.Event("sample", s)
	}
	if *listen != "" {
		stop, err := serveMetrics(ctx, *listen, &last, out)
		if err != nil {
			return err
		}
		defer stop()
	}
	report, err := monitor.Watch(ctx, o)
	if err != nil {
		return err
	}
	out.Printf("%s\n", report)
	out.Result(map[string]any{
		"start": report.Start, "end": report.End, "host": report.Host, "gpus": report.GPUs, "note": report.Note,
	})
	return nil
}

// printOnce prints one sample: the first with figures of the GPUs and rates.
func printOnce(ctx context.Context, out *cli.Output, o monitor.Options) error {
	s, err := First(ctx, o)
	if err != nil {
		return err
	}
	if s.Note != "" {
		out.Logf("%s", s.Note)
	}
	out.Printf("%s", prometheus.Text(&s))
	return nil
}

// First returns the first sample after the driver has answered or 15 s have passed; with
// GPUs the next one, because a GPU's rates are known from the second sample on.
func First(ctx context.Context, o monitor.Options) (monitor.Sample, error) {
	ctx, enough := context.WithTimeout(ctx, 15*time.Second)
	defer enough()
	var last monitor.Sample
	seen := 0
	o.Duration, o.Interval, o.Quiet = 0, min(o.Interval, time.Second), true
	o.Each = func(s monitor.Sample) {
		if last = s; s.Note == machine.Starting {
			return
		}
		if seen++; seen == 2 || len(s.GPUs) == 0 {
			enough()
		}
	}
	_, err := monitor.Watch(ctx, o)
	return last, err
}

// latest is the last sample.
type latest struct {
	mu sync.Mutex
	s  monitor.Sample
	ok bool
}

func (l *latest) put(s monitor.Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.s, l.ok = s, true
}

func (l *latest) get() (monitor.Sample, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s, l.ok
}

// serveMetrics serves the last sample until stop.
func serveMetrics(ctx context.Context, address string, last *latest, out *cli.Output) (stop func(), err error) {
	l, err := cli.Listen(ctx, "listen", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		s, ok := last.get()
		if !ok {
			http.Error(w, "no sample was taken yet", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, prometheus.Text(&s)) // the scraper may have disconnected
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "gnb monitor: the metrics are at /metrics\n")
	})
	return prometheus.Serve(l, mux, out.Logf), nil
}
