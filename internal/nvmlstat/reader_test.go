//go:build linux && cgo && (amd64 || arm64)

package nvmlstat

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/nvmlstat/fakenvml"
)

// The loader reads LD_LIBRARY_PATH when a process starts, and a fault in the library ends the
// process. Tests therefore read GPUs in a new process of this binary.
func TestMain(m *testing.M) {
	if os.Getenv("GNB_TEST_NVML") != "" {
		os.Exit(readAsTold())
	}
	if os.Getenv("GNB_TEST_WAIT") != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answer is a line printed by the process that reads.
type answer struct {
	Driver string
	Error  string
	GPUs   []machine.GPU
}

// readAsTold reads the GPUs once for each line of standard input, which holds the time to wait.
func readAsTold() int {
	out := json.NewEncoder(os.Stdout)
	say := func(a answer) {
		if err := out.Encode(a); err != nil {
			os.Exit(3)
		}
	}
	r, err := Open()
	if err != nil {
		say(answer{Error: err.Error()})
		return 0
	}
	say(answer{Driver: r.Driver()})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		wait, err := time.ParseDuration(in.Text())
		if err != nil {
			return 2
		}
		say(answer{GPUs: r.Read(wait)})
	}
	return 0
}

// process reads GPUs through a test library.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err strings.Builder
}

func start(t *testing.T, env ...string) (*process, answer) {
	t.Helper()
	p := &process{t: t, cmd: exec.Command("/proc/self/exe")}
	p.cmd.Env = append(append(os.Environ(), "GNB_TEST_NVML=1"), env...)
	p.cmd.Stderr = &p.err
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<20)
	a, ok := p.next()
	if !ok {
		t.Fatalf("nothing came:\n%s", p.err.String())
	}
	return p, a
}

func (p *process) next() (a answer, ok bool) {
	p.t.Helper()
	if !p.out.Scan() {
		return a, false
	}
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		p.t.Fatalf("%s: %v", p.out.Text(), err)
	}
	return a, true
}

// read makes one reading; most of these tests wait as long as the reading takes.
func (p *process) read(wait time.Duration) []machine.GPU {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, wait); err != nil {
		p.t.Fatal(err)
	}
	a, ok := p.next()
	if !ok {
		p.t.Fatalf("the process ended:\n%s", p.err.String())
	}
	return a.GPUs
}

const patient = time.Minute

func same(a machine.Value, b float64) bool {
	return math.IsNaN(b) && !a.Known() || math.Abs(float64(a)-b) <= 1e-9*max(1, math.Abs(b))
}

