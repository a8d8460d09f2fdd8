package machine

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Value is a figure, or NaN if the machine does not report it: null in JSON.
type Value float64

// Unknown returns the value of a figure that the machine does not report.
func Unknown() Value { return Value(math.NaN()) }

// Known reports whether the machine reported the figure.
func (v Value) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON writes a number, or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'g', -1, 64), nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Unknown()
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}

// Sample holds a machine's figures at one time.
type Sample struct {
	Time time.Time `json:"time"`
	Host Host      `json:"host"`
	// GPUs are in NVML's order, which is bus order.
	GPUs []GPU `json:"gpus"`
	// Note says why GPUs, or figures of the host, are missing; "" if none are.
	Note string `json:"note,omitempty"`
}

// Host holds the figures of the machine without its GPUs, or of the part of it that this process's
// control group (a container's, a job's) may use.
type Host struct {
	// CPU is the busy share, 0 to 1, of Cores; with a limit, the share that the control group used.
	CPU Value `json:"cpu"`
	// Cores is the number of cores, or the control group's limit, which may be fractional; then
	// CPULimited is set.
	Cores      float64 `json:"cores"`
	CPULimited bool    `json:"cpu_limited"`
	// CPUThrottled is the share of time in which the limit throttled the control group.
	CPUThrottled Value `json:"cpu_throttled"`
	// Memory in bytes; Total is the control group's limit if that is lower; then MemoryLimited is
	// set. Memory that only caches files does not count as used.
	MemoryUsed    int64 `json:"memory_used"`
	MemoryTotal   int64 `json:"memory_total"`
	MemoryLimited bool  `json:"memory_limited"`
	SwapUsed      int64 `json:"swap_used"`
	// Bytes per second of all disks, and the busy share of time of the busiest disk.
	DiskRead  Value `json:"disk_read"`
	DiskWrite Value `json:"disk_write"`
	DiskBusy  Value `json:"disk_busy"`
	// Bytes per second of all network interfaces except the loopback.
	NetReceive Value `json:"net_receive"`
	NetSend    Value `json:"net_send"`
	// Totals are counted since the start of the machine, or of the control group, for callers that
	// compute rates themselves.
	Totals Totals `json:"totals"`
}

// Totals only increase: core seconds, and bytes.
type Totals struct {
	CPUSeconds Value `json:"cpu_seconds"`
	DiskRead   int64 `json:"disk_read"`
	DiskWrite  int64 `json:"disk_write"`
	NetReceive int64 `json:"net_receive"`
	NetSend    int64 `json:"net_send"`
}

// GPU holds the figures of one GPU.
type GPU struct {
	Index int    `json:"index"` // NVML's index, which nvidia-smi shows too
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
	Bus   string `json:"bus"` // PCI address
	// Error says why the figures are missing or old: the GPU fell off the bus, or the driver does
	// not answer.
	Error string `json:"error,omitempty"`
	// Utilization is the share of time, 0 to 1, in which a kernel ran, and MemoryBusy that in which
	// memory was read or written. A partitioned GPU (MIG) reports neither.
	Utilization Value `json:"utilization"`
	MemoryBusy  Value `json:"memory_busy"`
	// Memory in bytes: in use by all processes, and total.
	MemoryUsed  Value `json:"memory_used"`
	MemoryTotal Value `json:"memory_total"`

	TemperatureC   Value `json:"temperature_c"`
	PowerW         Value `json:"power_w"`
	PowerLimitW    Value `json:"power_limit_w"`
	ClockMHz       Value `json:"clock_mhz"` // of the multiprocessors
	ClockMaxMHz    Value `json:"clock_max_mhz"`
	MemoryClockMHz Value `json:"memory_clock_mhz"`
	// Throttled lists the reasons why clocks are reduced; idleness is not one.
	Throttled []string `json:"throttled,omitempty"`
	// Bytes per second over the bus and over all NVLinks, received and sent by the GPU.
	PCIeReceive   Value `json:"pcie_receive"`
	PCIeSend      Value `json:"pcie_send"`
	NVLinkReceive Value `json:"nvlink_receive"`
	NVLinkSend    Value `json:"nvlink_send"`

	Processes []Process  `json:"processes,omitempty"` // by descending memory
	Instances []Instance `json:"instances,omitempty"` // of a partitioned GPU (MIG)
}

// Blank returns a GPU with unknown figures.
func Blank(index int) GPU {
	x := Unknown()
	return GPU{
		Index: index, Utilization: x, MemoryBusy: x, MemoryUsed: x, MemoryTotal: x, TemperatureC: x, PowerW: x, PowerLimitW: x,
		ClockMHz: x, ClockMaxMHz: x, MemoryClockMHz: x, PCIeReceive: x, PCIeSend: x, NVLinkReceive: x, NVLinkSend: x,
	}
}

// MemoryOf returns the GPU memory in bytes that the workers of a run use; with "", the workers of
// all runs. It is unknown if there are none, or if the driver does not report memory by process.
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

// Instance is a part of a partitioned GPU (MIG), which a worker uses as a device.
type Instance struct {
	Index       int    `json:"index"`   // index among the GPU's instances
	GPU         int    `json:"gpu"`     // the GPU instance's number
	Compute     int    `json:"compute"` // the compute instance's number in the GPU instance
	UUID        string `json:"uuid"`    // for CUDA_VISIBLE_DEVICES
	Name        string `json:"name"`    // such as "1g.10gb"
	MemoryUsed  Value  `json:"memory_used"`
	MemoryTotal Value  `json:"memory_total"`
}

// Process is a process that uses a GPU.
type Process struct {
	PID    int    `json:"pid"`
	Name   string `json:"name"`
	Memory Value  `json:"memory"` // GPU memory, in bytes
	// Run is the run of which the process is a worker, and Rank its rank; "" if it is not a worker, or
	// belongs to another user.
	Run  string `json:"run,omitempty"`
	Rank int    `json:"rank,omitempty"`
}
