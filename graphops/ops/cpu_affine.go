package ops

import (
	"github.com/graphnb/graphnb/internal/gemm"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

// Affine multiplies, and applies the epilogue to rows of the result while they are in a core's
// cache.
func (c *Processor) Affine(out Buffer, m, n int, products []Product, e Epilogue) {
	terms := make([]gemm.Term, len(products))
	for i, p := range products {
		terms[i] = gemm.Term{
			K: p.K,
			A: gemm.Operand{Data: p.X.Host, Stride: p.K},
			B: gemm.Operand{Data: p.W.Host, Stride: stride(p, n), Trans: p.T},
		}
	}
	work := 0
	for _, p := range products {
		work += m * n * p.K
	}
	o := gemm.Options{Threads: c.threadsFor(work), Bias: e.Bias.Host, BF16: c.BF16}
	if e.Base.N > 0 {
		// The rows of the first left factor are those of the result.
		o.Acc, o.Bias = true, nil
		o.Before = func(lo, hi int) { startRows(out.Host[lo*n:hi*n], e.Base.Host[lo*n:hi*n], e.Bias.Host) }
		if len(products) == 0 {
			c.eachRow(m, n, o.Before)
		}
	}
	if e.Masks() {
		width := (n + 7) / 8
		keep := maskBytes(e.Keep)
		o.After = func(lo, hi int) {
			var own []byte
			if keep == nil {
				own = make([]byte, width)
			}
			for r := lo; r < hi; r++ {
				bits := own
				if keep != nil {
					bits = keep[r*width : (r+1)*width]
				}
				e.apply(out.Host[r*n:(r+1)*n], r, bits)
			}
		}
	}
	gemm.Multiply(m, n, out.Host, n, terms, o)
}

// startRows sets rows to those of base, plus the bias unless it is nil.
func startRows(out, base, bias []float32) {
	if bias == nil {
		copy(out, base)
		return
	}
	for n := len(bias); len(out) > 0; out, base = out[n:], base[n:] {
		simd.Plus(out[:n], base[:n], bias, false)
	}
}

// threadsFor is the number of threads for a product with work multiplications: one if a second
// thread would wake too late to help.
func (c *Processor) threadsFor(work int) int {
	const few = 1 << 21
	if work < few {
		return 1
	}
	return c.Threads
}

func stride(p Product, n int) int {
	if p.T {
		return p.K
	}
	return n
}

// apply applies the epilogue, except the bias, to row r.
func (e *Epilogue) apply(row []float32, r int, bits []byte) {
	if e.Drop == nil {
		for i := range bits {
			bits[i] = 0xff
		}
	} else {
		keepRow(bits, r, e.Drop)
	}
	if e.ReLU {
		simd.KeepReLU(row, nil, bits, e.Scale())
	} else {
		simd.Mask(row, row, bits, e.Scale(), false)
	}
}

// AffineGrad masks the gradient in place, in the first product that reads it. It sums the
// gradient's columns in the first product of a weight's gradient that reads it in chunks, or else
// last.
func (c *Processor) AffineGrad(d Buffer, m, n int, products []Product, grads []ProductGrad, e Epilogue, db Buffer, accB bool) {
	var mask func(lo, hi int)
	if e.Masks() {
		width := (n + 7) / 8
		keep := maskBytes(e.Keep)
		mask = func(lo, hi int) {
			for r := lo; r < hi; r++ {
				row := d.Host[r*n : (r+1)*n]
				simd.Mask(row, row, keep[r*width:(r+1)*width], e.Scale(), false)
			}
		}
	}
	var parts []float32 // sums of columns, over chunks of rows
	// byRows says that the product's sum is over the rows of d, its left factor.
	product := func(byRows bool, rows, cols int, out Buffer, acc bool, t gemm.Term) {
		before := mask
		if chunk := gemm.SumRows(rows, cols, t.K); byRows && chunk > 0 && db.N > 0 && parts == nil {
			parts = c.borrow(parallel.Chunks(m, chunk) * n)
			before = sumColumns(parts, d.Host, n, chunk, mask)
		}
		gemm.Multiply(rows, cols, out.Host, cols, []gemm.Term{t}, gemm.Options{Threads: c.threadsFor(rows * cols * t.K), Acc: acc, Before: before, BF16: c.BF16})
		mask = nil
	}
	dOut := gemm.Operand{Data: d.Host, Stride: n}
	dOutT := gemm.Operand{Data: d.Host, Stride: n, Trans: true}
	for i, p := range products {
		g := grads[i]
		w := gemm.Operand{Data: p.W.Host, Stride: stride(p, n), Trans: !p.T}
		x := gemm.Operand{Data: p.X.Host, Stride: p.K}
		if g.WantX {
			product(false, m, p.K, g.DX, g.AccX, gemm.Term{K: n, A: dOut, B: w})
		}
		switch {
		case !g.WantW:
		case p.T:
			product(true, n, p.K, g.DW, g.AccW, gemm.Term{K: m, A: dOutT, B: x})
		case mask != nil:
			// The gradient is the right factor here, for which gemm has no hook.
			c.eachRow(m, n, mask)
			mask = nil
			fallthrough
		default:
			x.Trans = true
			product(false, p.K, n, g.DW, g.AccW, gemm.Term{K: m, A: x, B: dOut})
		}
	}
	switch {
	case db.N == 0:
		if mask != nil && e.Base.N > 0 {
			c.eachRow(m, n, mask)
		}
	case parts != nil:
		c.treeSum(db.Host, parts, n, accB)
		c.giveBack(parts)
	default:
		if mask != nil {
			c.eachRow(m, n, mask)
		}
		c.ColSum(db, d, m, n, accB)
	}
}

// sumColumns is the body of a loop over chunks of the rows of d [_, n]: it masks the rows, unless
// mask is nil, and sums their columns into the chunk's partial sum.
func sumColumns(parts, d []float32, n, chunk int, mask func(lo, hi int)) func(lo, hi int) {
	const few = 8 // rows that stay in the first-level cache between the two steps
	return func(lo, hi int) {
		sum := parts[lo/chunk*n:][:n]
		if mask == nil {
			sumOfRows(sum, d[lo*n:hi*n], n)
			return
		}
		clear(sum)
		for at := lo; at < hi; at += few {
			end := min(at+few, hi)
			mask(at, end)
			for r := at; r < end; r++ {
				simd.Add(sum, d[r*n:(r+1)*n])
			}
		}
	}
}

// tile is the number of rows and columns that a transposition handles at once.
const tile = 32

// transposeGrain is the columns of a chunk of a transposition.
func transposeGrain(rows int) int {
	return max(tile, elemGrain/max(rows, 1)&^(tile-1))
}

// transpose is out [cols,rows] = xᵀ, out += with acc, of x [rows,cols].
func (c *Processor) transpose(out, x []float32, rows, cols int, acc bool) {
	c.loop(cols, transposeGrain(rows), func(lo, hi int) {
		for top := 0; top < rows; top += tile {
			end := min(top+tile, rows)
			j := lo
			for ; j+4 <= hi; j += 4 { // a few at a time, because rows are far apart
				p, q := out[j*rows:][:end], out[(j+1)*rows:][:end]
				r, s := out[(j+2)*rows:][:end], out[(j+3)*rows:][:end]
				for i := top; i < end; i++ {
					v := x[i*cols+j:][:4]
					if acc {
						p[i], q[i], r[i], s[i] = p[i]+v[0], q[i]+v[1], r[i]+v[2], s[i]+v[3]
					} else {
						p[i], q[i], r[i], s[i] = v[0], v[1], v[2], v[3]
					}
				}
			}
			for ; j < hi; j++ {
				p := out[j*rows:][:end]
				for i := top; i < end; i++ {
					if v := x[i*cols+j]; acc {
						p[i] += v
					} else {
						p[i] = v
					}
				}
			}
		}
	})
}
