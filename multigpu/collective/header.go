package collective

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Operations, part of the header that ranks compare.
const (
	opBarrier = iota + 1
	opAllGather
	opSumInt64
	opBroadcast
	opNewReducer
	opReduce
	opNewMatrix
	opPublish
	opAllToAll
	opSplit
)

var opNames = [...]string{"", "barrier", "all-gather", "sum", "broadcast", "new reducer", "reduce", "new matrix", "publish", "all-to-all", "split"}

// The ranks compare their headers: op, n, aux, epoch, step (i64 each), lengths of kind and at (u16
// each), then both texts. A text that is too long is cut at the front. The length of a message that
// follows, in the last word, is not compared.
const (
	headerSize = 1024
	headerText = 48
	headerMail = headerSize - 8
)

func writeHeader(h []byte, op int, s Site, n, aux int) {
	kind, at := s.Kind, s.At
	kind = kind[max(0, len(kind)-100):]
	at = at[max(0, len(at)-700):]
	for i, v := range [...]int{op, n, aux, s.Epoch, s.Step} {
		binary.LittleEndian.PutUint64(h[8*i:], uint64(v))
	}
	binary.LittleEndian.PutUint16(h[40:], uint16(len(kind)))
	binary.LittleEndian.PutUint16(h[42:], uint16(len(at)))
	copy(h[headerText:], kind)
	copy(h[headerText+len(kind):], at)
}

// compared is the part of a header that must be equal on all ranks.
func compared(h []byte) []byte {
	k, a := binary.LittleEndian.Uint16(h[40:]), binary.LittleEndian.Uint16(h[42:])
	return h[:min(headerText+int(k)+int(a), headerMail)]
}

type headerFields struct {
	op, n, aux int
	site       Site
}

func readHeader(h []byte) headerFields {
	num := func(i int) int { return int(int64(binary.LittleEndian.Uint64(h[8*i:]))) }
	k := min(int(binary.LittleEndian.Uint16(h[40:])), 100)
	a := min(int(binary.LittleEndian.Uint16(h[42:])), 700)
	return headerFields{op: num(0), n: num(1), aux: num(2), site: Site{
		Kind:  string(h[headerText : headerText+k]),
		At:    string(h[headerText+k : headerText+k+a]),
		Epoch: num(3), Step: num(4),
	}}
}

func mismatch(rank int, first, other []byte) *Mismatch {
	a, b := readHeader(first), readHeader(other)
	m := &Mismatch{RankA: 0, RankB: rank, A: a.site, B: b.site}
	if a.site != b.site {
		for _, f := range []*headerFields{&a, &b} {
			if f.site.Kind == "" && f.op > 0 && f.op < len(opNames) {
				f.site.Kind = opNames[f.op]
			}
		}
		m.A, m.B = a.site, b.site
		return m
	}
	name := func(f headerFields) string {
		if f.op > 0 && f.op < len(opNames) {
			return fmt.Sprintf("%s of %d, %d", opNames[f.op], f.n, f.aux)
		}
		return "unknown"
	}
	m.Detail = name(a) + " and " + name(b)
	return m
}

// float32Bytes is the memory of v, in the machine's own byte order.
func float32Bytes(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

// int64Bytes returns v as a message, takeInt64 reads it into v, and addInt64 adds one to another.
func int64Bytes(v []int64) []byte {
	b := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(x))
	}
	return b
}

// sumInt64 sets v to the sums over the ranks of the values in all, and overwrites all[0].
func sumInt64(v []int64, all [][]byte) {
	for _, b := range all[1:] {
		addInt64(all[0], b)
	}
	takeInt64(v, all[0])
}

func takeInt64(v []int64, b []byte) {
	for i := range v {
		v[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

func addInt64(sum, b []byte) {
	for i := 0; i < len(sum); i += 8 {
		binary.LittleEndian.PutUint64(sum[i:], binary.LittleEndian.Uint64(sum[i:])+binary.LittleEndian.Uint64(b[i:]))
	}
}
