// Package backend implements [ops.Backend] on a GPU: it runs the operations of package tensor
// with the kernels of internal/cuda/kernels, on the compute stream of a [cuda.Device].
//
//	d, err := cuda.Open(cuda.Options{})
//	blas, err := cublas.Open(d, cublas.Options{}) // or nil
//	be, err := backend.New(d, blas)
//	w, err := be.Weights(params) // stay on the device
//	f := tensor.NewFwd(tensor.Config{Backend: be, Train: true})
//
// # Basics
//
// Operations are submitted and return at once. Download waits, and so do the functions returned by
// Later and by a loss's Figures. Memory comes from the device's cache and returns to it in the
// order of the stream, so a program that repeats the same steps allocates nothing new. Data made on
// the host, such as a tensor's input, is copied once per pass, unless [Backend.Keep] or
// [Backend.Share] keeps it on the device for longer. A block's arrays are copied at its first use
// and stay until its Reset.
//
// A Backend, like a [tensor.Fwd], belongs to one goroutine at a time.
//
// # Determinism
//
// The order of sums depends on sizes alone, there are no float atomics, gradients of aggregations
// use the transposed block, and dropout masks are the CPU's. Results are therefore the same from
// run to run on a device, and agree with the CPU's up to the rounding of sums and of exp, log and
// tanh.
//
// # Errors
//
// If the device fails, the next operation that waits for it or allocates memory panics with a
// [*ops.Failure], which package nn turns into an error.
package backend

