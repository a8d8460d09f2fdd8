package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops"
)

// fromEdges returns a graph of n nodes with both directions of each edge.
func fromEdges(t *testing.T, n int, src, dst []int32) *graphops.Graph {
	t.Helper()
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g.Undirected(1)
}

// within divides, and fails if that has not ended after a minute or if a node is in no part.
func within(t *testing.T, g *graphops.Graph, parts int, o Options) *Parts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := Divide(ctx, g, parts, o)
	if err != nil {
		t.Fatalf("%d parts, %+v: %v", parts, o, err)
	}
	for v, part := range p.Of {
		if part < 0 || int(part) >= parts {
			t.Fatalf("%d parts, %+v: node %d is in part %d", parts, o, v, part)
		}
	}
	return p
}

// Odd graphs are divided into any number of parts, by every method and preset: a side of a bisection may be empty, and
// the limits may be out of reach.
func TestOddGraphs(t *testing.T) {
	const n = 9
	var all, rest []int32
	for v := range int32(n) {
		for u := range v {
			all, rest = append(all, v), append(rest, u)
		}
	}
	hot := make([]int32, n)
	hot[4] = 1
	for name, g := range map[string]*graphops.Graph{
		"no edges":       fromEdges(t, n, nil, nil),
		"star":           fromEdges(t, n, make([]int32, n-1), counting(1, n)),
		"clique":         fromEdges(t, n, all, rest),
		"isolated nodes": fromEdges(t, n, []int32{0, 1}, []int32{1, 2}),
	} {
		t.Run(name, func(t *testing.T) {
			for parts := 1; parts <= n; parts++ {
				for _, weights := range [][]int32{nil, hot, {10, 1, 1, 0, 0, 0, 0, 0, 0}} {
					for _, imbalance := range []float64{0, 2, 1e6} {
						for _, m := range Methods()[:5] {
							within(t, g, parts, Options{Method: m, Weights: weights, Imbalance: imbalance})
						}
						p := within(t, g, parts, Options{Weights: weights, Imbalance: imbalance, Preset: Strong, effort: 1 << 12})
						if most := int64((1 + max(imbalance, 0.03)) * float64((n+parts-1)/parts)); weights == nil && slices.Max(p.Weights) > most {
							t.Errorf("%d parts of %v nodes; want at most %d", parts, p.Weights, most)
						}
					}
				}
				within(t, g, parts, Options{More: [][]int32{hot, g.InDegrees()}})
			}
		})
	}
}

// Of a hundred nodes one has a weight: most parts get none of it.
func TestOneWeight(t *testing.T) {
	g := made(t, 100, 300, true)
	hot := make([]int32, 100)
	hot[17] = 1
	for _, parts := range []int{4, 8} {
		for _, preset := range Presets() {
			within(t, g, parts, Options{Weights: hot, Preset: preset, effort: 1 << 14})
			within(t, g, parts, Options{More: [][]int32{hot}, Preset: preset, effort: 1 << 14})
		}
	}
}

// The strong preset ends if no division is within the limits and there are hardly any edges to look at.
func TestHopelessBalance(t *testing.T) {
	if p := within(t, fromEdges(t, 3, nil, nil), 2, Options{Weights: []int32{10, 1, 1}, Preset: Strong}); slices.Max(p.Weights) != 10 {
		t.Errorf("parts of the weights %v", p.Weights)
	}
	weights := make([]int32, 300)
	weights[0], weights[1], weights[2] = 10, 1, 1
	g := fromEdges(t, 300, []int32{0}, []int32{1})
	within(t, g, 2, Options{Weights: weights, Preset: Strong, effort: 1 << 16})
}

// ending is a context that ends after it has been asked so many times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// A division stops wherever the context ends, with its error.
func TestEndsAnywhere(t *testing.T) {
	for _, o := range []Options{{}, {Preset: Strong, effort: 1 << 14}, {Method: Stream}} {
		t.Run(fmt.Sprint(o.Method, o.Preset), func(t *testing.T) {
			o.Threads = 1
			for _, edges := range []int{0, 400, 2000} {
				g := made(t, 400, edges, true)
				for left, step := 0, 1; ; left, step = left+step, step+step/4+1 {
					ctx := &ending{t.Context(), left}
					_, err := Divide(ctx, g, 3, o)
					if err == nil && ctx.left >= 0 {
						break
					}
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("the context has ended: %v", err)
					}
					if ctx.left < -200 {
						t.Errorf("asked %d times after its end, the context of %d edges", -ctx.left, edges)
					}
				}
			}
		})
	}
}

// Pairs of parts are told apart in divisions into very many.
func TestManyParts(t *testing.T) {
	const n = 50000
	s := &search{divider: &divider{ctx: t.Context(), parts: n, limits: limits{most: slices.Repeat([]int64{1}, n)}}}
	of := counting(0, n)
	if both := s.overlay(of, of); !slices.Equal(both, of) {
		t.Error("the pairs of parts of two divisions have wrong numbers")
	}
	w := s.undirected(fromEdges(t, n, []int32{0, n - 2}, []int32{n - 1, n - 1}))
	pairs := s.pairs(newMoves(w, of, s.limits), slices.Repeat([]bool{true}, n))
	slices.SortFunc(pairs, func(x, y [2]int32) int { return int(x[0] - y[0]) })
	if !slices.Equal(pairs, [][2]int32{{0, n - 1}, {n - 2, n - 1}}) {
		t.Errorf("neighbouring parts %v", pairs)
	}
}

// Streaming does not take ranges of ids that are too heavy, though they cut nothing.
func TestStreamWithin(t *testing.T) {
	var src, dst, weights []int32
	for v := range int32(400) {
		if v%100 > 0 {
			src, dst = append(src, v-1), append(dst, v)
		}
		weights = append(weights, 1)
	}
	for v := range 4 {
		weights[100*v+99] = 30 // at the end of each path
	}
	weights[0], weights[150] = 40, 60
	g := fromEdges(t, 400, src, dst)
	if ids := divide(t, g, 4, Options{Method: Range, Weights: weights}); ids.Imbalance <= 1.05 {
		t.Fatalf("ranges are balanced: %v", ids.Weights)
	}
	if p := divide(t, g, 4, Options{Method: Stream, Weights: weights}); p.Imbalance > 1.04 {
		t.Errorf("parts of the weights %v", p.Weights)
	}
}
