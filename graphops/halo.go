package graphops

// Halo says which source rows of a block come from other ranks. It belongs to a block of a
// cooperative batch: the ranks of a run expand one batch together, and the rank that owns a node
// computes the node's rows for all.
//
// The first Own source rows of the block are this rank's own. The rows of rank 0's nodes follow,
// then those of rank 1's, and so on, each group in the order in which this rank's edges first reach
// its nodes, the edges of earlier hops first. They are the halo.
//
// The block of a batch's farthest hop has no lists of rows, unless sample.Peers.InputHalo is set:
// From, To and At are nil, and Most is 0. Own is then NumDst, and all other sources, also those that
// this rank owns, follow in the order in which this rank's edges first reach them.
type Halo struct {
	// Own is the number of the first source rows, which are this rank's own.
	Own int
	// Others is the number of source rows of nodes that other ranks own.
	Others int
	// From[r] are the rows, at rank r, of this rank's sources that rank r owns; it is empty for this
	// rank.
	From [][]int32
	// To[r] are this rank's own rows that rank r reads: rank r's From for this rank.
	To [][]int32
	// At[r] is the place of those rows in rank r's halo, counted from the halo's first row.
	At []int
	// Most is the largest number of source rows of any rank's block at this level.
	Most int
	// Sums, unless nil, lists the edges by the owners of their sources too, to add up rows there.
	Sums *HaloSums
}

// HaloSums lets each rank add up the rows that it owns, also for the destinations of other ranks: then
// one row travels for each destination and rank, rather than one for each source that a rank reads. A
// destination has several sources, so these rows are fewer: on ogbn-arxiv with fanouts 15 and 10 a
// quarter.
type HaloSums struct {
	// Block holds the edges whose sources this rank owns, of all ranks' blocks at this level. Its sources
	// are this rank's own source rows. Its destinations are those of this rank's block; behind them
	// those of rank 0 that such an edge reaches, then those of rank 1, and so on. Each destination's
	// edges have the order that they have at its rank.
	Block *Block
	// Halo describes the destinations of Block as another Halo describes sources: the first Own are this
	// rank's; From[r] are the rows, at rank r, of its destinations; To[r] are the rows of this rank's
	// destinations in the Block of rank r; Most is the largest number of destinations of any rank's
	// Block. It has no Sums. Each To[r] is ascending.
	Halo Halo
	// Reads divides the edges of this rank's block by the owners of their sources, for ranks that read each
	// other's rows where they are. Segment i of Reads[r] has the edges into this rank's row Halo.To[r][i], and
	// its sources are rows at rank r; segment i of this rank's own has those into row i, as in Block.
	Reads []Segments
}

// Segments is lists of rows: list i is Indices[Indptr[i]:Indptr[i+1]].
type Segments struct {
	Indptr  []int64
	Indices []int32
}

// OwnSrc is the number of source rows that this rank computes: all, unless the block has a Halo.
func (b *Block) OwnSrc() int {
	if b.Halo != nil {
		return b.Halo.Own
	}
	return b.NumSrc
}
