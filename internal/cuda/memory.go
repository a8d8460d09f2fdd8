package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/graphnb/graphnb/internal/cuda/sizes"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Sizes of the cache; see package sizes.
const (
	granule      = sizes.Granule
	smallMax     = sizes.SmallMax
	smallSegment = sizes.SmallSegment
	largeSegment = sizes.LargeSegment
	largeMax     = sizes.LargeMax
	largeGranule = sizes.LargeGranule
)

// Buffer is a piece of device memory. It belongs to the caller of Alloc until Free.
type Buffer struct {
	Ptr   Ptr
	Bytes int64

	b      *block
	stream *Stream
	use    Use
	others []*Stream // other streams that use it
}

// block is a piece of a segment, in use or free; those of a segment are linked in order of address.
type block struct {
	ptr        Ptr
	size       int64
	seg        *segment
	prev, next *block
	free       bool
}

// segment is memory that the driver allocated in one call. All of it belongs to one stream.
type segment struct {
	ptr   Ptr
	size  int64
	pool  *pool
	first *block
}

// pool holds the free blocks of a stream, either the small or the large ones, by size and then
// address.
type pool struct {
	free []*block
}

// memory is the cache of a device's memory.
type memory struct {
	d     *Device
	limit int64

	mu       sync.Mutex
	reserved int64 // in segments
	held     map[Use]int64
	most     map[Use]int64 // the largest of each use so far
	pools    map[poolKey]*pool
	segments map[*segment]bool
	waiting  []waitingFree
	calls    int64 // allocations by the driver
}

type poolKey struct {
	s     *Stream
	small bool
}

// waitingFree is a freed buffer that other streams may still use.
type waitingFree struct {
	b      *Buffer
	events []*Event
}

func (m *memory) init(d *Device) {
	m.d = d
	m.held, m.most = map[Use]int64{}, map[Use]int64{}
	m.pools = map[poolKey]*pool{}
	m.segments = map[*segment]bool{}
}

// Alloc is Compute.Alloc.
func (d *Device) Alloc(use Use, bytes int64) (*Buffer, error) { return d.Compute.Alloc(use, bytes) }

// Alloc allocates device memory with any content, aligned to 512 bytes, for work on this stream; 0
// bytes are allowed. If memory runs out, the error says how much each use holds. It costs a look-up
// if memory was freed before, otherwise a driver call of tenths of a millisecond.
func (s *Stream) Alloc(use Use, bytes int64) (*Buffer, error) {
	if bytes < 0 {
		return nil, s.d.fault("allocating", InvalidValue, fmt.Sprintf("%d bytes", bytes))
	}
	if err := s.d.Err(); err != nil {
		return nil, err
	}
	m := &s.d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	size := sizes.Round(bytes)
	if m.d.opts.Exact {
		size = max(bytes, 1)
	}
	p, wide := m.pool(s, size), m.rounded(use, size)
	b := p.take(size)
	if b == nil {
		var err error
		if b, err = m.more(p, use, wide); wide > size && errors.Is(err, OutOfMemory) {
			b, err = m.more(p, use, size)
		}
		if err != nil {
			return nil, err
		}
	}
	if !m.d.opts.Exact {
		b.split(p, wide)
	}
	m.held[use] += b.size
	m.most[use] = max(m.most[use], m.held[use])
	return &Buffer{Ptr: b.ptr, Bytes: bytes, b: b, stream: s, use: use}, nil
}

// rounded returns the size to allocate: [sizes.Batch], but permanent buffers are not rounded.
func (m *memory) rounded(use Use, size int64) int64 {
	if m.d.opts.Exact || use == Params || use == Graph || use == Features {
		return size
	}
	return sizes.Batch(size)
}

// Free frees the buffer, in the order of its stream and of the streams of UsedOn: earlier work on
// them may still use it. Freeing twice, or freeing nil, does nothing.
func (b *Buffer) Free() {
	if b == nil || b.b == nil {
		return
	}
	m := &b.stream.d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.b == nil {
		return
	}
	if len(b.others) == 0 {
		m.giveBack(b)
		return
	}
	w := waitingFree{b: &Buffer{b: b.b, stream: b.stream, use: b.use}}
	for _, s := range b.others {
		e, err := s.d.event()
		if err != nil {
			return // the device has failed; closing it frees everything
		}
		s.Record(e)
		w.events = append(w.events, e)
	}
	m.waiting = append(m.waiting, w)
	b.b = nil
}

// UsedOn declares that work on another stream uses the buffer, so that Free waits for it. The
// caller must order that work and the buffer's own stream by events.
func (b *Buffer) UsedOn(s *Stream) {
	if s != b.stream && !slices.Contains(b.others, s) {
		b.others = append(b.others, s)
	}
}

// pool returns the pool for a size on a stream.
func (m *memory) pool(s *Stream, size int64) *pool {
	k := poolKey{s, size <= smallMax}
	p := m.pools[k]
	if p == nil {
		p = &pool{}
		m.pools[k] = p
	}
	return p
}

func (m *memory) giveBack(b *Buffer) {
	m.held[b.use] -= b.b.size
	b.b.seg.pool.put(b.b)
	b.b = nil
	if m.d.opts.Exact {
		_ = m.trim() // the device keeps the failure
	}
}

