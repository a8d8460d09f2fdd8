package parallel

import (
	"errors"
	"io"
	"sync"
	"testing"
)

// For visits every index once, with the same chunks for any number of threads.
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

// Concurrent and nested loops each compute their own results.
func TestForNestsAndOverlaps(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for range 50 {
				sums := make([]int, 20)
				For(3, len(sums), 1, func(lo, _ int) {
					parts := make([]int, 30)
					For(2, len(parts), 4, func(from, to int) {
						for i := from; i < to; i++ {
							parts[i] = g + lo + i
						}
					})
					for _, p := range parts {
						sums[lo] += p
					}
				})
				for i, s := range sums {
					if want := 30*(g+i) + 29*30/2; s != want {
						t.Errorf("goroutine %d: sum %d is %d, want %d", g, i, s, want)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// A loop of a few chunks runs on the calling goroutine alone, with the same chunks.
func TestForFine(t *testing.T) {
	defer ShareFrom(ShareFrom(4))
	for n := range 40 {
		var mu sync.Mutex
		sum, chunks := 0, 0
		ForFine(2, n, 8, func(lo, hi int) {
			if n <= 3*8 { // the loop runs on one goroutine, so it needs no lock
				sum, chunks = sum+hi-lo, chunks+1
				return
			}
			mu.Lock()
			defer mu.Unlock()
			sum, chunks = sum+hi-lo, chunks+1
		})
		if sum != n || chunks != Chunks(n, 8) {
			t.Errorf("%d elements: %d in %d chunks", n, sum, chunks)
		}
	}
}

func BenchmarkFor(b *testing.B) {
	var n [64]int
	body := func(lo, _ int) { n[lo]++ }
	b.ReportAllocs()
	for b.Loop() {
		For(2, len(n), 8, body)
	}
}
