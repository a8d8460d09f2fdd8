package feed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// Span is a range of ids, those of the nodes of a type.
type Span struct{ Lo, Hi int }

// SpansOf returns the ranges of the types with the given names, in their order.
func SpansOf(s *graphops.Schema, types []string) ([]Span, error) {
	var spans []Span
	for _, name := range types {
		t := -1
		if s != nil {
			t = s.NodeType(name)
		}
		if t < 0 {
			return nil, fmt.Errorf("gnb: the network learns a row for each node of type %q, which the dataset does not have; take the dataset of its run", name)
		}
		lo, hi := s.Range(t)
		spans = append(spans, Span{lo, hi})
	}
	return spans, nil
}

// TypesToLearn returns the types of a dataset whose nodes have no features, or zeros alone, where other types have
// some: those that gnb.TrainOptions.LearnMissing learns a row for. It fails if there are none, and if they cannot be
// told or trained.
func TypesToLearn(ds *dataset.Dataset, embedding, disk bool) ([]string, error) {
	s := ds.Schema()
	switch {
	case embedding:
		return nil, errors.New("gnb: Embedding learns a row for each node of every type, and LearnMissing only for those of types without features; leave one of them out")
	case s == nil:
		return nil, fmt.Errorf("gnb: LearnMissing is for datasets with types of nodes, and %s has none; learn a row for each node instead (Embedding: 64, --embedding 64)", ds.Name())
	case ds.Meta.Parts != nil && !ownWidths(ds):
		return nil, fmt.Errorf("gnb: %s is divided into parts or at servers, and its nodes have features in one matrix, so LearnMissing cannot tell which types have zeros alone; take the undivided dataset, or give types features of their own before you divide it", ds.Name())
	case disk:
		return nil, errors.New("gnb: LearnMissing reads features from memory; leave Features: \"disk\" out")
	}
	var types []string
	for t, n := range s.Nodes {
		lo, hi := s.Range(t)
		if hi > lo && zeros(ds, t, lo, hi) {
			types = append(types, n.Name)
		}
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("gnb: every type of nodes of %s has features, so there is no row to learn; leave LearnMissing out", ds.Name())
	}
	return types, nil
}

// ownWidths reports whether the types had features of their own before all nodes got rows of one width.
func ownWidths(ds *dataset.Dataset) bool {
	return ds.NodeFeatures == nil && slices.ContainsFunc(ds.Meta.NodeTypes, func(n dataset.NodeType) bool { return n.FeatureDim > 0 })
}

// zeros reports whether the features of a type's nodes are zeros alone.
func zeros(ds *dataset.Dataset, t, lo, hi int) bool {
	switch {
	case ds.NodeFeatures != nil:
		return ds.NodeFeatures[t].Cols() == 0
	case ownWidths(ds):
		return ds.Meta.NodeTypes[t].FeatureDim == 0
	}
	if x := ds.SparseFeatures; x != nil {
		return x.Indptr[lo] == x.Indptr[hi]
	}
	x := ds.Features
	row := make([]float32, x.Cols)
	for v := lo; v < hi; v++ {
		x.Gather(row, []int32{int32(v)}, 1)
		if slices.ContainsFunc(row, func(y float32) bool { return y != 0 }) {
			return false
		}
	}
	return true
}

// InputRows are the features of a batch's input nodes: row i of X or Sparse if Gathered, else the rows of their ids.
type InputRows struct {
	X        *dataset.Matrix
	Sparse   *dataset.Sparse // as Gathered says only where X is nil
	Gathered bool
}

// write writes the features of nodes to rows of cols columns, which end in zeros behind narrower ones.
func (r InputRows) write(to []float32, ids []int32, cols, threads int) {
	if r.X != nil && !r.Gathered {
		r.X.Gather(to, ids, threads)
		return
	}
	parallel.For(threads, len(ids), 1+8192/cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := to[i*cols : (i+1)*cols]
			if r.X != nil {
				r.X.Gather(row, []int32{int32(i)}, 1)
				continue
			}
			clear(row)
			at := i
			if !r.Gathered {
				at = int(ids[i])
			}
			columns, values := r.Sparse.Row(at)
			Scatter(row, columns, values)
		}
	})
}

// some are the nodes with learned rows beside nodes with features, which are numbered from 0 among themselves.
type some struct {
	spans  []Span
	mixed  []float32 // rows of a pass
	learns []int32   // numbers of the pass's nodes with learned rows
	place  []int     // of each of them in the pass
	g      []float32 // their gradients
}

func (s *some) rows() (n int) {
	for _, r := range s.spans {
		n += r.Hi - r.Lo
	}
	return n
}

// number is the number of node v's learned row, -1 if it has features.
func (s *some) number(v int32) int32 {
	first := 0
	for _, r := range s.spans {
		if int(v) >= r.Lo && int(v) < r.Hi {
			return int32(first + int(v) - r.Lo)
		}
		first += r.Hi - r.Lo
	}
	return -1
}

