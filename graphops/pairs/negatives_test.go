package pairs

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"

	"pgregory.net/rapid"
)

// Negatives of every kind keep the source, avoid known edges where they are strict, and depend
// neither on the part of the batch that is drawn nor on the order of a batch.
func TestNegatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		undirected := rapid.Bool().Draw(t, "undirected")
		g := random(t, undirected)
		o := NegativeOptions{
			From: Distribution(rapid.IntRange(0, 3).Draw(t, "from")), PerEdge: rapid.IntRange(0, 4).Draw(t, "per edge"),
			Strict: rapid.Bool().Draw(t, "strict"), BothEnds: rapid.Bool().Draw(t, "both ends"), Undirected: undirected, Seed: rapid.Uint64().Draw(t, "seed"),
		}
		n, err := NewNegatives(g, o)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "pairs: ") {
				t.Fatalf("error %q does not begin with the package's name", err)
			}
			return
		}
		f, err := SplitOptions{}.find(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := f.part(f.pairs).Edges
		ids := make([]int32, e.Len())
		for i := range ids {
			ids[i] = int32(100 + i)
		}
		all, err := n.Draw(3, 5, ids, e)
		if err != nil {
			if !strings.Contains(err.Error(), "can have no negative") {
				t.Fatal(err)
			}
			return
		}
		k := max(1, o.PerEdge)
		if all.Len() != k*e.Len() {
			t.Fatalf("%d edges have %d negatives, not %d each", e.Len(), all.Len(), k)
		}
		for i, u := range all.Src {
			v := all.Dst[i]
			switch {
			case u == v:
				t.Fatalf("a negative is the self-loop of node %d", u)
			case o.Strict && slices.Contains(g.InNeighbors(v), u):
				t.Fatalf("the strict negative %d → %d is a known edge", u, v)
			case !o.BothEnds && u != e.Src[i/k]:
				t.Fatalf("a negative of %d → %d has source %d", e.Src[i/k], e.Dst[i/k], u)
			case o.From == ByDegree && g.InDegree(v) == 0:
				t.Fatalf("node %d of degree 0 was drawn by degree", v)
			}
		}
		if e.Len() > 0 {
			lo := rapid.IntRange(0, e.Len()-1).Draw(t, "lo")
			hi := rapid.IntRange(lo, e.Len()).Draw(t, "hi")
			part, err := n.DrawPart(3, 5, ids, e, lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			if want := all.Slice(lo*k, hi*k); !slices.Equal(part.Src, want.Src) || !slices.Equal(part.Dst, want.Dst) {
				t.Fatalf("the negatives of the edges %d to %d alone differ from those in the whole batch", lo, hi)
			}
		}
	})
}

// The frequency of each negative is its probability: compared by a χ² test against the
// probabilities computed from the definition.
func TestNegativesDistribution(t *testing.T) {
	// A star with a triangle: degrees 5 1 2 2 1 1 and an isolated node.
	g := graph(t, 7, true, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 2, 3)
	weight := map[Distribution]func(v int32) float64{
		Uniform:    func(int32) float64 { return 1 },
		ByDegree:   func(v int32) float64 { return float64(g.InDegree(v)) },
		ByDegree75: func(v int32) float64 { return math.Pow(float64(g.InDegree(v)), 0.75) },
	}
	known := func(u, v int32) bool { return slices.Contains(g.InNeighbors(v), u) }
	for _, strict := range []bool{false, true} {
		for _, both := range []bool{false, true} {
			for from, w := range weight {
				const draws = 60000
				n, err := NewNegatives(g, NegativeOptions{From: from, Strict: strict, BothEnds: both, Undirected: true, Seed: 11, PerEdge: draws})
				if err != nil {
					t.Fatal(err)
				}
				const source = 2
				got, err := n.Draw(0, 0, nil, Edges{[]int32{source}, []int32{3}})
				if err != nil {
					t.Fatal(err)
				}
				want := map[pair]float64{}
				total := 0.0
				for u := range int32(7) {
					room := 0.0
					for v := range int32(7) {
						if u != v && !(strict && known(u, v)) {
							room += w(v)
						}
					}
					share := room // of pairs, all equally likely
					if from != Uniform {
						share = w(u)
					}
					if room == 0 || !both && u != source {
						continue
					}
					total += share
					for v := range int32(7) {
						if u != v && !(strict && known(u, v)) {
							want[pair{u, v}] = share * w(v) / room
						}
					}
				}
				counts := map[pair]int{}
				for i := range got.Src {
					counts[pair{got.Src[i], got.Dst[i]}]++
				}
				chi, free := 0.0, -1
				for p, x := range want {
					expected := draws * x / total
					if expected == 0 {
						continue
					}
					free++
					d := float64(counts[p]) - expected
					chi += d * d / expected
					delete(counts, p)
				}
				if len(counts) > 0 {
					t.Errorf("%v, strict %v, both ends %v: drew %v, which cannot be", from, strict, both, counts)
				}
				// The χ² of f degrees of freedom has mean f and variance 2f; 6 standard deviations.
				if chi > float64(free)+6*math.Sqrt(2*float64(free)) {
					t.Errorf("%v, strict %v, both ends %v: χ² is %.1f with %d degrees of freedom", from, strict, both, chi, free)
				}
			}
		}
	}
}

