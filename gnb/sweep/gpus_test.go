package sweep

import (
	"context"
	"slices"
	"testing"
	"time"
)

// Concurrent trials use different GPUs and wait until enough of them are free.
func TestTrialsShareGPUsOut(t *testing.T) {
	s := newGPUShare(4)
	if n := s.workers(2); n != 2 {
		t.Errorf("%d workers for each of 2 trials on 4 GPUs", n)
	}
	if n := s.workers(8); n != 1 {
		t.Errorf("%d workers for each of 8 trials on 4 GPUs", n)
	}
	a, releaseA := s.take(t.Context(), 1)
	b, releaseB := s.take(t.Context(), 2)
	if a != 0 || b != 1 || !slices.Equal(s.users, []int{1, 1, 1, 0}) {
		t.Fatalf("the trials' first GPUs are %d and %d: %v", a, b, s.users)
	}
	got := make(chan int)
	go func() {
		first, release := s.take(t.Context(), 2)
		got <- first
		release()
	}()
	select {
	case first := <-got:
		t.Fatalf("a third trial got GPUs from number %d on, which other trials use", first)
	case <-time.After(20 * time.Millisecond):
	}
	releaseA()
	releaseA() // a second call has no effect
	if first := <-got; first != 3 {
		t.Errorf("the third trial's first GPU is %d, but 3 and 0 are free", first)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, release := s.take(ctx, 4); release == nil {
		t.Error("take returned no release function for a cancelled sweep")
	}
	releaseB()
	for s.idle() != 4 {
		time.Sleep(time.Millisecond)
	}
	t.Setenv("GNB_CUDA_SHARE", "1")
	for i := range 5 {
		first, release := s.take(t.Context(), 1)
		defer release()
		if first != i%4 {
			t.Errorf("trial %d has GPU %d", i, first)
		}
	}
}

func (s *gpuShare) idle() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.users {
		if u == 0 {
			n++
		}
	}
	return n
}
