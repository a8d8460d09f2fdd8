package safetensors

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

func fileOf(t *testing.T, header string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := os.WriteFile(path, append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+string(data)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each type becomes float32.
func TestReadConverted(t *testing.T) {
	le := binary.LittleEndian
	for kind, c := range map[string]struct {
		data []byte
		want []float32
	}{
		"F64":  {le.AppendUint64(le.AppendUint64(nil, math.Float64bits(0.1)), math.Float64bits(-1e300)), []float32{0.1, float32(math.Inf(-1))}},
		"F32":  {le.AppendUint32(nil, math.Float32bits(-2.5)), []float32{-2.5}},
		"F16":  {[]byte{0x00, 0x3c, 0x00, 0xc1}, []float32{1, -2.5}},
		"BF16": {[]byte{0x80, 0x3f, 0x20, 0xc0}, []float32{1, -2.5}},
		"I64":  {le.AppendUint64(nil, uint64(1<<40)), []float32{1 << 40}},
		"I32":  {le.AppendUint32(nil, ^uint32(6)), []float32{-7}},
		"I16":  {le.AppendUint16(nil, ^uint16(6)), []float32{-7}},
		"I8":   {[]byte{0xff, 3}, []float32{-1, 3}},
		"U64":  {le.AppendUint64(nil, math.MaxUint64), []float32{1 << 64}},
		"U32":  {le.AppendUint32(nil, math.MaxUint32), []float32{1 << 32}},
		"U16":  {le.AppendUint16(nil, 65535), []float32{65535}},
		"U8":   {[]byte{255}, []float32{255}},
		"BOOL": {[]byte{1, 0}, []float32{1, 0}},
	} {
		header := fmt.Sprintf(`{"a":{"dtype":%q,"shape":[%d],"data_offsets":[0,%d]},"__metadata__":{"from":"a test"}}`, kind, len(c.want), len(c.data))
		tensors, types, meta, err := ReadConverted(fileOf(t, header, c.data))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if len(tensors) != 1 || tensors[0].Name != "a" || !slices.Equal(tensors[0].F32, c.want) || types["a"] != kind || meta["from"] != "a test" {
			t.Errorf("%s: read %v of %v, %v; want %v", kind, tensors, types, meta, c.want)
		}
	}
	if len(numbers) != 13 {
		t.Errorf("%d types are read, and 13 are tested", len(numbers))
	}
}

// A file of a run is read as ReadFile reads it, and hostile files get a sentence.
func TestReadConvertedRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := WriteFile(path, []Tensor{{Name: "w", Shape: []int{40_000}, F32: make([]float32, 40_000)}}, nil); err != nil {
		t.Fatal(err)
	}
	tensors, _, meta, err := ReadConverted(path)
	if err != nil || len(tensors) != 1 || len(tensors[0].F32) != 40_000 || !Sealed(meta) {
		t.Fatalf("%d tensors, %v, %v", len(tensors), meta, err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file[len(file)-5] ^= 1
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := ReadConverted(path); err == nil || !strings.Contains(err.Error(), ErrDamaged.Error()) {
		t.Errorf("a changed file: %v", err)
	}
	for want, c := range map[string]struct {
		header string
		data   []byte
	}{
		`is of type "F8_E4M3"; the types BF16, BOOL, F16`: {`{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}`, []byte{1}},
		"16 bytes, and 4 bytes of data":                   {`{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)},
		"the file is cut short":                           {`{"a":{"dtype":"I8","shape":[9],"data_offsets":[0,9]}}`, make([]byte, 4)},
		"has shape [1000000000000000000 100]":             {`{"a":{"dtype":"I8","shape":[1000000000000000000,100],"data_offsets":[0,4]}}`, make([]byte, 4)},
		"does not begin with {":                           {`["a"]`, nil},
	} {
		if _, _, _, err := ReadConverted(fileOf(t, c.header, c.data)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "w.safetensors") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Files of the package safetensors, with NumPy's types, are read.
func TestReadConvertedOfPython(t *testing.T) {
	python := testneed.PythonWith(t, "safetensors.numpy")
	path := filepath.Join(t.TempDir(), "w.safetensors")
	script := `
import sys, numpy as np, safetensors.numpy
kinds = "float64 float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool".split()
safetensors.numpy.save_file({k: np.array([[0, 1, 7]]).astype(k) for k in kinds}, sys.argv[1])
`
	if out, err := exec.Command(python, "-c", script, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tensors, _, _, err := ReadConverted(path)
	if err != nil || len(tensors) != 12 {
		t.Fatalf("%d tensors, %v", len(tensors), err)
	}
	for _, x := range tensors {
		want := []float32{0, 1, 7}
		if x.Name == "bool" {
			want[2] = 1
		}
		if !slices.Equal(x.F32, want) || !slices.Equal(x.Shape, []int{1, 3}) {
			t.Errorf("%s is read as %v %v", x.Name, x.Shape, x.F32)
		}
	}
}

// Weights of another program, of any type of numbers, become float32.
func ExampleReadConverted() {
	dir, err := os.MkdirTemp("", "safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "half.safetensors")
	header := `{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+"\x80\x3f\x20\xc0"...)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	tensors, types, _, err := ReadConverted(path)
	fmt.Println(tensors[0].Name, types["w"], tensors[0].F32, err)
	// Output: w BF16 [1 -2.5] <nil>
}
