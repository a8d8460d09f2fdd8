package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/envknob"

	"github.com/graphnb/graphnb/internal/cuda/kernels"
	"github.com/graphnb/graphnb/internal/cuda/sizes"
)

// minDriver is the driver's CUDA version that the committed PTX needs: it is PTX ISA 7.8.
const minDriver = 11080

// minCapability is the compute capability that the committed PTX is for.
const minCapability = 70

// Device is a GPU as one process uses it. Its methods may be called from several goroutines.
type Device struct {
	// Compute is the stream of layers, gradients and parameters, Copy that of transfers, Sampling that
	// of the sampler. Compute has the highest priority.
	Compute, Copy, Sampling *Stream

	opts Options
	info Info
	drv  driver
	ctx  handle
	q    queue
	over chan struct{} // closed when the device's goroutine has ended

	failed  atomic.Pointer[Error] // the first failure
	last    *kernel               // the last kernel launched; only the device's goroutine uses it
	kernels registry
	mem     memory
	trace   *trace // nil unless tracing is on

	mu      sync.Mutex
	pinned  map[*Pinned]bool
	idle    []*Event // events for reuse
	closed  bool
	onClose []func()
	all     []handle // all events, to be destroyed at the end

	life     sync.RWMutex // read-locked by goroutines that wait on their own threads
	released bool
	closeErr error
}

