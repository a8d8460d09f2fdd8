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

// amx takes A by rows and 16 pairs a step.
var amx = path{
	name: "amx", width: 32, slim: 16, fetchSteps: 16, fetches: 8, pairs: true, multiple: 16, rowsOnly: true,
	kernels: amxKernels(tileAMX_16x32, tileAMX_32x32), slimKernels: amxKernels(tileAMX_16x16, tileAMX_32x16),
	mask:      func(cols, _ int) uintptr { return uintptr(cols) },
	copyPanel: copyPanel, transpose8: transpose8, roundRows: roundRows, pairRows: pairRows, gatherRows: gatherRows, touchPages: touchPages, add: addAVX,
}

// nativeBF16 returns the paths with instructions for bfloat16.
func nativeBF16() (list []*path) {
	if len(paths) == 3 && cpu.X86.HasAVX512BF16 {
		if cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && permitAMX() {
			list = append(list, &amx)
		}
		list = append(list, &avx512BF16)
	}
	return list
}

// amxKernels are kernels for any rows up to 32: up to 16 by one tile, the others
// by two.
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

// tileConfig is the operand of LDTILECFG: the palette, and bytes a row and rows of
// each tile.
type tileConfig struct {
	palette  uint8
	_        [15]uint8
	rowBytes [16]uint16
	rows     [16]uint8
}

// set makes it that of rows × cols of C, as the kernels number the tiles.
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

// pairRows rounds pairs of rows: row i of dst holds n words, each an element of
// src0 and, in the upper half, the one of src1 below it (0 where src1 is nil), and
// zeros up to a multiple of 16. Both sources go on srcStep bytes below.
//
//go:noescape
func pairRows(dst unsafe.Pointer, dstStep uintptr, src0, src1 unsafe.Pointer, srcStep uintptr, pairs, n int)

// roundRows rounds rows of n elements to dstStep bytes (a multiple of 64) each,
// zeros beyond n.
//
//go:noescape
func roundRows(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, rows, n int)
