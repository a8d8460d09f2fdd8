package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
)

// draw holds the arguments of a dropout kernel: a key, and ids of one kind.
type draw struct {
	key   ops.DropoutKey
	ids32 []int32
	ids64 []int64
	start int64
}

func draws(rows int) []draw {
	ids32, ids64 := make([]int32, rows), make([]int64, rows)
	for r := range rows {
		ids32[r], ids64[r] = int32(7*r), int64(r)<<33+5
	}
	edges := graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, int64(rows)}, Indices: make([]int32, rows), EdgePos: ids64}.Block()
	key := ops.DropoutKey{Seed: 0x123456789abcdef0, Step: 5, C3: 0x20300003, Threshold: 20000, Scale: 1.5}
	all := []draw{{key, ids32, nil, 0}, {key, nil, ids64, 0}, {key, nil, nil, 1 << 30}, {key, nil, nil, 0}}
	all[0].key.Space = &tensor.Space{IDs: ids32}
	all[1].key.Space = tensor.EdgeSpace(edges)
	all[2].key.Space = &tensor.Space{Start: 1 << 30}
	all[3].key.Space = &tensor.Space{}
	all[3].key.Threshold, all[3].key.Scale = 1<<16, 0 // drops all elements
	return all
}

// args returns a kernel's own arguments, followed by those of the draw.
func (d draw) args(g *gpu, own ...any) []any {
	var a, b uint64
	if d.ids32 != nil {
		a = put(g, d.ids32)
	}
	if d.ids64 != nil {
		b = put(g, d.ids64)
	}
	k := d.key
	return append(own, a, b, d.start, k.Seed, uint32(k.Step), k.C3, k.Threshold, k.Scale)
}

// Masks and results have the CPU's bits.
func TestDropout(t *testing.T) {
	each(t, func(g *gpu) {
		for _, s := range shapes {
			r, c := s[0], s[1]
			bytes := r * ((c + 7) / 8)
			for _, d := range draws(r) {
				want, mask := make([]float32, r*c), make([]float32, ops.MaskWords(r, c))
				cpu.Dropout(buf(want), buf(mask), buf(matrix(r, c)), r, c, d.key)
				out, m := g.room(4*r*c), g.room(4*len(mask))
				g.run("dropout_f32", Items(bytes), d.args(g, out, m, put(g, matrix(r, c)), r, c)...)
				same(g, "dropout_f32", out, want, 0, s)
				sameMask(g, m, mask, r, c, d)
			}
		}
	})
}

// sameMask compares masks; the device's mask has no bits past the last column.
func sameMask(g *gpu, at uint64, want []float32, rows, cols int, args ...any) {
	g.t.Helper()
	width := (cols + 7) / 8
	for i, v := range get[uint8](g, at, rows*width) {
		w := uint8(buf(want).Words()[i/4] >> (i % 4 * 8))
		if n := cols - i%width*8; n < 8 {
			w &= 1<<n - 1
		}
		if v != w {
			g.t.Fatalf("byte %d of the mask is %08b, want %08b: %v", i, v, w, args)
		}
	}
}

func TestEpilogue(t *testing.T) {
	each(t, func(g *gpu) {
		for _, s := range shapes {
			r, c := s[0], s[1]
			bytes := r * ((c + 7) / 8)
			for i, d := range draws(r) {
				for relu := range 2 {
					for drop := range 2 {
						e := ops.Epilogue{ReLU: relu == 1}
						keep := make([]float32, ops.MaskWords(r, c))
						if drop == 1 {
							e.Drop = &d.key
						}
						if relu+drop > 0 && i != 1 {
							e.Keep = buf(keep)
						}
						bias := matrix(1, c)
						if i != 2 {
							e.Bias = buf(bias)
						}
						want := matrix(r, c)
						x := put(g, want)
						one := make([]float32, c*c) // the identity, so that the product is x
						for j := range c {
							one[j*c+j] = 1
						}
						out := make([]float32, r*c)
						cpu.Affine(buf(out), r, c, []ops.Product{{X: buf(want), W: buf(one), K: c}}, e)
						var b, m uint64
						if e.Bias.N > 0 {
							b = put(g, bias)
						}
						if e.Keep.N > 0 {
							m = g.room(4 * len(keep))
						}
						d.key.Scale = e.Scale()
						g.run("epilogue_f32", Items(bytes), d.args(g, x, b, m, r, c, relu, drop)...)
						same(g, "epilogue_f32", x, out, 1, s, i, relu, drop)
						if m != 0 {
							sameMask(g, m, keep, r, c, d, relu, drop)
						}
					}
				}
			}
		}
	})
}

