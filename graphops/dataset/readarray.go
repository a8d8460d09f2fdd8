package dataset

import (
	"fmt"
	"io"
	"math"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// ReadArray reads a NumPy file (.npy) of numbers of any type, byte order, number of dimensions and order of elements into new
// memory. values are in row-major order. float32 takes all numbers, rounded to the nearest; int64 takes whole numbers and
// bools alone. For a matrix of float32, [ReadNPY] is faster. The file may come from anywhere: its header is checked against
// its size before memory is allocated, and nothing in it is executed. The error names the file, and what it holds.
func ReadArray[T float32 | int64](path string) (shape []int, values []T, err error) {
	in, err := atomicfile.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("dataset: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("dataset: %w", err)
	}
	h, err := npy.ReadHeader(in)
	if err == nil {
		err = h.CheckSize(info.Size() - int64(h.Len))
	}
	if err != nil {
		return nil, nil, readError(path, "%w", err)
	}
	a := &npy.Array{Name: path, Type: h.Type, Shape: h.Shape, Fortran: h.Fortran, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(in), nil
	}}
	_, floats := any(T(0)).(float32)
	switch {
	case !h.Type.Number():
		return nil, nil, readError(path, "it is %s, which are no numbers", h.Describe())
	case !floats && !h.Type.Whole():
		return nil, nil, readError(path, "it is %s, which are no whole numbers; read it as float32", h.Describe())
	}
	values = make([]T, a.Len())
	if floats {
		err = a.EachFloat(func(at int64, xs []float32) error {
			for i, x := range xs {
				values[a.At(at+int64(i))] = T(x)
			}
			return nil
		})
	} else {
		big := h.Type.Kind == 'u' && h.Type.Size == 8
		err = a.EachInt(func(at int64, xs []int64) error {
			for i, x := range xs {
				if big && x == math.MaxInt64 {
					return fmt.Errorf("element %d is at least 2^63-1, more than int64 has", at+int64(i))
				}
				values[a.At(at+int64(i))] = T(x)
			}
			return nil
		})
	}
	if err != nil {
		return nil, nil, readError(path, "%w", err)
	}
	return h.Shape, values, nil
}
