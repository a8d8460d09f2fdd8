package kernels

import (
	"fmt"
	"testing"

	"github.com/graphnb/graphnb/graphops/ops"
)

// kernelCase is a kernel with the CPU's method as its reference.
type kernelCase struct {
	name  string
	exact bool // results must have the same bits
	n     func(r, c int) int
	run   func(g *gpu, out uint64, r, c int, acc bool)
	want  func(out []float32, r, c int, acc bool)
}

// matrix and matrix2 return the elements of two different r×c matrices.
func matrix(r, c int) []float32  { return random(r*c, 1) }
func matrix2(r, c int) []float32 { return random(r*c, 2) }

func area(r, c int) int   { return r * c }
func rowsOf(r, _ int) int { return r }
func colsOf(_, c int) int { return c }

func TestDense(t *testing.T) {
	for _, k := range denseCases() {
		t.Run(k.name, func(t *testing.T) {
			each(t, func(g *gpu) {
				for _, s := range shapes {
					for _, acc := range []bool{false, true} {
						r, c := s[0], s[1]
						n := k.n(r, c)
						at, want := g.out(n, acc)
						k.run(g, at, r, c, acc)
						k.want(want, r, c, acc)
						units := 16.0
						if k.exact {
							units = 0
						}
						near(g.t, fmt.Sprintf("%s of [%d,%d], acc %v", k.name, r, c, acc), get[float32](g, at, n), want, units)
					}
				}
			})
		})
	}
}

