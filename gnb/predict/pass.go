package predict

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/simd"
)

// span are the layers that a pass computes: from the rows of layer from, 0 for the input, to those of layer to.
type span struct{ from, to int }

// pass is the working memory of a call.
type pass struct {
	p      *Predictor
	span   span
	model  nn.Model
	cols   int      // of the rows that it computes
	under  *state   // that has the rows of layer span.from; nil for the input
	o      *overlay // of the call
	ctx    context.Context
	rows   *sample.Answerer // of o
	picker sample.Picker
	hops   *sample.Divided
	reply  []sample.HopReply
	places []sample.Place
	edges  int // of the neighbourhood so far
	f      *nn.Fwd
	blocks []graphops.Block
	x      []float32
	sparse graphops.Sparse
	memory feed.Memory // of features in parts
	ids    []int32     // of the input's rows in the dataset, -1 for new nodes
	fresh  []int32     // the rows of new nodes
}

// spareBytes is the largest working memory that is kept for later calls: that of some ten thousand nodes of a few hundred
// columns.
const spareBytes = 64 << 20

// spare are passes of one span that no call uses. A pass has a table of all nodes, so it is kept rather than left to the garbage collector,
// unless a large neighbourhood has made it large.
type spare struct {
	mu   sync.Mutex
	free []*pass
}

// get returns a pass, nil if there is none.
func (f *spare) get() *pass {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.free)
	if n == 0 {
		return nil
	}
	s := f.free[n-1]
	f.free = f.free[:n-1]
	return s
}

// put takes back a pass whose call is over, also one that failed.
func (f *spare) put(s *pass) {
	s.rows.Reset(s.p.base)
	s.o, s.ctx, s.under = nil, nil, nil
	held, left := s.f.Held()
	if held+left+4*int64(cap(s.x)) > spareBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) < 2*runtime.GOMAXPROCS(0) {
		f.free = append(f.free, s)
	}
}

var _ sample.Picker = (*draws)(nil)

// draws picks uniformly, by draws that depend on the seed, the hop and the node alone: a new node's on its id.
type draws struct {
	fanouts []int
	key     func(place int32) int32
}

// Hops is the number of hops.
func (d *draws) Hops() int { return len(d.fanouts) }

// Pick implements [sample.Picker].
func (d *draws) Pick(h *sample.Hop, place int32, nbrs, out []int32) []int32 {
	h.At(d.key(place))
	return h.Uniform(len(nbrs), d.fanouts[h.Index], out)
}

// keyOf is what the draws of a new node depend on. It is negative, and those of the dataset's nodes are not.
func keyOf(id string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int32(h.Sum32() | 1<<31)
}

// key is what the draws of the node at a place depend on: for a node of the dataset its number.
func (s *pass) key(place int32) int32 {
	if v := s.p.node(place); v >= 0 {
		return v
	}
	return s.o.added(place).key
}

// newPass makes a pass of layers, which is not for the input alone if all neighbours are taken.
func (p *Predictor) newPass(of span) *pass {
	hops := of.to - of.from
	s := &pass{p: p, span: of, model: p.model, cols: p.widths[of.to], f: nn.NewFwd(nn.Config{Threads: p.o.Threads}), reply: make([]sample.HopReply, 1), blocks: make([]graphops.Block, hops)}
	if hops < p.model.NumLayers() {
		s.model = someLayers{p.model, of}
	}
	if p.full {
		s.picker = sample.Fanouts(slices.Repeat([]int{-1}, hops))
	} else {
		s.picker = &draws{p.o.Fanouts, s.key}
	}
	s.rows = sample.NewAnswerer(p.base, sample.AnswererOptions{Picker: s.picker, Threads: p.o.Threads})
	var err error
	s.hops, err = sample.NewDivided(sample.Division{
		Nodes: p.places(), Edges: p.base.Edges(), Owners: 1, OwnerOf: []int{0}, Ask: s.ask,
	}, sample.Config{Picker: s.picker, Seed: p.o.Seed, Purpose: sample.User, Threads: p.o.Threads})
	if err != nil {
		panic(err) // Open has checked what this depends on
	}
	return s
}

// ask answers for the edges of the nodes reached so far, unless they are too many.
func (s *pass) ask(q []sample.HopRequest) ([]sample.HopReply, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	nodes := q[0].Nodes
	s.places = slices.Grow(s.places[:0], len(nodes))[:len(nodes)]
	if n := s.o.Find(nodes, s.places); n < len(nodes) {
		return nil, fmt.Errorf("predict: there is no node at place %d", nodes[n])
	}
	most, k := -1, -1
	if !s.p.full {
		k = s.p.o.Fanouts[q[0].Hop]
	}
	for i, at := range s.places {
		n := int(at.N)
		if k >= 0 {
			n = min(n, k)
		}
		s.edges += n
		if most < 0 || at.N > s.places[most].N {
			most = i
		}
	}
	if s.edges > s.p.o.MaxEdges {
		return nil, &LimitError{Hub: s.p.shown(s.o, nodes[most]), Degree: int(s.places[most].N), Limit: s.p.o.MaxEdges}
	}
	return s.reply, s.rows.Answer(&q[0], &s.reply[0])
}

