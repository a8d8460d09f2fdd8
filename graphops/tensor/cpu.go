package tensor

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/blas/gonum"

	"github.com/graphnb/graphnb/internal/parallel"
)

// cpu computes in host memory, in plain Go but for gonum's matrix products. Each
// method is one parallel loop (two with a tree); chunks depend on sizes alone.
type cpu struct {
	threads int

	mu      sync.Mutex
	scratch [][]float32
}

// CPU is the backend that computes in host memory on the given number of threads
// (0: GOMAXPROCS). It is safe for concurrent use by several Fwds. A Fwd without
// a backend has one of its own.
func CPU(threads int) Backend { return &cpu{threads: threads} }

func (c *cpu) Name() string { return "cpu" }

func (c *cpu) Alloc(n int) Buffer { return HostBuffer(make([]float32, n)) }

func (c *cpu) Free(Buffer) {}

func (c *cpu) Wrap(host []float32) Buffer { return HostBuffer(host) }

func (c *cpu) Upload(dst Buffer, src []float32) { copy(dst.Host, src) }

func (c *cpu) Download(dst []float32, src Buffer) { copy(dst, src.Host) }

func (c *cpu) Zero(dst Buffer) {
	c.each(dst.N, func(lo, hi int) { clear(dst.Host[lo:hi]) })
}

// elemGrain is the elements of a chunk: 64 KiB, so that a chunk's work is some
// microseconds against the fraction of one that handing it out costs.
const elemGrain = 1 << 14

func (c *cpu) each(n int, body func(lo, hi int)) { parallel.For(c.threads, n, elemGrain, body) }

// eachRow is each over rows of the given width.
func (c *cpu) eachRow(rows, width int, body func(lo, hi int)) {
	parallel.For(c.threads, rows, rowGrain(width), body)
}

func rowGrain(width int) int { return max(1, elemGrain/max(1, width)) }

// borrow returns scratch memory with any content, for giveBack.
func (c *cpu) borrow(n int) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.scratch {
		if cap(s) >= n {
			last := len(c.scratch) - 1
			c.scratch[i] = c.scratch[last]
			c.scratch = c.scratch[:last]
			return s[:n]
		}
	}
	return make([]float32, n)
}

// giveBack keeps the largest few.
func (c *cpu) giveBack(s []float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.scratch) < 4 {
		c.scratch = append(c.scratch, s)
		return
	}
	least := 0
	for i, o := range c.scratch {
		if cap(o) < cap(c.scratch[least]) {
			least = i
		}
	}
	if cap(s) > cap(c.scratch[least]) {
		c.scratch[least] = s
	}
}

// treeSum adds the slots parts[i·n : (i+1)·n] elementwise to out (which it
// overwrites unless acc) as a pairwise tree in slot order: level by level
// (0,1), (2,3), …, an odd one carried up. It uses parts as scratch.
func (c *cpu) treeSum(out, parts []float32, n int, acc bool) {
	slots := len(parts) / max(1, n)
	if n == 0 {
		return
	}
	if slots == 0 {
		if !acc {
			clear(out[:n])
		}
		return
	}
	c.each(n, func(lo, hi int) {
		for step := 1; step < slots; step *= 2 {
			for i := 0; i+step < slots; i += 2 * step {
				addTo(parts[i*n+lo:i*n+hi], parts[(i+step)*n+lo:(i+step)*n+hi])
			}
		}
		if acc {
			addTo(out[lo:hi], parts[lo:hi])
		} else {
			copy(out[lo:hi], parts[lo:hi])
		}
	})
}

// addTo is dst += src. Gonum's Saxpy has vector instructions on amd64; its
// product with 1 is exact.
func addTo(dst, src []float32) { addScaled(dst, src, 1) }

// addScaled is dst += w·src.
func addScaled(dst, src []float32, w float32) {
	src = src[:len(dst)]
	if len(dst) >= 16 {
		gonum.Implementation{}.Saxpy(len(dst), w, src, 1, dst, 1)
		return
	}
	for len(dst) >= 4 { // four at a time: heads are often 8 columns wide
		d, x := (*[4]float32)(dst), (*[4]float32)(src)
		d[0] += w * x[0]
		d[1] += w * x[1]
		d[2] += w * x[2]
		d[3] += w * x[3]
		dst, src = dst[4:], src[4:]
	}
	for i := range dst {
		dst[i] += w * src[i]
	}
}

func (c *cpu) AddRow(out, row Buffer, rows, cols int, acc bool) {
	o, r := out.Host, row.Host
	c.eachRow(rows, cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if acc {
				addTo(o[i*cols:(i+1)*cols], r)
			} else {
				copy(o[i*cols:(i+1)*cols], r)
			}
		}
	})
}

// sumRows is the rows of a chunk of ColSum: fixed, and at least the 2^14
// elements of other loops, so that the partial rows stay few.
func sumRows(rows, cols int) int {
	return max(rowGrain(cols), (rows+63)/64)
}

