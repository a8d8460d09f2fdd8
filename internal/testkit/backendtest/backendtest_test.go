package backendtest

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/simd"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestCPU(t *testing.T) { Run(t, ops.CPU(2)) }

// Every set of vector instructions gives the bits of plain Go.
func TestPathsGiveEqualBits(t *testing.T) {
	testneed.NotShort(t, "it runs every operation with each set of instructions")
	defer simd.Use(simd.Use(simd.Go))
	want := Bits(t, ops.CPU(1))
	for p := simd.AVX2; p <= simd.Best(); p++ {
		simd.Use(p)
		for name, bits := range Bits(t, ops.CPU(2)) {
			if bits != want[name] {
				t.Errorf("%s has other bits with %v than in plain Go", name, p)
			}
		}
	}
}

// A backend whose memory the host cannot read passes too: the operations use only the interface.
func TestDevice(t *testing.T) {
	testneed.NotShort(t, "it repeats TestCPU behind opaque handles")
	Run(t, device{ops.CPU(2)})
}

func TestDeviceHasTheBitsOfTheCPU(t *testing.T) { Equal(t, ops.CPU(2), device{ops.CPU(2)}) }

// device is the CPU backend behind opaque handles.
type device struct{ cpu ops.Backend }

func host(b ops.Buffer) ops.Buffer {
	if b.Host != nil {
		panic("a buffer of host memory was given to a device")
	}
	if b.Dev == nil {
		return ops.Buffer{}
	}
	if half, ok := b.Dev.(*[]uint16); ok {
		return ops.Buffer{Half: (*half)[b.Off : b.Off+b.N], N: b.N}
	}
	return ops.HostBuffer((*b.Dev.(*[]float32))[b.Off : b.Off+b.N])
}

func (d device) Name() string { return "device" }

func (d device) Alloc(n int) ops.Buffer {
	mem := make([]float32, n)
	return ops.Buffer{Dev: &mem, N: n}
}

func (d device) Free(b ops.Buffer) {
	clear(host(b).Host)
	clear(host(b).Half)
}

func (d device) WrapHalf(h []uint16) ops.Buffer {
	mem := slices.Clone(h)
	return ops.Buffer{Dev: &mem, N: len(h)}
}

func (d device) Wrap(h []float32) ops.Buffer {
	b := d.Alloc(len(h))
	d.Upload(b, h)
	return b
}

func (d device) Upload(dst ops.Buffer, src []float32)   { d.cpu.Upload(host(dst), src) }
func (d device) Download(dst []float32, src ops.Buffer) { d.cpu.Download(dst, host(src)) }
func (d device) Zero(dst ops.Buffer)                    { d.cpu.Zero(host(dst)) }

func hostEpilogue(e ops.Epilogue) ops.Epilogue {
	e.Base, e.Bias, e.Keep = host(e.Base), host(e.Bias), host(e.Keep)
	return e
}

func hostProducts(products []ops.Product) []ops.Product {
	products = slices.Clone(products)
	for i := range products {
		products[i].X, products[i].W = host(products[i].X), host(products[i].W)
	}
	return products
}

func (d device) Affine(out ops.Buffer, m, n int, products []ops.Product, e ops.Epilogue) {
	d.cpu.Affine(host(out), m, n, hostProducts(products), hostEpilogue(e))
}

func (d device) AffineGrad(dy ops.Buffer, m, n int, products []ops.Product, grads []ops.ProductGrad, e ops.Epilogue, db ops.Buffer, accB bool) {
	grads = slices.Clone(grads)
	for i := range grads {
		grads[i].DX, grads[i].DW = host(grads[i].DX), host(grads[i].DW)
	}
	d.cpu.AffineGrad(host(dy), m, n, hostProducts(products), grads, hostEpilogue(e), host(db), accB)
}

func (d device) SpMMRows(op tensor.Op, out ops.Buffer, b *graphops.Block, w, table ops.Buffer, rows ops.Rows, cols int) {
	d.cpu.SpMMRows(op, host(out), b, host(w), host(table), rows, cols)
}

func (d device) GatherRows(out, table ops.Buffer, rows ops.Rows, cols int) {
	d.cpu.GatherRows(host(out), host(table), rows, cols)
}

