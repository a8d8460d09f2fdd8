package dataset

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// PlantedOptions are the parameters of a planted partition. The zero value makes a small graph
// whose edges help to predict classes.
type PlantedOptions struct {
	// Nodes is the number of nodes; 0 means 8000.
	Nodes int
	// Classes is the number of classes; 0 means 5.
	Classes int
	// Features is the number of features, at least Classes; 0 means 50, or Classes if that is more.
	Features int
	// Degree is the mean number of neighbours, slightly reduced by duplicate edges; 0 means 16.
	Degree float64
	// Homophily is the probability that an edge stays within its class; 0 means 0.62. With
	// 1/Classes the edges would say nothing about classes.
	Homophily float64
	// Noise is the standard deviation of a feature; 0 means 2.3.
	Noise float64
	// Seed is the random seed; 0 is a seed like any other.
	Seed uint64
}

// defaults replaces zeros by the defaults.
func (o PlantedOptions) defaults() PlantedOptions {
	d := PlantedOptions{Nodes: 8000, Classes: 5, Features: max(50, o.Classes), Degree: 16, Homophily: 0.62, Noise: 2.3}
	if o.Nodes != 0 {
		d.Nodes = o.Nodes
	}
	if o.Classes != 0 {
		d.Classes = o.Classes
	}
	if o.Features != 0 {
		d.Features = o.Features
	}
	if o.Degree != 0 {
		d.Degree = o.Degree
	}
	if o.Homophily != 0 {
		d.Homophily = o.Homophily
	}
	if o.Noise != 0 {
		d.Noise = o.Noise
	}
	d.Seed = o.Seed
	return d
}

const maxPlantedFeatures = 1 << 16

// check returns an error for parameters that Planted does not support; the names are those of the
// spec.
func (o PlantedOptions) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("dataset: planted: "+format, args...)
	}
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	switch {
	case o.Classes < 2 || o.Classes > 1<<20:
		return bad("classes is %d; it must lie in [2, %d]", o.Classes, 1<<20)
	case o.Nodes < 10*o.Classes || o.Nodes > math.MaxInt32:
		return bad("nodes is %d; %d classes need at least %d, ten each, and node ids end at %d", o.Nodes, o.Classes, 10*o.Classes, math.MaxInt32)
	case o.Features < o.Classes || o.Features > maxPlantedFeatures:
		return bad("features is %d; it must lie in [classes, %d], here [%d, %d]", o.Features, maxPlantedFeatures, o.Classes, maxPlantedFeatures)
	case !finite(o.Degree) || o.Degree < 0 || o.Degree > float64(o.Nodes-1) || o.Degree > 10000:
		return bad("degree is %v; it must lie in [0, %d]", o.Degree, min(o.Nodes-1, 10000))
	case !finite(o.Homophily) || o.Homophily < 0 || o.Homophily > 1:
		return bad("homophily is %v; it is a probability, so it must lie in [0, 1]", o.Homophily)
	case !finite(o.Noise) || o.Noise < 0 || o.Noise > 1e6:
		return bad("noise is %v; it is a standard deviation and must lie in [0, 1e6]", o.Noise)
	}
	return nil
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

// plantedKey makes the generator's draws independent of those of a run that trains on the dataset
// with the same seed.
const plantedKey = 0x706c616e74656421

// Planted generates a planted partition: nodes in classes of equal size, edges mostly within a
// class, and features so noisy that a node's own features reveal little about its class, while the
// mean over its neighbours reveals much. With the defaults the best possible classifier of single
// nodes is right in 62 cases of 100, a two-layer perceptron trained on them in 57 to 61, and a
// two-layer GraphSAGE with mean aggregation in 95.
//
//	x_v[j] = [j mod classes = class(v)] + noise · z_vj
//
// where z is the sum of four uniform integers, scaled to variance 1, which is close to normal.
// Every node v starts k_v edges, with k_v uniform on [0, degree] and rounded at random; each ends,
// with probability homophily, at another node of v's class and otherwise at a node of another
// class, uniformly. Edges are undirected and kept once. A random half of the nodes is the split
// "train"; "val" and "test" get a quarter each.
//
// The result depends only on the options, bit for bit, not on the number of threads or the
// processor. It returns an error for options out of range. Cost: one second for a million nodes
// with the default degree on two cores, and 4·nodes·features bytes for the features.
//
// The model is the stochastic block model of P. W. Holland, K. B. Laskey and S. Leinhardt, Social
// Networks 5 (1983), doi:10.1016/0378-8733(83)90021-7, with Gaussian features.
func Planted(o PlantedOptions) (*Dataset, error) { return planted(o.defaults(), 0, nil) }

