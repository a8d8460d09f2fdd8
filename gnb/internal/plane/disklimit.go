package plane

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Limit measures how fast the disk reads requests of a size at random places of the file, in bytes per second: as many
// requests are in flight as a reader has, and nothing is done with what they read. It takes about as long as d. The
// result is 0 if the file is read through the page cache, which says nothing about the disk, or if a request fails.
//
// Size is rounded up to the alignment of requests, and down to the size of the file.
func (r *Disk) Limit(size int64, d time.Duration) float64 {
	whole := r.size / r.align * r.align
	size = min(max((size+r.align-1)/r.align*r.align, r.align), whole, roundBytes)
	if !r.direct || size == 0 {
		return 0
	}
	var bytes atomic.Int64
	var failed atomic.Bool
	var run sync.WaitGroup
	start := time.Now()
	for i := range lanes {
		run.Go(func() {
			l, open := <-r.lanes
			if !open {
				failed.Store(true)
				return
			}
			defer func() { r.lanes <- l }()
			l.room(roundBytes)
			places := rand.New(rand.NewPCG(uint64(start.UnixNano()), uint64(i)))
			// At least one round: on a busy machine d may be over before this goroutine runs.
			for first := true; (first || time.Since(start) < d) && !failed.Load(); first = false {
				n := min(limitRequests, roundBytes/size)
				l.round = l.round[:0]
				for j := range n {
					l.round = append(l.round, request{at: places.Int64N((whole-size)/r.align+1) * r.align, buf: l.memory[j*size : (j+1)*size : (j+1)*size]})
				}
				r.read(l)
				for i := range l.round {
					if q := &l.round[i]; q.err != nil || int64(q.got) != size {
						failed.Store(true)
					}
					bytes.Add(int64(l.round[i].got))
				}
			}
		})
	}
	run.Wait()
	if failed.Load() {
		return 0
	}
	return float64(bytes.Load()) / time.Since(start).Seconds()
}

// limitRequests is the number of requests of a round of [Disk.Limit]: few enough that a slow disk ends a round in time.
const limitRequests = 256
