package temporal

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/internal/parallel"
	"github.com/graphnb/graphnb/internal/phrase"
)

// What is asked about the events of a node in a window: see [Ask].
const (
	AskCount = "count" // their number
	AskAny   = "any"   // 1 if there are some, else 0
	AskSum   = "sum"   // the sum of their values, 0 if there are none
	AskMean  = "mean"  // the mean of their values; unknown if there are none
)

// The events of a node that are asked about.
const (
	AsSource      = "sources"      // those whose source it is
	AsDestination = "destinations" // those whose destination it is
	AsEither      = "all"          // both; an event between a node and itself is one
)

// Ask is a question that is asked about nodes at moments: what happens to a node in the window (t, t + Window]. A node is asked about
// from its first event on, since it is not known before.
type Ask struct {
	// What is AskCount, AskAny, AskSum or AskMean.
	What string
	// Who is AsSource, AsDestination or AsEither: a node's events of this kind are meant, and a node without one by a moment is not asked
	// about.
	Who string
	// Window is the length of the window.
	Window int64
	// Every is the time between two moments, which are the multiples of Every.
	Every int64
	// Active, unless 0, asks only about nodes with an event in (t - Active, t].
	Active int64
	// Values [events] are what is added up for AskSum and AskMean.
	Values []float32
}

// Questions are about nodes at moments, in the order of time, and at one moment in the order of nodes.
type Questions struct {
	Nodes []int32
	Times []int64
	// Targets [questions] are the answers; NaN is an unknown one.
	Targets []float32
}

// maxMoments and MaxQuestions bound what [Ask.Questions] makes.
const (
	maxMoments   = 10_000_000
	MaxQuestions = 100_000_000
)

// own reports whether an event counts for a node.
func (a *Ask) own(e *Events, event, node int32) bool {
	switch a.Who {
	case AsSource:
		return e.Src[event] == node
	case AsDestination:
		return e.Dst[event] == node
	}
	return true
}

// Over returns the answer for a node over the window (from, to] by the events of e; NaN if it is unknown. Sums are of float64, in the order of
// the events. Cost: a binary search in the node's events, and those of the window.
func (a *Ask) Over(e *Events, node int32, from, to int64) float32 {
	all := e.EventsOf(node)
	lo := sort.Search(len(all), func(i int) bool { return e.Time[all[i]] > from })
	n, sum := 0, 0.0
	for _, event := range all[lo:] {
		if e.Time[event] > to {
			break
		}
		if !a.own(e, event, node) {
			continue
		}
		if n++; a.Values != nil {
			sum += float64(a.Values[event])
		}
	}
	switch {
	case a.What == AskAny:
		return float32(min(n, 1))
	case a.What == AskSum:
		return float32(sum)
	case a.What == AskMean && n == 0:
		return float32(math.NaN())
	case a.What == AskMean:
		return float32(sum / float64(n))
	}
	return float32(n)
}

// Since returns the time of a node's first event by e; ok is false if it has none.
func (a *Ask) Since(e *Events, node int32) (first int64, ok bool) {
	for _, event := range e.EventsOf(node) {
		if a.own(e, event, node) {
			return e.Time[event], true
		}
	}
	return 0, false
}

// About returns the nodes that are asked about at a moment, ascending, by events of which none is later.
func (a *Ask) About(e *Events, moment int64) (nodes []int32) {
	for _, all := range a.nodesAt(e, []int64{moment}) {
		nodes = all
	}
	return nodes
}

// met calls use with the nodes for which an event counts.
func (a *Ask) met(e *Events, event int32, use func(v int32)) {
	if a.Who != AsDestination {
		use(e.Src[event])
	}
	if a.Who != AsSource {
		use(e.Dst[event])
	}
}

// Plus is a time so much later, or the last or the first one that there is.
func Plus(t, span int64) int64 {
	switch sum := t + span; {
	case span > 0 && sum < t:
		return math.MaxInt64
	case span < 0 && sum > t:
		return math.MinInt64
	default:
		return sum
	}
}

