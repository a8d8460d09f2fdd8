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

// Key says which sampler a loop needs.
type Key struct {
	Picker   sample.Picker
	Frontier sample.FrontierPicker
	Hops     int
	Purpose  philox.Purpose
}

// maxSamplers bounds how many samplers are kept, each with a table of the graph's
// nodes: an epoch may train with one loader and test with another.
const maxSamplers = 4

// Samplers keeps samplers with their tables. One goroutine uses it; the loops of one purpose follow each
// other, so that no two of them use a sampler at a time.
type Samplers struct{ kept []*keptSampler }

// Len is the number of samplers that are kept.
func (s *Samplers) Len() int { return len(s.kept) }

type keptSampler struct {
	key     Key
	sampler Sampler
	loops   int // that use it now
}

// Get returns the sampler of an earlier loop with the same key, or the one that open makes. The loop ends
// with done.
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
	if !key.same(key) { // no later loop can be known to need it
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

// closeSampler gives a device's sampler's memory back; that of batches still in use when they are released.
func closeSampler(s Sampler) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// clone is k with fanouts of its own: the program may change its slices.
func (k Key) clone() Key {
	switch p := k.Picker.(type) {
	case sample.Fanouts:
		k.Picker = slices.Clone(p)
	case sample.Weighted:
		k.Picker = sample.Weighted{Fanouts: slices.Clone(p.Fanouts)}
	}
	return k
}

// same reports whether two samplers are certain to pick alike from now on.
func (k Key) same(l Key) bool {
	return k.Purpose == l.Purpose && k.Hops == l.Hops && samePicker(k.Picker, l.Picker) && samePicker(k.Frontier, l.Frontier)
}

// samePicker reports whether two pickers have the same fanouts, or are the same value of a type that can be
// compared.
func samePicker(a, b any) bool {
	switch f := a.(type) {
	case sample.Fanouts:
		g, ok := b.(sample.Fanouts)
		return ok && slices.Equal(f, g)
	case sample.Weighted:
		g, ok := b.(sample.Weighted)
		return ok && slices.Equal(f.Fanouts, g.Fanouts)
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	return x.Comparable() && y.Comparable() && a == b
}
