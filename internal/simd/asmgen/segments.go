package main

// Registers that the kernels on segments use in addition to those of the kernels on rows.
const (
	rPtr  = "DX"  // the segment's first offset
	rRows = "R12" // segments left
	rIn   = "R13" // ids left in the segment
	rW    = "R14" // the weights
	rAt   = "R15" // distance from an id to the number of its weight
)

// segments describes a kernel that sums rows of a table for all rows of the output in one call,
// because with few columns a call per row would cost as much as the sum. All columns are in
// registers.
type segments struct {
	name, doc string
	extra     []string
	weighted  bool
	setup     func(a *asm)
	weight    func(a *asm, w string) // sets w to the weight of the id at rIDs
	finish    func(a *asm, b block)
}

// segmentColumns returns the maximum number of columns that such a kernel supports.
func segmentColumns(a *asm) int { return a.lanes * a.regs / 2 }

func (k segments) write(a *asm) {
	a.fn(k.name, k.doc, append([]string{
		"o *float32", "data *float32", "stride int", "ids *int32", "indptr *int64", "rows int", "total int", "dist int", "cols int", "acc int",
	}, k.extra...)...)
	a.op("MOVQ %s, %s", a.arg("o"), rOut)
	a.op("MOVQ %s, %s", a.arg("data"), rData)
	a.op("MOVQ %s, %s", a.arg("stride"), rStride)
	a.op("SHLQ $2, %s", rStride)
	a.op("MOVQ %s, %s", a.arg("ids"), rIDs)
	a.op("MOVQ %s, %s", a.arg("indptr"), rPtr)
	a.op("MOVQ %s, %s", a.arg("rows"), rRows)
	lookAhead(a, rNext, rLast)
	if k.setup != nil {
		k.setup(a)
	}
	a.op("MOVQ %s, BX", a.arg("cols"))
	byColumns(a, func(b block) { k.columns(a, b) })
}

// byColumns writes body once for each possible number of vectors of BX columns, and the jump to the
// right one.
func byColumns(a *asm, body func(b block)) {
	columnTail(a)
	most := segmentColumns(a) / a.lanes
	labels := map[int]string{}
	for nv := 1; nv <= most; nv++ {
		labels[nv] = a.label("columns")
	}
	dispatch(a, labels, 1, most)
	for nv := 1; nv <= most; nv++ {
		a.at(labels[nv])
		body(block{nv, 1, most})
		a.ret()
	}
}

// columns writes the loop over the segments for one number of vectors.
func (k segments) columns(a *asm, b block) {
	w, t, zero := b.temp(a, 0), b.temp(a, 1), b.temp(a, 2)
	if k.weighted {
		a.op("VXORPS %[1]s, %[1]s, %[1]s", zero)
	}
	segment, again, near, summed, store, next := a.label("segment"), a.label("row"), a.label("near"), a.label("summed"), a.label("store"), a.label("next")
	a.at(segment)
	zeroAll(a, b)
	a.op("MOVQ 8(%s), %s", rPtr, rIn)
	a.op("SUBQ (%s), %s", rPtr, rIn)
	a.op("JZ %s", summed)
	a.at(again)
	a.rowAt(rIDs, rRow, false)
	a.op("CMPQ %s, $0", a.arg("dist"))
	a.op("JEQ %s", near)
	a.rowAt(rNext, rAhead, false)
	for off := 0; off < b.nv*a.bytes(); off += 64 {
		a.op("PREFETCHT0 %d(%s)", off, rAhead)
	}
	a.op("MOVQ %s, CX", a.arg("cols"))
	a.op("PREFETCHT0 -4(%s)(CX*4)", rAhead)
	advance(a, rNext, rLast)
	a.at(near)
	if k.weighted {
		k.weight(a, w)
		a.zeroWeight(w, zero)
	}
	for j := range b.nv {
		row, sum := column(a, j, rRow), b.reg(a, j, 0)
		if k.weighted {
			a.timesUnlessZero(row, w, zero, t, b.tail(j))
			a.op("VADDPS %s, %s, %s", t, sum, sum)
		} else {
			a.addMem(row, sum, t, b.tail(j))
		}
	}
	a.op("ADDQ $4, %s", rIDs)
	a.op("DECQ %s", rIn)
	a.op("JNZ %s", again)
	if k.finish != nil {
		k.finish(a, b)
	}
	a.op("CMPQ %s, $0", a.arg("acc"))
	a.op("JEQ %s", store)
	for j := range b.nv {
		a.addMem(column(a, j, rOut), b.reg(a, j, 0), t, b.tail(j))
	}
	a.op("JMP %s", store)
	a.at(summed) // for a segment without rows
	a.op("CMPQ %s, $0", a.arg("acc"))
	a.op("JNE %s", next)
	a.at(store)
	for j := range b.nv {
		a.store(b.reg(a, j, 0), column(a, j, rOut), b.tail(j))
	}
	a.at(next)
	a.op("MOVQ %s, CX", a.arg("cols"))
	a.op("LEAQ (%[1]s)(CX*4), %[1]s", rOut)
	a.op("ADDQ $8, %s", rPtr)
	a.op("DECQ %s", rRows)
	a.op("JNZ %s", segment)
}

