package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/internal/testneed"
)

// file returns a file with the given header text, preceded by its length and followed by zeros as
// data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func read(b []byte) ([]Tensor, map[string]string, error) {
	return Read(bytes.NewReader(b), int64(len(b)))
}

func same(a, b []Tensor) bool {
	return slices.EqualFunc(a, b, func(x, y Tensor) bool {
		return x.Name == y.Name && slices.Equal(x.Shape, y.Shape) && slices.EqualFunc(x.F32, y.F32, func(f, g float32) bool {
			return math.Float32bits(f) == math.Float32bits(g)
		})
	})
}

// The bytes of a file, laid out as the page that describes the format says.
func TestLayout(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, []Tensor{
		{Name: "w", Shape: []int{1, 2}, F32: []float32{1, -2}},
		{Name: "s", F32: []float32{0.5}},
	}, map[string]string{"k": "<v>"})
	if err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"k":"<v>"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"s":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	want := append(file(header, 0), 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f)
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zé".\\<0-9]{1,20}`)
		names := rapid.SliceOfNDistinct(name, 0, 6, rapid.ID).Draw(t, "names")
		meta := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "meta")
		var tensors []Tensor
		for _, n := range names {
			x := Tensor{Name: n, Shape: rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "shape")}
			size, _ := elements(x.Shape)
			for i := range size {
				x.F32 = append(x.F32, math.Float32frombits(rapid.Uint32().Draw(t, fmt.Sprint("value ", i))))
			}
			tensors = append(tensors, x)
		}
		var b bytes.Buffer
		if err := Write(&b, tensors, meta); err != nil {
			t.Fatal(err)
		}
		if n := binary.LittleEndian.Uint64(b.Bytes()); n%8 != 0 {
			t.Fatalf("a header of %d bytes", n)
		}
		got, gotMeta, err := read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !same(got, tensors) {
			t.Fatalf("got %v, want %v", got, tensors)
		}
		if len(gotMeta) != len(meta) {
			t.Fatalf("metadata %q, want %q", gotMeta, meta)
		}
		for k, v := range meta {
			if gotMeta[k] != v {
				t.Fatalf("metadata %q is %q, want %q", k, gotMeta[k], v)
			}
		}
	})
}

