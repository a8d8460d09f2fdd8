package gemm

import (
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Products of bfloat16: packing rounds both factors (to the nearest, ties to even) and stores two
// neighbours in k per 32-bit word. Such a matrix of pairs is packed like a float32 matrix with half
// the steps of k.

// BF16 returns how products with Options.BF16 are computed: "amx" by AMX tiles, "avx512" by
// AVX512-BF16 (both take subnormal numbers as 0), "rounded" by the float32 kernels from factors
// that are rounded first. Their results differ in the last bits.
func BF16() string { return pathBF16().name }

// bf16Paths returns the paths that this processor can run, fastest first. It is evaluated at the
// first product, because AMX needs a permission for the process.
var bf16Paths = sync.OnceValue(func() []*path {
	list := nativeBF16()
	for _, p := range paths {
		r := *p
		r.name, r.rounded = "rounded", true
		list = append(list, &r)
	}
	return list
})

// forcedBF16 is the path that a test selects.
var forcedBF16 atomic.Pointer[path]

func pathBF16() *path {
	if p := forcedBF16.Load(); p != nil {
		return p
	}
	return bf16Paths()[0]
}

// RoundBF16 returns x rounded to the nearest bfloat16, ties to even.
func RoundBF16(x float32) float32 {
	b := math.Float32bits(x)
	if x != x {
		return math.Float32frombits((b | 1<<22) &^ 0xffff) // keeps a NaN a NaN after the low bits are cut
	}
	b += 0x7fff + b>>16&1
	return math.Float32frombits(b &^ 0xffff)
}

func roundGo(dst, src []float32) {
	for i, v := range src {
		dst[i] = RoundBF16(v)
	}
}

// steps returns the kernels' steps for k elements of the factors.
func (p *path) steps(k int) int {
	if !p.pairs {
		return k
	}
	return ((k+1)/2 + p.multiple - 1) / p.multiple * p.multiple
}

// maxK returns the number of k elements in a segment of depth steps.
func (p *path) maxK(depth int) int {
	if p.pairs {
		return 2 * depth
	}
	return depth
}

func lines(n int) int { return (n + 15) &^ 15 }

// narrow returns elements [k0, k0+k) × [i0, i0+n) of a factor without index in the kernels'
// precision and steps of k, in scratch, stored in the factor's own layout: down reports that k runs
// down the rows.
func (p *path) narrow(o *Operand, down bool, k0, k, i0, n int, scratch *buffer) Operand {
	r, rows, c, cols := i0, n, k0, k
	if down {
		r, rows, c, cols = c, cols, r, rows
	}
	src := o.Data[r*o.Stride+c : (r+rows-1)*o.Stride+c+cols]
	x := Operand{Stride: lines(cols), Trans: o.Trans}
	switch {
	case !p.pairs:
		x.Data = scratch.get(rows * x.Stride)
		for i := range rows {
			p.round(x.Data[i*x.Stride:][:cols], src[i*o.Stride:][:cols])
		}
	case down:
		x.Data = scratch.get(p.steps(k) * x.Stride)
		to, step := unsafe.Pointer(&x.Data[0]), uintptr(4*x.Stride)
		if k > 1 {
			p.pairRows(to, step, unsafe.Pointer(&src[0]), unsafe.Pointer(&src[o.Stride]), uintptr(8*o.Stride), k/2, n)
		}
		if k%2 == 1 {
			p.pairRows(unsafe.Add(to, uintptr(k/2)*step), 0, unsafe.Pointer(&src[(k-1)*o.Stride]), nil, 0, 1, n)
		}
		clear(x.Data[(k+1)/2*x.Stride:])
	default:
		x.Stride = lines(p.steps(k))
		x.Data = scratch.get(rows * x.Stride)
		p.roundRows(unsafe.Pointer(&x.Data[0]), uintptr(4*x.Stride), unsafe.Pointer(&src[0]), uintptr(4*o.Stride), rows, k)
	}
	return x
}

// turn returns A [steps, rows], the output of narrow, transposed: eight rows of pairs at a time
// become columns.
func (p *path) turn(x *Operand, steps int, scratch *buffer) Operand {
	t := scratch.get(x.Stride * steps)
	for k := 0; k < steps; k += 8 {
		p.transpose8(unsafe.Pointer(&t[k]), uintptr(4*steps), unsafe.Pointer(&x.Data[k*x.Stride]), uintptr(4*x.Stride), uintptr(x.Stride/8))
	}
	return Operand{Data: t, Stride: steps}
}
