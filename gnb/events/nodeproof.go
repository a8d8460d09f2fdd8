package events

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// nodeAuditor checks each step of a run about nodes by the arrays of the dataset, independently of the stream that models read: what is
// known, the answers, and the windows.
type nodeAuditor struct {
	*auditor
	r     *nodeRows
	own   nodeEvents
	given map[int32][]givenRow // the given answers about each node, by time; nil if they are made of the events
}

// givenRow is an answer that the data gives about a node.
type givenRow struct {
	time   int64
	answer float32
}

// nodeEvents are the times, ascending, and the values of the events of each node that count for it.
type nodeEvents struct {
	starts []int64 // [nodes + 1]
	times  []int64
	values []float32 // nil if only their number matters
}

// newNodeAuditor returns an auditor, which has checked that the events are in the order of time.
func newNodeAuditor(ds *dataset.Dataset, r *nodeRows, o *NodeOptions) (*nodeAuditor, error) {
	a, err := newAuditor(ds.Graph, ds.NodeTimes, r.stream)
	if err != nil {
		return nil, err
	}
	if r.given != nil {
		return newGivenAuditor(ds, a, r, o)
	}
	column := 0
	if o.Of != "" {
		if column, err = valueOf(ds, o.Of); err != nil {
			return nil, err
		}
	}
	return &nodeAuditor{auditor: a, r: r, own: eventsByNode(ds.Graph, a.at, o.Who, o.Of != "", column)}, nil
}

// newGivenAuditor returns an auditor of answers that the data gives, which reads them again.
func newGivenAuditor(ds *dataset.Dataset, a *auditor, r *nodeRows, o *NodeOptions) (*nodeAuditor, error) {
	q, err := ds.Questions()
	if err != nil {
		return nil, err
	}
	column := slices.IndexFunc(q.Columns, func(c dataset.QuestionColumn) bool { return c.Name == o.Of })
	of := map[int32][]givenRow{}
	for i, v := range q.Nodes {
		if y := q.Answers[i*len(q.Columns)+column]; y == y {
			of[v] = append(of[v], givenRow{q.Times[i], y})
		}
	}
	return &nodeAuditor{auditor: a, r: r, given: of}, nil
}

// checkGiven checks the answer to a question that the data gives, and the earlier answers that it is told.
func (a *nodeAuditor) checkGiven(v int32, t, asOf int64, target float32, earlier []float32) error {
	rows := a.given[v]
	if at := sort.Search(len(rows), func(i int) bool { return rows[i].time >= t }); at == len(rows) || rows[at].time != t || rows[at].answer != target {
		return leak("the answer to the question about node %d at time %d is %v, and the data gives another one, or none", v, t, target)
	}
	k, known := 0, sort.Search(len(rows), func(i int) bool { return rows[i].time >= asOf || temporal.Plus(rows[i].time, a.r.ask.Window) > asOf })
	for i := known - 1; i >= 0 && k < len(earlier); i-- {
		if rows[i].answer != earlier[k] {
			return leak("the question about node %d at time %d is told the earlier answer %v, and by time %d the answer of time %d is known, which is %v", v, t, earlier[k], asOf, rows[i].time, rows[i].answer)
		}
		k++
	}
	for ; k < len(earlier); k++ {
		if y := earlier[k]; y == y {
			return leak("the question about node %d at time %d is told %d earlier answers, and so many are not known by time %d", v, t, k+1, asOf)
		}
	}
	return nil
}

// eventsByNode lists the events at the given positions, in the order of time, by node.
func eventsByNode(g *graphops.Graph, at []int64, who string, valued bool, column int) (x nodeEvents) {
	src, dst, _ := g.EdgesAt(at)
	each := func(use func(i int, v int32)) {
		for i, u := range src {
			v := dst[i]
			switch {
			case who == temporal.AsSource:
				use(i, u)
			case who == temporal.AsDestination || u == v:
				use(i, v)
			default:
				use(i, u)
				use(i, v)
			}
		}
	}
	x.starts = make([]int64, g.NumNodes()+1)
	each(func(_ int, v int32) { x.starts[v+1]++ })
	for v := range g.NumNodes() {
		x.starts[v+1] += x.starts[v]
	}
	next := slices.Clone(x.starts)
	x.times = make([]int64, x.starts[g.NumNodes()])
	var row []float32
	if valued {
		x.values = make([]float32, len(x.times))
		if g.EdgeFeatures != nil {
			row = make([]float32, g.EdgeFeatures.Cols)
		}
	}
	each(func(i int, v int32) {
		x.times[next[v]] = g.EdgeTimes[at[i]]
		if valued {
			x.values[next[v]] = eventValue(g, column, at[i], row)
		}
		next[v]++
	})
	return x
}

