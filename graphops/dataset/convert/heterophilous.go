package convert

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// maxSplitSets is above the number of splits in any paper; each split set is three files.
const maxSplitSets = 1000

func readHeterophilous(f *npy.File, say sayer) (*dataset.Dataset, error) {
	labels, err := need(f, "node_labels")
	if err != nil {
		return nil, err
	}
	n := labels.Len()
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("%s has %d elements; nodes are numbered by int32", labels.Name, n)
	}
	classes, err := checkLabels(labels, n)
	if err != nil {
		return nil, err
	}
	edges, err := need(f, "edges")
	if err != nil {
		return nil, err
	}
	if err := checkEdges(edges, n); err != nil {
		return nil, err
	}
	features, err := need(f, "node_features")
	if err != nil {
		return nil, err
	}
	if err := checkDense(features, n); err != nil {
		return nil, err
	}
	masks := map[string]*npy.Array{}
	for _, name := range []string{"train", "val", "test"} {
		a := f.Find(name + "_masks")
		if a == nil {
			continue
		}
		if err := checkMasks(a, n); err != nil {
			return nil, err
		}
		masks[name] = a
		if first := masks["train"]; first == nil || a.Shape[0] != first.Shape[0] {
			return nil, fmt.Errorf("%s is %s, but train_masks, which must have as many rows, is missing or another size", a.Name, a.Describe())
		}
	}
	// All checks have passed; now the arrays are loaded.
	d := &dataset.Dataset{
		Splits: map[string][]int32{},
		Meta:   dataset.Metadata{NumClasses: classes, Metric: dataset.MetricAccuracy, Source: "heterophilous-graphs .npz file"},
	}
	if classes == 2 {
		d.Meta.Metric = dataset.MetricROCAUC
	}
	if d.Graph, err = loadEdges(edges, n, say); err != nil {
		return nil, err
	}
	if d.Features, err = loadDense(features); err != nil {
		return nil, err
	}
	if d.Labels, err = loadInts(labels); err != nil {
		return nil, err
	}
	for name, a := range masks {
		if err := loadMasks(d.Splits, name, a); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func checkEdges(a *npy.Array, n int64) error {
	if err := a.Is(2, true); err != nil {
		return err
	}
	if a.Shape[1] != 2 {
		return fmt.Errorf("%s is %s; it must have two columns, the ends of each edge", a.Name, a.Describe())
	}
	return a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			if x < 0 || x >= n {
				return fmt.Errorf("row %d of %s has the node %d; the nodes are 0 to %d", a.At(at+int64(i))/2, a.Name, x, n-1)
			}
		}
		return nil
	})
}

// loadEdges returns the undirected graph of the edges.
func loadEdges(a *npy.Array, n int64, say sayer) (*graphops.Graph, error) {
	src, dst := make([]int32, a.Shape[0]), make([]int32, a.Shape[0])
	ends := [2][]int32{src, dst}
	err := a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			k := a.At(at + int64(i))
			ends[k%2][k/2] = int32(x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	loops, listed := int64(0), int64(len(src))
	g, err := graphops.FromEdges(int(n), src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		return nil, err
	}
	for v := range int32(n) {
		if _, ok := slices.BinarySearch(g.InNeighbors(v), v); ok {
			loops++
		}
	}
	say(notice.Merged, listed-(g.NumEdges()+loops)/2, listed, "edges that repeat another one or its reverse are kept once", "")
	return g, nil
}

func checkMasks(a *npy.Array, n int64) error {
	if err := a.Is(2, true); err != nil {
		return err
	}
	if int64(a.Shape[1]) != n || a.Shape[0] > maxSplitSets {
		return fmt.Errorf("%s is %s; it must have a column for each of %d nodes, and at most %d rows, one per split", a.Name, a.Describe(), n, maxSplitSets)
	}
	return a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			if x != 0 && x != 1 {
				k := a.At(at + int64(i))
				return fmt.Errorf("row %d, column %d of %s is %d; a mask is of 0 and 1", k/n, k%n, a.Name, x)
			}
		}
		return nil
	})
}

// loadMasks adds row k of the masks as the split base of set k.
func loadMasks(splits map[string][]int32, base string, a *npy.Array) error {
	n := int64(a.Shape[1])
	sets := make([][]int32, a.Shape[0])
	err := a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			if x != 0 {
				at := a.At(at + int64(i))
				k, v := at/n, at%n
				sets[k] = append(sets[k], int32(v))
			}
		}
		return nil
	})
	for k, ids := range sets {
		splits[dataset.SplitSetName(base, k)] = ids
	}
	return err
}
