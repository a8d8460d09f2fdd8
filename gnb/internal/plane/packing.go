package plane

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// packing is an [Own] whose rows have room for the longest one, and travel between ranks in their true lengths. Its methods
// are safe for concurrent use.
type packing interface {
	// pack moves rows to the front of their memory, each in its true length, and returns what they take.
	pack(rows []byte) []byte
	// packed returns the length of the first one of packed rows, which another rank has sent.
	packed(rows []byte) (int, error)
	// unpack writes a packed row, whose length packed has returned, to the memory of a row.
	unpack(dst, row []byte)
}

// packing returns what packs the rows, or nil.
func (x *Exchange) packing() packing {
	p, _ := x.Own.(packing)
	return p
}

// check returns an error unless b are the n rows that rank r was asked for.
func (x *Exchange) check(r int, b []byte, n int) error {
	p := x.packing()
	if p == nil {
		if len(b) != n*x.RowBytes {
			return fmt.Errorf("rank %d answered a request for %d rows of %d bytes with %d bytes; all ranks must have the same division of the dataset", r, n, x.RowBytes, len(b))
		}
		return nil
	}
	rest := b
	for i := range n {
		k, err := p.packed(rest)
		if err != nil {
			return fmt.Errorf("rank %d answered a request for %d rows with %d bytes, and row %d is damaged: %w", r, n, len(b), i, err)
		}
		rest = rest[k:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("rank %d answered a request for %d rows with %d bytes too many; all ranks must have the same division of the dataset", r, n, len(rest))
	}
	x.Counts.add(Rows{Bytes: int64(len(b) - n*x.RowBytes)}) // a window counts whole ones
	return nil
}

// visit writes the rows of the nodes ids, which ranks have sent, to the memory to(i) of row i.
func (x *Exchange) visit(ids []int32, rows [][]byte, to func(i int) []byte) {
	p := x.packing()
	for i, v := range ids { // a rank's rows are in the order of ids
		r, n := x.Owner(v), x.RowBytes
		if p == nil {
			copy(to(i), rows[r][:n])
		} else {
			n, _ = p.packed(rows[r]) // check has seen it
			p.unpack(to(i), rows[r][:n])
		}
		rows[r] = rows[r][n:]
	}
}

// pack implements packing. A row that is longer than the longest one keeps its number of elements, which is reported when it
// is read.
func (o *SparseBook) pack(rows []byte) []byte {
	size, to := o.RowBytes(), 0
	for at := 0; at < len(rows); at += size {
		row := rows[at : at+size]
		n := min(int(binary.NativeEndian.Uint32(row)), o.longest)
		to += copy(rows[to:], row[:4+4*n])
		if !o.ones {
			to += copy(rows[to:], row[4+4*o.longest:][:4*n])
		}
	}
	return rows[:to]
}

// packed implements packing.
func (o *SparseBook) packed(rows []byte) (int, error) {
	if len(rows) < 4 {
		return 0, errors.New("it ends early")
	}
	n := int(int32(binary.NativeEndian.Uint32(rows)))
	if err := o.checkLength(n); err != nil {
		return 0, err
	}
	size := 4 + 4*n
	if !o.ones {
		size += 4 * n
	}
	if len(rows) < size {
		return 0, errors.New("it ends early")
	}
	return size, nil
}

// unpack implements packing.
func (o *SparseBook) unpack(dst, row []byte) {
	n := int(binary.NativeEndian.Uint32(row))
	copy(dst, row[:4+4*n])
	if !o.ones {
		copy(dst[4+4*o.longest:], row[4+4*n:])
	}
}
