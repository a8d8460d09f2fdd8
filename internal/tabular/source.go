// Package tabular reads the text files of graphs, for the packages convert and tables: it opens a file or a
// folder ([Source]), decompressed ([File]), as text in blocks for several threads ([EachBlock]) or as CSV
// ([CSVFile]).
//
// Files are not trusted: a [File] refuses a decompression bomb, a line or record has a largest length,
// and errors name the file and the position. A [Meter] counts the bytes that are read, and remembers
// which files were.
package tabular

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/graphnb/graphnb/internal/atomicfile"
)

// Source is the input of a conversion: a file, or a folder with the files of one dataset.
type Source struct {
	Path string // of the file or folder, as the user gave it
	Dir  bool
	// Files holds the sorted names of the regular files directly in the folder; Dirs, those of its
	// folders. Both are empty if the source is a file.
	Files, Dirs []string
	// Head is the beginning of a file, decompressed: at most 4 KiB.
	Head []byte

	Meter *Meter // counts what is read of it
}

// Meter counts the bytes read, to report progress.
type Meter struct {
	Done, Total atomic.Int64
	Report      func(done, total int64) // nil: no reports
	reported    atomic.Int64

	mu   sync.Mutex
	read map[string]bool // the files that were opened, by path
	lost []lostValues

	Names map[string][]string // lines of further files of the result, by the file's name
}

// Note records that a file is read.
func (m *Meter) Note(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil {
		m.read = map[string]bool{}
	}
	m.read[filepath.Clean(path)] = true
}

// WasRead reports whether a file of a folder was opened.
func (m *Meter) WasRead(folder, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read[filepath.Join(folder, name)]
}

// Take adds what another meter has counted, and the files that it knows as read.
func (m *Meter) Take(o *Meter) {
	o.mu.Lock()
	read := slices.Collect(maps.Keys(o.read))
	o.mu.Unlock()
	for _, path := range read {
		m.Note(path)
	}
	m.Total.Add(o.Total.Load())
	m.add(int(o.Done.Load()))
}

// progressStep is the number of bytes between two progress reports.
const progressStep = 1 << 22

func (m *Meter) add(n int) {
	done := m.Done.Add(int64(n))
	if m.Report == nil {
		return
	}
	if last := m.reported.Load(); done-last >= progressStep && m.reported.CompareAndSwap(last, done) {
		m.Report(done, max(done, m.Total.Load()))
	}
}

// Inspect looks at path; of a file it reads only the beginning.
func Inspect(path string, m *Meter) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, Errorf("%w", err)
	}
	s := &Source{Path: path, Dir: info.IsDir(), Meter: m}
	if !s.Dir {
		if err := s.readHead(); err != nil {
			return nil, err
		}
		return s, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, Errorf("%w", err)
	}
	for _, e := range entries {
		// A link counts as its target.
		info, err := os.Stat(filepath.Join(path, e.Name()))
		switch {
		case err != nil: // a dangling link
		case info.IsDir():
			s.Dirs = append(s.Dirs, e.Name())
		case info.Mode().IsRegular():
			s.Files = append(s.Files, e.Name())
		}
	}
	return s, nil
}

// Single returns the source of one file without looking at it.
func Single(path string, m *Meter) *Source { return &Source{Path: path, Meter: m} }

func (s *Source) readHead() error {
	f, err := OpenFile(s.Path, &Meter{})
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	s.Head = head[:n]
	return nil
}

// Has reports whether the folder has a regular file (or a folder) at that path.
func (s *Source) Has(name string) bool {
	if !s.Dir {
		return false
	}
	_, err := os.Stat(filepath.Join(s.Path, filepath.FromSlash(name)))
	return err == nil
}

// Find returns the first of the names that the folder has, or "".
func (s *Source) Find(names ...string) string {
	for _, name := range names {
		if s.Has(name) {
			return name
		}
	}
	return ""
}

