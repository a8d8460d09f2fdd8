package collective

import (
	"sync"

	"github.com/graphnb/graphnb/internal/parallel"
)

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
	// treeBlock keeps the partial sums of a block (half the slots) in the first
	// level cache: 8 slots, 4 × 4 KiB.
	treeBlock = 1024
	// treeGrain is the number of elements of a goroutine's chunk.
	treeGrain = 32 * treeBlock
)

// tree adds elements by ReduceTree's definition, block by block.
type tree struct {
	scratch sync.Pool // *treeScratch
}

type treeScratch struct {
	partial []float32
	level   [][]float32
}

// reduce sets dst[lo:hi] to the tree sum of slots[·][lo:hi]. Elements are independent, so the
// number of threads does not change the bits.
func (t *tree) reduce(dst []float32, slots [][]float32, lo, hi int) {
	parallel.For(0, hi-lo, treeGrain, func(a, b int) {
		sc, _ := t.scratch.Get().(*treeScratch)
		if sc == nil || len(sc.level) < len(slots) {
			sc = &treeScratch{
				partial: make([]float32, (len(slots)+1)/2*treeBlock),
				level:   make([][]float32, len(slots)),
			}
		}
		for from := lo + a; from < lo+b; from += treeBlock {
			sc.block(dst, slots, from, min(from+treeBlock, lo+b))
		}
		t.scratch.Put(sc)
	})
}

// block sums one block. Partial sum i is written after slots 2i and 2i+1 were
// read, which lie at or behind it, and a carried slot stays where it is: no
// write meets a value that is still wanted.
func (sc *treeScratch) block(dst []float32, slots [][]float32, lo, hi int) {
	level := sc.level[:len(slots)]
	for i, s := range slots {
		level[i] = s[lo:hi]
	}
	dst = dst[lo:hi]
	if len(level) == 1 {
		copy(dst, level[0])
		return
	}
	for len(level) > 1 {
		half := len(level) / 2
		for i := range half {
			out := dst
			if len(level) > 2 {
				out = sc.partial[i*treeBlock : i*treeBlock+hi-lo]
			}
			add(out, level[2*i], level[2*i+1])
			level[i] = out
		}
		if len(level)%2 == 1 {
			level[half] = level[len(level)-1]
			half++
		}
		level = level[:half]
	}
}

func add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
