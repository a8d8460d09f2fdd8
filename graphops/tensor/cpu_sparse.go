package tensor

import (
	"math"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/philox"
)

// weightAt is w[e,k] of weights [E,heads], 1 where there are none.
func weightAt(w []float32, i int) float32 {
	if w == nil {
		return 1
	}
	return w[i]
}

// addHeads is o += x with each head's columns times its own weight; weights of 0
// add nothing. row is the edge's number times the heads.
func addHeads(o, x, w []float32, row, heads int) {
	if w == nil {
		addTo(o, x)
		return
	}
	width := len(o) / heads
	for k, v := range w[row : row+heads] {
		if v != 0 {
			addScaled(o[k*width:(k+1)*width], x[k*width:(k+1)*width], v)
		}
	}
}

// weights is a buffer's memory, nil where it has no elements: all 1.
func weights(w Buffer) []float32 {
	if w.N == 0 {
		return nil
	}
	return w.Host
}

func (c *cpu) SpMMWeighted(out Buffer, b *graphops.Block, w Buffer, heads int, h Buffer, cols int, acc bool) {
	wts, first := weights(w), b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			o := out.Host[d*cols : (d+1)*cols]
			if !acc {
				clear(o)
			}
			for e := b.Indptr[d]; e < b.Indptr[d+1]; e++ {
				s := int(b.Indices[e])
				addHeads(o, h.Host[s*cols:(s+1)*cols], wts, int(e-first)*heads, heads)
			}
		}
	})
}

func (c *cpu) SpMMWeightedGrad(dh, dOut, w Buffer, heads int, b *graphops.Block, cols int, acc bool) {
	t, wts := b.Transposed(), weights(w)
	parallel.For(c.threads, b.NumSrc, spmmRows, func(lo, hi int) {
		for s := lo; s < hi; s++ {
			o := dh.Host[s*cols : (s+1)*cols]
			if !acc {
				clear(o)
			}
			for i := t.Indptr[s]; i < t.Indptr[s+1]; i++ {
				d := int(t.Dst[i])
				addHeads(o, dOut.Host[d*cols:(d+1)*cols], wts, int(t.Edge[i])*heads, heads)
			}
		}
	})
}

func (c *cpu) EdgeDot(dw Buffer, b *graphops.Block, dOut, h Buffer, heads, cols int, acc bool) {
	first := b.Indptr[0]
	width := cols / heads
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			g := dOut.Host[d*cols : (d+1)*cols]
			for e := b.Indptr[d]; e < b.Indptr[d+1]; e++ {
				s := int(b.Indices[e])
				x, o := h.Host[s*cols:(s+1)*cols], dw.Host[int(e-first)*heads:][:heads]
				for k := range o {
					v := dot(g[k*width:(k+1)*width], x[k*width:(k+1)*width])
					if acc {
						v += o[k]
					}
					o[k] = v
				}
			}
		}
	})
}

func (c *cpu) EdgeSoftmax(y Buffer, b *graphops.Block, x Buffer, cols int) {
	first := b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			from, to := int(b.Indptr[d]-first), int(b.Indptr[d+1]-first)
			for k := range cols {
				top := float32(math.Inf(-1))
				for e := from; e < to; e++ {
					top = max(top, x.Host[e*cols+k])
				}
				sum := 0.0
				for e := from; e < to; e++ {
					v := math.Exp(float64(x.Host[e*cols+k]) - float64(top))
					y.Host[e*cols+k] = float32(v)
					sum += v
				}
				inv := 1 / sum
				for e := from; e < to; e++ {
					y.Host[e*cols+k] = float32(float64(y.Host[e*cols+k]) * inv)
				}
			}
		}
	})
}

func (c *cpu) EdgeSoftmaxGrad(dx, dy, y Buffer, b *graphops.Block, cols int, acc bool) {
	first := b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for d := lo; d < hi; d++ {
			from, to := int(b.Indptr[d]-first), int(b.Indptr[d+1]-first)
			for k := range cols {
				along := 0.0
				for e := from; e < to; e++ {
					along += float64(dy.Host[e*cols+k]) * float64(y.Host[e*cols+k])
				}
				for e := from; e < to; e++ {
					v := float32(float64(y.Host[e*cols+k]) * (float64(dy.Host[e*cols+k]) - along))
					if acc {
						v += dx.Host[e*cols+k]
					}
					dx.Host[e*cols+k] = v
				}
			}
		}
	})
}

