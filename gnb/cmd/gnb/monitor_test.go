package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/prometheus"
	"github.com/graphnb/graphnb/gnb/monitor"
	"github.com/graphnb/graphnb/internal/nvmlstat/fakenvml"
	"github.com/graphnb/graphnb/internal/testneed"
)

// monitored is a running "gnb monitor --json" in this process; the test binary is its helper.
type monitored struct {
	t      *testing.T
	cancel context.CancelFunc
	lines  *bufio.Scanner
	status chan int
	stderr *bytes.Buffer
}

func startMonitor(t *testing.T, args ...string) *monitored {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	m := &monitored{t: t, cancel: cancel, lines: bufio.NewScanner(r), status: make(chan int, 1), stderr: &bytes.Buffer{}}
	m.lines.Buffer(nil, 1<<20)
	go func() {
		m.status <- dispatch(ctx, append([]string{"monitor", "--json", "--interval", "100ms"}, args...), w, m.stderr)
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_ = r.Close()
	})
	return m
}

// until reads samples until ok accepts one.
func (m *monitored) until(what string, ok func(s *monitor.Sample) bool) monitor.Sample {
	m.t.Helper()
	var s monitor.Sample
	for end := time.Now().Add(time.Minute); m.lines.Scan() && time.Now().Before(end); {
		s = monitor.Sample{}
		if err := json.Unmarshal(m.lines.Bytes(), &s); err != nil {
			m.t.Fatalf("%s: %v", m.lines.Text(), err)
		}
		if ok(&s) {
			return s
		}
	}
	m.t.Fatalf("%s: no sample matched; the last sample is %+v\n%s", what, s, m.stderr.String())
	return s
}

// end interrupts the command and returns its last line, the result.
func (m *monitored) end() map[string]any {
	m.t.Helper()
	m.cancel()
	var last map[string]any
	for m.lines.Scan() {
		last = nil
		if err := json.Unmarshal(m.lines.Bytes(), &last); err != nil {
			m.t.Fatal(err)
		}
	}
	if status := <-m.status; status != cli.StatusOK || last["event"] != "result" {
		m.t.Errorf("status %d, the last line %v\n%s", status, last, m.stderr.String())
	}
	return last
}

func healthy(gpus int) func(s *monitor.Sample) bool {
	return func(s *monitor.Sample) bool {
		return len(s.GPUs) == gpus && !slices.ContainsFunc(s.GPUs, func(g monitor.GPU) bool { return g.Error != "" || !g.PowerW.Known() }) && s.Host.CPU.Known() && s.Note == ""
	}
}

func TestMonitorOnGPUs(t *testing.T) {
	testneed.NotShort(t, "it waits for samples of a monitor")
	lib := fakenvml.Build(t)
	lib.Say("gpus 3", "throttle 1 4")
	lib.Setenv(t)
	m := startMonitor(t)
	first := m.until("three GPUs", healthy(3))
	m.until("values that change", func(s *monitor.Sample) bool {
		return healthy(3)(s) && s.GPUs[2].Utilization != first.GPUs[2].Utilization && s.GPUs[0].NVLinkSend == 3e7*1024
	})
	lib.Say("throttle 1 4", "fail nvmlDeviceGetPowerUsage 0 999")
	m.until("an error in the middle", func(s *monitor.Sample) bool {
		return s.GPUs[0].Error != "" && s.GPUs[0].TemperatureC.Known() && s.GPUs[1].Error == "" && s.GPUs[1].PowerW.Known()
	})
	lib.Say("throttle 1 4", "fail nvmlDeviceGetUtilizationRates 2 15")
	m.until("a GPU that falls off the bus", func(s *monitor.Sample) bool {
		return strings.Contains(s.GPUs[2].Error, "fallen off the bus") && s.GPUs[0].Error == "" && s.GPUs[0].PowerW.Known()
	})
	lib.Say("throttle 1 4", "hang nvmlDeviceGetTemperature *")
	m.until("calls that hang", func(s *monitor.Sample) bool {
		return strings.Contains(s.GPUs[0].Error, "has not answered nvmlDeviceGetTemperature") && s.Host.CPU.Known()
	})
	lib.Say("throttle 1 4")
	m.until("all is well again", healthy(3))
	last := m.end()
	gpus, ok := last["gpus"].([]any)
	if !ok || len(gpus) != 3 || !strings.Contains(fmt.Sprint(gpus[1]), "power cap") {
		t.Errorf("the result is %v", last)
	}
}