// Tensors longer than the buffers that they pass through are written and read correctly.
func TestLargeTensors(t *testing.T) {
	x := Tensor{Name: "x", Shape: []int{100_003}, F32: make([]float32, 100_003)}
	for i := range x.F32 {
		x.F32[i] = float32(i)
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := WriteFile(path, []Tensor{x}, nil); err != nil {
		t.Fatal(err)
	}
	got, _, err := ReadFile(path)
	if err != nil || !same(got, []Tensor{x}) {
		t.Errorf("read back %d tensors, %v", len(got), err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		tensors []Tensor
		meta    map[string]string
	}{
		"a shape that is not the length": {[]Tensor{{Name: "a", Shape: []int{2}, F32: make([]float32, 3)}}, nil},
		"a negative dimension":           {[]Tensor{{Name: "a", Shape: []int{-1}}}, nil},
		"two of a name":                  {[]Tensor{{Name: "a", Shape: []int{0}}, {Name: "a", Shape: []int{0}}}, nil},
		"the metadata's name":            {[]Tensor{{Name: metadataKey, Shape: []int{0}}}, nil},
		"a name that is not UTF-8":       {[]Tensor{{Name: "\xff", Shape: []int{0}}}, nil},
		"metadata that is not UTF-8":     {nil, map[string]string{"a": "\xff"}},
	} {
		if err := Write(&bytes.Buffer{}, tc.tensors, tc.meta); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"an empty file":       {nil, "0 bytes"},
		"a short file":        {[]byte("123456789"), "9 bytes"},
		"a huge header":       {append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "{}"...), "not a safetensors file"},
		"a cut header":        {file(`{"a":`, 0)[:11], "cut short"},
		"no object":           {file(`[]`, 0), "begin with {"},
		"no JSON":             {file(`{"a":}`, 0), "the header"},
		"text after it":       {file(`{} x`, 0), "1 bytes follow"},
		"not UTF-8":           {file("{\"\xff\":{}}", 0), "UTF-8"},
		"another type":        {file(`{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 2), `tensor "a" is of type "BF16"; only F32`},
		"a name twice":        {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), `"a" occurs twice`},
		"metadata of numbers": {file(`{"__metadata__":{"a":1}}`, 0), "not a string"},
		"metadata null":       {file(`{"__metadata__":{"a":null}}`, 0), "not a string"},
		"metadata twice":      {file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), "occurs twice"},
		"a gap":               {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "begins at byte 4"},
		"an overlap":          {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), `"b" begins at byte 4`},
		"data cut":            {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 7), "only 7"},
		"data left over":      {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 5), "1 bytes after"},
		"a wrong size":        {file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "12 bytes, and 8 bytes"},
		"a negative offset":   {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, 0), "offsets [-4 0]"},
		"one offset":          {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}}`, 0), "offsets [0]"},
		"no shape":            {file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), "shape"},
		"a product too large": {file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "shape"},
		"a negative shape":    {file(`{"a":{"dtype":"F32","shape":[-1,-4],"data_offsets":[0,16]}}`, 16), "shape"},
		"a fractional shape":  {file(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4), `tensor "a"`},
		"an unknown field":    {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"code":"x"}}`, 4), "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := read(tc.file)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A header may list tensors in any order; Read returns them in the order of their data.
func TestReadSortsByPlace(t *testing.T) {
	got, _, err := read(file(`{"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   `, 8))
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if _, _, err := ReadFile(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// A failed write leaves the earlier file and no other file.
func TestWriteFileIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	old := []Tensor{{Name: "old", Shape: []int{1}, F32: []float32{1}}}
	if err := WriteFile(path, old, nil); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []Tensor{{Name: "bad", Shape: []int{2}}}, nil); err == nil {
		t.Fatal("no error")
	}
	if err := WriteFile(filepath.Join(dir, "none", "w"), old, nil); err == nil {
		t.Error("writing into a directory that does not exist gave no error")
	}
	got, _, err := ReadFile(path)
	if err != nil || !same(got, old) {
		t.Errorf("got %v, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v)", entries, err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, []Tensor{{Name: "w", Shape: []int{2, 2}, F32: make([]float32, 4)}, {Name: "e", Shape: []int{0}}}, map[string]string{"a": "b"}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(file(`{}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Fuzz(func(t *testing.T, in []byte) {
		tensors, meta, err := read(in)
		if err != nil {
			return
		}
		// A file that Read accepts can be written again and has the same contents.
		var out bytes.Buffer
		if err := Write(&out, tensors, meta); err != nil {
			t.Fatalf("writing what Read accepted failed: %v", err)
		}
		again, againMeta, err := read(out.Bytes())
		if err != nil || !same(tensors, again) || len(meta) != len(againMeta) {
			t.Fatalf("%v %v was read back as %v %v (%v)", tensors, meta, again, againMeta, err)
		}
	})
}

// The Python package reads files written here, and Read reads files written by the package.
func TestPython(t *testing.T) {
	python := testneed.PythonWith(t, "safetensors.numpy")
	dir := t.TempDir()
	tensors := []Tensor{
		{Name: "convs.0.lin_l.weight", Shape: []int{2, 3}, F32: []float32{1, 2, 3, -4, float32(math.Inf(1)), 1e-45}},
		{Name: "é", Shape: []int{0, 4}},
		{Name: "scalar", Shape: []int{}, F32: []float32{7}},
	}
	if err := WriteFile(filepath.Join(dir, "go.safetensors"), tensors, map[string]string{"epoch": "3"}); err != nil {
		t.Fatal(err)
	}
	script := `
import sys
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
t = load_file(sys.argv[1] + "/go.safetensors")
assert {k: v.shape for k, v in t.items()} == {"convs.0.lin_l.weight": (2, 3), "é": (0, 4), "scalar": ()}, t
assert t["convs.0.lin_l.weight"].tolist() == [[1, 2, 3], [-4, float("inf"), 1.401298464324817e-45]], t
with safe_open(sys.argv[1] + "/go.safetensors", "np") as f:
    meta = f.metadata()
    assert meta["epoch"] == "3" and len(meta["gnb_sha256"]) == 64, meta
save_file(t, sys.argv[1] + "/py.safetensors", {"from": "python"})
`
	if out, err := exec.Command(python, "-c", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, meta, err := ReadFile(filepath.Join(dir, "py.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	byName := func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(got, byName)
	slices.SortFunc(tensors, byName)
	if !same(got, tensors) || meta["from"] != "python" {
		t.Errorf("got %v, %v", got, meta)
	}
}

// A change of any bit of a sealed file is detected.
func TestSealedFileNoticesEveryBit(t *testing.T) {
	testneed.NotShort(t, "it flips every bit of a file")
	path := filepath.Join(t.TempDir(), "best.safetensors")
	tensors := []Tensor{{Name: "a", Shape: []int{2, 2}, F32: []float32{1, -2, 0, 1e-30}}, {Name: "b", Shape: []int{1}, F32: []float32{3}}}
	meta := map[string]string{"format": "pt", "model": `"gnb_sha256":"` + noSum}
	if err := WriteFile(path, tensors, meta); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, read, err := ReadFile(path)
	if err != nil || !same(got, tensors) || !Sealed(read) || read["model"] != meta["model"] {
		t.Fatal(got, read, err)
	}
	if sum, err := Sum(path); err != nil || len(sum) != 64 || sum != read["gnb_sha256"] {
		t.Errorf("the sum is %q, %v", sum, err)
	}
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadFile(path); err == nil {
			t.Errorf("the change of bit %d of byte %d was not detected", bit%8, bit/8)
		}
	}
}

// A file of another program has no checksum and is accepted nevertheless.
func TestUnsealedFileIsRead(t *testing.T) {
	var b bytes.Buffer
	tensors := []Tensor{{Name: "a", Shape: []int{1}, F32: []float32{1}}}
	if err := Write(&b, tensors, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, meta, err := ReadFile(path)
	if err != nil || !same(got, tensors) || Sealed(meta) {
		t.Error(got, meta, err)
	}
	if sum, err := Sum(path); sum != "" || err != nil {
		t.Error(sum, err)
	}
}
