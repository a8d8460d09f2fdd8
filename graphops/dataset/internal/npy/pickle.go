// This file, parse.go and globals.go decode Python pickles that hold NumPy arrays, SciPy CSR matrices, lists, tuples,
// dicts, numbers and strings, and nothing else.
//
// A pickle is a program for a stack machine that may call any function of any Python module. This
// package calls none: its machine knows a closed list of opcodes (those that Python's own picklers
// write for such values, protocols 2 to 5) and of names (those in [PickleNames]), and each name stands
// for a value that the decoder builds itself. Every other opcode or name is an error that names it
// and its byte position.
//
// # Caveats
//
// The decoded values may take at most three times the pickle's bytes plus 2 MiB; a larger pickle is
// refused. Strings and arrays are views of the input if the encoding allows it, so the input must
// not change while the values are used. Lists may contain themselves, as in Python; this package
// does not traverse them.

package npy

import (
	"fmt"
	"iter"
	"slices"
)

// PickleError describes an error in a pickle and its position.
type PickleError struct {
	Pos int // byte of the opcode
	Why string
}

func (e *PickleError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Pos, e.Why) }

// Kind is the type of a value.
type Kind uint8

// The kinds of values.
const (
	None Kind = iota
	Bool
	Int
	Float
	Bytes // including a str of Python 2, which is bytes
	Text  // UTF-8
	Tuple
	List
	Dict
	NDArray
	DType
	CSRMatrix
	Name // one of Names, used as a value
)

var kindNames = [...]string{
	"None", "a bool", "a whole number", "a float", "bytes", "a string", "a tuple", "a list", "a dict",
	"a NumPy array", "a NumPy dtype", "a SciPy CSR matrix", "the name of a type or function",
}

// String returns the kind for errors: "a list".
func (k Kind) String() string { return kindNames[k] }

// Value is one value of a decoded pickle.
type Value struct {
	d *decoder
	w word
}

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.w.kind() }

// Int returns the value of a whole number; ok is false for other kinds.
func (v Value) Int() (x int64, ok bool) {
	switch v.w.tag() {
	case tagInt:
		return v.w.int(), true
	case tagBig:
		return v.d.bigs[v.w.payload()], true
	}
	return 0, false
}

// Float returns the value of a float or of a whole number; ok is false for other
// kinds.
func (v Value) Float() (x float64, ok bool) {
	if v.w.tag() == tagFloat {
		return v.d.floats[v.w.payload()], true
	}
	i, ok := v.Int()
	return float64(i), ok
}

// Text returns the bytes of a string or of bytes, in the pickle's own memory; ok is
// false for other kinds.
func (v Value) Text() (s []byte, ok bool) { return v.d.text(v.w) }

// Len returns the number of elements of a list or tuple, of pairs of a dict, and 0 for
// other kinds.
func (v Value) Len() int {
	switch v.w.tag() {
	case tagTuple, tagList:
		return len(*v.d.seq(v.w))
	case tagDict:
		n := 0
		v.d.pairs(v.w, func(items []word) bool { n += len(items) / 2; return true })
		return n
	}
	return 0
}

// At returns element i of a list or tuple.
func (v Value) At(i int) Value { return Value{v.d, (*v.d.seq(v.w))[i]} }

// Pairs returns the keys and values of a dict in the order in which they were set. A key that was
// set twice appears twice.
func (v Value) Pairs() iter.Seq2[Value, Value] {
	return func(yield func(k, x Value) bool) {
		if v.w.tag() != tagDict {
			return
		}
		v.d.pairs(v.w, func(items []word) bool {
			for i := 0; i+1 < len(items); i += 2 {
				if !yield(Value{v.d, items[i]}, Value{v.d, items[i+1]}) {
					return false
				}
			}
			return true
		})
	}
}

// Get returns the value of the last pair whose key is the given text.
func (v Value) Get(key string) (x Value, ok bool) {
	for k, val := range v.Pairs() {
		if s, is := k.Text(); is && string(s) == key {
			x, ok = val, true
		}
	}
	return x, ok
}

// PickleArray is a NumPy array: its elements in memory order, or its objects.
type PickleArray struct {
	Type    Type
	Shape   []int
	Fortran bool // column-major
	Data    []byte
	Objects Value // a list, if Type.Kind is 'O'
}

// Count returns the number of elements.
func (a *PickleArray) Count() int {
	n, _ := Count(a.Shape)
	return int(n)
}

// Describe formats the type and shape for errors: "int64 [3, 4]".
func (a *PickleArray) Describe() string {
	return Header{Type: a.Type, Shape: a.Shape}.Describe()
}

// Array returns v as an array; ok is false for other kinds.
func (v Value) Array() (a *PickleArray, ok bool) {
	if v.w.tag() != tagArray {
		return nil, false
	}
	a = v.d.arrays[v.w.payload()]
	return a, a.Type.Kind != 0
}

// CSR is a SciPy matrix in compressed sparse row format. Its arrays are one-dimensional and
// numeric; the caller must check their lengths and values.
type CSR struct {
	Rows, Cols            int64
	Indptr, Indices, Data *PickleArray
}

// CSR returns v as a matrix. It returns an error if v is not a CSR matrix or lacks one of the
// parts.
func (v Value) CSR() (*CSR, error) {
	if v.w.tag() != tagCSR {
		return nil, fmt.Errorf("it holds %v; a SciPy CSR matrix was expected", v.Kind())
	}
	state := Value{v.d, v.d.csrs[v.w.payload()]}
	if f, ok := state.Get("format"); ok {
		if s, ok := f.Text(); !ok || string(s) != "csr" {
			return nil, fmt.Errorf("the matrix has the format %.40q; csr was expected", s)
		}
	}
	m := &CSR{}
	shape, ok := state.Get("_shape")
	if !ok {
		shape, ok = state.Get("shape")
	}
	if !ok || shape.Kind() != Tuple || shape.Len() != 2 {
		return nil, fmt.Errorf("the CSR matrix has no shape of two numbers")
	}
	for i, dim := range []*int64{&m.Rows, &m.Cols} {
		if *dim, ok = shape.At(i).Int(); !ok || *dim < 0 {
			return nil, fmt.Errorf("the CSR matrix has no shape of two numbers that are not negative")
		}
	}
	for _, part := range []struct {
		name string
		to   **PickleArray
	}{{"indptr", &m.Indptr}, {"indices", &m.Indices}, {"data", &m.Data}} {
		val, ok := state.Get(part.name)
		if !ok {
			return nil, fmt.Errorf("the CSR matrix lacks its part %q", part.name)
		}
		a, ok := val.Array()
		if !ok || len(a.Shape) != 1 || !a.Type.Number() || part.name != "data" && !a.Type.Whole() {
			what := val.Kind().String()
			if ok {
				what = a.Describe()
			}
			return nil, fmt.Errorf("the part %q of the CSR matrix is %s; a list of numbers was expected", part.name, what)
		}
		*part.to = a
	}
	return m, nil
}

// PickleNames returns the names that a pickle may use, as "module name", sorted.
func PickleNames() []string {
	names := make([]string, 0, len(globals))
	for name := range globals {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
