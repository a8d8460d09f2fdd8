package main

import "fmt"

// normKernels writes the kernels of a layer norm, in float64. A row's sum adds one element after
// the other, so each lane holds a row: eight rows at a time, loaded as blocks of four rows by four
// columns and transposed. A sum waits for its previous addition whatever the width, so both
// instruction sets use registers of four lanes.
func normKernels(a *asm) {
	normSums(a)
	normSquares(a)
	normDots(a)
	normRow(a)
	normGradRow(a, false)
	normGradRow(a, true)
}

// normLoop writes a loop over CX columns, a multiple of 4, of rows R8 bytes apart; it sets R9 to
// 3·R8. bases are registers, each of which addresses the current column in the first of four rows.
func normLoop(a *asm, bases []string, step func()) {
	again, end := a.label("column"), a.label("end")
	a.op("LEAQ (R8)(R8*2), R9")
	a.op("TESTQ CX, CX")
	a.op("JZ %s", end)
	a.at(again)
	step()
	for _, b := range bases {
		a.op("ADDQ $16, %s", b)
	}
	a.op("SUBQ $4, CX")
	a.op("JNZ %s", again)
	a.at(end)
}

// columns loads four rows by four columns at base as float64, one column into each register from
// Y<to> on. It uses Y12 to Y15.
func columns(a *asm, base string, to int) {
	for i, at := range []string{"", "(R8*1)", "(R8*2)", "(R9*1)"} {
		a.op("VCVTPS2PD (%s)%s, Y%d", base, at, to+i)
	}
	for i := range 2 {
		a.op("VUNPCKLPD Y%d, Y%d, Y%d", to+2*i+1, to+2*i, 12+2*i)
		a.op("VUNPCKHPD Y%d, Y%d, Y%d", to+2*i+1, to+2*i, 13+2*i)
	}
	for i, half := range []string{"$0x20", "$0x31"} {
		a.op("VPERM2F128 %s, Y14, Y12, Y%d", half, to+2*i)
		a.op("VPERM2F128 %s, Y15, Y13, Y%d", half, to+2*i+1)
	}
}

func zero(a *asm, regs ...int) {
	for _, r := range regs {
		a.op("VXORPS Y%[1]d, Y%[1]d, Y%[1]d", r)
	}
}

