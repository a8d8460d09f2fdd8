package events_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/runstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) {
	runtest.Main(m, map[string]func([]byte) error{"events": runCell})
}

// rounds are n events of people who visit places: each person goes round the places in a fixed order, so that the last visit of a person
// tells the next one, which is never a place visited recently. The events have a feature.
func rounds(n int) *dataset.Dataset {
	const people, places = 20, 10
	random := rand.New(rand.NewPCG(7, 8))
	var src, dst []int32
	var at []int64
	var features []float32
	next := make([]int, people)
	for i := range n {
		p := random.IntN(people)
		src, dst = append(src, int32(p)), append(dst, int32(people+(p+3*next[p])%places))
		at = append(at, int64(100*(i/2))) // two at a time
		features = append(features, float32(i%3))
		next[p]++
	}
	g, err := graphops.FromEdgesWith(people+places, src, dst, graphops.EdgeData{Times: at, Features: &graphops.EdgeFeatures{Cols: 1, F32: features}}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		panic(err)
	}
	return &dataset.Dataset{Graph: g, Meta: dataset.Metadata{Name: "rounds"}}
}

// cellOptions are the options of the cell "events".
type cellOptions struct {
	Data                           string // "" for rounds
	Dir, Resume, Model             string
	Workers, VirtualRanks, Threads int
	Kill                           int64 // the step after which the workers are killed
}

