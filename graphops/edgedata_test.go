package graphops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/internal/simd"
)

// withAll lists the edges of a graph with everything that they have.
func withAll(g *Graph) string {
	var s []string
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			s = append(s, one(g, e, v))
		}
	}
	return strings.Join(s, " ")
}

func one(g *Graph, e int64, v int32) string {
	s := fmt.Sprintf("%d→%d", g.Indices[e], v)
	if g.EdgeWeights != nil {
		s += fmt.Sprintf(":%v", g.Weight(e))
	}
	if x := g.EdgeFeatures; x != nil {
		row := make([]float32, x.Cols)
		x.CopyRow(row, e)
		s += fmt.Sprint(row)
	}
	if g.EdgeTimes != nil {
		s += fmt.Sprintf("@%d", g.EdgeTimes[e])
	}
	if g.EdgeTypes != nil {
		s += fmt.Sprintf("#%d", g.EdgeTypes[e])
	}
	return s
}

func halves(x []float32) []uint16 {
	h := make([]uint16, len(x))
	simd.ToHalf(h, x)
	return h
}

// buildsTo checks that a graph of 3 nodes has the edges and data that want names, is valid, and stays as it is
// when it is built again.
func buildsTo(t *testing.T, src, dst []int32, data EdgeData, o BuildOptions, want string) {
	t.Helper()
	g, err := FromEdgesWith(3, src, dst, data, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := withAll(g); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	again, err := g.Rebuild(BuildOptions{KeepDuplicates: true})
	if err != nil || withAll(again) != withAll(g) {
		t.Errorf("rebuilt with its duplicates the graph is %s (%v)", withAll(again), err)
	}
}

func TestFromEdgesWith(t *testing.T) {
	src, dst := []int32{2, 0, 2, 1, 1}, []int32{1, 1, 1, 1, 2}
	x := &EdgeFeatures{Cols: 2, F32: []float32{1, 10, 2, 20, 3, 30, 4, 40, 5, 50}}
	half := &EdgeFeatures{Cols: 2, F16: halves(x.F32)}
	w, times := []float32{1, 2, 4, 8, 16}, []int64{7, -5, 7, 3, 7}
	for _, c := range []struct {
		name string
		data EdgeData
		o    BuildOptions
		want string
	}{
		{"features", EdgeData{Features: x}, BuildOptions{}, "0→1[2 20] 1→1[4 40] 2→1[2 20] 1→2[5 50]"},
		{"float16", EdgeData{Features: half}, BuildOptions{}, "0→1[2 20] 1→1[4 40] 2→1[2 20] 1→2[5 50]"},
		{"an undirected edge listed in both directions", EdgeData{Features: x}, BuildOptions{Undirected: true}, "1→0[2 20] 0→1[2 20] 1→1[4 40] 2→1[3 30] 1→2[3 30]"},
		{"duplicates kept", EdgeData{Features: x}, BuildOptions{KeepDuplicates: true}, "0→1[2 20] 1→1[4 40] 2→1[1 10] 2→1[3 30] 1→2[5 50]"},
		{"self-loops get the mean", EdgeData{Features: x}, BuildOptions{SelfLoops: true}, "0→0[0 0] 0→1[2 20] 1→1[4 40] 2→1[2 20] 1→2[5 50] 2→2[5 50]"},
		{"all", EdgeData{Features: x, Weights: w, Times: times}, BuildOptions{Undirected: true, SelfLoops: true}, "0→0:1[2 20]@-5 1→0:2[2 20]@-5 0→1:2[2 20]@-5 1→1:8[4 40]@3 2→1:21[3 30]@7 1→2:21[3 30]@7 2→2:1[3 30]@-5"},
		{"events at different times", EdgeData{Features: x, Times: []int64{7, -5, 6, 3, 7}}, BuildOptions{}, "0→1[2 20]@-5 1→1[4 40]@3 2→1[3 30]@6 2→1[1 10]@7 1→2[5 50]@7"},
		{"times alone", EdgeData{Times: times}, BuildOptions{}, "0→1@-5 1→1@3 2→1@7 1→2@7"},
		{"nothing", EdgeData{}, BuildOptions{}, "0→1 1→1 2→1 1→2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			buildsTo(t, src, dst, c.data, c.o, c.want)
		})
	}
}

func TestFromEdgesWithRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name string
		dst  int32
		data EdgeData
		want string
	}{
		{"too few features", 1, EdgeData{Features: &EdgeFeatures{Cols: 2, F32: []float32{1, 2, 3}}}, "3 elements of edge features, but 2 edges with 2 columns need 4"},
		{"no columns", 1, EdgeData{Features: &EdgeFeatures{F32: []float32{}}}, "features of 0 columns"},
		{"both types", 1, EdgeData{Features: &EdgeFeatures{Cols: 1, F32: []float32{1, 2}, F16: []uint16{1, 2}}}, "both F32 and F16"},
		{"NaN", 1, EdgeData{Features: &EdgeFeatures{Cols: 2, F32: []float32{1, 2, 3, nan}}}, "feature 1 of edge 1 is NaN"},
		{"infinite float16", 1, EdgeData{Features: &EdgeFeatures{Cols: 1, F16: halves([]float32{inf, 2})}}, "feature 0 of edge 0 is -Inf"},
		{"too many times", 1, EdgeData{Times: []int64{1, 2, 3}}, "3 times for 2 edges"},
		{"weights", 1, EdgeData{Weights: []float32{1}, Times: []int64{1, 2}}, "1 weights for 2 edges"},
		{"edge out of range", 3, EdgeData{Times: []int64{1, 2}}, "edge 1 is 1 → 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := FromEdgesWith(3, []int32{0, 1}, []int32{1, c.dst}, c.data, BuildOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; it should contain %q", err, c.want)
			}
		})
	}
}

// The graph with its data depends neither on the order of the list nor on the number of threads, and
// each edge of it has data of edges of the list between the same nodes.
func TestFromEdgesWithAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := rapid.IntRange(1, 6).Draw(t, "nodes"), rapid.IntRange(0, 24).Draw(t, "edges")
		node, small := rapid.Int32Range(0, int32(nodes)-1), rapid.Int32Range(-2, 2)
		src, dst, order := make([]int32, edges), make([]int32, edges), make([]int, edges)
		x := &EdgeFeatures{Cols: 2, F32: make([]float32, 2*edges)}
		data := EdgeData{Features: x, Weights: make([]float32, edges), Times: make([]int64, edges)}
		for i := range edges {
			src[i], dst[i], order[i] = node.Draw(t, "src"), node.Draw(t, "dst"), i
			data.Weights[i], data.Times[i] = float32(small.Draw(t, "weight")), int64(small.Draw(t, "time"))
			x.F32[2*i], x.F32[2*i+1] = 0.1*float32(small.Draw(t, "a")), 1e6*float32(small.Draw(t, "b"))
		}
		order = rapid.Permutation(order).Draw(t, "order")
		o := BuildOptions{Undirected: rapid.Bool().Draw(t, "undirected"), SelfLoops: rapid.Bool().Draw(t, "loops"), KeepDuplicates: rapid.Bool().Draw(t, "keep"), Threads: 1}
		a, err := FromEdgesWith(nodes, src, dst, data, o)
		if err != nil {
			t.Fatal(err)
		}
		src2, dst2 := make([]int32, edges), make([]int32, edges)
		y := &EdgeFeatures{Cols: 2}
		data2 := EdgeData{Features: y}
		for i, j := range order {
			src2[i], dst2[i] = src[j], dst[j]
			data2.Weights, data2.Times = append(data2.Weights, data.Weights[j]), append(data2.Times, data.Times[j])
			y.F32 = append(y.F32, x.F32[2*j:2*j+2]...)
		}
		if edges == 0 {
			data2, y.F32 = data, []float32{}
		}
		o.Threads = 3
		b, err := FromEdgesWith(nodes, src2, dst2, data2, o)
		if err != nil {
			t.Fatal(err)
		}
		if p, q := withAll(a), withAll(b); p != q {
			t.Fatalf("in another order and on other threads the graph is\n%s\nnot\n%s", q, p)
		}
		checkData(t, a, src, dst, data, o)
	})
}

