package simd

import (
	"fmt"
	"unsafe"
)

// Rows is a row-major table in memory whose rows are selected by number.
type Rows struct {
	Data []float32
	// Half, if set, holds the elements as float16, and Data is unused. They are converted as they
	// are read, so results equal those of the converted table. Sums and gathering support such a
	// table; other functions panic.
	Half   []uint16
	Stride int // elements from one row to the next
	// Via, if set, maps row i to the stored row Via[i]: for example, a block's source rows directly
	// in the features of all nodes.
	Via []int32
}

// Holds reports whether every id names a row of cols elements of the table. If Via is set, it
// checks only the ids; check Via itself once, as the ids of the table without Via. Cost: one pass
// over ids.
func (t *Rows) Holds(ids []int32, cols int) bool {
	return len(ids) == 0 || maxID(ids) < uint32(t.rows(cols))
}

// rows returns the number of rows with cols elements that the table has.
func (t *Rows) rows(cols int) int {
	const most = 1 << 31 // bound of ids
	switch {
	case t.Via != nil:
		return len(t.Via)
	case t.Len() < cols:
		return 0
	case cols == 0 || t.Stride == 0:
		return most
	}
	return min((t.Len()-cols)/t.Stride+1, most)
}

// Len returns the number of elements of the table.
func (t *Rows) Len() int { return max(len(t.Data), len(t.Half)) }

func (t *Rows) row(id int32, cols int) []float32 {
	if t.Half != nil {
		panic("simd: a table of float16 is only summed and gathered")
	}
	if t.Via != nil {
		id = t.Via[id]
	}
	return t.Data[int(id)*t.Stride:][:cols]
}

// part returns the columns [lo, lo+n) of a row: a slice of the table or, for float16, buf with the
// converted values.
func (t *Rows) part(id int32, lo, n int, buf *[64]float32) []float32 {
	if t.Half == nil {
		return t.row(id, lo+n)[lo:]
	}
	if t.Via != nil {
		id = t.Via[id]
	}
	for i, h := range t.Half[int(id)*t.Stride+lo:][:n] {
		buf[i] = halfToFloat(h)
	}
	return buf[:n]
}

// via returns the address of Via, nil if Via is not set.
func (t *Rows) via() *int32 {
	if len(t.Via) == 0 {
		return nil
	}
	return &t.Via[0]
}

// maxID returns the maximum of the ids as unsigned numbers, for which a negative id is at least
// 2^31. It is 0 without ids.
func maxID(ids []int32) uint32 {
	var lanes [16]uint32
	if len(ids) > 0 && !idLanes(&lanes[0], &ids[0], len(ids)) {
		for _, id := range ids {
			lanes[0] = max(lanes[0], uint32(id))
		}
	}
	var top uint32
	for _, v := range lanes {
		top = max(top, v)
	}
	return top
}

func checkIDs(op string, ids []int32, n int) {
	if n < 0 || n > len(ids) {
		panic(fmt.Sprintf("simd: %s: %d of %d ids", op, n, len(ids)))
	}
}

