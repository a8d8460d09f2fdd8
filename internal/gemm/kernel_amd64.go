package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go run ./asmgen .

var avx512 = path{
	name: "avx512", width: 32, slim: 16, fetchSteps: 4, fetches: 3,
	kernels: rowsAVX512x2, slimKernels: rowsAVX512x1,
	mask:      func(cols, _ int) uintptr { return uintptr(1)<<cols - 1 },
	copyPanel: copyPanel, transpose8: transpose8, gatherRows: gatherRows, touchPages: touchPages, add: addAVX, round: roundAVX2,
	peak: func() float64 {
		const rounds = 1 << 14
		peakAVX512(rounds)
		return rounds * 12 * 16 * 2
	},
}

var avx2 = path{
	name: "avx2", width: 16, slim: 8, fetchSteps: 4, fetches: 3,
	kernels: rowsAVX2x2, slimKernels: rowsAVX2x1,
	mask:      maskAVX2,
	copyPanel: copyPanel, transpose8: transpose8, gatherRows: gatherRows, touchPages: touchPages, add: addAVX, round: roundAVX2,
	peak: func() float64 {
		const rounds = 1 << 14
		peakAVX2(rounds)
		return rounds * 12 * 8 * 2
	},
}

// paths lists the paths that this processor can run, fastest first.
var paths = func() (list []*path) {
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
			list = append(list, &avx512)
		}
		list = append(list, &avx2)
	}
	return append(list, &plain)
}()

// maskWords holds 16 words of ones followed by 16 of zeros: a mask of the first c of w columns
// begins c words before the zeros.
var maskWords = func() (w [32]uint32) {
	for i := range 16 {
		w[i] = ^uint32(0)
	}
	return w
}()

// maskAVX2 returns the address of the mask, 0 for all columns.
func maskAVX2(cols, width int) uintptr {
	if cols == width {
		return 0
	}
	return uintptr(unsafe.Pointer(&maskWords[16-cols]))
}

// copyPanel copies rows that are stride bytes apart to contiguous memory; bytes is a multiple of
// 32.
//
//go:noescape
func copyPanel(dst, src unsafe.Pointer, rows int, stride uintptr, bytes int)

// gatherRows copies rows of a matrix at src by index, and prefetches the row 8 positions ahead.
//
//go:noescape
func gatherRows(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, index *int32, n, bytes int)

// transpose8 transposes n blocks of 8×8: block b is columns 8b … of 8 rows that
// are srcStep bytes apart, and becomes rows 8b … dstStep bytes apart.
//
//go:noescape
func transpose8(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep, n uintptr)

// touchPages prefetches a line of each of n pages, n > 0.
//
//go:noescape
func touchPages(at unsafe.Pointer, n int)

// addAVX computes dst += src.
func addAVX(dst, src []float32) {
	src = src[:len(dst)]
	n := len(dst) &^ 31
	if n > 0 {
		addVectors(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
	}
	addGo(dst[n:], src[n:])
}

// addVectors computes dst += src for n elements, a multiple of 32.
//
//go:noescape
func addVectors(dst, src unsafe.Pointer, n int)

// roundAVX2 computes dst = RoundBF16(src).
func roundAVX2(dst, src []float32) {
	n := len(src) &^ 7
	if n > 0 {
		roundVectors(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
	}
	roundGo(dst[n:], src[n:])
}

// roundVectors computes dst = RoundBF16(src) for n elements, a multiple of 8.
//
//go:noescape
func roundVectors(dst, src unsafe.Pointer, n int)
