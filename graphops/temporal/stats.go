package temporal

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Stats describe a stream of events and its split by time.
type Stats struct {
	Events int `json:"events"`
	// First and Last are the times of the first and the last event, and Unit is their unit since 1970, "" if they are plain numbers.
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Unit  string `json:"unit,omitempty"`
	// Times is the number of different times, Pairs that of different pairs of a source and a destination, and Repeated that of events whose pair has
	// an earlier event.
	Times    int `json:"times"`
	Pairs    int `json:"pairs"`
	Repeated int `json:"repeated"`
	// NoSplit is why there is no split by time; then the fields below are 0.
	NoSplit string `json:"no_split,omitempty"`
	// Train, Val and Test are the numbers of events of each part.
	Train int `json:"train"`
	Val   int `json:"val"`
	Test  int `json:"test"`
	// TestPairs is the number of different pairs in the test, and NewPairs that of those that training does not have.
	TestPairs int `json:"test_pairs"`
	NewPairs  int `json:"new_test_pairs"`
	// TestNodes is the number of nodes in the test, and NewNodes that of those that training does not have.
	TestNodes int `json:"test_nodes"`
	NewNodes  int `json:"new_test_nodes"`
}

// StatsOf counts what events repeat, and what of the test is new ([SplitTimes] with the zero options). Cost: a pass, and a map of the
// pairs.
func StatsOf(e *Events) Stats {
	s := Stats{Events: e.Len()}
	if e.Len() == 0 {
		s.NoSplit = "there are no events"
		return s
	}
	s.First, s.Last = e.Time[0], e.Time[e.Len()-1]
	split, err := SplitTimes(e.Time, SplitOptions{})
	if err != nil {
		s.NoSplit = phrase.Bare(err).Error()
		split = Split{Train: e.Len(), Val: e.Len(), Test: e.Len()}
	} else {
		s.Train, s.Val, s.Test = split.Train, split.Val-split.Train, split.Test-split.Val
	}
	// Which of training and test have each pair and each node; known marks a pair of validation alone, too.
	const training, test, known = 1, 2, 4
	pairs, nodes := map[[2]int32]uint8{}, make([]uint8, e.Nodes)
	for i, u := range e.Src {
		v, state := e.Dst[i], uint8(known)
		switch {
		case i < split.Train:
			state |= training
		case i >= split.Val:
			state |= test
		}
		if i == 0 || e.Time[i] != e.Time[i-1] {
			s.Times++
		}
		pair := [2]int32{u, v}
		if pairs[pair] == 0 {
			s.Pairs++
		} else {
			s.Repeated++
		}
		pairs[pair] |= state
		nodes[u] |= state
		nodes[v] |= state
	}
	count := func(state uint8, all, fresh *int) {
		if state&test != 0 {
			*all++
			if state&training == 0 {
				*fresh++
			}
		}
	}
	for _, state := range pairs {
		count(state, &s.TestPairs, &s.NewPairs)
	}
	for _, state := range nodes {
		count(state, &s.TestNodes, &s.NewNodes)
	}
	return s
}

// Surprise is the share of the test's pairs that training does not have (the surprise index of Poursafaei et al., 2022,
// https://arxiv.org/abs/2207.10128): what EdgeBank cannot know. 0 without a test.
func (s Stats) Surprise() float64 {
	if s.TestPairs == 0 {
		return 0
	}
	return float64(s.NewPairs) / float64(s.TestPairs)
}

// String describes the events in lines.
func (s Stats) String() string {
	var t strings.Builder
	fmt.Fprintf(&t, "events: %d", s.Events)
	if s.Events == 0 {
		return t.String()
	}
	fmt.Fprintf(&t, " from %s to %s, at %s; %s, and %s of a pair that had one before (%.1f %%)", Moment(s.First, s.Unit), Moment(s.Last, s.Unit), phrase.Count(s.Times, "time"), phrase.Count(s.Pairs, "pair"), phrase.Count(s.Repeated, "event"), 100*float64(s.Repeated)/float64(s.Events))
	if s.NoSplit != "" {
		return t.String() + "\nevents by time: no split, because " + s.NoSplit
	}
	fmt.Fprintf(&t, "\nevents by time: train %d, val %d, test %d; not in training are %d of %d pairs of the test (surprise %.3f) and %d of its %s", s.Train, s.Val, s.Test, s.NewPairs, s.TestPairs, s.Surprise(), s.NewNodes, phrase.Count(s.TestNodes, "node"))
	return t.String()
}

// Moment writes a time in the unit of a dataset's times ([dataset.Metadata].TimeUnit): as a moment in UTC, or as a plain number.
func Moment(t int64, unit string) string { return written(t, unit, time.RFC3339Nano) }

// Stretch writes the time from one moment to another in the unit of a dataset's times: by days or, within a day, by its minutes, or as plain
// numbers.
func Stretch(from, to int64, unit string) string {
	first, last := written(from, unit, time.DateOnly), written(to, unit, time.DateOnly)
	if unit != "" && first == last {
		first, last = written(from, unit, "2006-01-02 15:04"), written(to, unit, "15:04")
		if strings.HasSuffix(first, " "+last) {
			return first
		}
	}
	if first == last {
		return first
	}
	return first + " to " + last
}

func written(t int64, unit, layout string) string {
	var at time.Time
	switch unit {
	case dataset.Seconds:
		at = time.Unix(t, 0)
	case dataset.Milliseconds:
		at = time.UnixMilli(t)
	case dataset.Microseconds:
		at = time.UnixMicro(t)
	case dataset.Nanoseconds:
		at = time.Unix(0, t)
	default:
		return fmt.Sprint(t)
	}
	return at.UTC().Format(layout)
}
