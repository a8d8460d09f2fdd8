#include "textflag.h"

// Philox4x32-10 of counters (node, block, step, c3), 16 or 8 nodes at a time,
// and Floyd's algorithm on its draws.
//
// The counters of even and odd lanes are in registers of their own, a 32-bit word
// in the low half of each 64: so VPMULUDQ multiplies all of them, and what is in
// the high halves never matters. Floyd's step works on all lanes packed.
//
// A new pick x goes through the sorted picks p from the least on: the lesser of
// the two stays, the greater goes on. Where x is among them already it becomes j,
// which is greater than all of them, and so ends up last: that is what Floyd's
// algorithm takes instead. Only x as it was drawn can be equal to one of them,
// for they are distinct.

DATA floydConsts<>+0(SB)/4, $0xD2511F53  // multipliers
DATA floydConsts<>+4(SB)/4, $0xCD9E8D57
DATA floydConsts<>+8(SB)/4, $0x9E3779B9  // the key's increments
DATA floydConsts<>+12(SB)/4, $0xBB67AE85
DATA floydConsts<>+16(SB)/4, $1
GLOBL floydConsts<>(SB), RODATA|NOPTR, $20

// One round for 16 lanes: c0, c1, c2, c3 = hi1^c1^k0, lo1, hi0^c3^k1, lo0.
#define ROUND512 \
	VPMULUDQ   Z0, Z21, Z10; \
	VPMULUDQ   Z2, Z22, Z11; \
	VPMULUDQ   Z4, Z21, Z12; \
	VPMULUDQ   Z6, Z22, Z13; \
	VPSRLQ     $32, Z11, Z0; \
	VPTERNLOGD $0x96, Z1, Z8, Z0; \
	VPSRLQ     $32, Z10, Z2; \
	VPTERNLOGD $0x96, Z3, Z9, Z2; \
	VPSRLQ     $32, Z13, Z4; \
	VPTERNLOGD $0x96, Z5, Z8, Z4; \
	VPSRLQ     $32, Z12, Z6; \
	VPTERNLOGD $0x96, Z7, Z9, Z6; \
	VMOVDQA64  Z11, Z1; \
	VMOVDQA64  Z10, Z3; \
	VMOVDQA64  Z13, Z5; \
	VMOVDQA64  Z12, Z7; \
	VPADDD     Z23, Z8, Z8; \
	VPADDD     Z24, Z9, Z9

// The multipliers, the key's increments and 1, as the rounds take them.
#define CONSTANTS512 \
	VPBROADCASTD floydConsts<>+0(SB), Z21; \
	VPBROADCASTD floydConsts<>+4(SB), Z22; \
	VPBROADCASTD floydConsts<>+8(SB), Z23; \
	VPBROADCASTD floydConsts<>+12(SB), Z24; \
	VPBROADCASTD floydConsts<>+16(SB), Z19

// The ten rounds.
#define PHILOX512 \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512; \
	ROUND512

// Floyd's step with the draws of even and odd lanes: t = draw·(j+1)>>32 into Z10,
// j into Z11, through the picks from DI to SI.
#define PICK512(even, odd, loop, done) \
	VPMULUDQ  even, Z18, Z10; \
	VPSRLQ    $32, Z18, Z12; \
	VPMULUDQ  odd, Z12, Z11; \
	VPSRLQ    $32, Z10, Z10; \
	VPBLENDMD Z11, Z10, K1, Z10; \
	VPSUBD    Z19, Z18, Z11; \
	MOVQ      DI, AX; \
	CMPQ      AX, SI; \
	JAE       done; \
loop: \
	VMOVDQU32 (AX), Z12; \
	VPCMPEQD  Z12, Z10, K2; \
	VMOVDQA32 Z11, K2, Z10; \
	VPMINSD   Z12, Z10, Z13; \
	VPMAXSD   Z12, Z10, Z10; \
	VMOVDQU32 Z13, (AX); \
	ADDQ      $64, AX; \
	CMPQ      AX, SI; \
	JB        loop; \
done: \
	VMOVDQU32 Z10, (SI); \
	ADDQ      $64, SI; \
	VPADDD    Z19, Z18, Z18; \
	DECQ      CX; \
	JZ        finished

