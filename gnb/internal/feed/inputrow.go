package feed

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// InputRow writes the features of node v as a network reads them as a dense row: sparse ones by scaleRow if scale is true.
func InputRow(ds *dataset.Dataset, v int32, scale bool, to []float32) {
	clear(to)
	switch {
	case ds.Features != nil:
		ds.Features.Gather(to, []int32{v}, 1)
	case ds.SparseFeatures != nil:
		columns, values := ds.SparseFeatures.Row(int(v))
		for k, c := range columns {
			if to[c] = 1; values != nil {
				to[c] = values[k]
			}
		}
		if scale {
			scaleRow(ds.SparseFeatures, v, to)
		}
	}
}

// scaleRow divides a dense row of sparse features by the root mean square of its stored elements, as networks with
// nn.ModelConfig.ScaleInput do with the sparse one.
func scaleRow(m *graphops.Sparse, v int32, row []float32) {
	_, values := m.Row(int(v))
	squares := 0.0
	for _, x := range values {
		squares += float64(x) * float64(x)
	}
	if squares == 0 {
		return
	}
	by := float32(1 / math.Sqrt(squares/float64(len(values))))
	for c := range row {
		row[c] *= by
	}
}
