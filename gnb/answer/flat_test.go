package answer_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/answer"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Descriptors, goroutines and memory stay flat over many requests, also of clients that go away and of mistakes. GNB_SOAK makes
// forty times as many.
func TestManyRequestsLeaveNothing(t *testing.T) {
	p := predictor(t, 1)
	_, url := server(t, p, answer.Options{})
	requests := 5000
	if testneed.Soak.Here() {
		requests *= 40
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	defer client.CloseIdleConnections()
	get := func(ctx context.Context, path string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := client.Do(r); err == nil {
			_ = a.Body.Close()
		}
	}
	round := func(n int) {
		for i := range n {
			switch {
			case i%50 == 7: // gone before the answer
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Microsecond)
				get(ctx, fmt.Sprintf("/v1/nodes?id=%d", i%500))
				cancel()
			case i%50 == 9:
				get(t.Context(), "/v1/nodes?id=nobody")
			default:
				get(t.Context(), fmt.Sprintf("/v1/nodes?id=%d", i%500))
			}
		}
		client.CloseIdleConnections()
	}
	held := func() (descriptors, goroutines int, heap uint64) {
		time.Sleep(50 * time.Millisecond) // handlers of clients that have gone end
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("there is no /proc to count descriptors in")
		}
		return len(files), runtime.NumGoroutine(), m.HeapAlloc
	}
	round(requests / 5)
	files, routines, heap := held()
	round(requests)
	f, r, h := held()
	if f > files+4 || r > routines+8 || h > heap+heap/4+4<<20 {
		t.Errorf("after %d requests there are %d descriptors, %d goroutines and %d bytes on the heap; before %d, %d and %d", requests, f, r, h, files, routines, heap)
	}
	t.Logf("%d requests: %d descriptors, %d goroutines, %.1f MB; before %d, %d, %.1f MB", requests, f, r, float64(h)/1e6, files, routines, float64(heap)/1e6)
}
