package plane

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// ways holds the ways to read a file. All of them must read the same bytes.
var ways = map[string]DiskOptions{
	"default":      {},
	"cached":       {Cached: true},
	"pread":        {Pread: true},
	"cached pread": {Cached: true, Pread: true},
}

// matrix writes a file with from bytes of other data followed by rows rows.
func matrix(t testing.TB, dir string, from, rows, rowBytes int) (path string, content []byte) {
	t.Helper()
	content = make([]byte, from+rows*rowBytes)
	r := rand.New(rand.NewPCG(1, uint64(rows)))
	for i := 0; i+8 <= len(content); i += 8 {
		binary.LittleEndian.PutUint64(content[i:], r.Uint64())
	}
	path = filepath.Join(dir, fmt.Sprintf("%d-%d-%d", from, rows, rowBytes))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content[from:]
}

func openAt(t testing.TB, path string, from, rows, rowBytes int, o DiskOptions) *Disk {
	t.Helper()
	r, err := OpenDisk(path, int64(from), rows, rowBytes, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// some returns ids of n rows in ascending order, about one in every.
func some(n, every int) (ids []int32) {
	r := rand.New(rand.NewPCG(2, uint64(n)))
	for v := range n {
		if r.IntN(every) == 0 {
			ids = append(ids, int32(v))
		}
	}
	return ids
}

// The rows read equal the content of the file.
func TestRowsAreTheFiles(t *testing.T) {
	testneed.Raced(t, "it reads files of many shapes")
	dir := t.TempDir()
	for _, m := range []struct{ from, rows, rowBytes int }{
		{0, 1, 1}, {128, 5000, 4}, {128, 3001, 100}, {100, 4000, 512}, {128, 2000, 2048}, {128, 700, 5000}, {0, 64, 4096}, {128, 20, 300_001}, {64, 3, 9 << 20}, {128, 0, 8},
	} {
		path, content := matrix(t, dir, m.from, m.rows, m.rowBytes)
		for way, o := range ways {
			t.Run(fmt.Sprintf("%d rows of %d bytes/%s", m.rows, m.rowBytes, way), func(t *testing.T) {
				r := openAt(t, path, m.from, m.rows, m.rowBytes, o)
				for name, ids := range map[string][]int32{
					"none": nil, "all": some(m.rows, 1), "half": some(m.rows, 2), "few": some(m.rows, 50),
					"first": some(min(m.rows, 1), 1), "last": lastOf(m.rows), "twice": slices.Repeat(lastOf(m.rows), 2),
				} {
					want := make([]byte, 0, len(ids)*m.rowBytes)
					for _, v := range ids {
						want = append(want, content[int(v)*m.rowBytes:int(v+1)*m.rowBytes]...)
					}
					got := make([]byte, len(want))
					if err := r.Rows(t.Context(), ids, got); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if !bytes.Equal(got, want) {
						t.Fatalf("%s: the bytes differ from the file's", name)
					}
				}
			})
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func lastOf(rows int) []int32 {
	if rows == 0 {
		return nil
	}
	return []int32{int32(rows - 1)}
}

func TestNeighboursShareARequest(t *testing.T) {
	path, _ := matrix(t, t.TempDir(), 128, 10_000, 1024)
	r := openAt(t, path, 128, 10_000, 1024, DiskOptions{})
	read := func(ids ...int32) DiskStats {
		t.Helper()
		before := r.Stats()
		if err := r.Rows(t.Context(), ids, make([]byte, len(ids)*1024)); err != nil {
			t.Fatal(err)
		}
		after := r.Stats()
		return DiskStats{Requests: after.Requests - before.Requests, Bytes: after.Bytes - before.Bytes}
	}
	if s := read(5, 6, 7, 12); s.Requests != 1 || s.Bytes < 8<<10 || s.Bytes > 16<<10 {
		t.Errorf("reading rows with a small gap took %+v", s)
	}
	if s := read(5, 5000); s.Requests != 2 || s.Bytes < 2<<10 || s.Bytes > 16<<10 {
		t.Errorf("reading rows far apart took %+v", s)
	}
	all := some(10_000, 1)
	if s := read(all...); s.Requests < 10_000*1024/requestBytes || s.Requests > 2*10_000*1024/requestBytes {
		t.Errorf("all rows: %+v", s)
	}
}

// A call that needs many rounds of reading uses bounded memory.
func TestMemoryIsBounded(t *testing.T) {
	testneed.Raced(t, "it reads 60 MB")
	path, content := matrix(t, t.TempDir(), 128, 30_000, 2048)
	for way, o := range ways {
		r := openAt(t, path, 128, 30_000, 2048, o)
		got := make([]byte, len(content))
		if err := r.Rows(t.Context(), some(30_000, 1), got); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%s: %v, or wrong bytes", way, err)
		}
		for range lanes {
			l := <-r.lanes
			if len(l.memory) > roundBytes {
				t.Errorf("%s: a lane has %d bytes, more than %d", way, len(l.memory), roundBytes)
			}
			defer func() { r.lanes <- l }()
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	path, content := matrix(t, t.TempDir(), 128, 5000, 700)
	for way, o := range ways {
		r := openAt(t, path, 128, 5000, 700, o)
		var run sync.WaitGroup
		for i := range 6 {
			run.Go(func() {
				ids := some(5000, i+1)
				got := make([]byte, len(ids)*700)
				if err := r.Rows(context.Background(), ids, got); err != nil {
					t.Errorf("%s: %v", way, err)
				}
				for j, v := range ids {
					if !bytes.Equal(got[j*700:(j+1)*700], content[int(v)*700:int(v+1)*700]) {
						t.Errorf("%s: row %d has wrong bytes", way, v)
						return
					}
				}
			})
		}
		run.Wait()
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	path, _ := matrix(t, dir, 128, 1000, 4096)
	want := func(what string, err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error is %v, want %q in it", what, err, w)
			}
		}
	}
	_, err := OpenDisk(filepath.Join(dir, "missing"), 0, 1, 1, DiskOptions{})
	want("a missing file", err, "missing")
	_, err = OpenDisk(path, 128, 1001, 4096, DiskOptions{})
	want("a short file", err, path, "truncated")
	_, err = OpenDisk(path, 0, 1, 0, DiskOptions{})
	want("no columns", err, "no matrix")
	_, err = OpenDisk(dir, 0, 1, 1, DiskOptions{})
	want("a directory", err, dir)
	for way, o := range ways {
		r := openAt(t, path, 128, 1000, 4096, o)
		row := make([]byte, 2*4096)
		want(way+": past the end", r.Rows(t.Context(), []int32{0, 1000}, row), "row 1000", "0 to 999")
		want(way+": negative", r.Rows(t.Context(), []int32{-1, 0}, row), "row -1")
		want(way+": descending", r.Rows(t.Context(), []int32{7, 3}, row), "ascending")
		want(way+": too little memory", r.Rows(t.Context(), []int32{7}, row), "8192 bytes for 1 rows")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Rows(ctx, []int32{3, 7}, row); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: reading with a cancelled context gave %v", way, err)
		}
		if err := r.Rows(t.Context(), []int32{3, 7}, row); err != nil {
			t.Errorf("%s: reading after errors gave %v", way, err)
		}
	}
	if err := os.Truncate(path, 500*4096); err != nil {
		t.Fatal(err)
	}
	for way, o := range ways {
		if _, err := OpenDisk(path, 128, 1000, 4096, o); err == nil {
			t.Errorf("%s: opening a truncated file gave no error", way)
		}
		r := openAt(t, path, 128, 400, 4096, o)
		r.rows = 1000 // the file's size before another program truncated it
		want(way+": truncated in use", r.Rows(t.Context(), []int32{1, 900}, make([]byte, 2*4096)), path, "truncated")
	}
}

// BenchmarkRows reads one row of 2 KiB in 64, from a file of 256 MiB.
func BenchmarkRows(b *testing.B) {
	const rows, rowBytes = 1 << 17, 2048
	path, _ := matrix(b, b.TempDir(), 128, rows, rowBytes)
	ids := some(rows, 64)
	dst := make([]byte, len(ids)*rowBytes)
	for _, way := range []string{"default", "pread", "cached", "cached pread"} {
		b.Run(strings.ReplaceAll(way, " ", "-"), func(b *testing.B) {
			r := openAt(b, path, 128, rows, rowBytes, ways[way])
			for b.Loop() {
				if err := r.Rows(b.Context(), ids, dst); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(ids))/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func TestLimit(t *testing.T) {
	dir := t.TempDir()
	path, _ := matrix(t, dir, 128, 4000, 2048)
	for way, o := range ways {
		r := openAt(t, path, 128, 4000, 2048, o)
		for _, size := range []int64{1, 2048, 1 << 20, 1 << 40} {
			if got := r.Limit(size, time.Millisecond); (got > 0) != r.Direct() {
				t.Errorf("%s: requests of %d bytes: %v bytes per second; direct: %v", way, size, got, r.Direct())
			}
		}
		if s := r.Stats(); s != (DiskStats{}) {
			t.Errorf("%s: the statistics include a measurement: %+v", way, s)
		}
	}
	tiny, _ := matrix(t, dir, 0, 1, 8)
	if got := openAt(t, tiny, 0, 1, 8, DiskOptions{}).Limit(8, time.Millisecond); got != 0 {
		t.Errorf("a file of 8 bytes has the limit %v", got)
	}
}
