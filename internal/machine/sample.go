package machine

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Value is a figure, or NaN where the machine does not say it: null in JSON.
type Value float64

// Unknown returns a figure that the machine does not say.
func Unknown() Value { return Value(math.NaN()) }

// Known says whether the machine gave the figure.
func (v Value) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON writes a number, or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'g', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Unknown()
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}

// Sample is one moment of a machine.
type Sample struct {
	Time time.Time `json:"time"`
	Host Host      `json:"host"`
	// GPUs are in NVML's order, which is that of the bus.
	GPUs []GPU `json:"gpus"`
	// Note says why GPUs, or figures of the host, are missing; "" where nothing is.
	Note string `json:"note,omitempty"`
}

// Host is the machine without its GPUs, or the part of it that this process's control group (a container's,
// a job's) lets it use.
type Host struct {
	// CPU is the share, 0 to 1, of Cores that was busy. With a limit that is what the control group used.
	CPU Value `json:"cpu"`
	// Cores are those there are, or the control group's limit, which need not be whole: CPULimited.
	Cores      float64 `json:"cores"`
	CPULimited bool    `json:"cpu_limited"`
	// CPUThrottled is the share of time in which the limit held the control group back.
	CPUThrottled Value `json:"cpu_throttled"`
	// Memory in bytes; Total is the control group's limit where that leaves less: MemoryLimited. What
	// only caches files does not count as used.
	MemoryUsed    int64 `json:"memory_used"`
	MemoryTotal   int64 `json:"memory_total"`
	MemoryLimited bool  `json:"memory_limited"`
	SwapUsed      int64 `json:"swap_used"`
	// Bytes a second of all disks, and the share of time in which the busiest of them was.
	DiskRead  Value `json:"disk_read"`
	DiskWrite Value `json:"disk_write"`
	DiskBusy  Value `json:"disk_busy"`
	// Bytes a second of all network interfaces but the loopback.
	NetReceive Value `json:"net_receive"`
	NetSend    Value `json:"net_send"`
	// Totals since the machine, or the control group, was started, for those who make rates themselves.
	Totals Totals `json:"totals"`
}

// Totals only grow: core seconds, and bytes.
type Totals struct {
	CPUSeconds Value `json:"cpu_seconds"`
	DiskRead   int64 `json:"disk_read"`
	DiskWrite  int64 `json:"disk_write"`
	NetReceive int64 `json:"net_receive"`
	NetSend    int64 `json:"net_send"`
}

// GPU is one GPU.
type GPU struct {
	Index int    `json:"index"` // NVML's, which is nvidia-smi's
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	Bus   string `json:"bus"` // PCI address
	// Error says why the figures are missing or of an earlier reading: the GPU fell off the bus, or the
	// driver does not answer.
	Error string `json:"error,omitempty"`
	// Utilization is the share of time, 0 to 1, in which a kernel ran, and MemoryBusy that in which memory
	// was read or written. A GPU that is divided (MIG) says neither.
	Utilization Value `json:"utilization"`
	MemoryBusy  Value `json:"memory_busy"`
	// Memory in bytes: in use, by whatever process, and all there is.
	MemoryUsed  Value `json:"memory_used"`
	MemoryTotal Value `json:"memory_total"`

	TemperatureC   Value `json:"temperature_c"`
	PowerW         Value `json:"power_w"`
	PowerLimitW    Value `json:"power_limit_w"`
	ClockMHz       Value `json:"clock_mhz"` // of the multiprocessors
	ClockMaxMHz    Value `json:"clock_max_mhz"`
	MemoryClockMHz Value `json:"memory_clock_mhz"`
	// Throttled are the reasons why clocks are lower than they could be; idleness is none.
	Throttled []string `json:"throttled,omitempty"`
	// Bytes a second over the bus and over all NVLinks, as the GPU sees it.
	PCIeReceive   Value `json:"pcie_receive"`
	PCIeSend      Value `json:"pcie_send"`
	NVLinkReceive Value `json:"nvlink_receive"`
	NVLinkSend    Value `json:"nvlink_send"`

	Processes []Process  `json:"processes,omitempty"` // by descending memory
	Instances []Instance `json:"instances,omitempty"` // of a GPU that is divided (MIG)
}

// Blank returns a GPU of which nothing is known yet.
func Blank(index int) GPU {
	x := Unknown()
	return GPU{
		Index: index, Utilization: x, MemoryBusy: x, MemoryUsed: x, MemoryTotal: x, TemperatureC: x, PowerW: x, PowerLimitW: x,
		ClockMHz: x, ClockMaxMHz: x, MemoryClockMHz: x, PCIeReceive: x, PCIeSend: x, NVLinkReceive: x, NVLinkSend: x,
	}
}

// MemoryOf returns what the workers of a run have of the GPU's memory, in bytes; with "" those of all runs. It is
// unknown where there are none, or the driver does not say what a process has.
func (g *GPU) MemoryOf(run string) Value {
	sum := Unknown()
	for _, p := range g.Processes {
		if p.Run == "" || run != "" && p.Run != run || !p.Memory.Known() {
			continue
		}
		if !sum.Known() {
			sum = 0
		}
		sum += p.Memory
	}
	return sum
}

// Instance is a part of a GPU that is divided (MIG), which a worker takes as a device.
type Instance struct {
	Index       int    `json:"index"`   // among the GPU's
	GPU         int    `json:"gpu"`     // the GPU instance's number
	Compute     int    `json:"compute"` // the compute instance's number in that
	UUID        string `json:"uuid"`    // for CUDA_VISIBLE_DEVICES
	Name        string `json:"name"`    // such as "1g.10gb"
	MemoryUsed  Value  `json:"memory_used"`
	MemoryTotal Value  `json:"memory_total"`
}

// Process is one that uses a GPU.
type Process struct {
	PID    int    `json:"pid"`
	Name   string `json:"name"`
	Memory Value  `json:"memory"` // of the GPU, in bytes
	// Run is the run that the process is a worker of, and Rank which; "" where it is none, or another
	// user's.
	Run  string `json:"run,omitempty"`
	Rank int    `json:"rank,omitempty"`
}
