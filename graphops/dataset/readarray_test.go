package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/internal/testneed"
)

func TestReadArray(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	put := func(dict string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, npyFile([2]byte{1, 0}, dict, data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A big-endian matrix in column-major order: [[1, 2, 3], [4, 5, 6]].
	var data []byte
	for _, x := range []float64{1, 4, 2, 5, 3, 6} {
		data = binary.BigEndian.AppendUint64(data, math.Float64bits(x))
	}
	put("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3), }", data)
	shape, x, err := ReadArray[float32](path)
	if err != nil || !slices.Equal(shape, []int{2, 3}) || !slices.Equal(x, []float32{1, 2, 3, 4, 5, 6}) {
		t.Errorf("read %v %v, %v", shape, x, err)
	}
	if _, _, err := ReadArray[int64](path); err == nil || !strings.Contains(err.Error(), "no whole numbers; read it as float32") {
		t.Errorf("fractions as whole numbers: %v", err)
	}
	put("{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }", binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 7), math.MaxUint64))
	if _, _, err := ReadArray[int64](path); err == nil || !strings.Contains(err.Error(), "element 1 is at least 2^63-1") {
		t.Errorf("a number above int64's: %v", err)
	}
	if _, x, err := ReadArray[float32](path); err != nil || x[0] != 7 {
		t.Errorf("as float32: %v, %v", x, err)
	}
	for want, file := range map[string][]byte{
		"it was cut off":                npyFile([2]byte{1, 0}, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", make([]byte, 11)),
		"not a .npy file":               []byte("1,2\n3,4\n"),
		"which are no numbers":          npyFile([2]byte{1, 0}, "{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", make([]byte, 8)),
		"it describes records":          npyFile([2]byte{1, 0}, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", make([]byte, 4)),
		"is too large":                  npyFile([2]byte{1, 0}, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", nil),
		"4611686018427387904":           npyFile([2]byte{1, 0}, "{'descr': '|i1', 'fortran_order': False, 'shape': (4611686018427387904,), }", make([]byte, 4)),
		"more than 2^63":                npyFile([2]byte{1, 0}, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", make([]byte, 4)),
		"the file holds":                npyFile([2]byte{1, 0}, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", []byte("cos\nsystem")),
		"its header is malformed":       npyFile([2]byte{1, 0}, "{'descr': __import__('os'), }", nil),
		"it ends within the header":     []byte("\x93NUMPY\x01\x00\xff\x00{"),
		"versions 1.0, 2.0 and 3.0 are": []byte("\x93NUMPY\x09\x00\x00\x00\x00\x00"),
	} {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, read := range []func() error{
			func() error { _, _, err := ReadArray[float32](path); return err },
			func() error { _, _, err := ReadArray[int64](path); return err },
		} {
			if err := read(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.npy") {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	if _, _, err := ReadArray[float32](filepath.Dir(path)); err == nil {
		t.Error("a folder was read")
	}
}

// Arrays of every type, order and number of dimensions that NumPy writes are read as NumPy converts them.
func TestReadArrayOfNumPy(t *testing.T) {
	python := testneed.PythonWith(t, "numpy")
	dir := t.TempDir()
	script := `
import sys, numpy as np
i = 0
for kind in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split():
    for order in "<>":
        for shape in [(), (0,), (24,), (4, 6), (2, 3, 4)]:
            for memory in "CF":
                n = int(np.prod(shape))
                x = np.arange(n).reshape(shape).astype(np.dtype(order + kind) if kind != "b1" else bool)
                np.save(f"{sys.argv[1]}/{i}.npy", np.array(x, order=memory))
                i += 1
print(i)
`
	out, err := exec.Command(python, "-c", script, dir).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "240" {
		t.Fatalf("%v: %s", err, out)
	}
	for i := range 240 {
		path := filepath.Join(dir, fmt.Sprint(i, ".npy"))
		shape, x, err := ReadArray[float32](path)
		if err != nil {
			t.Fatal(err)
		}
		want := [][]int{{}, {0}, {24}, {4, 6}, {2, 3, 4}}[i/2%5]
		isBool := i/20 == 11
		if !slices.Equal(shape, want) {
			t.Fatalf("file %d has the shape %v, want %v", i, shape, want)
		}
		for j, v := range x {
			if w := float32(j); v != w && (!isBool || v != min(w, 1)) {
				t.Fatalf("file %d has %v", i, x)
			}
		}
		if i/20 >= 3 { // whole numbers
			_, ints, err := ReadArray[int64](path)
			if err != nil || len(ints) != len(x) {
				t.Fatalf("file %d: %v", i, err)
			}
			for j, v := range ints {
				if float32(v) != x[j] {
					t.Fatalf("file %d has %v as int64 and %v as float32", i, ints, x)
				}
			}
		}
	}
}
