package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

type namedEntry struct {
	name string
	entry
}

// readHeader returns the entries in the order of their data, which begins at start and which they
// cover without gap or overlap. types are the types of elements to read, with their size in bytes.
func readHeader(r io.ReaderAt, size int64, types map[string]int) (entries []namedEntry, meta map[string]string, start int64, err error) {
	if size < 10 {
		return nil, nil, 0, fmt.Errorf("the file has %d bytes; the shortest safetensors file has 10", size)
	}
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, nil, 0, fmt.Errorf("the header's length is %d; at most %d is allowed, so this is not a safetensors file", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, nil, 0, fmt.Errorf("the header's length is %d but only %d bytes follow; the file is cut short", n, size-8)
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil && (!errors.Is(err, io.EOF) || int64(n) != size-8) {
		return nil, nil, 0, fmt.Errorf("reading the header: %w", err)
	}
	if entries, meta, err = parseHeader(header, types); err != nil {
		return nil, nil, 0, fmt.Errorf("the header: %w", err)
	}
	start = 8 + int64(n)
	entries = byOffsets(entries)
	at := int64(0)
	for _, e := range entries {
		if e.Offsets[0] != at {
			return nil, nil, 0, fmt.Errorf("tensor %q begins at byte %d of the data instead of %d; tensors must follow each other without gap or overlap",
				e.name, e.Offsets[0], at)
		}
		at = e.Offsets[1]
		if at > size-start {
			return nil, nil, 0, fmt.Errorf("tensor %q ends at byte %d of the data but there are only %d; the file is cut short", e.name, at, size-start)
		}
	}
	if at != size-start {
		return nil, nil, 0, fmt.Errorf("%d bytes after the last tensor belong to no tensor", size-start-at)
	}
	return entries, meta, start, nil
}

// parseHeader reads the JSON key by key, in order to detect duplicate names.
func parseHeader(header []byte, types map[string]int) (entries []namedEntry, meta map[string]string, err error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("it does not begin with {")
	}
	if !utf8.Valid(header) {
		return nil, nil, errors.New("it is not valid UTF-8")
	}
	seen := map[string]bool{}
	err = eachKey(header, func(name string, value json.RawMessage) error {
		if seen[name] {
			return fmt.Errorf("%q occurs twice", name)
		}
		seen[name] = true
		if name == metadataKey {
			meta = map[string]string{}
			return eachKey(value, func(k string, v json.RawMessage) error {
				var s *string
				if err := json.Unmarshal(v, &s); err != nil || s == nil {
					return fmt.Errorf("the metadata %q is not a string", k)
				}
				if _, twice := meta[k]; twice {
					return fmt.Errorf("the metadata %q occurs twice", k)
				}
				meta[k] = *s
				return nil
			})
		}
		e := namedEntry{name: name}
		d := json.NewDecoder(bytes.NewReader(value))
		d.DisallowUnknownFields()
		if err := d.Decode(&e.entry); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		entries = append(entries, e)
		return e.check(types)
	})
	return entries, meta, err
}

func (e *namedEntry) check(types map[string]int) error {
	size, ok := int64(types[e.DType]), types[e.DType] > 0
	switch {
	case !ok && len(types) == 1:
		return fmt.Errorf("tensor %q is of type %q; only F32 is supported: convert it, in Python with tensor.float()", e.name, e.DType)
	case !ok:
		return fmt.Errorf("tensor %q is of type %q; the types %s are read", e.name, e.DType, strings.Join(slices.Sorted(maps.Keys(types)), ", "))
	}
	n, ok := elements(e.Shape)
	if !ok || e.Shape == nil {
		return fmt.Errorf("tensor %q has shape %v", e.name, e.Shape)
	}
	if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
		return fmt.Errorf("tensor %q has data offsets %v", e.name, e.Offsets)
	}
	if got := e.Offsets[1] - e.Offsets[0]; got != size*int64(n) {
		return fmt.Errorf("tensor %q has shape %v, %d bytes, and %d bytes of data", e.name, e.Shape, size*int64(n), got)
	}
	return nil
}

// eachKey calls f for each key of a JSON object, in order. It returns an error if anything but
// spaces follows the object.
func eachKey(object []byte, f func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := tok.(string)
		if !ok {
			return fmt.Errorf("%v is not a key", tok)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("the value of %q: %w", key, err)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if rest := bytes.Trim(object[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("%d bytes follow the JSON object", len(rest))
	}
	return nil
}

// byOffsets returns the entries in the order of their data; entries with the same place keep their order.
func byOffsets(entries []namedEntry) []namedEntry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(x, y namedEntry) int {
		return cmp.Or(cmp.Compare(x.Offsets[0], y.Offsets[0]), cmp.Compare(x.Offsets[1], y.Offsets[1]))
	})
	return sorted
}
