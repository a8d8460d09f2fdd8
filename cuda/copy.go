package cuda

import "unsafe"

// Copies between ordinary host memory and the device go through pinned chunks, a ring of them for each
// stream: a copy waits for its own stream at most.
const (
	chunks    = 4
	chunkSize = 4 << 20
)

// stage is a stream's ring. It is made as the device is opened, because pinning memory later could wait for a
// collective that waits for this rank.
type stage struct {
	free chan *chunk // the one used longest ago comes first
}

type chunk struct {
	mem  *Pinned
	done *Event // when the device has read or written it
}

func (g *stage) fill(d *Device) error {
	g.free = make(chan *chunk, chunks)
	for range chunks {
		mem, err := d.Pin(chunkSize)
		if err != nil {
			return err
		}
		done, err := d.Event(false)
		if err != nil {
			return err
		}
		g.free <- &chunk{mem, done}
	}
	return nil
}

// take is a chunk that the device has done with.
func (g *stage) take() (*chunk, error) {
	c := <-g.free
	if err := c.done.Sync(); err != nil {
		g.free <- c
		return nil, err
	}
	return c, nil
}

// number is what may lie in a device's memory.
type number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

func bytesOf[T number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// CopyIn copies src to dst in the order of s. src may be changed when it returns; what was asked of s
// before need not be done by then.
func CopyIn[T number](s *Stream, dst Ptr, src []T) error { return s.copyIn(dst, bytesOf(src)) }

func (s *Stream) copyIn(dst Ptr, src []byte) error {
	for len(src) > 0 {
		n := min(len(src), chunkSize)
		if err := s.piece(dst, int64(n), func(b []byte) { copy(b, src) }); err != nil {
			return err
		}
		dst, src = dst+Ptr(n), src[n:]
	}
	return s.d.Err()
}

// piece copies n bytes, at most a chunk, which fill writes.
func (s *Stream) piece(dst Ptr, n int64, fill func(b []byte)) error {
	c, err := s.stage.take()
	if err != nil {
		return err
	}
	defer func() { s.stage.free <- c }() // also where fill panics
	return s.d.alive("copying to the device", func() {
		fill(c.mem.Bytes[:n])
		s.CopyFromPinned(dst, c.mem, 0, n)
		s.Record(c.done)
	})
}

// CopyInBy copies n bytes to dst in the order of s, which fill writes, piece by piece: those from at on, of
// a length that is a multiple of unit, as n is. The pieces are pinned memory, and one is copied while
// the next is written. fill does not wait for the device.
func CopyInBy(s *Stream, dst Ptr, n, unit int64, fill func(piece []byte, at int64)) error {
	step := chunkSize / unit * unit
	var own []byte
	if step == 0 { // units are larger than a chunk
		step, own = unit, make([]byte, unit)
	}
	for at := int64(0); at < n; at += step {
		if own != nil {
			fill(own, at)
			if err := s.copyIn(dst+Ptr(at), own); err != nil {
				return err
			}
			continue
		}
		size := min(step, n-at)
		if err := s.piece(dst+Ptr(at), size, func(b []byte) { fill(b, at) }); err != nil {
			return err
		}
	}
	return s.d.Err()
}

// CopyOut copies from src to dst, and waits for that and for what was asked of s before. The error is
// the device's failure.
func CopyOut[T number](s *Stream, dst []T, src Ptr) error { return s.copyOut(bytesOf(dst), src) }

func (s *Stream) copyOut(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return s.Sync()
	}
	for len(dst) > 0 {
		c, err := s.stage.take()
		if err != nil {
			return err
		}
		n := min(len(dst), chunkSize)
		const op = "copying from the device"
		err = s.d.alive(op, func() {
			s.CopyToPinned(c.mem, 0, src, int64(n))
			s.Record(c.done)
		})
		if err == nil {
			err = c.done.Sync()
		}
		if err == nil {
			err = s.d.alive(op, func() { copy(dst, c.mem.Bytes[:n]) })
		}
		s.stage.free <- c
		if err != nil {
			return err
		}
		dst, src = dst[n:], src+Ptr(n)
	}
	return nil
}

// CopyFromPinned copies n bytes of h from offset at on to dst. It returns at once: h stays as it is until
// the stream has passed.
func (s *Stream) CopyFromPinned(dst Ptr, h *Pinned, at, n int64) {
	if n == 0 {
		return
	}
	p := unsafe.Pointer(&h.Bytes[at : at+n][0])
	s.put(func(c *command) { c.kind, c.stream, c.dst, c.host, c.n = doCopyIn, s, dst, p, n })
}

// CopyToPinned copies n bytes from src to h, from offset at on. It returns at once: the bytes are there
// when the stream has passed.
func (s *Stream) CopyToPinned(h *Pinned, at int64, src Ptr, n int64) {
	if n == 0 {
		return
	}
	p := unsafe.Pointer(&h.Bytes[at : at+n][0])
	s.put(func(c *command) { c.kind, c.stream, c.host, c.src, c.n = doCopyOut, s, p, src, n })
}
