package links_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// dir is removed after the last test.
var dir string

// TestMain becomes a worker, or a cell, if a test starts this binary as one.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("GNB_TEST_CELL") != "" {
		runtest.Main(m, map[string]func([]byte) error{"links": runCell})
	}
	var err error
	if dir, err = os.MkdirTemp("", "links"); err == nil {
		err = os.Setenv("GNB_RUNS", dir) // of the examples
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const planted = "planted?nodes=400&features=16&classes=4&homophily=0.9&noise=0.5&seed=5"

func load(t testing.TB, spec string) *gnb.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

func launch(t *testing.T, s linkstest.Setting, o gnb.LaunchOptions) (*runs.Run, error) {
	t.Helper()
	if o.Data == nil {
		o.Data = load(t, planted)
	}
	o.Quiet, o.Seed = true, 3
	if o.RunDir == "" && o.Resume == "" {
		o.RunDir = t.TempDir()
	}
	return gnb.Launch(t.Context(), linkstest.Program, s, o)
}

// launched is launch for a run that succeeds.
func launched(t *testing.T, what string, s linkstest.Setting, o gnb.LaunchOptions) *runs.Run {
	t.Helper()
	run, err := launch(t, s, o)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return run
}

// undivided returns the run of two epochs with a setting that tests compare with: on the undivided dataset, by one
// worker with 8 virtual ranks. Each setting trains once, whichever test needs it first.
func undivided(t *testing.T, s linkstest.Setting) *runs.Run {
	t.Helper()
	s.Epochs = 2
	key := fmt.Sprintf("%+v", s)
	run, ok := compared[key]
	if !ok {
		run = launched(t, "undivided", s, gnb.LaunchOptions{Workers: 1, VirtualRanks: 8, RunDir: filepath.Join(dir, fmt.Sprint("undivided", len(compared)))})
		compared[key] = run
	}
	return run
}

var compared = map[string]*runs.Run{} // the runs of undivided

func weights(t *testing.T, run *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// badOptions starts a loader with options that do not fit.
var badOptions = gnb.Program("test.links.bad", func(w *gnb.Worker, which string) error {
	split, err := links.RandomSplit(w.Dataset(), links.SplitOptions{})
	if err != nil {
		return err
	}
	o := links.LoaderOptions{}
	switch which {
	case "fanouts":
		o.Loader = gnb.Loader{Fanouts: []int{1}, Sampler: gnb.Fanouts{1}}
	case "split":
		split = nil
	case "late":
		gnb.SAGE.New(w, gnb.ModelConfig{In: 16, Hidden: 4, Out: 4, Layers: 1})
	case "many":
		o.Negatives.PerEdge = 1 << 20
	case "cooperative":
		o.Loader.Cooperative = true
	case "small":
		split.Message, _ = split.Message.Without(split.Message, 0)
		split.Message.Indptr = split.Message.Indptr[:10]
		split.Training, split.All = split.Message, split.Message
		split.Train.Edges, split.Val, split.Test = links.Edges{Src: []int32{1}, Dst: []int32{2}}, links.Part{}, links.Part{}
	case "by hand":
		split = &links.Split{}
	case "out of range":
		split.Val.Dst[0] = 400
	case "none to predict":
		split.Train = links.Part{}
	case "one edge": // of a graph with all edges
		g := w.Dataset().Graph
		split = &links.Split{All: g, Training: g, Message: g, Train: links.Part{Edges: links.Edges{Src: []int32{1}, Dst: []int32{2}}}}
	}
	l := links.NewLoader(w, split, o)
	decoder := "dot"
	if which == "decoder" {
		decoder = "cosine"
	}
	net := links.New(w, gnb.SAGE, decoder, gnb.ModelConfig{In: 16, Hidden: 4, Out: 4, Layers: 1})
	if which == "part" {
		l.Evaluate(net, "train")
	}
	for range l.Batches() {
		break
	}
	return nil
})

func TestLoaderErrors(t *testing.T) {
	testneed.NotShort(t, "it starts many workers")
	ds := load(t, planted)
	for which, want := range map[string]string{
		"fanouts":         "links: a Loader takes Fanouts or a sampler of your own, not both",
		"split":           "links: NewLoader needs a split",
		"late":            "gnb: the graph of a worker cannot change after its first network or loop over batches",
		"many":            "pairs: PerEdge is 1048576; an edge has 1 to 65536 negatives",
		"cooperative":     "gnb: BatchesOf makes no cooperative batches",
		"small":           "gnb: a graph of 9 nodes cannot replace that of planted",
		"decoder":         `links: there is no decoder "cosine"; choose dot, bilinear, mlp, hadamard or structural, or declare your own`,
		"part":            `links: there is no part "train" to evaluate`,
		"by hand":         "of a split has no graph",
		"out of range":    "pairs: edge 0 of the edges Val is",
		"none to predict": "pairs: a split has no training edges to predict",
	} {
		_, err := gnb.Launch(t.Context(), badOptions, which, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", which, err, want)
		}
	}
	if _, err := gnb.Launch(t.Context(), badOptions, "one edge", gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()}); err != nil {
		t.Errorf("a split of one edge: %v", err)
	}
	if _, err := links.RandomSplit(nil, links.SplitOptions{}); err == nil {
		t.Error("a split of no dataset is no error")
	}
}

// A split by time uses the dataset's times, keeps both directions of a pair in one part, and refuses a
// dataset without times.
func TestTimeSplit(t *testing.T) {
	ds := load(t, "karate")
	if _, err := links.TimeSplit(ds, 20, 30, links.SplitOptions{}); err == nil || !strings.Contains(err.Error(), "convert the dataset with --edge-times") {
		t.Errorf("a dataset without times gives %v", err)
	}
	timed := *ds
	times := make([]int64, ds.Graph.NumEdges())
	for v := range int32(ds.Nodes()) {
		for i, u := range ds.Graph.InNeighbors(v) {
			times[ds.Graph.Indptr[v]+int64(i)] = int64(max(u, v)) // the younger member joined then
		}
	}
	timed.Graph = ds.Graph.WithEdgeData(nil, times)
	s, err := links.TimeSplit(&timed, 20, 30, links.SplitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edges  links.Edges
		lo, hi int32
	}{"training": {s.Train.Edges, 0, 20}, "validation": {s.Val.Edges, 20, 30}, "test": {s.Test.Edges, 30, 34}} {
		if c.edges.Len() == 0 {
			t.Errorf("%s has no edges", name)
		}
		for i, u := range c.edges.Src {
			if at := max(u, c.edges.Dst[i]); at < c.lo || at >= c.hi {
				t.Errorf("%s has %d-%d of time %d, want times from %d to %d", name, u, c.edges.Dst[i], at, c.lo, c.hi-1)
			}
		}
	}
	if s.Message.NumEdges()%2 != 0 || !s.Message.Symmetric() {
		t.Error("a pair has one direction among the messages")
	}
}

// broken leaves the loops over batches early, and then loops over all: each training edge is predicted once, and no batch
// has an edge of a loop that was left.
var broken = gnb.Program("test.links.broken", func(w *gnb.Worker, disjoint float64) error {
	split, err := links.RandomSplitOf(w, links.SplitOptions{Seed: 2, Disjoint: disjoint})
	if err != nil {
		return err
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{Loader: gnb.Loader{Fanouts: []int{4, 4}, Batch: 40, Ahead: 4}})
	for range w.Epochs(6) {
		for leave := range 3 {
			left := 0
			for b := range loader.Batches() {
				if err := loader.Verify(b); err != nil {
					return err
				}
				if b.EndsStep {
					left++
				}
				if left > leave {
					break
				}
			}
		}
		seen, sums := map[[2]int32]bool{}, []float64{0, 0}
		for b := range loader.Batches() {
			if err := loader.Verify(b); err != nil {
				return err
			}
			for i, u := range b.Edges.Src {
				seen[[2]int32{u, b.Edges.Dst[i]}] = true
			}
			sums[1] += float64(b.Edges.Len())
		}
		sums[0] = float64(len(seen))
		w.AllReduce(sums)
		if n := float64(split.Predicted()); sums[0] != n || sums[1] != n {
			return fmt.Errorf("of %v training edges %v are predicted, %v times", n, sums[0], sums[1])
		}
	}
	return nil
})

func TestLoopsThatAreLeft(t *testing.T) {
	testneed.NotShort(t, "it loops several times, in several processes")
	ds := load(t, planted)
	for _, disjoint := range []float64{0, 0.5} {
		for _, o := range []gnb.LaunchOptions{{Workers: 1}, {Workers: 2, VirtualRanks: 2}} {
			o.Data, o.Quiet, o.RunDir = ds, true, t.TempDir()
			if _, err := gnb.Launch(t.Context(), broken, disjoint, o); err != nil {
				t.Errorf("disjoint %v, %d workers: %v", disjoint, o.Workers, err)
			}
		}
	}
	o := gnb.LaunchOptions{Data: eighths(t, ds, divided.Options{NoTopology: true}), Workers: 2, Quiet: true, RunDir: t.TempDir()}
	if _, err := gnb.Launch(t.Context(), broken, 0, o); err != nil {
		t.Errorf("divided: %v", err)
	}
}

// Graphs in memory are split by what they are, not by what the metadata says: no batch has the reverse of an edge of
// validation or test, and the reverses that another split leaves among the messages are found.
func TestSplitAsksTheGraph(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	plain := *ds
	plain.Meta.Undirected = false
	e := links.Edges{}
	for v := range int32(ds.Nodes()) {
		for _, u := range ds.Graph.InNeighbors(v) {
			if u < v {
				e = e.Append(u, v)
			}
		}
	}
	once, err := graphops.FromEdges(ds.Nodes(), e.Src, e.Dst, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := graphops.FromEdges(ds.Nodes(), e.Src, e.Dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		t.Fatal(err)
	}
	almost, err := graphops.FromEdges(ds.Nodes(), append(e.Src, e.Dst[1:]...), append(e.Dst, e.Src[1:]...), graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*graphops.Graph{"metadata": ds.Graph, "FromEdges": made, "WithGraph": once.Undirected(0), "all but one": almost} {
		of := plain.WithGraph(g)
		s, err := links.RandomSplit(of, links.SplitOptions{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		for part, p := range map[string]links.Part{"validation": s.Val, "test": s.Test} {
			for i, u := range p.Src {
				if v := p.Dst[i]; slices.Contains(s.Message.InNeighbors(v), u) || slices.Contains(s.Message.InNeighbors(u), v) {
					t.Errorf("%s: %d and %d are joined by a message, and a pair of %s", name, u, v, part)
				}
			}
		}
		if _, err := launch(t, linkstest.Setting{Epochs: 1}, gnb.LaunchOptions{Data: of, Workers: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := gnb.Launch(t.Context(), reversed, 0, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "which is an edge of validation or test") {
		t.Errorf("the reverses of test edges among the messages give %v", err)
	}
}

// reversed makes the reverses of held-out edges messages, and verifies the batches.
var reversed = gnb.Program("test.links.reversed", func(w *gnb.Worker, _ int) error {
	split, err := links.RandomSplit(w.Dataset(), links.SplitOptions{Seed: 3})
	if err != nil {
		return err
	}
	var gone links.Edges // the held-out edges in the direction in which they are predicted
	gone = gone.Join(split.Val.Edges).Join(split.Test.Edges)
	without, err := graphops.FromEdges(w.Dataset().Nodes(), gone.Src, gone.Dst, graphops.BuildOptions{})
	if err != nil {
		return err
	}
	if split.Message, err = split.All.Without(without, 0); err != nil {
		return err
	}
	split.Training = split.Message
	loader := links.NewLoader(w, split, links.LoaderOptions{Loader: gnb.Loader{Fanouts: []int{-1, -1}}})
	for b := range loader.Batches() {
		if err := loader.Verify(b); err != nil {
			return err
		}
	}
	return nil
})