// Base returns the name of the source without its folder and its endings. For a folder named after
// its format, it returns the name of the parent folder.
func (s *Source) Base(format string) string {
	abs, err := filepath.Abs(s.Path)
	if err != nil {
		abs = s.Path
	}
	name := filepath.Base(abs)
	switch {
	case !s.Dir:
		name = Stem(name)
	case strings.EqualFold(name, format):
		name = filepath.Base(filepath.Dir(abs))
	}
	if name == "" || name == string(filepath.Separator) {
		return format
	}
	return name
}

// Stem returns a file's name without the endings of its format and compression.
func Stem(name string) string {
	for _, ending := range []string{".gz", ".bz2", ".xz", ".npz", ".npy", ".txt", ".csv", ".tsv", ".edges", ".edgelist", ".el", ".graph", ".gr", ".mtx", ".jlg", ".adjlist", ".adj"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// HasEnding reports whether the file's name has one of the endings, before the ending of a
// compression format.
func HasEnding(path string, endings ...string) bool {
	for _, packed := range []string{".gz", ".bz2", ".xz"} {
		path = strings.TrimSuffix(path, packed)
	}
	for _, ending := range endings {
		if strings.HasSuffix(path, ending) {
			return true
		}
	}
	return false
}

// Open opens a file of the folder (or the file itself, if name is empty) and decompresses it if
// needed. what says in an error why the format needs the file.
func (s *Source) Open(name, what string) (*File, error) {
	path := s.Path
	if name != "" {
		path = filepath.Join(s.Path, filepath.FromSlash(name))
	}
	f, err := OpenFile(path, s.Meter)
	if errors.Is(err, fs.ErrNotExist) && what != "" {
		return nil, Errorf("%s is missing: it holds %s", path, what)
	}
	return f, err
}

// Keep adds a file of lines to the directory of the result.
func (s *Source) Keep(file string, lines []string) {
	if s.Meter.Names == nil {
		s.Meter.Names = map[string][]string{}
	}
	s.Meter.Names[file] = lines
}

// File is an input file that is read sequentially and decompressed. Its errors name it.
type File struct {
	Path string
	Size int64 // as stored
	// packed reports that the stored bytes are compressed, so that size says little about the
	// decompressed size.
	Packed bool
	raw    *os.File
	stored *counter
	r      io.Reader
}

// bombFloor and bombRatio limit decompressed output: bombFloor bytes are always allowed, and
// bombRatio bytes per compressed byte read. Deflate reaches a ratio of 1032; text of numbers, 3 to
// 10; a column in which all rows are equal, 100 and more, but two million such rows fit under the
// floor, which is the memory that a small file can cost.
const (
	bombFloor = 4 << 20
	bombRatio = 32
)

// OpenFile opens the regular file at path and detects its compression by its first bytes.
func OpenFile(path string, m *Meter) (*File, error) {
	raw, err := atomicfile.Open(path)
	switch {
	case errors.Is(err, atomicfile.ErrNotRegular):
		return nil, Errorf("%s is not a regular file", path)
	case err != nil:
		return nil, Errorf("%w", err)
	}
	info, err := raw.Stat()
	if err != nil {
		_ = raw.Close()
		return nil, Errorf("%w", err)
	}
	f := &File{Path: path, Size: info.Size(), raw: raw, stored: &counter{r: raw, meter: m}}
	if err := f.decompress(); err != nil {
		_ = raw.Close()
		return nil, err
	}
	m.Total.Add(f.Size)
	m.Note(path)
	return f, nil
}

func (f *File) decompress() error {
	br := bufio.NewReaderSize(f.stored, 1<<16)
	head, err := br.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return Errorf("reading %s: %w", f.Path, err)
	}
	switch begins := func(magic string) bool { return strings.HasPrefix(string(head), magic) }; {
	case begins("\x1f\x8b"):
		gz, err := newGzip(br)
		if err != nil {
			return Errorf("reading %s: it begins like a gzip file, but its header is damaged (%w)", f.Path, endIsCut(err))
		}
		f.Packed, f.r = true, &bombGuard{r: gz, stored: f.stored, limit: bombFloor, ratio: bombRatio}
	case begins("BZh"):
		f.Packed, f.r = true, &bombGuard{r: bzip2.NewReader(br), stored: f.stored, limit: bombFloor, ratio: bombRatio}
	case begins("\xfd7zXZ\x00"):
		r, err := newXZ(br)
		if err != nil {
			return Errorf("reading %s: it begins like an xz file: %w", f.Path, endIsCut(err))
		}
		f.Packed, f.r = true, &bombGuard{r: r, stored: f.stored, limit: bombFloor, ratio: bombRatio}
	case begins("\x28\xb5\x2f\xfd"):
		return Errorf("%s is compressed with zstd, which the Go standard library does not read: run zstd -dk on it and convert the result", f.Path)
	default:
		f.r = br
	}
	return f.byteOrderMark()
}

// byteOrderMark skips the mark that spreadsheets and editors write before UTF-8 text, and refuses
// UTF-16.
func (f *File) byteOrderMark() error {
	br, ok := f.r.(*bufio.Reader)
	if !ok {
		br = bufio.NewReaderSize(f.r, 1<<16)
		f.r = br
	}
	head, err := br.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return Errorf("reading %s: %w", f.Path, endIsCut(err))
	}
	switch {
	case string(head) == "\xef\xbb\xbf":
		_, _ = br.Discard(3) // cannot fail: the bytes are in the buffer
	case strings.HasPrefix(string(head), "\xff\xfe"), strings.HasPrefix(string(head), "\xfe\xff"):
		return Errorf("reading %s: it is text in UTF-16: save it as UTF-8", f.Path)
	}
	return nil
}

