package dataset

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
)

func edgesOf(t testing.TB, nodes int, pairs ...[2]int32) *graphops.Graph {
	t.Helper()
	var src, dst []int32
	for _, p := range pairs {
		src, dst = append(src, p[0]), append(dst, p[1])
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLargestComponent(t *testing.T) {
	for name, c := range map[string]struct {
		g    *graphops.Graph
		want []int32
	}{
		"empty":                {edgesOf(t, 0), nil},
		"one node":             {edgesOf(t, 1), []int32{0}},
		"isolated":             {edgesOf(t, 3), []int32{0}},
		"one direction":        {edgesOf(t, 4, [2]int32{3, 1}, [2]int32{2, 1}), []int32{1, 2, 3}},
		"self-loop":            {edgesOf(t, 3, [2]int32{0, 0}, [2]int32{1, 2}), []int32{1, 2}},
		"as large":             {edgesOf(t, 4, [2]int32{3, 1}, [2]int32{2, 0}), []int32{0, 2}},
		"cycle":                {edgesOf(t, 3, [2]int32{0, 1}, [2]int32{1, 2}, [2]int32{2, 0}), []int32{0, 1, 2}},
		"joined by a late one": {edgesOf(t, 6, [2]int32{5, 0}, [2]int32{4, 1}, [2]int32{5, 4}), []int32{0, 1, 4, 5}},
	} {
		if got := LargestComponent(c.g); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The component equals the set of nodes that a search along the edges in both directions reaches.
func TestLargestComponentIsWhatAWalkReaches(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(rt, "nodes")
		pairs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) [2]int32 {
			return [2]int32{rapid.Int32Range(0, int32(n-1)).Draw(rt, "u"), rapid.Int32Range(0, int32(n-1)).Draw(rt, "v")}
		}), 0, 30).Draw(rt, "edges")
		next := make([][]int32, n)
		for _, p := range pairs {
			next[p[0]], next[p[1]] = append(next[p[0]], p[1]), append(next[p[1]], p[0])
		}
		var best []int32
		seen := make([]bool, n)
		for v := range n {
			if seen[v] {
				continue
			}
			seen[v] = true
			part := []int32{int32(v)}
			for i := 0; i < len(part); i++ {
				for _, u := range next[part[i]] {
					if !seen[u] {
						seen[u], part = true, append(part, u)
					}
				}
			}
			if len(part) > len(best) {
				best = part
			}
		}
		slices.Sort(best)
		if got := LargestComponent(edgesOf(t, n, pairs...)); !slices.Equal(got, best) {
			rt.Fatalf("%v, want %v", got, best)
		}
	})
}

func TestSubset(t *testing.T) {
	for _, d := range []*Dataset{small(t), rich(t), ones(t), edged(t), edgedHalf(t), Karate()} {
		all := make([]int32, d.Nodes())
		for v := range all {
			all[v] = int32(v)
		}
		for _, ids := range [][]int32{all, {0, 2, 3}, {1}, {4}, {}} {
			s, err := d.Subset(ids)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(t.Context()); err != nil {
				t.Fatalf("%s of %v: %v", d.Name(), ids, err)
			}
			if s.Nodes() != len(ids) || s.FeatureDim() != d.FeatureDim() || s.Classes() != d.Classes() || (s.Graph.EdgeWeights == nil) != (d.Graph.EdgeWeights == nil) || s.EdgeFeatureDim() != d.EdgeFeatureDim() || s.HasEdgeTimes() != d.HasEdgeTimes() {
				t.Fatalf("%s of %v: %s", d.Name(), ids, s)
			}
			for i, v := range ids {
				var row []int32
				var w []float32
				for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
					if j, ok := slices.BinarySearch(ids, d.Graph.Indices[e]); ok {
						row = append(row, int32(j))
						if d.Graph.EdgeWeights != nil {
							w = append(w, d.Graph.EdgeWeights[e])
						}
					}
				}
				if lo, hi := s.Graph.Indptr[i], s.Graph.Indptr[i+1]; !slices.Equal(s.Graph.Indices[lo:hi], row) || d.Graph.EdgeWeights != nil && !slices.Equal(s.Graph.EdgeWeights[lo:hi], w) {
					t.Errorf("%s of %v: node %d has the neighbours %v, want %v, weights %v", d.Name(), ids, i, s.Graph.InNeighbors(int32(i)), row, w)
				}
				checkSubsetEdges(t, d, s, ids, i)
				if d.Labels != nil && s.Labels[i] != d.Labels[v] || d.MultiLabels != nil && !slices.Equal(s.MultiLabels.Row(i), d.MultiLabels.Row(int(v))) {
					t.Errorf("%s of %v: node %d has another label", d.Name(), ids, i)
				}
				if d.Features != nil && !slices.Equal(s.Features.Row(i), d.Features.Row(int(v))) {
					t.Errorf("%s of %v: node %d has other features", d.Name(), ids, i)
				}
				if d.SparseFeatures != nil {
					cols, values := s.SparseFeatures.Row(i)
					wantCols, wantValues := d.SparseFeatures.Row(int(v))
					if !slices.Equal(cols, wantCols) || !slices.Equal(values, wantValues) {
						t.Errorf("%s of %v: node %d has other features", d.Name(), ids, i)
					}
				}
			}
			for name, split := range d.Splits {
				var want []int32
				for _, v := range split {
					if i, ok := slices.BinarySearch(ids, v); ok {
						want = append(want, int32(i))
					}
				}
				if !slices.Equal(s.Splits[name], want) {
					t.Errorf("%s of %v: split %s is %v, want %v", d.Name(), ids, name, s.Splits[name], want)
				}
			}
		}
		for _, ids := range [][]int32{{-1}, {1, 1}, {2, 1}, {0, int32(d.Nodes())}} {
			if _, err := d.Subset(ids); err == nil || !strings.Contains(err.Error(), "ascend") {
				t.Errorf("the nodes %v gave no error (%v)", ids, err)
			}
		}
	}
}
