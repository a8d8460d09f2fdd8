package parallel

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// allGone waits until no helper of an earlier test waits for a loop.
func allGone(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for i := range slots {
		for slots[i].loop.Load() != nil {
			if time.Now().After(deadline) {
				t.Fatalf("slot %d stays occupied", i)
			}
			time.Sleep(awakeFor)
		}
	}
}

// A waiting helper can be given a loop; a helper that gets none leaves its slot empty.
func TestHandToWaitingHelper(t *testing.T) {
	allGone(t)
	given := new(loop)
	for deadline := time.Now().Add(20 * time.Second); ; {
		got := make(chan *loop)
		go func() { got <- await() }()
		handed := false
		for start := time.Now(); !handed && time.Since(start) < 2*awakeFor; {
			handed = hand(given)
		}
		l := <-got
		if handed != (l == given) || !handed && l != nil {
			t.Fatalf("handed over: %v; the helper got %p, want %p", handed, l, given)
		}
		if handed {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no waiting helper was found")
		}
	}
	if l := await(); l != nil {
		t.Errorf("a helper got a loop that was not handed over: %p", l)
	}
	if hand(given) {
		t.Error("a loop was handed to a helper that had left")
	}
}

// There are more helpers than slots. Each loop runs once, on any helper, and all slots are empty at
// the end.
func TestHandOnce(t *testing.T) {
	allGone(t)
	var ran, handed atomic.Int64
	var wg sync.WaitGroup
	for range 3 * len(slots) {
		wg.Go(func() {
			for range 20 {
				if await() != nil {
					ran.Add(1)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				if hand(new(loop)) {
					handed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if ran.Load() != handed.Load() {
		t.Errorf("%d loops were handed over and %d taken", handed.Load(), ran.Load())
	}
	allGone(t)
}
