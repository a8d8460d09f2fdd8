package kernels

import (
	"testing"

	"github.com/graphnb/graphnb/internal/simd"
)

// The optimisers' kernels give the CPU's bits.
func TestOptimisers(t *testing.T) {
	each(t, func(g *gpu) {
		for _, n := range []int{0, 1, 31, 32, 33, 1025} {
			w, m, v, grad := random(n, 1), random(n, 2), random(n, 3), random(n, 4)
			for i := range v {
				v[i] *= v[i]
			}
			s := simd.AdamStep{Scale: 0.25, Decay: 0.01, B1: 0.9, C1: 0.1, B2: 0.999, C2: 0.001, Keep: 0.99, Size: 0.02, Root: 0.3, Eps: 1e-8}
			dw, dm, dv, dg := put(g, w), put(g, m), put(g, v), put(g, grad)
			g.run("adam_f32", Items(n), dw, dm, dv, dg, n, s.Scale, s.Decay, s.B1, s.C1, s.B2, s.C2, s.Keep, s.Size, s.Root, s.Eps)
			simd.Adam(w, m, v, grad, &s)
			same(g, "adam_f32 w", dw, w, 0, n)
			same(g, "adam_f32 m", dm, m, 0, n)
			same(g, "adam_f32 v", dv, v, 0, n)

			dw = put(g, w)
			g.run("sgd_f32", Items(n), dw, dg, n, float32(0.1), float32(0.5), float32(0.01))
			simd.SGD(w, grad, 0.1, 0.5, 0.01)
			same(g, "sgd_f32", dw, w, 0, n)

			for _, nesterov := range []bool{false, true} {
				dw, dm := put(g, w), put(g, m)
				g.run("momentum_f32", Items(n), dw, dm, dg, n, float32(0.1), float32(0.5), float32(0.01), float32(0.9), asFlag(nesterov))
				simd.Momentum(w, m, grad, 0.1, 0.5, 0.01, 0.9, nesterov)
				same(g, "momentum_f32 w", dw, w, 0, n, nesterov)
				same(g, "momentum_f32 b", dm, m, 0, n, nesterov)
			}
		}
	})
}
