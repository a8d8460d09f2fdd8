package ops

import (
	"fmt"
	"sort"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/simd"
)

// Loops over a graph are cut by edges: degrees are skewed, and chunks of equally many rows would
// leave one thread with a hub's edges while the others wait. A row counts as one additional edge,
// for the row itself. segmentElems is the number of elements of a chunk: 256 KiB at random places,
// about 30 µs. An edge takes at least as long as narrowest columns.
const (
	segmentElems = 1 << 16
	narrowest    = 6
)

// segments returns the length of a loop over rows with the offsets indptr, and its grain, for
// [parallel.For]; cut converts its chunks to rows.
func segments(indptr []int64, rows, cols int) (n, grain int) {
	return int(indptr[rows]-indptr[0]) + rows, max(1, segmentElems/max(narrowest, cols))
}

// cached is segments for the rows of a table of elems elements: rows of a table that fits a
// second-level cache are read four times as fast.
func cached(indptr []int64, rows, cols, elems int) (n, grain int) {
	n, grain = segments(indptr, rows, cols)
	if elems <= 1<<18 && cols < 4*narrowest {
		grain = segmentElems / narrowest
	}
	return n, grain
}

// cut returns the first row at or after position at of such a loop.
func cut(indptr []int64, rows, at int) int {
	return sort.Search(rows, func(r int) bool { return int(indptr[r]-indptr[0])+r >= at })
}

// destinations returns the part of b's destinations at positions lo to hi of such a loop, with the
// sources of their edges, which are rows of t.
func destinations(b *graphops.Block, t *simd.Rows, cols, lo, hi int) (from, to int, ids []int32) {
	from, to = cut(b.Indptr(), b.NumDst, lo), cut(b.Indptr(), b.NumDst, hi)
	ids = b.Indices()[b.Indptr()[from]:b.Indptr()[to]]
	checkIDs(t, ids, cols)
	return from, to, ids
}

// sources is the same for b's n sources, from its transpose tr: it returns their edges'
// destinations, which are rows of t, and edge numbers.
func sources(tr *graphops.Transposed, n int, t *simd.Rows, cols, lo, hi int) (from, to int, ids, edges []int32) {
	from, to = cut(tr.Indptr, n, lo), cut(tr.Indptr, n, hi)
	first, last := tr.Indptr[from], tr.Indptr[to]
	ids, edges = tr.Dst[first:last], tr.Edge[first:last]
	checkIDs(t, ids, cols)
	return from, to, ids, edges
}

// checkIDs panics if a block names a row outside its matrix, because the vector loops would read
// other memory.
func checkIDs(t *simd.Rows, ids []int32, cols int) {
	if !t.Holds(ids, cols) {
		panic(fmt.Sprintf("tensor: an edge of the block names a row outside the matrix of %d elements with %d per row", t.Len(), t.Stride))
	}
}

func (c *Processor) SpMM(op Op, out, arg Buffer, b *graphops.Block, h Buffer, cols int) {
	t := &simd.Rows{Data: h.Host, Stride: cols}
	if op != Max {
		c.sumSources(op, out.Host, b, t, cols)
		return
	}
	args := arg.Words()
	n, grain := segments(b.Indptr(), b.NumDst, cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi, ids := destinations(b, t, cols, lo, hi)
		for d := lo; d < hi; d++ {
			deg := b.InDegree(d)
			simd.MaxRows(out.Host[d*cols:(d+1)*cols], argRow(args, d, cols), t, ids, deg, uint32(b.Indptr()[d]-b.Indptr()[0]))
			ids = ids[deg:]
		}
	})
}

// argRow returns row d of a Max's edges, or nil if they are not recorded.
func argRow(args []uint32, d, cols int) []uint32 {
	if args == nil {
		return nil
	}
	return args[d*cols : (d+1)*cols]
}

// sumSources is SpMM with op Sum or Mean, of the rows of a table.
func (c *Processor) sumSources(op Op, out []float32, b *graphops.Block, t *simd.Rows, cols int) {
	n, grain := cached(b.Indptr(), b.NumDst, cols, t.Len())
	c.share(n, grain, func(lo, hi int) {
		lo, hi, ids := destinations(b, t, cols, lo, hi)
		simd.SumSegments(out[lo*cols:hi*cols], t, cols, b.Indptr()[lo:hi+1], ids, op == Mean, false)
	})
}

// Share is the factor by which the sum over n rows is multiplied.
func Share(op Op, n int) float32 {
	if op == Mean && n > 1 {
		return 1 / float32(n)
	}
	return 1
}

