package collective

import (
	"sync"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// span is slots [lo, hi) of a sum.
type span struct{ lo, hi int }

// subtrees appends the maximal subtrees of [ReduceTree]'s tree over n slots that lie within slots
// [lo, hi), in their order. The sum of a subtree is ReduceTree of its slots.
func subtrees(to []span, lo, hi, n int) []span {
	for lo < hi {
		size := 1
		for lo%(2*size) == 0 && size < n && min(lo+2*size, n) <= hi {
			size *= 2
		}
		to = append(to, span{lo, min(lo+size, n)})
		lo = to[len(to)-1].hi
	}
	return to
}

// joins adds slots, or the sums of subtrees, by the tree, block by block.
type joins struct {
	plan    []int     // leaf i, or -1: add the two last values
	depth   int       // of the stack of values
	scratch sync.Pool // *joinScratch
}

type joinScratch struct {
	partial []float32
	stack   [][]float32
}

// newJoins plans the sum of n slots from the sums of subtrees that cover them, in their order.
func newJoins(spans []span, n int) *joins {
	j := &joins{}
	starts := map[span]int{}
	for i, s := range spans {
		starts[s] = i
	}
	size := 1
	for size < n {
		size *= 2
	}
	j.add(starts, 0, size, n, 1)
	return j
}

// joinSlots plans the sum of n slots themselves.
func joinSlots(n int) *joins {
	var slots []span
	for i := range n {
		slots = append(slots, span{i, i + 1})
	}
	return newJoins(slots, n)
}

// add plans the subtree of slots lo to lo+size-1, or to n-1 if that is less; depth values, its own
// among them, are then on the stack at most.
func (j *joins) add(leaves map[span]int, lo, size, n, depth int) {
	j.depth = max(j.depth, depth)
	if i, ok := leaves[span{lo, min(lo+size, n)}]; ok {
		j.plan = append(j.plan, i)
		return
	}
	half := size / 2
	j.add(leaves, lo, half, n, depth)
	if lo+half < n {
		j.add(leaves, lo+half, half, n, depth+1)
		j.plan = append(j.plan, -1)
	}
}

// sum sets elements lo to hi-1 of dst to the sum of those of the leaves. Elements are independent, so
// the number of threads does not change the bits.
func (j *joins) sum(dst []float32, leaves [][]float32, lo, hi int) {
	parallel.For(0, hi-lo, treeGrain, func(a, b int) {
		sc, _ := j.scratch.Get().(*joinScratch)
		if sc == nil {
			sc = &joinScratch{partial: make([]float32, j.depth*treeBlock), stack: make([][]float32, j.depth)}
		}
		for from := lo + a; from < lo+b; from += treeBlock {
			j.block(sc, dst, leaves, from, min(from+treeBlock, lo+b))
		}
		j.scratch.Put(sc)
	})
}

// block sums one block. The value at a place of the stack is a leaf, or in the partial sum of that
// place, which is written only when the two values that it replaces have been read.
func (j *joins) block(sc *joinScratch, dst []float32, leaves [][]float32, lo, hi int) {
	dst = dst[lo:hi]
	top := 0
	for k, leaf := range j.plan {
		if leaf >= 0 {
			sc.stack[top] = leaves[leaf][lo:hi]
			top++
			continue
		}
		top--
		out := sc.partial[(top-1)*treeBlock:][:len(dst)]
		if k == len(j.plan)-1 {
			out = dst
		}
		simd.Plus(out, sc.stack[top-1], sc.stack[top], false)
		sc.stack[top-1] = out
	}
	if len(j.plan) == 1 {
		copy(dst, sc.stack[0])
	}
}
