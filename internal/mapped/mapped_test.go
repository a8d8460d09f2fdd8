package mapped

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/parallel"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen(t *testing.T) {
	for _, content := range []string{"", "x", strings.Repeat("0123456789", 5000)} {
		path := write(t, []byte(content))
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(f.Bytes()) != content {
			t.Errorf("%d bytes: content differs", len(content))
		}
		if f.Name() != path {
			t.Errorf("Name = %q, want %q", f.Name(), path)
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	if len(regions) != 0 {
		t.Errorf("%d regions are left after every file was closed", len(regions))
	}
}

// truncated maps a file of eight pages and truncates it to one.
func truncated(t *testing.T) (*File, int) {
	t.Helper()
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files are read, not mapped, on " + runtime.GOOS)
	}
	page := os.Getpagesize()
	path := write(t, make([]byte, 8*page))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := os.Truncate(path, int64(page)); err != nil {
		t.Fatal(err)
	}
	return f, page
}

func TestGuardTruncation(t *testing.T) {
	f, page := truncated(t)
	var sum byte
	err := Guard(func() error {
		for _, b := range f.Bytes()[:page] {
			sum += b // this part is still in the file
		}
		sum += f.Bytes()[3*page+17]
		return nil
	})
	var fault *Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want a *Fault", err)
	}
	// The kernel may report the address of the page or of the byte.
	if fault.File != f.Name() || fault.Offset < int64(3*page) || fault.Offset > int64(3*page+17) {
		t.Errorf("fault %+v, want %s at byte %d", fault, f.Name(), 3*page+17)
	}
	for _, want := range []string{f.Name(), "at byte", "truncated"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	_ = sum
}

func TestGuardCarriesFaultsOfParallelLoops(t *testing.T) {
	f, page := truncated(t)
	sums := make([]byte, 8)
	for _, threads := range []int{1, 2, 3} {
		err := Guard(func() error {
			return Guard(func() error { // guards nest
				parallel.For(threads, 8*page, page, func(lo, hi int) {
					for _, b := range f.Bytes()[lo:hi] {
						sums[lo/page] += b
					}
				})
				return nil
			})
		})
		var fault *Fault
		if !errors.As(err, &fault) || fault.Offset < int64(page) {
			t.Errorf("%d threads: got %v, want a fault past byte %d", threads, err, page)
		}
	}
}

func TestGuardPassesTheRest(t *testing.T) {
	want := errors.New("as it was")
	if err := Guard(func() error { return want }); err != want {
		t.Errorf("error: got %v", err)
	}
	caught := func(fn func()) (r any) {
		defer func() { r = recover() }()
		_ = Guard(func() error { fn(); return nil })
		return nil
	}
	if r := caught(func() { panic(want) }); r != want {
		t.Errorf("panic: got %v", r)
	}
	if r := caught(func() { panic("text") }); r != "text" {
		t.Errorf("panic: got %v", r)
	}
	var nothing *int
	if r := caught(func() { *nothing = 1 }); r == nil || AsFault(r) != nil {
		t.Errorf("nil pointer: got %v", r)
	}
	r := caught(func() {
		parallel.For(2, 2, 1, func(lo, _ int) { panic(want) })
	})
	if err, _ := r.(error); !errors.Is(err, want) {
		t.Errorf("panic of a loop: got %v", r)
	}
	// A fault outside of every mapped file is not reported as a fault of a file.
	f, _ := truncated(t)
	unregister(f)
	defer register(f)
	data := f.Bytes()
	if r := caught(func() { _ = data[len(data)-1] + 1; sink = data[len(data)-1] }); r == nil {
		t.Error("a fault in a region that is not registered was swallowed")
	}
}

var sink byte

func TestFindManyRegions(t *testing.T) {
	var files []*File
	for range 20 {
		f, err := Open(write(t, []byte("some bytes")))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for i := 0; i < len(files); i += 2 {
		_ = files[i].Close()
	}
	for i := 1; i < len(files); i += 2 {
		start := regionStart(files[i])
		got := find(start + 3)
		if got == nil || got.File != files[i].Name() || got.Offset != 3 {
			t.Errorf("file %d: found %+v", i, got)
		}
		if got := find(start + 10); got != nil && got.File == files[i].Name() {
			t.Errorf("file %d: a byte past its end was found in it", i)
		}
		_ = files[i].Close()
	}
}

// A populated file's pages are in memory before they are read, and Close ends a Populate in progress.
func TestPopulate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	content := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Populate(func() bool { return false }) {
		t.Error("it has mapped all of a file, and was told to end")
	}
	if !f.Populate(func() bool { return true }) {
		t.Log("this kernel maps no pages ahead")
	}
	if string(f.Bytes()) != string(content) {
		t.Error("the bytes are others")
	}
	var all sync.WaitGroup
	all.Go(func() { f.Populate(func() bool { return true }) })
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if !f.Populate(func() bool { return true }) && f.Bytes() != nil {
		t.Error("a closed file has bytes")
	}
}
