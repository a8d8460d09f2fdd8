package datasets

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/parallel"
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
func RMAT(o RMATOptions) (*dataset.Dataset, error) { return rmat(o.defaults(), 0, nil) }

// rmat generates with the given options; zeros mean zero.
func rmat(o RMATOptions, threads int, m *meter) (*dataset.Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	nodes, key := 1<<o.Scale, o.Seed^rmatKey
	if err := generatorRoom("rmat", nodes, m.inMemory(o.Features), float64(o.edges())); err != nil {
		return nil, err
	}
	p := plant{PlantedDraw: graphops.PlantedDraw{Nodes: nodes, Classes: o.Classes, Features: o.Features, Noise: o.Noise, Key: key, Threads: threads}, meter: m}
	p.expect(int(o.edges()))
	src, dst, number := graphops.DrawRMAT(graphops.RMATDraw{
		Scale: o.Scale, Edges: int(o.edges()), A: o.A, B: o.B, C: o.C, Key: key, Threads: threads,
		Progress: func(edges int) bool { return m.add(drawWork * edges) },
	})
	g, err := p.build(nodes, src, dst)
	if err != nil {
		return nil, err
	}
	d := &dataset.Dataset{
		Graph: g.RemoveSelfLoops(threads),
		Meta: dataset.Metadata{
			Name: "rmat", NumClasses: o.Classes, Undirected: true, Seed: o.Seed,
			Source: fmt.Sprintf("generated by rmat?scale=%d&degree=%v&a=%v&b=%v&c=%v&features=%d&classes=%d&noise=%v&seed=%d",
				o.Scale, o.Degree, o.A, o.B, o.C, o.Features, o.Classes, o.Noise, o.Seed),
			Licence:  "CC0-1.0",
			Citation: "D. Chakrabarti, Y. Zhan, C. Faloutsos, R-MAT: a recursive model for graph mining, SDM 2004, doi:10.1137/1.9781611972740.43",
		},
	}
	if o.Classes > 0 {
		d.Labels = make([]int32, nodes)
		parallel.For(threads, nodes, 1<<10, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				d.Labels[number(uint32(i))] = int32(uint64(i) * uint64(o.Classes) >> o.Scale)
			}
		})
		p.Class = d.Labels
	} else { // only noise, for a class that marks no column
		p.Classes, p.Class = o.Features+1, make([]int32, nodes)
		for v := range p.Class {
			p.Class[v] = int32(o.Features)
		}
	}
	if o.Features > 0 {
		d.Features = p.features()
	}
	if err := m.err(); err != nil {
		return nil, err
	}
	d.Splits = p.DrawSplits()
	d.Describe()
	return d, nil
}
