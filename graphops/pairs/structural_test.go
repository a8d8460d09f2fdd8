package pairs

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

// social is a random graph with many common neighbours, isolated nodes, duplicate edges and self-loops.
func social(t *testing.T, r *rand.Rand, nodes int, undirected bool) *graphops.Graph {
	t.Helper()
	var e Edges
	for range 6 * nodes {
		u := r.IntN(nodes * 3 / 4)
		e = e.Append(int32(u), int32((u+r.IntN(6))%nodes))
	}
	g, err := graphops.FromEdges(nodes, e.Src, e.Dst, graphops.BuildOptions{Undirected: undirected})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// structuralFormula is the score of a Structural in float64, with features of the public heuristics.
func structuralFormula(t *testing.T, s *Structural, g *graphops.Graph, u, v int32, ends float64) float64 {
	t.Helper()
	out := float64(s.Out.Bias.W[0])
	var x []float64
	for _, of := range []func(*graphops.Graph, Edges, int) ([]float32, error){CommonNeighbours, AdamicAdar, ResourceAllocation} {
		y, err := of(g, Edges{[]int32{u}, []int32{v}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		x = append(x, math.Sqrt(float64(y[0])))
	}
	for k, b := range s.Hidden.Bias.W {
		a := float64(b)
		for i, y := range x {
			a += float64(s.Hidden.Weight.W[len(x)*k+i]) * y
		}
		out += float64(s.Out.Weight.W[k]) * max(0, a)
	}
	return ends + out
}

// The score is that of the formula, and its gradients agree with central differences.
func TestStructural(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, undirected := range []bool{true, false} {
		g := social(t, r, 24, undirected)
		for _, ends := range []Decoder{Dot{}, NewBilinear(3)} {
			s := NewStructural(ends, 4)
			in := append([]gradcheck.Input{gradcheck.Random(g.NumNodes(), 3, 3)}, params(t, s)...)
			src, dst := []int32{0, 4, 1, 1, 9, 23, 2, 5}, []int32{1, 5, 2, 3, 6, 0, 4, 5}
			gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
				got := ScoreIn(s, f, g, Edges{src, dst}, x[0], src, dst)
				near := 0
				for i := range src {
					h := x[0].Data()
					want := structuralFormula(t, s, g, src[i], dst[i], formula(ends, h[3*src[i]:][:3], h[3*dst[i]:][:3]))
					if math.Abs(float64(got.Data()[i])-want) > 1e-4 { // a few products of small float32 numbers
						t.Fatalf("pair %d has score %v, want %v", i, got.Data()[i], want)
					}
					if cn, _ := CommonNeighbours(g, Edges{src[i : i+1], dst[i : i+1]}, 1); cn[0] > 0 {
						near++
					}
				}
				if near < 3 {
					t.Fatalf("%d pairs have common neighbours; want more, or the test shows nothing", near)
				}
				return got
			}, in...)
		}
	}
}

// A pair's own edge does not change its score: a training edge, which is in the graph, does not reveal
// itself.
func TestStructuralDoesNotSeeThePairsEdge(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, undirected := range []bool{true, false} {
		g := social(t, r, 40, undirected)
		s := NewStructural(Dot{}, 4)
		params(t, s)
		h := drawn(r, g.NumNodes(), 2)
		checked := 0
		for v := range int32(g.NumNodes()) {
			for _, u := range g.InNeighbors(v) {
				gone, err := graphops.FromEdges(g.NumNodes(), []int32{u}, []int32{v}, graphops.BuildOptions{Undirected: undirected})
				if err != nil {
					t.Fatal(err)
				}
				without, err := g.Without(gone, 0)
				if err != nil {
					t.Fatal(err)
				}
				score := func(in *graphops.Graph) float32 {
					f := nn.NewFwd(nn.Config{})
					return ScoreIn(s, f, in, Edges{[]int32{u}, []int32{v}}, f.Input(g.NumNodes(), 2, h, nil), []int32{u}, []int32{v}).Data()[0]
				}
				if a, b := score(g), score(without); a != b {
					t.Fatalf("undirected %v: %d → %d has score %v with its edge and %v without", undirected, u, v, a, b)
				}
				checked++
			}
		}
		if checked < 40 {
			t.Fatalf("%d edges were checked", checked)
		}
	}
}

// TopK chooses as a sort of all scores does, for any division of the nodes and number of threads.
func TestStructuralTopK(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, undirected := range []bool{true, false} {
		g := social(t, r, 1300, undirected)
		const cols = 2
		h := drawn(r, g.NumNodes(), cols)
		for _, ends := range []Decoder{Dot{}, NewMLP(cols, 3, true)} {
			s := NewStructural(ends, 4)
			params(t, s)
			o := TopOptions{K: 7, Known: Destinations(g), Graph: g, Threads: 1}
			for v := int32(0); int(v) < g.NumNodes(); v += 1 + v%2 {
				o.Candidates = append(o.Candidates, v)
			}
			nodes := []int32{0, 1, 2, 700, 701, 1299, 30}
			for len(nodes) < 40 {
				nodes = append(nodes, int32(r.IntN(1000)))
			}
			got, err := TopK(s, h, cols, nodes, o)
			if err != nil {
				t.Fatal(err)
			}
			f := nn.NewFwd(nn.Config{})
			for i, u := range nodes[:12] {
				var list []scored
				for _, v := range o.Candidates {
					if _, known := slices.BinarySearch(o.Known.InNeighbors(u), v); v != u && !known {
						f.Reset(nn.Config{})
						list = append(list, scored{v, ScoreIn(s, f, g, Edges{[]int32{u}, []int32{v}}, f.Input(g.NumNodes(), cols, h, nil), []int32{u}, []int32{v}).Data()[0]})
					}
				}
				slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
				_, scores := got.Of(i)
				for j, x := range scores {
					// Scores of the grid differ from those of pairs by rounding, so that near ties may swap.
					if math.Abs(float64(x-list[j].score)) > 1e-4 {
						t.Fatalf("%T: place %d of node %d has the score %v, want %v", ends, j, u, x, list[j].score)
					}
				}
			}
			o.Threads = 3
			for i, u := range nodes {
				one, err := TopK(s, h, cols, []int32{u}, o)
				if err != nil {
					t.Fatal(err)
				}
				ids, scores := got.Of(i)
				if !slices.Equal(one.IDs, ids) || !slices.Equal(one.Scores, scores) {
					t.Fatalf("%T: node %d alone gets %v with %v, and %v with %v beside others", ends, u, one.IDs, one.Scores, ids, scores)
				}
			}
		}
	}
}

func TestStructuralNeedsAGraph(t *testing.T) {
	s := NewStructural(Dot{}, 2)
	params(t, s)
	h := []float32{1, 2, 3}
	if _, err := TopK(s, h, 1, []int32{0}, TopOptions{K: 1}); err == nil || !strings.Contains(err.Error(), "set Graph") {
		t.Errorf("without a graph: %v", err)
	}
	err := nn.Try(func() {
		f := nn.NewFwd(nn.Config{})
		s.Score(f, f.Input(3, 1, h, nil), []int32{0}, []int32{1})
	})
	if err == nil || !strings.Contains(err.Error(), "give TopOptions a Graph") {
		t.Errorf("Score: %v", err)
	}
	g := social(t, rand.New(rand.NewPCG(1, 1)), 3, true)
	err = nn.Try(func() {
		f := nn.NewFwd(nn.Config{})
		ScoreIn(s, f, g, Edges{[]int32{0}, []int32{3}}, f.Input(3, 1, h, nil), []int32{0}, []int32{1})
	})
	if err == nil || !strings.Contains(err.Error(), "is 0 → 3, but the graph has the nodes 0 to 2") {
		t.Errorf("a node out of range: %v", err)
	}
}
