package machine

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// machine holds the /proc and /sys of an invented machine in a directory.
type machine struct {
	t   *testing.T
	dir string
	at  time.Time
	r   HostReader
}

func newMachine(t *testing.T, files map[string]string) *machine {
	m := &machine{t: t, dir: t.TempDir(), at: time.Unix(1000, 0)}
	m.r = HostReader{Proc: filepath.Join(m.dir, "proc"), Sys: filepath.Join(m.dir, "sys"), now: func() time.Time { return m.at }}
	m.write(files)
	return m
}

// write replaces files; a name that ends in "/" creates a directory.
func (m *machine) write(files map[string]string) {
	m.t.Helper()
	for name, text := range files {
		file := filepath.Join(m.dir, name)
		dir := filepath.Dir(file)
		if strings.HasSuffix(name, "/") {
			dir = file
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			m.t.Fatal(err)
		}
		if dir != file {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				m.t.Fatal(err)
			}
		}
	}
}

func (m *machine) read() Host {
	m.t.Helper()
	h, err := m.r.Read()
	if err != nil {
		m.t.Fatal(err)
	}
	return h
}

func near(t *testing.T, what string, got Value, want float64) {
	t.Helper()
	if math.IsNaN(want) != !got.Known() || math.Abs(float64(got)-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

const (
	meminfo = "MemTotal: 8000 kB\nMemFree: 1 kB\nMemAvailable: 6000 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n"
	cpu0    = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1 1\ncpu1 1 1 1 1 1\nintr 5 6 7 8\n"
	// Two seconds later on two cores: 4 core seconds, of which 1 was busy.
	cpu1  = "cpu  150 0 150 1000 100 0 0 0 0 0\ncpu0 1 1 1 1 1\ncpu1 1 1 1 1 1\n"
	disk0 = `   7 0 loop0 9 0 9999 0 9 0 9999 0 0 9999 0
   8 0 sda 10 0 1000 0 10 0 2000 0 0 500 0
   8 1 sda1 10 0 1000 0 10 0 2000 0 0 500 0
 253 0 dm-0 10 0 1000 0 10 0 2000 0 0 500 0
 259 0 nvme0n1 10 0 0 0 10 0 0 0 0 100 0
`
	disk1 = `   7 0 loop0 9 0 99999 0 9 0 99999 0 0 99999 0
   8 0 sda 10 0 3000 0 10 0 2000 0 0 600 0
   8 1 sda1 10 0 3000 0 10 0 2000 0 0 600 0
 253 0 dm-0 10 0 3000 0 10 0 2000 0 0 600 0
 259 0 nvme0n1 10 0 0 0 10 0 4000 0 0 1100 0
`
	net0 = "Inter-| Receive\n face |bytes\n    lo: 1 0 0 0 0 0 0 0 1 0\n  eth0: 1000 0 0 0 0 0 0 0 500 0\ndocker0: 7 0 0 0 0 0 0 0 7 0\n"
	net1 = "Inter-| Receive\n face |bytes\n    lo: 9999 0 0 0 0 0 0 0 9999 0\n  eth0: 3000 0 0 0 0 0 0 0 600 0\ndocker0: 1007 0 0 0 0 0 0 0 1007 0\n"
)

func TestHostOfAMachine(t *testing.T) {
	m := newMachine(t, map[string]string{
		"proc/meminfo": meminfo, "proc/stat": cpu0, "proc/diskstats": disk0, "proc/net/dev": net0,
		"sys/block/sda/": "", "sys/block/nvme0n1/": "", "sys/block/loop0/": "", "sys/block/dm-0/slaves/sda1/": "", "sys/block/sda/slaves/": "",
		"sys/class/net/eth0/device/": "", "sys/class/net/docker0/": "",
	})
	h := m.read()
	if h.CPU.Known() || h.DiskRead.Known() || h.NetSend.Known() || h.DiskBusy.Known() {
		t.Errorf("the first reading has rates: %+v", h)
	}
	if h.MemoryTotal != 8000<<10 || h.MemoryUsed != 2000<<10 || h.MemoryLimited || h.SwapUsed != 40<<10 || h.Cores != 2 || h.CPULimited {
		t.Errorf("%+v", h)
	}
	m.at = m.at.Add(2 * time.Second)
	m.write(map[string]string{"proc/stat": cpu1, "proc/diskstats": disk1, "proc/net/dev": net1})
	h = m.read()
	near(t, "CPU", h.CPU, 0.25)
	near(t, "the throttled share", h.CPUThrottled, math.NaN())
	near(t, "reading", h.DiskRead, 2000*512/2)
	near(t, "writing", h.DiskWrite, 4000*512/2)
	near(t, "the busiest disk", h.DiskBusy, 0.5)
	near(t, "receiving", h.NetReceive, 1000)
	near(t, "sending", h.NetSend, 50)
	near(t, "core seconds", h.Totals.CPUSeconds, 3)
	if h.Totals.DiskRead != 3000*512 || h.Totals.NetReceive != 3000 {
		t.Errorf("totals %+v", h.Totals)
	}
	// A counter that decreases means that the device was replaced and gives no negative rate.
	m.at = m.at.Add(time.Second)
	m.write(map[string]string{"proc/net/dev": net0, "proc/diskstats": disk0})
	if h = m.read(); h.NetReceive.Known() || h.DiskRead.Known() {
		t.Errorf("counters that decreased have rates: %+v", h)
	}
}

// The limits of a control group and of the groups above it count where they are lower than the
// machine's resources.
func TestHostOfAContainer(t *testing.T) {
	stat := func(used, throttled string) string {
		return "usage_usec " + used + "\nnr_throttled 1\nthrottled_usec " + throttled + "\n"
	}
	m := newMachine(t, map[string]string{
		"proc/meminfo": meminfo, "proc/stat": cpu0, "proc/self/cgroup": "0::/job/step\n",
		"proc/net/dev":                          "  eth0: 1000 0 0 0 0 0 0 0 500 0\n  eth1: 1000 0 0 0 0 0 0 0 500 0\n",
		"sys/fs/cgroup/job/cpu.max":             "50000 100000\n",
		"sys/fs/cgroup/job/cpu.stat":            stat("1000000", "0"),
		"sys/fs/cgroup/job/step/cpu.max":        "max 100000\n",
		"sys/fs/cgroup/job/step/cpu.stat":       stat("9", "9"),
		"sys/fs/cgroup/job/memory.max":          "1024000\n",
		"sys/fs/cgroup/job/memory.current":      "600000\n",
		"sys/fs/cgroup/job/memory.stat":         "inactive_file 50000\nactive_file 50000\n",
		"sys/fs/cgroup/job/step/memory.max":     "max\n",
		"sys/fs/cgroup/job/step/memory.current": "10\n",
	})
	h := m.read()
	if !h.CPULimited || h.Cores != 0.5 || !h.MemoryLimited || h.MemoryTotal != 1024000 || h.MemoryUsed != 500000 {
		t.Errorf("%+v", h)
	}
	m.at = m.at.Add(time.Second)
	m.write(map[string]string{
		"sys/fs/cgroup/job/cpu.stat": stat("1400000", "250000"),
		"proc/net/dev":               "  eth0: 1000 0 0 0 0 0 0 0 700 0\n  eth1: 1500 0 0 0 0 0 0 0 500 0\n",
	})
	h = m.read()
	near(t, "CPU", h.CPU, 0.8)
	near(t, "the throttled share", h.CPUThrottled, 0.25)
	near(t, "receiving, of interfaces that are no devices", h.NetReceive, 500)
	near(t, "sending", h.NetSend, 200)
	// A limit above the machine's resources has no effect.
	m.write(map[string]string{"sys/fs/cgroup/job/cpu.max": "900000 100000\n", "sys/fs/cgroup/job/memory.max": "900000000000\n"})
	if h = m.read(); h.CPULimited || h.Cores != 2 || h.MemoryLimited || h.MemoryTotal != 8000<<10 {
		t.Errorf("with limits above the machine's resources: %+v", h)
	}
}

// A missing or damaged file makes only its own value unknown.
func TestHostInParts(t *testing.T) {
	m := newMachine(t, map[string]string{"proc/meminfo": meminfo, "proc/stat": "cpu  x y\n", "proc/diskstats": "8 0 sda\n", "sys/fs/cgroup/cpu.max": "x\n"})
	m.read()
	m.at = m.at.Add(time.Second)
	h := m.read()
	if h.CPU.Known() || h.Totals.CPUSeconds.Known() || h.NetReceive.Known() || h.MemoryTotal == 0 {
		t.Errorf("%+v", h)
	}
	m = newMachine(t, nil)
	if _, err := m.r.Read(); err == nil {
		t.Error("a machine without /proc was read")
	}
}

func TestHostOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux says it")
	}
	var r HostReader
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	h, err := r.Read()
	if err != nil || !h.CPU.Known() || h.CPU < 0 || h.CPU > 1 || h.Cores <= 0 || h.MemoryUsed <= 0 || h.MemoryUsed >= h.MemoryTotal || !(h.DiskRead >= 0) || !(h.NetReceive >= 0) {
		t.Errorf("%+v, %v", h, err)
	}
}

// Unknown values stay unknown in JSON.
func TestValuesInJSON(t *testing.T) {
	s := Sample{Time: time.Unix(5, 0).UTC(), Host: Host{CPU: 0.5, DiskRead: Unknown()}, GPUs: []GPU{{Index: 1, PowerW: Unknown(), TemperatureC: 71}}}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var got Sample
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Host.CPU != 0.5 || got.Host.DiskRead.Known() || got.GPUs[0].PowerW.Known() || got.GPUs[0].TemperatureC != 71 || !got.Time.Equal(s.Time) {
		t.Errorf("%s came back as %+v", b, got)
	}
	for _, text := range []string{`"x"`, `{}`, `1e999`} {
		if err := json.Unmarshal([]byte(text), new(Value)); err == nil {
			t.Errorf("%s was read as a known value", text)
		}
	}
	if b, err := json.Marshal(Value(math.Inf(1))); err != nil || string(b) != "null" {
		t.Errorf("%s, %v", b, err)
	}
}

func BenchmarkHost(b *testing.B) {
	var r HostReader
	for b.Loop() {
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
	}
}
