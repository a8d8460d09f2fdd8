package main

import "fmt"

// Registers of the kernels that process rows.
const (
	rOut    = "DI"  // the output at the block's first column
	rData   = "R8"  // the table at that column
	rStride = "R9"  // bytes from row to row
	rIDs    = "SI"  // the current id
	rLeft   = "DX"  // ids left
	rNext   = "R10" // the id to prefetch
	rLast   = "R11" // the last id
	rVia    = "R12"
	rEnd    = "R15" // bytes from a row's first column of the block to its last one
	rRow    = "AX"  // the current row
	rAhead  = "BX"  // the row to prefetch
)

// rows is a kernel that processes n rows of a table in sequence, by their ids. Columns are split
// into blocks that fit into registers, and all rows are processed for one block before the next:
// rows are read from memory once, and outputs stay in registers.
type rows struct {
	name, doc string
	extra     []string // parameters in addition to the common ones
	via       bool     // ids may be indices into Via
	perVector int      // registers per vector of columns
	temps     int      // additional registers
	most      int      // maximum number of vectors of a block; 0: as many as fit
	outMoves  bool     // item advances the output
	beside    string   // the register with the distance from a row to the same row of another table
	half      bool     // the table is float16; loads need two temps at the end

	setup  func(a *asm)              // once per block
	begin  func(a *asm, b block)     // before the first row
	item   func(a *asm, b block)     // for the row at rRow
	skip   func(a *asm, next string) // before item: jumps to next if the row adds nothing
	after  func(a *asm)              // after each row
	finish func(a *asm, b block)
	close  func(a *asm) // at the end of the kernel
}

// block is a block of columns, nv vectors wide; the last vector may be partly filled (a tail).
type block struct{ nv, per, most int }

// reg returns register k of vector j; temp returns a temporary register.
func (b block) reg(a *asm, j, k int) string { return a.v(j*b.per + k) }
func (b block) temp(a *asm, k int) string   { return a.v(b.most*b.per + k) }
func (b block) tail(j int) bool             { return j == b.nv-1 }

func (k rows) write(a *asm) {
	element, shift := "float32", 2
	if k.half {
		element, shift = "uint16", 1
	}
	params := append([]string{"o *float32", "data *" + element, "stride int", "ids *int32", "n int", "total int", "dist int", "cols int"}, k.extra...)
	if k.via {
		params = append(params, "via *int32")
	}
	a.fn(k.name, k.doc, params...)
	reserved := 1
	if k.half {
		reserved = a.halfReserved()
	}
	most := (a.regs - reserved - k.temps) / k.perVector
	if k.most > 0 {
		most = min(most, k.most)
	}
	most = min(most, 16)
	if most*a.bytes() > 64 { // whole cache lines
		most -= most * a.bytes() % 64 / a.bytes()
	}
	a.op("MOVQ %s, %s", a.arg("o"), rOut)
	a.op("MOVQ %s, %s", a.arg("data"), rData)
	a.op("MOVQ %s, %s", a.arg("stride"), rStride)
	a.op("SHLQ $%d, %s", shift, rStride)
	if k.via {
		a.op("MOVQ %s, %s", a.arg("via"), rVia)
	}
	whole, next := a.label("block"), a.label("next")
	a.at(whole)
	lookAhead(a, rNext, rLast)
	a.op("MOVQ %s, %s", a.arg("ids"), rIDs)
	a.op("MOVQ %s, BX", a.arg("cols"))
	a.op("MOVQ $%d, AX", most*a.lanes)
	a.op("CMPQ BX, AX")
	a.op("CMOVQGT AX, BX")
	a.op("LEAQ -%[1]d(BX*%[1]d), %[2]s", 1<<shift, rEnd)
	columnTail(a)
	if k.half {
		a.halfTail()
	}
	if k.setup != nil {
		k.setup(a)
	}
	a.op("MOVQ %s, %s", a.arg("n"), rLeft)
	labels := map[int]string{}
	for nv := 1; nv <= most; nv++ {
		labels[nv] = a.label("columns")
	}
	dispatch(a, labels, 1, most)
	for nv := 1; nv <= most; nv++ {
		b := block{nv, k.perVector, most}
		a.at(labels[nv])
		if k.begin != nil {
			k.begin(a, b)
		}
		again, end := a.label("row"), a.label("end")
		a.op("TESTQ %[1]s, %[1]s", rLeft)
		a.op("JZ %s", end)
		a.at(again)
		a.rowAt(rIDs, rRow, k.via)
		a.rowAt(rNext, rAhead, k.via)
		a.prefetchRow(nv * a.lanes << shift)
		if k.beside != "" {
			a.op("ADDQ %s, %s", k.beside, rAhead)
			a.prefetchRow(nv * a.lanes << shift)
		}
		advance(a, rNext, rLast)
		done := a.label("done")
		if k.skip != nil {
			k.skip(a, done)
		}
		k.item(a, b)
		a.at(done)
		if k.after != nil {
			k.after(a)
		}
		a.op("ADDQ $4, %s", rIDs)
		a.op("DECQ %s", rLeft)
		a.op("JNZ %s", again)
		a.at(end)
		if k.finish != nil {
			k.finish(a, b)
		}
		a.op("JMP %s", next)
	}
	a.at(next)
	if k.outMoves { // back to the first row, at this block's columns
		a.op("MOVQ %s, %s", a.arg("o"), rOut)
		a.op("MOVQ %s, AX", a.arg("data"))
		a.op("NEGQ AX")
		a.op("ADDQ %s, AX", rData)
		if k.half {
			a.op("SHLQ $1, AX")
		}
		a.op("ADDQ AX, %s", rOut)
	}
	a.op("ADDQ $%d, %s", most*a.bytes(), rOut)
	a.op("ADDQ $%d, %s", most*a.lanes<<shift, rData)
	a.op("SUBQ $%d, %s", most*a.lanes, a.arg("cols"))
	a.op("JGT %s", whole)
	if k.close != nil {
		k.close(a)
	}
	a.ret()
}

