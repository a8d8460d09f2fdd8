package gemm

import "unsafe"

// tile is what a kernel computes: a column of tiles of C, each [rows, cols] with
// the kernel's rows, one below the other. Every element starts at 0, the bias or
// what C holds and takes one fused multiply-add for each k, in ascending order;
// so its bits depend neither on the kernel's size nor on how k is cut. (Plain Go
// rounds twice where the processor has no such instruction.)
//
// Strides are in bytes. gen.go knows the order of the fields.
type tile struct {
	k         int
	a         unsafe.Pointer // A [rows·tiles, k]: its element [i,p] is at a + i·rs + p·cs
	rs, cs    uintptr
	tiles     int
	aStep     uintptr // from a tile's A to the next one's
	b         unsafe.Pointer
	c         unsafe.Pointer
	ldc       uintptr
	bias      unsafe.Pointer
	mode      int
	mask      uintptr        // of the columns, as path.mask gives it
	ahead     unsafe.Pointer // memory to prefetch: three times in four steps of k,
	aheadStep uintptr        // this far on each time
}

// Modes of a tile: what its sums start at.
const (
	fromZero = iota
	fromBias
	fromC
)

// rowKernel is a kernel and the rows of its tile.
type rowKernel struct {
	rows int
	run  func(t *tile)
}

// path is the kernels of one instruction set. B is packed in panels of width
// columns; the last one is of slim columns if these suffice.
type path struct {
	name        string
	width, slim int
	kernels     []rowKernel // for width columns, by descending rows down to 1
	slimKernels []rowKernel
	mask        func(cols, width int) uintptr
	copyPanel   func(dst, src unsafe.Pointer, rows int, stride uintptr, bytes int)                // rows of bytes (a multiple of 32), laid end to end
	transpose8  func(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep, n uintptr) // n 8×8 blocks along src's rows
	add         func(dst, src []float32)                                                          // dst += src
	peak        func() (flops float64)                                                            // a moment of multiply-adds in registers
}

// panelWidth is the width of the panel that begins j columns before the last.
func (p *path) panelWidth(cols int) int {
	if cols <= p.slim {
		return p.slim
	}
	return p.width
}

// padded is the columns of all panels of a matrix of n.
func (p *path) padded(n int) int {
	full := n / p.width * p.width
	if n > full {
		full += p.panelWidth(n - full)
	}
	return full
}

// column computes rows of C below t.c, in a panel of the given width, with tiles
// as high as possible.
func (p *path) column(t *tile, rows, cols, width int) {
	kernels := p.kernels
	if width == p.slim {
		kernels = p.slimKernels
	}
	t.mask = p.mask(cols, width)
	for _, k := range kernels {
		if rows < k.rows {
			continue
		}
		t.tiles = rows / k.rows
		t.aStep = t.rs * uintptr(k.rows)
		k.run(t)
		rows -= t.tiles * k.rows
		if rows == 0 {
			return
		}
		done := uintptr(t.tiles * k.rows)
		t.a, t.c = unsafe.Add(t.a, done*t.rs), unsafe.Add(t.c, done*t.ldc)
	}
}
