// Package npy reads files of NumPy and Python that are not trusted: .npy, .npz and pickles of arrays. It
// evaluates nothing: it scans types and headers as text, and returns an error for what it does not
// understand. It also writes the .npy files of datasets.
package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// maxString is the longest accepted string element, in bytes; names have a few dozen.
const maxString = 1 << 20

// Type is the type of an array's elements.
type Type struct {
	// Kind is 'b' (bool), 'i', 'u', 'f', 'S' (bytes), 'U' (UTF-32 text) or 'O' (Python objects,
	// stored in a pickle).
	Kind byte
	Size int  // bytes of an element; 0 for 'O'
	Big  bool // big-endian; false if an element is one byte
}

// ParseType reads NumPy's short name of a type: an optional byte order ('<', '>',
// '|' or '='), a kind and a size, as in "<f4", "|b1" or "<U19".
func ParseType(s string) (Type, error) {
	var t Type
	rest := s
	if rest != "" {
		switch rest[0] {
		case '>':
			t.Big = true
			rest = rest[1:]
		case '<', '|', '=':
			rest = rest[1:]
		}
	}
	if rest == "O" || rest == "O8" || rest == "O4" {
		return Type{Kind: 'O'}, nil
	}
	if len(rest) < 2 {
		return t, fmt.Errorf("the element type %.40q is not known", s)
	}
	t.Kind = rest[0]
	size, err := strconv.ParseUint(rest[1:], 10, 31)
	if err != nil {
		return t, fmt.Errorf("the element type %.40q is not known", s)
	}
	t.Size = int(size)
	ok := false
	switch t.Kind {
	case 'b':
		ok = size == 1
	case 'i', 'u':
		ok = size == 1 || size == 2 || size == 4 || size == 8
	case 'f':
		ok = size == 2 || size == 4 || size == 8
	case 'S':
		ok = size <= maxString
	case 'U':
		ok = size <= maxString/4
		t.Size *= 4
	}
	if !ok {
		return t, fmt.Errorf("the element type %.40q is not one that is read (bool, whole numbers, float16 to float64, strings)", s)
	}
	t.Big = t.Big && t.Size > 1
	return t, nil
}

// Descr returns NumPy's short name of the type, as in headers: "<f4", "|b1". ParseType reads it.
func (t Type) Descr() string {
	order, size := "<", t.Size
	switch {
	case t.Kind == 'O':
		return "|O"
	case t.Kind == 'S' || t.Size == 1:
		order = "|"
	case t.Big:
		order = ">"
	}
	if t.Kind == 'U' {
		size /= 4
	}
	return order + string(t.Kind) + strconv.Itoa(size)
}

// String returns NumPy's name of the type.
func (t Type) String() string {
	switch t.Kind {
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*t.Size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*t.Size)
	case 'f':
		return fmt.Sprintf("float%d", 8*t.Size)
	case 'S':
		return fmt.Sprintf("S%d", t.Size)
	case 'U':
		return fmt.Sprintf("U%d", t.Size/4)
	case 'O':
		return "object"
	}
	return "unknown"
}

// Whole reports whether the elements are whole numbers or bools.
func (t Type) Whole() bool { return t.Kind == 'i' || t.Kind == 'u' || t.Kind == 'b' }

// Number reports whether the elements are numbers or bools.
func (t Type) Number() bool { return t.Whole() || t.Kind == 'f' }

// Ints decodes len(dst) elements of src, which must be whole numbers. A uint64 above 2^63-1 becomes
// 2^63-1, which is not a valid id or count.
func (t Type) Ints(dst []int64, src []byte) {
	order := t.order()
	src = src[:len(dst)*t.Size]
	switch {
	case t.Kind == 'i' && t.Size == 4:
		for i := range dst {
			dst[i] = int64(int32(order.Uint32(src[4*i:])))
		}
	case t.Kind == 'i' && t.Size == 8:
		for i := range dst {
			dst[i] = int64(order.Uint64(src[8*i:]))
		}
	case t.Kind == 'u' && t.Size == 8:
		for i := range dst {
			dst[i] = int64(min(order.Uint64(src[8*i:]), math.MaxInt64))
		}
	case t.Kind == 'u' && t.Size == 4:
		for i := range dst {
			dst[i] = int64(order.Uint32(src[4*i:]))
		}
	case t.Kind == 'i' && t.Size == 2:
		for i := range dst {
			dst[i] = int64(int16(order.Uint16(src[2*i:])))
		}
	case t.Kind == 'u' && t.Size == 2:
		for i := range dst {
			dst[i] = int64(order.Uint16(src[2*i:]))
		}
	case t.Kind == 'i' && t.Size == 1:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case t.Kind == 'u' && t.Size == 1:
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case t.Kind == 'b':
		for i := range dst {
			dst[i] = int64(min(src[i], 1))
		}
	default:
		panic("npy: Ints of " + t.String())
	}
}

// Floats decodes len(dst) elements of src, which must be numbers, to the nearest
// float32. A float64 beyond its range becomes an infinity.
func (t Type) Floats(dst []float32, src []byte) {
	order := t.order()
	switch {
	case t.Kind == 'f' && t.Size == 4:
		for i := range dst {
			dst[i] = math.Float32frombits(order.Uint32(src[4*i:]))
		}
	case t.Kind == 'f' && t.Size == 8:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(order.Uint64(src[8*i:])))
		}
	case t.Kind == 'f' && t.Size == 2:
		for i := range dst {
			dst[i] = half(order.Uint16(src[2*i:]))
		}
	default:
		var buf [256]int64
		for len(dst) > 0 {
			n := min(len(dst), len(buf))
			t.Ints(buf[:n], src)
			for i, x := range buf[:n] {
				dst[i] = float32(x)
			}
			dst, src = dst[n:], src[n*t.Size:]
		}
	}
}

func (t Type) order() binary.ByteOrder {
	if t.Big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// half returns the value of an IEEE 754 binary16 number.
func half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0:
		x := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
