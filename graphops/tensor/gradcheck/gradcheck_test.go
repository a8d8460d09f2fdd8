package gradcheck_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

// recorder is a TB that records the reported failures.
type recorder struct{ said []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

var block = graphops.HostBlock{NumDst: 3, NumSrc: 5, Indptr: []int64{0, 2, 2, 5}, Indices: []int32{1, 3, 4, 0, 4}, SrcIDs: []int32{5, 6, 7, 8, 9}}.Block()

func randomParam(name string, rows, cols int) *tensor.Param {
	p := &tensor.Param{Name: name, Rows: rows, Cols: cols, W: make([]float32, rows*cols)}
	for i := range p.W {
		p.W[i] = float32(i*7%11)/11 - 0.4
	}
	return p
}

// Check accepts a correct layer with kinks (ReLU), dropout, parameters and two inputs.
func TestARightLayerPasses(t *testing.T) {
	w, bias := randomParam("w", 4, 6), randomParam("bias", 1, 4)
	before := slices.Clone(w.W)
	in := gradcheck.Random(5, 6, 1).In(tensor.SrcSpace(block))
	gradcheck.Checker{Config: tensor.Config{Train: true, Seed: 2}}.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		h := f.Dropout(f.ReLU(f.Linear(f.Aggregate(block, x[0], tensor.Mean), f.Param(w), f.Param(bias))), 0.3)
		return f.Mul(f.L2Normalize(h), f.Sigmoid(x[1]))
	}, in, gradcheck.Random(3, 4, 2), gradcheck.Param(w), gradcheck.Param(bias))
	if !slices.Equal(w.W, before) || w.G != nil {
		t.Error("the parameter was not restored")
	}
}

// wrong returns x² with a gradient that is wrong at column 1 by the given factor.
func wrong(factor float32) gradcheck.Func {
	return func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		a := x[0]
		return f.Custom("wrong", x, a.Rows(), a.Cols(), func(out []float32) {
			for i, v := range a.Data() {
				out[i] = v * v
			}
		}, func(dOut []float32, dIn [][]float32) {
			for i, v := range a.Data() {
				dIn[0][i] = 2 * v * dOut[i]
				if i%a.Cols() == 1 {
					dIn[0][i] *= factor
				}
			}
		})
	}
}

func TestAWrongGradientIsFound(t *testing.T) {
	var r recorder
	gradcheck.Check(&r, wrong(1.05), gradcheck.Data(2, 3, []float32{1, 2, 3, 4, 5, 6}))
	if len(r.said) != 1 || !strings.Contains(r.said[0], "the gradient of input 0 is wrong: at [") || !strings.Contains(r.said[0], "(2 of the 6 elements tried are off)") {
		t.Errorf("the report for a gradient that is 5 %% off is %q", r.said)
	}
	gradcheck.Check(t, wrong(1), gradcheck.Data(2, 3, []float32{1, 2, 3, 4, 5, 6}))
}

func TestAForgottenParameterIsFound(t *testing.T) {
	w := randomParam("w", 2, 2)
	var r recorder
	gradcheck.Check(&r, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		return f.MatMul(x[0], f.Input(2, 2, w.W, nil)) // a constant, where f.Param(w) is needed
	}, gradcheck.Random(3, 2, 1), gradcheck.Param(w))
	if len(r.said) != 1 || !strings.Contains(r.said[0], `parameter "w"`) {
		t.Errorf("the report for a parameter used as a constant is %q", r.said)
	}
}

func ExampleCheck() {
	var t recorder // in a test, its *testing.T
	gradcheck.Check(&t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		return f.Tanh(f.Aggregate(block, x[0], tensor.Sum))
	}, gradcheck.Random(block.NumSrc, 2, 1))
	fmt.Println(len(t.said), "complaints")
	// Output: 0 complaints
}
