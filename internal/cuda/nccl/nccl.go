// Package nccl sums and sends values between the GPUs of several workers with NVIDIA's NCCL, which
// is found and loaded at run time.
//
// One worker makes an id and sends it to the others; then each worker opens its Comm:
//
//	id, err := nccl.NewID(nccl.Options{Driver: d.Info().Driver})
//	c, err := nccl.Open(ctx, d, id, rank, world, nccl.Options{})
//	c.AllReduce(d.Compute, gradients, n)
//
// Collectives are put on a stream and return at once. Every rank puts the same ones in the same
// order. NCCL chooses the order of sums: all ranks get the same bits, but a different number of
// ranks may give different bits.
//
// # Several communicators
//
// A device may have several Comms. Operations of two Comms that wait for each other's ranks deadlock
// if the ranks launch them in different orders, so one goroutine of a worker, the one that runs the
// program, puts the operations of all its Comms, on one stream: the program fixes their order, which is
// the same on all ranks. A goroutine that works beside it, such as one that samples, uses no Comm.
//
// # Lost ranks
//
// If a rank is lost, the others cannot continue. NCCL may detect this (asynchronously over a
// network), and each Comm asks it 20 times per second; if it does not, the supervisor of the workers
// must, and [Options].Ended tells the Comm. In both cases the device fails, all its Comms are aborted,
// and all waits on its streams end. Abort waits for the library a second at most.
package nccl

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/libs"
)

// minVersion is the oldest NCCL that this package uses: 2.10.
const minVersion = 21000

// ShareEnv is the environment variable that is "1" if NCCL may let ranks share a device. NCCL reads
// it once.
const ShareEnv = "NCCL_MULTI_RANK_GPU_ENABLE"

// Options choose the library.
type Options struct {
	// Library is the file to load; "" searches with package libs.
	Library string
	// Driver is the CUDA version of the driver, such as 12040, for NewID: a library built for a
	// newer version is skipped. Open gets it from its device. 0 means any library.
	Driver int
	// Ended returns an error once the run has ended elsewhere, such as on another rank, and nil before
	// that; it may be nil. Open and the waits on the device's streams then end with the error. Several
	// goroutines call it.
	Ended func() error
}

// ID names a group of ranks. The rank that makes it sends it to the others as text or as bytes.
type ID [128]byte

// String returns the id in hexadecimal, which ParseID reads.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID parses an id's text.
func ParseID(s string) (ID, error) {
	var id ID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("nccl: %q is not an id; an id has %d bytes in hexadecimal", s, len(id))
	}
	return ID(b), nil
}

// library is NCCL, loaded. Errors of its calls are of type Status, or errInProgress: then asyncError
// tells how the call has ended.
type library interface {
	version() (int, error)
	newID() (ID, error)
	// open waits for the other ranks only if the library is older than 2.14; a newer library
	// returns while the call is in progress.
	open(id ID, rank, world int) (comm uintptr, err error)
	allReduce(comm, stream uintptr, p cuda.Ptr, n int) error
	broadcast(comm, stream uintptr, p cuda.Ptr, n, root int) error
	exchange(comm, stream uintptr, parts []part) error
	asyncError(comm uintptr) error
	abort(comm uintptr) error
	destroy(comm uintptr) error
}

// Status is a result of NCCL, an ncclResult_t, with the library's explanation.
type Status struct {
	Code int
	Text string
}

func (s Status) Error() string { return fmt.Sprintf("NCCL: %s", s.Text) }

// Remote reports whether another rank, or the connection to it, is the cause, rather than this rank.
func (s Status) Remote() bool { return s.Code == remoteError }

const remoteError = 6 // ncclRemoteError, since 2.13

// errInProgress is the state of a call that has not ended.
var errInProgress = errors.New("NCCL: in progress")

// errGone is the error of a Comm that was aborted.
var errGone = Status{Text: "the group was given up"}

// part is what an exchange sends to a peer, or receives from it: n float32.
type part struct {
	at       cuda.Ptr
	n        int
	peer     int
	receives bool
}

func find(o Options) (library, string, error) {
	file := o.Library
	if file == "" {
		found, err := libs.Find(libs.NCCL, o.Driver)
		if err != nil {
			return nil, "", err
		}
		file = found[0].Path
	}
	lib, err := load(file)
	if err != nil {
		return nil, "", fmt.Errorf("nccl: loading %s: %w", file, err)
	}
	v, err := lib.version()
	if err != nil {
		return nil, "", fmt.Errorf("nccl: %s: %w", file, err)
	}
	if v < minVersion {
		return nil, "", fmt.Errorf("nccl: %s is version %s, and 2.10 or newer is needed; \"pip install -U nvidia-nccl-cu12\" gets one", file, versionText(v))
	}
	return lib, file, nil
}

