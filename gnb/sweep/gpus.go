package sweep

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/graphnb/graphnb/internal/machine"
)

// gpuShare distributes the GPUs among the trials of a sweep: each worker has a GPU of its own, and a trial waits until
// there are enough.
type gpuShare struct {
	mu    sync.Mutex
	freed sync.Cond
	users []int // trials by GPU
}

// newGPUShare is for n GPUs.
func newGPUShare(n int) *gpuShare {
	s := &gpuShare{users: make([]int, n)}
	s.freed.L = &s.mu
	return s
}

// workers is the default number of workers of a trial: an even share of the GPUs among parallel trials.
func (s *gpuShare) workers(parallel int) int { return max(1, len(s.users)/parallel) }

// take is the first of n GPUs in a row, around, that no other trial uses; it waits for
// them. Where workers may share GPUs, or a trial has more workers than there are GPUs
// (its run says what is wrong with that), it does not wait and takes those that the
// fewest use. release gives them back; it does nothing after ctx has ended a wait.
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
			return 0, func() {} // the trial does not begin
		}
		s.freed.Wait()
	}
}

// least is where the n GPUs begin that the fewest use, and how many use them.
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
