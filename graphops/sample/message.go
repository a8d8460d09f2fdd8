package sample

import (
	"encoding/binary"
	"fmt"
	"slices"
)

func appendWords(out []byte, words []int32) []byte {
	at := len(out)
	out = slices.Grow(out, 4*len(words))[:at+4*len(words)]
	for i, v := range words {
		binary.LittleEndian.PutUint32(out[at+4*i:], uint32(v))
	}
	return out
}

func appendKeys(out []byte, keys []uint64) []byte {
	at := len(out)
	out = slices.Grow(out, 8*len(keys))[:at+8*len(keys)]
	for i, v := range keys {
		binary.LittleEndian.PutUint64(out[at+8*i:], v)
	}
	return out
}

// message reads a message from another rank; short is set if it ended early.
type message struct {
	rest  []byte
	short bool
}

// take returns the next n bytes, or nil if the message has fewer.
func (m *message) take(n int) []byte {
	if n < 0 || len(m.rest) < n {
		m.short, m.rest = true, nil
		return nil
	}
	b := m.rest[:n]
	m.rest = m.rest[n:]
	return b
}

func (m *message) word() uint32 {
	if b := m.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (m *message) words(out []int32, n int) []int32 {
	b := m.take(4 * n)
	out = resize(out, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func (m *message) keys(out []uint64, n int) []uint64 {
	b := m.take(8 * n)
	out = resize(out, len(b)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return out
}

// end returns an error if the message was not read exactly.
func (m *message) end(rank int) error {
	if m.short || len(m.rest) > 0 {
		return fmt.Errorf("sample: the message of rank %d has the wrong length; all ranks must run the same program", rank)
	}
	return nil
}
