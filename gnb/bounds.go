package gnb

import (
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb/internal/bounds"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/machine"
)

// None says zero to an option whose zero means a default: no dropout, no epoch, no
// checkpoint, a learning rate of 0. A field of this package's options says what its zero
// means, and whether it takes None; the others refuse it.
const None = -1

// The largest values of options. Beyond them a run would not start within minutes, or its
// draws would repeat.
const (
	maxLayers  = sample.MaxHops
	maxEpochs  = sample.MaxEpochs
	maxHidden  = bounds.MaxHidden
	maxVirtual = 1 << 12
	maxCount   = math.MaxInt32 // of nodes, and of what is counted along them: seeds, steps
	maxKept    = 1 << 20
)

// maxWorkers and maxThreads are bounds that grow with the machine.
func maxWorkers() int { return bounds.MaxWorkers() }
func maxThreads() int { return machine.MaxThreads() }

// bound is an option that is a whole number from low to high; where low is above 0, it may
// be 0 too, which means its default.
type bound struct {
	name      string
	value     int
	low, high int
}

// inBounds is the error of the first option that is out of its bounds.
func inBounds(of ...bound) error {
	for _, b := range of {
		if err := bounds.Check(b.name, b.value, b.low, b.high); err != nil {
			return err
		}
	}
	return nil
}

// numberBound is an option that is a number.
type numberBound struct {
	name      string
	value     float64
	low, high float64 // high is not reached where it is an infinity, or open
	open      bool
	none      bool // takes None
	what      string
}

// numbers is the error of the first option that is no number, or out of its bounds.
func numbers(bounds ...numberBound) error {
	for _, b := range bounds {
		none := ""
		if b.none {
			none = ", or gnb.None"
		}
		switch v := b.value; {
		case math.IsNaN(v):
			return fmt.Errorf("gnb: %s is NaN, which is not a number; it is %s", b.name, b.what)
		case b.none && v == None:
		case v < b.low || v > b.high || math.IsInf(v, 0) || b.open && v == b.high:
			return fmt.Errorf("gnb: %s is %v; it is %s%s", b.name, v, b.what, none)
		}
	}
	return nil
}

// rate and dropped are bounds of what several options are.
func rate(name string, v float64, none bool) numberBound {
	return numberBound{name: name, value: v, high: math.MaxFloat32, none: none, what: "a number from 0 up"}
}

func dropped(name string, v float64, none bool) numberBound {
	return numberBound{name: name, value: v, high: 1, open: true, none: none, what: "the share to drop, from 0 to below 1"}
}

// orNone is v with its default, and 0 where it is None.
func orNone[T int | float64](v, def T) T {
	switch v {
	case 0:
		return def
	case None:
		return 0
	}
	return v
}

// inBounds is the error of the first number among the options that is out of its bounds.
func (o LaunchOptions) inBounds() error {
	every := o.CheckpointEvery
	if every == None {
		every = 0
	}
	return inBounds(
		bound{"Workers", o.Workers, 1, maxWorkers()}, bound{"VirtualRanks", o.VirtualRanks, 1, maxVirtual},
		bound{"Threads", o.Threads, 1, maxThreads()}, bound{"FirstGPU", o.FirstGPU, 0, maxWorkers() - 1}, bound{"CheckpointEvery", every, 1, maxCount}, bound{"KeepCheckpoints", o.KeepCheckpoints, 1, maxKept},
	)
}
