package dataset

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
	"github.com/graphnb/graphnb/internal/atomicfile"
)

// ReadNPY reads a file of [WriteNPY], or any NumPy file of float32 [rows, cols] in row-major order,
// into new memory. The error names the file and its actual type.
func ReadNPY(path string) (*Matrix, error) {
	in, err := atomicfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	// Check the size first, so that a wrong header cannot make it allocate more memory than the
	// file has data.
	h, err := npy.ReadHeader(in)
	if err == nil {
		err = h.CheckSize(info.Size() - int64(h.Len))
	}
	if err != nil {
		return nil, readError(path, "%w", err)
	}
	file := make([]byte, info.Size())
	if _, err := in.ReadAt(file, 0); err != nil {
		return nil, fmt.Errorf("dataset: reading %s: %w", path, err)
	}
	a, err := parseNPY(file)
	if err != nil {
		return nil, readError(path, "%w", err)
	}
	if a.dtype != npyFloat32 || len(a.shape) != 2 {
		return nil, readError(path, "it is %s %s; it must be a matrix of float32", a.dtype.Descr(), npy.ShapeString(a.shape))
	}
	return &Matrix{Rows: a.shape[0], Cols: a.shape[1], F32: view[float32](a.data)}, nil
}
