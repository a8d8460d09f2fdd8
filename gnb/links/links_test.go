package links_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

// TestMain becomes a worker if a run of these tests starts this binary as one.
func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "links")
	if err == nil {
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

// setting is the argument of the tests' program.
type setting struct {
	Decoder   string
	Loss      string
	Negatives links.NegativeOptions
	Any       bool
	Disjoint  float64
	Directed  bool
	Keep      bool   // plants a leak: a batch's own edges are messages
	Held      bool   // plants a leak: validation and test edges are messages
	Whole     bool   // full-graph training
	FailOnce  string // a file that exists after the run has failed once
}

// program trains on links, and verifies every batch.
var program = gnb.Program("test.links", func(w *gnb.Worker, s setting) error {
	ds := *w.Dataset()
	ds.Meta.Undirected = !s.Directed
	split, err := links.RandomSplit(&ds, links.SplitOptions{Val: 0.1, Test: 0.1, Disjoint: s.Disjoint, Negatives: 3, Seed: 4})
	if err != nil {
		return err
	}
	if s.Held {
		split.Message = split.All
		split.Training = split.All
	}
	loader := links.NewLoader(w, split, links.LoaderOptions{
		Loader: gnb.Loader{Fanouts: []int{5, 3}, Batch: 120}, Negatives: s.Negatives, AnyNegatives: s.Any, KeepEdges: s.Keep,
	})
	net := links.New(w, gnb.SAGE, s.Decoder, gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 16, Out: 16, Layers: 2, Dropout: 0.1})
	opt := w.Adam(net, 0.01)
	if !s.Whole {
		w.Digest()
	}
	checked, predicted := 0., 0.
	w.Keep("checked", &checked)
	step := func(b *links.Batch) error {
		if err := loader.Verify(b); err != nil {
			return err
		}
		checked++
		predicted += float64(b.Edges.Len())
		if b.Pairs.Len() != b.Edges.Len()*(1+b.PerEdge) || len(b.Src) != b.Pairs.Len() {
			return fmt.Errorf("%d edges with %d negatives each are %d pairs", b.Edges.Len(), b.PerEdge, b.Pairs.Len())
		}
		if !s.Whole {
			for i, r := range b.Src {
				if b.Seeds[r] != b.Pairs.Src[i] || b.Seeds[b.Dst[i]] != b.Pairs.Dst[i] {
					return fmt.Errorf("rows %d and %d are of other nodes than pair %d → %d", r, b.Dst[i], b.Pairs.Src[i], b.Pairs.Dst[i])
				}
			}
		}
		w.Step(loss(s.Loss, net.Score(b), b.PerEdge), opt)
		return nil
	}
	for epoch := range w.Epochs(3) {
		if s.Whole {
			if err := step(loader.Whole(epoch)); err != nil {
				return err
			}
		} else {
			for b := range loader.Batches() {
				if _, err := os.Stat(s.FailOnce); s.FailOnce != "" && epoch == 1 && b.Step == 2 && w.Rank() == 0 && err != nil {
					if err := os.WriteFile(s.FailOnce, nil, 0o600); err != nil {
						return err
					}
					return errors.New("failed once")
				}
				if err := step(b); err != nil {
					return err
				}
			}
		}
		loader.Log(loader.Evaluate(net, "val"))
	}
	m := loader.Evaluate(net, "test")
	sums := []float64{checked, predicted}
	w.AllReduce(sums)
	w.Result("checked", sums[0])
	w.Result("predicted", sums[1]/3)
	w.Result("train_edges", float64(split.Train.Len()))
	w.Result("test_auc", m.AUC)
	w.Result("test_mrr", m.MRR)
	w.Result("test_hits_1", m.Hits(1))
	w.Result("shared_hits_20", m.SharedHits(20))
	return nil
})

func loss(name string, s *nn.Tensor, k int) *nn.Loss {
	switch name {
	case "softmax":
		return links.Softmax(s, k)
	case "max-margin":
		return links.MaxMargin(s, k, 1)
	}
	return links.BCE(s, k)
}

func launch(t *testing.T, s setting, o gnb.LaunchOptions) (*runs.Run, error) {
	t.Helper()
	if o.Data == nil {
		o.Data = load(t, planted)
	}
	o.Quiet, o.Seed = true, 3
	if o.RunDir == "" && o.Resume == "" {
		o.RunDir = t.TempDir()
	}
	return gnb.Launch(t.Context(), program, s, o)
}

