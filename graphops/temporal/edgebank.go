package temporal

import (
	"math"

	"github.com/graphnb/graphnb/internal/phrase"
)

// EdgeBankOptions configure an [EdgeBank]. The zero value remembers all events.
type EdgeBankOptions struct {
	// Window forgets pairs: one counts that happened at the latest known time minus Window at the earliest. 0 means that all
	// are remembered. See [TrainingWindow].
	Window float64
	// Recent forgets pairs by the share of events: one counts that happened at the quantile 1 − Recent of all known times at the
	// earliest. 0 means that all are remembered; 0.15 is the rule of DyGLib and of the paper. Not both are set.
	Recent float64
}

// TrainingWindow returns the window of the Temporal Graph Benchmark: 15 % of the span of the times of training, which are the first train
// events.
func TrainingWindow(e *Events, train int) float64 {
	if train == 0 {
		return 0
	}
	return float64(e.Time[train-1]-e.Time[0]) * 0.15
}

// EdgeBank is the baseline that learns nothing: a pair scores 1 if it has happened before, and 0 otherwise (Poursafaei et al., 2022,
// https://arxiv.org/abs/2207.10128). What it knows is what [EdgeBank.Until] has shown it. It is not safe for concurrent use while it learns.
type EdgeBank struct {
	e    *Events
	o    EdgeBankOptions
	n    int
	last map[[2]int32]int64 // the last time of each pair
	from float64            // pairs count from this time on
}

// NewEdgeBank returns a bank of a stream's events that knows none of them yet. It returns an error for options that contradict each other.
func NewEdgeBank(e *Events, o EdgeBankOptions) (*EdgeBank, error) {
	if !(o.Window >= 0) || !(o.Recent >= 0 && o.Recent < 1) || o.Window > 0 && o.Recent > 0 {
		return nil, phrase.Errorf("temporal", "EdgeBank has a window of %v, and the share %v of the last events; one of them is above 0, a share is below 1, or both are 0", o.Window, o.Recent)
	}
	return &EdgeBank{e: e, o: o, last: map[[2]int32]int64{}, from: math.Inf(-1)}, nil
}

// Until lets the bank know the events before event n, and no later one: it forgets what it knew if that was more.
func (b *EdgeBank) Until(n int) {
	if n < b.n {
		b.n, b.from = 0, math.Inf(-1)
		clear(b.last)
	}
	for ; b.n < n; b.n++ {
		b.last[[2]int32{b.e.Src[b.n], b.e.Dst[b.n]}] = b.e.Time[b.n]
	}
	switch {
	case n == 0:
	case b.o.Window > 0:
		b.from = float64(b.e.Time[n-1]) - b.o.Window
	case b.o.Recent > 0:
		b.from = Quantile(b.e.Time[:n], 1-b.o.Recent)
	}
}

// Score is 1 if src → dst is among the events that the bank remembers, and 0 if not.
func (b *EdgeBank) Score(src, dst int32) float32 {
	if t, ok := b.last[[2]int32{src, dst}]; ok && float64(t) >= b.from {
		return 1
	}
	return 0
}
