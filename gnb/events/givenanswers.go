package events

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/temporal"
	"github.com/graphnb/graphnb/internal/phrase"
)

// askGiven is the NodeOptions.Ask for questions that the data gives.
const askGiven = "given"

// atOnce is the NodeOptions.Window of given answers that are known at their moment.
const atOnce = "0"

// givenAnswers are questions with one answer each, in the order of time, that the data gives.
type givenAnswers struct {
	column  dataset.QuestionColumn
	nodes   []int32
	times   []int64
	answers []float32
	of      map[int32][]int32 // the questions about each node, by time
}

// openGiven takes the questions that the data gives.
func (r *nodeRows) openGiven(ds *dataset.Dataset, o *NodeOptions) error {
	q, err := ds.Questions()
	switch {
	case err != nil:
		return err
	case q == nil && o.Of == "":
		return fmt.Errorf("events: %s gives no questions about nodes; convert it with a table of them (gnb data convert --questions), or ask about its events (Ask, --ask)", ds.Name())
	case q == nil: // a dataset to answer about: what is known of earlier answers is nothing
		r.given = &givenAnswers{column: dataset.QuestionColumn{Name: o.Of, Classes: o.Classes}}
		r.names, r.classes = o.Classes, len(o.Classes)
		return nil
	}
	var names []string
	for _, c := range q.Columns {
		names = append(names, c.Name)
	}
	at := slices.Index(names, o.Of)
	if o.Of == "" && len(names) == 1 {
		at = 0
	}
	switch {
	case at < 0 && o.Of == "":
		return fmt.Errorf("events: the questions of %s have the answers %s, and Of (--of) does not say which one to predict", ds.Name(), phrase.CleanLine(phrase.List(names)))
	case at < 0:
		return fmt.Errorf("events: Of (--of) is %q, and the questions of %s have the answers %s; name one of them", phrase.CleanLine(o.Of), ds.Name(), phrase.CleanLine(phrase.List(names)))
	case o.Classes != nil && !slices.Equal(o.Classes, q.Columns[at].Classes):
		return fmt.Errorf("events: the answers %s of %s have the classes %s, and those of the run are %s; take a dataset with the same", names[at], ds.Name(), phrase.CleanLine(phrase.List(q.Columns[at].Classes)), phrase.CleanLine(phrase.List(o.Classes)))
	}
	g := &givenAnswers{column: q.Columns[at], nodes: q.Nodes, times: q.Times, answers: make([]float32, len(q.Nodes)), of: map[int32][]int32{}}
	for i, v := range q.Nodes {
		g.answers[i] = q.Answers[i*len(names)+at]
		if g.answers[i] == g.answers[i] {
			g.of[v] = append(g.of[v], int32(i))
		}
	}
	r.given, r.names, r.classes = g, g.column.Classes, len(g.column.Classes)
	return nil
}

// appendEarlier appends the last answers about a node that are known at a moment: of questions before it, whose window has ended by then.
func (g *givenAnswers) appendEarlier(to []float32, node int32, asOf, window int64) []float32 {
	all := g.of[node]
	n := sort.Search(len(all), func(i int) bool {
		t := g.times[all[i]]
		return t >= asOf || temporal.Plus(t, window) > asOf
	})
	for k := range pastWindows {
		y := float32(math.NaN())
		if k < n {
			y = g.answers[all[n-1-k]]
		}
		to = append(to, y)
	}
	return to
}

// strangers counts the questions at moments by which the node has had no event.
func (r *nodeRows) strangers() (n int) {
	for i, v := range r.nodes {
		if since, ok := r.ask.Since(r.Events, v); !ok || since > r.times[i] {
			n++
		}
	}
	return n
}

// about returns the nodes that the data asks about, ascending.
func (g *givenAnswers) about() []int32 { return distinct(g.nodes) }
