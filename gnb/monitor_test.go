package gnb_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
)

func TestMonitor(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	n := 0
	r, err := gnb.Monitor(ctx, gnb.MonitorOptions{
		Interval: 100 * time.Millisecond, Helper: gnb.FakeHelper(t), Quiet: true, Run: &gnb.Run{Config: gnb.Config{ID: "r1"}},
		Each: func(s gnb.MonitorSample) {
			if n++; len(s.GPUs) == 2 && s.GPUs[1].Error != "" {
				stop() // as an interrupt does
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Samples) != n || r.End.Sub(r.Start) <= 0 || r.Host.CPU.N != n || r.Host.Memory.Max <= 0 {
		t.Errorf("%d samples of %d, %+v", len(r.Samples), n, r.Host)
	}
	if len(r.GPUs) != 2 {
		t.Fatalf("GPUs %+v", r.GPUs)
	}
	a, b := r.GPUs[0], r.GPUs[1]
	if a.Name != "A" || a.Memory.Max != 4e9 || a.RunMemory.Max != 3e9 || a.Temperature.Mean != 60 || a.Power.Min != 200 || a.Throttled["power cap"] != 1 || a.Error != "" {
		t.Errorf("%+v", a)
	}
	if !(a.Utilization.Min < a.Utilization.Mean && a.Utilization.Mean < a.Utilization.Max) {
		t.Errorf("utilization %+v", a.Utilization)
	}
	// Its energy is 200 W over the time between its first sample and its last.
	first := math.Inf(1)
	for i := range r.Samples {
		if len(r.Samples[i].GPUs) > 0 {
			first = math.Min(first, r.Samples[len(r.Samples)-1].Time.Sub(r.Samples[i].Time).Seconds()*200)
			break
		}
	}
	if math.Abs(a.EnergyJ-first) > 1e-6*first {
		t.Errorf("%v J, want %v", a.EnergyJ, first)
	}
	if b.Error != "fell off the bus" || b.Power.Max != 100 || b.Memory.N != 0 || b.MemoryTotal.Known() {
		t.Errorf("%+v", b)
	}
	for _, want := range []string{"watched for ", "GPU 0 (A): ", "(runs 2.8 GiB)", "throttled (power cap) 100 % of the time", "fell off the bus", " of ", "Wh"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, r)
		}
	}
}

// Monitor ends with what it watches, and has its error; an interrupt of the one ends the other.
func TestMonitorWhile(t *testing.T) {
	short := gnb.MonitorOptions{Interval: 100 * time.Millisecond, Helper: gnb.FakeHelper(t), Quiet: true}
	o := short
	failed := errors.New("out of luck")
	o.While = func(context.Context) error {
		time.Sleep(300 * time.Millisecond)
		return failed
	}
	if r, err := gnb.Monitor(t.Context(), o); !errors.Is(err, failed) || len(r.Samples) == 0 {
		t.Errorf("%v, %v", r, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o.While = func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		return nil
	}
	if _, err := gnb.Monitor(ctx, o); err != nil {
		t.Error(err)
	}
	o.While = func(context.Context) error {
		runtime.Goexit()
		return nil
	}
	if _, err := gnb.Monitor(t.Context(), o); err != nil {
		t.Error(err)
	}
	o = short
	o.Duration = 250 * time.Millisecond
	if r, err := gnb.Monitor(t.Context(), o); err != nil || len(r.Samples) == 0 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestMonitorRefuses(t *testing.T) {
	for name, o := range map[string][]gnb.MonitorOptions{
		"short":    {{Interval: time.Millisecond}},
		"negative": {{Duration: -1}},
		"two":      {{}, {}},
	} {
		if _, err := gnb.Monitor(t.Context(), o...); err == nil || !strings.HasPrefix(err.Error(), "gnb: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without a helper the host is shown, and the report says why there is nothing else.
func TestMonitorWithoutAHelper(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("GNB_HELPER", "")
	r, err := gnb.Monitor(t.Context(), gnb.MonitorOptions{Interval: 100 * time.Millisecond, Duration: 250 * time.Millisecond, Quiet: true})
	if err != nil || r.Host.CPU.N == 0 || !strings.Contains(r.String(), "there is no gnb beside this program or on PATH") {
		t.Errorf("%v, %v", r, err)
	}
}

// Long times take bounded memory.
func TestMonitorKeepsEvenlySpacedSamples(t *testing.T) {
	r := gnb.LongReport(10000)
	if n := len(r.Samples); n > 1440 || n < 600 {
		t.Errorf("%d samples of 10000 are kept", n)
	}
	step := r.Samples[1].Time.Sub(r.Samples[0].Time)
	for i := 1; i < len(r.Samples); i++ {
		if d := r.Samples[i].Time.Sub(r.Samples[i-1].Time); d != step {
			t.Fatalf("samples %d and %d are %v apart, the first two %v", i-1, i, d, step)
		}
	}
	if r.Host.CPU.N != 10000 {
		t.Errorf("the summary has %d samples, want all", r.Host.CPU.N)
	}
}

// However a cell ends, its helper ends too: also by kill -9, and when it is interrupted.
func TestMonitorLeavesNothing(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"kill": syscall.SIGKILL, "interrupt": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GNB_HELPER", gnb.FakeHelper(t))
			c := startCell(t, "monitor", cellOptions{Dir: filepath.Join(t.TempDir(), "none")})
			deadline := time.Now().Add(time.Minute)
			for len(c.processes()) < 3 { // itself, and the helper's two or more
				if time.Now().After(deadline) {
					t.Fatalf("no helper was started:\n%s", c.out.String())
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := c.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			err := c.wait(20 * time.Second)
			if s == syscall.SIGINT && err != nil {
				t.Errorf("%v:\n%s", err, c.out.String())
			}
			c.gone(20 * time.Second)
		})
	}
}
