package sample

import (
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops"
)

// everySecond picks every second in-edge.
type everySecond struct{}

func (everySecond) Pick(_ *Hop, _ int32, nbrs []int32, out []int32) []int32 {
	for i := 0; i < len(nbrs); i += 2 {
		out = append(out, int32(i))
	}
	return out
}

// frontierOfTwo takes each destination's first two in-edges.
type frontierOfTwo struct{}

func (frontierOfTwo) PickFrontier(_ *Hop, g *graphops.Graph, dst []int32, pick func(i int, positions []int32)) error {
	for i, v := range dst {
		if n := min(2, g.InDegree(v)); n > 0 {
			pick(i, []int32{0, 1}[:n])
		}
	}
	return nil
}

// masked returns a graph in which a third of the edges has weight 0, and the same graph without them.
func masked(t *testing.T, nodes int) (with, without *graphops.Graph) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	var all, some [2][]int32
	var w, kept []float32
	var types, keptTypes []uint16
	for v := range int32(nodes) {
		for range r.IntN(30) {
			u, x, kind := r.Int32N(int32(nodes)), float32(r.IntN(3)), uint16(r.IntN(2))
			all[0], all[1], w, types = append(all[0], u), append(all[1], v), append(w, x), append(types, kind)
			if x > 0 {
				some[0], some[1], kept, keptTypes = append(some[0], u), append(some[1], v), append(kept, x), append(keptTypes, kind)
			}
		}
	}
	build := func(e [2][]int32, w []float32, types []uint16) *graphops.Graph {
		g, err := graphops.FromEdgesWith(nodes, e[0], e[1], graphops.EdgeData{Weights: w, Types: types}, graphops.BuildOptions{KeepDuplicates: true})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return build(all, w, types), build(some, kept, keptTypes)
}

// No picker takes an edge of weight 0, whatever the fanout: the picks are those on the graph without these edges.
func TestEdgesOfWeightZeroAreNeverSampled(t *testing.T) {
	const nodes = 400
	with, without := masked(t, nodes)
	for name, c := range map[string]Config{
		"uniform":            {Picker: Fanouts{5, 3}},
		"uniform, large":     {Picker: Fanouts{100, 3}},
		"all neighbours":     {Picker: Fanouts{-1, -1}},
		"weighted":           {Picker: Weighted{Fanouts{5, 3}}},
		"weighted, large":    {Picker: Weighted{Fanouts{100, -1}}},
		"layer-neighbour":    {Picker: Labor{Fanouts: Fanouts{5, 3}}},
		"layer, large":       {Picker: Labor{Fanouts: Fanouts{100, -1}}},
		"layer, Poisson":     {Picker: Labor{Fanouts: Fanouts{5, 3}, Poisson: true}},
		"by relation":        {Picker: &RelationFanouts{All: Fanouts{5, 3}, By: map[int]Fanouts{1: {2, -1}}}},
		"excluding":          {Picker: &Excluding{Fanouts{5, 3}, func(int, int) *EdgeSet { return NewEdgeSet([]int32{1, 2}, []int32{3, 4}, true) }}},
		"excluding weighted": {Picker: &Excluding{Weighted{Fanouts{50, 3}}, func(int, int) *EdgeSet { return nil }}},
		"of a program":       {Picker: everySecond{}, Hops: 2},
		"of a frontier":      {Frontier: frontierOfTwo{}, Hops: 2},
	} {
		t.Run(name, func(t *testing.T) {
			c.Seed = 9
			var sums [2]string
			for i, g := range []*graphops.Graph{with, without} {
				s, err := New(g, c)
				if err != nil {
					t.Fatal(err)
				}
				d := NewDigest()
				for step := range 5 {
					seeds := make([]int32, 40)
					for k := range seeds {
						seeds[k] = int32(step*40 + k)
					}
					b, err := s.Sample(0, step, Seeds{IDs: seeds})
					if err != nil {
						t.Fatal(err)
					}
					for _, k := range b.Blocks {
						for e := range int64(k.NumEdges()) {
							if w := k.Weight(k.Indptr()[0] + e); w == 0 {
								t.Fatalf("edge %d of a block has weight 0", e)
							}
						}
					}
					d.AddBatch(b)
				}
				sums[i] = d.Sum()
			}
			if sums[0] != sums[1] {
				t.Error("the picks are not those of the graph without the edges of weight 0")
			}
		})
	}
	t.Run("weights of the sampler", func(t *testing.T) {
		plain := &graphops.Graph{Indptr: with.Indptr, Indices: with.Indices}
		s, err := New(plain, Config{Picker: Fanouts{-1}, Weights: with.EdgeWeights})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Sample(0, 0, Seeds{IDs: []int32{0, 1, 2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for v := range int32(4) {
			want += without.InDegree(v)
		}
		if n := b.Blocks[0].NumEdges(); n != want {
			t.Errorf("%d edges, want %d", n, want)
		}
	})
}

// Hop.Weighted takes no position of weight 0 at any number of picks.
func TestHopWeightedZero(t *testing.T) {
	for k := -1; k < 6; k++ {
		for _, at := range (&Hop{}).Weighted([]float32{0, 2, 0, 3}, k, nil) {
			if at == 0 || at == 2 {
				t.Errorf("%d picks include position %d of weight 0", k, at)
			}
		}
	}
}
