package feed

import (
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

// farLanes is the number of batches that a rank samples at the same time at servers: while one waits
// for an answer, another makes its request or reads its answer.
const farLanes = 4

// Lanes is a sampler that samples several batches at the same time. Sample can be called by as many
// goroutines as there are lanes; others wait.
type Lanes struct {
	free chan *sample.Divided
	hops int
}

// Hops implements [sample.Batcher].
func (l *Lanes) Hops() int { return l.hops }

// Sample implements [sample.Batcher].
func (l *Lanes) Sample(epoch, step int, seeds sample.Seeds) (*sample.Batch, error) {
	s := <-l.free
	defer func() { l.free <- s }()
	return s.Sample(epoch, step, seeds)
}

// LanesOf is the number of batches that a sampler samples at the same time.
func LanesOf(s sample.Batcher) int {
	if l, ok := s.(*Lanes); ok {
		return cap(l.free)
	}
	return 1
}

// InFlight returns sample, to be called with 0, 1 and so on in order, below items. With several lanes, a
// call also begins the next items, as many as there are lanes in all, each in a goroutine of its own. end
// waits for those that were not returned, and releases them.
func InFlight[T any](lanes, items int, sample func(i int) T, release func(T)) (next func(i int) T, end func()) {
	if lanes <= 1 {
		return sample, func() {}
	}
	var begun []chan T
	started := 0
	next = func(i int) T {
		for ; started < min(i+lanes, items); started++ {
			done := make(chan T, 1)
			begun = append(begun, done)
			go func(i int) { done <- sample(i) }(started)
		}
		item := <-begun[0]
		begun = begun[1:]
		return item
	}
	return next, func() {
		for _, done := range begun {
			release(<-done)
		}
	}
}

// far returns a sampler that asks the servers for edges. It is not collective. Memory: farLanes tables
// of the graph's nodes.
func (t *Team) far(c sample.Config) (sample.Batcher, error) {
	ctx, to, err := t.o.Parts.Far()
	if err != nil {
		return nil, err
	}
	l := &Lanes{free: make(chan *sample.Divided, farLanes)}
	for range farLanes {
		d, err := to.Division(ctx)
		if err != nil {
			return nil, err
		}
		ask := d.Ask
		d.Ask = func(requests []sample.HopRequest) ([]sample.HopReply, error) {
			replies, err := ask(requests)
			for i := range replies {
				if len(requests[i].Nodes) > 0 {
					t.moved.Add(int64(replies[i].Size()))
				}
			}
			return replies, err
		}
		s, err := sample.NewDivided(d, c)
		if err != nil {
			return nil, err
		}
		l.hops = s.Hops()
		l.free <- s
	}
	return l, nil
}

// farDegrees returns the degrees of a graph at servers.
func (t *Team) farDegrees() (graphops.Degrees, error) {
	ctx, to, err := t.o.Parts.Far()
	if err != nil {
		return nil, err
	}
	d, err := to.Division(ctx)
	return d.Degrees, err
}
