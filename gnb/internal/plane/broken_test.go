//go:build linux

package plane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/multigpu/collective"
)

// lost is the Own of a rank whose file has been truncated.
type lost struct {
	held
	file *mapped.File
}

func (o lost) Gather(dst []byte, _ []int32) error {
	copy(dst, o.file.Bytes()[len(o.file.Bytes())-1:])
	return nil
}

// A rank whose mapped rows cannot be read reports this to the rank that requests them.
func TestExchangeOfATruncatedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, make([]byte, 8*os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := mapped.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Truncate(path, 1); err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup // both ranks get their errors before one aborts the other
	ended.Add(2)
	for r, err := range ranks(t, 2, func(c collective.Comm) error {
		x := exchange(c)
		if c.Rank() == 1 {
			x.Own = lost{held{1, 2}, file}
		}
		var ids []int32
		for v := int32(0); c.Rank() == 0 && len(ids) < 2; v++ {
			if owner(v, 2) == 1 {
				ids = append(ids, v)
			}
		}
		err := x.Rows(context.Background(), ids, make([]byte, len(ids)*rowBytes))
		ended.Done()
		ended.Wait()
		return err
	}) {
		if err == nil || !strings.Contains(err.Error(), "reading "+path) || r == 0 && !strings.Contains(err.Error(), "rank 1 could not give its rows") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// A file system may refuse a direct read that is not aligned, such as one that follows a short read
// at the end of a file. A short read is therefore continued from aligned bytes.
func TestEveryReadIsAligned(t *testing.T) {
	const rows, rowBytes = 900, 1000
	path, content := matrix(t, t.TempDir(), 128, rows, rowBytes)
	r := openAt(t, path, 128, rows, rowBytes, DiskOptions{Cached: true})
	r.align = 4096
	for _, most := range []int{1 << 30, 5000} {
		file := preadOf(r.file)
		r.pread = func(buf []byte, at int64) (int, error) {
			if at%r.align != 0 || int64(len(buf))%r.align != 0 {
				return 0, unix.EINVAL
			}
			return file(buf[:min(len(buf), most)], at)
		}
		for range lanes {
			l := <-r.lanes
			l.engine.close()
			l.engine = &pool{r.pread}
			r.lanes <- l
		}
		got := make([]byte, len(content))
		if err := r.Rows(t.Context(), some(rows, 1), got); err != nil || !bytes.Equal(got, content) {
			t.Errorf("with at most %d bytes per read: %v, or wrong bytes", most, err)
		}
	}
}

// After an error of its ring, a lane reads by pread into new memory.
func TestABrokenRing(t *testing.T) {
	const rows, rowBytes = 500, 1000
	path, content := matrix(t, t.TempDir(), 128, rows, rowBytes)
	r := openAt(t, path, 128, rows, rowBytes, DiskOptions{})
	other := <-r.lanes // leaves one lane for the calls below
	defer func() { r.lanes <- other }()
	if _, ok := other.engine.(*ring); !ok {
		t.Skip("io_uring is not allowed here")
	}
	ids, got := some(rows, 20), make([]byte, len(content)) // few enough that the call needs only one lane
	read := func() error { return r.Rows(t.Context(), ids, got[:len(ids)*rowBytes]) }
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if got := r.String(); !strings.HasPrefix(got, "by io_uring") || strings.Contains(got, "pread") {
		t.Errorf("the file is read %s", got)
	}
	left := <-r.lanes
	broken, memory := left.engine.(*ring), &left.memory[0]
	fd := broken.fd
	broken.fd = -1
	r.lanes <- left
	if err := read(); err == nil || !strings.Contains(err.Error(), "io_uring_enter") {
		t.Errorf("reading by a ring without a descriptor gave %v", err)
	}
	if got := r.String(); !strings.HasPrefix(got, "by io_uring and, after an error of it, by pread") {
		t.Errorf("after an error of one of two rings the file is read %s", got)
	}
	broken.fd = fd
	defer broken.close()
	clear(got)
	if err := read(); err != nil {
		t.Fatal(err)
	}
	if _, ok := left.engine.(*pool); !ok || &left.memory[0] == memory {
		t.Errorf("the lane still uses its ring %v, or the ring's memory", !ok)
	}
	for i, v := range ids {
		if !bytes.Equal(got[i*rowBytes:(i+1)*rowBytes], content[int(v)*rowBytes:int(v+1)*rowBytes]) {
			t.Fatalf("row %d has wrong bytes", v)
		}
	}
	second := other.engine.(*ring)
	fd, second.fd = second.fd, -1
	defer second.close()
	defer func() { second.fd = fd }()
	other.round = append(other.round[:0], request{buf: newMemory(int(r.align))})
	r.read(other)
	if got := r.String(); !strings.HasPrefix(got, "by pread, after an error of io_uring") {
		t.Errorf("after errors of both rings the file is read %s", got)
	}
}

// A call after Close fails.
func TestReadAfterClose(t *testing.T) {
	path, _ := matrix(t, t.TempDir(), 0, 100, 8)
	r, err := OpenDisk(path, 0, 100, 8, DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Rows(t.Context(), []int32{3}, make([]byte, 8)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if got := r.Limit(8, time.Millisecond); got != 0 {
		t.Errorf("after Close the limit is %v", got)
	}
}

// The time in which several calls run at once counts only once.
func TestBusy(t *testing.T) {
	var b busy
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	b.begin(at(10))
	b.begin(at(11))
	b.end(at(13))
	if got := b.until(at(14)); got != 4*time.Second {
		t.Errorf("the busy time is %v while a call runs, want 4s", got)
	}
	b.end(at(15))
	b.begin(at(20))
	b.end(at(21))
	if got := b.until(at(30)); got != 6*time.Second {
		t.Errorf("%v, want 6s", got)
	}
}
