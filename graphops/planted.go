package graphops

import (
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// PlantedDraw draws the parts of a planted partition; package dataset's Planted describes the model and
// the parameters, which must be in its ranges. Results depend on the parameters alone, bit for bit.
type PlantedDraw struct {
	Nodes, Classes, Features int
	Degree, Homophily, Noise float64
	Key                      uint64 // random seed
	Threads                  int    // 0: GOMAXPROCS; it does not change the result
	// Class [Nodes] are the classes of the nodes. Assign sets it; the caller can set it instead to draw
	// features or splits alone.
	Class []int32

	// The node at place i of order has class i mod Classes, so i / Classes numbers the members of a
	// class.
	order, place []int32
}

// Purposes of the draws of a generated dataset; each is the site in the counter of its random
// numbers.
const (
	plantedClass = iota
	plantedSplit
	plantedDegree
	plantedEdge
	plantedFeature
)

func (p *PlantedDraw) stream(id, site int) philox.Stream {
	return philox.NewStream(p.Key, int64(id), 0, philox.C3(philox.User, site, 0))
}

// shuffled returns a random order of the nodes (Fisher and Yates).
func (p *PlantedDraw) shuffled(site int) []int32 {
	order := make([]int32, p.Nodes)
	for i := range order {
		order[i] = int32(i)
	}
	philox.Permute(p.Key, 0, philox.C3(philox.User, site, 0), order)
	return order
}

// Assign gives each node its class: p.Class.
func (p *PlantedDraw) Assign() {
	p.order = p.shuffled(plantedClass)
	p.place = make([]int32, p.Nodes)
	p.Class = make([]int32, p.Nodes)
	for i, v := range p.order {
		p.place[v] = int32(i)
		p.Class[v] = int32(i % p.Classes)
	}
}

// members returns the size of class c.
func (p *PlantedDraw) members(c int) int { return (p.Nodes - c + p.Classes - 1) / p.Classes }

func (p *PlantedDraw) member(c, i int) int32 { return p.order[i*p.Classes+c] }

// plantedGrain is the number of nodes in a chunk.
const plantedGrain = 1 << 10

// DrawEdges draws the edges src[i] → dst[i], after [PlantedDraw.Assign]. It calls expect with their number,
// and then progress, from any of the threads, with the number of edges that it draws next; if progress
// returns false, these edges stay 0 → 0. Duplicates are possible.
func (p *PlantedDraw) DrawEdges(expect func(edges int), progress func(edges int) bool) (src, dst []int32) {
	starts := make([]int64, p.Nodes+1)
	parallel.For(p.Threads, p.Nodes, plantedGrain, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			u := p.stream(v, plantedDegree)
			// Converting each product prevents a fused multiply-add, which would give other bits on
			// processors that have it.
			k := float64(p.Degree*uniform(u.Next())) + uniform(u.Next())
			starts[v+1] = int64(k)
		}
	})
	for v := range p.Nodes {
		starts[v+1] += starts[v]
	}
	src = make([]int32, starts[p.Nodes])
	dst = make([]int32, starts[p.Nodes])
	expect(len(src))
	parallel.For(p.Threads, p.Nodes, plantedGrain, func(lo, hi int) {
		if !progress(int(starts[hi] - starts[lo])) {
			return
		}
		for v := lo; v < hi; v++ {
			u := p.stream(v, plantedEdge)
			for e := starts[v]; e < starts[v+1]; e++ {
				src[e], dst[e] = p.neighbour(v, &u), int32(v)
			}
		}
	})
	return src, dst
}

// neighbour draws the other end of an edge of v.
func (p *PlantedDraw) neighbour(v int, u *philox.Stream) int32 {
	c, i := int(p.place[v])%p.Classes, int(p.place[v])/p.Classes
	if uniform(u.Next()) < p.Homophily {
		j := int(philox.Bounded(u.Next(), uint32(p.members(c)-1)))
		if j >= i { // skips v itself
			j++
		}
		return p.member(c, j)
	}
	other := int(philox.Bounded(u.Next(), uint32(p.Classes-1)))
	if other >= c {
		other++
	}
	return p.member(other, int(philox.Bounded(u.Next(), uint32(p.members(other)))))
}

// uniform maps a draw to [0, 1) without rounding.
func uniform(u uint32) float64 { return float64(float64(u) * (1.0 / (1 << 32))) }

// DrawFeatures draws the features of nodes with the classes p.Class, row-major: [Nodes·Features]. It calls
// progress, from any of the threads, with the number of features that it draws next; if progress returns
// false, these stay 0.
func (p *PlantedDraw) DrawFeatures(progress func(features int) bool) []float32 {
	x := make([]float32, p.Nodes*p.Features)
	p.DrawRows(0, x, progress)
	return x
}

// DrawRows is [PlantedDraw.DrawFeatures] for the nodes from first on, as many as x has rows of zeros for.
func (p *PlantedDraw) DrawRows(first int, x []float32, progress func(features int) bool) {
	// The sum of four uniform integers on [0, 2^16) has the variance below. The operations after it
	// round one by one (converting the product prevents a fused multiply-add), so the result is the
	// same on every processor.
	scale := p.Noise / math.Sqrt(4*(1<<32-1)/12.0)
	normal := func(a, b uint32) float64 {
		return float64(float64(int32(a&0xffff+a>>16+b&0xffff+b>>16)-2*0xffff) * scale)
	}
	parallel.For(p.Threads, len(x)/max(1, p.Features), plantedGrain, func(lo, hi int) {
		if !progress((hi - lo) * p.Features) {
			return
		}
		for i := lo; i < hi; i++ {
			u := p.stream(first+i, plantedFeature)
			row, own := x[i*p.Features:(i+1)*p.Features], int(p.Class[first+i])
			for j := range row {
				z := normal(u.Next(), u.Next())
				if j%p.Classes == own {
					z++
				}
				row[j] = float32(z)
			}
		}
	})
}

// DrawSplits divides the nodes at random: half are "train", a quarter each "val" and "test".
func (p *PlantedDraw) DrawSplits() map[string][]int32 {
	order := p.shuffled(plantedSplit)
	part := make([]uint8, p.Nodes)
	for i, v := range order {
		switch {
		case i >= p.Nodes/4*3:
			part[v] = 2
		case i >= p.Nodes/4*2:
			part[v] = 1
		}
	}
	var ids [3][]int32
	for v, k := range part { // in ascending order
		ids[k] = append(ids[k], int32(v))
	}
	return map[string][]int32{"train": ids[0], "val": ids[1], "test": ids[2]}
}
