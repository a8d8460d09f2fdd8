package links_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/linkstest"
	"github.com/graphnb/graphnb/internal/testneed"
)

// eighths divides a dataset into 8 parts by a hash of the nodes' ids.
func eighths(t *testing.T, ds *gnb.Dataset, o divided.Options) *gnb.Dataset {
	return dividedtest.PartsBy(t, ds, 8, func(v int32) int { return sample.Owner(v, 8) }, o)
}

// onParts are ways to train on 8 parts, of which each virtual rank has one. With Cache each worker has the
// features of its own parts alone, as on a machine of its own.
var onParts = map[string]gnb.LaunchOptions{
	"1 worker": {Workers: 1}, "2 workers": {Workers: 2, Threads: 2}, "4 workers": {Workers: 4},
	"2 workers that ask": {Workers: 2, PlaneOptions: gnb.PlaneOptions{Cache: "20%", Prefetch: 3}}, "4 workers that ask": {Workers: 4, PlaneOptions: gnb.PlaneOptions{Cache: "0"}},
}

// alike compares the samples, weights, losses, metrics and results of two runs, to the bit.
func alike(t *testing.T, what string, got, want *runs.Run, whole bool) {
	t.Helper()
	if a, b := got.Result.Text["digest"], want.Result.Text["digest"]; a != b || a == "" && !whole {
		t.Errorf("%s: the digest is %q, want %q", what, a, b)
	}
	if !bytes.Equal(weights(t, got), weights(t, want)) {
		t.Errorf("%s: other weights", what)
	}
	a, err1 := got.Losses()
	b, err2 := want.Losses()
	if err1 != nil || err2 != nil || !slices.Equal(a, b) || len(a) == 0 {
		t.Errorf("%s: the losses of %d and %d steps differ, %v, %v", what, len(a), len(b), err1, err2)
	}
	if a, b := evaluations(t, got), evaluations(t, want); a != b {
		t.Errorf("%s: the evaluations are\n%swant\n%s", what, a, b)
	}
	sameValues(t, what, got, want)
}

// A run on parts samples, predicts, learns and measures what a run on the undivided dataset does, to the
// bit, with every loader; each of its batches is checked for leaks.
func TestOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	parts := eighths(t, load(t, planted), divided.Options{})
	for i, s := range promised(linkstest.Parts) {
		if !inTurn(i, 2) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			want := undivided(t, s.Setting)
			s.Epochs = 2
			for name, o := range onParts {
				if i > 0 && name != []string{"2 workers", "4 workers that ask"}[i%2] {
					continue
				}
				o.Data = parts
				got := launched(t, name, s.Setting, o)
				alike(t, name, got, want, false)
				if v := got.Value; v("checked") != want.Value("checked") || v("checked") == 0 || v("predicted") != v("train_edges") {
					t.Errorf("%s: %v batches were checked, want %v", name, v("checked"), want.Value("checked"))
				}
				if asks := strings.Contains(name, "ask"); asks != (got.Result.Rows != nil && got.Result.Rows.Remote > 0) {
					t.Errorf("%s: the rows of features are %+v", name, got.Result.Rows)
				}
			}
		})
	}
}

// Planted leaks are found on parts too.
func TestPlantedLeaksOnParts(t *testing.T) {
	parts := eighths(t, load(t, planted), divided.Options{})
	for want, s := range map[string]linkstest.Setting{
		"which is an edge that the batch predicts, or the reverse of one": {KeepEdges: true}, "which is an edge of validation or test": {HeldOut: true},
	} {
		if _, err := launch(t, s, gnb.LaunchOptions{Data: parts, Workers: 2}); err == nil || !strings.Contains(err.Error(), "a leak: the messages of layer") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a leak %q", err, want)
		}
	}
}

// withEdges is the planted dataset with features and times of edges.
func withEdges(t *testing.T) *gnb.Dataset {
	ds := *load(t, planted)
	x, times := &graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 3*ds.Edges())}, make([]int64, ds.Edges())
	for v := range int32(ds.Nodes()) {
		for e := ds.Graph.Indptr[v]; e < ds.Graph.Indptr[v+1]; e++ { // the same for both directions
			k := int(v + ds.Graph.Indices[e])
			times[e] = int64(k * 7 % 101)
			for c := range 3 {
				x.F32[int(3*e)+c] = float32(k*(c+5)%31) / 31
			}
		}
	}
	ds.Graph = ds.Graph.WithEdgeData(x, times)
	return &ds
}

