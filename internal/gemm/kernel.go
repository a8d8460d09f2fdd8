package gemm

import "unsafe"

// tile describes a kernel's work: a column of tiles of C, each [rows, cols] with the kernel's rows,
// one below the other. Every element starts at 0, the bias or the value in C and takes one fused
// multiply-add for each k, in ascending order; so its bits depend neither on the kernel's size nor
// on how k is split. (Plain Go rounds twice if the processor has no such instruction.)
//
// Strides are in bytes. Package asmgen depends on the order of the fields.
type tile struct {
	k         int
	a         unsafe.Pointer // A [rows·tiles, k]: its element [i,p] is at a + i·rs + p·cs
	rs, cs    uintptr
	tiles     int
	aStep     uintptr // from one tile's A to the next tile's
	b         unsafe.Pointer
	c         unsafe.Pointer
	ldc       uintptr
	bias      unsafe.Pointer
	mode      int
	mask      uintptr        // of the columns, as path.mask gives it
	ahead     unsafe.Pointer // memory to prefetch to the second-level cache
	aheadStep uintptr        // from one prefetch to the next
	config    tileConfig     // AMX
	packed    bool           // A is stored in groups of rows, with strides of its own
}

// Modes of a tile: the initial values of its sums.
const (
	fromZero = iota
	fromBias
	fromC
)

// rowKernel is a kernel and the number of rows of its tile.
type rowKernel struct {
	rows int
	run  func(t *tile)
}

// path holds the kernels of one instruction set. B is packed in panels of width columns; the last
// panel has slim columns if these suffice.
type path struct {
	name        string
	width, slim int
	kernels     []rowKernel // for width columns, by descending rows down to 1
	slimKernels []rowKernel
	mask        func(cols, width int) uintptr
	copyPanel   func(dst, src unsafe.Pointer, rows int, stride uintptr, bytes int)                // rows of bytes (a multiple of 32), laid end to end
	transpose8  func(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep, n uintptr) // transposes n 8×8 blocks along src's rows
	gatherRows  func(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, index *int32, n, bytes int)
	add         func(dst, src []float32)       // dst += src
	touchPages  func(at unsafe.Pointer, n int) // prefetches a line of each of n pages
	fetchSteps  int                            // steps of k per round of prefetches
	fetches     int                            // prefetches per such round
	pairs       bool                           // kernels take pairs of bfloat16, in steps
	multiple    int                            // of that many pairs
	rowsOnly    bool                           // requires A by rows
	round       func(dst, src []float32)       // to bfloat16
	rounded     bool                           // factors are rounded to bfloat16 and stay float32
	roundRows   func(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, rows, n int)
	pairRows    func(dst unsafe.Pointer, dstStep uintptr, src0, src1 unsafe.Pointer, srcStep uintptr, pairs, n int)
	peak        func() (flops float64) // briefly runs multiply-adds in registers
}

// panelWidth returns the width of a panel of which cols columns remain.
func (p *path) panelWidth(cols int) int {
	if cols <= p.slim {
		return p.slim
	}
	return p.width
}

// padded returns the number of columns of all panels of a matrix of n columns.
func (p *path) padded(n int) int {
	full := n / p.width * p.width
	if n > full {
		full += p.panelWidth(n - full)
	}
	return full
}

// column computes rows of C from t.c down, in a panel of the given width, with tiles as high as
// possible.
func (p *path) column(t *tile, f *ahead, rows, cols, width int) {
	kernels := p.kernels
	if width == p.slim {
		kernels = p.slimKernels
	}
	t.mask = p.mask(cols, width)
	if t.packed {
		p.groupsOf(t, f, kernels, rows)
	} else {
		p.tilesOf(t, f, kernels, rows)
	}
}

