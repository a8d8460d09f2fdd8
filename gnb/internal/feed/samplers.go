package feed

import (
	"io"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// Sampler samples batches on the CPU or on a device.
type Sampler interface {
	Sample(epoch, step int, seeds []int32) (*sample.Batch, error)
}

// ForStep tells a sampler with a [sample.StepPicker] the seeds of a step, of all ranks. Other samplers ignore it.
func ForStep(s Sampler, epoch, step int, seeds []int32) error {
	if s, ok := s.(interface {
		ForStep(epoch, step int, seeds []int32) error
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
	sampler Sampler
	loops   int // loops that use it now
}

// Get returns the sampler of an earlier loop with the same key, or a new one made by open. Call
// done at the end of the loop.
func (s *Samplers) Get(key Key, open func(Key) (Sampler, error)) (_ Sampler, done func() error, err error) {
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
func closeSampler(s Sampler) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// clone returns k with a copy of its fanouts, because the program may change its slices.
func (k Key) clone() Key {
	switch p := k.Picker.(type) {
	case sample.Fanouts:
		k.Picker = slices.Clone(p)
	case sample.Weighted:
		k.Picker = sample.Weighted{Fanouts: slices.Clone(p.Fanouts)}
	case sample.Labor:
		p.Fanouts = slices.Clone(p.Fanouts)
		k.Picker = p
	}
	return k
}

// same reports whether two samplers are certain to make the same picks from now on.
func (k Key) same(l Key) bool {
	return k.Purpose == l.Purpose && k.Hops == l.Hops && k.Cooperative == l.Cooperative && k.InputHalo == l.InputHalo && k.Within == l.Within && samePicker(k.Owners, l.Owners) && samePicker(k.Picker, l.Picker) && samePicker(k.Frontier, l.Frontier)
}

// samePicker reports whether two pickers, or two Owners, have the same fanouts, or are equal values
// of a comparable type.
func samePicker(a, b any) bool {
	switch f := a.(type) {
	case sample.Fanouts:
		g, ok := b.(sample.Fanouts)
		return ok && slices.Equal(f, g)
	case sample.Weighted:
		g, ok := b.(sample.Weighted)
		return ok && slices.Equal(f.Fanouts, g.Fanouts)
	case sample.Labor:
		g, ok := b.(sample.Labor)
		same := slices.Equal(f.Fanouts, g.Fanouts)
		f.Fanouts, g.Fanouts = nil, nil
		return ok && same && reflect.DeepEqual(f, g)
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	return x.Comparable() && y.Comparable() && a == b
}
