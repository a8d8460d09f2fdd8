package events

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops"
)

// ErrLeak is wrapped by the errors of runs in which an answer could rest on what had not happened yet.
var ErrLeak = errors.New("an answer would rest on the future")

// auditor checks each step of a run by the arrays of the dataset, independently of the stream that models read.
type auditor struct {
	g  *graphops.Graph
	at []int64 // [events]: their edges
	s  *stream
	// nodes are the times of the nodes; nil if they have none.
	nodes []int64
	// Proof is what has been checked.
	Proof

	// ends are the destinations by source and time of the events [from, to), which all have the times of the last questions.
	ends     map[sourceAt][]int32
	from, to int
}

// Proof is what a run has checked of its own steps; each field is a count. [Train] ends with [ErrLeak] at the first violation.
type Proof struct {
	// Steps and Questions are those of training, and the events of these steps.
	Steps, Questions int64
	// SameTime are the questions whose event has the time of an earlier one that was known: the order of the data is then all that tells them apart.
	SameTime int64
}

func leak(format string, args ...any) error {
	return fmt.Errorf("events: %w: %s", ErrLeak, fmt.Sprintf(format, args...))
}

// newAuditor returns an auditor of a stream, whose order it checks by the graph's arrays, and of nodes with these times, if they have some.
func newAuditor(g *graphops.Graph, nodes []int64, s *stream) (*auditor, error) {
	a := &auditor{g: g, at: s.Edge, s: s, nodes: nodes}
	seen := slices.Clone(a.at)
	slices.Sort(seen)
	for i, e := range seen {
		if e < 0 || e >= g.NumEdges() {
			return nil, leak("an event is edge %d, and the graph's edges are 0 to %d", e, g.NumEdges()-1)
		}
		if i > 0 && seen[i-1] == e {
			return nil, leak("edge %d is several events, so that an event would be known before it is asked about; give each event an edge of its own", e)
		}
	}
	for i := 1; i < len(a.at); i++ {
		if was, is := g.EdgeTimes[a.at[i-1]], g.EdgeTimes[a.at[i]]; was > is {
			return nil, leak("event %d has time %d and is followed by one of time %d; the events must be in the order of their times", i-1, was, is)
		}
	}
	for _, cut := range []int{s.Train, s.Val} {
		if cut == len(a.at) {
			break
		}
		if was, is := g.EdgeTimes[a.at[cut-1]], g.EdgeTimes[a.at[cut]]; was >= is {
			return nil, leak("the splits meet at event %d within the time %d; a split must end before the next one's first time", cut, is)
		}
	}
	return a, nil
}

// check checks questions about events of a step, before they are answered. known is the number of events that the state of the model
// says that it has taken in.
func (a *auditor) check(q *questions, events []int32, known int) error {
	shown := q.happened.Len()
	if len(events) == 0 { // a share without questions
		return nil
	}
	begin, end := a.s.stepOf(int(events[0]))
	first, last := int(events[0]), int(events[len(events)-1])
	switch {
	case shown > begin:
		return leak("the questions about the events %d to %d see %d events, so that events of one step see each other", begin, end-1, shown)
	case known > begin:
		return leak("the state of the model has taken in %d events before the questions about event %d were answered", known, first)
	case known < begin:
		return fmt.Errorf("events: the state of the model has taken in %d events before the questions about event %d; it must have all %d before the step", known, first, begin)
	case last >= end:
		return leak("event %d is asked about in the step of the events %d to %d", last, begin, end-1)
	}
	edges := make([]int64, len(events))
	for i, e := range events {
		edges[i] = a.at[e]
	}
	src, dst, _ := a.g.EdgesAt(edges)
	var positives map[sourceAt][]int32
	for i, u := range q.src {
		e, cands := int(events[i]), q.cands[q.starts[i]:q.starts[i+1]]
		t := a.g.EdgeTimes[a.at[e]]
		switch {
		case src[i] != u || dst[i] != cands[0] || t != q.times[i]:
			return leak("the question about event %d is of %d → %d at time %d, and in the dataset that event is %d → %d at time %d", e, u, cands[0], q.times[i], src[i], dst[i], t)
		case q.now > t:
			return leak("the question about event %d of time %d is asked as of time %d", e, t, q.now)
		case shown > 0 && a.g.EdgeTimes[a.at[shown-1]] > t:
			return leak("event %d of time %d is known to a question of time %d", shown-1, a.g.EdgeTimes[a.at[shown-1]], t)
		case positives == nil:
			positives = a.positives(first, last+1)
		}
		for _, v := range cands[1:] {
			if from := a.nodes; from != nil && from[v] > t {
				return leak("%d is a negative of event %d of time %d, and exists from time %d on only", v, e, t, from[v])
			}
			if _, bad := slices.BinarySearch(positives[sourceAt{u, t}], v); bad {
				return leak("%d is a negative of event %d, although %d → %[1]d happens at its time %d", v, e, u, t)
			}
		}
	}
	return nil
}

// sourceAt is a source at a time.
type sourceAt struct {
	node int32
	time int64
}

// positives returns the destinations of all events at the times of the events [lo, hi), ascending, by source and time.
func (a *auditor) positives(lo, hi int) map[sourceAt][]int32 {
	first, last := a.g.EdgeTimes[a.at[lo]], a.g.EdgeTimes[a.at[hi-1]]
	from := sort.Search(len(a.at), func(i int) bool { return a.g.EdgeTimes[a.at[i]] >= first })
	to := sort.Search(len(a.at), func(i int) bool { return a.g.EdgeTimes[a.at[i]] > last })
	if a.ends != nil && from == a.from && to == a.to {
		return a.ends
	}
	src, dst, _ := a.g.EdgesAt(a.at[from:to])
	all := map[sourceAt][]int32{}
	for i, u := range src {
		k := sourceAt{u, a.g.EdgeTimes[a.at[from+i]]}
		all[k] = append(all[k], dst[i])
	}
	for _, ends := range all {
		slices.Sort(ends)
	}
	a.ends, a.from, a.to = all, from, to
	return all
}

// count counts a step of training, equally on all ranks.
func (a *auditor) count(begin, end int) {
	a.Steps++
	a.Questions += int64(end - begin)
	a.SameTime += int64(a.s.sameTimeOf(begin, end))
}

// sameTimeOf counts the events of the step [begin, end) that have the time of an event before it.
func (s *stream) sameTimeOf(begin, end int) int {
	e := begin
	for ; e < end && begin > 0 && s.Time[e] == s.Time[begin-1]; e++ {
	}
	return e - begin
}

// sameTime counts the events of a split that have the time of an event of an earlier step.
func (s *stream) sameTime(split string) (n int) {
	lo, hi := s.part(split)
	for begin, end := s.stepOf(lo); begin < hi; begin, end = s.stepOf(end) {
		n += s.sameTimeOf(begin, end)
	}
	return n
}
