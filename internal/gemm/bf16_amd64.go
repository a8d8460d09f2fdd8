package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var avx512BF16 = path{
	name: "avx512", width: 32, slim: 16, fetchSteps: 4, fetches: 3, pairs: true, multiple: 1,
	kernels: rowsBF16x2, slimKernels: rowsBF16x1, mask: avx512.mask,
	copyPanel: copyPanel, transpose8: transpose8, roundRows: roundRows, pairRows: pairRows, gatherRows: gatherRows, touchPages: touchPages, add: addAVX,
}

// amx takes A by rows, 16 pairs per step.
var amx = path{
	name: "amx", width: 32, slim: 16, fetchSteps: 16, fetches: 8, pairs: true, multiple: 16, rowsOnly: true,
	kernels: amxKernels(tileAMX_16x32, tileAMX_32x32), slimKernels: amxKernels(tileAMX_16x16, tileAMX_32x16),
	mask:      func(cols, _ int) uintptr { return uintptr(cols) },
	copyPanel: copyPanel, transpose8: transpose8, roundRows: roundRows, pairRows: pairRows, gatherRows: gatherRows, touchPages: touchPages, add: addAVX,
}

// nativeBF16 returns the paths with bfloat16 instructions.
func nativeBF16() (list []*path) {
	if len(paths) == 3 && cpu.X86.HasAVX512BF16 {
		if cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && permitAMX() {
			list = append(list, &amx)
		}
		list = append(list, &avx512BF16)
	}
	return list
}

// amxKernels returns kernels for any number of rows up to 32: up to 16 with one tile, more with
// two.
func amxKernels(one, two func(t *tile)) []rowKernel {
	var list []rowKernel
	for rows := 32; rows >= 1; rows-- {
		kernel := two
		if rows <= 16 {
			kernel = one
		}
		list = append(list, rowKernel{rows: rows, run: func(t *tile) {
			t.config.set(rows, int(t.mask))
			kernel(t)
		}})
	}
	return list
}

// tileConfig is the operand of LDTILECFG: the palette, and bytes per row and rows of each tile.
type tileConfig struct {
	palette  uint8
	_        [15]uint8
	rowBytes [16]uint16
	rows     [16]uint8
}

// set configures the tiles for rows × cols of C, in the kernels' numbering.
func (c *tileConfig) set(rows, cols int) {
	*c = tileConfig{palette: 1}
	high := [2]uint8{uint8(min(16, rows)), uint8(max(0, rows-16))}
	wide := [2]uint16{uint16(4 * min(16, cols)), uint16(4 * max(0, cols-16))}
	for i, h := range high {
		for j, w := range wide {
			if h > 0 && w > 0 {
				c.rows[2*i+j], c.rowBytes[2*i+j] = h, w
			}
		}
		if h > 0 {
			c.rows[4+i], c.rowBytes[4+i] = h, 64
		}
	}
	for j, w := range wide {
		if w > 0 {
			c.rows[6+j], c.rowBytes[6+j] = 16, w
		}
	}
}

// pairRows rounds pairs of rows: row i of dst holds n words, each with an element of src0 in the
// lower half and the element of src1 at the same position in the upper half (0 if src1 is nil),
// then zeros up to a multiple of 16. The next row of both sources is srcStep bytes further.
//
//go:noescape
func pairRows(dst unsafe.Pointer, dstStep uintptr, src0, src1 unsafe.Pointer, srcStep uintptr, pairs, n int)

// roundRows rounds rows of n elements to rows of dstStep bytes (a multiple of 64) each, with zeros
// beyond n.
//
//go:noescape
func roundRows(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, rows, n int)
