package temporal

import (
	"math"
	"sort"
	"strconv"

	"github.com/graphnb/graphnb/internal/phrase"
)

// Split divides events by time into three parts in order: [0, Train) are the events of training, [Train, Val) those of validation,
// and [Val, events) those of the test.
type Split struct {
	Train, Val, Test int // ends of the parts; Test is the number of events
	// ValFrom and TestFrom are the times after which validation and test begin: an event of training is at ValFrom at the latest.
	ValFrom, TestFrom float64
}

// SplitOptions say how [SplitTimes] divides events. The zero value takes 15 % of the events for validation and 15 % for the test, as
// TGB does.
type SplitOptions struct {
	// Val and Test are shares from 0 to 1; both 0 means 0.15 each.
	Val, Test float64
}

// SplitTimes divides events with these ascending times as the Temporal Graph Benchmark does (Huang et al., 2023,
// https://arxiv.org/abs/2307.01026): an event is of training if its time is at most the quantile 1 − Val − Test of all times, of
// validation if it is at most the quantile 1 − Test, and otherwise of the test. Events of one time are never divided.
//
// It returns an error for shares that are none, and if a part is without events.
func SplitTimes(times []int64, o SplitOptions) (Split, error) {
	if o.Val == 0 && o.Test == 0 {
		o.Val, o.Test = 0.15, 0.15
	}
	if !(o.Val > 0 && o.Test > 0 && o.Val+o.Test < 1) {
		return Split{}, phrase.Errorf("temporal", "the split takes %v of the events for validation and %v for the test; both are above 0, and their sum is below 1", o.Val, o.Test)
	}
	if len(times) == 0 {
		return Split{}, phrase.Errorf("temporal", "there are no events to divide by time")
	}
	s := Split{Test: len(times), ValFrom: Quantile(times, 1-o.Val-o.Test), TestFrom: Quantile(times, 1-o.Test)}
	until := func(t float64) int { // NumPy compares whole numbers with a quantile as float64
		return sort.Search(len(times), func(i int) bool { return float64(times[i]) > t })
	}
	s.Train, s.Val = until(s.ValFrom), until(s.TestFrom)
	switch {
	case s.Train == s.Val:
		return s, phrase.Errorf("temporal", "no event is in the validation: none of %d is after the time %s and at most at %s, because too many have one time; take another share, or more events", len(times), plain(s.ValFrom), plain(s.TestFrom))
	case s.Val == s.Test:
		return s, phrase.Errorf("temporal", "no event is in the test: none of %d is after the time %s, because too many have one time; take another share, or more events", len(times), plain(s.TestFrom))
	}
	return s, nil
}

// plain writes a number without an exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// Quantile returns the q-quantile of ascending times, from 0 to 1, by linear interpolation as numpy.quantile computes it.
// There is at least one time.
func Quantile(times []int64, q float64) float64 {
	at := float64(len(times)-1) * q
	i := int(math.Floor(at))
	if i+1 >= len(times) {
		return float64(times[len(times)-1])
	}
	part := at - float64(i)
	a, b := times[i], times[i+1]
	if part >= 0.5 {
		return float64(b) - float64(b-a)*(1-part)
	}
	return float64(a) + float64(b-a)*part
}

// Part returns the name of the part of an event: train, val or test.
func (s Split) Part(event int) string {
	switch {
	case event < s.Train:
		return "train"
	case event < s.Val:
		return "val"
	}
	return "test"
}

// Range returns the first event of a part, train, val or test, and the one after its last.
func (s Split) Range(part string) (from, to int, err error) {
	switch part {
	case "train":
		return 0, s.Train, nil
	case "val":
		return s.Train, s.Val, nil
	case "test":
		return s.Val, s.Test, nil
	}
	return 0, 0, phrase.Errorf("temporal", "there is no part %q of the events; they are train, val and test", part)
}
