package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/simd"

	"github.com/graphnb/graphnb/internal/testneed"
)

// inSteps is a backend without the optional operations.
type inSteps struct{ ops.Backend }

// normed runs a layer norm on parameters, some of which may have no gradient, and returns its
// result and the gradients of x, weight and bias. With twice, x also has a second use.
func normed(t *testing.T, be ops.Backend, x []float32, cols int, want [3]bool, twice, train bool, op func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor) [][]float32 {
	t.Helper()
	rows := len(x) / cols
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	f := tensor.NewFwd(tensor.Config{Backend: be, Train: train, Seed: 5, Epoch: 2, Step: 3})
	w, b := param("w", 1, cols), param("b", 1, cols)
	for i := range w.W {
		w.W[i], b.W[i] = float32(r.NormFloat64()), float32(r.NormFloat64())/4
		if i%3 == 0 {
			b.W[i] = 0 // gives results of exactly 0, where ReLU has its corner
		}
	}
	if !want[1] {
		w.G = nil
	}
	if !want[2] {
		b.G = nil
	}
	space := &tensor.Space{IDs: make([]int32, rows)}
	for i := range space.IDs {
		space.IDs[i] = int32(3 * i)
	}
	in := f.Input(rows, cols, x, space)
	if want[0] {
		in = f.Leaf(rows, cols, x, space)
	}
	y := op(f, in, f.Param(w), f.Param(b))
	out := [][]float32{append([]float32(nil), y.Data()...)}
	if !train {
		return out
	}
	cot := expect.Normals(r, len(x))
	loss := f.SumAll(f.Mul(y, f.Input(rows, cols, cot, space)))
	if twice {
		loss = f.Add(loss, f.SumAll(f.Mul(in, in)))
	}
	if err := loss.Backward(); err != nil {
		t.Fatal(err)
	}
	if want[0] {
		out = append(out, append([]float32(nil), in.Grad()...))
	}
	return append(out, w.G, b.G)
}

