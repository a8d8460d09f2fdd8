package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

// A narrow factor's chunks are computed as Cᵀ; the bits equal those of the same rows of a wider
// product, which is computed as C.
func TestTurnedChunks(t *testing.T) {
	testneed.NotShort(t, "it multiplies large matrices")
	onEachPath(t, func(t *testing.T) {
		for _, c := range []struct{ m, n, k int }{
			{16, 32, 600}, {16, 37, 1025}, {31, 64, 515}, {47, 256, 1024}, {48, 200, 700}, {112, 230, 900}, {128, 300, 513},
		} {
			for _, index := range []bool{false, true} {
				for threads := 1; threads <= 3; threads++ {
					if threads == 2 && testing.Short() {
						continue
					}
					r := rand.New(rand.NewPCG(uint64(c.m), uint64(c.k)))
					a, b := random(t, r, c.n, c.k, true, index), random(t, r, c.k, c.n, false, index)
					bias := make([]float32, c.n)
					was := make([]float32, c.n*c.n)
					for i := range was {
						was[i] = float32(r.NormFloat64())
					}
					for i := range bias {
						bias[i] = float32(r.NormFloat64())
					}
					product := func(m int) []float32 {
						out := append([]float32(nil), was[:m*c.n]...)
						Multiply(m, c.n, out, c.n, []Term{{K: c.k, A: a.op, B: b.op}}, Options{Threads: threads, Acc: true, Bias: bias})
						return out
					}
					same(t, fmt.Sprintf("%+v index %v threads %d", c, index, threads), product(c.m), product(c.n)[:c.m*c.n])
				}
			}
		}
	})
	for _, c := range []struct {
		m, n  int
		tB    bool
		turns bool
	}{
		{47, 256, false, true},
		{48, 96, false, true},
		{128, 256, false, true},
		{48, 95, false, false},
		{256, 128, false, false},
		{40, 256, false, false},
		{7, 64, false, false},
		{47, 256, true, false},
	} {
		p := avx512Like
		j := &job{path: &p, m: c.m, n: c.n, terms: []Term{{B: Operand{Trans: c.tB}}}}
		if got := j.turns(); got != c.turns {
			t.Errorf("%+v: computed as Cᵀ: %v", c, got)
		}
	}
}

// avx512Like has the panel widths of AVX-512 on any machine.
var avx512Like = path{width: 32, slim: 16}
