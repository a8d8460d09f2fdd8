//go:build cuda && linux && cgo

package cuda

import (
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/graphnb/graphnb/internal/cuda/internal/shim"
)

// cuDriver is the driver through gorgonia.org/cu and, for functions that gorgonia.org/cu lacks,
// through the shim's own calls.
type cuDriver struct{}

func newDriver() (driver, error) { return cuDriver{}, nil }

// as converts one of gorgonia.org/cu's objects, a struct with one pointer, to a handle or back.
func as[To, From any](v From) To { return *(*To)(unsafe.Pointer(&v)) }

// status returns err, which gorgonia.org/cu has in an unexported integer type, as a Status.
func status(err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return Status(v.Int())
	}
	return err
}

func result(code int) error {
	if code == 0 {
		return nil
	}
	return Status(code)
}

func (cuDriver) start(library string) error {
	code, why := shim.Load(library)
	if code == shim.NotLoaded {
		return fmt.Errorf("%w: %s", ErrNoDriver, why)
	}
	return result(code)
}

func (cuDriver) absent() string { return shim.Absent() }

func (cuDriver) version() (int, error) {
	if v := cu.Version(); v >= 0 {
		return v, nil
	}
	return 0, Unknown
}

func (cuDriver) count() (int, error) {
	n, err := cu.NumDevices()
	return n, status(err)
}

func (cuDriver) info(i int) (Info, error) {
	d, err := cu.GetDevice(i)
	if err != nil {
		return Info{}, status(err)
	}
	in := Info{Index: i, Driver: cu.Version()}
	if in.Name, err = d.Name(); err != nil {
		return in, status(err)
	}
	if id, err := d.UUID(); err == nil { // an unknown value does no harm
		in.UUID = "GPU-" + id.String()
	}
	if in.Memory, err = d.TotalMem(); err != nil {
		return in, status(err)
	}
	// By number, because gorgonia.org/cu's list ends with CUDA 9.
	const multiprocessors, major, minor, hostPointerForRegistered, maxSharedOptin, readOnlyRegister = 16, 75, 76, 91, 97, 113
	attribute := func(a cu.DeviceAttribute) int {
		v, err := d.Attribute(a)
		if err != nil {
			return 0 // an attribute that this driver does not know
		}
		return v
	}
	in.Major, in.Minor = attribute(major), attribute(minor)
	in.SMs = attribute(multiprocessors)
	in.MaxShared = attribute(maxSharedOptin)
	in.ReadOnlyOK = attribute(readOnlyRegister) != 0
	in.HostReads = attribute(hostPointerForRegistered) != 0
	return in, nil
}

func (cuDriver) retain(i int) (handle, error) {
	c, err := cu.Device(i).RetainPrimaryCtx()
	return as[handle](c), status(err)
}

func (cuDriver) release(i int) error { return status(cu.Device(i).ReleasePrimaryCtx()) }

func (cuDriver) current(ctx handle) error { return status(cu.SetCurrentContext(as[cu.CUContext](ctx))) }

func (cuDriver) memInfo() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, status(err)
}

func (cuDriver) alloc(n int64) (Ptr, error) {
	p, err := cu.MemAlloc(n)
	return Ptr(p), status(err)
}

func (cuDriver) free(p Ptr) error { return status(cu.MemFree(cu.DevicePtr(p))) }

func (cuDriver) hostAlloc(n int64) (unsafe.Pointer, error) {
	p, code := shim.HostAlloc(n)
	return p, result(code)
}

func (cuDriver) hostFree(p unsafe.Pointer) error { return status(cu.MemFreeHost(p)) }

func (cuDriver) hostRegister(p unsafe.Pointer, n int64, readOnly bool) error {
	return result(shim.HostRegister(p, n, readOnly))
}

func (cuDriver) hostUnregister(p unsafe.Pointer) error { return result(shim.HostUnregister(p)) }

func (cuDriver) hostPtr(p unsafe.Pointer) (Ptr, error) {
	d, code := shim.HostPointer(p)
	return Ptr(d), result(code)
}