func TestSeveralGPUs(t *testing.T) {
	lib := fakenvml.Build(t)
	worker := startWorker(t, "run-7", 2)
	lib.Say("gpus 3", fmt.Sprintf("proc 1 %d 3000", worker), "proc 1 999999999 9000", "proc 1 999999998 -1", "throttle 2 68", "throttle 0 1")
	p, a := start(t, lib.Env()...)
	if a.Driver != "570.12.34" {
		t.Errorf("driver %q", a.Driver)
	}
	first, second := p.read(patient), p.read(patient)
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("%d and %d GPUs, want 3", len(first), len(second))
	}
	for i, g := range second {
		n := 2 // number of GPUs in the second reading
		for what, v := range map[string]struct {
			got  machine.Value
			want float64
		}{
			"utilization":  {g.Utilization, float64((40*i+10*n)%101) / 100},
			"memory busy":  {g.MemoryBusy, float64((40*i+10*n)%101/2) / 100},
			"memory":       {g.MemoryUsed, float64(i+1)*10e9 + 5e8}, // the driver keeps some memory for itself
			"all memory":   {g.MemoryTotal, 80e9},
			"temperature":  {g.TemperatureC, float64(50 + 5*i + n)},
			"power":        {g.PowerW, 200.5 + float64(i)},
			"power limit":  {g.PowerLimitW, 700},
			"clock":        {g.ClockMHz, 1410},
			"highest":      {g.ClockMaxMHz, 1980},
			"memory clock": {g.MemoryClockMHz, 2619},
			// GPU 1 has no counter for the bus; the others counted 5 and 2 GB per second.
			"from the bus":    {g.PCIeReceive, []float64{5e9, 3e6, 5e9}[i]},
			"to the bus":      {g.PCIeSend, []float64{2e9, 1e6, 2e9}[i]},
			"from NVLink":     {g.NVLinkReceive, 4e7 * 1024},
			"to NVLink":       {g.NVLinkSend, 3e7 * 1024},
			"first reading's": {first[i].NVLinkSend, math.NaN()},
		} {
			if !same(v.got, v.want) {
				t.Errorf("GPU %d: %s is %v, want %v", i, what, v.got, v.want)
			}
		}
		if g.Index != i || g.Name != fmt.Sprintf("NVIDIA Fake %d", i) || g.UUID != fmt.Sprintf("GPU-%d", i) || g.Bus != fmt.Sprintf("00000000:%02X:00.0", 16+i) || g.Error != "" || len(g.Instances) > 0 {
			t.Errorf("GPU %d: %+v", i, g)
		}
		if first[i].Utilization == g.Utilization {
			t.Errorf("GPU %d: the utilization stayed %v", i, g.Utilization)
		}
	}
	if th := second[2].Throttled; len(th) != 2 || th[0] != "power cap" || th[1] != "hardware thermal" || len(second[0].Throttled) > 0 {
		t.Errorf("the reasons for throttling are %q and %q", th, second[0].Throttled)
	}
	// Reading three processes takes two calls. The largest comes first and one of unknown size
	// last.
	ps := second[1].Processes
	if len(ps) != 3 || ps[0].PID != 999999999 || ps[1].PID != worker || ps[1].Run != "run-7" || ps[1].Rank != 2 || ps[1].Name == "" || ps[2].Memory.Known() {
		t.Errorf("processes %+v", ps)
	}
	if g := &second[1]; !same(g.MemoryOf("run-7"), 3000) || !same(g.MemoryOf(""), 3000) || g.MemoryOf("run-8").Known() || second[0].MemoryOf("").Known() {
		t.Error("the run's share of the memory is wrong")
	}
}

// startWorker returns a process that looks like a worker of a run.
func startWorker(t *testing.T, run string, rank int) int {
	c := exec.Command("/proc/self/exe", fmt.Sprintf("-gnb.worker=%d", rank))
	c.Env = append(os.Environ(), "GNB_TEST_WAIT=1", "GNB_RUN_ID="+run)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	return c.Process.Pid
}

func TestAnErrorInTheMiddle(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Say("gpus 2")
	p, _ := start(t, lib.Env()...)
	p.read(patient)
	lib.Say("fail nvmlDeviceGetPowerUsage 1 999", "fail nvmlDeviceGetTemperature 0 3")
	gpus := p.read(patient)
	if g := gpus[1]; g.PowerW.Known() || !g.TemperatureC.Known() || g.Error != "nvmlDeviceGetPowerUsage: unknown error (NVML error 999)" {
		t.Errorf("with a call that fails: %+v", g)
	}
	// A GPU that lacks a feature is not reported as failed.
	if g := gpus[0]; g.TemperatureC.Known() || !g.PowerW.Known() || g.Error != "" {
		t.Errorf("with a call that is not supported: %+v", g)
	}
	lib.Say("")
	for i, g := range p.read(patient) {
		if g.Error != "" || !g.PowerW.Known() || !g.TemperatureC.Known() {
			t.Errorf("GPU %d after the failed call: %+v", i, g)
		}
	}
}

// A GPU that falls off the bus is reported as such, without its earlier figures; the other GPUs are
// still read.
func TestAGPUFallsOffTheBus(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Say("gpus 2")
	p, _ := start(t, lib.Env()...)
	p.read(patient)
	lib.Say("fail nvmlDeviceGetUtilizationRates 0 15", "crash nvmlDeviceGetTemperature 0") // this call must not happen
	gpus := p.read(patient)
	if g := gpus[0]; !strings.Contains(g.Error, "fallen off the bus") || g.Utilization.Known() || g.MemoryUsed.Known() || g.Name != "NVIDIA Fake 0" {
		t.Errorf("%+v", g)
	}
	if g := gpus[1]; g.Error != "" || !g.PowerW.Known() {
		t.Errorf("the other GPU: %+v", g)
	}
}

