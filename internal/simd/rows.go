package simd

import "fmt"

// Rows is a row-major table in memory that rows are taken from by number.
type Rows struct {
	Data   []float32
	Stride int // elements from one row to the next
	// Via, if set, says that row i is stored as row Via[i]: rows of a block's
	// sources straight from the features of all nodes.
	Via []int32
}

// Holds tells whether the table has cols elements of a row for each of ids. Where
// Via is set this is a check of the ids alone; check Via itself as the ids of the
// table without it, once. Cost: one pass over ids.
func (t *Rows) Holds(ids []int32, cols int) bool {
	return len(ids) == 0 || maxID(ids) < uint32(t.rows(cols))
}

// rows is the number of rows with cols elements that the table has.
func (t *Rows) rows(cols int) int {
	switch {
	case t.Via != nil:
		return len(t.Via)
	case len(t.Data) < cols:
		return 0
	case cols == 0 || t.Stride == 0:
		return 1 << 31
	}
	return (len(t.Data)-cols)/t.Stride + 1
}

// maxID is the greatest of the ids read as unsigned numbers: a negative one is
// above 2^31. It is 0 without ids.
func maxID(ids []int32) uint32 {
	var top uint32
	for _, id := range ids {
		top = max(top, uint32(id))
	}
	return top
}

func checkIDs(op string, ids []int32, n int) {
	if n < 0 || n > len(ids) {
		panic(fmt.Sprintf("simd: %s: %d of %d ids", op, n, len(ids)))
	}
}

// SumRows is o = w·Σ_{i<n} t[ids[i]], or o += with acc. The sum starts at 0 and
// goes by ascending i, element by element. ids[n:] are the rows that are wanted
// next: the first few are prefetched. Cost: n·len(o)·4 bytes read at random.
func SumRows(o []float32, t *Rows, ids []int32, n int, w float32, acc bool) {
	checkIDs("SumRows", ids, n)
	sumRowsGo(o, t, ids[:n], w, acc)
}

func (t *Rows) row(id int32, cols int) []float32 {
	if t.Via != nil {
		id = t.Via[id]
	}
	return t.Data[int(id)*t.Stride:][:cols]
}

func sumRowsGo(o []float32, t *Rows, ids []int32, w float32, acc bool) {
	var block [64]float32
	for lo := 0; lo < len(o); lo += len(block) {
		sum := block[:min(len(block), len(o)-lo)]
		clear(sum)
		for _, id := range ids {
			x := t.row(id, lo+len(sum))[lo:]
			for i := range sum {
				sum[i] += x[i]
			}
		}
		for i, s := range sum {
			s *= w
			if acc {
				s += o[lo+i]
			}
			o[lo+i] = s
		}
	}
}

// GatherRows is dst[i,:] = t[ids[i]] for all of ids, with dst [len(ids),cols]
// row-major without gaps. It panics on an id that t does not hold. Cost: one pass
// over the rows, prefetched.
func GatherRows(dst []float32, t *Rows, cols int, ids []int32) {
	checkLen("GatherRows", len(dst), len(ids)*cols)
	if !t.Holds(ids, cols) {
		panic(fmt.Sprintf("simd: GatherRows: an id is not in the table of %d rows", t.rows(cols)))
	}
	gatherRowsGo(dst, t, cols, ids)
}

func gatherRowsGo(dst []float32, t *Rows, cols int, ids []int32) {
	for i, id := range ids {
		copy(dst[i*cols:(i+1)*cols], t.row(id, cols))
	}
}
