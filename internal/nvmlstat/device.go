//go:build linux && cgo && (amd64 || arm64)

package nvmlstat

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/graphnb/graphnb/internal/machine"
)

// device is one GPU.
type device struct {
	index int
	lib   nvml.Interface
	has   func(symbol string) bool
	proc  string // the directory that describes processes (/proc)

	mu    sync.Mutex
	busy  bool      // a goroutine reads it
	since time.Time // when that began
	call  string    // the call in progress
	last  machine.GPU

	// Used only by the goroutine that reads.
	handle   nvml.Device
	identity machine.GPU
	before   map[uint32]counter // by field
	failed   error              // error of this reading; a lost GPU is not queried further
	lost     bool
}

// counter is the value of a cumulative field, at a time in microseconds.
type counter struct {
	at    int64
	value float64
}

// start reads the GPU in a goroutine, unless the previous one is still running.
func (d *device) start(now time.Time, done *sync.WaitGroup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		return
	}
	d.busy, d.since, d.call = true, now, ""
	done.Add(1)
	go func() {
		defer done.Done()
		g := d.read()
		d.mu.Lock()
		d.busy, d.last = false, g
		d.mu.Unlock()
	}()
}

// latest returns the last reading; while a reading is in progress, it returns only the GPU's
// identity and the call that it waits for.
func (d *device) latest(now time.Time) machine.GPU {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.busy {
		return d.last
	}
	g := machine.Blank(d.index)
	g.Name, g.UUID, g.Bus = d.last.Name, d.last.UUID, d.last.Bus
	g.Error = fmt.Sprintf("the driver has not answered %s for %.0f s", cmp.Or(d.call, "a call"), math.Ceil(now.Sub(d.since).Seconds()))
	return g
}

// ask calls a function of the library, if the library has it, and reports whether it succeeded. A
// feature that the GPU lacks is not a failure.
func (d *device) ask(symbol string, f func() nvml.Return) bool {
	if d.lost || !d.has(symbol) {
		return false
	}
	d.mu.Lock()
	d.call = symbol
	d.mu.Unlock()
	switch ret := f(); ret {
	case nvml.SUCCESS:
		return true
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT:
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		d.failed, d.lost = failure(ret), true
	default:
		if d.failed == nil {
			d.failed = fmt.Errorf("%s: %w", symbol, failure(ret))
		}
	}
	return false
}

// number returns the value of a call, multiplied by scale.
func number[T uint32 | uint64](d *device, symbol string, scale float64, f func() (T, nvml.Return)) machine.Value {
	v := machine.Unknown()
	d.ask(symbol, func() nvml.Return {
		x, ret := f()
		if ret == nvml.SUCCESS {
			v = machine.Value(float64(x) * scale)
		}
		return ret
	})
	return v
}

// read makes one reading. It ends early if the GPU is lost.
func (d *device) read() machine.GPU {
	d.failed, d.lost = nil, false
	if d.handle == nil {
		d.identify()
	}
	g := d.identity
	if d.handle != nil {
		d.figures(&g)
	}
	if d.failed != nil {
		g.Error = d.failed.Error()
	}
	return g
}

// identify gets the GPU's handle and identity; if that fails, the next reading tries again.
func (d *device) identify() {
	d.identity = machine.Blank(d.index)
	id := &d.identity
	var h nvml.Device
	if !d.ask("nvmlDeviceGetHandleByIndex_v2", func() (ret nvml.Return) { h, ret = d.lib.DeviceGetHandleByIndex(d.index); return ret }) {
		if d.failed == nil {
			d.failed = fmt.Errorf("the driver gives no access to GPU %d", d.index)
		}
		return
	}
	d.ask("nvmlDeviceGetName", func() (ret nvml.Return) { id.Name, ret = h.GetName(); return ret })
	d.ask("nvmlDeviceGetUUID", func() (ret nvml.Return) { id.UUID, ret = h.GetUUID(); return ret })
	d.ask("nvmlDeviceGetPciInfo_v3", func() nvml.Return {
		info, ret := h.GetPciInfo()
		for _, c := range info.BusId {
			if c == 0 {
				break
			}
			id.Bus += string(rune(c))
		}
		return ret
	})
	if d.failed == nil {
		d.handle = h
	}
}

