package ops

import (
	"sort"
	"unsafe"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/simd"
)

// PartSummer is a Backend on the host that sums rows where they are: in memory that ranks share, each with a
// part of the rows. The bits are those of a SpMM for each part, whose results are added in the order of the
// parts.
type PartSummer interface {
	Backend
	// SumParts is out row d = w[d] · (the sum of part 0 + that of part 1 + …). A part without an edge to a
	// destination adds nothing to it. If w is nil, the factors are 1.
	SumParts(out Buffer, w []float32, parts []Part, cols int)
	// SumPartsGrad is the gradient of Sum along b, whose destination d has row at[d] of the table as its
	// gradient.
	SumPartsGrad(dh Buffer, table []float32, at []int32, b *graphops.Block, cols int, acc bool)
}

// Part is the edges from one rank's rows.
type Part struct {
	// Segment i of Edges lists the rows of Rows that are added for row Dst[i] of the result. Dst is ascending.
	// It is nil in the first part, which has a segment for each row.
	Edges graphops.Segments
	Dst   []int32
	Rows  []float32
}

// SumParts implements [PartSummer].
func (c *Processor) SumParts(out Buffer, w []float32, parts []Part, cols int) {
	const together = 1 << 12 // elements of results, which stay in the first-level cache until they are complete
	first := &parts[0]
	step := max(1, together/max(1, cols))
	indptr := first.Edges.Indptr
	rows := len(indptr) - 1
	n, grain := segments(indptr, rows, cols)
	c.share(n, max(1, grain/len(parts)), func(lo, hi int) {
		lo, hi = cut(indptr, rows, lo), cut(indptr, rows, hi)
		var sums []float32
		if len(parts) > 1 && lo < hi {
			sums = c.borrow(step * cols)
			defer c.giveBack(sums)
		}
		for ; lo < hi; lo += step {
			end := min(lo+step, hi)
			first.sum(out.Host[lo*cols:end*cols], lo, end, cols)
			for i := range parts[1:] {
				p := &parts[1+i]
				from, to := place(p.Dst, lo), place(p.Dst, end)
				if from == to {
					continue
				}
				p.sum(sums[:(to-from)*cols], from, to, cols)
				for i, d := range p.Dst[from:to] {
					simd.Add(out.Host[int(d)*cols:(int(d)+1)*cols], sums[i*cols:(i+1)*cols])
				}
			}
			if w != nil {
				for d := lo; d < end; d++ {
					row := out.Host[d*cols : (d+1)*cols]
					simd.Scale(row, row, w[d])
				}
			}
		}
	})
}

// place is the number of rows before row d.
func place(rows []int32, d int) int {
	return sort.Search(len(rows), func(i int) bool { return int(rows[i]) >= d })
}

// sum writes the sums of destinations lo to hi-1.
func (p *Part) sum(out []float32, lo, hi, cols int) {
	t := &simd.Rows{Data: p.Rows, Stride: cols}
	indptr := p.Edges.Indptr[lo : hi+1]
	ids := p.Edges.Indices[indptr[0]:indptr[hi-lo]]
	checkIDs(t, ids, cols)
	simd.SumSegments(out, t, cols, indptr, ids, false, false)
}

// SumPartsGrad implements [PartSummer].
func (c *Processor) SumPartsGrad(dh Buffer, table []float32, at []int32, b *graphops.Block, cols int, acc bool) {
	t := b.Transposed()
	rows := &simd.Rows{Data: table, Stride: cols}
	memory := c.borrow(len(t.Dst) + 1)
	defer c.giveBack(memory)
	all := unsafe.Slice((*int32)(unsafe.Pointer(&memory[0])), len(t.Dst))
	n, grain := cached(t.Indptr, b.NumSrc, cols, b.NumDst*cols)
	c.share(n, grain, func(lo, hi int) {
		lo, hi = cut(t.Indptr, b.NumSrc, lo), cut(t.Indptr, b.NumSrc, hi)
		dst := t.Dst[t.Indptr[lo]:t.Indptr[hi]]
		ids := all[t.Indptr[lo]:t.Indptr[hi]]
		for i, d := range dst {
			ids[i] = at[d]
		}
		checkIDs(rows, ids, cols)
		simd.SumSegments(dh.Host[lo*cols:hi*cols], rows, cols, t.Indptr[lo:hi+1], ids, false, acc)
	})
}
