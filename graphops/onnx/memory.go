package onnx

import (
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/graphops/ops"
)

// value is a matrix of the model that is made.
type value struct {
	kind       kind
	name       string
	rows, cols int  // in this recording
	static     bool // rows is the same number in every batch
	// of and by are those of a piece: elements [from, …) of the matrix of, multiplied by the number by.
	of   *value
	by   string
	from int
}

// kind says what a value's name is.
type kind int

const (
	matrix kind = iota
	zeros       // all elements are 0, and there is no name
	oneRow      // [1, cols], and each row is that
	number      // [1, 1], and each element is that
	piece
	columns // made of columns, which are in the region
)

// region is a range of elements of a memory.
type region struct {
	lo, hi int
	v      value
	parts  []part // of columns, by their first column
	zero   bool   // columns between the parts are 0
}

// part are some columns of a matrix.
type part struct {
	at int
	v  value
}

// memory is what a buffer's Dev is: regions in ascending order, without overlaps.
type memory struct {
	regions []region
	host    []float32 // that was wrapped and not read yet; nil if there is none
}

func memoryOf(b ops.Buffer) *memory {
	m, ok := b.Dev.(*memory)
	if !ok {
		refuse("an operation reads memory that is not the recording's")
	}
	return m
}

// clear removes what lies in [lo, hi), and returns whether it was all zeros. A region of zeros that reaches further stays there.
func (m *memory) clear(lo, hi int) (zero bool) {
	var kept []region
	covered := lo
	for _, r := range m.regions {
		if r.hi <= lo || r.lo >= hi {
			kept = append(kept, r)
			continue
		}
		if r.v.kind != zeros {
			continue // memory that is used again
		}
		if r.lo <= covered {
			covered = max(covered, r.hi)
		}
		if r.lo < lo {
			kept = append(kept, region{lo: r.lo, hi: lo, v: value{kind: zeros}})
		}
		if r.hi > hi {
			kept = append(kept, region{lo: hi, hi: r.hi, v: value{kind: zeros}})
		}
	}
	slices.SortFunc(kept, func(a, b region) int { return a.lo - b.lo })
	m.regions = kept
	return covered >= hi
}

// put makes [lo, hi) a value.
func (m *memory) put(lo, hi int, v value) {
	if lo < hi {
		m.clear(lo, hi)
		m.insert(region{lo: lo, hi: hi, v: v})
	}
}

func (m *memory) insert(r region) {
	at, _ := slices.BinarySearchFunc(m.regions, r.lo, func(x region, lo int) int { return x.lo - lo })
	m.regions = slices.Insert(m.regions, at, r)
}

// within returns the regions that make up [lo, hi): one that holds all of it, or several that follow one another.
func (m *memory) within(lo, hi int) []region {
	for i, r := range m.regions {
		if r.lo <= lo && r.hi >= hi {
			return m.regions[i : i+1]
		}
		if r.lo == lo {
			for k := i; k < len(m.regions) && (k == i || m.regions[k].lo == m.regions[k-1].hi); k++ {
				if m.regions[k].hi == hi {
					return m.regions[i : k+1]
				}
			}
		}
	}
	return nil
}

// store makes a matrix [rows, cols] the content of a buffer, or adds it to that.
func (r *recorder) store(out ops.Buffer, rows, cols int, v value, acc bool) {
	n := rows * cols
	if acc {
		v = r.add(r.read(out, rows, cols), v)
	}
	if v.rows, v.cols = rows, cols; n > 0 {
		memoryOf(out).put(out.Off, out.Off+n, v)
	}
}

func (r *recorder) add(a, b value) value {
	if a.kind == zeros {
		return b
	}
	if b.kind == zeros {
		return a
	}
	if a.kind == oneRow {
		a, b = b, a
	}
	a = r.whole(a)
	return r.result(a.rows, a.cols, a.static && r.adapts(b), r.g.do("Add", of(a.name, r.broadcast(b))))
}

// adapts reports whether an operation of a value with a static matrix is static: equal rows have as many as the other matrix.
func (r *recorder) adapts(v value) bool { return v.static || v.kind == oneRow || v.kind == number }

// broadcast returns the name of a value that an operation with a matrix of its shape expands.
func (r *recorder) broadcast(v value) string {
	if v.kind == oneRow || v.kind == number {
		return v.name
	}
	return r.whole(v).name
}

// result is a matrix with a name.
func (r *recorder) result(rows, cols int, static bool, name string) value {
	return value{name: name, rows: rows, cols: cols, static: static}
}

