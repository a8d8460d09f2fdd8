package atomicfile

import "sync/atomic"

// Kinds of [Op].
const (
	OpCreate  = "create"
	OpWrite   = "write"  // Bytes more were written to Path
	OpSync    = "sync"   // Path is durable up to Bytes
	OpRename  = "rename" // Path is To now
	OpRemove  = "remove"
	OpMkdir   = "mkdir"
	OpSyncDir = "syncdir" // the names in the directory Path are durable
)

// Op is one change that this package made to a file system: what a test needs to work out which
// states a power cut could leave.
type Op struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	To    string `json:"to,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

var observer atomic.Pointer[func(Op)]

// Observe has f called after each change that this package makes, from whichever goroutine makes
// it, until stop is called. It is for tests.
func Observe(f func(Op)) (stop func()) {
	observer.Store(&f)
	return func() { observer.Store(nil) }
}

func tell(o Op) {
	if f := observer.Load(); f != nil {
		(*f)(o)
	}
}
