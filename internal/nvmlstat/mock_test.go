//go:build linux && cgo && (amd64 || arm64)

package nvmlstat

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// everySymbol returns a library that has all functions.
func everySymbol() nvml.ExtendedInterface {
	return &mock.ExtendedInterface{LookupSymbolFunc: func(string) error { return nil }}
}

// withDevice returns a library with one GPU.
func withDevice(d nvml.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:                   func() nvml.Return { return nvml.SUCCESS },
		ExtensionsFunc:             everySymbol,
		DeviceGetCountFunc:         func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		SystemGetDriverVersionFunc: func() (string, nvml.Return) { return "1", nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(int) (nvml.Device, nvml.Return) { return d, nvml.SUCCESS },
	}
}

// anything returns a device that answers NOT_SUPPORTED to all calls of this package.
func anything() *mock.Device {
	const no = nvml.ERROR_NOT_SUPPORTED
	return &mock.Device{
		GetNameFunc:                         func() (string, nvml.Return) { return "a GPU", nvml.SUCCESS },
		GetUUIDFunc:                         func() (string, nvml.Return) { return "GPU-x", nvml.SUCCESS },
		GetPciInfoFunc:                      func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, no },
		GetUtilizationRatesFunc:             func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, no },
		GetMemoryInfoFunc:                   func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, no },
		GetMemoryInfo_v2Func:                func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, no },
		GetTemperatureFunc:                  func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, no },
		GetPowerUsageFunc:                   func() (uint32, nvml.Return) { return 0, no },
		GetEnforcedPowerLimitFunc:           func() (uint32, nvml.Return) { return 0, no },
		GetClockInfoFunc:                    func(nvml.ClockType) (uint32, nvml.Return) { return 0, no },
		GetMaxClockInfoFunc:                 func(nvml.ClockType) (uint32, nvml.Return) { return 0, no },
		GetCurrentClocksThrottleReasonsFunc: func() (uint64, nvml.Return) { return 0, no },
		GetFieldValuesFunc:                  func([]nvml.FieldValue) nvml.Return { return no },
		GetPcieThroughputFunc:               func(nvml.PcieUtilCounter) (uint32, nvml.Return) { return 0, no },
		GetComputeRunningProcessesFunc:      func() ([]nvml.ProcessInfo, nvml.Return) { return nil, no },
		GetMigModeFunc:                      func() (int, int, nvml.Return) { return 0, 0, no },
	}
}

// A GPU that answers no call but the one for its name is listed by that name and without an error.
func TestAGPUThatSaysNothing(t *testing.T) {
	r, err := open(withDevice(anything()))
	if err != nil {
		t.Fatal(err)
	}
	g := r.Read(patient)[0]
	if g.Name != "a GPU" || g.UUID != "GPU-x" || g.Error != "" || g.Utilization.Known() || g.MemoryTotal.Known() || g.PowerW.Known() || g.ClockMHz.Known() || g.PCIeReceive.Known() || g.Processes != nil || g.Instances != nil {
		t.Errorf("%+v", g)
	}
}

// If the driver does not return a handle at first, the handle is requested again.
func TestAHandleThatComesLater(t *testing.T) {
	lib := withDevice(anything())
	lib.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_NO_PERMISSION }
	r, err := open(lib)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Read(patient)[0]; !strings.Contains(g.Error, "no access to GPU 0") {
		t.Errorf("%+v", g)
	}
	lib.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return anything(), nvml.SUCCESS }
	if g := r.Read(patient)[0]; g.Error != "" || g.Name != "a GPU" {
		t.Errorf("%+v", g)
	}
}

// If the driver's version differs from the library's, no further call is made: a call would end the
// process.
func TestNothingIsAskedOfALibraryThatDidNotStart(t *testing.T) {
	_, err := open(&mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }}) // any further call would make the mock panic
	if !errors.Is(err, ErrNoDriver) {
		t.Error(err)
	}
}

// Counters of all of NVML's types give rates; a counter that decreased gives none.
func TestFieldsOfAllTypes(t *testing.T) {
	type value = [8]byte
	word := func(x uint64) (b value) { binary.NativeEndian.PutUint64(b[:], x); return b }
	half := func(x uint32) (b value) { binary.NativeEndian.PutUint32(b[:], x); return b }
	for name, c := range map[string]struct {
		kind          nvml.ValueType
		before, after value
		want          float64
	}{
		"double":      {nvml.VALUE_TYPE_DOUBLE, word(math.Float64bits(1.5)), word(math.Float64bits(4.5)), 1.5},
		"unsigned":    {nvml.VALUE_TYPE_UNSIGNED_INT, half(4), half(8), 2},
		"signed":      {nvml.VALUE_TYPE_SIGNED_INT, half(math.MaxUint32), half(3), 2}, // the earlier value is -1
		"long":        {nvml.VALUE_TYPE_UNSIGNED_LONG, word(4), word(8), 2},
		"long long":   {nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, word(1 << 40), word(3 << 40), 1 << 40},
		"signed long": {nvml.VALUE_TYPE_SIGNED_LONG_LONG, word(math.MaxUint64), word(3), 2},
		"wrapped":     {nvml.VALUE_TYPE_UNSIGNED_INT, half(8), half(4), math.NaN()},
		"unheard of":  {nvml.ValueType(99), word(1), word(2), math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			h, n := anything(), 0
			h.GetFieldValuesFunc = func(fs []nvml.FieldValue) nvml.Return {
				n++
				for i := range fs {
					fs[i].ValueType, fs[i].Timestamp, fs[i].Value = uint32(c.kind), int64(n)*2e6, [2]value{c.before, c.after}[n-1]
				}
				return nvml.SUCCESS
			}
			r, err := open(withDevice(h))
			if err != nil {
				t.Fatal(err)
			}
			r.Read(patient)
			if g := r.Read(patient)[0]; !same(g.PCIeReceive, c.want) {
				t.Errorf("%v per second, want %v", g.PCIeReceive, c.want)
			}
		})
	}
}

// Read waits at most as long as requested, and no GPU is read twice at the same time.
func TestReadDoesNotWait(t *testing.T) {
	h := anything()
	stuck, calls := make(chan struct{}), make(chan struct{}, 10)
	h.GetPowerUsageFunc = func() (uint32, nvml.Return) {
		calls <- struct{}{}
		<-stuck
		return 7000, nvml.SUCCESS
	}
	r, err := open(withDevice(h))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if g := r.Read(time.Millisecond)[0]; !strings.Contains(g.Error, "has not answered") {
			t.Errorf("%+v", g)
		}
	}
	close(stuck)
	for {
		if g := r.Read(patient)[0]; g.Error == "" {
			if g.PowerW != 7 {
				t.Errorf("%+v", g)
			}
			break
		}
	}
	if n := len(calls); n > 2 {
		t.Errorf("%d readings of a GPU whose first reading hangs", n)
	}
}
