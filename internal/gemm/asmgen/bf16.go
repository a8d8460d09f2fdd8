package main

import (
	"bytes"
	"fmt"
	"strings"
)

// Go's assembler supports neither AVX512-BF16 nor AMX. These functions return the instructions'
// encodings.

func byteList(b ...int) string {
	parts := make([]string, len(b))
	for i, v := range b {
		parts[i] = fmt.Sprintf("BYTE $0x%02X", v)
	}
	return strings.Join(parts, "; ")
}

// evex returns an instruction of three 512-bit registers in map 0F38, with operands in the order of
// Go's assembler: the destination is last.
func evex(prefix, opcode, third, second, dst int) string {
	pp := map[int]int{0x66: 1, 0xF3: 2, 0xF2: 3}[prefix]
	not := func(r, bit int) int { return ^(r >> bit) & 1 }
	return byteList(
		0x62,
		not(dst, 3)<<7|not(third, 4)<<6|not(third, 3)<<5|not(dst, 4)<<4|2,
		(^second&15)<<3|4|pp,
		2<<5|not(second, 4)<<3,
		opcode,
		0xC0|dst&7<<3|third&7,
	)
}

// cvt2 rounds two vectors to bfloat16: low becomes the lower half of dst.
func cvt2(high, low, dst int) string { return evex(0xF2, 0x72, low, high, dst) }

// The general registers' numbers.
const (
	rAX, rCX, rDX, rBX, rSP, rBP, rSI, rDI = 0, 1, 2, 3, 4, 5, 6, 7
)

const (
	loadConfig  = "BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0x00" // LDTILECFG (AX)
	tileRelease = "BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0"
)

// tileMove returns TILELOADD (F2) or TILESTORED (F3) of a tile whose rows are at disp + base +
// row·index.
func tileMove(prefix, op, reg, base, index, disp int) string {
	pp := map[int]int{0xF3: 2, 0xF2: 3}[prefix]
	return byteList(0xC4, 0xE2, 0x78|pp, op, 0x40|reg<<3|4, index<<3|base, disp)
}

func tileLoad(reg, base, index, disp int) string { return tileMove(0xF2, 0x4B, reg, base, index, disp) }

func tileStore(reg, base, index, disp int) string {
	return tileMove(0xF3, 0x4B, reg, base, index, disp)
}
func tileZero(reg int) string { return byteList(0xC4, 0xE2, 0x7B, 0x49, 0xC0|reg<<3) }

// tileDot returns TDPBF16PS: acc += a·b.
func tileDot(b, a, acc int) string {
	return byteList(0xC4, 0xE2, (^b&15)<<3|2, 0x5C, 0xC0|acc<<3|a)
}

func amxName(high, wide int) string { return fmt.Sprintf("tileAMX_%dx%d", 16*high, 16*wide) }

// amxFetches is the number of prefetches per step; type ahead counts them.
const amxFetches = 8

