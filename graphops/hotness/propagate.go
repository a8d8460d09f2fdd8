package hotness

import (
	"context"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
)

// Propagate computes, for each part and node, the expected number of the part's batches per epoch that read the node's
// row, without sampling: [Parts][NumNodes].
//
// A seed is in a given batch with probability r0 = Batch/len(Seeds), and r0 is 0 for other nodes. At hop k a node v of
// in-degree d(v) that is reached already picks each of its in-edges with probability t(v) = min(1, fanout/d(v)). With
// r(v) the probability that v is reached before the hop, and q(v) the probability that v has picked a given in-edge,
//
//	q'(v) = q(v) + t(v) · (r(v) - q(v))
//	r'(u) = 1 - (1 - r0(u)) · Π over edges u→v of (1 - q'(v))
//
// After the last hop, r times the number of steps is the result. It differs from [Simulate]'s limit only where nodes are
// not reached independently of each other.
//
// It returns the context's error soon after the context is done. Cost: a pass over the edges per hop, 16 bytes per node
// and part, and the reverse of a graph that does not have both directions of each edge.
//
// Source: T. Kaler et al., "Communication-efficient graph neural networks with probabilistic neighborhood expansion
// analysis and caching" (SALIENT++), MLSys 2023, arXiv:2305.03152, proposition 1. There a hop expands the nodes of the
// hop before; in a batch of a sampler of package sample it expands all nodes reached so far, with fresh picks.
func Propagate(ctx context.Context, j Job) ([][]float32, error) {
	parts, err := j.check()
	if err != nil {
		return nil, err
	}
	g, n, width := j.Graph, j.Graph.NumNodes(), len(parts)
	out := g // the in-neighbours of u in out are the nodes that u has edges to
	if !g.Symmetric() {
		out = g.Reverse(j.Threads)
	}
	column := make([]int, j.Parts)
	for p := range column {
		column[p] = -1
	}
	for i, p := range parts {
		column[p] = i
	}
	missed := make([]float32, n*width) // 1 - r0(v)
	for i := range missed {
		missed[i] = 1
	}
	for _, v := range j.Seeds {
		if c := column[j.Of[v]]; c >= 0 {
			missed[int(v)*width+c] = float32(max(0, 1-float64(j.Batch)/float64(len(j.Seeds))))
		}
	}
	const grain = 1 << 10
	reached, picked, unpicked := make([]float32, n*width), make([]float32, n*width), make([]float32, n*width) // r, q, log(1 - q)
	for i, m := range missed {
		reached[i] = 1 - m
	}
	for _, fanout := range j.Fanouts {
		parallel.For(j.Threads, n, grain, func(lo, hi int) {
			if ctx.Err() != nil {
				return
			}
			for v := lo; v < hi; v++ {
				t := pickProbability(fanout, g.InDegree(int32(v)))
				for i := v * width; i < (v+1)*width; i++ {
					picked[i] += t * (reached[i] - picked[i])
					unpicked[i] = float32(math.Log1p(-float64(picked[i])))
				}
			}
		})
		parallel.For(j.Threads, n, grain, func(lo, hi int) {
			if ctx.Err() != nil {
				return
			}
			sums := make([]float64, width)
			for u := lo; u < hi; u++ {
				clear(sums)
				for _, v := range out.InNeighbors(int32(u)) {
					row := unpicked[int(v)*width : (int(v)+1)*width]
					for c := range sums {
						sums[c] += float64(row[c])
					}
				}
				for c, s := range sums {
					i := u*width + c
					reached[i] = (1 - missed[i]) + missed[i]*float32(-math.Expm1(s))
				}
			}
		})
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("hotness: %w", context.Cause(ctx))
	}
	hot := make([][]float32, j.Parts)
	for c, p := range parts {
		hot[p] = make([]float32, n)
		for v := range hot[p] {
			hot[p][v] = reached[v*width+c] * float32(j.Steps())
		}
	}
	return hot, nil
}

// pickProbability is the probability that a node of the given in-degree picks a given in-edge.
func pickProbability(fanout, degree int) float32 {
	if fanout < 0 || fanout >= degree {
		return 1
	}
	return float32(fanout) / float32(degree)
}
