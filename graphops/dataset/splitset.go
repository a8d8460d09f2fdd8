package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A dataset may have several sets of splits, so that results can be averaged over them: "train",
// "val" and "test" are set 0, "train@1" and so on are set 1.

// splitSet separates a split's name into its name within the set and the set's number.
func splitSet(name string) (base string, set int) {
	base, number, ok := strings.Cut(name, "@")
	if !ok {
		return name, 0
	}
	set, err := strconv.Atoi(number)
	if err != nil {
		return name, 0
	}
	return base, set
}

// SplitSetName returns the name of the split base in set k: base itself in set 0, otherwise
// "base@k".
func SplitSetName(base string, k int) string {
	if k == 0 {
		return base
	}
	return base + "@" + strconv.Itoa(k)
}

// sortedSplits returns the names of splits by set, then train, val and test before others in alphabetical order.
func sortedSplits[T any](splits map[string]T) []string {
	usual := []string{"test", "val", "train"}
	names := slices.Sorted(maps.Keys(splits))
	slices.SortStableFunc(names, func(a, b string) int {
		a, i := splitSet(a)
		b, j := splitSet(b)
		return cmp.Or(i-j, slices.Index(usual, b)-slices.Index(usual, a))
	})
	return names
}

// SplitSets returns the number of sets of splits: 1, unless there are splits named "train@1" and so
// on. A view ([Dataset.WithSplitSet]) has as many as its dataset.
func (d *Dataset) SplitSets() int {
	if d.whole != nil {
		return d.whole.SplitSets()
	}
	n := 1
	for name := range d.Splits {
		_, k := splitSet(name)
		n = max(n, k+1)
	}
	if d.Graphs != nil {
		n = max(n, d.Graphs.SplitSets())
	}
	if d.EdgeAnswers != nil {
		n = max(n, d.EdgeAnswers.SplitSets())
	}
	return n
}

// SplitSet returns the number of the set whose splits have the plain names: see
// [Dataset.WithSplitSet].
func (d *Dataset) SplitSet() int { return d.splitSet }

// WithSplitSet returns a view of the dataset in which the splits of set k have the plain names
// "train", "val" and "test". The view does not contain other sets; splits of other names are kept
// unless the set has one of that name. It shares everything else, including Dir: a process that
// opens the directory gets the same view with the same k. Closing the view closes the dataset.
//
// If the set does not exist, the error gives the number of sets.
func (d *Dataset) WithSplitSet(k int) (*Dataset, error) {
	if d.whole != nil {
		view, err := d.whole.WithSplitSet(k)
		if err == nil {
			view.measured = d.measured
		}
		return view, err
	}
	splits := map[string][]int32{}
	found := k == 0
	for name, ids := range d.Splits {
		base, set := splitSet(name)
		switch {
		case set == k:
			splits[base] = ids
			found = true
		case set == 0 && !slices.Contains([]string{"train", "val", "test"}, base):
			if _, own := d.Splits[SplitSetName(base, k)]; !own {
				splits[base] = ids
			}
		}
	}
	graphs := d.Graphs
	if graphs != nil {
		if g, err := graphs.WithSplitSet(k); err == nil {
			graphs, found = g, true
		}
	}
	edges := d.EdgeAnswers
	if edges != nil {
		if a, err := edges.WithSplitSet(k); err == nil {
			edges, found = a, true
		}
	}
	if !found {
		return nil, fmt.Errorf("dataset: %s has no split set %d; it has %d, numbered from 0", d.Name(), k, d.SplitSets())
	}
	view := *d
	view.Splits, view.Graphs, view.EdgeAnswers, view.whole, view.splitSet, view.closer = splits, graphs, edges, d, k, nil
	view.Meta.Splits = sortedSplits(splits)
	return &view, nil
}
