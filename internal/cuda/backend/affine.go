package backend

import (
	"runtime"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda"
	"github.com/graphnb/graphnb/internal/cuda/cublas"
	"github.com/graphnb/graphnb/internal/cuda/kernels"
)

// Affine implements [ops.Backend]: the products one by one, then the epilogue.
func (b *Backend) Affine(out ops.Buffer, m, n int, products []ops.Product, e ops.Epilogue) {
	if m == 0 || n == 0 {
		return
	}
	if e.Base.N > 0 {
		b.Unary(ops.ScaleOp, out, e.Base, 1, false)
	} else if len(products) == 0 {
		b.Zero(out)
	}
	for i, p := range products {
		b.product(addr(out), addr(p.X), addr(p.W), m, n, p.K, false, p.T, i > 0 || e.Base.N > 0)
	}
	if e.Bias.N == 0 && !masks(e) {
		return
	}
	var k draws
	if e.Drop != nil {
		defer runtime.KeepAlive(e.Drop.Space)
		k = b.draws(*e.Drop, m)
	}
	b.run("epilogue_f32", kernels.Items(m*((n+7)/8)), addr(out), optional(e.Bias), optional(e.Keep), m, n, asFlag(e.ReLU), asFlag(e.Drop != nil),
		k.ids32, k.ids64, k.start, k.Seed, uint32(k.Step), k.C3, k.Threshold, e.Scale())
}

// masks reports whether the operations after the product can set elements to 0.
func masks(e ops.Epilogue) bool { return e.ReLU || e.Drop != nil }

// AffineGrad implements [ops.Backend].
func (b *Backend) AffineGrad(d ops.Buffer, m, n int, products []ops.Product, grads []ops.ProductGrad, e ops.Epilogue, db ops.Buffer, accB bool) {
	if masks(e) {
		b.Mask(d, d, e.Keep, m, n, e.Scale(), false)
	}
	for i, p := range products {
		g := grads[i]
		if g.WantX {
			b.product(addr(g.DX), addr(d), addr(p.W), m, p.K, n, false, !p.T, g.AccX)
		}
		switch {
		case !g.WantW:
		case p.T:
			b.product(addr(g.DW), addr(d), addr(p.X), n, p.K, m, true, false, g.AccW)
		default:
			b.product(addr(g.DW), addr(p.X), addr(d), p.K, n, m, true, false, g.AccW)
		}
	}
	if db.N > 0 {
		b.ColSum(db, d, m, n, accB)
	}
}

// product computes out [m,n] = x·y; the left factor is stored as [k,m] if ta is set, the right one
// as [n,k] if tb is set.
func (b *Backend) product(out, x, y cuda.Ptr, m, n, k int, ta, tb, acc bool) {
	switch {
	case m == 0 || n == 0 || k == 0 && acc:
		return
	case k == 0:
		b.s.Fill32(out, 0, int64(m*n))
		return
	case b.blas != nil:
		b.blas.Gemm(b.s, cublas.Product{TransA: ta, TransB: tb, M: m, N: n, K: k, Alpha: 1, Beta: float32(asFlag(acc)), A: x, B: y, C: out})
		return
	}
	kernel := "gemm_nn_f32"
	switch {
	case ta && tb:
		kernel = "gemm_tt_f32"
	case ta:
		kernel = "gemm_tn_f32"
	case tb:
		kernel = "gemm_nt_f32"
	}
	chunk := kernels.InnerChunk(m, n, k)
	chunks := (k + chunk - 1) / chunk
	if chunks == 1 {
		b.run(kernel, kernels.Product(m, n, 1), out, x, y, m, n, k, chunk, asFlag(acc))
		return
	}
	parts := b.room(&b.parts, 4*chunks*m*n)
	b.run(kernel, kernels.Product(m, n, chunks), parts, x, y, m, n, k, chunk, 0)
	b.run("col_dot_f32", kernels.Total(chunks, m*n), out, parts, 0, chunks, m*n, chunks, asFlag(acc))
}
