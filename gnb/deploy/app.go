package deploy

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/mapped"
)

const (
	appMagic   = "GNBAPP01"
	appHeader  = 32
	appAlign   = 4096
	maxTable   = 16 << 20
	wholeFirst = 256 << 20 // bytes that OpenApp checks
)

// Table describes what an app has behind its program.
type Table struct {
	// Run is the name of the run, and Made the time at which the app was built.
	Run  string    `json:"run"`
	Made time.Time `json:"made"`
	// Fanout are the neighbours for each hop with which the app answers unless it is told otherwise, as --fanout takes them; "" for
	// all.
	Fanout  string     `json:"fanout,omitempty"`
	Program AppFile    `json:"program"`
	Files   []*AppFile `json:"files"`
}

// AppFile is a file in an app.
type AppFile struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // of its first byte in the app
	Size   int64  `json:"size"`
	Sum    string `json:"sum"` // the CRC-32C of the CRC-32Cs of its pieces of 1 MiB
}

// App is an open app. Its file stays mapped until Close; nothing of it is copied but what the run's weights are.
type App struct {
	Path  string
	Table Table

	file    *mapped.File
	checked map[*AppFile]bool
}

// ErrDamaged is wrapped by the error for an app that is not as it was built.
var ErrDamaged = errors.New("the file is not what gnb build-server wrote")

// damagedApp is the error for an app with a reason.
func damagedApp(path, format string, args ...any) error {
	return fmt.Errorf("deploy: %s: %w: %s; copy it again, or build it again", path, ErrDamaged, fmt.Sprintf(format, args...))
}

// OpenApp maps an app. For a program without a model behind it, it returns nil. It compares the checksums of the smallest files,
// up to 256 MiB together, before it returns: all of most apps. [App.Check] compares the others.
func OpenApp(path string) (*App, error) { return openApp(path, path, wholeFirst) }

// openApp is OpenApp for a file that errors call by its path; it compares files of first bytes together.
func openApp(file, path string, first int64) (*App, error) {
	entry.Enter()
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("deploy: %w", err)
	}
	defer f.Close()
	end, err := programEnd(f)
	if err != nil {
		return nil, nil // not an ELF program, so no app
	}
	head := make([]byte, appHeader)
	n, err := f.ReadAt(head, upTo(end))
	if n < len(appMagic) || string(head[:len(appMagic)]) != appMagic {
		return nil, nil //nolint:nilerr // a program ends before it
	}
	if err != nil {
		return nil, damagedApp(path, "it ends within its header")
	}
	a := &App{Path: path, checked: map[*AppFile]bool{}}
	if a.file, err = mapped.FromFD(f, path); err != nil {
		return nil, fmt.Errorf("deploy: %w", err)
	}
	err = mapped.Guard(func() error { return a.read(end) })
	if err == nil {
		err = a.check(context.Background(), first)
	}
	if err != nil {
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

// Self opens the running program if it is an app; otherwise it returns nil.
func Self() (*App, error) {
	// The link is the running program even if another file has its path by now. A root without /proc has no link.
	const link = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		if path, err = exec.LookPath(os.Args[0]); err != nil {
			return nil, nil //nolint:nilerr // a system that cannot tell runs no apps
		}
		return OpenApp(path)
	}
	if _, err := os.Stat(link); err == nil {
		return openApp(link, path, wholeFirst)
	}
	return OpenApp(path)
}

// read reads and checks the header and the table.
func (a *App) read(end int64) error {
	data, at := a.file.Bytes(), upTo(end)
	head := data[at : at+appHeader]
	size, length, sum := binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:]), binary.LittleEndian.Uint32(head[24:])
	switch {
	case size != uint64(len(data)):
		return damagedApp(a.Path, "it has %d bytes, and was written with %d", len(data), size)
	case length > maxTable || int64(length) > int64(len(data))-at-appHeader:
		return damagedApp(a.Path, "its table would have %d bytes", length)
	}
	text := data[at+appHeader : at+appHeader+int64(length)]
	if got := crc32.Checksum(text, castagnoli); got != sum {
		return damagedApp(a.Path, "its table has the checksum %08x, and was written with %08x", got, sum)
	}
	if err := json.Unmarshal(text, &a.Table); err != nil {
		return damagedApp(a.Path, "its table cannot be read: %v", err)
	}
	for _, f := range a.all() {
		if f.Offset < 0 || f.Size < 0 || f.Offset > int64(len(data)) || f.Size > int64(len(data))-f.Offset || f.Offset%appAlign != 0 {
			return damagedApp(a.Path, "%s would have %d bytes at %d, of %d", f.Name, f.Size, f.Offset, len(data))
		}
	}
	return nil
}

func (a *App) all() []*AppFile { return append([]*AppFile{&a.Table.Program}, a.Table.Files...) }

// Check compares the checksums of all files that were not compared yet, on all processors. Cost: reading them.
func (a *App) Check() error { return a.check(context.Background(), -1) }

// CheckUntil is Check until ctx ends; that is no error.
func (a *App) CheckUntil(ctx context.Context) error { return a.check(ctx, -1) }

// Unchecked returns the number of bytes that Check reads.
func (a *App) Unchecked() (n int64) {
	for _, f := range a.all() {
		if !a.checked[f] {
			n += f.Size
		}
	}
	return n
}

