package graphops

import "math"

// SeedTime returns the time of the seed in whose tree a destination is, which the seed's neighbourhood is seen as of. ok is
// false in a block that is not of seeds with times.
func (b *Block) SeedTime(dst int) (t int64, ok bool) {
	if b.times == nil {
		return 0, false
	}
	return b.times[b.trees[dst]], true
}

// TreesOf returns HostBlock.Trees and HostBlock.TreeTimes for a block of some of the destinations; nil of a block that is not
// of seeds with times.
func (b *Block) TreesOf(dsts []int32) (trees []int32, times []int64) {
	if b.times == nil {
		return nil, nil
	}
	trees = make([]int32, len(dsts))
	for i, d := range dsts {
		trees[i] = b.trees[d]
	}
	return trees, b.times
}

// Ages returns the age of each edge as of the seed in whose tree it is: the seed's time less the edge's (see [Block.Times]), in
// the unit of both. Ages()[e-Indptr()[0]] is that of edge e; it is not negative where no seed sees its future. Differences beyond an
// int64 become the largest one. It is nil in a block that is not of seeds with times, or whose edges have no times. A self-loop that
// [Block.SelfLooped] added to a row without other edges has the age 0. The first call makes the slice; it is valid as long as the
// block and must not be written to.
func (b *Block) Ages() []int64 {
	times := b.Times()
	if times == nil || b.times == nil {
		return nil
	}
	type key struct{}
	return b.MemoIn(key{}, func(old any) any {
		was, _ := old.([]int64)
		ages, indptr := room(was, b.NumEdges()), b.Indptr()
		for d := range b.NumDst {
			at := b.times[b.trees[d]]
			from, to := indptr[d]-indptr[0], indptr[d+1]-indptr[0]
			for e := from; e < to; e++ {
				age := at - times[e]
				if at > times[e] && age < 0 {
					age = math.MaxInt64
				}
				ages[e] = age
			}
			if pos := b.EdgePos(); to == from+1 && pos != nil && pos[from] >= firstLoopPos {
				ages[from] = 0
			}
		}
		return ages
	}).([]int64)
}
