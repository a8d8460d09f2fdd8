// Package mapped maps files read-only into memory and turns faults into errors.
//
// Reading a mapped page can fail long after the file was opened: another process truncates the
// file, or its disk fails. The kernel then raises a signal, which ends a Go program unless
// debug.SetPanicOnFault is set in the reading goroutine. [Guard] sets it, and turns the fault into
// a [*Fault] that names the file and the offset. A truncation within a page reads as zeros and is
// not detected here; a caller that must detect it compares the file's size.
//
// Guard does not cover goroutines that are started inside it, except those of package parallel,
// which set the flag and carry panics to their caller.
package mapped

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"sync"
	"unsafe"

	"github.com/graphnb/graphnb/internal/parallel"
)

// File is a file mapped read-only. Its methods are safe for concurrent use, but the bytes must not
// be accessed after Close is called.
type File struct {
	name  string
	data  []byte
	unmap func() error
	once  sync.Once
	use   sync.RWMutex // read-locked by Populate
}

// Open maps the file at path. An empty file maps to no bytes. The file can be
// renamed or removed while it is mapped; it must not be truncated or rewritten
// in place.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping does not need the open file
	return FromFD(f, path)
}

// FromFD maps an open file, such as one inherited from a parent process; name is its name in
// errors. The caller keeps ownership of the file and may close it at once.
func FromFD(f *os.File, name string) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a file", name)
	}
	size := info.Size()
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%s has %d bytes, more than this machine can address", name, size)
	}
	m := &File{name: name, unmap: func() error { return nil }}
	if size == 0 {
		return m, nil
	}
	m.data, m.unmap, err = mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", name, err)
	}
	register(m)
	return m, nil
}

// Name returns the path, or the name given to FromFD.
func (f *File) Name() string { return f.name }

// Bytes returns the file's content. It must not be written to (a write faults).
func (f *File) Bytes() []byte { return f.data }

// Populate reads the file into memory and maps its pages, while going returns true, so that the first readers of the bytes do not wait
// for faults. It reports whether it has mapped all; a kernel that cannot do this, or has no memory for it, does less. Close waits for it.
func (f *File) Populate(going func() bool) bool {
	f.use.RLock()
	defer f.use.RUnlock()
	return populate(f.data, going)
}

// Close unmaps the file. Reading its bytes afterwards ends the program. A second
// Close does nothing.
func (f *File) Close() error {
	var err error
	f.once.Do(func() {
		f.use.Lock()
		defer f.use.Unlock()
		unregister(f)
		err = f.unmap()
		f.data = nil
	})
	return err
}

// Fault is a failure to read a page of a mapped file.
type Fault struct {
	File   string
	Offset int64 // of the byte that could not be read
}

func (f *Fault) Error() string {
	return fmt.Sprintf("reading %s at byte %d: the file was truncated or its disk failed while it was being read", f.File, f.Offset)
}

// Guard runs fn and returns its error. A fault in a mapped file, of this goroutine or of a
// goroutine of package parallel working for it, is returned as a [*Fault]. Every other panic passes
// through. Guards nest.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fault := AsFault(r)
			if fault == nil {
				panic(r)
			}
			err = fault
		}
	}()
	return fn()
}

// AsFault returns the fault of a recovered panic value, or nil.
func AsFault(r any) *Fault {
	e, ok := r.(error)
	if !ok {
		return nil
	}
	var fault *Fault
	if errors.As(e, &fault) {
		return fault
	}
	var carried *parallel.Panic
	if errors.As(e, &carried) {
		if e, ok = carried.Value.(error); !ok {
			return nil
		}
	}
	// With SetPanicOnFault, the runtime's error for a fault has the address.
	var at interface {
		error
		Addr() uintptr
	}
	if !errors.As(e, &at) {
		return nil
	}
	return find(at.Addr())
}

// The mapped regions, sorted by address, to find the file of a fault. A process has one address
// space, so the table is global.
var (
	regionsMu sync.RWMutex
	regions   []region
)

type region struct {
	start, end uintptr
	name       string
}

func regionStart(f *File) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(f.data))) }

func register(f *File) {
	start := regionStart(f)
	r := region{start: start, end: start + uintptr(len(f.data)), name: f.name}
	regionsMu.Lock()
	defer regionsMu.Unlock()
	i := sort.Search(len(regions), func(i int) bool { return regions[i].start >= r.start })
	regions = append(regions, region{})
	copy(regions[i+1:], regions[i:])
	regions[i] = r
}

func unregister(f *File) {
	if len(f.data) == 0 {
		return
	}
	start := regionStart(f)
	regionsMu.Lock()
	defer regionsMu.Unlock()
	i := sort.Search(len(regions), func(i int) bool { return regions[i].start >= start })
	if i < len(regions) && regions[i].start == start {
		regions = append(regions[:i], regions[i+1:]...)
	}
}

func find(addr uintptr) *Fault {
	regionsMu.RLock()
	defer regionsMu.RUnlock()
	i := sort.Search(len(regions), func(i int) bool { return regions[i].end > addr })
	if i == len(regions) || addr < regions[i].start {
		return nil
	}
	return &Fault{File: regions[i].name, Offset: int64(addr - regions[i].start)}
}