// figures fills in the figures that change.
func (d *device) figures(g *machine.GPU) {
	h := d.handle
	d.ask("nvmlDeviceGetUtilizationRates", func() nvml.Return {
		u, ret := h.GetUtilizationRates()
		if ret == nvml.SUCCESS {
			g.Utilization, g.MemoryBusy = machine.Value(u.Gpu)/100, machine.Value(u.Memory)/100
		}
		return ret
	})
	g.MemoryUsed, g.MemoryTotal = d.memory(h)
	g.TemperatureC = number(d, "nvmlDeviceGetTemperature", 1, func() (uint32, nvml.Return) { return h.GetTemperature(nvml.TEMPERATURE_GPU) })
	g.PowerW = number(d, "nvmlDeviceGetPowerUsage", 1e-3, h.GetPowerUsage)
	g.PowerLimitW = number(d, "nvmlDeviceGetEnforcedPowerLimit", 1e-3, h.GetEnforcedPowerLimit)
	g.ClockMHz = number(d, "nvmlDeviceGetClockInfo", 1, func() (uint32, nvml.Return) { return h.GetClockInfo(nvml.CLOCK_SM) })
	g.MemoryClockMHz = number(d, "nvmlDeviceGetClockInfo", 1, func() (uint32, nvml.Return) { return h.GetClockInfo(nvml.CLOCK_MEM) })
	g.ClockMaxMHz = number(d, "nvmlDeviceGetMaxClockInfo", 1, func() (uint32, nvml.Return) { return h.GetMaxClockInfo(nvml.CLOCK_SM) })
	d.ask("nvmlDeviceGetCurrentClocksThrottleReasons", func() nvml.Return {
		bits, ret := h.GetCurrentClocksThrottleReasons()
		if ret == nvml.SUCCESS {
			g.Throttled = reasons(bits)
		}
		return ret
	})
	d.traffic(g)
	d.processes(g)
	d.instances(g)
}

// memory returns the used and the total memory. The second version of the call excludes memory that
// the driver reserves for itself, as nvidia-smi does.
func (d *device) memory(h nvml.Device) (used, total machine.Value) {
	used, total = machine.Unknown(), machine.Unknown()
	ok := d.ask("nvmlDeviceGetMemoryInfo_v2", func() nvml.Return {
		m, ret := h.GetMemoryInfo_v2()
		if ret == nvml.SUCCESS {
			used, total = machine.Value(m.Used), machine.Value(m.Total)
		}
		return ret
	})
	if !ok {
		d.ask("nvmlDeviceGetMemoryInfo", func() nvml.Return {
			m, ret := h.GetMemoryInfo()
			if ret == nvml.SUCCESS {
				used, total = machine.Value(m.Used), machine.Value(m.Total)
			}
			return ret
		})
	}
	return used, total
}

// throttles lists the reasons for reduced clocks that are reported; an idle GPU is not one.
var throttles = []struct {
	bit  uint64
	name string
}{
	{nvml.ClocksThrottleReasonSwPowerCap, "power cap"},
	{nvml.ClocksThrottleReasonSwThermalSlowdown, "thermal"},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, "hardware thermal"},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"},
	{nvml.ClocksThrottleReasonHwSlowdown, "hardware slowdown"},
	{nvml.ClocksThrottleReasonApplicationsClocksSetting, "application clocks"},
	{nvml.ClocksThrottleReasonSyncBoost, "sync boost"},
	{nvml.ClocksThrottleReasonDisplayClockSetting, "display clocks"},
}

func reasons(bits uint64) []string {
	var out []string
	for _, t := range throttles {
		if bits&t.bit != 0 {
			out = append(out, t.name)
		}
	}
	return out
}

