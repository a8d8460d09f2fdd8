package gnb

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/simd"
)

// rowSearch searches a repeated layer-wise evaluation, in the rows of one rank.
type rowSearch struct {
	searched
	// found is the first finding, and at its position: 0 for parameters and input, else the layer,
	// counted from 1.
	found string
	at    int
}

// input searches the parameters, and the features and in-edges' weights of the nodes [lo, hi).
func (s *rowSearch) input(ds *dataset.Dataset, lo, hi int) {
	if s.found = s.parameter(); s.found == "" {
		s.found = searchGraphWeights(ds, lo, hi)
	}
	if s.found == "" {
		s.found = searchFeatures(ds, lo, hi)
	}
}

// layer searches a layer's output rows for the nodes from lo on.
func (s *rowSearch) layer(layer, lo, cols int, rows []float32) {
	if s.found != "" {
		return
	}
	if s.found = s.output(layer, rows, cols, func(r int) int { return lo + r }); s.found != "" {
		s.at = layer + 1
	}
}

// layerOf searches a layer's output rows for the nodes ids.
func (s *rowSearch) layerOf(layer, cols int, rows []float32, ids []int32) {
	if s.found != "" {
		return
	}
	if s.found = s.output(layer, rows, cols, func(r int) int { return int(ids[r]) }); s.found != "" {
		s.at = layer + 1
	}
}

func searchGraphWeights(ds *dataset.Dataset, lo, hi int) string {
	g := ds.Graph
	if g.EdgeWeights == nil {
		return ""
	}
	first, last := g.Indptr[lo], g.Indptr[hi]
	i := simd.NotFinite(g.EdgeWeights[first:last])
	if i < 0 {
		return ""
	}
	at, v := int64(i)+first, lo
	for g.Indptr[v+1] <= at {
		v++
	}
	return fmt.Sprintf("the weight of an edge into node %d is %v", v, g.EdgeWeights[at])
}

func searchFeatures(ds *dataset.Dataset, lo, hi int) string {
	if x := ds.SparseFeatures; x != nil && ds.Features == nil {
		for v := lo; v < hi; v++ {
			cols, values := x.Row(v)
			if i := simd.NotFinite(values); i >= 0 {
				return badFeature(fmt.Sprintf("node %d", v), int(cols[i]), values[i])
			}
		}
		return ""
	}
	if ds.Features == nil {
		return ""
	}
	const rows = 1024
	cols := ds.Features.Cols
	ids, buf := make([]int32, 0, rows), make([]float32, rows*cols)
	for v := lo; v < hi; v += rows {
		ids = ids[:0]
		for u := v; u < min(v+rows, hi); u++ {
			ids = append(ids, int32(u))
		}
		x := buf[:len(ids)*cols]
		ds.Features.Gather(x, ids, 1)
		if i := simd.NotFinite(x); i >= 0 {
			return badFeature(fmt.Sprintf("node %d", v+i/cols), i%cols, x[i])
		}
	}
	return ""
}
