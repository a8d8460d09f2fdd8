package sample

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
)

// Batch holds the blocks sampled for one list of seeds. Blocks[0] is the farthest hop, on which the
// first layer computes; the last block's destinations are the seeds. Blocks are chained: the
// destinations of Blocks[i] are the sources of Blocks[i+1], row for row, and the first NumDst
// sources of a block are its destinations. Further sources are in the order in which edges first
// reach them.
//
// A batch is read-only and stays valid until Release is called: the sampler does not write to it
// again, however far ahead it runs.
type Batch struct {
	Epoch, Step int
	// Seeds is a copy of the given seeds, in their order.
	Seeds []int32
	// Times are copies of the times of the seeds; nil if they have none.
	Times []int64
	// Trees is the tree of each row of InputIDs: the position of its seed in Seeds. A nearer hop has the first of these
	// rows. It is nil unless trees are disjoint (Config.Disjoint).
	Trees  []int32
	Blocks []*graphops.Block
	// Back, if not nil, is called by Release. It takes back the memory of a batch that was not made
	// by a Sampler, such as a batch on a device.
	Back func()

	owner  *Sampler
	mem    *memory
	hidden [][]int32 // by hop, and by destination of the hop: in-edges that its seed does not see; of seeds with times
}

// memory holds the arrays of one batch.
type memory struct {
	ids      []int32
	trees    []int32 // by row, if trees are disjoint
	times    []int64 // of the seeds
	seedRows []int32
	hops     []edges
	structs  []graphops.Block   // by hop
	blocks   []*graphops.Block  // the same, the farthest first
	coop     []graphops.RankHop // by hop; nil unless the batch is cooperative
}

// edges holds the arrays of one hop's block.
type edges struct {
	indptr     []int64
	indices    []int32
	edgePos    []int64
	weights    []float32         // nil if the graph has none
	hidden     []int32           // by destination, of seeds with times
	data       graphops.EdgeData // of a divided graph's edges, instead of weights
	transposed graphops.Transposed
}

// InputIDs returns the global ids of the rows that the first layer reads: the nodes whose features
// the batch needs. The slice is the batch's own memory. For a batch sampled on a device, the first
// call copies the ids to the host.
func (b *Batch) InputIDs() []int32 {
	if len(b.Blocks) == 0 {
		return b.Seeds
	}
	return b.Blocks[0].SrcIDs()
}

// Inputs is the number of rows that the first layer reads, len(b.InputIDs()).
func (b *Batch) Inputs() int {
	if len(b.Blocks) == 0 {
		return len(b.Seeds)
	}
	return b.Blocks[0].NumSrc
}

// OwnInputs is the number of those rows that this rank owns: all, unless the batch is cooperative.
func (b *Batch) OwnInputs() int {
	if len(b.Blocks) == 0 {
		return len(b.Seeds)
	}
	if h := b.Blocks[0].Halo; h != nil {
		return b.Inputs() - h.Others
	}
	return b.Inputs()
}

// Cooperative reports whether the batch is this rank's part of a batch of all ranks.
func (b *Batch) Cooperative() bool { return len(b.Blocks) > 0 && b.Blocks[0].Halo != nil }

// Edges is the number of sampled edges over all hops.
func (b *Batch) Edges() int {
	n := 0
	for _, k := range b.Blocks {
		n += k.NumEdges()
	}
	return n
}

// Release returns the batch's memory to its sampler for a later batch, which avoids the page faults
// of fresh memory. Calling it is optional: without it the batch is garbage-collected. After
// Release, the batch is empty, and nothing that shares its arrays (blocks, row spaces made from
// them) may be used. It may be called from another goroutine than the sampler's; a second call does
// nothing.
func (b *Batch) Release() {
	switch {
	case b.Back != nil:
		b.Back()
	case b.mem != nil:
		b.owner.keep(b.mem)
	default:
		return
	}
	b.Back, b.mem, b.owner, b.Seeds, b.Times, b.Trees, b.Blocks, b.hidden = nil, nil, nil, nil, nil, nil, nil, nil
}

func (b *Batch) String() string {
	return fmt.Sprintf("batch: epoch %d, step %d, %d seeds, %d nodes, %d edges in %d hops", b.Epoch, b.Step, len(b.Seeds), b.Inputs(), b.Edges(), len(b.Blocks))
}
