// Package budget samples by budgets of nodes: each step adds a fixed number of nodes of each type at each hop, whatever
// the degrees are, as the heterogeneous graph transformer is trained.
//
// # Basics
//
// Importing the package declares the sampler "hgt", which gnb.TrainOptions.Sampler and the flag --sampler choose. Fanouts
// are then the numbers of nodes of each type that a step adds at each hop:
//
//	import _ "github.com/graphnb/graphnb/gnb/budget"
//
//	run, err := gnb.Train(ctx, ds, gnb.HGT, gnb.TrainOptions{SamplerOptions: gnb.SamplerOptions{Sampler: "hgt", Fanouts: []int{512, 512}}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}})
//
// In a loop of one's own, gnb.Loader.Sampler is a *[Sampler], which also has numbers for single types.
//
// # Determinism
//
// The nodes of a step are a function of (seed, epoch, step) and of the seeds of all workers: each worker computes the
// same nodes. Batches, and the digest of sampling, therefore depend neither on workers nor on threads.
//
// # Caveats
//
// Each worker repeats the choice of the nodes for the whole step, so that part of sampling does not become faster with
// workers; use few more nodes than the network needs. Cooperative batches, graphs whose edges are divided among workers,
// and links are refused.
package budget

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// Name is the name of the sampler in options.
var Name = gnb.DeclareSampler("hgt", func() *Sampler { return &Sampler{} })

var _ sample.StepPicker = (*Sampler)(nil)

// Sampler is a [sample.StepPicker] that chooses the nodes of a step by HGSampling:
//
//	N = seeds;  B = {};  add(seeds)
//	for each hop l:
//	    for each type t: S_t = Nodes[l] of the nodes in B of type t, without replacement, with probability ∝ B[s]²
//	    N = N ∪ S;  B = B \ S;  add(S)
//	add(V): for each node v of V, each relation r and each in-edge s → v of r with s not in N: B[s] += 1 / in-degree of v in r
//
// A node of a batch then takes all its in-edges whose sources are in N, at each hop. So a step has, of each type, its
// seeds and at most the sum of Nodes more, and exactly so many if B always has enough nodes. Nodes of a
// type that many chosen nodes lead from are likely to be chosen, which keeps the batch dense. A graph without types has
// one type.
//
// All types of a hop choose from the same B, as in PyG's HGTLoader; the paper's pseudocode lets a type see what the types
// before it added. PyG also reads at most 520 in-edges of a node, and here all count.
//
// Draws are by node: the chosen of a type are those with the smallest -ln(u)/B², where u has 52 random bits of the node's
// own (draws 2l and 2l+1 of [sample.Hop] at hop 0), and of equal ones those with the smaller id. Sums are in float64, in
// ascending order of the nodes v and then of their edges. graphops/sample/testdata/digest.py computes
// the same with NumPy alone.
//
// A Sampler must not change while it is used. Cost of a step, on each worker: the in-edges of all nodes in N but those of
// the last hop, and memory of 4 bytes for each node of the graph.
//
// Source: Z. Hu, Y. Dong, K. Wang, Y. Sun, "Heterogeneous graph transformer", WWW 2020, doi:10.1145/3366423.3380027,
// algorithms 1 and 2. The order of the keys is that of P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with
// a reservoir", Information Processing Letters 97(5), 2006, doi:10.1016/j.ipl.2005.11.003.
type Sampler struct {
	// Nodes are the numbers of nodes of each type, by hop; -1 takes all of B. It must not be empty.
	Nodes []int
	// ByType are the numbers of single types, by name, with as many hops as Nodes; nil means that all types have Nodes.
	ByType map[string][]int `json:",omitempty"`
}

// Hops is the number of hops.
func (s *Sampler) Hops() int { return len(s.Nodes) }

// String returns the sampler's name in options.
func (*Sampler) String() string { return Name }

// DefaultFanout is the number of nodes of each type and hop if options name none: that of PyG's example.
func (*Sampler) DefaultFanout() int { return 512 }

// OfFanouts returns the sampler with these numbers of nodes, which gnb.TrainOptions.Fanouts are.
func (*Sampler) OfFanouts(fanouts []int) sample.Picker { return &Sampler{Nodes: fanouts} }

