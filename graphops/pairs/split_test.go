package pairs

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"

	"pgregory.net/rapid"
)

// graph builds an undirected or directed graph of edges written "0-1 1-2".
func graph(t testing.TB, nodes int, undirected bool, ends ...int32) *graphops.Graph {
	t.Helper()
	var e Edges
	for i := 0; i < len(ends); i += 2 {
		e = e.Append(ends[i], ends[i+1])
	}
	g, err := graphops.FromEdges(nodes, e.Src, e.Dst, graphops.BuildOptions{Undirected: undirected, KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// random draws a graph, which may have self-loops and, if directed, repeated edges.
func random(t *rapid.T, undirected bool) *graphops.Graph {
	n := rapid.IntRange(2, 30).Draw(t, "nodes")
	node := rapid.Int32Range(0, int32(n-1))
	var e Edges
	for range rapid.IntRange(0, 120).Draw(t, "edges") {
		e = e.Append(node.Draw(t, "src"), node.Draw(t, "dst"))
	}
	g, err := graphops.FromEdges(n, e.Src, e.Dst, graphops.BuildOptions{Undirected: undirected, KeepDuplicates: !undirected})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// edgesIn are the distinct edges of a graph without self-loops, and pairsOf its pairs of nodes with an edge.
func edgesIn(g *graphops.Graph) map[pair]bool {
	all := map[pair]bool{}
	for v := range int32(g.NumNodes()) {
		for _, u := range g.InNeighbors(v) {
			if u != v {
				all[pair{u, v}] = true
			}
		}
	}
	return all
}

func pairsOf(g *graphops.Graph) map[pair]bool {
	all := map[pair]bool{}
	for e := range edgesIn(g) {
		all[pairOf(e.a, e.b, true)] = true
	}
	return all
}

// Every edge of the graph is in exactly one part, with its copies and its reverse, whether or not all edges have
// one and whatever the option says, and neither an edge of validation and test nor its reverse is a message or
// a negative.
func TestSplitKeepsEdgesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		undirected := rapid.Bool().Draw(t, "undirected")
		g := random(t, undirected)
		o := SplitOptions{
			Val: 0.2, Test: 0.3, Undirected: undirected && rapid.Bool().Draw(t, "said"), Seed: rapid.Uint64().Draw(t, "seed"), Negatives: rapid.IntRange(1, 3).Draw(t, "negatives"),
			KeepSource: rapid.Bool().Draw(t, "keep source"), Disjoint: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "disjoint"),
		}
		s, err := Random(g, o)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "pairs: ") {
				t.Fatalf("error %q does not begin with the package's name", err)
			}
			return
		}
		if s.Undirected != g.Symmetric() {
			t.Fatalf("the split is undirected %v and the graph %v", s.Undirected, g.Symmetric())
		}
		part := map[pair]int{}
		pairsIn := [3]int{}
		for i, p := range []Part{s.Train, s.Val, s.Test} {
			for k, u := range p.Src {
				v := p.Dst[k]
				if u == v {
					t.Fatalf("part %d predicts the self-loop of node %d", i, u)
				}
				if !slices.Contains(g.InNeighbors(v), u) {
					t.Fatalf("%d → %d is predicted, and no edge", u, v)
				}
				q := pairOf(u, v, true)
				if part[q] != 0 {
					t.Fatalf("%v is in two parts or twice in one", q)
				}
				part[q] = i + 1
				pairsIn[i]++
			}
			for k, u := range p.Reverses.Src {
				v := p.Reverses.Dst[k]
				if i == 0 || s.Undirected || part[pairOf(u, v, true)] != i+1 || !slices.Contains(g.InNeighbors(v), u) {
					t.Fatalf("%d → %d is the other direction of no pair of part %d", u, v, i)
				}
			}
		}
		for name, h := range map[string]*graphops.Graph{"message": s.Message, "training": s.Training} {
			for e := range edgesIn(h) {
				at := part[pairOf(e.a, e.b, true)]
				if at > 1 || name == "message" && o.Disjoint > 0 && at == 1 {
					t.Fatalf("%d → %d is in part %d and among the %s edges", e.a, e.b, at, name)
				}
			}
		}
		all, messages := edgesIn(g), edgesIn(s.Message)
		for e := range all {
			if part[pairOf(e.a, e.b, true)] == 0 && !messages[e] {
				t.Fatalf("%d → %d is in no part, and no message", e.a, e.b)
			}
		}
		n := len(pairsOf(g))
		if pairsIn[1] != int(0.2*float64(n)) || pairsIn[2] != int(0.3*float64(n)) {
			t.Fatalf("of %d pairs %d are for validation and %d for the test", n, pairsIn[1], pairsIn[2])
		}
		if s.Pairs != n || s.Both != len(all)-n {
			t.Fatalf("the split counts %d pairs, %d in both directions, of %d with %d edges", s.Pairs, s.Both, n, len(all))
		}
		for _, p := range []Part{s.Val, s.Test} {
			if p.Neg.Len() != o.Negatives*p.Len() {
				t.Fatalf("%d edges have %d negatives, not %d each", p.Len(), p.Neg.Len(), o.Negatives)
			}
			for i, u := range p.Neg.Src {
				v := p.Neg.Dst[i]
				if u == v || slices.Contains(g.InNeighbors(v), u) {
					t.Fatalf("the negative %d → %d is an edge or a self-loop", u, v)
				}
				if o.KeepSource && u != p.Src[i/o.Negatives] {
					t.Fatalf("negative %d has source %d, not that of its edge", i, u)
				}
			}
		}
	})
}

