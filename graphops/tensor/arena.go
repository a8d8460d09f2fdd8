package tensor

import (
	"math/bits"

	"github.com/graphnb/graphnb/graphops/ops"
)

// An arena lends buffers of a backend and takes all of them back at once. Sizes are rounded up to a
// quarter of a power of two, so that batches of similar size reuse each other's memory: with fresh
// pages a GNN's batch takes up to 1.8 times as long.
type arena struct {
	alloc func(n int) ops.Buffer
	drop  func(ops.Buffer)
	free  map[int][]*slab // by size, the most recently used last
	lent  []*slab
	pass  int
	left  int64 // bytes of dropped slabs
}

// KeepPasses is the number of passes after which an unused buffer is freed, so that an evaluation's
// large buffers are freed during training.
const KeepPasses = 64

type slab struct {
	a    *arena
	mem  ops.Buffer
	at   int   // index in a.lent, -1 while free
	last int   // pass of the last use
	used int   // the most elements lent; memory behind them has not been written to
	of   *slab // the slab that this one is a part of, or nil
	more int   // parts that are lent besides the slab itself
}

// buf is the slab's first n elements.
func (s *slab) buf(n int) ops.Buffer { return s.mem.Slice(0, n) }

// sizeClass rounds n up to m·2^e with m in 4..7, and to at least 64.
func sizeClass(n int) int {
	if n <= 64 {
		return 64
	}
	e := bits.Len(uint(n-1)) - 3
	return ((n-1)>>e + 1) << e
}

func nextClass(c int) int { return sizeClass(c + 1) }

// lastClass is the class before c, or 0.
func lastClass(c int) int {
	if c <= 64 {
		return 0
	}
	return c - 1<<(bits.Len(uint(c-1))-3)
}

func (a *arena) get(n int) *slab {
	class := sizeClass(n)
	// A free buffer up to half as large again is acceptable and preferred. Otherwise a free buffer
	// that is slightly too small is replaced: batches that alternate between two classes would else
	// keep both.
	s := a.takeFirst(nextClass(nextClass(class)), nextClass(class), class)
	if s == nil {
		if small := a.takeFirst(lastClass(class), lastClass(lastClass(class))); small != nil {
			a.dropSlab(small)
		}
		s = &slab{a: a, mem: a.alloc(class)}
	}
	s.used = max(s.used, n)
	s.at = len(a.lent)
	a.lent = append(a.lent, s)
	return s
}

// part returns elements [at, at+n) as a slab of its own. The memory is free once the slab and its parts were put.
func (s *slab) part(at, n int) *slab {
	whole := s
	if s.of != nil {
		whole = s.of
	}
	whole.more++
	return &slab{mem: s.mem.Slice(at, at+n), of: whole}
}

// held returns the bytes of the slabs that passes have written to.
func (a *arena) held() (bytes int64) {
	for _, s := range a.lent {
		bytes += s.held()
	}
	for _, l := range a.free {
		for _, s := range l {
			bytes += s.held()
		}
	}
	return bytes
}

// largePage is the size of the pages of which large buffers consist; see mapped.HugePages.
const largePage = 2 << 20

func (s *slab) held() int64 {
	used, all := 4*int64(s.used), 4*int64(s.mem.N)
	if all >= 2*largePage {
		return min((used+largePage-1)/largePage*largePage, all)
	}
	return used
}

func (a *arena) dropSlab(s *slab) {
	a.left += s.held()
	a.drop(s.mem)
}

// takeFirst returns a free slab of the first class that has one, or nil.
func (a *arena) takeFirst(classes ...int) *slab {
	for _, c := range classes {
		if s := a.take(c); s != nil {
			return s
		}
	}
	return nil
}

func (a *arena) take(class int) *slab {
	l := a.free[class]
	if len(l) == 0 {
		return nil
	}
	s := l[len(l)-1]
	l[len(l)-1] = nil
	a.free[class] = l[:len(l)-1]
	return s
}

// put takes one slab back before the pass ends.
func (a *arena) put(s *slab) {
	if s.of != nil {
		s = s.of
	}
	if s.more > 0 {
		s.more--
		return
	}
	end := len(a.lent) - 1
	a.lent[s.at] = a.lent[end]
	a.lent[s.at].at = s.at
	a.lent[end] = nil
	a.lent = a.lent[:end]
	a.keep(s)
}

func (a *arena) keep(s *slab) {
	s.at, s.last, s.more = -1, a.pass, 0
	if a.free == nil {
		a.free = map[int][]*slab{}
	}
	a.free[s.mem.N] = append(a.free[s.mem.N], s)
}

// reset takes all slabs back and frees those unused for long.
func (a *arena) reset() {
	for i, s := range a.lent {
		a.keep(s)
		a.lent[i] = nil
	}
	a.lent = a.lent[:0]
	a.pass++
	for class, l := range a.free {
		old := 0
		for old < len(l) && a.pass-l[old].last > KeepPasses {
			a.dropSlab(l[old])
			old++
		}
		if old > 0 {
			a.free[class] = append(l[:0:0], l[old:]...)
		}
	}
}

// close frees all slabs.
func (a *arena) close() {
	a.reset()
	for _, l := range a.free {
		for _, s := range l {
			a.drop(s.mem)
		}
	}
	a.free = nil
}
