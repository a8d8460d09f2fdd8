package feed

import (
	"math"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// InputRow writes the features of node v as a network reads them as a dense row: sparse ones by ScaleRow if scale is true.
func InputRow(ds *dataset.Dataset, v int32, scale bool, to []float32) {
	clear(to)
	switch {
	case ds.Features != nil:
		ds.Features.Gather(to, []int32{v}, 1)
	case ds.SparseFeatures != nil:
		columns, values := ds.SparseFeatures.Row(int(v))
		Scatter(to, columns, values)
		if scale {
			ScaleRow(to, values)
		}
	}
}

// Scatter writes a sparse row into a dense one of zeros; values is nil where all are 1.
func Scatter(to []float32, columns []int32, values []float32) {
	for k, c := range columns {
		if to[c] = 1; values != nil {
			to[c] = values[k]
		}
	}
}

// ScaleRow divides a dense row of sparse features by the root mean square of the values that the sparse one stores, as networks with
// nn.ModelConfig.ScaleInput do with that.
func ScaleRow(row, values []float32) {
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
