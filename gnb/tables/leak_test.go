package tables

import "testing"

// A column that predicts the label by each of its values is found whatever the number of categories, and not if one
// value has two labels.
func TestLeakOfManyCategories(t *testing.T) {
	const values, rows = 10_000, 30_000
	v := &vec{class: whole, i: make([]int64, rows)}
	for i := range v.i {
		v.i[i] = int64(i*7919) % values
	}
	for name, spoilt := range map[string]bool{"each value has one label alone": false, "one value has two": true} {
		l := newLeak(&Column{Kind: Category})
		for i, x := range v.i {
			class := int32(x * 31 % 3)
			if spoilt && i == rows-1 {
				class++
			}
			l.add(v, i, class, nil)
		}
		if got := l.found(); (got == "each of its values has one label alone") == spoilt || spoilt && got != "" {
			t.Errorf("%s: %q is found", name, got)
		}
	}
}
