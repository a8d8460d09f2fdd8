package convert

import (
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset/convert/input"
	"github.com/graphnb/graphnb/graphops/dataset/internal/scan"
)

// Names of the files of edge features and times in a folder of NumPy arrays.
var (
	edgeFeatureFiles = []string{"edge_attr.npy", "edge_features.npy", "edge_feat.npy"}
	edgeTimeFiles    = []string{"edge_time.npy", "edge_times.npy"}
)

// allColumns is the value of Options.EdgeFeatures for every column of edges.csv that has no other use.
const allColumns = "all"

func isNPY(spec string) bool { return strings.HasSuffix(spec, ".npy") }

// readData reads the features and times of the edges from the .npy files that the options name. Row i
// belongs to edge i of the input. Columns of a table have been read with the edges.
func (e *edges) readData(o Options) error {
	for _, c := range []struct {
		flag, spec string
		have       bool
	}{{"--edge-features", o.EdgeFeatures, e.x != nil}, {"--edge-times", o.EdgeTimes, e.times != nil}} {
		if c.spec != "" && !isNPY(c.spec) && !c.have {
			return input.Errorf("%s is %q, but these edges have no columns with names; give FILE.npy with a row for each edge", c.flag, c.spec)
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
func (s *Source) edgeFeatures(name string, numEdges int) (*graphops.EdgeFeatures, error) {
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
func (s *Source) edgeTimes(name string, numEdges int) ([]int64, error) {
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

// edgeColumns are the columns of edges.csv with features and times.
type edgeColumns struct {
	t        *input.CSVFile
	features []int
	time     int // -1: none
	x        input.Pile[float32]
	times    input.Pile[int64]
}

// findEdgeColumns finds the columns that the options name; used are those that have another use.
func findEdgeColumns(t *input.CSVFile, o Options, used ...int) (*edgeColumns, error) {
	c := &edgeColumns{t: t, time: -1}
	if o.EdgeTimes != "" && !isNPY(o.EdgeTimes) {
		if c.time = t.Column(columnName(o.EdgeTimes)); c.time < 0 || slices.Contains(used, c.time) {
			return nil, t.Wrong("line 1: the columns are %s; --edge-times names %s, which is no column for times", input.ShownNames(t.Header), scan.Shown([]byte(o.EdgeTimes)))
		}
		used = append(slices.Clone(used), c.time)
	}
	switch {
	case o.EdgeFeatures == "" || isNPY(o.EdgeFeatures):
	case o.EdgeFeatures == allColumns:
		for i := range t.Header {
			if !slices.Contains(used, i) {
				c.features = append(c.features, i)
			}
		}
		if len(c.features) == 0 {
			return nil, t.Wrong("line 1: the columns are %s; none is left for --edge-features", input.ShownNames(t.Header))
		}
	default:
		for _, name := range strings.Split(o.EdgeFeatures, ",") {
			i := t.Column(columnName(name))
			if i < 0 || slices.Contains(used, i) || slices.Contains(c.features, i) {
				return nil, t.Wrong("line 1: the columns are %s; --edge-features names %s, which is no column for a feature", input.ShownNames(t.Header), scan.Shown([]byte(name)))
			}
			c.features = append(c.features, i)
		}
	}
	return c, nil
}

func columnName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// add reads one record.
func (c *edgeColumns) add(record []string) error {
	for _, i := range c.features {
		v, ok := scan.Float([]byte(record[i]))
		if !ok || v != v {
			return c.t.At("the feature %s of the edge is %s; features are finite numbers: fill it in, give each word a column of 0 and 1, or leave the column out",
				scan.Shown([]byte(c.t.Header[i])), scan.Shown([]byte(record[i])))
		}
		c.x.Add(v)
	}
	if c.time >= 0 {
		v, ok := wholeTime([]byte(record[c.time]))
		if !ok {
			return c.t.At("the time of the edge is %s; a time is a whole number, such as seconds since 1970", scan.Shown([]byte(record[c.time])))
		}
		c.times.Add(v)
	}
	return nil
}

// wholeTime parses a whole number, which may be written with a decimal point and zeros.
func wholeTime(text []byte) (int64, bool) {
	if n, ok := scan.Whole(text); ok {
		return n, true
	}
	const most = 1 << 53 // float64 has all whole numbers up to it
	x, ok := scan.Decimal(text)
	return int64(x), ok && x == math.Trunc(x) && math.Abs(x) <= most
}

// give moves the columns to the edges.
func (c *edgeColumns) give(e *edges) {
	if len(c.features) > 0 {
		e.x = &graphops.EdgeFeatures{Cols: len(c.features), F32: c.x.Flat()}
	}
	if c.time >= 0 {
		e.times = c.times.Flat()
	}
}

// names lists the columns of features.
func (c *edgeColumns) names() string {
	var names []string
	for _, i := range c.features {
		names = append(names, c.t.Header[i])
	}
	return strings.Join(names, ", ")
}