import (
	"errors"
	"runtime"
	"time"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/cublas"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// Backend computes on a device. Make it with New.
type Backend struct {
	d     *cuda.Device
	s     *cuda.Stream
	blas  *cublas.Handle
	kept  kept
	graph sharedGraph
	empty *cuda.Buffer // the address for tensors without elements
	// Memory that an operation uses while it runs. The next operation on the stream may
	// reuse it.
	parts, words, chunks *cuda.Buffer
	slice                sliceRoom
}

// New returns a backend on a device, which the caller must close. blas, on the same device,
// multiplies matrices; if it is nil, GraphNB's own kernel does, at about a third of the speed.
func New(d *cuda.Device, blas *cublas.Handle) (*Backend, error) {
	b := &Backend{d: d, s: d.Compute, blas: blas}
	var err error
	if b.empty, err = d.Alloc(cuda.Workspace, 0); err != nil {
		return nil, err
	}
	return b, nil
}

// Close frees the memory that the backend itself holds, including kept copies. Release tensors and
// blocks before.
func (b *Backend) Close() {
	b.kept.free()
	b.slice.free()
	for _, m := range []*cuda.Buffer{b.empty, b.parts, b.words, b.chunks} {
		m.Free()
	}
	b.empty, b.parts, b.words, b.chunks = nil, nil, nil, nil
}

// Name is "cuda".
func (b *Backend) Name() string { return "cuda" }

// Device returns the device that the backend computes on.
func (b *Backend) Device() *cuda.Device { return b.d }

// fail panics with the device's failure, if there is one.
func fail(err error) {
	if err != nil {
		panic(&ops.Failure{Err: err})
	}
}

// alloc returns n bytes. If memory runs out, it first frees blocks and buffers that the program no
// longer references.
func (b *Backend) alloc(use cuda.Use, n int) *cuda.Buffer {
	m, err := b.d.Alloc(use, int64(n))
	if errors.Is(err, cuda.OutOfMemory) && b.slice.rows != nil {
		b.slice.free()
		m, err = b.d.Alloc(use, int64(n))
	}
	for wait := time.Millisecond; errors.Is(err, cuda.OutOfMemory) && wait < 50*time.Millisecond; wait *= 4 {
		runtime.GC()
		time.Sleep(wait) // the cleanups run beside
		m, err = b.d.Alloc(use, int64(n))
	}
	fail(err)
	return m
}

// Alloc implements [ops.Backend].
func (b *Backend) Alloc(n int) ops.Buffer {
	return ops.Buffer{Dev: b.alloc(cuda.Activations, 4*n), N: n}
}

// Free implements [ops.Backend].
func (b *Backend) Free(x ops.Buffer) {
	switch m := x.Dev.(type) {
	case *cuda.Buffer:
		if m != b.empty {
			m.Free()
		}
	case *Memory: // made by WrapHalf for this pass; other kept memory outlives a pass
		if m.Half && m.own != nil && m.own != b.empty {
			m.own.Free()
		}
	}
}

// Wrap implements [ops.Backend]. It returns the kept copy of host memory, or a new copy.
func (b *Backend) Wrap(host []float32) ops.Buffer {
	if x, ok := b.Kept(host); ok {
		return x
	}
	x := b.Alloc(len(host))
	b.Upload(x, host)
	return x
}

// WrapHalf implements [ops.Backend]. It returns the shared memory, or a new copy.
func (b *Backend) WrapHalf(host []uint16) ops.Buffer {
	if x, ok := b.KeptHalf(host); ok {
		return x
	}
	own := b.alloc(cuda.Activations, 2*len(host))
	fail(cuda.CopyIn(b.s, own.Ptr, host))
	return ops.Buffer{Dev: &Memory{Ptr: own.Ptr, Half: true, own: own}, N: len(host)}
}

// Upload implements [ops.Backend].
func (b *Backend) Upload(dst ops.Buffer, src []float32) {
	fail(cuda.CopyIn(b.s, addr(dst), src))
}

// Download implements [ops.Backend]. It waits for all earlier operations.
func (b *Backend) Download(dst []float32, src ops.Buffer) {
	fail(cuda.CopyOut(b.s, dst, addr(src)))
}

// Zero implements [ops.Backend].
func (b *Backend) Zero(dst ops.Buffer) { b.s.Fill32(addr(dst), 0, int64(dst.N)) }

// addr returns a buffer's address, or 0 if there is no buffer.
func addr(x ops.Buffer) cuda.Ptr {
	switch m := x.Dev.(type) {
	case *cuda.Buffer:
		return m.Ptr + cuda.Ptr(4*x.Off)
	case *Memory:
		switch {
		case m.Some != nil:
			fail(errSome)
		case m.Ended:
			fail(errEnded)
		}
		return m.Ptr + cuda.Ptr(m.size()*x.Off)
	}
	return 0
}

// tableAddr returns the address of a table's rows, or 0 if all of them are in its cache.
func tableAddr(x ops.Buffer, rows ops.Rows) cuda.Ptr {
	if m, ok := x.Dev.(*Memory); ok && m.Some != nil {
		fail(m.Some.check(rows))
		return 0
	}
	return addr(x)
}

// optional returns a buffer's address, or 0 if it has no elements.
func optional(x ops.Buffer) cuda.Ptr {
	if x.N == 0 {
		return 0
	}
	return addr(x)
}

// run launches a kernel.
func (b *Backend) run(kernel string, s kernels.Shape, args ...any) {
	b.d.Launch(kernel, cuda.Dim{X: s.Grid}, cuda.Dim{X: s.X, Y: s.Y}, 0, args...)
}

// asFlag converts a condition to a kernel's parameter.
func asFlag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// room returns memory of at least n bytes. The next use of m on the stream may reuse it.
func (b *Backend) room(m **cuda.Buffer, n int) cuda.Ptr {
	if *m == nil || (*m).Bytes < int64(n) {
		(*m).Free()
		*m = nil
		*m = b.alloc(cuda.Workspace, int(sizes.Room(int64(n))))
	}
	return (*m).Ptr
}

// ids copies host ids to the device for the next kernel.
func (b *Backend) ids(host []int32) cuda.Ptr {
	at := b.room(&b.words, 4*len(host))
	fail(cuda.CopyIn(b.s, at, host))
	return at
}
