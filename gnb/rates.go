package gnb

import (
	"time"

	"github.com/graphnb/graphnb/graphops/nn"
)

// rates counts the seeds, or items, and the edges that this rank has processed since it started, and its time in loops over
// batches.
type rates struct {
	seeds, edges int64
	work         nn.Work
	busy         time.Duration

	since time.Time // start of the current loop, or end of the previous batch
	whole *[2]int   // seeds and edges of the batch of a step outside loops
}

// enter begins a loop.
func (r *rates) enter() { r.since = time.Now() }

// add counts a finished batch.
func (r *rates) add(seeds, edges int) {
	now := time.Now()
	r.busy += now.Sub(r.since)
	r.since = now
	r.seeds += int64(seeds)
	r.edges += int64(edges)
}

// enterWhole begins a step outside loops, on the whole graph; addWhole ends it and counts the batch.
func (r *rates) enterWhole(seeds, edges int) {
	r.enter()
	r.whole = &[2]int{seeds, edges}
}

// addWhole does nothing if there was no enterWhole.
func (r *rates) addWhole() {
	if r.whole != nil {
		r.add(r.whole[0], r.whole[1])
		r.whole = nil
	}
}
