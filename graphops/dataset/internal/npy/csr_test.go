package npy

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func ints(name string, xs ...int32) *Array {
	data, _ := binary.Append(nil, binary.LittleEndian, xs)
	return InMemory(name, Type{Kind: 'i', Size: 4}, []int{len(xs)}, false, data)
}

func floats(xs ...float32) *Array {
	data, _ := binary.Append(nil, binary.LittleEndian, xs)
	return InMemory("data", Type{Kind: 'f', Size: 4}, []int{len(xs)}, false, data)
}

func TestCheck(t *testing.T) {
	good := func() *Matrix {
		return &Matrix{Rows: 3, Cols: 4, Indptr: ints("indptr", 0, 2, 2, 3), Indices: ints("indices", 3, 0, 1), Data: floats(1, 2, 3)}
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name string
		edit func(m *Matrix)
		want string
	}{
		{"a column that is negative", func(m *Matrix) { m.Indices = ints("indices", 3, -1, 1) }, "entry 1 of indices is -1; the columns are 0 to 3"},
		{"a column beyond the last", func(m *Matrix) { m.Indices = ints("indices", 3, 0, 4) }, "entry 2 of indices is 4"},
		{"bounds that descend", func(m *Matrix) { m.Indptr = ints("indptr", 0, 2, 1, 3) }, "entry 2 of indptr is 1 after 2"},
		{"bounds that are negative", func(m *Matrix) { m.Indptr = ints("indptr", 0, -1, 1, 3) }, "entry 1 of indptr is -1"},
		{"bounds beyond the elements", func(m *Matrix) { m.Indptr = ints("indptr", 0, 9, 9, 9) }, "entry 1 of indptr is 9"},
		{"bounds that begin late", func(m *Matrix) { m.Indptr = ints("indptr", 1, 2, 2, 3) }, "entry 0 of indptr is 1"},
		{"bounds that end early", func(m *Matrix) { m.Indptr = ints("indptr", 0, 1, 1, 2) }, "indptr ends with 2, but indices has 3"},
		{"too few bounds", func(m *Matrix) { m.Indptr = ints("indptr", 0, 3) }, "indptr has 2 elements; 3 rows need 4"},
		{"too few values", func(m *Matrix) { m.Data = floats(1) }, "indices has 3 elements and data has 1"},
		{"an infinite value", func(m *Matrix) { m.Data = floats(1, inf, 1) }, "entry 1 of data is +Inf"},
		{"a NaN", func(m *Matrix) { m.Data = floats(1, 1, inf-inf) }, "entry 2 of data is NaN"},
		{"columns of fractions", func(m *Matrix) { m.Indices = floats(1, 2, 3) }, "data is float32 [3]; an array of 1 dimensions of whole numbers"},
		{"a negative shape", func(m *Matrix) { m.Rows = -1 }, "the shape is [-1, 4]"},
		{"a shape beyond int32", func(m *Matrix) { m.Cols = 1 << 40 }, "the shape is [3, 1099511627776]"},
		{"a shape too large for its elements", func(m *Matrix) { m.Cols = 1 << 30 }, "the shape must be wrong"},
	} {
		m := good()
		c.edit(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
	}
}

// Load agrees with a dense copy for any order and number of elements.
func TestLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 6).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "cols")
		withData := rapid.Bool().Draw(t, "data")
		indptr, indices, data := []int32{0}, []int32{}, []float32{}
		dense := make([]float32, rows*cols)
		for i := range rows {
			for range rapid.IntRange(0, 8).Draw(t, "elements") {
				c, x := rapid.IntRange(0, cols-1).Draw(t, "col"), float32(1)
				if withData {
					x = float32(rapid.IntRange(-1, 2).Draw(t, "value"))
				}
				indices, data = append(indices, int32(c)), append(data, x)
				dense[i*cols+c] += x
			}
			indptr = append(indptr, int32(len(indices)))
		}
		m := &Matrix{Rows: int64(rows), Cols: int64(cols), Indptr: ints("indptr", indptr...), Indices: ints("indices", indices...)}
		if withData {
			m.Data = floats(data...)
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		ptr, idx, values, err := m.Load()
		if err != nil || len(ptr) != rows+1 || values != nil && len(values) != len(idx) || ptr[rows] != int64(len(idx)) {
			t.Fatalf("%v %v %v %v", ptr, idx, values, err)
		}
		ones := true
		for i := range rows {
			row := idx[ptr[i]:ptr[i+1]]
			if !slices.IsSorted(row) || len(slices.Compact(slices.Clone(row))) != len(row) {
				t.Fatalf("row %d has the columns %v", i, row)
			}
			for k, c := range row {
				x := float32(1)
				if values != nil {
					x = values[ptr[i]+int64(k)]
				}
				if ones = ones && x == 1; x == 0 || dense[i*cols+int(c)] != x {
					t.Fatalf("row %d, column %d is %v, want %v", i, c, x, dense[i*cols+int(c)])
				}
				dense[i*cols+int(c)] = 0
			}
		}
		if slices.ContainsFunc(dense, func(x float32) bool { return x != 0 }) {
			t.Fatalf("elements of the dense copy are missing: %v", dense)
		}
		if ones != (values == nil) {
			t.Fatalf("the matrix counts as all ones: %v, but the values are %v", ones, values)
		}
	})
}
