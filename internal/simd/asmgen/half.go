package main

import (
	"fmt"
	"strings"
)

// halfReserved returns the number of registers at the end that kernels on float16 reserve: the
// tail's mask and, in AVX2, the results of halfTail.
func (a *asm) halfReserved() int {
	if a.name == avx512.name {
		return 1
	}
	return 3
}

func (a *asm) pairsReg() string { return fmt.Sprintf("X%d", a.regs-2) }
func (a *asm) lastReg() string  { return fmt.Sprintf("X%d", a.regs-3) }

// halfTail prepares loadHalf for the last vector of BX columns, after tailMask. AVX2 has no masked
// loads of 16 bits: the tail's pairs are loaded as 32 bits under one mask, and if their number is
// odd, a shuffle moves the last, single element to its position. It destroys AX and CX.
func (a *asm) halfTail() {
	if a.name == avx512.name {
		return
	}
	if _, ok := a.consts["halfLast"]; !ok {
		var b strings.Builder
		for n := range 9 {
			for i := range 16 {
				from := 0x80 // nothing
				if n%2 == 1 && i/2 == n-1 {
					from = i % 2
				}
				fmt.Fprintf(&b, "DATA halfLast<>+%d(SB)/1, $0x%02x\n", 16*n+i, from)
			}
		}
		b.WriteString("GLOBL halfLast<>(SB), RODATA|NOPTR, $144\n")
		a.consts["halfLast"] = b.String()
	}
	a.op("LEAQ -1(BX), CX")
	a.op("ANDQ $7, CX")
	a.op("INCQ CX")
	a.op("MOVQ CX, AX")
	a.op("SHLQ $4, AX")
	a.op("SHRQ $1, CX")
	a.op("SHLQ $2, CX")
	a.op("NEGQ CX")
	a.op("LEAQ tail<>+32(SB), R14")
	a.op("VMOVDQU (R14)(CX*1), %s", a.pairsReg())
	a.op("LEAQ halfLast<>(SB), R14")
	a.op("VMOVDQU (R14)(AX*1), %s", a.lastReg())
}

// loadHalf loads vector j of the row of float16 at base into reg, as float32; a tail's missing
// elements become 0. tmp is a vector register of any content.
func (a *asm) loadHalf(base string, j int, reg, tmp string, tail bool) {
	mem := fmt.Sprintf("%d(%s)", j*a.lanes*2, base)
	switch {
	case !tail:
		a.op("VCVTPH2PS %s, %s", mem, reg)
	case a.name == avx512.name:
		a.op("VCVTPH2PS.Z %s, K1, %s", mem, reg)
	default:
		x, last := "X"+reg[1:], "X"+tmp[1:]
		a.op("VPXOR %[1]s, %[1]s, %[1]s", last)
		a.op("VPINSRW $0, (%s)(%s*1), %s, %s", base, rEnd, last, last)
		a.op("VPSHUFB %s, %s, %s", a.lastReg(), last, last)
		a.op("VPMASKMOVD %s, %s, %s", mem, a.pairsReg(), x)
		a.op("VPOR %s, %s, %s", last, x, x)
		a.op("VCVTPH2PS %s, %s", x, reg)
	}
}

// fromHalfKernel converts whole vectors.
func fromHalfKernel(a *asm) {
	a.fn("fromHalf16", "converts n float16 to float32; n is a multiple of 16.", "dst *float32", "src *uint16", "n int")
	a.op("MOVQ %s, DI", a.arg("dst"))
	a.op("MOVQ %s, SI", a.arg("src"))
	a.op("MOVQ %s, CX", a.arg("n"))
	again, end := a.label("vector"), a.label("end")
	a.op("TESTQ CX, CX")
	a.op("JZ %s", end)
	a.at(again)
	for j := range 16 / a.lanes {
		a.op("VCVTPH2PS %d(SI), %s", 2*a.lanes*j, a.v(j))
		a.op("VMOVUPS %s, %d(DI)", a.v(j), a.bytes()*j)
	}
	a.op("ADDQ $64, DI")
	a.op("ADDQ $32, SI")
	a.op("SUBQ $16, CX")
	a.op("JNZ %s", again)
	a.at(end)
	a.ret()
}