func (cuDriver) priorities() (least, greatest int, err error) {
	least, greatest, err = cu.StreamPriorityRange()
	return least, greatest, status(err)
}

func (cuDriver) stream(priority int) (handle, error) {
	const nonBlocking = 1 // the stream and the null stream do not wait for each other
	s, err := cu.MakeStreamWithPriority(priority, nonBlocking)
	return as[handle](s), status(err)
}

func (cuDriver) streamDestroy(h handle) error {
	s := as[cu.Stream](h)
	return status(s.Destroy())
}

func (cuDriver) streamSync(s handle) error { return status(as[cu.Stream](s).Synchronize()) }

func (cuDriver) streamWait(s, e handle) error {
	return status(as[cu.Stream](s).Wait(as[cu.Event](e), 0))
}

func (cuDriver) event(timed bool) (handle, error) {
	// A waiting thread sleeps, because the cores are needed for sampling, gathering and the other
	// workers. It wakes about 10 µs later than a thread that spins.
	flags := cu.BlockingSyncEvent
	if !timed {
		flags |= cu.DisableTiming
	}
	e, err := cu.MakeEvent(flags)
	return as[handle](e), status(err)
}

func (cuDriver) eventDestroy(h handle) error {
	e := as[cu.Event](h)
	return status(cu.DestroyEvent(&e))
}

func (cuDriver) eventRecord(e, s handle) error {
	return status(as[cu.Event](e).Record(as[cu.Stream](s)))
}

func (cuDriver) eventQuery(e handle) error { return status(as[cu.Event](e).Query()) }

func (cuDriver) eventSync(e handle) error { return status(as[cu.Event](e).Synchronize()) }

func (cuDriver) eventElapsed(from, to handle) (float64, error) {
	ms, err := as[cu.Event](from).Elapsed(as[cu.Event](to))
	return ms, status(err)
}

func (cuDriver) copyIn(dst Ptr, src unsafe.Pointer, n int64, s handle) error {
	return status(cu.MemcpyHtoDAsync(cu.DevicePtr(dst), src, n, as[cu.Stream](s)))
}

func (cuDriver) copyOut(dst unsafe.Pointer, src Ptr, n int64, s handle) error {
	return status(cu.MemcpyDtoHAsync(dst, cu.DevicePtr(src), n, as[cu.Stream](s)))
}

func (cuDriver) copyDev(dst, src Ptr, n int64, s handle) error {
	return status(cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), n, as[cu.Stream](s)))
}

func (cuDriver) fill32(dst Ptr, v uint32, words int64, s handle) error {
	return status(cu.MemsetD32Async(cu.DevicePtr(dst), uint(v), words, as[cu.Stream](s)))
}

func (cuDriver) fill8(dst Ptr, v byte, n int64, s handle) error {
	return status(cu.MemsetD8Async(cu.DevicePtr(dst), v, n, as[cu.Stream](s)))
}

func (cuDriver) load(ptx string) (handle, string, error) {
	m, log, code := shim.LoadPTX(ptx)
	return handle(m), log, result(code)
}

func (cuDriver) unload(m handle) error { return status(as[cu.Module](m).Unload()) }

func (cuDriver) function(m handle, name string) (handle, error) {
	f, err := as[cu.Module](m).Function(name)
	return as[handle](f), status(err)
}

func (cuDriver) maxShared(fn handle, n int) error {
	return result(shim.MaxShared(as[unsafe.Pointer](fn), n))
}

func (cuDriver) launch(fn handle, grid, block Dim, shared int, s handle, args []uint64) error {
	var at [maxArgs]unsafe.Pointer
	for i := range args {
		at[i] = unsafe.Pointer(&args[i])
	}
	return status(as[cu.Function](fn).Launch(grid.X, grid.Y, grid.Z, block.X, block.Y, block.Z, shared, as[cu.Stream](s), at[:len(args)]))
}
