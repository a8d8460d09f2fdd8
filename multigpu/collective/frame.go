package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame is one message between two machines: 40 bytes, then the head, then the body. All numbers
// are little-endian.
//
//	0   magic u32
//	4   kind u32
//	8   machine that sends it u32
//	12  length of the head u32, at most maxHead
//	16  digest of the division of ranks over machines u64
//	24  sequence number u64: rounds on this connection
//	32  length of the body u64
const (
	frameMagic = 0x66626e67 // "gnbf"
	frameSize  = 40
	maxHead    = 4096
	maxBody    = 1 << 42

	frameEnter = 1 // head: what this machine's ranks call
	frameData  = 2 // no head
	frameAbort = 3 // head: the reason
	frameEnd   = 4 // no head: the machine has closed its Comm after its last collective
)

type frame struct {
	kind, machine uint32
	group, seq    uint64
	head          []byte
	body          uint64
}

// appendTo appends the frame without its body.
func (f *frame) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	b = binary.LittleEndian.AppendUint32(b, f.kind)
	b = binary.LittleEndian.AppendUint32(b, f.machine)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.head)))
	b = binary.LittleEndian.AppendUint64(b, f.group)
	b = binary.LittleEndian.AppendUint64(b, f.seq)
	b = binary.LittleEndian.AppendUint64(b, f.body)
	return append(b, f.head...)
}

var errNoFrame = errors.New("it sent bytes that are not GraphNB's")

// readFrame reads a frame up to its body.
func readFrame(r io.Reader) (*frame, error) {
	var b [frameSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	num := binary.LittleEndian.Uint32
	f := &frame{
		kind: num(b[4:]), machine: num(b[8:]),
		group: binary.LittleEndian.Uint64(b[16:]), seq: binary.LittleEndian.Uint64(b[24:]), body: binary.LittleEndian.Uint64(b[32:]),
	}
	head := num(b[12:])
	if num(b[:]) != frameMagic || f.kind < frameEnter || f.kind > frameEnd || head > maxHead || f.body > maxBody {
		return nil, errNoFrame
	}
	f.head = make([]byte, head)
	if _, err := io.ReadFull(r, f.head); err != nil {
		return nil, noEOF(err)
	}
	return f, nil
}

// begins reports whether b begins a frame of a kind.
func begins(b []byte, kind uint32) bool {
	return binary.LittleEndian.Uint32(b) == frameMagic && binary.LittleEndian.Uint32(b[4:]) == kind
}

// noEOF: an end of the stream inside of a message is not a clean one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBody reads size bytes. Memory begins with the size of a body that has come before, or 1 MiB, and grows with what
// arrives, so that a wrong size cannot take all of it.
func readBody(r io.Reader, size, before uint64) ([]byte, error) {
	b := make([]byte, min(size, max(before, 1<<20)))
	for at := uint64(0); ; {
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return nil, noEOF(err)
		}
		at = uint64(len(b))
		if at == size {
			return b, nil
		}
		b = append(b, make([]byte, min(size-at, at))...)
	}
}

// packed appends messages to lens, so that unpack finds them again: their lengths, u64 each, and
// then the messages, which are not copied.
func packed(messages [][]byte) [][]byte {
	lens := make([]byte, 0, 8*len(messages))
	for _, m := range messages {
		lens = binary.LittleEndian.AppendUint64(lens, uint64(len(m)))
	}
	return append([][]byte{lens}, messages...)
}

// joined copies pieces into one.
func joined(pieces [][]byte) []byte {
	b := make([]byte, 0, sizeOf(pieces))
	for _, p := range pieces {
		b = append(b, p...)
	}
	return b
}

func sizeOf(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// unpack returns the count messages of b, which lie in b.
func unpack(b []byte, count int) ([][]byte, error) {
	if len(b) < 8*count {
		return nil, fmt.Errorf("%d bytes do not hold %d messages", len(b), count)
	}
	lens, rest := b[:8*count], b[8*count:]
	messages := make([][]byte, count)
	for i := range messages {
		n := binary.LittleEndian.Uint64(lens[8*i:])
		if n > uint64(len(rest)) {
			return nil, fmt.Errorf("a message of %d bytes does not fit into the %d that came", n, len(rest))
		}
		messages[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes belong to no message", len(rest))
	}
	return messages, nil
}
