package collective

// ReduceTree returns the sum of slots, equally long, as a pairwise tree in slot
// order: level by level (0,1), (2,3), …, an odd last one carried up unchanged.
//
//	5 slots: ((0+1)+(2+3))+4
//
// It is the reference for every [Reducer], bit for bit, with rounded float32 additions. Without
// slots it returns nil.
func ReduceTree(slots [][]float32) []float32 {
	if len(slots) == 0 {
		return nil
	}
	level := make([][]float32, len(slots))
	for i, s := range slots {
		level[i] = append([]float32(nil), s...)
	}
	for len(level) > 1 {
		var next [][]float32
		for i := 0; i < len(level); i += 2 {
			if i+1 < len(level) {
				for k := range level[i] {
					level[i][k] += level[i+1][k]
				}
			}
			next = append(next, level[i])
		}
		level = next
	}
	return level[0]
}

const (
	// treeBlock keeps the partial sums of a block, one for each level of the tree, in the first
	// level cache: 8 slots, 4 × 4 KiB.
	treeBlock = 1024
	// treeGrain is the number of elements of a goroutine's chunk.
	treeGrain = 32 * treeBlock
)
