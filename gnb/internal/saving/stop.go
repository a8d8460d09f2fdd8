package saving

import "time"

// stopPatience is how long an interrupted rank 0 waits for the end of an iteration before another
// goroutine writes the checkpoint. The run's supervisor allows 2 s in total, and more in a
// checkpoint.
const stopPatience = 700 * time.Millisecond

// AwaitStop returns true when the run was asked to stop and its program has not reached the end of an iteration in time, or
// false once done is closed.
func AwaitStop(done <-chan struct{}, asked func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-done:
			return false
		case now := <-tick.C:
			switch {
			case !asked():
			case since.IsZero():
				since = now
			case now.Sub(since) > stopPatience:
				return true
			}
		}
	}
}
