package dataset

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops/dataset/internal/npy"
)

const npyMagic = "\x93NUMPY"

// npyFile returns a file with any header text.
func npyFile(version [2]byte, dict string, data []byte) []byte {
	b := append([]byte(npyMagic), version[:]...)
	if version[0] == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(dict)))
	}
	return append(append(b, dict...), data...)
}

// padded pads a dict to the offset of the data of an .npy file.
func padded(version [2]byte, dict string) string {
	head := 10
	if version[0] > 1 {
		head = 12
	}
	return dict + strings.Repeat(" ", (npy.Align-(head+len(dict)+1)%npy.Align)%npy.Align) + "\n"
}

var v1 = [2]byte{1, 0}

func TestParseNPY(t *testing.T) {
	data := rawBytes([]int32{1, -2, 3, 4, 5, 6})
	for _, c := range []struct {
		name    string
		version [2]byte
		dict    string
		shape   []int
	}{
		{"as NumPy writes it", v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }", []int{6}},
		{"matrix", v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", []int{2, 3}},
		{"version 2", [2]byte{2, 0}, "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }", []int{6}},
		{"version 3", [2]byte{3, 0}, "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }", []int{6}},
		{"another order", v1, `{"shape": (3, 2), "fortran_order": False, "descr": "<i4"}`, []int{3, 2}},
		{"without spaces", v1, "{'descr':'<i4','fortran_order':False,'shape':(6,1)}", []int{6, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := parseNPY(npyFile(c.version, padded(c.version, c.dict), data))
			if err != nil {
				t.Fatal(err)
			}
			if a.dtype != npyInt32 || !slices.Equal(a.shape, c.shape) || !bytes.Equal(a.data, data) {
				t.Errorf("got %v %v, %d bytes", a.dtype, a.shape, len(a.data))
			}
		})
	}
}

// malformed lists files that the parser refuses; they also seed the fuzz test.
var malformed = []struct {
	name string
	file []byte
	want string
}{
	{"empty", nil, "not a .npy file"},
	{"another format", []byte("PK\x03\x04 and so on"), "not a .npy file"},
	{"version 9", npyFile([2]byte{9, 0}, "{}", nil), "version 9.0"},
	{"version 1.7", npyFile([2]byte{1, 7}, "{}", nil), "version 1.7"},
	{"cut within the length", []byte(npyMagic + "\x02\x00\x76\x00"), "ends within the header"},
	{"cut within the header", npyFile(v1, "{'descr': '<i4'", nil)[:20], "ends within the header"},
	{"header of 4 GB", append([]byte(npyMagic+"\x02\x00\xff\xff\xff\xff"), "{"...), "claims 4294967295 bytes"},
	{"no dict", npyFile(v1, "[1, 2]", nil), "does not begin with {"},
	{"no end", npyFile(v1, "{'descr': '<i4'", nil), "no } at its end"},
	{"key missing", npyFile(v1, "{'descr': '<i4', 'shape': (0,)}", nil), `"fortran_order" is missing`},
	{"key twice", npyFile(v1, "{'descr': '<i4', 'descr': '<i4'}", nil), "occurs twice"},
	{"key unknown", npyFile(v1, "{'descr': '<i4', 'evil': 1}", nil), "unknown key"},
	{"key without colon", npyFile(v1, "{'descr' '<i4'}", nil), "no colon"},
	{"no string", npyFile(v1, "{descr: 1}", nil), "a string was expected"},
	{"string without end", npyFile(v1, "{'descr", nil), "does not end"},
	{"escape", npyFile(v1, `{'desc\x72': 1}`, nil), "escape"},
	{"an expression", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (__import__('os'),)}", nil), "whole numbers"},
	{"records", npyFile(v1, "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (0,)}", nil), "records"},
	{"objects", npyFile(v1, "{'descr': '|O', 'fortran_order': False, 'shape': (0,)}", nil), `"|O"`},
	{"big-endian", npyFile(v1, "{'descr': '>f4', 'fortran_order': False, 'shape': (0,)}", nil), `">f4"`},
	{"double", npyFile(v1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}", nil), "supported are"},
	{"column-major", npyFile(v1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3)}", nil), "ascontiguousarray"},
	{"order of neither", npyFile(v1, "{'descr': '<i4', 'fortran_order': 1, 'shape': (2, 3)}", nil), "neither True nor False"},
	{"shape is a number", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': 3}", nil), "not a tuple"},
	{"shape in brackets", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3)}", nil), "not a tuple"},
	{"negative dimension", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}", nil), "whole numbers"},
	{"empty dimension", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,,2)}", nil), "whole numbers"},
	{"dimensions run together", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1 2)}", nil), "whole numbers"},
	{"huge dimension", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}", nil), "too large"},
	{"33 dimensions", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': ("+strings.Repeat("1,", 33)+")}", nil), "32 dimensions"},
	{"product overflows", npyFile(v1, "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", nil), "more than 2^63"},
	{"shorter than it says", npyFile(v1, padded(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (10,)}"), make([]byte, 28)), "int32 [10], which is 40 bytes, but the file holds 28"},
	{"longer than it says", npyFile(v1, padded(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': ()}"), make([]byte, 8)), "which is 4 bytes, but the file holds 8"},
	{"rubbish behind the dict", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (0,)} ; x", nil), "something follows"},
	{"misaligned data", npyFile(v1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,)} ", make([]byte, 4)), "not a multiple of the element size"},
}

func TestParseNPYRefuses(t *testing.T) {
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseNPY(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want an error with %q", err, c.want)
			}
		})
	}
}

func TestNPYHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]npy.Type{npyFloat32, npyInt32, npyInt64}).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(t, "shape")
		size := dtype.Size
		for _, dim := range shape {
			size *= dim
		}
		head := npy.EncodeHeader(dtype, shape...)
		if len(head)%npy.Align != 0 {
			t.Fatalf("the data begins at %d", len(head))
		}
		a, err := parseNPY(append(head, make([]byte, size)...))
		if err != nil {
			t.Fatal(err)
		}
		if a.dtype != dtype || !slices.Equal(a.shape, shape) || len(a.data) != size {
			t.Fatalf("got %v %v of %d bytes", a.dtype, a.shape, len(a.data))
		}
	})
}

