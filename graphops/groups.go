package graphops

import "fmt"

// Groups returns the block by which layers make one row of each group of rows, such as a graph's row of its nodes' rows. Its
// destinations are the len(offsets)-1 groups, and the sources of group g are the rows offsets[g] to offsets[g+1]-1:
//
//	block := graphops.Groups([]int32{0, 3, 3, 7}) // rows 0 to 2, none, rows 3 to 6
//
// A group may be empty. Edge e comes from row e. The block is [HostBlock.Apart]: its rows and groups have no ids. It has 16
// bytes for each row and group, and a device copies it at its first use. The result does not depend on offsets afterwards.
//
// It panics unless offsets ascend from 0.
func Groups(offsets []int32) *Block {
	n := checkOffsets("Groups", offsets)
	h := HostBlock{NumDst: len(offsets) - 1, NumSrc: n, Indptr: make([]int64, len(offsets)), Indices: make([]int32, n), Apart: true}
	for g, at := range offsets {
		h.Indptr[g] = int64(at)
	}
	for r := range h.Indices {
		h.Indices[r] = int32(r)
	}
	return h.Block()
}

// Spread returns the opposite of [Groups], by which each row gets the row of its group: the destinations are the
// offsets[len(offsets)-1] rows, each with one edge, from its group. Summing over it copies, and the gradient of a group's row is
// the sum over the group.
//
// It panics unless offsets ascend from 0.
func Spread(offsets []int32) *Block {
	n := checkOffsets("Spread", offsets)
	h := HostBlock{NumDst: n, NumSrc: len(offsets) - 1, Indptr: make([]int64, n+1), Indices: make([]int32, n), Apart: true}
	for g := range h.NumSrc {
		for r := offsets[g]; r < offsets[g+1]; r++ {
			h.Indices[r] = int32(g)
		}
	}
	for r := range h.Indptr {
		h.Indptr[r] = int64(r)
	}
	return h.Block()
}

// checkOffsets returns the number of rows.
func checkOffsets(op string, offsets []int32) int {
	if len(offsets) == 0 {
		panic("graphops: " + op + ": there are no offsets; give the first row of each group and the number of rows, {0} for no groups")
	}
	if offsets[0] != 0 {
		panic(fmt.Sprintf("graphops: %s: the first group begins at row %d; it must begin at 0", op, offsets[0]))
	}
	for g, at := range offsets[1:] {
		if at < offsets[g] {
			panic(fmt.Sprintf("graphops: %s: group %d goes from row %d to row %d; offsets must ascend", op, g, offsets[g], at))
		}
	}
	return int(offsets[len(offsets)-1])
}

// Apart reports whether the block's destinations are no sources of it; see [HostBlock].
func (b *Block) Apart() bool { return b.apart }