// Open opens a device: it loads the driver, takes the device's primary context on a separate thread
// and makes the streams. If it fails, the error gives the reason in one sentence: built without GPU
// support, no driver, a driver that is too old, no such device, a device that is too old, or no
// memory. Open takes some tenths of a second, or some seconds if the driver must first compile the
// kernels, and some hundred MB of the device's memory. Close frees everything.
func Open(o Options) (*Device, error) {
	drv, err := newDriver()
	if err != nil {
		return nil, err
	}
	if o.Library == "" {
		o.Library = envknob.LibCUDA.Get()
	}
	if o.Library == "" {
		o.Library = "libcuda.so.1"
	}
	if envknob.CUDADebug.On() {
		o.Debug = true
	}
	if envknob.CUDAExact.On() {
		o.Exact = true
	}
	d := &Device{opts: o, drv: drv, over: make(chan struct{}), pinned: map[*Pinned]bool{}}
	if d.trace, err = openTrace(envknob.CUDATrace.Get()); err != nil {
		return nil, err
	}
	d.q.init()
	d.kernels.init()
	d.mem.init(d)
	for _, m := range kernels.Modules() {
		if err := d.AddModule(m.Name, m.PTX); err != nil {
			return nil, errors.Join(err, d.trace.close())
		}
	}
	opened := make(chan error)
	go d.serve(opened)
	err = <-opened
	if err == nil {
		err = d.kernels.load(d)
		for _, s := range []*Stream{d.Compute, d.Copy, d.Sampling} {
			if err == nil {
				err = s.stage.fill(d)
			}
			if err == nil {
				err = s.laters.fill(d)
			}
		}
		if err != nil {
			_ = d.Close() // err is the failure to report
		}
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// serve is the device's goroutine: it opens the device, executes commands and closes the device.
func (d *Device) serve(opened chan<- error) {
	defer close(d.over)
	// Never unlocked: the thread ends with the goroutine, and with it what the driver keeps of it.
	runtime.LockOSThread()
	if err := d.open(); err != nil {
		_ = d.release() // of a failure only
		_ = d.trace.close()
		opened <- err
		return
	}
	opened <- nil
	d.q.run(d.execute)
	d.closeErr = errors.Join(d.release(), d.trace.close())
}

func (d *Device) open() error {
	if err := d.check(); err != nil {
		return err
	}
	ctx, err := d.drv.retain(d.opts.Device)
	if err != nil {
		return d.fault("taking the device", err, "another process may use it exclusively, or its memory is full; nvidia-smi shows the processes that use it")
	}
	d.ctx = ctx
	if err := d.drv.current(ctx); err != nil {
		return d.fault("making its context current", err, "")
	}
	free, _, err := d.drv.memInfo()
	if err != nil {
		return d.fault("asking for its free memory", err, "")
	}
	if d.mem.limit = d.opts.Limit; d.mem.limit == 0 {
		d.mem.limit = sizes.Limit(free, d.opts.Ranks)
	}
	_, greatest, err := d.drv.priorities()
	if err != nil {
		return d.fault("asking for its priorities", err, "")
	}
	for _, s := range []struct {
		to       **Stream
		name     string
		priority int
	}{{&d.Compute, "compute", greatest}, {&d.Copy, "copy", 0}, {&d.Sampling, "sampling", 0}} {
		h, err := d.drv.stream(s.priority)
		if err != nil {
			return d.fault("making the "+s.name+" stream", err, "")
		}
		*s.to = &Stream{Name: s.name, d: d, h: h}
	}
	return nil
}

// check loads the driver and checks that it and the device are supported, before a context is made.
func (d *Device) check() error {
	if err := d.drv.start(d.opts.Library); err != nil {
		switch {
		case errors.Is(err, ErrNoDriver):
			return fmt.Errorf("cuda: %w; install NVIDIA's driver, or run on the CPU", err)
		case errors.Is(err, NoDevice):
			return fmt.Errorf("cuda: %w: the driver is loaded and sees no GPU; CUDA_VISIBLE_DEVICES=%q may hide it", err, os.Getenv("CUDA_VISIBLE_DEVICES"))
		}
		return fmt.Errorf("cuda: initialising the driver: %w; \"nvidia-smi\" should say the same, and a restart of the machine helps after an update of the driver", err)
	}
	v, err := d.drv.version()
	if err != nil {
		return fmt.Errorf("cuda: asking the driver for its version: %w", err)
	}
	if v < minDriver {
		return fmt.Errorf("cuda: %w: it supports CUDA %d.%d, but the kernels need %d.%d or newer (R520); update the driver, or run on the CPU",
			ErrOldDriver, v/1000, v%1000/10, minDriver/1000, minDriver%1000/10)
	}
	n, err := d.drv.count()
	if err != nil {
		return fmt.Errorf("cuda: counting the devices: %w", err)
	}
	if i := d.opts.Device; i < 0 || i >= n {
		return d.fault("opening it", InvalidDevice, fmt.Sprintf("this process sees %d (CUDA_VISIBLE_DEVICES=%q)", n, os.Getenv("CUDA_VISIBLE_DEVICES")))
	}
	if d.info, err = d.drv.info(d.opts.Device); err != nil {
		return d.fault("asking for its properties", err, "")
	}
	if c := d.info.Major*10 + d.info.Minor; c < minCapability {
		return d.fault("opening it", NotSupported, fmt.Sprintf("it has compute capability %d.%d, but the kernels need %d.%d (Volta) or newer", d.info.Major, d.info.Minor, minCapability/10, minCapability%10))
	}
	return nil
}

// release frees everything that open and the program have allocated, in every state of the device,
// and returns the first error. After a failure of the device this error has no meaning.
func (d *Device) release() error {
	var first error
	note := func(op string, err error) {
		if err != nil && first == nil && d.failed.Load() == nil {
			first = d.fault(op, err, "")
		}
	}
	if d.ctx == 0 {
		return nil
	}
	d.mu.Lock()
	closers := d.onClose
	d.mu.Unlock()
	for _, f := range slices.Backward(closers) {
		f()
	}
	streams := slices.DeleteFunc([]*Stream{d.Compute, d.Copy, d.Sampling}, func(s *Stream) bool { return s == nil })
	for _, s := range streams { // running work may still use the memory freed below
		note("ending the "+s.Name+" stream", d.drv.streamSync(s.h))
	}
	d.life.Lock() // the goroutines that wait are released: nothing will come
	d.released = true
	d.life.Unlock()
	d.mu.Lock()
	for _, e := range d.all {
		note("destroying an event", d.drv.eventDestroy(e))
	}
	for p := range d.pinned {
		note("freeing pinned memory", p.giveBack(d.drv))
	}
	d.mu.Unlock()
	for _, s := range streams {
		note("destroying the "+s.Name+" stream", d.drv.streamDestroy(s.h))
	}
	note("freeing memory", d.mem.release(d.drv))
	note("unloading the kernels", d.kernels.release(d.drv))
	note("releasing the device", d.drv.release(d.opts.Device))
	return first
}

// Close waits for all submitted work and releases the device, its memory and its context. It
// returns the device's first failure, if any, or the error of closing. Closing twice is harmless.
func (d *Device) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.q.close()
	<-d.over
	if f := d.failed.Load(); f != nil {
		return f
	}
	return d.closeErr
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// Rank is the worker's rank, as Options has it.
func (d *Device) Rank() int { return d.opts.Rank }

// Err returns the device's first failure, or nil. It does not wait for running work.
func (d *Device) Err() error {
	if f := d.failed.Load(); f != nil {
		return f
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.fault("using it", ErrClosed, "")
	}
	return nil
}

// fault returns an Error of this device.
func (d *Device) fault(op string, cause error, detail string) *Error {
	return &Error{Device: d.opts.Device, Name: d.info.Name, Rank: d.opts.Rank, Op: op, Cause: cause, Detail: detail}
}

// fail makes e the device's failure, unless it had one before.
func (d *Device) fail(e *Error) { d.failed.CompareAndSwap(nil, e) }

// do runs f on the device's goroutine and waits for it. op names the operation in errors.
func (d *Device) do(op string, f func() error) error {
	c := &call{op: op, f: f, done: make(chan error, 1)}
	return d.doCall(c)
}

func (d *Device) doCall(c *call) error {
	if !d.q.put(func(m *command) { m.kind, m.call = doCall, c }) {
		return d.fault(c.op, ErrClosed, "")
	}
	return <-c.done
}