// A call that hangs delays neither the reading nor the other GPUs, and the report names the call.
func TestACallHangs(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Say("gpus 2")
	p, _ := start(t, lib.Env()...)
	p.read(patient)
	lib.Say("hang nvmlDeviceGetEnforcedPowerLimit 1")
	for range 2 {
		gpus := p.read(300 * time.Millisecond)
		if g := gpus[1]; !strings.Contains(g.Error, "the driver has not answered nvmlDeviceGetEnforcedPowerLimit for ") || g.PowerW.Known() || g.Name != "NVIDIA Fake 1" {
			t.Errorf("the GPU that hangs: %+v", g)
		}
		if g := gpus[0]; g.Error != "" || !g.PowerW.Known() {
			t.Errorf("the other GPU: %+v", g)
		}
	}
	lib.Say("")
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		if g := p.read(patient)[1]; g.Error == "" && g.PowerW.Known() {
			break
		} else if time.Now().After(end) {
			t.Fatalf("after the call has returned: %+v", g)
		}
	}
}

func TestInstances(t *testing.T) {
	lib := fakenvml.Build(t)
	lib.Say("gpus 2", "mig 1 3")
	p, _ := start(t, lib.Env()...)
	gpus := p.read(patient)
	if len(gpus[0].Instances) != 0 || len(gpus[1].Instances) != 3 || gpus[1].Utilization.Known() || gpus[1].Error != "" {
		t.Fatalf("%+v", gpus)
	}
	for i, m := range gpus[1].Instances {
		index := []int{0, 2, 3}[i] // the instances' numbers have gaps
		want := machine.Instance{Index: index, GPU: 7 + index, UUID: fmt.Sprintf("MIG-1-%d", index), Name: "NVIDIA Fake 1 MIG 1g.10gb", MemoryUsed: 5e8, MemoryTotal: 10e9}
		if m != want {
			t.Errorf("instance %d is %+v, want %+v", i, m, want)
		}
	}
}

// The driver lacks the newer calls; calling one of them would end the process.
func TestAnOldDriver(t *testing.T) {
	lib := fakenvml.Build(t, "-DOLD")
	lib.Say("gpus 1", "proc 0 999999999 9000")
	p, _ := start(t, lib.Env()...)
	p.read(patient)
	g := p.read(patient)[0]
	if g.Error != "" || !same(g.MemoryUsed, 11e9) || !same(g.PCIeReceive, 3e6) || g.NVLinkSend.Known() || len(g.Processes) != 1 || !same(g.Processes[0].Memory, 9000) || len(g.Instances) != 0 {
		t.Errorf("%+v", g)
	}
}

func TestDriversThatDoNotStart(t *testing.T) {
	lib := fakenvml.Build(t)
	for said, want := range map[string]string{
		"fail nvmlInit_v2 0 9":             "installed but not loaded",
		"fail nvmlInit_v2 0 18":            "restart the machine",
		"fail nvmlInit_v2 0 4":             "may not open",
		"fail nvmlInit_v2 0 77":            "NVML error 77",
		"fail nvmlDeviceGetCount_v2 0 999": "counting GPUs: unknown error",
	} {
		lib.Say(said)
		if _, a := start(t, lib.Env()...); !strings.Contains(a.Error, want) {
			t.Errorf("%s: %q does not say %q", said, a.Error, want)
		}
	}
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		return // the rest is for machines without a driver
	}
	if _, a := start(t, "LD_LIBRARY_PATH="+t.TempDir()); a.Error != ErrNoDriver.Error() {
		t.Errorf("without a library: %q", a.Error)
	}
}

// A fault in the library ends the process that reads; package machine runs it as a separate process
// for this reason.
func TestTheLibraryCrashes(t *testing.T) {
	lib := fakenvml.Build(t)
	p, _ := start(t, lib.Env()...)
	p.read(patient)
	lib.Say("crash nvmlDeviceGetPowerUsage 0")
	if _, err := fmt.Fprintln(p.in, patient); err != nil {
		t.Fatal(err)
	}
	if a, ok := p.next(); ok {
		t.Errorf("an answer after the crash: %+v", a)
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || !strings.Contains(p.err.String(), "SIGSEGV") {
		t.Errorf("%v:\n%.300s", err, p.err.String())
	}
}
