// Package load has the figures of a machine at one moment, and their summaries, which package monitor measures.
package load

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// Value is a figure, or NaN (null in JSON) if the machine does not provide it. Call Known before
// using it: a comparison with NaN is false.
type Value float64

// Known reports whether the machine provided the figure.
func (v Value) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON writes a number, or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'g', -1, 64), nil
}

// UnmarshalJSON reads a number, or null.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Value(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}

// Sample is one moment of a machine.
type Sample struct {
	Time time.Time `json:"time"`
	Host Host      `json:"host"`
	// GPUs are in bus order, like in nvidia-smi.
	GPUs []GPU `json:"gpus"`
	// Note explains why GPUs, or figures of the host, are missing; "" if nothing is.
	Note string `json:"note,omitempty"`
}

// Host is the machine without its GPUs, or the part of it that this process's control group (a container's,
// a job's) may use.
type Host struct {
	// CPU is the share, 0 to 1, of Cores that was busy. Under a limit it is the share used by the
	// control group.
	CPU Value `json:"cpu"`
	// Cores is the machine's number of cores, or the control group's limit (CPULimited), which
	// need not be an integer.
	Cores      float64 `json:"cores"`
	CPULimited bool    `json:"cpu_limited"`
	// CPUThrottled is the share of time in which the limit throttled the control group.
	CPUThrottled Value `json:"cpu_throttled"`
	// Memory is in bytes. MemoryTotal is the control group's limit if that is less than the
	// machine's memory (MemoryLimited). The file cache does not count as used.
	MemoryUsed    int64 `json:"memory_used"`
	MemoryTotal   int64 `json:"memory_total"`
	MemoryLimited bool  `json:"memory_limited"`
	SwapUsed      int64 `json:"swap_used"`
	// DiskRead and DiskWrite are bytes per second of all disks; DiskBusy is the share of time in
	// which the busiest disk was in use.
	DiskRead  Value `json:"disk_read"`
	DiskWrite Value `json:"disk_write"`
	DiskBusy  Value `json:"disk_busy"`
	// Bytes per second of all network interfaces except the loopback.
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
	// Error explains why figures are missing or stale: the GPU fell off the bus, or the driver
	// does not answer.
	Error string `json:"error,omitempty"`
	// Utilization is the share of time, 0 to 1, in which a kernel ran, and MemoryBusy the share in
	// which memory was read or written. A GPU divided by MIG provides neither.
	Utilization Value `json:"utilization"`
	MemoryBusy  Value `json:"memory_busy"`
	// Memory in bytes, used by any process.
	MemoryUsed  Value `json:"memory_used"`
	MemoryTotal Value `json:"memory_total"`

	TemperatureC   Value `json:"temperature_c"`
	PowerW         Value `json:"power_w"`
	PowerLimitW    Value `json:"power_limit_w"`
	ClockMHz       Value `json:"clock_mhz"` // clock of the multiprocessors
	ClockMaxMHz    Value `json:"clock_max_mhz"`
	MemoryClockMHz Value `json:"memory_clock_mhz"`
	// Throttled are the reasons why clocks are reduced. Idleness is not listed.
	Throttled []string `json:"throttled,omitempty"`
	// Bytes per second over the bus and over all NVLinks, as the GPU sees it.
	PCIeReceive   Value `json:"pcie_receive"`
	PCIeSend      Value `json:"pcie_send"`
	NVLinkReceive Value `json:"nvlink_receive"`
	NVLinkSend    Value `json:"nvlink_send"`

	Processes []Process  `json:"processes,omitempty"` // by descending memory
	Instances []Instance `json:"instances,omitempty"` // parts of a GPU divided by MIG
}

// MemoryOf is the GPU memory, in bytes, of the workers of a run, named by its ID, or of all runs
// with "". It is unknown if there is no such worker, or if the driver does not report memory per
// process.
func (g *GPU) MemoryOf(run string) Value {
	sum := Value(math.NaN())
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

// Instance is a part of a GPU divided by MIG, which a worker uses as a device.
type Instance struct {
	Index       int    `json:"index"`   // index among the GPU's instances
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
	Memory Value  `json:"memory"` // GPU memory in bytes
	// Run is the ID of the run whose worker the process is, and Rank its rank; "" if the process
	// is not a worker or belongs to another user.
	Run  string `json:"run,omitempty"`
	Rank int    `json:"rank,omitempty"`
}
