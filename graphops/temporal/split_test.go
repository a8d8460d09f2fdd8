package temporal_test

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops/temporal"
)

// The quantiles are those of numpy.quantile, and the parts those of py-tgb's generate_splits, which compares times with them as
// floating-point numbers: computed with NumPy 2.4.6.
func TestSplitTimes(t *testing.T) {
	for name, c := range map[string]struct {
		times             []int64
		o                 temporal.SplitOptions
		train, val        int
		valFrom, testFrom float64
	}{
		"ten":         {[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, temporal.SplitOptions{}, 7, 8, 7.3, 8.65},
		"ties":        {[]int64{1, 1, 1, 1, 5, 5, 5, 8, 8, 9, 9, 9}, temporal.SplitOptions{}, 9, 12, 8, 9},
		"negative":    {[]int64{-100, -50, -20, -3, 0, 7, 30, 31}, temporal.SplitOptions{Val: 0.25, Test: 0.25}, 4, 6, -1.5, 12.75},
		"nanoseconds": {[]int64{1700000000000000000, 1700000000000000001, 1700000000000001000, 1700000000000002000, 1700000000000003000}, temporal.SplitOptions{Val: 0.25, Test: 0.25}, 3, 4, 1700000000000001000, 1700000000000002000},
	} {
		s, err := temporal.SplitTimes(c.times, c.o)
		if name == "ties" { // 0.85 · 11 = 9.35: between two events at 9
			if err == nil || !strings.Contains(err.Error(), "no event is in the test") {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Train != c.train || s.Val != c.val || s.Test != len(c.times) || abs(s.ValFrom-c.valFrom) > 1e-9 || abs(s.TestFrom-c.testFrom) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", name, s, c)
		}
	}
	s, err := temporal.SplitTimes([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, temporal.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parts := ""
	for e := range 10 {
		parts += s.Part(e)[:1]
	}
	if from, to, err := s.Range("val"); parts != "tttttttvtt" || from != 7 || to != 8 || err != nil {
		t.Errorf("the parts are %s, val is %d to %d, %v", parts, from, to, err)
	}
	if _, _, err := s.Range("valid"); err == nil || err.Error() != `temporal: there is no part "valid" of the events; they are train, val and test` {
		t.Error(err)
	}
}

func abs(x float64) float64 { return max(x, -x) }

// A split without events in a part, or with shares that are none, is an error.
func TestWrongSplits(t *testing.T) {
	for name, c := range map[string]struct {
		times []int64
		o     temporal.SplitOptions
		want  string
	}{
		"none":       {nil, temporal.SplitOptions{}, "there are no events to divide by time"},
		"one time":   {[]int64{5, 5, 5, 5}, temporal.SplitOptions{}, "no event is in the validation: none of 4 is after the time 5 and at most at 5"},
		"one event":  {[]int64{1_700_000_000}, temporal.SplitOptions{}, "no event is in the validation: none of 1 is after the time 1700000000 and"},
		"all train":  {[]int64{1, 2}, temporal.SplitOptions{Val: 0.5, Test: 0.5}, "both are above 0, and their sum is below 1"},
		"only test":  {[]int64{1, 2}, temporal.SplitOptions{Test: 0.5}, "both are above 0"},
		"not a part": {[]int64{1, 2}, temporal.SplitOptions{Val: -1, Test: 0.5}, "both are above 0"},
	} {
		if _, err := temporal.SplitTimes(c.times, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