// answer computes what is asked about a node over (from, to], how many events that are, and a bound of the rounding of another order of adding up.
func (x *nodeEvents) answer(what string, v int32, from, to int64) (y float64, n int, tolerance float64) {
	times := x.times[x.starts[v]:x.starts[v+1]]
	lo := sort.Search(len(times), func(i int) bool { return times[i] > from })
	hi := sort.Search(len(times), func(i int) bool { return times[i] > to })
	n = max(0, hi-lo)
	switch what {
	case temporal.AskCount:
		return float64(n), n, 0
	case temporal.AskAny:
		return float64(min(n, 1)), n, 0
	}
	size := 0.0
	for _, z := range x.values[x.starts[v]:][lo:max(lo, hi)] {
		y, size = y+float64(z), size+math.Abs(float64(z))
	}
	if what == temporal.AskMean {
		if n == 0 {
			return math.NaN(), 0, 0
		}
		y, size = y/float64(n), size/float64(n)
	}
	return y, n, 1e-6 * size
}

// check checks questions of a step before they are answered. known is the number of events that the state of the model says that it has taken
// in.
func (a *nodeAuditor) check(q *nodeQuestions, s nodeStep, split string, known int) error {
	if len(q.nodes) == 0 { // a share without questions
		return nil
	}
	shown, r := q.happened.Len(), a.r
	timeOf := func(event int) int64 { return a.g.EdgeTimes[a.at[event]] }
	switch {
	case shown > 0 && timeOf(shown-1) > q.asOf:
		return leak("event %d of time %d is known to questions about nodes at time %d", shown-1, timeOf(shown-1), q.asOf)
	case shown < len(a.at) && timeOf(shown) <= q.asOf:
		return fmt.Errorf("events: event %d of time %d is not known to questions about nodes at time %d; they must know all events until then", shown, timeOf(shown), q.asOf)
	case known > shown:
		return leak("the state of the model has taken in %d events before the questions at time %d, by which %d have happened", known, q.asOf, shown)
	case known < shown:
		return fmt.Errorf("events: the state of the model has taken in %d events before the questions at time %d; it must have all %d until then", known, q.asOf, shown)
	case q.first < s.lo || q.first+len(q.nodes) > s.hi:
		return leak("the questions %d to %d are asked in the step of the questions %d to %d", q.first, q.first+len(q.nodes)-1, s.lo, s.hi-1)
	}
	from, to := int64(math.MinInt64), timeOf(len(a.at)-1)
	switch split {
	case "train":
		to = min(to, r.until[0])
	case "val":
		from, to = r.until[0], min(to, r.until[1])
	default:
		from = r.until[1]
	}
	for i, v := range q.nodes {
		t, earlier := q.times[i], q.earlier[i*pastWindows:(i+1)*pastWindows]
		end := temporal.Plus(t, r.ask.Window)
		switch {
		case t < q.asOf || t > temporal.Plus(q.asOf, r.together):
			return leak("a question about node %d is of time %d in a step at time %d", v, t, q.asOf)
		case !inSplit(t, r.ask.Window, from, to):
			return leak("the window of a question of %s about node %d is (%d, %d], and the time of %[1]s ends at %[5]d and begins at %[6]d, so that its answer is known to another split", split, v, t, end, to, from)
		}
		check := a.checkMade
		if a.given != nil {
			check = a.checkGiven
		}
		if err := check(v, t, q.asOf, q.targets[i], earlier); err != nil {
			return err
		}
	}
	return nil
}

// checkMade checks the answer to a question that is made of the events, and what it is told of earlier windows.
func (a *nodeAuditor) checkMade(v int32, t, asOf int64, target float32, earlier []float32) error {
	ask, end := &a.r.ask, temporal.Plus(t, a.r.ask.Window)
	y, n, tolerance := a.own.answer(ask.What, v, t, end)
	times := a.own.times[a.own.starts[v]:a.own.starts[v+1]]
	switch {
	case len(times) == 0 || times[0] > t:
		return leak("node %d is asked about at time %d, and has had no event by then", v, t)
	case !(math.Abs(float64(target)-y) <= tolerance+1e-6*math.Abs(y)):
		return leak("the answer to the question about node %d at time %d is %v, and in the dataset the window (%[2]d, %[4]d] has %[5]d of its events, with the answer %[6]v", v, t, target, end, n, y)
	}
	before := asOf
	for _, z := range earlier {
		end := before
		before = temporal.Plus(end, -ask.Window)
		if z != z {
			continue
		}
		y, _, tolerance := a.own.answer(ask.What, v, before, end)
		if !(math.Abs(float64(z)-y) <= tolerance+1e-6*math.Abs(y)) {
			return leak("the question about node %d at time %d is told that its window until %d held %v, and in the dataset that is %v", v, t, end, z, y)
		}
	}
	return nil
}
