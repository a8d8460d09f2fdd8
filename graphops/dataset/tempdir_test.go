package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/graphnb/graphnb/internal/filelock"
)

func TestWriteRemovesWhatDeadProcessesLeft(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("no locks on " + runtime.GOOS)
	}
	parent := t.TempDir()
	for _, name := range []string{".data.tmp-123/part", ".data.tmp-/kept", ".data.tmp-12x/kept", ".other.tmp-123/kept", ".data.tmp-77/busy"} {
		dir := filepath.Join(parent, filepath.Dir(name))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, dir, filepath.Base(name), nil)
	}
	busy, err := filelock.Lock(filepath.Join(parent, ".data.tmp-77"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Lock(filepath.Join(parent, ".data.tmp-77")); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	if err := Write(filepath.Join(parent, "data"), small(t)); err != nil {
		t.Fatal(err)
	}
	want := []string{".data.tmp-", ".data.tmp-12x", ".data.tmp-77", ".other.tmp-123", "data"}
	if got := ls(t, parent); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	_ = busy.Close()
	if err := Write(filepath.Join(parent, "data"), small(t)); err == nil {
		t.Error("written twice")
	}
	if err := os.RemoveAll(filepath.Join(parent, "data")); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(parent, "data"), small(t)); err != nil {
		t.Fatal(err)
	}
	if got := ls(t, parent); slices.Contains(got, ".data.tmp-77") {
		t.Errorf("the unlocked directory was not removed: %v", got)
	}
}

// Of many concurrent writers of one directory exactly one succeeds, none disturbs another, and no
// temporary file is left.
func TestWritersOfOneDirectory(t *testing.T) {
	parent := t.TempDir()
	d := small(t)
	var won sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if Write(filepath.Join(parent, "data"), d) == nil {
				won.Store(i, true)
			}
		})
	}
	wg.Wait()
	n := 0
	won.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d of 8 writers report success", n)
	}
	if got := ls(t, parent); !slices.Equal(got, []string{"data"}) {
		t.Errorf("left: %v", got)
	}
}
