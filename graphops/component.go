package graphops

// components returns the smallest node of each node's weakly connected component.
func (g *Graph) components() []int32 {
	// The components are trees: up[v] leads to the root, which is the component's smallest node.
	up := make([]int32, g.NumNodes())
	for v := range up {
		up[v] = int32(v)
	}
	root := func(v int32) int32 {
		for up[v] != v {
			up[v] = up[up[v]]
			v = up[v]
		}
		return v
	}
	for v := range int32(len(up)) {
		for _, u := range g.InNeighbors(v) {
			a, b := root(u), root(v)
			up[max(a, b)] = min(a, b)
		}
	}
	for v := range up {
		up[v] = root(int32(v))
	}
	return up
}

// LargestComponent returns the nodes, ascending, of the largest weakly connected component of g, in
// which every node can be reached from every other if edges may be followed in both directions.
// Among components of equal size it returns the one with the smallest node. Cost: one pass over the
// edges, and 8 bytes per node.
func (g *Graph) LargestComponent() []int32 {
	roots := g.components()
	size := make([]int32, len(roots))
	best := int32(0)
	for _, r := range roots {
		size[r]++
	}
	for v, s := range size {
		if s > size[best] {
			best = int32(v)
		}
	}
	var ids []int32
	for v, r := range roots {
		if r == best {
			ids = append(ids, int32(v))
		}
	}
	return ids
}
