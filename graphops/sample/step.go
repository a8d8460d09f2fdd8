package sample

import (
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/internal/philox"
)

// step is the step that a sampler with a [StepPicker] is in.
type step struct {
	epoch, step int
	seeds       []int32 // of all ranks
	set         bool    // by ForStep
	last        Picker
}

func isStepPicker(p Picker) bool {
	_, ok := p.(StepPicker)
	return ok
}

// ForStep tells a sampler with a [StepPicker] the seeds of a step, of all ranks, before it samples shares of them. Without
// it, the seeds that [Sampler.Sample] gets are all. Other samplers ignore it. It returns the StepPicker's error as a
// [*PickError]. The seeds are copied.
func (s *Sampler) ForStep(epoch, step int, of Seeds) error {
	at, seeds := &s.step, of.IDs
	if !isStepPicker(s.c.Picker) || at.set && at.epoch == epoch && at.step == step && slices.Equal(at.seeds, seeds) {
		return nil
	}
	if err := s.enter(epoch, step); err != nil {
		return err
	}
	defer s.busy.Store(false)
	at.set = false
	if err := s.prepare(epoch, step, seeds); err != nil {
		return err
	}
	at.epoch, at.step, at.set = epoch, step, true
	at.seeds = append(at.seeds[:0], seeds...)
	return nil
}

// beginStep sets the picker of a step whose seeds Sample got, unless ForStep has.
func (s *Sampler) beginStep(epoch, step int, seeds Seeds) error {
	at := &s.step
	if !isStepPicker(s.c.Picker) || at.set && at.epoch == epoch && at.step == step {
		return nil
	}
	at.set = false
	return s.prepare(epoch, step, seeds.IDs)
}

func (s *Sampler) prepare(epoch, step int, seeds []int32) (err error) {
	if err := (Seeds{IDs: seeds}).Check(s.nodes); err != nil {
		return err
	}
	h := Hop{seed: s.c.Seed, epoch: epoch, step: step, c3: philox.C3(philox.Purpose(s.c.Purpose), 0, epoch)}
	defer func() {
		if r := recover(); r != nil {
			err = s.recovered(r, 0, -1)
		}
	}()
	p, err := s.c.Picker.(StepPicker).ForStep(&h, s.g, seeds, s.step.last)
	if err == nil && p == nil {
		err = errors.New("returned no picker")
	}
	if err != nil {
		return &PickError{Picker: s.name, Node: -1, Err: fmt.Errorf("failed: %w", err)}
	}
	s.picker, s.step.last = p, p
	return nil
}
