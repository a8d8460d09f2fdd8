package graphops

import (
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// EdgeFeatures is a matrix [edges, Cols], row-major, with one row for each edge. Its elements are
// float32 or float16 (the bits of IEEE 754 binary16 numbers, which are converted when read): exactly
// one of the two slices is set. Where relations have features of their own width, [EdgeFeaturesByRelation]
// makes it, and ByRelation is set instead. It is read-only and safe for concurrent use.
type EdgeFeatures struct {
	Cols int
	F32  []float32 // [edges·Cols]
	F16  []uint16  // [edges·Cols]

	ByRelation []*EdgeFeatures // [relations]; see [EdgeFeaturesByRelation]
	Widths     []int           // [relations]: the features of each relation's edges, before zeros, in one matrix; nil: Cols
	kinds      []uint16        // the relation of each edge
	rows       []int32         // the row of each edge among those of its relation
}

// Rows is the number of rows: of edges.
func (x *EdgeFeatures) Rows() int64 {
	switch {
	case x.ByRelation != nil:
		return int64(len(x.rows))
	case x.Cols == 0:
		return 0
	}
	return int64(max(len(x.F32), len(x.F16)) / x.Cols)
}

// Half reports whether the elements are float16.
func (x *EdgeFeatures) Half() bool {
	return x.F16 != nil || slices.ContainsFunc(x.ByRelation, func(y *EdgeFeatures) bool { return y != nil && y.Half() })
}

// CopyRow writes row e to dst, as float32: its first len(dst) elements, and zeros where the edge has fewer features.
func (x *EdgeFeatures) CopyRow(dst []float32, e int64) {
	x, e = x.at(e)
	if x == nil {
		clear(dst)
		return
	}
	if len(dst) > x.Cols {
		clear(dst[x.Cols:])
		dst = dst[:x.Cols]
	}
	lo, hi := int(e)*x.Cols, int(e)*x.Cols+len(dst)
	if x.F16 != nil {
		simd.FromHalf(dst, x.F16[lo:hi])
		return
	}
	copy(dst, x.F32[lo:hi])
}

// newLike returns one matrix of zeros with the columns and the element type of x.
func (x *EdgeFeatures) newLike(rows int64) *EdgeFeatures {
	y := &EdgeFeatures{Cols: x.Cols}
	if x.Half() {
		y.F16 = make([]uint16, int(rows)*x.Cols)
	} else {
		y.F32 = make([]float32, int(rows)*x.Cols)
	}
	return y
}

// copyBits sets row to of x, one matrix, to row from of src, which has the same element type and no more columns, without
// conversion. Elements behind a narrower row stay.
func (x *EdgeFeatures) copyBits(to int64, src *EdgeFeatures, from int64) {
	if src, from = src.at(from); src == nil {
		return
	}
	at, c := int(to)*x.Cols, src.Cols
	if x.F16 != nil {
		copy(x.F16[at:at+c], src.F16[int(from)*c:])
		return
	}
	copy(x.F32[at:at+c], src.F32[int(from)*c:])
}

// set sets row e of x to sum/n, rounded once to float32 and, where x is float16, again.
func (x *EdgeFeatures) set(e int64, sum []float64, n int) {
	for c, s := range sum {
		v := float32(s / float64(n))
		if x.F16 != nil {
			one := [1]float32{v}
			simd.ToHalf(x.F16[int(e)*x.Cols+c:][:1], one[:])
		} else {
			x.F32[int(e)*x.Cols+c] = v
		}
	}
}

// add adds row e to sum.
func (x *EdgeFeatures) add(sum []float64, e int64, row []float32) {
	x.CopyRow(row, e)
	for c, v := range row {
		sum[c] += float64(v)
	}
}

// compareRows orders rows of one relation by their values, then by their bits.
func (x *EdgeFeatures) compareRows(a, b int64) int {
	_, b = x.at(b)
	if x, a = x.at(a); x == nil {
		return 0
	}
	c := x.Cols
	if x.F16 != nil {
		return slices.Compare(x.F16[int(a)*c:int(a+1)*c], x.F16[int(b)*c:int(b+1)*c])
	}
	p, q := x.F32[int(a)*c:int(a+1)*c], x.F32[int(b)*c:int(b+1)*c]
	for i, v := range p {
		if d := int64(math.Float32bits(v)) - int64(math.Float32bits(q[i])); d != 0 {
			return int(d)
		}
	}
	return 0
}

// check returns an error if the matrix is not [rows, Cols] with at least one column.
func (x *EdgeFeatures) check(rows int64) error {
	switch n := int64(max(len(x.F32), len(x.F16))); {
	case x.ByRelation != nil && x.Rows() != rows:
		return fmt.Errorf("graphops: there are edge features by relation of %d edges, but %d edges", x.Rows(), rows)
	case x.ByRelation != nil:
		return nil // EdgeFeaturesByRelation has checked them
	case x.Cols < 1:
		return fmt.Errorf("graphops: edge features of %d columns; leave them out instead", x.Cols)
	case x.F32 != nil && x.F16 != nil:
		return fmt.Errorf("graphops: there are edge features in both F32 and F16; set one of them to nil")
	case n != rows*int64(x.Cols):
		return fmt.Errorf("graphops: %d elements of edge features, but %d edges with %d columns need %d", n, rows, x.Cols, rows*int64(x.Cols))
	}
	return nil
}

// FirstNotFinite is the row and the column of the first element of the rows [lo, hi) that is
// infinite or NaN; row is -1 if there is none. It checks on GOMAXPROCS threads.
func (x *EdgeFeatures) FirstNotFinite(lo, hi int64) (row int64, col int) {
	const grain = 1 << 16
	if x.ByRelation != nil {
		values := make([]float32, x.Cols)
		for e := lo; e < hi; e++ {
			x.CopyRow(values, e)
			if c := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 }); c >= 0 {
				return e, c
			}
		}
		return -1, 0
	}
	first, n := int(lo)*x.Cols, int(hi-lo)*x.Cols
	bad := make([]int, parallel.Chunks(n, grain))
	parallel.For(0, n, grain, func(a, b int) {
		var at int
		if x.F16 != nil {
			const exponent = 0x7c00 // set completely only in infinities and NaNs
			at = slices.IndexFunc(x.F16[first+a:first+b], func(h uint16) bool { return h&exponent == exponent })
		} else {
			const exponent = 0x7f800000
			at = slices.IndexFunc(x.F32[first+a:first+b], func(v float32) bool { return math.Float32bits(v)&exponent == exponent })
		}
		if bad[a/grain] = at; at >= 0 {
			bad[a/grain] = first + a + at
		}
	})
	for _, at := range bad {
		if at >= 0 {
			return int64(at / x.Cols), at % x.Cols
		}
	}
	return -1, 0
}

