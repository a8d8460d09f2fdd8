package links_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/testneed"
)

// quick are options of a run that takes about a second.
func quick(t *testing.T) links.Options {
	return links.Options{
		OptimizerOptions: gnb.OptimizerOptions{Epochs: 6, Batch: 256},
		LaunchOptions: gnb.LaunchOptions{
			Workers:         1,
			Threads:         1,
			Quiet:           true,
			RunDir:          t.TempDir(),
			CheckpointEvery: -1,
		},
		ModelOptions: gnb.ModelOptions{Hidden: 16},
		Model:        gnb.GCN,
	}
}

// With recall_K the run has the recall and NDCG of the network and of the baselines, with equal bits for
// any number of workers, and the events have those of each evaluation.
func TestTrainByRecall(t *testing.T) {
	ds := load(t, planted)
	var values map[string]float64
	for _, workers := range []int{1, 2} {
		if workers == 2 {
			testneed.NotShort(t, "it trains twice")
		}
		o := quick(t)
		o.Metric, o.Workers, o.VirtualRanks = "recall_20", workers, 2/workers
		var seen []string
		o.Events = func(e runs.Event) {
			if e.Kind == runs.KindMetrics {
				seen = seen[:0]
				for _, v := range e.Values {
					seen = append(seen, v.Name)
				}
			}
		}
		run, err := links.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"test_recall_20", "test_ndcg_20", "test_ap", "test_auc"}; !slices.Equal(seen, want) {
			t.Errorf("an evaluation reports %v, want %v", seen, want)
		}
		for _, name := range []string{"val_recall_20", "val_ndcg_20", "test_recall_20", "test_ndcg_20", "adamic_adar_recall_20", "common_neighbours_ndcg_20", "resource_allocation_recall_20", "test_auc", "best_epoch"} {
			if x := run.Value(name); !(x > 0 && x <= 1) && name != "best_epoch" {
				t.Errorf("%s is %v", name, x)
			}
			if workers == 2 && run.Value(name) != values[name] {
				t.Errorf("%s is %v with two workers and %v with one", name, run.Value(name), values[name])
			}
		}
		if chance := 20. / 399; run.Value("test_recall_20") < 1.5*chance {
			t.Errorf("the recall is %v, and %v is chance", run.Value("test_recall_20"), chance)
		}
		values = run.Result.Values
		if !strings.Contains(run.String(), "test recall 20 0.") {
			t.Errorf("the run's text lacks its recall: %v", run)
		}
	}
}

// top evaluates an untrained network, and computes recall and NDCG again from their definition, with all
// scores in a matrix.
var top = gnb.Program("test.links.top", func(w *gnb.Worker, directed bool) error {
	ds := *w.Dataset()
	if directed { // some pairs have one direction, and some both
		var e links.Edges
		for v := range int32(ds.Nodes()) {
			for _, u := range ds.Graph.InNeighbors(v) {
				if u > v && (u+v)%3 != 0 {
					e = e.Append(u, v)
				}
			}
		}
		gone, err := graphops.FromEdges(ds.Nodes(), e.Src, e.Dst, graphops.BuildOptions{})
		if err != nil {
			return err
		}
		if ds.Graph, err = ds.Graph.Without(gone, 0); err != nil {
			return err
		}
	}
	split, err := links.RandomSplit(&ds, links.SplitOptions{Val: 0.1, Test: 0.2, Seed: 4})
	if err != nil {
		return err
	}
	l := links.NewLoader(w, split, links.LoaderOptions{})
	net := links.New(w, gnb.SAGE, "bilinear", gnb.ModelConfig{In: ds.FeatureDim(), Hidden: 8, Out: 8, Layers: 1})
	m := l.EvaluateTop(net, "test", 15)
	if x, err := m.Value("recall_15"); err != nil || x != m.Recall {
		return fmt.Errorf("the metric recall_15 is %v, %v", x, err)
	}
	if _, err := m.Value("recall_10"); err == nil {
		return fmt.Errorf("a recall of other nodes than were evaluated is no error")
	}
	// Scores of all pairs, by an evaluation with them as negatives.
	n := int32(ds.Nodes())
	var all links.Edges
	for u := range n {
		for v := range n {
			all = all.Append(u, v)
		}
	}
	scores := l.Score(net, all)
	recall, ndcg, users := 0., 0., 0.
	test := split.Test.Edges.Join(split.Test.Reverses)
	for u := range n {
		relevant := map[int32]bool{}
		for i, src := range test.Src {
			if dst := test.Dst[i]; src == u {
				relevant[dst] = true
			} else if dst == u && !directed {
				relevant[src] = true
			}
		}
		if len(relevant) == 0 {
			continue
		}
		var ranked []int32
		for v := range n {
			if v != u && !slices.Contains(split.Training.InNeighbors(v), u) {
				ranked = append(ranked, v)
			}
		}
		row := scores[u*n : (u+1)*n]
		slices.SortStableFunc(ranked, func(a, b int32) int {
			switch {
			case row[a] > row[b]:
				return -1
			case row[a] < row[b]:
				return 1
			}
			return 0
		})
		hits, gain, best := 0., 0., 0.
		for i, v := range ranked[:15] {
			if relevant[v] {
				hits++
				gain += 1 / math.Log2(float64(i)+2)
			}
			if i < len(relevant) {
				best += 1 / math.Log2(float64(i)+2)
			}
		}
		recall, ndcg, users = recall+hits/float64(len(relevant)), ndcg+gain/best, users+1
	}
	if math.Abs(m.Recall-recall/users) > 1e-9 || math.Abs(m.NDCG-ndcg/users) > 1e-9 {
		return fmt.Errorf("recall %v and NDCG %v, by the definition %v and %v", m.Recall, m.NDCG, recall/users, ndcg/users)
	}
	return nil
})

