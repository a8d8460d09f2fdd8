package pairs

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Leak returns an error that names the first edge of a batch's blocks that is in one of the sets,
// by the set's name, or nil. It is the proof that a batch does not contain what it predicts: give
// it the edges that the batch predicts with their reverses, and those of validation and test. Cost:
// a search for each edge of the blocks and each set.
func Leak(blocks []*graphops.Block, sets map[string]*sample.EdgeSet) error {
	for hop, b := range blocks {
		ids, indptr, indices := b.SrcIDs(), b.Indptr(), b.Indices()
		for d := range b.NumDst {
			dst := int32(d + b.DstStart)
			if ids != nil {
				dst = ids[dst]
			}
			for _, s := range indices[indptr[d]:indptr[d+1]] {
				src := s
				if ids != nil {
					src = ids[s]
				}
				for name, set := range sets {
					if set.Has(src, dst) {
						return fmt.Errorf("pairs: a leak: the messages of layer %d contain %d → %d, which is %s", hop, src, dst, name)
					}
				}
			}
		}
	}
	return nil
}
