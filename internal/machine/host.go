package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// HostReader reads the host. Only one goroutine may use it.
type HostReader struct {
	// Proc, Sys and Groups are the kernel's directories; "" means /proc, /sys and /sys/fs/cgroup.
	Proc, Sys, Groups string

	last reading
	now  func() time.Time // replaced by tests
}

// reading holds the counters at one time.
type reading struct {
	at        time.Time
	cpu       cpuTime
	disk, net traffic
	ticks     map[string]int64 // milliseconds in which each disk was busy
}

// cpuTime holds core seconds.
type cpuTime struct {
	busy      float64
	cores     float64 // cores that may be used
	limited   bool
	throttled float64 // seconds in which the limit throttled the group
	ok        bool
}

type traffic struct {
	in, out int64
	ok      bool
}

// Read returns the host's figures, with rates since the previous reading; the first reading has no
// rates. It takes a few tens of microseconds per disk and network interface. Figures need Linux;
// those that cannot be read are unknown.
func (r *HostReader) Read() (Host, error) {
	if r.Proc == "" {
		if runtime.GOOS != "linux" {
			return Host{}, errors.New("the host's figures are read from Linux's /proc, which this system lacks")
		}
		r.Proc = "/proc"
	}
	if r.Sys == "" {
		r.Sys = "/sys"
	}
	if r.Groups == "" {
		r.Groups = filepath.Join(r.Sys, "fs", "cgroup")
	}
	now := time.Now
	if r.now != nil {
		now = r.now
	}
	m, err := readMemoryIn(r.Proc, r.Groups)
	if err != nil {
		return Host{}, err
	}
	cur := reading{at: now(), cpu: r.cpu(), net: r.network()}
	cur.disk, cur.ticks = r.disks()
	was := r.last
	r.last = cur
	h := Host{
		CPU: Unknown(), Cores: cur.cpu.cores, CPULimited: cur.cpu.limited, CPUThrottled: Unknown(),
		MemoryUsed: m.Total - m.Free, MemoryTotal: m.Total, MemoryLimited: m.Limit > 0, SwapUsed: r.swap(),
		DiskRead: Unknown(), DiskWrite: Unknown(), DiskBusy: Unknown(), NetReceive: Unknown(), NetSend: Unknown(),
		Totals: Totals{CPUSeconds: Unknown(), DiskRead: cur.disk.in, DiskWrite: cur.disk.out, NetReceive: cur.net.in, NetSend: cur.net.out},
	}
	if cur.cpu.ok {
		h.Totals.CPUSeconds = Value(cur.cpu.busy)
	}
	dt := cur.at.Sub(was.at).Seconds()
	if was.at.IsZero() || dt <= 0 {
		return h, nil
	}
	if cur.cpu.ok && was.cpu.ok && cur.cpu.limited == was.cpu.limited && cur.cpu.cores > 0 {
		h.CPU = share((cur.cpu.busy - was.cpu.busy) / dt / cur.cpu.cores)
		if cur.cpu.limited {
			h.CPUThrottled = share((cur.cpu.throttled - was.cpu.throttled) / dt)
		}
	}
	h.DiskRead, h.DiskWrite = rates(was.disk, cur.disk, dt)
	h.NetReceive, h.NetSend = rates(was.net, cur.net, dt)
	if cur.disk.ok {
		busy := 0.0
		for name, ticks := range cur.ticks {
			if before, ok := was.ticks[name]; ok {
				busy = max(busy, float64(ticks-before)/1e3/dt)
			}
		}
		h.DiskBusy = share(busy)
	}
	return h, nil
}

// share clamps x to 0 to 1: the counters are read slightly later than the clock.
func share(x float64) Value { return Value(min(max(x, 0), 1)) }

// rates returns rates per second; for a counter that decreased (a device was removed) the rate is
// unknown.
func rates(was, now traffic, dt float64) (in, out Value) {
	if !was.ok || !now.ok || now.in < was.in || now.out < was.out {
		return Unknown(), Unknown()
	}
	return Value(float64(now.in-was.in) / dt), Value(float64(now.out-was.out) / dt)
}

// userHZ is the number of /proc/stat ticks per second, on all architectures that Go supports.
const userHZ = 100

