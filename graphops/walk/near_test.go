package walk

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// ends is the dense reference: π[s][v] = Σ_k weight(k)·(P^k)[s][v], with P the transition matrix.
func ends(g *graphops.Graph, steps int, weight func(k int) float64) [][]float64 {
	n := g.NumNodes()
	out := make([][]float64, n)
	for s := range n {
		out[s] = make([]float64, n)
		now := make([]float64, n)
		now[s] = 1
		for k := range steps {
			next := make([]float64, n)
			for v, p := range now {
				out[s][v] += weight(k) * p
				if p == 0 {
					continue
				}
				for x, q := range transition(g, -1, int32(v), 1, 1) {
					if !math.IsNaN(q) { // v has no in-neighbour
						next[x] += p * q
					}
				}
			}
			now = next
		}
	}
	return out
}

// top is the reference of the k largest: a full sort.
func top(scores []float64, k int, without int) (ids []int32) {
	for v, x := range scores {
		if x > 0 && v != without {
			ids = append(ids, int32(v))
		}
	}
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	ids = ids[:min(k, len(ids))]
	slices.Sort(ids)
	return ids
}

func graphs(t *testing.T) map[string]*graphops.Graph {
	star := graph(t, 5, true, [2]int32{0, 1}, [2]int32{0, 2}, [2]int32{0, 3}, [2]int32{0, 4})
	return map[string]*graphops.Graph{
		"kite": kite(t), "weighted": weighted(kite(t)), "star": star,
		"cycle":    graph(t, 4, false, [2]int32{0, 1}, [2]int32{1, 2}, [2]int32{2, 3}, [2]int32{3, 0}),
		"isolated": graph(t, 3, true, [2]int32{0, 1}),
		"loop":     graph(t, 3, false, [2]int32{0, 0}, [2]int32{1, 0}, [2]int32{0, 1}, [2]int32{1, 2}, [2]int32{1, 2}),
		"path":     graph(t, 3, false, [2]int32{0, 1}, [2]int32{1, 2}),
		"one node": graph(t, 1, false), "empty": graph(t, 0, false),
	}
}

// Scores are below the exact ones by at most the bound, and the K nodes are those of the largest scores.
func TestPageRank(t *testing.T) {
	for name, g := range graphs(t) {
		const alpha = 0.2
		exact := ends(g, 400, func(k int) float64 { return alpha * math.Pow(1-alpha, float64(k)) })
		for _, epsilon := range []float64{1e-2, 1e-9} {
			all, err := PageRank(g, PageRankOptions{K: 100, Alpha: alpha, Epsilon: epsilon, Self: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Validate(); err != nil {
				t.Fatal(err)
			}
			scores := make([][]float64, g.NumNodes())
			for s := range g.NumNodes() {
				scores[s] = make([]float64, g.NumNodes())
				for i, v := range all.InNeighbors(int32(s)) {
					scores[s][v] = float64(all.EdgeWeights[all.Indptr[s]+int64(i)])
				}
				for v := range g.NumNodes() {
					bound := epsilon * float64(g.NumEdges()+1) // Σ r(u), as π_u(v) is at most 1
					if name == "kite" || name == "star" {
						bound = epsilon * float64(g.InDegree(int32(v)))
					}
					const round = 1e-7 // of float32
					if d := exact[s][v] - scores[s][v]; d < -round || d > bound+round {
						t.Errorf("%s, ε %v: the score of %d at %d is %v, the exact one %v", name, epsilon, s, v, scores[s][v], exact[s][v])
					}
				}
			}
			two, err := PageRank(g, PageRankOptions{K: 2, Alpha: alpha, Epsilon: epsilon, Threads: 3})
			if err != nil {
				t.Fatal(err)
			}
			for s := range g.NumNodes() {
				// In these graphs, scores that differ in float64 are equal in float32.
				if got, want := two.InNeighbors(int32(s)), top(scores[s], 2, s); !slices.Equal(got, want) && name != "kite" && name != "weighted" {
					t.Errorf("%s, ε %v: node %d keeps %v, want %v of %v", name, epsilon, s, got, want, scores[s])
				}
				for i, v := range two.InNeighbors(int32(s)) {
					if w := float64(two.EdgeWeights[two.Indptr[s]+int64(i)]); w != scores[s][v] {
						t.Errorf("%s: edge %d → %d has weight %v, want the score %v", name, v, s, w, scores[s][v])
					}
				}
			}
		}
	}
}

// The shares of visits come near the exact probabilities of the walks, and depend on the seed and the epoch
// alone.
func TestVisited(t *testing.T) {
	const restart, length, walks = 0.4, 6, 40000
	for name, g := range graphs(t) {
		// A walk makes step k with probability (1-restart)^(k-1).
		exact := ends(g, length+1, func(k int) float64 {
			if k == 0 {
				return 0
			}
			return math.Pow(1-restart, float64(k-1))
		})
		o := VisitedOptions{K: 100, Walks: walks, Length: length, Restart: restart, Self: true, Seed: 2}
		all, err := Visited(g, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := all.Validate(); err != nil {
			t.Fatal(err)
		}
		for s := range g.NumNodes() {
			total, got := 0.0, make([]float64, g.NumNodes())
			for _, x := range exact[s] {
				total += x
			}
			for i, v := range all.InNeighbors(int32(s)) {
				got[v] = float64(all.EdgeWeights[all.Indptr[s]+int64(i)])
			}
			for v, x := range got {
				want := 0.0
				if total > 0 {
					want = exact[s][v] / total
				}
				// Visits of a walk are dependent: length times the variance of independent ones is enough.
				if limit := 5 * math.Sqrt(length*want/walks); math.Abs(x-want) > limit {
					t.Errorf("%s: %d is %v of the visits from %d, want %v ± %v", name, v, x, s, want, limit)
				}
			}
		}
		o.K, o.Self, o.Walks = 2, false, 60
		few, err := Visited(g, o)
		if err != nil {
			t.Fatal(err)
		}
		o.Threads = 3
		if again, err := Visited(g, o); err != nil || !slices.Equal(again.Indices, few.Indices) || !slices.Equal(again.EdgeWeights, few.EdgeWeights) {
			t.Errorf("%s: three threads find other nodes (%v)", name, err)
		}
		o.K = 100
		every, err := Visited(g, o)
		if err != nil {
			t.Fatal(err)
		}
		for s := range int32(g.NumNodes()) {
			scores := make([]float64, g.NumNodes())
			for i, v := range every.InNeighbors(s) {
				scores[v] = float64(every.EdgeWeights[every.Indptr[s]+int64(i)])
			}
			if got, want := few.InNeighbors(s), top(scores, 2, int(s)); !slices.Equal(got, want) {
				t.Errorf("%s: node %d keeps %v, want %v of %v", name, s, got, want, scores)
			}
		}
		o.Epoch = 1
		if other, err := Visited(g, o); err != nil || name == "kite" && slices.Equal(other.EdgeWeights, every.EdgeWeights) {
			t.Errorf("%s: two epochs visit equally (%v)", name, err)
		}
	}
}