// prefetchRow prefetches the given number of bytes at rAhead, which may begin within a cache line.
func (a *asm) prefetchRow(bytes int) {
	for off := 0; off < bytes; off += 64 {
		a.op("PREFETCHT0 %d(%s)", off, rAhead)
	}
	a.op("PREFETCHT0 (%s)(%s*1)", rAhead, rEnd)
}

// rowAt sets dst to the address of the row whose id is at the pointer.
func (a *asm) rowAt(id, dst string, via bool) {
	a.op("MOVL (%s), %s", id, dst)
	if via {
		direct := a.label("direct")
		a.op("TESTQ %[1]s, %[1]s", rVia)
		a.op("JZ %s", direct)
		a.op("MOVL (%s)(%s*4), %s", rVia, dst, dst)
		a.at(direct)
	}
	a.op("IMULQ %s, %s", rStride, dst)
	a.op("ADDQ %s, %s", rData, dst)
}

// columnTail prepares the mask for the last vector of BX columns, which may be a full one.
func columnTail(a *asm) {
	a.op("LEAQ -1(BX), CX")
	a.op("ANDQ $%d, CX", a.lanes-1)
	a.op("INCQ CX")
	a.tailMask()
}

// dispatch jumps to the label for the number of vectors that BX columns need.
func dispatch(a *asm, labels map[int]string, lo, hi int) {
	if lo == hi {
		a.op("JMP %s", labels[lo])
		return
	}
	mid := (lo + hi) / 2
	upper := a.label("more")
	a.op("CMPQ BX, $%d", mid*a.lanes)
	a.op("JGT %s", upper)
	dispatch(a, labels, lo, mid)
	a.at(upper)
	dispatch(a, labels, mid+1, hi)
}

func column(a *asm, j int, base string) string { return fmt.Sprintf("%d(%s)", j*a.bytes(), base) }

// zeroAll clears register k of each vector.
func zeroAll(a *asm, b block) {
	for j := range b.nv {
		a.op("VXORPS %[1]s, %[1]s, %[1]s", b.reg(a, j, 0))
	}
}

// finishSum writes o = w·sums, or o += with acc; w is in temp 0 if weighted.
func finishSum(w bool) func(a *asm, b block) {
	return func(a *asm, b block) {
		if w {
			a.op("VBROADCASTSS %s, %s", a.arg("w"), b.temp(a, 0))
			for j := range b.nv {
				a.op("VMULPS %[2]s, %[1]s, %[1]s", b.reg(a, j, 0), b.temp(a, 0))
			}
		}
		set := a.label("set")
		a.op("MOVQ %s, AX", a.arg("acc"))
		a.op("TESTQ AX, AX")
		a.op("JZ %s", set)
		for j := range b.nv {
			a.addMem(column(a, j, rOut), b.reg(a, j, 0), b.temp(a, 0), b.tail(j))
		}
		a.at(set)
		for j := range b.nv {
			a.store(b.reg(a, j, 0), column(a, j, rOut), b.tail(j))
		}
	}
}

// difference sets reg to the distance from the array at register from to the array of the given
// parameter, so that one moving pointer addresses both.
func difference(a *asm, name, from, reg string) {
	a.op("MOVQ %s, %s", a.arg(name), reg)
	a.op("SUBQ %s, %s", from, reg)
}

