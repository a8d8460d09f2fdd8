package dataset

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// RMATOptions are the parameters of an R-MAT graph. The zero value makes a graph of 65,536 nodes.
type RMATOptions struct {
	// Scale determines the number of nodes, 2^Scale; 0 means 16.
	Scale int
	// Degree is the mean number of neighbours before duplicate edges and self-loops are removed (at
	// scale 20 one edge in 25); 0 means 16. It is twice the edge factor of Graph500.
	Degree float64
	// A, B and C are the probabilities of three quadrants: source and destination both in the lower
	// half, only the source, only the destination; neither has the remaining probability. If all
	// three are zero, 0 means 0.57, 0.19 and 0.19.
	A, B, C float64
	// Features is the number of features; 0 means 64, or Classes if that is more; a negative number
	// means none.
	Features int
	// Classes is the number of classes; 0 means 16, or the number of nodes if that is less; a
	// negative number means none.
	Classes int
	// Noise is the standard deviation of a feature; 0 means 2.3.
	Noise float64
	// Seed is the random seed; 0 is a seed like any other.
	Seed uint64
}

// defaults replaces zeros by the defaults.
func (o RMATOptions) defaults() RMATOptions {
	if o.Scale == 0 {
		o.Scale = 16
	}
	if o.Degree == 0 {
		o.Degree = 16
	}
	if o.A == 0 && o.B == 0 && o.C == 0 {
		o.A, o.B, o.C = 0.57, 0.19, 0.19
	}
	if o.Classes == 0 {
		o.Classes = 16
		if o.Scale > 0 && o.Scale < 4 {
			o.Classes = 1 << o.Scale
		}
	}
	if o.Features == 0 {
		o.Features = max(64, o.Classes)
	}
	if o.Noise == 0 {
		o.Noise = 2.3
	}
	o.Features, o.Classes = max(0, o.Features), max(0, o.Classes)
	return o
}

const (
	maxRMATScale = 30
	maxRMATEdges = 1 << 32 // which take 32 GiB
)

// check returns an error for parameters that RMAT does not support; the names are those of the
// spec.
func (o RMATOptions) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("dataset: rmat: "+format, args...)
	}
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	if o.Scale < 1 || o.Scale > maxRMATScale {
		return bad("scale is %d; it must lie in [1, %d], for 2^scale nodes", o.Scale, maxRMATScale)
	}
	nodes := 1 << o.Scale
	for _, p := range []struct {
		name  string
		value float64
	}{{"a", o.A}, {"b", o.B}, {"c", o.C}, {"a + b + c", o.A + o.B + o.C}} {
		if !finite(p.value) || p.value < 0 || p.value > 1+1e-9 { // a sum of decimal fractions may exceed 1 by rounding
			return bad("%s is %v; it is a probability, so it must lie in [0, 1]", p.name, p.value)
		}
	}
	switch {
	case !finite(o.Degree) || o.Degree < 0 || o.Degree > 10000:
		return bad("degree is %v; it must lie in [0, 10000]", o.Degree)
	case o.edges() > maxRMATEdges:
		return bad("%d nodes with %v neighbours have %d edges; at most %d can be generated", nodes, o.Degree, o.edges(), int64(maxRMATEdges))
	case o.Classes < 0 || o.Classes > nodes || o.Classes > 1<<20:
		return bad("classes is %d; it must lie in [0, %d]; 0 means none", o.Classes, min(nodes, 1<<20))
	case o.Features != 0 && (o.Features < o.Classes || o.Features > maxPlantedFeatures):
		return bad("features is %d; it must be 0, for none, or lie in [classes, %d], here [%d, %d]", o.Features, maxPlantedFeatures, max(1, o.Classes), maxPlantedFeatures)
	case !finite(o.Noise) || o.Noise < 0 || o.Noise > 1e6:
		return bad("noise is %v; it is a standard deviation and must lie in [0, 1e6]", o.Noise)
	}
	return nil
}

// edges returns the number of edges to draw.
func (o RMATOptions) edges() int64 {
	return int64(math.Round(float64(float64(int64(1)<<o.Scale)*o.Degree) / 2))
}

// rmatKey makes the generator's draws independent of those of other generators and of a run with
// the same seed.
const rmatKey = 0x726d61742d656467

// Purposes of the draws, in addition to those of Planted.
const (
	rmatEdge = 64 + iota
	rmatLabel
)

// RMAT generates an undirected graph with skewed degrees and nested communities, as in the web and
// in social networks. Each of 2^Scale·Degree/2 edges falls into one quadrant of the adjacency
// matrix with probabilities A, B, C and 1-A-B-C, into one quadrant of that quadrant, and so on
// Scale times. Duplicate edges and self-loops are removed, and a fixed bijection renumbers the
// nodes, so that a node's number reveals nothing about its degree. Many nodes have no edge: at
// scale 20 with the defaults nearly half.
//
// The classes are the Classes parts of equal size that the recursion makes: with the default
// probabilities most edges stay within a half, fewer within a quarter. Features are those of
// [Planted], x_v[j] = [j mod classes = class(v)] + noise · z. A random half of the nodes is the
// split "train"; "val" and "test" get a quarter each.
//
// The result depends only on the options, bit for bit, not on the number of threads or the
// processor. It returns an error for options out of range. Cost: two seconds for scale 20 (16
// million directed edges, 64 features) on two cores; 24 bytes of temporary memory per drawn edge.
//
// Source: D. Chakrabarti, Y. Zhan, C. Faloutsos, R-MAT: a recursive model for graph mining, SDM
// 2004, doi:10.1137/1.9781611972740.43; the default probabilities and the renumbering are those of
// Graph500.
func RMAT(o RMATOptions) (*Dataset, error) { return rmat(o.defaults(), 0, nil) }