// traffic computes the rates over the bus and NVLink since the previous reading, from the GPU's
// counters. For a GPU without a bus counter, it queries the rate, which the driver measures for 20
// ms.
func (d *device) traffic(g *machine.GPU) {
	const allLinks = math.MaxUint32
	fields := []nvml.FieldValue{
		{FieldId: nvml.FI_DEV_PCIE_COUNT_RX_BYTES},
		{FieldId: nvml.FI_DEV_PCIE_COUNT_TX_BYTES},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ScopeId: allLinks},
		{FieldId: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ScopeId: allLinks},
	}
	bus := false
	if d.ask("nvmlDeviceGetFieldValues", func() nvml.Return { return d.handle.GetFieldValues(fields) }) {
		if d.before == nil {
			d.before = map[uint32]counter{}
		}
		for i, to := range []*machine.Value{&g.PCIeReceive, &g.PCIeSend, &g.NVLinkReceive, &g.NVLinkSend} {
			scale := 1.0
			if i >= 2 {
				scale = 1024 // it counts KiB
			}
			x, ok := fieldNumber(&fields[i])
			if !ok {
				continue
			}
			bus = bus || i < 2
			was, seen := d.before[fields[i].FieldId]
			at := fields[i].Timestamp // time of the driver's reading
			d.before[fields[i].FieldId] = counter{at, x}
			if dt := float64(at-was.at) / 1e6; seen && dt > 0 && x >= was.value { // it may wrap
				*to = machine.Value((x - was.value) * scale / dt)
			}
		}
	}
	if !bus {
		g.PCIeReceive = number(d, "nvmlDeviceGetPcieThroughput", 1e3, func() (uint32, nvml.Return) { return d.handle.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES) })
		g.PCIeSend = number(d, "nvmlDeviceGetPcieThroughput", 1e3, func() (uint32, nvml.Return) { return d.handle.GetPcieThroughput(nvml.PCIE_UTIL_TX_BYTES) })
	}
}

// fieldNumber returns a field's value, of whatever type.
func fieldNumber(f *nvml.FieldValue) (float64, bool) {
	if nvml.Return(f.NvmlReturn) != nvml.SUCCESS {
		return 0, false
	}
	bits := binary.NativeEndian.Uint64(f.Value[:])
	switch nvml.ValueType(f.ValueType) {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits), true
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(binary.NativeEndian.Uint32(f.Value[:])), true
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(binary.NativeEndian.Uint32(f.Value[:]))), true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(bits), true
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits)), true
	}
	return 0, false
}

// processes lists the processes that compute on the GPU, the largest first.
func (d *device) processes(g *machine.GPU) {
	var list []nvml.ProcessInfo
	if !d.ask("nvmlDeviceGetComputeRunningProcesses", func() (ret nvml.Return) { list, ret = d.handle.GetComputeRunningProcesses(); return ret }) {
		return
	}
	for _, p := range list {
		memory := machine.Unknown()
		if p.UsedGpuMemory != math.MaxUint64 { // not available
			memory = machine.Value(p.UsedGpuMemory)
		}
		g.Processes = append(g.Processes, describe(d.proc, int(p.Pid), memory))
	}
	size := func(p machine.Process) float64 {
		if !p.Memory.Known() {
			return -1
		}
		return float64(p.Memory)
	}
	slices.SortFunc(g.Processes, func(a, b machine.Process) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.PID, b.PID))
	})
}

// instances lists the parts of a partitioned GPU (MIG).
func (d *device) instances(g *machine.GPU) {
	mode, most := 0, 0
	if !d.ask("nvmlDeviceGetMigMode", func() (ret nvml.Return) { mode, _, ret = d.handle.GetMigMode(); return ret }) || mode != nvml.DEVICE_MIG_ENABLE ||
		!d.ask("nvmlDeviceGetMaxMigDeviceCount", func() (ret nvml.Return) { most, ret = d.handle.GetMaxMigDeviceCount(); return ret }) {
		return
	}
	for i := range most {
		var h nvml.Device
		if !d.ask("nvmlDeviceGetMigDeviceHandleByIndex", func() (ret nvml.Return) { h, ret = d.handle.GetMigDeviceHandleByIndex(i); return ret }) {
			continue // instance numbers have gaps
		}
		m := machine.Instance{Index: i}
		d.ask("nvmlDeviceGetUUID", func() (ret nvml.Return) { m.UUID, ret = h.GetUUID(); return ret })
		d.ask("nvmlDeviceGetName", func() (ret nvml.Return) { m.Name, ret = h.GetName(); return ret })
		d.ask("nvmlDeviceGetGpuInstanceId", func() (ret nvml.Return) { m.GPU, ret = h.GetGpuInstanceId(); return ret })
		d.ask("nvmlDeviceGetComputeInstanceId", func() (ret nvml.Return) { m.Compute, ret = h.GetComputeInstanceId(); return ret })
		m.MemoryUsed, m.MemoryTotal = d.memory(h)
		g.Instances = append(g.Instances, m)
	}
}
