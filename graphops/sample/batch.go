package sample

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
)

// Batch is the blocks sampled for one list of seeds. Blocks[0] is the farthest
// hop, which the first layer computes on; the last block's destinations are the
// seeds. Blocks chain: the destinations of Blocks[i] are the sources of
// Blocks[i+1], row for row, and the first NumDst sources of a block are its
// destinations. Further sources come in the order in which edges reach them
// first.
//
// A batch is read-only and stays valid as long as it is held: the sampler does
// not write to it again, however far ahead it runs. Only Release ends it.
type Batch struct {
	Epoch, Step int
	// Seeds are a copy of the seeds that were sampled for, in their order.
	Seeds  []int32
	Blocks []*graphops.Block
	// Back, unless nil, is what Release calls: it takes back the memory of a batch
	// that something else than a Sampler made, a device's.
	Back func()

	owner *Sampler
	mem   *memory
}

// memory holds the arrays of one batch.
type memory struct {
	ids      []int32
	seedRows []int32
	hops     []edges
	structs  []graphops.Block  // by hop
	blocks   []*graphops.Block // the same, the farthest first
}

// edges are one hop's: a block's arrays.
type edges struct {
	indptr     []int64
	indices    []int32
	edgePos    []int64
	weights    []float32 // nil where the graph has none
	transposed graphops.Transposed
}

// InputIDs are the global ids of the rows that the first layer reads: the nodes
// whose features the batch needs. The slice is the batch's own memory. Of a batch
// sampled on a device they are copied to the host at the first call.
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

// Edges is the number of sampled edges over all hops.
func (b *Batch) Edges() int {
	n := 0
	for _, k := range b.Blocks {
		n += k.NumEdges()
	}
	return n
}

// Release gives the batch's memory back to its sampler for a later batch, which
// saves the page faults of fresh memory. It is never needed: a batch that is
// dropped is collected as any other value. After it, the batch is empty and
// nothing that aliases its arrays (blocks, row spaces made from them) may be
// used. It may be called from another goroutine than the sampler's; a second
// call does nothing.
func (b *Batch) Release() {
	switch {
	case b.Back != nil:
		b.Back()
	case b.mem != nil:
		b.owner.keep(b.mem)
	default:
		return
	}
	b.Back, b.mem, b.owner, b.Seeds, b.Blocks = nil, nil, nil, nil, nil
}

func (b *Batch) String() string {
	return fmt.Sprintf("batch: epoch %d, step %d, %d seeds, %d nodes, %d edges in %d hops", b.Epoch, b.Step, len(b.Seeds), b.Inputs(), b.Edges(), len(b.Blocks))
}