// A fault of the library, at a GPU or during its start, ends only the helper, which is then started
// again.
func TestMonitorOutlivesACrash(t *testing.T) {
	testneed.NotShort(t, "it waits for a helper to restart")
	lib := fakenvml.Build(t)
	lib.Setenv(t)
	m := startMonitor(t)
	m.until("a GPU", healthy(1))
	lib.Say("crash nvmlDeviceGetMemoryInfo_v2 0")
	m.until("the crash", func(s *monitor.Sample) bool {
		return strings.Contains(s.Note, "NVIDIA's library crashed the process that asks it (SIGSEGV") && s.Host.CPU.Known() && len(s.GPUs) == 1 && !s.GPUs[0].PowerW.Known()
	})
	lib.Say("gpus 1")
	m.until("it is started again", healthy(1))
	m.end()
}

// A driver that hangs during its start delays neither the samples nor the end.
func TestMonitorOfADriverThatDoesNotStart(t *testing.T) {
	testneed.NotShort(t, "it waits for a helper")
	lib := fakenvml.Build(t)
	lib.Say("hang nvmlInit_v2 0")
	lib.Setenv(t)
	m := startMonitor(t)
	n := 0
	m.until("the host alone", func(s *monitor.Sample) bool {
		n++
		return n > 5 && s.Note != "" && s.Host.CPU.Known() && len(s.GPUs) == 0
	})
	m.end()
	lib.Say("fail nvmlInit_v2 0 18")
	m = startMonitor(t)
	m.until("why", func(s *monitor.Sample) bool { return strings.Contains(s.Note, "restart the machine") })
	m.end()
	lib.Say("gpus 0")
	m = startMonitor(t)
	m.until("no GPU", func(s *monitor.Sample) bool {
		return strings.Contains(s.Note, "NVIDIA's driver 570.12.34 is here and has no GPU")
	})
	m.end()
}

// When the process that started a helper ends in any way, the helper ends too, even during a call
// of the driver that hangs.
func TestTheHelperEndsWithItsInput(t *testing.T) {
	testneed.NotShort(t, "it waits for a helper to end")
	lib := fakenvml.Build(t)
	lib.Say("gpus 1", "hang nvmlDeviceGetPowerUsage 0")
	c := exec.Command("/proc/self/exe", "monitor", "--json", "--helper", "--interval=100ms")
	c.Env = append(os.Environ(), lib.Env()...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "has not answered nvmlDeviceGetPowerUsage") {
	}
	_ = in.Close()
	for lines.Scan() {
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// If the watching process is killed, its helper ends too, even if a call in it hangs.
func TestKillEndsTheHelperToo(t *testing.T) {
	testneed.NotShort(t, "it waits for a helper to end")
	lib := fakenvml.Build(t)
	lib.Say("gpus 1", "hang nvmlDeviceGetPowerUsage 0")
	mark := "GNB_TEST_MARK=" + filepath.Base(t.TempDir()) + strconv.Itoa(os.Getpid())
	c := exec.Command("/proc/self/exe", "monitor", "--json", "--interval=100ms")
	c.Env = append(append(os.Environ(), lib.Env()...), mark)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "has not answered") {
	}
	if n := len(marked(mark)); n != 2 {
		t.Errorf("there are %d processes, want the command and its helper", n)
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	for end := time.Now().Add(30 * time.Second); len(marked(mark)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the processes %v still run", marked(mark))
		}
	}
}

// marked returns the processes with a mark in their environment.
func marked(mark string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			out = append(out, f)
		}
	}
	return out
}

func TestMonitorInATerminalOrAPipe(t *testing.T) {
	testneed.NotShort(t, "it waits for samples of a monitor")
	lib := fakenvml.Build(t)
	lib.Say("gpus 2", "mig 1 2")
	lib.Setenv(t)
	var o, e bytes.Buffer
	if status := dispatch(t.Context(), []string{"monitor", "--interval", "100ms", "--duration", "1500ms"}, &o, &e); status != cli.StatusOK {
		t.Fatalf("status %d\n%s", status, e.String())
	}
	for _, want := range []string{"watched for ", ": CPU ", "GPU 0 (NVIDIA Fake 0): ", "up to 9.8 GiB of 74.5 GiB", "GPU 1 (NVIDIA Fake 1): "} {
		if !strings.Contains(o.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, o.String())
		}
	}
	for _, args := range [][]string{{"--interval", "1ms"}, {"--helper"}, {"--prometheus", "--json"}, {"--listen", "nonsense"}, {"--duration", "-1s"}} {
		o.Reset()
		if status := dispatch(t.Context(), append([]string{"monitor"}, args...), &o, &e); status != cli.StatusUsage {
			t.Errorf("%v: status %d", args, status)
		}
	}
}

