package onnx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
)

// The names of inputs that all layers share.
const (
	inputFeatures = "x"
	inputRow      = "row"
	inputType     = "node_type"
	inputDegree   = "degree"
	inputInDegree = "in_degree"
	inputLoop     = "loop_weight"
	inputGraph    = "graph"
	inputGraphs   = "num_graphs"
	inputOwn      = "graph_features"
)

// trial is a made-up batch of a recording: its numbers of nodes differ from one another, and so do its edges from those of another
// trial. There are destinations without in-edges, self-loops and parallel edges; in a graph with types every block has all of them.
type trial struct {
	dense    bool
	sets     []*nodeSet // of the layers' sources, and of the last one's destinations
	blocks   []*graphops.Block
	degrees  graphops.Degrees
	offsets  []int32   // of graphs
	own      []float32 // their features
	perBlock []*graphops.EdgeFeatures
	x        []float32
	rng      *rand.Rand
}

// trialDegrees are degrees of nodes, by their ids.
type trialDegrees struct {
	seed     uint64
	weighted bool
}

func (d *trialDegrees) of(v int32, salt uint64) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed+salt, uint64(v)))
}

// InDegree implements [graphops.Degrees].
func (d *trialDegrees) InDegree(v int32) int { return 3 + d.of(v, 1).IntN(50) }

// LoopedDegree implements [graphops.Degrees].
func (d *trialDegrees) LoopedDegree(v int32) float32 {
	if d.weighted {
		return 1 + 20*d.of(v, 2).Float32()
	}
	return float32(d.InDegree(v) + 1)
}

// SelfLoop implements [graphops.Degrees].
func (d *trialDegrees) SelfLoop(v int32) (float32, bool) {
	r := d.of(v, 3)
	return 0.5 + r.Float32(), d.weighted && r.IntN(2) == 0
}

// newTrial makes a batch of as many blocks as a subject needs. That of an even seed has more nodes in each set, and more edges, than that of an odd one.
func newTrial(seed uint64, s *subject, o *Options) (*trial, error) {
	t := &trial{dense: seed%2 == 0, rng: rand.New(rand.NewPCG(seed, 7)), degrees: &trialDegrees{seed, o.EdgeWeights}, sets: make([]*nodeSet, s.blocks+1)}
	if s.graphs {
		t.ofGraphs(o)
		return t, nil
	}
	layers, types := s.blocks, 1
	var starts []int
	if o.Schema != nil {
		types, starts = len(o.Schema.Nodes), o.Schema.Starts()
		for i, n := range o.Schema.Nodes {
			if n.Count < 1 {
				return nil, fmt.Errorf("onnx: the graph has no nodes of type %s, and every type of the network needs one to record it; give a Schema with at least one node of each type", o.Schema.Nodes[i].Name)
			}
		}
	}
	var kinds, ids []int32
	more := func(least, span int) {
		var fresh []int32
		for k := range int32(types) {
			for range least + t.rng.IntN(span) {
				fresh = append(fresh, k)
			}
		}
		t.rng.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		for types > 1 && slices.IsSorted(fresh) {
			t.rng.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		}
		for _, k := range fresh {
			id := int32(len(ids))
			if o.Schema != nil {
				id = int32(starts[k] + t.rng.IntN(o.Schema.Nodes[k].Count))
			}
			kinds, ids = append(kinds, k), append(ids, id)
		}
	}
	for k := layers; k >= 0; k-- {
		least := 2
		if types == 1 {
			least = 5
		}
		if k == layers {
			if least++; seed%2 == 0 {
				least += 8
			}
		}
		more(least, 7)
		s := &nodeSet{n: len(ids)}
		if o.Schema != nil {
			s.types = slices.Clone(kinds)
			s.groups = newGroups(s.types, types)
		}
		t.sets[k] = s
	}
	for k := range layers {
		t.blocks = append(t.blocks, t.block(k, layers, ids, o))
	}
	t.x = make([]float32, len(ids)*o.In)
	for i := range t.x {
		t.x[i] = t.rng.Float32()
	}
	return t, nil
}

// block makes the edges between the sets k and k+1.
func (t *trial) block(k, layers int, ids []int32, o *Options) *graphops.Block {
	from, to := t.sets[k], t.sets[k+1]
	var list []edge
	of := func(s *nodeSet, kind int) (rows []int32) {
		for i := range int32(s.n) {
			if s.types == nil || int(s.types[i]) == kind {
				rows = append(rows, i)
			}
		}
		return rows
	}
	relations, ends := 1, func(int) (int, int) { return 0, 0 }
	if o.Schema != nil {
		relations, ends = len(o.Schema.Relations), o.Schema.Ends
	}
	for r := range relations {
		a, b := ends(r)
		src, dst := of(from, a), of(to, b)
		for i, d := range dst {
			n := t.rng.IntN(5)
			if t.dense {
				n = t.rng.IntN(9)
			}
			switch {
			case i == 0 && len(dst) > 1:
				n = 0
			case i >= len(dst)-2:
				n = 3
			}
			first := t.rng.IntN(len(src))
			for j := range n {
				e := edge{src[t.rng.IntN(len(src))], d, uint16(r)}
				switch {
				case i == len(dst)-1: // so that a relation has edges from several sources
					e.src = src[(first+j)%len(src)]
				case a == b && t.rng.IntN(4) == 0:
					e.src = d
				}
				list = append(list, e)
				if j == 0 && t.rng.IntN(3) == 0 {
					list = append(list, e) // a parallel edge
				}
			}
		}
	}
	return t.made(list, from.n, to.n, layers-1-k, ids[:from.n], o)
}

