//go:build cuda && linux && cgo

package fakegpu

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/cuda/internal/ptx"
	"github.com/graphnb/graphnb/internal/cuda/internal/shim"
)

// Schedule says when the work of streams is executed.
type Schedule int

// The schedules.
const (
	Lazy Schedule = iota
	Eager
	Random // seeded by Config.Seed
)

// Config describes the machine. The zero value has one device of 256 MB with a driver of CUDA 12.4.
type Config struct {
	Devices int
	Memory  int64 // bytes per device
	Version int   // of the driver; 0 means 12040
	// Missing makes loading the driver fail with this reason.
	Missing string
	// Init is the result of cuInit.
	Init int
	// Capability is the devices' compute capability; 0 means 70.
	Capability int

	Schedule Schedule
	Seed     uint64
	Order    ptx.Order
	// NoRaces turns off race detection and runs blocks on two cores, which is faster.
	NoRaces bool
	// Log is a file to which each device whose context ends adds a line: its number, the objects
	// left in the context, launches of each kernel, allocations and the peak of device memory, and
	// the bytes copied to the host. It is for tests of other processes.
	Log string
	// Quiet does not print kernels' faults as they happen.
	Quiet bool
}

// Driver is the installed driver.
type Driver struct {
	c       Config
	devices []*device

	real testing.TB // the test, on a machine with a real device

	mu      sync.Mutex
	objects map[uintptr]any // streams, events, modules, functions by their handles
	next    uintptr
	host    map[uintptr]hostRange // pinned and registered memory
	hostSeq int
	faults  []error
	inject  []*Fault
}

// Fault describes a failure of the driver's calls.
type Fault struct {
	Device int
	// Call is the function that fails, such as "cuMemAlloc_v2"; if it is "" and Kernel is set, the
	// launch of that kernel fails.
	Call string
	// Kernel restricts the fault to launches of one kernel.
	Kernel string
	// After is the number of calls that succeed first; Times is the number of calls that then fail,
	// 0 for all.
	After, Times int
	// Status is the result of the failing call.
	Status int
	// Lost makes the device fail with Status from then on, during work: the launch succeeds, and
	// later calls report the failure.
	Lost bool
}

// installed is the driver that the table calls.
var installed atomic.Pointer[Driver]

// New installs a driver until the test ends, and then checks that no error went unnoticed and no
// object is left.
//
// With [Real] it installs nothing, and skips tests that only this driver can run.
func New(t testing.TB, c Config) *Driver {
	t.Helper()
	if Real() {
		const little = 64 << 20
		if c.Devices > 1 || c.Memory != 0 && c.Memory < little || c.Version != 0 || c.Missing != "" || c.Init != 0 || c.Capability != 0 || c.Quiet {
			t.Skip("needs simulated devices or faults")
		}
		return &Driver{real: t}
	}
	d := Install(c)
	t.Cleanup(func() {
		d.Uninstall()
		for _, f := range d.TakeFaults() {
			t.Errorf("fakegpu: %v", f)
		}
		for _, l := range d.Left() {
			t.Errorf("fakegpu: left behind: %s", l)
		}
	})
	return d
}

// Real reports whether the tests run on a real device with its driver, as "make gpu-check" does.
func Real() bool { return envknob.GPUCheck.On() }

// Install puts a driver behind the shim's table, for a process that runs no test itself, such as a
// worker. Only one can be installed at a time.
func Install(c Config) *Driver {
	if c.Devices == 0 {
		c.Devices = 1
	}
	if c.Memory == 0 {
		c.Memory = 256 << 20
	}
	if c.Version == 0 {
		c.Version = 12040
	}
	if c.Capability == 0 {
		c.Capability = 70
	}
	d := &Driver{c: c, objects: map[uintptr]any{}, next: 1 << 20, host: map[uintptr]hostRange{}}
	for i := range c.Devices {
		d.devices = append(d.devices, newDevice(d, i))
	}
	if !installed.CompareAndSwap(nil, d) {
		panic("fakegpu: a driver is installed already")
	}
	install()
	shim.SetLoader(func(string) (int, string) {
		if c.Missing != "" {
			return shim.NotLoaded, c.Missing
		}
		return c.Init, ""
	})
	return d
}

// Uninstall removes the driver.
func (d *Driver) Uninstall() {
	if d.real != nil {
		return
	}
	shim.SetLoader(nil)
	uninstall()
	installed.CompareAndSwap(d, nil)
}

// Inject adds a fault.
func (d *Driver) Inject(f Fault) {
	d.notReal()
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Call == "" {
		f.Call = "cuLaunchKernel"
	}
	d.inject = append(d.inject, &f)
}

// notReal skips a test that only this driver can run.
func (d *Driver) notReal() {
	if d.real != nil {
		d.real.Skip("needs a simulated device")
	}
}

// injected returns the fault that applies to a call, or nil.
func (d *Driver) injected(device int, call, kernel string) *Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, f := range d.inject {
		if f.Device != device || f.Call != call || f.Kernel != "" && f.Kernel != kernel {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		if f.Times--; f.Times == 0 {
			d.inject = slices.Delete(d.inject, i, i+1)
		}
		return f
	}
	return nil
}

// TakeFaults returns and clears the faults of kernels and copies so far, so that they do not fail
// the test.
func (d *Driver) TakeFaults() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.faults
	d.faults = nil
	return f
}

func (d *Driver) noteFault(device int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, fmt.Errorf("device %d: %w", device, err))
	if !d.c.Quiet {
		fmt.Printf("fakegpu: device %d: %v\n", device, err)
	}
}

// Left describes the objects that were not freed.
func (d *Driver) Left() []string {
	var left []string
	for _, v := range d.devices {
		left = append(left, v.left()...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	count := map[string]int{}
	for _, o := range d.objects {
		count[fmt.Sprintf("%T", o)]++
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		left = append(left, fmt.Sprintf("%d %s", count[name], name))
	}
	if n := len(d.host); n > 0 {
		left = append(left, fmt.Sprintf("%d pieces of pinned or registered host memory", n))
	}
	return left
}

// Written returns the number of bytes that were copied from the host to a device.
func (d *Driver) Written(device int) int {
	d.notReal()
	x := d.devices[device]
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.launched[logWritten]
}

// Blocks returns the number of blocks of a kernel launched on a device.
func (d *Driver) Blocks(device int, kernel string) int {
	d.notReal()
	v := d.devices[device]
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.blocks[kernel]
}

// add gives an object a handle.
func (d *Driver) add(o any) uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next += 16
	d.objects[d.next] = o
	return d.next
}

// object returns the object of a handle; ok is false if the handle is invalid or of another type.
func object[T any](d *Driver, h uintptr) (o T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok = d.objects[h].(T)
	return o, ok
}

func (d *Driver) forget(h uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.objects, h)
}
