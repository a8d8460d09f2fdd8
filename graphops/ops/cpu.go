package ops

import (
	"math"
	"sync"
	"unsafe"

	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

var (
	_ Normer     = (*Processor)(nil)
	_ PartSummer = (*Processor)(nil)
)

// Processor computes in host memory, with the products of package gemm and the loops of package simd.
// Each method is one parallel loop (two if it sums as a tree); chunks depend on sizes alone.
type Processor struct {
	Threads int
	BF16    bool

	mu      sync.Mutex
	scratch [][]float32
}

// CPU returns the backend that computes in host memory on the given number of threads (0:
// GOMAXPROCS). It is safe for concurrent use by several Fwds. A Fwd without a backend creates its
// own.
func CPU(threads int) Backend { return &Processor{Threads: threads} }

func (c *Processor) Name() string { return "cpu" }

func (c *Processor) Alloc(n int) Buffer {
	mem := make([]float32, n)
	if n > 0 {
		mapped.HugePages(unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), 4*n))
	}
	return HostBuffer(mem)
}

func (c *Processor) Free(Buffer) {}

func (c *Processor) Wrap(host []float32) Buffer { return HostBuffer(host) }

func (c *Processor) WrapHalf(host []uint16) Buffer { return Buffer{Half: host, N: len(host)} }

func (c *Processor) Upload(dst Buffer, src []float32) { copy(dst.Host, src) }

func (c *Processor) Download(dst []float32, src Buffer) { copy(dst, src.Host) }

func (c *Processor) Zero(dst Buffer) {
	c.each(dst.N, func(lo, hi int) { clear(dst.Host[lo:hi]) })
}

// elemGrain is the number of elements of a chunk: 256 KiB, about 15 µs from memory. Waking another
// goroutine takes a few µs, as does a goroutine that finds no work.
const elemGrain = 1 << 16

func (c *Processor) loop(n, grain int, body func(lo, hi int)) {
	parallel.ForFine(c.Threads, n, grain, body)
}

// share is loop for a body whose result does not depend on the chunks: they are smaller, so that all threads get about as much.
func (c *Processor) share(n, grain int, body func(lo, hi int)) {
	parallel.ForEven(c.Threads, n, grain, body)
}

func (c *Processor) each(n int, body func(lo, hi int)) { c.share(n, elemGrain, body) }

// eachRow is each over rows of the given width.
func (c *Processor) eachRow(rows, width int, body func(lo, hi int)) {
	c.share(rows, max(1, elemGrain/max(1, width)), body)
}

// sumGrain is the number of elements of a chunk with its own partial sum: it affects the rounding
// of sums.
const sumGrain = 1 << 15

// borrow returns scratch memory with any content, for giveBack.
func (c *Processor) borrow(n int) []float32 {
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

// giveBack keeps the largest buffers, up to a fixed number.
func (c *Processor) giveBack(s []float32) {
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

// treeSum adds the slots parts[i·n : (i+1)·n] elementwise to out (which it overwrites unless acc)
// as a pairwise tree in slot order: level by level (0,1), (2,3), …; an unpaired slot moves up a
// level. It uses parts as scratch.
func (c *Processor) treeSum(out, parts []float32, n int, acc bool) {
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
				simd.Add(parts[i*n+lo:i*n+hi], parts[(i+step)*n+lo:(i+step)*n+hi])
			}
		}
		if acc {
			simd.Add(out[lo:hi], parts[lo:hi])
		} else {
			copy(out[lo:hi], parts[lo:hi])
		}
	})
}

func (c *Processor) AddRow(out, row Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		o, r := out.Host[lo*cols:hi*cols], row.Host[:cols]
		if acc {
			for ; len(o) > 0; o = o[cols:] {
				simd.Add(o[:cols], r)
			}
			return
		}
		for n := copy(o, r); 0 < n && n < len(o); n *= 2 { // few long copies, not many short ones
			copy(o[n:], o[:n])
		}
	})
}

// sumRows is the number of rows of a chunk of ColSum: fixed, and at least sumGrain elements, so
// that there are few partial rows.
func sumRows(rows, cols int) int {
	return max(1, sumGrain/max(1, cols), (rows+63)/64)
}

func (c *Processor) ColSum(out, x Buffer, rows, cols int, acc bool) {
	grain := sumRows(rows, cols)
	parts := c.borrow(parallel.Chunks(rows, grain) * cols)
	defer c.giveBack(parts)
	c.loop(rows, grain, sumColumns(parts, x.Host, cols, grain, nil))
	c.treeSum(out.Host, parts, cols, acc)
}

func (c *Processor) Sum(out, x Buffer, acc bool) {
	parts := make([]float64, parallel.Chunks(x.N, sumGrain))
	c.loop(x.N, sumGrain, func(lo, hi int) {
		parts[lo/sumGrain] = simd.Sum(x.Host[lo:hi])
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

func (c *Processor) Spread(out, x Buffer, acc bool) {
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

func (c *Processor) RowScale(out, x, w Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o, v := out.Host[r*cols:(r+1)*cols], x.Host[r*cols:(r+1)*cols]
			if acc {
				simd.Axpy(o, v, w.Host[r])
			} else {
				simd.Scale(o, v, w.Host[r])
			}
		}
	})
}

func (c *Processor) RowDot(out, x, y Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			s := simd.Dot(x.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols])
			if acc {
				s += out.Host[r]
			}
			out.Host[r] = s
		}
	})
}

func (c *Processor) CopyCols(out Buffer, outCols, outAt int, x Buffer, xCols, xAt, rows, cols int, acc bool) {
	c.eachRow(rows, cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			o, v := out.Host[r*outCols+outAt:][:cols], x.Host[r*xCols+xAt:][:cols]
			if acc {
				simd.Add(o, v)
			} else {
				copy(o, v)
			}
		}
	})
}

func (c *Processor) LogSoftmax(y, x Buffer, rows, cols int) {
	c.eachRow(rows, 2*cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			simd.LogSoftmax(y.Host[r*cols:(r+1)*cols], x.Host[r*cols:(r+1)*cols])
		}
	})
}

func (c *Processor) LogSoftmaxGrad(dx, dy, y Buffer, rows, cols int, acc bool) {
	c.eachRow(rows, 2*cols, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			simd.LogSoftmaxGrad(dx.Host[r*cols:(r+1)*cols], dy.Host[r*cols:(r+1)*cols], y.Host[r*cols:(r+1)*cols], acc)
		}
	})
}

func (c *Processor) L2Normalize(y, norm, x Buffer, rows, cols int) {
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

func (c *Processor) L2NormalizeGrad(dx, dy, y, norm Buffer, rows, cols int, acc bool) {
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