func (c *cpu) ColSum(out, x Buffer, rows, cols int, acc bool) {
	grain := sumRows(rows, cols)
	parts := c.borrow(parallel.Chunks(rows, grain) * cols)
	defer c.giveBack(parts)
	parallel.For(c.threads, rows, grain, func(lo, hi int) {
		sum := parts[lo/grain*cols:][:cols]
		clear(sum)
		for r := lo; r < hi; r++ {
			addTo(sum, x.Host[r*cols:(r+1)*cols])
		}
	})
	c.treeSum(out.Host, parts, cols, acc)
}

func (c *cpu) Sum(out, x Buffer, acc bool) {
	parts := make([]float64, parallel.Chunks(x.N, elemGrain))
	c.each(x.N, func(lo, hi int) {
		var s [4]float64
		v := x.Host[lo:hi]
		for len(v) >= 4 {
			s[0] += float64(v[0])
			s[1] += float64(v[1])
			s[2] += float64(v[2])
			s[3] += float64(v[3])
			v = v[4:]
		}
		for i, e := range v {
			s[i] += float64(e)
		}
		parts[lo/elemGrain] = (s[0] + s[1]) + (s[2] + s[3])
	})
	for step := 1; step < len(parts); step *= 2 {
		for i := 0; i+step < len(parts); i += 2 * step {
			parts[i] += parts[i+step]
		}
	}
	var sum float32
	if len(parts) > 0 {
		sum = float32(parts[0])
	}
	if acc {
		sum += out.Host[0]
	}
	out.Host[0] = sum
}

func (c *cpu) Spread(out, x Buffer, acc bool) {
	v := x.Host[0]
	c.each(out.N, func(lo, hi int) {
		o := out.Host[lo:hi]
		if acc {
			for i := range o {
				o[i] += v
			}
			return
		}
		for i := range o {
			o[i] = v
		}
	})
}

func (c *cpu) RowScale(out, x, w Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o := out.Host[r*cols : (r+1)*cols]
			if !acc {
				clear(o)
			}
			addScaled(o, x.Host[r*cols:(r+1)*cols], w.Host[r])
		}
	})
}

func (c *cpu) RowDot(out, x, y Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			s := dot(x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols])
			if acc {
				s += out.Host[r]
			}
			out.Host[r] = s
		}
	})
}

func dot(x, y []float32) float32 {
	var s [4]float32
	for len(x) >= 4 && len(y) >= 4 {
		s[0] += x[0] * y[0]
		s[1] += x[1] * y[1]
		s[2] += x[2] * y[2]
		s[3] += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i := range x {
		s[i] += x[i] * y[i]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func (c *cpu) CopyCols(out Buffer, outCols, outAt int, x Buffer, xCols, xAt, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o, v := out.Host[r*outCols+outAt:][:cols], x.Host[r*xCols+xAt:][:cols]
			if acc {
				addTo(o, v)
			} else {
				copy(o, v)
			}
		}
	})
}

func (c *cpu) LogSoftmax(y, x Buffer, rows, cols int) {
	c.eachRow(rows, cols*8, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			in, out := x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			top := float32(math.Inf(-1))
			for _, v := range in {
				top = max(top, v)
			}
			sum := 0.0
			for _, v := range in {
				sum += math.Exp(float64(v) - float64(top))
			}
			log := float64(top) + math.Log(sum)
			for i, v := range in {
				out[i] = float32(float64(v) - log)
			}
		}
	})
}

func (c *cpu) LogSoftmaxGrad(dx, dy, y Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols*8, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d, g, v := dx.Host[r*cols:(r+1)*cols], dy.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			sum := 0.0
			for _, e := range g {
				sum += float64(e)
			}
			for i := range d {
				e := float32(float64(g[i]) - math.Exp(float64(v[i]))*sum)
				if acc {
					e += d[i]
				}
				d[i] = e
			}
		}
	})
}

func (c *cpu) L2Normalize(y, norm, x Buffer, rows, cols int) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			in, out := x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			sum := 0.0
			for _, v := range in {
				sum += float64(v) * float64(v)
			}
			n := math.Sqrt(sum)
			norm.Host[r] = float32(n)
			inv := 1 / max(n, L2Eps)
			for i, v := range in {
				out[i] = float32(float64(v) * inv)
			}
		}
	})
}

func (c *cpu) L2NormalizeGrad(dx, dy, y, norm Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d, g, v := dx.Host[r*cols:(r+1)*cols], dy.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols]
			n, along := float64(norm.Host[r]), 0.0
			if n > L2Eps {
				for i := range g {
					along += float64(g[i]) * float64(v[i])
				}
			}
			inv := 1 / max(n, L2Eps)
			for i := range d {
				e := float32((float64(g[i]) - along*float64(v[i])) * inv)
				if acc {
					e += d[i]
				}
				d[i] = e
			}
		}
	})
}
