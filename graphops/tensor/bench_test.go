package tensor

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/expect"
)

// randomBlock returns a block with dst destinations, which are the first of src sources, and deg
// random in-edges each.
func randomBlock(dst, src, deg int) *graphops.Block {
	r := rand.New(rand.NewPCG(1, 2))
	b := graphops.HostBlock{NumDst: dst, NumSrc: src, Indptr: make([]int64, dst+1), Indices: make([]int32, dst*deg)}.Block()
	for d := range dst {
		b.Indptr()[d+1] = int64((d + 1) * deg)
	}
	for e := range b.Indices() {
		b.Indices()[e] = r.Int32N(int32(src))
	}
	return b
}

// The dense part of a GraphSAGE layer on a batch of ogbn-arxiv, forward and backward: two products
// with bias, ReLU and dropout, and their gradients.
func BenchmarkAffine(b *testing.B) {
	const rows, in, out = 33529, 128, 256
	own, nbrs := expect.Normal(rows*in, 1), expect.Normal(rows*in, 2)
	param := func(rows, cols int) *Param {
		return &Param{Rows: rows, Cols: cols, W: expect.Normal(rows*cols, 3), G: make([]float32, rows*cols)}
	}
	wl, wr, bias := param(out, in), param(out, in), param(1, out)
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			b.ReportAllocs()
			f := NewFwd(Config{})
			for b.Loop() {
				f.Reset(Config{Train: true, Threads: threads})
				y := f.Add(f.Linear(f.Input(rows, in, nbrs, nil), f.Param(wl), f.Param(bias)), f.Linear(f.Input(rows, in, own, &ops.Space{}), f.Param(wr), nil))
				if err := f.SumAll(f.Dropout(f.ReLU(y), 0.5)).Backward(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(8*rows*in*out*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// Bytes counts the rows read, one per edge, and the rows written, one per destination.
func BenchmarkSpMM(b *testing.B) {
	const dst, src, deg, cols = 8192, 40000, 10, 128
	blk := randomBlock(dst, src, deg)
	blk.Transposed()
	be := ops.CPU(0)
	h, out, arg := ops.HostBuffer(expect.Normal(src*cols, 1)), be.Alloc(dst*cols), be.Alloc(dst*cols)
	dh := be.Alloc(src * cols)
	for _, op := range []ops.Op{ops.Sum, ops.Mean, ops.Max} {
		b.Run(op.String()+"/forward", func(b *testing.B) {
			for b.Loop() {
				be.SpMM(op, out, arg, blk, h, cols)
			}
			b.ReportMetric(4*cols*float64(dst*deg+dst)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
		b.Run(op.String()+"/backward", func(b *testing.B) {
			for b.Loop() {
				be.SpMMGrad(op, dh, out, arg, blk, cols, false)
			}
			b.ReportMetric(4*cols*float64(dst*deg+src)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}

func BenchmarkDropout(b *testing.B) {
	const rows, cols = 16384, 256
	be := ops.CPU(0)
	x, out, mask := ops.HostBuffer(expect.Normal(rows*cols, 1)), be.Alloc(rows*cols), be.Alloc(ops.MaskWords(rows, cols))
	k := ops.DropoutKey{Space: &ops.Space{}, Seed: 1, Threshold: 1 << 15, Scale: 2}
	for b.Loop() {
		be.Dropout(out, mask, x, rows, cols, k)
	}
	b.ReportMetric(rows*cols*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
}

func BenchmarkElementwise(b *testing.B) {
	const n = 1 << 22
	be := ops.CPU(0)
	x, y, out := ops.HostBuffer(expect.Normal(n, 1)), ops.HostBuffer(expect.Normal(n, 2)), be.Alloc(n)
	for _, s := range []struct {
		name  string
		bytes float64
		run   func()
	}{
		{"ReLU", 8, func() { be.Unary(ops.ReLUOp, out, x, 0, false) }},
		{"ReLUGrad", 12, func() { be.UnaryGrad(ops.ReLUOp, out, y, x, x, 0, false) }},
		{"Add", 12, func() { be.Binary(ops.AddOp, out, x, y, false) }},
		{"Accumulate", 12, func() { be.Unary(ops.ScaleOp, out, x, 1, true) }},
		{"ColSum256", 4, func() { be.ColSum(out, x, n/256, 256, false) }},
		{"LogSoftmax40", 8, func() { be.LogSoftmax(out, x, n/40, 40) }},
	} {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				s.run()
			}
			b.ReportMetric(s.bytes*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}

// One GraphSAGE layer, forward and backward. allocs/op and B/op are those of the steady state,
// which allocates no large buffers.
func BenchmarkLayer(b *testing.B) {
	const dst, src, deg, in, out = 4096, 20000, 10, 128, 256
	blk := randomBlock(dst, src, deg)
	data := expect.Normal(src*in, 1)
	wl := &Param{Rows: out, Cols: in, W: expect.Normal(in*out, 2), G: make([]float32, in*out)}
	wr := &Param{Rows: out, Cols: in, W: expect.Normal(in*out, 3), G: make([]float32, in*out)}
	f := NewFwd(Config{})
	step := func() {
		f.Reset(Config{Train: true, Seed: 1})
		h := f.Leaf(src, in, data, ops.SrcSpace(blk))
		y := f.Add(f.Linear(f.Aggregate(blk, h, ops.Mean), f.Param(wl), nil), f.Linear(f.Dst(blk, h), f.Param(wr), nil))
		y = f.Dropout(f.ReLU(y), 0.5)
		if err := f.SumAll(y).Backward(); err != nil {
			b.Fatal(err)
		}
	}
	step() // fills the arena
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(dst*deg)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
}