// A layer norm fused with the operations after it has the bits of the separate operations, on any
// number of threads, so that runs recorded without the fusion resume with the same bits.
func TestLayerNormHasTheBitsOfItsSteps(t *testing.T) {
	testneed.NotUnderRace(t, "it computes for long, as the operations are tested in backendtest")
	type op = func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor
	steps := func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
		return f.AddRow(f.MulCols(f.RowNorm(x, 1e-5), w), b)
	}
	kinds := map[string][2]op{
		"alone": {
			func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor { return f.LayerNorm(x, w, b, 1e-5) }, steps,
		},
		"ReLU": {
			func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor { return f.LayerNormReLU(x, w, b, 1e-5, 0) },
			func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor { return f.ReLU(steps(f, x, w, b)) },
		},
		"ReLU, dropout": {
			func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
				return f.Dropout(f.LayerNormReLU(x, w, b, 1e-5, 0.4), 0.1) // the second dropout uses the next mask
			},
			func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
				return f.Dropout(f.Dropout(f.ReLU(steps(f, x, w, b)), 0.4), 0.1)
			},
		},
	}
	for _, shape := range [][2]int{{1, 1}, {3, 7}, {8, 16}, {9, 100}, {301, 33}, {700, 256}} {
		rows, cols := shape[0], shape[1]
		r := rand.New(rand.NewPCG(1, 1))
		x := make([]float32, rows*cols)
		for i := range x {
			if i/cols%4 != 1 { // results of a row of zeros are exactly the bias
				x[i] = float32(r.NormFloat64())
			}
		}
		for name, op := range kinds {
			for _, want := range [][3]bool{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, true}} {
				for _, twice := range []bool{false, true} {
					for _, train := range []bool{false, true} {
						is := normed(t, inSteps{ops.CPU(1)}, x, cols, want, twice, train, op[1])
						for who, be := range map[string]ops.Backend{"one thread": ops.CPU(1), "three threads": ops.CPU(3), "in steps": inSteps{ops.CPU(2)}} {
							got := normed(t, be, x, cols, want, twice, train, op[0])
							what := fmt.Sprintf("%d×%d, %s, %s, gradients %v, twice %v, train %v", rows, cols, name, who, want, twice, train)
							for k := range is {
								for i := range is[k] {
									if math.Float32bits(got[k][i]) != math.Float32bits(is[k][i]) {
										t.Fatalf("%s: element %d of result %d is %v, the steps give %v", what, i, k, got[k][i], is[k][i])
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// A batch norm fused with the operations after it has the bits of the separate operations, on any number of threads: a device computes
// it in steps.
func TestBatchNormHasTheBitsOfItsSteps(t *testing.T) {
	testneed.NotUnderRace(t, "it computes for long, as the operations are tested in backendtest")
	type op = func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor
	stats := func(f *tensor.Fwd, c int) (mean, variance *tensor.Tensor) {
		m, v := make([]float32, c), make([]float32, c)
		for i := range m {
			m[i], v[i] = float32(i%5)/8, float32(i%3)/2
		}
		return f.Input(1, c, m, nil), f.Input(1, c, v, nil)
	}
	kinds := map[string]op{
		"alone": func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
			y, mean, variance := f.BatchNorm(x, w, b, 1e-5)
			return f.AddRow(f.AddRow(y, mean), variance)
		},
		"ReLU": func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
			y, _, _ := f.BatchNormReLU(x, w, b, 1e-5, 0)
			return y
		},
		"ReLU, dropout": func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
			y, _, _ := f.BatchNormReLU(x, w, b, 1e-5, 0.4)
			return f.Dropout(y, 0.1) // the second dropout uses the next mask
		},
		"given": func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
			mean, variance := stats(f, x.Cols())
			return f.NormBy(x, mean, variance, w, b, 1e-5)
		},
		"given, ReLU": func(f *tensor.Fwd, x, w, b *tensor.Tensor) *tensor.Tensor {
			mean, variance := stats(f, x.Cols())
			return f.NormByReLU(x, mean, variance, w, b, 1e-5, 0.4)
		},
	}
	for _, shape := range [][2]int{{1, 1}, {3, 7}, {8, 16}, {9, 100}, {301, 33}, {700, 256}, {1500, 64}} {
		rows, cols := shape[0], shape[1]
		r := rand.New(rand.NewPCG(1, 1))
		x := expect.Normals(r, rows*cols)
		for name, op := range kinds {
			for _, want := range [][3]bool{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, true}} {
				for _, twice := range []bool{false, true} {
					for _, train := range []bool{false, true} {
						is := normed(t, inSteps{ops.CPU(1)}, x, cols, want, twice, train, op)
						for _, threads := range []int{1, 3} {
							got := normed(t, ops.CPU(threads), x, cols, want, twice, train, op)
							what := fmt.Sprintf("%d×%d, %s, %d threads, gradients %v, twice %v, train %v", rows, cols, name, threads, want, twice, train)
							for k := range is {
								for i := range is[k] {
									if math.Float32bits(got[k][i]) != math.Float32bits(is[k][i]) {
										t.Fatalf("%s: element %d of result %d is %v, the steps give %v", what, i, k, got[k][i], is[k][i])
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// BenchmarkLayerNormReLU alternates between fused and separate layer norm, ReLU and dropout,
// forward and backward. It reports nanoseconds per element, and the rate of the fused pass and that
// of a copy; the rate counts only necessary memory traffic (x, the result and what is kept for the
// gradient; two gradients and what was kept).
func BenchmarkLayerNormReLU(b *testing.B) {
	const rows, cols, moved = 33529, 256, 3 + 4
	x, space := ramp(rows*cols), &tensor.Space{}
	w, bias := param("w", 1, cols), param("b", 1, cols)
	one := ops.CPU(1)
	run := func(be ops.Backend) func() float64 {
		f := tensor.NewFwd(tensor.Config{})
		return func() float64 {
			f.Reset(tensor.Config{Backend: be, Train: true, Seed: 1})
			h := f.Leaf(rows, cols, x, space)
			begin := time.Now()
			y := f.LayerNormReLU(h, f.Param(w), f.Param(bias), 1e-5, 0.5)
			took := time.Since(begin)
			loss := f.SumAll(y)
			begin = time.Now()
			if err := loss.Backward(); err != nil {
				b.Fatal(err)
			}
			return (took + time.Since(begin)).Seconds()
		}
	}
	fused, steps := run(one), run(inSteps{one})
	fused()
	steps()
	limit := simd.CopyGBs(1)
	var ours, theirs []float64
	for b.Loop() {
		ours, theirs = append(ours, fused()), append(theirs, steps())
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	t := ours[len(ours)/2]
	b.ReportMetric(1e9*t/(rows*cols), "ns/elem")
	b.ReportMetric(1e9*theirs[len(theirs)/2]/(rows*cols), "in-steps-ns/elem")
	b.ReportMetric(4e-9*moved*rows*cols/t, "GB/s")
	b.ReportMetric(limit, "copy-GB/s")
}
