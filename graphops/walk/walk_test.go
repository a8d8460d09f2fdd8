package walk

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/philox"
)

// graph returns a graph of edges "source destination", in both directions if undirected.
func graph(t testing.TB, nodes int, undirected bool, edges ...[2]int32) *graphops.Graph {
	t.Helper()
	var src, dst []int32
	for _, e := range edges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Undirected: undirected})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// kite is a triangle 0-1-2 with a tail 2-3-4, and a leaf 5 at 0.
func kite(t testing.TB) *graphops.Graph {
	return graph(t, 6, true, [2]int32{0, 1}, [2]int32{1, 2}, [2]int32{0, 2}, [2]int32{2, 3}, [2]int32{3, 4}, [2]int32{0, 5})
}

// weighted gives the edges of a graph the weights 1, 2, 3 and so on, and 0 to each fifth.
func weighted(g *graphops.Graph) *graphops.Graph {
	w := make([]float32, g.NumEdges())
	for i := range w {
		w[i] = float32((i + 1) % 5)
	}
	return g.WithEdgeWeights(w)
}

// transition is the plain reference of a step's probabilities [nodes]: of node2vec's if last is not -1.
func transition(g *graphops.Graph, last, v int32, p, q float64) []float64 {
	out := make([]float64, g.NumNodes())
	total := 0.0
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		x, w := g.Indices[e], float64(g.Weight(e))
		switch {
		case last < 0:
		case x == last:
			w /= p
		case !slices.Contains(g.InNeighbors(last), x):
			w /= q
		}
		out[x] += w
		total += w
	}
	for x := range out {
		out[x] /= total
	}
	return out
}

// chiSquare fails the test if counts do not come from probabilities: their statistic is above the mean by
// more than six standard deviations, or something impossible occurred.
func chiSquare(t *testing.T, what string, counts []int, probabilities []float64) {
	t.Helper()
	n, free, sum := 0, -1, 0.0
	for _, c := range counts {
		n += c
	}
	for x, p := range probabilities {
		want := p * float64(n)
		switch {
		case p == 0 && counts[x] > 0:
			t.Errorf("%s: node %d has probability 0, and %d of %d steps went there", what, x, counts[x], n)
		case p > 0:
			free++
			d := float64(counts[x]) - want
			sum += d * d / want
		}
	}
	if limit := float64(free) + 6*math.Sqrt(2*float64(max(1, free))); sum > limit {
		t.Errorf("%s: the chi-square statistic of %d steps is %.1f, above %.1f: counts %v for probabilities %.3f", what, n, sum, limit, counts, probabilities)
	}
}

// Steps have the probabilities of the reference, for uniform and biased walks, with and without weights,
// by proposals and, with none, by all probabilities.
func TestStepsHaveTheirProbabilities(t *testing.T) {
	for _, c := range []struct {
		p, q  float64
		tries int
	}{{1, 1, maxTries}, {0.25, 4, maxTries}, {4, 0.5, maxTries}, {4, 0.5, 1}, {0.1, 3, 0}, {1e6, 1e-6, maxTries}} {
		for name, g := range map[string]*graphops.Graph{
			"undirected": kite(t), "weighted": weighted(kite(t)),
			"directed": graph(t, 4, false, [2]int32{1, 0}, [2]int32{2, 0}, [2]int32{2, 1}, [2]int32{0, 2}, [2]int32{3, 2}, [2]int32{0, 3}, [2]int32{3, 3}),
			"multiple": graph(t, 3, false, [2]int32{1, 0}, [2]int32{1, 0}, [2]int32{2, 0}, [2]int32{0, 1}, [2]int32{0, 2}, [2]int32{1, 2}),
		} {
			w, err := New(g, Options{Length: 3, P: c.p, Q: c.q, Seed: 7})
			g, _ = g.WithoutZeroWeights() // for node2vec, ends of such edges are no neighbours
			if err != nil {
				t.Fatal(err)
			}
			w.tries = c.tries
			const per = 4000
			counts := map[[2]int32][]int{}
			for epoch := range 2 {
				for v := range int32(g.NumNodes()) {
					walks, err := w.Walks(epoch, []int32{v}, per)
					if err != nil {
						t.Fatal(err)
					}
					for i := range per {
						row := walks[i*4 : i*4+4]
						last := int32(-1)
						for k := range 3 {
							if row[k+1] < 0 {
								break
							}
							at := [2]int32{last, row[k]}
							if counts[at] == nil {
								counts[at] = make([]int, g.NumNodes())
							}
							counts[at][row[k+1]]++
							last = row[k]
						}
					}
				}
			}
			for at, n := range counts {
				chiSquare(t, fmt.Sprintf("%s, p %v, q %v, %d tries, step %d → %d", name, c.p, c.q, c.tries, at[0], at[1]), n, transition(g, at[0], at[1], c.p, c.q))
			}
		}
	}
}

