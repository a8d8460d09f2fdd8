package feed

import (
	"io"
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// ForStep tells a sampler with a [sample.StepPicker] the seeds of a step, of all ranks. Other samplers ignore it.
func ForStep(s sample.Batcher, epoch, step int, seeds sample.Seeds) error {
	if s, ok := s.(interface {
		ForStep(epoch, step int, seeds sample.Seeds) error
	}); ok {
		return s.ForStep(epoch, step, seeds)
	}
	return nil
}

// NeedsSteps reports whether a picker is a [sample.StepPicker].
func NeedsSteps(p sample.Picker) bool {
	_, ok := p.(sample.StepPicker)
	return ok
}

// Key identifies the sampler of a loop.
type Key struct {
	Picker   sample.Picker
	Frontier sample.FrontierPicker
	Hops     int
	Purpose  philox.Purpose
	// Cooperative means that all ranks sample a batch together, each the nodes that it owns; see [Team].
	Cooperative bool
	Disjoint    bool
	AsOf        sample.AsOf
	Induced     bool
	Owners      sample.Owners
	InputHalo   bool // of cooperative batches; see sample.Peers
	Within      bool // it exchanges with other ranks as [Team.Within] does
}

// maxSamplers is the maximum number of kept samplers, each with a table of the graph's nodes. An
// epoch may use several, for example one loader to train and another to test.
const maxSamplers = 4

// Samplers keeps samplers with their tables. One goroutine uses it. Loops of one purpose run one
// after the other, so two loops never use a sampler at the same time.
type Samplers struct{ kept []*keptSampler }

// Len returns the number of kept samplers.
func (s *Samplers) Len() int { return len(s.kept) }

type keptSampler struct {
	key     Key
	sampler sample.Batcher
	loops   int // loops that use it now
}

// Get returns the sampler of an earlier loop with the same key, or a new one made by open. Call
// done at the end of the loop.
func (s *Samplers) Get(key Key, open func(Key) (sample.Batcher, error)) (_ sample.Batcher, done func() error, err error) {
	for _, k := range s.kept {
		if k.key.same(key) {
			return k.sampler, k.use(), nil
		}
	}
	key = key.clone()
	made, err := open(key)
	if err != nil {
		return nil, nil, err
	}
	if !key.same(key) { // no later loop is certain to need it
		return made, func() error { return closeSampler(made) }, nil
	}
	if len(s.kept) >= maxSamplers {
		if i := slices.IndexFunc(s.kept, func(k *keptSampler) bool { return k.loops == 0 }); i >= 0 {
			old := s.kept[i].sampler
			s.kept = slices.Delete(s.kept, i, i+1)
			if err := closeSampler(old); err != nil {
				return nil, nil, err
			}
		}
	}
	k := &keptSampler{key: key, sampler: made}
	s.kept = append(s.kept, k)
	return made, k.use(), nil
}

func (k *keptSampler) use() (done func() error) {
	k.loops++
	return func() error { k.loops--; return nil }
}

// closeSampler frees the memory of a device's sampler; memory of batches in use is freed at their
// release.
func closeSampler(s sample.Batcher) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// clone returns k with a picker that stays as it is, because the program may change its slices.
func (k Key) clone() Key {
	k.Picker = sample.ClonePicker(k.Picker)
	return k
}

// same reports whether two samplers are certain to make the same picks from now on.
func (k Key) same(l Key) bool {
	if !sample.SamePicker(k.Owners, l.Owners) || !sample.SamePicker(k.Picker, l.Picker) || !sample.SamePicker(k.Frontier, l.Frontier) {
		return false
	}
	return k.Purpose == l.Purpose && k.Hops == l.Hops && k.Cooperative == l.Cooperative && k.Disjoint == l.Disjoint && k.AsOf.Same(&l.AsOf) && k.Induced == l.Induced && k.InputHalo == l.InputHalo && k.Within == l.Within
}
