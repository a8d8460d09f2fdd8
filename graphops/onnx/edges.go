package onnx

import (
	"slices"

	"github.com/graphnb/graphnb/graphops"
)

// nodeSet are the nodes between two layers: the sources of a block, or the destinations of the last.
type nodeSet struct {
	n      int
	count  string  // the number of nodes in the model
	types  []int32 // nil without types
	typed  string  // their name in the model
	groups *groups
}

// edges are the edges of a block. Their order in the model may be another one than in the recorded block.
type edges struct {
	from, to *nodeSet // nil for edges of groups of rows and of pairs
	block    *graphops.Block
	n        int     // edges
	source   []int32 // in the recorded block
	target   []int32
	kinds    []uint16
	weight   []float32

	src, dst   string // rows, integers [edges]
	nSrc, nDst string // vectors of one number
	weights    string // "" without
	types      string // ""
	features   string // ""

	cols      string // dst as a column
	degrees   string
	kept      string // the numbers of the edges that are no self-loops
	loops     *edges // with self-loops
	dstPairs  *pairs
	srcPairs  *pairs
	relations int
}

// groups are the rows of a set in the order of their types.
type groups struct {
	rows, place         []int32
	rowsName, placeName string
}

// pairs are those of a destination, or a source, and a type of edges.
type pairs struct {
	of     *edges
	dst    bool
	count  string
	rows   string // of the nodes, integers [pairs]
	at     string // the pair of each edge
	sizes  string // the edges of each pair [pairs, 1]
	rowsOf []int32
	kinds  []int // of the edges of each pair
	blocks []*graphops.Block
}

// column is the edges' destinations as a column [edges, 1].
func (e *edges) column(r *recorder) string {
	if e.cols == "" {
		e.cols = r.g.do("Unsqueeze", of(e.dst, r.g.ints(1)))
	}
	return e.cols
}

// ones is a column of ones as long as an index is.
func (r *recorder) ones(index string) string {
	shape := r.g.do("Concat", of(r.g.do("Shape", of(index)), r.g.ints(1)), withInt("axis", 0))
	return r.g.do("Expand", of(r.g.number(1), shape))
}

// sums adds a column of numbers of edges up for each destination.
func (r *recorder) sums(x, column, count string) string {
	zero := r.g.do("Expand", of(r.g.number(0), r.g.do("Concat", of(count, r.g.ints(1)), withInt("axis", 0))))
	return r.g.do("ScatterElements", of(zero, column, x), withInt("axis", 0), withText("reduction", "add"))
}

// degree is the number of in-edges of each destination [destinations, 1].
func (e *edges) degree(r *recorder) string {
	if e.degrees == "" {
		e.degrees = r.sums(r.ones(e.dst), e.column(r), e.nDst)
	}
	return e.degrees
}

func (e *edges) hasTypes(types []uint16) bool { return e.types != "" && slices.Equal(types, e.kinds) }

// scalarOf is a vector of one number as a scalar.
func (r *recorder) scalarOf(vector string) string { return r.g.do("Squeeze", of(vector, r.g.ints(0))) }

// upTo is 0, 1, … below a vector of one number.
func (r *recorder) upTo(count string) string {
	return r.g.do("Range", of(r.g.scalar(0), r.scalarOf(count), r.g.scalar(1)))
}

// where is the places at which a vector of conditions holds.
func (r *recorder) where(condition string) string {
	return r.g.do("Reshape", of(r.g.do("NonZero", of(condition)), r.g.ints(-1)))
}

// pick selects rows by an index.
func (r *recorder) pick(x, index string) string {
	return r.g.do("Gather", of(x, index), withInt("axis", 0))
}

// first is the first rows of x.
func (r *recorder) first(x, count string) string {
	return r.g.do("Slice", of(x, r.g.ints(0), count, r.g.ints(0)))
}

// stacked puts rows one under the other.
func (r *recorder) stacked(x ...string) string { return r.g.do("Concat", x, withInt("axis", 0)) }

// keptEdges are the numbers of the edges that are no self-loops.
func (e *edges) keptEdges(r *recorder) string {
	if e.kept == "" {
		e.kept = r.where(r.g.do("Not", of(r.g.do("Equal", of(e.src, e.dst)))))
	}
	return e.kept
}

