package dataset

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
)

// Sparse is a matrix of float32 in compressed rows.
type Sparse = graphops.Sparse

// SparseError describes where a sparse matrix violates an invariant.
type SparseError = graphops.SparseError

// finite reports whether x is neither infinite nor NaN.
func finite(x float32) bool {
	const exponent = 0x7f800000 // set completely only in infinities and NaNs
	return math.Float32bits(x)&exponent != exponent
}