func TestMetrics(t *testing.T) {
	testneed.NotShort(t, "it waits for samples of a second")
	lib := fakenvml.Build(t)
	lib.Say("gpus 3", "mig 1 2", "throttle 0 4", "proc 0 999999999 9000", "fail nvmlDeviceGetUtilizationRates 2 15")
	lib.Setenv(t)
	var o, e bytes.Buffer
	if status := dispatch(t.Context(), []string{"monitor", "--prometheus", "--interval", "1h"}, &o, &e); status != cli.StatusOK {
		t.Fatalf("status %d\n%s", status, e.String())
	}
	series := parseMetrics(t, o.String())
	for name, want := range map[string]float64{
		`graphnb_gpu_power_watts{gpu="0",name="NVIDIA Fake 0",uuid="GPU-0"}`:                                                     200.5,
		`graphnb_gpu_clock_hertz{gpu="0",name="NVIDIA Fake 0",uuid="GPU-0"}`:                                                     1.41e9,
		`graphnb_gpu_memory_size_bytes{gpu="1",name="NVIDIA Fake 1",uuid="GPU-1"}`:                                               80e9,
		`graphnb_gpu_throttled{gpu="0",name="NVIDIA Fake 0",reason="power cap",uuid="GPU-0"}`:                                    1,
		`graphnb_gpu_up{gpu="2",name="NVIDIA Fake 2",uuid="GPU-2"}`:                                                              0,
		`graphnb_gpu_up{gpu="0",name="NVIDIA Fake 0",uuid="GPU-0"}`:                                                              1,
		`graphnb_gpu_process_memory_bytes{gpu="0",name="NVIDIA Fake 0",pid="999999999",process="",run="",uuid="GPU-0"}`:          9000,
		`graphnb_gpu_instance_memory_size_bytes{gpu="1",instance="2",instance_uuid="MIG-1-2",name="NVIDIA Fake 1",uuid="GPU-1"}`: 10e9,
		`graphnb_gpu_nvlink_transmit_bytes_per_second{gpu="0",name="NVIDIA Fake 0",uuid="GPU-0"}`:                                3e7 * 1024,
	} {
		if got, ok := series[name]; !ok || math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s is %v (%t), want %v", name, got, ok, want)
		}
	}
	if v := series["graphnb_host_cpu_cores"]; v <= 0 {
		t.Errorf("%v cores", v)
	}
	if _, ok := series[`graphnb_gpu_power_watts{gpu="2",name="NVIDIA Fake 2",uuid="GPU-2"}`]; ok {
		t.Error("a GPU that fell off the bus has a value for its power")
	}
	readWithPython(t, o.String(), len(series))
}

// Special characters in names do not break the format.
func TestMetricsOfOddNames(t *testing.T) {
	s := monitor.Sample{GPUs: []monitor.GPU{{Name: "a \"b\" \\ c\nd", PowerW: 3, Utilization: monitor.Value(math.NaN()), MemoryUsed: monitor.Value(math.Inf(1))}}}
	text := prometheus.Text(&s)
	series := parseMetrics(t, text)
	if series[`graphnb_gpu_power_watts{gpu="0",name="a \"b\" \\ c\nd",uuid=""}`] != 3 || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "graphnb_host_memory") {
		t.Errorf("%v of\n%s", series, text)
	}
	readWithPython(t, text, len(series))
}

