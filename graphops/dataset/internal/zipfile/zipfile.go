// Package zipfile reads zip archives that somebody else made, strictly. The
// standard archive/zip is made for archives one trusts; this reader says at which
// byte an archive is wrong, and refuses what an archive of arrays never is:
// encrypted, split, with entries that overlap (as a bomb's do) or that are listed
// twice, with names that are paths, or with other bytes than its directory says.
//
// It holds the directory and nothing else in memory: at most [MaxEntries]
// entries. Entries are decompressed as they are read, and end with an error where
// length or checksum differ from the directory's.
package zipfile

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxEntries is the largest number of entries of an archive.
const MaxEntries = 256

const (
	localMagic   = "PK\x03\x04"
	centralMagic = "PK\x01\x02"
	endMagic     = "PK\x05\x06"
	end64Magic   = "PK\x06\x06"
	find64Magic  = "PK\x06\x07"

	localSize   = 30
	centralSize = 46
	endSize     = 22
	end64Size   = 56
	find64Size  = 20

	stored   = 0
	deflated = 8
)

// Archive is an open archive. Its entries can be read concurrently where the
// underlying reader allows it.
type Archive struct {
	Entries []*Entry // in the directory's order
	r       io.ReaderAt
}

// Entry is one file of an archive.
type Entry struct {
	Name   string
	Size   int64 // of the content, by the directory
	Packed int64 // of the compressed content

	at     int64 // of the local header
	data   int64 // of the compressed content
	crc    uint32
	method uint16
	r      io.ReaderAt
}

// Error is what is wrong with an archive, and where.
type Error struct {
	Pos int64 // byte of the archive
	Why string
}

func (e *Error) Error() string { return fmt.Sprintf("at byte %d: %s", e.Pos, e.Why) }

func wrong(pos int64, format string, args ...any) error {
	return &Error{Pos: pos, Why: fmt.Sprintf(format, args...)}
}

// Open reads the directory of an archive of the given size. Errors of the
// archive's content are [*Error]s.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	d, err := findDirectory(r, size)
	if err != nil {
		return nil, err
	}
	a := &Archive{r: r}
	at := d.at
	for i := range d.entries {
		e, next, err := readCentral(r, at, d)
		if err != nil {
			return nil, err
		}
		if err := checkName(e.Name); err != nil {
			return nil, wrong(at, "entry %d: %v", i, err)
		}
		if slices.ContainsFunc(a.Entries, func(o *Entry) bool { return o.Name == e.Name }) {
			return nil, wrong(at, "the entry %q is listed twice", e.Name)
		}
		a.Entries = append(a.Entries, e)
		at = next
	}
	if at != d.at+d.size {
		return nil, wrong(at, "the directory of %d bytes ends %d bytes before its end", d.size, d.at+d.size-at)
	}
	for _, e := range a.Entries {
		if err := e.readLocal(d.at); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(a.Entries)
	slices.SortFunc(sorted, func(x, y *Entry) int { return int(min(1, max(-1, x.at-y.at))) })
	for i, e := range sorted[min(1, len(sorted)):] {
		if before := sorted[i]; before.data+before.Packed > e.at {
			return nil, wrong(e.at, "the entries %q and %q overlap", before.Name, e.Name)
		}
	}
	return a, nil
}

