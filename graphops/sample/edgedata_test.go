package sample_test

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// named returns a graph whose edges u → v have the features u and v and the time 1000·u+v.
func named(t *testing.T, nodes, degree int) *graphops.Graph {
	t.Helper()
	g := random(nodes, degree, 7)
	x, times := &graphops.EdgeFeatures{Cols: 2}, make([]int64, 0, len(g.Indices))
	for v := range int32(nodes) {
		for _, u := range g.InNeighbors(v) {
			x.F32 = append(x.F32, float32(u), float32(v))
			times = append(times, 1000*int64(u)+int64(v))
		}
	}
	return g.WithEdgeData(x, times)
}

// The features and times of a sampled block's edges are those of the edges, for each way to sample,
// with and without self-loops.
func TestBlocksHaveEdgeData(t *testing.T) {
	const nodes = 300
	g := named(t, nodes, 6)
	for name, c := range map[string]sample.Config{
		"fanouts":  {Picker: sample.Fanouts{3, 2}},
		"all":      {Picker: sample.Fanouts{-1, -1}},
		"own":      {Picker: four{[]int{4, 2}}, Hops: 2},
		"weighted": {Picker: sample.Weighted{Fanouts: sample.Fanouts{3, 2}}, Weights: make([]float32, len(g.Indices))},
	} {
		for i := range c.Weights {
			c.Weights[i] = float32(i%3) + 1
		}
		s := newSampler(t, g, c)
		b := mustSample(t, s, 0, 1, all(nodes)[100:150])
		for _, block := range b.Blocks {
			x, times := make([]float32, 2*block.NumEdges()), block.Times()
			block.GatherEdgeFeatures(x, block.EdgeFeatureCols(), 2)
			e := 0
			for d := range block.NumDst {
				for range block.InDegree(d) {
					u, v := block.SrcID(int(block.Indices()[e])), block.DstID(d)
					if x[2*e] != float32(u) || x[2*e+1] != float32(v) || times[e] != 1000*int64(u)+int64(v) {
						t.Fatalf("%s: the edge %d → %d has the features %v and the time %d", name, u, v, x[2*e:2*e+2], times[e])
					}
					e++
				}
			}
			if e == 0 {
				t.Errorf("%s: a block has no edges", name)
			}
		}
	}
}

// A picker sees the times of the edges that it chooses from: here it takes the latest one before a
// point in time.
func TestPickersSeeTimes(t *testing.T) {
	g := named(t, 200, 8)
	const before = 150_000
	latest := pickFunc(func(h *sample.Hop, v int32, nbrs, out []int32) []int32 {
		times, best := h.Times(), -1
		if len(times) != len(nbrs) || len(times) > 0 && times[0] != g.EdgeTimes[h.Position(0)] {
			t.Errorf("node %d has %d in-edges and %d times", v, len(nbrs), len(times))
		}
		for i, at := range times {
			if at < before && (best < 0 || at > times[best]) {
				best = i
			}
		}
		if best >= 0 {
			out = append(out, int32(best))
		}
		return out
	})
	b := mustSample(t, newSampler(t, g, sample.Config{Picker: latest, Hops: 1}), 0, 0, all(200))
	block := b.Blocks[0]
	for d := range block.NumDst {
		var want []int64
		for _, at := range g.EdgeTimes[g.Indptr[block.DstID(d)]:g.Indptr[block.DstID(d)+1]] {
			if at < before {
				want = []int64{at} // sources ascend, and so do these times
			}
		}
		if got := block.Times()[block.Indptr()[d]:block.Indptr()[d+1]]; !slices.Equal(got, want) {
			t.Fatalf("node %d took the edges of the times %v, want %v", block.DstID(d), got, want)
		}
	}
	// A sampler that excludes edges hides their times, too.
	gone := sample.NewEdgeSet(g.InNeighbors(7)[:2], []int32{7, 7}, false)
	seen := pickFunc(func(h *sample.Hop, v int32, nbrs, out []int32) []int32 {
		times := h.Times()
		for i, u := range nbrs {
			if len(times) != len(nbrs) || times[i] != 1000*int64(u)+int64(v) {
				t.Errorf("node %d has the in-edges from %v and the times %v", v, nbrs, times)
			}
		}
		if v == 7 && (len(nbrs) != g.InDegree(7)-2 || len(nbrs) == 0) {
			t.Errorf("%d of %d in-edges are left of node 7", len(nbrs), g.InDegree(7))
		}
		return out
	})
	mustSample(t, newSampler(t, g, sample.Config{Picker: &sample.Excluding{Picker: seen, Of: func(int, int) *sample.EdgeSet { return gone }}, Hops: 1}), 0, 0, all(200))
	plain := pickFunc(func(h *sample.Hop, _ int32, _, out []int32) []int32 {
		if h.Times() != nil {
			t.Error("edges without times have some")
		}
		return out
	})
	mustSample(t, newSampler(t, random(20, 3, 1), sample.Config{Picker: plain, Hops: 1}), 0, 0, all(20))
}
