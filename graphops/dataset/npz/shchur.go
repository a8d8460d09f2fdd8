package npz

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/csr"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npz"
)

func readShchur(f *npz.File) (*dataset.Dataset, error) {
	adj, err := matrix(f, "adj")
	if err != nil {
		return nil, err
	}
	if adj.Rows != adj.Cols {
		return nil, fmt.Errorf("adj_shape is [%d, %d]; an adjacency matrix is square", adj.Rows, adj.Cols)
	}
	dense, attr := f.Find("attr_matrix"), (*csr.Matrix)(nil)
	switch {
	case f.Find("attr_indptr") != nil || f.Find("attr_data") != nil:
		if attr, err = matrix(f, "attr"); err != nil {
			return nil, err
		}
		if attr.Rows != adj.Rows || attr.Cols == 0 {
			return nil, fmt.Errorf("attr_shape is [%d, %d]; %d nodes need as many rows, and at least one column", attr.Rows, attr.Cols, adj.Rows)
		}
		dense = nil
	case dense != nil:
		if err := checkDense(dense, adj.Rows); err != nil {
			return nil, err
		}
	}
	if f.Find("labels_indptr") != nil {
		return nil, fmt.Errorf("labels_indptr: nodes of several classes are not read from this format")
	}
	d := &dataset.Dataset{Meta: dataset.Metadata{Metric: dataset.MetricAccuracy, Source: "gnn-benchmark .npz file"}}
	labels := f.Find("labels")
	if labels != nil {
		if d.Meta.NumClasses, err = checkLabels(labels, adj.Rows); err != nil {
			return nil, err
		}
	}
	// All checks have passed; now the arrays are loaded.
	if d.Graph, err = loadGraph(adj); err != nil {
		return nil, err
	}
	if attr != nil {
		if d.SparseFeatures, err = loadWords(attr); err != nil {
			return nil, err
		}
	}
	if dense != nil {
		if d.Features, err = loadDense(dense); err != nil {
			return nil, err
		}
	}
	if labels != nil {
		if d.Labels, err = loadInts(labels); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// loadGraph returns the undirected simple graph of an adjacency matrix.
func loadGraph(adj *csr.Matrix) (*graphops.Graph, error) {
	pattern := *adj
	pattern.Data = nil // the weights are not used
	indptr, indices, _, err := pattern.Load()
	if err != nil {
		return nil, err
	}
	src, dst := indices[:0], make([]int32, 0, len(indices))
	lo := indptr[0]
	for v, hi := range indptr[1:] {
		for _, u := range indices[lo:hi] {
			if int(u) != v {
				src, dst = append(src, u), append(dst, int32(v))
			}
		}
		lo = hi
	}
	return graphops.FromEdges(int(adj.Rows), src, dst, graphops.BuildOptions{Undirected: true})
}

// loadWords converts a matrix of counts to 0 and 1, and returns any other matrix unchanged.
func loadWords(m *csr.Matrix) (*dataset.Sparse, error) {
	s := &dataset.Sparse{Rows: int(m.Rows), Cols: int(m.Cols)}
	negative, err := hasNegative(m.Data)
	if err != nil {
		return nil, err
	}
	if s.Indptr, s.Indices, s.Values, err = m.Load(); err == nil && !negative {
		s.Values = nil
	}
	return s, err
}

func hasNegative(a *npy.Array) (found bool, err error) {
	err = a.EachFloat(func(_ int64, xs []float32) error {
		for _, x := range xs {
			found = found || x < 0
		}
		return nil
	})
	return found, err
}
