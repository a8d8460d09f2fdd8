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
		ids, indptr, indices, types := b.SrcIDs(), b.Indptr(), b.Indices(), b.EdgeTypes()
		for d := range b.NumDst {
			dst := int32(d + b.DstStart)
			if ids != nil {
				dst = ids[dst]
			}
			for e := indptr[d]; e < indptr[d+1]; e++ {
				s := indices[e]
				src := s
				if ids != nil {
					src = ids[s]
				}
				for name, set := range sets {
					if types == nil && set.Has(src, dst) || types != nil && set.HasOf(src, dst, types[e-indptr[0]]) {
						return fmt.Errorf("pairs: a leak: the messages of layer %d contain %d → %d, which is %s", hop, src, dst, name)
					}
				}
			}
		}
	}
	return nil
}