// Pick implements [sample.Picker]. It panics: ForStep returns the picker of a step.
func (*Sampler) Pick(*gnb.Hop, int32, []int32, []int32) []int32 {
	panic(errors.New("a budget.Sampler picks for whole steps; take it as the sampler of a gnb.Loader or of package graphops/sample"))
}

// ForStep implements [sample.StepPicker].
func (s *Sampler) ForStep(h *gnb.Hop, g *graphops.Graph, seeds []int32, last sample.Picker) (sample.Picker, error) {
	p, ok := last.(*chosen)
	if !ok {
		p = &chosen{of: s}
		if err := p.open(g); err != nil {
			return nil, err
		}
	}
	p.reset()
	p.choose(h, g, seeds)
	return p, nil
}

// numbers returns the numbers of nodes by type and hop.
func (s *Sampler) numbers(schema *graphops.Schema) ([][]int, error) {
	if len(s.Nodes) == 0 {
		return nil, errors.New("there are no numbers of nodes; set Nodes, one number for each hop")
	}
	if schema == nil {
		if len(s.ByType) > 0 {
			return nil, errors.New("there are numbers of nodes by type, and the graph has no types; leave ByType out")
		}
		schema = &graphops.Schema{Nodes: []graphops.NodeType{{Name: "node"}}}
	}
	all := make([][]int, len(schema.Nodes))
	for t := range all {
		all[t] = s.Nodes
	}
	for _, name := range slices.Sorted(maps.Keys(s.ByType)) {
		t := schema.NodeType(name)
		if t < 0 {
			return nil, fmt.Errorf("there are numbers of nodes of the type %q, which the graph does not have", name)
		}
		if len(s.ByType[name]) != len(s.Nodes) {
			return nil, fmt.Errorf("there are numbers of nodes of the type %q for %d hops, and of the others for %d", name, len(s.ByType[name]), len(s.Nodes))
		}
		all[t] = s.ByType[name]
	}
	for t, list := range all {
		for hop, n := range list {
			if n < -1 {
				return nil, fmt.Errorf("the number of nodes of the type %q at hop %d is %d; it is 0 or more, or -1 for all", schema.Nodes[t].Name, hop, n)
			}
		}
	}
	return all, nil
}

var _ sample.Picker = (*chosen)(nil)

// chosen picks the edges whose sources are among the nodes of a step.
type chosen struct {
	of      *Sampler
	numbers [][]int // of nodes, by type and hop
	starts  []int   // the first node of each type, and the number of nodes
	srcType []int   // of each relation; nil without types

	in    []int32     // the nodes of the step
	slot  []int32     // of each node: its place in its type's budget, counted from 1; -1 in the step; 0 elsewhere
	types []typeNodes // by type

	degrees []int32 // of a node, by relation
}

// typeNodes is the budget of a type.
type typeNodes struct {
	ids  []int32
	sums []float64
	keys []key // scratch
}

type key struct {
	value float64
	id    int32
}

// less reports whether a comes before b.
func (a key) less(b key) bool { return a.value < b.value || a.value == b.value && a.id < b.id }

// open makes the tables of a graph.
func (c *chosen) open(g *graphops.Graph) (err error) {
	if c.numbers, err = c.of.numbers(g.Schema); err != nil {
		return err
	}
	c.slot, c.types, c.starts = make([]int32, g.NumNodes()), make([]typeNodes, len(c.numbers)), []int{0, g.NumNodes()}
	relations := 1
	if s := g.Schema; s != nil {
		c.starts, relations = s.Starts(), len(s.Relations)
		c.srcType = make([]int, relations)
		for r := range c.srcType {
			c.srcType[r], _ = s.Ends(r)
		}
	}
	c.degrees = make([]int32, relations)
	return nil
}

// reset forgets the step before.
func (c *chosen) reset() {
	for _, v := range c.in {
		c.slot[v] = 0
	}
	c.in = c.in[:0]
	for t := range c.types {
		b := &c.types[t]
		for _, v := range b.ids {
			c.slot[v] = 0
		}
		b.ids, b.sums = b.ids[:0], b.sums[:0]
	}
}

