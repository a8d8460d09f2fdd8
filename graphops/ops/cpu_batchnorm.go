package ops

import (
	"slices"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// wideRow is the least number of elements that the loops of a batch norm take at once: several rows for one, because short rows
// cost more than their elements.
const wideRow = 512

// normGrain is elemGrain for elements of a batch norm, each of which takes several operations.
const normGrain = elemGrain / 4

// together returns how many rows of the given width are taken for one.
func together(cols int) int { return max(1, wideRow/max(1, cols)) }

// widen returns n copies of a row, one after the other.
func widen(row []float32, n int) []float32 { return slices.Repeat(row, n) }

// sumOfRows is o = the sum of the rows of x, from 0 in ascending order, as ColSum adds a chunk.
func sumOfRows(o, x []float32, cols int) {
	if cols == 0 {
		return
	}
	n := len(x) / cols
	simd.SumRows(o, &simd.Rows{Data: x, Stride: cols}, countUp(n), n, 1, false)
}

// ColStats sums columns over the same chunks of rows as ColSum and ColDot.
func (c *Processor) ColStats(mean, variance, minus, inv, x Buffer, rows, cols int, eps float64) {
	by := max(rows, 1)
	sum := Buffer{Host: c.borrow(cols), N: cols}
	defer c.giveBack(sum.Host)
	c.ColSum(sum, x, rows, cols, false)
	c.ColMeans(mean, minus, sum, by)

	grain, k := sumRows(rows, cols), together(cols)
	chunks := parallel.Chunks(rows, grain)
	parts := c.borrow(chunks * cols)
	defer c.giveBack(parts)
	from := widen(minus.Host[:cols], k)
	c.loop(rows, grain, func(lo, hi int) {
		squares := c.borrow((hi - lo) * cols)
		defer c.giveBack(squares)
		for at := lo; at < hi; at += k {
			end := min(at+k, hi)
			s := squares[(at-lo)*cols : (end-lo)*cols]
			simd.Plus(s, x.Host[at*cols:end*cols], from[:len(s)], false)
			simd.Times(s, s, s, false)
		}
		sumOfRows(parts[lo/grain*cols:][:cols], squares, cols)
	})
	c.treeSum(sum.Host, parts, cols, false)
	c.ColInverses(variance, inv, sum, by, eps)
}

// ColNorm takes several rows at a time.
func (c *Processor) ColNorm(out, x, minus, inv, w Buffer, rows, cols int, e Epilogue) {
	k, width := together(cols), (cols+7)/8
	keep := maskBytes(e.Keep)
	from, by, times, plus := widen(minus.Host[:cols], k), widen(inv.Host[:cols], k), widen(w.Host[:cols], k), widen(e.Bias.Host[:cols], k)
	c.share(rows, max(1, normGrain/max(1, cols)), func(lo, hi int) {
		var own []byte
		if e.Drop != nil && keep == nil {
			own = make([]byte, width)
		}
		for at := lo; at < hi; at += k {
			end := min(at+k, hi)
			o := out.Host[at*cols : end*cols]
			simd.Plus(o, x.Host[at*cols:end*cols], from[:len(o)], false)
			simd.Times(o, o, by[:len(o)], false)
			simd.Times(o, times[:len(o)], o, false)
			simd.Add(o, plus[:len(o)])
			switch {
			case !e.Masks():
			case e.Drop == nil && keep == nil:
				simd.ReLU(o, o)
			case e.Drop == nil && cols%8 == 0: // the rows' bits are without gaps
				bits := keep[at*width : end*width]
				for i := range bits {
					bits[i] = 0xff
				}
				simd.KeepReLU(o, nil, bits, 1)
			default:
				for r := at; r < end; r++ {
					bits := own
					if keep != nil {
						bits = keep[r*width : (r+1)*width]
					}
					e.apply(out.Host[r*cols:(r+1)*cols], r, bits)
				}
			}
		}
	})
}

// ColNormGrad sums columns over the same chunks of rows as ColSum and ColDot.
func (c *Processor) ColNormGrad(d, x, minus, inv, w Buffer, rows, cols int, e Epilogue, given bool, g NormGrads) {
	grain, k, width := sumRows(rows, cols), together(cols), (cols+7)/8
	chunks := parallel.Chunks(rows, grain)
	keep := maskBytes(e.Keep)
	from, by := widen(minus.Host[:cols], k), widen(inv.Host[:cols], k)
	sums, dots := c.borrow(chunks*cols), c.borrow(chunks*cols)
	defer c.giveBack(sums)
	defer c.giveBack(dots)
	norm := func(y []float32, at int) { // the rows from at on, without weight and bias
		simd.Plus(y, x.Host[at*cols:at*cols+len(y)], from[:len(y)], false)
		simd.Times(y, y, by[:len(y)], false)
	}
	c.loop(rows, grain, func(lo, hi int) {
		products := c.borrow((hi - lo) * cols)
		defer c.giveBack(products)
		for at := lo; at < hi; at += k {
			end := min(at+k, hi)
			rows := d.Host[at*cols : end*cols]
			switch {
			case keep == nil:
			case cols%8 == 0:
				simd.Mask(rows, rows, keep[at*width:end*width], e.Scale(), false)
			default:
				for r := at; r < end; r++ {
					row := d.Host[r*cols : (r+1)*cols]
					simd.Mask(row, row, keep[r*width:(r+1)*width], e.Scale(), false)
				}
			}
			y := products[(at-lo)*cols : (end-lo)*cols]
			norm(y, at)
			simd.Times(y, rows, y, false)
		}
		sumOfRows(sums[lo/grain*cols:][:cols], d.Host[lo*cols:hi*cols], cols)
		sumOfRows(dots[lo/grain*cols:][:cols], products, cols)
	})
	both := c.borrow(2 * cols)
	defer c.giveBack(both)
	sum, dot := both[:cols], both[cols:]
	c.treeSum(sum, sums, cols, false)
	c.treeSum(dot, dots, cols, false)
	give := func(to Buffer, s []float32, acc bool) {
		switch {
		case to.N == 0:
		case acc:
			simd.Add(to.Host[:cols], s)
		default:
			copy(to.Host, s)
		}
	}
	give(g.DB, sum, g.AccB)
	give(g.DW, dot, g.AccW)
	if g.DX.N == 0 {
		return
	}
	scale := make([]float32, cols)
	simd.Times(scale, inv.Host[:cols], w.Host[:cols], false)
	wide := widen(scale, k)
	if given {
		c.eachRow(rows, cols, func(lo, hi int) {
			for at := lo; at < hi; at += k {
				at, end := at*cols, min(at+k, hi)*cols
				simd.Times(g.DX.Host[at:end], wide[:end-at], d.Host[at:end], g.AccX)
			}
		})
		return
	}
	share := -1 / float32(max(rows, 1))
	simd.Scale(sum, sum, share)
	simd.Scale(dot, dot, share)
	less, along := widen(sum, k), widen(dot, k)
	c.share(rows, max(1, normGrain/max(1, cols)), func(lo, hi int) {
		scratch := c.borrow(k * cols)
		defer c.giveBack(scratch)
		for at := lo; at < hi; at += k {
			end := min(at+k, hi)
			n := (end - at) * cols
			y := scratch[:n]
			norm(y, at)
			simd.Times(y, y, along[:n], false)
			simd.Add(y, less[:n])
			simd.Add(y, d.Host[at*cols:end*cols])
			simd.Times(g.DX.Host[at*cols:end*cols], wide[:n], y, g.AccX)
		}
	})
}