// looped is the block with one self-loop for each destination: in the model, after the other edges of all.
func (e *edges) looped(r *recorder) *edges {
	if e.loops != nil {
		return e.loops
	}
	b := e.block.SelfLooped()
	l := edgesOf(b)
	l.from, l.to, l.nSrc, l.nDst = e.from, e.to, e.nSrc, e.nDst
	kept, self := e.keptEdges(r), r.upTo(e.nDst)
	l.src, l.dst = r.stacked(r.pick(e.src, kept), self), r.stacked(r.pick(e.dst, kept), self)
	e.loops = l
	return l
}

// edgesOf takes the edges of a recorded block.
func edgesOf(b *graphops.Block) *edges {
	indptr := b.Indptr()
	e := &edges{block: b, n: b.NumEdges(), source: b.Indices()[indptr[0]:indptr[b.NumDst]], weight: b.Weights()}
	for d := range b.NumDst {
		for range indptr[d+1] - indptr[d] {
			e.target = append(e.target, int32(d))
		}
	}
	return e
}

// edges returns the edges of a block that a layer uses: of the batch, or derived from it.
func (r *recorder) edges(b *graphops.Block) *edges {
	if e := r.found[b]; e != nil {
		return e
	}
	e := r.derived(b)
	if e == nil {
		refuse("it computes along edges that it derives from those of the batch in a way that package onnx does not know")
	}
	r.found[b] = e
	return e
}

// derived finds out how a block comes from those of the batch, nil if that is not known.
func (r *recorder) derived(b *graphops.Block) *edges {
	for _, e := range r.all {
		if e.from != nil && e.block.HasSelfLooped() && e.block.SelfLooped() == b {
			return e.looped(r)
		}
	}
	have := edgesOf(b)
	for _, e := range r.groups {
		if w := e.block; b.NumDst == w.NumDst && b.NumSrc == w.NumSrc && slices.Equal(have.source, e.source) && slices.Equal(have.target, e.target) {
			return e
		}
	}
	for _, e := range r.all {
		if e.kinds == nil {
			continue
		}
		for _, dst := range []bool{true, false} {
			p := e.pairsBy(dst)
			for i, want := range p.blocks {
				w := edgesOf(want)
				if b.NumDst != want.NumDst || b.NumSrc != want.NumSrc || !slices.Equal(have.source, w.source) || !slices.Equal(have.target, w.target) {
					continue
				}
				p.make(r)
				switch {
				case !dst: // the edges, from pairs of sources
					have.src, have.dst, have.nSrc, have.nDst = p.at, e.dst, p.count, e.nDst
				case i == 0: // from the sources to pairs
					have.src, have.dst, have.nSrc, have.nDst = e.src, p.at, e.nSrc, p.count
				default: // from pairs to the destinations
					have.src, have.dst, have.nSrc, have.nDst = r.upTo(p.count), p.rows, p.count, e.nDst
				}
				return have
			}
		}
	}
	return nil
}

// pairs are those of the destinations.
func (e *edges) pairs(r *recorder) *pairs {
	p := e.pairsBy(true)
	p.make(r)
	return p
}

// each is the number of edges of each edge's pair [edges, 1].
func (p *pairs) each(r *recorder) string {
	if p.sizes == "" {
		p.sizes = r.sums(r.ones(p.at), r.g.do("Unsqueeze", of(p.at, r.g.ints(1))), p.count)
	}
	return r.pick(p.sizes, p.at)
}

