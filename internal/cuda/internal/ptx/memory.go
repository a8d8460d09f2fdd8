package ptx

import (
	"fmt"
	"sort"
	"sync"
	"unsafe"
)

// Memory is the address space of one device. Its methods are safe for concurrent use, but must not
// be called while a launch runs on it.
type Memory struct {
	mu     sync.Mutex
	next   uint64
	used   int64
	limit  int64
	live   []*region // ascending by base
	freed  []*region
	loaded map[*Module]map[*variable]uint64
}

// region is one allocation, or the memory of a block or thread, which is one region each.
type region struct {
	base, size uint64
	data       []byte
	init       []byte // 1 for each written byte; nil if all bytes are written
	name       string // for errors
	readOnly   bool
	shadow     shadow
}

const (
	// apart is the size of the gap between allocations.
	apart = 4096
	// deviceRoom is the number of addresses of a device.
	deviceRoom = 1 << 42
	// deviceBase is above all host addresses, so that a host pointer passed by mistake is detected
	// as invalid.
	deviceBase = 1 << 48
	// The windows of generic addresses.
	sharedWindow = 1 << 60
	localWindow  = 1 << 61
	// keepFreed is the number of freed allocations that are remembered for errors.
	keepFreed = 1 << 12
)

// NewMemory returns the empty memory of device number ordinal, of limit bytes.
func NewMemory(ordinal int, limit int64) *Memory {
	return &Memory{next: deviceBase + uint64(ordinal)*deviceRoom, limit: limit, loaded: map[*Module]map[*variable]uint64{}}
}

// Alloc reserves n bytes, which count as unwritten. The address is a multiple of 256. It fails if
// the limit would be exceeded; n is at least 1.
func (m *Memory) Alloc(n int64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 1 {
		return 0, fmt.Errorf("ptx: an allocation of %d bytes", n)
	}
	if n > m.limit-m.used {
		return 0, fmt.Errorf("ptx: out of memory: %d bytes asked for, %d of %d are in use", n, m.used, m.limit)
	}
	r := &region{base: m.next, size: uint64(n), data: make([]byte, n), init: make([]byte, n)}
	m.next = (m.next + uint64(n) + apart + 255) &^ 255
	m.used += n
	m.live = append(m.live, r) // addresses ascend, and mapped ones are below
	return r.base, nil
}

// Free frees an allocation. Its addresses are not used again.
func (m *Memory) Free(addr uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.index(addr)
	if i < 0 || m.live[i].base != addr || m.live[i].init == nil {
		return fmt.Errorf("ptx: free of %#x, which no allocation begins with", addr)
	}
	m.used -= int64(m.live[i].size)
	m.drop(i)
	return nil
}

func (m *Memory) drop(i int) {
	r := m.live[i]
	m.live = append(m.live[:i], m.live[i+1:]...)
	if m.freed = append(m.freed, &region{base: r.base, size: r.size}); len(m.freed) > keepFreed {
		m.freed = m.freed[1:]
	}
}

// Map makes host memory visible at its own address, which it returns. All of it counts as written.
// The memory must not move until Unmap.
func (m *Memory) Map(b []byte, readOnly bool) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(b) == 0 {
		return 0, fmt.Errorf("ptx: no bytes to map")
	}
	base := uint64(uintptr(unsafe.Pointer(&b[0])))
	at := sort.Search(len(m.live), func(i int) bool { return m.live[i].base > base })
	if at > 0 && base-m.live[at-1].base < m.live[at-1].size || at < len(m.live) && m.live[at].base-base < uint64(len(b)) {
		return 0, fmt.Errorf("ptx: the host's memory at %#x is mapped already", base)
	}
	m.live = append(m.live, nil)
	copy(m.live[at+1:], m.live[at:])
	m.live[at] = &region{base: base, size: uint64(len(b)), data: b, readOnly: readOnly, name: "host memory"}
	return base, nil
}

// Unmap undoes Map.
func (m *Memory) Unmap(addr uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.index(addr)
	if i < 0 || m.live[i].base != addr || m.live[i].init != nil {
		return fmt.Errorf("ptx: unmap of %#x, where no memory of the host is mapped", addr)
	}
	m.drop(i)
	return nil
}

// index returns the allocation that holds an address, or -1.
func (m *Memory) index(addr uint64) int {
	i := sort.Search(len(m.live), func(i int) bool { return m.live[i].base > addr }) - 1
	if i >= 0 && addr-m.live[i].base < m.live[i].size {
		return i
	}
	return -1
}

// span returns n bytes at addr, for access by the host.
func (m *Memory) span(addr uint64, n int64) (r *region, off uint64, err error) {
	i := m.index(addr)
	if i < 0 {
		return nil, 0, fmt.Errorf("ptx: %d bytes at %#x: %s", n, addr, m.nowhere(addr))
	}
	r = m.live[i]
	if off = addr - r.base; uint64(n) > r.size-off {
		return nil, 0, fmt.Errorf("ptx: %d bytes at %#x, of which %d are in the allocation of %d bytes", n, addr, r.size-off, r.size)
	}
	return r, off, nil
}

