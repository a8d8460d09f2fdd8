package pairs_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// typedEdge is an edge with its relation.
type typedEdge struct {
	src, dst int32
	kind     uint16
}

// bought is a graph of users 0 to 9, items 10 to 24 and no shops: buys (0), its reverses under another name
// (1), knows in both directions (2), sees (3) from some users to items that they also buy, and sells (4), which
// has no edges. Times of buys are 0, 1, 2 and so on; sees is always later.
func bought(t *testing.T) *graphops.Graph {
	t.Helper()
	s := &graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "user", Count: 10}, {Name: "item", Count: 15}, {Name: "shop"}},
		Relations: []graphops.Relation{
			{Src: "user", Name: "buys", Dst: "item"},
			{Src: "item", Name: "bought_by", Dst: "user"},
			{Src: "user", Name: "knows", Dst: "user"},
			{Src: "user", Name: "sees", Dst: "item"},
			{Src: "shop", Name: "sells", Dst: "item"},
		},
	}
	var src, dst []int32
	var d graphops.EdgeData
	add := func(u, v int32, kind uint16, time int64) {
		src, dst, d.Types, d.Times = append(src, u), append(dst, v), append(d.Types, kind), append(d.Times, time)
	}
	for u := range int32(10) {
		for k := range int32(4) {
			i := 10 + (3*u+k*k)%15
			add(u, i, 0, int64(4*u+k))
			add(i, u, 1, int64(4*u+k))
			if k < 2 {
				add(u, i, 3, 1000)
			}
		}
		v := (u + 1) % 10
		add(u, v, 2, 0)
		add(v, u, 2, 0)
	}
	g, err := graphops.FromEdgesWith(25, src, dst, d, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = g.WithTypes(s, g.EdgeTypes); err != nil {
		t.Fatal(err)
	}
	return g
}

func edgesOf(g *graphops.Graph) map[typedEdge]bool {
	all := map[typedEdge]bool{}
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			all[typedEdge{g.Indices[e], v, g.EdgeTypes[e]}] = true
		}
	}
	return all
}