// WithEdgeData returns the graph with the given features and times of the edges by CSC position; nil
// means that the edges have none. The result shares the graph's arrays, weights and types, x and times. It
// panics if x or times have another length than there are edges, or x has features by relation of other types.
func (g *Graph) WithEdgeData(x *EdgeFeatures, times []int64) *Graph {
	if x != nil {
		if err := x.check(g.NumEdges()); err != nil {
			panic(err.Error())
		}
	}
	if !x.of(g.EdgeTypes) {
		panic("graphops: WithEdgeData: the features are by relation, of edges of other types")
	}
	if times != nil && int64(len(times)) != g.NumEdges() {
		panic(fmt.Sprintf("graphops: WithEdgeData: %d times for %d edges", len(times), len(g.Indices)))
	}
	return &Graph{Indptr: g.Indptr, Indices: g.Indices, EdgeWeights: g.EdgeWeights, EdgeFeatures: x, EdgeTimes: times, EdgeTypes: g.EdgeTypes, Schema: g.Schema, looped: g.looped, zeros: &zeroWeights{}, byTime: &timeOrders{}}
}

// EdgeFeatureCols is the number of features of each edge of the block's graph; 0 if they have none
// or the graph is not known. Where relations have features of their own width, it is the width of the widest, and in
// a block of one relation ([HostBlock.Relation]) the relation's.
func (b *Block) EdgeFeatureCols() int {
	x := b.edgeTable()
	switch {
	case x == nil:
		return 0
	case b.relation > 0:
		return x.Width(b.relation - 1)
	}
	return x.Cols
}

