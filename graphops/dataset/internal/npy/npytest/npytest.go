// Package npytest makes valid and invalid .npz files for tests.
package npytest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Array is one array of a file: type and shape for its header, and its data, which may contradict
// them.
type Array struct {
	Name, Type, Shape string
	Data              []byte
	Fortran           bool // the data is in column-major order
}

// Of returns a one-dimensional array of numbers of a fixed-size type.
func Of[T bool | int32 | int64 | float32 | float64](name string, xs ...T) Array {
	var t string
	switch any(xs).(type) {
	case []bool:
		t = "|b1"
	case []int32:
		t = "<i4"
	case []int64:
		t = "<i8"
	case []float32:
		t = "<f4"
	case []float64:
		t = "<f8"
	}
	data, err := binary.Append(nil, binary.LittleEndian, xs)
	if err != nil {
		panic(err)
	}
	return Array{Name: name, Type: t, Shape: fmt.Sprintf("(%d,)", len(xs)), Data: data}
}

// Reshaped returns the array with another shape in its header.
func (a Array) Reshaped(shape string) Array { a.Shape = shape; return a }

// ColumnMajor returns the matrix, which has the given number of rows, in column-major (Fortran)
// order.
func (a Array) ColumnMajor(rows int) Array {
	size := int(a.Type[2] - '0')
	cols := len(a.Data) / size / rows
	data := make([]byte, 0, len(a.Data))
	for c := range cols {
		for r := range rows {
			at := (r*cols + c) * size
			data = append(data, a.Data[at:at+size]...)
		}
	}
	a.Data, a.Fortran = data, true
	return a
}

// NPY returns the content of a .npy file.
func (a Array) NPY() []byte {
	order := "False"
	if a.Fortran {
		order = "True"
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", a.Type, order, a.Shape)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	out := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	return append(append(out, dict...), a.Data...)
}

// Zip returns the content of a .npz file.
func Zip(t testing.TB, arrays ...Array) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, a := range arrays {
		f, err := w.Create(a.Name + ".npy")
		if err == nil {
			_, err = f.Write(a.NPY())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Write writes content as the file NAME.npz of a temporary directory.
func Write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".npz")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
