package divided

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/parallel"
)

// OneWidth returns ds itself unless its types of nodes have features of widths of their own. Then it returns a
// dataset in memory, which shares the rest with ds, where all nodes have as many features as those of the widest
// type: narrower ones end in zeros, and nodes of types without features have zeros alone. A linear layer for
// each type computes the same from them.
//
// It returns an error if the features do not fit in memory. Cost: a copy of all features.
func OneWidth(ds *dataset.Dataset) (*dataset.Dataset, error) {
	if ds == nil {
		return nil, nil
	}
	width := 0
	for _, x := range ds.NodeFeatures {
		width = max(width, x.Cols())
	}
	if width == 0 {
		return ds, nil
	}
	n := ds.Nodes()
	if err := machine.Room(fmt.Sprintf("features of types, %d for each of %d nodes", width, n), 4*float64(n)*float64(width)); err != nil {
		return nil, fmt.Errorf("%w; give the types features of fewer columns, or learn a row for each node instead", err)
	}
	out := &dataset.Matrix{Rows: n, Cols: width, F32: make([]float32, n*width)}
	for t, x := range ds.NodeFeatures {
		lo, hi := ds.Schema().Range(t)
		parallel.For(0, hi-lo, 1+(1<<15)/width, func(from, to int) {
			for i := from; i < to; i++ {
				row := out.F32[(lo+i)*width:][:width]
				switch {
				case x.Dense != nil:
					copy(row, x.Dense.Row(i))
				case x.Sparse != nil:
					cols, values := x.Sparse.Row(i)
					for j, c := range cols {
						row[c] = 1
						if values != nil {
							row[c] = values[j]
						}
					}
				}
			}
		})
	}
	r := ds.WithGraph(ds.Graph)
	r.Features, r.SparseFeatures, r.NodeFeatures = out, nil, nil
	r.Meta.FeatureFormat = ""
	return r, nil
}
