package sample_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// excluding returns a graph with repeated edges and weights, edges to exclude, and the graph
// without them.
func excluding(t testing.TB) (g, without *graphops.Graph, gone *sample.EdgeSet) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	var src, dst []int32
	for range 4000 {
		src, dst = append(src, int32(r.IntN(300))), append(dst, int32(r.IntN(300)))
	}
	src, dst = append(src, src[:500]...), append(dst, dst[:500]...)
	g, err := graphops.FromEdges(300, src, dst, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	weights := make([]float32, g.NumEdges())
	for i := range weights {
		weights[i] = 1 + r.Float32()
	}
	g = g.WithEdgeWeights(weights)
	gone = sample.NewEdgeSet(src[:1200], dst[:1200], true)
	h, err := graphops.FromEdges(300, append(src[:1200:1200], dst[:1200]...), append(dst[:1200:1200], src[:1200]...), graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if without, err = g.Without(h, 2); err != nil {
		t.Fatal(err)
	}
	return g, without, gone
}

// Excluding edges gives the batches of the graph without them, with every picker: the reference is
// a sampler over that graph.
func TestExcludingIsTheGraphWithout(t *testing.T) {
	g, without, gone := excluding(t)
	f := sample.Fanouts{5, 3}
	all := sample.Fanouts{-1, -1}
	for _, c := range []struct {
		name string
		p    sample.Picker
	}{{"fanouts", f}, {"all", all}, {"weighted", sample.Weighted{Fanouts: f}}, {"labor", sample.Labor{Fanouts: f}}} {
		for _, threads := range []int{1, 4} {
			make := func(g *graphops.Graph, p sample.Picker) *sample.Batch {
				s, err := sample.New(g, sample.Config{Picker: p, Seed: 3, Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				b, err := s.Sample(2, 7, sample.Seeds{IDs: []int32{1, 4, 200, 31, 299}})
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			got := make(g, &sample.Excluding{Picker: c.p, Of: func(epoch, step int) *sample.EdgeSet {
				if epoch != 2 || step != 7 {
					t.Errorf("Of was called for epoch %d, step %d", epoch, step)
				}
				return gone
			}})
			want := make(without, c.p)
			for i, b := range got.Blocks {
				w := want.Blocks[i]
				if !slices.Equal(b.SrcIDs(), w.SrcIDs()) || !slices.Equal(b.Indptr(), w.Indptr()) || !slices.Equal(b.Indices(), w.Indices()) || !slices.Equal(b.Weights(), w.Weights()) {
					t.Fatalf("%s, %d threads: block %d differs from that of the graph without the edges", c.name, threads, i)
				}
				for e, pos := range b.EdgePos() {
					if g.Indices[pos] != b.SrcIDs()[b.Indices()[e]] {
						t.Fatalf("%s: edge %d of block %d is at position %d of the graph, which is another edge", c.name, e, i, pos)
					}
				}
			}
		}
	}
}

// Excluding nothing gives the picker's own batches.
func TestExcludingNothing(t *testing.T) {
	g, _, _ := excluding(t)
	for _, of := range []*sample.EdgeSet{nil, sample.NewEdgeSet(nil, nil, true)} {
		var edges [2]int
		for i, p := range []sample.Picker{sample.Fanouts{4, 4}, &sample.Excluding{Picker: sample.Fanouts{4, 4}, Of: func(int, int) *sample.EdgeSet { return of }}} {
			s, err := sample.New(g, sample.Config{Picker: p})
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.Sample(0, 0, sample.Seeds{IDs: []int32{0, 1, 2}})
			if err != nil {
				t.Fatal(err)
			}
			edges[i] = b.Edges()
		}
		if edges[0] != edges[1] {
			t.Errorf("excluding %d edges, %d are sampled, and %d without", of.Len(), edges[1], edges[0])
		}
	}
}

func TestExcludingErrors(t *testing.T) {
	g, _, gone := excluding(t)
	of := func(int, int) *sample.EdgeSet { return gone }
	bad := pickFunc(func(_ *sample.Hop, _ int32, nbrs, out []int32) []int32 { return append(out, int32(len(nbrs))) })
	for _, c := range []struct {
		name string
		p    *sample.Excluding
		want string
	}{
		{"no picker", &sample.Excluding{Of: of}, "sample.Excluding needs a Picker and the edges to exclude"},
		{"no edges", &sample.Excluding{Picker: sample.Fanouts{1, 1}}, "sample.Excluding needs a Picker and the edges to exclude"},
		{"nested", &sample.Excluding{Picker: &sample.Excluding{Picker: sample.Fanouts{1, 1}, Of: of}, Of: of}, "let Of of one of them return the edges of both"},
		{"fanout", &sample.Excluding{Picker: sample.Fanouts{1, -2}, Of: of}, "the fanout of hop 1 is -2"},
		{"pick out of range", &sample.Excluding{Picker: bad, Of: of}, "picking for node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := sample.New(g, sample.Config{Picker: c.p, Hops: 2})
			if err == nil {
				all := make([]int32, 300)
				for i := range all {
					all[i] = int32(i)
				}
				_, err = s.Sample(0, 0, sample.Seeds{IDs: all})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	plain := &graphops.Graph{Indptr: g.Indptr, Indices: g.Indices}
	if _, err := sample.New(plain, sample.Config{Picker: &sample.Excluding{Picker: sample.Weighted{Fanouts: sample.Fanouts{1}}, Of: of}}); err == nil {
		t.Error("weighted sampling from a graph without weights is accepted if edges are excluded")
	}
}

func TestEdgeSet(t *testing.T) {
	s := sample.NewEdgeSet([]int32{0, 1, 1}, []int32{1, 2, 2}, true)
	if s.Len() != 4 || !s.Has(0, 1) || !s.Has(2, 1) || s.Has(0, 2) {
		t.Errorf("the set of 0-1 and 1-2 in both directions has %d edges", s.Len())
	}
	var none *sample.EdgeSet
	if none.Len() != 0 || none.Has(0, 1) {
		t.Error("nil is not the empty set")
	}
}
