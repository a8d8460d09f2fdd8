package outbox

import (
	"time"

	"github.com/graphnb/graphnb/graphops/nn"
)

// Rates counts the seeds and edges that this rank has processed since it started, and its time in
// loops over batches.
type Rates struct {
	Seeds, Edges int64
	Work         nn.Work
	Busy         time.Duration

	since time.Time // start of the current loop, or end of the previous batch
	whole *[2]int   // seeds and edges of the batch of a step outside loops
}

// Enter begins a loop.
func (r *Rates) Enter() { r.since = time.Now() }

// Add counts a finished batch.
func (r *Rates) Add(seeds, edges int) {
	now := time.Now()
	r.Busy += now.Sub(r.since)
	r.since = now
	r.Seeds += int64(seeds)
	r.Edges += int64(edges)
}

// EnterWhole begins a step outside loops, on the whole graph; AddWhole ends it and counts the batch.
func (r *Rates) EnterWhole(seeds, edges int) {
	r.Enter()
	r.whole = &[2]int{seeds, edges}
}

// AddWhole does nothing if there was no EnterWhole.
func (r *Rates) AddWhole() {
	if r.whole != nil {
		r.Add(r.whole[0], r.whole[1])
		r.whole = nil
	}
}
