package cuda

import "unsafe"

// handle is the driver's handle of one of its objects.
type handle uintptr

// driver is the part of CUDA's driver that this package uses. Its errors are of type Status, or
// give the reason why there is no driver. All methods except start, version, count and info need
// the device's context to be current on the calling thread.
type driver interface {
	start(library string) error
	absent() string // the missing function of the last call that the driver lacks
	version() (int, error)
	count() (int, error)
	info(device int) (Info, error)

	retain(device int) (handle, error) // the primary context
	release(device int) error
	current(ctx handle) error

	memInfo() (free, total int64, err error)
	alloc(n int64) (Ptr, error)
	free(p Ptr) error
	hostAlloc(n int64) (unsafe.Pointer, error)
	hostFree(p unsafe.Pointer) error
	hostRegister(p unsafe.Pointer, n int64, readOnly bool) error
	hostUnregister(p unsafe.Pointer) error
	hostPtr(p unsafe.Pointer) (Ptr, error)

	stream(priority int) (handle, error)
	priorities() (least, greatest int, err error)
	streamDestroy(s handle) error
	streamSync(s handle) error
	streamWait(s, event handle) error
	event(timed bool) (handle, error)
	eventDestroy(e handle) error
	eventRecord(e, s handle) error
	eventQuery(e handle) error // NotReady until the event is reached
	eventSync(e handle) error
	eventElapsed(from, to handle) (ms float64, err error)

	copyIn(dst Ptr, src unsafe.Pointer, n int64, s handle) error
	copyOut(dst unsafe.Pointer, src Ptr, n int64, s handle) error
	copyDev(dst, src Ptr, n int64, s handle) error
	fill32(dst Ptr, v uint32, words int64, s handle) error
	fill8(dst Ptr, v byte, n int64, s handle) error

	load(ptx string) (mod handle, log string, err error)
	unload(mod handle) error
	function(mod handle, name string) (handle, error)
	maxShared(fn handle, bytes int) error // allows fn more than 48 KB of dynamic shared memory
	launch(fn handle, grid, block Dim, shared int, s handle, args []uint64) error
}
