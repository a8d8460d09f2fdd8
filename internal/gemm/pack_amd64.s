#include "textflag.h"

// func copyPanel(dst, src unsafe.Pointer, rows int, stride uintptr, bytes int)
TEXT ·copyPanel(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ rows+16(FP), CX
	MOVQ stride+24(FP), R8
	MOVQ bytes+32(FP), R9
	CMPQ R9, $128
	JNE  row

row128:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    R8, SI
	ADDQ    $128, DI
	DECQ    CX
	JNZ     row128
	VZEROUPPER
	RET

row:
	XORQ AX, AX

vector:
	VMOVUPS (SI)(AX*1), Y0
	VMOVUPS Y0, (DI)(AX*1)
	ADDQ    $32, AX
	CMPQ    AX, R9
	JLT     vector
	ADDQ    R8, SI
	ADDQ    R9, DI
	DECQ    CX
	JNZ     row
	VZEROUPPER
	RET

// func transpose8(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep, n uintptr)
//
// Pairs of rows are interleaved, then pairs of pairs, then the two halves.
TEXT ·transpose8(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ dstStep+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcStep+24(FP), R9
	MOVQ n+32(FP), CX
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11

block:
	LEAQ (SI)(R9*4), DX
	VMOVUPS (SI), Y0
	VMOVUPS (SI)(R9*1), Y1
	VMOVUPS (SI)(R9*2), Y2
	VMOVUPS (SI)(R11*1), Y3
	VMOVUPS (DX), Y4
	VMOVUPS (DX)(R9*1), Y5
	VMOVUPS (DX)(R9*2), Y6
	VMOVUPS (DX)(R11*1), Y7

	VUNPCKLPS Y1, Y0, Y8
	VUNPCKHPS Y1, Y0, Y9
	VUNPCKLPS Y3, Y2, Y10
	VUNPCKHPS Y3, Y2, Y11
	VUNPCKLPS Y5, Y4, Y12
	VUNPCKHPS Y5, Y4, Y13
	VUNPCKLPS Y7, Y6, Y14
	VUNPCKHPS Y7, Y6, Y15

	VUNPCKLPD Y10, Y8, Y0
	VUNPCKHPD Y10, Y8, Y1
	VUNPCKLPD Y11, Y9, Y2
	VUNPCKHPD Y11, Y9, Y3
	VUNPCKLPD Y14, Y12, Y4
	VUNPCKHPD Y14, Y12, Y5
	VUNPCKLPD Y15, Y13, Y6
	VUNPCKHPD Y15, Y13, Y7

	VPERM2F128 $0x20, Y4, Y0, Y8
	VPERM2F128 $0x20, Y5, Y1, Y9
	VPERM2F128 $0x20, Y6, Y2, Y10
	VPERM2F128 $0x20, Y7, Y3, Y11
	VPERM2F128 $0x31, Y4, Y0, Y12
	VPERM2F128 $0x31, Y5, Y1, Y13
	VPERM2F128 $0x31, Y6, Y2, Y14
	VPERM2F128 $0x31, Y7, Y3, Y15

	LEAQ (DI)(R8*4), DX
	VMOVUPS Y8, (DI)
	VMOVUPS Y9, (DI)(R8*1)
	VMOVUPS Y10, (DI)(R8*2)
	VMOVUPS Y11, (DI)(R10*1)
	VMOVUPS Y12, (DX)
	VMOVUPS Y13, (DX)(R8*1)
	VMOVUPS Y14, (DX)(R8*2)
	VMOVUPS Y15, (DX)(R10*1)

	ADDQ $32, SI
	LEAQ (DX)(R8*4), DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// func touchPages(at unsafe.Pointer, n int)
TEXT ·touchPages(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), SI
	MOVQ n+8(FP), CX

page:
	PREFETCHT1 (SI)
	ADDQ $4096, SI
	DECQ CX
	JNZ  page
	RET

// func addVectors(dst, src unsafe.Pointer, n int)
TEXT ·addVectors(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

line:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VADDPS  (SI), Y0, Y0
	VADDPS  32(SI), Y1, Y1
	VADDPS  64(SI), Y2, Y2
	VADDPS  96(SI), Y3, Y3
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DI
	SUBQ    $32, CX
	JNZ     line
	VZEROUPPER
	RET

// func gatherRows(dst unsafe.Pointer, dstStep uintptr, src unsafe.Pointer, srcStep uintptr, index *int32, n, bytes int)
//
// R13 counts the rows that may be fetched 8 rows ahead.
TEXT ·gatherRows(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ dstStep+8(FP), R8
	MOVQ src+16(FP), SI
	MOVQ srcStep+24(FP), R9
	MOVQ index+32(FP), R10
	MOVQ n+40(FP), R11
	MOVQ bytes+48(FP), R12
	LEAQ -8(R11), R13

row:
	TESTQ R13, R13
	JLE   copy
	MOVLQSX 32(R10), AX
	IMULQ R9, AX
	ADDQ  SI, AX
	LEAQ  (AX)(R12*1), BX

fetch:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	CMPQ AX, BX
	JLT  fetch
	PREFETCHT0 -4(BX)

copy:
	MOVLQSX (R10), AX
	IMULQ R9, AX
	ADDQ  SI, AX
	MOVQ  DI, DX
	MOVQ  R12, CX
	SUBQ  $64, CX
	JLT   words

line:
	VMOVUPS (AX), Y0
	VMOVUPS 32(AX), Y1
	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
	ADDQ $64, AX
	ADDQ $64, DX
	SUBQ $64, CX
	JGE  line

words:
	ADDQ $64, CX
	JZ   next

word:
	MOVL (AX), BX
	MOVL BX, (DX)
	ADDQ $4, AX
	ADDQ $4, DX
	SUBQ $4, CX
	JNZ  word

next:
	ADDQ R8, DI
	ADDQ $4, R10
	DECQ R13
	DECQ R11
	JNZ  row
	VZEROUPPER
	RET

// func roundVectors(dst, src unsafe.Pointer, n int)
//
// Y8 0x7fff, Y9 1, Y10 a quiet NaN's bit, Y11 the upper halves.
TEXT ·roundVectors(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VPCMPEQD Y11, Y11, Y11
	VPSRLD   $17, Y11, Y8
	VPSRLD   $31, Y11, Y9
	VPSLLD   $22, Y9, Y10
	VPSLLD   $16, Y11, Y11

vector:
	VMOVUPS   (SI), Y0
	VPSRLD    $16, Y0, Y1
	VPAND     Y9, Y1, Y1
	VPADDD    Y8, Y1, Y1
	VPADDD    Y0, Y1, Y1
	VCMPPS    $3, Y0, Y0, Y2
	VPOR      Y10, Y0, Y3
	VBLENDVPS Y2, Y3, Y1, Y1
	VPAND     Y11, Y1, Y1
	VMOVUPS   Y1, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ  vector
	VZEROUPPER
	RET

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET
