package gemm

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// Products of bfloat16: both factors are rounded (to the nearest, ties to even)
// while they are packed, two neighbours in k to a word. Such a matrix of pairs is
// packed as one of float32 with half the steps of k.

// BF16 says how products with Options.BF16 are computed: "amx" by AMX tiles,
// "avx512" by AVX512-BF16 (both take subnormal numbers as 0), "rounded" by the
// float32 kernels from factors that are rounded first. The results of these
// differ in the last bits.
func BF16() string { return activeBF16.Load().name }

// bf16Paths are what this processor can run, the fastest first.
var bf16Paths = func() []*path {
	list := nativeBF16()
	for _, p := range paths {
		r := *p
		r.name, r.rounded = "rounded", true
		list = append(list, &r)
	}
	return list
}()

var activeBF16 = func() (a atomic.Pointer[path]) {
	a.Store(bf16Paths[0])
	return
}()

// RoundBF16 is x rounded to the nearest bfloat16, ties to even.
func RoundBF16(x float32) float32 {
	b := math.Float32bits(x)
	if x != x {
		return math.Float32frombits(b | 1<<22) // a NaN whose low bits are cut stays one
	}
	b += 0x7fff + b>>16&1
	return math.Float32frombits(b &^ 0xffff)
}

// steps is the kernels' steps for k of the factors.
func (p *path) steps(k int) int {
	if !p.pairs {
		return k
	}
	return ((k+1)/2 + p.multiple - 1) / p.multiple * p.multiple
}

// maxK is the k of a segment: maxDepth steps.
func (p *path) maxK() int {
	if p.pairs {
		return 2 * maxDepth
	}
	return maxDepth
}

func lines(n int) int { return (n + 15) &^ 15 }

// narrow is elements [k0, k0+k) × [i0, i0+n) of a factor in the kernels' precision
// and steps of k, stored in scratch in the factor's orientation: down says that k
// runs down the rows.
func (p *path) narrow(o *Operand, down bool, k0, k, i0, n int, scratch *buffer) Operand {
	switch {
	case !p.pairs:
		r, rows, c, cols := i0, n, k0, k
		if down {
			r, rows, c, cols = c, cols, r, rows
		}
		stride := lines(cols)
		mem := scratch.get(rows * stride)
		for i := range rows {
			dst := mem[i*stride:]
			for j, v := range o.row(r + i)[c : c+cols] {
				dst[j] = RoundBF16(v)
			}
		}
		return Operand{Data: mem, Stride: stride, Trans: o.Trans}
	case down:
		stride := lines(n)
		mem := scratch.get(p.steps(k) * stride)
		p.pairPanel(mem, stride, o, k0, k, i0, n)
		return Operand{Data: mem, Stride: stride, Trans: o.Trans}
	}
	stride := lines(p.steps(k))
	mem := scratch.get(n * stride)
	for i := range n {
		src := o.row(i0 + i)[k0 : k0+k]
		rows := 1
		if o.Index == nil {
			rows = n
		}
		p.roundRows(unsafe.Pointer(&mem[i*stride]), uintptr(4*stride), unsafe.Pointer(&src[0]), uintptr(4*o.Stride), rows, k)
		if rows == n {
			break
		}
	}
	return Operand{Data: mem, Stride: stride, Trans: o.Trans}
}

// pairPanel lays elements [k0, k0+k) × [i0, i0+n), k down the rows, as rows of
// pairs: dst [steps(k), stride], zeros below k. Columns from n to the end of a
// line of 16 become zeros.
func (p *path) pairPanel(dst []float32, stride int, o *Operand, k0, k, i0, n int) {
	at := func(r int) unsafe.Pointer { return unsafe.Pointer(&o.row(k0 + r)[i0 : i0+n][0]) }
	i := 0
	if o.Index == nil && k > 1 {
		p.pairRows(unsafe.Pointer(&dst[0]), uintptr(4*stride), at(0), at(1), uintptr(8*o.Stride), k/2, n)
		i = k / 2
	}
	for ; 2*i < k; i++ {
		second := unsafe.Pointer(nil)
		if 2*i+1 < k {
			second = at(2*i + 1)
		}
		p.pairRows(unsafe.Pointer(&dst[i*stride]), 0, at(2*i), second, 0, 1, n)
	}
	clear(dst[i*stride : p.steps(k)*stride])
}

// narrowView is view of a rounded copy of A.
func (p *path) narrowView(o *Operand, i0, rows int, s *segment, w *worker) (a unsafe.Pointer, rs, cs uintptr) {
	x := p.narrow(o, o.Trans, s.k0, s.k, i0, rows, &w.a)
	if p.rowsOnly && x.Trans { // eight rows of pairs at a time become columns
		t := w.turned.get(x.Stride * s.depth)
		for k := 0; k < s.depth; k += 8 {
			p.transpose8(unsafe.Pointer(&t[k]), uintptr(4*s.depth), unsafe.Pointer(&x.Data[k*x.Stride]), uintptr(4*x.Stride), uintptr(x.Stride/8))
		}
		x = Operand{Data: t, Stride: s.depth}
	}
	return x.view(0, rows, 0, s.depth, nil)
}