// versionText formats a version as NCCL does: 21803 is 2.18.3.
func versionText(v int) string { return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100) }

// NewID makes an id for a group. The process that makes it must exist until the group has started.
func NewID(o Options) (ID, error) {
	lib, file, err := find(o)
	if err != nil {
		return ID{}, err
	}
	id, err := lib.newID()
	if err != nil {
		return id, fmt.Errorf("nccl: making an id with %s: %w", file, err)
	}
	return id, nil
}

// Comm is one rank's end of a group. It is closed with the device.
type Comm struct {
	d           *cuda.Device
	lib         library
	rank, world int
	comm        uintptr
	version     int
	ended       func() error

	gone   atomic.Bool // aborted or destroyed: the library must not be called any more
	asking sync.Mutex  // locked while asking for errors, so that an abort does not overlap with it
	stop   chan struct{}
	watch  sync.WaitGroup
}

// Open joins the group of id with this device, and returns when all of its world ranks have joined.
// If ctx or the run ends before that, it returns an error; a library older than 2.14 then leaves a
// thread that waits for the others, and the process should end. Several ranks can share a device
// with NCCL 2.30 and newer, and with [ShareEnv].
func Open(ctx context.Context, d *cuda.Device, id ID, rank, world int, o Options) (*Comm, error) {
	o.Driver = d.Info().Driver
	lib, file, err := find(o)
	if err != nil {
		return nil, err
	}
	c := &Comm{d: d, lib: lib, rank: rank, world: world, ended: o.Ended, stop: make(chan struct{})}
	if c.version, err = lib.version(); err != nil {
		return nil, err
	}
	ctx, cancel := c.untilEnd(ctx)
	defer cancel()
	opened := make(chan error, 1)
	go func() {
		opened <- d.Outside(fmt.Sprintf("joining the group of %d ranks by NCCL", world), func() error { return c.join(ctx, id) })
	}()
	select {
	case err = <-opened:
	case <-ctx.Done():
		select {
		case err = <-opened: // join notices the end too, unless the library waits
		case <-time.After(abortPatience):
		}
		err = cmp.Or(err, error(errGone))
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("nccl: rank %d waits for the other %d ranks of its group: %w", rank, world-1, cause)
		}
		return nil, fmt.Errorf("%w (%s)", err, file)
	}
	d.OnClose(c.close)
	c.watch.Go(c.watchErrors)
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// untilEnd returns a context that ends with ctx or with the run.
func (c *Comm) untilEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for c.ended != nil && ctx.Err() == nil {
			if why := c.ended(); why != nil {
				cancel(why)
			}
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// join opens the communicator and waits until all ranks have.
func (c *Comm) join(ctx context.Context, id ID) (err error) {
	c.comm, err = c.lib.open(id, c.rank, c.world)
	for wait := firstPause; errors.Is(err, errInProgress) && ctx.Err() == nil; wait = pause(wait) {
		err = c.lib.asyncError(c.comm)
	}
	if err != nil && c.comm != 0 {
		c.Abort()
	}
	return err
}

// firstPause is the first time between two questions about a call in progress; pause waits for that
// time and doubles it.
const firstPause = 20 * time.Microsecond

func pause(d time.Duration) time.Duration {
	time.Sleep(d)
	return min(2*d, 2*time.Millisecond)
}

// connect computes a first sum. NCCL connects the ranks in it and waits for them, which ctx can end
// here but not in the first step of training.
func (c *Comm) connect(ctx context.Context) error {
	s := c.d.Copy
	b, err := s.Alloc(cuda.Params, 4)
	if err != nil {
		return err
	}
	defer b.Free()
	one := []float32{1}
	if err := cuda.CopyIn(s, b.Ptr, one); err != nil {
		return err
	}
	c.AllReduce(s, b.Ptr, 1)
	summed := make(chan error, 1)
	go func() { summed <- cuda.CopyOut(s, one, b.Ptr) }()
	select {
	case err := <-summed:
		if err == nil && one[0] != float32(c.world) {
			err = fmt.Errorf("nccl: the sum of a 1 from each of %d ranks is %v: the library, or the way between the GPUs, does not work; try NCCL_P2P_DISABLE=1", c.world, one[0])
		}
		return err
	case <-ctx.Done():
		c.Abort()
		<-summed // the sum ends without a result
		return fmt.Errorf("nccl: rank %d connects to the other %d ranks of its group: %w", c.rank, c.world-1, context.Cause(ctx))
	}
}

// Version returns the library's version: 22105 for 2.21.5.
func (c *Comm) Version() int { return c.version }

// AllReduce replaces n float32 at p by their sums over all ranks, in the order of the stream.
func (c *Comm) AllReduce(s *cuda.Stream, p cuda.Ptr, n int) {
	c.put(s, "all-reduce by NCCL", func(stream uintptr) error { return c.lib.allReduce(c.comm, stream, p, n) })
}

// Broadcast replaces n float32 at p by those of rank root, in the order of the stream.
func (c *Comm) Broadcast(s *cuda.Stream, p cuda.Ptr, n, root int) {
	c.put(s, "broadcast by NCCL", func(stream uintptr) error { return c.lib.broadcast(c.comm, stream, p, n, root) })
}

// Exchange sends floats to each other rank and receives floats from it, in the order of the stream: send[r] and
// receive[r] are those of rank r. A length of 0 moves nothing, and this rank's own are ignored. Both ends of a
// message must have the same length.
func (c *Comm) Exchange(s *cuda.Stream, send, receive []Floats) {
	var parts []part
	for r := range c.world {
		if f := send[r]; r != c.rank && f.N > 0 {
			parts = append(parts, part{f.At, f.N, r, false})
		}
		if f := receive[r]; r != c.rank && f.N > 0 {
			parts = append(parts, part{f.At, f.N, r, true})
		}
	}
	if len(parts) > 0 {
		c.put(s, "exchange by NCCL", func(stream uintptr) error { return c.lib.exchange(c.comm, stream, parts) })
	}
}

// Floats are N float32 values of device memory.
type Floats struct {
	At cuda.Ptr
	N  int
}

// put enqueues without holding a lock: NCCL may wait there for other ranks, and an abort must then
// be possible. Later work on the stream waits until the library has enqueued everything.
func (c *Comm) put(s *cuda.Stream, op string, f func(stream uintptr) error) {
	s.Submit(op, func(stream uintptr) error {
		if c.gone.Load() {
			return errGone
		}
		err := f(stream)
		for wait := firstPause; errors.Is(err, errInProgress); wait = pause(wait) {
			err = c.ask()
		}
		return err
	})
}

// ask asks how the calls of the library have ended. It does not wait for an abort.
func (c *Comm) ask() error {
	if c.asking.TryLock() {
		defer c.asking.Unlock()
		if !c.gone.Load() {
			return c.lib.asyncError(c.comm)
		}
	}
	if c.gone.Load() {
		return errGone
	}
	return errInProgress // another goroutine asks
}

// every is the time between two questions about errors.
const every = 50 * time.Millisecond

// watchErrors watches for asynchronous errors and for the end of the run. It then aborts the
// communicator, so that work that waits for a lost rank ends, and the device fails.
func (c *Comm) watchErrors() {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		if c.look() {
			return
		}
	}
}

