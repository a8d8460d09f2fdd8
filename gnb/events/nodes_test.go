package events_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/sweep"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// tides are events of people at places on days: each person is busy on every third day, with as many events as its number says, and has
// at most one on the other days. So the last day says nothing, and the mean of the last days is wrong every day.
func tides(days int) *dataset.Dataset {
	const people, places = 30, 5
	random := rand.New(rand.NewPCG(5, 6))
	var src, dst []int32
	var at []int64
	var x []float32
	for day := range days {
		for p := range people {
			n := random.IntN(2)
			if (day+p)%3 == 0 {
				n = 4 + p/4
			}
			for range n {
				src, dst = append(src, int32(p)), append(dst, int32(people+random.IntN(places)))
				at, x = append(at, int64(day)*86400+1+random.Int64N(86398)), append(x, float32(p%7)+random.Float32())
			}
		}
	}
	g, err := graphops.FromEdgesWith(people+places, src, dst, graphops.EdgeData{Times: at, Features: &graphops.EdgeFeatures{Cols: 1, F32: x}}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		panic(err)
	}
	return &dataset.Dataset{Graph: g, Meta: dataset.Metadata{Name: "tides", TimeUnit: "s", EdgeFeatureNames: []string{"amount"}}}
}

func nodeOptions(t *testing.T, o events.NodeOptions) events.NodeOptions {
	o.Window, o.Hidden, o.Quiet, o.RunDir, o.Seed = "1d", 32, true, filepath.Join(t.TempDir(), "run"), 1
	o.Batch, o.Epochs, o.LR = 30, 20, 0.01
	return o
}

// A model learns what two baselines cannot know, and answers as of a moment with the numbers that it was measured by.
func TestPlantedTides(t *testing.T) {
	ds := tides(120)
	for _, c := range []struct {
		o                   events.NodeOptions
		model, bank1, bank2 string
		lower               bool
		margin              float64
	}{
		{events.NodeOptions{}, "test_mae", "test_persistent_mae", "test_average_mae", true, 1},
		{events.NodeOptions{Model: "tgn", Neighbors: 5}, "test_mae", "test_persistent_mae", "test_average_mae", true, 1},
		{events.NodeOptions{Ask: "sum", Of: "amount"}, "test_mae", "test_persistent_mae", "test_average_mae", true, 4},
		{events.NodeOptions{Ask: "any"}, "test_auc", "test_persistent_auc", "test_frequent_auc", false, 0.1},
	} {
		t.Run(c.o.Ask+c.o.Model, func(t *testing.T) {
			run, err := events.TrainNodes(t.Context(), ds, nodeOptions(t, c.o))
			if err != nil {
				t.Fatal(err)
			}
			got, one, two := run.Value(c.model), run.Value(c.bank1), run.Value(c.bank2)
			t.Logf("%s %.4f, %s %.4f, %s %.4f", c.model, got, c.bank1, one, c.bank2, two)
			better := min(one, two) - got
			if !c.lower {
				better = got - max(one, two)
			}
			if !(better > c.margin) {
				t.Errorf("%s is %.4f, and the baselines have %.4f and %.4f; want %.2f better", c.model, got, one, two, c.margin)
			}
			b, err := events.NodeBreakdownOf(run)
			if err != nil {
				t.Fatal(err)
			}
			sum, n := 0.0, 0
			for _, p := range b.ByTime {
				n += p.Questions
				if c.lower {
					sum += *p.Model * float64(p.Questions)
				}
			}
			if n != b.Whole.Questions || n == 0 || *b.Whole.Model != got || c.lower && math.Abs(sum/float64(n)-got) > 1e-9 {
				t.Errorf("the parts have %d of %d questions with the mean %v, and %s is %v", n, b.Whole.Questions, sum/float64(n), c.model, got)
			}
			if c.lower {
				predicted(t, ds, run.Value(c.model), b, func(asOf int64) events.NodePredictions {
					p, err := events.PredictNodes(t.Context(), run, ds, nil, events.PredictOptions{AsOf: &asOf})
					if err != nil {
						t.Fatal(err)
					}
					return p
				}, c.o.Ask == "sum")
			}
		})
	}
}

