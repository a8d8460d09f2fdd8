package simd

import "fmt"

// narrowTable is the number of elements of a table that fits into a second-level cache; its rows
// need no prefetching.
const narrowTable = 1 << 18

// segments checks the arguments common to all sums over segments, and returns the numbers of
// segments and of ids.
func segments(op string, o []float32, cols int, indptr []int64, ids []int32) (rows, n int) {
	rows = len(indptr) - 1
	if rows < 0 {
		panic(fmt.Sprintf("simd: %s: no offsets", op))
	}
	checkLen(op, len(o), rows*cols)
	for r := range rows {
		if indptr[r+1] < indptr[r] {
			panic(fmt.Sprintf("simd: %s: offset %d is %d after %d", op, r+1, indptr[r+1], indptr[r]))
		}
	}
	n = int(indptr[rows] - indptr[0])
	if n > len(ids) {
		panic(fmt.Sprintf("simd: %s: offsets of %d ids, of which there are %d", op, n, len(ids)))
	}
	return rows, n
}

// noSums reports whether the sums o over n ids in total are empty, and in that case sets them.
func noSums(o []float32, n int, acc bool) bool {
	if n == 0 && !acc {
		clear(o)
	}
	return n == 0 || len(o) == 0
}

// ahead returns the prefetch distance for rows of the table, 0 for no prefetching.
func (t *Rows) ahead(cols int) int {
	if t.Len() <= narrowTable {
		return 0
	}
	return distance(cols)
}

// segmentCols returns the maximum number of columns that the kernels in use support.
func segmentCols() int {
	switch path {
	case AVX512:
		return 256
	case AVX2:
		return 64
	}
	return 0
}

// SumSegments is [SumRows] for all rows of o [len(indptr)-1, cols]: row r is the sum over
// ids[indptr[r]-indptr[0] : indptr[r+1]-indptr[0]] or, with mean, this sum times 1/n for n ids.
// With acc it adds to o. A row without ids becomes 0, or is unchanged with acc.
func SumSegments(o []float32, t *Rows, cols int, indptr []int64, ids []int32, mean, acc bool) {
	rows, n := segments("SumSegments", o, cols, indptr, ids)
	switch {
	case noSums(o, n, acc):
		return
	case t.Half == nil && t.Via == nil && cols <= segmentCols() &&
		sumSegments(&o[0], &t.Data[0], t.Stride, &ids[0], &indptr[0], rows, len(ids), t.ahead(cols), cols, asInt(acc), asInt(mean)):
		return
	}
	for r := range rows {
		m := int(indptr[r+1] - indptr[r])
		w := float32(1)
		if mean && m > 1 {
			w = 1 / float32(m)
		}
		SumRows(o[r*cols:(r+1)*cols], t, ids, m, w, acc)
		ids = ids[m:]
	}
}

// WeightedSumSegments is [SumSegments] with a weight for each id, as [WeightedSumRows] with step 1
// is [SumRows] with weights: the weight of ids[i] is w[i], or w[at[i]] if at is not nil. A row of
// weight 0 adds nothing, even if it holds NaN. It does not check the weights that at names.
func WeightedSumSegments(o []float32, t *Rows, cols int, indptr []int64, ids []int32, w []float32, at []int32, acc bool) {
	const op = "WeightedSumSegments"
	rows, n := segments(op, o, cols, indptr, ids)
	if at != nil {
		checkIDs(op, at, n)
	} else if n > len(w) {
		panic(fmt.Sprintf("simd: %s: %d weights of %d", op, n, len(w)))
	}
	switch {
	case noSums(o, n, acc):
		return
	case t.Half != nil || t.Via != nil || cols > segmentCols():
	case at == nil && weightedSegments(&o[0], &t.Data[0], t.Stride, &ids[0], &indptr[0], rows, len(ids), t.ahead(cols), cols, asInt(acc), &w[0]):
		return
	case at != nil && weightedSegmentsAt(&o[0], &t.Data[0], t.Stride, &ids[0], &indptr[0], rows, len(ids), t.ahead(cols), cols, asInt(acc), &w[0], &at[0]):
		return
	}
	for r := range rows {
		m := int(indptr[r+1] - indptr[r])
		WeightedSumRows(o[r*cols:(r+1)*cols], t, ids, m, w, 1, at, acc)
		ids = ids[m:]
		if at != nil {
			at = at[m:]
		} else {
			w = w[m:]
		}
	}
}

// ScatterSegments is the transpose of [SumSegments] and [WeightedSumSegments]: for each i of
// segment r, in ascending order, it adds row r of d [len(indptr)-1, cols], times w[i] if w is not
// nil, to row ids[i] of o [_, cols]; a weight of 0 adds +0. The ids must be rows of o: see
// [Rows.Holds]. Cost: one row of o read and written per id.
func ScatterSegments(o, d []float32, cols int, indptr []int64, ids []int32, w []float32) {
	const op = "ScatterSegments"
	rows, n := segments(op, d, cols, indptr, ids)
	if w != nil && n > len(w) {
		panic(fmt.Sprintf("simd: %s: %d weights of %d", op, n, len(w)))
	}
	switch {
	case n == 0 || cols == 0:
		return
	case cols > segmentCols():
	case w == nil && scatterSegments(&o[0], &d[0], &ids[0], &indptr[0], rows, cols):
		return
	case w != nil && weightedScatter(&o[0], &d[0], &ids[0], &indptr[0], rows, cols, &w[0]):
		return
	}
	for r := range rows {
		for i := indptr[r] - indptr[0]; i < indptr[r+1]-indptr[0]; i++ {
			v := float32(1)
			if w != nil {
				v = w[i]
			}
			at := o[int(ids[i])*cols:][:cols]
			for c, x := range d[r*cols : (r+1)*cols] {
				if x = float32(v * x); v == 0 {
					x = 0
				}
				at[c] += x
			}
		}
	}
}

// Ascending reports whether the ids of each segment strictly ascend and lie in [0, n). The offsets
// must not descend.
func Ascending(indptr []int64, ids []int32, n int) bool {
	first := indptr[0]
	ids = ids[:indptr[len(indptr)-1]-first]
	if len(ids) == 0 {
		return true
	}
	if int(maxID(ids)) >= n {
		return false
	}
	// All neighbours must ascend, except neighbours in different segments.
	ascents, want := 0, len(ids)-1
	var lanes [16]uint32
	if ascentLanes(&lanes[0], &ids[0], len(ids)-1) {
		for _, c := range lanes {
			ascents += int(c)
		}
	} else {
		for i, id := range ids[1:] {
			if id > ids[i] {
				ascents++
			}
		}
	}
	for r, start := range indptr[:len(indptr)-1] {
		if i := start - first; i > 0 && indptr[r+1] > start {
			want--
			if ids[i] > ids[i-1] {
				ascents--
			}
		}
	}
	return ascents == want
}
