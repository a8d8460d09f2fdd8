package multigpu

import (
	"sync/atomic"
	"time"
)

// clock replaces time.Now in the tests of package faults, which set it back and forth.
var clock atomic.Pointer[func() time.Time]

// now is the time for deadlines of the supervisor and for times of stages.
func now() time.Time {
	if f := clock.Load(); f != nil {
		return (*f)()
	}
	return time.Now()
}
