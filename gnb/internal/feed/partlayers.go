package feed

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// haloExchange gets rows of halo nodes from the ranks that own them. Rows of parts of this rank are
// read in place.
type haloExchange struct {
	p     *Parts
	comm  collective.Comm
	mine  []*divided.Part
	want  [][]int32 // by rank: the halo nodes of this rank's parts that the rank owns, ascending
	asked [][]int32 // by rank: the nodes of this rank that the rank wants
	send  [][]byte
}

// exchange returns the exchange, which the first call makes. Collective.
func (p *Parts) exchange(c collective.Comm, site collective.Site) (*haloExchange, error) {
	if p.halo != nil {
		return p.halo, nil
	}
	x := &haloExchange{p: p, comm: c, want: make([][]int32, p.world), asked: make([][]int32, p.world), send: make([][]byte, p.world)}
	for i := range p.Parts() {
		if p.Rank(i) != p.rank {
			continue
		}
		part, err := p.Part(i)
		if err != nil {
			return nil, err
		}
		x.mine = append(x.mine, part)
		for _, u := range part.Halo {
			if r := p.Rank(p.PartOf(u)); r != p.rank {
				x.want[r] = append(x.want[r], u)
			}
		}
	}
	for r, ids := range x.want {
		slices.Sort(ids)
		x.want[r] = slices.Compact(ids)
		x.send[r] = slices.Clone(bytesOf(x.want[r])) // later rows go into this memory
	}
	got, err := c.AllToAll(site, x.send)
	if err != nil {
		return nil, err
	}
	for r, b := range got {
		ids := make([]int32, len(b)/4)
		copy(bytesOf(ids), b)
		for _, v := range ids {
			if v < 0 || int(v) >= p.Dataset().Nodes() || !p.Mine(v) {
				return nil, fmt.Errorf("gnb: rank %d asks rank %d for rows of node %d, which that rank does not own; do all machines have the same division?", r, p.rank, v)
			}
		}
		x.asked[r] = ids
	}
	p.halo = x
	return x, nil
}

// PartRows are the rows of the nodes that a rank owns.
type PartRows struct {
	Cols int
	p    *Parts
	rows [][]float32 // by part; nil for parts of other ranks
}

// Row returns the row of a node of this rank.
func (r *PartRows) Row(v int32) []float32 {
	at := r.p.Row(v) * r.Cols
	return r.rows[r.p.PartOf(v)][at : at+r.Cols]
}

// Finite reports whether all elements are finite.
func (r *PartRows) Finite() bool {
	return !slices.ContainsFunc(r.rows, func(h []float32) bool { return !simd.Finite(h) })
}

// rowsFrom exchanges the rows of halo nodes: the result is by rank, in the order of x.want. Collective.
func (x *haloExchange) rowsFrom(site collective.Site, rows *PartRows) ([][]float32, error) {
	for r, ids := range x.asked {
		x.send[r] = x.send[r][:0]
		for _, v := range ids {
			x.send[r] = append(x.send[r], bytesOf(rows.Row(v))...)
		}
	}
	got, err := x.comm.AllToAll(site, x.send)
	if err != nil {
		return nil, err
	}
	halo := make([][]float32, len(got))
	for r, b := range got {
		if len(b) != 4*rows.Cols*len(x.want[r]) {
			return nil, fmt.Errorf("gnb: rank %d sent %d bytes of halo rows; expected %d", r, len(b), 4*rows.Cols*len(x.want[r]))
		}
		halo[r] = make([]float32, len(b)/4)
		copy(bytesOf(halo[r]), b)
	}
	return halo, nil
}

// haloFeatures are the features of the halo nodes of this rank's parts that other ranks own.
type haloFeatures struct {
	x   *haloExchange
	own Own
	got [][]byte // by rank, rows in the order of x.want
}

