package getdata

import (
	"context"
	"runtime"
	"sync"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
)

// watchFrom is the size in bytes from which the check before a run does not read all files of a dataset again.
var watchFrom int64 = 256 << 20

// Watch compares the files of a large dataset with their digests while a run reads them, on one thread of idle
// priority. The check before a run believes files that are unchanged by their times; Watch finds what a disk or
// another machine has damaged since. Then it ends the context that it returns, with a [*dataset.DigestError] as its
// cause. end stops reading, and returns that error or nil.
func Watch(ctx context.Context, d *dataset.Dataset) (watched context.Context, end func() error) {
	if d == nil || !d.Stored() || !d.HasDigests() || d.Bytes() <= watchFrom || !divided.Is(d) && d.Verified() {
		return ctx, func() error { return nil }
	}
	watched, cancel := context.WithCancelCause(ctx)
	var (
		damage  error
		reading sync.WaitGroup
	)
	reading.Go(func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, as its priority cannot rise again
		idle()
		err := divided.Verify(watched, d, dataset.VerifyOptions{Threads: 1})
		if err != nil && watched.Err() == nil {
			damage = err
			cancel(err)
		}
	})
	return watched, func() error {
		cancel(nil)
		reading.Wait()
		return damage
	}
}
