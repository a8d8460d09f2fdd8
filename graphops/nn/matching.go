package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Matching says which parameters [Params.LoadMatching] set, and why the others did not match.
type Matching struct {
	Matched    []string // parameters that were set
	Missing    []string // parameters of the model for which there is no value
	Unexpected []string // values for which the model has no parameter
	Misshapen  []string // parameters whose value has another shape, each with both shapes
}

// LoadMatching sets the parameters for which values has the name and the shape, and leaves the others as they are.
func (p *Params) LoadMatching(values map[string]Value) (m Matching) {
	known := map[string]bool{}
	for _, e := range p.list {
		known[e.Name] = true
		switch v, ok := values[e.Name]; {
		case !ok:
			m.Missing = append(m.Missing, e.Name)
		case !slices.Equal(v.Shape, e.shape) || len(v.Data) != len(e.W):
			m.Misshapen = append(m.Misshapen, fmt.Sprintf("%s (%s there, %s here)", e.Name, shapeString(v.Shape), shapeString(e.shape)))
		default:
			copy(e.W, v.Data)
			m.Matched = append(m.Matched, e.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !known[name] && !known[p.unalias(name)] {
			m.Unexpected = append(m.Unexpected, name)
		}
	}
	return m
}

// String lists what did not match; it is "" if everything did.
func (m Matching) String() string {
	var parts []string
	for _, w := range []struct {
		what string
		list []string
	}{{"of another shape: ", m.Misshapen}, {"not there: ", m.Missing}, {"not used: ", m.Unexpected}} {
		if len(w.list) > 0 {
			parts = append(parts, w.what+firstFew(w.list))
		}
	}
	return strings.Join(parts, "; ")
}