// One round for 8 lanes, with the key in Y8 and Y9.
#define ROUND256 \
	VPMULUDQ Y0, Y14, Y10; \
	VPMULUDQ Y2, Y15, Y11; \
	VPMULUDQ Y4, Y14, Y12; \
	VPMULUDQ Y6, Y15, Y13; \
	VPSRLQ   $32, Y11, Y0; \
	VPXOR    Y1, Y0, Y0; \
	VPXOR    Y8, Y0, Y0; \
	VPSRLQ   $32, Y10, Y2; \
	VPXOR    Y3, Y2, Y2; \
	VPXOR    Y9, Y2, Y2; \
	VPSRLQ   $32, Y13, Y4; \
	VPXOR    Y5, Y4, Y4; \
	VPXOR    Y8, Y4, Y4; \
	VPSRLQ   $32, Y12, Y6; \
	VPXOR    Y7, Y6, Y6; \
	VPXOR    Y9, Y6, Y6; \
	VMOVDQA  Y11, Y1; \
	VMOVDQA  Y10, Y3; \
	VMOVDQA  Y13, Y5; \
	VMOVDQA  Y12, Y7; \
	VPADDD   64(SP), Y8, Y8; \
	VPADDD   96(SP), Y9, Y9

// The multipliers, and the key's increments at 64(SP) and 96(SP).
#define CONSTANTS256 \
	VPBROADCASTD floydConsts<>+0(SB), Y14; \
	VPBROADCASTD floydConsts<>+4(SB), Y15; \
	VPBROADCASTD floydConsts<>+8(SB), Y8; \
	VMOVDQU      Y8, 64(SP); \
	VPBROADCASTD floydConsts<>+12(SB), Y8; \
	VMOVDQU      Y8, 96(SP)

#define PHILOX256 \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256; \
	ROUND256

// Floyd's step for 8 lanes, with j+1 at 0(SP).
#define PICK256(even, odd, loop, done) \
	VMOVDQU  0(SP), Y8; \
	VPMULUDQ even, Y8, Y10; \
	VPSRLQ   $32, Y8, Y12; \
	VPMULUDQ odd, Y12, Y11; \
	VPSRLQ   $32, Y10, Y10; \
	VPBLENDD $0xAA, Y11, Y10, Y10; \
	VPSUBD   Y9, Y8, Y11; \
	MOVQ     DI, AX; \
	CMPQ     AX, SI; \
	JAE      done; \
loop: \
	VMOVDQU  (AX), Y12; \
	VPCMPEQD Y12, Y10, Y13; \
	VPBLENDVB Y13, Y11, Y10, Y10; \
	VPMINSD  Y12, Y10, Y13; \
	VPMAXSD  Y12, Y10, Y10; \
	VMOVDQU  Y13, (AX); \
	ADDQ     $64, AX; \
	CMPQ     AX, SI; \
	JB       loop; \
done: \
	VMOVDQU  Y10, (SI); \
	ADDQ     $64, SI; \
	VPADDD   Y9, Y8, Y8; \
	VMOVDQU  Y8, 0(SP); \
	DECQ     CX; \
	JZ       finished

// func floydAVX512(picks *int32, k int, nodes, n *int32, words *[4]uint32)
TEXT ·floydAVX512(SB), NOSPLIT, $0-40
	MOVQ picks+0(FP), DI
	MOVQ k+8(FP), CX
	MOVQ nodes+16(FP), AX
	MOVQ n+24(FP), DX
	MOVQ words+32(FP), R9

	CONSTANTS512
	VPBROADCASTD 0(R9), Z25
	VPBROADCASTD 4(R9), Z26
	VPBROADCASTD 8(R9), Z27
	VPBROADCASTD 12(R9), Z28
	MOVL         $0xAAAA, R8
	KMOVW        R8, K1

	VMOVDQU32    (AX), Z16
	VPSRLQ       $32, Z16, Z17
	VMOVDQU32    (DX), Z18         // j+1, from n-k+1 on
	VPBROADCASTD CX, Z12
	VPSUBD       Z12, Z18, Z18
	VPADDD       Z19, Z18, Z18
	MOVQ         DI, SI            // the end of the picks so far
	VPXORD       Z29, Z29, Z29     // the block of draws

