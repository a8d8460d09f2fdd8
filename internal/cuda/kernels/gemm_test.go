package kernels

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/internal/gemm"
)

func TestGemm(t *testing.T) {
	each(t, func(g *gpu) {
		for _, s := range [][3]int{{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {31, 33, 32}, {33, 31, 65}, {65, 70, 16}, {3, 5, 1025}} {
			m, n, k := s[0], s[1], s[2]
			a, b := random(m*k, 1), random(k*n, 2)
			for form := range 4 {
				ta, tb := form&1 == 1, form&2 == 2
				name := fmt.Sprintf("gemm_%c%c_f32", "nt"[form&1], "nt"[form>>1])
				for _, acc := range []bool{false, true} {
					out, want := g.out(m*n, acc)
					term := gemm.Term{K: k, A: gemm.Operand{Data: a, Stride: k}, B: gemm.Operand{Data: b, Stride: n}}
					if ta {
						term.A = gemm.Operand{Data: a, Stride: m, Trans: true}
					}
					if tb {
						term.B = gemm.Operand{Data: b, Stride: k, Trans: true}
					}
					gemm.Multiply(m, n, want, n, []gemm.Term{term}, gemm.Options{Threads: 1, Acc: acc})
					x, y := put(g, a), put(g, b)
					g.run(name, Product(m, n, 1), out, x, y, m, n, k, max(k, 1), asFlag(acc))
					same(g, name, out, want, 256, s, acc)
					// The same product in chunks, whose results are then summed.
					const chunk = 100
					if chunks := (k + chunk - 1) / chunk; chunks > 1 {
						out, _ := g.out(m*n, acc)
						parts := g.room(4 * chunks * m * n)
						g.run(name, Product(m, n, chunks), parts, x, y, m, n, k, chunk, 0)
						g.columns(out, parts, 0, chunks, m*n, chunks, acc)
						same(g, name+" in chunks", out, want, 256, s, acc)
					}
				}
			}
		}
	})
}

// Chunks cover the inner dimension, none is empty, and there are not too many.
func TestChunks(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 0}, {1, 1, 1}, {256, 256, 300000}, {100000, 256, 100}, {64, 64, 511}, {64, 64, 513}, {0, 0, 9}} {
		c := InnerChunk(s[0], s[1], s[2])
		if n := (s[2] + c - 1) / c; n > 1 && (n > 512 || s[2]-(n-1)*c < 1 || c < 256) {
			t.Errorf("%v is cut into %d chunks of %d", s, n, c)
		}
	}
	if InnerChunk(100000, 256, 5000) != 5000 {
		t.Error("a product of many tiles is cut into chunks")
	}
	if c := RowChunk(1 << 20); c != 2048 || RowChunk(1024) != 1024 || RowChunk(1025) != 256 || RowChunk(0) != 1 {
		t.Errorf("2^20 rows are cut into chunks of %d, and 1025 rows into chunks of %d", c, RowChunk(1025))
	}
}
