package gnb

import (
	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/internal/machine"
)

// The largest values of settings.
const (
	maxVirtual = 1 << 12
	maxKept    = 1 << 20
)

// inBounds returns an error for the first numeric option that is out of bounds.
func (o LaunchOptions) inBounds() error {
	every := o.CheckpointEvery
	if every == -1 { // none
		every = 0
	}
	return entry.CheckAll(
		entry.Whole("Workers", o.Workers, 1, entry.MaxWorkers()), entry.Whole("VirtualRanks", o.VirtualRanks, 1, maxVirtual),
		entry.Whole("Threads", o.Threads, 1, machine.MaxThreads()), entry.Whole("FirstGPU", o.FirstGPU, 0, entry.MaxWorkers()-1), entry.Whole("CheckpointEvery", every, 1, entry.MaxCount), entry.Whole("KeepCheckpoints", o.KeepCheckpoints, 1, maxKept),
		entry.Whole("Restarts", o.Restarts, 0, maxKept), entry.Whole("Prefetch", o.Prefetch, 1, feed.MaxPrefetch),
	)
}