// distance returns how many rows ahead to prefetch: reading this many rows takes about as long as
// one access to memory.
func distance(cols int) int {
	return min(max(6144/(4*cols), 4), 32)
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SumRows computes o = w·Σ_{i<n} t[ids[i]], or o += with acc; the sum is 0 if n is 0. It starts at
// 0 and adds by ascending i, element by element. ids[n:] are the rows needed next, of which it
// prefetches the first few. o must not overlap t. Cost: n·len(o)·4 bytes read at random.
func SumRows(o []float32, t *Rows, ids []int32, n int, w float32, acc bool) {
	checkIDs("SumRows", ids, n)
	switch {
	case n == 0 && !acc:
		clear(o)
	case n == 0 || len(o) == 0:
	case t.Half == nil && sumRows(&o[0], &t.Data[0], t.Stride, &ids[0], n, len(ids), distance(len(o)), len(o), asInt(acc), w, t.via()):
	case t.Half != nil && sumHalfRows(&o[0], &t.Half[0], t.Stride, &ids[0], n, len(ids), distance(len(o)), len(o), asInt(acc), w, t.via()):
	default:
		var buf [64]float32
		sumRowsGo(o, acc, func(sum []float32, lo int) {
			for _, id := range ids[:n] {
				for i, v := range t.part(id, lo, len(sum), &buf) {
					sum[i] += v
				}
			}
			for i := range sum {
				sum[i] *= w
			}
		})
	}
}

// sumRowsGo sets o to the sums that add computes from 0, for columns [lo, lo+len(sum)) at a time;
// with acc it adds them to o.
func sumRowsGo(o []float32, acc bool, add func(sum []float32, lo int)) {
	var block [64]float32
	for lo := 0; lo < len(o); lo += len(block) {
		sum := block[:min(len(block), len(o)-lo)]
		clear(sum)
		add(sum, lo)
		for i, s := range sum {
			if acc {
				s += o[lo+i]
			}
			o[lo+i] = s
		}
	}
}

// WeightedSumRows is SumRows with a weight for each row: o = Σ_{i<n} wᵢ·t[ids[i]] with wᵢ =
// w[i·step], or w[at[i]·step] if at is not nil. A row of weight 0 adds nothing, even if it holds
// NaN. It checks the length of w if at is nil; otherwise the caller must.
func WeightedSumRows(o []float32, t *Rows, ids []int32, n int, w []float32, step int, at []int32, acc bool) {
	const op = "WeightedSumRows"
	checkIDs(op, ids, n)
	var pos *int32
	if at != nil {
		checkIDs(op, at, n)
	} else if n > 0 && (step < 0 || (n-1)*step >= len(w)) {
		panic(fmt.Sprintf("simd: %s: %d weights of %d, %d apart", op, n, len(w), step))
	}
	if len(at) > 0 {
		pos = &at[0]
	}
	switch {
	case n == 0 && !acc:
		clear(o)
	case n == 0 || len(o) == 0:
	case t.Half == nil && weightedSumRows(&o[0], &t.Data[0], t.Stride, &ids[0], n, len(ids), distance(len(o)), len(o), asInt(acc), &w[0], step, pos, t.via()):
	case t.Half != nil && weightedSumHalfRows(&o[0], &t.Half[0], t.Stride, &ids[0], n, len(ids), distance(len(o)), len(o), asInt(acc), &w[0], step, pos, t.via()):
	default:
		var buf [64]float32
		sumRowsGo(o, acc, func(sum []float32, lo int) {
			for i, id := range ids[:n] {
				if at != nil {
					i = int(at[i])
				}
				v := w[i*step]
				if v == 0 {
					continue
				}
				for c, x := range t.part(id, lo, len(sum), &buf) {
					sum[c] += float32(v * x)
				}
			}
		})
	}
}

// SumRowsWhere is SumRows restricted to elements t[ids[i],c] with args[ids[i],c] = at[i]: the
// gradient of a maximum. args has the layout of t, which has no Via.
func SumRowsWhere(o []float32, t *Rows, ids []int32, n int, args []uint32, at []int32, acc bool) {
	const op = "SumRowsWhere"
	checkIDs(op, ids, n)
	checkIDs(op, at, n)
	checkLen(op, len(args), len(t.Data))
	switch {
	case n == 0 && !acc:
		clear(o)
	case n == 0 || len(o) == 0:
	case !sumRowsWhere(&o[0], &t.Data[0], t.Stride, &ids[0], n, len(ids), distance(2*len(o)), len(o), asInt(acc), &args[0], &at[0]):
		sumRowsGo(o, acc, func(sum []float32, lo int) {
			for i, id := range ids[:n] {
				arg := args[int(id)*t.Stride+lo:]
				for c, x := range t.row(id, lo+len(sum))[lo:] {
					if arg[c] == uint32(at[i]) {
						sum[c] += x
					}
				}
			}
		})
	}
}

// MaxRows computes o = the maximum of the rows t[ids[i]], i < n, element by element. The first of
// equal values wins; a NaN wins over numbers, and the last NaN over earlier ones. arg, if not nil,
// receives first+i, the number of the winner. If n is 0, o is 0 and arg has all bits set. t has no
// Via.
func MaxRows(o []float32, arg []uint32, t *Rows, ids []int32, n int, first uint32) {
	checkIDs("MaxRows", ids, n)
	if arg != nil {
		checkLen("MaxRows", len(arg), len(o))
	}
	if len(o) == 0 {
		return
	}
	if n == 0 {
		clear(o)
		for i := range arg {
			arg[i] = ^uint32(0)
		}
		return
	}
	if arg == nil {
		if maxRows(&o[0], &t.Data[0], t.Stride, &ids[0], n, len(ids), distance(len(o)), len(o)) {
			return
		}
	} else if maxRowsArg(&o[0], &t.Data[0], t.Stride, &ids[0], n, len(ids), distance(len(o)), len(o), &arg[0], first) {
		return
	}
	copy(o, t.row(ids[0], len(o)))
	for c := range arg {
		arg[c] = first
	}
	for i, id := range ids[1:n] {
		for c, v := range t.row(id, len(o)) {
			if v > o[c] || v != v {
				o[c] = v
				if arg != nil {
					arg[c] = first + 1 + uint32(i)
				}
			}
		}
	}
}

// GatherRows computes dst[i,:] = t[ids[i]] for all ids, with dst [len(ids),cols] row-major without
// gaps. It panics on an id that t does not hold. Cost: one pass over the rows, prefetched.
func GatherRows(dst []float32, t *Rows, cols int, ids []int32) {
	checkGather("GatherRows", dst, t, cols, ids)
	n := len(ids)
	switch {
	case len(dst) == 0:
		return
	case t.Half != nil:
		if !gatherHalfRows(&dst[0], &t.Half[0], t.Stride, &ids[0], n, n, distance(cols), cols, cols, t.via()) {
			gatherHalfGo(dst, t, cols, ids)
		}
		return
	case gatherRows(&dst[0], &t.Data[0], t.Stride, &ids[0], n, n, distance(cols), cols, cols, t.via()):
		return
	}
	for i, id := range ids {
		copy(dst[i*cols:(i+1)*cols], t.row(id, cols))
	}
}

// GatherRowsFar is GatherRows for a dst so large that caches will have dropped it before its use:
// rows of whole cache lines are written past the caches, which saves reading the lines first.
func GatherRowsFar(dst []float32, t *Rows, cols int, ids []int32) {
	checkGather("GatherRowsFar", dst, t, cols, ids)
	const line = 64
	n := len(ids)
	if len(dst) == 0 || t.Half == nil && cols%(line/4) == 0 && uintptr(unsafe.Pointer(&dst[0]))%line == 0 &&
		gatherRowsFar(&dst[0], &t.Data[0], t.Stride, &ids[0], n, n, distance(cols), cols, cols, t.via()) {
		return
	}
	GatherRows(dst, t, cols, ids)
}

func gatherHalfGo(dst []float32, t *Rows, cols int, ids []int32) {
	for i, id := range ids {
		if t.Via != nil {
			id = t.Via[id]
		}
		FromHalf(dst[i*cols:(i+1)*cols], t.Half[int(id)*t.Stride:][:cols])
	}
}

func checkGather(op string, dst []float32, t *Rows, cols int, ids []int32) {
	checkLen(op, len(dst), len(ids)*cols)
	if !t.Holds(ids, cols) {
		panic(fmt.Sprintf("simd: %s: an id is not in the table of %d rows", op, t.rows(cols)))
	}
}

// DotRows computes out[i·step] = Σ_c g[c]·t[ids[i],c] for i < n. Each product consists of 32
// partial sums, each over every 32nd element, which are added by halves: lane l adds lane l+16,
// then l+8, 4, 2 and 1. t has no Via. ids[n:] are as in [SumRows].
func DotRows(out []float32, step int, g []float32, t *Rows, ids []int32, n int) {
	checkIDs("DotRows", ids, n)
	if n > 0 && (step < 0 || (n-1)*step >= len(out)) {
		panic(fmt.Sprintf("simd: DotRows: %d results of %d, %d apart", n, len(out), step))
	}
	if n == 0 {
		return
	}
	if len(g) > 0 && dotRows(&out[0], step, &g[0], &t.Data[0], t.Stride, &ids[0], n, len(ids), distance(len(g)), len(g)) {
		return
	}
	for i, id := range ids[:n] {
		var lanes [32]float32
		for c, v := range t.row(id, len(g)) {
			lanes[c%32] += float32(g[c] * v)
		}
		for half := 16; half > 0; half /= 2 {
			for l := range half {
				lanes[l] += lanes[l+half]
			}
		}
		out[i*step] = lanes[0]
	}
}

// Dot computes Σ x[i]·y[i], in the order of [DotRows].
func Dot(x, y []float32) float32 {
	checkLen("Dot", len(y), len(x))
	var out [1]float32
	DotRows(out[:], 1, x, &Rows{Data: y}, zeroID[:], 1)
	return out[0]
}

var zeroID [1]int32