// check compares the smallest files, up to most bytes together; -1 means all.
func (a *App) check(ctx context.Context, most int64) error {
	files := a.all()
	slices.SortStableFunc(files, func(x, y *AppFile) int { return int(min(max(x.Size-y.Size, -1), 1)) })
	return mapped.Guard(func() error {
		left := most
		for _, f := range files {
			if a.checked[f] {
				continue
			}
			if left -= f.Size; most >= 0 && left < 0 {
				return nil
			}
			got, ok := sumOf(ctx, a.bytes(f), 0)
			if !ok {
				return nil
			}
			if got != f.Sum {
				return damagedApp(a.Path, "%s of it has the checksum %s, and was written with %s", f.Name, got, f.Sum)
			}
			a.checked[f] = true
		}
		return nil
	})
}

func (a *App) bytes(f *AppFile) []byte {
	return a.file.Bytes()[f.Offset : f.Offset+f.Size : f.Offset+f.Size]
}

// Run opens the app's run and dataset, which are valid until Close.
func (a *App) Run() (*runs.Run, *gnb.Dataset, error) {
	run, err := runs.OpenFS(files{a, ""}, a.Path)
	if err != nil {
		return nil, nil, err
	}
	ds, err := dataset.OpenFS(files{a, datasetDir}, path.Join(a.Path, datasetDir))
	return run, ds, err
}

// Close unmaps the file.
func (a *App) Close() error { return a.file.Close() }

// String names the run, and says how large the file is.
func (a *App) String() string {
	return fmt.Sprintf("run %s, built on %s", a.Table.Run, a.Table.Made.Format("2006-01-02 15:04 MST"))
}

// files are the files of an app below a directory.
type files struct {
	a   *App
	dir string
}

var _ fs.FS = files{}

// Open implements [fs.FS].
func (x files) Open(name string) (fs.File, error) {
	full := path.Join(x.dir, name)
	for _, f := range x.a.Table.Files {
		if f.Name == full && fs.ValidPath(name) {
			b := x.a.bytes(f)
			return &openFile{bytes.NewReader(b), f, b, x.a.Table.Made}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: filepath.Join(x.a.Path, full), Err: fs.ErrNotExist}
}

// openFile is an open file of an app, and its own description.
type openFile struct {
	*bytes.Reader
	f    *AppFile
	data []byte
	made time.Time
}

// Bytes returns the mapped content.
func (o *openFile) Bytes() []byte { return o.data }

// Stat implements [fs.File].
func (o *openFile) Stat() (fs.FileInfo, error) { return o, nil }

// Close implements [fs.File].
func (o *openFile) Close() error { return nil }

// Name implements [fs.FileInfo].
func (o *openFile) Name() string { return path.Base(o.f.Name) }

// Size implements [fs.FileInfo].
func (o *openFile) Size() int64 { return o.f.Size }

// Mode implements [fs.FileInfo].
func (o *openFile) Mode() fs.FileMode { return 0o444 }

// ModTime implements [fs.FileInfo].
func (o *openFile) ModTime() time.Time { return o.made }

// IsDir implements [fs.FileInfo].
func (o *openFile) IsDir() bool { return false }

// Sys implements [fs.FileInfo].
func (o *openFile) Sys() any { return nil }

// upTo returns the first multiple of appAlign that is at least n.
func upTo(n int64) int64 { return (n + appAlign - 1) &^ (appAlign - 1) }

// programEnd returns the end of an ELF program by its headers.
func programEnd(r io.ReaderAt) (end int64, err error) {
	var ident [elf.EI_NIDENT]byte
	if _, err := r.ReadAt(ident[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if string(ident[:4]) != elf.ELFMAG || elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return 0, errors.New("it is not an ELF program of 64 bits, little-endian")
	}
	var h elf.Header64
	if err := binary.Read(io.NewSectionReader(r, 0, int64(binary.Size(h))), binary.LittleEndian, &h); err != nil {
		return 0, err
	}
	end = int64(h.Shoff) + int64(h.Shnum)*int64(h.Shentsize)
	sections := make([]elf.Section64, h.Shnum)
	if h.Shnum > 0 && h.Shentsize == uint16(binary.Size(elf.Section64{})) {
		if err := binary.Read(io.NewSectionReader(r, int64(h.Shoff), int64(h.Shnum)*int64(h.Shentsize)), binary.LittleEndian, sections); err != nil {
			return 0, err
		}
	}
	for _, s := range sections {
		if elf.SectionType(s.Type) != elf.SHT_NOBITS {
			end = max(end, int64(s.Off+s.Size))
		}
	}
	loads := make([]elf.Prog64, h.Phnum)
	if err := binary.Read(io.NewSectionReader(r, int64(h.Phoff), int64(h.Phnum)*int64(binary.Size(elf.Prog64{}))), binary.LittleEndian, loads); err != nil {
		return 0, err
	}
	for _, p := range loads {
		end = max(end, int64(p.Off+p.Filesz))
	}
	return end, nil
}

// interpreter returns the loader that an ELF program needs, "" for a static program.
func interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}

// IsExported reports whether a run's directory is one that [Export] wrote.
func IsExported(run *runs.Run) bool { return run.Config.DatasetDir == datasetDir }