// planted generates with the given options; zeros mean zero.
func planted(o PlantedOptions, threads int, m *meter) (*Dataset, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := generatorRoom("planted", o.Nodes, o.Features, float64(o.Nodes)*o.Degree/2); err != nil {
		return nil, err
	}
	p := plant{PlantedOptions: o, key: o.Seed ^ plantedKey, threads: threads, meter: m}
	p.assign()
	src, dst := p.edges()
	g, err := p.build(o.Nodes, src, dst)
	if err != nil {
		return nil, err
	}
	x := p.features()
	if err := m.err(); err != nil {
		return nil, err
	}
	d := &Dataset{
		Graph: g, Features: x, Labels: p.class, Splits: p.splits(),
		Meta: Metadata{
			Name: "planted", NumClasses: o.Classes, Undirected: true,
			Source: fmt.Sprintf("generated by planted?nodes=%d&classes=%d&features=%d&degree=%v&homophily=%v&noise=%v&seed=%d",
				o.Nodes, o.Classes, o.Features, o.Degree, o.Homophily, o.Noise, o.Seed),
			Licence:  "CC0-1.0",
			Citation: "P. W. Holland, K. B. Laskey, S. Leinhardt, Stochastic blockmodels: first steps, Social Networks 5, 1983, doi:10.1016/0378-8733(83)90021-7",
		},
	}
	d.fillMeta()
	return d, nil
}

// generatorRoom returns an error if there is not enough memory to generate a dataset: nodes with
// features, a label and an offset each, and edges that are drawn once and kept in both directions.
func generatorRoom(name string, nodes, features int, drawn float64) error {
	need := float64(nodes)*(4*float64(features)+24) + 24*drawn
	if err := machine.Room(fmt.Sprintf("%d nodes of %d features with %.0f edges", nodes, features, 2*drawn), need); err != nil {
		return fmt.Errorf("dataset: %s: %w; take fewer nodes, features or neighbours", name, err)
	}
	return nil
}

type plant struct {
	PlantedOptions
	key     uint64
	threads int
	meter   *meter
	// The node at place i of order has class i mod Classes, so i / Classes numbers the members of a
	// class.
	order, place []int32
	class        []int32
}

// Costs of a generator's steps, in units of the time to draw a feature: drawing an edge, and
// building the graph from it.
const (
	drawWork  = 4
	buildWork = graphops.BuildPasses
)

// expect sets the amount of work for the given number of edges.
func (p *plant) expect(edges int) {
	p.meter.expect((drawWork+buildWork)*int64(edges) + int64(p.Nodes)*int64(p.Features))
}

// build returns the graph of the edges and their reverses.
func (p *plant) build(nodes int, src, dst []int32) (*graphops.Graph, error) {
	if err := p.meter.err(); err != nil {
		return nil, err
	}
	return graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{
		Undirected: true, Threads: p.threads, Progress: func(edges int) { p.meter.add(edges) },
	})
}

func (p *plant) stream(id, site int) philox.Stream {
	return philox.NewStream(p.key, int64(id), 0, philox.C3(philox.User, site, 0))
}

// shuffled returns a random order of the nodes (Fisher and Yates).
func (p *plant) shuffled(site int) []int32 {
	order := make([]int32, p.Nodes)
	for i := range order {
		order[i] = int32(i)
	}
	philox.Permute(p.key, 0, philox.C3(philox.User, site, 0), order)
	return order
}

func (p *plant) assign() {
	p.order = p.shuffled(plantedClass)
	p.place = make([]int32, p.Nodes)
	p.class = make([]int32, p.Nodes)
	for i, v := range p.order {
		p.place[v] = int32(i)
		p.class[v] = int32(i % p.Classes)
	}
}

// members returns the size of class c.
func (p *plant) members(c int) int { return (p.Nodes - c + p.Classes - 1) / p.Classes }

func (p *plant) member(c, i int) int32 { return p.order[i*p.Classes+c] }

// plantedGrain is the number of nodes in a chunk.
const plantedGrain = 1 << 10

func (p *plant) edges() (src, dst []int32) {
	starts := make([]int64, p.Nodes+1)
	parallel.For(p.threads, p.Nodes, plantedGrain, func(lo, hi int) {
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
	p.expect(len(src))
	parallel.For(p.threads, p.Nodes, plantedGrain, func(lo, hi int) {
		if !p.meter.add(drawWork * int(starts[hi]-starts[lo])) {
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
func (p *plant) neighbour(v int, u *philox.Stream) int32 {
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

func (p *plant) features() *Matrix {
	x := &Matrix{Rows: p.Nodes, Cols: p.Features, F32: make([]float32, p.Nodes*p.Features)}
	// The sum of four uniform integers on [0, 2^16) has the variance below. The operations after it
	// round one by one (converting the product prevents a fused multiply-add), so the result is the
	// same on every processor.
	scale := p.Noise / math.Sqrt(4*(1<<32-1)/12.0)
	normal := func(a, b uint32) float64 {
		return float64(float64(int32(a&0xffff+a>>16+b&0xffff+b>>16)-2*0xffff) * scale)
	}
	parallel.For(p.threads, p.Nodes, plantedGrain, func(lo, hi int) {
		if !p.meter.add((hi - lo) * p.Features) {
			return
		}
		for v := lo; v < hi; v++ {
			u := p.stream(v, plantedFeature)
			row, own := x.Row(v), int(p.class[v])
			for j := range row {
				z := normal(u.Next(), u.Next())
				if j%p.Classes == own {
					z++
				}
				row[j] = float32(z)
			}
		}
	})
	return x
}

func (p *plant) splits() map[string][]int32 {
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
