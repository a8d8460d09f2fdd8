package plane

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The interface of io_uring, from Linux's include/uapi/linux/io_uring.h.

const (
	ringOpRead    = 22 // IORING_OP_READ, from Linux 5.6 on
	ringGetEvents = 1  // IORING_ENTER_GETEVENTS
	ringOffSQ     = 0  // offsets of the mappings
	ringOffCQ     = 0x8000000
	ringOffSQEs   = 0x10000000
)

type ringParams struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, workers uint32
	_                                                                     [3]uint32
	sq                                                                    struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

type ringSubmission struct { // 64 bytes
	op, flags uint8
	priority  uint16
	fd        int32
	at        uint64
	addr      uint64
	size      uint32
	rw        uint32
	user      uint64
	_         [3]uint64
}

type ringCompletion struct { // 16 bytes
	user   uint64
	result int32
	flags  uint32
}

// ring is an io_uring. A round is sent and awaited by one system call, so a goroutine wakes up once for all requests.
type ring struct {
	fd           int
	file         *os.File
	p            ringParams
	sq, cq, sqes []byte
	tail         uint32
}

// openRing makes an io_uring of roundRequests that reads the file. It returns nil if the kernel or the container does not
// allow it, or if it cannot read.
func openRing(f *os.File, align int64) engine {
	r := &ring{fd: -1, file: f}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, roundRequests, uintptr(unsafe.Pointer(&r.p)), 0)
	if errno != 0 {
		return nil
	}
	r.fd = int(fd)
	var err error
	for m, at := range map[*[]byte][2]int{
		&r.sq:   {ringOffSQ, int(r.p.sq.array + 4*r.p.sqEntries)},
		&r.cq:   {ringOffCQ, int(r.p.cq.cqes + 16*r.p.cqEntries)},
		&r.sqes: {ringOffSQEs, int(64 * r.p.sqEntries)},
	} {
		if *m, err = unix.Mmap(r.fd, int64(at[0]), at[1], unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
			r.close()
			return nil
		}
	}
	probe := []request{{buf: newMemory(int(align))}}
	whole := r.read(probe)
	if whole { // else the kernel may still write to it
		freeMemory(probe[0].buf)
	}
	if !whole || probe[0].err != nil {
		r.close()
		return nil
	}
	return r
}

func (r *ring) close() {
	for _, m := range [][]byte{r.sq, r.cq, r.sqes} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	_ = unix.Close(r.fd)
}

// word is the number at an offset of a mapping that the kernel also writes.
func word(m []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&m[at])) }

// read sends all requests, and waits for all. After an error of the ring itself (the kernel has no memory, or others have
// closed the descriptor) it reports false: requests may still be queued or under way, so a later round would take their
// completions for its own, and the kernel may still write to the buffers. The descriptor may be another file's by then.
func (r *ring) read(round []request) bool {
	mask := *word(r.sq, r.p.sq.mask)
	fd := int32(r.file.Fd())
	for i := range round {
		q := &round[i]
		slot := r.tail & mask
		*(*ringSubmission)(unsafe.Pointer(&r.sqes[64*slot])) = ringSubmission{
			op: ringOpRead, fd: fd, at: uint64(q.at), addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(q.buf)))), size: uint32(len(q.buf)), user: uint64(i),
		}
		*word(r.sq, r.p.sq.array+4*slot) = slot
		r.tail++
	}
	atomic.StoreUint32(word(r.sq, r.p.sq.tail), r.tail)
	for send, wait := len(round), len(round); wait > 0; {
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(send), uintptr(wait), ringGetEvents, 0, 0)
		switch errno {
		case 0:
			send -= int(n)
		case unix.EINTR, unix.EAGAIN, unix.EBUSY:
		default:
			for i := range round {
				if q := &round[i]; q.got == 0 {
					q.err = os.NewSyscallError("io_uring_enter", errno)
				}
			}
			return false
		}
		wait -= r.take(round)
	}
	return true
}

// take takes the completions that are there.
func (r *ring) take(round []request) (n int) {
	head, tail, mask := atomic.LoadUint32(word(r.cq, r.p.cq.head)), atomic.LoadUint32(word(r.cq, r.p.cq.tail)), *word(r.cq, r.p.cq.mask)
	for ; head != tail; head++ {
		c := (*ringCompletion)(unsafe.Pointer(&r.cq[r.p.cq.cqes+16*(head&mask)]))
		q := &round[c.user]
		switch {
		case c.result >= 0:
			q.got = int(c.result)
		case unix.Errno(-c.result) == unix.EINTR || unix.Errno(-c.result) == unix.EAGAIN: // the caller reads again
		default:
			q.err = os.NewSyscallError("read", unix.Errno(-c.result))
		}
		n++
	}
	atomic.StoreUint32(word(r.cq, r.p.cq.head), head)
	return n
}
