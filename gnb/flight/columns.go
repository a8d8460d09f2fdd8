package flight

import (
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// piece is what the server has of a dataset: the whole, or one part.
type piece struct {
	index  int
	rows   int     // own nodes
	own    []int32 // their global ids, ascending; nil: row v is node v
	global []int32 // the global ids of local sources; nil: they are global
	graph  *graphops.Graph
	x      *dataset.Matrix
	sparse *dataset.Sparse
	y      []int32
	multi  *dataset.Multi
	base   int64 // the first row that x or sparse has
}

// row returns the first row whose node is v or a later one.
func (p *piece) row(v int32) int {
	if p.own == nil {
		return int(v)
	}
	return sort.Search(len(p.own), func(i int) bool { return p.own[i] >= v })
}

// node returns the global id of a row.
func (p *piece) node(row int) int32 {
	if p.own == nil {
		return int32(row)
	}
	return p.own[row]
}

// source returns the global id of an edge's source.
func (p *piece) source(e int64) int32 {
	u := p.graph.Indices[e]
	if p.global == nil {
		return u
	}
	return p.global[u]
}

// column is a column of a table. Values fills a record batch: of the nodes of the rows lo to hi of the table nodes, or
// of the edges lo to hi of the table edges.
type column struct {
	field  arrow.Field
	bytes  int // of a row, about
	values func(p *piece, lo, hi int64) arrow.ArrayData
}

// columns returns all columns of a request's table.
func (s *Server) columns(r *request) []column {
	if r.Table == edgesTable {
		return s.edgeColumns()
	}
	p := r.parts[0]
	all := []column{{field: arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, bytes: 8, values: func(p *piece, lo, hi int64) arrow.ArrayData {
		ids := make([]int64, hi-lo)
		for i := range ids {
			ids[i] = int64(p.node(int(lo) + i))
		}
		return plain(arrow.PrimitiveTypes.Int64, raw(ids), len(ids))
	}}}
	if types := s.ds.Schema(); types != nil {
		names, starts := make([]string, len(types.Nodes)), types.Starts()
		for t, n := range types.Nodes {
			names[t] = n.Name
		}
		all = append(all, word("type", names, func(p *piece, row int64) int {
			return sort.Search(len(names)-1, func(t int) bool { return int(p.node(int(row))) < starts[t+1] })
		}))
	}
	switch {
	case p.x != nil:
		element, size := arrow.PrimitiveTypes.Float32, 4
		if p.x.Half() {
			element, size = arrow.FixedWidthTypes.Float16, 2
		}
		all = append(all, list("features", element, p.x.Cols, size, func(p *piece) []byte {
			if p.x.Half() {
				return raw(p.x.F16)
			}
			return raw(p.x.F32)
		}, func(p *piece) int64 { return p.base }))
	case p.sparse != nil:
		all = append(all, s.sparseColumns(p)...)
	}
	switch {
	case p.multi != nil:
		all = append(all, list("labels", arrow.PrimitiveTypes.Int8, p.multi.Cols, 1, func(p *piece) []byte { return raw(p.multi.Data) }, first))
	case p.y != nil:
		all = append(all, column{field: arrow.Field{Name: "label", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, bytes: 4, values: func(p *piece, lo, hi int64) arrow.ArrayData {
			y := p.y[lo:hi]
			known, nulls := bitmap(len(y), func(i int) bool { return y[i] >= 0 })
			return array.NewData(arrow.PrimitiveTypes.Int32, len(y), []*memory.Buffer{memory.NewBufferBytes(known), memory.NewBufferBytes(raw(y))}, nil, nulls, 0)
		}})
	}
	for _, c := range s.splits() {
		all = append(all, c.column())
	}
	return all
}

// first is the first row of what has all rows.
func first(*piece) int64 { return 0 }

// word returns a column of one of a few words in each row.
func word(name string, words []string, of func(p *piece, row int64) int) column {
	longest := 0
	for _, w := range words {
		longest = max(longest, len(w))
	}
	return column{field: arrow.Field{Name: name, Type: arrow.BinaryTypes.String}, bytes: 4 + longest, values: func(p *piece, lo, hi int64) arrow.ArrayData {
		offsets, text := make([]int32, hi-lo+1), []byte{}
		for i := range hi - lo {
			text = append(text, words[of(p, lo+i)]...)
			offsets[i+1] = int32(len(text))
		}
		return array.NewData(arrow.BinaryTypes.String, int(hi-lo), []*memory.Buffer{nil, memory.NewBufferBytes(raw(offsets)), memory.NewBufferBytes(text)}, nil, 0, 0)
	}}
}

// list returns a column of equally long lists, whose memory is data(p) [rows, n] from row base(p) on.
func list(name string, element arrow.DataType, n, size int, data func(p *piece) []byte, base func(p *piece) int64) column {
	dt := arrow.FixedSizeListOfNonNullable(int32(n), element)
	return column{field: arrow.Field{Name: name, Type: dt}, bytes: n * size, values: func(p *piece, lo, hi int64) arrow.ArrayData {
		lo, hi = lo-base(p), hi-base(p)
		child := plain(element, data(p)[int(lo)*n*size:int(hi)*n*size], int(hi-lo)*n)
		return array.NewData(dt, int(hi-lo), []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0)
	}}
}

// sparseColumns returns the columns of sparse features.
func (s *Server) sparseColumns(p *piece) []column {
	mean := 1
	if n := p.sparse.Rows; n > 0 {
		mean = 1 + len(p.sparse.Indices)/n
	}
	of := func(name string, element arrow.DataType, data func(x *dataset.Sparse) []byte) column {
		dt := arrow.ListOfNonNullable(element)
		return column{field: arrow.Field{Name: name, Type: dt}, bytes: 4 + 4*mean, values: func(p *piece, lo, hi int64) arrow.ArrayData {
			lo, hi = lo-p.base, hi-p.base
			at := p.sparse.Indptr[lo : hi+1]
			offsets := make([]int32, len(at))
			for i, o := range at {
				offsets[i] = int32(o - at[0])
			}
			end := at[len(at)-1]
			child := plain(element, data(p.sparse)[4*at[0]:4*end], int(end-at[0]))
			return array.NewData(dt, int(hi-lo), []*memory.Buffer{nil, memory.NewBufferBytes(raw(offsets))}, []arrow.ArrayData{child}, 0, 0)
		}}
	}
	all := []column{of("feature_indices", arrow.PrimitiveTypes.Int32, func(x *dataset.Sparse) []byte { return raw(x.Indices) })}
	if p.sparse.Values != nil {
		all = append(all, of("feature_values", arrow.PrimitiveTypes.Float32, func(x *dataset.Sparse) []byte { return raw(x.Values) }))
	}
	return all
}

func (s *Server) edgeColumns() []column {
	ids := func(name string, fill func(p *piece, ids []int64, lo int64)) column {
		return column{field: arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64}, bytes: 8, values: func(p *piece, lo, hi int64) arrow.ArrayData {
			to := make([]int64, hi-lo)
			fill(p, to, lo)
			return plain(arrow.PrimitiveTypes.Int64, raw(to), len(to))
		}}
	}
	all := []column{
		ids("src", func(p *piece, ids []int64, lo int64) {
			for i := range ids {
				ids[i] = int64(p.source(lo + int64(i)))
			}
		}),
		ids("dst", func(p *piece, ids []int64, lo int64) {
			row := sort.Search(p.rows, func(v int) bool { return p.graph.Indptr[v+1] > lo })
			for i := range ids {
				for p.graph.Indptr[row+1] <= lo+int64(i) {
					row++
				}
				ids[i] = int64(p.node(row))
			}
		}),
	}
	if types := s.ds.Schema(); types != nil {
		names := make([]string, len(types.Relations))
		for r, of := range types.Relations {
			names[r] = of.String()
		}
		all = append(all, word("relation", names, func(p *piece, e int64) int { return int(p.graph.EdgeTypes[e]) }))
	}
	if s.parts[0].graph.EdgeWeights != nil {
		all = append(all, column{field: arrow.Field{Name: "weight", Type: arrow.PrimitiveTypes.Float32}, bytes: 4, values: func(p *piece, lo, hi int64) arrow.ArrayData {
			return plain(arrow.PrimitiveTypes.Float32, raw(p.graph.EdgeWeights[lo:hi]), int(hi-lo))
		}})
	}
	if x := s.parts[0].graph.EdgeFeatures; x != nil {
		element, size := arrow.PrimitiveTypes.Float32, 4
		if x.Half() {
			element, size = arrow.FixedWidthTypes.Float16, 2
		}
		all = append(all, list("features", element, x.Cols, size, func(p *piece) []byte {
			if x := p.graph.EdgeFeatures; x.Half() {
				return raw(x.F16)
			}
			return raw(p.graph.EdgeFeatures.F32)
		}, first))
	}
	if s.parts[0].graph.EdgeTimes != nil {
		all = append(all, column{field: arrow.Field{Name: "time", Type: arrow.PrimitiveTypes.Int64}, bytes: 8, values: func(p *piece, lo, hi int64) arrow.ArrayData {
			return plain(arrow.PrimitiveTypes.Int64, raw(p.graph.EdgeTimes[lo:hi]), int(hi-lo))
		}})
	}
	return all
}

// splitColumn is a column of splits. It has the name of the first split that has the node, or, as a mask, whether the
// one split has it.
type splitColumn struct {
	name  string
	mask  bool
	names []string
	has   [][]uint64 // by split, a bit per node
}

// splitColumns makes the columns of a dataset's splits, from a bit per node and split.
func splitColumns(ds *dataset.Dataset) []splitColumn {
	var all []splitColumn
	for _, name := range ds.SplitNames() {
		has := make([]uint64, (ds.Nodes()+63)/64)
		for _, v := range ds.Splits[name] {
			has[v/64] |= 1 << (v % 64)
		}
		base, set, further := strings.Cut(name, "@")
		column := "split"
		if further {
			column += "@" + set
		}
		i := slices.IndexFunc(all, func(c splitColumn) bool { return c.name == column })
		if i < 0 {
			i = len(all)
			all = append(all, splitColumn{name: column})
		}
		all[i].names, all[i].has = append(all[i].names, base), append(all[i].has, has)
	}
	var columns []splitColumn
	for _, c := range all {
		if c.apart() {
			columns = append(columns, c)
			continue
		}
		for i, name := range c.names {
			columns = append(columns, splitColumn{name: name + "_mask" + strings.TrimPrefix(c.name, "split"), mask: true, has: c.has[i : i+1]})
		}
	}
	return columns
}

// apart reports whether no node is in two of the splits.
func (c *splitColumn) apart() bool {
	seen := make([]uint64, len(c.has[0]))
	for _, has := range c.has {
		for i, b := range has {
			if seen[i]&b != 0 {
				return false
			}
			seen[i] |= b
		}
	}
	return true
}

func (c splitColumn) column() column {
	in := func(k int, v int32) bool { return c.has[k][v/64]>>(v%64)&1 != 0 }
	if c.mask {
		return column{field: arrow.Field{Name: c.name, Type: arrow.FixedWidthTypes.Boolean}, bytes: 1, values: func(p *piece, lo, hi int64) arrow.ArrayData {
			bits, _ := bitmap(int(hi-lo), func(i int) bool { return in(0, p.node(int(lo)+i)) })
			return plain(arrow.FixedWidthTypes.Boolean, bits, int(hi-lo))
		}}
	}
	longest := 0
	for _, name := range c.names {
		longest = max(longest, len(name))
	}
	return column{field: arrow.Field{Name: c.name, Type: arrow.BinaryTypes.String, Nullable: true}, bytes: 4 + longest, values: func(p *piece, lo, hi int64) arrow.ArrayData {
		n := int(hi - lo)
		offsets, text := make([]int32, n+1), []byte{}
		known, nulls := bitmap(n, func(i int) bool {
			v := p.node(int(lo) + i)
			k := 0
			for k < len(c.names) && !in(k, v) {
				k++
			}
			if k < len(c.names) {
				text = append(text, c.names[k]...)
			}
			offsets[i+1] = int32(len(text))
			return k < len(c.names)
		})
		return array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{memory.NewBufferBytes(known), memory.NewBufferBytes(raw(offsets)), memory.NewBufferBytes(text)}, nil, nulls, 0)
	}}
}

// plain returns n values without nulls.
func plain(dt arrow.DataType, values []byte, n int) arrow.ArrayData {
	return array.NewData(dt, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
}

// bitmap returns n bits and the number of those that are 0. It calls bit in ascending order.
func bitmap(n int, bit func(i int) bool) (bits []byte, zeros int) {
	bits = make([]byte, (n+7)/8)
	for i := range n {
		if bit(i) {
			bits[i/8] |= 1 << (i % 8)
		} else {
			zeros++
		}
	}
	return bits, zeros
}

// raw returns the memory of a slice.
func raw[T any](x []T) []byte {
	if len(x) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}