// Moments returns the multiples of Every from the first event on to the last one.
func (a *Ask) Moments(e *Events) (all []int64, err error) {
	if e.Len() == 0 {
		return nil, nil
	}
	first, end := e.Time[0], e.Time[e.Len()-1]
	if uint64(end-first)/uint64(a.Every) > maxMoments {
		return nil, phrase.Errorf("temporal", "the times from %d to %d have more than %d moments that are %d apart; take a longer time between moments (Every, --every)", first, end, maxMoments, a.Every)
	}
	t := first - first%a.Every
	if t < first {
		t = Plus(t, a.Every)
	}
	for ; t <= end && t < math.MaxInt64; t = Plus(t, a.Every) {
		all = append(all, t)
	}
	return all, nil
}

// Questions returns a question for each moment and node that is known by then, also about windows that end after the last event. It returns an
// error for more than [MaxQuestions]. Cost: that of [Ask.Over] for each, on all CPUs.
func (a *Ask) Questions(e *Events) (*Questions, error) {
	moments, err := a.Moments(e)
	if err != nil {
		return nil, err
	}
	q, most := &Questions{}, 0
	if a.Active == 0 { // each node has those from its first event on
		for v := range int32(e.Nodes) {
			if since, ok := a.Since(e, v); ok {
				before, _ := slices.BinarySearch(moments, since)
				most += len(moments) - before
			}
		}
	}
	for t, nodes := range a.nodesAt(e, moments) {
		if most = max(most, len(q.Nodes)+len(nodes)); most > MaxQuestions {
			return nil, phrase.Errorf("temporal", "%d moments and %d nodes make more than %d questions; take a longer time between moments (Every, --every), or only nodes with recent events (Active, --active)", len(moments), e.Nodes, MaxQuestions)
		}
		q.Nodes = append(q.Nodes, nodes...)
		for range nodes {
			q.Times = append(q.Times, t)
		}
	}
	q.Targets = make([]float32, len(q.Nodes))
	parallel.For(0, len(q.Nodes), 1024, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			q.Targets[i] = a.Over(e, q.Nodes[i], q.Times[i], Plus(q.Times[i], a.Window))
		}
	})
	return q, nil
}

// nodesAt returns the moments with the nodes that are asked about, ascending, which are valid until the next moment. Cost: that of the
// nodes, or with Active that of the events in the active time.
func (a *Ask) nodesAt(e *Events, moments []int64) iter.Seq2[int64, []int32] {
	return func(yield func(int64, []int32) bool) {
		var all, fresh, both []int32
		seen, happened := make([]bool, e.Nodes), 0
		for _, t := range moments {
			fresh = fresh[:0]
			from := happened
			if happened = e.Until(t); a.Active > 0 {
				from = e.Until(Plus(t, -a.Active))
			}
			for i := from; i < happened; i++ {
				a.met(e, int32(i), func(v int32) {
					if !seen[v] {
						seen[v] = true
						fresh = append(fresh, v)
					}
				})
			}
			slices.Sort(fresh)
			if a.Active > 0 {
				for _, v := range fresh {
					seen[v] = false // of this moment alone
				}
				if !yield(t, fresh) {
					return
				}
				continue
			}
			both = both[:0]
			for k := 0; k < len(all) || len(fresh) > 0; {
				if len(fresh) == 0 || k < len(all) && all[k] < fresh[0] {
					both = append(both, all[k])
					k++
				} else {
					both, fresh = append(both, fresh[0]), fresh[1:]
				}
			}
			if all, both = both, all; !yield(t, all) {
				return
			}
		}
	}
}

// Check returns an error for an ask that means nothing.
func (a *Ask) Check(events int) error {
	switch {
	case !slices.Contains([]string{AskCount, AskAny, AskSum, AskMean}, a.What):
		return phrase.Errorf("temporal", "it is asked for %q; choose %s, %s, %s or %s", a.What, AskCount, AskAny, AskSum, AskMean)
	case !slices.Contains([]string{AsSource, AsDestination, AsEither}, a.Who):
		return phrase.Errorf("temporal", "it is asked about %q; choose %s, %s or %s", a.Who, AsSource, AsDestination, AsEither)
	case a.Window <= 0 || a.Every <= 0 || a.Active < 0:
		return fmt.Errorf("temporal: the window is %d, the time between moments %d and that of activity %d; the first two are above 0", a.Window, a.Every, a.Active)
	case (a.What == AskSum || a.What == AskMean) && len(a.Values) != events:
		return fmt.Errorf("temporal: there are %d values for %d events; a %s needs one of each", len(a.Values), events, a.What)
	}
	return nil
}
