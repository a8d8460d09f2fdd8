package convert

import (
	"math"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/tabular"
)

// Names of the files of edge features and times in a folder of NumPy arrays.
var (
	edgeFeatureFiles = []string{"edge_attr.npy", "edge_features.npy", "edge_feat.npy"}
	edgeTimeFiles    = []string{"edge_time.npy", "edge_times.npy"}
)

func isNPY(spec string) bool { return strings.HasSuffix(spec, ".npy") }

// readData reads the features and times of the edges from the .npy files that the options name. Row i
// belongs to edge i of the input. Columns of a table have been read with the edges.
func (e *edges) readData(o Options) error {
	for _, c := range []struct {
		flag, spec string
		have       bool
	}{{"--edge-features", o.EdgeFeatures, e.x != nil}, {"--edge-times", o.EdgeTimes, e.times != nil}} {
		if c.spec != "" && !isNPY(c.spec) && !c.have {
			return tabular.Errorf("%s is %q, but these edges have no columns with names; give FILE.npy with a row for each edge", c.flag, c.spec)
		}
	}
	var err error
	if isNPY(o.EdgeFeatures) {
		s := fileSource(o.EdgeFeatures, o.meter)
		if e.x, err = s.edgeFeatures("", len(e.src)); err != nil {
			return err
		}
	}
	if isNPY(o.EdgeTimes) {
		s := fileSource(o.EdgeTimes, o.meter)
		e.times, err = s.edgeTimes("", len(e.src))
	}
	return err
}

// edgeFeatures reads a .npy file [edges, any], or [edges] for one feature per edge.
func (s *source) edgeFeatures(name string, numEdges int) (*graphops.EdgeFeatures, error) {
	a, err := s.array(name, "the edges' features")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	cols := 1
	switch {
	case len(a.Shape) == 2:
		cols = a.Shape[1]
	case len(a.Shape) != 1:
		return nil, a.wrong("it is %s; features of edges are [edges, features]", a.Describe())
	}
	switch {
	case a.Shape[0] != numEdges:
		return nil, a.wrong("it has %d rows, but the input has %d edges", a.Shape[0], numEdges)
	case cols == 0:
		return nil, a.wrong("it has no columns")
	}
	x := &graphops.EdgeFeatures{Cols: cols}
	x.F32, err = a.floats()
	return x, err
}

// edgeTimes reads a .npy file [edges] of whole numbers.
func (s *source) edgeTimes(name string, numEdges int) ([]int64, error) {
	a, err := s.array(name, "the edges' times")
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if a.Len() != int64(numEdges) || len(a.Shape) != 1 && !(len(a.Shape) == 2 && a.Shape[1] == 1) {
		return nil, a.wrong("it is %s, but the input has %d edges, and each has one time", a.Describe(), numEdges)
	}
	if a.Type.Kind == 'f' {
		err := a.eachFloat(func(i int64, x float32) error {
			if x != x {
				return a.wrong("entry %d is NaN; every edge needs a time: fill it in, or leave the edge out", i)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return nil, a.wrong("it is %s; times are whole numbers: choose a unit in which they are, and write numpy.round(t).astype(numpy.int64)", a.Describe())
	}
	times := make([]int64, a.Len())
	return times, a.eachWhole(func(i, x int64) error {
		if x == math.MaxInt64 && a.Type.Kind == 'u' {
			return a.wrong("entry %d does not fit in int64", i)
		}
		times[i] = x
		return nil
	})
}
