package sample

import (
	"fmt"
	"reflect"
	"slices"
)

// Spec describes a picker that samples by fanouts in one of the ways that this package knows. What samples without the
// picker itself needs it: a device, the owner of a part of the graph, a prediction.
type Spec struct {
	Fanouts  Fanouts
	Weighted bool   // by the edges' weights
	Labor    *Labor // layer-neighbour sampling with these options; its Fanouts are those above
}

// SpecOf returns what a picker says of itself by a method Spec() Spec. ok is false if it has none.
func SpecOf(p Picker) (s Spec, ok bool) {
	if p, ok := p.(interface{ Spec() Spec }); ok {
		return p.Spec(), true
	}
	return Spec{}, false
}

// Spec describes the picker.
func (f Fanouts) Spec() Spec { return Spec{Fanouts: f} }

// Spec describes the picker.
func (w Weighted) Spec() Spec { return Spec{Fanouts: w.Fanouts, Weighted: true} }

// Spec describes the picker.
func (l Labor) Spec() Spec { return Spec{Fanouts: l.Fanouts, Labor: &l} }

// name is the value of HopRequest.Picker.
func (s Spec) name() string {
	switch {
	case s.Weighted:
		return WeightedPicker
	case s.Labor != nil:
		return s.Labor.name()
	}
	return UniformPicker
}

// Key implements what [SamePicker] asks for.
func (f Fanouts) Key() string { return f.Spec().key() }

// Key implements what [SamePicker] asks for.
func (w Weighted) Key() string { return w.Spec().key() }

// Key implements what [SamePicker] asks for.
func (l Labor) Key() string { return l.Spec().key() }

func (s Spec) key() string { return fmt.Sprint(s.name(), []int(s.Fanouts)) }

// Clone returns a copy in memory of its own.
func (f Fanouts) Clone() Picker { return slices.Clone(f) }

// Clone returns a copy in memory of its own.
func (w Weighted) Clone() Picker { return Weighted{slices.Clone(w.Fanouts)} }

// Clone returns a copy in memory of its own.
func (l Labor) Clone() Picker {
	l.Fanouts = slices.Clone(l.Fanouts)
	return l
}

// NeedsWeights says that the picker picks by weights.
func (w Weighted) NeedsWeights() bool { return true }

// needsWeights reports what a picker's method NeedsWeights says, false if it has none.
func needsWeights(p Picker) bool {
	w, ok := p.(interface{ NeedsWeights() bool })
	return ok && w.NeedsWeights()
}

// Check returns an error if a sampler cannot use the fanouts.
func (w Weighted) Check() error { return w.Fanouts.Check() }

// CheckPicker returns the error of a picker's method Check() error, if it has one.
func CheckPicker(p any) error {
	if p, ok := p.(interface{ Check() error }); ok {
		return p.Check()
	}
	return nil
}

// ClonePicker returns a picker that does not change when p does: the result of its method Clone() Picker, or p itself if it
// has none.
func ClonePicker(p Picker) Picker {
	if c, ok := p.(interface{ Clone() Picker }); ok {
		return c.Clone()
	}
	return p
}

// SamePicker reports whether two pickers, or two values of another kind that samplers have, are certain to be the same from
// now on: values of one type whose methods Key() string return the same, or equal values of a comparable type.
func SamePicker(a, b any) bool {
	x, y := reflect.TypeOf(a), reflect.TypeOf(b)
	if x != y || x == nil {
		return x == y
	}
	if k, ok := a.(interface{ Key() string }); ok {
		return k.Key() == b.(interface{ Key() string }).Key()
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

var _ Picker = Fanouts(nil)