// In-batch negatives are destinations of other edges of the batch, each as likely as the others.
func TestNegativesInBatch(t *testing.T) {
	g := graph(t, 6, true, 0, 1, 2, 3, 4, 5, 0, 5)
	n, err := NewNegatives(g, NegativeOptions{From: InBatch, Strict: true, Undirected: true, PerEdge: 9000})
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.DrawPart(0, 0, nil, Edges{[]int32{0, 2, 4, 0}, []int32{1, 3, 5, 5}}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if count := map[int32]int{}; true {
		for _, v := range got.Dst {
			count[v]++
		}
		if len(count) != 1 || count[3] != 9000 {
			t.Errorf("edge 0 → 1 has negatives %v; 5 is a known neighbour of 0, so 3 alone is left", count)
		}
	}
	got, err = n.DrawPart(0, 0, nil, Edges{[]int32{1, 2, 4, 0}, []int32{0, 3, 5, 5}}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	three := 0
	for _, v := range got.Dst {
		if v == 3 {
			three++
		}
	}
	if three < 2700 || three > 3300 { // 3000 expected, standard deviation 45
		t.Errorf("3 is %d of 9000 negatives; it is one of three destinations, the others are 5 twice", three)
	}
	alone, err := n.Draw(0, 0, nil, Edges{[]int32{0}, []int32{1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range alone.Dst {
		if v == 0 || v == 1 || v == 5 {
			t.Fatalf("the only edge of a batch has the negative 0 → %d", v)
		}
	}
}

func TestNegativesErrors(t *testing.T) {
	complete := graph(t, 3, true, 0, 1, 0, 2, 1, 2)
	star := graph(t, 4, true, 0, 1, 0, 2, 0, 3)
	none := graph(t, 3, false)
	make := func(g *graphops.Graph, o NegativeOptions) func() error {
		return func() error { _, err := NewNegatives(g, o); return err }
	}
	draw := func(o NegativeOptions, ids []int32, e Edges) func() error {
		return func() error {
			n, err := NewNegatives(star, o)
			if err != nil {
				return err
			}
			_, err = n.Draw(0, 0, ids, e)
			return err
		}
	}
	for _, c := range []struct {
		name string
		of   func() error
		want string
	}{
		{"complete graph", make(complete, NegativeOptions{Strict: true}), "pairs: there can be no negatives: every pair of nodes that could be drawn is a known edge"},
		{"complete graph, both ends", make(complete, NegativeOptions{Strict: true, BothEnds: true}), "pairs: there can be no negatives"},
		{"no degrees", make(none, NegativeOptions{From: ByDegree}), "pairs: there can be no negatives: no node can be drawn"},
		{"one node", make(graph(t, 1, false), NegativeOptions{}), "pairs: there can be no negatives: no node can be drawn"},
		{"full source", draw(NegativeOptions{Strict: true}, nil, Edges{[]int32{0}, []int32{1}}), "pairs: node 0, the source of edge 0 → 1, can have no negative"},
		{"in batch, both ends", make(star, NegativeOptions{From: InBatch, BothEnds: true}), "pairs: negatives from the batch keep the source of their edge"},
		{"many", make(star, NegativeOptions{PerEdge: maxPerEdge + 1}), "an edge has 1 to 65536 negatives"},
		{"distribution", make(star, NegativeOptions{From: 7}), "pairs: there is no distribution 7 of negatives"},
		{"no graph", make(nil, NegativeOptions{}), "pairs: negatives need a graph with nodes"},
		{"out of range", draw(NegativeOptions{}, nil, Edges{[]int32{4}, []int32{0}}), "pairs: edge 0 of the batch is 4 → 0, but the graph has the nodes 0 to 3"},
		{"numbers", draw(NegativeOptions{}, []int32{1, 2}, Edges{[]int32{1}, []int32{0}}), "pairs: a batch of 1 edges has 2 numbers; give one for each edge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.of(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
		})
	}
	if _, err := ParseDistribution("all"); err == nil {
		t.Error("ParseDistribution accepts a name that is none")
	}
	for d := Uniform; d <= InBatch; d++ {
		if got, err := ParseDistribution(d.String()); err != nil || got != d {
			t.Errorf("ParseDistribution(%q) = %v, %v", d.String(), got, err)
		}
	}
}
