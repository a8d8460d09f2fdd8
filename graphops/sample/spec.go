package sample

import (
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

// SpecOf describes a picker of this package: [Fanouts], [Weighted] or [Labor]. ok is false for any other, also for one that
// embeds them, whose picks are its own.
func SpecOf(p Picker) (s Spec, ok bool) {
	switch p := p.(type) {
	case Fanouts:
		return Spec{Fanouts: p}, true
	case Weighted:
		return Spec{Fanouts: p.Fanouts, Weighted: true}, true
	case Labor:
		return Spec{Fanouts: p.Fanouts, Labor: &p}, true
	}
	return Spec{}, false
}

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

// Same implements what [SamePicker] asks for.
func (f Fanouts) Same(other Picker) bool {
	g, ok := other.(Fanouts)
	return ok && slices.Equal(f, g)
}

// Same implements what [SamePicker] asks for.
func (w Weighted) Same(other Picker) bool {
	g, ok := other.(Weighted)
	return ok && slices.Equal(w.Fanouts, g.Fanouts)
}

// Same implements what [SamePicker] asks for.
func (l Labor) Same(other Picker) bool {
	g, ok := other.(Labor)
	return ok && l.name() == g.name() && slices.Equal(l.Fanouts, g.Fanouts)
}

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
// has none of its own type.
func ClonePicker(p Picker) Picker {
	if c, ok := p.(interface{ Clone() Picker }); ok {
		if own := c.Clone(); reflect.TypeOf(own) == reflect.TypeOf(p) { // else it is that of a picker that p embeds
			return own
		}
	}
	return p
}

// SamePicker reports whether two pickers, or two values of another kind that samplers have, are certain to be the same from
// now on: by the method Same(Picker) bool of the first, or as equal values of a comparable type.
func SamePicker(a, b any) bool {
	x, y := reflect.TypeOf(a), reflect.TypeOf(b)
	if x != y || x == nil {
		return x == y
	}
	if s, ok := a.(interface{ Same(Picker) bool }); ok {
		if other, ok := b.(Picker); ok && s.Same(other) {
			return true
		}
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

var _ Picker = Fanouts(nil)
