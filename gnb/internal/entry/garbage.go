package entry

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// HeapRoom is the amount of garbage that a worker's heap may hold. A batch's matrices are reused,
// so a step makes only some hundred kilobytes of garbage; by default Go would collect only when
// garbage equals the live heap, which may be a gigabyte. Small heaps get the same amount.
const HeapRoom = 64 << 20

// BoundGarbage makes the garbage collector run at about HeapRoom bytes of garbage, unless GOGC is
// set. After each collection it measures the live heap and sets GOGC accordingly. The heap's
// matrices hold no pointers, so they do not slow a collection.
func BoundGarbage() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	const emptyHeap = 4 << 20 // Go treats a smaller heap as this large
	before := debug.SetGCPercent(percentFor(emptyHeap))
	var stopped atomic.Bool
	var afterNext func()
	afterNext = func() {
		type unreachable struct{ _ *int }
		runtime.AddCleanup(new(unreachable), func(struct{}) {
			if stopped.Load() {
				return
			}
			debug.SetGCPercent(percentFor(liveHeap()))
			afterNext()
		}, struct{}{})
	}
	afterNext()
	return func() {
		stopped.Store(true)
		debug.SetGCPercent(before)
	}
}

// percentFor returns the GOGC at which a heap with live bytes grows by HeapRoom.
func percentFor(live uint64) int {
	return int(max(1, 100*HeapRoom/max(live, 1<<20)))
}

// liveHeap returns the live bytes at the last collection.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