// Zeros have the same sign as on the CPU.
func TestSignOfZero(t *testing.T) {
	const r, c = 3, 13
	zero := float32(math.Copysign(0, -1))
	x := make([]float32, r*c)
	for i := range x {
		x[i] = []float32{zero, 0, -1}[i%3]
	}
	mask := make([]float32, ops.MaskWords(r, c))
	copy(buf(mask).Words(), []uint32{0x5ac3f017, 0x00000f5a})
	one := make([]float32, c*c)
	for j := range c {
		one[j*c+j] = 1
	}
	signs := func(g *gpu, what string, at uint64, want []float32) {
		for i, v := range get[float32](g, at, len(want)) {
			if math.Float32bits(v) != math.Float32bits(want[i]) {
				g.t.Fatalf("%s: element %d is %g, not %g", what, i, v, want[i])
			}
		}
	}
	each(t, func(g *gpu) {
		for acc := range 2 {
			want := slices.Clone(x)
			out := put(g, want)
			cpu.Mask(buf(want), buf(x), buf(mask), r, c, 2, acc == 1)
			g.run("mask_f32", Items(r*2), out, put(g, x), put(g, buf(mask).Words()), r, c, float32(2), acc)
			signs(g, fmt.Sprint("mask_f32 ", acc), out, want)
		}
		for mode := range 8 {
			d := draws(r)[0]
			e := ops.Epilogue{ReLU: mode&1 > 0}
			if mode&2 > 0 {
				e.Drop = &d.key
			}
			var bias uint64
			if mode&4 > 0 {
				e.Bias = buf(x[:c])
				bias = put(g, x[:c])
			}
			d.key.Scale = e.Scale()
			want := slices.Clone(x)
			// A product on the CPU never gives -0, so the test applies the epilogue step by step.
			for i := range want {
				if e.Bias.N > 0 {
					want[i] += x[i%c]
				}
			}
			if mode&3 > 0 {
				keep := make([]float32, ops.MaskWords(r, c))
				cpu.Affine(buf(make([]float32, r*c)), r, c, []ops.Product{{X: buf(want), W: buf(one), K: c}},
					ops.Epilogue{ReLU: e.ReLU, Drop: e.Drop, Keep: buf(keep)})
				cpu.Mask(buf(want), buf(want), buf(keep), r, c, e.Scale(), false)
			}
			at := put(g, x)
			g.run("epilogue_f32", Items(r*2), d.args(g, at, bias, uint64(0), r, c, mode&1, mode>>1&1)...)
			signs(g, fmt.Sprint("epilogue_f32 ", mode), at, want)
		}
	})
}

func TestSparse(t *testing.T) {
	each(t, func(g *gpu) {
		for _, h := range []graphops.HostBlock{
			{NumDst: 0, NumSrc: 3, Indptr: []int64{1}, Indices: []int32{9}},
			{NumDst: 3, NumSrc: 40, Indptr: []int64{1, 4, 4, 9}, Indices: []int32{9, 0, 7, 39, 1, 2, 8, 9, 31}},
		} {
			b := h.Block()
			d := upload(g, b)
			n := b.NumEdges()
			for _, values := range [][]float32{nil, random(n, 1)} {
				var v uint64
				if values != nil {
					v = put(g, values)
				}
				for _, k := range draws(b.NumDst) {
					want := make([]float32, n)
					cpu.SparseDropout(buf(want), b, buf(values), k.key)
					out := g.room(4 * n)
					g.run("sparse_dropout_f32", Rows(b.NumDst, 4), k.args(g, out, v, d.indptr, d.indices, d.first, b.NumDst)...)
					same(g, "sparse_dropout_f32", out, want, 0, b)
				}
				want := make([]float32, b.NumDst*b.NumSrc)
				cpu.SparseDense(buf(want), b, buf(values))
				out := put(g, make([]float32, len(want)))
				g.run("sparse_dense_f32", Rows(b.NumDst, 4), out, v, d.indptr, d.indices, d.first, b.NumDst, b.NumSrc)
				same(g, "sparse_dense_f32", out, want, 0, b)
			}
		}
	})
}