func FuzzNPY(f *testing.F) {
	for _, c := range malformed {
		f.Add(c.file)
	}
	f.Add(append(npy.EncodeHeader(npyFloat32, 2, 3), make([]byte, 24)...))
	f.Add(append(npy.EncodeHeader(npyInt64, 0), []byte{}...))
	f.Add(append(npy.EncodeHeader(npyInt32), make([]byte, 4)...))
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := parseNPY(file)
		if err != nil {
			return
		}
		elements := 1
		for _, dim := range a.shape {
			elements *= dim
		}
		if len(a.data) != elements*a.dtype.Size {
			t.Fatalf("%v %v with %d bytes of data", a.dtype, a.shape, len(a.data))
		}
		if len(a.data) > len(file) {
			t.Fatal("the data is larger than the file")
		}
		// An accepted array is unchanged when it is written and read again.
		b, err := parseNPY(append(npy.EncodeHeader(a.dtype, a.shape...), a.data...))
		if err != nil || b.dtype != a.dtype || !slices.Equal(b.shape, a.shape) || !bytes.Equal(b.data, a.data) {
			t.Fatalf("written again: %v", err)
		}
	})
}

func TestViews(t *testing.T) {
	if got := view[int32](nil); got == nil || len(got) != 0 {
		t.Errorf("a view of no bytes gave %v", got)
	}
	x := []float32{1, -0.5, float32(math.Inf(1))}
	if got := view[float32](rawBytes(x)); !slices.Equal(got, x) || &got[0] != &x[0] {
		t.Error("a view of the raw bytes is not the slice itself")
	}
	if rawBytes([]int64{}) != nil {
		t.Error("the raw bytes of no values are not empty")
	}
}
