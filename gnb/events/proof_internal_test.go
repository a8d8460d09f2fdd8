package events

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/temporal"
)

// visits are n random events among nodes, two at a time. The first keep are the same for every seed.
func visits(n, keep int, seed uint64) *dataset.Dataset {
	const nodes = 30
	var src, dst []int32
	var at []int64
	var x []float32
	for i := range n {
		from := seed
		if i < keep {
			from = 0
		}
		r := rand.New(rand.NewPCG(from, uint64(i)))
		src, dst = append(src, r.Int32N(nodes)), append(dst, r.Int32N(nodes))
		at, x = append(at, 1e9+int64(i/2)*60), append(x, r.Float32())
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, graphops.EdgeData{Times: at, Features: &graphops.EdgeFeatures{Cols: 1, F32: x}}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		panic(err)
	}
	return &dataset.Dataset{Graph: g, Meta: dataset.Metadata{Name: "visits"}}
}

func streamOf(t *testing.T, ds *dataset.Dataset, batch int) *stream {
	t.Helper()
	s, err := newStream(ds, &Options{OptimizerOptions: gnb.OptimizerOptions{Batch: batch}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each leak that is planted into a step, or into the data behind the run, ends the run with a sentence that names it.
func TestPlantedLeaksAreFound(t *testing.T) {
	const batch, first = 20, 40
	clean := func() (*dataset.Dataset, *stream, *questions) {
		ds := visits(400, 400, 0)
		s := streamOf(t, ds, batch)
		q := s.before(first)
		draws := temporal.NewDrawer(s.Events, temporal.DrawOptions{Count: 2, Strict: true})
		for e := int32(first); e < first+batch; e++ {
			q.ask(s, e, draws.Append(nil, 1, 0, int(e)))
		}
		return ds, s, q
	}
	for _, c := range []struct {
		name  string
		plant func(ds *dataset.Dataset, s *stream, q *questions) (known int)
		want  string
	}{
		{"none", func(*dataset.Dataset, *stream, *questions) int { return first }, ""},
		{"an event sees one of its own step", func(_ *dataset.Dataset, s *stream, q *questions) int {
			q.happened = s.Head(first + 1)
			return first
		}, "events of one step see each other"},
		{"memory is updated before scoring", func(*dataset.Dataset, *stream, *questions) int { return first + batch }, "before the questions about event 40 were answered"},
		{"a resumed run has lost its memory", func(*dataset.Dataset, *stream, *questions) int { return 0 }, "it must have all 40"},
		{"the reverse of an event is asked about", func(_ *dataset.Dataset, s *stream, q *questions) int {
			q.src[3], q.cands[q.starts[3]] = s.Dst[43], s.Src[43]
			return first
		}, "in the dataset that event is"},
		{"a question is asked at a later time", func(_ *dataset.Dataset, _ *stream, q *questions) int {
			q.times[5]++
			return first
		}, "in the dataset that event is"},
		{"the step is asked as of the time of its last event", func(_ *dataset.Dataset, s *stream, q *questions) int {
			q.now = s.Time[first+batch-1]
			return first
		}, "the question about event 40 of time 1000001200 is asked as of time 1000001740"},
		{"a negative is the event's own destination", func(_ *dataset.Dataset, _ *stream, q *questions) int {
			q.cands[q.starts[2]+1] = q.cands[q.starts[2]]
			return first
		}, "happens at its time"},
		{"a negative is the destination of the source's other event at that time", func(ds *dataset.Dataset, s *stream, q *questions) int {
			ds.Graph.Indices[s.Edge[43]], q.src[3] = s.Src[42], s.Src[42]
			q.cands[q.starts[2]+1] = s.Dst[43]
			return first
		}, "happens at its time"},
		{"a negative does not exist yet", func(ds *dataset.Dataset, s *stream, q *questions) int {
			ds.NodeTimes = make([]int64, s.Nodes)
			ds.NodeTimes[q.cands[q.starts[3]+1]] = q.times[3] + 1
			return first
		}, "is a negative of event 4"},
		{"questions reach into the next step", func(_ *dataset.Dataset, s *stream, q *questions) int {
			q.ask(s, first+batch, nil)
			return first
		}, "in the step of the events 40 to 59"},
		{"a known event is of a later time in the data", func(ds *dataset.Dataset, s *stream, _ *questions) int {
			ds.Graph.EdgeTimes[s.Edge[first-1]] += 1e6
			return first
		}, "event 39 of time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, s, q := clean()
			a, err := newAuditor(ds.Graph, ds.NodeTimes, s)
			if err != nil {
				t.Fatal(err)
			}
			known := c.plant(ds, s, q)
			a.nodes = ds.NodeTimes
			var events []int32
			for i := range q.src {
				events = append(events, first+int32(i))
			}
			expect(t, a.check(q, events, known), c.want, c.name != "a resumed run has lost its memory")
		})
	}
	for _, c := range []struct {
		name  string
		plant func(ds *dataset.Dataset, s *stream)
		want  string
	}{
		{"events out of order", func(_ *dataset.Dataset, s *stream) { slices.Reverse(s.Edge) }, "must be in the order of their times"},
		{"a clock in milliseconds", func(ds *dataset.Dataset, s *stream) { ds.Graph.EdgeTimes[s.Edge[7]] *= 1000 }, "must be in the order of their times"},
		{"an event that is there twice", func(_ *dataset.Dataset, s *stream) { s.Edge[11] = s.Edge[10] }, "several events"},
		{"a split within one time", func(_ *dataset.Dataset, s *stream) { s.Train-- }, "the splits meet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, s, _ := clean()
			c.plant(ds, s)
			_, err := newAuditor(ds.Graph, ds.NodeTimes, s)
			expect(t, err, c.want, true)
		})
	}
}

func expect(t *testing.T, err error, want string, leaks bool) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("a clean step is refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrLeak) != leaks):
		t.Errorf("the error is %v; want %q", err, want)
	}
}

