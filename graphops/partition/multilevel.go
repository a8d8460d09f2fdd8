package partition

import (
	"context"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// weighted is an undirected graph without loops: both directions of each edge.
type weighted struct {
	indptr []int64
	adj    []int32
	edge   []int32 // weights of adj; nil means 1
	node   []int64 // weights of nodes
	total  int64   // sum of node
}

func (g *weighted) nodes() int { return len(g.indptr) - 1 }

func (g *weighted) weightOf(e int64) int64 {
	if g.edge == nil {
		return 1
	}
	return int64(g.edge[e])
}

// level is a graph and the node of the next level's graph into which each of its nodes is merged.
type level struct {
	*weighted
	into []int32
}

const (
	// coarsest is the number of nodes per part at which merging stops.
	coarsest = 160
	// clusters is the smallest number of clusters per part.
	clusters = 48
	// fewEdges is the largest graph, in directed edges, that is also refined by the method of
	// Fiduccia and Mattheyses, which can leave local minima.
	fewEdges = 4 << 20
)

// multilevel divides by o.Weights, and then moves nodes until the parts are within the limits of
// several weights, if there are any.
func multilevel(ctx context.Context, g *graphops.Graph, parts int, o Options, several [][]int32) ([]int32, error) {
	if parts == 1 {
		return make([]int32, g.NumNodes()), nil
	}
	m := &divider{ctx: ctx, parts: parts, o: o, start: grow}
	w := m.undirected(g)
	for range parts {
		m.most = append(m.most, limit(w.total, parts, o.Imbalance))
	}
	fast := 0.8
	if o.Preset == Strong {
		fast = 0.1
	}
	of := m.cycle(w, nil)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.Progress(fast)
	// A graph with a dense core is best divided into the core and the rest. Merging hides this
	// division; streaming over the nodes, above all from the hubs down, finds it.
	o.Progress = func(float64) {}
	other, err := fennel(ctx, g, parts, o, nil, nil)
	if err == nil && w.skewed() {
		var hubs []int32
		if hubs, err = restream(ctx, g, parts, o); err == nil && w.cut(hubs) < w.cut(other) {
			other = hubs
		}
	}
	if err != nil {
		return nil, err
	}
	if w.cut(other) < w.cut(of) {
		of = m.cycle(w, other)
	}
	if o.Preset == Strong {
		of = m.strong(w, of)
	}
	if several != nil {
		m.balanceAll(w, of, several)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return of, nil
}

// cycle merges, divides the smallest graph, and refines on the way back. Given a
// division, it merges nodes of the same part only and refines that division.
func (m *divider) cycle(g *weighted, given []int32) []int32 {
	levels := []level{{weighted: g}}
	of := given
	bound := g.total / int64(clusters*m.parts)
	for {
		at := &levels[len(levels)-1]
		if at.nodes() <= coarsest*m.parts {
			break
		}
		into, count := m.cluster(at.weighted, bound, len(levels), of)
		if m.ctx.Err() != nil || count > at.nodes()*19/20 {
			break
		}
		at.into = into
		levels = append(levels, level{weighted: at.contract(into, count)})
		if of != nil {
			coarse := make([]int32, count)
			for v, c := range into {
				coarse[c] = of[v]
			}
			of = coarse
		}
	}
	if of == nil {
		of = m.initial(levels[len(levels)-1].weighted)
	}
	for i := len(levels) - 1; i >= 0 && m.ctx.Err() == nil; i-- {
		at := levels[i]
		if at.into != nil {
			fine := make([]int32, at.nodes())
			for v, c := range at.into {
				fine[v] = of[c]
			}
			of = fine
		}
		m.refine(at.weighted, of)
		levels[i] = level{}
	}
	return of
}

// skewed reports whether the hundredth of the nodes with the most edges has a tenth of all ends of
// edges. Meshes and random graphs have a fiftieth at most.
func (g *weighted) skewed() bool {
	order := g.byDegree()
	var ends int64
	for _, v := range order[len(order)-len(order)/100:] {
		ends += g.indptr[v+1] - g.indptr[v]
	}
	return ends > int64(len(g.adj)/10)
}

// hubsFirst returns the nodes by the magnitude of their degrees, descending.
func (g *weighted) hubsFirst() []int32 {
	order := g.byDegree()
	slices.Reverse(order)
	return order
}

// cut returns the weight of the edges between parts, both directions.
func (g *weighted) cut(of []int32) (cut int64) {
	for v, p := range of {
		for e := g.indptr[v]; e < g.indptr[v+1]; e++ {
			if of[g.adj[e]] != p {
				cut += g.weightOf(e)
			}
		}
	}
	return cut
}

// divider is the state of one call of multilevel.
type divider struct {
	ctx   context.Context
	parts int
	o     Options
	most  []int64 // maximum weight of each part
	// start makes side 0 of a bisection, to be refined.
	start func(g *weighted, share float64, random uint32) []int32
}

// undirected converts the graph to this package's form. It shares the graph's arrays if they hold
// both directions of each edge and no self-loop.
func (m *divider) undirected(g *graphops.Graph) *weighted {
	if !g.Symmetric() {
		g = g.Undirected(m.o.Threads)
	}
	for v := range int32(g.NumNodes()) {
		if has(g.InNeighbors(v), v) {
			g = g.RemoveSelfLoops(m.o.Threads)
			break
		}
	}
	w := &weighted{indptr: g.Indptr, adj: g.Indices, node: make([]int64, g.NumNodes())}
	for v := range w.node {
		w.node[v] = m.o.weight(v)
		w.total += w.node[v]
	}
	return w
}

// contract returns the graph of clusters: the weight of an edge is the total weight of the edges
// between two clusters.
func (g *weighted) contract(into []int32, count int) *weighted {
	start, members := group(into, count)
	c := &weighted{
		indptr: make([]int64, count+1), node: make([]int64, count), total: g.total,
		adj: make([]int32, 0, len(g.adj)/3), edge: make([]int32, 0, len(g.adj)/3),
	}
	place := make([]int64, count) // of a neighbour in adj, plus 1
	for v := range int32(count) {
		first := int64(len(c.adj))
		for _, u := range members[start[v]:start[v+1]] {
			c.node[v] += g.node[u]
			for e := g.indptr[u]; e < g.indptr[u+1]; e++ {
				d := into[g.adj[e]]
				if d == v {
					continue
				}
				if place[d] <= first {
					c.adj, c.edge = append(c.adj, d), append(c.edge, 0)
					place[d] = int64(len(c.adj))
				}
				// The sum saturates above 2 billion edges; the weight is only a heuristic.
				at := place[d] - 1
				c.edge[at] = int32(min(int64(c.edge[at])+g.weightOf(e), 1<<31-1))
			}
		}
		c.indptr[v+1] = int64(len(c.adj))
	}
	return c
}