// edge is an edge of a block.
type edge struct {
	src, dst int32
	kind     uint16
}

// made makes a block of edges.
func (t *trial) made(list []edge, sources, destinations, level int, ids []int32, o *Options) *graphops.Block {
	t.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	slices.SortStableFunc(list, func(a, b edge) int { return int(a.dst) - int(b.dst) })
	h := graphops.HostBlock{
		NumDst: destinations, NumSrc: sources, Level: level, SrcIDs: ids, Degrees: t.degrees,
		Indptr: make([]int64, destinations+1), Indices: []int32{}, EdgePos: []int64{},
	}
	if o.Slice {
		h.SliceOf = sources
	}
	if o.Schema != nil {
		h.Edges.Types = []uint16{}
	}
	for i, e := range list {
		h.Indptr[e.dst+1]++
		h.Indices, h.EdgePos = append(h.Indices, e.src), append(h.EdgePos, int64(i))
		if o.Schema != nil {
			h.Edges.Types = append(h.Edges.Types, e.kind)
		}
		if o.EdgeWeights {
			h.Weights = append(h.Weights, 0.5+t.rng.Float32())
		}
	}
	for d := range destinations {
		h.Indptr[d+1] += h.Indptr[d]
	}
	var x *graphops.EdgeFeatures
	if o.EdgeDim > 0 {
		x = &graphops.EdgeFeatures{Cols: o.EdgeDim, F32: make([]float32, len(list)*o.EdgeDim)}
		for i := range x.F32 {
			x.F32[i] = t.rng.Float32()
		}
		h.Edges.Features = x
	}
	t.perBlock = append(t.perBlock, x)
	return h.Block()
}

func at(name string, layer int) string { return name + "_" + strconv.Itoa(layer) }

// ofGraphs makes a batch of graphs, of which one has no nodes. Degrees are those of its block.
func (t *trial) ofGraphs(o *Options) {
	graphs := 4 + t.rng.IntN(4)
	if t.dense {
		graphs += 5
	}
	t.offsets = []int32{0}
	var list []edge
	var ids []int32
	for g := range graphs {
		lo := int32(len(ids))
		n := 2 + t.rng.Int32N(6)
		if g == 2 {
			n = 0
		}
		for v := lo; v < lo+n; v++ {
			ids = append(ids, v)
			degree := t.rng.IntN(4)
			if t.dense {
				degree = t.rng.IntN(7)
			}
			if v == lo+1 {
				degree = 0
			}
			if t.rng.IntN(4) == 0 {
				list = append(list, edge{src: v, dst: v})
			}
			for range degree {
				if u := lo + t.rng.Int32N(n); u != v { // at most one self-loop
					list = append(list, edge{src: u, dst: v})
				}
			}
		}
		t.offsets = append(t.offsets, lo+n)
	}
	set := &nodeSet{n: len(ids)}
	t.sets = []*nodeSet{set, set}
	d := &blockDegrees{}
	t.degrees = d
	b := t.made(list, set.n, set.n, 0, ids, o)
	d.of = b
	t.blocks = []*graphops.Block{b}
	random := func(n int) (x []float32) {
		for range n {
			x = append(x, t.rng.Float32())
		}
		return x
	}
	t.x, t.own = random(set.n*o.In), random(graphs*o.GraphDim)
}

// blockDegrees are those of a block whose sources are its destinations.
type blockDegrees struct{ of *graphops.Block }

// InDegree implements [graphops.Degrees].
func (d *blockDegrees) InDegree(v int32) int { return d.of.InDegree(int(v)) }

// LoopedDegree implements [graphops.Degrees].
func (d *blockDegrees) LoopedDegree(v int32) float32 {
	sum, loop := 0.0, 1.0
	for e := d.of.Indptr()[v]; e < d.of.Indptr()[v+1]; e++ {
		if w := float64(d.of.Weight(e)); d.of.Indices()[e] == v {
			loop = w
		} else {
			sum += w
		}
	}
	return float32(sum + loop)
}

// SelfLoop implements [graphops.Degrees].
func (d *blockDegrees) SelfLoop(v int32) (weight float32, ok bool) {
	for e := d.of.Indptr()[v]; e < d.of.Indptr()[v+1]; e++ {
		if d.of.Indices()[e] == v {
			weight, ok = d.of.Weight(e), true
		}
	}
	return weight, ok
}
