package dataset

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// checkEdgeShape returns an error if the sizes of the edges' features or times contradict the graph's.
func (d *Dataset) checkEdgeShape() error {
	if d.Graph == nil {
		return nil
	}
	if x := d.Graph.EdgeFeatures; x != nil {
		switch n := int64(max(len(x.F32), len(x.F16))); {
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

func edgeFeatureArray(x *graphops.EdgeFeatures) array {
	shape := []int{int(x.Rows()), x.Cols}
	if x.Half() {
		return array{edgeFeaturesFile, npyFloat16, shape, rawBytes(x.F16)}
	}
	return array{edgeFeaturesFile, npyFloat32, shape, rawBytes(x.F32)}
}

func (d *Dataset) loadEdgeData(src source) error {
	m := &d.Meta
	if d.Graph == nil {
		return nil
	}
	var x *graphops.EdgeFeatures
	if m.EdgeFeatureDim > 0 {
		a, label, err := openNPY(src, edgeFeaturesFile, "edge_feature_dim", m.EdgeFeatureDim)
		if err != nil {
			return err
		}
		if err := a.expect(label, []npy.Type{npyFloat32, npyFloat16}, int(m.NumEdges), m.EdgeFeatureDim); err != nil {
			return err
		}
		x = &graphops.EdgeFeatures{Cols: m.EdgeFeatureDim}
		if a.dtype == npyFloat16 {
			x.F16 = view[uint16](a.data)
		} else {
			x.F32 = view[float32](a.data)
		}
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
			return d.wrong(edgeFeaturesFile, "row %d, column %d is %v; features must be finite", row, col, values[col])
		}
	}
	return nil
}

// withEdgeFeatureType returns d with the edges' features in the given type: see [WriteOptions].
func (d *Dataset) withEdgeFeatureType(name string) (*Dataset, error) {
	if d.Graph == nil || d.Graph.EdgeFeatures == nil || name == "" || (name == "f16") == d.Graph.EdgeFeatures.Half() {
		return d, nil
	}
	x := d.Graph.EdgeFeatures
	if err := d.checkEdgeShape(); err != nil {
		return nil, err
	}
	m := &Matrix{Rows: int(x.Rows()), Cols: x.Cols, F32: x.F32, F16: x.F16}
	if name == "f16" {
		var err error
		if m, err = m.Float16(); err != nil {
			return nil, fmt.Errorf("edge %w", err)
		}
	} else {
		m = m.Float32()
	}
	other := *d
	other.Graph = d.Graph.WithEdgeData(&graphops.EdgeFeatures{Cols: m.Cols, F32: m.F32, F16: m.F16}, d.Graph.EdgeTimes)
	return &other, nil
}