// more returns a free block of at least size bytes if the pool has none. It tries in turn: memory
// that another stream no longer uses, a new segment, memory that other streams will release, and a
// new segment in place of cached ones.
func (m *memory) more(p *pool, use Use, size int64) (*block, error) {
	if err := m.reap(false); err != nil {
		return nil, err
	}
	if b := p.take(size); b != nil {
		return b, nil
	}
	b, err := m.grow(p, size)
	if b != nil || err != nil {
		return b, err
	}
	if err := m.reap(true); err != nil {
		return nil, err
	}
	if b := p.take(size); b != nil {
		return b, nil
	}
	if err := m.trim(); err != nil {
		return nil, err
	}
	if b, err = m.grow(p, size); b != nil || err != nil {
		return b, err
	}
	return nil, m.full(use, size)
}

// reap frees buffers that waited for other streams; if all is set, it waits for these streams.
func (m *memory) reap(all bool) error {
	keep := m.waiting[:0]
	defer func() { m.waiting = keep }()
	for i, w := range m.waiting {
		for len(w.events) > 0 {
			e := w.events[0]
			done, err := true, error(nil)
			if all {
				err = e.Sync()
			} else {
				done, err = e.Done()
			}
			if err != nil {
				keep = append(keep, m.waiting[i:]...)
				return err
			}
			if !done {
				break
			}
			m.d.reuse(e)
			w.events = w.events[1:]
		}
		if len(w.events) > 0 {
			keep = append(keep, w)
			continue
		}
		m.giveBack(w.b)
	}
	return nil
}

// grow allocates a segment with room for size bytes, nil if the limit or the device has no room for
// it.
func (m *memory) grow(p *pool, size int64) (*block, error) {
	for _, n := range m.segmentSizes(size) {
		if m.reserved+n > m.limit {
			continue
		}
		var ptr Ptr
		err := m.d.do("allocating", func() (err error) {
			ptr, err = m.d.drv.alloc(n)
			return err
		})
		if errors.Is(err, OutOfMemory) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m.calls++
		m.d.trace.line("memory taking %s", phrase.Bytes(n))
		m.reserved += n
		seg := &segment{ptr: ptr, size: n, pool: p}
		seg.first = &block{ptr: ptr, size: n, seg: seg}
		m.segments[seg] = true
		return seg.first, nil
	}
	return nil, nil
}

// segmentSizes returns the sizes to try for a segment with a block of size bytes, the best first.
func (m *memory) segmentSizes(size int64) []int64 {
	up := (size + largeGranule - 1) / largeGranule * largeGranule
	switch {
	case m.d.opts.Exact:
		return []int64{size}
	case size <= smallMax:
		return []int64{smallSegment, size}
	case size < largeMax:
		return []int64{largeSegment, up, size}
	}
	return []int64{up, size}
}

// trim returns the segments without a block in use to the driver.
func (m *memory) trim() error {
	var empty []*segment
	for seg := range m.segments {
		if seg.first.free && seg.first.next == nil {
			empty = append(empty, seg)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	return m.d.do("freeing cached memory", func() error {
		for _, seg := range empty {
			if err := m.d.drv.free(seg.ptr); err != nil {
				return err
			}
			m.d.trace.line("memory giving back %s", phrase.Bytes(seg.size))
			seg.pool.remove(seg.first)
			delete(m.segments, seg)
			m.reserved -= seg.size
		}
		return nil
	})
}

// full returns the error for missing memory: the requested size, what holds how much, and what
// helps.
func (m *memory) full(use Use, size int64) error {
	var held []string
	most := use
	for _, u := range slices.SortedFunc(maps.Keys(m.held), func(a, b Use) int {
		return cmp.Or(-cmp.Compare(m.held[a], m.held[b]), cmp.Compare(a, b))
	}) {
		if n := m.held[u]; n > 0 {
			if len(held) == 0 {
				most = u
			}
			held = append(held, string(u)+" "+phrase.Bytes(n))
		}
	}
	what := "nothing is held"
	if len(held) > 0 {
		what = "held are " + strings.Join(held, ", ")
	}
	help := use.hint()
	if h := most.hint(); h != help {
		help += ", or " + h
	}
	free := "unknown"
	if err := m.d.do("asking for free memory", func() error {
		n, _, err := m.d.drv.memInfo()
		free = phrase.Bytes(n)
		return err
	}); err != nil {
		return err
	}
	return m.d.fault("allocating "+phrase.Bytes(size)+" for "+string(use), OutOfMemory,
		fmt.Sprintf("%s, the limit is %s, and the device has %s free; %s", what, phrase.Bytes(m.limit), free, help))
}

// Memory is the device memory held by the buffers of this process.
type Memory struct {
	Limit    int64
	Reserved int64 // allocated from the driver: bytes in use and cached
	Held     map[Use]int64
	Most     map[Use]int64 // the largest of each use so far
	Calls    int64         // allocations by the driver so far; constant in steady state
}

// Memory returns the memory held now.
func (d *Device) Memory() Memory {
	m := &d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	return Memory{m.limit, m.reserved, maps.Clone(m.held), maps.Clone(m.most), m.calls}
}

// release returns every segment to the driver. The device's goroutine calls it at the end.
func (m *memory) release(drv driver) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for use, n := range m.most {
		m.d.trace.line("memory most %d %s", n, use)
	}
	var first error
	for seg := range m.segments {
		if err := drv.free(seg.ptr); err != nil && first == nil {
			first = err
		}
	}
	clear(m.segments)
	clear(m.pools)
	m.reserved = 0
	return first
}
