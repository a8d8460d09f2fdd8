package gnb

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Who looks whether a run goes on keeps nobody from going on with it; who runs it does.
func TestLockingWhileOthersLook(t *testing.T) {
	dir := t.TempDir()
	var looking sync.WaitGroup
	var enough atomic.Bool
	looking.Go(func() {
		for !enough.Load() {
			goesOn(dir)
		}
	})
	defer looking.Wait()
	defer enough.Store(true)
	for range 200 {
		var l launched
		if err := l.lockRun(dir); err != nil {
			t.Fatal(err)
		}
		l.close()
	}
	var l, other launched
	if err := l.lockRun(dir); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := other.lockRun(dir); err == nil || !strings.Contains(err.Error(), "still going on in another process") {
		t.Errorf("locked twice: %v", err)
	}
}
