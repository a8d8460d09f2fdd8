package recipe

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/launch"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Optimizing is how a program changes a network's weights: the part of a [Recipe] that training on links and on
// triples shares with gnb.Train.
type Optimizing struct {
	Accumulate  int `json:",omitempty"` // batches of a step; 0 means 1
	LR          float64
	WeightDecay float64
	ClipNorm    float64
	Schedule    optim.Schedule  `json:",omitzero"`
	Optimizer   string          `json:",omitempty"` // "" is adam
	Groups      []optim.Group   `json:",omitempty"`
	Average     optim.Averaging `json:",omitzero"`
}

// Optimizing returns how a training of some epochs changes the weights, with the learning rate lr, or an error for an option
// without meaning.
func (o Settings) Optimizing(lr float64, epochs int) (Optimizing, error) {
	a := Optimizing{LR: lr, WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm, Schedule: o.Schedule, Groups: o.Groups, Average: o.Average}
	if o.Accumulate > 1 {
		a.Accumulate = o.Accumulate
	}
	if o.Optimizer != "adam" {
		a.Optimizer = o.Optimizer
	}
	if err := entry.CheckAll(entry.Whole("Accumulate", o.Accumulate, 1, launch.MaxVirtual)); err != nil {
		return a, err
	}
	switch {
	case a.Optimizer != "" && a.Optimizer != "adamw":
		return a, fmt.Errorf(`gnb: Optimizer is %q; it is "adam" or "adamw"`, o.Optimizer)
	case a.Accumulate > 0 && o.Cooperative:
		return a, errors.New("gnb: Accumulate adds up batches of one worker after the other, and a cooperative batch belongs to all workers together; leave Accumulate out and take a smaller Batch, or leave Cooperative out")
	case o.Schedule.Kind == "plateau" && o.Eval == "none":
		return a, errors.New("gnb: the Schedule is a plateau, which watches the validation split, but Eval is none; evaluate, or choose another schedule")
	}
	for _, g := range a.Groups {
		if err := g.Check(lr); err != nil {
			return a, err
		}
	}
	if err := a.Average.Check(float64(max(1, epochs))); err != nil {
		return a, err
	}
	return a, o.Schedule.Check(lr, float64(epochs))
}

// Set sets the options of a run with the configuration c to those that make a.
func (a Optimizing) Set(o *Settings, c runs.Config) {
	o.Accumulate, o.LR, o.WeightDecay, o.ClipNorm, o.Schedule, o.Optimizer = a.Accumulate, inside.Given(a.LR), a.WeightDecay, a.ClipNorm, a.Schedule, a.Optimizer
	o.Groups, o.Average = a.Groups, a.Average
	o.VirtualRanks = c.VirtualRanks / max(1, a.Accumulate)
}

// WholeBatch returns the batch of a step, over all workers: batch, or def if that is 0, for each batch that is
// accumulated. It is 0 with a batch of each worker, which the virtual ranks multiply.
func (a Optimizing) WholeBatch(batch, def, perWorker int) int {
	switch {
	case perWorker > 0:
		return 0
	case a.Accumulate > 1:
		return cmp.Or(batch, def) * a.Accumulate
	}
	return batch
}

// Virtual returns the number of virtual ranks to launch: batches that are accumulated are virtual ranks.
func (o Settings) Virtual() int {
	if o.Accumulate > 1 {
		return max(1, o.VirtualRanks) * o.Accumulate
	}
	return VirtualOfBatches(o.Cooperative, o.VirtualRanks)
}

// VirtualOfBatches returns the number of virtual ranks to ask for: 1 for cooperative batches, which
// belong to all workers together.
func VirtualOfBatches(cooperative bool, virtual int) int {
	if cooperative {
		return 1
	}
	return virtual
}

// Made makes the optimiser of a training of perEpoch steps an epoch.
func (a Optimizing) Made(perEpoch int) (o optim.Optimizer) {
	o = optim.NewAdam(optim.AdamOptions{WeightDecay: a.WeightDecay, Decoupled: a.Optimizer == "adamw"})
	o.SetLR(a.LR) // a rate of 0 is not a default
	if len(a.Groups) > 0 {
		o = optim.NewGrouped(o, a.Groups...)
	}
	if a.Average != (optim.Averaging{}) {
		o = optim.NewAveraged(o, a.Average.Steps(float64(perEpoch)))
	}
	return o
}

// Timed reports whether the optimiser counts steps of an epoch.
func (a Optimizing) Timed() bool {
	return a.Schedule != (optim.Schedule{}) || a.Average != (optim.Averaging{})
}
