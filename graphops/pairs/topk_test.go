package pairs

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/expect"
)

// farthest is a decoder of a program's own, which scores pairs alone: minus the squared distance.
type farthest struct{ nan bool }

func (d farthest) Score(f *nn.Fwd, h *nn.Tensor, src, dst []int32) *nn.Tensor {
	diff := f.Sub(f.Gather(h, src), f.Gather(h, dst))
	s := f.RowDot(diff, diff)
	if d.nan {
		s.Data()[len(dst)-1] = float32(math.NaN())
	}
	return s
}

// naiveTop scores all candidates of a node by Score, and sorts them.
func naiveTop(t *testing.T, d Decoder, h []float32, cols int, u int32, o TopOptions) []scored {
	t.Helper()
	f := nn.NewFwd(nn.Config{})
	candidates := o.Candidates
	if candidates == nil {
		for v := range int32(len(h) / cols) {
			candidates = append(candidates, v)
		}
	}
	var list []scored
	for _, v := range candidates {
		if v == u || o.Known != nil && slices.Contains(o.Known.InNeighbors(u), v) {
			continue
		}
		f.Reset(nn.Config{})
		list = append(list, scored{v, d.Score(f, f.Input(len(h)/cols, cols, h, nil), []int32{u}, []int32{v}).Data()[0]})
	}
	slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	return list[:min(o.K, len(list))]
}

// drawn returns embeddings of small whole numbers: their products are exact and have many ties.
func drawn(r *rand.Rand, rows, cols int) []float32 {
	h := make([]float32, rows*cols)
	for i := range h {
		h[i] = float32(r.IntN(5) - 2)
	}
	return h
}

func TestTopKAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const cols = 4
	bilinear, mlp := NewBilinear(cols), NewMLP(cols, 3, false)
	for _, p := range []*nn.Param{bilinear.Weight, mlp.Hidden.Weight, mlp.Hidden.Bias, mlp.Out.Weight, mlp.Out.Bias} {
		copy(p.W, drawn(r, 1, len(p.W)))
	}
	for _, c := range []struct {
		nodes, k int
		some     bool // of the candidates
	}{{2, 1, false}, {37, 5, false}, {37, 36, false}, {1500, 3, false}, {1500, 40, true}} {
		if testing.Short() && c.nodes > 100 && !c.some {
			continue
		}
		h := drawn(r, c.nodes, cols)
		var e Edges
		for range 5 * c.nodes {
			e = e.Append(int32(r.IntN(c.nodes)), int32(r.IntN(c.nodes)))
		}
		known, err := graphops.FromEdges(c.nodes, e.Src, e.Dst, graphops.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes := []int32{int32(c.nodes - 1)}
		for len(nodes) < 70 {
			nodes = append(nodes, int32(r.IntN(c.nodes)))
		}
		o := TopOptions{K: c.k}
		if c.some {
			for v := int32(3); int(v) < c.nodes; v += 1 + int32(r.IntN(3)) {
				o.Candidates = append(o.Candidates, v)
			}
		}
		for _, d := range []Decoder{Dot{}, bilinear, mlp, farthest{}} {
			for _, o.Known = range []*graphops.Graph{nil, Destinations(known)} {
				name := fmt.Sprintf("%d nodes, %d best, %T, known %v", c.nodes, c.k, d, o.Known != nil)
				o.Threads = 1
				got, err := TopK(d, h, cols, nodes, o)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for i, u := range nodes[:8] {
					ids, scores := got.Of(i)
					want := naiveTop(t, d, h, cols, u, o)
					if len(ids) != len(want) {
						t.Fatalf("%s: node %d gets %d nodes, want %d", name, u, len(ids), len(want))
					}
					for j, w := range want {
						if ids[j] != w.id || scores[j] != w.score {
							t.Fatalf("%s: place %d of node %d is %d with %v, want %d with %v", name, j, u, ids[j], scores[j], w.id, w.score)
						}
					}
				}
				o.Threads = 3
				if again, err := TopK(d, h, cols, nodes, o); err != nil || !slices.Equal(again.IDs, got.IDs) {
					t.Errorf("%s: three threads choose others (%v)", name, err)
				}
			}
		}
	}
}