// A graph with the reverses of all edges but a few is split as that with all of them: neither a test edge nor its
// reverse is a message, and the split notes what share has its reverse.
func TestAlmostSymmetric(t *testing.T) {
	whole := graph(t, 60, true, path(60)...)
	for name, drop := range map[string]int{"one of 59": 1, "half": 30, "all": 59} {
		e := Edges{}
		for v := range int32(60) {
			for _, u := range whole.InNeighbors(v) {
				if u < v || int(v)*drop/59 == int(v+1)*drop/59 {
					e = e.Append(u, v)
				}
			}
		}
		g, err := graphops.FromEdges(60, e.Src, e.Dst, graphops.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Random(g, SplitOptions{Val: 0.2, Test: 0.2, Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		held := sample.NewEdgeSet(s.Val.Join(s.Test.Edges).Src, s.Val.Join(s.Test.Edges).Dst, true)
		for e := range edgesIn(s.Message) {
			if held.Has(e.a, e.b) {
				t.Errorf("%s: %d → %d is a message, and it or its reverse is held out", name, e.a, e.b)
			}
		}
		if text := strings.Join(s.Notes(), "\n"); strings.Contains(text, "both directions") != (drop < 59) {
			t.Errorf("%s: the notes are %q", name, text)
		}
	}
}

// In a split by time, nothing from the validation on is a message: neither self-loops nor edges that another direction
// of the same pair makes a part of validation or test.
func TestByTimeLater(t *testing.T) {
	g := graph(t, 6, false, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 3, 3, 4, 5, 1, 0)
	at := map[pair]int64{{0, 1}: 1, {1, 2}: 2, {2, 2}: 3, {2, 3}: 5, {3, 4}: 7, {3, 3}: 8, {4, 5}: 1, {1, 0}: 9}
	times := make([]int64, g.NumEdges())
	for v := range int32(6) {
		for i, u := range g.InNeighbors(v) {
			times[g.Indptr[v]+int64(i)] = at[pair{u, v}]
		}
	}
	s, err := ByTime(g, times, 4, 6, SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has := func(h *graphops.Graph, u, v int32) bool { return slices.Contains(h.InNeighbors(v), u) }
	if s.Message.NumEdges() != 3 || !has(s.Message, 1, 2) || !has(s.Message, 2, 2) || !has(s.Message, 4, 5) || s.Later != 1 {
		t.Errorf("the messages are %v, and %d later edges are left out", edgesIn(s.Message), s.Later)
	}
	known, err := s.WithVal()
	if err != nil || known.NumEdges() != 4 || !has(known, 2, 3) || has(known, 3, 3) {
		t.Errorf("before the test %v are known, %v", edgesIn(known), err)
	}
	if s.Test.Len() != 2 || s.Test.Reverses.Len() != 1 || s.Both != 1 { // 0-1, which has both directions, and 3 → 4
		t.Errorf("the test is %v", s.Test.Edges)
	}
}

// The reverse of a given edge is no message, and is counted.
func TestGivenReverses(t *testing.T) {
	g := graph(t, 6, false, 0, 1, 1, 0, 1, 2, 2, 3, 3, 4, 4, 3, 4, 5)
	s, err := Given(g, Edges{[]int32{1}, []int32{0}}, Edges{[]int32{3, 2, 4}, []int32{4, 1, 3}}, SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// 0 → 1 is the reverse of 1 → 0, and 1 → 2 that of 2 → 1, which the graph lacks. 3 → 4 and 4 → 3 are both given.
	if want := map[pair]bool{{2, 3}: true, {4, 5}: true}; len(s.Train.Src) != 2 || !maps.Equal(edgesIn(s.Message), want) || s.Unused != 2 {
		t.Errorf("the messages are %v, %d edges are unused, and %v", edgesIn(s.Message), s.Unused, s)
	}
}

// A split is a function of the graph and the seed.
func TestSplitRepeats(t *testing.T) {
	g := graph(t, 40, true, path(40)...)
	of := func(seed uint64) *Split {
		s, err := Random(g, SplitOptions{Undirected: true, Seed: seed, Val: 0.2, Test: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b, c := of(1), of(1), of(2)
	if !slices.Equal(a.Val.Src, b.Val.Src) || !slices.Equal(a.Test.Neg.Dst, b.Test.Neg.Dst) {
		t.Error("two splits with one seed differ")
	}
	if slices.Equal(a.Val.Src, c.Val.Src) {
		t.Error("splits with different seeds have the same validation edges")
	}
	ascending := 0
	for i := range a.Train.Src {
		if a.Train.Src[i] < a.Train.Dst[i] {
			ascending++
		}
	}
	if ascending < 4 || ascending > a.Train.Len()-4 {
		t.Errorf("%d of %d pairs have the smaller node as their source; the direction is to be random", ascending, a.Train.Len())
	}
}

// path is the edges 0-1, 1-2 and so on.
func path(nodes int32) (ends []int32) {
	for v := range nodes - 1 {
		ends = append(ends, v, v+1)
	}
	return ends
}

func TestByTime(t *testing.T) {
	// 0-1 at 1 and, in the other direction, at 9; 1-2 at 2; 2-3 at 5; 3-4 at 7.
	g := graph(t, 5, true, 0, 1, 1, 2, 2, 3, 3, 4)
	at := map[pair]int64{{0, 1}: 1, {1, 0}: 9, {1, 2}: 2, {2, 3}: 5, {3, 4}: 7}
	times := make([]int64, g.NumEdges())
	for v := range int32(5) {
		for i, u := range g.InNeighbors(v) {
			x, ok := at[pair{u, v}]
			if !ok {
				x = at[pair{v, u}]
			}
			times[g.Indptr[v]+int64(i)] = x
		}
	}
	s, err := ByTime(g, times, 4, 6, SplitOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	names := func(e Edges) (out []pair) {
		for i := range e.Src {
			out = append(out, pairOf(e.Src[i], e.Dst[i], true))
		}
		slices.SortFunc(out, func(a, b pair) int { return int(a.a - b.a) })
		return out
	}
	for _, c := range []struct {
		part string
		got  []pair
		want []pair
	}{
		{"train", names(s.Train.Edges), []pair{{1, 2}}},
		{"val", names(s.Val.Edges), []pair{{2, 3}}},
		{"test", names(s.Test.Edges), []pair{{0, 1}, {3, 4}}}, // 0-1 was last seen at 9
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s has %v, want %v", c.part, c.got, c.want)
		}
	}
	own := g.WithEdgeData(nil, times)
	if again, err := ByTime(own, nil, 4, 6, SplitOptions{Undirected: true}); err != nil || !slices.Equal(again.Test.Src, s.Test.Src) || !slices.Equal(again.Test.Dst, s.Test.Dst) {
		t.Errorf("the graph's own times give %v (%v), want %v", again, err, s)
	}
	if _, err := ByTime(g, nil, 4, 6, SplitOptions{Undirected: true}); err == nil || !strings.Contains(err.Error(), "convert the dataset with --edge-times") {
		t.Errorf("a graph without times gives %v", err)
	}
}

func TestGiven(t *testing.T) {
	g := graph(t, 6, true, path(5)...)
	s, err := Given(g, Edges{[]int32{1}, []int32{0}}, Edges{[]int32{5}, []int32{2}}, SplitOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	// 5-2 is a given edge that the graph lacks.
	if s.Message.NumEdges() != 6 || s.Train.Len() != 3 || s.Val.Len() != 1 || s.Test.Len() != 1 {
		t.Errorf("got %v", s)
	}
	known, err := s.Known()
	if err != nil {
		t.Fatal(err)
	}
	if known.NumEdges() != 10 || !known.Symmetric() {
		t.Errorf("the known edges are %v, want the 8 of the graph and 2-5 in both directions", known)
	}
}

func TestSplitErrors(t *testing.T) {
	one := graph(t, 2, true, 0, 1)
	directed := graph(t, 3, false, 0, 1, 1, 2)
	long := graph(t, 41, true, path(41)...)
	complete := graph(t, 4, true, 0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3)
	none := graph(t, 3, true)
	split := func(g *graphops.Graph, o SplitOptions) func() error {
		return func() error { _, err := Random(g, o); return err }
	}
	for _, c := range []struct {
		name string
		of   func() error
		want string
	}{
		{"one edge", split(one, SplitOptions{Undirected: true}), "pairs: 0.05 of 1 pair leaves no edge for validation; take a larger Val, or a negative one for none"},
		{"no test", split(long, SplitOptions{Undirected: true, Val: 0.1, Test: 0.01}), "pairs: 0.01 of 40 pairs leaves no edge for the test; take a larger Test, or a negative one for none"},
		{"nothing left", split(long, SplitOptions{Undirected: true, Val: 0.5, Test: 0.5}), "pairs: Val is 0.5 and Test 0.5 of the edges, which leaves none to train on; their sum must be below 1"},
		{"more than all", split(long, SplitOptions{Val: 1.5}), "pairs: Val is 1.5; it is a fraction of the edges, below 1"},
		{"not a number", split(long, SplitOptions{Test: math.NaN()}), "pairs: Test is NaN; it is a fraction of the edges, below 1"},
		{"no reverse", split(directed, SplitOptions{Undirected: true}), "an edge of the graph has no reverse"},
		{"no edges", split(none, SplitOptions{Val: -1, Test: -1}), "pairs: of 0 pairs none is left to train on; take a larger graph or smaller parts"},
		{"no disjoint edge", split(long, SplitOptions{Undirected: true, Disjoint: 0.01}), "pairs: Disjoint is 0.01 of 34 pairs, which leaves no edge to predict; take a larger fraction"},
		{"complete", split(complete, SplitOptions{Undirected: true, Val: 0.2, Test: 0.2}), "pairs: negatives for validation and the test: there can be no negatives: every pair of nodes that could be drawn is a known edge; take a graph with fewer edges"},
		{"no graph", split(nil, SplitOptions{}), "pairs: the graph is missing"},
		{"negatives", split(long, SplitOptions{Undirected: true, Negatives: -2}), "pairs: Negatives is -2; it is the number of negatives for each edge, 1 to 65536 (0 means 1)"},
		{"no graph with times", func() error { _, err := ByTime(nil, nil, 1, 2, SplitOptions{}); return err }, "pairs: the graph is missing"},
		{"no graph with given edges", func() error { _, err := Given(nil, Edges{}, Edges{}, SplitOptions{}); return err }, "pairs: the graph is missing"},
		{"no graph with pairs", func() error { _, err := AdamicAdar(nil, Edges{}, 0); return err }, "pairs: the graph is missing"},
		{"times", func() error { _, err := ByTime(long, make([]int64, 3), 1, 2, SplitOptions{}); return err }, "pairs: there are 3 times but the graph has 80 edges; give one for each, by CSC position"},
		{"order of times", func() error { _, err := ByTime(long, make([]int64, 80), 2, 1, SplitOptions{}); return err }, "pairs: validation begins at time 2 and the test at 1; the test must not begin earlier"},
		{"all early", func() error { _, err := ByTime(long, make([]int64, 80), 1, 2, SplitOptions{}); return err }, "pairs: with validation from time 1 and the test from time 2 on, no edge is left for validation; choose other times"},
		{"out of range", func() error {
			_, err := Given(long, Edges{[]int32{0}, []int32{41}}, Edges{}, SplitOptions{})
			return err
		}, "pairs: edge 0 of the validation edges is 0 → 41, but the graph has the nodes 0 to 40"},
		{"lengths", func() error { _, err := Given(long, Edges{}, Edges{[]int32{0}, nil}, SplitOptions{}); return err }, "pairs: the test edges have 1 sources and 0 destinations; edge i is Src[i] → Dst[i], so give equally many"},
		{"one edge, given", func() error {
			_, err := Given(one, Edges{[]int32{0}, []int32{1}}, Edges{}, SplitOptions{Undirected: true})
			return err
		}, "pairs: of 1 pair none is left to train on; take a larger graph or smaller parts"},
		{"one edge, by time", func() error { _, err := ByTime(one, []int64{3, 3}, 3, 4, SplitOptions{Undirected: true}); return err }, "pairs: with validation from time 3 and the test from time 4 on, no edge is left for training; choose other times"},
		{"given twice", func() error {
			_, err := Given(long, Edges{[]int32{0}, []int32{1}}, Edges{[]int32{1}, []int32{0}}, SplitOptions{Undirected: true})
			return err
		}, "pairs: edge 1 → 0 is given for validation and for the test; give it once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.of(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
}

// WithVal has all edges but those of the test: those of validation, of a disjoint split, and given ones
// that the graph lacks.
func TestWithVal(t *testing.T) {
	// A cycle of 8 nodes; 0-4 is no edge of it.
	var src, dst []int32
	for v := range int32(8) {
		src, dst = append(src, v, (v+1)%8), append(dst, (v+1)%8, v)
	}
	cycle, err := graphops.FromEdges(8, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has := func(g *graphops.Graph, u, v int32) bool { return slices.Contains(g.InNeighbors(v), u) }
	val, test := Edges{Src: []int32{0, 0}, Dst: []int32{1, 4}}, Edges{Src: []int32{3}, Dst: []int32{2}}
	s, err := Given(cycle, val, test, SplitOptions{Undirected: true, Disjoint: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.WithVal()
	if err != nil {
		t.Fatal(err)
	}
	if g.NumEdges() != 16+2-2 {
		t.Errorf("%d edges, want those of the cycle, 0-4 and 4-0, without 2-3 and 3-2", g.NumEdges())
	}
	for v := range int32(8) {
		if w := (v + 1) % 8; has(g, v, w) != (v != 2) || has(g, w, v) != (v != 2) {
			t.Errorf("%d-%d and its reverse are edges: %v, %v", v, w, has(g, v, w), has(g, w, v))
		}
	}
	if !has(g, 0, 4) || !has(g, 4, 0) {
		t.Error("the given edge 0-4 is missing")
	}
	cycle.EdgeWeights = make([]float32, 16)
	if _, err := s.WithVal(); err == nil || !strings.Contains(err.Error(), "the validation edges cannot be messages") {
		t.Errorf("with weights that 0-4 has not: %v", err)
	}
}

// The times of a split by fractions are those of the latest edges, and edges of one time stay together.
func TestTimesFor(t *testing.T) {
	// A path of 0 to 20, whose edges have the times 1 to 20.
	var e Edges
	for v := range int32(20) {
		e = e.Append(v, v+1)
	}
	g, err := graphops.FromEdges(21, e.Src, e.Dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	timed := func(of func(v int32) int64) *graphops.Graph {
		times := make([]int64, g.NumEdges())
		for v := range int32(21) {
			for i, u := range g.InNeighbors(v) {
				times[g.Indptr[v]+int64(i)] = of(max(u, v))
			}
		}
		return g.WithEdgeData(nil, times)
	}
	for _, c := range []struct {
		name      string
		of        func(v int32) int64
		o         SplitOptions
		val, test int64
		want      string
	}{
		{"each its own", func(v int32) int64 { return int64(v) }, SplitOptions{Val: 0.1, Test: 0.2}, 15, 17, ""},
		{"the defaults", func(v int32) int64 { return int64(v) }, SplitOptions{}, 18, 19, ""},
		{"in pairs", func(v int32) int64 { return int64(v / 2) }, SplitOptions{Val: 0.25, Test: 0.25}, 5, 8, ""},
		{"one time", func(v int32) int64 { return 7 }, SplitOptions{}, 0, 0, "too many edges have the time 7"},
		{"no test", func(v int32) int64 { return int64(v) }, SplitOptions{Test: -1}, 0, 0, "leave a part of a split by time without edges"},
		{"all", func(v int32) int64 { return int64(v) }, SplitOptions{Val: 0.5, Test: 0.5}, 0, 0, "leave a part of a split by time without edges"},
	} {
		c.o.Undirected = true
		val, test, err := TimesFor(timed(c.of), c.o)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil || val != c.val || test != c.test {
			t.Errorf("%s: validation from %d and the test from %d on, %v, want %d and %d", c.name, val, test, err, c.val, c.test)
		}
		if s, err := ByTime(timed(c.of), nil, val, test, c.o); err != nil || s.Val.Len() == 0 || s.Test.Len() == 0 {
			t.Errorf("%s: the split is %v, %v", c.name, s, err)
		}
	}
	if _, _, err := TimesFor(g, SplitOptions{}); err == nil || !strings.Contains(err.Error(), "have no times") {
		t.Errorf("a graph without times gives %v", err)
	}
}