// whole makes a value a matrix.
func (r *recorder) whole(v value) value {
	switch v.kind {
	case matrix:
		return v
	case zeros:
		return r.filled(0, v)
	case oneRow, number:
		return r.result(v.rows, v.cols, v.static, r.g.do("Expand", of(v.name, r.shape(v.rows, v.cols, v.static))))
	}
	refuse("a result is used before it is complete")
	return v
}

// filled is a matrix of equal elements, of the shape of v.
func (r *recorder) filled(x float32, v value) value {
	return r.result(v.rows, v.cols, v.static, r.g.do("Expand", of(r.g.number(x), r.shape(v.rows, v.cols, v.static))))
}

// shape is the vector of a matrix's dimensions.
func (r *recorder) shape(rows, cols int, static bool) string {
	if static {
		return r.g.ints(int64(rows), int64(cols))
	}
	return r.g.do("Concat", of(r.dim(rows), r.g.ints(int64(cols))), withInt("axis", 0))
}

// read returns the matrix [rows, cols] in a buffer; it may be of any kind but piece and columns.
func (r *recorder) read(b ops.Buffer, rows, cols int) value {
	m, lo, hi := memoryOf(b), b.Off, b.Off+rows*cols
	r.resolve(m, rows, cols, lo, hi)
	if lo == hi {
		return value{kind: zeros, rows: rows, cols: cols, static: true}
	}
	found := m.within(lo, hi)
	switch {
	case len(found) == 0:
		refuse("it reads memory that nothing has written")
	case len(found) == 1:
		return r.readIn(&found[0], lo, hi, rows, cols)
	}
	if v, ok := r.joined(found); ok {
		v = r.reshape(v, rows, cols)
		m.put(lo, hi, v)
		return v
	}
	var names []string
	static := true
	for i := range found {
		x := &found[i]
		n := x.hi - x.lo
		if n%cols != 0 {
			refuse("parts of a matrix are joined that are no whole rows")
		}
		v := r.whole(r.readIn(x, x.lo, x.hi, n/cols, cols))
		names, static = append(names, v.name), static && v.static
	}
	v := r.result(rows, cols, static, r.g.do("Concat", names, withInt("axis", 0)))
	m.put(lo, hi, v)
	return v
}

// resolve finds out what memory of the host is, of which elements [lo, hi) are read as a matrix [rows, cols].
func (r *recorder) resolve(m *memory, rows, cols, lo, hi int) {
	if host := m.host; host != nil {
		m.host = nil
		m.put(0, len(host), r.wrapped(host, rows, cols, lo, hi))
	}
}

// joined returns the product of which regions are pieces.
func (r *recorder) joined(all []region) (v value, ok bool) {
	next := all[0].v.from
	for _, x := range all {
		p := x.v
		if p.kind != piece || p.of != all[0].v.of && *p.of != *all[0].v.of || p.by != all[0].v.by || p.from != next {
			return v, false
		}
		next += x.hi - x.lo
	}
	x := *all[0].v.of
	if from := all[0].v.from; from > 0 || next < x.rows*x.cols {
		if from%x.cols != 0 || next%x.cols != 0 {
			return v, false
		}
		x = r.rows(x, from/x.cols, next/x.cols)
	}
	return r.result(x.rows, x.cols, x.static, r.g.do("Mul", of(x.name, all[0].v.by))), true
}

// readIn returns elements [lo, hi) of a region as a matrix.
func (r *recorder) readIn(x *region, lo, hi, rows, cols int) value {
	if x.v.kind == columns {
		x.v = r.assembled(x)
		x.parts = nil
	}
	v := x.v
	switch {
	case v.kind == zeros:
		return value{kind: zeros, rows: rows, cols: cols, static: v.static}
	case v.kind == piece:
		if w, ok := r.joined([]region{*x}); ok {
			x.v = w
			return r.readIn(x, lo, hi, rows, cols)
		}
		refuse("a part of a product by a number is read alone")
	case v.kind == number:
		return value{kind: number, name: v.name, rows: rows, cols: cols, static: v.static}
	case lo == x.lo && hi == x.hi:
		return r.reshape(v, rows, cols)
	}
	if v.static && cols != v.cols { // elements of a constant
		wide := cols
		if v.rows*v.cols%cols != 0 || (lo-x.lo)%cols != 0 {
			wide = 1
		}
		v = r.reshape(v, v.rows*v.cols/wide, wide)
	}
	from, to := lo-x.lo, hi-x.lo
	if from%v.cols != 0 || to%v.cols != 0 {
		refuse("a part of a matrix is read that is no whole rows")
	}
	return r.reshape(r.rows(v, from/v.cols, to/v.cols), rows, cols)
}

// rows are the rows [lo, hi) of a matrix.
func (r *recorder) rows(v value, lo, hi int) value {
	if v.kind == oneRow {
		v.rows = hi - lo
		return v
	}
	at := func(n int) string {
		switch {
		case n == 0 || v.static:
			return r.g.ints(int64(n))
		case n == v.rows:
			return r.g.ints(1<<63 - 1)
		}
		return r.boundAt(v.rows, n)
	}
	return r.result(hi-lo, v.cols, v.static, r.g.do("Slice", of(v.name, at(lo), at(hi), r.g.ints(0))))
}

func (r *recorder) reshape(v value, rows, cols int) value {
	if v.cols == cols {
		v.rows = rows
		return v
	}
	v = r.whole(v)
	static := v.static || rows == 1
	shape := r.g.ints(-1, int64(cols))
	if static {
		shape = r.g.ints(int64(rows), int64(cols))
	}
	if rows == 1 && !v.static {
		refuse("rows of nodes or edges are joined into one row")
	}
	return r.result(rows, cols, static, r.g.do("Reshape", of(v.name, shape)))
}

// readAny returns the matrix in a buffer in the shape in which it was written; memory of the host in that of another buffer, if that has
// one.
func (r *recorder) readAny(b ops.Buffer, like ...ops.Buffer) value {
	if b.N == 0 {
		return value{kind: zeros, static: true}
	}
	m := memoryOf(b)
	if m.host != nil {
		for _, other := range like {
			if memoryOf(other).host == nil {
				v := r.readAny(other)
				return r.read(b, v.rows, v.cols)
			}
		}
		r.read(b, 1, b.N)
	}
	found := m.within(b.Off, b.Off+b.N)
	if len(found) == 0 {
		refuse("it reads memory that nothing has written")
	}
	cols := found[0].v.cols
	if cols == 0 || b.N%cols != 0 {
		cols = b.N
	}
	return r.read(b, b.N/cols, cols)
}

// storeColumns makes some columns of a matrix [rows, wide] the content of a buffer's.
func (r *recorder) storeColumns(out ops.Buffer, rows, wide, at int, v value, acc bool) {
	if rows*wide == 0 {
		return
	}
	if at == 0 && v.cols == wide {
		r.store(out, rows, wide, v, acc)
		return
	}
	if acc {
		refuse("it adds to some columns of a matrix")
	}
	m, lo, hi := memoryOf(out), out.Off, out.Off+rows*wide
	i := slices.IndexFunc(m.regions, func(x region) bool { return x.lo == lo && x.hi == hi && x.v.kind == columns })
	if i < 0 {
		zero := m.clear(lo, hi)
		m.insert(region{lo: lo, hi: hi, v: value{kind: columns, rows: rows, cols: wide}, zero: zero})
		i = slices.IndexFunc(m.regions, func(x region) bool { return x.lo == lo })
	}
	x := &m.regions[i]
	x.parts = slices.DeleteFunc(x.parts, func(p part) bool { return p.at == at })
	x.parts = append(x.parts, part{at, v})
	slices.SortFunc(x.parts, func(a, b part) int { return a.at - b.at })
}

// assembled joins the columns of a region.
func (r *recorder) assembled(x *region) value {
	var names []string
	static, next := true, 0
	like := r.whole(x.parts[0].v)
	gap := func(to int) {
		switch {
		case to < next:
			refuse("columns of a matrix are written twice")
		case to > next && !x.zero:
			refuse("columns of a matrix are read that nothing has written")
		case to > next:
			v := like
			v.cols = to - next
			names = append(names, r.filled(0, v).name)
		}
	}
	for _, p := range x.parts {
		gap(p.at)
		v := r.whole(p.v)
		names, static, next = append(names, v.name), static && v.static, p.at+v.cols
	}
	gap(x.v.cols)
	name := names[0]
	if len(names) > 1 {
		name = r.g.do("Concat", names, withInt("axis", 1))
	}
	return r.result(x.v.rows, x.v.cols, static, name)
}

// refuse ends the recording: what is done there has no ONNX form.
func refuse(format string, args ...any) {
	panic(&ops.Failure{Err: fmt.Errorf(format, args...)})
}