block512:
	VMOVDQA64 Z16, Z0
	VMOVDQA64 Z29, Z1
	VMOVDQA64 Z27, Z2
	VMOVDQA64 Z28, Z3
	VMOVDQA64 Z17, Z4
	VMOVDQA64 Z29, Z5
	VMOVDQA64 Z27, Z6
	VMOVDQA64 Z28, Z7
	VMOVDQA64 Z25, Z8
	VMOVDQA64 Z26, Z9
	VPADDD    Z19, Z29, Z29
	PHILOX512
	PICK512(Z0, Z4, loop0, done0)
	PICK512(Z1, Z5, loop1, done1)
	PICK512(Z2, Z6, loop2, done2)
	PICK512(Z3, Z7, loop3, done3)
	JMP       block512

finished:
	VZEROUPPER
	RET

// func floydAVX2(picks *int32, k int, nodes, n *int32, words *[4]uint32)
//
// The frame: j+1, the block of draws, the key's two increments.
TEXT ·floydAVX2(SB), NOSPLIT, $128-40
	MOVQ picks+0(FP), DI
	MOVQ k+8(FP), CX
	MOVQ nodes+16(FP), BX
	MOVQ n+24(FP), DX
	MOVQ words+32(FP), R9

	CONSTANTS256
	VPBROADCASTD floydConsts<>+16(SB), Y9

	VMOVQ        CX, X12
	VPBROADCASTD X12, Y12
	VMOVDQU      (DX), Y8
	VPSUBD       Y12, Y8, Y8
	VPADDD       Y9, Y8, Y8
	VMOVDQU      Y8, 0(SP)
	VPXOR        Y8, Y8, Y8
	VMOVDQU      Y8, 32(SP)
	MOVQ         DI, SI

block256:
	VMOVDQU      (BX), Y0
	VMOVDQU      32(SP), Y1
	VPBROADCASTD 8(R9), Y2
	VPBROADCASTD 12(R9), Y3
	VPSRLQ       $32, Y0, Y4
	VMOVDQA      Y1, Y5
	VMOVDQA      Y2, Y6
	VMOVDQA      Y3, Y7
	VPBROADCASTD floydConsts<>+16(SB), Y9
	VPADDD       Y9, Y1, Y8
	VMOVDQU      Y8, 32(SP)
	VPBROADCASTD 0(R9), Y8
	VPBROADCASTD 4(R9), Y9
	PHILOX256
	VPBROADCASTD floydConsts<>+16(SB), Y9
	PICK256(Y0, Y4, loop0, done0)
	PICK256(Y1, Y5, loop1, done1)
	PICK256(Y2, Y6, loop2, done2)
	PICK256(Y3, Y7, loop3, done3)
	JMP          block256

finished:
	VZEROUPPER
	RET

// The multipliers of a source's phase: see Labor.
DATA laborConsts<>+0(SB)/4, $0x9E3779B1
DATA laborConsts<>+4(SB)/4, $0x85EBCA77
GLOBL laborConsts<>(SB), RODATA|NOPTR, $8

// func laborAVX512(out *uint32, nbrs *int32, n int, words *laborWords)
//
// The first draw of each of n sources; n is at least 1. A source whose phase has
// passed, x > words[4], draws at the next step.
TEXT ·laborAVX512(SB), NOSPLIT, $0-32
	MOVQ out+0(FP), DI
	MOVQ nbrs+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ words+24(FP), R9

	CONSTANTS512
	VPBROADCASTD laborConsts<>+0(SB), Z30
	VPBROADCASTD laborConsts<>+4(SB), Z31
	VPBROADCASTD 0(R9), Z25
	VPBROADCASTD 4(R9), Z26
	VPBROADCASTD 8(R9), Z27
	VPBROADCASTD 12(R9), Z28
	VPBROADCASTD 16(R9), Z20
	VPBROADCASTD 20(R9), Z29
	MOVL         16(R9), DX
	MOVL         $0xAAAA, R8
	KMOVW        R8, K1
	MOVL         $0xFFFF, R8
	KMOVW        R8, K3

