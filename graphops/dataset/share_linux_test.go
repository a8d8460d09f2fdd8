package dataset

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// memoryFiles returns the inodes of the open memory files of datasets with this name.
func memoryFiles(t *testing.T, name string) map[uint64]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint64]bool{}
	for _, e := range entries {
		path := filepath.Join("/proc/self/fd", e.Name())
		if to, err := os.Readlink(path); err == nil && strings.Contains(to, "memfd:dataset "+name) {
			if info, err := os.Stat(path); err == nil {
				out[inode(info)] = true
			}
		}
	}
	return out
}

// A dataset is packed once for any number of runs, including concurrent ones.
func TestShareOnce(t *testing.T) {
	d := rich(t)
	d.Meta.Name = "shared once"
	defer d.Close()
	var group sync.WaitGroup
	files := make([]*os.File, 4)
	for i := range files {
		group.Go(func() {
			f, err := d.Share(t.Context(), CheckOnceOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			files[i] = f
			if _, err := d.Digests(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := len(memoryFiles(t, d.Name())); n != 1 {
		t.Errorf("there are %d memory files, want 1", n)
	}
	got, err := OpenFD(files[3])
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	_ = got.Close()
	if n := len(memoryFiles(t, d.Name())); n != 0 {
		t.Errorf("%d memory files are left after Close", n)
	}
	f, err := d.Share(t.Context(), CheckOnceOptions{}) // a dataset in memory can still be used after Close
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// Changes that a program makes to a dataset reach the dataset's digests and, after a check, the
// next run.
func TestShareFollowsChanges(t *testing.T) {
	d := small(t)
	d.Meta.Name = "shared and changed"
	defer d.Close()
	digest := func() string {
		t.Helper()
		sum, err := d.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	seen := map[string]bool{digest(): true}
	for name, change := range map[string]func(){
		"an element":  func() { d.Features.F32[0]++ },
		"a split":     func() { d.Splits["train"] = d.Splits["train"][:1] },
		"the classes": func() { d.Meta.NumClasses++ },
	} {
		shared(t, d)
		if sum := digest(); !seen[sum] {
			t.Errorf("before %s: sharing changed the digest", name)
		}
		change()
		sum := digest()
		if seen[sum] {
			t.Errorf("%s: the digest is that of the old content", name)
		}
		seen[sum] = true
		same(t, shared(t, d), d)
		if digest() != sum {
			t.Errorf("%s: the shared dataset has another digest", name)
		}
	}
	old := d.Features.F32[0]
	d.Features.F32[0] = float32(math.NaN())
	if _, err := d.Share(t.Context(), CheckOnceOptions{}); err == nil || !strings.Contains(err.Error(), "finite") {
		t.Errorf("NaN: %v", err)
	}
	d.Features.F32[0] = old
	same(t, shared(t, d), d)
	view, err := d.WithSplitSet(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.Share(t.Context(), CheckOnceOptions{}); err != nil {
		t.Error(err)
	}
	same(t, shared(t, d), d)
}

// A garbage-collected dataset frees its memory file.
func TestShareIsCollected(t *testing.T) {
	func() {
		d := small(t)
		d.Meta.Name = "shared and forgotten"
		f, err := d.Share(context.Background(), CheckOnceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if len(memoryFiles(t, d.Name())) != 1 {
			t.Fatal("the memory file was freed while the dataset is in use")
		}
		runtime.KeepAlive(d)
	}()
	for range 500 {
		runtime.GC()
		if len(memoryFiles(t, "shared and forgotten")) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the memory file of an unreachable dataset was not freed")
}

// BenchmarkShareAgain measures the cost of each later run with a dataset in memory.
func BenchmarkShareAgain(b *testing.B) {
	for _, nodes := range []int{100_000} {
		d := planted(b, nodes, 256)
		b.SetBytes(d.Bytes())
		for b.Loop() {
			f, err := d.Share(b.Context(), CheckOnceOptions{})
			if err != nil {
				b.Fatal(err)
			}
			_ = f.Close()
		}
		_ = d.Close()
	}
}

func inode(info os.FileInfo) uint64 {
	s, _ := info.Sys().(*syscall.Stat_t)
	return s.Ino
}
