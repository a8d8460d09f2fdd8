package temporal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops/dataset"
)

// Telling is a column of features that tells what a model of events is asked: see [Tells].
type Telling struct {
	Column string // its name, or "3" for the fourth of columns without names
	OfNode bool   // it is a column of nodes; else of events
	What   string // what it tells, in words
	// Right of Known events of training, or of neighbours in the order of nodes, are as the column says.
	Right, Known int
}

// String says what a column tells, in one sentence.
func (t Telling) String() string {
	if t.OfNode {
		return fmt.Sprintf("the column %q of nodes is in the order of %s, and not in that of training: it seems to be computed from later events; leave it out if it is", t.Column, t.What)
	}
	return fmt.Sprintf("the column %q of events tells %s: in %d of %d events of training it is the one that went with the same value before; leave the column out if it is known only afterwards", t.Column, t.What, t.Right, t.Known)
}

const (
	// toldEvents and toldNodes are how many of the last events of training, and of the nodes, are looked at, and leastTold how many a finding
	// takes.
	toldEvents, toldNodes, leastTold = 20_000, 4_000, 50
	// mostWrong is the share of them that may differ from what a column says.
	mostWrong = 0.01
	// noNews is the share of answers from which on they are known without the column.
	noNews = 0.9
	// leastValues is the least number of different numbers of events, or times, of nodes for a finding.
	leastValues = 5
)

// Tells returns the columns of features by which a model could know what it is asked, as far as their values show it:
//
//   - a column of events whose value tells, alone or with the event's source, the destination of the source's next event, that of its own event, or
//     a number to predict of the event: the same value goes with the same answer in 99 % of the events of training, and without the
//     column less than 90 % are known in this way. Values that hardly repeat tell nothing. Features that a table made of one column
//     are looked at together.
//   - a column of nodes that has them in the order of their numbers of events, as sources, as destinations or in all, or of their last times,
//     in the whole data, and not in that of these in training.
//
// e are the events of ds, and the first train of them are those of training. A finding is no proof, and columns that it does not name may
// leak: those that tell an answer together, or in part. Cost: a pass over the last 20,000 events of training for each column,
// which ends early for most, and a sort of 4,000 nodes for each column of nodes.
func Tells(ds *dataset.Dataset, e *Events, train int) []Telling {
	return append(tellingEvents(ds, e.Head(train)), tellingNodes(ds.Meta.FeatureNames, ds.Features, e, train)...)
}

// sought is something that a column of events could tell.
type sought struct {
	what   string
	next   bool // about the source's next event; else about the event that has the column
	answer func(event int) (value uint64, known bool)
}

func tellingEvents(ds *dataset.Dataset, e *Events) (found []Telling) {
	x := e.Features
	if x == nil || x.Cols == 0 || e.Edge == nil {
		return nil
	}
	dst := func(event int) (uint64, bool) { return uint64(e.Dst[event]), true }
	all := []sought{{"the destination of the source's next event", true, dst}, {"the destination of its event", false, dst}}
	if y := ds.EdgeAnswers; y != nil && y.Targets != nil {
		for k := range y.Targets.Cols {
			all = append(all, sought{fmt.Sprintf("the number to predict %q of its event", columnName(y.Meta.TargetNames, k)), false, func(event int) (uint64, bool) {
				row, ok := slices.BinarySearch(ds.EdgeRows, e.Edge[event])
				if !ok {
					return 0, false
				}
				v := y.Targets.Row(row)[k]
				return uint64(math.Float32bits(v)), v == v
			}})
		}
	}
	from := max(0, e.Len()-toldEvents)
	rows := make([]float32, (e.Len()-from)*x.Cols)
	for i := from; i < e.Len(); i++ {
		x.CopyRow(rows[(i-from)*x.Cols:][:x.Cols], e.Edge[i])
	}
	for _, q := range all {
		alone, ofSource := []func(int) uint64{nil}, []func(int) uint64{nil}
		if q.next {
			last := func(event int) uint64 { return uint64(e.Dst[event]) }
			alone, ofSource = append(alone, last), append(ofSource, last)
		}
		known := func(keys []func(int) uint64, withSource bool) bool {
			return slices.ContainsFunc(keys, func(key func(int) uint64) bool {
				right, n := e.told(from, q, key, withSource, 1)
				return n > 0 && float64(right) >= noNews*float64(n)
			})
		}
		news := []bool{!known(alone, false), false}
		news[1] = news[0] && !known(ofSource, true)
		for lo, hi := 0, 0; lo < x.Cols; lo = hi {
			name := madeOf(ds.Meta.EdgeFeatureNames, lo)
			for hi = lo + 1; hi < x.Cols && madeOf(ds.Meta.EdgeFeatureNames, hi) == name; hi++ {
			}
			value := func(event int) (h uint64) {
				for _, v := range rows[(event-from)*x.Cols+lo : (event-from)*x.Cols+hi] {
					h = mixed(h ^ uint64(math.Float32bits(v+0))) // -0 is 0
				}
				return h
			}
			for k, what := range []string{q.what, "with the source " + q.what} {
				if !news[k] {
					continue
				}
				if right, n := e.told(from, q, value, k == 1, mostWrong); n >= leastTold && 2*n >= e.Len()-from && float64(n-right) <= mostWrong*float64(n) {
					found = append(found, Telling{name, false, what, right, n})
					break
				}
			}
		}
	}
	return found
}

