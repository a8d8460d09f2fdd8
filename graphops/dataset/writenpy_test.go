package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A matrix written in pieces gives the same file as one written whole. After an error, or with a
// wrong number of values, no file is left.
func TestWriteNPYRows(t *testing.T) {
	const rows, cols = 700, 3
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(i) / 7
	}
	whole, inPieces := filepath.Join(t.TempDir(), "whole.npy"), filepath.Join(t.TempDir(), "pieces.npy")
	if err := WriteNPY(whole, rows, cols, x); err != nil {
		t.Fatal(err)
	}
	pieces := func(n int, last error) func(yield func([]float32, error) bool) {
		return func(yield func([]float32, error) bool) {
			for piece := range slices.Chunk(x[:n], 100*cols) {
				if !yield(piece, nil) {
					return
				}
			}
			if last != nil {
				yield(nil, last)
			}
		}
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		n    int
		last error
	}{{len(x) - cols, nil}, {len(x) - cols, broken}} {
		err := WriteNPYRows(inPieces, rows, cols, pieces(c.n, c.last))
		if _, e := os.Stat(inPieces); err == nil || e == nil || c.last != nil && !errors.Is(err, broken) {
			t.Errorf("%d values, then %v: %v; the file: %v", c.n, c.last, err, e)
		}
	}
	if err := WriteNPYRows(inPieces, rows-100, cols, pieces(len(x), nil)); err == nil {
		t.Error("too many values gave no error")
	}
	if err := WriteNPYRows(inPieces, rows, cols, pieces(len(x), nil)); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(inPieces); err != nil || !slices.Equal(a, b) {
		t.Errorf("the file written in pieces differs (%v)", err)
	}
}