// zeroWeight records whether the weight in all lanes of w is 0, for timesUnlessZero: in K2, and K3
// for tails, or, for AVX2, in the register zero, which this overwrites.
func (a *asm) zeroWeight(w, zero string) {
	const notEqual = 4 // or unordered
	if a.name == avx512.name {
		a.op("VCMPPS $%d, %s, %s, K2", notEqual, zero, w)
		a.op("KANDW K1, K2, K3")
		return
	}
	a.op("VXORPS %[1]s, %[1]s, %[1]s", zero)
	a.op("VCMPPS $%d, %s, %s, %s", notEqual, zero, w, zero)
}

// timesUnlessZero writes t = w·the vector in memory, or 0 if w is 0, even if the vector holds NaN.
// It has no branch, because dropout makes zero weights unpredictable.
func (a *asm) timesUnlessZero(mem, w, zero, t string, tail bool) {
	switch {
	case a.name == avx512.name && tail:
		a.op("VMULPS.Z %s, %s, K3, %s", mem, w, t)
	case a.name == avx512.name:
		a.op("VMULPS.Z %s, %s, K2, %s", mem, w, t)
	case tail:
		a.load(mem, t, true)
		a.op("VMULPS %[1]s, %[2]s, %[1]s", t, w)
		a.op("VANDPS %[1]s, %[2]s, %[2]s", zero, t)
	default:
		a.op("VMULPS %s, %s, %s", mem, w, t)
		a.op("VANDPS %[1]s, %[2]s, %[2]s", zero, t)
	}
}

func segmentKernels(a *asm) {
	segments{
		name: "sumSegments", doc: "computes o = Σ rows, or their mean, for each segment; see SumSegments.", extra: []string{"mean int"},
		finish: func(a *asm, b block) {
			all := a.label("all")
			a.op("CMPQ %s, $0", a.arg("mean"))
			a.op("JEQ %s", all)
			w := b.temp(a, 0)
			x := "X" + w[1:]
			a.op("MOVQ 8(%s), CX", rPtr)
			a.op("SUBQ (%s), CX", rPtr)
			one := b.temp(a, 1)
			a.op("VXORPS %[1]s, %[1]s, %[1]s", x)
			a.op("VCVTSI2SSQ CX, %[1]s, %[1]s", x)
			a.op("VMOVSS %s, X%s", a.float("one", 1), one[1:])
			a.op("VDIVSS %s, X%s, %s", x, one[1:], x)
			a.op("VBROADCASTSS %s, %s", x, w)
			for j := range b.nv {
				a.op("VMULPS %[2]s, %[1]s, %[1]s", b.reg(a, j, 0), w)
			}
			a.at(all)
		},
	}.write(a)

	segments{
		name: "weightedSegments", doc: "computes o = Σ weight·row for each segment, the weights in the order of the ids; see WeightedSumSegments.",
		extra: []string{"w *float32"}, weighted: true,
		setup:  func(a *asm) { difference(a, "w", rIDs, rW) },
		weight: func(a *asm, w string) { a.op("VBROADCASTSS (%s)(%s*1), %s", rIDs, rW, w) },
	}.write(a)

	segments{
		name: "weightedSegmentsAt", doc: "computes o = Σ weight·row for each segment, the weights by number; see WeightedSumSegments.",
		extra: []string{"w *float32", "at *int32"}, weighted: true,
		setup: func(a *asm) {
			a.op("MOVQ %s, %s", a.arg("w"), rW)
			difference(a, "at", rIDs, rAt)
		},
		weight: func(a *asm, w string) {
			a.op("MOVL (%s)(%s*1), CX", rIDs, rAt)
			a.op("VBROADCASTSS (%s)(CX*4), %s", rW, w)
		},
	}.write(a)

	scatter(a, "scatterSegments", "adds row r of d to the rows of o that segment r names; see ScatterSegments.", false)
	scatter(a, "weightedScatter", "does what scatterSegments does with a weight for each id.", true)
}