func (c *cpu) SparseDense(out Buffer, b *graphops.Block, values Buffer) {
	v, first, cols := weights(values), b.Indptr[0], b.NumSrc
	c.eachRow(b.NumDst, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o := out.Host[r*cols : (r+1)*cols]
			clear(o)
			for e := b.Indptr[r]; e < b.Indptr[r+1]; e++ {
				o[b.Indices[e]] = weightAt(v, int(e-first))
			}
		}
	})
}

func (c *cpu) SparseDropout(out Buffer, b *graphops.Block, values Buffer, k DropoutKey) {
	v, first := weights(values), b.Indptr[0]
	parallel.For(c.threads, b.NumDst, spmmRows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			ctr := philox.Counter(k.Space.ID(r), k.Step, k.C3)
			high := ctr[1]
			block, keep := int32(-1), byte(0)
			for e := b.Indptr[r]; e < b.Indptr[r+1]; e++ {
				col := b.Indices[e]
				if col/8 != block {
					block = col / 8
					ctr[1] = high | uint32(block)
					keep = keepBits(philox.Block(k.Seed, ctr), k.Threshold)
				}
				i := int(e - first)
				out.Host[i] = keepIf(weightAt(v, i)*k.Scale, uint32(keep>>(col%8)&1))
			}
		}
	})
}

func (c *cpu) Transpose(out, x Buffer, rows, cols int, acc bool) {
	if !acc {
		c.transpose(out.Host, x.Host, rows, cols)
		return
	}
	const tile = 32
	parallel.For(c.threads, cols, tile, func(lo, hi int) {
		for top := 0; top < rows; top += tile {
			for j := lo; j < hi; j++ {
				o := out.Host[j*rows:][:rows]
				for i := top; i < min(top+tile, rows); i++ {
					o[i] += x.Host[i*cols+j]
				}
			}
		}
	})
}

func (c *cpu) ColScale(out, x, w Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o, v := out.Host[r*cols:(r+1)*cols], x.Host[r*cols:(r+1)*cols]
			for i, s := range w.Host[:cols] {
				y := s * v[i]
				if acc {
					y += o[i]
				}
				o[i] = y
			}
		}
	})
}

func (c *cpu) ColDot(out, x, y Buffer, rows, cols int, acc bool) {
	grain := sumRows(rows, cols)
	parts := c.borrow(parallel.Chunks(rows, grain) * cols)
	defer c.giveBack(parts)
	parallel.For(c.threads, rows, grain, func(lo, hi int) {
		sum := parts[lo/grain*cols:][:cols]
		clear(sum)
		for r := lo; r < hi; r++ {
			a, b := x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			for i := range sum {
				sum[i] += a[i] * b[i]
			}
		}
	})
	c.treeSum(out.Host, parts, cols, acc)
}

func (c *cpu) RowNorm(y, inv, x Buffer, rows, cols int, eps float32) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			in, out := x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			sum, square := 0.0, 0.0
			for _, v := range in {
				sum += float64(v)
			}
			mean := sum / float64(max(cols, 1))
			for _, v := range in {
				square += (float64(v) - mean) * (float64(v) - mean)
			}
			s := 1 / math.Sqrt(square/float64(max(cols, 1))+float64(eps))
			inv.Host[r] = float32(s)
			for i, v := range in {
				out[i] = float32((float64(v) - mean) * s)
			}
		}
	})
}

func (c *cpu) RowNormGrad(dx, dy, y, inv Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d, g, v := dx.Host[r*cols:(r+1)*cols], dy.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			sum, along := 0.0, 0.0
			for i := range g {
				sum += float64(g[i])
				along += float64(g[i]) * float64(v[i])
			}
			n := float64(max(cols, 1))
			for i := range d {
				e := float32(float64(inv.Host[r]) * (float64(g[i]) - sum/n - float64(v[i])*along/n))
				if acc {
					e += d[i]
				}
				d[i] = e
			}
		}
	})
}