// Find is the entry of the given name, or nil.
func (a *Archive) Find(name string) *Entry {
	for _, e := range a.Entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// directory is where the list of entries is.
type directory struct {
	at, size int64
	entries  int
}

// findDirectory looks for the end record in the archive's last bytes.
func findDirectory(r io.ReaderAt, size int64) (directory, error) {
	var d directory
	tail := min(size, endSize+1<<16-1) // with the longest comment
	buf, err := read(r, size-tail, int(tail), "the end of the directory")
	if err != nil {
		return d, err
	}
	i := len(buf)
	for {
		if i = bytes.LastIndex(buf[:i], []byte(endMagic)); i < 0 {
			return d, wrong(size, "it is not a zip archive, or was cut off: it has no directory at its end")
		}
		if len(buf)-i >= endSize && int(binary.LittleEndian.Uint16(buf[i+20:])) == len(buf)-i-endSize {
			break
		}
	}
	at := size - tail + int64(i)
	rec := buf[i:]
	entries := uint64(binary.LittleEndian.Uint16(rec[10:]))
	length, start := uint64(binary.LittleEndian.Uint32(rec[12:])), uint64(binary.LittleEndian.Uint32(rec[16:]))
	if disk := binary.LittleEndian.Uint32(rec[4:]); disk != 0 && disk != 0xffffffff {
		return d, wrong(at, "it is one part of an archive of several files")
	}
	if binary.LittleEndian.Uint16(rec[8:]) != binary.LittleEndian.Uint16(rec[10:]) {
		return d, wrong(at, "its counts of entries differ: %d and %d", binary.LittleEndian.Uint16(rec[8:]), entries)
	}
	if entries == 0xffff || length == 0xffffffff || start == 0xffffffff {
		if at, entries, length, start, err = findDirectory64(r, at); err != nil {
			return d, err
		}
	}
	if entries > MaxEntries {
		return d, wrong(at, "it claims %d entries; at most %d are read", entries, MaxEntries)
	}
	if start > uint64(at) || length != uint64(at)-start {
		return d, wrong(at, "its directory claims the bytes from %d on, %d of them, but must end at byte %d", start, length, at)
	}
	if entries*centralSize > length {
		return d, wrong(at, "it claims %d entries in a directory of %d bytes", entries, length)
	}
	return directory{at: int64(start), size: int64(length), entries: int(entries)}, nil
}

// findDirectory64 follows the locator before the end record at byte end.
func findDirectory64(r io.ReaderAt, end int64) (at int64, entries, length, start uint64, err error) {
	fail := func(e error) (int64, uint64, uint64, uint64, error) { return 0, 0, 0, 0, e }
	if end < find64Size {
		return fail(wrong(end, "its zip64 directory is missing"))
	}
	buf, err := read(r, end-find64Size, find64Size, "the zip64 locator")
	if err != nil {
		return fail(err)
	}
	where := binary.LittleEndian.Uint64(buf[8:])
	if string(buf[:4]) != find64Magic || end < find64Size+end64Size || where != uint64(end-find64Size-end64Size) {
		return fail(wrong(end-find64Size, "its zip64 directory is missing"))
	}
	if buf, err = read(r, int64(where), end64Size, "the zip64 directory"); err != nil {
		return fail(err)
	}
	if string(buf[:4]) != end64Magic {
		return fail(wrong(int64(where), "its zip64 directory is missing"))
	}
	return int64(where), binary.LittleEndian.Uint64(buf[32:]), binary.LittleEndian.Uint64(buf[40:]), binary.LittleEndian.Uint64(buf[48:]), nil
}

// readCentral reads the directory's entry at byte at.
func readCentral(r io.ReaderAt, at int64, d directory) (e *Entry, next int64, err error) {
	end := d.at + d.size
	if end-at < centralSize {
		return nil, 0, wrong(at, "the directory ends within an entry")
	}
	buf, err := read(r, at, centralSize, "the directory")
	if err != nil {
		return nil, 0, err
	}
	if string(buf[:4]) != centralMagic {
		return nil, 0, wrong(at, "an entry of the directory was expected")
	}
	name, extra, comment := int(binary.LittleEndian.Uint16(buf[28:])), int(binary.LittleEndian.Uint16(buf[30:])), int(binary.LittleEndian.Uint16(buf[32:]))
	next = at + centralSize + int64(name+extra+comment)
	if next > end {
		return nil, 0, wrong(at, "the directory ends within an entry")
	}
	flags := binary.LittleEndian.Uint16(buf[8:])
	packed, size, start := uint64(binary.LittleEndian.Uint32(buf[20:])), uint64(binary.LittleEndian.Uint32(buf[24:])), uint64(binary.LittleEndian.Uint32(buf[42:]))
	e = &Entry{crc: binary.LittleEndian.Uint32(buf[16:]), method: binary.LittleEndian.Uint16(buf[10:]), r: r}
	text, err := read(r, at+centralSize, name+extra, "the directory")
	if err != nil {
		return nil, 0, err
	}
	e.Name = string(text[:name])
	if err := zip64(text[name:], &size, &packed, &start); err != nil {
		return nil, 0, wrong(at, "the entry %.80q: %v", e.Name, err)
	}
	switch {
	case flags&1 != 0:
		return nil, 0, wrong(at, "the entry %.80q is encrypted", e.Name)
	case e.method != stored && e.method != deflated:
		return nil, 0, wrong(at, "the entry %.80q is compressed by method %d; stored (0) and deflated (8) are read: write it again with numpy.savez_compressed", e.Name, e.method)
	case e.method == stored && size != packed:
		return nil, 0, wrong(at, "the entry %.80q is stored, but of %d bytes and %d bytes", e.Name, packed, size)
	case size > 1<<62:
		return nil, 0, wrong(at, "the entry %.80q claims %d bytes", e.Name, size)
	case start > uint64(d.at) || packed > uint64(d.at)-start:
		return nil, 0, wrong(at, "the entry %.80q claims %d bytes from byte %d on, beyond the directory at byte %d", e.Name, packed, start, d.at)
	// Deflate cannot do better than 1032 to 1.
	case e.method == deflated && size/1040 > packed:
		return nil, 0, wrong(at, "the entry %.80q claims %d bytes out of %d, which deflate cannot hold", e.Name, size, packed)
	}
	e.Size, e.Packed, e.at = int64(size), int64(packed), int64(start)
	return e, next, nil
}

// zip64 replaces the sizes that did not fit into 32 bits by those of the extra
// field.
func zip64(extra []byte, sizes ...*uint64) error {
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return errors.New("its extra field is cut off")
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		if id != 1 {
			continue
		}
		for _, s := range sizes {
			if *s != 0xffffffff {
				continue
			}
			if len(field) < 8 {
				return errors.New("its zip64 field is cut off")
			}
			*s = binary.LittleEndian.Uint64(field)
			field = field[8:]
		}
		return nil
	}
	return nil
}

