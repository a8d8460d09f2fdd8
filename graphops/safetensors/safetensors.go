// Package safetensors reads and writes files of weights in the safetensors format, float32 tensors
// only; [ReadConverted] reads those of other types. Runs store their networks in it, and Python reads them with the
// safetensors package.
//
// [WriteFile] adds a checksum to the metadata, and [ReadFile] compares it. [Read] and [Write] are
// the bare format, without checksums.
//
// A file consists of an 8-byte little-endian length, a JSON header of that many bytes, and the
// tensors' bytes, little-endian and row-major, one after another. The header maps each name to its
// dtype, shape and [begin, end) in the data, and "__metadata__" to strings. Reading executes
// nothing, and no header makes it allocate more memory than the file is long.
//
// Source: https://github.com/huggingface/safetensors, "Format".
package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// maxHeader is the limit of the reference implementation.
const maxHeader = 100_000_000

const metadataKey = "__metadata__"

// Tensor is a named array, row-major. A Shape of no dimensions is a scalar;
// a dimension may be 0.
type Tensor struct {
	Name  string
	Shape []int
	F32   []float32
}

// float32Only are the types that a run's weights have, with their sizes in bytes.
var float32Only = map[string]int{"F32": 4}

// elements returns the product of shape, or false if a dimension is negative or the product
// overflows.
func elements(shape []int) (int, bool) {
	n := 1
	for _, d := range shape {
		if d < 0 || (d > 0 && n > math.MaxInt/8/d) {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// Write writes the tensors in the given order, and meta if it is not empty.
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
	header, err := encodeHeader(tensors, meta)
	if err != nil {
		return err
	}
	if err := writeWith(w, header, tensors); err != nil {
		return fmt.Errorf("safetensors: writing: %w", err)
	}
	return nil
}

func writeWith(w io.Writer, header []byte, tensors []Tensor) error {
	size := len(header) + 8
	for _, t := range tensors {
		size += 4 * len(t.F32)
	}
	bw := bufio.NewWriterSize(w, min(max(size, 4<<10), chunkBytes))
	if _, err := bw.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))); err != nil {
		return err
	}
	if _, err := bw.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := writeFloats(bw, t.F32); err != nil {
			return err // of the file, whichever tensor meets it
		}
	}
	return bw.Flush()
}

// chunkBytes is the size of the pieces in which tensors are written.
const chunkBytes = 64 << 10

// writeFloats writes v as the format stores it.
func writeFloats(w io.Writer, v []float32) error {
	buf := make([]byte, 0, min(max(4*len(v), 4), chunkBytes))
	for part := range slices.Chunk(v, cap(buf)/4) {
		buf = buf[:0]
		for _, x := range part {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func encodeHeader(tensors []Tensor, meta map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string, v any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		k, err := marshal(key)
		if err != nil {
			return err
		}
		j, err := marshal(v)
		if err != nil {
			return err
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(j)
		return nil
	}
	if len(meta) > 0 {
		for k, v := range meta {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("safetensors: the metadata %q is not valid UTF-8", k)
			}
		}
		if err := put(metadataKey, meta); err != nil {
			return nil, fmt.Errorf("safetensors: writing the metadata: %w", err)
		}
	}
	seen, offset := map[string]bool{}, int64(0)
	for _, t := range tensors {
		n, ok := elements(t.Shape)
		switch {
		case t.Name == metadataKey || !utf8.ValidString(t.Name):
			return nil, fmt.Errorf("safetensors: %q cannot be the name of a tensor", t.Name)
		case seen[t.Name]:
			return nil, fmt.Errorf("safetensors: two tensors are named %q", t.Name)
		case !ok || n != len(t.F32):
			return nil, fmt.Errorf("safetensors: tensor %q has shape %v and %d values", t.Name, t.Shape, len(t.F32))
		}
		seen[t.Name] = true
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		end := offset + 4*int64(n)
		if err := put(t.Name, entry{DType: "F32", Shape: shape, Offsets: []int64{offset, end}}); err != nil {
			return nil, fmt.Errorf("safetensors: writing %q: %w", t.Name, err)
		}
		offset = end
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 { // aligns the data
		b.WriteByte(' ')
	}
	if b.Len() > maxHeader {
		return nil, fmt.Errorf("safetensors: the header has %d bytes; readers take at most %d", b.Len(), maxHeader)
	}
	return b.Bytes(), nil
}

// marshal leaves <, > and & unescaped, so that the header is readable.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

type entry struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// Read reads a file of size bytes and returns its tensors, in the order of their data, and its
// metadata. It checks everything in the header before using it; a tensor that is not float32 is an
// error that names it.
func Read(r io.ReaderAt, size int64) (tensors []Tensor, meta map[string]string, err error) {
	entries, meta, start, err := readHeader(r, size, float32Only)
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	buf := make([]byte, 64<<10)
	for _, e := range entries {
		t := Tensor{Name: e.name, Shape: e.Shape, F32: make([]float32, (e.Offsets[1]-e.Offsets[0])/4)}
		at := start + e.Offsets[0]
		for part := range slices.Chunk(t.F32, len(buf)/4) {
			b := buf[:4*len(part)]
			if _, err := r.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
				return nil, nil, fmt.Errorf("safetensors: reading %q at byte %d: %w", e.name, at, err)
			} else if err != nil && at+int64(len(b)) != size {
				return nil, nil, fmt.Errorf("safetensors: reading %q at byte %d: %w", e.name, at, io.ErrUnexpectedEOF)
			}
			for i := range part {
				part[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
			at += int64(len(b))
		}
		tensors = append(tensors, t)
	}
	return tensors, meta, nil
}

// open opens a regular file, and returns its size.
func open(path string) (f *os.File, size int64, err error) {
	if f, err = atomicfile.Open(path); err != nil {
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	return f, info.Size(), nil
}

// ReadFile reads the regular file at path. If a file of [WriteFile] has changed since it was
// written, the error matches [ErrDamaged]; if only the checksum differs, ReadFile returns the
// content as well as the error. Damage to a file without a checksum, as other programs write them,
// may go unnoticed; see [Sealed].
func ReadFile(path string) (tensors []Tensor, meta map[string]string, err error) {
	f, size, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return readChecked(f, size, path)
}

// WriteFile writes the file at path completely or not at all (see package atomicfile). It adds a
// checksum to the metadata, under the keys gnb_sealed and gnb_sha256.
func WriteFile(path string, tensors []Tensor, meta map[string]string) error {
	header, err := seal(tensors, meta)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := atomicfile.Replaceable(path); err != nil { // opening a pipe would block
		return fmt.Errorf("safetensors: %w", err)
	}
	err = atomicfile.WriteWith(path, 0o644, func(w io.Writer) error { return writeWith(w, header, tensors) })
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}
