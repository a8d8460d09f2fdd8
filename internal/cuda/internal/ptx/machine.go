package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// Dim is the size of a grid or a block. Zeros count as 1.
type Dim struct{ X, Y, Z int }

// D returns a Dim of one dimension.
func D(x int) Dim { return Dim{X: x} }

func (d Dim) ones() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Order is the order in which threads and blocks run.
type Order struct {
	Descending bool
	// Shuffle is the seed of a random order, which changes after each barrier; 0 means none.
	Shuffle uint64
}

// The limits of a launch: those that all devices of compute capability 7.0 and later share.
const (
	MaxThreads   = 1024
	MaxGridX     = 1<<31 - 1
	MaxGridYZ    = 1<<16 - 1
	StaticShared = 48 << 10
	// OptInShared is the largest shared memory that a kernel can opt in to: 227 KiB, of compute
	// capability 9.0.
	OptInShared = 227 << 10
)

// Machine runs kernels on a memory. Set the fields before the first launch. Only one launch may run
// at a time.
type Machine struct {
	Memory *Memory
	Order  Order
	// Races turns on race detection. NewMachine sets it.
	Races bool
	// Workers is the number of blocks that run in parallel, at most GOMAXPROCS; 0 means one. With
	// Races it is always one.
	Workers int
	// Limit is the largest number of instructions per thread; 0 means 1 << 30.
	Limit int64
	// MaxShared is the largest shared memory of a block; 0 means 48 KiB.
	MaxShared int

	instructions, loaded, stored atomic.Int64
	blocks                       uint32 // number of blocks of all launches, for race detection

	mu   sync.Mutex
	idle []*worker
}

func (m *Machine) takeWorker() *worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.idle); n > 0 {
		w := m.idle[n-1]
		m.idle = m.idle[:n-1]
		return w
	}
	return &worker{shared: &region{name: "shared memory"}}
}

func (m *Machine) giveWorker(w *worker) {
	w.l = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = append(m.idle, w)
}

// Stats counts what launches did.
type Stats struct {
	Instructions int64
	// Loaded and Stored are bytes of global memory, summed over each thread's accesses: the traffic
	// of a device without a cache.
	Loaded, Stored int64
}

// NewMachine returns a machine with race detection.
func NewMachine(m *Memory) *Machine { return &Machine{Memory: m, Races: true} }

// Stats returns the sum over all launches so far.
func (m *Machine) Stats() Stats {
	return Stats{m.instructions.Load(), m.loaded.Load(), m.stored.Load()}
}

// Launch runs a kernel over a grid with shared bytes of dynamic shared memory, and returns when all
// its blocks have ended. Arguments are int, int32, uint32, int64, uint64, float32, float64, bool,
// uint8, uint16 or []byte (a struct); each must have the parameter's size, except that an int or
// uint64 may be passed for a smaller parameter if its value fits. Errors are [*Fault]s.
func (m *Machine) Launch(k *Kernel, grid, block Dim, shared int, args ...any) error {
	params, err := k.Pack(args...)
	if err != nil {
		return err
	}
	return m.LaunchRaw(k, grid, block, shared, params)
}

