package parallel

import (
	"errors"
	"io"
	"sync"
	"testing"
)

// Every index once, and the chunks the same for any number of threads.
func TestForCoversEveryIndexOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 31, 32, 33, 1000} {
		for _, grain := range []int{1, 7, 32, 5000} {
			var want map[[2]int]bool
			for threads := 1; threads <= 4; threads++ {
				var mu sync.Mutex
				seen, chunks := make([]int, n), map[[2]int]bool{}
				For(threads, n, grain, func(lo, hi int) {
					mu.Lock()
					defer mu.Unlock()
					chunks[[2]int{lo, hi}] = true
					for i := lo; i < hi; i++ {
						seen[i]++
					}
				})
				for i, c := range seen {
					if c != 1 {
						t.Fatalf("n %d grain %d threads %d: index %d was visited %d times", n, grain, threads, i, c)
					}
				}
				if want == nil {
					want = chunks
				}
				if len(chunks) != len(want) || len(chunks) != Chunks(n, grain) {
					t.Fatalf("n %d grain %d threads %d: %d chunks, want %d", n, grain, threads, len(chunks), len(want))
				}
				for c := range chunks {
					if !want[c] {
						t.Fatalf("n %d grain %d threads %d: chunk %v exists only with this many threads", n, grain, threads, c)
					}
				}
			}
		}
	}
}

func TestForCarriesPanics(t *testing.T) {
	for threads := 1; threads <= 3; threads++ {
		err := func() (err error) {
			defer func() { err, _ = recover().(error) }()
			For(threads, 100, 1, func(lo, _ int) {
				if lo == 57 {
					panic(io.ErrUnexpectedEOF)
				}
			})
			return nil
		}()
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("threads %d: recovered %v, want %v", threads, err, io.ErrUnexpectedEOF)
		}
	}
}
