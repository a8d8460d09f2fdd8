package ptx

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// exec runs one instruction.
type exec func(t *thread, in *instr)

// instr is a decoded instruction. d, a, b, c and e are slots; further operands are in x.
type instr struct {
	fn            exec
	fn2           func(w *worker, in *instr, lanes []thread, there uint32) // runs a warp operation once its lanes have arrived
	d, a, b, c, e int32
	guard         int32 // -1: none
	not           bool
	sub           uint8  // a comparison or mode, specific to the instruction
	access        int32  // number among the instructions that use memory
	imm           uint64 // an offset, a branch's target
	line          int32
	x             *extra
}

// extra holds operands that few instructions need.
type extra struct {
	regs    []int32 // of a vector
	size    uint8   // bytes of one element
	signed  bool
	bits    uint8 // of the registers
	strong  bool  // volatile, relaxed or stronger
	targets []int32
	second  int32 // d|p, -1 if there is none
	negB    bool
	combine byte // a: and, o: or, x: xor
	atom    func(old, b, c uint64) uint64
	f       func(x, y, z uint64) uint64
}

type state uint8

const (
	running state = iota
	atBarrier
	atWarp
	done
)

type thread struct {
	r      []uint64
	pc     int
	w      *worker
	lin    int // in the block
	state  state
	carry  uint64
	in     *instr // the instruction at which it waits
	mask   uint32 // lanes of the warp operation that it waits at
	count  int64  // instructions executed
	local  *region
	clock  uint16 // for race detection: warp barriers passed, from 1
	seen   *[32]uint16
	before uint64 // a value for other lanes while it waits
}

// worker runs one block at a time.
type worker struct {
	l            *launch
	k            *Kernel
	threads      []thread
	slots        []uint64 // of all threads
	live         int      // threads that have not ended
	shared       *region
	last         []*region // by instr.access
	races        bool
	block        uint32 // number among all blocks of all launches
	linear       int64  // in the grid
	cta          [3]uint32
	epoch        uint16 // barriers passed
	order        []int
	rng          *rand.Rand
	instructions int64
	loaded       int64
	stored       int64
}

// newWorker returns a worker for a launch. It reuses an earlier worker's memory if possible,
// because a launch of a few threads would otherwise spend its time on allocation.
func newWorker(l *launch) *worker {
	n := l.block.X * l.block.Y * l.block.Z
	w := l.m.takeWorker()
	w.l, w.k, w.races, w.rng = l, l.k, l.m.Races, nil
	w.instructions, w.loaded, w.stored = 0, 0, 0
	w.threads, w.order, w.last = room(w.threads, n), room(w.order, n), room(w.last, l.k.accesses)
	w.slots = room(w.slots, n*l.k.slots)
	nowhere := &region{}
	for i := range w.last {
		w.last[i] = nowhere
	}
	size := l.k.Shared + l.shared
	if cap(w.shared.data) < size {
		w.shared = &region{data: make([]byte, size), init: make([]byte, size), name: "shared memory"}
	}
	w.shared.data, w.shared.init, w.shared.size = w.shared.data[:size], w.shared.init[:size], uint64(size)
	for i := range w.threads {
		t := &w.threads[i]
		t.w, t.lin = w, i
		t.r = w.slots[i*l.k.slots : (i+1)*l.k.slots : (i+1)*l.k.slots]
		t.local = nil
		if l.k.local > 0 {
			t.local = &region{size: uint64(l.k.local), data: make([]byte, l.k.local), init: make([]byte, l.k.local), name: "local memory"}
		}
		if w.races && t.seen == nil {
			t.seen = new([32]uint16)
		}
	}
	for i := range w.order {
		w.order[i] = i
		if l.m.Order.Descending {
			w.order[i] = n - 1 - i
		}
	}
	return w
}

// room returns a slice of length n, in x's memory if that is large enough.
func room[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

func (t *thread) tid() [3]uint32 {
	b := t.w.l.block
	return [3]uint32{uint32(t.lin % b.X), uint32(t.lin / b.X % b.Y), uint32(t.lin / (b.X * b.Y))}
}

// start puts the thread at the kernel's first instruction.
func (t *thread) start() {
	copy(t.r, t.w.l.template)
	t.pc, t.state, t.carry, t.count, t.clock = 0, running, 0, 0, 1
	if t.w.races {
		*t.seen = [32]uint16{}
	}
	if t.local != nil {
		clear(t.local.init)
	}
	if len(t.w.k.specials) > 0 {
		t.specials()
	}
}

// specials sets the special registers that identify the thread.
func (t *thread) specials() {
	l := t.w.l
	tid, lane := t.tid(), uint(t.lin&31)
	for _, s := range t.w.k.specials {
		var v uint32
		switch s.what {
		case tidOf:
			v = tid[s.axis]
		case ntidOf:
			v = uint32([3]int{l.block.X, l.block.Y, l.block.Z}[s.axis])
		case ctaidOf:
			v = t.w.cta[s.axis]
		case nctaidOf:
			v = uint32([3]int{l.grid.X, l.grid.Y, l.grid.Z}[s.axis])
		case laneOf:
			v = uint32(lane)
		case warpOf:
			v = uint32(t.lin / 32)
		case warpsOf:
			v = uint32((len(t.w.threads) + 31) / 32)
		case warpSize:
			v = 32
		case dynamicShared:
			v = uint32(l.shared)
		case totalShared:
			v = uint32(l.shared + l.k.Shared)
		case maskEq:
			v = 1 << lane
		case maskLt:
			v = 1<<lane - 1
		case maskLe:
			v = 2<<lane - 1
		case maskGt:
			v = ^uint32(2<<lane - 1)
		case maskGe:
			v = ^uint32(1<<lane - 1)
		}
		t.r[s.slot] = uint64(v)
	}
}

// fail ends the launch.
func (t *thread) fail(in *instr, kind Kind, addr uint64, format string, args ...any) {
	f := &Fault{Kind: kind, Kernel: t.w.k.Name, Block: t.w.cta, Thread: t.tid(), Line: int(in.line), Addr: addr, What: fmt.Sprintf(format, args...)}
	f.Source = t.w.k.module.source(f.Line)
	panic(f)
}

func (m *Module) source(line int) string {
	lines := strings.Split(m.src, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimSpace(lines[line-1]), ";")), " ")
}

// turn is the number of instructions after which a thread lets others run, in case it waits for
// them in a loop.
const turn = 1 << 16

// run runs the thread until it waits or ends, or has used up its turn.
func (t *thread) run() {
	code := t.w.k.code
	n, most := int64(0), min(turn, t.w.l.limit-t.count+1)
	for t.state == running && n < most {
		in := &code[t.pc]
		t.pc++
		n++
		if in.guard >= 0 && (t.r[in.guard] != 0) == in.not {
			continue
		}
		in.fn(t, in)
	}
	t.w.instructions += n
	if t.count += n; t.count > t.w.l.limit {
		t.fail(&code[max(t.pc-1, 0)], Endless, 0, "the thread has run %d instructions without an end; Machine.Limit allows no more", t.count)
	}
}

// run runs block number i of the grid.
func (w *worker) run(i int64) (fault *Fault) {
	g := w.l.grid
	w.linear, w.block, w.epoch = i, w.l.firstBlock+uint32(i), 0
	w.cta = [3]uint32{uint32(i % int64(g.X)), uint32(i / int64(g.X) % int64(g.Y)), uint32(i / (int64(g.X) * int64(g.Y)))}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*Fault)
			if !ok {
				panic(r)
			}
			fault = f
		}
	}()
	clear(w.shared.init)
	for i := range w.threads {
		w.threads[i].start()
	}
	w.live = len(w.threads)
	if s := w.l.m.Order.Shuffle; s != 0 {
		w.rng = rand.New(rand.NewPCG(s, uint64(i)))
	}
	for w.live > 0 {
		if w.rng != nil {
			w.rng.Shuffle(len(w.order), func(i, j int) { w.order[i], w.order[j] = w.order[j], w.order[i] })
		}
		ran := false
		for _, i := range w.order {
			if t := &w.threads[i]; t.state == running {
				t.run()
				ran = true
			}
		}
		if w.live == 0 {
			return nil
		}
		if released := w.warps(); !released && !w.barrier() && !ran {
			w.stuck()
		}
	}
	return nil
}