labor512:
	CMPQ        CX, $16
	JAE         whole512
	MOVL        $1, R8
	SHLL        CX, R8
	DECL        R8
	KMOVW       R8, K3

whole512:
	VMOVDQU32.Z (SI), K3, Z0
	VMOVDQA64 Z27, Z2
	CMPL      DX, $-1
	JEQ       drawn512
	VPXORD    Z29, Z0, Z10
	VPMULLD   Z30, Z10, Z10
	VPSRLD    $15, Z10, Z11
	VPXORD    Z11, Z10, Z10
	VPMULLD   Z31, Z10, Z10
	VPCMPUD   $6, Z20, Z10, K2
	VPADDD    Z19, Z2, K2, Z2

drawn512:
	VPSRLQ    $32, Z0, Z4
	VPSRLQ    $32, Z2, Z6
	VPXORD    Z1, Z1, Z1
	VPXORD    Z5, Z5, Z5
	VMOVDQA64 Z28, Z3
	VMOVDQA64 Z28, Z7
	VMOVDQA64 Z25, Z8
	VMOVDQA64 Z26, Z9
	PHILOX512
	VPSLLQ    $32, Z4, Z4
	VPBLENDMD Z4, Z0, K1, Z0
	VMOVDQU32 Z0, K3, (DI)
	ADDQ      $64, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JG        labor512
	VZEROUPPER
	RET

// func laborAVX2(out *uint32, nbrs *int32, blocks int, words *laborWords)
//
// The frame: unused, then the key's two increments at 64 and 96, for ROUND256.
TEXT ·laborAVX2(SB), NOSPLIT, $128-32
	MOVQ out+0(FP), DI
	MOVQ nbrs+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ words+24(FP), R9

	CONSTANTS256
	MOVL         16(R9), DX

labor256:
	VMOVDQU      (SI), Y0
	VPBROADCASTD 8(R9), Y2
	CMPL         DX, $-1
	JEQ          drawn256
	VPBROADCASTD 20(R9), Y10
	VPXOR        Y10, Y0, Y10
	VPBROADCASTD laborConsts<>+0(SB), Y11
	VPMULLD      Y11, Y10, Y10
	VPSRLD       $15, Y10, Y11
	VPXOR        Y11, Y10, Y10
	VPBROADCASTD laborConsts<>+4(SB), Y11
	VPMULLD      Y11, Y10, Y10
	VPBROADCASTD 16(R9), Y11
	VPMAXUD      Y11, Y10, Y10
	VPCMPEQD     Y11, Y10, Y10     // -1 where x is not above
	VPBROADCASTD floydConsts<>+16(SB), Y11
	VPADDD       Y11, Y2, Y2
	VPADDD       Y10, Y2, Y2

drawn256:
	VPSRLQ       $32, Y0, Y4
	VPSRLQ       $32, Y2, Y6
	VPXOR        Y1, Y1, Y1
	VPXOR        Y5, Y5, Y5
	VPBROADCASTD 12(R9), Y3
	VMOVDQA      Y3, Y7
	VPBROADCASTD 0(R9), Y8
	VPBROADCASTD 4(R9), Y9
	PHILOX256
	VPSLLQ       $32, Y4, Y4
	VPBLENDD     $0xAA, Y4, Y0, Y0
	VMOVDQU      Y0, (DI)
	ADDQ         $32, SI
	ADDQ         $32, DI
	DECQ         CX
	JNZ          labor256
	VZEROUPPER
	RET

#define LEVEL512(most) \
	VPCMPUD $1, most, Z0, K1; \
	KMOVW   K1, R8; \
	MOVW    R8, (AX); \
	ADDQ    DX, AX