// Train, Score, Recommend and Infer on parts give, to the bit, the metrics and files that they give on the
// undivided dataset: with dense, half and sparse features, with features of edges, with a split by time, and
// with learned rows. Without GNB_SOAK, only one of these is tried with each number of workers.
func TestTrainOnParts(t *testing.T) {
	plain := load(t, planted)
	half, sparse := *plain, *plain
	var err error
	if half.Features, err = plain.Features.Float16(); err != nil {
		t.Fatal(err)
	}
	sparse.Features, sparse.SparseFeatures = nil, sparseFeatures(plain.Nodes())
	edges := withEdges(t)
	base := links.Options{LaunchOptions: gnb.LaunchOptions{Threads: 1, Seed: 3, Quiet: true, Device: "cpu"}, OptimizerOptions: gnb.OptimizerOptions{Epochs: 2, Batch: 200}, ModelOptions: gnb.ModelOptions{Hidden: 8}, SamplerOptions: gnb.SamplerOptions{Fanouts: []int{5, 3}, Digest: true}}
	for name, c := range map[string]struct {
		ds      *gnb.Dataset
		workers []int
		o       links.Options
	}{
		"dense":             {plain, []int{1, 2, 4}, with(base, func(o *links.Options) { o.Metric, o.KnownMessages, o.Disjoint = "recall_5", true, 0.3 })},
		"half":              {&half, []int{2}, with(base, func(o *links.Options) { o.Model = gnb.GCN })},
		"sparse":            {&sparse, []int{2}, base},
		"features of edges": {edges, []int{2}, with(base, func(o *links.Options) { o.Model, o.SplitBy = gnb.GATv2, "time" })},
		"learned rows":      {plain, []int{4}, with(base, func(o *links.Options) { o.Embedding, o.Decoder = 8, "bilinear" })},
	} {
		t.Run(name, func(t *testing.T) {
			testneed.NotShort(t, "it trains several times")
			train := func(ds *gnb.Dataset, workers, virtual int, cache string) linkFiles {
				c.o.Workers, c.o.VirtualRanks, c.o.RunDir, c.o.Cache = workers, virtual, t.TempDir(), cache
				run, err := links.Train(t.Context(), ds, c.o)
				if err != nil {
					t.Fatalf("%d workers on %s: %v", workers, ds.Name(), err)
				}
				return filesOf(t, run, ds, workers, true)
			}
			parts := eighths(t, c.ds, divided.Options{})
			want := train(c.ds, 1, 8, "")
			if envknob.Soak.On() {
				c.workers = []int{1, 2, 4}
			}
			for _, workers := range c.workers {
				cache := ""
				if workers == 2 && name != "sparse" && name != "learned rows" {
					cache = "10%"
				}
				got := train(parts, workers, 0, cache)
				what := fmt.Sprint(workers, " workers")
				alike(t, what, got.run, want.run, false)
				for j, b := range got.files {
					if !bytes.Equal(b, want.files[j]) || len(b) == 0 {
						t.Errorf("%s: file %d of inference differs", what, j)
					}
				}
			}
		})
	}
}

// sparseFeatures are features of which each node has a few.
func sparseFeatures(nodes int) *dataset.Sparse {
	s := &dataset.Sparse{Rows: nodes, Cols: 30, Indptr: []int64{0}, Values: []float32{}}
	for v := range nodes {
		for c := v % 4; c < 30; c += 1 + v%11 {
			s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, float32(c+v%3)/8)
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	return s
}

// linkFiles are a run and what inference with it gives.
type linkFiles struct {
	run   *runs.Run
	files [][]byte // embeddings; scores and recommendations, by all edges and by the training edges
}

func filesOf(t *testing.T, run *runs.Run, ds *gnb.Dataset, workers int, recommends bool) linkFiles {
	t.Helper()
	f := linkFiles{run: run}
	out := filepath.Join(t.TempDir(), "embeddings.npy")
	for _, training := range []bool{false, true} {
		o := links.InferOptions{InferOptions: gnb.InferOptions{Workers: workers, Threads: 1, Quiet: true, Device: "cpu"}, Training: training}
		if _, err := links.Infer(t.Context(), run, ds, out, o); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		s, err := links.Score(t.Context(), run, ds, links.Edges{Src: []int32{0, 5, 399}, Dst: []int32{7, 2, 0}}, o)
		if err != nil {
			t.Fatal(err)
		}
		f.files = append(f.files, b, fmt.Append(nil, s.Values))
		if !recommends {
			continue
		}
		r, err := links.Recommend(t.Context(), run, ds, []int32{3, 9, 200}, 4, links.RecommendOptions{InferOptions: o, ExcludeKnown: true})
		if err != nil {
			t.Fatal(err)
		}
		f.files = append(f.files, fmt.Append(nil, r.IDs, r.Scores))
	}
	return f
}

// Embeddings without labels on parts have the bits of those on the undivided dataset.
func TestEmbedOnParts(t *testing.T) {
	testneed.NotShort(t, "it trains several times")
	ds := load(t, planted)
	parts := eighths(t, ds, divided.Options{})
	for _, e := range embeddings() {
		var files [][]byte
		for i, on := range []*gnb.Dataset{ds, parts, parts} {
			o := e.small(t, []int{1, 2, 4}[i])
			if i == 0 {
				o.VirtualRanks = 8
			}
			run, err := links.Embed(t.Context(), on, o)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(run.Dir, "embeddings.npy"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, b)
		}
		if !bytes.Equal(files[0], files[1]) || !bytes.Equal(files[0], files[2]) {
			t.Errorf("%s: the embeddings differ", e.name)
		}
	}
}

// With features on disk, an evaluation computes with the message edges alone, as with features in memory.
func TestFeaturesOnDisk(t *testing.T) {
	ds := load(t, planted)
	dir := filepath.Join(t.TempDir(), "data")
	if err := dataset.Write(dir, ds); err != nil {
		t.Fatal(err)
	}
	stored := load(t, dir)
	for _, known := range []bool{false, true} {
		if known {
			testneed.NotShort(t, "other messages")
		}
		s := linkstest.Setting{Epochs: 1, KnownMessages: known}
		want, err := launch(t, s, gnb.LaunchOptions{Data: stored, Workers: 2, PlaneOptions: gnb.PlaneOptions{Features: "memory"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := launch(t, s, gnb.LaunchOptions{Data: stored, Workers: 2, PlaneOptions: gnb.PlaneOptions{Features: "disk"}, Device: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		alike(t, "features on disk", got, want, false)
	}
}

// Runs that need what parts do not have are refused in a sentence.
func TestRefusedOnParts(t *testing.T) {
	ds := load(t, planted)
	_, err := links.Train(t.Context(), eighths(t, ds, divided.Options{}), links.Options{FullGraph: true})
	if want := "FullGraph reads the features of all nodes in each step"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// with returns options that set has changed.
func with(o links.Options, set func(o *links.Options)) links.Options {
	set(&o)
	return o
}
