package sweep

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/internal/machine"
)

// gpuShare distributes the GPUs among the trials of a sweep: each worker has its own GPU, and a
// trial waits until enough GPUs are free.
type gpuShare struct {
	mu    sync.Mutex
	freed sync.Cond
	users []int // number of trials per GPU
}

// newGPUShare returns a gpuShare of n GPUs.
func newGPUShare(n int) *gpuShare {
	s := &gpuShare{users: make([]int, n)}
	s.freed.L = &s.mu
	return s
}

// workers is the default number of workers of a trial: an even share of the GPUs among parallel trials.
func (s *gpuShare) workers(parallel int) int { return max(1, len(s.users)/parallel) }

// take waits for n consecutive GPUs (the first follows the last) that no other trial uses, and
// returns the first of them. If workers may share GPUs, or if a trial has more workers than there
// are GPUs (its run reports that error), it does not wait and takes the GPUs with the fewest
// trials. release frees the GPUs; it does nothing if ctx ended the wait.
func (s *gpuShare) take(ctx context.Context, n int) (first int, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.freed.Broadcast()
	})()
	waits := n <= len(s.users) && !machine.SharingGPUs()
	n = min(n, len(s.users))
	for {
		first, used := s.least(n)
		if used == 0 || !waits {
			s.add(first, n, 1)
			return first, sync.OnceFunc(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.add(first, n, -1)
				s.freed.Broadcast()
			})
		}
		if ctx.Err() != nil {
			return 0, func() {} // the trial does not start
		}
		s.freed.Wait()
	}
}

// least returns the first of the n consecutive GPUs with the fewest trials, and the number of
// these trials.
func (s *gpuShare) least(n int) (first, used int) {
	at := make([]int, len(s.users))
	load := func(first int) (sum int) {
		for i := range n {
			sum += s.users[(first+i)%len(s.users)]
		}
		return sum
	}
	for i := range at {
		at[i] = i
	}
	first = slices.MinFunc(at, func(a, b int) int { return cmp.Or(cmp.Compare(load(a), load(b)), cmp.Compare(a, b)) })
	return first, load(first)
}

func (s *gpuShare) add(first, n, by int) {
	for i := range n {
		s.users[(first+i)%len(s.users)] += by
	}
}
