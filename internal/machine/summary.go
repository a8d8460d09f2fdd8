package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Summary aggregates samples. The zero value is empty.
type Summary struct {
	Host HostSummary
	GPUs []GPUSummary // in the order of first appearance
}

// Stat aggregates a figure over the N samples that had it.
type Stat struct {
	N              int
	Min, Mean, Max float64
}

func (s *Stat) add(v Value) {
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

// Span returns "mean (least to greatest)".
func (s Stat) Span(text func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", text(s.Mean), text(s.Min), text(s.Max))
}

// HostSummary aggregates the host's figures: shares are 0 to 1, memory in bytes, rates in bytes per
// second.
type HostSummary struct {
	Cores                                                 float64
	MemoryTotal                                           int64
	CPU, Memory, DiskRead, DiskWrite, NetReceive, NetSend Stat
}

// GPUSummary aggregates a GPU's figures.
type GPUSummary struct {
	Index       int
	Name, UUID  string
	MemoryTotal Value
	// RunMemory is the memory of the chosen run, or of all runs.
	Utilization, Memory, RunMemory, Temperature, Power Stat
	EnergyJ                                            float64            // power over the time in which it was known
	Throttled                                          map[string]float64 // the share of samples by reason
	Error                                              string             // of the last sample

	last      time.Time
	samples   int
	throttled map[string]int
}

// Add adds a sample; run selects whose share of the GPUs' memory is counted, "" that of all runs.
func (m *Summary) Add(s Sample, run string) {
	h := &m.Host
	h.Cores, h.MemoryTotal = s.Host.Cores, s.Host.MemoryTotal
	h.CPU.add(s.Host.CPU)
	if s.Host.MemoryTotal > 0 {
		h.Memory.add(Value(s.Host.MemoryUsed))
	}
	h.DiskRead.add(s.Host.DiskRead)
	h.DiskWrite.add(s.Host.DiskWrite)
	h.NetReceive.add(s.Host.NetReceive)
	h.NetSend.add(s.Host.NetSend)
	for i := range s.GPUs {
		m.GPU(s.GPUs[i].Index).add(&s.GPUs[i], s.Time, run)
	}
}

// GPU returns the summary of the GPU with an index, and creates it if needed.
func (m *Summary) GPU(index int) *GPUSummary {
	for i := range m.GPUs {
		if m.GPUs[i].Index == index {
			return &m.GPUs[i]
		}
	}
	m.GPUs = append(m.GPUs, GPUSummary{Index: index, MemoryTotal: Unknown(), throttled: map[string]int{}})
	return &m.GPUs[len(m.GPUs)-1]
}

func (u *GPUSummary) add(g *GPU, at time.Time, run string) {
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

// String returns a one-line summary.
func (u *GPUSummary) String() string {
	var parts []string
	if u.Utilization.N > 0 {
		parts = append(parts, u.Utilization.Span(Percent)+" busy")
	}
	if u.Memory.N > 0 {
		text := fmt.Sprintf("up to %s of %s", phrase.Bytes(int64(u.Memory.Max)), phrase.Bytes(int64(u.MemoryTotal)))
		if u.RunMemory.N > 0 {
			text += fmt.Sprintf(" (runs %s)", phrase.Bytes(int64(u.RunMemory.Max)))
		}
		parts = append(parts, text)
	}
	if u.Temperature.N > 0 {
		parts = append(parts, fmt.Sprintf("up to %.0f °C", u.Temperature.Max))
	}
	if u.Power.N > 0 {
		parts = append(parts, fmt.Sprintf("%s, %.1f Wh", u.Power.Span(func(x float64) string { return fmt.Sprintf("%.0f W", x) }), u.EnergyJ/3600))
	}
	for _, why := range slices.Sorted(maps.Keys(u.Throttled)) {
		parts = append(parts, fmt.Sprintf("throttled (%s) %s of the time", why, Percent(u.Throttled[why])))
	}
	if u.Error != "" {
		parts = append(parts, u.Error)
	}
	return strings.Join(parts, ", ")
}

// Percent formats a share, 0 to 1, as text.
func Percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
