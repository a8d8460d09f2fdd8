package dataset_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// A hundred graphs of three classes and one without a label.
func hundred() *dataset.Dataset {
	d := &dataset.Dataset{Labels: make([]int32, 100), Meta: dataset.Metadata{NumClasses: 3, NumNodes: 100}}
	for g := range d.Labels {
		switch {
		case g == 50:
			d.Labels[g] = -1
		case g%10 == 3:
			d.Labels[g] = 2
		case g%3 == 0:
			d.Labels[g] = 1
		}
	}
	return d
}

// Random splits are disjoint, hold every labelled row once, and have each class by the same shares, within one row.
func TestSplitAtRandom(t *testing.T) {
	count := func(d *dataset.Dataset, ids []int32) (n [3]int) {
		for _, v := range ids {
			n[d.Labels[v]]++
		}
		return n
	}
	d := hundred()
	all := count(d, d.LabelledRows())
	if err := d.SplitAtRandom(dataset.SplitOptions{Val: 0.2, Test: 0.3, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	var ids []int32
	for name, share := range map[string]float64{"train": 0.5, "val": 0.2, "test": 0.3} {
		ids = append(ids, d.Splits[name]...)
		for c, n := range count(d, d.Splits[name]) {
			if math.Abs(float64(n)-share*float64(all[c])) > 1 {
				t.Errorf("%s has %d of the %d rows of class %d, want a share of %v", name, n, all[c], c, share)
			}
		}
		if !slices.IsSorted(d.Splits[name]) || math.Abs(float64(len(d.Splits[name]))-99*share) > 1 {
			t.Errorf("%s: %v", name, d.Splits[name])
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 99 || slices.Contains(ids, 50) {
		t.Errorf("the splits hold %d rows, want the 99 labelled ones", len(ids))
	}
	first := maps.Clone(d.Splits)
	_ = d.SplitAtRandom(dataset.SplitOptions{Val: 0.2, Test: 0.3, Seed: 7})
	same := slices.Equal(d.Splits["test"], first["test"])
	_ = d.SplitAtRandom(dataset.SplitOptions{Val: 0.2, Test: 0.3, Seed: 8})
	if !same || slices.Equal(d.Splits["test"], first["test"]) {
		t.Error("the splits are no function of the seed")
	}
	if err := d.SplitAtRandom(dataset.SplitOptions{Folds: 9}); err != nil {
		t.Fatal(err)
	}
	var tested []int32
	for k := range 9 {
		test, val := d.Splits[dataset.SplitSetName("test", k)], d.Splits[dataset.SplitSetName("val", k)]
		tested = append(tested, test...)
		if n := count(d, test); n[2] < 1 || n[2] > 2 || !slices.Equal(val, d.Splits[dataset.SplitSetName("test", (k+1)%9)]) || len(test)+len(val)+len(d.Splits[dataset.SplitSetName("train", k)]) != 99 {
			t.Errorf("fold %d tests on %v and validates on %v", k, test, val)
		}
	}
	slices.Sort(tested)
	if len(slices.Compact(tested)) != 99 || d.SplitSets() != 9 {
		t.Errorf("the folds test on %d different rows", len(tested))
	}
	for word, o := range map[string]dataset.SplitOptions{"shares": {Val: 0.5, Test: 0.5}, "at least 3": {Folds: 2}, "as many folds as rows": {Folds: 100}} {
		if err := d.SplitAtRandom(o); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: %v; want %q", o, err, word)
		}
	}
	if d.Labels = slices.Repeat([]int32{-1}, 100); d.SplitAtRandom(dataset.SplitOptions{}) == nil {
		t.Error("rows without a label were divided")
	}
}