func (d device) AddRow(out, row ops.Buffer, rows, cols int, acc bool) {
	d.cpu.AddRow(host(out), host(row), rows, cols, acc)
}

func (d device) ColSum(out, x ops.Buffer, rows, cols int, acc bool) {
	d.cpu.ColSum(host(out), host(x), rows, cols, acc)
}

func (d device) Sum(out, x ops.Buffer, acc bool)    { d.cpu.Sum(host(out), host(x), acc) }
func (d device) Spread(out, x ops.Buffer, acc bool) { d.cpu.Spread(host(out), host(x), acc) }

func (d device) RowScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	d.cpu.RowScale(host(out), host(x), host(w), rows, cols, acc)
}

func (d device) RowDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	d.cpu.RowDot(host(out), host(x), host(y), rows, cols, acc)
}

func (d device) CopyCols(out ops.Buffer, outCols, outAt int, x ops.Buffer, xCols, xAt, rows, cols int, acc bool) {
	d.cpu.CopyCols(host(out), outCols, outAt, host(x), xCols, xAt, rows, cols, acc)
}

func (d device) Binary(op ops.BinaryOp, out, a, b ops.Buffer, acc bool) {
	d.cpu.Binary(op, host(out), host(a), host(b), acc)
}

func (d device) Unary(op ops.UnaryOp, out, x ops.Buffer, alpha float32, acc bool) {
	d.cpu.Unary(op, host(out), host(x), alpha, acc)
}

func (d device) UnaryGrad(op ops.UnaryOp, dx, dy, x, y ops.Buffer, alpha float32, acc bool) {
	d.cpu.UnaryGrad(op, host(dx), host(dy), host(x), host(y), alpha, acc)
}

func (d device) LogSoftmax(y, x ops.Buffer, rows, cols int) {
	d.cpu.LogSoftmax(host(y), host(x), rows, cols)
}

func (d device) LogSoftmaxGrad(dx, dy, y ops.Buffer, rows, cols int, acc bool) {
	d.cpu.LogSoftmaxGrad(host(dx), host(dy), host(y), rows, cols, acc)
}

func (d device) L2Normalize(y, norm, x ops.Buffer, rows, cols int) {
	d.cpu.L2Normalize(host(y), host(norm), host(x), rows, cols)
}

func (d device) L2NormalizeGrad(dx, dy, y, norm ops.Buffer, rows, cols int, acc bool) {
	d.cpu.L2NormalizeGrad(host(dx), host(dy), host(y), host(norm), rows, cols, acc)
}

func (d device) Dropout(out, mask, x ops.Buffer, rows, cols int, k ops.DropoutKey) {
	d.cpu.Dropout(host(out), host(mask), host(x), rows, cols, k)
}

func (d device) Mask(out, x, mask ops.Buffer, rows, cols int, scale float32, acc bool) {
	d.cpu.Mask(host(out), host(x), host(mask), rows, cols, scale, acc)
}

func (d device) SpMM(op tensor.Op, out, arg ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	d.cpu.SpMM(op, host(out), host(arg), b, host(h), cols)
}

func (d device) SpMMGrad(op tensor.Op, dh, dOut, arg ops.Buffer, b *graphops.Block, cols int, acc bool) {
	d.cpu.SpMMGrad(op, host(dh), host(dOut), host(arg), b, cols, acc)
}

func (d device) GatherSrc(msg ops.Buffer, b *graphops.Block, h ops.Buffer, cols int) {
	d.cpu.GatherSrc(host(msg), b, host(h), cols)
}

func (d device) ScatterSrc(dh ops.Buffer, b *graphops.Block, dMsg ops.Buffer, cols int, acc bool) {
	d.cpu.ScatterSrc(host(dh), b, host(dMsg), cols, acc)
}

func (d device) Segment(op tensor.Op, out, arg ops.Buffer, b *graphops.Block, msg ops.Buffer, cols int, acc bool) {
	d.cpu.Segment(op, host(out), host(arg), b, host(msg), cols, acc)
}

func (d device) SegmentGrad(op tensor.Op, dMsg, dOut, arg ops.Buffer, b *graphops.Block, cols int, acc bool) {
	d.cpu.SegmentGrad(op, host(dMsg), host(dOut), host(arg), b, cols, acc)
}

