package dataset

import (
	"maps"
	"reflect"
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
	if d.Meta.NumClasses != k.classes || d.Meta.Metric != k.metric || !d.Schema().Equal(k.schema) || !reflect.DeepEqual(d.Meta.NodeTypes, k.types) {
		return false
	}
	if g := d.Graphs; g != nil && d.Meta.Graphs != nil && (g.Meta.NumClasses != d.Meta.Graphs.NumClasses || g.Meta.Metric != d.Meta.Graphs.Metric) {
		return false
	}
	base := *d
	if d.whole != nil {
		as, err := d.whole.WithSplitSet(d.splitSet)
		if err != nil || !maps.EqualFunc(as.Splits, d.Splits, func(a, b []int32) bool { return sameMemory(rawBytes(a), rawBytes(b)) }) {
			return false
		}
		if g := d.Graphs; g != nil {
			if as.Graphs == nil || !maps.EqualFunc(as.Graphs.Splits, g.Splits, func(a, b []int32) bool { return sameMemory(rawBytes(a), rawBytes(b)) }) {
				return false
			}
			whole := *g
			whole.Splits = d.whole.Graphs.Splits
			base.Graphs = &whole
		}
		if a := d.EdgeAnswers; a != nil {
			if as.EdgeAnswers == nil || !maps.EqualFunc(as.EdgeAnswers.Splits, a.Splits, func(a, b []int32) bool { return sameMemory(rawBytes(a), rawBytes(b)) }) {
				return false
			}
			whole := *a
			whole.Splits = d.whole.EdgeAnswers.Splits
			base.EdgeAnswers = &whole
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

// FeatureFile returns the file in which the rows of Features are, row-major from a byte on, if the
// dataset is from [Open] and Features are still those of the file.
func (d *Dataset) FeatureFile() (path string, from int64, ok bool) {
	if d.known == nil || d.Features == nil {
		return "", 0, false
	}
	body := rawBytes(d.Features.F32)
	if d.Features.Half() {
		body = rawBytes(d.Features.F16)
	}
	file, opened := d.known.sections[featuresFile]
	if !opened || len(body) == 0 || !sameMemory(d.known.arrays[featuresFile], body) {
		return "", 0, false
	}
	return file.path, file.size - int64(len(body)), true
}