// tilesOf computes rows of C from t.c down, with A at t.a and its strides.
func (p *path) tilesOf(t *tile, f *ahead, kernels []rowKernel, rows int) {
	for i, k := range kernels {
		t.tiles = rows / k.rows
		if over := rows % k.rows; over > 0 && i+1 < len(kernels) && k.rows+over == 2*kernels[i+1].rows {
			t.tiles-- // two medium tiles are faster than a high and a low one
		}
		if t.tiles <= 0 {
			continue
		}
		t.aStep = t.rs * uintptr(k.rows)
		f.next(p, t)
		k.run(t)
		rows -= t.tiles * k.rows
		if rows == 0 {
			return
		}
		done := uintptr(t.tiles * k.rows)
		t.a, t.c = unsafe.Add(t.a, done*t.rs), unsafe.Add(t.c, done*t.ldc)
	}
}

// group is the number of rows of A that are packed together, as [k, group]: the rows of the highest
// tile, or of two.
const group = 12

// groups returns the split of rows into groups: the number of full groups and the rows of the last
// one, which may exceed a group if two medium tiles compute it.
func groups(rows int) (full, rest int) {
	full, rest = rows/group, rows%group
	if rest == 4 && full > 0 {
		return full - 1, group + rest
	}
	return full, rest
}

// groupsOf computes rows of C from t.c down, with A in groups at t.a.
func (p *path) groupsOf(t *tile, f *ahead, kernels []rowKernel, rows int) {
	a, c := t.a, t.c
	at := func(i int) { // group i; a pointer beyond the last group must not be made
		t.a, t.c = unsafe.Add(a, i*4*group*t.k), unsafe.Add(c, uintptr(i*group)*t.ldc)
	}
	full, rest := groups(rows)
	t.rs, t.cs = 4, 4*group
	if kernels[0].rows == group && full > 0 {
		t.tiles, t.aStep = full, uintptr(4*group*t.k)
		f.next(p, t)
		kernels[0].run(t)
	} else {
		for i := range full {
			at(i)
			p.tilesOf(t, f, kernels, group)
		}
	}
	if rest > 0 {
		at(full)
		t.cs = uintptr(4 * rest)
		p.tilesOf(t, f, kernels, rest)
	}
}

// ahead is memory that will be needed soon. Kernels prefetch it evenly while they compute, so that
// they neither wait for memory nor saturate it.
type ahead struct {
	regions [2][]float32
	step    int // bytes from one prefetch to the next
}

const (
	cacheLine = 64
	pageSize  = 4096
)

// plan sets the regions for the next kernel calls, which make the given number of prefetches in
// total.
func (f *ahead) plan(prefetches int, regions ...[]float32) {
	*f = ahead{}
	total := 0
	for i := range min(len(regions), len(f.regions)) {
		f.regions[i] = regions[i]
		total += 4 * len(regions[i])
	}
	if total > 0 {
		f.step = min(cacheLine, max(4, total/max(1, prefetches)&^3))
	}
}

// next assigns the kernel its part.
func (f *ahead) next(p *path, t *tile) {
	if len(f.regions[0]) == 0 {
		f.regions[0], f.regions[1] = f.regions[1], nil
	}
	r := f.regions[0]
	if len(r) == 0 {
		t.ahead, t.aheadStep = t.b, 0
		return
	}
	t.ahead, t.aheadStep = unsafe.Pointer(&r[0]), uintptr(f.step)
	n := min(len(r), p.prefetches(t.k, t.tiles)*f.step/4)
	// A prefetch of a page that the TLB does not hold stalls until the page is found. Touching the
	// pages of a call first finds them in parallel: on Zen 4, in a virtual machine, large products
	// on 2 threads are 2 to 7 % faster.
	if pages := (4*n + pageSize - 1) / pageSize; pages > 1 && p.touchPages != nil {
		p.touchPages(t.ahead, pages)
	}
	f.regions[0] = r[n:]
}

// prefetches returns how many prefetches the kernels make in that many steps of k and tiles.
func (p *path) prefetches(k, tiles int) int { return k / p.fetchSteps * p.fetches * tiles }

// tiles returns the number of the highest kernel's tiles in rows × cols.
func (p *path) tiles(rows, cols int) int {
	high := p.kernels[0].rows
	return (rows + high - 1) / high * ((cols + p.width - 1) / p.width)
}
