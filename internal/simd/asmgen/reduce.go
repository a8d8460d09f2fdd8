package main

import "fmt"

// reductions writes kernels whose result is one number. They return one partial result per lane,
// which Go code combines.
func reductions(a *asm) {
	maxOf(a)
	maxID(a)
	ascents(a)
	sum64(a, "sumLanes", "sets lane l of sum to Σ x[l+8i], in float64.", false)
	sum64(a, "expLanes", "sets lane l of sum to Σ e^(x[l+8i]-s), in float64.", true)
	dot(a)
}

// reduce writes the loop of a reduction over x: whole vectors, then a tail.
func reduce(a *asm, step func(tail bool)) {
	again, done, end := a.label("loop"), a.label("done"), a.label("end")
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JLT %s", done)
	a.at(again)
	step(false)
	a.op("ADDQ $%d, SI", a.bytes())
	a.op("SUBQ $%d, CX", a.lanes)
	a.op("JGE %s", again)
	a.at(done)
	a.op("ADDQ $%d, CX", a.lanes)
	a.op("JZ %s", end)
	a.tailMask()
	step(true)
	a.at(end)
}

func maxOf(a *asm) {
	a.fn("maxLanes", "sets each lane of top to the maximum of a part of x, ignoring NaN.", "top *float32", "x *float32", "n int")
	a.op("MOVQ %s, DI", a.arg("top"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ %s, CX", a.arg("n"))
	acc, x, low := a.v(0), a.v(1), a.v(2)
	a.op("VMOVUPS %s, %s", a.words("minusInf", 0xff800000), acc)
	a.op("VMOVAPS %s, %s", acc, low) // the value of lanes without an element
	reduce(a, func(tail bool) {
		switch {
		case !tail:
			a.op("VMOVUPS (SI), %s", x)
		case a.name == avx512.name:
			a.op("VMOVAPS %s, %s", low, x)
			a.op("VMOVUPS (SI), K1, %s", x)
		default:
			a.load("(SI)", x, true)
			a.op("VBLENDVPS %s, %s, %s, %s", a.tailReg(), x, low, x)
		}
		a.op("VMAXPS %s, %s, %s", acc, x, acc) // the maximum of x and acc, or acc if x is NaN
	})
	a.op("VMOVUPS %s, (DI)", acc)
	a.ret()
}

func maxID(a *asm) {
	a.fn("idLanes", "sets each lane of top to the maximum of a part of ids, as unsigned numbers.", "top *uint32", "ids *int32", "n int")
	a.op("MOVQ %s, DI", a.arg("top"))
	a.op("MOVQ %s, SI", a.arg("ids"))
	a.op("MOVQ %s, CX", a.arg("n"))
	acc, x := a.v(0), a.v(1)
	a.op("VXORPS %[1]s, %[1]s, %[1]s", acc)
	reduce(a, func(tail bool) {
		a.load("(SI)", x, tail)
		a.op("VPMAXUD %s, %s, %s", x, acc, acc)
	})
	a.op("VMOVUPS %s, (DI)", acc)
	a.ret()
}

// ascents compares each id with the next one.
func ascents(a *asm) {
	a.fn("ascentLanes", "counts which of the n+1 ids are greater than the id before them, and adds a part of the count to each lane of count.", "count *uint32", "ids *int32", "n int")
	a.op("MOVQ %s, DI", a.arg("count"))
	a.op("MOVQ %s, SI", a.arg("ids"))
	a.op("MOVQ %s, CX", a.arg("n"))
	acc, x, next := a.v(0), a.v(1), a.v(2)
	a.op("VXORPS %[1]s, %[1]s, %[1]s", acc)
	one := a.v(3)
	if a.name == avx512.name {
		a.op("VMOVUPS %s, %s", a.words("oneInt", 1), one)
	}
	reduce(a, func(tail bool) {
		a.load("(SI)", x, tail)
		a.load("4(SI)", next, tail)
		if a.name == avx512.name {
			const greater = 6
			a.op("VPCMPD $%d, %s, %s, K2", greater, x, next)
			a.op("VPADDD %[1]s, %[2]s, K2, %[2]s", one, acc)
			return
		}
		a.op("VPCMPGTD %s, %s, %s", x, next, x)
		a.op("VPSUBD %[1]s, %[2]s, %[2]s", x, acc)
	})
	a.op("VMOVUPS %s, (DI)", acc)
	a.ret()
}

// sum64 uses 8 lanes of float64 on each path: one register, or two.
func sum64(a *asm, name, doc string, isExp bool) {
	params := []string{"sum *float64", "x *float32", "n int"}
	if isExp {
		params = append(params, "s float32")
	}
	a.fn(name, doc, params...)
	a.op("MOVQ %s, DI", a.arg("sum"))
	a.op("MOVQ %s, SI", a.arg("x"))
	a.op("MOVQ %s, CX", a.arg("n"))
	x, wide := a.v(4), a.v(5)
	r := map[string]string{"x": x, "t0": a.v(6), "t1": a.v(7), "t2": a.v(8), "s": a.v(9)}
	if isExp {
		a.op("VBROADCASTSS %s, %s", a.arg("s"), r["s"])
	}
	acc := []string{a.v(0), a.v(1)}
	per := a.bytes() / 8
	for i := range 8 / per {
		a.op("VXORPS %[1]s, %[1]s, %[1]s", acc[i])
	}
	reduce(a, func(tail bool) {
		a.load("(SI)", x, tail)
		if isExp {
			a.op("VSUBPS %s, %s, %s", r["s"], x, x)
			exp("x", "x")(a, r)
			if tail && a.name == avx512.name {
				a.op("VMOVAPS.Z %s, K1, %s", x, x)
			} else if tail {
				a.op("VANDPS %s, %s, %s", a.tailReg(), x, x)
			}
		}
		// Add the lanes of the low half first, then those of the high half.
		if a.name == avx512.name {
			a.op("VCVTPS2PD Y4, %s", wide)
			a.op("VADDPD %s, %s, %s", wide, acc[0], acc[0])
			a.op("VEXTRACTF64X4 $1, Z4, Y4")
			a.op("VCVTPS2PD Y4, %s", wide)
			a.op("VADDPD %s, %s, %s", wide, acc[0], acc[0])
			return
		}
		for i := range 2 {
			if i == 1 {
				a.op("VEXTRACTF128 $1, Y4, X4")
			}
			a.op("VCVTPS2PD X4, %s", wide)
			a.op("VADDPD %s, %s, %s", wide, acc[i], acc[i])
		}
	})
	for i := range 8 / per {
		a.op("VMOVUPD %s, %d(DI)", acc[i], 8*per*i)
	}
	a.ret()
}

// dotLanes is the number of lanes of a dot product: two registers of AVX-512, four of AVX2.
const dotLanes = 32

// dot computes the products of one vector with the rows of a table: out[i·step] = Σ_c g[c]·row[c].
func dot(a *asm) {
	a.fn("dotRows", "sets out[i·step] to the dot product of x [cols] and the row of ids[i], for n ids; see DotRows.",
		"out *float32", "step int", "x *float32", "data *float32", "stride int", "ids *int32", "n int", "total int", "dist int", "cols int")
	a.op("MOVQ %s, DI", a.arg("out"))
	a.op("MOVQ %s, SI", a.arg("ids"))
	a.op("MOVQ %s, DX", a.arg("n"))
	a.op("MOVQ %s, R8", a.arg("data"))
	a.op("MOVQ %s, R9", a.arg("stride"))
	lookAhead(a, "R10", "R11")
	a.op("MOVQ %s, BX", a.arg("step"))
	a.op("SHLQ $2, R9")
	a.op("SHLQ $2, BX")

	vectors := dotLanes / a.lanes
	row, again, done := a.label("row"), a.label("loop"), a.label("done")
	a.at(row)
	a.op("MOVL (SI), R12")
	a.op("IMULQ R9, R12")
	a.op("ADDQ R8, R12")
	a.op("MOVL (R10), R13")
	a.op("IMULQ R9, R13")
	a.op("ADDQ R8, R13")
	a.op("ADDQ $4, SI")
	advance(a, "R10", "R11")
	a.op("MOVQ %s, R14", a.arg("x"))
	a.op("MOVQ %s, CX", a.arg("cols"))
	for i := range vectors {
		a.op("VXORPS %[1]s, %[1]s, %[1]s", a.v(i))
	}
	a.op("SUBQ $%d, CX", dotLanes)
	a.op("JLT %s", done)
	a.at(again)
	for i := range vectors {
		if i*a.bytes()%64 == 0 {
			a.op("PREFETCHT0 %d(R13)", i*a.bytes())
		}
		a.op("VMOVUPS %d(R12), %s", i*a.bytes(), a.v(4+i))
		a.op("VMULPS %d(R14), %s, %s", i*a.bytes(), a.v(4+i), a.v(4+i))
		a.op("VADDPS %s, %s, %s", a.v(4+i), a.v(i), a.v(i))
	}
	a.op("ADDQ $%d, R12", 4*dotLanes)
	a.op("ADDQ $%d, R13", 4*dotLanes)
	a.op("ADDQ $%d, R14", 4*dotLanes)
	a.op("SUBQ $%d, CX", dotLanes)
	a.op("JGE %s", again)
	a.at(done)
	a.op("ADDQ $%d, CX", dotLanes)
	reduced := a.label("sum")
	a.op("JZ %s", reduced)
	a.op("PREFETCHT0 (R13)")
	for i := range vectors {
		tail, next := a.label("tail"), a.label("next")
		a.op("CMPQ CX, $%d", a.lanes)
		a.op("JLT %s", tail)
		a.op("VMOVUPS %d(R12), %s", i*a.bytes(), a.v(4+i))
		a.op("VMULPS %d(R14), %s, %s", i*a.bytes(), a.v(4+i), a.v(4+i))
		a.op("VADDPS %s, %s, %s", a.v(4+i), a.v(i), a.v(i))
		a.op("SUBQ $%d, CX", a.lanes)
		a.op("JZ %s", reduced)
		a.op("JMP %s", next)
		a.at(tail)
		a.tailMask()
		a.load(fmt.Sprintf("%d(R12)", i*a.bytes()), a.v(4+i), true)
		a.load(fmt.Sprintf("%d(R14)", i*a.bytes()), a.v(8), true)
		a.op("VMULPS %s, %s, %s", a.v(8), a.v(4+i), a.v(4+i))
		a.op("VADDPS %s, %s, %s", a.v(4+i), a.v(i), a.v(i))
		a.op("JMP %s", reduced)
		a.at(next)
	}
	a.at(reduced)
	// Add by halves: lane l adds lane l+16, then l+8, 4, 2 and 1.
	if a.name == avx512.name {
		a.op("VADDPS Z1, Z0, Z0")
		a.op("VEXTRACTF64X4 $1, Z0, Y1")
		a.op("VADDPS Y1, Y0, Y0")
	} else {
		a.op("VADDPS Y2, Y0, Y0")
		a.op("VADDPS Y3, Y1, Y1")
		a.op("VADDPS Y1, Y0, Y0")
	}
	a.op("VEXTRACTF128 $1, Y0, X1")
	a.op("VADDPS X1, X0, X0")
	a.op("VMOVHLPS X0, X0, X1")
	a.op("VADDPS X1, X0, X0")
	a.op("VMOVSHDUP X0, X1")
	a.op("VADDSS X1, X0, X0")
	a.op("VMOVSS X0, (DI)")
	a.op("ADDQ BX, DI")
	a.op("DECQ DX")
	a.op("JNZ %s", row)
	a.ret()
}

// lookAhead sets next to the address of the id to prefetch first, which is dist after the first id,
// and last to the address of the last of the total ids.
func lookAhead(a *asm, next, last string) {
	a.op("MOVQ %s, %s", a.arg("dist"), next)
	a.op("MOVQ %s, %s", a.arg("total"), last)
	a.op("DECQ %s", last)
	a.op("CMPQ %s, %s", next, last)
	a.op("CMOVQGT %s, %s", last, next)
	for _, r := range []string{next, last} {
		a.op("SHLQ $2, %s", r)
		a.op("ADDQ %s, %s", a.arg("ids"), r)
	}
}

// advance moves next to the following id, but not past last.
func advance(a *asm, next, last string) {
	a.op("ADDQ $4, %s", next)
	a.op("CMPQ %s, %s", next, last)
	a.op("CMOVQGT %s, %s", last, next)
}