// pairsBy returns the pairs of the destinations or of the sources, as layers over types number them in the recorded block.
func (e *edges) pairsBy(dst bool) *pairs {
	if dst && e.dstPairs != nil {
		return e.dstPairs
	}
	if !dst && e.srcPairs != nil {
		return e.srcPairs
	}
	p := &pairs{of: e, dst: dst}
	ends := e.source
	if dst {
		ends = e.target
	}
	type key struct {
		kind uint16
		end  int32
	}
	number := map[key]int32{}
	var byKind []int // edges
	for k := range e.relations {
		for i, kind := range e.kinds {
			if int(kind) != k {
				continue
			}
			byKind = append(byKind, i)
			at := key{kind, ends[i]}
			if _, ok := number[at]; !ok {
				number[at] = int32(len(p.rowsOf))
				p.rowsOf, p.kinds = append(p.rowsOf, ends[i]), append(p.kinds, k)
			}
		}
	}
	n := len(p.rowsOf)
	if dst {
		into := graphops.HostBlock{NumDst: n, NumSrc: e.block.NumSrc, Indptr: make([]int64, n+1)}
		out := graphops.HostBlock{NumDst: e.block.NumDst, NumSrc: n, Indptr: make([]int64, e.block.NumDst+1)}
		for _, i := range byKind { // the edges of a pair follow one another
			into.Indices = append(into.Indices, e.source[i])
			into.Indptr[number[key{e.kinds[i], ends[i]}]+1]++
		}
		for d := range int32(e.block.NumDst) {
			for i, row := range p.rowsOf {
				if row == d {
					out.Indices = append(out.Indices, int32(i))
				}
			}
			out.Indptr[d+1] = int64(len(out.Indices))
		}
		for i := range n {
			into.Indptr[i+1] += into.Indptr[i]
		}
		p.blocks = []*graphops.Block{into.Block(), out.Block()}
		e.dstPairs = p
		return p
	}
	along := graphops.HostBlock{NumDst: e.block.NumDst, NumSrc: n, Indptr: make([]int64, e.block.NumDst+1)}
	for i, kind := range e.kinds {
		along.Indices = append(along.Indices, number[key{kind, ends[i]}])
		along.Indptr[e.target[i]+1]++
	}
	for d := range e.block.NumDst {
		along.Indptr[d+1] += along.Indptr[d]
	}
	p.blocks = []*graphops.Block{along.Block()}
	e.srcPairs = p
	return p
}

// make computes the pairs in the model: there they ascend by type and then by node.
func (p *pairs) make(r *recorder) {
	if p.count != "" {
		return
	}
	g, e := r.g, p.of
	end, n := e.src, e.nSrc
	if p.dst {
		end, n = e.dst, e.nDst
	}
	keys := g.do("Add", of(g.do("Mul", of(e.types, n)), end))
	all, places := g.name("pairs"), g.name("pair")
	g.several("Unique", of(keys), of(all, g.name("first"), places), withInt("sorted", 1))
	p.count, p.at, p.rows = g.do("Shape", of(all)), places, g.do("Mod", of(all, n))
	r.named(len(p.rowsOf), p.count)
	at := 0
	for k := 1; k < e.relations; k++ {
		for at < len(p.rowsOf) && p.kinds[at] < k {
			at++
		}
		if at > 0 && at < len(p.rowsOf) {
			below := g.do("Less", of(all, g.do("Mul", of(n, g.ints(int64(k))))))
			r.bounded(len(p.rowsOf), at, r.counted(below))
		}
	}
}

// counted is the number of the conditions that hold, as a vector of one number.
func (r *recorder) counted(conditions string) string {
	numbers := r.g.do("Cast", of(conditions), withInt("to", typeInt64))
	return r.g.do("ReduceSum", of(numbers, r.g.ints(0)), withInt("keepdims", 1))
}

// grouped computes the order of a set's rows by type.
func (s *nodeSet) grouped(r *recorder, kinds int) *groups {
	if s.groups.rowsName != "" {
		return s.groups
	}
	g := r.g
	var each []string
	for t := range kinds {
		each = append(each, r.where(g.do("Equal", of(s.typed, g.ints(int64(t))))))
	}
	s.groups.rowsName = each[0]
	if kinds > 1 {
		s.groups.rowsName = r.stacked(each...)
	}
	zero := g.do("Expand", of(g.ints(0), s.count))
	s.groups.placeName = g.do("ScatterElements", of(zero, s.groups.rowsName, r.upTo(s.count)), withInt("axis", 0))
	n := 0
	for t := range kinds {
		if n > 0 && n < s.n {
			r.bounded(s.n, n, r.counted(g.do("Less", of(s.typed, g.ints(int64(t))))))
		}
		for _, kind := range s.types {
			if int(kind) == t {
				n++
			}
		}
	}
	return s.groups
}

// newGroups is what layers over types derive from the types of rows.
func newGroups(types []int32, kinds int) *groups {
	g := &groups{place: make([]int32, len(types))}
	for t := range kinds {
		for i, kind := range types {
			if int(kind) == t {
				g.place[i] = int32(len(g.rows))
				g.rows = append(g.rows, int32(i))
			}
		}
	}
	return g
}

// selection returns the rows that a block selects if each destination is one row, as in [tensor.Fwd.Gather].
func selection(b *graphops.Block) ([]int32, bool) {
	if b.Graph != nil || b.EdgePos() != nil || b.NumEdges() != b.NumDst || b.SrcIDs() != nil {
		return nil, false
	}
	for i, at := range b.Indptr() {
		if at != int64(i) {
			return nil, false
		}
	}
	return b.Indices(), true
}
