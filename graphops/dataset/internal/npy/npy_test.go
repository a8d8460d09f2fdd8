package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

func header(version byte, dict string) []byte {
	if version == 1 {
		return append(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict))), dict...)
	}
	return append(binary.LittleEndian.AppendUint32([]byte("\x93NUMPY\x02\x00"), uint32(len(dict))), dict...)
}

func TestReadHeader(t *testing.T) {
	for _, c := range []struct {
		in    []byte
		want  Header
		bytes int64
	}{
		{header(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n"), Header{Type: Type{'f', 4, false}, Shape: []int{3, 4}}, 48},
		{header(2, "{'shape': (), 'fortran_order': True, 'descr': '|b1'}"), Header{Type: Type{'b', 1, false}, Shape: []int{}, Fortran: true}, 1},
		{header(1, "{'descr': '>i8', 'fortran_order': False, 'shape': (3L,)}"), Header{Type: Type{'i', 8, true}, Shape: []int{3}}, 24},
		{header(1, "{'descr': '<U19', 'fortran_order': False, 'shape': (0, 9)}"), Header{Type: Type{'U', 76, false}, Shape: []int{0, 9}}, 0},
		{header(1, "{'descr': '|O', 'fortran_order': False, 'shape': (5,)}"), Header{Type: Type{'O', 0, false}, Shape: []int{5}}, 5},
	} {
		r := bytes.NewReader(append(c.in, "data"...))
		h, err := ReadHeader(r)
		c.want.Len = len(c.in)
		if err != nil || !reflect.DeepEqual(h, c.want) || r.Len() != 4 {
			t.Errorf("%q is %+v %v with %d bytes left, want %+v", c.in, h, err, r.Len(), c.want)
		}
		if n, ok := h.Bytes(); n != c.bytes || !ok {
			t.Errorf("%q has %d bytes, want %d", c.in, n, c.bytes)
		}
	}
}

func TestEncodeHeader(t *testing.T) {
	// These are the bytes that numpy.save writes.
	want := header(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"+strings.Repeat(" ", 58)+"\n")
	if got := EncodeHeader(Type{Kind: 'f', Size: 4}, 3, 4); !bytes.Equal(got, want) {
		t.Errorf("the header is %q, want %q", got, want)
	}
	for _, descr := range []string{"|b1", "|i1", "|u1", "<i4", ">i8", "<u2", "<f2", ">f8", "|S3", "<U19", ">U2", "|O"} {
		typ, err := ParseType(descr)
		if err != nil || typ.Descr() != descr {
			t.Errorf("%q is written as %q: %v", descr, typ.Descr(), err)
		}
		for _, shape := range [][]int{{}, {7}, {0, 9}, {1 << 40, 2, 3}} {
			in := EncodeHeader(typ, shape...)
			h, err := ReadHeader(bytes.NewReader(in))
			if want := (Header{Type: typ, Shape: shape, Len: len(in)}); err != nil || !reflect.DeepEqual(h, want) {
				t.Errorf("%q is %+v %v, want %+v", in, h, err, want)
			}
			if len(in)%Align != 0 {
				t.Errorf("the data of %q begins at %d", in, len(in))
			}
		}
	}
	if typ, err := ParseType(">i1"); err != nil || typ != (Type{Kind: 'i', Size: 1}) {
		t.Errorf("a byte order for a one-byte type was accepted: %+v %v", typ, err)
	}
}

func TestCheckSize(t *testing.T) {
	ten := Header{Type: Type{Kind: 'i', Size: 4}, Shape: []int{10}}
	if err := ten.CheckSize(40); err != nil {
		t.Error(err)
	}
	huge := Header{Type: Type{Kind: 'i', Size: 8}, Shape: []int{1 << 32, 1 << 32}}
	for _, c := range []struct {
		h    Header
		n    int64
		want string
	}{
		{ten, 28, "int32 [10], which is 40 bytes, but the file holds 28"},
		{ten, 41, "which is 40 bytes, but the file holds 41"},
		{huge, 0, "which is more than 2^63 bytes"},
	} {
		if err := c.h.CheckSize(c.n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want one with %q", err, c.want)
		}
	}
}

func TestBadHeaders(t *testing.T) {
	good := "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"another file", []byte("PK\x03\x04 and so on"), "does not begin with"},
		{"version 9", []byte("\x93NUMPY\x09\x00\x00\x00"), "version 9.0"},
		{"a header of 4 GiB", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "claims 4294967295 bytes"},
		{"no dict", header(1, "x"), "does not begin with {"},
		{"no shape", header(1, "{'descr': '<f4', 'fortran_order': False}"), `"shape" is missing`},
		{"twice", header(1, strings.Replace(good, "'shape'", "'descr': '<f4', 'shape'", 1)), "occurs twice"},
		{"unknown key", header(1, strings.Replace(good, "'shape'", "'shame'", 1)), "unknown key"},
		{"records", header(1, strings.Replace(good, "'<f4'", "[('a', '<f4')]", 1)), "records"},
		{"code", header(1, strings.Replace(good, "(3,)", "__import__('os')", 1)), "not a tuple"},
		{"negative", header(1, strings.Replace(good, "3", "-3", 1)), "not negative"},
		{"too large", header(1, strings.Replace(good, "3", "99999999999999999999", 1)), "too large"},
		{"no comma", header(1, strings.Replace(good, "(3,)", "(3 4)", 1)), "whole numbers"},
		{"a number", header(1, strings.Replace(good, "(3,)", "(3)", 1)), "not a tuple"},
		{"33 dimensions", header(1, strings.Replace(good, "3,", strings.Repeat("1,", 33), 1)), "32 dimensions"},
		{"more after it", header(1, good+"x"), "follows"},
		{"an order", header(1, strings.Replace(good, "False", "Maybe", 1)), "neither True nor False"},
		{"a type", header(1, strings.Replace(good, "<f4", "<c8", 1)), "not one that is read"},
		{"a long type", header(1, strings.Replace(good, "<f4", "<U999999999", 1)), "not one that is read"},
		{"no type", header(1, strings.Replace(good, "<f4", "<", 1)), "not known"},
		{"an escape", header(1, strings.Replace(good, "<f4", `\x3cf4`, 1)), "escape"},
	} {
		if _, err := ReadHeader(bytes.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", c.name, err, c.want)
		}
	}
	for _, version := range []byte{1, 2} {
		for n := range header(version, good) {
			if _, err := ReadHeader(bytes.NewReader(header(version, good)[:n])); err == nil {
				t.Errorf("the first %d bytes were accepted as a header", n)
			}
		}
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		shape []int
		n     int64
		ok    bool
	}{{[]int{}, 1, true}, {[]int{1 << 40, 1 << 40}, 0, false}, {[]int{1 << 40, 1 << 40, 0}, 0, true}, {[]int{1 << 40, 1 << 22}, 1 << 62, true}} {
		if n, ok := Count(c.shape); ok != c.ok || ok && n != c.n {
			t.Errorf("the count of %v is %d %v", c.shape, n, ok)
		}
	}
	if _, ok := (Header{Type: Type{Kind: 'f', Size: 8}, Shape: []int{1 << 61}}).Bytes(); ok {
		t.Error("2^64 bytes fit")
	}
}

func TestElements(t *testing.T) {
	bits := func(order binary.AppendByteOrder, size int, x uint64) []byte {
		switch size {
		case 1:
			return []byte{byte(x)}
		case 2:
			return order.AppendUint16(nil, uint16(x))
		case 4:
			return order.AppendUint32(nil, uint32(x))
		}
		return order.AppendUint64(nil, x)
	}
	for _, big := range []bool{false, true} {
		order, mark := binary.AppendByteOrder(binary.LittleEndian), "<"
		if big {
			order, mark = binary.BigEndian, ">"
		}
		for _, c := range []struct {
			name string
			bits uint64
			want float64
		}{
			{"b1", 1, 1},
			{"b1", 7, 1},
			{"i1", 0xff, -1},
			{"u1", 0xff, 255},
			{"i2", 0xfffe, -2},
			{"u2", 0xfffe, 65534},
			{"i4", 1 << 31, -1 << 31},
			{"u4", 1 << 31, 1 << 31},
			{"i8", 1 << 63, -1 << 63},
			{"u8", 1 << 40, 1 << 40},
			{"u8", 1<<63 + 1, 1<<63 - 1},
			{"f4", uint64(math.Float32bits(1.5)), 1.5},
			{"f8", math.Float64bits(-2.5), -2.5},
			{"f8", math.Float64bits(1e300), math.Inf(1)},
			{"f2", 0x3e00, 1.5},
			{"f2", 0xc000, -2},
			{"f2", 1, 1.0 / (1 << 24)},
			{"f2", 0x8001, -1.0 / (1 << 24)},
			{"f2", 0x7bff, 65504},
			{"f2", 0xfc00, math.Inf(-1)},
		} {
			typ, err := ParseType(mark + c.name)
			if err != nil {
				t.Fatal(err)
			}
			src := bytes.Repeat(bits(order, typ.Size, c.bits), 300)
			got := make([]float32, 300)
			typ.Floats(got, src)
			if float64(got[299]) != float64(float32(c.want)) {
				t.Errorf("%s of %#x is %v, want %v", typ, c.bits, got[299], c.want)
			}
			if typ.Whole() {
				whole := make([]int64, 300)
				typ.Ints(whole, src)
				if float64(whole[299]) != c.want {
					t.Errorf("%s of %#x is %v, want %v", typ, c.bits, whole[299], c.want)
				}
			}
		}
	}
	var x [1]float32
	if (Type{Kind: 'f', Size: 2}).Floats(x[:], []byte{0x01, 0x7e}); x[0] == x[0] {
		t.Error("a float16 NaN is converted to a number")
	}
}

func TestEach(t *testing.T) {
	const n = blockElements + 5
	data := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(i))
	}
	typ := Type{Kind: 'i', Size: 4}
	a := InMemory("a", typ, []int{n}, false, data)
	next := int64(0)
	if err := a.EachInt(func(at int64, xs []int64) error {
		for i, x := range xs {
			if x != next || at+int64(i) != next {
				return fmt.Errorf("element %d is %d", next, x)
			}
			next++
		}
		return nil
	}); err != nil || next != n {
		t.Errorf("%d elements: %v", next, err)
	}
	for size, want := range map[int]string{n - 1: "has bytes after its", n + 1: "ends at byte 32788"} {
		short := InMemory("a", typ, []int{size}, false, data)
		if err := short.EachInt(func(int64, []int64) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d elements of %d: %v", size, n, err)
		}
	}
	stop := io.ErrNoProgress
	if err := a.EachFloat(func(int64, []float32) error { return stop }); err != stop {
		t.Errorf("the error of visit became %v", err)
	}
	for _, c := range []struct {
		a     *Array
		whole bool
		want  string
	}{
		{InMemory("a", typ, []int{2, 3}, false, nil), true, "a is int32 [2, 3]; an array of 1 dimensions"},
		{InMemory("a", Type{Kind: 'f', Size: 4}, []int{2}, false, nil), true, "of whole numbers"},
		{InMemory("a", Type{Kind: 'O'}, []int{2}, false, nil), false, "of numbers"},
	} {
		if err := c.a.Is(1, c.whole); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want one with %q", err, c.want)
		}
	}
	if err := InMemory("a", typ, []int{2, 3}, true, nil).Is(2, true); err != nil {
		t.Errorf("column-major: %v", err)
	}
}

