package collective

import "encoding/binary"

// AllToAll: a mailbox begins with the ends of this rank's messages, one u64 for each rank. The
// messages follow there if all fit into every mailbox, with one barrier. Otherwise they lie rank by
// rank in a region that is kept and grows, with two. A rank's message to itself is only copied.
func (c *shm) AllToAll(s Site, send [][]byte) (_ [][]byte, err error) {
	if err := checkSend(s, send, c.world); err != nil {
		return nil, err
	}
	if err := c.begin(s); err != nil {
		return nil, err
	}
	defer c.end(&err)
	next := c.seq & 1
	mail, size := c.mail(c.rank, next), 0
	for to, b := range send {
		if to != c.rank {
			size += len(b)
		}
		binary.LittleEndian.PutUint64(mail[8*to:], uint64(size))
	}
	data := 8 * c.world
	if data+size <= mailSize {
		c.pack(mail[data:], send)
	}
	binary.LittleEndian.PutUint64(c.header(c.rank, next)[headerMail:], uint64(size))
	parity, err := c.enter(opAllToAll, s, 0, 0)
	if err != nil {
		return nil, err
	}
	total, before, fits := 0, 0, true
	sizes := make([]int, c.world)
	for r := range sizes {
		if r == c.rank {
			before = total
		}
		sizes[r] = int(binary.LittleEndian.Uint64(c.header(r, parity)[headerMail:]))
		total += sizes[r]
		fits = fits && data+sizes[r] <= mailSize
	}
	if !fits {
		if err := c.grow(s, parity, total); err != nil {
			return nil, err
		}
		c.pack(c.exchange.mem[before:], send)
		if err := c.again(s, parity); err != nil {
			return nil, err
		}
	}
	got, off := make([][]byte, c.world), 0
	for r, size := range sizes {
		mail := c.mail(r, parity)
		from := mail[data:]
		if !fits {
			from = c.exchange.mem[off : off+size]
		}
		lo, hi := 0, int(binary.LittleEndian.Uint64(mail[8*c.rank:]))
		if c.rank > 0 {
			lo = int(binary.LittleEndian.Uint64(mail[8*(c.rank-1):]))
		}
		if r == c.rank {
			got[r] = clone(send[r])
		} else {
			got[r] = clone(from[lo:hi])
		}
		off += size
	}
	return got, nil
}

// pack copies the messages for other ranks to dst, one after another.
func (c *shm) pack(dst []byte, send [][]byte) {
	for to, b := range send {
		if to != c.rank {
			dst = dst[copy(dst, b):]
		}
	}
}

// grow makes the kept region hold size bytes, which are equal on all ranks.
func (c *shm) grow(s Site, parity, size int) error {
	if c.exchange != nil && len(c.exchange.mem) >= size {
		return nil
	}
	if c.exchange != nil {
		size = max(size, 2*len(c.exchange.mem))
		c.release(c.exchange)
		c.exchange = nil
	}
	reg, err := c.alloc(s, parity, size)
	c.exchange = reg
	return err
}
