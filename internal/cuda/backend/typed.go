package backend

import (
	"runtime"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// The kernels of typed.cu read rows of matrices on the device. Sums over rows of tables (features in place) and the
// gradient of the coefficients are composed of the kernels of weighted sums, one for each basis, with weights [edges,
// bases].

// kinds returns the addresses of edges' types, as 32-bit numbers, and of their shares, 0 if there are none.
func (b *Backend) kinds(t ops.Kinds) (types, shares cuda.Ptr) {
	return b.ids(wide(t.Types)), optional(t.Shares)
}

func wide(types []uint16) []int32 {
	w := make([]int32, len(types))
	for e, r := range types {
		w[e] = int32(r)
	}
	return w
}

// typedWeights returns the weights [edges, bases] of typed edges; the caller frees them.
func (b *Backend) typedWeights(t ops.Kinds, coef ops.Buffer, bases int) ops.Buffer {
	edges := len(t.Types)
	w := b.Alloc(edges * bases)
	b.GatherRows(w, coef, ops.Rows{N: edges, IDs: wide(t.Types)}, bases)
	return b.byShares(w, t, bases)
}

// byShares multiplies the rows of w [edges, bases] by the edges' shares, and returns the result.
func (b *Backend) byShares(w ops.Buffer, t ops.Kinds, bases int) ops.Buffer {
	if t.Shares.N == 0 {
		return w
	}
	scaled := b.Alloc(w.N)
	b.RowScale(scaled, w, t.Shares, len(t.Types), bases, false)
	b.Free(w)
	return scaled
}

// eachBasis calls do with the weights [edges] of each basis.
func (b *Backend) eachBasis(t ops.Kinds, coef ops.Buffer, bases int, do func(k int, w ops.Buffer)) {
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

// SpMMTyped implements [ops.Backend].
func (b *Backend) SpMMTyped(out ops.Buffer, m *graphops.Block, t ops.Kinds, coef ops.Buffer, bases int, h ops.Buffer, rows *ops.Rows, cols int) {
	defer runtime.KeepAlive(m)
	if rows == nil {
		a := b.arrays(m)
		types, shares := b.kinds(t)
		b.run("typed_sum_f32", kernels.Tiled(m.NumDst, bases*cols, 1), addr(out), a.Indptr, a.Indices, addr(h), types, shares, addr(coef), a.First, m.NumDst, cols, bases)
		return
	}
	sum := b.Alloc(m.NumDst * cols)
	defer b.Free(sum)
	b.eachBasis(t, coef, bases, func(k int, w ops.Buffer) {
		if w.N > 0 {
			b.SpMMRows(tensor.Sum, sum, m, w, h, *rows, cols)
		} else {
			b.Zero(sum)
		}
		b.CopyCols(out, bases*cols, k*cols, sum, cols, 0, m.NumDst, cols, false)
	})
}

// SpMMTypedGrad implements [ops.Backend].
func (b *Backend) SpMMTypedGrad(dh, dOut ops.Buffer, m *graphops.Block, t ops.Kinds, coef ops.Buffer, bases, cols int, acc bool) {
	defer runtime.KeepAlive(m)
	a := b.transposed(m)
	types, shares := b.kinds(t)
	b.run("typed_back_f32", kernels.Tiled(m.NumSrc, cols, 1), addr(dh), a.TIndptr, a.TDst, a.TEdge, addr(dOut), types, shares, addr(coef), m.NumSrc, cols, bases, asFlag(acc))
}

// TypedDot implements [ops.Backend]. It keeps a product for each edge and basis, and adds those of each type
// as [Backend.SpMMWeighted] does.
func (b *Backend) TypedDot(dCoef ops.Buffer, m *graphops.Block, t ops.Kinds, dOut, h ops.Buffer, bases, cols int, acc bool) {
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
	b.SpMMWeighted(dCoef, byType, ops.Buffer{}, 1, dots, bases, acc)
}

// edgesByType returns the block from edges to their types.
func edgesByType(t ops.Kinds) *graphops.Block {
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
