package entry

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// heapRoom is the garbage that a worker's heap may hold. A batch's matrices are
// kept and used again, so what becomes garbage is little, some hundred kilobytes a
// step; Go would wait until it is as much as all that is alive, which may be a
// gigabyte. A small heap is collected as seldom.
const heapRoom = 64 << 20

// BoundGarbage makes the garbage collector run whenever there are about heapRoom
// bytes of garbage, unless GOGC says otherwise. It measures after each collection
// what is alive, and sets GOGC to what that makes. The heap's matrices hold no
// pointers, so a collection takes no longer for them.
func BoundGarbage() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	const emptyHeap = 4 << 20 // what Go takes a heap for that is smaller
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

// percentFor is the GOGC at which a heap with so much alive grows by heapRoom.
func percentFor(live uint64) int {
	return int(max(1, 100*heapRoom/max(live, 1<<20)))
}

// liveHeap is what the last collection found alive.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
