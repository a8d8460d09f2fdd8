package events

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
)

// nodeRowsOf makes the questions of a dataset: the options are those that a run would record.
func nodeRowsOf(t *testing.T, ds *dataset.Dataset, batch int, o *NodeOptions) *nodeRows {
	t.Helper()
	o.Quiet, o.Batch = true, batch
	if err := o.complete(context.Background(), ds); err != nil {
		t.Fatal(err)
	}
	r, err := newNodeRows(ds, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each leak that is planted into a step about nodes, or into the answers, ends the run with a sentence that names it.
func TestPlantedLeaksOfNodesAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		split string
		plant func(r *nodeRows, q *nodeQuestions, s *nodeStep) (known int)
		want  string
	}{
		{"none", "train", func(_ *nodeRows, _ *nodeQuestions, s *nodeStep) int { return s.known }, ""},
		{"none of validation", "val", func(_ *nodeRows, _ *nodeQuestions, s *nodeStep) int { return s.known }, ""},
		{"none of the test", "test", func(_ *nodeRows, _ *nodeQuestions, s *nodeStep) int { return s.known }, ""},
		{"an event after the moment is known", "train", func(r *nodeRows, q *nodeQuestions, s *nodeStep) int {
			q.happened = r.Head(s.known + 1)
			return s.known
		}, "is known to questions about nodes at time"},
		{"an event at the moment is not known", "train", func(r *nodeRows, q *nodeQuestions, s *nodeStep) int {
			q.happened = r.Head(s.known - 1)
			return s.known - 1
		}, "they must know all events until then"},
		{"the state has taken in an event after the moment", "val", func(_ *nodeRows, _ *nodeQuestions, s *nodeStep) int { return s.known + 1 }, "by which"},
		{"a resumed run has lost its state", "train", func(*nodeRows, *nodeQuestions, *nodeStep) int { return 0 }, "it must have all"},
		{"the window begins at the moment", "train", func(r *nodeRows, q *nodeQuestions, s *nodeStep) int {
			for i, v := range q.nodes {
				q.targets[i] = r.ask.Over(r.Events, v, s.asOf-1, s.asOf+r.ask.Window)
			}
			return s.known
		}, "in the dataset the window"},
		{"the window ends too late", "train", func(r *nodeRows, q *nodeQuestions, s *nodeStep) int {
			for i, v := range q.nodes {
				q.targets[i] = r.ask.Over(r.Events, v, s.asOf, s.asOf+r.ask.Window+60)
			}
			return s.known
		}, "in the dataset the window"},
		{"an earlier window reaches beyond the moment", "train", func(r *nodeRows, q *nodeQuestions, s *nodeStep) int {
			for i, v := range q.nodes {
				q.earlier[i*pastWindows] = r.ask.Over(r.Events, v, s.asOf+60-r.ask.Window, s.asOf+60)
			}
			return s.known
		}, "is told that its window until"},
		{"the answer itself is told", "test", func(_ *nodeRows, q *nodeQuestions, s *nodeStep) int {
			for i, y := range q.targets {
				q.earlier[i*pastWindows] = y
			}
			return s.known
		}, "is told that its window until"},
		{"a question of training has the answer of validation", "train", func(r *nodeRows, _ *nodeQuestions, s *nodeStep) int {
			r.until = []int64{s.asOf + r.ask.Window - 1, r.until[1]}
			return s.known
		}, "its answer is known to another split"},
		{"a question of validation begins in training", "val", func(r *nodeRows, _ *nodeQuestions, s *nodeStep) int {
			r.until = []int64{s.asOf + 1, r.until[1]}
			return s.known
		}, "its answer is known to another split"},
		{"a node without an event", "train", func(_ *nodeRows, q *nodeQuestions, s *nodeStep) int {
			q.nodes[0] = 29
			return s.known
		}, "has had no event by then"},
		{"a question of a later moment", "train", func(_ *nodeRows, q *nodeQuestions, s *nodeStep) int {
			q.times[1]++
			return s.known
		}, "in a step at time"},
		{"questions of the next step", "train", func(_ *nodeRows, q *nodeQuestions, s *nodeStep) int {
			q.first++
			return s.known
		}, "are asked in the step of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := visits(2000, 2000, 0)
			for e, u := range ds.Graph.Indices { // node 29 begins to act late
				if u == 29 && ds.Graph.EdgeTimes[e] < 1e9+900*60 {
					ds.Graph.Indices[e] = 28
				}
			}
			o := &NodeOptions{Window: "300", Every: "40"}
			r := nodeRowsOf(t, ds, 64, o)
			a, err := newNodeAuditor(ds, r, o)
			if err != nil {
				t.Fatal(err)
			}
			steps := r.stepsOf(c.split)
			k := len(steps) / 2
			for (steps[k].asOf-1e9)%60 != 0 { // events happen at the moment
				k++
			}
			s := steps[k]
			q := r.about(s, s.lo, s.hi)
			q.nodes, q.targets, q.times = slices.Clone(q.nodes), slices.Clone(q.targets), slices.Clone(q.times)
			known := c.plant(r, q, &s)
			expect(t, a.check(q, s, c.split, known), c.want, c.name != "a resumed run has lost its state" && c.name != "an event at the moment is not known")
		})
	}
}

