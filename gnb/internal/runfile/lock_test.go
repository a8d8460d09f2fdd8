package runfile

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A probe of a directory's lock does not block locking the directory; a held lock does.
func TestLockingWhileOthersLook(t *testing.T) {
	dir := t.TempDir()
	var looking sync.WaitGroup
	var enough atomic.Bool
	looking.Go(func() {
		for !enough.Load() {
			InUse(dir)
		}
	})
	defer looking.Wait()
	defer enough.Store(true)
	for range 200 {
		l, err := Lock("gnb", dir, "run", "wait")
		if err != nil {
			t.Fatal(err)
		}
		l.Unlock()
	}
	l, err := Lock("gnb", dir, "run", "wait")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	if _, err := Lock("gnb", dir, "run", "wait"); err == nil || !strings.Contains(err.Error(), "still running in another process") {
		t.Errorf("locked twice: %v", err)
	}
}