// readLocal finds the entry's data behind its local header.
func (e *Entry) readLocal(limit int64) error {
	if limit-e.at < localSize {
		return wrong(e.at, "the entry %q ends within its header", e.Name)
	}
	buf, err := read(e.r, e.at, localSize, "an entry")
	if err != nil {
		return err
	}
	if string(buf[:4]) != localMagic {
		return wrong(e.at, "the entry %q does not begin here, as the directory says", e.Name)
	}
	name, extra := int(binary.LittleEndian.Uint16(buf[26:])), int(binary.LittleEndian.Uint16(buf[28:]))
	e.data = e.at + localSize + int64(name+extra)
	if e.data > limit || e.Packed > limit-e.data {
		return wrong(e.at, "the entry %q reaches into the directory at byte %d", e.Name, limit)
	}
	text, err := read(e.r, e.at+localSize, name, "an entry")
	if err != nil {
		return err
	}
	if string(text) != e.Name {
		return wrong(e.at, "the entry %q is called %.80q in the directory", text, e.Name)
	}
	if m := binary.LittleEndian.Uint16(buf[8:]); m != e.method {
		return wrong(e.at, "the entry %q has method %d here and %d in the directory", e.Name, m, e.method)
	}
	return nil
}

// checkName refuses names that would be paths: the arrays of an archive lie side
// by side.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > 255 || !utf8.ValidString(name):
		return fmt.Errorf("the name %.80q is not one of an array", name)
	case strings.ContainsAny(name, "/\\:\x00") || name == "." || name == "..":
		return fmt.Errorf("the name %.80q is a path; arrays have plain names", name)
	}
	return nil
}