// features exchanges the features of halo nodes, in their stored type. Collective.
func (x *haloExchange) features(site collective.Site, threads int) (*haloFeatures, error) {
	h := &haloFeatures{x: x, own: x.p.ownRows(threads)}
	for r, ids := range x.asked {
		x.send[r] = slices.Grow(x.send[r][:0], len(ids)*h.own.RowBytes())[:len(ids)*h.own.RowBytes()]
		if err := h.own.Gather(x.send[r], ids); err != nil {
			return nil, err
		}
	}
	var err error
	if h.got, err = x.comm.AllToAll(site, x.send); err != nil {
		return nil, err
	}
	for r, b := range h.got {
		if want := len(x.want[r]) * h.own.RowBytes(); len(b) != want {
			return nil, fmt.Errorf("gnb: rank %d sent %d bytes of halo features; expected %d", r, len(b), want)
		}
	}
	return h, nil
}

// input is the features of a part's nodes: its own, then its halo.
func (h *haloFeatures) input(m *Memory, part *divided.Part) (*dataset.Matrix, *dataset.Sparse, error) {
	ids, size := part.Nodes(), h.own.RowBytes()
	rows := h.own.Reset(&m.dense, len(ids))
	if err := h.own.Gather(rows, ids); err != nil {
		return nil, nil, err
	}
	for i := len(part.Own); i < len(ids); i++ {
		if r := h.x.p.Rank(h.x.p.PartOf(ids[i])); r != h.x.p.rank {
			k, _ := slices.BinarySearch(h.x.want[r], ids[i])
			copy(rows[i*size:(i+1)*size], h.got[r][k*size:])
		}
	}
	return m.written(h.own, rows)
}

// input is the input of a layer for one part: rows of its own nodes, then of its halo.
func (x *haloExchange) input(part *divided.Part, rows *PartRows, halo [][]float32) []float32 {
	cols := rows.Cols
	h := make([]float32, 0, (len(part.Own)+len(part.Halo))*cols)
	h = append(h, rows.rows[part.Index]...)
	for _, u := range part.Halo {
		r := x.p.Rank(x.p.PartOf(u))
		if r == x.p.rank {
			h = append(h, rows.Row(u)...)
			continue
		}
		k, _ := slices.BinarySearch(x.want[r], u)
		h = append(h, halo[r][k*cols:(k+1)*cols]...)
	}
	return h
}

// PartLayers configure [Parts.Layers].
type PartLayers struct {
	Comm    collective.Comm
	Site    collective.Site
	Model   nn.Model
	Count   int // layers to compute, the first ones; 0 means all
	Fwd     *nn.Fwd
	Cols    func(layer, cols int) (int, error) // a layer's number of output columns
	Degrees graphops.Degrees                   // of the whole graph
	Threads int
	Done    func(layer, rows int)                              // called as rows are computed
	Look    func(layer, cols int, rows []float32, ids []int32) // unless nil, gets the rows of each part
	// Learned is the table of the learned rows that are the input; nil if features are.
	Learned *Embeddings
}

// Layers computes a model's output for the nodes of this rank's parts, layer by layer with all
// neighbours. Before each layer the ranks exchange the rows of halo nodes. The rows have the bits of
// an evaluation of the whole graph. Memory: the input and output of one layer for the rank's parts
// and their halos. Collective.
func (p *Parts) Layers(o PartLayers) (rows *PartRows, err error) {
	if err := p.getLabels(); err != nil {
		return nil, err
	}
	if p.ranges != nil {
		p = p.ranges
	}
	err = mapped.Guard(func() (err error) {
		rows, err = p.layers(o)
		return err
	})
	return rows, err
}

