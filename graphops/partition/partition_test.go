package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/internal/testneed"
)

// made returns a graph of n nodes with the given number of random edges. The edges of one eighth of
// the nodes lead to nodes near them. It has loops and duplicates.
func made(t testing.TB, n, edges int, undirected bool) *graphops.Graph {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(edges)))
	var src, dst []int32
	for range edges {
		v := r.IntN(n)
		u := (v + r.IntN(max(1, n/8))) % n
		src, dst = append(src, int32(u)), append(dst, int32(v))
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if undirected {
		g = g.Undirected(2)
	}
	return g
}

func divide(t testing.TB, g *graphops.Graph, parts int, o Options) *Parts {
	t.Helper()
	p, err := Divide(t.Context(), g, parts, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Measure equals a count of the edges between pairs of parts in a map.
func TestMeasure(t *testing.T) {
	for _, n := range []int{1, 2, 50, 3000} {
		for _, undirected := range []bool{false, true} {
			g := made(t, n, 4*n, undirected)
			weights := make([]int32, n)
			of := make([]int32, n)
			for v := range of {
				of[v], weights[v] = int32(v%3), int32(v%5)
			}
			type pair struct{ a, b int32 }
			edges, halo := map[pair]bool{}, map[pair]bool{}
			var nodes, heavy [3]int64
			cut := int64(0)
			for v := range int32(n) {
				nodes[of[v]]++
				heavy[of[v]] += int64(weights[v])
				for _, u := range g.InNeighbors(v) {
					if of[u] != of[v] {
						halo[pair{of[v], u}] = true
					}
					if e := (pair{min(u, v), max(u, v)}); u != v && !edges[e] {
						edges[e] = true
						if of[u] != of[v] {
							cut++
						}
					}
				}
			}
			var seen [3]int64
			for h := range halo {
				seen[h.a]++
			}
			s, err := Measure(t.Context(), g, of, 3, weights, 2)
			if err != nil {
				t.Fatal(err)
			}
			if s.Edges != int64(len(edges)) || s.EdgeCut != cut || !slices.Equal(s.Nodes, nodes[:]) || !slices.Equal(s.Weights, heavy[:]) || !slices.Equal(s.Halo, seen[:]) {
				t.Errorf("%d nodes: %+v; want %d edges, %d cut, nodes %v, weights %v, halo %v", n, s, len(edges), cut, nodes, heavy, seen)
			}
			if total := heavy[0] + heavy[1] + heavy[2]; total > 0 {
				if want := 3 * float64(slices.Max(heavy[:])) / float64(total); s.Imbalance != want {
					t.Errorf("%d nodes: imbalance %v, want %v", n, s.Imbalance, want)
				}
			}
		}
	}
}

// Every method gives each node a part, respects the limit on the parts' weights, and gives the same
// parts for the same seed on any number of threads and other parts for another seed.
func TestEveryMethod(t *testing.T) {
	large := 5000
	if testing.Short() {
		large = 800
	}
	for _, n := range []int{40, large} {
		g := made(t, n, 6*n, false)
		weights := make([]int32, n)
		for v := range weights {
			weights[v] = int32(v % 4)
		}
		for _, method := range Methods()[:5] {
			for _, w := range [][]int32{nil, weights} {
				for _, parts := range []int{1, 2, 3, 8} {
					t.Run(fmt.Sprintf("%s/%d/%d/%v", method, n, parts, w != nil), func(t *testing.T) {
						o := Options{Method: method, Weights: w, Seed: 1, Threads: 1, Imbalance: 0.05}
						p := divide(t, g, parts, o)
						total := int64(n)
						if w != nil {
							total = 0
							for _, x := range w {
								total += int64(x)
							}
						}
						if got, most := slices.Max(p.Weights), limit(total, parts, 0.05)+3; got > most {
							t.Errorf("a part has the weight %d, more than %d: %v", got, most, p.Weights)
						}
						o.Threads = 3
						if q := divide(t, g, parts, o); !slices.Equal(p.Of, q.Of) || p.EdgeCut != q.EdgeCut {
							t.Error("the number of threads changes the parts")
						}
						o.Seed = 2
						q := divide(t, g, parts, o)
						if same := slices.Equal(p.Of, q.Of); parts > 1 && n > 40 && same != (method == Range || method == Fennel || method == Stream) {
							t.Errorf("another seed gives the same parts %v", same)
						}
					})
				}
			}
		}
	}
}

// The best division of these graphs is known.
func TestKnownCuts(t *testing.T) {
	clique := func(src, dst []int32, from, n int32) ([]int32, []int32) {
		for i := range n {
			for j := range i {
				src, dst = append(src, from+i), append(dst, from+j)
			}
		}
		return src, dst
	}
	for name, c := range map[string]struct {
		nodes, parts int
		edges        func() (src, dst []int32)
		most         int64
	}{
		"four cliques in a ring": {400, 4, func() (src, dst []int32) {
			for i := range int32(4) {
				src, dst = clique(src, dst, 100*i, 100)
				src, dst = append(src, 100*i), append(dst, (100*i+150)%400)
			}
			return src, dst
		}, 4},
		"path": {10000, 4, func() (src, dst []int32) {
			for i := range int32(9999) {
				src, dst = append(src, i), append(dst, i+1)
			}
			return src, dst
		}, 12},
		"grid": {64 * 64, 2, func() (src, dst []int32) {
			for i := range int32(64 * 64) {
				if i%64 < 63 {
					src, dst = append(src, i), append(dst, i+1)
				}
				if i < 63*64 {
					src, dst = append(src, i), append(dst, i+64)
				}
			}
			return src, dst
		}, 80},
		"grid in 16 parts": {64 * 64, 16, func() (src, dst []int32) {
			for i := range int32(64 * 64) {
				if i%64 < 63 {
					src, dst = append(src, i), append(dst, i+1)
				}
				if i < 63*64 {
					src, dst = append(src, i), append(dst, i+64)
				}
			}
			return src, dst
		}, 455},
		"two communities": {4000, 2, func() (src, dst []int32) {
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 40000 {
				side := i & 1 // node ids alternate between the sides, so ranges of ids are a bad division
				to := side
				if i%50 == 0 {
					to = 1 - side
				}
				src, dst = append(src, int32(2*r.IntN(2000)+side)), append(dst, int32(2*r.IntN(2000)+to))
			}
			return src, dst
		}, 820},
		"star":     {5000, 2, func() (src, dst []int32) { return make([]int32, 4999), counting(1, 5000) }, 2600},
		"no edges": {5000, 7, func() (src, dst []int32) { return nil, nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			src, dst := c.edges()
			g, err := graphops.FromEdges(c.nodes, src, dst, graphops.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p := divide(t, g, c.parts, Options{})
			if p.EdgeCut > c.most || p.Imbalance > 1.031 {
				t.Errorf("%v; want at most %d cut, and 3 %% above the mean", p, c.most)
			}
			t.Log(p)
		})
	}
}

func counting(lo, hi int32) (s []int32) {
	for i := lo; i < hi; i++ {
		s = append(s, i)
	}
	return s
}

// Partitioning finds the communities of the planted dataset.
func TestPlanted(t *testing.T) {
	testneed.NotShort(t, "it divides a graph of 20,000 nodes three times")
	ds, err := datasets.Load("planted?nodes=20000&classes=4")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	p, random := divide(t, ds.Graph, 4, Options{}), divide(t, ds.Graph, 4, Options{Method: Random})
	if fennel, stream := divide(t, ds.Graph, 4, Options{Method: Fennel}), divide(t, ds.Graph, 4, Options{Method: Stream}); p.EdgeCut >= fennel.EdgeCut || fennel.EdgeCut >= random.EdgeCut || stream.EdgeCut >= fennel.EdgeCut {
		t.Errorf("%v\n%v\n%v\n%v", p, fennel, stream, random)
	}
	for i, h := range p.Halo {
		if h >= random.Halo[i] {
			t.Errorf("part %d has %d halo nodes; with random parts it has %d", i, h, random.Halo[i])
		}
	}
}

// The graph has a dense core among nodes with few edges, and its merged nodes all look alike. A
// pass over the core finds a better division, which is then refined.
func TestCore(t *testing.T) {
	testneed.NotShort(t, "it divides a graph of 8,192 nodes four times")
	ds, err := datasets.Load("rmat?scale=13&degree=16")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	for _, parts := range []int{2, 4} {
		p, f := divide(t, ds.Graph, parts, Options{}), divide(t, ds.Graph, parts, Options{Method: Fennel})
		if p.EdgeCut >= f.EdgeCut {
			t.Errorf("%v\n%v", p, f)
		}
		t.Log(p, f)
	}
}

// A graph with hubs is divided starting from the hubs, in any numbering: streaming in the order of
// ids, or merging, cuts twice as many edges.
func TestHubs(t *testing.T) {
	ds, err := datasets.Load("rmat?scale=11&degree=16")
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	to := shuffled(ds.Nodes(), 5)
	var src, dst []int32
	for v := range int32(ds.Nodes()) {
		for _, u := range ds.Graph.InNeighbors(v) {
			src, dst = append(src, to[u]), append(dst, to[v])
		}
	}
	g, err := graphops.FromEdges(ds.Nodes(), src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, f := divide(t, g, 4, Options{}), divide(t, g, 4, Options{Method: Fennel})
	t.Log(p, f)
	if 3*p.EdgeCut > 2*f.EdgeCut {
		t.Errorf("%v\n%v", p, f)
	}
	if s := divide(t, g, 4, Options{Method: Stream}); 10*s.EdgeCut > 11*p.EdgeCut {
		t.Errorf("%v\n%v", p, s)
	}
}

// Where ids carry the structure, streaming is no worse than ranges of ids. The graph is a road of squares whose ids
// ascend along it.
func TestStreamOnIDs(t *testing.T) {
	var src, dst []int32
	for i := range int32(3000) {
		src, dst = append(src, 2*i), append(dst, 2*i+1)
		if i > 0 {
			src, dst = append(src, 2*i, 2*i+1), append(dst, 2*i-2, 2*i-1)
		}
	}
	g, err := graphops.FromEdges(6000, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g = g.Undirected(1)
	stream, ids := divide(t, g, 7, Options{Method: Stream}), divide(t, g, 7, Options{Method: Range})
	if stream.EdgeCut > ids.EdgeCut {
		t.Errorf("%v\n%v", stream, ids)
	}
}

// If no weight is above 0, every method balances the number of nodes.
func TestNoWeight(t *testing.T) {
	g := made(t, 2000, 8000, true)
	for _, method := range Methods()[:5] {
		p := divide(t, g, 4, Options{Method: method, Weights: make([]int32, 2000)})
		if most := slices.Max(p.Nodes); most > 515 {
			t.Errorf("%s: parts of %d nodes, want at most 515", method, p.Nodes)
		}
	}
}

func TestMisuse(t *testing.T) {
	g := made(t, 10, 30, false)
	for want, f := range map[string]func() error{
		"11 parts for 10 nodes":  func() error { _, err := Divide(t.Context(), g, 11, Options{}); return err },
		"0 parts for 10 nodes":   func() error { _, err := Divide(t.Context(), g, 0, Options{}); return err },
		"3 weights for 10 nodes": func() error { _, err := Divide(t.Context(), g, 2, Options{Weights: make([]int32, 3)}); return err },
		`unknown method "magic"`: func() error { _, err := Divide(t.Context(), g, 2, Options{Method: "magic"}); return err },
		`unknown preset "slow"`:  func() error { _, err := Divide(t.Context(), g, 2, Options{Preset: "slow"}); return err },
		"imbalance +Inf is":      func() error { _, err := Divide(t.Context(), g, 2, Options{Imbalance: math.Inf(1)}); return err },
		"imbalance -1 is":        func() error { _, err := Divide(t.Context(), g, 2, Options{Imbalance: -1}); return err },
		"node 0 is in part 5 of": func() error {
			_, err := Measure(t.Context(), g, []int32{5, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 2, nil, 1)
			return err
		},
		"the parts of 1 nodes": func() error { _, err := Measure(t.Context(), g, []int32{0}, 2, nil, 1); return err },
		"node 1 has weight -2; weigh": func() error {
			_, err := Divide(t.Context(), g, 2, Options{Weights: []int32{0, -2, 0, 0, 0, 0, 0, 0, 0, 0}})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	empty, err := graphops.FromEdges(0, nil, nil, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Methods()[:5] {
		if p := divide(t, empty, 1, Options{Method: m}); len(p.Of) != 0 || p.CutFraction() != 0 {
			t.Errorf("%v", p)
		}
	}
}

func TestCancel(t *testing.T) {
	g := made(t, 200000, 400000, true)
	for _, m := range []string{Multilevel, Stream, Fennel} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		if _, err := Divide(ctx, g, 4, Options{Method: m}); !errors.Is(err, why) {
			t.Errorf("%s: %v", m, err)
		}
	}
}
