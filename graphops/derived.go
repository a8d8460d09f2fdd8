package graphops

// Derived returns the bytes of host memory that hold what layers derived from the block: the block with self-loops
// and the values of [Block.MemoIn] that are slices of numbers, of both. Transposes do not count.
func (b *Block) Derived() (bytes int64) {
	b.memo.mu.Lock()
	for _, k := range b.memo.kept {
		switch v := k.value.(type) {
		case []float32:
			bytes += 4 * int64(len(v))
		case []int32:
			bytes += 4 * int64(len(v))
		case []uint16:
			bytes += 2 * int64(len(v))
		}
	}
	b.memo.mu.Unlock()
	if l := b.looped; l != nil {
		bytes += 8*int64(len(l.indptr)+len(l.edgePos)) + 4*int64(len(l.indices)+len(l.weights)) + l.Derived()
	}
	return bytes
}

// TransposeBytes returns the size of [Block.Transposed], with the memory that making it takes.
func (b *Block) TransposeBytes() int64 {
	parts := 1 + int64(b.NumEdges())/transposePart
	return 8*int64(b.NumSrc+1) + 8*int64(b.NumEdges()) + 4*min(parts, 64)*int64(b.NumSrc)
}