func (p *Parts) layers(o PartLayers) (*PartRows, error) {
	x, err := p.exchange(o.Comm, o.Site)
	if err != nil {
		return nil, err
	}
	var rows *PartRows
	cols := p.Dataset().FeatureDim()
	if o.Learned != nil {
		cols = o.Learned.Cols
	}
	if o.Learned != nil && (o.Learned.Apart() || o.Learned.Mixed()) {
		if rows, err = p.learnedRows(x, o.Learned, o.Threads); err != nil {
			return nil, err
		}
	}
	var features *haloFeatures
	if o.Learned == nil && p.apart {
		if features, err = x.features(o.Site, o.Threads); err != nil {
			return nil, err
		}
	}
	for layer := range cmp.Or(o.Count, o.Model.NumLayers()) {
		out, err := o.Cols(layer, cols)
		if err != nil {
			return nil, err
		}
		var halo [][]float32
		if rows != nil {
			if halo, err = x.rowsFrom(o.Site, rows); err != nil {
				return nil, err
			}
		}
		next := &PartRows{Cols: out, p: p, rows: make([][]float32, p.Parts())}
		done := 0
		for _, part := range x.mine {
			input, err := p.layerInput(x, part, rows, halo, features, o)
			if err != nil {
				return nil, err
			}
			h := make([]float32, len(part.Own)*out)
			next.rows[part.Index] = h
			err = nn.LayerRowsFrom(o.Model, o.Fwd, layer, partSlices{part.Graph, part.Nodes(), part.FirstEdge, o.Degrees, p.Dataset().Nodes(), nil}, input, 0, len(part.Own), h, func(n int) { o.Done(layer, done+n) })
			if err != nil {
				return nil, err
			}
			done += len(part.Own)
			if o.Look != nil {
				o.Look(layer, out, h, part.Own)
			}
		}
		rows, cols, features = next, out, nil
	}
	return rows, nil
}

// learnedRows returns the rows of the nodes of this rank's parts: learned ones, of which machines have some each, or features
// of the nodes that have some. Collective.
func (p *Parts) learnedRows(x *haloExchange, t *Embeddings, threads int) (*PartRows, error) {
	var ids []int32
	for _, part := range x.mine {
		ids = append(ids, part.Own...)
	}
	var h []float32
	var err error
	if t.Mixed() {
		var in InputRows
		if in, err = p.inputRows(ids, threads); err == nil {
			h, err = t.mix(ids, in, threads)
			t.some.mixed = nil // h is kept
		}
	} else {
		h, err = t.Read(ids)
	}
	if err != nil {
		return nil, err
	}
	rows := &PartRows{Cols: t.Cols, p: p, rows: make([][]float32, p.Parts())}
	for _, part := range x.mine {
		n := len(part.Own) * t.Cols
		rows.rows[part.Index], h = h[:n], h[n:]
	}
	return rows, nil
}

// getLabels gets the labels of this rank's parts from servers that have them, so that the count of
// correct nodes waits for none.
func (p *Parts) getLabels() error {
	for i := range p.Parts() {
		if !divided.IsFar(p.Dataset()) || p.Dataset().Classes() == 0 || p.ranges == nil && p.Rank(i) != p.rank {
			continue
		}
		if _, _, err := p.Answers(i); err != nil {
			return err
		}
	}
	return nil
}

// layerInput returns the input of a part's layer: learned rows or features if rows is nil.
func (p *Parts) layerInput(x *haloExchange, part *divided.Part, rows *PartRows, halo [][]float32, features *haloFeatures, o PartLayers) (func(f *nn.Fwd) *nn.Tensor, error) {
	ids := part.Nodes()
	space := &nn.Space{IDs: ids}
	if rows != nil {
		h := x.input(part, rows, halo)
		return func(f *nn.Fwd) *nn.Tensor { return f.Input(len(ids), rows.Cols, h, space) }, nil
	}
	if e := o.Learned; e != nil {
		return func(f *nn.Fwd) *nn.Tensor { return f.TableRows(nn.Table{F32: e.W}, e.Cols, ids, space) }, nil
	}
	var m Memory
	if features != nil {
		dense, sparse, err := features.input(&m, part)
		return inputOf(dense, sparse, space), err
	}
	dense, sparse, err := m.Rows(p, ids, o.Threads)
	if err != nil {
		return nil, err
	}
	return inputOf(dense, sparse, space), nil
}

// partSlices cuts the graph of a part into blocks: destinations are own nodes, sources all nodes.
type partSlices struct {
	graph   *graphops.Graph // as [divided.Part.Graph]
	ids     []int32         // of the rows
	first   []int64         // as [divided.Part.FirstEdge]
	degrees graphops.Degrees
	nodes   int // of the whole graph
	// whole is the graph of the positions, with what its edges have; nil if it is not in this process.
	whole *graphops.Graph
}

