package events

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// stream is the events of a dataset, cut into splits and steps.
type stream struct {
	*temporal.Events
	steps
	cols  int     // of the events' features
	unit  string  // of times since 1970; "" if they are none
	until []int64 // the last times of training and of validation
	// window is Options.Window in the unit of times; 0 if there is none.
	window int64
}

// newStream returns the events of a dataset, cut as options say.
func newStream(ds *dataset.Dataset, o *Options) (*stream, error) {
	e, err := temporal.Of(ds)
	if err != nil {
		return nil, err
	}
	s := &stream{Events: e, steps: steps{batch: o.Batch}, unit: ds.Meta.TimeUnit}
	if e.Features != nil {
		s.cols = e.Features.Cols
	}
	if o.Window != "" {
		if s.window, err = temporal.ParseSpan(o.Window, s.unit); err != nil {
			return nil, fmt.Errorf("events: Window (--window): %w", phrase.Bare(err))
		}
	}
	s.until = o.Until
	if s.until == nil {
		cut, err := temporal.SplitTimes(e.Time, temporal.SplitOptions{})
		if err != nil {
			return nil, fmt.Errorf("events: %s: %w; or give the last times of training and validation (Until, --until)", ds.Name(), phrase.Bare(err))
		}
		s.until = []int64{e.Time[cut.Train-1], e.Time[cut.Val-1]}
	}
	s.Split = temporal.Split{Train: e.Until(s.until[0]), Val: e.Until(s.until[1]), Test: e.Len()}
	if s.Train == 0 {
		return nil, fmt.Errorf("events: %s has %d events, and none of them is for training, which has those up to time %d; give other data, or other times (Until, --until)", ds.Name(), e.Len(), s.until[0])
	}
	return s, nil
}

// gap is the mean time between two successive events of a node in training: the unit in which models take spans of time.
func (s *stream) gap() float64 {
	known, sum, n := s.Head(s.Train), 0.0, 0
	for v := range int32(s.Nodes) {
		own := known.EventsOf(v)
		for i := 1; i < len(own); i++ {
			sum += float64(s.Time[own[i]] - s.Time[own[i-1]])
			n++
		}
	}
	if n == 0 || sum == 0 {
		return 1
	}
	return sum / float64(n)
}

// steps says how the events of a stream are cut into splits, and those into steps.
type steps struct {
	temporal.Split
	batch int
}

// part returns the events [lo, hi) of a split: train, val or test.
func (s steps) part(split string) (lo, hi int) {
	lo, hi, _ = s.Range(split)
	return lo, hi
}

// stepOf returns the events [lo, hi) of the step that an event is in. Steps do not cross splits.
func (s steps) stepOf(event int) (lo, hi int) {
	for _, split := range []string{"train", "val", "test"} {
		if first, end := s.part(split); event < end {
			lo = event - (event-first)%s.batch
			return lo, min(lo+s.batch, end)
		}
	}
	return s.Test, s.Test
}

// questions ask for the destinations of some events of a step. All that an answer may rest on is in them, and in what has happened.
type questions struct {
	happened *temporal.Events // the events before the step
	now      int64            // the time of the step's first event: what is older is as old at it
	src      []int32          // [questions]: the source of each
	times    []int64          // [questions]: its time
	starts   []int32          // [questions+1]: its candidates in cands
	cands    []int32
	names    []int32 // [cands] of training, nil else: tell the candidates apart in the draws of dropout
}

// ask appends a question about an event, whose own destination is the first candidate, and the negatives are the others.
func (q *questions) ask(s *stream, event int32, negatives []int32) {
	q.src, q.times = append(q.src, s.Src[event]), append(q.times, s.Time[event])
	q.cands = append(append(q.cands, s.Dst[event]), negatives...)
	q.starts = append(q.starts, int32(len(q.cands)))
}

// before returns no questions yet, about a step that begins with event at.
func (s *stream) before(at int) *questions {
	return &questions{happened: s.Head(at), now: s.Time[at], starts: []int32{0}}
}

// numbered gives distinct nodes rows, in the order in which they come.
type numbered struct {
	ids []int32
	row map[int32]int32
}

// add returns the row of a node.
func (n *numbered) add(v int32) int32 {
	if n.row == nil {
		n.row = map[int32]int32{}
	}
	r, ok := n.row[v]
	if !ok {
		r = int32(len(n.ids))
		n.ids, n.row[v] = append(n.ids, v), r
	}
	return r
}