// shown makes a model of options, and shows it the first events of a stream.
func shown(t *testing.T, s *stream, o *Options, events int) (model, state) {
	t.Helper()
	m, err := o.model(s, nil, s.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	p.Init(5)
	begun, err := m.begin(false)
	if err != nil {
		t.Fatal(err)
	}
	for lo, hi := s.stepOf(0); lo < events; lo, hi = s.stepOf(hi) {
		if err := begun.happen(s.Head(hi), lo, alone(0)); err != nil {
			t.Fatal(err)
		}
	}
	return m, begun
}

// The answers about a step have the same bits whatever happens from the step on.
func TestAnswersDoNotRestOnTheFuture(t *testing.T) {
	const batch, at = 20, 200
	for _, k := range kinds {
		name := k.name
		t.Run(name, func(t *testing.T) {
			var want []float32
			for seed := range uint64(3) {
				s := streamOf(t, visits(400, at, seed), batch)
				o := &Options{Model: name, Hidden: 8, TimeDim: 8, Heads: 2, Neighbors: 4, Hops: 2, WalkDim: 16, TimeScale: 600, Layers: 2, NodeRows: 3}
				m, state := shown(t, s, o, at)
				if n := state.taken(); n != at {
					t.Fatalf("the state has taken in %d events, want %d", n, at)
				}
				a, err := newAuditor(visits(400, at, seed).Graph, nil, s)
				if err != nil {
					t.Fatal(err)
				}
				early := s.before(at - batch) // about events that the state has taken in
				draws := temporal.NewDrawer(s.Events, temporal.DrawOptions{Count: 1, Strict: true})
				early.ask(s, at-batch, draws.Append(nil, 1, 0, at-batch))
				expect(t, a.check(early, []int32{at - batch}, state.taken()), "has taken in 200 events before the questions about event 180", true)
				q := s.before(at)
				for i := range int32(10) {
					q.src, q.times = append(q.src, i), append(q.times, s.Time[at-1]+60)
					q.cands = append(q.cands, i+1, i+2, i+12)
					q.starts = append(q.starts, int32(len(q.cands)))
				}
				f := nn.NewFwd(nn.Config{})
				f.Reset(nn.Config{})
				scores, err := state.scores(f, q, m.view(q))
				if err != nil {
					t.Fatal(err)
				}
				got := slices.Clone(scores.Data())
				f.Close()
				if want == nil {
					want = got
				}
				if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Fatalf("with another future the scores are %v, and were %v", got, want)
				}
			}
			if slices.Min(want) == slices.Max(want) {
				t.Errorf("all scores are %v", want[0])
			}
		})
	}
}
