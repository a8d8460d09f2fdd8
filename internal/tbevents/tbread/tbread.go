// Package tbread reads event files for tests: it is an independent implementation, from the
// formats' descriptions, of the format that package tbevents writes.
package tbread

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// File returns the content of a directory's event file, of which there must be one.
func File(t testing.TB, dir string) []byte {
	t.Helper()
	files, err := fs.Glob(os.DirFS(dir), "*tfevents*") // dir is not a pattern
	if err != nil || len(files) != 1 {
		t.Fatalf("event files in %s: %v (%v), want one", dir, files, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, files[0]))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// crc returns the masked CRC-32C bit by bit, from the polynomial alone.
func crc(data []byte) uint32 {
	c := ^uint32(0)
	for _, b := range data {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0x82f63b78&-(c&1)
		}
	}
	c = ^c
	return (c>>15 | c<<17) + 0xa282ead8
}

// records splits a file into the data of its records and checks both checksums.
func records(t testing.TB, file []byte) (out [][]byte) {
	t.Helper()
	for len(file) > 0 {
		n := int(binary.LittleEndian.Uint64(file))
		if binary.LittleEndian.Uint32(file[8:]) != crc(file[:8]) || binary.LittleEndian.Uint32(file[12+n:]) != crc(file[12:12+n]) {
			t.Fatalf("record %d has a wrong checksum", len(out))
		}
		out = append(out, file[12:12+n])
		file = file[16+n:]
	}
	return out
}

// paths decodes a message to lines "path value", in ascending order: the path is the field numbers
// from the outermost to the innermost. inside lists the paths that are messages.
func paths(t testing.TB, b []byte, at string, inside map[string]bool) (out []string) {
	t.Helper()
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		b = b[n:]
		path := fmt.Sprintf("%s.%d", at, key>>3)
		switch key & 7 {
		case 0:
			x, n := binary.Uvarint(b)
			out, b = append(out, fmt.Sprintf("%s int %d", path, x)), b[n:]
		case 1:
			out, b = append(out, fmt.Sprintf("%s double %v", path, math.Float64frombits(binary.LittleEndian.Uint64(b)))), b[8:]
		case 5:
			out, b = append(out, fmt.Sprintf("%s float %v", path, math.Float32frombits(binary.LittleEndian.Uint32(b)))), b[4:]
		case 2:
			size, n := binary.Uvarint(b)
			data := b[n : n+int(size)]
			b = b[n+int(size):]
			if inside[path] {
				of := paths(t, data, path, inside)
				out = append(out, path+" {"+strings.Join(of, ", ")+"}")
			} else {
				out = append(out, fmt.Sprintf("%s %q", path, data))
			}
		default:
			t.Fatalf("wire type %d at %s", key&7, path)
		}
	}
	slices.Sort(out)
	return out
}

// Lines returns a file as lines, one event per line: field numbers and values.
func Lines(t testing.TB, file []byte) (out []string) {
	t.Helper()
	inside := map[string]bool{}
	for _, p := range []string{
		".5", ".5.1", ".7", // a summary, its values; the session
		".5.1.8", ".5.1.8.2", ".5.1.8.2.2", // a value's tensor
		".5.1.9", ".5.1.9.1", ".5.1.9.1.2", // a value's metadata, plug-in and its content
		".5.1.9.1.2.3", ".5.1.9.1.2.3.1", ".5.1.9.1.2.3.1.2", ".5.1.9.1.2.4", // the start and the end of a session
	} {
		inside[p] = true
	}
	for _, r := range records(t, file) {
		out = append(out, strings.Join(paths(t, r, "", inside), "; "))
	}
	return out
}

// Point is a number at a step, and its time in seconds since 1970.
type Point struct {
	Step  int64
	Value float64
	Time  float64
}

// Scalars returns a file's numbers by tag, in file order.
func Scalars(t testing.TB, file []byte) map[string][]Point {
	t.Helper()
	out := map[string][]Point{}
	for _, r := range records(t, file) {
		var p Point
		walk(t, r, func(field uint64, number float64, data []byte) {
			switch field {
			case 1:
				p.Time = number
			case 2:
				p.Step = int64(number)
			case 5:
				walk(t, data, func(_ uint64, _ float64, value []byte) {
					tag, simple := "", false
					walk(t, value, func(field uint64, number float64, data []byte) {
						switch field {
						case 1:
							tag = string(data)
						case 2:
							p.Value, simple = number, true
						}
					})
					if simple {
						out[tag] = append(out[tag], p)
					}
				})
			}
		})
	}
	return out
}

// walk calls f for each field of a message: with its number, or with its bytes.
func walk(t testing.TB, b []byte, f func(field uint64, number float64, data []byte)) {
	t.Helper()
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		b = b[n:]
		switch field := key >> 3; key & 7 {
		case 0:
			x, n := binary.Uvarint(b)
			f(field, float64(x), nil)
			b = b[n:]
		case 1:
			f(field, math.Float64frombits(binary.LittleEndian.Uint64(b)), nil)
			b = b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			f(field, 0, b[n:n+int(size)])
			b = b[n+int(size):]
		case 5:
			f(field, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil)
			b = b[4:]
		default:
			t.Fatalf("wire type %d", key&7)
		}
	}
}
