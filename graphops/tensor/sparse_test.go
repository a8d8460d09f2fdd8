package tensor_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops/tensor"
)

// Dropout of a sparse matrix has the bits of dropout of the dense one, except for the sign of
// zeros, and its result is sparse too.
func TestSparseDropoutIsDense(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		rows, cols := rapid.IntRange(0, 9).Draw(r, "rows"), rapid.IntRange(0, 40).Draw(r, "cols")
		indptr, indices := []int64{0}, []int32(nil)
		var values []float32
		full := make([]float32, rows*cols)
		for row := range rows {
			for c := range cols {
				if rapid.IntRange(0, 3).Draw(r, "filled") == 0 {
					indices = append(indices, int32(c))
					values = append(values, float32(row-c))
					full[row*cols+c] = float32(row - c)
				}
			}
			indptr = append(indptr, int64(len(indices)))
		}
		ids := rapid.SliceOfN(rapid.Int32Range(0, math.MaxInt32), rows, rows).Draw(r, "ids")
		p := rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(r, "p")
		sp := &tensor.Space{IDs: ids}
		f := tensor.NewFwd(tensor.Config{Train: true, Seed: 3, Step: 2})
		want := f.Dropout(f.Input(rows, cols, full, sp), p)
		f2 := tensor.NewFwd(tensor.Config{Train: true, Seed: 3, Step: 2})
		if values == nil {
			values = []float32{}
		}
		got := f2.Dropout(f2.SparseInput(rows, cols, indptr, indices, values, sp), p)
		if !got.Sparse() || got.Space() != sp || got.Rows() != rows || got.Cols() != cols {
			r.Fatalf("the result is %v, sparse %v", got, got.Sparse())
		}
		if !slices.Equal(got.Data(), want.Data()) {
			r.Fatalf("the sparse result is %v, the dense one %v", got.Data(), want.Data())
		}
		if got.Sparse() {
			r.Fatal("Data leaves the tensor sparse")
		}
	})
}

// Taking full rows of a sparse input keeps their space.
func TestSparseRowsSpace(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{})
	x := f.SparseInput(3, 2, []int64{0, 1, 1, 3}, []int32{1, 0, 1}, []float32{5, 6, 7}, &tensor.Space{Start: 10})
	y := f.Rows(x, 1, 3)
	if !y.Sparse() || y.Space().ID(0) != 11 || !slices.Equal(y.Data(), []float32{0, 0, 6, 7}) {
		t.Errorf("rows 1 and 2 are %v of node %d", y.Data(), y.Space().ID(0))
	}
	if !x.Sparse() || !slices.Equal(x.Data(), []float32{0, 5, 0, 0, 6, 7}) {
		t.Errorf("the matrix is %v", x.Data())
	}
}

// A weight that is not finite affects every row of a dense product, but in a sparse product only
// the rows with a non-zero element for it.
func TestProductsKeepNaN(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{})
	nan := float32(math.NaN())
	w := f.Input(2, 1, []float32{nan, 1}, nil)
	dense := f.MatMul(f.Input(2, 2, []float32{0, 3, 2, 0}, nil), w).Data()
	sparse := f.MatMul(f.SparseInput(2, 2, []int64{0, 1, 2}, []int32{1, 0}, []float32{3, 2}, nil), w).Data()
	if dense[0] == dense[0] || dense[1] == dense[1] {
		t.Errorf("a dense product is %v, want NaN in both rows", dense)
	}
	if sparse[0] != 3 || sparse[1] == sparse[1] {
		t.Errorf("a sparse product is %v, want 3 and NaN", sparse)
	}
}

