package sample

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
)

// Induced makes batches of the subgraphs that seeds induce: the seeds are all rows of a batch, and its edges are those between
// them. One block serves every layer, as the edges are the same at each. It draws nothing, so an epoch's batches depend on the
// seeds alone.
//
// Seeds that are whole graphs of a dataset of many give the disjoint union of these graphs, exactly as they are (the batches of
// PyG's DataLoader). Seeds that are clusters of one graph give the batches of Cluster-GCN.
//
// Source: W.-L. Chiang, X. Liu, S. Si et al., "Cluster-GCN: an efficient algorithm for training deep and large graph
// convolutional networks", KDD 2019, DOI 10.1145/3292500.3330925.
type Induced struct {
	g       *graphops.Graph
	hops    int
	threads int
	turned  bool // the block's transpose is made with it
	runs    []run
	sorted  []run

	mu   sync.Mutex
	free []*inducedMemory
}

// run is a range of successive nodes that are successive seeds.
type run struct {
	first, end int32 // nodes
	row        int32 // of the first
}

type inducedMemory struct {
	ids   []int32
	edges edges
	block graphops.Block
	all   []*graphops.Block
}

// NewInduced returns an Induced over g. Of c it reads Hops, Threads, Transpose and TransposeInput; it returns an error for a
// missing graph, a missing number of hops, a picker and disjoint trees. Edges of weight 0 are left out, as by [New].
func NewInduced(g *graphops.Graph, c Config) (*Induced, error) {
	switch {
	case g == nil || len(g.Indptr) == 0:
		return nil, errors.New("sample: the graph is missing: it has no indptr, although even a graph without nodes has one")
	case c.Picker != nil || c.Frontier != nil:
		return nil, errors.New("sample: a subgraph that seeds induce has all edges between them; leave the picker out")
	case c.Disjoint:
		return nil, errors.New("sample: a subgraph that seeds induce has each seed once; leave Disjoint out")
	case c.Hops < 1 || c.Hops > MaxHops:
		return nil, fmt.Errorf("sample: Config.Hops is %d; a batch has a block for each of 1 to %d layers", c.Hops, MaxHops)
	}
	g, _ = g.WithoutZeroWeights()
	return &Induced{g: g, hops: c.Hops, threads: c.Threads, turned: c.TransposeInput || c.Transpose && c.Hops > 1}, nil
}

// Hops implements [Batcher].
func (s *Induced) Hops() int { return s.hops }

// Sample returns the subgraph that distinct seeds induce. Rows are the seeds in their order; the in-edges of a row have the
// graph's order. It is for one goroutine at a time.
//
// Cost: O(seeds + their in-edges), with sequential reads for seeds that are successive nodes.
func (s *Induced) Sample(epoch, step int, seeds Seeds) (*Batch, error) {
	if err := seeds.Check(s.g.NumNodes()); err != nil {
		return nil, err
	}
	if seeds.Times != nil {
		return nil, errors.New("sample: seeds with times see a graph of their own each, and induce none together; leave the times out")
	}
	if err := s.findRuns(seeds.IDs); err != nil {
		return nil, err
	}
	m := s.memory()
	m.ids = append(m.ids[:0], seeds.IDs...)
	s.fill(m)
	b := &Batch{Epoch: epoch, Step: step, Seeds: m.ids, Blocks: m.all, Back: func() { s.keep(m) }}
	m.block.SetHost(graphops.HostBlock{
		NumDst: len(m.ids), NumSrc: len(m.ids), Graph: s.g, SrcIDs: m.ids,
		Indptr: m.edges.indptr, Indices: m.edges.indices, EdgePos: m.edges.edgePos, Weights: m.edges.weights,
	})
	if s.turned {
		m.block.Transpose(&m.edges.transposed, s.threads)
	}
	return b, nil
}

// findRuns divides seeds into runs of successive nodes.
func (s *Induced) findRuns(ids []int32) error {
	s.runs = s.runs[:0]
	for row, v := range ids {
		if n := len(s.runs); n > 0 && s.runs[n-1].end == v {
			s.runs[n-1].end++
			continue
		}
		s.runs = append(s.runs, run{v, v + 1, int32(row)})
	}
	s.sorted = append(s.sorted[:0], s.runs...)
	slices.SortFunc(s.sorted, func(a, b run) int { return int(a.first) - int(b.first) })
	for i, r := range s.sorted {
		if i > 0 && s.sorted[i-1].end > r.first {
			return fmt.Errorf("sample: node %d is twice among the seeds; seeds are distinct", r.first)
		}
	}
	return nil
}

// rowOf returns the row of a node, -1 if it is no seed. hint is the run in which it probably is.
func (s *Induced) rowOf(v int32, hint run) int32 {
	if v >= hint.first && v < hint.end {
		return hint.row + v - hint.first
	}
	at, found := slices.BinarySearchFunc(s.sorted, v, func(r run, v int32) int { return int(r.first) - int(v) })
	if !found {
		at--
	}
	if at < 0 || v >= s.sorted[at].end {
		return -1
	}
	return s.sorted[at].row + v - s.sorted[at].first
}

// grainOfRuns is the number of runs that a thread takes at a time.
const grainOfRuns = 64

// fill makes the arrays of the block of the seeds in s.runs.
func (s *Induced) fill(m *inducedMemory) {
	e, g := &m.edges, s.g
	e.indptr = resize(e.indptr, len(m.ids)+1)
	e.indptr[0] = 0
	parallel.For(s.threads, len(s.runs), grainOfRuns, func(lo, hi int) {
		for _, r := range s.runs[lo:hi] {
			for v := r.first; v < r.end; v++ {
				n := int64(0)
				for _, u := range g.Indices[g.Indptr[v]:g.Indptr[v+1]] {
					if s.rowOf(u, r) >= 0 {
						n++
					}
				}
				e.indptr[r.row+v-r.first+1] = n
			}
		}
	})
	for i := range m.ids {
		e.indptr[i+1] += e.indptr[i]
	}
	n := int(e.indptr[len(m.ids)])
	e.indices, e.edgePos = resize(e.indices, n), resize(e.edgePos, n)
	if g.EdgeWeights != nil {
		e.weights = resize(e.weights, n)
	}
	parallel.For(s.threads, len(s.runs), grainOfRuns, func(lo, hi int) {
		for _, r := range s.runs[lo:hi] {
			at := e.indptr[r.row]
			for p := g.Indptr[r.first]; p < g.Indptr[r.end]; p++ {
				row := s.rowOf(g.Indices[p], r)
				if row < 0 {
					continue
				}
				e.indices[at], e.edgePos[at] = row, p
				if g.EdgeWeights != nil {
					e.weights[at] = g.EdgeWeights[p]
				}
				at++
			}
		}
	})
}

func (s *Induced) memory() *inducedMemory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		m := s.free[n-1]
		s.free = s.free[:n-1]
		return m
	}
	m := &inducedMemory{ids: []int32{}} // nil ids would mean that row s is node s
	for range s.hops {
		m.all = append(m.all, &m.block)
	}
	return m
}

func (s *Induced) keep(m *inducedMemory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, m)
}
