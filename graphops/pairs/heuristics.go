package pairs

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// heuristic is what a common neighbour of a degree adds to a pair's score.
type heuristic func(degree int) float64

// CommonNeighbours is the number of common neighbours of each pair: nodes with edges to both in g,
// which is meant to be undirected, each counted once and without the two nodes themselves.
//
// It needs no training, as [AdamicAdar] and [ResourceAllocation] need none, and a trained network
// that is not better is of no use. Give them [Split.Message] or [Split.Training], never the graph
// with the edges to predict.
//
// It returns an error for a pair of nodes that the graph does not have. Threads (0: GOMAXPROCS) does
// not change the result. Cost: the sum of both degrees for each pair.
//
// Source: D. Liben-Nowell, J. Kleinberg, "The link-prediction problem for social networks", JASIST
// 58(7), 2007, doi:10.1002/asi.20591.
func CommonNeighbours(g *graphops.Graph, pairs Edges, threads int) ([]float32, error) {
	return score(g, pairs, threads, commonNeighbours)
}

func commonNeighbours(int) float64 { return 1 }

// AdamicAdar is Σ 1/log(degree) over the common neighbours of each pair (L. A. Adamic, E. Adar,
// "Friends and neighbors on the Web", Social Networks 25, 2003,
// doi:10.1016/S0378-8733(03)00009-1). A neighbour of degree 1 or less, which only a directed graph
// has, counts 0. Otherwise it is as [CommonNeighbours].
func AdamicAdar(g *graphops.Graph, pairs Edges, threads int) ([]float32, error) {
	return score(g, pairs, threads, adamicAdar)
}

func adamicAdar(degree int) float64 {
	if degree < 2 {
		return 0
	}
	return 1 / math.Log(float64(degree))
}

// ResourceAllocation is Σ 1/degree over the common neighbours of each pair; otherwise it is as
// [CommonNeighbours] (T. Zhou, L. Lü, Y.-C. Zhang, "Predicting missing links via local information",
// EPJ B 71, 2009, doi:10.1140/epjb/e2009-00335-8).
func ResourceAllocation(g *graphops.Graph, pairs Edges, threads int) ([]float32, error) {
	return score(g, pairs, threads, resourceAllocation)
}

func resourceAllocation(degree int) float64 { return 1 / float64(max(1, degree)) }

// pairGrain is the number of pairs of a chunk.
const pairGrain = 256

func score(g Around, pairs Edges, threads int, of heuristic) ([]float32, error) {
	if whole, ok := g.(*graphops.Graph); ok || g == nil {
		if err := hasNodes(whole); err != nil {
			return nil, err
		}
	}
	if err := pairs.check("the pairs", g.NumNodes()); err != nil {
		return nil, err
	}
	out := make([]float32, pairs.Len())
	parallel.For(threads, len(out), pairGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			u, v := pairs.Src[i], pairs.Dst[i]
			sum := 0.0
			for z := range common(g.InNeighbors(u), g.InNeighbors(v)) {
				if z != u && z != v {
					sum += of(g.InDegree(z))
				}
			}
			out[i] = float32(sum)
		}
	})
	return out, nil
}

// common yields the elements of both ascending lists, each once.
func common(a, b []int32) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		last := int32(-1)
		for i, j := 0, 0; i < len(a) && j < len(b); {
			switch {
			case a[i] < b[j]:
				i++
			case a[i] > b[j]:
				j++
			default:
				if a[i] != last {
					last = a[i]
					if !yield(last) {
						return
					}
				}
				i++
				j++
			}
		}
	}
}
