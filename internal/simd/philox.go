package simd

import "github.com/graphnb/graphnb/internal/philox"

// KeepBits draws the bits of dropout for one row of up to 8·2^16 columns. Byte i comes from Philox
// block i of the counter: bit l is set if 16-bit lane l is not below threshold (0 to 65536). ctr is
// the counter of block 0.
func KeepBits(bits []byte, key uint64, ctr [4]uint32, threshold uint32) {
	if threshold > 0xffff {
		clear(bits)
		return
	}
	whole := len(bits) &^ (groupBlocks - 1)
	if whole > 0 && !keepBits(&bits[0], whole, key, ctr[0], ctr[1], ctr[2], ctr[3], threshold) {
		whole = 0
	}
	bits = bits[whole:]
	ctr[1] += uint32(whole)
	var group [groupBlocks]byte
	if len(bits) > 0 && len(bits) < groupBlocks && keepBits(&group[0], groupBlocks, key, ctr[0], ctr[1], ctr[2], ctr[3], threshold) {
		copy(bits, group[:])
		return
	}
	for i := range bits {
		bits[i] = lanesFrom(philox.Block(key, ctr), threshold)
		ctr[1]++
	}
}

// groupBlocks is the number of blocks that the kernels compute at a time.
const groupBlocks = 16

// KeepBitsAt is KeepBits for arbitrary blocks: byte i comes from the block of the counter (c0[i],
// c1[i], c2, c3).
func KeepBitsAt(bits []byte, key uint64, c0, c1 []uint32, c2, c3, threshold uint32) {
	checkLen("KeepBitsAt", len(c0), len(bits))
	checkLen("KeepBitsAt", len(c1), len(bits))
	if threshold > 0xffff {
		clear(bits)
		return
	}
	whole := len(bits) &^ (groupBlocks - 1)
	if whole > 0 && !keepBitsAt(&bits[0], whole, key, &c0[0], &c1[0], c2, c3, threshold) {
		whole = 0
	}
	bits, c0, c1 = bits[whole:], c0[whole:], c1[whole:]
	if len(bits) > 0 && len(bits) < groupBlocks {
		var group [groupBlocks]byte
		var ids, blocks [groupBlocks]uint32
		copy(ids[:], c0)
		copy(blocks[:], c1)
		if keepBitsAt(&group[0], groupBlocks, key, &ids[0], &blocks[0], c2, c3, threshold) {
			copy(bits, group[:])
			return
		}
	}
	for i := range bits {
		bits[i] = lanesFrom(philox.Block(key, [4]uint32{c0[i], c1[i], c2, c3}), threshold)
	}
}

// lanesFrom returns a byte with bit l set if 16-bit lane l of w is not below threshold.
func lanesFrom(w [4]uint32, threshold uint32) byte {
	var drop uint32
	for i, v := range w {
		drop |= (v&0xffff-threshold)>>31<<(2*i) | (v>>16-threshold)>>31<<(2*i+1)
	}
	return ^byte(drop)
}