// predicted compares the mean absolute error of predictions at the moments of the test with the measured one.
func predicted(t *testing.T, ds *dataset.Dataset, mae float64, b events.NodeBreakdown, predict func(asOf int64) events.NodePredictions, amounts bool) {
	t.Helper()
	sum, n := 0.0, 0
	for asOf := b.Whole.From; asOf <= b.Whole.To; asOf += 86400 {
		p := predict(asOf)
		for i, v := range p.Nodes {
			y := 0.0
			for u := range int32(ds.Graph.NumNodes()) {
				for e := ds.Graph.Indptr[u]; e < ds.Graph.Indptr[u+1]; e++ {
					if at := ds.Graph.EdgeTimes[e]; ds.Graph.Indices[e] == v && at > asOf && at <= p.Until {
						if amounts {
							y += float64(ds.Graph.EdgeFeatures.F32[e])
						} else {
							y++
						}
					}
				}
			}
			sum += math.Abs(y - float64(p.Rows.F32[i]))
			n++
		}
	}
	if n != b.Whole.Questions || math.Abs(sum/float64(n)-mae) > 1e-4 {
		t.Errorf("%d predictions have a mean absolute error of %v; %d were measured with %v", n, sum/float64(n), b.Whole.Questions, mae)
	}
}

// What cannot be asked is refused with a sentence that says what to do.
func TestQuestionsThatMeanNothing(t *testing.T) {
	ds := tides(40)
	for _, c := range []struct {
		o    func(o *events.NodeOptions)
		want string
	}{
		{func(o *events.NodeOptions) { o.Window = "" }, "Window (--window) is missing"},
		{func(o *events.NodeOptions) { o.Window = "1y" }, "is no span of time"},
		{func(o *events.NodeOptions) { o.Window = "400d" }, "training has 0"},
		{func(o *events.NodeOptions) { o.Every = "0.5s" }, "no whole number of s"},
		{func(o *events.NodeOptions) { o.Ask = "median" }, "it is count, any, sum, mean or given"},
		{func(o *events.NodeOptions) { o.Ask = "mean" }, "does not say of what"},
		{func(o *events.NodeOptions) { o.Ask, o.Of = "mean", "price" }, "they have amount"},
		{func(o *events.NodeOptions) { o.Of = "amount" }, "leave Of out"},
		{func(o *events.NodeOptions) { o.Ask = "given" }, "gives no questions about nodes"},
		{func(o *events.NodeOptions) { o.Who = "people" }, "sources, destinations or all"},
		{func(o *events.NodeOptions) { o.Ask, o.Loss = "any", "huber" }, "are for numbers"},
		{func(o *events.NodeOptions) { o.Ask, o.Metric = "any", "mae" }, "mae"},
		{func(o *events.NodeOptions) { o.Metric = "auc" }, "mae, rmse, r2 and nmae"},
		{func(o *events.NodeOptions) { o.Heads = 2 }, "options of the model tgn"},
		{func(o *events.NodeOptions) { o.Model = "walks" }, "choose counts or tgn"},
		{func(o *events.NodeOptions) { o.Window, o.Every, o.Ask = "3d", "1d", "any" }, "nothing to tell apart"},
	} {
		o := nodeOptions(t, events.NodeOptions{})
		c.o(&o)
		if _, err := events.TrainNodes(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v; want %q", err, c.want)
		}
		if _, err := os.Stat(o.RunDir); err == nil {
			t.Errorf("%q: a run was begun", c.want)
		}
	}
}

