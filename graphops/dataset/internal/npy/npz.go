// This file reads the .npz files of NumPy: zip archives with one .npy file per array. Arrays can
// be read repeatedly from the beginning, in blocks, so that a file can be checked in constant
// memory before anything is allocated for it.

package npy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// An archive's content may have at most ratioLimit times the file's bytes plus ratioBase. The
// datasets of the literature compress 4 to 10 times, small ones of words that are stored as dense features 140 times; a
// decompression bomb, 1000 times.
const (
	ratioLimit = 32
	ratioBase  = 32 << 20
)

// File is an open .npz file.
type File struct {
	Path   string
	Arrays []*Array // in the file's order; names are unique
	f      *os.File
	size   int64
	read   map[string]bool // arrays that were read
}

// Open opens a file and reads the header of each array; each header must agree with the archive's
// directory. DecodePickle decodes objects (strings, dicts): it executes nothing and refuses other
// types. Errors name the file.
func Open(path string) (*File, error) {
	// Stat comes before opening the file, because opening a named pipe would wait.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	file := &File{Path: path, size: info.Size()}
	if !info.Mode().IsRegular() {
		return nil, file.Errorf("it is not a regular file")
	}
	if file.f, err = atomicfile.Open(path); err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	if err := file.readHeaders(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Close closes the file; its arrays can no longer be read.
func (f *File) Close() error { return f.f.Close() }

// Errorf returns an error about the file.
func (f *File) Errorf(format string, args ...any) error {
	return fmt.Errorf("npz: reading %s: "+format, append([]any{f.Path}, args...)...)
}

// Find returns the array of the given name, or nil.
func (f *File) Find(name string) *Array {
	for _, a := range f.Arrays {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Names returns the names of the arrays in the file's order.
func (f *File) Names() []string {
	names := make([]string, len(f.Arrays))
	for i, a := range f.Arrays {
		names[i] = a.Name
	}
	return names
}

// Unread returns the names of the arrays that nobody has read, in the file's order.
func (f *File) Unread() (names []string) {
	for _, name := range f.Names() {
		if !f.read[name] {
			names = append(names, name)
		}
	}
	return names
}

func (f *File) readHeaders() error {
	entries, err := openArchive(f.f, f.size)
	if err != nil {
		return f.Errorf("%w", err)
	}
	var total int64
	for _, e := range entries {
		// Each size is at most 2^62, so the sum is refused before it overflows.
		if total += e.size(); total > ratioLimit*f.size+ratioBase {
			return f.Errorf("its %d bytes claim to hold %d bytes or more: it is not a file of arrays but a zip bomb", f.size, total)
		}
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name, ".npy")
		if !ok {
			return f.Errorf("its entry %q is not an array (NAME.npy)", e.Name)
		}
		a, err := f.header(&e, name)
		if err != nil {
			return f.Errorf("%s: %w", e.Name, err)
		}
		f.Arrays = append(f.Arrays, a)
	}
	return nil
}

// header reads the array header of one entry.
func (f *File) header(e *entry, name string) (*Array, error) {
	r, err := e.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h, err := ReadHeader(r)
	if err != nil {
		return nil, err
	}
	body := e.size() - int64(h.Len)
	if h.Type.Kind == 'O' {
		if err := f.checkObjects(r, body); err != nil {
			return nil, err
		}
	} else if want, ok := h.Bytes(); !ok || want != body {
		return nil, fmt.Errorf("the header says %s, but %d bytes follow it; it was cut off or written wrongly: write it again with numpy.savez", h.Describe(), body)
	}
	return &Array{
		Name: name, Type: h.Type, Shape: h.Shape, Fortran: h.Fortran,
		Open: func() (io.ReadCloser, error) {
			if f.read == nil {
				f.read = map[string]bool{}
			}
			f.read[name] = true
			r, err := e.open()
			if err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(r, make([]byte, h.Len)); err != nil {
				return nil, errors.Join(err, r.Close())
			}
			return r, nil
		},
	}, nil
}

// checkObjects decodes a pickle to check that it holds only plain values. Its length is bounded by
// the file's, because the decoded values may take a few times as much memory.
func (f *File) checkObjects(r io.Reader, size int64) error {
	if limit := f.size + 64<<10; size > limit {
		return fmt.Errorf("it holds %d bytes of Python objects; at most %d are read from a file of %d bytes", size, limit, f.size)
	}
	in, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return err
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // compares the checksum
		return fmt.Errorf("its pickle does not end with the entry: %w", err)
	}
	if _, err := DecodePickle(in); err != nil {
		return fmt.Errorf("its Python objects: %w", err)
	}
	return nil
}
