package ops

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/simd"
)

func typedEdges(t Kinds, coef Buffer, bases int) *simd.TypedEdges {
	return &simd.TypedEdges{Types: t.Types, Shares: t.Shares.Host, Coef: coef.Host, Bases: bases}
}

func (c *Processor) SpMMTyped(out Buffer, b *graphops.Block, t Kinds, coef Buffer, bases int, h Buffer, rows *Rows, cols int) {
	if rows == nil {
		rows = &Rows{N: b.NumSrc}
	}
	table, indptr, wide := tableOf(h, *rows, cols), b.Indptr(), bases*cols
	n, grain := segments(indptr, b.NumDst, wide)
	c.share(n, grain, func(lo, hi int) {
		s := typedEdges(t, coef, bases)
		lo, hi, ids := destinations(b, &table, cols, lo, hi)
		for d := lo; d < hi; d++ {
			deg := b.InDegree(d)
			s.Sum(out.Host[d*wide:(d+1)*wide], &table, cols, ids[:deg], int(indptr[d]-indptr[0]))
			ids = ids[deg:]
		}
	})
}

func (c *Processor) SpMMTypedGrad(dh, dOut Buffer, b *graphops.Block, t Kinds, coef Buffer, bases, cols int, acc bool) {
	tr, wide := b.Transposed(), bases*cols
	rows, g := &simd.Rows{Data: dOut.Host, Stride: wide}, &simd.Rows{Data: dOut.Host, Stride: cols}
	n, grain := segments(tr.Indptr, b.NumSrc, wide)
	c.share(n, grain, func(lo, hi int) {
		s := typedEdges(t, coef, bases)
		lo, hi, dst, edges := sources(tr, b.NumSrc, rows, wide, lo, hi)
		for u := lo; u < hi; u++ {
			deg := int(tr.Indptr[u+1] - tr.Indptr[u])
			s.SumBack(dh.Host[u*cols:(u+1)*cols], g, cols, dst[:deg], edges[:deg], acc)
			dst, edges = dst[deg:], edges[deg:]
		}
	})
}

// A chunk of TypedDot has partial sums of its own: chunks are few enough that these take at most
// typedPartElems elements, and have at least typedPartEdges positions.
const (
	typedPartElems = 1 << 20
	typedPartEdges = 1 << 12
	typedParts     = 64
)

// TypedDot adds edges in ascending order within chunks, and the chunks as a pairwise tree, in float64.
func (c *Processor) TypedDot(dCoef Buffer, b *graphops.Block, t Kinds, dOut, h Buffer, bases, cols int, acc bool) {
	table, indptr, wide, size := &simd.Rows{Data: h.Host, Stride: cols}, b.Indptr(), bases*cols, dCoef.N
	n, _ := segments(indptr, b.NumDst, wide)
	parts := max(1, min(typedParts, typedPartElems/max(1, size), n/typedPartEdges))
	grain := max(1, (n+parts-1)/parts)
	parts = max(1, parallel.Chunks(n, grain))
	sums := make([]float64, parts*size)
	parallel.For(c.Threads, n, grain, func(lo, hi int) {
		s, sum := typedEdges(t, Buffer{}, bases), sums[lo/grain*size:][:size]
		lo, hi, ids := destinations(b, table, cols, lo, hi)
		for d := lo; d < hi; d++ {
			deg := b.InDegree(d)
			s.Dot(sum, dOut.Host[d*wide:(d+1)*wide], table, cols, ids[:deg], int(indptr[d]-indptr[0]))
			ids = ids[deg:]
		}
	})
	for step := 1; step < parts; step *= 2 {
		for i := 0; i+step < parts; i += 2 * step {
			for j, v := range sums[(i+step)*size:][:size] {
				sums[i*size+j] += v
			}
		}
	}
	for j, v := range sums[:size] {
		if acc {
			v += float64(dCoef.Host[j])
		}
		dCoef.Host[j] = float32(v)
	}
}

// TypedShares sets shares [edges] to 1 over the number of in-edges of the edge's destination that have its
// type, which is below n.
func TypedShares(shares []float32, b *graphops.Block, types []uint16, n, threads int) {
	indptr := b.Indptr()
	total, grain := segments(indptr, b.NumDst, narrowest)
	parallel.ForFine(threads, total, grain, func(lo, hi int) {
		counts := make([]int32, n)
		for d, end := cut(indptr, b.NumDst, lo), cut(indptr, b.NumDst, hi); d < end; d++ {
			from, to := indptr[d]-indptr[0], indptr[d+1]-indptr[0]
			simd.TypedShares(shares[from:to], types[from:to], counts)
		}
	})
}
