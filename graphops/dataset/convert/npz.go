// This file and shchur.go, heterophilous.go read datasets stored as one NumPy .npz file, in the two layouts that the literature
// uses.
//
// # Shchur et al.
//
// "Pitfalls of Graph Neural Network Evaluation" (2018), doi:10.48550/arXiv.1811.05868,
// https://github.com/shchur/gnn-benchmark: Amazon Computers and Photo, Coauthor CS and Physics. The
// adjacency matrix is in adj_data, adj_indices, adj_indptr and adj_shape, the feature matrix
// likewise in attr_… (or dense in attr_matrix), the classes in labels.
//
// As in the paper and in PyTorch Geometric (Amazon, Coauthor) the graph becomes undirected and
// simple: each edge once, without weights and self-loops; and the features, word counts, become 0
// and 1. Dense features, and features with negative values, which are not counts, stay unchanged.
// There are no splits: the paper draws them at random.
//
// # Platonov et al.
//
// "A critical look at the evaluation of GNNs under heterophily" (2023),
// doi:10.48550/arXiv.2302.11640, https://github.com/yandex-research/heterophilous-graphs:
// Roman-empire, Amazon-ratings, Minesweeper, Tolokers and Questions. edges [E, 2] lists each
// undirected edge once; node_features [N, F], node_labels [N] and the masks train_masks, val_masks
// and test_masks [K, N] of K splits, which become the split sets 0 to K-1. The metric is ROC AUC
// for two classes, as in the paper, and accuracy otherwise. Self-loops stay.
//
// # Damaged and hostile files
//
// A file is read twice: the first pass checks every element of every used array in constant memory,
// the second loads them. So an invalid file never allocates memory in proportion to the dataset
// that it claims. An archive that claims to expand to more than 32 times its size plus 32 MiB is
// refused earlier. Package npy (dataset/internal) decodes names and other objects without
// executing them; they are not kept.

package convert

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// npzRead reads the dataset in a file; the dataset's name is the file's without ".npz". said receives what the file has and the
// dataset has not, and may be nil. Each error names the file, the array, the position in it and the reason.
func npzRead(path string, said notice.Func) (*dataset.Dataset, error) {
	f, err := npy.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var d *dataset.Dataset
	say := func(kind notice.Kind, count, of int64, what, option string) {
		if count > 0 {
			said.Add(notice.Notice{Kind: kind, Where: filepath.Base(path), What: what, Count: count, Of: of, Option: option})
		}
	}
	switch {
	case f.Find("adj_indptr") != nil || f.Find("adj_indices") != nil || f.Find("adj_data") != nil:
		d, err = readShchur(f, say)
	case f.Find("edges") != nil || f.Find("node_features") != nil:
		d, err = readHeterophilous(f, say)
	default:
		return nil, f.Errorf("its arrays are %.200q; a dataset has adj_data, adj_indices, adj_indptr and adj_shape, or edges, node_features and node_labels", f.Names())
	}
	if err != nil {
		return nil, f.Errorf("%w", err)
	}
	if left := f.Unread(); len(left) > 0 {
		say(notice.Dropped, int64(len(left)), 0, "nothing was read of the arrays "+strings.Join(left[:min(len(left), 10)], ", "), "")
	}
	d.Meta.Name = strings.TrimSuffix(filepath.Base(path), ".npz")
	d.Meta.Undirected = true
	return d, nil
}

// sayer reports what a file has and the dataset has not; a count of 0 reports nothing.
type sayer func(kind notice.Kind, count, of int64, what, option string)

// need returns a required array of the file.
func need(f *npy.File, name string) (*npy.Array, error) {
	if a := f.Find(name); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("the array %s is missing; there are %.200q", name, f.Names())
}

// matrix finds the parts of the sparse matrix PREFIX_data, PREFIX_indices,
// PREFIX_indptr and PREFIX_shape, and checks it.
func matrix(f *npy.File, prefix string) (*npy.Matrix, error) {
	m := &npy.Matrix{}
	for _, part := range []struct {
		name string
		to   **npy.Array
	}{{"data", &m.Data}, {"indices", &m.Indices}, {"indptr", &m.Indptr}} {
		a, err := need(f, prefix+"_"+part.name)
		if err != nil {
			return nil, err
		}
		*part.to = a
	}
	shape, err := need(f, prefix+"_shape")
	if err != nil {
		return nil, err
	}
	if err := shape.Is(1, true); err != nil {
		return nil, err
	}
	if shape.Len() != 2 {
		return nil, fmt.Errorf("%s is %s; it must hold two numbers", shape.Name, shape.Describe())
	}
	err = shape.EachInt(func(_ int64, xs []int64) error { m.Rows, m.Cols = xs[0], xs[1]; return nil })
	if err == nil {
		err = m.Check()
	}
	return m, err
}

// checkLabels checks the classes of n nodes without storing them, and returns the number of
// classes. An unknown class is -1.
func checkLabels(a *npy.Array, n int64) (classes int, err error) {
	if err := a.Is(1, true); err != nil {
		return 0, err
	}
	if a.Len() != n {
		return 0, fmt.Errorf("%s has %d elements for %d nodes", a.Name, a.Len(), n)
	}
	err = a.EachInt(func(at int64, xs []int64) error {
		for i, y := range xs {
			if y < -1 || y >= n {
				return fmt.Errorf("entry %d of %s is %d; a class is at least 0 and below the number of nodes, or -1 if it is unknown", at+int64(i), a.Name, y)
			}
			classes = max(classes, int(y)+1)
		}
		return nil
	})
	if err == nil && classes == 0 {
		err = fmt.Errorf("%s has no class for any node", a.Name)
	}
	return classes, err
}

// loadInts reads an array whose elements have been checked to fit.
func loadInts(a *npy.Array) ([]int32, error) {
	to := make([]int32, a.Len())
	err := a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			to[at+int64(i)] = int32(x)
		}
		return nil
	})
	return to, err
}

// checkDense checks a feature matrix of n rows.
func checkDense(a *npy.Array, n int64) error {
	if err := a.Is(2, false); err != nil {
		return err
	}
	if int64(a.Shape[0]) != n || a.Shape[1] == 0 || a.Shape[1] > math.MaxInt32 {
		return fmt.Errorf("%s is %s; %d nodes need as many rows, and at least one column", a.Name, a.Describe(), n)
	}
	return a.EachFloat(func(at int64, xs []float32) error {
		for i, x := range xs {
			if x-x != 0 { // infinite or NaN
				k := a.At(at + int64(i))
				return fmt.Errorf("row %d, column %d of %s is %v; features must be finite", k/int64(a.Shape[1]), k%int64(a.Shape[1]), a.Name, x)
			}
		}
		return nil
	})
}

// loadDense reads a matrix that has passed checkDense.
func loadDense(a *npy.Array) (*dataset.Matrix, error) {
	m := &dataset.Matrix{Rows: a.Shape[0], Cols: a.Shape[1], F32: make([]float32, a.Len())}
	return m, a.EachFloat(func(at int64, xs []float32) error {
		if !a.Fortran {
			copy(m.F32[at:], xs)
			return nil
		}
		for i, x := range xs {
			m.F32[a.At(at+int64(i))] = x
		}
		return nil
	})
}
