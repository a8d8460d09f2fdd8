//go:build cuda && linux && cgo

package fakegpu

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/internal/cuda/internal/ptx"
)

// Result codes of the driver (CUresult).
const (
	success          = 0
	invalidValue     = 1
	outOfMemory      = 2
	noDevice         = 100
	invalidDevice    = 101
	invalidContext   = 201
	invalidPTX       = 218
	invalidHandle    = 400
	notFound         = 500
	notReady         = 600
	illegalAddress   = 700
	tooManyResources = 701
	notRegistered    = 713
	alreadyMapped    = 712
	misaligned       = 716
	launchFailed     = 719
)

// device is one GPU. All methods except lock and left require that it is locked.
type device struct {
	dr      *Driver
	n       int
	mu      sync.Mutex
	mem     *ptx.Memory
	machine *ptx.Machine
	rng     *rand.Rand

	mapped   map[uintptr]hostRange // the host memory that this device maps, as of hostSeq
	hostSeq  int
	retained int
	sticky   int // status of every call after a kernel failed
	streams  []*stream
	clock    int64 // number of operations done, for events' times
	leaked   []string
	launched map[string]int // launches in the context by kernel, and the log's other counts
	blocks   map[string]int // blocks launched by kernel
}

// The log's keys besides the kernels.
const (
	logAllocations = "allocations"   // of device memory
	logPeak        = "peak_bytes"    // of device memory
	logRead        = "read_bytes"    // copied to the host
	logWritten     = "written_bytes" // copied from the host
)

// stream is a queue of pending operations.
type stream struct {
	d   *device
	ops []op
}

// op is an operation: it waits for a record, calls f, and completes a record.
type op struct {
	after *record
	f     func() int
	reach *record
}

// record is a point in a stream, done when all operations before it are done.
type record struct {
	s    *stream
	done bool
	at   int64
}

// event is the object of cuEventCreate; last is nil until it is recorded.
type event struct {
	d    *device
	last *record
}

func newDevice(dr *Driver, n int) *device {
	d := &device{dr: dr, n: n, rng: rand.New(rand.NewPCG(dr.c.Seed, uint64(n)))}
	d.reset()
	return d
}

// reset empties the memory, as the end of a context does.
func (d *device) reset() {
	d.mem = ptx.NewMemory(d.n, d.dr.c.Memory)
	d.machine = ptx.NewMachine(d.mem)
	d.machine.Order = d.dr.c.Order
	if d.dr.c.NoRaces {
		d.machine.Races = false
		d.machine.Workers = 2
	}
	d.streams = nil
	d.launched, d.blocks = map[string]int{}, map[string]int{}
	d.mapped, d.hostSeq = map[uintptr]hostRange{}, 0
}

// put adds an operation to a stream and executes as many operations as the schedule requires.
func (d *device) put(s *stream, o op) {
	s.ops = append(s.ops, o)
	switch d.dr.c.Schedule {
	case Eager:
		d.drain(s)
	case Random:
		for n := d.rng.IntN(4); n > 0; n-- {
			if t := d.streams[d.rng.IntN(len(d.streams))]; len(t.ops) > 0 {
				d.step(t)
			}
		}
	case Lazy:
		const most = 4096 // no real queue is unbounded either
		if len(s.ops) > most {
			d.step(s)
		}
	}
}

// step executes a stream's first operation, after the operations that it waits for.
func (d *device) step(s *stream) {
	o := s.ops[0]
	s.ops[0] = op{}
	s.ops = s.ops[1:]
	if o.after != nil {
		d.reach(o.after)
	}
	d.clock++
	if o.f != nil && d.sticky == 0 {
		d.sticky = o.f()
	}
	if o.reach != nil {
		o.reach.done, o.reach.at = true, d.clock
	}
}

func (d *device) reach(r *record) {
	for !r.done && len(r.s.ops) > 0 { // the streams of an ended context are empty
		d.step(r.s)
	}
}

func (d *device) drain(s *stream) {
	for len(s.ops) > 0 {
		d.step(s)
	}
}

func (d *device) drainAll() {
	for _, s := range d.streams {
		d.drain(s)
	}
}

// check returns the status of an operation that ended with err.
func (d *device) check(err error) int {
	if err == nil {
		return success
	}
	d.dr.noteFault(d.n, err)
	var f *ptx.Fault
	if errors.As(err, &f) {
		switch f.Kind {
		case ptx.Misaligned:
			return misaligned
		case ptx.OutOfBounds, ptx.Freed, ptx.Uninitialised, ptx.ReadOnly:
			return illegalAddress
		}
		return launchFailed
	}
	return illegalAddress
}

// release undoes a retain; the last one destroys the context and frees its objects.
func (d *device) release() int {
	if d.retained == 0 {
		return invalidContext
	}
	d.retained--
	if d.retained > 0 {
		return success
	}
	if n := d.mem.Live(); n > 0 {
		d.leaked = append(d.leaked, fmt.Sprintf("%d allocations, %d bytes, when device %d's context ended", n, d.mem.Used(), d.n))
	}
	if n := len(d.streams); n > 0 {
		d.leaked = append(d.leaked, fmt.Sprintf("%d streams, when device %d's context ended", n, d.n))
	}
	d.log()
	d.sticky = 0
	d.reset()
	return success
}

// log writes the line of Config.Log.
func (d *device) log() {
	if d.dr.c.Log == "" {
		return
	}
	line := fmt.Sprintf("device %d: %d left behind", d.n, len(d.leaked))
	for _, name := range slices.Sorted(maps.Keys(d.launched)) {
		line += fmt.Sprintf(" %s=%d", name, d.launched[name])
	}
	f, err := os.OpenFile(d.dr.c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// left describes the objects that a test did not free.
func (d *device) left() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.leaked
	if d.retained > 0 {
		left = append(left, fmt.Sprintf("the context of device %d, retained %d times", d.n, d.retained))
	}
	return left
}