// look reports whether the watcher can stop.
func (c *Comm) look() (over bool) {
	err := c.ask()
	if errors.Is(err, errGone) {
		return true
	}
	// Record the failure first: giving up lets the stream continue, and the goroutine that waits
	// for it must then see the failure.
	switch {
	case err != nil && !errors.Is(err, errInProgress):
		c.d.Fail(fmt.Sprintf("communication of %d ranks by NCCL", c.world), err, "another rank, or the connection to it, is lost; see that rank's message, or set NCCL_DEBUG=INFO for NCCL's log")
	case c.d.Failed() != nil: // by this Comm itself or by another one
	case c.ended != nil:
		why := c.ended()
		if why == nil {
			return false
		}
		c.d.Fail(fmt.Sprintf("waiting for %d ranks by NCCL", c.world), why, "")
	default:
		return false
	}
	c.Abort()
	return true
}

// abortPatience is how long to wait for the library to abort a communicator: in some versions it waits for other
// ranks, which may be lost.
const abortPatience = time.Second

// Abort aborts the communicator: operations in progress, including those being enqueued, end
// without a result on this rank.
func (c *Comm) Abort() {
	if !c.gone.CompareAndSwap(false, true) {
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.asking.Lock()
		defer c.asking.Unlock()
		_ = c.lib.abort(c.comm) // nothing else can be done
	}()
	select {
	case <-over:
	case <-time.After(abortPatience):
	}
}

// close runs on the device's goroutine when the device is closed and nothing more is enqueued. It
// waits for operations in progress, because other ranks may need this rank's part; if ranks are
// lost, the watcher ends the wait. A failed device could wait for the others forever, so close aborts.
func (c *Comm) close() {
	if c.d.Failed() != nil || c.d.Drain() != nil {
		c.Abort()
	}
	close(c.stop)
	c.watch.Wait()
	if c.gone.CompareAndSwap(false, true) {
		_ = c.lib.destroy(c.comm) // the process or the device ends soon
	}
}