// At maps the memory order of a column-major array to row-major positions.
func TestAt(t *testing.T) {
	typ := Type{Kind: 'i', Size: 4}
	for i, want := range []int64{0, 3, 1, 4, 2, 5} { // [0 1 2; 3 4 5] stored by columns
		if got := InMemory("a", typ, []int{2, 3}, true, nil).At(int64(i)); got != want {
			t.Errorf("element %d in memory is number %d by rows, want %d", i, got, want)
		}
		if got := InMemory("a", typ, []int{2, 3}, false, nil).At(int64(i)); got != int64(i) {
			t.Errorf("element %d by rows is number %d", i, got)
		}
	}
	// In [2, 2, 3], element (i, j, k) has position 6i+3j+k.
	for n := range int64(12) {
		i, j, k := n%2, n/2%2, n/4
		if got := InMemory("a", typ, []int{2, 2, 3}, true, nil).At(n); got != 6*i+3*j+k {
			t.Errorf("element %d of three dimensions is number %d, want %d", n, got, 6*i+3*j+k)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(header(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n"))
	f.Add(header(2, "{'descr': '|O', 'fortran_order': True, 'shape': (3L,), }"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := ReadHeader(bytes.NewReader(in))
		if err != nil {
			return
		}
		if h.Len > len(in) || len(h.Shape) > 32 || h.Type.Kind == 0 {
			t.Errorf("%q is %+v", in, h)
		}
		if again, err := ParseType(strings.TrimPrefix(h.Type.String(), "|")); h.Type.Kind == 'U' && err == nil && again.Size != h.Type.Size {
			t.Errorf("%v is %v when read again", h.Type, again)
		}
	})
}
