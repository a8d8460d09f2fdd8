package ops

import (
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// fewRows is the number of rows that stay in a core's first caches while several steps process
// them; the kernels of sums also take that many at once.
const fewRows = 8

// LayerNorm processes a few rows at a time.
func (c *Processor) LayerNorm(out, y, inv, x Buffer, rows, cols int, eps float32, w Buffer, e Epilogue) {
	width := (cols + 7) / 8
	keep := maskBytes(e.Keep)
	c.eachRow(rows, cols, func(lo, hi int) {
		var own []byte
		if e.Masks() && keep == nil {
			own = make([]byte, width)
		}
		var scratch [fewRows]float32
		for at := lo; at < hi; at += fewRows {
			end := min(at+fewRows, hi)
			o := out.Host[at*cols : end*cols]
			norm, s := o, scratch[:end-at]
			if y.N > 0 {
				norm, s = y.Host[at*cols:end*cols], inv.Host[at:end]
			}
			simd.NormRows(norm, s, x.Host[at*cols:end*cols], cols, eps)
			for r := at; r < end; r++ {
				row := out.Host[r*cols : (r+1)*cols]
				simd.Times(row, w.Host[:cols], norm[(r-at)*cols:(r-at+1)*cols], false)
				simd.Add(row, e.Bias.Host[:cols])
				if !e.Masks() {
					continue
				}
				bits := own
				if keep != nil {
					bits = keep[r*width : (r+1)*width]
				}
				e.apply(row, r, bits)
			}
		}
	})
}

// LayerNormGrad processes a few rows at a time, and sums columns over the same chunks of rows as
// ColSum and ColDot.
func (c *Processor) LayerNormGrad(d, y, inv Buffer, rows, cols int, w Buffer, e Epilogue, g NormGrads) {
	grain := sumRows(rows, cols)
	chunks := parallel.Chunks(rows, grain)
	var sums, dots []float32
	if g.DB.N > 0 {
		sums = c.borrow(chunks * cols)
		defer c.giveBack(sums)
	}
	if g.DW.N > 0 {
		dots = c.borrow(chunks * cols)
		defer c.giveBack(dots)
	}
	scaled := c.borrow(chunks * fewRows * cols)
	defer c.giveBack(scaled)
	width := (cols + 7) / 8
	keep := maskBytes(e.Keep)
	c.loop(rows, grain, func(lo, hi int) {
		chunk := lo / grain
		var sum, dot []float32
		if sums != nil {
			sum = sums[chunk*cols:][:cols]
			clear(sum)
		}
		if dots != nil {
			dot = dots[chunk*cols:][:cols]
			clear(dot)
		}
		tmp := scaled[chunk*fewRows*cols:][:fewRows*cols]
		for at := lo; at < hi; at += fewRows {
			end := min(at+fewRows, hi)
			for r := at; r < end; r++ {
				row, norm := d.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
				if keep != nil {
					simd.Mask(row, row, keep[r*width:(r+1)*width], e.Scale(), false)
				}
				if sum != nil {
					simd.Add(sum, row)
				}
				if dot != nil {
					simd.Times(dot, row, norm, true)
				}
				if g.DX.N > 0 {
					simd.Times(tmp[(r-at)*cols:(r-at+1)*cols], w.Host[:cols], row, false)
				}
			}
			if g.DX.N > 0 {
				simd.NormRowsGrad(g.DX.Host[at*cols:end*cols], tmp[:(end-at)*cols], y.Host[at*cols:end*cols], inv.Host[at:end], cols, g.AccX)
			}
		}
	})
	if sums != nil {
		c.treeSum(g.DB.Host, sums, cols, g.AccB)
	}
	if dots != nil {
		c.treeSum(g.DW.Host, dots, cols, g.AccW)
	}
}