func (s partSlices) NumNodes() int { return s.graph.NumNodes() }

func (s partSlices) Slice(lo, hi int) *graphops.Block {
	g := s.graph
	h := graphops.HostBlock{
		NumDst: hi - lo, NumSrc: g.NumNodes(), DstStart: lo, Indptr: g.Indptr[lo : hi+1], Indices: g.Indices,
		SrcIDs: s.ids, Graph: s.whole, Degrees: s.degrees, SliceOf: s.nodes,
	}
	for k := lo; k < hi; k++ {
		first := s.first[k]
		for e := range g.Indptr[k+1] - g.Indptr[k] {
			h.EdgePos = append(h.EdgePos, first+e)
		}
	}
	if s.whole == nil {
		data := g.EdgeData()
		h.Edges = data.Slice(g.Indptr[lo], g.Indptr[hi])
	}
	if g.EdgeWeights != nil {
		h.Weights = g.EdgeWeights[g.Indptr[lo]:g.Indptr[hi]]
	}
	return h.Block()
}

// Each calls f with the rows of this rank's nodes, of one part after the other.
func (r *PartRows) Each(f func(v int32, row []float32)) error {
	for i, rows := range r.rows {
		if rows == nil {
			continue
		}
		part, err := r.p.Part(i)
		if err != nil {
			return err
		}
		for k, v := range part.Own {
			f(v, rows[k*r.Cols:(k+1)*r.Cols])
		}
	}
	return nil
}

// pieceBytes is the size of the rows that rank 0 gets at a time.
const pieceBytes = 16 << 20

// Write makes rank 0 write the rows of all nodes, by node, to a NumPy file. No rank has a matrix of all nodes: rank 0
// has 16 MiB of it at a time. Collective.
func (r *PartRows) Write(c collective.Comm, site collective.Site, path string) error {
	nodes := r.p.Dataset().Nodes()
	pieces := func(yield func([]float32, error) bool) {
		step := max(1, pieceBytes/(4*max(1, r.Cols)))
		for lo := 0; lo < nodes; lo += step {
			if rows, err := r.piece(c, site, lo, min(lo+step, nodes)); !yield(rows, err) || err != nil {
				return
			}
		}
	}
	if r.p.rank == 0 {
		return dataset.WriteNPYRows(path, nodes, r.Cols, pieces)
	}
	for _, err := range pieces {
		if err != nil {
			return err
		}
	}
	return nil
}

// piece gathers the rows of the nodes lo to hi-1 at rank 0. Collective.
func (r *PartRows) piece(c collective.Comm, site collective.Site, lo, hi int) (rows []float32, err error) {
	p := r.p
	send := make([][]byte, p.world)
	for v := lo; v < hi; v++ {
		if p.Mine(int32(v)) {
			send[0] = append(send[0], bytesOf(r.Row(int32(v)))...)
		}
	}
	got, err := c.AllToAll(site, send)
	if err != nil || p.rank != 0 {
		return nil, err
	}
	rows = make([]float32, (hi-lo)*r.Cols)
	for v := lo; v < hi; v++ {
		from := p.Rank(p.PartOf(int32(v)))
		row := bytesOf(rows[(v-lo)*r.Cols : (v-lo+1)*r.Cols])
		if len(got[from]) < len(row) {
			return nil, fmt.Errorf("gnb: rank %d sent too few rows of the output: that of node %d is missing; all ranks must have the same division", from, v)
		}
		got[from] = got[from][copy(row, got[from]):]
	}
	for from, b := range got {
		if len(b) > 0 {
			return nil, fmt.Errorf("gnb: rank %d sent %d bytes more than its rows of the output; all ranks must have the same division", from, len(b))
		}
	}
	return rows, nil
}

// bytesOf returns the memory of s.
func bytesOf[T int32 | float32 | uint16](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}
