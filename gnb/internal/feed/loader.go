package feed

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/graphops/sample"
)

// Loader has the fields of gnb.Loader, which documents them: package gnb converts one into the other.
type Loader struct {
	Fanouts        []int
	Sampler        sample.Picker
	Frontier       sample.FrontierPicker
	Hops           int
	Batch          int
	BatchPerWorker int
	InOrder        bool
	MaxSteps       int
	Cooperative    bool
	Owners         sample.Owners
	InputHalo      bool
	Disjoint       bool
	AsOf           sample.AsOf
	ProveTime      bool
	Induced        bool
	Ahead          int
}

// Setting is what the defaults of a Loader depend on.
type Setting struct {
	Seeds          int // of an epoch
	World, Virtual int // workers, and virtual ranks of each
	// Depth returns the number of layers of the program's networks, 0 if it has none, or an error if they differ.
	Depth func() (int, error)
	Parts *Parts // of a divided dataset, else nil
}

// Complete fills in the defaults of a Loader, and returns the number of steps of an epoch. It fails if the Loader is invalid.
func (l Loader) Complete(s Setting) (_ Loader, steps int, err error) {
	switch {
	case l.Batch < 0 || l.BatchPerWorker < 0 || l.MaxSteps < 0 || l.Ahead < 0 || l.Hops < 0:
		return l, 0, errors.New("gnb: a Loader's Batch, BatchPerWorker, MaxSteps, Ahead and Hops cannot be negative")
	case l.Batch > 0 && l.BatchPerWorker > 0:
		return l, 0, fmt.Errorf("gnb: a Loader takes Batch (%d, over all workers) or BatchPerWorker (%d), not both", l.Batch, l.BatchPerWorker)
	case l.Sampler != nil && l.Frontier != nil:
		return l, 0, errors.New("gnb: a Loader takes one of Sampler and Frontier, not both")
	case (l.Sampler != nil || l.Frontier != nil) && l.Fanouts != nil:
		return l, 0, errors.New("gnb: a Loader takes Fanouts or a sampler of your own, not both; give the sampler its fanouts itself")
	}
	if !l.Disjoint && (!l.AsOf.IsZero() || l.ProveTime) {
		return l, 0, errors.New("gnb: there are options of seeds with times (AsOf and ProveTime of a Loader; TimeWindow, TimeStrict, TimeStrategy, HalfLife and ProveTime of a task), but this loop's seeds have no times; leave them out, or set Disjoint and give the seeds times")
	}
	if err := l.AsOf.Check(); err != nil {
		return l, 0, err
	}
	if l.Cooperative && l.Disjoint {
		return l, 0, errors.New("gnb: a cooperative batch saves the work of nodes that several seeds reach, and disjoint trees have none; leave Cooperative or Disjoint out")
	}
	if l.Induced {
		switch {
		case l.Fanouts != nil || l.Sampler != nil || l.Frontier != nil:
			return l, 0, errors.New("gnb: an induced batch has all edges between its seeds, and samples nothing; leave Fanouts and samplers out")
		case l.Cooperative || l.Disjoint:
			return l, 0, errors.New("gnb: an induced batch has each of its seeds once, at one worker; leave Cooperative and Disjoint out")
		case s.Parts != nil:
			return l, 0, errors.New("gnb: an induced batch needs the edges and features of its seeds, and the dataset is divided into parts; train on the whole dataset")
		}
	}
	if l.Cooperative {
		if err := CheckCooperative(s.Virtual, l.Frontier); err != nil {
			return l, 0, err
		}
		l.Cooperative = s.World > 1 // one worker has the whole batch
		if s.Parts != nil && l.Owners == nil {
			l.Owners = s.Parts
		}
	}
	if l.Batch == 0 {
		l.Batch = 1024
		if l.BatchPerWorker > 0 { // a batch is at most as large as the split
			l.Batch = min(l.BatchPerWorker, max(1, s.Seeds)) * s.World * s.Virtual
		}
	}
	l.Batch = min(l.Batch, max(1, s.Seeds))
	if l, err = l.hops(s); err != nil {
		return l, 0, err
	}
	steps = (s.Seeds + l.Batch - 1) / l.Batch
	if l.MaxSteps > 0 {
		steps = min(steps, l.MaxSteps)
	}
	l.Ahead = min(cmp.Or(l.Ahead, 2), max(1, steps*s.Virtual)) // never more than the loop has
	return l, steps, nil
}

// hops fills in the sampler and its number of hops.
func (l Loader) hops(s Setting) (_ Loader, err error) {
	if l.Hops == 0 && l.Fanouts == nil {
		if l.Hops, err = s.Depth(); err != nil && hopsOf(l.Sampler) == 0 {
			return l, err
		}
	}
	if l.Induced {
		if l.Hops == 0 {
			return l, errors.New("gnb: a Loader of induced batches needs Hops, the number of layers, when no network has been made before")
		}
		return l, nil
	}
	if l.Sampler == nil && l.Frontier == nil {
		if l.Fanouts == nil {
			for range l.Hops {
				l.Fanouts = append(l.Fanouts, 10)
			}
		}
		l.Sampler, l.Hops = sample.Fanouts(l.Fanouts), len(l.Fanouts)
	} else {
		l.Hops = cmp.Or(hopsOf(l.Sampler), l.Hops)
	}
	if l.Hops == 0 {
		return l, errors.New("gnb: a Loader needs Fanouts, or Hops for a sampler of your own, when no network has been made before")
	}
	return l, nil
}

// hopsOf returns the number of hops that a sampler sets itself, or 0.
func hopsOf(s sample.Picker) int {
	if h, ok := s.(interface{ Hops() int }); ok {
		return h.Hops()
	}
	return 0
}
