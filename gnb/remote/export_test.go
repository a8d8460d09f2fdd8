package remote

import "time"

// SetNoteAfter sets the time after which a waiting request is told of, and returns a function that sets it back.
func SetNoteAfter(d time.Duration) func() {
	old := noteAfter
	noteAfter = d
	return func() { noteAfter = old }
}
