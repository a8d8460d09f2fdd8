package numbers_test

import (
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

// The scale is that of the known targets of the training rows alone, with the bounds of numpy.quantile; predictions are its
// inverse, and within the bounds.
func TestScaleByHand(t *testing.T) {
	y := &dataset.Matrix{Rows: 5, Cols: 2, F32: []float32{1, 10, 3, nan, 5, 30, 100, 20, 7, 40}}
	o := numbers.LossOptions{Bounded: true, Loss: "quantile", Quantiles: []float64{0.2, 0.45, 0.9}}
	if err := o.Complete(y, []string{"a", "b"}, []int32{0, 1, 2, 4}, "node"); err != nil {
		t.Fatal(err)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	// a: 1, 3, 5, 7, whose quantiles 0.02 and 0.98 are 1 + 0.06·2 and 7 - 0.06·2; b: 10, 30, 40.
	if s := o.Scale; !near(s.Mean[0], 4) || !near(s.Deviation[0], math.Sqrt(5)) || !near(s.Low[0], 1.12) || !near(s.High[0], 6.88) ||
		!near(s.Mean[1], 80./3) || !near(s.Deviation[1], math.Sqrt(1400./9)) || !near(s.Low[1], 10.8) || !near(s.High[1], 39.6) {
		t.Errorf("the scale is %+v", s)
	}
	if o.Targets() != 2 || o.Columns(2) != 6 {
		t.Errorf("%d targets in %d columns", o.Targets(), o.Columns(2))
	}
	row := []float32{-9, 0, 9, 0, 0.5, 1}
	o.Undo(row, row)
	if want := []float32{1.12, 4, 6.88}; !slices.Equal(row[:3], want) || math.Abs(float64(row[4])-(80./3+math.Sqrt(1400./9)/2)) > 1e-4 {
		t.Errorf("the predictions are %v", row)
	}
	middle := make([]float32, 2)
	o.Middle(middle, row)
	if middle[0] != 4 || middle[1] != row[4] { // 0.45 is next to the median
		t.Errorf("the middle ones are %v", middle)
	}
}

// The loss is that of standardised targets: the same for targets in another unit.
func TestLossHasNoUnit(t *testing.T) {
	for _, loss := range []string{"squared", "absolute", "huber"} {
		var sums [2]float32
		for i, unit := range []float32{1, 1000} {
			y := &dataset.Matrix{Rows: 4, Cols: 1, F32: []float32{1 * unit, 2 * unit, 4 * unit, 9 * unit}}
			o := numbers.LossOptions{Loss: loss}
			if err := o.Complete(y, nil, []int32{0, 1, 2, 3}, "node"); err != nil {
				t.Fatal(err)
			}
			f := nn.NewFwd(nn.Config{})
			l := o.LossOf(f.Input(4, 1, []float32{0, 1, -1, 2}, nil), y.F32)
			sums[i] = l.Sum.Data()[0]
		}
		if math.Abs(float64(sums[0]-sums[1])) > 1e-5 || sums[0] <= 0 {
			t.Errorf("%s: the losses are %v", loss, sums)
		}
	}
}

// What another rank has counted combines to the bits of one tally, and damage is an error.
func TestTalliesMerge(t *testing.T) {
	y := &dataset.Matrix{Rows: 100, Cols: 2}
	for i := range 200 {
		y.F32 = append(y.F32, float32(math.Sin(float64(i)))*100)
	}
	o := numbers.LossOptions{Loss: "quantile", Quantiles: []float64{0.1, 0.9}}
	if err := o.Complete(y, nil, []int32{0, 1, 2, 3, 4, 5}, "node"); err != nil {
		t.Fatal(err)
	}
	tally := func() *numbers.Tally {
		one, err := o.NewTally("rmse")
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	whole, parts := tally(), []*numbers.Tally{tally(), tally(), tally()}
	for i := range 100 {
		row := []float32{-1, float32(i) / 50, -0.5, float32(i%7) / 7}
		whole.Add(row, y.Row(i))
		parts[i%3].Add(row, y.Row(i))
	}
	joined := tally()
	for _, p := range parts {
		if err := joined.Merge(p.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	a, b := joined.Values("val", []string{"x", "y z"}), whole.Values("val", []string{"x", "y z"})
	if !slices.Equal(a, b) || len(a) != 7 || a[6].Name != "val_rmse_y_z" {
		t.Errorf("three ranks have %v, one %v", a, b)
	}
	raw := whole.Encode()
	for _, n := range []int{0, 15, 19, len(raw) - 1} {
		if tally().Merge(raw[:n]) == nil {
			t.Errorf("%d of %d bytes are taken", n, len(raw))
		}
	}
}
