package backend

import (
	"runtime"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// The operations on typed edges have no kernel of their own yet: they are composed of the weighted sums of
// weighted.go's kernels, one for each basis, over weights [edges, bases].

// typedWeights returns the weights [edges, bases] of typed edges; the caller frees them.
func (b *Backend) typedWeights(t tensor.Kinds, coef tensor.Buffer, bases int) tensor.Buffer {
	edges := len(t.Types)
	w := b.Alloc(edges * bases)
	types := make([]int32, edges)
	for e, r := range t.Types {
		types[e] = int32(r)
	}
	b.GatherRows(w, coef, tensor.Rows{N: edges, IDs: types}, bases)
	return b.byShares(w, t, bases)
}

// byShares multiplies the rows of w [edges, bases] by the edges' shares, and returns the result.
func (b *Backend) byShares(w tensor.Buffer, t tensor.Kinds, bases int) tensor.Buffer {
	if t.Shares.N == 0 {
		return w
	}
	scaled := b.Alloc(w.N)
	b.RowScale(scaled, w, t.Shares, len(t.Types), bases, false)
	b.Free(w)
	return scaled
}

// eachBasis calls do with the weights [edges] of each basis.
func (b *Backend) eachBasis(t tensor.Kinds, coef tensor.Buffer, bases int, do func(k int, w tensor.Buffer)) {
	w := b.typedWeights(t, coef, bases)
	defer b.Free(w)
	if bases == 1 {
		do(0, w)
		return
	}
	edges := len(t.Types)
	one := b.Alloc(edges)
	defer b.Free(one)
	for k := range bases {
		b.CopyCols(one, 1, 0, w, bases, k, edges, 1, false)
		do(k, one)
	}
}

// SpMMTyped implements [tensor.Backend].
func (b *Backend) SpMMTyped(out tensor.Buffer, m *graphops.Block, t tensor.Kinds, coef tensor.Buffer, bases int, h tensor.Buffer, rows *tensor.Rows, cols int) {
	defer runtime.KeepAlive(m)
	sum := b.Alloc(m.NumDst * cols)
	defer b.Free(sum)
	b.eachBasis(t, coef, bases, func(k int, w tensor.Buffer) {
		if rows != nil && w.N > 0 {
			b.SpMMRows(tensor.Sum, sum, m, w, h, *rows, cols)
		} else if w.N > 0 {
			b.SpMMWeighted(sum, m, w, 1, h, cols, false)
		} else {
			b.Zero(sum)
		}
		b.CopyCols(out, bases*cols, k*cols, sum, cols, 0, m.NumDst, cols, false)
	})
}

// SpMMTypedGrad implements [tensor.Backend].
func (b *Backend) SpMMTypedGrad(dh, dOut tensor.Buffer, m *graphops.Block, t tensor.Kinds, coef tensor.Buffer, bases, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	part := b.Alloc(m.NumDst * cols)
	defer b.Free(part)
	b.eachBasis(t, coef, bases, func(k int, w tensor.Buffer) {
		b.CopyCols(part, cols, 0, dOut, bases*cols, k*cols, m.NumDst, cols, false)
		b.SpMMWeightedGrad(dh, part, w, 1, m, cols, acc || k > 0)
	})
}

// TypedDot implements [tensor.Backend]. It keeps a product for each edge and basis, and adds those of each type
// in ascending order of the edges.
func (b *Backend) TypedDot(dCoef tensor.Buffer, m *graphops.Block, t tensor.Kinds, dOut, h tensor.Buffer, bases, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	edges := len(t.Types)
	part, one, dots := b.Alloc(m.NumDst*cols), b.Alloc(edges), b.Alloc(edges*bases)
	defer b.Free(part)
	defer b.Free(one)
	for k := range bases {
		b.CopyCols(part, cols, 0, dOut, bases*cols, k*cols, m.NumDst, cols, false)
		b.EdgeDot(one, m, part, h, 1, cols, false)
		b.CopyCols(dots, bases, k, one, 1, 0, edges, 1, false)
	}
	dots = b.byShares(dots, t, bases)
	defer b.Free(dots)
	byType := edgesByType(t)
	defer runtime.KeepAlive(byType)
	b.SpMMWeighted(dCoef, byType, tensor.Buffer{}, 1, dots, bases, acc)
}

// edgesByType returns the block from edges to their types.
func edgesByType(t tensor.Kinds) *graphops.Block {
	h := graphops.HostBlock{NumDst: t.N, NumSrc: len(t.Types), Indptr: make([]int64, t.N+1), Indices: make([]int32, len(t.Types))}
	for _, r := range t.Types {
		h.Indptr[r+1]++
	}
	next := make([]int64, t.N)
	for r := range t.N {
		h.Indptr[r+1] += h.Indptr[r]
		next[r] = h.Indptr[r]
	}
	for e, r := range t.Types {
		h.Indices[next[r]] = int32(e)
		next[r]++
	}
	return h.Block()
}
