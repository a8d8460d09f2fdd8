package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxHeader is NumPy's own limit for the header of an untrusted file; an array of numbers needs
// under 200 bytes.
const maxHeader = 10000

// magic is the beginning of a .npy file.
const magic = "\x93NUMPY"

// Align is the alignment, in bytes, of the data in a file that EncodeHeader or NumPy wrote.
const Align = 64

// Header is the header of a .npy file.
type Header struct {
	Type    Type
	Shape   []int
	Fortran bool // column-major
	Len     int  // bytes before the data
}

// ReadHeader reads the header of a .npy file
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) and leaves r at the
// first byte of the data. Errors are clauses that begin with "it" or "its"; the caller adds the
// file's name.
func ReadHeader(r io.Reader) (Header, error) {
	var h Header
	var fixed [12]byte
	if _, err := io.ReadFull(r, fixed[:10]); err != nil {
		return h, cut(err, "it is not a .npy file: it ends before the header")
	}
	if string(fixed[:6]) != magic {
		return h, errors.New(`it is not a .npy file: it does not begin with \x93NUMPY`)
	}
	length := int64(binary.LittleEndian.Uint16(fixed[8:]))
	h.Len = 10
	if fixed[6] < 1 || fixed[6] > 3 || fixed[7] != 0 {
		return h, fmt.Errorf("it is of .npy version %d.%d; versions 1.0, 2.0 and 3.0 are known", fixed[6], fixed[7])
	}
	if fixed[6] > 1 {
		if _, err := io.ReadFull(r, fixed[10:]); err != nil {
			return h, cut(err, "it ends within the header")
		}
		length, h.Len = int64(binary.LittleEndian.Uint32(fixed[8:])), 12
	}
	if length > maxHeader {
		return h, fmt.Errorf("its header claims %d bytes; an array of numbers needs at most %d", length, maxHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, cut(err, "it ends within the header, which claims %d bytes", length)
	}
	h.Len += int(length)
	if err := h.parse(string(text)); err != nil {
		return h, fmt.Errorf("its header is malformed: %w", err)
	}
	return h, nil
}

// EncodeHeader returns everything before the data of a row-major array of at most 32 dimensions, in
// version 1.0 of the format, padded to a multiple of Align.
func EncodeHeader(t Type, shape ...int) []byte {
	tuple := strings.Trim(ShapeString(shape), "[]")
	if len(shape) == 1 {
		tuple += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", t.Descr(), tuple)
	pad := (Align - (10+len(dict)+1)%Align) % Align
	dict += strings.Repeat(" ", pad) + "\n"
	return append(binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(dict))), dict...)
}

// cut returns the message if the input merely ended, and err otherwise.
func cut(err error, format string, args ...any) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf(format, args...)
	}
	return err
}

// Count returns the number of elements; ok is false if it is above 2^63-1.
func (h Header) Count() (n int64, ok bool) { return Count(h.Shape) }

// Count returns the number of elements of an array of the given shape; ok is false if it is above
// 2^63-1.
func Count(shape []int) (n int64, ok bool) {
	n = 1
	for _, dim := range shape {
		if dim == 0 {
			return 0, true
		}
	}
	for _, dim := range shape {
		if n > math.MaxInt64/int64(dim) {
			return 0, false
		}
		n *= int64(dim)
	}
	return n, true
}

// Bytes returns the size of the data; ok is false if it is above 2^63-1, or if the array holds
// objects, which are stored in a pickle.
func (h Header) Bytes() (n int64, ok bool) {
	n, ok = h.Count()
	if size := int64(h.Type.Size); ok && size > 0 {
		ok = n <= math.MaxInt64/size
		n *= size
	}
	return n, ok
}

// CheckSize returns an error if the header does not imply exactly n bytes of data.
func (h Header) CheckSize(n int64) error {
	want, ok := h.Bytes()
	if ok && want == n {
		return nil
	}
	size := "more than 2^63"
	if ok {
		size = strconv.FormatInt(want, 10)
	}
	return fmt.Errorf("the header says %s, which is %s bytes, but the file holds %d; it was cut off or written wrongly: write it again with numpy.save",
		h.Describe(), size, n)
}

// Describe formats the type and the shape for errors: "int64 [3, 4]".
func (h Header) Describe() string { return h.Type.String() + " " + ShapeString(h.Shape) }

// ShapeString formats a shape as "[3, 4]".
func ShapeString(shape []int) string {
	parts := make([]string, len(shape))
	for i, dim := range shape {
		parts[i] = strconv.Itoa(dim)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// parse reads the dict: each key exactly once, in any order.
func (h *Header) parse(text string) error {
	p := scanner{rest: strings.TrimSuffix(text, "\n")}
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
			return fmt.Errorf("%.40q occurs twice", key)
		}
		seen[key] = true
		if !p.take(":") {
			return fmt.Errorf("no colon after %.40q", key)
		}
		switch key {
		case "descr":
			if p.space(); strings.HasPrefix(p.rest, "[") {
				return errors.New("it describes records; only plain arrays are read")
			}
			var s string
			if s, err = p.text(); err == nil {
				h.Type, err = ParseType(s)
			}
		case "fortran_order":
			if h.Fortran = p.take("True"); !h.Fortran && !p.take("False") {
				err = errors.New("'fortran_order' is neither True nor False")
			}
		case "shape":
			h.Shape, err = p.shape()
		default:
			err = fmt.Errorf("unknown key %.40q", key)
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

// scanner reads the few kinds of Python literals in a header.
type scanner struct{ rest string }

func (p *scanner) space() { p.rest = strings.TrimLeft(p.rest, " ") }

func (p *scanner) take(token string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

// text reads a string without escapes.
func (p *scanner) text() (string, error) {
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

// shape reads a tuple of dimensions: (), (3,) or (3, 4). Python 2 wrote 3L.
func (p *scanner) shape() ([]int, error) {
	if !p.take("(") {
		return nil, errors.New("the shape is not a tuple")
	}
	shape := []int{}
	comma := true // a dimension may follow
	for !p.take(")") {
		p.space()
		n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		if n == 0 || !comma {
			return nil, errors.New("the shape is not a tuple of whole numbers that are not negative")
		}
		dim, err := strconv.ParseInt(p.rest[:n], 10, 64)
		if err != nil || int64(int(dim)) != dim {
			return nil, fmt.Errorf("the dimension %.40s is too large", p.rest[:n])
		}
		if len(shape) == 32 { // NumPy 1's limit
			return nil, errors.New("the shape has more than 32 dimensions")
		}
		shape = append(shape, int(dim))
		p.rest = strings.TrimPrefix(p.rest[n:], "L")
		comma = p.take(",")
	}
	if len(shape) == 1 && !comma {
		return nil, errors.New("the shape is a number, not a tuple")
	}
	return shape, nil
}
