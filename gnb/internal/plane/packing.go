package plane

import (
	"encoding/binary"
	"fmt"
)

// sparse returns this rank's rows if they have room for the longest one, else nil. They travel in their true lengths.
func (x *Exchange) sparse() *SparseBook {
	p, _ := x.Own.(*SparseBook)
	return p
}

// check returns an error unless b are the n rows that rank r was asked for, in a message of the right kind.
func (x *Exchange) check(kind bool, r int, b []byte, n int) error {
	rest := len(b) - n*x.RowBytes
	if p := x.sparse(); p != nil {
		x.Counts.add(Rows{Bytes: int64(rest)}) // a window counts whole rows
		rows := b
		for range n {
			k := p.unpack(nil, rows)
			kind = kind && k > 0
			rows = rows[k:]
		}
		rest = len(rows)
	}
	if !kind || rest != 0 {
		return fmt.Errorf("rank %d answered a request for %d rows of features with %d bytes; all ranks must have the same division of the dataset", r, n, len(b))
	}
	return nil
}

// visit writes the rows of the nodes ids, which ranks have sent, to the memory to(i) of row i.
func (x *Exchange) visit(ids []int32, rows [][]byte, to func(i int) []byte) {
	p := x.sparse()
	for i, v := range ids { // a rank's rows are in the order of ids
		r, n := x.Owner(v), x.RowBytes
		if p == nil {
			copy(to(i), rows[r][:n])
		} else {
			n = p.unpack(to(i), rows[r])
		}
		rows[r] = rows[r][n:]
	}
}

// pack moves rows to the front of their memory, each in its true length, and returns what they take. A row that is longer
// than the longest one keeps its number of elements, which is reported when it is read.
func (o *SparseBook) pack(rows []byte) []byte {
	size, to := o.RowBytes(), 0
	for at := 0; at < len(rows); at += size {
		row := rows[at : at+size]
		n := 4 * min(int(binary.NativeEndian.Uint32(row)), o.longest)
		to += copy(rows[to:], row[:4+n])
		if !o.ones {
			to += copy(rows[to:], row[4+4*o.longest:][:n])
		}
	}
	return rows[:to]
}

// unpack returns the length of the first one of rows that another rank has packed, or 0 if no row can be like it, and writes
// it to dst, the memory of a row, unless that is nil.
func (o *SparseBook) unpack(dst, rows []byte) int {
	n := -1
	if len(rows) >= 4 {
		n = 4 * int(int32(binary.NativeEndian.Uint32(rows)))
	}
	values := n
	if o.ones {
		values = 0
	}
	if n < 0 || n > 4*o.longest || len(rows) < 4+n+values {
		return 0
	}
	if dst != nil {
		copy(dst, rows[:4+n])
		copy(dst[4+4*o.longest:], rows[4+n:4+n+values])
	}
	return 4 + n + values
}
