package atomicfile

import "sync/atomic"

// Kinds of [Op].
const (
	OpCreate  = "create"
	OpWrite   = "write"  // Bytes more bytes were written to Path
	OpSync    = "sync"   // Path is durable up to Bytes
	OpRename  = "rename" // Path was renamed to To
	OpRemove  = "remove"
	OpMkdir   = "mkdir"
	OpSyncDir = "syncdir" // the names in the directory Path are durable
)

// Op is one change that this package made to the file system. Tests derive from a list of them the
// states that a power cut could leave.
type Op struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	To    string `json:"to,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

var observer atomic.Pointer[func(Op)]

// Observe calls f after each change that this package makes, on the goroutine that makes it, until
// stop is called. It is for tests.
func Observe(f func(Op)) (stop func()) {
	observer.Store(&f)
	return func() { observer.Store(nil) }
}

func tell(o Op) {
	if f := observer.Load(); f != nil {
		(*f)(o)
	}
}