// rmat generates with the given options; zeros mean zero.
func rmat(o RMATOptions, threads int, m *meter) (*Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	nodes, key := 1<<o.Scale, o.Seed^rmatKey
	if err := generatorRoom("rmat", nodes, o.Features, float64(o.edges())); err != nil {
		return nil, err
	}
	number := newRenumbering(key, o.Scale)
	p := plant{PlantedOptions: PlantedOptions{Nodes: nodes, Classes: o.Classes, Features: o.Features, Noise: o.Noise}, key: key, threads: threads, meter: m}
	p.expect(int(o.edges()))
	src, dst := o.draw(key, number, threads, m)
	g, err := p.build(nodes, src, dst)
	if err != nil {
		return nil, err
	}
	d := &Dataset{
		Graph: g.RemoveSelfLoops(threads),
		Meta: Metadata{
			Name: "rmat", NumClasses: o.Classes, Undirected: true, Seed: o.Seed,
			Source: fmt.Sprintf("generated by rmat?scale=%d&degree=%v&a=%v&b=%v&c=%v&features=%d&classes=%d&noise=%v&seed=%d",
				o.Scale, o.Degree, o.A, o.B, o.C, o.Features, o.Classes, o.Noise, o.Seed),
			Licence:  "CC0-1.0",
			Citation: "D. Chakrabarti, Y. Zhan, C. Faloutsos, R-MAT: a recursive model for graph mining, SDM 2004, doi:10.1137/1.9781611972740.43",
		},
	}
	if o.Classes > 0 {
		d.Labels = make([]int32, nodes)
		parallel.For(threads, nodes, plantedGrain, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				d.Labels[number.of(uint32(i))] = int32(uint64(i) * uint64(o.Classes) >> o.Scale)
			}
		})
		p.class = d.Labels
	} else { // only noise, for a class that marks no column
		p.Classes, p.class = o.Features+1, make([]int32, nodes)
		for v := range p.class {
			p.class[v] = int32(o.Features)
		}
	}
	if o.Features > 0 {
		d.Features = p.features()
	}
	if err := m.err(); err != nil {
		return nil, err
	}
	d.Splits = p.splits()
	d.fillMeta()
	return d, nil
}

// draw returns the drawn edges, including self-loops and duplicates.
func (o RMATOptions) draw(key uint64, number renumbering, threads int, m *meter) (src, dst []int32) {
	n := int(o.edges())
	src, dst = make([]int32, n), make([]int32, n)
	// Bounds of the quadrants on [0, 2^32): a draw below the first is in A.
	bound := func(p float64) uint64 { return uint64(math.Round(min(p, 1) * (1 << 32))) }
	ab, abc := bound(o.A+o.B), bound(o.A+o.B+o.C)
	a := min(bound(o.A), ab)
	parallel.For(threads, n, 1<<14, func(lo, hi int) {
		if !m.add(drawWork * (hi - lo)) {
			return
		}
		for e := lo; e < hi; e++ {
			c := philox.Counter(int64(e), 0, philox.C3(philox.User, rmatEdge, 0))
			var u, v uint32
			for level := 0; level < o.Scale; level += 4 {
				draws := philox.Block(key, c)
				for _, r := range draws[:min(4, o.Scale-level)] {
					x := uint64(r)
					// Without branches, which would be mispredicted half the time: the
					// destination's bit is 1 in B and D, the source's in C and D.
					inA, inAB, inABC := (x-a)>>63, (x-ab)>>63, (x-abc)>>63
					u = u<<1 | uint32(inAB^1)
					v = v<<1 | uint32((inA^inAB)|(inABC^1))
				}
				c[1]++ // moves to the next block of draws
			}
			src[e], dst[e] = int32(number.of(u)), int32(number.of(v))
		}
	})
	return src, dst
}

// renumbering is a bijection of [0, 2^scale).
type renumbering struct {
	shift int
	mask  uint32
	add   [3]uint32
	mul   [3]uint32
}

func newRenumbering(key uint64, scale int) renumbering {
	r := renumbering{shift: (scale + 1) / 2, mask: 1<<scale - 1}
	u := philox.NewStream(key, 0, 0, philox.C3(philox.User, rmatLabel, 0))
	for i := range r.add {
		r.add[i], r.mul[i] = u.Next(), u.Next()|1
	}
	return r
}

// of adds, multiplies by an odd number and folds the high half onto the low one; each of these
// steps can be inverted modulo 2^scale.
func (r *renumbering) of(v uint32) uint32 {
	for i := range r.add {
		v = (v + r.add[i]) * r.mul[i] & r.mask
		v ^= v >> r.shift
	}
	return v
}