// The answers about nodes have the same bits whatever happens after the moment.
func TestAnswersAboutNodesDoNotRestOnTheFuture(t *testing.T) {
	const at = 200
	for _, name := range nodeModels {
		t.Run(name, func(t *testing.T) {
			var want []float32
			for seed := range uint64(3) {
				ds := visits(400, at, seed)
				o := &NodeOptions{Model: name, Hidden: 8, Window: "300", Every: "120", Until: []int64{1e9 + 120*60, 1e9 + 150*60}}
				o.Eval = "none"
				r := nodeRowsOf(t, ds, 8, o)
				o.Scale.Mean, o.Scale.Deviation = []float64{1}, []float64{2}
				m := o.newModel(r, nil, r.Nodes)
				p, err := nn.Collect(m)
				if err != nil {
					t.Fatal(err)
				}
				p.Init(5)
				state, err := m.begin(false)
				if err != nil {
					t.Fatal(err)
				}
				if err := state.happen(at, alone(1)); err != nil {
					t.Fatal(err)
				}
				if n := state.taken(); n != at {
					t.Fatalf("the state has taken in %d events, want %d", n, at)
				}
				f := nn.NewFwd(nn.Config{})
				q := r.asking(r.Head(at), r.Time[at-1], []int32{1, 2, 3, 4, 5, 6})
				rows, err := m.answers(f, state, q, 1)
				if err != nil {
					t.Fatal(err)
				}
				got := slices.Concat(rows...)
				f.Close()
				if want == nil {
					want = got
				}
				if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Fatalf("with another future the answers are %v, and were %v", got, want)
				}
			}
			if slices.Min(want) == slices.Max(want) {
				t.Errorf("all answers are %v", want[0])
			}
		})
	}
}

// A question belongs to the split that has its whole window, and the others are counted.
func TestWindowsStayWithinTheirSplit(t *testing.T) {
	ds := visits(2000, 2000, 0) // two events a minute for 1000 minutes
	o := &NodeOptions{Window: "600", Every: "60", Until: []int64{1e9 + 700*60, 1e9 + 850*60}}
	r := nodeRowsOf(t, ds, 8, o)
	all, err := r.ask.Questions(r.Events)
	if err != nil {
		t.Fatal(err)
	}
	train, val, end := r.until[0], r.until[1], r.Time[r.Len()-1]
	want := map[string]int{}
	for _, t := range all.Times {
		switch from, to := t, t+600; {
		case to <= train:
			want["train"]++
		case from >= train && to <= val:
			want["val"]++
		case from >= val && to <= end:
			want["test"]++
		case to > end:
			want["beyond"]++
		default:
			want["crossing"]++
		}
	}
	got := map[string]int{"beyond": r.dropped.Beyond, "crossing": r.dropped.Crossing}
	for _, split := range splitNames {
		lo, hi := r.part(split)
		got[split] = hi - lo
		n := 0
		for _, s := range r.stepsOf(split) {
			n += s.hi - s.lo
			if s.hi-s.lo > 8 || s.known != r.Until(s.asOf) || slices.Min(r.times[s.lo:s.hi]) != s.asOf || slices.Max(r.times[s.lo:s.hi]) != s.asOf {
				t.Fatalf("the step %+v has more than 8 questions, or several times", s)
			}
		}
		if n != hi-lo {
			t.Errorf("the steps of %s have %d questions of %d", split, n, hi-lo)
		}
	}
	for name, n := range want {
		if got[name] != n || n == 0 {
			t.Errorf("%s: %d questions, want %d", name, got[name], n)
		}
	}
}

