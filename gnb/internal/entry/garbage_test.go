package entry

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// In a process that bounds its garbage, the heap stays near the size of the live data, for any
// size. The test runs in its own process, so that nothing else uses the heap.
func TestBoundGarbage(t *testing.T) {
	const child, live = "GNB_TEST_GARBAGE", 512 << 20
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBoundGarbage$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "GOGC=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	stop := BoundGarbage()
	big := make([]byte, live) // never written, so it takes no physical memory
	defer runtime.KeepAlive(big)
	runtime.GC()
	next := func() (m runtime.MemStats) {
		runtime.ReadMemStats(&m)
		return m
	}
	// The runtime runs the cleanup some time after a collection.
	for deadline := time.Now().Add(10 * time.Second); next().NextGC > live+2*HeapRoom; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the next collection is at %d MB with %d MB alive", next().NextGC>>20, live>>20)
		}
	}
	before := next()
	var sink []byte
	most := uint64(0)
	for range 600 {
		sink = make([]byte, 1<<20)
		most = max(most, next().HeapAlloc)
	}
	runtime.KeepAlive(sink)
	if after := next(); after.NumGC < before.NumGC+4 {
		t.Errorf("%d collections for 600 MB of garbage, want one per %d MB", after.NumGC-before.NumGC, HeapRoom>>20)
	}
	if most > live+3*HeapRoom {
		t.Errorf("the heap grew to %d MB with %d MB alive", most>>20, live>>20)
	}
	stop()
	for range 3 { // a cleanup in progress ends and changes the setting no more
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	if m := next(); m.NextGC < 2*live-live/8 {
		t.Errorf("after stop the next collection is at %d MB with %d MB alive, want Go's default of twice as much", m.NextGC>>20, live>>20)
	}
}

func TestPercentFor(t *testing.T) {
	for _, tc := range []struct {
		live uint64
		want int
	}{{0, 6400}, {4 << 20, 1600}, {HeapRoom, 100}, {10 * HeapRoom, 10}, {1 << 50, 1}} {
		if got := percentFor(tc.live); got != tc.want {
			t.Errorf("with %d alive: GOGC %d, want %d", tc.live, got, tc.want)
		}
	}
}