// The scores of a node have the same bits, whichever nodes it is with: workers divide the nodes.
func TestTopKOfSharesHasEqualBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const nodes, cols = 1100, 33
	h, bilinear := expect.Normals(r, nodes*cols), NewBilinear(cols)
	copy(bilinear.Weight.W, expect.Normals(r, len(bilinear.Weight.W)))
	all := make([]int32, nodes)
	for v := range all {
		all[v] = int32(v)
	}
	for _, d := range []Decoder{Dot{}, bilinear} {
		whole, err := TopK(d, h, cols, all, TopOptions{K: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, share := range [][2]int{{0, 1}, {1, 4}, {5, 38}, {500, 777}, {1099, 1100}} {
			part, err := TopK(d, h, cols, all[share[0]:share[1]], TopOptions{K: 7})
			if err != nil {
				t.Fatal(err)
			}
			lo, hi := 7*share[0], 7*share[1]
			if !slices.Equal(part.IDs, whole.IDs[lo:hi]) || !slices.Equal(part.Scores, whole.Scores[lo:hi]) {
				t.Errorf("%T: nodes %d to %d alone have other scores than among all nodes", d, share[0], share[1]-1)
			}
		}
	}
}

func TestTopKErrors(t *testing.T) {
	h := []float32{1, 2, 3, 4}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name  string
		h     []float32
		d     Decoder
		nodes []int32
		o     TopOptions
		want  string
	}{
		{"no k", h, Dot{}, []int32{0}, TopOptions{}, "K is 0; choose 1 to 3"},
		{"k above the candidates", h, Dot{}, []int32{0}, TopOptions{K: 4}, "K is 4; choose 1 to 3, the number of candidates"},
		{"k above those given", h, Dot{}, []int32{0}, TopOptions{K: 3, Candidates: []int32{1, 2}}, "K is 3; choose 1 to 2"},
		{"node out of range", h, Dot{}, []int32{0, 4}, TopOptions{K: 1}, "node 1 of the list is 4, but there are the nodes 0 to 3"},
		{"candidate out of range", h, Dot{}, []int32{0}, TopOptions{K: 1, Candidates: []int32{-1}}, "candidate 0 is node -1"},
		{"candidates twice", h, Dot{}, []int32{0}, TopOptions{K: 1, Candidates: []int32{1, 1}}, "in ascending order, each once"},
		{"no embeddings", nil, Dot{}, []int32{0}, TopOptions{K: 1}, "but there are the nodes 0 to -1"},
		{"other graph", h, Dot{}, []int32{0}, TopOptions{K: 1, Known: dataset.Karate().Graph}, "the graph of known edges has 34 nodes"},
		{"score that is NaN", []float32{inf, 0, 1, 2}, Dot{}, []int32{0}, TopOptions{K: 1}, "the score of 0 → 1 is NaN"},
		{"own score that is NaN", h, farthest{nan: true}, []int32{0}, TopOptions{K: 1}, "the score of 0 → 3 is NaN"},
		{"too many", h, Dot{}, nil, TopOptions{K: 3}, "give fewer nodes at a time"},
	} {
		if c.name == "too many" {
			if testing.Short() {
				continue // a list of 1.4 GB
			}
			c.nodes = make([]int32, maxChosen/3+1)
		}
		if _, err := TopK(c.d, c.h, 1, c.nodes, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := TopK(Dot{}, h, 3, nil, TopOptions{K: 1}); err == nil || !strings.Contains(err.Error(), "4 numbers are not embeddings of 3 columns") {
		t.Errorf("embeddings that do not divide give %v", err)
	}
	if _, err := Heuristic("katz").TopK(dataset.Karate().Graph, nil, TopOptions{K: 1}); err == nil || !strings.Contains(err.Error(), `there is no heuristic "katz"`) {
		t.Errorf("an unknown heuristic gives %v", err)
	}
}

// Each heuristic chooses what its scores of all pairs order.
func TestHeuristicTopK(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var e Edges
	for range 160 {
		e = e.Append(int32(r.IntN(40)), int32(r.IntN(40))) // with self-loops and copies
	}
	directed, err := graphops.FromEdges(40, e.Src, e.Dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*graphops.Graph{"karate": dataset.Karate().Graph, "directed": directed} {
		n := int32(g.NumNodes())
		o := TopOptions{K: 6, Known: Destinations(g), Threads: 2}
		for _, h := range Heuristics() {
			var nodes []int32
			for v := range n {
				nodes = append(nodes, v)
			}
			got, err := h.TopK(g, nodes, o)
			if err != nil {
				t.Fatal(err)
			}
			for u := range n {
				var list []scored
				for v := range n {
					x, err := h.Score(g, Edges{[]int32{u}, []int32{v}}, 1)
					if err != nil {
						t.Fatal(err)
					}
					if v != u && !slices.Contains(o.Known.InNeighbors(u), v) {
						list = append(list, scored{v, x[0]})
					}
				}
				slices.SortFunc(list, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
				ids, scores := got.Of(int(u))
				for j, w := range list[:min(o.K, len(list))] {
					if ids[j] != w.id || scores[j] != w.score {
						t.Fatalf("%s, %s: place %d of node %d is %d with %v, want %d with %v", name, h, j, u, ids[j], scores[j], w.id, w.score)
					}
				}
			}
		}
	}
}

func TestRelevantAndRecall(t *testing.T) {
	e := Edges{Src: []int32{0, 0, 3}, Dst: []int32{1, 2, 0}}
	nodes, rows, err := Relevant(5, e, false)
	if err != nil || !slices.Equal(nodes, []int32{0, 3}) || !slices.Equal(rows.InNeighbors(0), []int32{1, 2}) {
		t.Fatalf("directed: nodes %v, row of 0 %v, %v", nodes, rows.InNeighbors(0), err)
	}
	nodes, rows, err = Relevant(5, e, true)
	if err != nil || !slices.Equal(nodes, []int32{0, 1, 2, 3}) || !slices.Equal(rows.InNeighbors(0), []int32{1, 2, 3}) {
		t.Fatalf("undirected: nodes %v, row of 0 %v, %v", nodes, rows.InNeighbors(0), err)
	}
	if _, _, err := Relevant(2, e, false); err == nil {
		t.Error("an edge out of range is no error")
	}
	// Of node 0 the first and third of 1, 2, 3 are hits; of node 3 nothing is.
	top := Top{K: 3, IDs: []int32{1, 4, 3, 2, -1, -1}}
	top.Scores = make([]float32, 6)
	recall, ndcg := top.RecallNDCG([]int32{0, 3}, rows)
	wantNDCG := (1 + 1/math.Log2(4)) / (1 + 1/math.Log2(3) + 1/math.Log2(4)) / 2
	if math.Abs(recall-2./3/2) > 1e-12 || math.Abs(ndcg-wantNDCG) > 1e-12 {
		t.Errorf("recall %v and NDCG %v, want %v and %v", recall, ndcg, 2./3/2, wantNDCG)
	}
	if r, n := top.RecallNDCG(nil, rows); !math.IsNaN(r) || !math.IsNaN(n) {
		t.Errorf("of no nodes: %v, %v, want NaN", r, n)
	}
}

// Best equals a sort of all scores, with ties, known ids and fewer candidates than it is asked for.
func TestBestOfScores(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 2, 7, 100, 1000} {
		for _, k := range []int{1, 3, 50, 2000} {
			scores, known := drawn(r, n, 1), []int32(nil)
			var want []scored
			for v, x := range scores {
				if r.IntN(3) == 0 {
					known = append(known, int32(v))
					continue
				}
				want = append(want, scored{int32(v), x})
			}
			slices.SortStableFunc(want, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
			want = want[:min(k, len(want))]
			top, ok := Best(scores, known, k)
			if !ok || top.K != len(want) {
				t.Fatalf("%d scores, k %d: %d are the best (%v), want %d", n, k, top.K, ok, len(want))
			}
			for i, c := range want {
				if top.IDs[i] != c.id || top.Scores[i] != c.score {
					t.Fatalf("%d scores, k %d: best %d is %d with %v, want %+v", n, k, i, top.IDs[i], top.Scores[i], c)
				}
			}
		}
	}
	for at := range 5 {
		scores := []float32{9, 8, 7, 6, 5}
		scores[at] = float32(math.NaN())
		if _, ok := Best(scores, []int32{int32(at)}, 1); ok {
			t.Errorf("NaN at %d is accepted", at)
		}
	}
}