func TestRecallIsAsDefined(t *testing.T) {
	ds := load(t, planted)
	for _, directed := range []bool{false, true} {
		if _, err := gnb.Launch(t.Context(), top, directed, gnb.LaunchOptions{Data: ds, Workers: 2, Quiet: true, RunDir: t.TempDir()}); err != nil {
			t.Errorf("directed %v: %v", directed, err)
		}
	}
}

// The test edges are scored with the weights of the best epoch, and the final weights are those of a run
// that scores nothing.
func TestTestIsScoredAtTheBestEpoch(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	o := quick(t)
	o.LR, o.Epochs = 0.2, 12 // the best epoch is not the last
	run, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	best := int(run.Value("best_epoch"))
	if best == o.Epochs-1 {
		t.Fatal("the best epoch is the last: the test shows nothing")
	}
	short := o
	short.RunDir, short.Epochs, short.EvalEvery = t.TempDir(), best+1, best+1
	until, err := links.Train(t.Context(), ds, short)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"val_auc", "test_auc", "test_ap"} {
		if a, b := run.Value(name), until.Value(name); a != b || math.IsNaN(a) {
			t.Errorf("%s is %v, and %v in a run that ends at the best epoch %d", name, a, b, best)
		}
	}
	none := o
	none.RunDir, none.Eval = t.TempDir(), "none"
	plain, err := links.Train(t.Context(), ds, none)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, plain)) {
		t.Error("scoring the test edges changes the final weights")
	}
	if !math.IsNaN(plain.Value("test_auc")) {
		t.Error("a run without evaluation has a test AUC")
	}
}

// A graph without features learns a row for each node, in mini-batches and on the whole graph, with
// equal bits for any number of workers.
func TestTrainEmbedding(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := *load(t, planted)
	ds.Features = nil
	for _, full := range []bool{false, true} {
		var bits []byte
		for _, workers := range []int{1, 2} {
			o := quick(t)
			o.Embedding, o.FullGraph, o.Epochs, o.EvalEvery, o.Workers, o.VirtualRanks = 8, full, 40, 10, workers, 2/workers
			run, err := links.Train(t.Context(), &ds, o)
			if err != nil {
				t.Fatal(err)
			}
			if workers == 1 {
				bits = weights(t, run)
			}
			if !bytes.Equal(bits, weights(t, run)) {
				t.Errorf("full graph %v: two workers have other weights than one with two virtual ranks", full)
			}
			if auc := run.Value("test_auc"); !(auc > 0.55) {
				t.Errorf("full graph %v: the AUC is %v, and 0.5 is chance", full, auc)
			}
		}
	}
	o := quick(t)
	if _, err := links.Train(t.Context(), &ds, o); err == nil || !strings.Contains(err.Error(), "learn a row for each node instead (Embedding") {
		t.Errorf("a dataset without features gives %v", err)
	}
}

// timed is the karate club, whose edges have the time at which the younger member joined.
func timed(t *testing.T) *gnb.Dataset {
	ds := *load(t, "karate")
	times := make([]int64, ds.Graph.NumEdges())
	for v := range int32(ds.Nodes()) {
		for i, u := range ds.Graph.InNeighbors(v) {
			times[ds.Graph.Indptr[v]+int64(i)] = int64(max(u, v))
		}
	}
	ds.Graph = ds.Graph.WithEdgeData(nil, times)
	return &ds
}

// A run splits by time and by given edges, and its options are those that it was given.
func TestTrainSplits(t *testing.T) {
	ds := timed(t)
	o := quick(t)
	o.SplitBy, o.Val, o.Test, o.KnownMessages = "time", 0.2, 0.2, true
	run, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	had, err := links.OptionsOf(run)
	if err != nil || had.SplitBy != "time" || !had.KnownMessages || len(had.Times) != 2 || had.Times[0] >= had.Times[1] {
		t.Errorf("the run was split by %q at %v, %v", had.SplitBy, had.Times, err)
	}
	again := had
	again.RunDir, again.Quiet, again.CheckpointEvery = t.TempDir(), true, -1
	same, err := links.Train(t.Context(), ds, again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, same)) || string(run.Config.Args) != string(same.Config.Args) {
		t.Errorf("a run with the options of a run differs from it: %s, and %s", run.Config.Args, same.Config.Args)
	}
	again.KnownMessages, again.RunDir = false, t.TempDir()
	without, err := links.Train(t.Context(), ds, again)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(weights(t, run), weights(t, without)) || run.Value("test_auc") == without.Value("test_auc") {
		t.Errorf("with known messages training should be the same and the test another; the AUCs are %v and %v", run.Value("test_auc"), without.Value("test_auc"))
	}
	val, test := filepath.Join(t.TempDir(), "val.csv"), filepath.Join(t.TempDir(), "test.csv")
	for path, text := range map[string]string{val: "0,1\n", test: "source,target\n2,0\n32,33\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o = quick(t)
	o.ValEdges, o.TestEdges, o.EvalNegatives = val, test, 3
	given, err := links.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	if had, err := links.OptionsOf(given); err != nil || had.SplitBy != "given" || had.ValEdges != val || had.TestEdges != test {
		t.Errorf("the run has the options %+v, %v", had, err)
	}
	if err := os.WriteFile(test, []byte("2,34\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.RunDir = t.TempDir()
	if _, err := links.Train(t.Context(), ds, o); err == nil || !strings.Contains(err.Error(), "edge 0 of the test edges is 2 → 34, but the graph has the nodes 0 to 33") {
		t.Errorf("a given edge out of range gives %v", err)
	}
}
