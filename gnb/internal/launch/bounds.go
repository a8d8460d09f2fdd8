package launch

import (
	"github.com/graphnb/graphnb/gnb/internal/bounds"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/internal/machine"
)

// none is gnb.None.
const none = -1

// The largest values of settings.
const (
	maxVirtual = 1 << 12
	maxKept    = 1 << 20
)

// InBounds returns an error for the first numeric option that is out of bounds.
func (o Settings) InBounds() error {
	every := o.CheckpointEvery
	if every == none {
		every = 0
	}
	return bounds.CheckAll(
		bounds.Whole("Workers", o.Workers, 1, bounds.MaxWorkers()), bounds.Whole("VirtualRanks", o.VirtualRanks, 1, maxVirtual),
		bounds.Whole("Threads", o.Threads, 1, machine.MaxThreads()), bounds.Whole("FirstGPU", o.FirstGPU, 0, bounds.MaxWorkers()-1), bounds.Whole("CheckpointEvery", every, 1, bounds.MaxCount), bounds.Whole("KeepCheckpoints", o.KeepCheckpoints, 1, maxKept),
		bounds.Whole("Restarts", o.Restarts, 0, maxKept), bounds.Whole("Prefetch", o.Prefetch, 1, feed.MaxPrefetch),
	)
}