// outputsOf computes the rows of the nodes at places into out [len(places), p.cols], from rows that were computed beforehand if o has
// nothing more than st.
func (p *Predictor) outputsOf(ctx context.Context, st *state, o *overlay, places []int32, out []float32) error {
	whole := span{0, p.model.NumLayers()}
	if st.rows == nil || o != st.over {
		return p.rowsOf(ctx, whole, nil, o, places, out)
	}
	if whole.from = st.rows.layer; whole.from < whole.to {
		return p.rowsOf(ctx, whole, st, o, places, out)
	}
	if _, err := p.appendRows(out[:0:len(out)], st, places); err != nil {
		return err
	}
	return ctx.Err()
}

// rowsOf computes the rows of layer of.to of the nodes at places, from those of layer of.from.
func (p *Predictor) rowsOf(ctx context.Context, of span, under *state, o *overlay, places []int32, out []float32) error {
	spare := p.spareOf(of)
	s := spare.get()
	if s == nil {
		s = p.newPass(of)
	}
	defer spare.put(s)
	s.o, s.ctx, s.under = o, ctx, under
	s.rows.Reset(o)
	// A node that is asked twice is computed once.
	row := make(map[int32]int, len(places))
	once := make([]int32, 0, len(places))
	for _, at := range places {
		if _, ok := row[at]; !ok {
			row[at] = len(once)
			once = append(once, at)
		}
	}
	rows := out
	if len(once) < len(places) {
		rows = make([]float32, len(once)*s.cols)
	}
	for lo := 0; lo < len(once); lo += passSeeds {
		hi := min(lo+passSeeds, len(once))
		if err := s.split(once[lo:hi], rows[lo*s.cols:hi*s.cols]); err != nil {
			return err
		}
	}
	if len(once) < len(places) {
		for i, at := range places {
			copy(out[i*s.cols:(i+1)*s.cols], rows[row[at]*s.cols:])
		}
	}
	return nil
}

// spareOf are the spare passes of a span.
func (p *Predictor) spareOf(of span) *spare {
	p.sparing.Lock()
	defer p.sparing.Unlock()
	s := p.passes[of]
	if s == nil {
		s = &spare{}
		p.passes[of] = s
	}
	return s
}

// split computes the rows of nodes, in halves if their neighbourhoods together have too many edges: answers do not depend on what
// is computed together.
func (s *pass) split(places []int32, out []float32) error {
	err := mapped.Guard(func() error { return s.compute(places, out) })
	var limit *LimitError
	if !errors.As(err, &limit) {
		return err
	}
	if len(places) == 1 {
		limit.Node = s.p.shown(s.o, places[0])
		return limit
	}
	half := len(places) / 2
	if err := s.split(places[:half], out[:half*s.cols]); err != nil {
		return err
	}
	return s.split(places[half:], out[half*s.cols:])
}

// compute runs the network on the neighbourhood of some nodes.
func (s *pass) compute(places []int32, out []float32) error {
	blocks, release, err := s.sample(places)
	if err != nil {
		return err
	}
	defer release()
	s.f.Reset(nn.Config{Threads: s.p.o.Threads})
	x, err := s.input(blocks[0])
	if err != nil {
		return err
	}
	y, err := nn.TryForward(s.model, s.f, blocks, x)
	if err != nil {
		return fmt.Errorf("predict: the network of run %s: %w", s.p.run, err)
	}
	y.CopyTo(out)
	for i, at := range places {
		if !simd.Finite(out[i*s.cols : (i+1)*s.cols]) {
			return fmt.Errorf("predict: the answer for node %s: %w; look for features that are not finite or very large", s.p.shown(s.o, at), gnb.ErrNotFinite)
		}
	}
	return nil
}

// sample draws the blocks of nodes, which stay until release is called.
func (s *pass) sample(places []int32) (blocks []*graphops.Block, release func(), err error) {
	s.edges = 0
	b, err := s.hops.Sample(0, 0, sample.Seeds{IDs: places})
	if err != nil {
		return nil, nil, err
	}
	for i, k := range b.Blocks {
		// SliceOf makes layers compute in the order in which they compute the whole graph.
		s.blocks[i].SetHost(graphops.HostBlock{
			NumDst: k.NumDst, NumSrc: k.NumSrc, Level: k.Level, Indptr: k.Indptr(), Indices: k.Indices(), EdgePos: k.EdgePos(), SrcIDs: k.SrcIDs(),
			Weights: k.Weights(), Edges: k.OwnEdges(), Degrees: s.o, SliceOf: s.o.total,
		})
		blocks = append(blocks, &s.blocks[i])
	}
	return blocks, b.Release, nil
}

