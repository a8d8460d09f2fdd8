package saving

import (
	"testing"
	"time"

	"github.com/graphnb/graphnb/internal/testneed"
)

// A program that does not end its iteration is stopped, and one that is done or was not asked is not.
func TestAwaitStop(t *testing.T) {
	testneed.NotShort(t, "it waits as long as a run does")
	never := make(chan struct{})
	start := time.Now()
	if !AwaitStop(never, func() bool { return true }) || time.Since(start) < stopPatience {
		t.Errorf("a run that is asked to stop was stopped after %v", time.Since(start))
	}
	done := make(chan struct{})
	close(done)
	if AwaitStop(done, func() bool { return false }) {
		t.Error("a run that ended was stopped")
	}
}
