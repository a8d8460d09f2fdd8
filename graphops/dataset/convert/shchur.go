package convert

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

func readShchur(f *npy.File, say sayer) (*dataset.Dataset, error) {
	adj, err := matrix(f, "adj")
	if err != nil {
		return nil, err
	}
	if adj.Rows != adj.Cols {
		return nil, fmt.Errorf("adj_shape is [%d, %d]; an adjacency matrix is square", adj.Rows, adj.Cols)
	}
	dense, attr := f.Find("attr_matrix"), (*npy.Matrix)(nil)
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
	if d.Graph, err = loadGraph(adj, say); err != nil {
		return nil, err
	}
	if attr != nil {
		if d.SparseFeatures, err = loadWords(attr, say); err != nil {
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
func loadGraph(adj *npy.Matrix, say sayer) (*graphops.Graph, error) {
	weights, err := countOf(adj.Data, func(x float32) bool { return x != 1 })
	if err != nil {
		return nil, err
	}
	say(notice.Dropped, weights, adj.Data.Len(), "edges have a weight other than 1 in adj_data, and the graph has no weights, as in the collection's papers", "edge_index.npy and edge_weight.npy in a folder (--format numpy) keep weights")
	pattern := *adj
	pattern.Data = nil // the weights are not used
	indptr, indices, _, err := pattern.Load()
	if err != nil {
		return nil, err
	}
	src, dst, all := indices[:0], make([]int32, 0, len(indices)), int64(len(indices))
	lo := indptr[0]
	for v, hi := range indptr[1:] {
		for _, u := range indices[lo:hi] {
			if int(u) != v {
				src, dst = append(src, u), append(dst, int32(v))
			}
		}
		lo = hi
	}
	say(notice.Dropped, all-int64(len(src)), all, "edges from a node to itself are left out", "")
	return graphops.FromEdges(int(adj.Rows), src, dst, graphops.BuildOptions{Undirected: true})
}

// loadWords converts a matrix of counts to 0 and 1, and returns any other matrix unchanged.
func loadWords(m *npy.Matrix, say sayer) (*dataset.Sparse, error) {
	s := &dataset.Sparse{Rows: int(m.Rows), Cols: int(m.Cols)}
	negative, err := countOf(m.Data, func(x float32) bool { return x < 0 })
	if err != nil {
		return nil, err
	}
	if s.Indptr, s.Indices, s.Values, err = m.Load(); err == nil && negative == 0 {
		other := int64(0)
		for _, x := range s.Values {
			if x != 1 {
				other++
			}
		}
		say(notice.Guessed, other, int64(len(s.Indices)), "features are counts of words, which become 0 and 1, as in the collection's papers", "x.npy beside edge_index.npy in a folder (--format numpy) keeps the numbers")
		s.Values = nil
	}
	return s, err
}

// countOf returns how many elements of an array are of a kind.
func countOf(a *npy.Array, is func(x float32) bool) (n int64, err error) {
	err = a.EachFloat(func(_ int64, xs []float32) error {
		for _, x := range xs {
			if is(x) {
				n++
			}
		}
		return nil
	})
	return n, err
}
