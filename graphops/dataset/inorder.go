package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// NamedFeatures returns the names of the features of the nodes, by node type, "" for a dataset without types; nil if no
// features have names.
func (d *Dataset) NamedFeatures() map[string][]string {
	names := map[string][]string{}
	if len(d.Meta.FeatureNames) > 0 && len(d.Meta.FeatureNames) == d.FeatureDim() {
		names[""] = d.Meta.FeatureNames
	}
	for _, t := range d.Meta.NodeTypes {
		if len(t.FeatureNames) > 0 {
			names[t.Name] = t.FeatureNames
		}
	}
	if len(names) == 0 {
		return nil
	}
	return names
}

// FeatureNamesError is the error of a dataset that lacks features of others by their names.
type FeatureNamesError struct {
	Dataset, Type string
	Missing       []string
}

func (e *FeatureNamesError) Error() string {
	of := ""
	if e.Type != "" {
		of = " of type " + e.Type
	}
	shown := e.Missing[:min(len(e.Missing), 10)]
	more := ""
	if n := len(e.Missing) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("dataset: the nodes%s of %s have no feature %s%s; features are matched by their names, so add the columns or rename them", of, e.Dataset, strings.Join(shown, ", "), more)
}

// InOrder returns the dataset with the features of the given names, as [Dataset.NamedFeatures] returns them, in that order:
// d itself if it has just these, or if one of both has no names; otherwise a dataset in memory that shares the other
// arrays with d, which must stay open. Features that are not named are left out. A notice says
// what was changed. The error for a name that d lacks is a [FeatureNamesError].
func (d *Dataset) InOrder(names map[string][]string, said notice.Func) (*Dataset, error) {
	own := d.NamedFeatures()
	out := d
	change := func(t int, typeName string, x NodeFeatures) (NodeFeatures, []string, error) {
		want, have := names[typeName], own[typeName]
		if len(want) == 0 || len(have) == 0 || slices.Equal(want, have) {
			return x, have, nil
		}
		at, err := places(d.Name(), typeName, want, have)
		if err != nil {
			return x, nil, err
		}
		if x.Cols() != len(have) || d.Graph == nil || d.Meta.Parts != nil {
			return x, nil, fmt.Errorf("dataset: the features of %s have other names or another order than those wanted, and they are not in this process to be changed; convert it again with the columns in the same order", d.Name())
		}
		n := notice.Notice{Kind: notice.Renumbered, Where: d.Name(), What: "the features have another order, and are matched by their names", Count: int64(len(want))}
		if more := len(have) - len(want); more > 0 {
			n = notice.Notice{Kind: notice.Dropped, Where: d.Name(), What: "features that are not wanted are left out, and the others are matched by their names", Count: int64(more), Of: int64(len(have))}
		}
		said.Add(n)
		if out == d {
			out = &Dataset{
				Graph: d.Graph, Features: d.Features, SparseFeatures: d.SparseFeatures, NodeFeatures: slices.Clone(d.NodeFeatures), Labels: d.Labels,
				MultiLabels: d.MultiLabels, Targets: d.Targets, NodeTimes: d.NodeTimes, GraphOffsets: d.GraphOffsets, Graphs: d.Graphs, EdgeRows: d.EdgeRows, EdgeAnswers: d.EdgeAnswers, Events: d.Events, Splits: d.Splits, EdgeSplits: d.EdgeSplits, Arrays: d.Arrays, Meta: d.Meta, measured: d.measured,
			}
			out.Meta.NodeTypes = slices.Clone(d.Meta.NodeTypes)
		}
		return x.columns(at), want, nil
	}
	if d.NodeFeatures == nil {
		x, have, err := change(0, "", NodeFeatures{Dense: d.Features, Sparse: d.SparseFeatures})
		if err != nil {
			return nil, err
		}
		if out != d {
			out.Features, out.SparseFeatures, out.Meta.FeatureNames = x.Dense, x.Sparse, have
		}
		return out, nil
	}
	for t, n := range d.Meta.NodeTypes {
		x, have, err := change(t, n.Name, d.NodeFeatures[t])
		if err != nil {
			return nil, err
		}
		if out != d {
			out.NodeFeatures[t], out.Meta.NodeTypes[t].FeatureNames = x, have
		}
	}
	return out, nil
}

// places returns where in have each name of want is.
func places(dataset, typeName string, want, have []string) ([]int, error) {
	of := make(map[string]int, len(have))
	for i, name := range have {
		of[name] = i
	}
	e := &FeatureNamesError{Dataset: dataset, Type: typeName}
	at := make([]int, len(want))
	for i, name := range want {
		p, ok := of[name]
		if !ok {
			e.Missing = append(e.Missing, name)
		}
		at[i] = p
	}
	if e.Missing != nil {
		return nil, e
	}
	return at, nil
}

// columns returns the features in which column i is column at[i].
func (x NodeFeatures) columns(at []int) NodeFeatures {
	switch {
	case x.Dense != nil && x.Dense.Half():
		m := &Matrix{Rows: x.Dense.Rows, Cols: len(at), F16: make([]uint16, x.Dense.Rows*len(at))}
		for v := range m.Rows {
			row := x.Dense.F16[v*x.Dense.Cols : (v+1)*x.Dense.Cols]
			for i, c := range at {
				m.F16[v*m.Cols+i] = row[c]
			}
		}
		return NodeFeatures{Dense: m}
	case x.Dense != nil:
		m := &Matrix{Rows: x.Dense.Rows, Cols: len(at), F32: make([]float32, x.Dense.Rows*len(at))}
		for v := range m.Rows {
			row := x.Dense.F32[v*x.Dense.Cols : (v+1)*x.Dense.Cols]
			for i, c := range at {
				m.F32[v*m.Cols+i] = row[c]
			}
		}
		return NodeFeatures{Dense: m}
	}
	to := make([]int32, x.Sparse.Cols)
	for i := range to {
		to[i] = -1
	}
	for i, c := range at {
		to[c] = int32(i)
	}
	s := &Sparse{Rows: x.Sparse.Rows, Cols: len(at), Indptr: make([]int64, 1, x.Sparse.Rows+1)}
	if s.Indices = []int32{}; x.Sparse.Values != nil {
		s.Values = []float32{}
	}
	type cell struct {
		col   int32
		value float32
	}
	var row []cell
	for v := range s.Rows {
		row = row[:0]
		for k := x.Sparse.Indptr[v]; k < x.Sparse.Indptr[v+1]; k++ {
			if c := to[x.Sparse.Indices[k]]; c >= 0 {
				one := cell{col: c, value: 1}
				if x.Sparse.Values != nil {
					one.value = x.Sparse.Values[k]
				}
				row = append(row, one)
			}
		}
		slices.SortFunc(row, func(a, b cell) int { return int(a.col - b.col) })
		for _, c := range row {
			s.Indices = append(s.Indices, c.col)
			if s.Values != nil {
				s.Values = append(s.Values, c.value)
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	return NodeFeatures{Sparse: s}
}