// Messages lack the held-out edges of the relation and their reverses in it and in its reverses, and nothing
// else; all other relations are whole.
func TestRelationSplit(t *testing.T) {
	g := bought(t)
	for _, c := range []struct {
		name       string
		number     uint16
		reverses   []int
		undirected bool
		edges      int
	}{{"buys", 0, []int{1}, false, 40}, {"item:bought_by:user", 1, []int{0}, false, 40}, {"knows", 2, nil, true, 10}, {"sees", 3, []int{1}, false, 20}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := pairs.Random(g, pairs.SplitOptions{Relation: c.name, Val: 0.2, Test: 0.2, Disjoint: 0.5, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Relation; r.Number != int(c.number) || !slices.Equal(r.Reverses, c.reverses) || s.Undirected != c.undirected {
				t.Fatalf("relation %d has the reverses %v and is undirected %v", r.Number, r.Reverses, s.Undirected)
			}
			if v, e := s.Val.Len(), s.Test.Len(); v != c.edges/5 || e != v {
				t.Errorf("%d and %d edges are held out of %d", v, e, c.edges)
			}
			want := edgesOf(g)
			drop := func(e pairs.Edges) {
				for i, u := range e.Src {
					v := e.Dst[i]
					if !want[typedEdge{u, v, c.number}] {
						t.Errorf("%d → %d is predicted, and no edge that is left", u, v)
					}
					delete(want, typedEdge{u, v, c.number})
					if c.undirected {
						delete(want, typedEdge{v, u, c.number})
					}
					for _, q := range c.reverses {
						delete(want, typedEdge{v, u, uint16(q)})
					}
				}
			}
			drop(s.Val.Edges.Join(s.Test.Edges))
			if fmt.Sprint(edgesOf(s.Training)) != fmt.Sprint(want) {
				t.Errorf("the training graph is %v, want %v", edgesOf(s.Training), want)
			}
			drop(s.Train.Edges)
			if fmt.Sprint(edgesOf(s.Message)) != fmt.Sprint(want) {
				t.Errorf("the messages are %v, want %v", edgesOf(s.Message), want)
			}
			known, err := s.WithVal()
			if err != nil || known.NumEdges() <= s.Training.NumEdges() || known.EdgeTypes == nil {
				t.Errorf("with the validation edges there are %d edges, %v", known.NumEdges(), err)
			}
			for _, neg := range []pairs.Edges{s.Val.Neg, s.Test.Neg} {
				if err := s.Relation.Check(neg); err != nil {
					t.Error(err)
				}
				for i, u := range neg.Src {
					if edgesOf(g)[typedEdge{u, neg.Dst[i], c.number}] || u == neg.Dst[i] {
						t.Errorf("the negative %d → %d is an edge", u, neg.Dst[i])
					}
				}
			}
			for i, set := range s.HeldOut() {
				if want := 2 * c.edges / 5 * (1 + btoi(c.undirected)); i == 0 && set.Len() != want || !set.HasOf(s.Val.Src[0], s.Val.Dst[0], c.number) && i == 0 {
					t.Errorf("%d edges are held out, want %d", set.Len(), want)
				}
			}
			if x := s.Excluded(s.Train.Edges); !x.HasOf(s.Train.Src[0], s.Train.Dst[0], c.number) || x.HasOf(s.Train.Src[0], s.Train.Dst[0], 4) {
				t.Error("a step excludes edges of other relations, or not its own")
			}
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Negatives of a relation have its types, for every distribution; no strict one is an edge of it, though it may
// be one of another relation; and every pair that is possible is drawn.
func TestRelationNegatives(t *testing.T) {
	g := bought(t)
	s, err := pairs.Random(g, pairs.SplitOptions{Relation: "sees", Val: -1, Test: -1})
	if err != nil {
		t.Fatal(err)
	}
	known := edgesOf(g)
	for name, o := range map[string]pairs.NegativeOptions{
		"uniform": {}, "both ends": {BothEnds: true}, "degree": {From: pairs.ByDegree}, "degree75, both ends": {From: pairs.ByDegree75, BothEnds: true}, "in-batch": {From: pairs.InBatch},
	} {
		for _, strict := range []bool{false, true} {
			o.Strict, o.PerEdge, o.Relation, o.Seed = strict, 200, s.Relation, 5
			n, err := pairs.NewNegatives(g, o)
			if err != nil {
				t.Fatal(err)
			}
			neg, err := n.Draw(0, 0, nil, s.Train.Edges)
			if err != nil {
				t.Fatal(err)
			}
			drawn := map[[2]int32]bool{}
			for i, u := range neg.Src {
				v := neg.Dst[i]
				drawn[[2]int32{u, v}] = true
				if u >= 10 || v < 10 || v >= 25 {
					t.Fatalf("%s: the negative %d → %d has other types", name, u, v)
				}
				if strict && known[typedEdge{u, v, 3}] {
					t.Fatalf("%s: the negative %d → %d is an edge", name, u, v)
				}
			}
			// Each of 10 users has 2 of 15 items; items that nobody sees are not drawn by degree or from the batch.
			if want := 10 * (15 - 2*btoi(strict)); (name == "uniform" || name == "both ends") && len(drawn) != want {
				t.Errorf("%s, strict %v: %d pairs are drawn, want %d", name, strict, len(drawn), want)
			}
		}
	}
	n, err := pairs.NewNegatives(g, pairs.NegativeOptions{Relation: s.Relation})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Draw(0, 0, nil, pairs.Edges{Src: []int32{3}, Dst: []int32{4}}); err == nil || !strings.Contains(err.Error(), "relation user:sees:item leads from nodes 0 to 9 (user) to nodes 10 to 24 (item)") {
		t.Errorf("got %v", err)
	}
}

// The times are those of the relation alone.
func TestRelationByTime(t *testing.T) {
	g, o := bought(t), pairs.SplitOptions{Relation: "buys", Val: 0.1, Test: 0.2}
	val, test, err := pairs.TimesFor(g, o)
	if err != nil || val != 28 || test != 32 {
		t.Fatalf("the times are %d and %d, %v; want 28 and 32", val, test, err)
	}
	s, err := pairs.ByTime(g, nil, val, test, o)
	if err != nil || s.Val.Len() != 4 || s.Test.Len() != 8 || s.Relation.Check(s.Test.Edges) != nil {
		t.Errorf("the split is %v, %v", s, err)
	}
	given, err := pairs.Given(g, s.Val.Edges, s.Test.Edges, o)
	if err != nil {
		t.Fatal(err)
	}
	// Edges of "sees" are all later than the test, so they are no messages, unlike those of "knows".
	want := edgesOf(given.Message)
	maps.DeleteFunc(want, func(e typedEdge, _ bool) bool { return e.kind == 3 })
	if fmt.Sprint(edgesOf(s.Message)) != fmt.Sprint(want) || s.Later != 20 || len(want) < 20 {
		t.Errorf("the messages are %v, want %v; %d later edges are left out", edgesOf(s.Message), want, s.Later)
	}
	known, err := s.WithVal()
	if err != nil || known.RelationEdges()[3] != 0 || known.RelationEdges()[0] != 32 {
		t.Errorf("before the test there are %v edges of each relation, %v", known.RelationEdges(), err)
	}
}

// A relation with the reverses of nearly all edges is a reverse, though it has others besides; one that has a few by
// chance is none; and NoReverse overrules. The split says how many they share.
func TestAlmostReverse(t *testing.T) {
	g := bought(t)
	without := func(drop int, extra ...typedEdge) *graphops.Graph {
		var src, dst []int32
		var types []uint16
		for v := range int32(g.NumNodes()) {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if g.EdgeTypes[e] == 1 && drop > 0 {
					drop--
					continue
				}
				src, dst, types = append(src, g.Indices[e]), append(dst, v), append(types, g.EdgeTypes[e])
			}
		}
		for _, e := range extra {
			src, dst, types = append(src, e.src), append(dst, e.dst), append(types, e.kind)
		}
		n, err := graphops.FromEdgesWith(25, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
		if err == nil {
			n, err = n.WithTypes(g.Schema, n.EdgeTypes)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, c := range map[string]struct {
		g        *graphops.Graph
		reverse  string
		reverses []int
		notes    string
	}{
		"all":             {g, "", []int{1}, "relation item:bought_by:user has 40 of the 40 edges of user:buys:item in the other direction; those of held-out edges are no messages"},
		"all but one":     {without(1), "", []int{1}, "39 of the 40"},
		"most, and more":  {without(10, typedEdge{10, 1, 1}, typedEdge{11, 2, 1}), "", []int{1}, "30 of the 40"},
		"a few":           {without(34), "", nil, ""},
		"overruled":       {without(1), pairs.NoReverse, nil, "39 of the 40 edges of user:buys:item in the other direction, and they stay messages"},
		"a few, but told": {without(34), "bought_by", []int{1}, "6 of the 40"},
	} {
		s, err := pairs.Random(c.g, pairs.SplitOptions{Relation: "buys", Reverse: c.reverse, Val: 0.2, Test: 0.2, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(s.Notes(), "\n"); !slices.Equal(s.Relation.Reverses, c.reverses) || !strings.Contains(notes, c.notes) || c.notes == "" && strings.Contains(notes, "relation") {
			t.Errorf("%s: the reverses are %v, and the notes %q", name, s.Relation.Reverses, notes)
		}
		for e := range edgesOf(s.Message) {
			for _, p := range []pairs.Part{s.Val, s.Test} {
				for i, u := range p.Src {
					if e == (typedEdge{p.Dst[i], u, 1}) && c.reverses != nil {
						t.Errorf("%s: %v is a message, and its reverse is held out", name, e)
					}
				}
			}
		}
	}
}

func TestRelationErrors(t *testing.T) {
	g := bought(t)
	untyped := g.Homogeneous()
	for want, of := range map[string]func() error{
		`graphops: the graph has no relation "eats"`:               func() error { _, err := pairs.FindRelation(g, "eats", ""); return err },
		`relation shop:sells:item has no edges to predict`:         func() error { _, err := pairs.FindRelation(g, "sells", ""); return err },
		`relation user:knows:user cannot be the reverse of`:        func() error { _, err := pairs.FindRelation(g, "buys", "knows"); return err },
		`relation "buys" is to be predicted, but the graph has no`: func() error { _, err := pairs.FindRelation(untyped, "buys", ""); return err },
		`a reverse relation, but no relation to predict`:           func() error { _, err := pairs.Random(g, pairs.SplitOptions{Reverse: "bought_by"}); return err },
		`pair 0 is 0 → 1, but relation user:buys:item leads from`: func() error {
			_, err := pairs.Given(g, pairs.Edges{}, pairs.Edges{Src: []int32{0}, Dst: []int32{1}}, pairs.SplitOptions{Relation: "buys"})
			return err
		},
		`the graph is missing`: func() error { _, err := pairs.FindRelation(nil, "buys", ""); return err },
	} {
		if err := of(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
