package graphops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// named lists graphs that can be drawn by hand, with edges src → dst.
var named = []struct {
	name  string
	nodes int
	edges [][2]int32
}{
	{"empty", 0, nil},
	{"one node", 1, nil},
	{"self-loop", 1, [][2]int32{{0, 0}}},
	{"cycle", 4, [][2]int32{{0, 1}, {1, 2}, {2, 3}, {3, 0}}},
	{"star", 5, [][2]int32{{4, 0}, {3, 0}, {2, 0}, {1, 0}}},
	{"isolated node", 3, [][2]int32{{0, 2}, {2, 0}}},
	{"duplicate edge", 3, [][2]int32{{1, 0}, {2, 0}, {1, 0}, {1, 0}}},
	{"both directions and a loop", 2, [][2]int32{{0, 1}, {1, 0}, {1, 1}, {1, 1}}},
}

func columns(edges [][2]int32) (src, dst []int32) {
	for _, e := range edges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	return src, dst
}

// naive builds the rows with a map of multiplicities.
func naive(nodes int, edges [][2]int32, o BuildOptions) [][]int32 {
	count := map[[2]int32]int{}
	for _, e := range edges {
		count[e]++
		if o.Undirected && e[0] != e[1] {
			count[[2]int32{e[1], e[0]}]++
		}
	}
	if o.SelfLoops {
		for v := range int32(nodes) {
			if count[[2]int32{v, v}] == 0 {
				count[[2]int32{v, v}] = 1
			}
		}
	}
	rows := make([][]int32, nodes)
	for e, n := range count {
		if !o.KeepDuplicates {
			n = 1
		}
		for range n {
			rows[e[1]] = append(rows[e[1]], e[0])
		}
	}
	for _, row := range rows {
		slices.Sort(row)
	}
	return rows
}

func checkRows(t interface{ Fatalf(string, ...any) }, g *Graph, rows [][]int32) {
	if g.NumNodes() != len(rows) {
		t.Fatalf("%d nodes, want %d", g.NumNodes(), len(rows))
	}
	if err := g.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	for v, row := range rows {
		if got := g.InNeighbors(int32(v)); !slices.Equal(got, row) {
			t.Fatalf("in-neighbours of %d are %v, want %v", v, got, row)
		}
	}
}

func equal(a, b *Graph) bool {
	return slices.Equal(a.Indptr, b.Indptr) && slices.Equal(a.Indices, b.Indices)
}

func eachOption(visit func(BuildOptions)) {
	for _, undirected := range []bool{false, true} {
		for _, loops := range []bool{false, true} {
			for _, keep := range []bool{false, true} {
				visit(BuildOptions{Undirected: undirected, SelfLoops: loops, KeepDuplicates: keep})
			}
		}
	}
}

func TestFromEdgesNamed(t *testing.T) {
	for _, c := range named {
		t.Run(c.name, func(t *testing.T) {
			src, dst := columns(c.edges)
			eachOption(func(o BuildOptions) {
				g, err := FromEdges(c.nodes, src, dst, o)
				if err != nil {
					t.Fatalf("%+v: %v", o, err)
				}
				checkRows(t, g, naive(c.nodes, c.edges, o))
			})
		})
	}
}

// drawEdges draws a small graph, or one that spans several buckets and chunks.
func drawEdges(t *rapid.T) (nodes int, edges [][2]int32) {
	nodes = rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(500, 2000)).Draw(t, "nodes")
	id := rapid.Int32Range(0, int32(nodes-1))
	return nodes, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int32 {
		return [2]int32{id.Draw(t, "src"), id.Draw(t, "dst")}
	}), 0, 200).Draw(t, "edges")
}

func TestFromEdgesEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawEdges(t)
		src, dst := columns(edges)
		eachOption(func(o BuildOptions) {
			want := naive(nodes, edges, o)
			g, err := FromEdges(nodes, src, dst, o)
			if err != nil {
				t.Fatal(err)
			}
			checkRows(t, g, want)
		})
	})
}

func TestFromEdgesOrderAndThreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawEdges(t)
		src, dst := columns(edges)
		g, err := FromEdges(nodes, src, dst, BuildOptions{Undirected: true, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		src, dst = columns(rapid.Permutation(edges).Draw(t, "order"))
		h, err := FromEdges(nodes, src, dst, BuildOptions{Undirected: true, Threads: 3})
		if err != nil {
			t.Fatal(err)
		}
		if !equal(g, h) {
			t.Fatalf("the graph depends on the order of the edges or on the number of threads")
		}
		if !g.Symmetric() {
			t.Fatalf("an undirected graph is not symmetric")
		}
	})
}

