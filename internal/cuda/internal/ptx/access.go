package ptx

import (
	"encoding/binary"
	"fmt"
)

// global returns n bytes of global memory, or of the memory of a generic address, for an access
// aligned to n.
func (t *thread) global(in *instr, n uint64, write, strong bool) []byte {
	addr := t.r[in.a] + in.imm
	r := t.w.last[in.access]
	off := addr - r.base
	if off >= r.size || r.size-off < n {
		r, off = t.find(in, addr, n, write)
	}
	if addr&(n-1) != 0 {
		t.misaligned(in, addr, n, write)
	}
	if write {
		t.w.stored += int64(n)
	} else {
		t.w.loaded += int64(n)
	}
	return t.bytes(in, r, off, n, write, strong)
}

// within returns n bytes of a memory whose addresses begin at 0.
func (t *thread) within(in *instr, r *region, n uint64, write, strong bool) []byte {
	off := t.r[in.a] + in.imm
	if off >= r.size || r.size-off < n {
		t.outside(in, r, off, n, write)
	}
	if off&(n-1) != 0 {
		t.misaligned(in, off, n, write)
	}
	return t.bytes(in, r, off, n, write, strong)
}

// bytes makes the checks for all memory spaces: the bytes read were written, and no other thread
// races for them.
func (t *thread) bytes(in *instr, r *region, off, n uint64, write, strong bool) []byte {
	if r.init != nil {
		s := r.init[off : off+n]
		if write {
			mark(s)
		} else if !marked(s) {
			t.fail(in, Uninitialised, r.base+off, "the thread reads %d bytes at %#x, %s, but byte %d of them was never written", n, r.base+off, r.place(off), r.unwritten(off, n))
		}
	}
	if write && r.readOnly {
		t.fail(in, ReadOnly, r.base+off, "the thread writes %d bytes at %#x, %s, which is for reading only", n, r.base+off, r.place(off))
	}
	if t.w.races && r != t.local && r != t.w.l.params {
		t.touch(in, r, off, n, write, strong)
	}
	return r.data[off : off+n : off+n]
}

const marks = 0x0101010101010101

// mark records that bytes were written; marked reports whether all were.
func mark(s []byte) {
	switch len(s) {
	case 4:
		binary.LittleEndian.PutUint32(s, marks&(1<<32-1))
	case 8:
		binary.LittleEndian.PutUint64(s, marks)
	default:
		for i := range s {
			s[i] = 1
		}
	}
}

func marked(s []byte) bool {
	switch len(s) {
	case 4:
		return binary.LittleEndian.Uint32(s) == marks&(1<<32-1)
	case 8:
		return binary.LittleEndian.Uint64(s) == marks
	}
	for _, b := range s {
		if b == 0 {
			return false
		}
	}
	return true
}

// place describes the position of an offset in a region.
func (r *region) place(off uint64) string {
	name := r.name
	if name == "" {
		name = "an allocation"
	}
	return fmt.Sprintf("byte %d of %s of %d bytes", off, name, r.size)
}

// find is the slow path of global.
func (t *thread) find(in *instr, addr, n uint64, write bool) (*region, uint64) {
	switch {
	case addr >= localWindow && t.local != nil:
		return t.window(in, t.local, addr-localWindow, n, write)
	case addr >= sharedWindow && addr < localWindow:
		return t.window(in, t.w.shared, addr-sharedWindow, n, write)
	}
	m := t.w.l.m.Memory
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.index(addr)
	if i < 0 {
		what := m.nowhere(addr)
		kind := OutOfBounds
		for _, r := range m.freed {
			if addr-r.base < r.size {
				kind = Freed
			}
		}
		t.fail(in, kind, addr, "the thread %s %d bytes at %#x, %s", verb(write), n, addr, what)
	}
	r := m.live[i]
	off := addr - r.base
	if r.size-off < n {
		t.fail(in, OutOfBounds, addr, "the thread %s %d bytes at %#x, but only %d of them are in the allocation of %d bytes at %#x", verb(write), n, addr, r.size-off, r.size, r.base)
	}
	t.w.last[in.access] = r
	return r, off
}

func (t *thread) window(in *instr, r *region, off, n uint64, write bool) (*region, uint64) {
	if off >= r.size || r.size-off < n {
		t.outside(in, r, off, n, write)
	}
	return r, off
}

func (t *thread) outside(in *instr, r *region, off, n uint64, write bool) {
	t.fail(in, OutOfBounds, off, "the thread %s %d bytes at offset %d of the %s, which has %d bytes", verb(write), n, int64(off), r.name, r.size)
}

func (t *thread) misaligned(in *instr, addr, n uint64, write bool) {
	t.fail(in, Misaligned, addr, "the thread %s %d bytes at %#x, which is not a multiple of %d", verb(write), n, addr, n)
}

func verb(write bool) string {
	if write {
		return "writes"
	}
	return "reads"
}

// Specialised functions for the most frequent accesses, and one for all others.

func loadGlobal32(t *thread, in *instr) {
	t.r[in.d] = uint64(binary.LittleEndian.Uint32(t.global(in, 4, false, false)))
}

func loadGlobal64(t *thread, in *instr) {
	t.r[in.d] = binary.LittleEndian.Uint64(t.global(in, 8, false, false))
}

func storeGlobal32(t *thread, in *instr) {
	binary.LittleEndian.PutUint32(t.global(in, 4, true, false), uint32(t.r[in.b]))
}

func storeGlobal64(t *thread, in *instr) {
	binary.LittleEndian.PutUint64(t.global(in, 8, true, false), t.r[in.b])
}

func loadShared32(t *thread, in *instr) {
	t.r[in.d] = uint64(binary.LittleEndian.Uint32(t.within(in, t.w.shared, 4, false, false)))
}

func storeShared32(t *thread, in *instr) {
	binary.LittleEndian.PutUint32(t.within(in, t.w.shared, 4, true, false), uint32(t.r[in.b]))
}

// span returns the bytes of any access; in.sub is the space.
func (t *thread) span(in *instr, n uint64, write bool) []byte {
	strong := in.x.strong
	switch in.sub {
	case 's':
		return t.within(in, t.w.shared, n, write, strong)
	case 'l':
		return t.within(in, t.local, n, write, strong)
	case 'p':
		return t.within(in, t.w.l.params, n, write, strong)
	}
	return t.global(in, n, write, strong)
}

func load(t *thread, in *instr) {
	x := in.x
	size := int(x.size)
	b := t.span(in, uint64(size*len(x.regs)), false)
	for i, d := range x.regs {
		v := word(b[i*size:], size)
		if x.signed {
			v = uint64(int64(v)<<(64-8*size)>>(64-8*size)) & (^uint64(0) >> (64 - x.bits))
		}
		t.r[d] = v
	}
}

func store(t *thread, in *instr) {
	x := in.x
	size := int(x.size)
	b := t.span(in, uint64(size*len(x.regs)), true)
	for i, s := range x.regs {
		putWord(b[i*size:], size, t.r[s])
	}
}

func word(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func putWord(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}