// choose chooses the nodes of a step.
func (c *chosen) choose(h *gnb.Hop, g *graphops.Graph, seeds []int32) {
	c.in = append(c.in, seeds...)
	slices.Sort(c.in)
	for _, v := range c.in {
		c.slot[v] = -1
	}
	from := 0
	for hop := range c.of.Nodes {
		for _, v := range c.in[from:] {
			c.add(g, v)
		}
		from = len(c.in)
		for t := range c.types {
			c.draw(h, hop, t)
		}
		slices.Sort(c.in[from:])
	}
}

// add adds the sources of a node's in-edges to the budgets.
func (c *chosen) add(g *graphops.Graph, v int32) {
	lo, hi := g.Indptr[v], g.Indptr[v+1]
	relation := func(int64) uint16 { return 0 }
	if types := g.EdgeTypes; types != nil && c.srcType != nil {
		relation = func(e int64) uint16 { return types[e] }
	}
	for e := lo; e < hi; e++ {
		c.degrees[relation(e)]++
	}
	for e := lo; e < hi; e++ {
		s, r := g.Indices[e], relation(e)
		if c.slot[s] < 0 {
			continue
		}
		t := 0
		if c.srcType != nil {
			t = c.srcType[r]
		}
		b := &c.types[t]
		if c.slot[s] == 0 {
			b.ids, b.sums = append(b.ids, s), append(b.sums, 0)
			c.slot[s] = int32(len(b.ids))
		}
		b.sums[c.slot[s]-1] += 1 / float64(c.degrees[r])
	}
	for e := lo; e < hi; e++ {
		c.degrees[relation(e)] = 0
	}
}

// draw moves nodes of a type from its budget into the step.
func (c *chosen) draw(h *gnb.Hop, hop, t int) {
	b, n := &c.types[t], c.numbers[t][hop]
	if n < 0 || n >= len(b.ids) {
		c.in = append(c.in, b.ids...)
		for _, v := range b.ids {
			c.slot[v] = -1
		}
		b.ids, b.sums = b.ids[:0], b.sums[:0]
		return
	}
	if n == 0 {
		return
	}
	best := b.keys[:0] // a heap of the n smallest keys, the largest first
	for i, v := range b.ids {
		h.At(v)
		for range 2 * hop {
			h.Next()
		}
		high, low := uint64(h.Next()), uint64(h.Next())
		u := (float64(high<<20|low>>12) + 0.5) / (1 << 52)
		k := key{-math.Log(u) / (b.sums[i] * b.sums[i]), v}
		if len(best) < n {
			best = append(best, k)
			up(best)
		} else if k.less(best[0]) {
			best[0] = k
			down(best)
		}
	}
	b.keys = best
	for _, k := range best {
		c.slot[k.id] = -1
		c.in = append(c.in, k.id)
	}
	left := 0
	for i, v := range b.ids {
		if c.slot[v] > 0 {
			b.ids[left], b.sums[left] = v, b.sums[i]
			left++
			c.slot[v] = int32(left)
		}
	}
	b.ids, b.sums = b.ids[:left], b.sums[:left]
}

// up moves the last key of a heap to its place.
func up(heap []key) {
	for i := len(heap) - 1; i > 0; {
		above := (i - 1) / 2
		if !heap[above].less(heap[i]) {
			return
		}
		heap[above], heap[i] = heap[i], heap[above]
		i = above
	}
}

// down moves the first key of a heap to its place.
func down(heap []key) {
	for i := 0; ; {
		largest := i
		for _, below := range []int{2*i + 1, 2*i + 2} {
			if below < len(heap) && heap[largest].less(heap[below]) {
				largest = below
			}
		}
		if largest == i {
			return
		}
		heap[i], heap[largest] = heap[largest], heap[i]
		i = largest
	}
}

// Pick implements [sample.Picker].
func (c *chosen) Pick(_ *gnb.Hop, _ int32, nbrs []int32, out []int32) []int32 {
	for i, u := range nbrs {
		if c.slot[u] < 0 {
			out = append(out, int32(i))
		}
	}
	return out
}