// parseMetrics checks the text format (0.0.4) and Prometheus' conventions for names strictly: HELP
// and TYPE occur once, before the metric's samples, which are adjacent; no series occurs twice;
// counters, and only they, end in _total; names end in base units. It returns the values by series,
// with sorted labels.
func parseMetrics(t *testing.T, text string) map[string]float64 {
	t.Helper()
	units := []string{"_seconds", "_ratio", "_bytes", "_bytes_per_second", "_celsius", "_watts", "_hertz", "_cores", "_up", "_throttled"}
	sample := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	label := regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)`)
	out, kinds, current := map[string]float64{}, map[string]string{}, ""
	if !strings.HasSuffix(text, "\n") {
		t.Error("the last line has no line break")
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		f := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP ") && len(f) == 4 && f[3] != "":
			if _, ok := kinds[f[2]]; ok {
				t.Errorf("line %d: %s occurs twice", i+1, f[2])
			}
			current = f[2]
			kinds[current] = ""
		case strings.HasPrefix(line, "# TYPE ") && len(f) == 4 && f[2] == current && (f[3] == "gauge" || f[3] == "counter"):
			kinds[current] = f[3]
			if (f[3] == "counter") != strings.HasSuffix(current, "_total") {
				t.Errorf("line %d: %s has the type %s", i+1, current, f[3])
			}
			base := strings.TrimSuffix(current, "_total")
			if !slices.ContainsFunc(units, func(u string) bool { return strings.HasSuffix(base, u) }) || !strings.HasPrefix(base, "graphnb_") {
				t.Errorf("line %d: %s does not end in a base unit", i+1, current)
			}
		default:
			m := sample.FindStringSubmatch(line)
			if m == nil || m[1] != current || kinds[current] == "" {
				t.Fatalf("line %d: %q", i+1, line)
			}
			var labels []string
			for rest := m[2]; rest != ""; {
				l := label.FindStringSubmatch(rest)
				if l == nil {
					t.Fatalf("line %d: labels %q", i+1, rest)
				}
				labels = append(labels, l[1]+`="`+l[2]+`"`)
				rest = rest[len(l[0]):]
			}
			slices.Sort(labels)
			name := m[1]
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			v, err := strconv.ParseFloat(m[3], 64)
			if _, twice := out[name]; err != nil || twice {
				t.Errorf("line %d: %q: %v, twice %t", i+1, line, err, twice)
			}
			out[name] = v
		}
	}
	return out
}

// readWithPython parses the text with Prometheus' own client library, if the tests' Python has it.
func readWithPython(t *testing.T, text string, series int) {
	t.Helper()
	python := os.Getenv("GNB_PYTHON")
	if python == "" {
		return
	}
	if exec.Command(python, "-c", "import prometheus_client").Run() != nil {
		return
	}
	c := exec.Command(python, "-c", `
import sys
from prometheus_client.parser import text_string_to_metric_families
print(sum(len(f.samples) for f in text_string_to_metric_families(sys.stdin.read())))`)
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != strconv.Itoa(series) {
		t.Errorf("prometheus_client read %s series, want %d: %v", got, series, err)
	}
}

func TestListen(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Setenv(t)
	ctx, cancel := context.WithCancel(t.Context())
	var o bytes.Buffer
	e := &lockedBuffer{}
	status := make(chan int, 1)
	go func() {
		status <- dispatch(ctx, []string{"monitor", "--json", "--interval", "100ms", "--listen", ":0"}, &o, e)
	}()
	var url string
	for end := time.Now().Add(time.Minute); url == ""; time.Sleep(10 * time.Millisecond) {
		if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(e.String()); m != "" {
			url = m
		} else if time.Now().After(end) {
			t.Fatal(e.String())
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, kind, code := fetchText(t, url)
		if code == http.StatusOK && strings.Contains(text, "graphnb_gpu_power_watts") {
			if kind != "text/plain; version=0.0.4; charset=utf-8" {
				t.Errorf("content type %q", kind)
			}
			parseMetrics(t, text)
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d: %s", code, text)
		}
	}
	if _, _, code := fetchText(t, strings.TrimSuffix(url, "metrics")); code != http.StatusOK {
		t.Errorf("the root path answers %d", code)
	}
	cancel()
	if s := <-status; s != cli.StatusOK {
		t.Errorf("status %d\n%s", s, e.String())
	}
	if r, err := http.Get(url); err == nil {
		_ = r.Body.Close()
		t.Error("the server still answers after its end")
	}
}

func fetchText(t *testing.T, url string) (text, kind string, code int) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r.Header.Get("Content-Type"), r.StatusCode
}

// lockedBuffer can be written and read concurrently.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
