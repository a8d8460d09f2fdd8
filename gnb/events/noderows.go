package events

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// nodeRows are the questions of a dataset about nodes at moments, in the order of time, cut into splits and steps.
type nodeRows struct {
	*stream
	ask      temporal.Ask
	given    *givenAnswers // those of the data; nil if they are made of the events
	together int64         // moments that are at most so far apart share a step
	classes  int           // of the answers; 0 if they are numbers
	names    []string      // of classes that the data gives
	nodes    []int32
	times    []int64
	targets  []float32 // numbers, or those of classes
	ranges   map[string][2]int
	steps    []nodeStep
	first    map[string]int // the first step of each split, of which the steps follow each other
	bounds   []int          // the numbers of events that are known at some moment, ascending
	dropped  dropped
}

// nodeStep is a step: the questions [lo, hi), which know the first known events, those until the time asOf.
type nodeStep struct {
	lo, hi, known int
	asOf          int64
}

// dropped are the questions that are in no split.
type dropped struct {
	Crossing int // the window begins before the end of a split and ends after it
	Beyond   int // the window ends after the last event
	Unknown  int // the answer is unknown
}

// splitNames are the splits in the order of time.
var splitNames = []string{"train", "val", "test"}

// pastWindows is the number of earlier windows of a node that models and baselines see: those of the moving average of the Temporal Graph
// Benchmark.
const pastWindows = 7

// chunk is the most events after which the memories of nodes change together.
const chunk = 200

// newNodeRows makes the questions of a dataset.
func newNodeRows(ds *dataset.Dataset, o *NodeOptions) (*nodeRows, error) {
	r, err := openNodeRows(ds, o)
	if err != nil {
		return nil, err
	}
	q := &temporal.Questions{}
	if r.given != nil {
		q.Nodes, q.Times, q.Targets = r.given.nodes, r.given.times, r.given.answers
	} else if q, err = r.ask.Questions(r.Events); err != nil {
		return nil, fmt.Errorf("events: %s: %w", ds.Name(), phrase.Bare(err))
	}
	r.divide(q)
	r.cut(o.Batch)
	return r, nil
}

// openNodeRows returns what is asked of a dataset, without the questions.
func openNodeRows(ds *dataset.Dataset, o *NodeOptions) (*nodeRows, error) {
	shared := &Options{Until: o.Until}
	shared.Batch = max(1, o.Batch)
	s, err := newStream(ds, shared)
	if err != nil {
		return nil, err
	}
	r := &nodeRows{stream: s, ask: temporal.Ask{What: o.Ask, Who: o.Who}}
	if o.Ask == temporal.AskAny {
		r.classes = 2
	}
	for _, of := range []struct {
		name, flag, text string
		to               *int64
	}{{"Window", "window", o.Window, &r.ask.Window}, {"Every", "every", o.Every, &r.ask.Every}, {"Active", "active", o.Active, &r.ask.Active}, {"Together", "together", o.Together, &r.together}} {
		if of.text == "" || of.text == atOnce && of.to == &r.ask.Window && o.Ask == askGiven {
			continue
		}
		if *of.to, err = temporal.ParseSpan(of.text, s.unit); err != nil {
			err = fmt.Errorf("events: %s (--%s): %w", of.name, of.flag, phrase.Bare(err))
			if of.to == &r.ask.Window && o.Ask == askGiven {
				err = fmt.Errorf("%w; or 0 for answers that are known at their moment", err)
			}
			return nil, err
		}
	}
	if o.Ask == askGiven {
		r.ask.Who = temporal.AsEither
		return r, r.openGiven(ds, o)
	}
	if o.Of != "" {
		if r.ask.Values, err = valuesOf(ds, s, o.Of); err != nil {
			return nil, err
		}
	}
	if err := r.ask.Check(s.Len()); err != nil {
		return nil, fmt.Errorf("events: %w", phrase.Bare(err))
	}
	moments, err := r.ask.Moments(s.Events)
	if err != nil {
		return nil, fmt.Errorf("events: %s: %w", ds.Name(), phrase.Bare(err))
	}
	for _, t := range moments {
		r.bounds = append(r.bounds, s.Until(t))
	}
	r.bounds = slices.Compact(r.bounds)
	return r, nil
}

// eventWeight is the name of the edges' weights among the values of events.
const eventWeight = "weight"

