package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
)

func TestGatherRowDotReshape(t *testing.T) {
	for _, rows := range [][]int32{{}, {2}, {2, 0, 2, 2, 1, 0}} {
		gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
			got := f.Gather(x[0], rows)
			for i, r := range rows {
				if !slices.Equal(got.Data()[2*i:2*i+2], x[0].Data()[2*r:2*r+2]) {
					t.Fatalf("row %d of %v is %v, want row %d of %v", i, rows, got.Data()[2*i:2*i+2], r, x[0].Data())
				}
			}
			return got
		}, gradcheck.Random(4, 2, 1))
	}
	gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		got, a, b := f.RowDot(x[0], x[1]), x[0].Data(), x[1].Data()
		if want := a[2]*b[2] + a[3]*b[3]; got.Rows() != 3 || got.Cols() != 1 || got.Data()[1]-want > 1e-5 || want-got.Data()[1] > 1e-5 {
			t.Fatalf("row 1 is %v, want %v", got.Data(), want)
		}
		return got
	}, gradcheck.Random(3, 2, 1), gradcheck.Random(3, 2, 2))
	// Both arguments are the same tensor.
	gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor { return f.RowDot(x[0], x[0]) }, gradcheck.Random(3, 2, 1))
	gradcheck.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		y := f.Reshape(x[0], 2, 6)
		if y.Rows() != 2 || y.Cols() != 6 || !slices.Equal(y.Data(), x[0].Data()) {
			t.Fatalf("[4,3] as [2,6] is [%d,%d] %v", y.Rows(), y.Cols(), y.Data())
		}
		return f.Mul(y, y)
	}, gradcheck.Random(4, 3, 1))
}

func TestGatherRowDotReshapeErrors(t *testing.T) {
	f := tensor.NewFwd(tensor.Config{})
	x, y := f.Input(3, 2, make([]float32, 6), nil), f.Input(2, 3, make([]float32, 6), nil)
	for want, of := range map[string]func(){
		"row -1 was asked for at position 1": func() { f.Gather(x, []int32{0, -1}) },
		"the shapes must be equal":           func() { f.RowDot(x, y) },
		"has not the elements of [4,2]":      func() { f.Reshape(x, 4, 2) },
		"begin at [0 2]; they must":          func() { f.Split(x, []int{0, 2}) },
		"begins at row 4 and ends at 3":      func() { f.Split(x, []int{0, 4, 3}) },
	} {
		func() {
			defer func() {
				if e, ok := recover().(*tensor.Error); !ok || !strings.Contains(e.Error(), want) {
					t.Errorf("got %v, want an error with %q", e, want)
				}
			}()
			of()
		}()
	}
}

// Rows of a table in the backend's memory are those of the same table in host memory, in sums too; a row that is not in the
// table is an error.
func TestBufferRows(t *testing.T) {
	table := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	ids := []int32{3, 0, 0}
	b := graphops.HostBlock{NumDst: 1, NumSrc: 3, Indptr: []int64{0, 2}, Indices: []int32{0, 2}}.Block()
	f := tensor.NewFwd(tensor.Config{})
	defer f.Close()
	buffer := f.Backend().Alloc(len(table))
	f.Backend().Upload(buffer, table)
	x := f.BufferRows(buffer, 2, ids, nil)
	if got := f.Aggregate(b, x, tensor.Sum).Data(); !slices.Equal(got, []float32{8, 10}) {
		t.Errorf("the sum is %v", got)
	}
	if got := x.Data(); !slices.Equal(got, []float32{7, 8, 1, 2, 1, 2}) {
		t.Errorf("the rows are %v", got)
	}
	for _, bad := range []int32{-1, 4} {
		func() {
			defer func() {
				if e, ok := recover().(*tensor.Error); !ok || !strings.Contains(e.Error(), "the table, which has 4 rows") {
					t.Errorf("row %d: %v", bad, e)
				}
			}()
			f.BufferRows(buffer, 2, []int32{0, bad}, nil)
		}()
	}
}
