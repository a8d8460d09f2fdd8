package npy

import (
	"bytes"
	"errors"
	"fmt"
)

// Element types that [Parse] accepts.
var (
	Float32 = Type{Kind: 'f', Size: 4}
	Float16 = Type{Kind: 'f', Size: 2}
	Int32   = Type{Kind: 'i', Size: 4}
	Int64   = Type{Kind: 'i', Size: 8}
	Int8    = Type{Kind: 'i', Size: 1}
	Uint16  = Type{Kind: 'u', Size: 2}
)

// Parse splits a .npy file into header and data. It accepts row-major arrays of the types above
// whose data has exactly the announced size and can be viewed in place. It never panics. The header and
// data are valid only without an error, except that the header names the type if it was read.
func Parse(file []byte) (Header, []byte, error) {
	h, err := ReadHeader(bytes.NewReader(file))
	if err != nil {
		return Header{}, nil, err
	}
	data := file[h.Len:]
	switch h.Type {
	case Float32, Float16, Int32, Int64, Int8, Uint16:
	default:
		return h, data, fmt.Errorf("the element type is %q; supported are <f4 (float32), <f2 (float16), <i4 (int32), <i8 (int64), |i1 (int8) and <u2 (uint16)", h.Type.Descr())
	}
	if h.Fortran {
		return h, data, errors.New("the array is in column-major (Fortran) order: write it with numpy.ascontiguousarray")
	}
	if err := h.CheckSize(int64(len(data))); err != nil {
		return h, data, err
	}
	if len(data) > 0 && h.Len%h.Type.Size != 0 {
		return h, data, fmt.Errorf("its data begins at byte %d, which is not a multiple of the element size %d: write it again with numpy.save", h.Len, h.Type.Size)
	}
	return h, data, nil
}
