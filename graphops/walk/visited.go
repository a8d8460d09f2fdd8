package walk

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// VisitedOptions configure [Visited]. The zero value keeps the ten nodes that 100 walks visit most.
type VisitedOptions struct {
	// K is the number of neighbours that a node keeps; 0 means 10.
	K int
	// Walks is the number of walks from each node; 0 means 100.
	Walks int
	// Length is the largest number of steps of a walk; 0 means 10.
	Length int
	// Restart is the probability that a walk ends after a step, so that the next one begins at the node
	// again; 0 means 0.5, a negative number none.
	Restart float64
	// Self keeps the node among its own neighbours, if walks visit it; layers add a node's own row anyway.
	Self bool
	// Seed is the random seed; 0 means the seed 0.
	Seed uint64
	// Epoch draws other walks with the same seed; 0 means epoch 0.
	Epoch int
	// Threads is the number of concurrent goroutines; 0 means GOMAXPROCS.
	Threads int
}

// Visited returns the graph of PinSAGE's neighbourhoods: the in-neighbours of a node are the K nodes that
// short walks from it visit most (of equally many visits, the lower id), with the share of all visits as
// edge weights. A node without in-neighbours has none in the result. Starts are no visits; visits of the
// node itself count only with Self.
//
// It returns an error for options out of range, and those of [New]. Cost: a step of a walk for each visit,
// and a sort of each node's visits; the result has at most K edges for each node.
//
// Source: R. Ying et al., "Graph convolutional neural networks for web-scale recommender systems", KDD
// 2018, doi:10.1145/3219819.3219890, section 3.1. DGL's PinSAGESampler makes the same of the walks of a
// batch.
func Visited(g *graphops.Graph, o VisitedOptions) (*graphops.Graph, error) {
	o.K, o.Walks, o.Length = cmp.Or(o.K, 10), cmp.Or(o.Walks, 100), cmp.Or(o.Length, 10)
	o.Restart = max(0, cmp.Or(o.Restart, 0.5))
	switch {
	case o.K < 1:
		return nil, fmt.Errorf("walk: K is %d; a node keeps 1 neighbour or more (0 means 10)", o.K)
	case o.Walks < 1 || o.Walks > MaxPerNode:
		return nil, fmt.Errorf("walk: Walks is %d; a node starts 1 to %d (0 means 100)", o.Walks, MaxPerNode)
	case !(o.Restart < 1):
		return nil, fmt.Errorf("walk: Restart is %v; it is a probability below 1 (0 means 0.5)", o.Restart)
	}
	w, err := New(g, Options{Length: o.Length, Seed: o.Seed, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	if err := w.check(o.Epoch, nil); err != nil {
		return nil, err
	}
	stop := uint64(o.Restart * (1 << 32))
	c3 := philox.C3(philox.Walks, siteVisit, o.Epoch)
	return collect(g.NumNodes(), o.Threads, func(v int32, m *memory) []near {
		m.visits = m.visits[:0]
		for number := range o.Walks {
			at := v
			for i := range o.Length {
				s := philox.NewStream(o.Seed, int64(v)|int64(number)<<32, i, c3)
				if at = w.propose(&s, at); at < 0 {
					break
				}
				if at != v || o.Self {
					m.visits = append(m.visits, at)
				}
				if uint64(s.Next()) < stop {
					break
				}
			}
		}
		slices.Sort(m.visits)
		m.near = m.near[:0]
		for lo := 0; lo < len(m.visits); {
			hi := lo
			for hi < len(m.visits) && m.visits[hi] == m.visits[lo] {
				hi++
			}
			m.near = append(m.near, near{m.visits[lo], float64(hi-lo) / float64(len(m.visits))})
			lo = hi
		}
		return m.near
	}, o.K), nil
}

// near is a node with its importance to another one.
type near struct {
	node   int32
	weight float64
}

// memory is what one goroutine needs to find the neighbourhood of a node.
type memory struct {
	visits []int32
	near   []near
	push   *push
}

// nodeGrain is the number of nodes of a chunk of collect.
const nodeGrain = 64

// collect builds the graph in which the in-neighbours of v are the k nodes of of(v) with the largest
// weights.
func collect(nodes, threads int, of func(v int32, m *memory) []near, k int) *graphops.Graph {
	chunks := parallel.Chunks(nodes, nodeGrain)
	type rows struct {
		indices []int32
		weights []float32
	}
	made := make([]rows, chunks)
	spare := make(chan *memory, max(1, chunks))
	g := &graphops.Graph{Indptr: make([]int64, nodes+1)}
	parallel.For(threads, nodes, nodeGrain, func(lo, hi int) {
		var m *memory
		select {
		case m = <-spare:
		default:
			m = &memory{}
		}
		r := &made[lo/nodeGrain]
		for v := lo; v < hi; v++ {
			top := largest(of(int32(v), m), k)
			for _, x := range top {
				r.indices, r.weights = append(r.indices, x.node), append(r.weights, float32(x.weight))
			}
			g.Indptr[v+1] = int64(len(top))
		}
		spare <- m
	})
	for v := range nodes {
		g.Indptr[v+1] += g.Indptr[v]
	}
	g.Indices = make([]int32, 0, g.Indptr[nodes])
	weights := make([]float32, 0, g.Indptr[nodes])
	for _, r := range made {
		g.Indices, weights = append(g.Indices, r.indices...), append(weights, r.weights...)
	}
	return g.WithEdgeWeights(weights)
}

// largest returns the k elements of the largest weights, ascending by node; of equal ones, those of lower
// nodes. It changes the order of all.
func largest(all []near, k int) []near {
	if len(all) > k {
		slices.SortFunc(all, func(a, b near) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.node, b.node)) })
		all = all[:k]
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Compare(a.node, b.node) })
	return all
}
