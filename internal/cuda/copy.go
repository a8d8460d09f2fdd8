package cuda

import "unsafe"

// Copies between ordinary host memory and the device go through pinned chunks, two rings of them
// for each stream: a copy waits only for its own stream. Small copies, such as a step's labels and
// ids, have many chunks, so that the host, which runs a step ahead of the device, need not wait for
// a chunk.
const (
	chunks     = 4
	chunkSize  = 4 << 20
	smallOnes  = 64
	smallChunk = 32 << 10
)

// stage holds a stream's rings. They are made when the device is opened, because pinning memory
// later could wait for a collective that waits for this rank.
type stage struct {
	free, small chan *chunk // in order of last use, the oldest first
}

type chunk struct {
	mem   *Pinned
	at, n int64  // the chunk's part of mem
	done  *Event // reached when the device has read or written the chunk
	home  chan *chunk
}

func (g *stage) fill(d *Device) (err error) {
	if g.free, err = ring(d, chunks, chunkSize); err == nil {
		g.small, err = ring(d, smallOnes, smallChunk)
	}
	return err
}

// ring holds count chunks of n bytes in one piece of memory.
func ring(d *Device, count, n int64) (chan *chunk, error) {
	mem, err := d.Pin(count * n)
	if err != nil {
		return nil, err
	}
	home := make(chan *chunk, count)
	for i := range count {
		done, err := d.Event(false)
		if err != nil {
			return nil, err
		}
		home <- &chunk{mem, i * n, n, done, home}
	}
	return home, nil
}

// take returns a chunk that the device no longer uses. It has n bytes, or a whole chunk if n is
// larger.
func (g *stage) take(n int) (*chunk, error) {
	home := g.free
	if n <= smallChunk {
		home = g.small
	}
	c := <-home
	if err := c.done.Sync(); err != nil {
		c.put()
		return nil, err
	}
	return c, nil
}

func (c *chunk) put() { c.home <- c }

// bytes returns the first n bytes of the chunk.
func (c *chunk) bytes(n int64) []byte { return c.mem.Bytes[c.at : c.at+n] }

// number is an element type of device memory.
type number interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

func bytesOf[T number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// CopyIn copies src to dst in the order of s. When it returns, src may be changed, but earlier work
// on s need not be complete.
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

// piece copies n bytes, at most a chunk; fill writes them.
func (s *Stream) piece(dst Ptr, n int64, fill func(b []byte)) error {
	c, err := s.stage.take(int(n))
	if err != nil {
		return err
	}
	defer c.put() // also where fill panics
	return s.d.alive("copying to the device", func() {
		fill(c.bytes(n))
		s.CopyFromPinned(dst, c.mem, c.at, n)
		s.Record(c.done)
	})
}

// CopyInBy copies n bytes to dst in the order of s. fill writes them piece by piece, each at offset
// at with a length that is a multiple of unit; n must be such a multiple too. The pieces are pinned
// memory, and one is copied while the next is written. fill must not wait for the device.
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

// CopyOut copies from src to dst, and waits for the copy and all earlier work on s. The error is
// the device's failure.
func CopyOut[T number](s *Stream, dst []T, src Ptr) error { return s.copyOut(bytesOf(dst), src) }

func (s *Stream) copyOut(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return s.Sync()
	}
	s.d.trace.line("fetch %s %d", s.Name, len(dst))
	for len(dst) > 0 {
		c, err := s.stage.take(len(dst))
		if err != nil {
			return err
		}
		n := min(len(dst), int(c.n))
		const op = "copying from the device"
		err = s.d.alive(op, func() {
			s.CopyToPinned(c.mem, c.at, src, int64(n))
			s.Record(c.done)
		})
		if err == nil {
			err = c.done.Sync()
		}
		if err == nil {
			err = s.d.alive(op, func() { copy(dst, c.bytes(int64(n))) })
		}
		c.put()
		if err != nil {
			return err
		}
		dst, src = dst[n:], src+Ptr(n)
	}
	return nil
}

// CopyFromPinned copies n bytes of h from offset at on to dst. It returns at once; h must not
// change until the stream has completed the copy.
func (s *Stream) CopyFromPinned(dst Ptr, h *Pinned, at, n int64) {
	if n == 0 {
		return
	}
	p := unsafe.Pointer(&h.Bytes[at : at+n][0])
	s.put(func(c *command) { c.kind, c.stream, c.dst, c.host, c.n = doCopyIn, s, dst, p, n })
}

// CopyToPinned copies n bytes from src to h, from offset at on. It returns at once; the bytes are
// valid when the stream has completed the copy.
func (s *Stream) CopyToPinned(h *Pinned, at int64, src Ptr, n int64) {
	if n == 0 {
		return
	}
	p := unsafe.Pointer(&h.Bytes[at : at+n][0])
	s.put(func(c *command) { c.kind, c.stream, c.host, c.src, c.n = doCopyOut, s, p, src, n })
}