// read is n bytes from byte at on.
func read(r io.ReaderAt, at int64, n int, what string) ([]byte, error) {
	buf := make([]byte, n)
	if got, err := r.ReadAt(buf, at); got < n {
		if err == nil || errors.Is(err, io.EOF) {
			return nil, wrong(at+int64(got), "it ends within %s", what)
		}
		return nil, err
	}
	return buf, nil
}

// Open reads the entry's content from its beginning. Memory does not depend on
// its size. The reader's last Read, the one that returns io.EOF, has compared
// length and checksum with the directory; every other end is an error. Close lets
// the next Open use the decompressor's memory.
func (e *Entry) Open() io.ReadCloser {
	c := &content{e: e, packed: io.NewSectionReader(e.r, e.data, e.Packed)}
	if e.method == stored {
		c.r = c.packed
		return c
	}
	c.in = inflaters.Get().(*inflater)
	c.in.reset(c.packed)
	c.r = c.in.out
	return c
}

// inflater is a decompressor with its input, 50 KiB of buffers.
type inflater struct {
	byteReader
	out io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	i := &inflater{byteReader: byteReader{buf: make([]byte, 0, 16<<10)}}
	i.out = flate.NewReader(&i.byteReader)
	return i
}}

func (i *inflater) reset(r io.Reader) {
	i.r, i.buf, i.at, i.read = r, i.buf[:0], 0, 0
	// It cannot fail without a dictionary.
	_ = i.out.(flate.Resetter).Reset(&i.byteReader, nil)
}

type content struct {
	e      *Entry
	packed *io.SectionReader
	in     *inflater // nil where the content is stored, and once it is closed
	r      io.Reader
	n      int64
	crc    uint32
	err    error
}

// Close ends the reading.
func (c *content) Close() error {
	if c.in != nil {
		inflaters.Put(c.in)
	}
	c.in, c.err = nil, fs.ErrClosed
	return nil
}

func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.crc = crc32.Update(c.crc, crc32.IEEETable, p[:n])
	var corrupt flate.CorruptInputError
	switch {
	case c.n > c.e.Size:
		err = wrong(c.e.at, "the entry %q holds more than the %d bytes that the directory says", c.e.Name, c.e.Size)
	case errors.As(err, &corrupt):
		err = wrong(c.e.data+int64(corrupt), "the compressed bytes of the entry %q are damaged", c.e.Name)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = wrong(c.e.data+c.e.Packed, "the compressed bytes of the entry %q are cut off", c.e.Name)
	case errors.Is(err, io.EOF):
		switch {
		case c.n != c.e.Size:
			err = wrong(c.e.at, "the entry %q holds %d bytes; the directory says %d", c.e.Name, c.n, c.e.Size)
		case c.in != nil && c.in.read != c.e.Packed:
			err = wrong(c.e.data+c.in.read, "bytes follow the compressed content of the entry %q", c.e.Name)
		case c.crc != c.e.crc:
			err = wrong(c.e.at, "the entry %q has the checksum %08x; the directory says %08x: it was damaged", c.e.Name, c.crc, c.e.crc)
		}
	}
	if c.err = err; err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n, err
}

// byteReader is an io.ByteReader, which flate reads no further than it needs,
// that counts what was taken.
type byteReader struct {
	r    io.Reader
	buf  []byte
	at   int
	read int64
}

func (b *byteReader) fill() error {
	if b.at < len(b.buf) {
		return nil
	}
	n, err := io.ReadAtLeast(b.r, b.buf[:cap(b.buf)], 1)
	b.buf, b.at = b.buf[:n], 0
	if n > 0 {
		return nil
	}
	return err
}

func (b *byteReader) ReadByte() (byte, error) {
	if err := b.fill(); err != nil {
		return 0, err
	}
	b.at++
	b.read++
	return b.buf[b.at-1], nil
}

func (b *byteReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := b.fill(); err != nil {
		return 0, err
	}
	n := copy(p, b.buf[b.at:])
	b.at += n
	b.read += int64(n)
	return n, nil
}