// Data that no model can learn from is refused with a sentence of this task: not of columns, and without the names of inner packages.
func TestDataThatMeansNothing(t *testing.T) {
	every := func(days int64, hours int64) *dataset.Dataset {
		var src, dst []int32
		var at []int64
		for h := int64(1); h <= 24*days; h += hours {
			src, dst, at = append(src, 0), append(dst, 1+int32(h%2)), append(at, 3600*h)
		}
		g, err := graphops.FromEdgesWith(3, src, dst, graphops.EdgeData{Times: at}, graphops.BuildOptions{KeepDuplicates: true})
		if err != nil {
			t.Fatal(err)
		}
		return &dataset.Dataset{Graph: g, Meta: dataset.Metadata{Name: "ticks", TimeUnit: "s"}}
	}
	for want, ds := range map[string]*dataset.Dataset{
		"events: all 26 answers of training are 4, so there is nothing to tell apart; give another window (Window, --window)": every(40, 6),
		"events: ticks: no event":                             every(1, 24),
		"give the last times of training and validation (Unt": every(1, 24),
	} {
		if _, err := events.TrainNodes(t.Context(), ds, nodeOptions(t, events.NodeOptions{})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A mean over no events is unknown: it is counted and left out.
func TestUnknownMeansAreLeftOut(t *testing.T) {
	ds := tides(60)
	o := nodeOptions(t, events.NodeOptions{Ask: "mean", Of: "amount"})
	var said []string
	o.Events = func(e runs.Event) { said = append(said, e.Text) }
	run, err := events.TrainNodes(context.Background(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(said, "\n")
	if !strings.Contains(text, "because the answer is unknown") || strings.Contains(text, " 0 because the answer is unknown") {
		t.Errorf("the run does not say how many answers are unknown: %s", text)
	}
	if got, last := run.Value("test_mae"), run.Value("test_persistent_mae"); !(got < last) {
		t.Errorf("the mean amount is predicted with an error of %v, and by the last one with %v", got, last)
	}
}

// An event of weight 0 is an event: its node has it, and the numbers are those of the same events without weights.
func TestEventsOfWeightZeroAreEvents(t *testing.T) {
	mae := func(weigh bool) float64 {
		ds := tides(60)
		if weigh {
			w := make([]float32, ds.Edges())
			for e := range w {
				w[e] = float32(e % 3)
			}
			ds.Graph = ds.Graph.WithEdgeWeights(w)
			for e := range w {
				ds.Events = append(ds.Events, int64(e))
			}
			slices.SortStableFunc(ds.Events, func(a, b int64) int { return cmp.Compare(ds.Graph.EdgeTimes[a], ds.Graph.EdgeTimes[b]) })
		}
		o := nodeOptions(t, events.NodeOptions{})
		o.Epochs = 1
		run, err := events.TrainNodes(context.Background(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		return run.Value("test_persistent_mae")
	}
	if got, want := mae(true), mae(false); got != want || want == 0 {
		t.Errorf("the last answers are wrong by %v with weights of which some are 0, and by %v without weights", got, want)
	}
}

// given adds questions to the tides: whether a person was busy on the day after a moment, and with how many events; a third of them are
// missing.
func given(ds *dataset.Dataset, days int) *dataset.Dataset {
	random := rand.New(rand.NewPCG(9, 9))
	q := &dataset.Questions{Columns: []dataset.QuestionColumn{{Name: "tide", Classes: []string{"low", "high", "top"}}, {Name: "acts"}}}
	src, _, _ := ds.Graph.EdgesAt(upTo(ds.Graph.NumEdges()))
	acts := map[[2]int64]int{}
	for e, u := range src {
		acts[[2]int64{int64(u), ds.Graph.EdgeTimes[e] / 86400}]++
	}
	for day := range int64(days) {
		for p := range int32(30) {
			if random.IntN(3) == 0 {
				continue
			}
			n := acts[[2]int64{int64(p), day}]
			tide := min(2, n/4)
			q.Nodes, q.Times = append(q.Nodes, p), append(q.Times, day*86400+int64(p%2)*60)
			q.Answers = append(q.Answers, float32(tide), float32(n))
		}
		first := len(q.Nodes) - 1 // the questions of a minute later follow
		for ; first > 0 && q.Times[first-1] >= day*86400; first-- {
		}
		sortByTime(q, first)
	}
	if err := ds.SetQuestions(q); err != nil {
		panic(err)
	}
	return ds
}

func upTo(n int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// sortByTime sorts the questions from the given one on.
func sortByTime(q *dataset.Questions, from int) {
	for i := from; i < len(q.Times); i++ {
		for k := i; k > from && q.Times[k] < q.Times[k-1]; k-- {
			q.Times[k], q.Times[k-1] = q.Times[k-1], q.Times[k]
			q.Nodes[k], q.Nodes[k-1] = q.Nodes[k-1], q.Nodes[k]
			for c := range 2 {
				q.Answers[2*k+c], q.Answers[2*k-2+c] = q.Answers[2*k-2+c], q.Answers[2*k+c]
			}
		}
	}
}

// Answers that the data gives are learned, also where moments share a step; and predicted by a run of the same dataset.
func TestGivenQuestions(t *testing.T) {
	ds := given(tides(120), 119)
	for _, c := range []struct {
		of, together, model, metric, plain string
		lower                              bool
		margin                             float64
	}{
		{"tide", "", "counts", "test_accuracy", "test_frequent_accuracy", false, 0.2},
		{"tide", "1m", "tgn", "test_accuracy", "test_frequent_accuracy", false, 0.2},
		{"acts", "1h", "counts", "test_mae", "test_average_mae", true, 1},
	} {
		o := nodeOptions(t, events.NodeOptions{Ask: "given", Of: c.of, Together: c.together, Model: c.model})
		run, err := events.TrainNodes(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		got, plain := run.Value(c.metric), run.Value(c.plain)
		t.Logf("%s by %s: %v, %v", c.of, c.model, got, plain)
		if better := map[bool]float64{false: got - plain, true: plain - got}[c.lower]; !(better > c.margin) {
			t.Errorf("%s by %s: %s is %v, and %s %v; want %v better", c.of, c.model, c.metric, got, c.plain, plain, c.margin)
		}
		asOf := int64(118 * 86400)
		p, err := events.PredictNodes(t.Context(), run, ds, nil, events.PredictOptions{AsOf: &asOf})
		if err != nil {
			t.Fatal(err)
		}
		right := 0
		for i, v := range p.Nodes {
			busy := (118+int(v))%3 == 0
			if row := p.Rows.Row(i); c.of == "acts" && (row[0] > 2.5) == busy || c.of == "tide" && (row[0] < 0.5) == busy {
				right++
			}
		}
		if len(p.Nodes) != 30 || right < 27 {
			t.Errorf("%s by %s: of %d predictions %d say who is busy", c.of, c.model, len(p.Nodes), right)
		}
	}
}

// An answer is known after a time that must be given, since to take it as known at once would tell questions what nobody knew by then. A series
// that nothing but its last value tells is learned if answers are known at once, and is not if they are known after its period.
func TestGivenAnswersAreKnownAfterTheirWindow(t *testing.T) {
	ds := tides(120)
	random := rand.New(rand.NewPCG(3, 3))
	q, levels := &dataset.Questions{Columns: []dataset.QuestionColumn{{Name: "level"}}}, make([]float32, 30)
	for day := range int64(119) {
		for p := range int32(30) {
			if (day+int64(p))%10 == 0 {
				levels[p] = 100 * random.Float32()
			}
			q.Nodes, q.Times, q.Answers = append(q.Nodes, p), append(q.Times, day*86400), append(q.Answers, levels[p])
		}
	}
	if err := ds.SetQuestions(q); err != nil {
		t.Fatal(err)
	}
	o := nodeOptions(t, events.NodeOptions{})
	o.Window = ""
	const missing = "Window (--window) is missing; it is the time after which an answer of the data is known, such as 14d if it is about the next 14 days, or 0 if it is known at its moment"
	if _, err := events.TrainNodes(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("without a window: %v", err)
	}
	o.Window = "0d"
	if _, err := events.TrainNodes(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), "is not above 0; or 0 for answers that are known at their moment") {
		t.Errorf("a window of 0d: %v", err)
	}
	for window, known := range map[string]bool{"0": true, "10d": false} {
		o := nodeOptions(t, events.NodeOptions{})
		o.Window, o.Epochs = window, 3
		run, err := events.TrainNodes(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if mae := run.Value("test_persistent_mae"); (mae < 10) != known {
			t.Errorf("known after %s: the last known answer has the error %v", window, mae)
		}
		had, err := events.NodeOptionsOf(run)
		if err != nil || had.Window != window {
			t.Errorf("the run has the window %q, want %q; %v", had.Window, window, err)
		}
		if p, err := events.PredictNodes(t.Context(), run, ds, nil, events.PredictOptions{}); err != nil || len(p.Nodes) != 30 || (p.Until == p.AsOf) != known {
			t.Errorf("%d predictions for %d to %d, %v", len(p.Nodes), p.AsOf, p.Until, err)
		}
	}
}

func TestSweepOfNodes(t *testing.T) {
	ds := tides(40)
	study, err := sweep.RunTask(t.Context(), ds, events.NodeTask, func(trial *sweep.Trial) events.NodeOptions {
		o := nodeOptions(t, events.NodeOptions{})
		o.RunDir, o.Epochs, o.LR = "", 2, trial.LogFloat("lr", 1e-3, 1e-2)
		return o
	}, sweep.Options{Trials: 3, Dir: t.TempDir(), Metric: "val_mae", Minimize: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, trial := range study.Trials {
		if best := study.Best(); best == nil || trial.Value < best.Value {
			t.Errorf("the best trial is %v, and another is %v", best, trial)
		}
	}
}