// input gathers the rows that the first layer reads.
func (s *pass) input(b *graphops.Block) (*nn.Tensor, error) {
	p, ids, sp := s.p, b.SrcIDs(), tensor.SrcSpace(b)
	if s.under != nil {
		var err error
		if s.x, err = p.appendRows(s.x[:0], s.under, ids); err != nil {
			return nil, err
		}
		return s.f.Input(len(ids), s.under.rows.cols, s.x, sp), nil
	}
	s.find(ids)
	if p.learned == nil && p.source.sparse() {
		if err := s.gatherSparse(ids); err != nil {
			return nil, err
		}
		return s.f.SparseInput(s.sparse.Rows, p.inputCols(), s.sparse.Indptr, s.sparse.Indices, s.sparse.Values, sp), nil
	}
	if err := s.gather(ids); err != nil {
		return nil, err
	}
	return s.f.Input(len(ids), p.inputCols(), s.x, sp), nil
}

// find sets s.ids to the nodes at places, and s.fresh to the new ones of them.
func (s *pass) find(places []int32) {
	s.ids, s.fresh = slices.Grow(s.ids[:0], len(places))[:len(places)], s.fresh[:0]
	for i, at := range places {
		if s.ids[i] = s.p.node(at); s.ids[i] < 0 {
			s.fresh = append(s.fresh, int32(i))
		}
	}
}

// gather sets s.x to the dense input rows of places, which find has found.
func (s *pass) gather(places []int32) error {
	p, cols := s.p, s.p.inputCols()
	s.x = slices.Grow(s.x[:0], len(places)*cols)[:len(places)*cols]
	switch {
	case p.learned != nil:
		if err := s.gatherLearned(cols); err != nil {
			return err
		}
	case p.ds.Nodes() == 0:
	case p.source.sparse():
		clear(s.x)
		if err := s.scatter(s.ids, func(i int) []float32 { return s.x[i*cols : (i+1)*cols] }); err != nil {
			return err
		}
	case cols > 0:
		for _, i := range s.fresh {
			s.ids[i] = 0 // its row is overwritten below
		}
		if err := p.source.dense(s.ctx, &s.memory, s.x, s.ids, p.o.Threads); err != nil {
			return err
		}
		for _, i := range s.fresh {
			s.ids[i] = -1
		}
	}
	for _, i := range s.fresh {
		copy(s.x[int(i)*cols:(int(i)+1)*cols], s.o.added(places[i]).x)
	}
	return nil
}

// gatherLearned sets s.x to learned rows, and to features for the nodes of types that have those.
func (s *pass) gatherLearned(cols int) error {
	p := s.p
	var rest []int32 // nodes with features
	var at []int     // their rows
	clear(s.x)
	for i, v := range s.ids {
		if v < 0 {
			continue
		}
		if row := p.learned.of(v); row != nil {
			copy(s.x[i*cols:(i+1)*cols], row)
		} else {
			rest, at = append(rest, v), append(at, i)
		}
	}
	to := func(i int) []float32 { return s.x[at[i]*cols : (at[i]+1)*cols] }
	switch {
	case len(rest) == 0 || p.ds.FeatureDim() == 0:
	case p.source.sparse():
		return s.scatter(rest, to)
	default:
		x := make([]float32, len(rest)*cols)
		if err := p.source.dense(s.ctx, &s.memory, x, rest, p.o.Threads); err != nil {
			return err
		}
		for i := range rest {
			copy(to(i), x[i*cols:(i+1)*cols])
		}
	}
	return nil
}

// scatter writes the sparse features of nodes to dense rows of zeros; -1 is no node.
func (s *pass) scatter(nodes []int32, to func(i int) []float32) error {
	row, err := s.sparseRows(nodes)
	if err != nil {
		return err
	}
	for i, v := range nodes {
		if v < 0 {
			continue
		}
		columns, values := row(i)
		feed.Scatter(to(i), columns, values)
	}
	return nil
}

// sparseRows returns the sparse features of nodes, of which -1 is none.
func (s *pass) sparseRows(nodes []int32) (row func(i int) (columns []int32, values []float32), err error) {
	if len(s.fresh) > 0 {
		nodes = slices.Clone(nodes)
		for i := range nodes {
			nodes[i] = max(nodes[i], 0) // the row is not read
		}
	}
	return s.p.source.sparseRows(s.ctx, &s.memory, nodes)
}

// gatherSparse sets s.sparse to the rows of places, which find has found.
func (s *pass) gatherSparse(places []int32) error {
	m := &s.sparse
	row, err := s.sparseRows(s.ids)
	if err != nil {
		return err
	}
	m.Rows, m.Cols = len(places), s.p.inputCols()
	m.Indptr, m.Indices = append(m.Indptr[:0], 0), m.Indices[:0]
	if m.Values == nil {
		m.Values = []float32{}
	}
	m.Values = m.Values[:0]
	for i, v := range s.ids {
		if v < 0 {
			for c, y := range s.o.added(places[i]).x {
				if y != 0 {
					m.Indices, m.Values = append(m.Indices, int32(c)), append(m.Values, y)
				}
			}
		} else {
			columns, values := row(i)
			m.Indices = append(m.Indices, columns...)
			if values == nil {
				values = slices.Repeat([]float32{1}, len(columns))
			}
			m.Values = append(m.Values, values...)
		}
		m.Indptr = append(m.Indptr, int64(len(m.Indices)))
	}
	return nil
}