// Gathered rows of a sparse input are sparse, and equal those of the dense one: with values, after dropout, and
// where every element is 1; also of a part of its rows.
func TestSparseGather(t *testing.T) {
	t.Parallel()
	full := []float32{0, 3, 0, 0, 0, 0, 5, 0, 6, 7, 8, 0}
	indptr, indices := []int64{0, 1, 1, 3, 5}, []int32{1, 0, 2, 0, 1}
	for name, values := range map[string][]float32{"values": {3, 5, 6, 7, 8}, "ones": nil} {
		for _, rows := range [][]int32{{}, {1}, {2, 0, 2, 1}} {
			f, f2 := tensor.NewFwd(tensor.Config{Train: true, Seed: 4}), tensor.NewFwd(tensor.Config{Train: true, Seed: 4})
			dense := slices.Clone(full)
			for i := range dense {
				if values == nil && dense[i] != 0 {
					dense[i] = 1
				}
			}
			sp := &tensor.Space{Start: 7}
			x := f.Rows(f.Dropout(f.SparseInput(4, 3, indptr, indices, values, sp), 0.4), 1, 4)
			y := f2.Rows(f2.Dropout(f2.Input(4, 3, dense, sp), 0.4), 1, 4)
			got, want := f.Gather(x, rows), f2.Gather(y, rows)
			w := []float32{1, 10, 100}
			if !got.Sparse() || !slices.Equal(f.MatMul(got, f.Input(3, 1, w, nil)).Data(), f2.MatMul(want, f2.Input(3, 1, w, nil)).Data()) || !slices.Equal(got.Data(), want.Data()) {
				t.Errorf("%s, rows %v: sparse %v, %v, want %v", name, rows, got.Sparse(), got.Data(), want.Data())
			}
		}
	}
	f := tensor.NewFwd(tensor.Config{})
	x := f.SparseInput(4, 3, indptr, indices, nil, nil)
	defer func() {
		if recover() == nil {
			t.Error("a row that is not there was gathered")
		}
	}()
	f.Gather(x, []int32{4})
}

// UnitRows gives a bag of words that was divided by the sums of its rows its ones again, row by row, and keeps zeros, spaces and
// rows without elements.
func TestUnitRows(t *testing.T) {
	t.Parallel()
	f := tensor.NewFwd(tensor.Config{})
	sp := &tensor.Space{Start: 10}
	x := f.SparseInput(4, 3, []int64{0, 2, 2, 5, 6}, []int32{0, 2, 0, 1, 2, 1}, []float32{.5, .5, 3, -4, 5, 0}, sp)
	y := f.UnitRows(x)
	if !y.Sparse() || y.Space() != sp {
		t.Errorf("the result is sparse %v, in %v", y.Sparse(), y.Space())
	}
	rms := float32(math.Sqrt(50. / 3))
	want := []float32{1, 0, 1, 0, 0, 0, 3 / rms, -4 / rms, 5 / rms, 0, 0, 0}
	for i, v := range y.Data() {
		if math.Abs(float64(v-want[i])) > 1e-6 {
			t.Fatalf("the rows are %v, want %v", y.Data(), want)
		}
	}
	part := f.UnitRows(f.Rows(f.SparseInput(4, 3, []int64{0, 2, 2, 5, 6}, []int32{0, 2, 0, 1, 2, 1}, []float32{.5, .5, 3, -4, 5, 0}, sp), 2, 4)).Data()
	if !slices.Equal(part, y.Data()[6:]) {
		t.Errorf("rows 2 and 3 alone are %v, of all rows %v", part, y.Data()[6:])
	}
	ones := f.SparseInput(1, 2, []int64{0, 1}, []int32{1}, nil, &tensor.Space{})
	if got := f.UnitRows(ones).Data(); !slices.Equal(got, []float32{0, 1}) {
		t.Errorf("a bag of ones is %v", got)
	}
}

// A matrix that stays from pass to pass has the products and the gradient of one that is given in each pass.
func TestCompressedInput(t *testing.T) {
	t.Parallel()
	indptr, indices, values := []int64{0, 2, 2, 3}, []int32{0, 2, 1}, []float32{2, 3, -1}
	kept := tensor.NewCompressed(3, 3, indptr, indices, values)
	f := tensor.NewFwd(tensor.Config{})
	run := func(input func() *tensor.Tensor) (y, dw []float32) {
		f.Reset(tensor.Config{Grad: true})
		w := f.Leaf(2, 3, []float32{1, 2, 3, 4, 5, 6}, nil)
		out := f.Linear(input(), w, nil)
		y = slices.Clone(out.Data())
		if err := f.SumAll(f.Mul(out, out)).Backward(); err != nil {
			t.Fatal(err)
		}
		return y, slices.Clone(w.Grad())
	}
	y, dw := run(func() *tensor.Tensor { return f.SparseInput(3, 3, indptr, indices, values, &tensor.Space{}) })
	for pass := range 3 {
		y2, dw2 := run(func() *tensor.Tensor { return f.CompressedInput(kept, &tensor.Space{}) })
		if !slices.Equal(y, y2) || !slices.Equal(dw, dw2) {
			t.Fatalf("pass %d: %v and %v, want %v and %v", pass, y2, dw2, y, dw)
		}
	}
}