// cpu returns the processor time of the machine, or of the control group with the lowest limit.
func (r *HostReader) cpu() cpuTime {
	c := r.machine()
	for _, dir := range controlGroups(r.Proc, r.Groups) {
		b, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(b)) // "max 100000", or the microseconds per period
		if len(f) != 2 {
			continue
		}
		quota, err1 := strconv.ParseFloat(f[0], 64)
		period, err2 := strconv.ParseFloat(f[1], 64)
		if err1 != nil || err2 != nil || period <= 0 || c.cores > 0 && quota/period >= c.cores {
			continue
		}
		stat := fields(filepath.Join(dir, "cpu.stat"))
		used, ok := stat["usage_usec"]
		if !ok {
			continue
		}
		c = cpuTime{busy: float64(used) / 1e6, cores: quota / period, limited: true, throttled: float64(stat["throttled_usec"]) / 1e6, ok: true}
	}
	return c
}

// machine returns the processor time of the whole machine.
func (r *HostReader) machine() cpuTime {
	b, err := os.ReadFile(filepath.Join(r.Proc, "stat"))
	if err != nil {
		return cpuTime{}
	}
	var c cpuTime
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 5 || !strings.HasPrefix(f[0], "cpu"):
		case f[0] == "cpu":
			// user nice system idle iowait irq softirq steal. Guest time is part of user. Time that
			// a hypervisor took (steal) was not available to this machine, but was not idle either.
			for i, x := range f[1:min(len(f), 9)] {
				n, err := strconv.ParseInt(x, 10, 64)
				if err != nil {
					return cpuTime{}
				}
				if i != 3 && i != 4 {
					c.busy += float64(n) / userHZ
				}
			}
			c.ok = true
		default:
			c.cores++
		}
	}
	return c
}

func (r *HostReader) swap() int64 {
	m := fields(filepath.Join(r.Proc, "meminfo"))
	return (m["SwapTotal:"] - m["SwapFree:"]) << 10
}

// fields returns the names in a file, each with the whole number that follows it.
func fields(file string) map[string]int64 {
	out := map[string]int64{}
	b, err := os.ReadFile(file)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				out[f[0]] = n
			}
		}
	}
	return out
}

// disks sums up physical disks: devices stacked on others (RAID, LVM, encryption, loops) would
// count twice, and devices in memory are not disks.
func (r *HostReader) disks() (traffic, map[string]int64) {
	b, err := os.ReadFile(filepath.Join(r.Proc, "diskstats"))
	if err != nil {
		return traffic{}, nil
	}
	t, ticks := traffic{ok: true}, map[string]int64{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 14 || !r.wholeDisk(f[2]) {
			continue
		}
		n, err := numbers(f[5], f[9], f[12])
		if err != nil {
			continue
		}
		t.in += n[0] * 512 // sectors of 512 bytes, whatever the disk's own sector size is
		t.out += n[1] * 512
		ticks[f[2]] = n[2]
	}
	return t, ticks
}

func (r *HostReader) wholeDisk(name string) bool {
	for _, p := range []string{"loop", "ram", "zram"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	dir := filepath.Join(r.Sys, "block", strings.ReplaceAll(name, "/", "!")) // partitions have no entry there
	if _, err := os.Stat(dir); err != nil {
		return false
	}
	below, err := os.ReadDir(filepath.Join(dir, "slaves"))
	return err != nil || len(below) == 0
}

// network sums up the hardware interfaces; if there are none, as in a container, all except the
// loopback.
func (r *HostReader) network() traffic {
	b, err := os.ReadFile(filepath.Join(r.Proc, "net", "dev"))
	if err != nil {
		return traffic{}
	}
	devices, all := traffic{}, traffic{ok: true}
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if name = strings.TrimSpace(name); !ok || name == "lo" || len(f) < 9 {
			continue
		}
		n, err := numbers(f[0], f[8])
		if err != nil {
			continue
		}
		all.in, all.out = all.in+n[0], all.out+n[1]
		if _, err := os.Stat(filepath.Join(r.Sys, "class", "net", name, "device")); err == nil {
			devices = traffic{devices.in + n[0], devices.out + n[1], true}
		}
	}
	if devices.ok {
		return devices
	}
	return all
}

func numbers(texts ...string) ([]int64, error) {
	out := make([]int64, len(texts))
	for i, t := range texts {
		n, err := strconv.ParseUint(t, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number: %w", t, err)
		}
		out[i] = int64(n)
	}
	return out, nil
}