// node is the node of a learned row.
func (s *some) node(number int32) int32 {
	for _, r := range s.spans {
		if int(number) < r.Hi-r.Lo {
			return int32(r.Lo) + number
		}
		number -= int32(r.Hi - r.Lo)
	}
	return -1
}

// Mixed reports whether some nodes have features and others learned rows.
func (t *Embeddings) Mixed() bool { return t.some != nil }

// mix returns the rows of nodes: features, or learned rows. The memory is valid until the next call. Collective if
// Apart is.
func (t *Embeddings) mix(ids []int32, x InputRows, threads int) ([]float32, error) {
	s := t.some
	if n := len(ids) * t.Cols; cap(s.mixed) < n {
		s.mixed = make([]float32, n+n/4)
	}
	s.mixed = s.mixed[:len(ids)*t.Cols]
	x.write(s.mixed, ids, t.Cols, threads)
	s.learns, s.place = s.learns[:0], s.place[:0]
	for i, v := range ids {
		if k := s.number(v); k >= 0 {
			s.learns, s.place = append(s.learns, k), append(s.place, i)
		}
	}
	if !t.apart() {
		for j, i := range s.place {
			copy(s.mixed[i*t.Cols:(i+1)*t.Cols], t.W[int(s.learns[j])*t.Cols:])
		}
		return s.mixed, nil
	}
	rows, err := t.Read(s.learns)
	for j, i := range s.place {
		if err == nil {
			copy(s.mixed[i*t.Cols:(i+1)*t.Cols], rows[j*t.Cols:])
		}
	}
	return s.mixed, err
}

// LeafOf is Leaf, with the features that x returns for the nodes without learned rows. Collective if Apart is.
func (t *Embeddings) LeafOf(f *nn.Fwd, ids []int32, x func() InputRows, sp *nn.Space) (*nn.Tensor, error) {
	if t.some == nil {
		return t.Leaf(f, ids, sp)
	}
	rows, err := t.mix(ids, x(), f.Config().Threads)
	if err != nil {
		return nil, err
	}
	return f.Leaf(len(ids), t.Cols, rows, sp), nil
}

// MixedInput is LeafOf without a gradient, for a table that is Mixed.
func (t *Embeddings) MixedInput(f *nn.Fwd, ids []int32, x InputRows, sp *nn.Space) (*nn.Tensor, error) {
	rows, err := t.mix(ids, x, f.Config().Threads)
	if err != nil {
		return nil, err
	}
	return f.Input(len(ids), t.Cols, rows, sp), nil
}

// mixedAgain returns the rows of the last pass.
func (t *Embeddings) mixedAgain(f *nn.Fwd, sp *nn.Space) *nn.Tensor {
	return f.Input(len(t.some.mixed)/t.Cols, t.Cols, t.some.mixed, sp)
}

// inputRows returns the features of nodes, of whichever parts, in memory of their own.
func (p *Parts) inputRows(ids []int32, threads int) (in InputRows, err error) {
	var m Memory
	in.Gathered = true
	in.X, in.Sparse, err = m.Rows(p, ids, threads)
	return in, err
}

// AllInputs is [Embeddings.All] with the features of the nodes of a dataset that have no learned rows; parts is this rank's
// view of a divided dataset, else nil. Collective.
func (t *Embeddings) AllInputs(site collective.Site, ds *dataset.Dataset, parts *Parts, threads int) (collective.Matrix, error) {
	if t.some == nil {
		return t.All(site)
	}
	n := ds.Nodes()
	m, err := t.o.Comm.NewMatrix(site, n, t.Cols)
	if err != nil {
		return nil, err
	}
	lo, hi := collective.Share(n, t.rank, t.world)
	ids := make([]int32, 0, hi-lo)
	for v := lo; v < hi; v++ {
		ids = append(ids, int32(v))
	}
	in := InputRows{X: ds.Features, Sparse: ds.SparseFeatures}
	if parts != nil {
		if in, err = parts.inputRows(ids, threads); err != nil {
			return nil, err
		}
	}
	rows, err := t.mix(ids, in, threads)
	if err != nil {
		return nil, err
	}
	copy(m.Data()[lo*t.Cols:], rows)
	t.some.mixed = nil // as large as the share
	return m, m.Publish(site, lo, hi)
}

// learned returns the numbers of the learned rows among ids, and their gradients among g.
func (s *some) learned(ids []int32, g []float32, cols int) ([]int32, []float32) {
	s.learns, s.g = s.learns[:0], s.g[:0]
	for i, v := range ids {
		if k := s.number(v); k >= 0 {
			s.learns = append(s.learns, k)
			s.g = append(s.g, g[i*cols:(i+1)*cols]...)
		}
	}
	return s.learns, s.g
}
