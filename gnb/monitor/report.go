package monitor

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Report is the result of [Watch].
type Report struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Samples are evenly spaced moments from the beginning to the end, at most 1440: all samples
	// or, after a long time, every second, fourth, eighth one and so on.
	Samples []Sample `json:"samples"`
	// Note explains why GPUs, or figures of the host, were missing at the end; "" if nothing was.
	Note string `json:"note,omitempty"`
	// Host and GPUs summarise all samples, including those that are not in Samples.
	Host HostSummary  `json:"host"`
	GPUs []GPUSummary `json:"gpus"`
}

// Stat summarises a figure over the N samples in which it was known.
type Stat struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// HostSummary summarises the host. Shares are 0 to 1, memory is in bytes, rates are in bytes per
// second.
type HostSummary struct {
	Cores       float64 `json:"cores"`
	MemoryTotal int64   `json:"memory_total"`
	CPU         Stat    `json:"cpu"`
	Memory      Stat    `json:"memory"`
	DiskRead    Stat    `json:"disk_read"`
	DiskWrite   Stat    `json:"disk_write"`
	NetReceive  Stat    `json:"net_receive"`
	NetSend     Stat    `json:"net_send"`
}

// GPUSummary summarises one GPU.
type GPUSummary struct {
	Index       int    `json:"index"`
	Name        string `json:"name"`
	UUID        string `json:"uuid"`
	MemoryTotal Value  `json:"memory_total"`
	Utilization Stat   `json:"utilization"`
	Memory      Stat   `json:"memory"`
	RunMemory   Stat   `json:"run_memory"` // memory of the run in [Options], or of all runs
	Temperature Stat   `json:"temperature_c"`
	Power       Stat   `json:"power_w"`
	// EnergyJ is the energy in joules: the power integrated over the time in which it was known.
	EnergyJ float64 `json:"energy_j"`
	// Throttled is the share of samples in which clocks were lowered, by reason.
	Throttled map[string]float64 `json:"throttled,omitempty"`
	// Error is the error of the last sample.
	Error string `json:"error,omitempty"`
}

// String returns a table of means and extremes.
func (r *Report) String() string {
	var b strings.Builder
	h := &r.Host
	fmt.Fprintf(&b, "watched for %v", r.End.Sub(r.Start).Round(100*time.Millisecond))
	if h.CPU.N > 0 {
		fmt.Fprintf(&b, ": CPU %s of %g cores, memory up to %s of %s", machine.Stat(h.CPU).Span(machine.Percent), h.Cores, phrase.Bytes(int64(h.Memory.Max)), phrase.Bytes(h.MemoryTotal))
	}
	b.WriteByte('\n')
	if h.DiskRead.N > 0 || h.NetReceive.N > 0 {
		fmt.Fprintf(&b, "disk: read %s/s, written %s/s; network: received %s/s, sent %s/s\n",
			phrase.Bytes(int64(h.DiskRead.Mean)), phrase.Bytes(int64(h.DiskWrite.Mean)), phrase.Bytes(int64(h.NetReceive.Mean)), phrase.Bytes(int64(h.NetSend.Mean)))
	}
	for i := range r.GPUs {
		u := &r.GPUs[i]
		fmt.Fprintf(&b, "GPU %d (%s): %s\n", u.Index, u.Name, u)
	}
	if r.Note != "" {
		b.WriteString(r.Note + "\n")
	}
	return phrase.Clean(strings.TrimRight(b.String(), "\n"))
}

// String returns the GPU's summary as one line.
func (u *GPUSummary) String() string {
	sum := machine.GPUSummary{
		MemoryTotal: machine.Value(u.MemoryTotal), Utilization: machine.Stat(u.Utilization), Memory: machine.Stat(u.Memory), RunMemory: machine.Stat(u.RunMemory),
		Temperature: machine.Stat(u.Temperature), Power: machine.Stat(u.Power), EnergyJ: u.EnergyJ, Throttled: u.Throttled, Error: u.Error,
	}
	return sum.String()
}

// summed fills the report from the summary.
func (r *Report) summed(sum *machine.Summary) {
	h := &sum.Host
	r.Host = HostSummary{
		Cores: h.Cores, MemoryTotal: h.MemoryTotal, CPU: Stat(h.CPU), Memory: Stat(h.Memory),
		DiskRead: Stat(h.DiskRead), DiskWrite: Stat(h.DiskWrite), NetReceive: Stat(h.NetReceive), NetSend: Stat(h.NetSend),
	}
	for i := range sum.GPUs {
		u := &sum.GPUs[i]
		r.GPUs = append(r.GPUs, GPUSummary{
			Index: u.Index, Name: u.Name, UUID: u.UUID, MemoryTotal: Value(u.MemoryTotal), Utilization: Stat(u.Utilization), Memory: Stat(u.Memory), RunMemory: Stat(u.RunMemory),
			Temperature: Stat(u.Temperature), Power: Stat(u.Power), EnergyJ: u.EnergyJ, Throttled: u.Throttled, Error: u.Error,
		})
	}
}
