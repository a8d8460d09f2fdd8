package graphops

import (
	"slices"
	"strings"
	"testing"
)

func TestWithReverses(t *testing.T) {
	g := shopping(t)
	r, err := g.WithReverses(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, rel := range r.Schema.Relations[4:] {
		names = append(names, rel.String())
	}
	if got := strings.Join(names, " "); got != "item:rev_likes:user user:rev_knows:user item:rev_sells:shop user:rev_likes:item" {
		t.Errorf("the reverses are %s", got)
	}
	want := "1→0:4[0.4]@6#5 2→0:5[0.5]@5#3 2→0:1[0.1]@9#4 4→0:3[0.3]@7#4 " +
		"0→1:4[0.4]@6#1 1→1:6[0.6]@4#1 1→1:6[0.6]@4#5 2→1:2[0.2]@8#4 " +
		"0→2:1[0.1]@9#0 0→2:5[0.5]@5#7 1→2:2[0.2]@8#0 0→4:3[0.3]@7#0"
	if got := withAll(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	again, err := r.WithReverses(1)
	if err != nil || withAll(again) != withAll(r) || !again.Schema.Equal(r.Schema) {
		t.Errorf("the reverses of the reverses are %s (%v)", withAll(again), err)
	}

	bare, err := FromEdgesWith(2, []int32{0, 1}, []int32{1, 1}, EdgeData{Types: []uint16{0, 2}}, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = bare.WithReverses(0); err != nil || withAll(r) != "1→0#3 0→1#0 1→1#2 1→1#5" {
		t.Errorf("without a schema the reverses are %s (%v)", withAll(r), err)
	}
	if _, err := g.Homogeneous().WithReverses(0); err == nil {
		t.Error("a graph without types got reverses")
	}
}

func TestWithSelfLoops(t *testing.T) {
	g := shopping(t)
	r, err := g.WithSelfLoops(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := r.Schema.Relations[6].String(); got != "item:self:item" {
		t.Errorf("relation 6 is %s", got)
	}
	want := "0→0:1[0.5]@4#4 2→0:5[0.5]@5#3 0→1:4[0.4]@6#1 1→1:6[0.6]@4#1 1→1:1[0.5]@4#4 " +
		"0→2:1[0.1]@9#0 1→2:2[0.2]@8#0 2→2:1[0.15]@4#6 3→3:1[0]@4#6 0→4:3[0.3]@7#0 4→4:1[0.3]@4#6"
	if got := withAll(r); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := r.WithSelfLoops(0); err == nil || !strings.Contains(err.Error(), "user:self:user twice") {
		t.Errorf("a second time: %v", err)
	}
	if _, err := g.Homogeneous().WithSelfLoops(0); err == nil {
		t.Error("a graph without types got typed self-loops")
	}
}

func TestHomogeneousAndBack(t *testing.T) {
	g := shopping(t)
	h := g.Homogeneous()
	if h.EdgeTypes != nil || h.Schema != nil || withAll(h) != "2→0:5[0.5]@5 0→1:4[0.4]@6 1→1:6[0.6]@4 0→2:1[0.1]@9 1→2:2[0.2]@8 0→4:3[0.3]@7" {
		t.Errorf("without types the graph is %s", withAll(h))
	}
	back, err := h.WithTypes(g.Schema, g.EdgeTypes)
	if err != nil || withAll(back) != withAll(g) {
		t.Errorf("back, the graph is %s (%v)", withAll(back), err)
	}
}

func TestOfRelations(t *testing.T) {
	g := shopping(t)
	r, err := g.OfRelations(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := withAll(r), "0→1:4[0.4]@6#0 1→1:6[0.6]@4#0 0→2:1[0.1]@9#1 1→2:2[0.2]@8#1 0→4:3[0.3]@7#1"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(r.Schema.Relations) != 2 || r.Schema.Relations[1].Name != "likes" || !slices.Equal(r.Schema.Nodes, g.Schema.Nodes) {
		t.Errorf("the schema is %v", r.Schema)
	}
	if none, err := g.OfRelations(2); err != nil || none.NumEdges() != 0 || none.EdgeTypes == nil || none.Validate() != nil {
		t.Errorf("a relation without edges: %v (%v)", none, err)
	}
	for _, bad := range [][]int{{4}, {-1}, {0, 0}} {
		if _, err := g.OfRelations(bad...); err == nil {
			t.Errorf("relations %v are accepted", bad)
		}
	}
}

func TestTypedSubgraph(t *testing.T) {
	g := shopping(t)
	s := g.Subgraph([]int32{0, 2, 3})
	if got, want := withAll(s), "1→0:5[0.5]@5#3 0→1:1[0.1]@9#0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.Schema.Nodes[0].Count != 1 || s.Schema.Nodes[1].Count != 0 || s.Schema.Nodes[2].Count != 2 || s.Validate() != nil {
		t.Errorf("the schema is %v (%v)", s.Schema.Nodes, s.Validate())
	}
	if g.Schema.Nodes[0].Count != 2 {
		t.Error("the schema of the whole graph changed")
	}
}

func TestTypedWithout(t *testing.T) {
	build := func(src, dst []int32, types []uint16) *Graph {
		g, err := FromEdgesWith(3, src, dst, EdgeData{Types: types}, BuildOptions{KeepDuplicates: true})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := build([]int32{0, 0, 0, 1, 2, 2}, []int32{1, 1, 1, 2, 2, 2}, []uint16{0, 1, 1, 0, 0, 2})
	other := build([]int32{0, 1, 2}, []int32{1, 2, 2}, []uint16{1, 1, 2})
	for threads := range 3 {
		r, err := g.Without(other, threads)
		if got, want := withAll(r), "0→1#0 1→2#0 2→2#0"; err != nil || got != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
	if r, err := g.Without(other.Homogeneous(), 1); err != nil || withAll(r) != "" {
		t.Errorf("without the edges of a graph that has no types, %s is left (%v)", withAll(r), err)
	}
}
