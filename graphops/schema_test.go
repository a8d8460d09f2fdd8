package graphops

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// library is two users (0, 1), no shop and three items (2, 3, 4).
func library() *Schema {
	return &Schema{
		Nodes:     []NodeType{{"user", 2}, {"shop", 0}, {"item", 3}},
		Relations: []Relation{{"user", "likes", "item"}, {"user", "knows", "user"}, {"shop", "sells", "item"}, {"item", "likes", "user"}},
	}
}

func TestSchema(t *testing.T) {
	s := library()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := s.Starts(); !slices.Equal(got, []int{0, 2, 2, 5}) || s.NumNodes() != 5 {
		t.Errorf("the types start at %v, and there are %d nodes", got, s.NumNodes())
	}
	if lo, hi := s.Range(2); lo != 2 || hi != 5 {
		t.Errorf("items are the nodes %d to %d", lo, hi)
	}
	if got := s.NodeTypes(); !slices.Equal(got, []uint16{0, 0, 2, 2, 2}) {
		t.Errorf("the nodes have the types %v", got)
	}
	for id, want := range map[int32]int{-1: -1, 0: 0, 1: 0, 2: 2, 4: 2, 5: -1} {
		if got := s.TypeOf(id); got != want {
			t.Errorf("node %d has type %d, not %d", id, got, want)
		}
	}
	if src, dst := s.Ends(3); src != 2 || dst != 0 {
		t.Errorf("relation 3 goes from type %d to %d", src, dst)
	}
	for text, want := range map[string]int{"user:likes:item": 0, "item:likes:user": 3, "knows": 1, "shop:sells:item": 2} {
		if got, err := s.Relation(text); got != want || err != nil {
			t.Errorf("relation %q is number %d (%v), not %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"likes": "user:likes:item and item:likes:user", "user:sells:item": "no relation", "": "no relation"} {
		if _, err := s.Relation(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("relation %q: the error is %v; it should contain %q", text, err, want)
		}
	}
	data, err := json.Marshal(s)
	var back Schema
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || !back.Equal(s) || !s.Clone().Equal(s) || s.Equal(nil) {
		t.Errorf("from JSON the schema comes back as %v (%v)", back, err)
	}
}

func TestParseRelation(t *testing.T) {
	for text, want := range map[string]Relation{
		"a:writes:b":             {"a", "writes", "b"},
		"a:http://x.org/knows:b": {"a", "http://x.org/knows", "b"},
	} {
		if got, err := ParseRelation(text); got != want || err != nil || got.String() != text {
			t.Errorf("%q is %#v (%v)", text, got, err)
		}
	}
	for _, text := range []string{"", "writes", "a:b"} {
		if _, err := ParseRelation(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	many := make([]Relation, MaxRelations+1)
	for _, c := range []struct {
		name string
		edit func(s *Schema)
		want string
	}{
		{"no types", func(s *Schema) { s.Nodes = nil }, "without node types"},
		{"an empty name", func(s *Schema) { s.Nodes[1].Name = "" }, "node type 1 of the schema: its name is empty"},
		{"a path", func(s *Schema) { s.Nodes[1].Name = "../up" }, "no colon or slash"},
		{"a line break", func(s *Schema) { s.Relations[0].Name = "a\nb" }, "control character"},
		{"bytes", func(s *Schema) { s.Relations[0].Name = "\xff" }, "not UTF-8"},
		{"names that differ in case", func(s *Schema) { s.Nodes[1].Name = "User" }, "differ in more than case"},
		{"a negative count", func(s *Schema) { s.Nodes[1].Count = -1 }, `"shop" has -1 nodes`},
		{"too many nodes", func(s *Schema) { s.Nodes[1].Count = 1<<31 - 1 }, "at most 2147483647 nodes"},
		{"an end that does not exist", func(s *Schema) { s.Relations[2].Src = "store" }, `"store", which is no node type; the node types are user, shop, item`},
		{"a relation twice", func(s *Schema) { s.Relations[2] = s.Relations[0] }, "user:likes:item twice"},
		{"too many relations", func(s *Schema) { s.Relations = many }, "65536 relations; at most 65535"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := library()
			c.edit(s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; it should contain %q", err, c.want)
			}
		})
	}
}

// shopping is a graph of library's nodes.
func shopping(t *testing.T) *Graph {
	t.Helper()
	g, err := FromEdgesWith(5, []int32{0, 1, 0, 0, 2, 1}, []int32{2, 2, 4, 1, 0, 1},
		EdgeData{Types: []uint16{0, 0, 0, 1, 3, 1}, Weights: []float32{1, 2, 3, 4, 5, 6}, Times: []int64{9, 8, 7, 6, 5, 4}, Features: &EdgeFeatures{Cols: 1, F32: []float32{.1, .2, .3, .4, .5, .6}}}, BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(library(), g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestFromEdgesWithTypes(t *testing.T) {
	src, dst := []int32{2, 0, 2, 2, 2}, []int32{1, 1, 1, 1, 1}
	for _, c := range []struct {
		name string
		data EdgeData
		o    BuildOptions
		want string
	}{
		{"types alone", EdgeData{Types: []uint16{7, 5, 3, 7, 65534}}, BuildOptions{}, "0→1#5 2→1#3 2→1#7 2→1#65534"},
		{"duplicates kept", EdgeData{Types: []uint16{7, 5, 3, 7, 4}}, BuildOptions{KeepDuplicates: true}, "0→1#5 2→1#3 2→1#4 2→1#7 2→1#7"},
		{"types before times and weights", EdgeData{Types: []uint16{7, 5, 3, 7, 7}, Times: []int64{1, 2, 9, 1, 0}, Weights: []float32{1, 2, 3, 4, 5}}, BuildOptions{}, "0→1:2@2#5 2→1:3@9#3 2→1:5@0#7 2→1:5@1#7"},
		{"reverses", EdgeData{Types: []uint16{7, 5, 3, 7, 3}}, BuildOptions{Undirected: true}, "1→0#5 0→1#5 2→1#3 2→1#7 1→2#3 1→2#7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			buildsTo(t, src, dst, c.data, c.o, c.want)
		})
	}
	for want, c := range map[string]struct {
		types []uint16
		o     BuildOptions
	}{
		"2 types for 5 edges":         {[]uint16{1, 2}, BuildOptions{}},
		"edge 2 has the type 65535":   {[]uint16{1, 2, LoopType, 3, 4}, BuildOptions{}},
		"add them by Graph.WithSelfL": {[]uint16{1, 2, 3, 3, 4}, BuildOptions{SelfLoops: true}},
	} {
		if _, err := FromEdgesWith(3, src, dst, EdgeData{Types: c.types}, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; it should contain %q", err, want)
		}
	}
}

// A typed graph depends neither on the order of the list nor on the number of threads.
func TestFromEdgesWithTypesAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := rapid.IntRange(1, 6).Draw(t, "nodes"), rapid.IntRange(0, 24).Draw(t, "edges")
		node := rapid.Int32Range(0, int32(nodes)-1)
		src, dst, types, order := make([]int32, edges), make([]int32, edges), make([]uint16, edges), make([]int, edges)
		for i := range edges {
			src[i], dst[i], types[i], order[i] = node.Draw(t, "src"), node.Draw(t, "dst"), rapid.Uint16Range(0, 3).Draw(t, "type"), i
		}
		o := BuildOptions{Undirected: rapid.Bool().Draw(t, "undirected"), KeepDuplicates: rapid.Bool().Draw(t, "keep"), Threads: 1}
		a, err := FromEdgesWith(nodes, src, dst, EdgeData{Types: types}, o)
		if err != nil {
			t.Fatal(err)
		}
		src2, dst2, types2 := []int32{}, []int32{}, []uint16{}
		for _, j := range rapid.Permutation(order).Draw(t, "order") {
			src2, dst2, types2 = append(src2, src[j]), append(dst2, dst[j]), append(types2, types[j])
		}
		o.Threads = 3
		b, err := FromEdgesWith(nodes, src2, dst2, EdgeData{Types: types2}, o)
		if err != nil || withAll(a) != withAll(b) {
			t.Fatalf("in another order and on other threads the graph is\n%s\nnot\n%s (%v)", withAll(b), withAll(a), err)
		}
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWithTypes(t *testing.T) {
	g := shopping(t)
	if got, want := withAll(g), "2→0:5[0.5]@5#3 0→1:4[0.4]@6#1 1→1:6[0.6]@4#1 0→2:1[0.1]@9#0 1→2:2[0.2]@8#0 0→4:3[0.3]@7#0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := g.RelationEdges(); !slices.Equal(got, []int64{3, 2, 0, 1}) {
		t.Errorf("the relations have %v edges", got)
	}
	if got := g.String(); !strings.Contains(got, "of 4 relations between 3 types") {
		t.Error(got)
	}
	short := library()
	short.Nodes[2].Count = 2
	bad := library()
	bad.Relations[0].Name = ""
	types := func(edit func(t []uint16)) []uint16 {
		c := slices.Clone(g.EdgeTypes)
		edit(c)
		return c
	}
	for _, c := range []struct {
		name  string
		s     *Schema
		types []uint16
		want  string
	}{
		{"types too few", library(), g.EdgeTypes[:3], "it has 3 entries, but there are 6 edges"},
		{"a schema without types of edges", library(), nil, "it has 0 entries"},
		{"a schema that is not valid", bad, g.EdgeTypes, "its name is empty"},
		{"other nodes", short, g.EdgeTypes, "the schema has 4 nodes, but the graph 5"},
		{"out of range", library(), types(func(t []uint16) { t[5] = 4 }), "EdgeTypes[5]: type 4, but the schema has 4 relations"},
		{"ends that contradict", library(), types(func(t []uint16) { t[0] = 0 }), "EdgeTypes[0]: edge 2 → 0 goes from item to user, but its relation is user:likes:item"},
		{"the type of loops", nil, types(func(t []uint16) { t[1] = LoopType }), "EdgeTypes[1]: type 65535 is kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := g.WithTypes(c.s, c.types)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; it should contain %q", err, c.want)
			}
		})
	}
	twice := &Graph{Indptr: []int64{0, 2}, Indices: []int32{0, 0}, EdgeTypes: []uint16{2, 1}}
	var where *ValidationError
	if err := twice.Validate(); !errors.As(err, &where) || where.Array != "EdgeTypes" || where.Index != 1 {
		t.Errorf("types of equal edges that do not ascend: %v", err)
	}
}

func TestBlockEdgeTypes(t *testing.T) {
	g := shopping(t)
	if got := g.Slice(1, 3).EdgeTypes(); !slices.Equal(got, []uint16{1, 1, 0, 0}) {
		t.Errorf("a slice has the types %v", got)
	}
	if got, want := g.Block().SelfLooped().EdgeTypes(), []uint16{3, LoopType, 1, LoopType, 0, 0, LoopType, LoopType, 0, LoopType}; !slices.Equal(got, want) {
		t.Errorf("with self-loops the types are %v, not %v", got, want)
	}
	sampled := HostBlock{NumDst: 1, NumSrc: 3, Indptr: []int64{0, 2}, Indices: []int32{1, 2}, EdgePos: []int64{4, 0}, SrcIDs: []int32{2, 1, 0}, Graph: g}
	b := sampled.Block()
	first := b.EdgeTypes()
	if !slices.Equal(first, []uint16{0, 3}) {
		t.Errorf("a sampled block has the types %v", first)
	}
	if again := b.EdgeTypes(); &again[0] != &first[0] {
		t.Error("the second call made another slice")
	}
	sampled.EdgePos = []int64{1, 5}
	b.SetHost(sampled)
	if got := b.EdgeTypes(); !slices.Equal(got, []uint16{1, 0}) {
		t.Errorf("reused, the block has the types %v", got)
	}
	if b := g.Homogeneous().Block(); b.HasEdgeTypes() || b.EdgeTypes() != nil || b.SelfLooped().EdgeTypes() != nil {
		t.Error("a graph without types has types")
	}
	if b := (HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 0}, Indices: []int32{}, EdgePos: []int64{}, SrcIDs: []int32{0}, Graph: g}).Block(); b.EdgeTypes() == nil || len(b.EdgeTypes()) != 0 {
		t.Error("the types of a block without edges should be an empty slice")
	}
}
