package convert

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/dataset/internal/npy/npytest"
)

// A file of splits replaces those of the input, as ids and as masks of one set or several; errors name file, array and entry.
func TestSplitFile(t *testing.T) {
	src := npytest.Write(t, "small", npytest.Zip(t, heterophilous()...))
	file := func(arrays ...npytest.Array) string { return npytest.Write(t, "split", npytest.Zip(t, arrays...)) }
	ids := func(name string, ids ...int64) npytest.Array { return npytest.Of(name, ids...) }
	for name, c := range map[string]struct {
		file string
		want map[string][]int32
	}{
		"ids":   {file(ids("train", 3, 0), ids("valid", 1), ids("test", 2)), map[string][]int32{"train": {0, 3}, "val": {1}, "test": {2}}},
		"mask":  {file(npytest.Of("train_mask", true, false, false, true), npytest.Of("test_mask", false, true, true, false)), map[string][]int32{"train": {0, 3}, "test": {1, 2}}},
		"masks": {file(npytest.Of("train_masks", true, false, false, false, false, false, false, true).Reshaped("(2, 4)"), npytest.Of("test_masks", false, true, false, false, false, true, false, false).Reshaped("(2, 4)")), map[string][]int32{"train": {0}, "test": {1}, "train@1": {3}, "test@1": {1}}},
	} {
		d, _ := converted(t, src, Options{Split: c.file})
		if len(d.Splits) != len(c.want) {
			t.Errorf("%s: the splits are %v", name, d.Splits)
		}
		for split, want := range c.want {
			if !slices.Equal(d.Splits[split], want) {
				t.Errorf("%s: %s is %v, want %v", name, split, d.Splits[split], want)
			}
		}
	}
	refused(t, src, Options{Split: file(ids("train", 0, 4), ids("test", 2))}, "split.npz", "entry 1 of train", "node 4", "0 to 3")
	refused(t, src, Options{Split: file(ids("train", 0, 0), ids("test", 2))}, "entry 1 of train", "twice")
	refused(t, src, Options{Split: file(ids("train", 0))}, "no array test")
	refused(t, src, Options{Split: file(ids("train", 0), ids("test", 2), ids("fold", 1))}, "fold")
	refused(t, src, Options{Split: file(ids("train", 0, 2), ids("test", 2))}, "2")
	refused(t, src, Options{Split: filepath.Join(t.TempDir(), "none.npz")}, "none.npz")
}

// Random splits of fixed sizes: as many train nodes of each class, disjoint parts, the same ones for a seed.
func TestDrawSplits(t *testing.T) {
	const n = 300
	y := make([]int32, n)
	for v := range y {
		if y[v] = int32(v % 3); v%10 == 9 {
			y[v] = -1
		}
	}
	drawn := func(sizes SplitSizes, seed uint64) *dataset.Dataset {
		d := &dataset.Dataset{Graph: &graphops.Graph{Indptr: make([]int64, n+1)}, Labels: y, Meta: dataset.Metadata{Name: "x", NumClasses: 3}, Splits: map[string][]int32{"train": {1}}}
		if err := DrawSplits(d, sizes, seed); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := drawn(SplitSizes{Train: 20, Val: 50, Test: 100}, 1)
	for k := range 10 {
		seen, classes := map[int32]bool{}, [3]int{}
		for _, v := range d.Splits[dataset.SplitSetName("train", k)] {
			classes[y[v]]++
		}
		for i, name := range []string{"train", "val", "test"} {
			ids := d.Splits[dataset.SplitSetName(name, k)]
			if want := []int{60, 50, 100}[i]; len(ids) != want || !slices.IsSorted(ids) {
				t.Errorf("%s of set %d has %d nodes, want %d, ascending", name, k, len(ids), want)
			}
			for _, v := range ids {
				if seen[v] || y[v] < 0 {
					t.Errorf("node %d is in two parts of set %d, or has no label", v, k)
				}
				seen[v] = true
			}
		}
		if classes != [3]int{20, 20, 20} {
			t.Errorf("train of set %d has %v nodes a class", k, classes)
		}
	}
	if again := drawn(SplitSizes{Train: 20, Val: 50, Test: 100}, 1); !slices.Equal(again.Splits["val@3"], d.Splits["val@3"]) || slices.Equal(drawn(SplitSizes{Train: 20, Val: 50, Test: 100}, 2).Splits["val@3"], d.Splits["val@3"]) || slices.Equal(d.Splits["val"], d.Splits["val@1"]) {
		t.Error("the splits do not depend on the seed and the set alone")
	}
	if all := drawn(SplitSizes{Sets: 1, Train: 20, Val: 50}, 1); len(all.Splits["test"]) != 270-60-50 || len(all.Splits) != 3 {
		t.Errorf("the test has %d nodes, of all that are left", len(all.Splits["test"]))
	}
	if err := DrawSplits(d, SplitSizes{Train: 20, Val: 200, Test: 100}, 1); err == nil {
		t.Error("splits of more nodes than there are were drawn")
	}
}
