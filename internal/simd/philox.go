package simd

import "github.com/graphnb/graphnb/internal/philox"

// KeepBits draws dropout's bits for one row, of any number of columns up to
// 8·2^16: byte i is that of Philox block i of the counter, its bit l set where
// 16-bit lane l is not below threshold (0 to 65536). The counter is block 0's.
func KeepBits(bits []byte, key uint64, ctr [4]uint32, threshold uint32) {
	keepBitsGo(bits, key, ctr, threshold)
}

func keepBitsGo(bits []byte, key uint64, ctr [4]uint32, threshold uint32) {
	first := ctr[1]
	for i := range bits {
		ctr[1] = first + uint32(i)
		bits[i] = lanesFrom(philox.Block(key, ctr), threshold)
	}
}

// KeepBitsAt is KeepBits for any blocks: byte i is that of the counter (c0[i],
// c1[i], c2, c3).
func KeepBitsAt(bits []byte, key uint64, c0, c1 []uint32, c2, c3, threshold uint32) {
	checkLen("KeepBitsAt", len(c0), len(bits))
	checkLen("KeepBitsAt", len(c1), len(bits))
	keepBitsAtGo(bits, key, c0, c1, c2, c3, threshold)
}

func keepBitsAtGo(bits []byte, key uint64, c0, c1 []uint32, c2, c3, threshold uint32) {
	for i := range bits {
		bits[i] = lanesFrom(philox.Block(key, [4]uint32{c0[i], c1[i], c2, c3}), threshold)
	}
}

// lanesFrom has bit l set where 16-bit lane l of w is not below threshold.
func lanesFrom(w [4]uint32, threshold uint32) byte {
	var drop uint32
	for i, v := range w {
		drop |= (v&0xffff-threshold)>>31<<(2*i) | (v>>16-threshold)>>31<<(2*i+1)
	}
	return ^byte(drop)
}