// Earlier windows end at the first time that there is: windows that are long beside it are no leak.
func TestWindowsBeyondTheFirstTime(t *testing.T) {
	ds := visits(2000, 2000, 0)
	for e, at := range ds.Graph.EdgeTimes { // from -4.5e18 to 4.5e18
		ds.Graph.EdgeTimes[e] = (at - 1e9 - 30000) * 15e13
	}
	o := &NodeOptions{Window: "1600000000000000000", Every: "50000000000000000", Until: []int64{-2e18, 500e15}}
	r := nodeRowsOf(t, ds, 64, o)
	a, err := newNodeAuditor(ds, r, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, split := range splitNames {
		for _, s := range r.stepsOf(split) {
			q := r.about(s, s.lo, s.hi)
			if err := a.check(q, s, split, s.known); err != nil {
				t.Fatal(err)
			}
			for i, v := range q.nodes {
				earlier, n := q.earlier[i*pastWindows:(i+1)*pastWindows], 0
				for _, y := range earlier {
					if y == y {
						n += int(y)
					}
				}
				known := 0 // events by the node
				for _, e := range q.happened.EventsOf(v) {
					if q.happened.Src[e] == v {
						known++
					}
				}
				if n != known {
					t.Fatalf("the windows before %d hold %v, %d events of node %d; want %d", s.asOf, earlier, n, v, known)
				}
			}
		}
	}
}

// Leaks of answers that the data gives are found too.
func TestPlantedLeaksOfGivenAnswersAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(r *nodeRows, q *nodeQuestions, s nodeStep)
		want  string
	}{
		{"none", func(*nodeRows, *nodeQuestions, nodeStep) {}, ""},
		{"the answer of another row", func(_ *nodeRows, q *nodeQuestions, _ nodeStep) { q.targets[0]++ }, "the data gives another one"},
		{"a moment that is not asked about", func(_ *nodeRows, q *nodeQuestions, _ nodeStep) { q.times[0]++ }, "the data gives another one"},
		{"an earlier answer that is not known yet", func(r *nodeRows, q *nodeQuestions, s nodeStep) {
			v := q.nodes[0]
			q.earlier = r.given.appendEarlier(nil, v, s.asOf+r.ask.Window, r.ask.Window)
			q.nodes, q.times, q.targets = q.nodes[:1], q.times[:1], q.targets[:1]
		}, "is told the earlier answer"},
		{"more earlier answers than there are", func(_ *nodeRows, q *nodeQuestions, _ nodeStep) {
			for i, y := range q.earlier {
				if y != y {
					q.earlier[i] = 1
				}
			}
		}, "earlier answers, and so many are not known"},
		{"a window that crosses the split", func(r *nodeRows, _ *nodeQuestions, s nodeStep) { r.until = []int64{s.asOf + 1, r.until[1]} }, "its answer is known to another split"},
		{"a moment beyond those that share the step", func(r *nodeRows, _ *nodeQuestions, _ nodeStep) { r.together = 0 }, "in a step at time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := visits(2000, 2000, 0)
			q := &dataset.Questions{Columns: []dataset.QuestionColumn{{Name: "y"}}}
			for i := range int64(900) {
				q.Nodes, q.Times, q.Answers = append(q.Nodes, int32(i*7%30)), append(q.Times, 1e9+i*60), append(q.Answers, float32(i))
			}
			if err := ds.SetQuestions(q); err != nil {
				t.Fatal(err)
			}
			o := &NodeOptions{Window: "3600", Together: "600"}
			r := nodeRowsOf(t, ds, 64, o)
			a, err := newNodeAuditor(ds, r, o)
			if err != nil {
				t.Fatal(err)
			}
			steps := r.stepsOf("train")
			s := steps[len(steps)/8]
			asked := r.about(s, s.lo, s.hi)
			asked.nodes, asked.targets, asked.times = slices.Clone(asked.nodes), slices.Clone(asked.targets), slices.Clone(asked.times)
			c.plant(r, asked, s)
			expect(t, a.check(asked, s, "train", s.known), c.want, true)
		})
	}
}

var _ gnb.Task = (*nodeTrainer)(nil)
