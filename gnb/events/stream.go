package events

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// stream is the events of a dataset, cut into splits and steps.
type stream struct {
	*temporal.Events
	// train and val are the numbers of the first event of validation and of test.
	train, val int
	batch      int
	// targets are the nodes that are destinations of some event, ascending: the candidates of negatives.
	targets []int32
	cols    int // of the events' features
}

// newStream returns the events of a dataset with steps of batch events.
func newStream(ds *dataset.Dataset, batch int) (*stream, error) {
	e, err := temporal.Of(ds)
	if err != nil {
		return nil, err
	}
	s := &stream{Events: e, batch: batch}
	if e.Features != nil {
		s.cols = e.Features.Cols
	}
	if e.Len() > 0 {
		s.train, s.val = e.Until(quantile(e.Time, 0.70)), e.Until(quantile(e.Time, 0.85))
	}
	if s.train == 0 || s.val == s.train || s.val == e.Len() {
		return nil, fmt.Errorf("events: %s has %d events, of which %d are up to the 0.70 quantile of time, %d up to the 0.85 quantile and %d later; each split needs some, so give events at more than a few times", ds.Name(), e.Len(), s.train, s.val-s.train, e.Len()-s.val)
	}
	s.targets = slices.Clone(e.Dst)
	slices.Sort(s.targets)
	s.targets = slices.Compact(s.targets)
	if len(s.targets) < 2 {
		return nil, fmt.Errorf("events: all events of %s have the same destination, so there is nothing to predict", ds.Name())
	}
	return s, nil
}

// quantile returns the largest whole number up to the quantile q of ascending times, linear between two of them as NumPy's.
func quantile(times []int64, q float64) int64 {
	at := q * float64(len(times)-1)
	lo := int(at)
	hi := min(lo+1, len(times)-1)
	return times[lo] + int64(math.Floor((at-float64(lo))*float64(times[hi]-times[lo])))
}

// part returns the events [lo, hi) of a split.
func (s *stream) part(split string) (lo, hi int) {
	switch split {
	case "train":
		return 0, s.train
	case "val":
		return s.train, s.val
	}
	return s.val, s.Len()
}

// stepOf returns the events [lo, hi) of the step that an event is in. Steps do not cross splits.
func (s *stream) stepOf(event int) (lo, hi int) {
	for _, split := range []string{"train", "val", "test"} {
		if first, end := s.part(split); event < end {
			lo = event - (event-first)%s.batch
			return lo, min(lo+s.batch, end)
		}
	}
	return s.Len(), s.Len()
}

// seen is the last event of a node before a step, and what the step before that event knew.
type seen struct {
	event int32 // -1: none
	// span is the time from the node's last event before the step of event, or from the beginning of the stream, to event.
	span int64
}

// last returns the last event of a node before a step that begins with event at.
func (s *stream) last(node int32, at int) seen {
	own := s.Before(node, at, 1)
	if len(own) == 0 {
		return seen{event: -1}
	}
	e := own[0]
	lo, _ := s.stepOf(int(e))
	before := s.Time[0]
	if earlier := s.Before(node, lo, 1); len(earlier) > 0 {
		before = s.Time[earlier[0]]
	}
	return seen{e, s.Time[e] - before}
}

// gap is the mean time between two successive events of a node in training: the unit in which models take spans of time.
func (s *stream) gap() float64 {
	sum, n := 0.0, 0
	for v := range int32(s.Nodes) {
		own := s.Before(v, s.train, -1)
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

// among returns the position of a node among ascending ids, and whether it is there.
func among(ids []int32, v int32) (int, bool) {
	i := sort.Search(len(ids), func(i int) bool { return ids[i] >= v })
	return i, i < len(ids) && ids[i] == v
}

// questions are some events of a step, each with candidates for its destination.
type questions struct {
	at     int     // the first event of the step: the events before it are known
	events []int32 // those that are asked about
	starts []int32 // [events+1]: the candidates of each in cands
	cands  []int32 // of each event first its own destination
}

// ask appends an event with negatives.
func (q *questions) ask(s *stream, event int32, negatives []int32) {
	if len(q.starts) == 0 {
		q.starts = []int32{0}
	}
	q.events = append(q.events, event)
	q.cands = append(append(q.cands, s.Dst[event]), negatives...)
	q.starts = append(q.starts, int32(len(q.cands)))
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