// Read reads decompressed bytes.
func (f *File) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Errorf("reading %s: after byte %d of the file: %w", f.Path, f.stored.n, endIsCut(err))
	}
	return n, err
}

// endIsCut replaces an unexpected end of file by an error that explains it.
func endIsCut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("it ends in the middle of its compressed data: it was cut off; fetch it again")
	}
	return err
}

// Section returns n bytes of a file that is not compressed, from byte from on.
func (f *File) Section(from, n int64) io.Reader {
	return &counter{r: io.NewSectionReader(f.raw, from, n), meter: f.stored.meter}
}

// Close closes the file.
func (f *File) Close() error { return f.raw.Close() }

// Wrong returns an error about the file's content.
func (f *File) Wrong(format string, args ...any) error {
	return Wrong(f.Path, format, args...)
}

// Expect limits the number of values that a header promises, n values of the given number of bytes,
// to what the file can hold: the initial allocation is at most a small multiple of the file's size,
// and grows as data is read.
func (f *File) Expect(n int64, bytes int) int {
	most := f.Size / int64(bytes)
	if f.Packed {
		most *= 4
	}
	return int(max(0, min(n, most)))
}

// Counter counts the bytes read from a file.
type counter struct {
	r     io.Reader
	n     int64
	meter *Meter
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	c.meter.add(n)
	return n, err
}

// bombGuard stops reading compressed data that expands too much.
type bombGuard struct {
	r      io.Reader
	stored *counter // nil: limit is the whole bound
	limit  int64
	ratio  int64
	out    int64
}

func (g *bombGuard) Read(b []byte) (int, error) {
	n, err := g.r.Read(b)
	g.out += int64(n)
	limit := g.limit
	if g.stored != nil {
		limit += g.ratio * g.stored.n
	}
	if g.out > limit {
		return 0, fmt.Errorf("decompression gave %d bytes, more than %d times its size, which no list of numbers does: it is refused as a decompression bomb; if the file is genuine, decompress it first", g.out, bombRatio)
	}
	return n, err
}
