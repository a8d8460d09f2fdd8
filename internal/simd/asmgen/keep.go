package main

// keeps writes the kernels of bit masks: one bit per column, the first in the lowest bit of the
// first byte.
func keeps(a *asm) {
	masked(a, "mask", "computes o = scale·x where the bit is set, else 0.", false, func(o, x, scale string, tail bool) {
		a.op("VMULPS %s, %s, %s", scale, x, x)
		a.zeroUnless(x, o)
		a.store(o, "(DI)", tail)
	})
	masked(a, "maskAdd", "computes o += scale·x where the bit is set.", false, func(o, x, scale string, tail bool) {
		a.op("VMULPS %s, %s, %s", scale, x, x)
		a.load("(DI)", o, tail)
		a.op("VADDPS %s, %s, %s", o, x, x)
		a.ifSet(x, o)
		a.store(o, "(DI)", tail)
	})
	// x is the bias; the pointer is 0 if there is none.
	masked(a, "keepReLU", "computes o = scale·(o+x) where that is above 0 and the bit is set, else 0; x may be nil. The bits of elements that became 0 are cleared.", true, func(o, x, scale string, tail bool) {
		none := a.label("plain")
		a.load("(DI)", o, tail)
		a.op("TESTQ R9, R9")
		a.op("JZ %s", none)
		a.load("(SI)", x, tail)
		a.op("VADDPS %s, %s, %s", x, o, o)
		a.at(none)
		a.op("VXORPS %[1]s, %[1]s, %[1]s", x)
		if a.name == avx512.name {
			a.op("VCMPPS $22, %s, %s, K2, K2", x, o)
			a.op("KMOVW K2, AX")
			if tail {
				a.op("KANDW K1, K2, K2")
			}
		} else {
			a.op("VCMPPS $22, %s, %s, %s", x, o, x)
			a.op("VANDPS %s, %s, %s", x, keepMask(a), keepMask(a))
			a.op("VMOVMSKPS %s, AX", keepMask(a))
		}
		a.op("VMULPS %s, %s, %s", scale, o, o)
		a.zeroUnless(o, o)
		a.store(o, "(DI)", tail)
	})
	philox(a, "keepBits", "sets byte i of bits to the kept lanes of the block that follows ctr by i; see KeepBits.", false)
	keepColumns(a)
	philox(a, "keepBitsAt", "sets byte i of bits to the kept lanes of the block at c0[i], c1[i], c2, c3; see KeepBitsAt.", true)
}

// keepMask returns the register with the mask of the bits in AVX2.
func keepMask(a *asm) string { return a.v(4) }

// zeroUnless writes dst = x where the current bits are set, else 0.
func (a *asm) zeroUnless(x, dst string) {
	if a.name == avx512.name {
		a.op("VMOVAPS.Z %s, K2, %s", x, dst)
	} else {
		a.op("VANDPS %s, %s, %s", x, keepMask(a), dst)
	}
}

// ifSet writes dst = x where the current bits are set; elsewhere dst is unchanged.
func (a *asm) ifSet(x, dst string) {
	if a.name == avx512.name {
		a.op("VMOVAPS %s, K2, %s", x, dst)
	} else {
		a.op("VBLENDVPS %s, %s, %s, %s", keepMask(a), x, dst, dst)
	}
}

