package metrics

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// exactSum adds finite float64 numbers without rounding, so that the sum does not depend on their order. It holds the sum as a
// whole number of 2^-1074, the smallest float64 above 0, in words of 32 bits, whose carries wait for a normalisation.
//
// Source: U. Kulisch, "Very fast and exact accumulation of products", Computing 91, 2011, doi:10.1007/s00607-010-0127-7.
type exactSum struct {
	words [exactWords]int64
	added int64 // since the carries were propagated
}

const (
	exactLow   = 1074 // the weight of the lowest bit is 2^-exactLow
	exactWords = 68   // 2^1024 · 2^63 numbers need 1074+1024+64 bits
	exactMost  = 1 << 29
)

// add adds a finite number.
func (s *exactSum) add(x float64) {
	if x == 0 {
		return
	}
	if s.added == exactMost {
		s.carry()
	}
	s.added++
	bits := math.Float64bits(x)
	exp, mantissa := int(bits>>52&0x7ff), bits&(1<<52-1)
	if exp == 0 {
		exp = 1
	} else {
		mantissa |= 1 << 52
	}
	at, sign := exp-1, int64(1)
	if bits>>63 == 1 {
		sign = -1
	}
	word, shift := at/32, uint(at%32)
	low, high := mantissa<<shift, uint64(0)
	if shift > 11 {
		high = mantissa >> (64 - shift)
	}
	s.words[word] += sign * int64(low&0xffffffff)
	s.words[word+1] += sign * int64(low>>32)
	s.words[word+2] += sign * int64(high)
}

// carry makes each word but the highest one a number from 0 to 2^32-1.
func (s *exactSum) carry() {
	var c int64
	for i := range s.words[:exactWords-1] {
		v := s.words[i] + c
		s.words[i], c = v&0xffffffff, v>>32
	}
	s.words[exactWords-1] += c
	s.added = 0
}

// float returns the sum without rounding.
func (s *exactSum) float() *big.Float {
	s.carry()
	n := new(big.Int)
	for i := exactWords - 1; i >= 0; i-- {
		n.Add(n.Lsh(n, 32), big.NewInt(s.words[i]))
	}
	return new(big.Float).SetMantExp(new(big.Float).SetInt(n), -exactLow)
}

// encode appends the sum.
func (s *exactSum) encode(b []byte) []byte {
	s.carry()
	for _, w := range s.words {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return b
}

// merge adds an encoded sum, and returns what follows it.
func (s *exactSum) merge(b []byte) ([]byte, error) {
	if len(b) < 8*exactWords {
		return nil, fmt.Errorf("metrics: %d bytes are not a sum of another rank", len(b))
	}
	s.carry()
	for i := range s.words {
		s.words[i] += int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	s.carry()
	return b[8*exactWords:], nil
}
