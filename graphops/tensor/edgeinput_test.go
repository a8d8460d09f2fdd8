package tensor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

func TestEdgeInput(t *testing.T) {
	plain := &graphops.Graph{Indptr: []int64{0, 2, 3}, Indices: []int32{0, 1, 0}}
	g := plain.WithEdgeData(&graphops.EdgeFeatures{Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6}}, nil)
	f := NewFwd(Config{})
	b := g.Slice(1, 2)
	x := f.EdgeInput(b, 2)
	if x.Rows() != 1 || x.Cols() != 2 || !slices.Equal(x.Data(), []float32{5, 6}) || x.RequiresGrad() || x.Space().Edges() != b {
		t.Errorf("the input is %v: %v", x, x.Data())
	}
	if none := f.EdgeInput(graphops.HostBlock{Indptr: []int64{0}}.Block(), 7); none.Rows() != 0 || none.Cols() != 7 {
		t.Errorf("a block without edges and without a graph gave %v", none)
	}
	for name, c := range map[string]struct {
		b    *graphops.Block
		cols int
		want string
	}{
		"other number":           {b, 3, "the edges need 3 features, but those of the graph have 2; make the layer with the dataset's EdgeFeatureDim"},
		"no features":            {plain.Block(), 2, "the edges need 2 features, but those of the graph have none; add edge features to the dataset"},
		"no columns":             {b, 0, "the edges cannot have 0 features"},
		"no graph, as of a part": {graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 1}, Indices: []int32{0}}.Block(), 2, "neither the block nor a graph has them"},
	} {
		func() {
			defer func() {
				var e *Error
				if err, _ := recover().(error); !errors.As(err, &e) || e.Op != "EdgeInput" || !strings.Contains(e.Detail, c.want) {
					t.Errorf("%s: the error is %v; want %q", name, err, c.want)
				}
			}()
			f.EdgeInput(c.b, c.cols)
		}()
	}
}

// Gathering is counted: a row per edge that the graph chooses, and the result. The dry backend counts
// the same without reading anything.
func TestWorkOfEdgeInput(t *testing.T) {
	g := (&graphops.Graph{Indptr: []int64{0, 2, 3}, Indices: []int32{0, 1, 0}}).WithEdgeData(&graphops.EdgeFeatures{Cols: 2, F32: make([]float32, 6)}, nil)
	var work, dry Work
	NewFwd(Config{Work: &work}).EdgeInput(g.Block(), 2)
	NewFwd(Config{Backend: Dry(&dry, nil)}).EdgeInput(g.Block(), 2)
	if want := (Work{RowBytes: 4 * 3 * 2, StreamBytes: 4 * 3 * 2}); work != want || dry != want {
		t.Errorf("the work is %+v, on the dry backend %+v; want %+v", work, dry, want)
	}
}
