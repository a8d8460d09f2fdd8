package dataset

import (
	"fmt"
	"iter"
	"math"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

// WriteNPY writes x [rows, cols], row-major, as a NumPy file of float32, completely or not at all,
// and synced to disk. If path is a pipe, a device or another file that is not regular, it is
// written to directly.
func WriteNPY(path string, rows, cols int, x []float32) error {
	if len(x) != rows*cols {
		return fmt.Errorf("dataset: writing %s: [%d,%d] needs %d values, but there are %d", path, rows, cols, rows*cols, len(x))
	}
	return writeNPY(path, npy.EncodeHeader(npyFloat32, rows, cols), x, math.Float32bits)
}

// WriteIDs writes ids, such as the part of each node, as a NumPy file of int32
// [len(ids)], as [WriteNPY]
// does.
func WriteIDs(path string, ids []int32) error {
	return writeNPY(path, npy.EncodeHeader(npyInt32, len(ids)), ids, func(v int32) uint32 { return uint32(v) })
}

// WriteIDRows is [WriteIDs] for rows of ids [rows, cols].
func WriteIDRows(path string, rows, cols int, ids []int32) error {
	if len(ids) != rows*cols {
		return fmt.Errorf("dataset: writing %s: [%d,%d] needs %d ids, but there are %d", path, rows, cols, rows*cols, len(ids))
	}
	return writeNPY(path, npy.EncodeHeader(npyInt32, rows, cols), ids, func(v int32) uint32 { return uint32(v) })
}

// WriteNPYRows is [WriteNPY] for a matrix whose rows come in pieces, in order, each of whole rows. An error of pieces
// ends writing, and no file appears. Memory: one piece.
func WriteNPYRows(path string, rows, cols int, pieces iter.Seq2[[]float32, error]) error {
	return writePieces(path, npy.EncodeHeader(npyFloat32, rows, cols), func(write func(x []float32) error) error {
		n := 0
		for x, err := range pieces {
			if err != nil {
				return err
			}
			if n += len(x); n > rows*cols {
				break
			}
			if err := write(x); err != nil {
				return err
			}
		}
		if n != rows*cols {
			return fmt.Errorf("writing %s: [%d,%d] needs %d values, but there are %d", path, rows, cols, rows*cols, n)
		}
		return nil
	}, math.Float32bits)
}

func writeNPY[T any](path string, header []byte, x []T, bits func(T) uint32) error {
	return writePieces(path, header, func(write func(x []T) error) error { return write(x) }, bits)
}

func writePieces[T any](path string, header []byte, pieces func(write func(x []T) error) error, bits func(T) uint32) error {
	if err := npy.WriteFile(path, header, pieces, bits); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return nil
}