// scatter writes a kernel that adds each row of d to the output rows of its segment.
func scatter(a *asm, name, doc string, weighted bool) {
	extra := []string{}
	if weighted {
		extra = append(extra, "w *float32")
	}
	a.fn(name, doc, append([]string{"o *float32", "d *float32", "ids *int32", "indptr *int64", "rows int", "cols int"}, extra...)...)
	const rCols = "R9" // bytes per row
	a.op("MOVQ %s, %s", a.arg("o"), rOut)
	a.op("MOVQ %s, %s", a.arg("d"), rData)
	a.op("MOVQ %s, %s", a.arg("ids"), rIDs)
	a.op("MOVQ %s, %s", a.arg("indptr"), rPtr)
	a.op("MOVQ %s, %s", a.arg("rows"), rRows)
	if weighted {
		difference(a, "w", rIDs, rW)
	}
	a.op("MOVQ %s, BX", a.arg("cols"))
	a.op("LEAQ (BX*4), %s", rCols)
	byColumns(a, func(b block) {
		w, t, zero := b.temp(a, 0), b.temp(a, 1), b.temp(a, 2)
		a.op("VXORPS %[1]s, %[1]s, %[1]s", zero)
		segment, again, next := a.label("segment"), a.label("row"), a.label("next")
		a.at(segment)
		a.op("MOVQ 8(%s), %s", rPtr, rIn)
		a.op("SUBQ (%s), %s", rPtr, rIn)
		a.op("JZ %s", next)
		for j := range b.nv {
			a.load(column(a, j, rData), b.reg(a, j, 0), b.tail(j))
		}
		a.at(again)
		a.op("MOVL (%s), %s", rIDs, rRow)
		a.op("IMULQ %s, %s", rCols, rRow)
		a.op("ADDQ %s, %s", rOut, rRow)
		if weighted {
			a.op("VBROADCASTSS (%s)(%s*1), %s", rIDs, rW, w)
			a.zeroWeight(w, zero)
		}
		for j := range b.nv {
			x := b.reg(a, j, 0)
			if weighted {
				a.timesRegister(x, w, zero, t)
				x = t
			}
			if b.tail(j) {
				a.load(column(a, j, rRow), b.temp(a, 3), true)
				a.op("VADDPS %s, %s, %s", x, b.temp(a, 3), t)
			} else {
				a.op("VADDPS %s, %s, %s", column(a, j, rRow), x, t)
			}
			a.store(t, column(a, j, rRow), b.tail(j))
		}
		a.op("ADDQ $4, %s", rIDs)
		a.op("DECQ %s", rIn)
		a.op("JNZ %s", again)
		a.at(next)
		a.op("ADDQ %s, %s", rCols, rData)
		a.op("ADDQ $8, %s", rPtr)
		a.op("DECQ %s", rRows)
		a.op("JNZ %s", segment)
	})
}

// timesRegister is timesUnlessZero for a vector in a register.
func (a *asm) timesRegister(x, w, zero, t string) {
	if a.name == avx512.name {
		a.op("VMULPS.Z %s, %s, K2, %s", x, w, t)
		return
	}
	a.op("VMULPS %s, %s, %s", x, w, t)
	a.op("VANDPS %[1]s, %[2]s, %[2]s", zero, t)
}
