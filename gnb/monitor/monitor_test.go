package monitor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/monitor"
	"github.com/graphnb/graphnb/internal/machine/fakehelper"
)

func TestWatch(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	n := 0
	r, err := monitor.Watch(ctx, monitor.Options{
		Interval: 100 * time.Millisecond, Helper: fakehelper.Make(t), Quiet: true, Run: "r1",
		Each: func(s monitor.Sample) {
			if n++; len(s.GPUs) == 2 && s.GPUs[1].Error != "" {
				stop() // ends the watching, as an interrupt does
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
	// The GPU's energy is 200 W times the time between its first and last sample.
	first := math.Inf(1)
	for i := range r.Samples {
		if len(r.Samples[i].GPUs) > 0 {
			first = math.Min(first, r.Samples[len(r.Samples)-1].Time.Sub(r.Samples[i].Time).Seconds()*200)
			break
		}
	}
	if math.Abs(a.EnergyJ-first) > 1e-6*first {
		t.Errorf("the energy is %v J, want %v", a.EnergyJ, first)
	}
	if b.Error != "fell off the bus" || b.Power.Max != 100 || b.Memory.N != 0 || b.MemoryTotal.Known() {
		t.Errorf("%+v", b)
	}
	for _, want := range []string{"watched for ", "GPU 0 (A): ", "(runs 2.8 GiB)", "throttled (power cap) 100 % of the time", "fell off the bus", " of ", "Wh"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, r)
		}
	}
}

// Watch ends when the function that it runs ends, and returns the function's error. An interrupt of
// either ends the other.
func TestWatchWhile(t *testing.T) {
	short := monitor.Options{Interval: 100 * time.Millisecond, Helper: fakehelper.Make(t), Quiet: true}
	o := short
	failed := errors.New("out of luck")
	o.While = func(context.Context) error {
		time.Sleep(300 * time.Millisecond)
		return failed
	}
	if r, err := monitor.Watch(t.Context(), o); !errors.Is(err, failed) || len(r.Samples) == 0 {
		t.Errorf("%v, %v", r, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o.While = func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		return nil
	}
	if _, err := monitor.Watch(ctx, o); err != nil {
		t.Error(err)
	}
	o.While = func(context.Context) error {
		runtime.Goexit()
		return nil
	}
	if _, err := monitor.Watch(t.Context(), o); err != nil {
		t.Error(err)
	}
	o = short
	o.Duration = 250 * time.Millisecond
	if r, err := monitor.Watch(t.Context(), o); err != nil || len(r.Samples) == 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// A watch whose time passes before the first sample, or before the driver's first answer, lasts until then.
func TestWatchLastsUntilTheDriverAnswers(t *testing.T) {
	slow := fakehelper.Make(t)
	text, err := os.ReadFile(slow)
	if err != nil {
		t.Fatal(err)
	}
	late := strings.Replace(string(text), "( n=0\n", "( n=0\nsleep 0.7\n", 1)
	if late == string(text) {
		t.Fatal("the helper begins otherwise")
	}
	if err := os.WriteFile(slow, []byte(late), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]monitor.Options{
		"answer": {Interval: 100 * time.Millisecond, Duration: 100 * time.Millisecond, Helper: slow, Quiet: true},
		"sample": {Duration: 10 * time.Millisecond, Helper: fakehelper.Make(t), Quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := monitor.Watch(t.Context(), o)
			if err != nil || len(r.GPUs) != 2 || r.Note != "" {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
}

func TestWatchRefuses(t *testing.T) {
	for name, o := range map[string]monitor.Options{
		"short":    {Interval: time.Millisecond},
		"negative": {Duration: -1},
	} {
		if _, err := monitor.Watch(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "monitor: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without a helper, the report shows the host and says why the GPUs are missing.
func TestWatchWithoutAHelper(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("GNB_HELPER", "")
	r, err := monitor.Watch(t.Context(), monitor.Options{Interval: 100 * time.Millisecond, Duration: 250 * time.Millisecond, Quiet: true})
	if err != nil || r.Host.CPU.N == 0 || !strings.Contains(r.String(), "there is no gnb beside this program or on PATH") {
		t.Errorf("%v, %v", r, err)
	}
}

// However a cell ends, its helper ends too, including after SIGKILL and after an interrupt.
func TestWatchLeavesNothing(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"kill": syscall.SIGKILL, "interrupt": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("GNB_TEST_MARK=%s-%d", name, os.Getpid())
			c := exec.Command("/proc/self/exe", "-test.run=^$")
			c.Env = append(os.Environ(), "GNB_TEST_CELL=1", "GNB_HELPER="+fakehelper.Make(t), mark)
			var out bytes.Buffer
			c.Stdout, c.Stderr = &out, &out
			c.WaitDelay = 2 * time.Second
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, p := range marked(mark) {
					_ = syscall.Kill(p, syscall.SIGKILL)
				}
			})
			wait(t, "a helper", func() bool { return len(marked(mark)) >= 3 }) // the cell and at least two processes of the helper
			if err := c.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); s == syscall.SIGINT && err != nil {
				t.Errorf("%v:\n%s", err, out.String())
			}
			wait(t, "the end of every process", func() bool { return len(marked(mark)) == 0 })
		})
	}
}

// wait waits for at most a minute until done returns true.
func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// marked returns the running processes with an entry in their environment.
func marked(entry string) (pids []int) {
	all, _ := os.ReadDir("/proc")
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if env, err := os.ReadFile("/proc/" + e.Name() + "/environ"); err == nil && slices.Contains(strings.Split(string(env), "\x00"), entry) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestMain watches the machine instead of testing if GNB_TEST_CELL is set.
func TestMain(m *testing.M) {
	if os.Getenv("GNB_TEST_CELL") == "" {
		os.Exit(m.Run())
	}
	if _, err := monitor.Watch(context.Background(), monitor.Options{Interval: 100 * time.Millisecond}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
