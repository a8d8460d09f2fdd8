// Package cuda is the engine room of a GPU: a device with its memory, its streams and its kernels.
//
// A program built with -tags cuda on Linux, with cgo, has it; in any other the same functions are
// there and [Open] says in one sentence why there is no device. Nothing of the driver is loaded before
// Open, with or without the tag.
//
//	d, err := cuda.Open(cuda.Options{Device: 0})
//	if err != nil { … }
//	defer d.Close()
//	x, err := d.Alloc(cuda.Activations, 4*n)              // device memory, in the order of d.Compute
//	err = cuda.CopyIn(d.Compute, x.Ptr, host)             // host may be changed when it returns
//	d.Launch("scale_f32", cuda.Blocks(n, 256), cuda.Dim{X: 256}, 0, x.Ptr, int64(n), float32(2))
//	err = cuda.CopyOut(d.Compute, host, x.Ptr)            // waits for what was asked of d.Compute before
//	x.Free()                                              // again in the order of d.Compute
//
// # One goroutine a device
//
// All calls of the driver that submit work are made by one goroutine of the Device, locked to a thread
// that has the device's primary context. Launch, Record, Wait, copies and fills put a command in its
// queue and return at once, from any goroutine; commands run in the order in which they were put. A
// goroutine waits on its own thread, so that one that reads a size back does not hold up the others.
// A full queue makes the caller wait.
//
// # Streams
//
// A [Stream] is a sequence of work on the device; [Device] has three: Sampling, Copy and Compute.
// Order between them is made by events: a.Record(e), then b.Wait(e) makes what is asked of b later
// start after what was asked of a before.
//
// # Memory
//
// Alloc and [Buffer.Free] take from and give to a cache, in the order of the buffer's stream and
// without waiting: memory freed on a stream may be handed out again on that stream at once. A buffer
// that another stream has used is given back when that stream has passed: say so by [Buffer.UsedOn]. Device
// memory never exceeds Options.Limit. Once a program repeats itself nothing is allocated.
//
// # Errors
//
// Every call and launch is checked where it is made, on the device's goroutine. The first failure
// stays: later commands are not executed, and [Device.Err], [Stream.Sync], CopyOut and Alloc return
// it, an [Error] that names device, rank, call and kernel. A kernel's fault may be found by a later call; with
// Options.Debug (or GNB_CUDA_DEBUG=1) every command is waited for, and the error names the kernel.
package cuda