func (d device) ColScale(out, x, w ops.Buffer, rows, cols int, acc bool) {
	d.cpu.ColScale(host(out), host(x), host(w), rows, cols, acc)
}

func (d device) ColDot(out, x, y ops.Buffer, rows, cols int, acc bool) {
	d.cpu.ColDot(host(out), host(x), host(y), rows, cols, acc)
}

func (d device) Transpose(out, x ops.Buffer, rows, cols int, acc bool) {
	d.cpu.Transpose(host(out), host(x), rows, cols, acc)
}

func (d device) RowNorm(y, inv, x ops.Buffer, rows, cols int, eps float32) {
	d.cpu.RowNorm(host(y), host(inv), host(x), rows, cols, eps)
}

func (d device) ColMeans(mean, minus, sum ops.Buffer, n int) {
	d.cpu.ColMeans(host(mean), host(minus), host(sum), n)
}

func (d device) ColInverses(variance, inv, sum ops.Buffer, n int, eps float64) {
	d.cpu.ColInverses(host(variance), host(inv), host(sum), n, eps)
}

func (d device) Track(y, x ops.Buffer, keep, share float64) {
	d.cpu.Track(host(y), host(x), keep, share)
}

func (d device) RowNormGrad(dx, dy, y, inv ops.Buffer, rows, cols int, acc bool) {
	d.cpu.RowNormGrad(host(dx), host(dy), host(y), host(inv), rows, cols, acc)
}

func (d device) SpMMWeighted(out ops.Buffer, b *graphops.Block, w ops.Buffer, heads int, h ops.Buffer, cols int, acc bool) {
	d.cpu.SpMMWeighted(host(out), b, host(w), heads, host(h), cols, acc)
}

func (d device) SpMMWeightedGrad(dh, dOut, w ops.Buffer, heads int, b *graphops.Block, cols int, acc bool) {
	d.cpu.SpMMWeightedGrad(host(dh), host(dOut), host(w), heads, b, cols, acc)
}

func (d device) EdgeDot(dw ops.Buffer, b *graphops.Block, dOut, h ops.Buffer, heads, cols int, acc bool) {
	d.cpu.EdgeDot(host(dw), b, host(dOut), host(h), heads, cols, acc)
}

func kindsOnHost(t ops.Kinds) ops.Kinds {
	t.Shares = host(t.Shares)
	return t
}

func (d device) SpMMTyped(out ops.Buffer, b *graphops.Block, t ops.Kinds, coef ops.Buffer, bases int, h ops.Buffer, rows *ops.Rows, cols int) {
	d.cpu.SpMMTyped(host(out), b, kindsOnHost(t), host(coef), bases, host(h), rows, cols)
}

func (d device) SpMMTypedGrad(dh, dOut ops.Buffer, b *graphops.Block, t ops.Kinds, coef ops.Buffer, bases, cols int, acc bool) {
	d.cpu.SpMMTypedGrad(host(dh), host(dOut), b, kindsOnHost(t), host(coef), bases, cols, acc)
}

func (d device) TypedDot(dCoef ops.Buffer, b *graphops.Block, t ops.Kinds, dOut, h ops.Buffer, bases, cols int, acc bool) {
	d.cpu.TypedDot(host(dCoef), b, kindsOnHost(t), host(dOut), host(h), bases, cols, acc)
}

func (d device) EdgeSoftmax(y ops.Buffer, b *graphops.Block, x ops.Buffer, cols int) {
	d.cpu.EdgeSoftmax(host(y), b, host(x), cols)
}

func (d device) EdgeSoftmaxGrad(dx, dy, y ops.Buffer, b *graphops.Block, cols int, acc bool) {
	d.cpu.EdgeSoftmaxGrad(host(dx), host(dy), host(y), b, cols, acc)
}

func (d device) SparseDense(out ops.Buffer, b *graphops.Block, values ops.Buffer) {
	d.cpu.SparseDense(host(out), b, host(values))
}

func (d device) SparseDropout(out ops.Buffer, b *graphops.Block, values ops.Buffer, k ops.DropoutKey) {
	d.cpu.SparseDropout(host(out), b, host(values), k)
}