// runCell trains, and prints nothing.
func runCell(raw []byte) error {
	var c cellOptions
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	o := events.Options{Model: c.Model, Hidden: 8, Dropout: 0.1}
	switch c.Model {
	case "mixer":
		o.Neighbors, o.Window = 4, "2000"
	case "tgn", "tgat":
		o.Neighbors = 4
	}
	o.Workers, o.VirtualRanks, o.Threads, o.Batch, o.Epochs, o.LR, o.Seed = c.Workers, c.VirtualRanks, c.Threads, 30, 3, 0.01, 3
	o.CheckpointEvery, o.RunDir, o.Resume, o.Quiet = 3, c.Dir, c.Resume, true
	o.Events = func(e runs.Event) {
		if c.Kill > 0 && e.Total >= c.Kill {
			c.Kill = 0
			children, _ := filepath.Glob("/proc/self/task/*/children")
			for _, file := range children {
				ids, _ := os.ReadFile(file)
				for _, id := range strings.Fields(string(ids)) {
					var pid int
					if _, err := fmt.Sscan(id, &pid); err == nil {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			}
		}
	}
	ds := rounds(1000)
	if c.Data != "" {
		var err error
		if ds, err = dataset.Open(c.Data); err != nil {
			return err
		}
	}
	if model, ok := strings.CutPrefix(c.Model, "nodes by "); ok {
		of := events.NodeOptions{OptimizerOptions: o.OptimizerOptions, LaunchOptions: o.LaunchOptions, Model: model, Ask: "sum", Of: "0", Window: "1000", Every: "500", Hidden: 8, Dropout: 0.1}
		of.Batch, of.LR = 12, 0.001
		if model == "given answers" { // whether a person goes to the place 20 next, at times of their own
			of.Model, of.Ask, of.Of, of.Every, of.Together, of.Window = "tgn", "given", "next", "", "300", "100"
			src, dst, _ := ds.Graph.EdgesAt(upTo(ds.Graph.NumEdges()))
			q := &dataset.Questions{Columns: []dataset.QuestionColumn{{Name: "next", Classes: []string{"elsewhere", "there"}}}}
			at := upTo(ds.Graph.NumEdges())
			slices.SortStableFunc(at, func(a, b int64) int { return cmp.Compare(ds.Graph.EdgeTimes[a], ds.Graph.EdgeTimes[b]) })
			asked := map[[2]int64]bool{}
			for _, e := range at {
				if twice := [2]int64{int64(src[e]), ds.Graph.EdgeTimes[e]}; asked[twice] {
					continue
				} else {
					asked[twice] = true
				}
				there := float32(0)
				if dst[e] == 20 {
					there = 1
				}
				q.Nodes, q.Times, q.Answers = append(q.Nodes, src[e]), append(q.Times, ds.Graph.EdgeTimes[e]-1), append(q.Answers, there)
			}
			if err := ds.SetQuestions(q); err != nil {
				return err
			}
		}
		_, err := events.TrainNodes(context.Background(), ds, of)
		return err
	}
	_, err := events.Train(context.Background(), ds, o)
	return err
}

// Runs of 1, 2 and 4 workers, with four virtual ranks in all and one or two threads, have the same weights, losses and
// metrics to the bit; so has one whose workers are killed at random steps, and which resumes each time.
func TestKilledRunsResumeExactly(t *testing.T) {
	testneed.NotShort(t, "it kills and resumes runs for seconds")
	for _, model := range []string{"tgn", "mixer", "tgat", "walks", "counts", "nodes by counts", "nodes by tgn", "nodes by given answers"} {
		t.Run(model, func(t *testing.T) { killAndResume(t, model) })
	}
}

func killAndResume(t *testing.T, model string) {
	kills := 3
	if envknob.Soak.On() {
		kills = 10
	}
	dir := t.TempDir()
	start := func(o cellOptions) error {
		o.Model = model
		c := runtest.StartCell(t, "events", filepath.Join(dir, "runs"), o)
		err := c.Wait(2 * time.Minute)
		c.Gone(20 * time.Second)
		if err != nil && (o.Kill == 0 || !strings.Contains(c.Out.String(), "killed")) {
			t.Fatalf("%v\n%s", err, c.Out.String())
		}
		return err
	}
	var whole *runs.Run
	for _, workers := range []int{1, 2, 4} {
		o := cellOptions{Dir: filepath.Join(dir, fmt.Sprint("whole", workers)), Workers: workers, VirtualRanks: 4 / workers, Threads: 1 + workers%2}
		if err := start(o); err != nil {
			t.Fatal(err)
		}
		run := runstest.Open(t, o.Dir)
		if whole == nil {
			whole = run
			continue
		}
		runstest.Same(t, fmt.Sprintf("%d workers", workers), run, whole, 9)
	}
	losses, err := whole.Losses()
	if err != nil || len(losses) < 60 {
		t.Fatalf("%d steps, %v; want 60 or more, so that kills come at different steps", len(losses), err)
	}
	random := rand.New(rand.NewPCG(17, uint64(len(model))))
	o := cellOptions{Dir: filepath.Join(dir, "killed"), Workers: 2, VirtualRanks: 2, Threads: 1}
	for range kills {
		o.Kill += 1 + random.Int64N(int64(len(losses)/kills))
		t.Logf("a kill after step %d of %d", o.Kill, len(losses))
		if start(o) == nil {
			t.Logf("the run ended before step %d", o.Kill)
			break
		}
		o.Resume = o.Dir
	}
	o.Kill = 0
	if runstest.Open(t, o.Dir).Result.State != runs.StateDone {
		if err := start(o); err != nil {
			t.Fatal(err)
		}
	}
	runstest.Same(t, "the killed run", runstest.Open(t, o.Dir), whole, 9)
}

// A model that learns who goes where next beats memory alone, and the run says where: by time, and by how often a pair was seen.
func TestPlantedRounds(t *testing.T) {
	for model, want := range map[string]float64{"counts": 0.5, "walks": 0.5, "tgn": 0.3, "mixer": 0.3, "tgat": 0.3} {
		o := events.Options{Model: model, Hidden: 32}
		if model != "counts" && model != "walks" {
			o.Neighbors, o.TimeScale = 12, 1000
		}
		o.Batch, o.Epochs, o.LR, o.Seed, o.RunDir, o.Quiet = 20, 20, 0.01, 1, filepath.Join(t.TempDir(), "run"), true
		run, err := events.Train(context.Background(), rounds(2000), o)
		if err != nil {
			t.Fatal(err)
		}
		got, bank := run.Result.Values["test_mrr"], run.Result.Values["test_edgebank_mrr"]
		t.Logf("%s: MRR %.3f, EdgeBank %.3f", model, got, bank)
		if got < want || got < bank+0.1 {
			t.Errorf("%s: the MRR of the test is %.3f; want %.2f and 0.1 more than the %.3f of EdgeBank", model, got, want, bank)
		}
		b, err := events.BreakdownOf(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, parts := range [][]events.Part{b.ByTime, b.BySeen} {
			sum, n := 0.0, 0
			for _, p := range parts {
				sum, n = sum+p.MRR*float64(p.Events), n+p.Events
			}
			if n != 300 || math.Abs(sum/float64(n)-got) > 1e-9 {
				t.Errorf("%s: the parts have %d events with an MRR of %.4f; want 300, and %.4f: %+v", model, n, sum/float64(n), got, b)
			}
		}
	}
}

// Features that tell the answer are said, by the column's name. Features that are fitted to events after the training are refused, unless
// they are fitted to all on purpose, which is said; models that read no features do not care. It is so of both tasks.
func TestLabelInFeatures(t *testing.T) {
	train := func(model, of string, fitted, until int64, tell bool) (string, error) {
		ds := rounds(1000)
		if tell { // each event has the next destination of its source
			random := rand.New(rand.NewPCG(1, 2))
			src, dst, x := make([]int32, 1000), make([]int32, 1000), make([]float32, 1000)
			at, next := make([]int64, 1000), map[int32]float32{}
			for i := len(src) - 1; i >= 0; i-- {
				src[i], dst[i], at[i] = random.Int32N(20), 20+random.Int32N(10), int64(50*i)
				x[i], next[src[i]] = next[src[i]], float32(dst[i])
			}
			g, err := graphops.FromEdgesWith(30, src, dst, graphops.EdgeData{Times: at, Features: &graphops.EdgeFeatures{Cols: 1, F32: x}}, graphops.BuildOptions{KeepDuplicates: true})
			if err != nil {
				t.Fatal(err)
			}
			ds = &dataset.Dataset{Graph: g, Meta: dataset.Metadata{Name: "rounds"}}
			ds.Meta.EdgeFeatureNames = []string{"went to"}
		}
		if fitted != 0 {
			ds.Meta.FeaturesUntil = &fitted
		}
		o := events.Options{Model: model, Hidden: 8}
		if until > 0 {
			o.Until = []int64{until, 40000}
		}
		o.Batch, o.Epochs, o.Eval, o.Quiet, o.RunDir = 100, 1, "none", true, filepath.Join(t.TempDir(), "run")
		said := ""
		o.Events = func(e runs.Event) {
			if e.Kind == runs.KindPrint {
				said += e.Text + "\n"
			}
		}
		name, aboutNodes := strings.CutPrefix(model, "nodes ")
		if !aboutNodes {
			_, err := events.Train(context.Background(), ds, o)
			return said, err
		}
		nodes := events.NodeOptions{OptimizerOptions: o.OptimizerOptions, EvaluationOptions: o.EvaluationOptions, LaunchOptions: o.LaunchOptions, Model: name, Hidden: 8, Window: "1000", Until: o.Until}
		if of != "" {
			nodes.Ask, nodes.Of = "sum", of
		}
		_, err := events.TrainNodes(context.Background(), ds, nodes)
		return said, err
	}
	for _, c := range []struct {
		name          string
		model, of     string
		fitted, until int64
		tell          bool
		says, fails   string
	}{
		{name: "a clean column", model: "tgn", fitted: 34900},
		{name: "a column tells the next destination", model: "tgn", tell: true, says: `the column "went to" of events tells the destination of the source's next event`},
		{name: "no features are read", model: "counts", tell: true},
		{name: "fitted beyond the training", model: "tgn", fitted: 34900, until: 20000, fails: "events: an answer would rest on the future: the features of events of rounds are fitted to the events up to time 34900, and training ends at time 20000; convert the data with --fit 20000, or train until 34900 (Until, --until)"},
		{name: "fitted beyond, and not read", model: "counts", fitted: 34900, until: 20000},
		{name: "fitted until the training's end", model: "tgn", fitted: 20000, until: 20000},
		{name: "fitted to all events", model: "tgn", fitted: 49900, says: "the features of events are fitted to all events, also those of validation and test"},
		{name: "nodes: a clean column", model: "nodes tgn", fitted: 34900},
		{name: "nodes: a column tells the next destination", model: "nodes tgn", tell: true, says: `the column "went to" of events tells the destination of the source's next event`},
		{name: "nodes: no features are read", model: "nodes counts", tell: true},
		{name: "nodes: fitted beyond the training", model: "nodes tgn", fitted: 34900, until: 20000, fails: "events: an answer would rest on the future: the features of events of rounds are fitted to the events up to time 34900, and training ends at time 20000; convert the data with --fit 20000, or train until 34900 (Until, --until)"},
		{name: "nodes: fitted beyond, and not read", model: "nodes counts", fitted: 34900, until: 20000},
		{name: "nodes: the answer is fitted beyond the training", model: "nodes counts", of: "0", fitted: 34900, until: 20000, fails: "events: an answer would rest on the future: the features of events of rounds are fitted to the events up to time 34900, and training ends at time 20000; convert the data with --fit 20000, or train until 34900 (Until, --until)"},
		{name: "nodes: the answer is fitted to all events", model: "nodes counts", of: "0", fitted: 49900, says: "the features of events are fitted to all events, also those of validation and test"},
		{name: "nodes: fitted to all events", model: "nodes tgn", fitted: 49900, says: "the features of events are fitted to all events, also those of validation and test"},
	} {
		said, err := train(c.model, c.of, c.fitted, c.until, c.tell)
		switch {
		case c.fails != "":
			if err == nil || err.Error() != c.fails || !errors.Is(err, events.ErrLeak) {
				t.Errorf("%s: %v", c.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case !strings.Contains(said, c.says) || c.says == "" && (strings.Contains(said, "the column") || strings.Contains(said, "fitted")):
			t.Errorf("%s: the run says %s", c.name, said)
		}
	}
}

// An option that the model does not read is refused by its name, with the models that read it.
func TestOptionsOfOtherModels(t *testing.T) {
	for want, o := range map[string]events.Options{
		"events: Hops is an option of walks, and Model is counts; leave it out":      {Hops: 2},
		"events: Heads is an option of tgn, tgat, and Model is walks; leave it out":  {Model: "walks", Heads: 2},
		"events: WalkDim is an option of walks, and Model is tgn; leave it out":      {Model: "tgn", WalkDim: 16},
		"events: Heads is an option of tgn, tgat, and Model is mixer; leave it out":  {Model: "mixer", Heads: 2},
		"events: Window is an option of mixer, and Model is tgat; leave it out":      {Model: "tgat", Window: "9"},
		"events: Layers is an option of mixer, tgat, and Model is tgn; leave it out": {Model: "tgn", Layers: 2},
		`events: there is no model "jodie"; choose counts, walks, tgn, mixer, tgat`:  {Model: "jodie"},
		"events: 3 heads cannot share 100 columns; take a divisor":                   {Model: "tgat", Heads: 3},
	} {
		o.Quiet = true
		if _, err := events.Train(context.Background(), rounds(1000), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The window of mixer is a span, as that of questions about nodes, and a run records it in the largest unit.
func TestWindowOfMixer(t *testing.T) {
	ds := tides(40)
	o := events.Options{Model: "mixer", Window: "1.1h", Hidden: 8, Neighbors: 3}
	o.Epochs, o.Eval, o.Quiet, o.RunDir = 1, "none", true, filepath.Join(t.TempDir(), "run")
	run, err := events.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if had, err := events.OptionsOf(run); err != nil || had.Window != "66m" {
		t.Errorf("the run has the window %q, %v", had.Window, err)
	}
	ds.Meta.TimeUnit = ""
	for window, want := range map[string]string{"7d": "events: Window (--window): the span of time is \"7d\", and the times of the data are plain numbers", "week": "events: Window (--window): \"week\" is no span of time", "0": "is not above 0"} {
		o.Window, o.RunDir = window, filepath.Join(t.TempDir(), "run")
		if _, err := events.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A run says what its model does not read of the data, and names no models of other tasks.
func TestUnreadOfEvents(t *testing.T) {
	ds := rounds(1000)
	ds.Graph.EdgeWeights = make([]float32, ds.Edges())
	for e := range ds.Graph.EdgeWeights {
		ds.Graph.EdgeWeights[e] = 2
	}
	o := events.Options{}
	o.Epochs, o.Eval, o.Quiet, o.RunDir = 1, "none", true, filepath.Join(t.TempDir(), "run")
	said := ""
	o.Events = func(e runs.Event) { said += e.Text + "\n" }
	if _, err := events.Train(t.Context(), ds, o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "edge weights") || strings.Contains(said, "sage") || strings.Contains(said, "gatv2") {
		t.Errorf("the run says %s", said)
	}
}

// A node that does not exist yet is no negative, neither in training nor in evaluation, which says how many are left out.
func TestNodesThatDoNotExistYet(t *testing.T) {
	train := func(late int64) (run *runs.Run, said string) {
		ds := rounds(1000)
		ds.NodeTimes = make([]int64, ds.Nodes())
		for v := 20; v < 24; v++ { // of ten places
			ds.NodeTimes[v] = late
		}
		o := events.Options{EvalNegatives: 9}
		o.Batch, o.Epochs, o.Quiet, o.RunDir = 100, 1, true, filepath.Join(t.TempDir(), "run")
		o.Events = func(e runs.Event) {
			if e.Kind == runs.KindPrint {
				said += e.Text + "\n"
			}
		}
		run, err := events.Train(context.Background(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		return run, said
	}
	all, said := train(0)
	if strings.Contains(said, "do not exist yet") {
		t.Errorf("all nodes exist, and the run says %s", said)
	}
	some, said := train(1e6)
	if !strings.Contains(said, "negatives of validation and test do not exist yet at the time of their event, and are left out") {
		t.Errorf("the run says %s", said)
	}
	if a, b := all.Value("test_mrr"), some.Value("test_mrr"); !(b > a+0.02) {
		t.Errorf("among fewer negatives the MRR is %.3f, and %.3f among all", b, a)
	}
	if n := some.Value("proved_questions"); n != 700 {
		t.Errorf("%v questions are proved", n)
	}
}