func weights(t *testing.T, run *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run.Dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every batch of a run is clean, whatever the decoder, the loss and the negatives; each training
// edge is predicted once per epoch, and training is better than chance.
func TestEveryBatchIsClean(t *testing.T) {
	for i, s := range []setting{
		{},
		{Decoder: "hadamard", Loss: "softmax", Negatives: links.NegativeOptions{PerEdge: 4, From: links.ByDegree75}},
		{Decoder: "bilinear", Loss: "max-margin", Negatives: links.NegativeOptions{PerEdge: 2, From: links.InBatch}},
		{Decoder: "mlp", Negatives: links.NegativeOptions{BothEnds: true}, Disjoint: 0.4},
		{Negatives: links.NegativeOptions{From: links.ByDegree}, Any: true, Directed: true},
		{Whole: true, Negatives: links.NegativeOptions{BothEnds: true}},
		{Whole: true, Disjoint: 0.5},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if i > 0 {
				testneed.NotShort(t, "it trains several times")
			}
			run, err := launch(t, s, gnb.LaunchOptions{Workers: 1 + i%2})
			if err != nil {
				t.Fatal(err)
			}
			v := run.Value
			if v("checked") == 0 || v("predicted") != v("train_edges") {
				t.Errorf("%v batches were checked, and %v of %v edges predicted per epoch", v("checked"), v("predicted"), v("train_edges"))
			}
			// Some of these settings learn little in 3 epochs, so the bound is low: 0.5 is chance.
			if !(v("test_auc") > 0.55 && v("test_auc") <= 1) && !s.Whole {
				t.Errorf("the AUC is %v", v("test_auc"))
			}
			for _, name := range []string{"test_auc", "test_mrr", "test_hits_1", "shared_hits_20"} {
				if x := v(name); !(x >= 0 && x <= 1) {
					t.Errorf("%s is %v", name, x)
				}
			}
		})
	}
}

// Planted leaks are found: a batch's own edges, and held-out edges, among the messages.
func TestPlantedLeaksAreFound(t *testing.T) {
	for want, s := range map[string]setting{
		"which is an edge that the batch predicts, or the reverse of one": {Keep: true},
		"which is an edge of validation or test":                          {Held: true},
	} {
		if _, err := launch(t, s, gnb.LaunchOptions{}); err == nil || !strings.Contains(err.Error(), "a leak: the messages of layer") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want a leak %q", s, err, want)
		}
	}
}

// The digest does not depend on workers, and the same number of virtual ranks gives the same bits.
func TestWorkersGiveEqualBits(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	for _, s := range []setting{{Decoder: "hadamard", Negatives: links.NegativeOptions{PerEdge: 2}}, {Negatives: links.NegativeOptions{From: links.InBatch}}} {
		var digest string
		var auc float64
		var bits []byte
		for _, workers := range []int{1, 2, 4} {
			run, err := launch(t, s, gnb.LaunchOptions{Workers: workers, VirtualRanks: 4 / workers, Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			if workers == 1 {
				digest, auc, bits = run.Result.Text["digest"], run.Value("test_auc"), weights(t, run)
				continue
			}
			if d := run.Result.Text["digest"]; d != digest || d == "" {
				t.Errorf("%d workers have the digest %q, and one %q", workers, d, digest)
			}
			if !bytes.Equal(weights(t, run), bits) {
				t.Errorf("%d workers have other weights than one", workers)
			}
			if got := run.Value("test_auc"); got != auc {
				t.Errorf("%d workers measure an AUC of %v, and one %v", workers, got, auc)
			}
		}
		alone, err := launch(t, s, gnb.LaunchOptions{Workers: 1, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if d := alone.Result.Text["digest"]; d != digest {
			t.Errorf("without virtual ranks the digest is %q, with them %q", d, digest)
		}
	}
}

// A run that fails within an epoch resumes to the bits of one that does not.
func TestResume(t *testing.T) {
	testneed.NotShort(t, "it trains three times")
	whole, err := launch(t, setting{FailOnce: ""}, gnb.LaunchOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := setting{FailOnce: filepath.Join(t.TempDir(), "failed")}
	if _, err := launch(t, s, gnb.LaunchOptions{Workers: 2, RunDir: dir, CheckpointEvery: 1}); err == nil || !strings.Contains(err.Error(), "failed once") {
		t.Fatalf("the first run ended with %v", err)
	}
	again, err := launch(t, s, gnb.LaunchOptions{Workers: 2, Resume: dir, CheckpointEvery: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, again), weights(t, whole)) {
		t.Error("the resumed run has other weights than one that did not fail")
	}
	if a, b := again.Value("test_auc"), whole.Value("test_auc"); a != b || math.IsNaN(a) {
		t.Errorf("the resumed run has AUC %v, the other %v", a, b)
	}
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
		"fanouts":     "links: a Loader takes Fanouts or a sampler of your own, not both",
		"split":       "links: NewLoader needs a split",
		"late":        "gnb: the graph of a worker cannot change after its first network or loop over batches",
		"many":        "pairs: PerEdge is 1048576; an edge has 1 to 65536 negatives",
		"cooperative": "gnb: BatchesOf makes no cooperative batches",
		"small":       "gnb: a graph of 9 nodes cannot replace that of planted",
		"decoder":     `pairs: there is no decoder "cosine"; choose dot, bilinear, mlp or hadamard`,
		"part":        `links: there is no part "train" to evaluate`,
	} {
		_, err := gnb.Launch(t.Context(), badOptions, which, gnb.LaunchOptions{Data: ds, Quiet: true, RunDir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", which, err, want)
		}
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