// masked writes a loop over o, x and their bits, one vector at a time; the vector's bits are in K2
// or in the register keepMask. body computes on o and x at (DI) and (SI), using the registers
// passed to it; with update it loads x itself and leaves the new bits in AX.
func masked(a *asm, name, doc string, update bool, body func(o, x, scale string, tail bool)) {
	a.fn(name, doc, "o *float32", "x *float32", "bits *byte", "n int", "scale float32")
	a.op("MOVQ %s, DI", a.arg("o"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ SI, R9")
	a.op("MOVQ %s, DX", a.arg("bits"))
	a.op("MOVQ %s, CX", a.arg("n"))
	o, x, scale := a.v(0), a.v(1), a.v(2)
	a.op("VBROADCASTSS %s, %s", a.arg("scale"), scale)
	if a.name == avx2.name {
		a.op("VMOVUPS %s, %s", a.words("bit", 1, 2, 4, 8, 16, 32, 64, 128), a.v(3))
	}
	setBits := func() { // from AX
		if a.name == avx512.name {
			a.op("KMOVW AX, K2")
			return
		}
		a.op("VMOVD AX, X4")
		a.op("VPBROADCASTD X4, %s", keepMask(a))
		a.op("VPAND %s, %s, %s", a.v(3), keepMask(a), keepMask(a))
		a.op("VPCMPEQD %s, %s, %s", a.v(3), keepMask(a), keepMask(a))
	}
	again, done, end := a.label("loop"), a.label("done"), a.label("end")
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JLT %s", done)
	a.at(again)
	size := map[int]string{8: "B", 16: "W"}[a.lanes]
	a.op("MOV%sLZX (DX), AX", size)
	setBits()
	if !update {
		a.load("(SI)", x, false)
	}
	body(o, x, scale, false)
	if update {
		a.op("MOV%s AX, (DX)", size)
	}
	a.op("ADDQ $%d, DX", a.lanes/8)
	a.op("ADDQ $%d, DI", a.bytes())
	a.op("ADDQ $%d, SI", a.bytes())
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JGE %s", again)
	a.at(done)
	a.op("ADDQ $%d, CX", a.lanes)
	a.op("JZ %s", end)
	a.op("MOVQ CX, R8")
	a.tailMask()
	// The tail's bits, one or two bytes, without the bits after the last column.
	one := a.label("one")
	a.op("MOVBLZX (DX), AX")
	if a.lanes == 16 {
		a.op("CMPQ R8, $8")
		a.op("JLE %s", one)
		a.op("MOVBLZX 1(DX), BX")
		a.op("SHLL $8, BX")
		a.op("ORL BX, AX")
		a.at(one)
	}
	a.op("MOVL $1, BX")
	a.op("MOVQ R8, CX")
	a.op("SHLL CX, BX")
	a.op("DECL BX")
	a.op("ANDL BX, AX")
	setBits()
	if !update {
		a.load("(SI)", x, true)
	}
	body(o, x, scale, true)
	if update {
		a.op("MOVB AX, (DX)")
		if a.lanes == 16 {
			a.op("CMPQ R8, $8")
			a.op("JLE %s", end)
			a.op("SHRL $8, AX")
			a.op("MOVB AX, 1(DX)")
		}
	}
	a.at(end)
	a.ret()
}

// keepColumns extracts one bit from each byte: bit cols[i]%8 of keep[i] for element i. n is a
// multiple of the lanes.
func keepColumns(a *asm) {
	a.fn("keepColumns", "computes o[i] = scale·x[i] (scale if x is nil) if bit cols[i]%8 of keep[i] is set, else 0; n is a multiple of 16.", "o *float32", "x *float32", "cols *int32", "keep *byte", "n int", "scale float32")
	a.op("MOVQ %s, DI", a.arg("o"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ %s, R8", a.arg("cols"))
	a.op("MOVQ %s, DX", a.arg("keep"))
	a.op("MOVQ %s, CX", a.arg("n"))
	v, col, bits, scale, low, one := a.v(0), a.v(1), a.v(2), a.v(3), a.v(4), a.v(5)
	a.op("VBROADCASTSS %s, %s", a.arg("scale"), scale)
	a.op("VMOVUPS %s, %s", a.words("seven", 7), low)
	if a.name == avx512.name {
		a.op("VMOVUPS %s, %s", a.words("oneBit", 1), one)
	}
	again, plain := a.label("loop"), a.label("plain")
	a.at(again)
	a.op("VMOVUPS (R8), %s", col)
	and := "VPAND"
	if a.name == avx512.name {
		and = "VPANDD"
	}
	a.op("%[1]s %[2]s, %[3]s, %[3]s", and, low, col)
	a.op("VPMOVZXBD (DX), %s", bits)
	a.op("VPSRLVD %[1]s, %[2]s, %[2]s", col, bits)
	a.op("VMOVAPS %s, %s", scale, v)
	a.op("TESTQ SI, SI")
	a.op("JZ %s", plain)
	a.op("VMULPS (SI), %[1]s, %[1]s", v)
	a.op("ADDQ $%d, SI", a.bytes())
	a.at(plain)
	if a.name == avx512.name {
		a.op("VPTESTMD %s, %s, K2", one, bits)
		a.op("VMOVAPS.Z %[1]s, K2, %[1]s", v)
	} else {
		a.op("VPSLLD $31, %[1]s, %[1]s", bits)
		a.op("VPSRAD $31, %[1]s, %[1]s", bits)
		a.op("VANDPS %[1]s, %[2]s, %[2]s", bits, v)
	}
	a.op("VMOVUPS %s, (DI)", v)
	a.op("ADDQ $%d, DI", a.bytes())
	a.op("ADDQ $%d, R8", a.bytes())
	a.op("ADDQ $%d, DX", a.lanes)
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JNZ %s", again)
	a.ret()
}

// philox computes one block per 64-bit lane of a register, for two registers interleaved, because a
// single round would wait for its multiplications. n is a multiple of 16.
//
// A 64-bit lane holds a counter word in its low half; the multiplication ignores its high half. The
// product is then the two words that a round needs, one of them already in place. The order of the
// lanes is such that unpacking the four words gives the blocks' 16-bit lanes in order.
func philox(a *asm, name, doc string, list bool) {
	if list {
		a.fn(name, doc, "bits *byte", "n int", "key uint64", "c0 *uint32", "c1 *uint32", "c2 uint32", "c3 uint32", "threshold uint32")
		a.op("MOVQ %s, R8", a.arg("c0"))
		a.op("MOVQ %s, R9", a.arg("c1"))
	} else {
		a.fn(name, doc, "bits *byte", "n int", "key uint64", "c0 uint32", "c1 uint32", "c2 uint32", "c3 uint32", "threshold uint32")
	}
	a.op("MOVQ %s, DI", a.arg("bits"))
	a.op("MOVQ %s, CX", a.arg("n"))
	per := a.bytes() / 8 // blocks per register
	const sets = 2
	var c [sets][4]string
	for s := range sets {
		for i := range 4 {
			c[s][i] = a.v(4*s + i)
		}
	}
	mul0, mul1, key0, key1, thr, block := a.v(8), a.v(9), a.v(10), a.v(11), a.v(12), a.v(13)
	a.op("VMOVUPS %s, %s", a.words("mul0", 0xD2511F53), mul0)
	a.op("VMOVUPS %s, %s", a.words("mul1", 0xCD9E8D57), mul1)
	a.op("VBROADCASTSS %s, %s", a.arg("threshold"), thr)
	a.op("VPSLLD $16, %s, %s", thr, a.v(14))
	a.op("VPOR%[3]s %[1]s, %[2]s, %[2]s", a.v(14), thr, a.bitwise())
	order := []uint32{0, 0, 4, 0, 1, 0, 5, 0, 2, 0, 6, 0, 3, 0, 7, 0}
	if a.name == avx2.name {
		order = []uint32{0, 0, 1, 0, 2, 0, 3, 0}
	}
	orderMem := a.words("order", order...)
	if a.name == avx512.name {
		a.op("MOVL $0xaaaa, AX")
		a.op("KMOVW AX, K1")
	}
	if list {
		a.op("VMOVUPS %s, %s", orderMem, block)
	} else {
		a.op("VBROADCASTSS %s, %s", a.arg("c1"), block)
		a.op("VPADDD %s, %s, %s", orderMem, block, block)
	}

	again := a.label("loop")
	a.at(again)
	for s := range sets {
		if list {
			for i, from := range []string{"R8", "R9"} {
				if a.name == avx512.name {
					a.op("VMOVDQU %d(%s), Y14", 4*per*s, from)
					a.op("VPERMD Z14, %s, %s", block, c[s][i])
				} else {
					a.op("VPMOVZXDQ %d(%s), %s", 4*per*s, from, c[s][i])
				}
			}
		} else {
			a.op("VBROADCASTSS %s, %s", a.arg("c0"), c[s][0])
			a.op("VMOVUPS %s, %s", block, c[s][1])
			a.op("VPADDD %s, %s, %s", a.words("perSet", uint32(per)), block, block)
		}
		a.op("VBROADCASTSS %s, %s", a.arg("c2"), c[s][2])
		a.op("VBROADCASTSS %s, %s", a.arg("c3"), c[s][3])
	}
	a.op("MOVQ %s, AX", a.arg("key"))
	a.op("VMOVQ AX, X10")
	a.op("VPBROADCASTD X10, %s", key0)
	a.op("SHRQ $32, AX")
	a.op("VMOVQ AX, X11")
	a.op("VPBROADCASTD X11, %s", key1)
	for round := range 10 {
		if round > 0 {
			a.op("VPADDD %s, %s, %s", a.words("weyl0", 0x9E3779B9), key0, key0)
			a.op("VPADDD %s, %s, %s", a.words("weyl1", 0xBB67AE85), key1, key1)
		}
		for s := range sets {
			a.op("VPMULUDQ %s, %s, %s", mul0, c[s][0], c[s][0])
			a.op("VPMULUDQ %s, %s, %s", mul1, c[s][2], c[s][2])
		}
		for s := range sets {
			// The product of c0 gives the next c2 (together with c3) and c3; the product of c2
			// gives the next c0 (together with c1) and c1.
			p0, c1, p2, c3 := c[s][0], c[s][1], c[s][2], c[s][3]
			a.xorHigh(p2, key0, c1)
			a.xorHigh(p0, key1, c3)
			c[s] = [4]string{c1, p2, c3, p0}
		}
	}
	words := []string{"AX", "BX"}
	for s := range sets {
		x0, x1, x2, x3 := c[s][0], c[s][1], c[s][2], c[s][3]
		if a.name == avx512.name {
			a.op("VMOVSLDUP %s, K1, %s", x1, x0)
			a.op("VMOVSLDUP %s, K1, %s", x3, x2)
		} else {
			for _, x := range [][2]string{{x1, x0}, {x3, x2}} {
				a.op("VPSLLQ $32, %s, %s", x[0], x[0])
				a.op("VPBLENDD $0xaa, %s, %s, %s", x[0], x[1], x[1])
			}
		}
		a.op("VPUNPCKLQDQ %s, %s, %s", x2, x0, x1)
		a.op("VPUNPCKHQDQ %s, %s, %s", x2, x0, x3)
		if a.name == avx512.name {
			const notBelow = 5
			a.op("VPCMPUW $%d, %s, %s, K2", notBelow, thr, x1)
			a.op("VPCMPUW $%d, %s, %s, K3", notBelow, thr, x3)
			a.op("KMOVD K2, %d(DI)", 8*s)
			a.op("KMOVD K3, %d(DI)", 8*s+4)
			continue
		}
		// x is not below the threshold if threshold - x, saturated at 0, is 0.
		zero := a.v(15)
		a.op("VPXOR %[1]s, %[1]s, %[1]s", zero)
		for _, x := range []string{x1, x3} {
			a.op("VPSUBUSW %s, %s, %s", x, thr, x)
			a.op("VPCMPEQW %s, %s, %s", zero, x, x)
		}
		a.op("VPACKSSWB %s, %s, %s", x3, x1, x1)
		a.op("VPMOVMSKB %s, %s", x1, words[s])
		a.op("MOVL %s, %d(DI)", words[s], 4*s)
	}
	if list {
		a.op("ADDQ $%d, R8", 4*per*sets)
		a.op("ADDQ $%d, R9", 4*per*sets)
	}
	a.op("ADDQ $%d, DI", per*sets)
	a.op("SUBQ $%d, CX", per*sets)
	a.op("JNZ %s", again)
	a.ret()
}

// bitwise returns the suffix of AVX-512's integer logic instructions.
func (a *asm) bitwise() string {
	if a.name == avx512.name {
		return "D"
	}
	return ""
}

// xorHigh computes dst ^= high ^ key for the low half of each 64-bit lane; high is the high half of
// x's lane.
func (a *asm) xorHigh(x, key, dst string) {
	t := a.v(14)
	if a.name == avx512.name {
		a.op("VPSRLQ $32, %s, %s", x, t)
		a.op("VPTERNLOGD $0x96, %s, %s, %s", key, t, dst)
		return
	}
	a.op("VPSRLQ $32, %s, %s", x, t)
	a.op("VPXOR %s, %s, %s", key, dst, dst)
	a.op("VPXOR %s, %s, %s", t, dst, dst)
}
