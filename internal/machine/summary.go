package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/monitor/load"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Summary aggregates samples. The zero value is empty.
type Summary struct {
	Host load.HostSummary
	GPUs []load.GPUSummary // in the order of first appearance

	counts map[int]*counts // by the GPU's index
}

// counts is what the next sample of a GPU needs to know of the earlier ones.
type counts struct {
	last      time.Time
	samples   int
	throttled map[string]int // samples by reason
}

func add(s *load.Stat, v Value) {
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
func Span(s load.Stat, text func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", text(s.Mean), text(s.Min), text(s.Max))
}

// Add adds a sample; run selects whose share of the GPUs' memory is counted, "" that of all runs.
func (m *Summary) Add(s Sample, run string) {
	h := &m.Host
	h.Cores, h.MemoryTotal = s.Host.Cores, s.Host.MemoryTotal
	add(&h.CPU, s.Host.CPU)
	if s.Host.MemoryTotal > 0 {
		add(&h.Memory, Value(s.Host.MemoryUsed))
	}
	add(&h.DiskRead, s.Host.DiskRead)
	add(&h.DiskWrite, s.Host.DiskWrite)
	add(&h.NetReceive, s.Host.NetReceive)
	add(&h.NetSend, s.Host.NetSend)
	for i := range s.GPUs {
		m.addGPU(&s.GPUs[i], s.Time, run)
	}
}

// GPU returns the summary of the GPU with an index, and creates it if needed.
func (m *Summary) GPU(index int) *load.GPUSummary {
	for i := range m.GPUs {
		if m.GPUs[i].Index == index {
			return &m.GPUs[i]
		}
	}
	m.GPUs = append(m.GPUs, load.GPUSummary{Index: index, MemoryTotal: Unknown()})
	return &m.GPUs[len(m.GPUs)-1]
}

func (m *Summary) addGPU(g *GPU, at time.Time, run string) {
	u, c := m.GPU(g.Index), m.counts[g.Index]
	if c == nil {
		c = &counts{throttled: map[string]int{}}
		if m.counts == nil {
			m.counts = map[int]*counts{}
		}
		m.counts[g.Index] = c
	}
	if g.Name != "" {
		u.Name, u.UUID = g.Name, g.UUID
	}
	u.Error = g.Error
	if g.MemoryTotal.Known() {
		u.MemoryTotal = g.MemoryTotal
	}
	add(&u.Utilization, g.Utilization)
	add(&u.Memory, g.MemoryUsed)
	add(&u.RunMemory, g.MemoryOf(run))
	add(&u.Temperature, g.TemperatureC)
	add(&u.Power, g.PowerW)
	if g.PowerW.Known() && !c.last.IsZero() {
		u.EnergyJ += float64(g.PowerW) * at.Sub(c.last).Seconds()
	}
	c.last = at
	c.samples++
	for _, why := range g.Throttled {
		c.throttled[why]++
	}
	if len(c.throttled) > 0 {
		u.Throttled = map[string]float64{}
		for why, n := range c.throttled {
			u.Throttled[why] = float64(n) / float64(c.samples)
		}
	}
}

// GPUText returns a GPU's summary on one line.
func GPUText(u *load.GPUSummary) string {
	var parts []string
	if u.Utilization.N > 0 {
		parts = append(parts, Span(u.Utilization, Percent)+" busy")
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
		parts = append(parts, fmt.Sprintf("%s, %.1f Wh", Span(u.Power, func(x float64) string { return fmt.Sprintf("%.0f W", x) }), u.EnergyJ/3600))
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
