package graphops

// Halo says which source rows of a block come from other ranks. It belongs to a block of a
// cooperative batch: the ranks of a run expand one batch together, and the rank that owns a node
// computes the node's rows for all.
//
// The first Own source rows of the block are this rank's own. The rows of rank 0's nodes follow,
// then those of rank 1's, and so on, each group in the order in which this rank's edges first reach
// its nodes, the edges of earlier hops first. They are the halo.
type Halo struct {
	//
	// The block of a batch's farthest hop has no lists of rows, unless sample.Peers.InputHalo is set:
	// From, To and At are nil, and Most is 0. Own then counts those of this rank's nodes that its own
	// edges, or the other ranks' edges of earlier hops, reach.
	Own int
	// From[r] are the rows, at rank r, of this rank's sources that rank r owns; it is empty for this
	// rank.
	From [][]int32
	// To[r] are this rank's own rows that rank r reads: rank r's From for this rank.
	To [][]int32
	// At[r] is the place of those rows in rank r's halo, counted from the halo's first row.
	At []int
	// Most is the largest number of source rows of any rank's block at this level.
	Most int
}

// OwnSrc is the number of source rows that this rank computes: all, unless the block has a Halo.
func (b *Block) OwnSrc() int {
	if b.Halo != nil {
		return b.Halo.Own
	}
	return b.NumSrc
}
