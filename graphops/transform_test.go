package graphops

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func edgesOf(g *Graph) (edges [][2]int32) {
	for v := range int32(g.NumNodes()) {
		for _, u := range g.InNeighbors(v) {
			edges = append(edges, [2]int32{u, v})
		}
	}
	return edges
}

func flipped(edges [][2]int32) [][2]int32 {
	out := make([][2]int32, len(edges))
	for i, e := range edges {
		out[i] = [2]int32{e[1], e[0]}
	}
	return out
}

func checkTransforms(t interface{ Fatalf(string, ...any) }, nodes int, edges [][2]int32) {
	src, dst := columns(edges)
	g, err := FromEdges(nodes, src, dst, BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatalf("%v", err)
	}
	keep := BuildOptions{KeepDuplicates: true}
	for _, threads := range []int{1, 3} {
		checkRows(t, g.Reverse(threads), naive(nodes, flipped(edges), keep))
		if !equal(g.Reverse(threads).Reverse(threads), g) {
			t.Fatalf("reversing the graph twice gives another graph")
		}
		checkRows(t, g.Undirected(threads), naive(nodes, edges, BuildOptions{Undirected: true}))
		checkRows(t, g.Dedup(threads), naive(nodes, edges, BuildOptions{}))
		checkRows(t, g.AddSelfLoops(threads), naive(nodes, edges, BuildOptions{SelfLoops: true, KeepDuplicates: true}))
		without := slices.DeleteFunc(slices.Clone(edges), func(e [2]int32) bool { return e[0] == e[1] })
		checkRows(t, g.RemoveSelfLoops(threads), naive(nodes, without, keep))
	}
	in, out := make([]int32, nodes), make([]int32, nodes)
	for _, e := range edges {
		out[e[0]]++
		in[e[1]]++
	}
	if !slices.Equal(g.InDegrees(), in) || !slices.Equal(g.OutDegrees(), out) {
		t.Fatalf("degrees: in %v, out %v; want %v and %v", g.InDegrees(), g.OutDegrees(), in, out)
	}
	if got, want := g.Symmetric(), equal(g, g.Reverse(1)); got != want {
		t.Fatalf("Symmetric is %v; the graph equals its reverse: %v", got, want)
	}
}

func TestTransformsNamed(t *testing.T) {
	for _, c := range named {
		t.Run(c.name, func(t *testing.T) { checkTransforms(t, c.nodes, c.edges) })
	}
}

func TestTransformsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawEdges(t)
		checkTransforms(t, nodes, edges)
	})
}

func TestReverseManyChunks(t *testing.T) {
	src, dst := many(70_000, 300_000)
	g, err := FromEdges(70_000, src, dst, BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := FromEdges(70_000, dst, src, BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	if !equal(g.Reverse(2), want) {
		t.Error("the reverse differs from the graph of the reversed edges")
	}
	if got := edgesOf(g.Undirected(2)); len(got) != len(edgesOf(g.Undirected(1))) {
		t.Error("the result depends on the number of threads")
	}
}

func TestTransformsLeaveTheGraphAlone(t *testing.T) {
	g := &Graph{Indptr: []int64{0, 2, 3}, Indices: []int32{0, 1, 0}}
	indptr, indices := slices.Clone(g.Indptr), slices.Clone(g.Indices)
	g.Reverse(1)
	g.Undirected(1)
	g.AddSelfLoops(1)
	g.RemoveSelfLoops(1)
	g.Dedup(1)
	if !slices.Equal(g.Indptr, indptr) || !slices.Equal(g.Indices, indices) {
		t.Error("a transform changed its input graph")
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		graph Graph
		array string
		index int64
		why   string
	}{
		{"no indptr", Graph{}, "Indptr", -1, "empty"},
		{"does not start at 0", Graph{Indptr: []int64{1, 1}, Indices: []int32{0}}, "Indptr", 0, "starts at 1"},
		{"ends early", Graph{Indptr: []int64{0, 1}, Indices: []int32{0, 0}}, "Indptr", 1, "ends at 1"},
		{"falls", Graph{Indptr: []int64{0, 2, 1, 3}, Indices: []int32{0, 1, 2}}, "Indptr", 2, "falls from 2 to 1"},
		{"runs past the end", Graph{Indptr: []int64{0, 9, 3}, Indices: []int32{0, 1, 1}}, "Indptr", 1, "there are 3 edges"},
		{"negative", Graph{Indptr: []int64{0, -5, -4, 1}, Indices: []int32{0}}, "Indptr", 1, "falls from 0 to -5"},
		{"source too large", Graph{Indptr: []int64{0, 1, 2}, Indices: []int32{0, 2}}, "Indices", 1, "source 2 of node 1"},
		{"negative source", Graph{Indptr: []int64{0, 1, 2}, Indices: []int32{0, -1}}, "Indices", 1, "source -1"},
		{"unsorted", Graph{Indptr: []int64{0, 0, 2}, Indices: []int32{1, 0}}, "Indices", 1, "do not ascend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.graph.Validate()
			var v *ValidationError
			if !errors.As(err, &v) {
				t.Fatalf("got %v", err)
			}
			if v.Array != c.array || v.Index != c.index || !strings.Contains(v.Why, c.why) {
				t.Errorf("got %v; want %s[%d]: …%s…", err, c.array, c.index, c.why)
			}
		})
	}
	// Only rows in the range are checked.
	g := Graph{Indptr: []int64{0, 1, 2, 3}, Indices: []int32{0, 7, 0}}
	if err := g.ValidateRange(0, 1); err != nil {
		t.Errorf("rows [0, 1): %v", err)
	}
	if err := g.ValidateRange(1, 2); err == nil {
		t.Error("checking the rows [1, 2) gave no error")
	}
	if err := g.ValidateRange(2, 3); err != nil {
		t.Errorf("rows [2, 3): %v", err)
	}
}

func TestWithout(t *testing.T) {
	g, err := FromEdges(4, []int32{0, 0, 1, 2, 2, 3}, []int32{1, 1, 2, 2, 3, 0}, BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	other, err := FromEdges(4, []int32{0, 2, 3, 1}, []int32{1, 2, 3, 0}, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	weights := []float32{30, 1, 2, 12, 22, 23} // 3→0, 0→1 twice, 1→2, 2→2, 2→3
	for _, threads := range []int{1, 3} {
		r, err := g.WithEdgeWeights(weights).Without(other, threads)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Indices, []int32{3, 1, 2}) || !slices.Equal(r.Indptr, []int64{0, 1, 1, 2, 3}) || !slices.Equal(r.EdgeWeights, []float32{30, 12, 23}) {
			t.Errorf("without 0→1 and 2→2 the graph has indptr %v, indices %v, weights %v", r.Indptr, r.Indices, r.EdgeWeights)
		}
	}
	if _, err := g.Without(&Graph{Indptr: []int64{0}}, 1); err == nil {
		t.Error("a graph without the edges of a graph of another size is no error")
	}
}
