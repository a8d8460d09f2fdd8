package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/graphnb/graphnb/internal/simd"
)

// numbers are the types that [ReadConverted] reads, with their sizes in bytes.
var numbers = map[string]int{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}

// ReadConverted reads a file as another program may have written it: tensors of any type of numbers become float32, each number
// the nearest one, so an F64 beyond its range is infinite. types are the types in the file, by the tensors' names. Of a file
// of this package it compares the checksum as [ReadFile] does.
func ReadConverted(path string) (tensors []Tensor, types map[string]string, meta map[string]string, err error) {
	f, size, err := open(path)
	if err != nil {
		return nil, nil, nil, err
	}
	defer f.Close()
	entries, meta, start, err := readHeader(f, size, numbers)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	types = map[string]string{}
	for _, e := range entries {
		t := Tensor{Name: e.name, Shape: e.Shape, F32: make([]float32, (e.Offsets[1]-e.Offsets[0])/int64(numbers[e.DType]))}
		if err := readNumbers(f, start+e.Offsets[0], e.DType, t.F32); err != nil {
			return nil, nil, nil, fmt.Errorf("safetensors: %s: reading %q: %w", path, e.name, err)
		}
		tensors, types[e.name] = append(tensors, t), e.DType
	}
	if err := verify(f, tensors, meta); err != nil {
		return tensors, types, meta, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	return tensors, types, meta, nil
}

// readNumbers reads numbers of a type from byte at on.
func readNumbers(r io.ReaderAt, at int64, kind string, out []float32) error {
	size := numbers[kind]
	buf := make([]byte, min(64<<10, size*len(out)))
	for len(out) > 0 {
		n := min(len(out), len(buf)/size)
		b := buf[:n*size]
		if got, err := r.ReadAt(b, at); got < len(b) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("byte %d: %w", at+int64(got), err)
		}
		decode(out[:n], b, kind)
		out, at = out[n:], at+int64(len(b))
	}
	return nil
}

// decode writes the numbers in b, little-endian, to out.
func decode(out []float32, b []byte, kind string) {
	le := binary.LittleEndian
	var one func(i int) float32
	switch kind {
	case "F64":
		one = func(i int) float32 { return float32(math.Float64frombits(le.Uint64(b[8*i:]))) }
	case "F32":
		one = func(i int) float32 { return math.Float32frombits(le.Uint32(b[4*i:])) }
	case "F16":
		one = func(i int) float32 {
			var x [1]float32
			simd.FromHalf(x[:], []uint16{le.Uint16(b[2*i:])})
			return x[0]
		}
	case "BF16":
		one = func(i int) float32 { return math.Float32frombits(uint32(le.Uint16(b[2*i:])) << 16) }
	case "I64":
		one = func(i int) float32 { return float32(int64(le.Uint64(b[8*i:]))) }
	case "I32":
		one = func(i int) float32 { return float32(int32(le.Uint32(b[4*i:]))) }
	case "I16":
		one = func(i int) float32 { return float32(int16(le.Uint16(b[2*i:]))) }
	case "I8":
		one = func(i int) float32 { return float32(int8(b[i])) }
	case "U64":
		one = func(i int) float32 { return float32(le.Uint64(b[8*i:])) }
	case "U32":
		one = func(i int) float32 { return float32(le.Uint32(b[4*i:])) }
	case "U16":
		one = func(i int) float32 { return float32(le.Uint16(b[2*i:])) }
	default: // U8, BOOL
		one = func(i int) float32 { return float32(b[i]) }
	}
	for i := range out {
		out[i] = one(i)
	}
}
