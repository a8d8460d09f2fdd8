// Package cuda gives access to a GPU: a device with its memory, its streams and its kernels.
//
// GPUs work in a program built with -tags cuda on Linux, with cgo. In any other program the same
// functions exist, and [Open] returns an error that gives the reason in one sentence. The driver is
// not loaded before Open.
//
//	d, err := cuda.Open(cuda.Options{Device: 0})
//	if err != nil { … }
//	defer d.Close()
//	x, err := d.Alloc(cuda.Activations, 4*n)              // device memory, in the order of d.Compute
//	err = cuda.CopyIn(d.Compute, x.Ptr, host)             // host may be changed when it returns
//	d.Launch("scale_f32", cuda.Blocks(n, 256), cuda.Dim{X: 256}, 0, x.Ptr, int64(n), float32(2))
//	err = cuda.CopyOut(d.Compute, host, x.Ptr)            // waits for earlier work on d.Compute
//	x.Free()                                              // again in the order of d.Compute
//
// # One goroutine a device
//
// All calls of the driver that submit work are made by one goroutine of the Device, locked to a
// thread that has the device's primary context. Launch, Record, Wait, copies and fills put a
// command in its queue and return at once, from any goroutine; commands run in the order in which
// they were put. A goroutine waits on its own thread, so that it does not delay the others. If the
// queue is full, the caller waits.
//
// # Streams
//
// A [Stream] is a sequence of work on the device; [Device] has three: Sampling, Copy and Compute.
// Events order work across streams: after a.Record(e) and b.Wait(e), later work on b starts after
// the earlier work on a.
//
// # Memory
//
// Alloc and [Buffer.Free] use a cache, in the order of the buffer's stream and without waiting:
// memory freed on a stream may be allocated again on that stream at once. If another stream uses a
// buffer, call [Buffer.UsedOn]; the buffer is then freed after that stream has completed its work.
// Device memory never exceeds Options.Limit. A program that repeats the same steps soon allocates
// no further memory.
//
// # Errors
//
// Every call and launch is checked on the device's goroutine. After the first failure no further
// commands are executed, and [Device.Err], [Stream.Sync], CopyOut and Alloc return it: an [Error]
// that names device, rank, call and kernel. A later call may report a kernel's fault; with
// Options.Debug (or GNB_CUDA_DEBUG=1) the device waits for every command, so that the error names
// the kernel.
package cuda