func normSums(a *asm) {
	a.fn("normSums", "sets sum[r] to Σ x[r,i] of eight rows, stride bytes apart, in float64 by ascending i; n is a multiple of 4.", "sum *float64", "x *float32", "stride int", "n int")
	a.op("MOVQ %s, DI", a.arg("sum"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ %s, R8", a.arg("stride"))
	a.op("MOVQ %s, CX", a.arg("n"))
	a.op("LEAQ (SI)(R8*4), R10")
	zero(a, 8, 9)
	normLoop(a, []string{"SI", "R10"}, func() {
		for half, base := range []string{"SI", "R10"} {
			columns(a, base, 0)
			for i := range 4 {
				a.op("VADDPD Y%[1]d, Y%[2]d, Y%[2]d", i, 8+half)
			}
		}
	})
	a.op("VMOVUPD Y8, (DI)")
	a.op("VMOVUPD Y9, 32(DI)")
	a.ret()
}

func normSquares(a *asm) {
	a.fn("normSquares", "sets sum[r] to Σ (x[r,i]-mean[r])² of eight rows, stride bytes apart, in float64 by ascending i; n is a multiple of 4.", "sum *float64", "mean *float64", "x *float32", "stride int", "n int")
	a.op("MOVQ %s, DI", a.arg("sum"))
	a.op("MOVQ %s, DX", a.arg("mean"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ %s, R8", a.arg("stride"))
	a.op("MOVQ %s, CX", a.arg("n"))
	a.op("LEAQ (SI)(R8*4), R10")
	a.op("VMOVUPD (DX), Y10")
	a.op("VMOVUPD 32(DX), Y11")
	zero(a, 8, 9)
	normLoop(a, []string{"SI", "R10"}, func() {
		for half, base := range []string{"SI", "R10"} {
			columns(a, base, 0)
			for i := range 4 {
				a.op("VSUBPD Y%[2]d, Y%[1]d, Y%[1]d", i, 10+half)
				a.op("VMULPD Y%[1]d, Y%[1]d, Y%[1]d", i)
			}
			for i := range 4 {
				a.op("VADDPD Y%[1]d, Y%[2]d, Y%[2]d", i, 8+half)
			}
		}
	})
	a.op("VMOVUPD Y8, (DI)")
	a.op("VMOVUPD Y9, 32(DI)")
	a.ret()
}

func normDots(a *asm) {
	a.fn("normDots", "sets sum[r] to Σ dy[r,i] and dot[r] to Σ dy[r,i]·y[r,i] of eight rows, stride bytes apart, in float64 by ascending i; n is a multiple of 4.", "sum *float64", "dot *float64", "dy *float32", "y *float32", "stride int", "n int")
	a.op("MOVQ %s, DI", a.arg("sum"))
	a.op("MOVQ %s, DX", a.arg("dot"))
	a.op("MOVQ %s, SI", a.arg("dy"))
	a.op("MOVQ %s, BX", a.arg("y"))
	a.op("MOVQ %s, R8", a.arg("stride"))
	a.op("MOVQ %s, CX", a.arg("n"))
	a.op("LEAQ (SI)(R8*4), R10")
	a.op("LEAQ (BX)(R8*4), R11")
	zero(a, 8, 9, 10, 11)
	normLoop(a, []string{"SI", "R10", "BX", "R11"}, func() {
		for half, base := range [][2]string{{"SI", "BX"}, {"R10", "R11"}} {
			columns(a, base[0], 0)
			columns(a, base[1], 4)
			for i := range 4 {
				a.op("VADDPD Y%[1]d, Y%[2]d, Y%[2]d", i, 8+half)
				a.op("VMULPD Y%d, Y%d, Y%d", 4+i, i, 4+i)
			}
			for i := range 4 {
				a.op("VADDPD Y%[1]d, Y%[2]d, Y%[2]d", 4+i, 10+half)
			}
		}
	})
	a.op("VMOVUPD Y8, (DI)")
	a.op("VMOVUPD Y9, 32(DI)")
	a.op("VMOVUPD Y10, (DX)")
	a.op("VMOVUPD Y11, 32(DX)")
	a.ret()
}

// wideLoop writes a loop over CX elements, a multiple of 8, in vectors of float64. It passes step
// the index operand for the current offset, AX bytes.
func wideLoop(a *asm, step func(at string)) {
	again, end := a.label("vector"), a.label("end")
	a.op("SHLQ $2, CX")
	a.op("XORQ AX, AX")
	a.op("CMPQ AX, CX")
	a.op("JGE %s", end)
	a.at(again)
	step("(AX*1)")
	a.op("ADDQ $%d, AX", 2*a.lanes)
	a.op("CMPQ AX, CX")
	a.op("JLT %s", again)
	a.at(end)
}

// half returns the name of register i at half the width: it holds as many float32 as the full
// register holds float64.
func (a *asm) half(i int) string {
	if a.name == avx512.name {
		return fmt.Sprintf("Y%d", i)
	}
	return fmt.Sprintf("X%d", i)
}

// narrowed converts register i from float64 to float32.
func (a *asm) narrowed(i int) {
	if a.name == avx512.name {
		a.op("VCVTPD2PS Z%[1]d, Y%[1]d", i)
		return
	}
	a.op("VCVTPD2PSY Y%[1]d, X%[1]d", i)
}

func normRow(a *asm) {
	a.fn("normRow", "computes y = (x-mean)·s in float64, rounded; n is a multiple of 8.", "y *float32", "x *float32", "n int", "mean float64", "s float64")
	a.op("MOVQ %s, DI", a.arg("y"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ %s, CX", a.arg("n"))
	a.op("VBROADCASTSD %s, %s", a.arg("mean"), a.v(1))
	a.op("VBROADCASTSD %s, %s", a.arg("s"), a.v(2))
	wideLoop(a, func(at string) {
		a.op("VCVTPS2PD (SI)%s, %s", at, a.v(0))
		a.op("VSUBPD %s, %s, %s", a.v(1), a.v(0), a.v(0))
		a.op("VMULPD %s, %s, %s", a.v(2), a.v(0), a.v(0))
		a.narrowed(0)
		a.op("VMOVUPS %s, (DI)%s", a.half(0), at)
	})
	a.ret()
}

// normGradRow writes the kernel that divides by the parameter by or, with times, multiplies by it:
// the caller then passes a reciprocal that gives the same bits.
func normGradRow(a *asm, times bool) {
	name, op, doc := "normGradRow", "VDIVPD", "/by"
	if times {
		name, op, doc = "normGradRowTimes", "VMULPD", "·by"
	}
	a.fn(name, "computes d = inv·(dy - mean - y·dot"+doc+") in float64, rounded, or d += with acc; n is a multiple of 8.",
		"d *float32", "dy *float32", "y *float32", "n int", "inv float64", "mean float64", "dot float64", "by float64", "acc int")
	a.op("MOVQ %s, DI", a.arg("d"))
	a.op("MOVQ %s, SI", a.arg("dy"))
	a.op("MOVQ %s, DX", a.arg("y"))
	a.op("MOVQ %s, CX", a.arg("n"))
	for i, name := range []string{"inv", "mean", "dot", "by"} {
		a.op("VBROADCASTSD %s, %s", a.arg(name), a.v(2+i))
	}
	a.op("MOVQ %s, BX", a.arg("acc"))
	wideLoop(a, func(at string) {
		store := a.label("store")
		a.op("VCVTPS2PD (DX)%s, %s", at, a.v(1))
		a.op("VCVTPS2PD (SI)%s, %s", at, a.v(0))
		a.op("VMULPD %s, %s, %s", a.v(4), a.v(1), a.v(1))
		a.op("%s %s, %s, %s", op, a.v(5), a.v(1), a.v(1))
		a.op("VSUBPD %s, %s, %s", a.v(3), a.v(0), a.v(0))
		a.op("VSUBPD %s, %s, %s", a.v(1), a.v(0), a.v(0))
		a.op("VMULPD %s, %s, %s", a.v(2), a.v(0), a.v(0))
		a.narrowed(0)
		a.op("TESTQ BX, BX")
		a.op("JZ %s", store)
		a.op("VADDPS (DI)%s, %s, %s", at, a.half(0), a.half(0))
		a.at(store)
		a.op("VMOVUPS %s, (DI)%s", a.half(0), at)
	})
	a.ret()
}
