package npy

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// Array is an array whose elements can be read repeatedly from the beginning, a block at a time, so
// that they can be checked without holding them in memory.
type Array struct {
	Name    string // for errors
	Type    Type
	Shape   []int
	Fortran bool
	// Open opens the elements' bytes in memory order. Reading fails if there are fewer or more than
	// the shape implies, or if they are damaged.
	Open func() (io.ReadCloser, error)
}

// InMemory returns an array whose elements are in memory.
func InMemory(name string, t Type, shape []int, fortran bool, data []byte) *Array {
	return &Array{Name: name, Type: t, Shape: shape, Fortran: fortran, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

// Len returns the number of elements. It is at most 2^63-1, because the number of bytes from Open
// is.
func (a *Array) Len() int64 {
	n, _ := Count(a.Shape)
	return n
}

// Describe formats the type and the shape for errors: "int64 [3, 4]".
func (a *Array) Describe() string { return a.Type.String() + " " + ShapeString(a.Shape) }

// Is returns an error if the array does not have the given number of dimensions, or if its elements
// are not numbers (with whole: not whole numbers).
func (a *Array) Is(dims int, whole bool) error {
	what := "numbers"
	if whole {
		what = "whole numbers"
	}
	if len(a.Shape) != dims || !a.Type.Number() || whole && !a.Type.Whole() {
		return fmt.Errorf("%s is %s; an array of %d dimensions of %s was expected", a.Name, a.Describe(), dims, what)
	}
	return nil
}

// At returns the row-major position of the i-th element in memory: i, except for arrays in
// column-major (Fortran) order.
func (a *Array) At(i int64) int64 {
	if !a.Fortran {
		return i
	}
	var at int64
	for _, dim := range a.Shape { // the first dimension is the one that varies fastest
		at = at*int64(dim) + i%int64(dim)
		i /= int64(dim)
	}
	return at
}

const blockElements = 8 << 10

// EachInt calls visit for blocks of elements, which must be whole numbers, in memory order (see
// [Array.At]), until visit returns an error: xs are the elements from element at on. Cost: one
// pass, and memory for one block.
func (a *Array) EachInt(visit func(at int64, xs []int64) error) error {
	return each(a, a.Type.Ints, visit)
}

// EachFloat is like EachInt, for numbers of any type, converted to float32.
func (a *Array) EachFloat(visit func(at int64, xs []float32) error) error {
	return each(a, a.Type.Floats, visit)
}

// CountLost returns how many numbers are whole and another one in float32, or become 0 there. Cost: one pass for float64
// and wide whole numbers; nothing for other types, whose numbers float32 has.
func (a *Array) CountLost() (n int64, err error) {
	if a.Type.Size < 4 || a.Type.Kind == 'f' && a.Type.Size < 8 {
		return 0, nil
	}
	err = each(a, a.Type.lost, func(_ int64, xs []bool) error {
		for _, x := range xs {
			if x {
				n++
			}
		}
		return nil
	})
	return n, err
}

// lost reports which of the first len(dst) elements of src float32 cannot hold.
func (t Type) lost(dst []bool, src []byte) {
	if t.Kind == 'f' {
		order := t.order()
		for i := range dst {
			x := math.Float64frombits(order.Uint64(src[8*i:]))
			y := float64(float32(x))
			dst[i] = x == math.Trunc(x) && y != x || x != 0 && y == 0
		}
		return
	}
	xs := make([]int64, len(dst))
	t.Ints(xs, src)
	for i, x := range xs {
		y := float32(x)
		dst[i] = y >= 1<<63 || int64(y) != x
	}
}

func each[T any](a *Array, decode func([]T, []byte), visit func(int64, []T) error) error {
	r, err := a.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	n := a.Len()
	size := int(min(n, blockElements))
	raw, xs := make([]byte, size*a.Type.Size), make([]T, size)
	for at := int64(0); at < n; {
		k := int(min(n-at, int64(size)))
		if got, err := io.ReadFull(r, raw[:k*a.Type.Size]); err != nil {
			return cut(err, "%s ends at byte %d of its %d elements' bytes", a.Name, at*int64(a.Type.Size)+int64(got), n)
		}
		decode(xs[:k], raw)
		if err := visit(at, xs[:k]); err != nil {
			return err
		}
		at += int64(k)
	}
	// Checksums are compared at the end of the input.
	if k, err := io.ReadFull(r, make([]byte, 1)); k != 0 {
		return fmt.Errorf("%s has bytes after its %d elements", a.Name, n)
	} else if err != io.EOF {
		return err
	}
	return nil
}
