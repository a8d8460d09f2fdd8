package dataset

import (
	"maps"
	"slices"
)

// Stored reports whether another process that opens [Dataset.Dir] gets the same dataset (for a
// view, with [Dataset.WithSplitSet] of the same set): it was opened from a directory, and the
// program has not replaced an array, a split, the number of classes or the metric since. If it is
// false, other processes need a copy ([Dataset.Share], [Write]). Cost: one pass over labels and
// splits that the files store as int64.
func (d *Dataset) Stored() bool {
	if d.dir == "" || d.known == nil || d.Graph == nil && d.Meta.Parts == nil {
		return false
	}
	k := d.known
	if d.Meta.NumClasses != k.classes || d.Metric() != k.metric {
		return false
	}
	base := *d
	if d.whole != nil {
		as, err := d.whole.WithSplitSet(d.splitSet)
		if err != nil || !maps.EqualFunc(as.Splits, d.Splits, func(a, b []int32) bool { return sameMemory(rawBytes(a), rawBytes(b)) }) {
			return false
		}
		base.Splits = d.whole.Splits
	}
	arrays := base.arrays()
	if len(arrays) != len(k.loaded) {
		return false
	}
	return !slices.ContainsFunc(arrays, func(a array) bool {
		as, ok := k.loaded[a.section]
		return !ok || !sameMemory(as, a.body) || !k.narrows(a)
	})
}

// narrows reports whether a converted array still equals its file's content.
func (k *known) narrows(a array) bool {
	wide, converted := k.wide[a.section]
	return !converted || slices.EqualFunc(wide, view[int32](a.body), func(x int64, y int32) bool { return x == int64(y) })
}
