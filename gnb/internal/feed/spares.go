package feed

import (
	"slices"
	"sync"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// fewRows is the number of rows that one thread copies in less time than another takes to wake up.
const fewRows = 1 << 13

// Memory is the memory of a batch's features and labels.
type Memory struct {
	dense   dataset.Matrix
	table   dataset.Matrix // in memory of a window
	sparse  dataset.Sparse
	labels  []int32
	targets []int8
}

// Sparse gathers rows of sparse features.
func (m *Memory) Sparse(x *dataset.Sparse, ids []int32, threads int) *dataset.Sparse {
	if len(ids) < fewRows {
		threads = 1
	}
	x.Gather(ids, &m.sparse, threads)
	return &m.sparse
}

// Known gathers the labels of nodes of an undivided dataset, and their targets if nodes can have several labels. What the
// dataset has is not nil, also for no nodes.
func (m *Memory) Known(ds *dataset.Dataset, ids []int32) (labels []int32, targets []int8) {
	if ds.Labels != nil {
		m.labels = slices.Grow(m.labels[:0], len(ids))[:len(ids)]
		for i, v := range ids {
			m.labels[i] = ds.Labels[v]
		}
		labels = m.labels
	}
	if y := ds.MultiLabels; y != nil {
		m.targets = slices.Grow(m.targets[:0], len(ids)*y.Cols)
		for _, v := range ids {
			m.targets = append(m.targets, y.Row(int(v))...)
		}
		targets = m.targets
	}
	return labels, targets
}

// AnswersOf returns the labels of all nodes, or the targets of nodes with several labels, in which only
// those of seeds are known.
func AnswersOf(ds *dataset.Dataset, seeds []int32) (labels []int32, targets []int8) {
	switch m := ds.MultiLabels; {
	case m != nil:
		targets = slices.Repeat([]int8{-1}, len(m.Data))
		for _, v := range seeds {
			copy(targets[int(v)*m.Cols:], m.Row(int(v)))
		}
	case ds.Labels != nil:
		labels = slices.Repeat([]int32{-1}, ds.Nodes())
		for _, v := range seeds {
			labels[v] = ds.Labels[v]
		}
	}
	return labels, targets
}

// Spares holds the memories of released batches. Several goroutines may use it.
type Spares struct {
	mu   sync.Mutex
	free []*Memory
}

// Get returns the memory of an earlier batch, or a new one.
func (s *Spares) Get() *Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.free) - 1
	if last < 0 {
		return &Memory{labels: []int32{}, targets: []int8{}}
	}
	m := s.free[last]
	s.free = s.free[:last]
	return m
}

// Put keeps a memory for later batches.
func (s *Spares) Put(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, m)
}
