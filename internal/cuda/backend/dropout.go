package backend

import (
	"runtime"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// draws is a mask's key with the ids of its rows as kernels read them: ids32[r],
// ids64[r] or start + r.
type draws struct {
	ops.DropoutKey
	ids32, ids64 cuda.Ptr
	start        int64
}

// draws returns the key with the addresses of the ids. The caller keeps k.Space alive until the
// kernel is launched.
func (b *Backend) draws(k ops.DropoutKey, rows int) draws {
	d := draws{DropoutKey: k}
	if rows == 0 {
		return d
	}
	if e := k.Space.Edges(); e != nil {
		a := b.arrays(e)
		d.ids64, d.start = b.positions(e, a), a.First
		return d
	}
	if of, from := k.Space.Sources(); of != nil {
		if a := cuda.ArraysOf(of); a != nil && a.SrcIDs != 0 {
			b.ready(a)
			d.ids32 = a.SrcIDs + cuda.Ptr(4*from)
			return d
		}
	}
	if k.Space.IDs != nil {
		d.ids32 = b.ids(k.Space.IDs)
		return d
	}
	d.start = k.Space.ID(0)
	return d
}

// Dropout implements [ops.Backend].
func (b *Backend) Dropout(out, mask, x ops.Buffer, rows, cols int, k ops.DropoutKey) {
	defer runtime.KeepAlive(k.Space)
	d := b.draws(k, rows)
	b.run("dropout_f32", kernels.Items(rows*((cols+7)/8)), addr(out), addr(mask), addr(x), rows, cols,
		d.ids32, d.ids64, d.start, d.Seed, uint32(d.Step), d.C3, d.Threshold, d.Scale)
}

// Mask implements [ops.Backend].
func (b *Backend) Mask(out, x, mask ops.Buffer, rows, cols int, scale float32, acc bool) {
	b.run("mask_f32", kernels.Items(rows*((cols+7)/8)), addr(out), addr(x), addr(mask), rows, cols, scale, asFlag(acc))
}

// SparseDropout implements [ops.Backend].
func (b *Backend) SparseDropout(out ops.Buffer, m *graphops.Block, values ops.Buffer, k ops.DropoutKey) {
	defer runtime.KeepAlive(m)
	defer runtime.KeepAlive(k.Space)
	a, d := b.arrays(m), b.draws(k, m.NumDst)
	b.run("sparse_dropout_f32", rowShape(m), addr(out), optional(values), a.Indptr, a.Indices, a.First, m.NumDst,
		d.ids32, d.ids64, d.start, d.Seed, uint32(d.Step), d.C3, d.Threshold, d.Scale)
}

// SparseDense implements [ops.Backend].
func (b *Backend) SparseDense(out ops.Buffer, m *graphops.Block, values ops.Buffer) {
	defer runtime.KeepAlive(m)
	a := b.arrays(m)
	b.Zero(out)
	b.run("sparse_dense_f32", rowShape(m), addr(out), optional(values), a.Indptr, a.Indices, a.First, m.NumDst, m.NumSrc)
}

// rowShape is the shape of kernels in which a group of lanes adds the edges of a row.
func rowShape(m *graphops.Block) kernels.Shape {
	return kernels.Rows(m.NumDst, m.NumEdges()/max(m.NumDst, 1))
}