func (c *Processor) SpMMGrad(op Op, dh, dOut, arg Buffer, b *graphops.Block, cols int, acc bool) {
	t := b.Transposed()
	var shares []float32
	if op == Mean {
		shares = c.borrow(b.NumDst)
		defer c.giveBack(shares)
		c.each(b.NumDst, func(lo, hi int) {
			for d := lo; d < hi; d++ {
				shares[d] = Share(Mean, b.InDegree(d))
			}
		})
	}
	args := arg.Words()
	g := &simd.Rows{Data: dOut.Host, Stride: cols}
	n, grain := cached(t.Indptr, b.NumSrc, cols, dOut.N)
	c.share(n, grain, func(lo, hi int) {
		lo, hi, ids, edges := sources(t, b.NumSrc, g, cols, lo, hi)
		o := dh.Host[lo*cols : hi*cols]
		switch op {
		case Sum:
			simd.SumSegments(o, g, cols, t.Indptr[lo:hi+1], ids, false, acc)
		case Mean:
			simd.WeightedSumSegments(o, g, cols, t.Indptr[lo:hi+1], ids, shares, ids, acc)
		case Max:
			for s := lo; s < hi; s++ {
				deg := int(t.Indptr[s+1] - t.Indptr[s])
				simd.SumRowsWhere(dh.Host[s*cols:(s+1)*cols], g, ids, deg, args, edges, acc)
				ids, edges = ids[deg:], edges[deg:]
			}
		}
	})
}

func (c *Processor) GatherSrc(msg Buffer, b *graphops.Block, h Buffer, cols int) {
	srcs := b.Indices()[b.Indptr()[0]:b.Indptr()[b.NumDst]]
	t := &simd.Rows{Data: h.Host, Stride: cols}
	c.eachRow(len(srcs), cols, func(lo, hi int) {
		gatherRows(msg.Host[lo*cols:hi*cols], t, cols, srcs[lo:hi], msg.N)
	})
}

// gatherRows is simd.GatherRows for a part of a result of n elements. It writes past the caches if
// the result does not fit a second-level cache.
func gatherRows(dst []float32, t *simd.Rows, cols int, ids []int32, n int) {
	const far = 1 << 20 // 4 MiB
	if n >= far {
		simd.GatherRowsFar(dst, t, cols, ids)
	} else {
		simd.GatherRows(dst, t, cols, ids)
	}
}

func (c *Processor) ScatterSrc(dh Buffer, b *graphops.Block, dMsg Buffer, cols int, acc bool) {
	t := b.Transposed()
	g := &simd.Rows{Data: dMsg.Host, Stride: cols}
	n, grain := segments(t.Indptr, b.NumSrc, cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(t.Indptr, b.NumSrc, lo), cut(t.Indptr, b.NumSrc, hi)
		edges := t.Edge[t.Indptr[lo]:t.Indptr[hi]]
		checkIDs(g, edges, cols)
		simd.SumSegments(dh.Host[lo*cols:hi*cols], g, cols, t.Indptr[lo:hi+1], edges, false, acc)
	})
}

func (c *Processor) Segment(op Op, out, arg Buffer, b *graphops.Block, msg Buffer, cols int, acc bool) {
	args := arg.Words()
	n, grain := segments(b.Indptr(), b.NumDst, cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(b.Indptr(), b.NumDst, lo), cut(b.Indptr(), b.NumDst, hi)
		for d := lo; d < hi; d++ {
			o := out.Host[d*cols : (d+1)*cols]
			first, deg := int(b.Indptr()[d]-b.Indptr()[0]), b.InDegree(d)
			t := simd.Rows{Data: msg.Host[first*cols : (first+deg)*cols], Stride: cols}
			switch {
			case op != Max:
				simd.SumRows(o, &t, countUp(deg), deg, Share(op, deg), acc)
			case acc:
				top := c.borrow(cols)
				simd.MaxRows(top, argRow(args, d, cols), &t, countUp(deg), deg, uint32(first))
				simd.Add(o, top)
				c.giveBack(top)
			default:
				simd.MaxRows(o, argRow(args, d, cols), &t, countUp(deg), deg, uint32(first))
			}
		}
	})
}

// upTo holds the numbers from 0 up.
var upTo = makeUpTo(1024)

func makeUpTo(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// countUp returns the ids of n consecutive rows.
func countUp(n int) []int32 {
	if n > len(upTo) {
		return makeUpTo(n)
	}
	return upTo[:n]
}

func (c *Processor) SegmentGrad(op Op, dMsg, dOut, arg Buffer, b *graphops.Block, cols int, acc bool) {
	args := arg.Words()
	n, grain := segments(b.Indptr(), b.NumDst, cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(b.Indptr(), b.NumDst, lo), cut(b.Indptr(), b.NumDst, hi)
		for d := lo; d < hi; d++ {
			g := dOut.Host[d*cols : (d+1)*cols]
			from, to := int(b.Indptr()[d]-b.Indptr()[0]), int(b.Indptr()[d+1]-b.Indptr()[0])
			w := Share(op, to-from)
			for e := from; e < to; e++ {
				o := dMsg.Host[e*cols : (e+1)*cols]
				switch {
				case op == Max:
					simd.SumRowsWhere(o, &simd.Rows{Data: g, Stride: cols}, upTo[:1], 1, args[d*cols:(d+1)*cols], []int32{int32(e)}, acc)
				case acc:
					simd.Axpy(o, g, w)
				default:
					simd.Scale(o, g, w)
				}
			}
		}
	})
}
