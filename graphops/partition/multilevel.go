package partition

import (
	"context"
	"math/bits"
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// weighted is an undirected graph without loops: both directions of each edge.
type weighted struct {
	indptr []int64
	adj    []int32
	edge   []int32   // weights of adj; nil means 1
	node   []int64   // weights of nodes
	total  int64     // sum of node
	more   [][]int64 // by further quantity: weights of nodes, balanced like node
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

// multilevel divides so that the parts are within the limits of all quantities, if that is possible.
func multilevel(ctx context.Context, g *graphops.Graph, parts int, o Options) ([]int32, error) {
	if parts == 1 {
		return make([]int32, g.NumNodes()), nil
	}
	m := &divider{ctx: ctx, parts: parts, o: o}
	w := m.undirected(g)
	m.limits = w.limits(slices.Repeat([]int{1}, parts), o.Imbalance)
	fast := 0.8
	if o.Preset == Strong {
		fast = 0.1
	}
	s := newSearch(m, 0)
	of := s.cycle(w, nil, nil)
	if w.more != nil { // few moves are within all limits; merging the graph differently allows others
		of = s.cycle(w, of, slices.Clone(of))
	}
	o.Progress(fast)
	if w.skewed() && len(o.More) == 0 && ctx.Err() == nil {
		// A graph with a dense core is best divided into the core and the rest. Merging hides this
		// division; streaming over the nodes from the hubs down finds it.
		o.Progress = func(float64) {}
		hubs, err := restream(ctx, g, parts, o, 2)
		if err != nil {
			return nil, err
		}
		if m.judge(w, hubs).compare(m.judge(w, of)) < 0 {
			of = s.cycle(w, hubs, slices.Clone(hubs))
		}
	}
	if o.Preset == Strong {
		of = m.strong(w, of)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return of, nil
}

// cycle merges, divides the smallest graph unless a division is given, and refines on the way
// back. It merges only nodes with the same number in keep, which must be finer than the given
// division. If the context ends, all nodes are in part 0.
func (s *search) cycle(g *weighted, keep, of []int32) []int32 {
	levels := []level{{weighted: g}}
	// Matching keeps the shape of meshes; clusters keep the communities of graphs with hubs.
	smallest, matching := max(40*s.parts, g.nodes()/(20*bits.Len(uint(s.parts)))), !g.skewed()
	clusters := 48 // for each part, at least
	if s.thorough {
		smallest, matching, clusters = s.parts*(40+s.below(120)), s.below(3) > 0, 12+s.below(36)
	}
	for s.ctx.Err() == nil {
		at := &levels[len(levels)-1]
		n := at.nodes()
		if n <= smallest {
			break
		}
		s.work += int64(len(at.adj))
		var into []int32
		var count int
		if matching {
			into, count = s.match(at.weighted, smallest, keep)
		} else {
			into, count = s.cluster(at.weighted, g.total/int64(s.parts*clusters)+1, keep)
		}
		if count > n*19/20 {
			break
		}
		at.into = into
		levels = append(levels, level{weighted: at.contract(into, count)})
		keep, of = project(into, count, keep), project(into, count, of)
	}
	if of == nil && s.ctx.Err() == nil {
		of = s.initial(levels[len(levels)-1].weighted, len(g.adj))
	}
	for i := len(levels) - 1; i >= 0 && s.ctx.Err() == nil; i-- {
		if into := levels[i].into; into != nil {
			fine := make([]int32, len(into))
			for v, c := range into {
				fine[v] = of[c]
			}
			of = fine
		}
		s.refine(levels[i].weighted, of)
		levels[i] = level{}
	}
	if s.ctx.Err() != nil { // of may be nil, or belong to a smaller graph
		return make([]int32, g.nodes())
	}
	return of
}

// project gives each cluster the number that all its nodes have.
func project(into []int32, count int, number []int32) []int32 {
	if number == nil {
		return nil
	}
	coarse := make([]int32, count)
	for v, c := range into {
		coarse[c] = number[v]
	}
	return coarse
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

// divider is a call of multilevel.
type divider struct {
	ctx    context.Context
	parts  int
	o      Options
	limits limits
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
	for _, quantity := range m.o.More {
		weights := make([]int64, len(quantity))
		for v, x := range quantity {
			weights[v] = int64(x)
		}
		w.more = append(w.more, weights)
	}
	return w
}

// dice is a generator of random numbers: splitmix64.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9E3779B97F4A7C15
	x := uint64(*d)
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// below returns a number in [0, n).
func (d *dice) below(n int) int { return int((d.next() >> 32) * uint64(n) >> 32) }

func (d *dice) shuffled(n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		j := d.below(i + 1)
		order[i] = order[j]
		order[j] = int32(i)
	}
	return order
}