// Pack returns the bytes of the arguments of a launch.
func (k *Kernel) Pack(args ...any) ([]byte, error) {
	if len(args) != len(k.Params) {
		return nil, &Fault{Kind: BadLaunch, Kernel: k.Name, What: fmt.Sprintf("it takes %d arguments, and was given %d", len(k.Params), len(args))}
	}
	out := make([]byte, k.params)
	for i, a := range args {
		p := k.Params[i]
		size, loose := 8, false
		var v uint64
		switch x := a.(type) {
		case int:
			v, loose = uint64(x), p.Size >= 8 || int64(x) >= -1<<(8*p.Size-1) && int64(x) < 1<<(8*p.Size)
		case uint64:
			v, loose = x, p.Size >= 8 || x < 1<<(8*p.Size)
		case int64:
			v = uint64(x)
		case float64:
			v = math.Float64bits(x)
		case int32:
			v, size = uint64(x), 4
		case uint32:
			v, size = uint64(x), 4
		case float32:
			v, size = uint64(math.Float32bits(x)), 4
		case uint16:
			v, size = uint64(x), 2
		case uint8:
			v, size = uint64(x), 1
		case bool:
			if size = 1; x {
				v = 1
			}
		case []byte:
			if len(x) == p.Size {
				copy(out[p.Offset:], x)
				continue
			}
			size = len(x)
		default:
			return nil, &Fault{Kind: BadLaunch, Kernel: k.Name, What: fmt.Sprintf("argument %d is a %T, which is not a kernel's", i, a)}
		}
		if size != p.Size && !loose || p.Size > 8 {
			return nil, &Fault{Kind: BadLaunch, Kernel: k.Name, What: fmt.Sprintf("argument %d is a %T of %d bytes, and the parameter has %d", i, a, size, p.Size)}
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		copy(out[p.Offset:p.Offset+p.Size], b[:])
	}
	return out, nil
}

// LaunchRaw is Launch with the bytes of the parameters, each at its offset.
func (m *Machine) LaunchRaw(k *Kernel, grid, block Dim, shared int, params []byte) error {
	grid, block = grid.ones(), block.ones()
	if what := m.refuse(k, grid, block, shared, params); what != "" {
		return &Fault{Kind: BadLaunch, Kernel: k.Name, What: what}
	}
	l := &launch{m: m, k: k, grid: grid, block: block, shared: shared, total: int64(grid.X) * int64(grid.Y) * int64(grid.Z), limit: m.Limit}
	if l.limit == 0 {
		l.limit = 1 << 30
	}
	l.prepare(params)
	if m.Races {
		if l.total > math.MaxUint32-int64(m.blocks)-1 {
			m.Memory.forgetShadows()
			m.blocks, m.idle = 0, nil
		}
		l.firstBlock = m.blocks + 1
		m.blocks += uint32(l.total)
	}
	workers := min(max(m.Workers, 1), runtime.GOMAXPROCS(0), int(min(l.total, 1<<20)))
	if m.Races {
		workers = 1
	}
	if workers == 1 {
		l.work()
	} else {
		var wg sync.WaitGroup
		for range workers {
			wg.Go(l.work)
		}
		wg.Wait()
	}
	if l.fault != nil {
		return l.fault
	}
	return nil
}

// refuse returns an error if a launch is not possible.
func (m *Machine) refuse(k *Kernel, grid, block Dim, shared int, params []byte) string {
	most := m.MaxShared
	if most == 0 {
		most = StaticShared
	}
	switch threads := block.X * block.Y * block.Z; {
	case block.X > MaxThreads || block.Y > MaxThreads || block.Z > 64 || threads > MaxThreads:
		return fmt.Sprintf("a block of %d×%d×%d threads, but a device takes 1024, and 64 in z", block.X, block.Y, block.Z)
	case threads > k.MaxThreads:
		return fmt.Sprintf("a block of %d threads, but the kernel was compiled for %d", threads, k.MaxThreads)
	case grid.X > MaxGridX || grid.Y > MaxGridYZ || grid.Z > MaxGridYZ:
		return fmt.Sprintf("a grid of %d×%d×%d blocks, but a device takes 2147483647×65535×65535", grid.X, grid.Y, grid.Z)
	case m.Races && int64(grid.X)*int64(grid.Y)*int64(grid.Z) > 1<<31:
		return fmt.Sprintf("a grid of %d×%d×%d blocks is more than the interpreter runs", grid.X, grid.Y, grid.Z)
	case shared < 0 || k.Shared+shared > most:
		return fmt.Sprintf("%d bytes of shared memory and %d of dynamic shared memory, but a block has %d", k.Shared, shared, most)
	case len(params) != k.params:
		return fmt.Sprintf("%d bytes of parameters, but it takes %d", len(params), k.params)
	}
	return ""
}

// launch is a launch in progress.
type launch struct {
	m           *Machine
	k           *Kernel
	grid, block Dim
	shared      int
	total       int64 // blocks
	limit       int64
	firstBlock  uint32
	template    []uint64 // initial values of a thread's slots
	params      *region

	atomics sync.Mutex // of global memory, where blocks run at the same time
	taken   atomic.Int64
	mu      sync.Mutex
	fault   *Fault
	at      int64 // the block of the fault
}

// prepare sets the values that are the same for all threads.
func (l *launch) prepare(params []byte) {
	k := l.k
	l.params = &region{size: uint64(len(params)), data: params, readOnly: true, name: "parameters"}
	l.template = append([]uint64(nil), k.template...)
	for _, p := range k.fixed {
		var b [8]byte
		copy(b[:], params[p.off:p.off+p.size])
		v := binary.LittleEndian.Uint64(b[:])
		if p.signed {
			v = uint64(int64(v)<<(64-8*p.size)>>(64-8*p.size)) & (^uint64(0) >> (64 - p.bits))
		}
		l.template[p.slot] = v
	}
	if len(k.module.globals) > 0 {
		at := l.m.Memory.load(k.module)
		for _, s := range k.symbols {
			l.template[s.slot] = at[s.v]
		}
	}
}

// work runs blocks until none are left or one has failed.
func (l *launch) work() {
	w := newWorker(l)
	var perm []int
	if s := l.m.Order.Shuffle; s != 0 && l.total <= 1<<20 {
		perm = rand.New(rand.NewPCG(s, uint64(l.total))).Perm(int(l.total))
	}
	for {
		i := l.taken.Add(1) - 1
		if i >= l.total {
			break
		}
		switch {
		case perm != nil:
			i = int64(perm[i])
		case l.m.Order.Descending:
			i = l.total - 1 - i
		}
		if f := w.run(i); f != nil {
			l.taken.Store(l.total)
			l.mu.Lock()
			if l.fault == nil || i < l.at {
				l.fault, l.at = f, i
			}
			l.mu.Unlock()
			break
		}
	}
	l.m.instructions.Add(w.instructions)
	l.m.loaded.Add(w.loaded)
	l.m.stored.Add(w.stored)
	l.m.giveWorker(w)
}
