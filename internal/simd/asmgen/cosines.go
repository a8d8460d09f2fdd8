package main

import (
	"fmt"
	"math"
)

// cosineKernels writes the cosines of angles in float64. A vector of float64 makes half a vector of float32.
func cosineKernels(a *asm) {
	a.fn("cosines", "computes o = cos 2π(t·w + b); n is a multiple of 8. See cosTurns.", "o *float32", "w *float64", "b *float64", "n int", "t float64")
	for _, p := range []struct{ arg, reg string }{{"o", "DI"}, {"w", "SI"}, {"b", "DX"}, {"n", "CX"}} {
		a.op("MOVQ %s, %s", a.arg(p.arg), p.reg)
	}
	half, round, and, narrow := "Y", "VRNDSCALEPD", "VPANDQ", "VCVTPD2PS"
	if a.name != avx512.name {
		half, round, and, narrow = "X", "VROUNDPD", "VANDPD", "VCVTPD2PSY"
	}
	y, n, t, abs, quarter := a.v(0), a.v(1), a.v(2), a.v(3), a.v(4)
	q, u, p := half+"0", half+"5", half+"6"
	a.op("VBROADCASTSD %s, %s", a.arg("t"), t)
	a.op("VMOVUPD %s, %s", a.words("absolute", 0xffffffff, 0x7fffffff), abs)
	a.op("VMOVUPD %s, %s", a.words("quarter", 0, uint32(math.Float64bits(0.25)>>32)), quarter)
	again, end := a.label("loop"), a.label("end")
	a.op("TESTQ CX, CX")
	a.op("JZ %s", end)
	a.at(again)
	a.op("VMULPD (SI), %s, %s", t, y)
	a.op("VADDPD (DX), %s, %s", y, y)
	a.op("%s $8, %s, %s", round, y, n)
	a.op("VSUBPD %s, %s, %s", n, y, y)
	a.op("%s %s, %s, %s", and, abs, y, y)
	a.op("VSUBPD %s, %s, %s", y, quarter, y)
	a.op("%s %s, %s", narrow, y, q)
	a.op("VMULPS %[1]s, %[1]s, %[2]s", q, u)
	a.op("VMULPS %s, %s, %s", a.float("cos4", 39.71092), u, p)
	for i, c := range []float32{-76.57499, 81.602234, -41.34168, 6.2831855} {
		if i > 0 {
			a.op("VMULPS %s, %s, %s", u, p, p)
		}
		a.op("VADDPS %s, %s, %s", a.float(fmt.Sprintf("cos%d", 3-i), c), p, p)
	}
	a.op("VMULPS %s, %s, %s", q, p, p)
	a.op("VMOVUPS %s, (DI)", p)
	a.op("ADDQ $%d, DI", a.bytes()/2)
	a.op("ADDQ $%d, SI", a.bytes())
	a.op("ADDQ $%d, DX", a.bytes())
	a.op("SUBQ $%d, CX", a.lanes/2)
	a.op("JNZ %s", again)
	a.at(end)
	a.ret()
}
