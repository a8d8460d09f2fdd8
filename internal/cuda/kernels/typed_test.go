package kernels

import (
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
)

// The sums over typed edges and their gradients have the CPU's bits, with shares and without.
func TestTyped(t *testing.T) {
	each(t, func(g *gpu) {
		for _, b := range graphs() {
			for _, cols := range []int{1, 5, 37} {
				for _, bases := range []int{1, 3} {
					d, edges := upload(g, b), b.NumEdges()
					kinds := ops.Kinds{N: 4, Types: make([]uint16, edges)}
					types := make([]int32, edges)
					for e := range types {
						types[e] = int32(e * 7 % 4)
						kinds.Types[e] = uint16(types[e])
					}
					shares, coef, h, dOut := random(edges, 1), random(4*bases, 2), random(b.NumSrc*cols, 3), random(b.NumDst*bases*cols, 4)
					coef[0] = 0 // an edge of weight 0 adds nothing
					for _, shared := range []bool{false, true} {
						at := uint64(0)
						if shared {
							kinds.Shares, at = buf(shares), put(g, shares)
						}
						want := make([]float32, b.NumDst*bases*cols)
						cpu.SpMMTyped(buf(want), b, kinds, buf(coef), bases, buf(h), nil, cols)
						out := g.room(4 * len(want))
						g.run("typed_sum_f32", Tiled(b.NumDst, bases*cols, 1), out, d.indptr, d.indices, put(g, h), put(g, types), at, put(g, coef), d.first, b.NumDst, cols, bases)
						same(g, "typed_sum_f32", out, want, 0, b)
						dh, wantH := g.out(b.NumSrc*cols, shared)
						cpu.SpMMTypedGrad(buf(wantH), buf(dOut), b, kinds, buf(coef), bases, cols, shared)
						acc := 0
						if shared {
							acc = 1
						}
						g.run("typed_back_f32", Tiled(b.NumSrc, cols, 1), dh, d.tIndptr, d.tDst, d.tEdge, put(g, dOut), put(g, types), at, put(g, coef), b.NumSrc, cols, bases, acc)
						same(g, "typed_back_f32", dh, wantH, 0, b)
					}
				}
			}
		}
	})
}