func rowKernels(a *asm) {
	sumOfRows(a, "sumRows", "computes o = w·Σ rows; see SumRows.", false)
	weightedSumOfRows(a, "weightedSumRows", "computes o = Σ weight·row; see WeightedSumRows.", false)
	sumOfRows(a, "sumHalfRows", "does what sumRows does for a table of float16.", true)
	weightedSumOfRows(a, "weightedSumHalfRows", "does what weightedSumRows does for a table of float16.", true)

	maxKernel(a, "maxRows", "computes o = the maximum of the rows, for n > 0; see MaxRows.", false)
	maxKernel(a, "maxRowsArg", "does what maxRows does, and sets arg to the number of the row, counted from first.", true)

	rows{
		name: "sumRowsWhere", doc: "computes o = Σ of the rows' elements whose element of args, laid out as data, equals at[i]; see SumRowsWhere.",
		extra: []string{"acc int", "args *uint32", "at *int32"}, perVector: 1, temps: 3, beside: "R13",
		setup: func(a *asm) {
			difference(a, "args", a.arg("data"), "R13")
			difference(a, "at", rIDs, "R14")
		},
		begin: zeroAll,
		item: func(a *asm, b block) {
			e, t, g := b.temp(a, 0), b.temp(a, 1), b.temp(a, 2)
			a.op("VPBROADCASTD (%s)(R14*1), %s", rIDs, e)
			for j := range b.nv {
				row, acc := column(a, j, rRow), b.reg(a, j, 0)
				args := row + "(R13*1)"
				switch {
				case a.name == avx512.name && b.tail(j):
					a.load(args, t, true)
					a.op("VPCMPEQD %s, %s, K1, K2", t, e)
					a.op("VADDPS %s, %s, K2, %s", row, acc, acc)
				case a.name == avx512.name:
					a.op("VPCMPEQD %s, %s, K2", args, e)
					a.op("VADDPS %s, %s, K2, %s", row, acc, acc)
				default:
					a.load(args, t, b.tail(j))
					a.op("VPCMPEQD %s, %s, %s", t, e, t)
					a.load(row, g, b.tail(j))
					a.op("VANDPS %s, %s, %s", g, t, t)
					a.op("VADDPS %s, %s, %s", t, acc, acc)
				}
			}
		},
		finish: finishSum(false),
	}.write(a)

	gather(a, "gatherRows", "copies the rows to o, step elements apart; see GatherRows.", false, false)
	gather(a, "gatherRowsFar", "does what gatherRows does, writing past the caches; o and cols are whole vectors.", true, false)
	gather(a, "gatherHalfRows", "does what gatherRows does from a table of float16.", false, true)
	fromHalfKernel(a)
}

func sumOfRows(a *asm, name, doc string, half bool) {
	k := rows{
		name: name, doc: doc, extra: []string{"acc int", "w float32"},
		via: true, perVector: 1, temps: 1, half: half,
		begin: zeroAll,
		item: func(a *asm, b block) {
			for j := range b.nv {
				if half {
					t := b.temp(a, 1)
					a.loadHalf(rRow, j, t, b.temp(a, 2), b.tail(j))
					a.op("VADDPS %s, %s, %s", t, b.reg(a, j, 0), b.reg(a, j, 0))
				} else {
					a.addMem(column(a, j, rRow), b.reg(a, j, 0), b.temp(a, 0), b.tail(j))
				}
			}
		},
		finish: finishSum(true),
	}
	if half {
		k.temps += 2
	}
	k.write(a)
}

func weightedSumOfRows(a *asm, name, doc string, half bool) {
	k := rows{
		name: name, doc: doc, half: half,
		extra: []string{"acc int", "w *float32", "step int", "at *int32"}, via: true, perVector: 1, temps: 2,
		setup: func(a *asm) {
			a.op("MOVQ %s, R13", a.arg("w"))
			a.op("MOVQ R13, CX")
			difference(a, "at", rIDs, "R14")
		},
		begin: zeroAll,
		skip: func(a *asm, next string) {
			along := a.label("along")
			a.op("CMPQ %s, $0", a.arg("at"))
			a.op("JEQ %s", along)
			a.op("MOVL (%s)(R14*1), CX", rIDs)
			a.op("IMULQ %s, CX", a.arg("step"))
			a.op("LEAQ (R13)(CX*4), CX")
			a.at(along)
			a.op("MOVL (CX), BX")
			a.op("ADDL BX, BX") // drops the sign bit, so that both zeros become 0
			a.op("JZ %s", next)
		},
		item: func(a *asm, b block) {
			w, t := b.temp(a, 0), b.temp(a, 1)
			a.op("VBROADCASTSS (CX), %s", w)
			for j := range b.nv {
				switch {
				case half:
					a.loadHalf(rRow, j, t, b.temp(a, 2), b.tail(j))
					a.op("VMULPS %s, %s, %s", t, w, t)
				case b.tail(j):
					a.load(column(a, j, rRow), t, true)
					a.op("VMULPS %s, %s, %s", t, w, t)
				default:
					a.op("VMULPS %s, %s, %s", column(a, j, rRow), w, t)
				}
				a.op("VADDPS %s, %s, %s", t, b.reg(a, j, 0), b.reg(a, j, 0))
			}
		},
		after: func(a *asm) {
			a.op("MOVQ %s, BX", a.arg("step"))
			a.op("LEAQ (CX)(BX*4), CX")
		},
		finish: finishSum(false),
	}
	if half {
		k.temps++
	}
	k.write(a)
}

