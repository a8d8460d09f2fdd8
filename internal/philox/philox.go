// Package philox is the counter-based generator Philox4x32-10 and the layout of its counters in
// GraphNB: every random choice of a run is a pure function of (seed, purpose, position in the run),
// so it does not depend on the number of threads and workers, or on the device.
//
// Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC'11, doi:10.1145/2063384.2063405. The known
// answers in the tests are those of the authors' Random123 library.
//
// # Counter layout (version 1)
//
//	key   the run's 64-bit seed: word 0 = low half, word 1 = high half
//	c0    id, low 32 bits (a node, a CSC position, an index)
//	c1    id, bits 32 to 47, in the high half; the draw block in the low half
//	c2    step in the epoch
//	c3    purpose (4 bits) | hop or call site (8 bits) | epoch (20 bits)
//
// Draw j of a counter is word j%4 of block j/4. Changing any of this changes
// [LayoutVersion], because every digest and every checkpoint depends on it.
package philox

import "math/bits"

// LayoutVersion is the version of the counter layout above.
const LayoutVersion = 1

// MaxDraws is the number of 32-bit draws one counter has: 2^16 blocks of four.
const MaxDraws = 1 << 18

// Purpose separates the random numbers of different parts of a run.
type Purpose uint32

// The purposes. Their values are part of the layout.
const (
	Shuffle Purpose = iota
	Sample
	Dropout
	Init
	Evaluate
	User
	Links
	Embedding
	Walks
	Trees
)

const (
	mul0, mul1 = 0xD2511F53, 0xCD9E8D57
	wey0, wey1 = 0x9E3779B9, 0xBB67AE85
)

// Block returns Philox4x32-10 of counter c under key.
func Block(key uint64, c [4]uint32) [4]uint32 {
	k0, k1 := uint32(key), uint32(key>>32)
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	for range 10 {
		hi0, lo0 := bits.Mul32(mul0, c0)
		hi1, lo1 := bits.Mul32(mul1, c2)
		c0, c1, c2, c3 = hi1^c1^k0, lo1, hi0^c3^k1, lo0
		k0 += wey0
		k1 += wey1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// C3 packs counter word 3. Site is taken modulo 2^8, epoch modulo 2^20.
func C3(p Purpose, site, epoch int) uint32 {
	return uint32(p)<<28 | uint32(site)&0xff<<20 | uint32(epoch)&0xfffff
}

// Counter returns the counter of draw block 0 for an id: the low half of word 1 holds the block's
// number.
func Counter(id int64, step int, c3 uint32) [4]uint32 {
	return [4]uint32{uint32(id), uint32(id>>32) << 16, uint32(step), c3}
}

// Stream yields the draws of one counter in order. The zero value is not
// useful; it is a value without pointers, so making one costs no allocation.
type Stream struct {
	key  uint64
	c    [4]uint32
	buf  [4]uint32
	next uint32
}

// NewStream starts at draw 0 of the counter (id, step, c3).
func NewStream(key uint64, id int64, step int, c3 uint32) Stream {
	return Stream{key: key, c: Counter(id, step, c3)}
}

// Next returns the next 32-bit draw. After [MaxDraws] draws it would repeat, so it panics instead:
// callers limit their draws.
func (s *Stream) Next() uint32 {
	j := s.next & 3
	if j == 0 {
		if s.next == MaxDraws {
			panic("philox: more than 2^18 draws from one counter")
		}
		c := s.c
		c[1] |= s.next >> 2
		s.buf = Block(s.key, c)
	}
	s.next++
	return s.buf[j]
}

// Bounded maps the draw u to [0, n) as (u·n)>>32. The bias is below n/2^32 and
// the same on every device, which matters more here than removing it.
func Bounded(u, n uint32) uint32 {
	hi, _ := bits.Mul32(u, n)
	return hi
}

// Permute shuffles ids in place, by Fisher and Yates: for i = len(ids)-1 down to 1, exchange i with
// a random j in [0, i], drawn first from the counter (i, step, c3).
func Permute(key uint64, step int, c3 uint32, ids []int32) {
	for i := len(ids) - 1; i > 0; i-- {
		u := Block(key, Counter(int64(i), step, c3))[0]
		j := Bounded(u, uint32(i+1))
		ids[i], ids[j] = ids[j], ids[i]
	}
}

// Float32 maps the draw u to [0, 1) in steps of 2^-24, exactly.
func Float32(u uint32) float32 { return float32(u>>8) * (1.0 / (1 << 24)) }