// valueOf returns the column of the events' features with a name or a number, -1 for the weights.
func valueOf(ds *dataset.Dataset, of string) (column int, err error) {
	names := ds.Meta.EdgeFeatureNames
	switch at := slices.Index(names, of); {
	case at >= 0:
		return at, nil
	case of == eventWeight && ds.Graph.EdgeWeights != nil:
		return -1, nil
	}
	cols := 0
	if x := ds.Graph.EdgeFeatures; x != nil {
		cols = x.Cols
	}
	if n, err := strconv.Atoi(of); err == nil && n >= 0 && n < cols {
		return n, nil
	}
	have := "they have none"
	if ds.Graph.EdgeWeights != nil {
		names = append(slices.Clone(names), eventWeight)
	}
	if len(names) > 0 {
		have = "they have " + phrase.CleanLine(phrase.List(names[:min(len(names), 50)]))
	} else if cols > 0 {
		have = fmt.Sprintf("they have the features 0 to %d", cols-1)
	}
	return 0, fmt.Errorf("events: Of (--of) is %q, and the events of %s have no values with this name; %s", phrase.CleanLine(of), ds.Name(), have)
}

// valuesOf returns a value of each event.
func valuesOf(ds *dataset.Dataset, s *stream, of string) ([]float32, error) {
	column, err := valueOf(ds, of)
	if err != nil {
		return nil, err
	}
	values := make([]float32, s.Len())
	row := make([]float32, max(1, s.cols))
	for i, e := range s.Edge {
		values[i] = eventValue(ds.Graph, column, e, row)
		if x := float64(values[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("events: the value %q of event %d of %s is %v; a value that is added up is a number", of, i, ds.Name(), values[i])
		}
	}
	return values, nil
}

// eventValue returns the feature in a column, or the weight for -1, of an edge; row has room for all features.
func eventValue(g *graphops.Graph, column int, edge int64, row []float32) float32 {
	if column < 0 {
		return g.EdgeWeights[edge]
	}
	g.EdgeFeatures.CopyRow(row, edge)
	return row[column]
}

// divide keeps the questions with known answers that belong to a split: the whole window of a question of training lies in the time of
// training, and those of validation and test likewise.
func (r *nodeRows) divide(q *temporal.Questions) {
	end := r.Time[r.Len()-1]
	r.ranges = map[string][2]int{}
	lo := 0
	for k, split := range splitNames {
		from, to := int64(math.MinInt64), end
		if k > 0 {
			from = r.until[k-1]
		}
		if k < 2 {
			to = min(end, r.until[k])
		}
		for i, t := range q.Times {
			if !inSplit(t, r.ask.Window, from, to) {
				continue
			}
			if q.Targets[i] != q.Targets[i] {
				r.dropped.Unknown++
				continue
			}
			r.nodes, r.times, r.targets = append(r.nodes, q.Nodes[i]), append(r.times, t), append(r.targets, q.Targets[i])
		}
		r.ranges[split] = [2]int{lo, len(r.nodes)}
		lo = len(r.nodes)
	}
	for _, t := range q.Times {
		if temporal.Plus(t, r.ask.Window) > end {
			r.dropped.Beyond++
		}
	}
	r.dropped.Crossing = len(q.Times) - len(r.nodes) - r.dropped.Unknown - r.dropped.Beyond
}

// inSplit reports whether a window lies in the time of a split, (from, to]. A question without a window is one at its moment.
func inSplit(t, window, from, to int64) bool {
	return (t > from || t == from && (window > 0 || from == math.MinInt64)) && temporal.Plus(t, window) <= to
}

// cut cuts the questions into steps: those of one moment, or of moments that share a step, in about equal parts of at most batch.
func (r *nodeRows) cut(batch int) {
	r.first = map[string]int{}
	for _, split := range splitNames {
		r.first[split] = len(r.steps)
		at, end := r.part(split)
		for at < end {
			same := at + sort.Search(end-at, func(i int) bool { return r.times[at+i] > temporal.Plus(r.times[at], r.together) })
			parts := (same - at + batch - 1) / batch
			for k := range parts {
				s := nodeStep{lo: at + (same-at)*k/parts, hi: at + (same-at)*(k+1)/parts}
				s.asOf = r.times[s.lo]
				s.known = r.Until(s.asOf)
				r.steps = append(r.steps, s)
			}
			at = same
		}
	}
	r.first[""] = len(r.steps)
	if r.given == nil {
		return
	}
	for _, s := range r.steps {
		r.bounds = append(r.bounds, s.known)
	}
	slices.Sort(r.bounds)
	r.bounds = slices.Compact(r.bounds)
}

// part returns the questions [lo, hi) of a split.
func (r *nodeRows) part(split string) (lo, hi int) { return r.ranges[split][0], r.ranges[split][1] }

// stepsOf returns the steps of a split.
func (r *nodeRows) stepsOf(split string) []nodeStep {
	next := map[string]string{"train": "val", "val": "test"}
	return r.steps[r.first[split]:r.first[next[split]]]
}

// chunkOf returns the events [lo, hi) after which memories change together, one of which is the given one: at most chunk, and none beyond a
// moment.
func (r *nodeRows) chunkOf(event int) (lo, hi int) {
	i := sort.SearchInts(r.bounds, event+1)
	from, to := 0, r.Len()
	if i > 0 {
		from = r.bounds[i-1]
	}
	if i < len(r.bounds) {
		to = r.bounds[i]
	}
	lo = event - (event-from)%chunk
	return lo, min(lo+chunk, to)
}

// nodeQuestions ask about nodes at moments. All that an answer may rest on is in them, but for the targets.
type nodeQuestions struct {
	happened *temporal.Events // the events until asOf
	asOf     int64
	nodes    []int32
	times    []int64
	earlier  []float32 // [questions, pastWindows]: the answers of the windows before asOf, the latest first; NaN for an unknown one
	first    int       // the number of the first question
	targets  []float32 // nil if they are not known
}

// about returns the questions [lo, hi) of a step.
func (r *nodeRows) about(s nodeStep, lo, hi int) *nodeQuestions {
	q := r.asking(r.Head(s.known), s.asOf, r.nodes[lo:hi])
	q.times, q.first, q.targets = r.times[lo:hi], lo, r.targets[lo:hi]
	return q
}

// asking returns questions about nodes at a moment, by which some events have happened.
func (r *nodeRows) asking(happened *temporal.Events, asOf int64, nodes []int32) *nodeQuestions {
	q := &nodeQuestions{happened: happened, asOf: asOf, nodes: nodes, times: make([]int64, len(nodes)), earlier: make([]float32, 0, len(nodes)*pastWindows)}
	for i, v := range nodes {
		q.times[i] = asOf
		q.earlier = r.appendEarlier(q.earlier, happened, v, asOf)
	}
	return q
}

// appendEarlier appends the answers of a node's windows that end at asOf, asOf - Window and so on, back to its first event.
func (r *nodeRows) appendEarlier(to []float32, happened *temporal.Events, node int32, asOf int64) []float32 {
	if r.given != nil {
		return r.given.appendEarlier(to, node, asOf, r.ask.Window)
	}
	since, ok := r.ask.Since(happened, node)
	end := asOf
	for range pastWindows {
		y, before := float32(math.NaN()), temporal.Plus(end, -r.ask.Window)
		if ok && since <= end && end > math.MinInt64 {
			y = r.ask.Over(happened, node, before, end)
		}
		to, end = append(to, y), before
	}
	return to
}

// matrix returns the answers as those of the nodes of a dataset, for the losses and metrics of numbers.
func (r *nodeRows) matrix() *dataset.Matrix {
	return &dataset.Matrix{Rows: len(r.targets), Cols: 1, F32: r.targets}
}

// check returns an error for a run that cannot learn by the questions.
func (r *nodeRows) check(name string, eval bool) error {
	n := map[string]int{}
	for _, split := range splitNames {
		lo, hi := r.part(split)
		n[split] = hi - lo
	}
	if n["train"] == 0 || eval && (n["val"] == 0 || n["test"] == 0) {
		return fmt.Errorf("events: of the questions about the nodes of %s, training has %d, validation %d and test %d (%s); each needs some, so give a shorter window (Window, --window), a shorter time between moments (Every, --every) of questions that are made of the events, or other times (Until, --until)", name, n["train"], n["val"], n["test"], r.dropped)
	}
	lo, hi := r.part("train")
	if all := r.targets[lo:hi]; !slices.ContainsFunc(all, func(y float32) bool { return y != all[0] }) {
		answer, way := fmt.Sprint(all[0]), "give another window (Window, --window)"
		if r.given != nil {
			way = "name another answer (Of, --of), or give other times (Until, --until)"
		}
		if r.names != nil {
			answer = phrase.CleanLine(r.names[int(all[0])])
		}
		return fmt.Errorf("events: all %d answers of training are %s, so there is nothing to tell apart; %s", hi-lo, answer, way)
	}
	return nil
}

// String says which questions are left out.
func (d dropped) String() string {
	return fmt.Sprintf("%d left out because the window crosses the end of training or validation, %d because it ends after the last event, %d because the answer is unknown", d.Crossing, d.Beyond, d.Unknown)
}

var (
	errNoWindow      = errors.New("events: Window (--window) is missing; it is the time over which the events of a node are asked about, such as 7d")
	errNoGivenWindow = errors.New("events: Window (--window) is missing; it is the time after which an answer of the data is known, such as 14d if it is about the next 14 days, or 0 if it is known at its moment: questions are told the earlier answers about their node that are known by then")
)
