package linkstest

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/philox"
)

// Shop returns a dataset with types: users 0 to 79 with 2 features, items 80 to 199 with 6, and brands 200 to
// 203 without. Most items that a user likes, and most users that a user knows, are of the user's taste, one of
// four. user:likes:item has 800 edges, item:liked_by:user their reverses, user:knows:user pairs in both
// directions, and item:of:brand an edge for each item.
func Shop() (*dataset.Dataset, error) {
	const users, items, tastes = 80, 120, 4
	s := &graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "user", Count: users}, {Name: "item", Count: items}, {Name: "brand", Count: tastes}},
		Relations: []graphops.Relation{
			{Src: "user", Name: "likes", Dst: "item"},
			{Src: "item", Name: "liked_by", Dst: "user"},
			{Src: "user", Name: "knows", Dst: "user"},
			{Src: "item", Name: "of", Dst: "brand"},
		},
	}
	draws := philox.NewStream(7, 0, 0, 0)
	below := func(n int) int { return int(philox.Bounded(draws.Next(), uint32(n))) }
	// like returns one of n nodes, which usually has v's taste.
	like := func(v, n int) int {
		at := below(n)
		if below(10) > 0 {
			at = at/tastes*tastes + v%tastes
		}
		return at
	}
	var src, dst []int32
	var types []uint16
	add := func(u, v int, kind uint16) {
		src, dst, types = append(src, int32(u)), append(dst, int32(v)), append(types, kind)
	}
	seen := map[[2]int]bool{}
	for u := range users {
		for liked := 0; liked < 10; {
			i := like(u, items)
			if seen[[2]int{u, i}] {
				continue
			}
			seen[[2]int{u, i}] = true
			add(u, users+i, 0)
			add(users+i, u, 1)
			liked++
		}
		for range 3 {
			if v := like(u, users); v != u && !seen[[2]int{-1 - min(u, v), max(u, v)}] {
				seen[[2]int{-1 - min(u, v), max(u, v)}] = true
				add(u, v, 2)
				add(v, u, 2)
			}
		}
	}
	for i := range items {
		add(users+i, users+items+i%tastes, 3)
	}
	n := s.NumNodes()
	g, err := graphops.FromEdgesWith(n, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{})
	if err != nil {
		return nil, err
	}
	if g, err = g.WithTypes(s, g.EdgeTypes); err != nil {
		return nil, err
	}
	noise := func() float32 { return philox.Float32(draws.Next()) - 0.5 }
	of := func(count, cols int) dataset.NodeFeatures {
		x := &dataset.Matrix{Rows: count, Cols: cols, F32: make([]float32, count*cols)}
		for i := range x.F32 {
			x.F32[i] = noise()
		}
		for v := range count {
			x.F32[v*cols+v%tastes%cols] += 0.7
		}
		return dataset.NodeFeatures{Dense: x}
	}
	return &dataset.Dataset{
		Graph: g, NodeFeatures: []dataset.NodeFeatures{of(users, 2), of(items, 6), {}}, Meta: dataset.Metadata{Name: "shop"},
	}, nil
}