// many draws edges that fill several chunks, in a random order.
func many(nodes, edges int) (src, dst []int32) {
	src, dst = make([]int32, edges), make([]int32, edges)
	x := uint64(1)
	next := func() int32 { // a linear congruential generator (Knuth's MMIX)
		x = x*6364136223846793005 + 1442695040888963407
		return int32((x >> 33) % uint64(nodes))
	}
	for i := range src {
		src[i], dst[i] = next(), next()
	}
	return src, dst
}

func TestFromEdgesManyChunks(t *testing.T) {
	const nodes, edges = 70_000, 300_000 // 137 buckets, 10 chunks
	src, dst := many(nodes, edges)
	eachOption(func(o BuildOptions) {
		pairs := make([][2]int32, edges)
		for i := range pairs {
			pairs[i] = [2]int32{src[i], dst[i]}
		}
		var first *Graph
		for _, threads := range []int{1, 2, 5} {
			o.Threads = threads
			g, err := FromEdges(nodes, src, dst, o)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = g
				if !testing.Short() || !o.Undirected && !o.SelfLoops && !o.KeepDuplicates {
					checkRows(t, g, naive(nodes, pairs, o))
				}
			} else if !equal(first, g) {
				t.Fatalf("%d threads give another graph than 1", threads)
			}
		}
	})
}

// The reported progress adds up to the passes over the list, for every kind of edges.
func TestFromEdgesProgress(t *testing.T) {
	for _, n := range []int{0, 1, 3, 100, 3*edgeGrain + 7} {
		src, dst := make([]int32, n), make([]int32, n)
		for i := range src {
			src[i], dst[i] = int32(i%(1<<12)), int32(i*i%(1<<12)) // includes self-loops and duplicates
		}
		for _, undirected := range []bool{false, true} {
			var told, calls atomic.Int64
			_, err := FromEdges(1<<12, src, dst, BuildOptions{Undirected: undirected, Threads: 2, Progress: func(edges int) {
				told.Add(int64(edges))
				calls.Add(1)
				if edges < 0 {
					t.Error(edges)
				}
			}})
			if err != nil || told.Load() != int64(BuildPasses*n) || n > edgeGrain && calls.Load() < 10 {
				t.Errorf("%d edges: %d reported in %d calls (%v)", n, told.Load(), calls.Load(), err)
			}
		}
	}
}

func TestFromEdgesErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		nodes    int
		src, dst []int32
		want     string
	}{
		{"negative nodes", -1, nil, nil, "-1 nodes"},
		{"too many nodes", math.MaxInt32 + 1, nil, nil, "node ids are int32"},
		{"lengths", 3, []int32{0, 1}, []int32{0}, "2 sources but 1 destinations"},
		{"source too large", 3, []int32{0, 3}, []int32{0, 1}, "edge 1 is 3 → 1"},
		{"negative source", 3, []int32{-1}, []int32{1}, "edge 0 is -1 → 1"},
		{"destination", 3, []int32{0, 0, 0}, []int32{0, 2, 7}, "edge 2 is 0 → 7, but the graph has the nodes 0 to 2"},
		{"no nodes", 0, []int32{0}, []int32{0}, "edge 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := FromEdges(c.nodes, c.src, c.dst, BuildOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) || g != nil {
				t.Errorf("got %v, %v; want an error with %q", g, err, c.want)
			}
		})
	}
	// The error names the first bad edge, even if a thread finds a later one sooner.
	src, dst := many(1000, 4*edgeGrain)
	src[edgeGrain+5], src[3*edgeGrain] = 1000, 1000
	for range 5 {
		_, err := FromEdges(1000, src, dst, BuildOptions{Threads: 3})
		if err == nil || !strings.Contains(err.Error(), "edge 32773 ") {
			t.Fatalf("got %v, want edge 32773", err)
		}
	}
}

func TestInputIsNotKept(t *testing.T) {
	src, dst := []int32{2, 1}, []int32{0, 0}
	g, err := FromEdges(3, src, dst, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	src[0], dst[0] = 0, 2
	checkRows(t, g, [][]int32{{1, 2}, nil, nil})
	if !slices.Equal(src, []int32{0, 1}) || !slices.Equal(dst, []int32{2, 0}) {
		t.Error("FromEdges wrote to its input")
	}
}

func BenchmarkFromEdges(b *testing.B) {
	const nodes, edges = 1 << 18, 1 << 22
	src, dst := many(nodes, edges)
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			for b.Loop() {
				if _, err := FromEdges(nodes, src, dst, BuildOptions{Threads: threads}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(edges)*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