func denseCases() []kernelCase {
	cases := []kernelCase{
		{
			"spread_f32", true, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("spread_f32", Items(r*c), out, put(g, []float32{1.5}), r*c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) { cpu.Spread(buf(out), buf([]float32{1.5}), acc) },
		}, {
			"add_row_f32", true, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("add_row_f32", Rows(r, c), out, put(g, matrix(1, c)), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) { cpu.AddRow(buf(out), buf(matrix(1, c)), r, c, acc) },
		}, {
			"row_scale_f32", false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("row_scale_f32", Rows(r, c), out, put(g, matrix(r, c)), put(g, matrix(r, 1)), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.RowScale(buf(out), buf(matrix(r, c)), buf(matrix(r, 1)), r, c, acc)
			},
		}, {
			"add_rows_f32", true, area, // adds to all rows, in descending order
			func(g *gpu, out uint64, r, c int, acc bool) {
				ids := make([]int32, r)
				for i := range ids {
					ids[i] = int32(r - 1 - i)
				}
				if !acc { // the kernel always adds, so clear the output
					g.run("copy_cols_f32", Rows(r, c), out, c, put(g, make([]float32, r*c)), c, r, c, 0)
				}
				g.run("add_rows_f32", Rows(r, c), out, put(g, matrix(r, c)), put(g, ids), r, c)
			},
			func(out []float32, r, c int, acc bool) {
				x := matrix(r, c)
				for i := range r {
					for j := range c {
						if !acc {
							out[i*c+j] = 0
						}
						out[i*c+j] += x[(r-1-i)*c+j]
					}
				}
			},
		}, {
			"col_scale_f32", false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("col_scale_f32", Rows(r, c), out, put(g, matrix(r, c)), put(g, matrix(1, c)), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.ColScale(buf(out), buf(matrix(r, c)), buf(matrix(1, c)), r, c, acc)
			},
		}, {
			"row_dot_f32", false, rowsOf,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("row_dot_f32", Rows(r, c), out, put(g, matrix(r, c)), put(g, matrix2(r, c)), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.RowDot(buf(out), buf(matrix(r, c)), buf(matrix2(r, c)), r, c, acc)
			},
		}, {
			"col_dot_f32", false, colsOf,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.columns(out, put(g, matrix(r, c)), put(g, matrix2(r, c)), r, c, 100, acc)
			},
			func(out []float32, r, c int, acc bool) {
				cpu.ColDot(buf(out), buf(matrix(r, c)), buf(matrix2(r, c)), r, c, acc)
			},
		}, {
			"column sums", false, colsOf,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.columns(out, put(g, matrix(r, c)), 0, r, c, 300, acc)
			},
			func(out []float32, r, c int, acc bool) { cpu.ColSum(buf(out), buf(matrix(r, c)), r, c, acc) },
		}, {
			"sum_f32", false,
			func(int, int) int { return 1 },
			func(g *gpu, out uint64, r, c int, acc bool) {
				const chunk = 300
				parts := g.room(8 * (r*c/chunk + 1))
				g.run("sum_chunks_f32", Blocks((r*c+chunk-1)/chunk), parts, put(g, matrix(r, c)), r*c, chunk)
				g.run("sum_parts_f32", Blocks(1), out, parts, (r*c+chunk-1)/chunk, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) { cpu.Sum(buf(out), buf(matrix(r, c)), acc) },
		}, {
			"transpose_f32", true, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("transpose_f32", Transpose(r, c), out, put(g, matrix(r, c)), r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) { cpu.Transpose(buf(out), buf(matrix(r, c)), r, c, acc) },
		}, {
			"copy_cols_f32", true,
			func(r, c int) int { return r * (c + 2) },
			func(g *gpu, out uint64, r, c int, acc bool) {
				if !acc { // the kernel does not write the other columns, so clear them
					g.run("spread_f32", Items(r*(c+2)), out, put(g, []float32{0}), r*(c+2), 0)
				}
				g.run("copy_cols_f32", Rows(r, c), out+4, c+2, put(g, matrix(r, c+5))+8, c+5, r, c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.CopyCols(buf(out), c+2, 1, buf(matrix(r, c+5)), c+5, 2, r, c, acc)
			},
		}, {
			"mask_f32", false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("mask_f32", Items(r*((c+7)/8)), out, put(g, matrix(r, c)), put(g, maskOf(r, c)), r, c, float32(1.25), asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.Mask(buf(out), buf(matrix(r, c)), words(maskOf(r, c)), r, c, 1.25, acc)
			},
		},
	}
	for op := ops.AddOp; op <= ops.MulOp; op++ {
		cases = append(cases, kernelCase{
			fmt.Sprintf("binary_f32 %d", op), false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("binary_f32", Rounds(r*c), int64(op), out, put(g, matrix(r, c)), put(g, matrix2(r, c)), r*c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.Binary(op, buf(out), buf(matrix(r, c)), buf(matrix2(r, c)), acc)
			},
		})
	}
	for op := ops.ScaleOp; op <= ops.ReciprocalOp; op++ {
		y := func(r, c int) []float32 {
			y := make([]float32, r*c)
			cpu.Unary(op, buf(y), buf(matrix(r, c)), 0.2, false)
			return y
		}
		cases = append(cases, kernelCase{
			fmt.Sprintf("unary_f32 %d", op), false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				g.run("unary_f32", Rounds(r*c), int64(op), out, put(g, matrix(r, c)), float32(0.2), r*c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) { cpu.Unary(op, buf(out), buf(matrix(r, c)), 0.2, acc) },
		})
		if op == ops.ScaleOp {
			continue
		}
		cases = append(cases, kernelCase{
			fmt.Sprintf("unary_grad_f32 %d", op), false, area,
			func(g *gpu, out uint64, r, c int, acc bool) {
				v := y(r, c)
				if op == ops.ReLUOp || op == ops.LeakyReLUOp || op == ops.GELUOp {
					v = matrix(r, c)
				}
				g.run("unary_grad_f32", Rounds(r*c), int64(op), out, put(g, matrix2(r, c)), put(g, v), float32(0.2), r*c, asFlag(acc))
			},
			func(out []float32, r, c int, acc bool) {
				cpu.UnaryGrad(op, buf(out), buf(matrix2(r, c)), buf(matrix(r, c)), buf(y(r, c)), 0.2, acc)
			},
		})
	}
	return append(cases, normCases()...)
}

// columns sums columns, in chunks of `chunk` rows.
func (g *gpu) columns(out, x, y uint64, r, c, chunk int, acc bool) {
	chunks := max((r+chunk-1)/chunk, 1)
	if chunks == 1 {
		g.run("col_dot_f32", Total(r, c), out, x, y, r, c, chunk, asFlag(acc))
		return
	}
	parts := g.room(4 * chunks * c)
	g.run("col_dot_f32", Columns(chunks, c), parts, x, y, r, c, chunk, 0)
	g.run("col_dot_f32", Total(chunks, c), out, parts, 0, chunks, c, chunks, asFlag(acc))
}

func maskOf(r, c int) []uint32 {
	m := make([]uint32, ops.MaskWords(r, c))
	for i, v := range random(len(m), 5) {
		m[i] = uint32(int32(v * 1e9))
	}
	return m
}