// PaddedEdges reports whether the rows of features in a block of one relation can have zeros behind the features that its
// edges have: in a divided graph, the rows of all relations have one width.
func (b *Block) PaddedEdges() bool { return b.relation > 0 && b.own.Features != nil }

// GatherEdgeFeatures writes the first cols features of the block's edges to dst [NumEdges, cols], as
// float32, with zeros where an edge has fewer: row e-Indptr()[0] is edge e's. A self-loop that [Block.SelfLooped] added has the mean of
// the features of its destination's other edges in the block, summed in float64, or zeros if there
// are none. It runs on the given number of threads (0: GOMAXPROCS), which does not change the
// result. It panics if the graph has no edge features or dst has another length.
//
// Cost: one read of each edge's row, at places that the positions choose.
func (b *Block) GatherEdgeFeatures(dst []float32, cols, threads int) {
	rows := b.edges()
	x := rows.Features
	if x == nil {
		panic("graphops: GatherEdgeFeatures: the edges of the block's graph have no features")
	}
	if len(dst) != b.NumEdges()*cols {
		panic(fmt.Sprintf("graphops: GatherEdgeFeatures: %d elements for %d edges with %d features", len(dst), b.NumEdges(), cols))
	}
	indptr, c := b.Indptr(), cols
	first := indptr[0]
	parallel.For(threads, b.NumDst, max(1, (1<<12)/c), func(lo, hi int) {
		var sum []float64
		for d := lo; d < hi; d++ {
			from, to := indptr[d]-first, indptr[d+1]-first
			for e := from; e < to; e++ {
				row := dst[int(e)*c : int(e+1)*c]
				if at, ok := rows.row(e); ok {
					x.CopyRow(row, at)
				} else { // SelfLooped puts it after the destination's other edges
					sum = append(sum[:0], make([]float64, c)...)
					for o := from; o < e; o++ {
						for i, v := range dst[int(o)*c : int(o+1)*c] {
							sum[i] += float64(v)
						}
					}
					for i, s := range sum {
						row[i] = float32(s / float64(max(e-from, 1)))
					}
				}
			}
		}
	})
}

// HasTimes reports whether the edges of the block's graph have times.
func (b *Block) HasTimes() bool {
	return b.own.Times != nil || b.Graph != nil && b.Graph.EdgeTimes != nil
}

// Times returns the time of each edge: Times()[e-Indptr()[0]] is edge e's. It is nil if the edges of
// the block's graph have none. A self-loop that [Block.SelfLooped] added has the earliest time of its
// destination's other edges in the block, or 0 if there are none. The first call makes the slice,
// unless the block is a slice of the graph or of a part, whose memory it then is; it is valid as long as the block
// and must not be written to.
func (b *Block) Times() []int64 {
	if !b.HasTimes() {
		return nil
	}
	rows, indptr := b.edges(), b.Indptr()
	all := rows.Times
	if rows.pos == nil && rows.own == nil {
		return all[rows.from : rows.from+int64(b.NumEdges())]
	}
	type key struct{}
	return b.MemoIn(key{}, func(old any) any {
		was, _ := old.([]int64)
		times, first := room(was, b.NumEdges()), indptr[0]
		for d := range b.NumDst {
			earliest := int64(math.MaxInt64)
			for e := indptr[d] - first; e < indptr[d+1]-first; e++ {
				at, ok := rows.row(e)
				switch {
				case ok:
					times[e] = all[at]
					earliest = min(earliest, times[e])
				case e == indptr[d]-first:
					times[e] = 0
				default:
					times[e] = earliest
				}
			}
		}
		return times
	}).([]int64)
}