// A walk is a function of seed, epoch, start, number and step: not of threads, of the list of starts, or
// of its length. The plain reference draws from the same counters.
func TestWalksAreFunctions(t *testing.T) {
	g := kite(t)
	w, err := New(g, Options{Length: 8, Seed: 3, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	starts := make([]int32, 600)
	for i := range starts {
		starts[i] = int32(i % 6)
	}
	all, err := w.Walks(5, starts, 3)
	if err != nil {
		t.Fatal(err)
	}
	more, err := New(g, Options{Length: 8, Seed: 3, Threads: 7})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := more.Walks(5, starts, 3); err != nil || !slices.Equal(all, again) {
		t.Errorf("seven threads draw other walks than one (%v)", err)
	}
	for i, v := range starts[:12] {
		for number := range 3 {
			row := all[(3*i+number)*9 : (3*i+number+1)*9]
			at := v
			for step := range 8 {
				u := philox.Block(3, [4]uint32{uint32(v), uint32(number) << 16, uint32(step), philox.C3(philox.Walks, 0, 5)})[0]
				row := g.InNeighbors(at)
				at = row[uint64(u)*uint64(len(row))>>32]
				if got := all[(3*i+number)*9+step+1]; got != at {
					t.Fatalf("step %d of walk %d from %d goes to %d, the reference to %d", step, number, v, got, at)
				}
			}
			one := make([]int32, 9)
			if err := w.Walk(5, v, number, one); err != nil || !slices.Equal(one, row) {
				t.Errorf("walk %d from %d is %v alone (%v) and %v with others", number, v, one, err, row)
			}
		}
	}
	other, err := w.Walks(6, starts, 3)
	if err != nil || slices.Equal(all, other) {
		t.Errorf("two epochs have equal walks (%v)", err)
	}
}

// A walk ends where no in-neighbour is, or none of a weight above 0.
func TestDeadEnds(t *testing.T) {
	path := graph(t, 4, false, [2]int32{2, 1}, [2]int32{1, 0}, [2]int32{0, 3})
	closed := path.WithEdgeWeights([]float32{0, 1, 2}) // 1 → 0 is closed
	for name, c := range map[string]struct {
		g    *graphops.Graph
		p    float64
		want []int32
	}{
		"path": {path, 1, []int32{3, 0, 1, 2, -1, -1}}, "biased": {path, 4, []int32{3, 0, 1, 2, -1, -1}},
		"weight 0": {closed, 1, []int32{3, 0, -1, -1, -1, -1}}, "weight 0, biased": {closed, 4, []int32{3, 0, -1, -1, -1, -1}},
	} {
		w, err := New(c.g, Options{Length: 5, P: c.p})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.Walks(0, []int32{3}, 1); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: the walk is %v (%v), want %v", name, got, err, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	g := kite(t)
	nan := kite(t).WithEdgeWeights([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, float32(math.NaN()), 1})
	calls := map[string]func() error{}
	options := func(g *graphops.Graph, o Options) func() error {
		return func() error { _, err := New(g, o); return err }
	}
	calls["walk: the graph is missing"] = options(nil, Options{})
	calls["walk: Length is -1; a walk has 1 to 1048576 steps"] = options(g, Options{Length: -1})
	calls["walk: P is -2; it is a number from 0.000001 to 1000000"] = options(g, Options{P: -2})
	calls["walk: Q is NaN"] = options(g, Options{Q: math.NaN()})
	calls["walk: the edge 3 → 4 has weight NaN"] = options(nan, Options{})
	w, err := New(g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	walks := func(epoch int, start int32, per int) func() error {
		return func() error { _, err := w.Walks(epoch, []int32{0, start}, per); return err }
	}
	calls["walk: start 1 is node 6, but the graph has 6 nodes"] = walks(0, 6, 1)
	calls["walk: start 1 is node -1"] = walks(0, -1, 1)
	calls["walk: epoch -1 is out of range"] = walks(-1, 0, 1)
	calls["walk: epoch 1048576 is out of range"] = walks(1<<20, 0, 1)
	calls["walk: 0 walks were asked for"] = walks(0, 0, 0)
	calls["walk: 65537 walks were asked for"] = walks(0, 0, MaxPerNode+1)
	calls["walk: walk 0 with room for 3 nodes; walks are numbered 0 to 65535, and have 21 nodes"] = func() error { return w.Walk(0, 0, 0, make([]int32, 3)) }
	visited := func(o VisitedOptions) func() error { return func() error { _, err := Visited(g, o); return err } }
	calls["walk: K is -1; a node keeps 1 neighbour or more (0 means 10)"] = visited(VisitedOptions{K: -1})
	calls["walk: Walks is -1"] = visited(VisitedOptions{Walks: -1})
	calls["walk: Restart is 1; it is a probability below 1"] = visited(VisitedOptions{Restart: 1})
	calls["walk: Length is -3"] = visited(VisitedOptions{Length: -3})
	calls["walk: epoch -4 is out of range"] = visited(VisitedOptions{Epoch: -4})
	ranks := func(o PageRankOptions) func() error { return func() error { _, err := PageRank(g, o); return err } }
	calls["walk: K is -5; a node keeps 1 neighbour or more (0 means 32)"] = ranks(PageRankOptions{K: -5})
	calls["walk: Alpha is 1.5; it is a probability above 0"] = ranks(PageRankOptions{Alpha: 1.5})
	calls["walk: Epsilon is NaN"] = ranks(PageRankOptions{Epsilon: math.NaN()})
	for want, call := range calls {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