func gather(a *asm, name, doc string, far, half bool) {
	k := rows{
		name: name, doc: doc, extra: []string{"step int"},
		via: true, perVector: 1, temps: 0, most: 16, outMoves: true, half: half,
		setup: func(a *asm) {
			a.op("MOVQ %s, R13", a.arg("step"))
			a.op("SHLQ $2, R13")
		},
		item: func(a *asm, b block) {
			for j := range b.nv {
				if half {
					a.loadHalf(rRow, j, b.reg(a, j, 0), b.temp(a, 0), b.tail(j))
				} else {
					a.load(column(a, j, rRow), b.reg(a, j, 0), b.tail(j) && !far)
				}
			}
			for j := range b.nv {
				if far {
					a.op("VMOVNTPS %s, %s", b.reg(a, j, 0), column(a, j, rOut))
				} else {
					a.store(b.reg(a, j, 0), column(a, j, rOut), b.tail(j))
				}
			}
			a.op("ADDQ R13, %s", rOut)
		},
		close: func(a *asm) {
			if far {
				a.op("SFENCE")
			}
		},
	}
	if half {
		k.temps = 1
	}
	k.write(a)
}

func maxKernel(a *asm, name, doc string, arg bool) {
	k := rows{name: name, doc: doc, perVector: 1, temps: 3}
	if arg {
		k.perVector, k.temps = 2, 4
		k.extra = []string{"arg *uint32", "first uint32"}
		k.setup = func(a *asm) { difference(a, "arg", a.arg("o"), "R13") }
	}
	k.begin = func(a *asm, b block) {
		for j := range b.nv {
			a.op("VMOVUPS %s, %s", a.words("minusInf", 0xff800000), b.reg(a, j, 0))
		}
		if !arg {
			return
		}
		e := b.temp(a, 3)
		a.op("VBROADCASTSS %s, %s", a.arg("first"), e)
		for j := range b.nv {
			a.op("VMOVAPS %s, %s", e, b.reg(a, j, 1))
		}
	}
	k.item = func(a *asm, b block) {
		t, gt, nan := b.temp(a, 0), b.temp(a, 1), b.temp(a, 2)
		const greater, unordered = 30, 3
		for j := range b.nv {
			a.load(column(a, j, rRow), t, b.tail(j))
			top := b.reg(a, j, 0)
			if a.name == avx512.name {
				a.op("VCMPPS $%d, %s, %s, K2", greater, top, t)
				a.op("VCMPPS $%d, %s, %s, K3", unordered, t, t)
				a.op("KORW K2, K3, K2")
				a.op("VMOVAPS %s, K2, %s", t, top)
				if arg {
					a.op("VMOVAPS %s, K2, %s", b.temp(a, 3), b.reg(a, j, 1))
				}
				continue
			}
			a.op("VCMPPS $%d, %s, %s, %s", greater, top, t, gt)
			a.op("VCMPPS $%d, %s, %s, %s", unordered, t, t, nan)
			a.op("VORPS %s, %s, %s", gt, nan, gt)
			a.op("VBLENDVPS %s, %s, %s, %s", gt, t, top, top)
			if arg {
				a.op("VBLENDVPS %[1]s, %[2]s, %[3]s, %[3]s", gt, b.temp(a, 3), b.reg(a, j, 1))
			}
		}
		if arg {
			a.op("VPADDD %s, %s, %s", a.words("oneInt", 1), b.temp(a, 3), b.temp(a, 3))
		}
	}
	k.finish = func(a *asm, b block) {
		for j := range b.nv {
			a.store(b.reg(a, j, 0), column(a, j, rOut), b.tail(j))
			if arg {
				a.store(b.reg(a, j, 1), column(a, j, rOut)+"(R13*1)", b.tail(j))
			}
		}
	}
	k.write(a)
}
