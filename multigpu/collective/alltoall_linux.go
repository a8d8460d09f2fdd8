package collective

import "encoding/binary"

// AllToAll: a mailbox begins with the ends of this rank's messages, one u64 for each rank. Short
// messages follow there. Others lie in a region that is kept and grows: each rank has two parts of
// it, which take turns as the mailboxes do, so that one barrier is enough. A call for which a part is
// too small has two more. A rank's message to itself is only copied.
func (c *shm) AllToAll(s Site, send [][]byte) ([][]byte, error) {
	return c.allToAllInto(s, send, make([][]byte, c.world))
}

func (c *shm) allToAllInto(s Site, send, got [][]byte) (_ [][]byte, err error) {
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
	if size <= max(c.inMail(), c.room) {
		c.pack(next, size, send)
	}
	binary.LittleEndian.PutUint64(c.header(c.rank, next)[headerMail:], uint64(size))
	parity, err := c.enter(opAllToAll, s, 0, 0)
	if err != nil {
		return nil, err
	}
	most := 0
	for r := range c.world {
		most = max(most, c.sent(r, parity))
	}
	if most > max(c.inMail(), c.room) {
		if err := c.grow(s, parity, most); err != nil {
			return nil, err
		}
		c.pack(parity, size, send)
		if err := c.again(s, parity); err != nil {
			return nil, err
		}
	}
	for r := range got {
		if r == c.rank {
			got[r] = append(got[r][:0], send[r]...)
			continue
		}
		ends, lo := c.mail(r, parity), 0
		if c.rank > 0 {
			lo = int(binary.LittleEndian.Uint64(ends[8*(c.rank-1):]))
		}
		hi := int(binary.LittleEndian.Uint64(ends[8*c.rank:]))
		got[r] = append(got[r][:0], c.messages(r, parity, c.sent(r, parity))[lo:hi]...)
	}
	return got, nil
}

// sent is the number of bytes that rank r sends in this call.
func (c *shm) sent(r, parity int) int {
	return int(binary.LittleEndian.Uint64(c.header(r, parity)[headerMail:]))
}

// inMail is the number of bytes of messages that a mailbox holds.
func (c *shm) inMail() int { return mailSize - 8*c.world }

// messages is the memory of size bytes of rank r's messages.
func (c *shm) messages(r, parity, size int) []byte {
	if size <= c.inMail() {
		return c.mail(r, parity)[8*c.world:]
	}
	return c.exchange.mem[(2*r+parity)*c.room:][:size]
}

// pack copies the messages for other ranks, size bytes, to this rank's memory, one after another.
func (c *shm) pack(parity, size int, send [][]byte) {
	dst := c.messages(c.rank, parity, size)
	for to, b := range send {
		if to != c.rank {
			dst = dst[copy(dst, b):]
		}
	}
}

// grow makes the kept region hold size bytes of each rank twice; size is equal on all ranks.
func (c *shm) grow(s Site, parity, size int) error {
	const page = 4 << 10
	if c.exchange != nil {
		c.release(c.exchange)
		c.exchange, c.room = nil, 0
	}
	room := (size + size/4 + page) / page * page
	reg, err := c.alloc(s, parity, 2*c.world*room)
	if err == nil {
		c.exchange, c.room = reg, room
	}
	return err
}
