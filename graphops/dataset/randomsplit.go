package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/internal/philox"
)

// SplitOptions say how [Dataset.SplitAtRandom] divides rows. The zero value makes one set: 80 % train, 10 % val and 10 % test,
// of each class if rows have one class.
type SplitOptions struct {
	// Val and Test are shares of the rows, from 0 to 1; both 0 means 0.1 each. The other rows are train.
	Val, Test float64
	// Folds divides the rows into this many folds instead, and makes a set of splits of each: set k tests on fold k, validates
	// on fold k+1 (the first one after the last) and trains on the others. 0 means no folds.
	Folds int
	// Plain ignores the classes. Without it each class is divided by the same shares, within one row.
	Plain bool
	// Seed is the random seed; 0 is a seed like any other.
	Seed uint64
}

// splitKey separates these draws from those of a run with the same seed.
const splitKey = 0x73706c6974732121

// SplitAtRandom replaces the splits of d by random ones. Call it for a dataset to divide its nodes, or for [Dataset.Graphs] to
// divide graphs. A row whose label and targets are all unknown is in no split; without labels and targets, all rows are. Ids
// ascend. The splits depend only on the labels, on which targets are known, and on the options. It changes the map of splits, so
// no other goroutine may read d meanwhile.
//
// It returns an error for shares that leave no row for train, and for more folds than rows.
func (d *Dataset) SplitAtRandom(o SplitOptions) error {
	if o.Val == 0 && o.Test == 0 {
		o.Val, o.Test = 0.1, 0.1
	}
	order := d.LabelledRows()
	switch {
	case !(o.Val >= 0 && o.Test >= 0 && o.Val+o.Test < 1):
		return fmt.Errorf("dataset: random splits: val is %v and test %v of the rows; both are shares from 0 to 1, and their sum is below 1", o.Val, o.Test)
	case o.Folds < 0 || o.Folds == 1 || o.Folds == 2:
		return fmt.Errorf("dataset: random splits: %d folds; at least 3 are needed, one each for test and val and the others for train", o.Folds)
	case o.Folds > len(order) || o.Folds > 1000:
		return fmt.Errorf("dataset: random splits: %d folds of %d labelled rows; take at most as many folds as rows, and at most 1000", o.Folds, len(order))
	case len(order) == 0:
		return errors.New("dataset: random splits: there is no row with a known label or target")
	}
	philox.Permute(o.Seed^splitKey, 0, philox.C3(philox.User, 0, 0), order)
	byClass := d.Labels != nil && !o.Plain
	if byClass {
		slices.SortStableFunc(order, func(a, b int32) int { return int(d.Labels[a] - d.Labels[b]) })
	}
	d.Splits = map[string][]int32{}
	if o.Folds > 0 {
		fold := make([][]int32, o.Folds)
		for i, v := range order { // successive rows are of one class, so each fold gets as many of it
			fold[i%o.Folds] = append(fold[i%o.Folds], v)
		}
		for k := range fold {
			next := (k + 1) % o.Folds
			var train []int32
			for j, ids := range fold {
				if j != k && j != next {
					train = append(train, ids...)
				}
			}
			d.setSplits(k, train, fold[next], fold[k])
		}
		return nil
	}
	var train, val, test []int32
	var vals, tests float64 // the exact numbers of rows so far, whose rounding is carried on to the next class
	for lo := 0; lo < len(order); {
		hi := len(order)
		if byClass {
			for hi = lo; hi < len(order) && d.Labels[order[hi]] == d.Labels[order[lo]]; hi++ {
			}
		}
		n := float64(hi - lo)
		vals, tests = vals+o.Val*n, tests+o.Test*n
		a := min(max(0, int(math.Round(vals))-len(val)), hi-lo)
		b := min(max(0, int(math.Round(tests))-len(test)), hi-lo-a)
		val = append(val, order[lo:lo+a]...)
		test = append(test, order[lo+a:lo+a+b]...)
		train = append(train, order[lo+a+b:hi]...)
		lo = hi
	}
	d.setSplits(0, train, val, test)
	return nil
}

// setSplits sets the splits of set k.
func (d *Dataset) setSplits(k int, parts ...[]int32) {
	for i, name := range []string{"train", "val", "test"} {
		ids := slices.Clone(parts[i])
		if ids == nil {
			ids = []int32{}
		}
		slices.Sort(ids)
		d.Splits[SplitSetName(name, k)] = ids
	}
}

// LabelledRows returns the rows with a known label or target, ascending: all rows if there are neither.
func (d *Dataset) LabelledRows() []int32 {
	n := d.rows()
	switch {
	case d.Labels != nil:
		n = len(d.Labels)
	case d.MultiLabels != nil:
		n = d.MultiLabels.Rows
	case d.Targets != nil:
		n = d.Targets.Rows
	}
	ids := make([]int32, 0, n)
	for v := range int32(n) {
		known := d.Labels == nil && d.MultiLabels == nil && d.Targets == nil
		known = known || d.Labels != nil && d.Labels[v] >= 0 || d.Targets != nil && d.HasTarget(v)
		known = known || d.MultiLabels != nil && slices.ContainsFunc(d.MultiLabels.Row(int(v)), func(y int8) bool { return y >= 0 })
		if known {
			ids = append(ids, v)
		}
	}
	return ids
}
