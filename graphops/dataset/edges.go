package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/graphops/dataset/notice"
)

// checkEdgeShape returns an error if the sizes of the edges' features or times contradict the graph's.
func (d *Dataset) checkEdgeShape() error {
	if d.Graph == nil {
		return nil
	}
	if x := d.Graph.EdgeFeatures; x != nil {
		switch n := int64(max(len(x.F32), len(x.F16))); {
		case x.ByRelation != nil && x.Rows() != d.Edges():
			return fmt.Errorf("edge features by relation of %d edges for %d edges", x.Rows(), d.Edges())
		case x.ByRelation != nil && len(x.ByRelation) != len(d.Schema().Relations):
			return fmt.Errorf("edge features of %d relations for %d relations", len(x.ByRelation), len(d.Schema().Relations))
		case x.ByRelation != nil: // graphops.EdgeFeaturesByRelation has checked them
		case x.Cols <= 0:
			return fmt.Errorf("edge features of %d columns: set Graph.EdgeFeatures to nil instead", x.Cols)
		case x.F32 != nil && x.F16 != nil:
			return fmt.Errorf("there are edge features in both F32 and F16: set one of them to nil")
		case n != d.Edges()*int64(x.Cols):
			return fmt.Errorf("%d values of edge features for %d edges with %d features each", n, d.Edges(), x.Cols)
		}
	}
	if t := d.Graph.EdgeTimes; t != nil && int64(len(t)) != d.Edges() {
		return fmt.Errorf("%d edge times for %d edges", len(t), d.Edges())
	}
	return nil
}

// edgeFeaturesOf is the file with the features of one relation's edges.
func edgeFeaturesOf(relation int) string { return ofType(edgeFeaturesFile, strconv.Itoa(relation)) }

func edgeFeatureArrays(x *graphops.EdgeFeatures) (all []array) {
	if x.ByRelation == nil {
		return []array{edgeFeatureArray(x, edgeFeaturesFile)}
	}
	for r, of := range x.ByRelation {
		if of != nil {
			all = append(all, edgeFeatureArray(of, edgeFeaturesOf(r)))
		}
	}
	return all
}

func edgeFeatureArray(x *graphops.EdgeFeatures, file string) array {
	shape := []int{int(x.Rows()), x.Cols}
	if x.Half() {
		return array{file, npyFloat16, shape, rawBytes(x.F16)}
	}
	return array{file, npyFloat32, shape, rawBytes(x.F32)}
}

// loadEdgeFeatures reads one file of features of edges.
func loadEdgeFeatures(src source, file, key string, value any, edges, cols int) (*graphops.EdgeFeatures, error) {
	a, label, err := openNPY(src, file, key, value)
	if err != nil {
		return nil, err
	}
	if err := a.expect(label, []npy.Type{npyFloat32, npyFloat16}, edges, cols); err != nil {
		return nil, err
	}
	if a.dtype == npyFloat16 {
		return &graphops.EdgeFeatures{Cols: cols, F16: view[uint16](a.data)}, nil
	}
	return &graphops.EdgeFeatures{Cols: cols, F32: view[float32](a.data)}, nil
}

// loadEdgesByRelation reads the features of each relation's edges.
func (d *Dataset) loadEdgesByRelation(src source) error {
	dims := d.Meta.EdgeFeatureDims
	count := make([]int, len(dims))
	for e, t := range d.Graph.EdgeTypes {
		if int(t) >= len(dims) {
			return d.wrong(edgeTypesFile, "entry %d: type %d, but metadata.json has %d relations", e, t, len(dims))
		}
		count[t]++
	}
	of := make([]*graphops.EdgeFeatures, len(dims))
	for r, cols := range dims {
		if cols == 0 {
			continue
		}
		var err error
		if of[r], err = loadEdgeFeatures(src, edgeFeaturesOf(r), "edge_feature_dims", dims, count[r], cols); err != nil {
			return err
		}
	}
	x, err := graphops.EdgeFeaturesByRelation(d.Graph.EdgeTypes, of)
	if err != nil {
		return fmt.Errorf("dataset: reading %s: %w", d.Name(), err)
	}
	d.Graph.EdgeFeatures = x
	return nil
}

// checkEdgeFeatureDims checks what metadata.json says about the features of each relation's edges.
func (m *Metadata) checkEdgeFeatureDims() error {
	dims := m.EdgeFeatureDims
	if dims == nil {
		return nil
	}
	if len(dims) != len(m.Relations) {
		return fmt.Errorf("edge_feature_dims has %d numbers for %d relations", len(dims), len(m.Relations))
	}
	for r, n := range dims {
		if n < 0 || n > m.EdgeFeatureDim {
			return fmt.Errorf("edge_feature_dims of relation %s is %d; it must lie in [0, edge_feature_dim], which is %d", m.Relations[r], n, m.EdgeFeatureDim)
		}
	}
	if slices.Max(dims) != m.EdgeFeatureDim {
		return fmt.Errorf("edge_feature_dim is %d, but the largest of edge_feature_dims %d", m.EdgeFeatureDim, slices.Max(dims))
	}
	return nil
}

