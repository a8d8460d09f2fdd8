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
// each type computes the same from them. Its Origin is that of ds.
//
// The features are a dense float32 matrix [nodes, width], or compressed rows if these take less than half of its
// memory: 8 bytes per node, and 8 for each number of a dense row and for each element of a sparse one (4 if all
// elements are 1). So they take at most twice the memory of such rows, whatever the widths.
//
// It returns an error if the features do not fit in memory. Cost: a copy of all features.
func OneWidth(ds *dataset.Dataset) (*dataset.Dataset, error) {
	if ds == nil {
		return nil, nil
	}
	width, ones := 0, true
	n := ds.Nodes()
	for _, x := range ds.NodeFeatures {
		width = max(width, x.Cols())
	}
	if width == 0 {
		return ds, nil
	}
	indptr := make([]int64, 1, n+1) // of compressed rows
	for t, x := range ds.NodeFeatures {
		lo, hi := ds.Schema().Range(t)
		ones = ones && x.Dense == nil && (x.Sparse == nil || x.Sparse.Values == nil)
		for i := range hi - lo {
			size := int64(0)
			switch {
			case x.Dense != nil:
				size = int64(x.Dense.Cols)
			case x.Sparse != nil:
				size = x.Sparse.Indptr[i+1] - x.Sparse.Indptr[i]
			}
			indptr = append(indptr, indptr[len(indptr)-1]+size)
		}
	}
	element := 8.0
	if ones {
		element = 4
	}
	elements := indptr[n]
	dense, sparse := 4*float64(n)*float64(width), 8*float64(n)+element*float64(elements)
	compressed := sparse < dense/2
	need := dense
	if compressed {
		need = sparse
	}
	if err := machine.Room(fmt.Sprintf("features of types, up to %d for each of %d nodes", width, n), need); err != nil {
		return nil, fmt.Errorf("%w; give the types features of fewer columns, or learn a row for each node instead", err)
	}
	r := ds.WithGraph(ds.Graph)
	r.ComputedFrom(ds)
	r.Features, r.SparseFeatures, r.NodeFeatures, r.Meta.FeatureFormat = nil, nil, nil, ""
	if !compressed {
		r.Features = &dataset.Matrix{Rows: n, Cols: width, F32: make([]float32, n*width)}
		eachNode(ds, func(t, i, v int) { fillRow(r.Features.F32[v*width:][:width], ds.NodeFeatures[t], i) })
		return r, nil
	}
	out := &dataset.Sparse{Rows: n, Cols: width, Indptr: indptr, Indices: make([]int32, elements)}
	r.SparseFeatures, r.Meta.FeatureFormat = out, dataset.FormatCSROnes
	if !ones {
		out.Values, r.Meta.FeatureFormat = make([]float32, elements), dataset.FormatCSR
	}
	eachNode(ds, func(t, i, v int) {
		from, to := indptr[v], indptr[v+1]
		indices := out.Indices[from:to]
		switch x := ds.NodeFeatures[t]; {
		case x.Dense != nil:
			for c := range indices {
				indices[c] = int32(c)
			}
			copy(out.Values[from:to], x.Dense.Row(i))
		case x.Sparse != nil:
			cols, values := x.Sparse.Row(i)
			copy(indices, cols)
			for k := range cols {
				if ones {
					break
				}
				out.Values[from+int64(k)] = valueAt(values, k)
			}
		}
	})
	return r, nil
}

// EdgesOneWidth returns ds itself unless its relations have edge features of widths of their own. Then it returns a
// dataset in memory whose edges all have as many as those of the widest relation, with zeros behind narrower rows.
func EdgesOneWidth(ds *dataset.Dataset) (*dataset.Dataset, error) {
	if ds == nil || ds.Graph == nil || ds.Graph.EdgeFeatures == nil || ds.Graph.EdgeFeatures.ByRelation == nil {
		return ds, nil
	}
	x := ds.Graph.EdgeFeatures
	if err := machine.Room(fmt.Sprintf("features of edges, up to %d for each of %d", x.Cols, x.Rows()), float64(x.Rows())*float64(x.Cols)*4); err != nil {
		return nil, fmt.Errorf("%w; give the relations edge features of fewer columns", err)
	}
	r := ds.WithGraph(ds.Graph.WithEdgeData(x.OneWidth(), ds.Graph.EdgeTimes))
	r.Events, r.Meta.NumEvents = ds.Events, ds.Meta.NumEvents // the edges stay where they are
	r.ComputedFrom(ds)
	return r, nil
}

// Whole is [OneWidth] of the features of nodes and of those of edges, whose relations can have features of widths of their
// own too: [graphops.EdgeFeaturesByRelation]. Parts and graph servers have rows of one width.
func Whole(ds *dataset.Dataset) (*dataset.Dataset, error) {
	one, err := EdgesOneWidth(ds)
	if err != nil {
		return nil, err
	}
	return OneWidth(one)
}

// eachNode calls do for every node v, which is number i of type t, from several goroutines.
func eachNode(ds *dataset.Dataset, do func(t, i, v int)) {
	for t := range ds.NodeFeatures {
		lo, hi := ds.Schema().Range(t)
		parallel.For(0, hi-lo, 1<<10, func(from, to int) {
			for i := from; i < to; i++ {
				do(t, i, lo+i)
			}
		})
	}
}

// fillRow writes the features of node i of a type to the beginning of a row of zeros.
func fillRow(row []float32, x dataset.NodeFeatures, i int) {
	switch {
	case x.Dense != nil:
		copy(row, x.Dense.Row(i))
	case x.Sparse != nil:
		cols, values := x.Sparse.Row(i)
		for j, c := range cols {
			row[c] = valueAt(values, j)
		}
	}
}

// valueAt is element k of a row of sparse features.
func valueAt(values []float32, k int) float32 {
	if values == nil {
		return 1
	}
	return values[k]
}
