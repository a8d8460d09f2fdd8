package nn

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// Each relation's convolution reads the features of its relation's edges in their own width: on the whole graph, where the
// edges come with the block in one width as in a divided graph, and where a graph's rows are padded.
func TestRelationsReadTheirWidths(t *testing.T) {
	t.Parallel()
	g := typedGraph(t)
	s := g.Schema
	of := make([]*graphops.EdgeFeatures, len(s.Relations))
	for r := range of {
		if r > 0 { // the first relation has none
			of[r] = &graphops.EdgeFeatures{Cols: 1 + r%3, F32: []float32{}}
		}
	}
	for e, r := range g.EdgeTypes {
		if x := of[r]; x != nil {
			x.F32 = append(x.F32, pygValues(x.Cols, e)...)
		}
	}
	x, err := graphops.EdgeFeaturesByRelation(g.EdgeTypes, of)
	if err != nil {
		t.Fatal(err)
	}
	g = g.WithEdgeData(x, nil)
	conv := PerRelation(s, func(rel graphops.Relation) Conv {
		r := s.Index(rel)
		if w := x.Width(r); w > 0 {
			return NewGINE(NewPerceptron(5, 4), 5, w)
		}
		return NewSAGE(5, 4)
	}, Sum)
	mustCollect(t, conv).Init(3)
	h := pygValues(g.NumNodes()*5, 1)
	forward := func(conv Conv, b *graphops.Block) (y []float32, err error) {
		defer func() {
			if e := recover(); e != nil {
				err = e.(error)
			}
		}()
		f := NewFwd(Config{Grad: true})
		out := conv.Forward(f, b, f.Leaf(g.NumNodes(), 5, slices.Clone(h), &Space{}))
		return slices.Clone(out.Data()), nil
	}
	want, err := forward(conv, g.Block())
	if err != nil {
		t.Fatal(err)
	}
	// By hand: each relation's edges as a graph of their own, whose destinations of the relation's type get the sum.
	sum := make([]float32, len(want))
	for r, key := range conv.keys {
		alone, err := g.OfRelations(r)
		if err != nil {
			t.Fatal(err)
		}
		y, err := forward(conv.Convs[key], alone.Homogeneous().Block())
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := s.Range(s.NodeType(s.Relations[r].Dst))
		for i := 4 * lo; i < 4*hi; i++ {
			sum[i] += y[i]
		}
	}
	for i, v := range sum {
		if d := v - want[i]; d > 1e-5 || d < -1e-5 {
			t.Fatalf("element %d is %v, by hand %v", i, want[i], v)
		}
	}
	b := g.Block()
	own := graphops.EdgeData{Features: g.EdgeFeatures.OneWidth(), Types: g.EdgeTypes}
	own.Features.Widths = nil
	apart := graphops.HostBlock{NumDst: b.NumDst, NumSrc: b.NumSrc, Degrees: b.Degrees(), Indptr: b.Indptr(), Indices: b.Indices(), Edges: own}.Block()
	if got, err := forward(conv, apart); err != nil || !slices.Equal(got, want) {
		t.Errorf("with the edges in the block: %v, %v, not %v", err, got, want)
	}
	if got, err := forward(conv, g.WithEdgeData(g.EdgeFeatures.OneWidth(), nil).Block()); err != nil || !slices.Equal(got, want) {
		t.Errorf("with padded rows: %v, %v, not %v", err, got, want)
	}
	wide := PerRelation(s, func(graphops.Relation) Conv { return NewGINE(NewPerceptron(5, 4), 5, 2) }, Sum)
	if _, err := forward(wide, g.Block()); err == nil || !strings.Contains(err.Error(), "the edges need 2 features") {
		t.Errorf("layers of one width: %v", err)
	}
}
