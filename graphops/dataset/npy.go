package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// The .npy format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
//	"\x93NUMPY"  magic
//	u8 u8        version: 1.0, 2.0 or 3.0
//	u16 or u32   length of the header (u16 in version 1.0), little-endian
//	header       a Python dict with 'descr', 'fortran_order' and 'shape'
//	data
//
// The parser takes the arrays that NumPy itself writes for the element types
// below and nothing else: no Python is evaluated, and what the header announces
// must be what the file holds, to the byte.

const (
	npyMagic = "\x93NUMPY"
	npyAlign = 64 // of the data, by the format's definition
	// NumPy's own limit is 10,000 bytes; an array of numbers needs under 200.
	npyMaxHeader = 1 << 16
)

// npyType is an element type by its NumPy name.
type npyType string

const (
	npyFloat32 npyType = "<f4"
	npyInt32   npyType = "<i4"
	npyInt64   npyType = "<i8"
	npyInt8    npyType = "|i1"
)

func (t npyType) size() int {
	switch t {
	case npyInt64:
		return 8
	case npyInt8:
		return 1
	}
	return 4
}

func (t npyType) String() string {
	switch t {
	case npyFloat32:
		return "float32"
	case npyInt32:
		return "int32"
	case npyInt64:
		return "int64"
	case npyInt8:
		return "int8"
	}
	return strconv.Quote(string(t))
}

// npyArray is a parsed file; data is a part of it.
type npyArray struct {
	dtype npyType
	shape []int
	data  []byte
}

// parseNPY splits a .npy file into header and data. It never panics.
func parseNPY(file []byte) (npyArray, error) {
	var a npyArray
	if len(file) < 10 || string(file[:6]) != npyMagic {
		return a, errors.New("it is not a .npy file: it does not begin with \\x93NUMPY")
	}
	start, length := 10, uint64(binary.LittleEndian.Uint16(file[8:]))
	switch file[6] {
	case 1:
	case 2, 3:
		if len(file) < 12 {
			return a, errors.New("it ends within the header")
		}
		start, length = 12, uint64(binary.LittleEndian.Uint32(file[8:]))
	default:
		return a, fmt.Errorf("it is of .npy version %d.%d; versions 1.0, 2.0 and 3.0 are known", file[6], file[7])
	}
	if file[7] != 0 {
		return a, fmt.Errorf("it is of .npy version %d.%d; versions 1.0, 2.0 and 3.0 are known", file[6], file[7])
	}
	if length > npyMaxHeader {
		return a, fmt.Errorf("its header claims %d bytes; an array of numbers needs at most %d", length, npyMaxHeader)
	}
	if uint64(len(file)-start) < length {
		return a, fmt.Errorf("it ends within the header, which claims %d bytes", length)
	}
	if err := a.parseHeader(string(file[start : start+int(length)])); err != nil {
		return a, fmt.Errorf("its header is malformed: %w", err)
	}
	a.data = file[start+int(length):]
	want, ok := a.bytes()
	if !ok || want != uint64(len(a.data)) {
		return a, fmt.Errorf("the header says %s %s, which is %s bytes, but the file holds %d; it was cut off or written wrongly: write it again with numpy.save",
			a.dtype, shapeString(a.shape), sizeString(want, ok), len(a.data))
	}
	if want > 0 && (start+int(length))%a.dtype.size() != 0 {
		return a, fmt.Errorf("its data begins at byte %d, which is no multiple of the element size %d: write it again with numpy.save", start+int(length), a.dtype.size())
	}
	return a, nil
}

func sizeString(n uint64, ok bool) string {
	if !ok {
		return "more than 2^63"
	}
	return strconv.FormatUint(n, 10)
}

// bytes is the size of the data that the header announces.
func (a *npyArray) bytes() (n uint64, ok bool) {
	n = uint64(a.dtype.size())
	zero := false
	for _, dim := range a.shape {
		zero = zero || dim == 0
	}
	if zero {
		return 0, true
	}
	for _, dim := range a.shape {
		if n > math.MaxInt64/uint64(dim) {
			return 0, false
		}
		n *= uint64(dim)
	}
	return n, true
}