// nowhere describes an address outside of all allocations.
func (m *Memory) nowhere(addr uint64) string {
	for i := len(m.freed) - 1; i >= 0; i-- {
		if r := m.freed[i]; addr-r.base < r.size {
			return fmt.Sprintf("byte %d of an allocation of %d bytes that was freed", addr-r.base, r.size)
		}
	}
	if addr < 4096 {
		return "a nil pointer"
	}
	if i := sort.Search(len(m.live), func(i int) bool { return m.live[i].base > addr }); i > 0 {
		if r := m.live[i-1]; addr-r.base-r.size < apart {
			return fmt.Sprintf("%d bytes past the end of the allocation of %d bytes at %#x", addr-r.base-r.size, r.size, r.base)
		}
	}
	if i := sort.Search(len(m.live), func(i int) bool { return m.live[i].base > addr }); i < len(m.live) {
		if r := m.live[i]; r.base-addr < apart {
			return fmt.Sprintf("%d bytes before the allocation of %d bytes at %#x", r.base-addr, r.size, r.base)
		}
	}
	return "in no allocation of this device"
}

// Write copies host bytes to addr.
func (m *Memory) Write(addr uint64, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, off, err := m.span(addr, int64(len(b)))
	if err != nil {
		return err
	}
	copy(r.data[off:], b)
	r.written(off, uint64(len(b)))
	return nil
}

// Read copies bytes at addr to the host. Unwritten bytes are an error, but b is filled
// nevertheless.
func (m *Memory) Read(addr uint64, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, off, err := m.span(addr, int64(len(b)))
	if err != nil {
		return err
	}
	copy(b, r.data[off:])
	if i := r.unwritten(off, uint64(len(b))); i >= 0 {
		return fmt.Errorf("ptx: %d bytes are copied from %#x, but byte %d of them was never written", len(b), addr, i)
	}
	return nil
}

// Copy copies n bytes from src to dst, which may overlap; unwritten bytes stay unwritten.
func (m *Memory) Copy(dst, src uint64, n int64) error { return m.CopyFrom(dst, m, src, n) }

// CopyFrom copies from the memory of another device.
func (m *Memory) CopyFrom(dst uint64, from *Memory, src uint64, n int64) error {
	if n == 0 {
		return nil
	}
	from.mu.Lock()
	s, so, err := from.span(src, n)
	from.mu.Unlock()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, do, err := m.span(dst, n)
	if err != nil {
		return err
	}
	copy(d.data[do:do+uint64(n)], s.data[so:])
	switch {
	case d.init == nil:
	case s.init == nil:
		d.written(do, uint64(n))
	default:
		copy(d.init[do:do+uint64(n)], s.init[so:])
	}
	return nil
}

// Fill writes the pattern repeatedly to n bytes at addr; n is a multiple of its length.
func (m *Memory) Fill(addr uint64, pattern []byte, n int64) error {
	if n == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, off, err := m.span(addr, n)
	if err != nil {
		return err
	}
	if len(pattern) == 0 || n%int64(len(pattern)) != 0 {
		return fmt.Errorf("ptx: a fill of %d bytes with a pattern of %d", n, len(pattern))
	}
	for at := off; at < off+uint64(n); at += uint64(len(pattern)) {
		copy(r.data[at:], pattern)
	}
	r.written(off, uint64(n))
	return nil
}

// Bytes returns the memory itself, n bytes at addr, which count as written from then on. It is
// valid until the allocation is freed.
func (m *Memory) Bytes(addr uint64, n int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, off, err := m.span(addr, n)
	if err != nil {
		return nil, err
	}
	r.written(off, uint64(n))
	return r.data[off : off+uint64(n) : off+uint64(n)], nil
}

// Forget marks n bytes at addr as unwritten, as after an allocation: for allocators that reuse
// memory.
func (m *Memory) Forget(addr uint64, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, off, err := m.span(addr, n)
	if err == nil && r.init != nil {
		clear(r.init[off : off+uint64(n)])
	}
	return err
}

// Used returns the number of allocated bytes.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// Limit returns the size of the memory.
func (m *Memory) Limit() int64 { return m.limit }

// Range returns the allocation that holds addr; ok is false if none does.
func (m *Memory) Range(addr uint64) (base uint64, size int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(addr); i >= 0 {
		return m.live[i].base, int64(m.live[i].size), true
	}
	return 0, 0, false
}

// Live returns the number of allocations that have not been freed; mapped memory does not count.
func (m *Memory) Live() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.live {
		if r.init != nil && r.name == "" {
			n++
		}
	}
	return n
}

// Global returns the address of a module's variable in this memory. The module is loaded at its
// first use.
func (m *Memory) Global(mod *Module, name string) (addr uint64, size int64, err error) {
	for v, at := range m.load(mod) {
		if v.name == name {
			return at, int64(v.size), nil
		}
	}
	return 0, 0, fmt.Errorf("ptx: %s has no variable %q", mod.Name, name)
}

// load allocates the module's variables.
func (m *Memory) load(mod *Module) map[*variable]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.loaded[mod]; ok {
		return at
	}
	all := map[*variable]uint64{}
	for _, v := range mod.globals {
		if v.space == ".shared" {
			continue
		}
		r := &region{base: m.next, size: uint64(v.size), data: make([]byte, v.size), init: make([]byte, v.size), name: v.name, readOnly: v.space == ".const"}
		copy(r.data, v.init)
		r.written(0, r.size) // variables without an initial value are zero
		m.next = (m.next + r.size + apart + 255) &^ 255
		m.live = append(m.live, r)
		all[v] = r.base
	}
	m.loaded[mod] = all
	return all
}

func (r *region) written(off, n uint64) {
	if r.init != nil {
		s := r.init[off : off+n]
		for i := range s {
			s[i] = 1
		}
	}
}

// unwritten returns the offset of the first unwritten byte of a range, or -1.
func (r *region) unwritten(off, n uint64) int {
	if r.init != nil {
		for i, b := range r.init[off : off+n] {
			if b == 0 {
				return i
			}
		}
	}
	return -1
}
