package gnb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/internal/machine"
)

// MonitorReport is what [Monitor] saw.
type MonitorReport struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Samples are evenly spaced moments from the beginning to the end: all there were, or of long times every
	// second, fourth … one, so that they stay under 1440.
	Samples []MonitorSample `json:"samples"`
	// Note says why GPUs, or figures of the host, are missing at the end; "" where nothing is.
	Note string `json:"note,omitempty"`
	// Host and GPUs sum up every sample there was.
	Host MonitorHostSummary  `json:"host"`
	GPUs []MonitorGPUSummary `json:"gpus"`
}

// MonitorStat is a figure over all the samples that had it; N is how many.
type MonitorStat struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

func (s *MonitorStat) add(v MonitorValue) {
	if !v.Known() {
		return
	}
	x := float64(v)
	if s.N++; s.N == 1 {
		s.Min, s.Max = x, x
	}
	s.Min, s.Max = min(s.Min, x), max(s.Max, x)
	s.Mean += (x - s.Mean) / float64(s.N)
}

// MonitorHostSummary is what the host did; shares are 0 to 1, memory in bytes, rates in bytes a second.
type MonitorHostSummary struct {
	Cores       float64     `json:"cores"`
	MemoryTotal int64       `json:"memory_total"`
	CPU         MonitorStat `json:"cpu"`
	Memory      MonitorStat `json:"memory"`
	DiskRead    MonitorStat `json:"disk_read"`
	DiskWrite   MonitorStat `json:"disk_write"`
	NetReceive  MonitorStat `json:"net_receive"`
	NetSend     MonitorStat `json:"net_send"`
}

// MonitorGPUSummary is what a GPU did.
type MonitorGPUSummary struct {
	Index       int          `json:"index"`
	Name        string       `json:"name"`
	UUID        string       `json:"uuid"`
	MemoryTotal MonitorValue `json:"memory_total"`
	Utilization MonitorStat  `json:"utilization"`
	Memory      MonitorStat  `json:"memory"`
	RunMemory   MonitorStat  `json:"run_memory"` // of the run that is watched, or all
	Temperature MonitorStat  `json:"temperature_c"`
	Power       MonitorStat  `json:"power_w"`
	// EnergyJ is the power over the time in which it was known.
	EnergyJ float64 `json:"energy_j"`
	// Throttled is the share of samples by reason.
	Throttled map[string]float64 `json:"throttled,omitempty"`
	// Error is the last sample's.
	Error string `json:"error,omitempty"`

	last      time.Time
	samples   int
	throttled map[string]int
}

// add counts a sample; run is whose share of memory is meant.
func (r *MonitorReport) add(s MonitorSample, run string) {
	r.Note = s.Note
	h := &r.Host
	h.Cores, h.MemoryTotal = s.Host.Cores, s.Host.MemoryTotal
	h.CPU.add(s.Host.CPU)
	if s.Host.MemoryTotal > 0 {
		h.Memory.add(MonitorValue(s.Host.MemoryUsed))
	}
	h.DiskRead.add(s.Host.DiskRead)
	h.DiskWrite.add(s.Host.DiskWrite)
	h.NetReceive.add(s.Host.NetReceive)
	h.NetSend.add(s.Host.NetSend)
	for i := range s.GPUs {
		r.gpu(&s.GPUs[i]).add(&s.GPUs[i], s.Time, run)
	}
}

// gpu is the summary of a GPU; one that comes later gets one then.
func (r *MonitorReport) gpu(g *MonitorGPU) *MonitorGPUSummary {
	for i := range r.GPUs {
		if r.GPUs[i].Index == g.Index {
			return &r.GPUs[i]
		}
	}
	r.GPUs = append(r.GPUs, MonitorGPUSummary{Index: g.Index, MemoryTotal: machine.Unknown(), throttled: map[string]int{}})
	return &r.GPUs[len(r.GPUs)-1]
}

func (u *MonitorGPUSummary) add(g *MonitorGPU, at time.Time, run string) {
	if g.Name != "" {
		u.Name, u.UUID = g.Name, g.UUID
	}
	u.Error = g.Error
	if g.MemoryTotal.Known() {
		u.MemoryTotal = g.MemoryTotal
	}
	u.Utilization.add(g.Utilization)
	u.Memory.add(g.MemoryUsed)
	u.RunMemory.add(g.MemoryOf(run))
	u.Temperature.add(g.TemperatureC)
	u.Power.add(g.PowerW)
	if g.PowerW.Known() && !u.last.IsZero() {
		u.EnergyJ += float64(g.PowerW) * at.Sub(u.last).Seconds()
	}
	u.last = at
	u.samples++
	for _, why := range g.Throttled {
		u.throttled[why]++
	}
	if len(u.throttled) > 0 {
		u.Throttled = map[string]float64{}
		for why, n := range u.throttled {
			u.Throttled[why] = float64(n) / float64(u.samples)
		}
	}
}

// String is a table of means and extremes.
func (r *MonitorReport) String() string {
	var b strings.Builder
	h := &r.Host
	fmt.Fprintf(&b, "watched for %v", r.End.Sub(r.Start).Round(100*time.Millisecond))
	if h.CPU.N > 0 {
		fmt.Fprintf(&b, ": CPU %s of %g cores, memory up to %s of %s", span(h.CPU, percentOf), h.Cores, live.Bytes(h.Memory.Max), live.Bytes(float64(h.MemoryTotal)))
	}
	b.WriteByte('\n')
	if h.DiskRead.N > 0 || h.NetReceive.N > 0 {
		fmt.Fprintf(&b, "disk: read %s/s, written %s/s; network: received %s/s, sent %s/s\n",
			live.Bytes(h.DiskRead.Mean), live.Bytes(h.DiskWrite.Mean), live.Bytes(h.NetReceive.Mean), live.Bytes(h.NetSend.Mean))
	}
	for i := range r.GPUs {
		u := &r.GPUs[i]
		fmt.Fprintf(&b, "GPU %d (%s): %s\n", u.Index, u.Name, u)
	}
	if r.Note != "" {
		b.WriteString(r.Note + "\n")
	}
	return live.Clean(strings.TrimRight(b.String(), "\n"))
}

// String is what the GPU did, in a line.
func (u *MonitorGPUSummary) String() string {
	var parts []string
	if u.Utilization.N > 0 {
		parts = append(parts, span(u.Utilization, percentOf)+" busy")
	}
	if u.Memory.N > 0 {
		text := fmt.Sprintf("up to %s of %s", live.Bytes(u.Memory.Max), live.Bytes(float64(u.MemoryTotal)))
		if u.RunMemory.N > 0 {
			text += fmt.Sprintf(" (runs %s)", live.Bytes(u.RunMemory.Max))
		}
		parts = append(parts, text)
	}
	if u.Temperature.N > 0 {
		parts = append(parts, fmt.Sprintf("up to %.0f °C", u.Temperature.Max))
	}
	if u.Power.N > 0 {
		parts = append(parts, fmt.Sprintf("%s, %.1f Wh", span(u.Power, func(x float64) string { return fmt.Sprintf("%.0f W", x) }), u.EnergyJ/3600))
	}
	for _, why := range slices.Sorted(maps.Keys(u.Throttled)) {
		parts = append(parts, fmt.Sprintf("throttled (%s) %s of the time", why, percentOf(u.Throttled[why])))
	}
	if u.Error != "" {
		parts = append(parts, u.Error)
	}
	return strings.Join(parts, ", ")
}

// span is "mean (least to greatest)".
func span(s MonitorStat, text func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", text(s.Mean), text(s.Min), text(s.Max))
}

func percentOf(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