// told goes through the events from one on, and counts those whose key, with the source if need be, has come before, and those of them with the
// answer of the last time. It ends when more than a share of all are wrong. A nil key is the same for all.
func (e *Events) told(from int, q sought, key func(event int) uint64, withSource bool, wrong float64) (right, known int) {
	type of struct {
		key uint64
		src int32
	}
	was, before := map[of]uint64{}, map[int32]int{}
	for i := from; i < e.Len(); i++ {
		u, at := e.Src[i], i
		if q.next {
			last, ok := before[u]
			before[u] = i
			if !ok {
				continue
			}
			at = last
		}
		answer, ok := q.answer(i)
		if !ok {
			continue
		}
		k := of{src: -1}
		if key != nil {
			k.key = key(at)
		}
		if withSource {
			k.src = u
		}
		if is, ok := was[k]; ok {
			if known++; is == answer {
				right++
			} else if float64(known-right) > wrong*float64(e.Len()-from) {
				break
			}
		}
		was[k] = answer
	}
	return right, known
}

// mixed mixes the bits of a number (the finaliser of SplitMix64, Steele et al. 2014, DOI 10.1145/2660193.2660195).
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func columnName(names []string, c int) string {
	if c < len(names) {
		return names[c]
	}
	return fmt.Sprint(c)
}

// madeOf returns the name of the table's column of which a feature was made, by package tables.
func madeOf(names []string, c int) string {
	name := columnName(names, c)
	for _, of := range []string{"=", " hash ", " missing", " age", " year ", " week ", " day "} {
		if before, _, ok := strings.Cut(name, of); ok && before != "" {
			return before
		}
	}
	return name
}

// tellingNodes returns the columns of x, features of nodes, that are in the order of what the events after training tell.
func tellingNodes(names []string, x *dataset.Matrix, e *Events, train int) (found []Telling) {
	if x == nil || x.Cols == 0 {
		return nil
	}
	in := func(n int) []facts {
		all := make([]facts, e.Nodes)
		for i := range n {
			for way, v := range []int32{e.Src[i], e.Dst[i]} {
				all[v][way]++
				all[v][2]++
				all[v][3] = e.Time[i]
			}
		}
		return all
	}
	whole, known := in(e.Len()), in(train)
	var ids []int32
	for v := range int32(e.Nodes) {
		if whole[v][2] > 0 && len(ids) < toldNodes {
			ids = append(ids, v)
		}
	}
	if len(ids) < leastTold {
		return nil
	}
	rows := make([]float32, len(ids)*x.Cols)
	x.Gather(rows, ids, 0)
	order := make([]int, len(ids))
	for c := range x.Cols {
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rows[i*x.Cols+c], rows[j*x.Cols+c]) })
		for k, what := range []string{"their numbers of events as sources", "their numbers of events as destinations", "their numbers of events", "the times of their last events"} {
			right := inOrder(order, func(i int) float32 { return rows[i*x.Cols+c] }, func(i int) int64 { return whole[ids[i]][k] })
			n := len(order) - 1
			if float64(n-right) <= mostWrong*float64(n) && inOrder(order, func(i int) float32 { return rows[i*x.Cols+c] }, func(i int) int64 { return known[ids[i]][k] }) < right {
				found = append(found, Telling{columnName(names, c), true, what, right, n})
				break
			}
		}
	}
	return found
}

// facts are the numbers of events of a node as source, as destination and in all, and the time of the last.
type facts [4]int64

// inOrder counts the neighbours in an order by x in which y is equal where x is, and else ascends, or else descends, whichever is
// more frequent; 0 if y has few values.
func inOrder(order []int, x func(i int) float32, y func(i int) int64) int {
	var ways [2]int
	values := map[int64]bool{}
	for k, i := range order {
		if len(values) < leastValues {
			values[y(i)] = true
		}
		if k == 0 {
			continue
		}
		before := order[k-1]
		switch d := cmp.Compare(y(i), y(before)); {
		case x(i) == x(before):
			if d == 0 {
				ways[0]++
				ways[1]++
			}
		case d > 0:
			ways[0]++
		case d < 0:
			ways[1]++
		}
	}
	if len(values) < leastValues {
		return 0
	}
	return max(ways[0], ways[1])
}
