package npy

import (
	"archive/zip"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of an archive. maxDirectory bounds the bytes that archive/zip reads, and so allocates,
// before the entries can be counted; it suffices for the directory of maxEntries entries and the
// search for its end.
const (
	maxEntries   = 256
	maxDirectory = 256 << 10

	localHeader   = 30 // bytes of an entry's header, without its name
	centralHeader = 46 // bytes of an entry in the directory, without its name
	endRecord     = 22
)

// entry is one file of an archive; its header has been checked against the archive's directory.
type entry struct {
	*zip.File
	from, to int64 // start of its header and end of its compressed content
}

// openArchive reads the directory of a zip archive of the given size. It refuses properties that an
// archive of arrays never has: encryption, entries that overlap (as a bomb's do) or are listed
// twice, names that are paths, or headers that differ from the directory. Package archive/zip
// accepts all of these.
func openArchive(r io.ReaderAt, size int64) ([]entry, error) {
	w := &watched{r: r, opening: true, left: maxDirectory}
	defer func() { w.opening = false }()
	z, err := zip.NewReader(w, size)
	switch {
	case w.left < 0:
		return nil, fmt.Errorf("its directory takes more than %d KiB; at most %d arrays are read", maxDirectory>>10, maxEntries)
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, errors.New("it is not a zip archive, or it was cut off or damaged: there is no valid directory at its end")
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // checkName gives a better message
		return nil, err
	case len(z.File) > maxEntries:
		return nil, fmt.Errorf("it has %d entries; at most %d arrays are read", len(z.File), maxEntries)
	}
	limit := size - endRecord - int64(len(z.Comment)) // the latest possible start of the directory
	for _, f := range z.File {
		limit -= centralHeader + int64(len(f.Name)+len(f.Extra)+len(f.Comment))
	}
	var entries []entry
	for _, f := range z.File {
		if slices.ContainsFunc(entries, func(e entry) bool { return e.Name == f.Name }) {
			return nil, fmt.Errorf("the entry %q is listed twice", f.Name)
		}
		if err := checkEntry(f, limit); err != nil {
			return nil, err
		}
		w.left = maxDirectory
		data, err := f.DataOffset()
		e := entry{f, w.last, data + int64(f.CompressedSize64)}
		switch {
		case errors.Is(err, zip.ErrFormat), errors.Is(err, io.EOF), err != nil && w.last < 0:
			return nil, fmt.Errorf("the entry %q does not begin at byte %d, as the directory says", f.Name, w.last)
		case err != nil:
			return nil, fmt.Errorf("the entry %q at byte %d: %w", f.Name, w.last, err)
		case e.to > limit:
			return nil, fmt.Errorf("the entry %q reaches from byte %d into the directory", f.Name, e.from)
		}
		if err := e.checkHeader(r); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	sorted := slices.SortedFunc(slices.Values(entries), func(x, y entry) int { return int(min(1, max(-1, x.from-y.from))) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1].to > sorted[i].from {
			return nil, fmt.Errorf("the entries %q and %q overlap at byte %d", sorted[i-1].Name, sorted[i].Name, sorted[i].from)
		}
	}
	return entries, nil
}

// watched is a reader that, while an archive is opened, bounds the bytes read and records the
// position of the last read. This is the only way to learn where archive/zip finds the header of an
// entry.
type watched struct {
	r       io.ReaderAt
	opening bool
	left    int64
	last    int64
}

var errTooMuch = errors.New("too much is read")

func (w *watched) ReadAt(p []byte, at int64) (int, error) {
	if w.opening {
		if w.left -= int64(len(p)); w.left < 0 {
			return 0, errTooMuch
		}
		w.last = at
	}
	return w.r.ReadAt(p, at)
}

// checkEntry refuses a directory entry with impossible properties. limit is the latest possible
// start of the directory.
func checkEntry(f *zip.File, limit int64) error {
	size, packed := f.UncompressedSize64, f.CompressedSize64
	switch name := f.Name; {
	case name == "" || len(name) > 255 || !utf8.ValidString(name):
		return fmt.Errorf("the name %.80q is not one of an array", name)
	case strings.ContainsAny(name, "/\\:\x00") || name == "." || name == "..":
		return fmt.Errorf("the name %.80q is a path; arrays have plain names", name)
	case f.Flags&1 != 0:
		return fmt.Errorf("the entry %q is encrypted", name)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("the entry %q is compressed by method %d; stored (0) and deflated (8) are read: write it again with numpy.savez_compressed", name, f.Method)
	case f.Method == zip.Store && size != packed:
		return fmt.Errorf("the entry %q is stored, but of %d bytes and %d bytes", name, packed, size)
	case size > 1<<62:
		return fmt.Errorf("the entry %q claims %d bytes", name, size)
	case limit < 0 || packed > uint64(limit):
		return fmt.Errorf("the entry %q claims %d bytes, beyond the directory at byte %d", name, packed, max(0, limit))
	case f.Method == zip.Deflate && size/1040 > packed: // deflate cannot do better than 1032 to 1
		return fmt.Errorf("the entry %q claims %d bytes out of %d, which deflate cannot hold", name, size, packed)
	case size > 0 && f.CRC32 == 0: // archive/zip skips the checksum comparison then
		return fmt.Errorf("the entry %q has no checksum", name)
	}
	return nil
}

// checkHeader compares the header before the entry's content with the directory.
func (e *entry) checkHeader(r io.ReaderAt) error {
	b := make([]byte, localHeader+len(e.Name))
	if n, err := r.ReadAt(b, e.from); n < len(b) {
		return fmt.Errorf("the entry %q is cut off: %w", e.Name, err)
	}
	if n := int(binary.LittleEndian.Uint16(b[26:])); n != len(e.Name) || string(b[localHeader:]) != e.Name {
		return fmt.Errorf("the entry at byte %d is called %.80q in the directory, but not in its own header", e.from, e.Name)
	}
	if m := binary.LittleEndian.Uint16(b[8:]); m != e.Method {
		return fmt.Errorf("the entry %q has method %d in its header and %d in the directory", e.Name, m, e.Method)
	}
	return nil
}

// size returns the content's length according to the directory.
func (e *entry) size() int64 { return int64(e.UncompressedSize64) }

// open opens the content for reading from its beginning. Memory does not depend on its size. The
// Read that returns io.EOF has verified length and checksum; a content that ends otherwise ends
// with an error.
func (e *entry) open() (io.ReadCloser, error) {
	r, err := e.Open()
	if err != nil {
		return nil, fmt.Errorf("the entry %q: %w", e.Name, err)
	}
	return &content{r, e}, nil
}

// content replaces the errors of archive/zip by plain messages.
type content struct {
	io.ReadCloser
	e *entry
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	var corrupt flate.CorruptInputError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, zip.ErrFormat):
		err = fmt.Errorf("the entry %q holds more than the %d bytes that the directory says", c.e.Name, c.e.size())
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the entry %q holds fewer than the %d bytes that the directory says", c.e.Name, c.e.size())
	case errors.Is(err, zip.ErrChecksum):
		err = fmt.Errorf("the entry %q was damaged: its checksum is not the directory's", c.e.Name)
	case errors.As(err, &corrupt):
		err = fmt.Errorf("the entry %q was damaged: its compressed bytes are not valid at byte %d", c.e.Name, int64(corrupt))
	}
	return 0, err
}
