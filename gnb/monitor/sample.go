package monitor

import (
	"time"

	"github.com/graphnb/graphnb/internal/machine"
)

// Value is a figure, or NaN where the machine does not give it, which is null in JSON. Ask Known before using
// it: a comparison with NaN is false.
type Value float64

// Known says whether the machine gave the figure.
func (v Value) Known() bool { return machine.Value(v).Known() }

// MarshalJSON writes a number, or null.
func (v Value) MarshalJSON() ([]byte, error) { return machine.Value(v).MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error { return (*machine.Value)(v).UnmarshalJSON(b) }

// Sample is one moment of a machine.
type Sample struct {
	Time time.Time `json:"time"`
	Host Host      `json:"host"`
	// GPUs are in the order of the bus, which is that of nvidia-smi.
	GPUs []GPU `json:"gpus"`
	// Note says why GPUs, or figures of the host, are missing; "" if nothing is.
	Note string `json:"note,omitempty"`
}

// Host is the machine without its GPUs, or the part of it that this process's control group (a container's,
// a job's) may use.
type Host struct {
	// CPU is the share, 0 to 1, of Cores that was busy. Under a limit it is what the control group used.
	CPU Value `json:"cpu"`
	// Cores are the machine's, or the control group's limit (CPULimited), which need not be whole.
	Cores      float64 `json:"cores"`
	CPULimited bool    `json:"cpu_limited"`
	// CPUThrottled is the share of time in which the limit held the control group back.
	CPUThrottled Value `json:"cpu_throttled"`
	// Memory is in bytes, and MemoryTotal the control group's limit where that is less than the machine's
	// (MemoryLimited). The file cache does not count as used.
	MemoryUsed    int64 `json:"memory_used"`
	MemoryTotal   int64 `json:"memory_total"`
	MemoryLimited bool  `json:"memory_limited"`
	SwapUsed      int64 `json:"swap_used"`
	// Bytes per second of all disks, and the share of time in which the busiest one was in use.
	DiskRead  Value `json:"disk_read"`
	DiskWrite Value `json:"disk_write"`
	DiskBusy  Value `json:"disk_busy"`
	// Bytes per second of all network interfaces but the loopback.
	NetReceive Value `json:"net_receive"`
	NetSend    Value `json:"net_send"`
	// Totals count since the machine, or the control group, was started.
	Totals Totals `json:"totals"`
}

// Totals only grow. CPUSeconds is processor time; the others are bytes.
type Totals struct {
	CPUSeconds Value `json:"cpu_seconds"`
	DiskRead   int64 `json:"disk_read"`
	DiskWrite  int64 `json:"disk_write"`
	NetReceive int64 `json:"net_receive"`
	NetSend    int64 `json:"net_send"`
}

// GPU is one GPU.
type GPU struct {
	Index int    `json:"index"` // as nvidia-smi numbers them
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	Bus   string `json:"bus"` // PCI address
	// Error says why figures are missing or old: the GPU fell off the bus, or the driver does not answer.
	Error string `json:"error,omitempty"`
	// Utilization is the share of time, 0 to 1, in which a kernel ran, and MemoryBusy that in which memory
	// was read or written. A divided GPU (MIG) gives neither.
	Utilization Value `json:"utilization"`
	MemoryBusy  Value `json:"memory_busy"`
	// Memory in bytes, used by any process.
	MemoryUsed  Value `json:"memory_used"`
	MemoryTotal Value `json:"memory_total"`

	TemperatureC   Value `json:"temperature_c"`
	PowerW         Value `json:"power_w"`
	PowerLimitW    Value `json:"power_limit_w"`
	ClockMHz       Value `json:"clock_mhz"` // of the multiprocessors
	ClockMaxMHz    Value `json:"clock_max_mhz"`
	MemoryClockMHz Value `json:"memory_clock_mhz"`
	// Throttled are the reasons why clocks are lower than they could be. Being idle is not one.
	Throttled []string `json:"throttled,omitempty"`
	// Bytes per second over the bus and over all NVLinks, as the GPU sees it.
	PCIeReceive   Value `json:"pcie_receive"`
	PCIeSend      Value `json:"pcie_send"`
	NVLinkReceive Value `json:"nvlink_receive"`
	NVLinkSend    Value `json:"nvlink_send"`

	Processes []Process  `json:"processes,omitempty"` // by descending memory
	Instances []Instance `json:"instances,omitempty"` // of a divided GPU (MIG)
}

// MemoryOf is the GPU memory, in bytes, of the workers of a run, named by its ID, or of all runs with "". It is
// unknown where there is no such worker, or the driver does not give a process's memory.
func (g *GPU) MemoryOf(run string) Value {
	of := machine.GPU{Processes: make([]machine.Process, len(g.Processes))}
	for i, p := range g.Processes {
		of.Processes[i] = machine.Process{Memory: machine.Value(p.Memory), Run: p.Run}
	}
	return Value(of.MemoryOf(run))
}

// Instance is a part of a divided GPU (MIG), which a worker uses as a device.
type Instance struct {
	Index       int    `json:"index"`   // among the GPU's instances
	GPU         int    `json:"gpu"`     // number of the GPU instance
	Compute     int    `json:"compute"` // number of the compute instance in it
	UUID        string `json:"uuid"`    // for CUDA_VISIBLE_DEVICES
	Name        string `json:"name"`    // such as "1g.10gb"
	MemoryUsed  Value  `json:"memory_used"`
	MemoryTotal Value  `json:"memory_total"`
}

// Process is a process that uses a GPU.
type Process struct {
	PID    int    `json:"pid"`
	Name   string `json:"name"`
	Memory Value  `json:"memory"` // of the GPU, in bytes
	// Run is the ID of the run that the process is a worker of, and Rank its rank; "" if it is no worker, or
	// another user's.
	Run  string `json:"run,omitempty"`
	Rank int    `json:"rank,omitempty"`
}

// sampleOf is what internal/machine read, in the types that users name.
func sampleOf(s machine.Sample) Sample {
	h := &s.Host
	out := Sample{Time: s.Time, Note: s.Note, Host: Host{
		CPU: Value(h.CPU), Cores: h.Cores, CPULimited: h.CPULimited, CPUThrottled: Value(h.CPUThrottled),
		MemoryUsed: h.MemoryUsed, MemoryTotal: h.MemoryTotal, MemoryLimited: h.MemoryLimited, SwapUsed: h.SwapUsed,
		DiskRead: Value(h.DiskRead), DiskWrite: Value(h.DiskWrite), DiskBusy: Value(h.DiskBusy),
		NetReceive: Value(h.NetReceive), NetSend: Value(h.NetSend),
		Totals: Totals{
			CPUSeconds: Value(h.Totals.CPUSeconds), DiskRead: h.Totals.DiskRead, DiskWrite: h.Totals.DiskWrite,
			NetReceive: h.Totals.NetReceive, NetSend: h.Totals.NetSend,
		},
	}}
	if s.GPUs != nil {
		out.GPUs = make([]GPU, len(s.GPUs))
	}
	for i := range s.GPUs {
		out.GPUs[i] = gpuOf(&s.GPUs[i])
	}
	return out
}

func gpuOf(g *machine.GPU) GPU {
	out := GPU{
		Index: g.Index, UUID: g.UUID, Name: g.Name, Bus: g.Bus, Error: g.Error,
		Utilization: Value(g.Utilization), MemoryBusy: Value(g.MemoryBusy), MemoryUsed: Value(g.MemoryUsed), MemoryTotal: Value(g.MemoryTotal),
		TemperatureC: Value(g.TemperatureC), PowerW: Value(g.PowerW), PowerLimitW: Value(g.PowerLimitW),
		ClockMHz: Value(g.ClockMHz), ClockMaxMHz: Value(g.ClockMaxMHz), MemoryClockMHz: Value(g.MemoryClockMHz), Throttled: g.Throttled,
		PCIeReceive: Value(g.PCIeReceive), PCIeSend: Value(g.PCIeSend), NVLinkReceive: Value(g.NVLinkReceive), NVLinkSend: Value(g.NVLinkSend),
	}
	for _, p := range g.Processes {
		out.Processes = append(out.Processes, Process{PID: p.PID, Name: p.Name, Memory: Value(p.Memory), Run: p.Run, Rank: p.Rank})
	}
	for _, m := range g.Instances {
		out.Instances = append(out.Instances, Instance{
			Index: m.Index, GPU: m.GPU, Compute: m.Compute, UUID: m.UUID, Name: m.Name, MemoryUsed: Value(m.MemoryUsed), MemoryTotal: Value(m.MemoryTotal),
		})
	}
	return out
}