// func levelsAVX512(sets *uint64, stride int, draws *uint32, blocks int)
//
// Sixteen bits of each set for 16 draws: 1 where the draw is below 2^30, 2^29, …
// The sets are stride bytes apart.
TEXT ·levelsAVX512(SB), NOSPLIT, $0-32
	MOVQ sets+0(FP), DI
	MOVQ stride+8(FP), DX
	MOVQ draws+16(FP), SI
	MOVQ blocks+24(FP), CX

	MOVL         $0x40000000, AX
	VPBROADCASTD AX, Z1
	VPSRLD       $1, Z1, Z2
	VPSRLD       $2, Z1, Z3
	VPSRLD       $3, Z1, Z4
	VPSRLD       $4, Z1, Z5
	VPSRLD       $5, Z1, Z6
	VPSRLD       $6, Z1, Z7
	VPSRLD       $7, Z1, Z8
	VPSRLD       $8, Z1, Z9
	VPSRLD       $9, Z1, Z10

levels512:
	VMOVDQU32 (SI), Z0
	MOVQ      DI, AX
	LEVEL512(Z1)
	LEVEL512(Z2)
	LEVEL512(Z3)
	LEVEL512(Z4)
	LEVEL512(Z5)
	LEVEL512(Z6)
	LEVEL512(Z7)
	LEVEL512(Z8)
	LEVEL512(Z9)
	LEVEL512(Z10)
	ADDQ      $64, SI
	ADDQ      $2, DI
	DECQ      CX
	JNZ       levels512
	VZEROUPPER
	RET

DATA belowConsts<>+0(SB)/4, $0
DATA belowConsts<>+4(SB)/4, $1
DATA belowConsts<>+8(SB)/4, $2
DATA belowConsts<>+12(SB)/4, $3
DATA belowConsts<>+16(SB)/4, $4
DATA belowConsts<>+20(SB)/4, $5
DATA belowConsts<>+24(SB)/4, $6
DATA belowConsts<>+28(SB)/4, $7
DATA belowConsts<>+32(SB)/4, $8
DATA belowConsts<>+36(SB)/4, $9
DATA belowConsts<>+40(SB)/4, $10
DATA belowConsts<>+44(SB)/4, $11
DATA belowConsts<>+48(SB)/4, $12
DATA belowConsts<>+52(SB)/4, $13
DATA belowConsts<>+56(SB)/4, $14
DATA belowConsts<>+60(SB)/4, $15
GLOBL belowConsts<>(SB), RODATA|NOPTR, $64

// func belowAVX512(few, at, nbrs *int32, blocks int, set *uint64, words int) (m int)
//
// The sources in a set of words 32-bit words, and their positions. A source beyond
// the set, or negative, is in none.
TEXT ·belowAVX512(SB), NOSPLIT, $0-56
	MOVQ few+0(FP), DI
	MOVQ at+8(FP), BX
	MOVQ nbrs+16(FP), SI
	MOVQ blocks+24(FP), CX
	MOVQ set+32(FP), R9
	MOVQ words+40(FP), R10
	MOVQ DI, R11

	VPBROADCASTD R10, Z8
	MOVL         $31, AX
	VPBROADCASTD AX, Z9
	MOVL         $1, AX
	VPBROADCASTD AX, Z10
	MOVL         $16, AX
	VPBROADCASTD AX, Z11
	VMOVDQU32    belowConsts<>(SB), Z12

below512:
	VMOVDQU32   (SI), Z0
	VPSRLD      $5, Z0, Z1
	VPCMPUD     $1, Z8, Z1, K2
	VPXORD      Z2, Z2, Z2
	VPGATHERDD  (R9)(Z1*4), K2, Z2
	VPANDD      Z9, Z0, Z3
	VPSRLVD     Z3, Z2, Z2
	VPTESTMD    Z10, Z2, K3
	VPCOMPRESSD Z0, K3, Z4
	VPCOMPRESSD Z12, K3, Z5
	VMOVDQU32   Z4, (DI)
	VMOVDQU32   Z5, (BX)
	KMOVW       K3, AX
	POPCNTL     AX, AX
	LEAQ        (DI)(AX*4), DI
	LEAQ        (BX)(AX*4), BX
	VPADDD      Z11, Z12, Z12
	ADDQ        $64, SI
	DECQ        CX
	JNZ         below512
	VZEROUPPER
	SUBQ        R11, DI
	SHRQ        $2, DI
	MOVQ        DI, m+48(FP)
	RET