// checkData compares every edge with what a naive search of the list finds.
func checkData(t *rapid.T, g *Graph, src, dst []int32, data EdgeData, o BuildOptions) {
	for v := range int32(g.NumNodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u, n, weight := g.Indices[e], 0, 0.0
			sum, found := make([]float64, 2), false
			for i := range src {
				along, back := src[i] == u && dst[i] == v, o.Undirected && u != v && src[i] == v && dst[i] == u
				if !along && !back || data.Times[i] != g.EdgeTimes[e] {
					continue
				}
				n++
				weight += float64(data.Weights[i])
				for c := range sum {
					sum[c] += float64(data.Features.F32[2*i+c])
				}
				found = found || data.Weights[i] == g.EdgeWeights[e] && slices.Equal(data.Features.F32[2*i:2*i+2], g.EdgeFeatures.F32[2*e:2*e+2])
			}
			switch {
			case n == 0 && !(o.SelfLoops && u == v):
				t.Fatalf("the edge %s is not in the list", one(g, e, v))
			case n > 0 && o.KeepDuplicates && !found:
				t.Fatalf("the edge %s has other data in the list", one(g, e, v))
			case n > 0 && !o.KeepDuplicates:
				for c, s := range sum {
					if got := float64(g.EdgeFeatures.F32[2*int(e)+c]); math.Abs(got-s/float64(n)) > 1e-6*math.Abs(s)+1e-9 || float64(g.EdgeWeights[e]) != weight {
						t.Fatalf("the edge %s merges %d edges; feature %d should be %v, the weight %v", one(g, e, v), n, c, s/float64(n), weight)
					}
				}
			}
		}
	}
}

func TestWithEdgeData(t *testing.T) {
	g, err := FromWeightedEdges(3, []int32{0, 1}, []int32{1, 2}, []float32{2, 3}, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g = g.WithEdgeData(&EdgeFeatures{Cols: 1, F32: []float32{4, 5}}, []int64{6, 7})
	if got, want := withAll(g.WithEdgeWeights([]float32{8, 9})), "0→1:8[4]@6 1→2:9[5]@7"; got != want {
		t.Errorf("with other weights the graph is %s; want %s", got, want)
	}
	if got, want := g.LoopedDegree(1), float32(3); got != want {
		t.Errorf("the degree of node 1 with a self-loop is %v, not %v", got, want)
	}
	if s := g.String(); !strings.Contains(s, "2 edges with weights with 1 features with times") {
		t.Error(s)
	}
	for name, f := range map[string]func(){
		"features": func() { g.WithEdgeData(&EdgeFeatures{Cols: 2, F32: []float32{1, 2}}, nil) },
		"times":    func() { g.WithEdgeData(nil, []int64{1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of another length do not panic", name)
				}
			}()
			f()
		}()
	}
}

// Blocks read the data of their edges: of a slice by the graph's order, of other blocks by the
// positions, and of added self-loops from the other edges.
func TestBlockEdgeData(t *testing.T) {
	src, dst := []int32{1, 2, 0, 1, 0}, []int32{0, 0, 1, 1, 2}
	for _, half := range []bool{false, true} {
		x := &EdgeFeatures{Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
		if half {
			x.F16, x.F32 = halves(x.F32), nil
		}
		g, err := FromEdgesWith(3, src, dst, EdgeData{Features: x, Times: []int64{30, 20, 10, 5, 40}}, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		check := func(name string, b *Block, want []float32, times []int64) {
			t.Helper()
			for _, threads := range []int{1, 2} {
				got := make([]float32, len(want))
				b.GatherEdgeFeatures(got, b.EdgeFeatureCols(), threads)
				if !slices.Equal(got, want) {
					t.Errorf("%s: the features are %v, not %v", name, got, want)
				}
			}
			if !slices.Equal(b.Times(), times) {
				t.Errorf("%s: the times are %v, not %v", name, b.Times(), times)
			}
		}
		check("whole graph", g.Block(), []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []int64{30, 20, 10, 5, 40})
		check("slice", g.Slice(1, 3), []float32{5, 6, 7, 8, 9, 10}, []int64{10, 5, 40})
		check("slice with self-loops", g.Slice(1, 3).SelfLooped(), []float32{5, 6, 5, 6, 9, 10, 9, 10}, []int64{10, 10, 40, 40})
		sampled := HostBlock{NumDst: 2, NumSrc: 3, Graph: g, Indptr: []int64{0, 1, 3}, Indices: []int32{2, 1, 2}, EdgePos: []int64{4, 0, 1}, SrcIDs: []int32{2, 0, 1}}.Block()
		check("sampled", sampled, []float32{9, 10, 1, 2, 3, 4}, []int64{40, 30, 20})
		check("sampled with self-loops", sampled.SelfLooped(), []float32{9, 10, 9, 10, 3, 4, 3, 4}, []int64{40, 40, 20, 20})
		own, data := HostBlock{NumDst: 2, NumSrc: 3, Indptr: []int64{0, 1, 3}, Indices: []int32{2, 1, 1}, EdgePos: []int64{4, 0, 1}, SrcIDs: []int32{2, 0, 1}}, g.EdgeData()
		own.Edges.SetLen(g.EdgeShape(), 3)
		own.Edges.Pick(0, &data, 1, []int32{3, 0})
		own.Edges.CopyRange(2, &data, 0, 1)
		check("sampled from a divided graph", own.Block(), []float32{9, 10, 3, 4, 1, 2}, []int64{40, 20, 30})
		check("the same with self-loops instead of an edge", own.Block().SelfLooped(), []float32{9, 10, 9, 10, 0, 0}, []int64{40, 40, 0})
		part := HostBlock{NumDst: 2, NumSrc: 3, DstStart: 1, Indptr: []int64{2, 4, 5}, Indices: []int32{1, 2, 0, 1, 0}, EdgePos: []int64{7, 8, 9}, Edges: data.Slice(2, 5)}.Block()
		check("slice of a part", part, []float32{5, 6, 7, 8, 9, 10}, []int64{10, 5, 40})
		check("slice of a part with self-loops", part.SelfLooped(), []float32{5, 6, 5, 6, 9, 10, 9, 10}, []int64{10, 10, 40, 40})
		if part.SetHost(HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 0}}); part.HasTimes() || part.EdgeFeatureCols() != 0 || part.HasEdgeData() {
			t.Error("a block that was set again has the data of its old edges")
		}
		alone := HostBlock{NumDst: 1, NumSrc: 1, Graph: g, Indptr: []int64{0, 0}, EdgePos: []int64{}, SrcIDs: []int32{2}}.Block()
		check("a node without edges", alone.SelfLooped(), []float32{0, 0}, []int64{0})
		if b := (HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 0}}).Block(); b.EdgeFeatureCols() != 0 || b.HasTimes() || b.Times() != nil {
			t.Error("a block of an unknown graph has edge data")
		}
	}
}

// The edges that Subgraph and Without leave keep their data.
func TestTransformsKeepEdgeData(t *testing.T) {
	src, dst := []int32{1, 2, 0, 3, 0}, []int32{0, 0, 1, 2, 3}
	x := &EdgeFeatures{Cols: 1, F32: []float32{1, 2, 3, 4, 5}}
	for name, data := range map[string]EdgeData{
		"1→0:6[1]@11 2→0:7[2]@12 0→1:8[3]@13 3→2:9[4]@14 0→3:10[5]@15": {Weights: []float32{6, 7, 8, 9, 10}, Features: x, Times: []int64{11, 12, 13, 14, 15}},
		"1→0@11 2→0@12 0→1@13 3→2@14 0→3@15":                           {Times: []int64{11, 12, 13, 14, 15}},
		"1→0[1] 2→0[2] 0→1[3] 3→2[4] 0→3[5]":                           {Features: &EdgeFeatures{Cols: 1, F16: halves(x.F32)}},
	} {
		g, err := FromEdgesWith(4, src, dst, data, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := withAll(g); got != name {
			t.Fatalf("the graph is %s, not %s", got, name)
		}
		edge := strings.Split(name, " ")
		renamed := strings.NewReplacer("3→2", "2→1", "2→0", "1→0", "0→3", "0→2")
		if got, want := withAll(g.Subgraph([]int32{0, 2, 3})), renamed.Replace(strings.Join([]string{edge[1], edge[3], edge[4]}, " ")); got != want {
			t.Errorf("the subgraph is %s, want %s", got, want)
		}
		gone, err := FromEdges(4, []int32{2, 0}, []int32{0, 1}, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		less, err := g.Without(gone, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := withAll(less), strings.Join([]string{edge[0], edge[3], edge[4]}, " "); got != want {
			t.Errorf("without two edges the graph is %s, want %s", got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a subgraph of nodes that do not ascend does not panic")
		}
	}()
	(&Graph{Indptr: []int64{0, 0, 0}}).Subgraph([]int32{1, 0})
}