// writeAMX writes the kernel of high × wide tiles of 16×16: tmm0 … tmm3 hold C by rows, tmm4 and
// tmm5 hold A, tmm6 and tmm7 hold B. The caller provides the configuration (rows, columns); the
// kernel loads and releases it, because the goroutine may continue on another processor. A step of
// k is a pair; k is a multiple of 16.
func writeAMX(out *bytes.Buffer, high, wide int) {
	p := func(format string, args ...any) { fmt.Fprintf(out, "\t"+format+"\n", args...) }
	name := amxName(high, wide)
	fmt.Fprintf(out, "\n// func %s(t *tile)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, name)
	p("MOVQ t+0(FP), R15")
	p("LEAQ %d(R15), AX", oConfig)
	p(loadConfig)
	p("MOVQ %d(R15), R8", oTiles)
	p("MOVQ %d(R15), R9", oA)
	p("MOVQ %d(R15), R10", oC)
	p("MOVQ %d(R15), R12", oAhead)
	p("MOVQ %d(R15), R13", oAheadStep)

	// each calls f for the tiles of C: BX is the tile's C, 64 bytes apart.
	each := func(stride int, f func(tile, disp int)) {
		p("MOVQ R10, BX")
		p("MOVQ %d(R15), CX", stride)
		for i := range high {
			if i > 0 {
				p("MOVQ CX, DX")
				p("SHLQ $4, DX")
				p("ADDQ DX, BX")
			}
			for j := range wide {
				f(2*i+j, 64*j)
			}
		}
	}
	out.WriteString("tile:\n")
	p("MOVQ %d(R15), AX", oMode)
	p("CMPQ AX, $1")
	p("JEQ bias")
	p("JGT load")
	for i := range high {
		for j := range wide {
			p(tileZero(2*i + j))
		}
	}
	p("JMP begin")
	out.WriteString("bias:\n") // the same row 16 times: a stride of 0
	p("MOVQ %d(R15), BX", oBias)
	p("XORL CX, CX")
	for i := range high {
		for j := range wide {
			p(tileLoad(2*i+j, rBX, rCX, 64*j))
		}
	}
	p("JMP begin")
	out.WriteString("load:\n")
	each(oLDC, func(tile, disp int) { p(tileLoad(tile, rBX, rCX, disp)) })

	// C is prefetched while the sums are computed.
	out.WriteString("begin:\n")
	p("MOVQ R10, BX")
	p("MOVQ %d(R15), CX", oLDC)
	for range 16 * high {
		for j := range wide {
			p("PREFETCHT0 %d(BX)", 64*j)
		}
		p("ADDQ CX, BX")
	}
	p("MOVQ R9, SI")
	p("MOVQ %d(R15), DX", oRS)
	if high == 2 {
		p("MOVQ DX, BX")
		p("SHLQ $4, BX")
		p("ADDQ SI, BX")
	}
	p("MOVQ %d(R15), DI", oB)
	p("MOVQ $%d, AX", 64*wide)
	p("MOVQ %d(R15), R11", oK)
	out.WriteString("step:\n")
	p(tileLoad(6, rDI, rAX, 0))
	p(tileLoad(4, rSI, rDX, 0))
	p(tileDot(6, 4, 0))
	for range amxFetches {
		p("PREFETCHT1 (R12)")
		p("ADDQ R13, R12")
	}
	if wide == 2 {
		p(tileLoad(7, rDI, rAX, 64))
		p(tileDot(7, 4, 1))
	}
	if high == 2 {
		p(tileLoad(5, rBX, rDX, 0))
		p(tileDot(6, 5, 2))
		if wide == 2 {
			p(tileDot(7, 5, 3))
		}
		p("ADDQ $64, BX")
	}
	p("ADDQ $64, SI")
	p("ADDQ $%d, DI", 16*64*wide)
	p("SUBQ $16, R11")
	p("JNZ step")

	each(oLDC, func(tile, disp int) { p(tileStore(tile, rBX, rCX, disp)) })
	p("ADDQ %d(R15), R9", oAStep)
	p("MOVQ %d(R15), DX", oLDC)
	p("SHLQ $4, DX")
	p("LEAQ (BX)(DX*1), R10")
	p("DECQ R8")
	p("JNZ tile")
	p(tileRelease)
	p("RET")
}

// conversions returns the loops that round to bfloat16.
func conversions() string {
	var b strings.Builder
	b.WriteString(`
// interleaved takes words 0, 16, 1, 17, …
`)
	for i := range 16 {
		fmt.Fprintf(&b, "DATA interleaved<>+%d(SB)/4, $0x%08X\n", 4*i, (16+i)<<16|i)
	}
	b.WriteString(`GLOBL interleaved<>(SB), RODATA|NOPTR, $64

// func pairRows(dst unsafe.Pointer, dstStep uintptr, src0, src1 unsafe.Pointer, srcStep uintptr, pairs, n int)
TEXT ·pairRows(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ dstStep+8(FP), R8
	MOVQ src0+16(FP), SI
	MOVQ src1+24(FP), DX
	MOVQ srcStep+32(FP), R9
	MOVQ pairs+40(FP), R10
	VMOVDQU64 interleaved<>(SB), Z3
	MOVL $-1, R11

pair:
	MOVQ n+48(FP), CX
	XORQ AX, AX

vector:
	BZHIL CX, R11, BX
	CMPQ  CX, $16
	CMOVQGE R11, BX
	KMOVW BX, K1
	TESTQ DX, DX
	JZ    single
	KMOVW BX, K2
	VMOVUPS.Z (DX)(AX*1), K2, Z1
	JMP   round

single:
	VPXORD Z1, Z1, Z1

round:
	VMOVUPS.Z (SI)(AX*1), K1, Z0
	` + cvt2(1, 0, 2) + ` // VCVTNE2PS2BF16 Z0, Z1, Z2
	VPERMW Z2, Z3, Z4
	VMOVDQU64 Z4, (DI)(AX*1)
	ADDQ $64, AX
	SUBQ $16, CX
	JGT  vector
	ADDQ R8, DI
	ADDQ R9, SI
	ADDQ R9, DX
	DECQ R10
	JNZ  pair
	VZEROUPPER
	RET

// func roundRows(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, rows, n int)
TEXT ·roundRows(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ dstStep+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcStep+24(FP), R9
	MOVQ rows+32(FP), R10
	MOVL $-1, R11

row:
	MOVQ n+40(FP), CX
	MOVQ SI, AX
	XORQ DX, DX

full:
	CMPQ CX, $32
	JLT  rest
	VMOVUPS (AX), Z0
	VMOVUPS 64(AX), Z1
	` + cvt2(1, 0, 2) + ` // VCVTNE2PS2BF16 Z0, Z1, Z2
	VMOVDQU64 Z2, (DI)(DX*1)
	ADDQ $128, AX
	ADDQ $64, DX
	SUBQ $32, CX
	JMP  full

rest:
	CMPQ DX, R8
	JGE  next
	BZHIL CX, R11, BX
	KMOVW BX, K1
	SHRL  $16, BX
	KMOVW BX, K2
	VMOVUPS.Z (AX), K1, Z0
	VMOVUPS.Z 64(AX), K2, Z1
	` + cvt2(1, 0, 2) + ` // VCVTNE2PS2BF16 Z0, Z1, Z2
	VMOVDQU64 Z2, (DI)(DX*1)
	ADDQ $64, DX
	XORL CX, CX
	JMP  rest

next:
	ADDQ R8, DI
	ADDQ R9, SI
	DECQ R10
	JNZ  row
	VZEROUPPER
	RET
`)
	return b.String()
}