func shapeString(shape []int) string {
	parts := make([]string, len(shape))
	for i, dim := range shape {
		parts[i] = strconv.Itoa(dim)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// parseHeader reads the dict, in any order of its keys, each exactly once.
func (a *npyArray) parseHeader(header string) error {
	p := npyScanner{rest: strings.TrimSuffix(header, "\n")}
	seen := map[string]bool{}
	if !p.take("{") {
		return errors.New("it does not begin with {")
	}
	for !p.take("}") {
		key, err := p.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		if !p.take(":") {
			return fmt.Errorf("no colon after %q", key)
		}
		switch key {
		case "descr":
			err = a.parseType(&p)
		case "fortran_order":
			err = a.parseOrder(&p)
		case "shape":
			a.shape, err = p.shape()
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return err
		}
		if !p.take(",") {
			if !p.take("}") {
				return errors.New("no } at its end")
			}
			break
		}
	}
	if p.space(); p.rest != "" {
		return errors.New("something follows the }")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return fmt.Errorf("%q is missing", key)
		}
	}
	return nil
}

func (a *npyArray) parseType(p *npyScanner) error {
	if p.space(); strings.HasPrefix(p.rest, "[") {
		return errors.New("it describes records; only plain arrays are read")
	}
	s, err := p.text()
	if err != nil {
		return err
	}
	switch a.dtype = npyType(s); a.dtype {
	case npyFloat32, npyInt32, npyInt64, npyInt8:
		return nil
	}
	return fmt.Errorf("the element type is %q; <f4 (float32), <i4 (int32), <i8 (int64) and |i1 (int8) are read", s)
}

func (a *npyArray) parseOrder(p *npyScanner) error {
	switch {
	case p.take("False"):
		return nil
	case p.take("True"):
		return errors.New("the array is in column-major (Fortran) order: write it with numpy.ascontiguousarray")
	}
	return errors.New("'fortran_order' is neither True nor False")
}

// npyScanner reads the few Python literals that a header consists of.
type npyScanner struct{ rest string }

func (p *npyScanner) space() { p.rest = strings.TrimLeft(p.rest, " ") }

func (p *npyScanner) take(token string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

// text reads a string without escapes.
func (p *npyScanner) text() (string, error) {
	p.space()
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		return "", errors.New("a string was expected")
	}
	end := strings.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		return "", errors.New("a string does not end")
	}
	s := p.rest[1 : 1+end]
	p.rest = p.rest[end+2:]
	if strings.ContainsAny(s, "\\\n") {
		return "", errors.New("a string has an escape or a line break")
	}
	return s, nil
}

// shape reads a tuple of dimensions: (), (3,) or (3, 4).
func (p *npyScanner) shape() ([]int, error) {
	if !p.take("(") {
		return nil, errors.New("the shape is not a tuple")
	}
	shape := []int{}
	comma := true // a dimension may follow
	for !p.take(")") {
		p.space()
		n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		if n == 0 || !comma {
			return nil, errors.New("the shape is not a tuple of whole numbers")
		}
		dim, err := strconv.ParseInt(p.rest[:n], 10, 64)
		if err != nil || int64(int(dim)) != dim {
			return nil, fmt.Errorf("the dimension %s is too large", p.rest[:n])
		}
		if len(shape) == 32 { // NumPy's own limit for a long time
			return nil, errors.New("the shape has more than 32 dimensions")
		}
		shape = append(shape, int(dim))
		p.rest = p.rest[n:]
		comma = p.take(",")
	}
	if len(shape) == 1 && !comma {
		return nil, errors.New("the shape is a number, not a tuple")
	}
	return shape, nil
}

// npyHeader is everything before the data, as NumPy writes it.
func npyHeader(t npyType, shape ...int) []byte {
	tuple := strings.Trim(shapeString(shape), "[]")
	if len(shape) == 1 {
		tuple += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", string(t), tuple)
	pad := npyAlign - (10+len(dict)+1)%npyAlign
	dict += strings.Repeat(" ", pad%npyAlign) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic)
	b.Write([]byte{1, 0})
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(dict))))
	b.WriteString(dict)
	return b.Bytes()
}

// number is an element type that .npy files and memory have in common.
type number interface {
	~float32 | ~int32 | ~int64 | ~int8
}

// view is data as a slice of T, in the same memory. The data must be aligned
// for T, which parseNPY sees to for a file that begins at a page or a multiple
// of 64 bytes.
func view[T number](data []byte) []T {
	var zero T
	n := len(data) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// rawBytes is the memory of s.
func rawBytes[T number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// littleEndian tells whether memory has the byte order of the files.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }
