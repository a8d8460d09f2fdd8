package graphops

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// 0 <- 0 (weight 2), 0 (3), 1 (4); 1 <- 2 (5); 2 isolated; 3 <- 1 (6), 3 (-6).
func loopGraph() *Graph {
	g := &Graph{Indptr: []int64{0, 3, 4, 4, 6}, Indices: []int32{0, 0, 1, 2, 1, 3}}
	return g.WithEdgeWeights([]float32{2, 3, 4, 5, 6, -6})
}

func TestSelfLoops(t *testing.T) {
	weighted := loopGraph()
	plain := weighted.WithEdgeWeights(nil)
	bare := &Graph{Indptr: weighted.Indptr, Indices: weighted.Indices, EdgeWeights: weighted.EdgeWeights} // made without WithEdgeWeights
	for v, want := range []struct {
		loop            float32
		ok              bool
		degree, ofPlain float32
	}{{3, true, 7, 2}, {0, false, 6, 2}, {0, false, 1, 1}, {-6, true, 0, 2}} {
		v := int32(v)
		if w, ok := weighted.SelfLoop(v); w != want.loop || ok != want.ok {
			t.Errorf("node %d: self-loop %v, %v", v, w, ok)
		}
		if got := weighted.LoopedDegree(v); got != want.degree || bare.LoopedDegree(v) != got {
			t.Errorf("node %d: degree %v, and %v without a cache; want %v", v, got, bare.LoopedDegree(v), want.degree)
		}
		if got := plain.LoopedDegree(v); got != want.ofPlain {
			t.Errorf("node %d: degree %v without weights, want %v", v, got, want.ofPlain)
		}
	}
}

func TestSelfLooped(t *testing.T) {
	g := loopGraph()
	l := g.Block().SelfLooped()
	check := func(name string, l *Block, indices []int32, pos []int64, weights []float32) {
		t.Helper()
		if !slices.Equal(l.Indices(), indices) || !slices.Equal(l.EdgePos(), pos) || !slices.Equal(l.Weights(), weights) || l.Graph != g {
			t.Errorf("%s: sources %v, positions %v, weights %v", name, l.Indices(), l.EdgePos(), l.Weights())
		}
	}
	check("whole", l, []int32{1, 0, 2, 1, 2, 1, 3}, []int64{2, LoopPos(0), 3, LoopPos(1), LoopPos(2), 4, LoopPos(3)}, []float32{4, 3, 5, 1, 1, 6, -6})
	check("slice", g.Slice(3, 4).SelfLooped(), []int32{1, 3}, []int64{4, LoopPos(3)}, []float32{6, -6})
	// The block is a sample of node 0 without its self-loops: a loop keeps the weight that it has
	// in the graph. Node 0 is row 0, node 1 is row 1.
	b := HostBlock{NumDst: 1, NumSrc: 2, Indptr: []int64{0, 1}, Indices: []int32{1}, EdgePos: []int64{2}, SrcIDs: []int32{0, 1}, Graph: g, Weights: []float32{4}}.Block()
	check("sampled", b.SelfLooped(), []int32{1, 0}, []int64{2, LoopPos(0)}, []float32{4, 3})
	if first := b.SelfLooped(); b.SelfLooped() != first {
		t.Error("a block builds its self-looped block twice")
	}
}

// For every graph and any weights, the weights of a node in a self-looped block add up to
// LoopedDegree.
func TestLoopedDegreeIsTheBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := drawEdges(t)
		src, dst := columns(edges)
		g, err := FromEdges(nodes, src, dst, BuildOptions{KeepDuplicates: rapid.Bool().Draw(t, "duplicates")})
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "weighted") {
			w := make([]float32, g.NumEdges())
			for i := range w {
				w[i] = float32(rapid.IntRange(0, 9).Draw(t, "weight"))
			}
			g = g.WithEdgeWeights(w)
		}
		b := g.Block()
		for e := range g.NumEdges() {
			if b.Weight(e) != g.Weight(e) {
				t.Fatalf("edge %d has the weight %v in the block and %v in the graph", e, b.Weight(e), g.Weight(e))
			}
		}
		l := b.SelfLooped()
		for v := range nodes {
			sum := float32(0)
			for e := l.Indptr()[v]; e < l.Indptr()[v+1]; e++ {
				sum += l.Weight(e)
			}
			if got := g.LoopedDegree(int32(v)); got != sum {
				t.Fatalf("node %d: degree %v, its edges add up to %v", v, got, sum)
			}
		}
	})
}

func TestWithEdgeWeightsPanics(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "2 weights for 6 edges") {
			t.Errorf("%v", r)
		}
	}()
	loopGraph().WithEdgeWeights(make([]float32, 2))
}