// byRelation reports whether the features of edges are in a file for each relation.
func (m *Metadata) byRelation() bool {
	return m.EdgeFeatureDims != nil && m.Part == nil && m.Parts == nil
}

func (d *Dataset) loadEdgeData(src source) error {
	m := &d.Meta
	if d.Graph == nil {
		return nil
	}
	var x *graphops.EdgeFeatures
	if m.EdgeFeatureDim > 0 && !m.byRelation() { // else loadEdgesByRelation reads them, once the types are known
		var err error
		if x, err = loadEdgeFeatures(src, edgeFeaturesFile, "edge_feature_dim", m.EdgeFeatureDim, int(m.NumEdges), m.EdgeFeatureDim); err != nil {
			return err
		}
		x.Widths = m.EdgeFeatureDims
	}
	var times []int64
	if m.EdgeTimes {
		a, label, err := openNPY(src, edgeTimesFile, "edge_times", true)
		if err != nil {
			return err
		}
		if a.dtype.Kind == 'f' {
			return readError(label, "its elements are %v; times are int64: choose a unit in which they are whole numbers, and round", a.dtype)
		}
		if err := a.expect(label, []npy.Type{npyInt64}, int(m.NumEdges)); err != nil {
			return err
		}
		times = view[int64](a.data)
	}
	if x != nil || times != nil {
		d.Graph = d.Graph.WithEdgeData(x, times)
	}
	return nil
}

// checkEdgeFeatures finds features of edges that are not finite.
func (d *Dataset) checkEdgeFeatures(r *reading) error {
	if d.Graph == nil || d.Graph.EdgeFeatures == nil {
		return nil
	}
	x := d.Graph.EdgeFeatures
	step, size := int64(max(1, (1<<24)/x.Cols)), int64(4) // edges between two checks of the context
	if x.Half() {
		size = 2
	}
	for lo := int64(0); lo < x.Rows(); lo += step {
		hi := min(lo+step, x.Rows())
		if err := r.next(size * (hi - lo) * int64(x.Cols)); err != nil {
			return err
		}
		if row, col := x.FirstNotFinite(lo, hi); row >= 0 {
			values := make([]float32, x.Cols)
			x.CopyRow(values, row)
			if x.ByRelation != nil {
				r := d.Graph.EdgeTypes[row]
				return d.wrong(edgeFeaturesOf(int(r)), "the row of edge %d of the graph, column %d is %v; features must be finite", row, col, values[col])
			}
			return d.wrong(edgeFeaturesFile, "row %d, column %d is %v; features must be finite", row, col, values[col])
		}
	}
	return nil
}

// withEdgeFeatureType returns d with the edges' features in the given type: see [WriteOptions]. lost receives what the type
// cannot represent.
func (d *Dataset) withEdgeFeatureType(name string, lost *notice.List) (*Dataset, error) {
	if d.Graph == nil || d.Graph.EdgeFeatures == nil || name == "" || (name == "f16") == d.Graph.EdgeFeatures.Half() {
		return d, nil
	}
	x := d.Graph.EdgeFeatures
	if err := d.checkEdgeShape(); err != nil {
		return nil, err
	}
	convert := func(x *graphops.EdgeFeatures, where string) (*graphops.EdgeFeatures, error) {
		m := &Matrix{Rows: int(x.Rows()), Cols: x.Cols, F32: x.F32, F16: x.F16}
		if name == "f16" {
			var err error
			var r rounding
			if m, err = m.float16(&r); err != nil {
				return nil, fmt.Errorf("edge %w", err)
			}
			r.say(where, lost)
		} else {
			m = m.Float32()
		}
		return &graphops.EdgeFeatures{Cols: m.Cols, F32: m.F32, F16: m.F16, Widths: x.Widths}, nil
	}
	var y *graphops.EdgeFeatures
	var err error
	if x.ByRelation == nil {
		y, err = convert(x, "edge_features")
	} else {
		of := make([]*graphops.EdgeFeatures, len(x.ByRelation))
		for r, part := range x.ByRelation {
			if part == nil {
				continue
			}
			if of[r], err = convert(part, strings.TrimSuffix(edgeFeaturesOf(r), ".npy")); err != nil {
				return nil, fmt.Errorf("relation %s: %w", d.Schema().Relations[r], err)
			}
		}
		y, err = graphops.EdgeFeaturesByRelation(d.Graph.EdgeTypes, of)
	}
	if err != nil {
		return nil, err
	}
	other := *d
	other.Graph = d.Graph.WithEdgeData(y, d.Graph.EdgeTimes)
	return &other, nil
}
