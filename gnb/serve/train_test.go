package serve_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	_ "github.com/graphnb/graphnb/gnb/remote"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/gnb/serve"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/internal/envknob"
	"github.com/graphnb/graphnb/internal/testkit/dividedtest"
	"github.com/graphnb/graphnb/internal/testkit/servetest"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) { runtest.Main(m, nil) }

// trained holds the results by which runs are compared.
type trained struct {
	digest          string
	weights, logits []byte
	rows            *runs.FeatureRows
}

func train(t *testing.T, ds *dataset.Dataset, model gnb.AnyModel, o gnb.TrainOptions) trained {
	t.Helper()
	o.Threads, o.Seed, o.Quiet, o.RunDir, o.Digest, o.Device = 1, 3, true, filepath.Join(t.TempDir(), "run"), true, "cpu"
	o.Hidden, o.Fanouts = 8, []int{5, 3}
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	return resultOf(t, run, ds, o.Workers)
}

func resultOf(t *testing.T, run *runs.Run, ds *dataset.Dataset, workers int) trained {
	t.Helper()
	out := filepath.Join(t.TempDir(), "logits.npy")
	if _, err := gnb.Infer(t.Context(), run, ds, out, gnb.InferOptions{Workers: workers, Threads: 1, Device: "cpu", Final: true, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	r := trained{digest: run.Result.Text["digest"], rows: run.Result.Rows}
	for file, to := range map[string]*[]byte{filepath.Join(run.Dir, "model.safetensors"): &r.weights, out: &r.logits} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		*to = b
	}
	return r
}

func (a trained) compare(t *testing.T, what string, b trained) {
	t.Helper()
	switch {
	case a.digest == "" || a.digest != b.digest:
		t.Errorf("%s: the digest is %q, want %q", what, b.digest, a.digest)
	case !bytes.Equal(a.weights, b.weights):
		t.Errorf("%s: other weights", what)
	case !bytes.Equal(a.logits, b.logits):
		t.Errorf("%s: other outputs", what)
	}
}

func load(t *testing.T, address string) *dataset.Dataset {
	t.Helper()
	ds, err := gnb.Load(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ds.Close() })
	return ds
}

// typed returns a dataset with the edges and labels of ds whose nodes are of two types with features of widths of their
// own and a third without, with relations between them.
func typed(t *testing.T, ds *dataset.Dataset) *dataset.Dataset {
	n := ds.Nodes()
	s := &graphops.Schema{Nodes: []graphops.NodeType{{Name: "a", Count: n / 2}, {Name: "b", Count: n / 4}, {Name: "c", Count: n - n/2 - n/4}}}
	for i := range 18 {
		s.Relations = append(s.Relations, graphops.Relation{Src: s.Nodes[i/6].Name, Name: []string{"x", "y"}[i%2], Dst: s.Nodes[i/2%3].Name})
	}
	types, of := make([]uint16, ds.Edges()), s.NodeTypes()
	for v := range n {
		for e := ds.Graph.Indptr[v]; e < ds.Graph.Indptr[v+1]; e++ {
			u := ds.Graph.Indices[e]
			types[e] = 6*of[u] + 2*of[v] + uint16(u/3+int32(v))%2
		}
	}
	g, err := ds.Graph.WithTypes(s, types)
	if err != nil {
		t.Fatal(err)
	}
	r := ds.WithGraph(g)
	x := ds.Features
	narrow := &dataset.Matrix{Rows: n / 4, Cols: 2, F32: x.F32[:2*(n/4)]}
	r.NodeFeatures, r.Features = []dataset.NodeFeatures{{Dense: &dataset.Matrix{Rows: n / 2, Cols: x.Cols, F32: x.F32[:n/2*x.Cols]}}, {Dense: narrow}, {}}, nil
	return r
}

// wideTypes is typed where the second type has sparse features of many columns.
func wideTypes(t *testing.T, ds *dataset.Dataset) *dataset.Dataset {
	r := typed(t, ds)
	x := &dataset.Sparse{Rows: r.NodeFeatures[1].Dense.Rows, Cols: 3000, Indptr: []int64{0}}
	for v := range x.Rows {
		x.Indices = append(x.Indices, int32(v), int32(1000+v*3%2000))
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	r.NodeFeatures[1] = dataset.NodeFeatures{Sparse: x}
	return r
}

// kinds returns small datasets with each kind of features and labels.
func kinds(t *testing.T) map[string]*dataset.Dataset {
	plain, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1200, Features: 8, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	weighted, half, sparse, ones, multi := *plain, *plain, *plain, *plain, *plain
	w := make([]float32, plain.Edges())
	for i := range w {
		w[i] = float32(1+i%5) / 4
	}
	weighted.Graph = plain.Graph.WithEdgeWeights(w)
	if half.Features, err = plain.Features.Float16(); err != nil {
		t.Fatal(err)
	}
	s := &dataset.Sparse{Rows: plain.Nodes(), Cols: 30, Indptr: []int64{0}, Values: []float32{}}
	for v := range plain.Nodes() {
		for c := v % 4; c < 30; c += 1 + v%11 {
			s.Indices, s.Values = append(s.Indices, int32(c)), append(s.Values, float32(c+v%3)/8)
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	sparse.Features, sparse.SparseFeatures = nil, s
	one := *s
	one.Values = nil
	ones.Features, ones.SparseFeatures = nil, &one
	multi.Labels, multi.Meta.NumClasses = nil, 3
	multi.MultiLabels = &dataset.Multi{Rows: plain.Nodes(), Cols: 3, Data: make([]int8, 3*plain.Nodes())}
	for i := range multi.MultiLabels.Data {
		multi.MultiLabels.Data[i] = int8(i*7%5%3) - 1
	}
	edges := *plain
	x, times := &graphops.EdgeFeatures{Cols: 3, F32: make([]float32, 3*plain.Edges())}, make([]int64, plain.Edges())
	for i := range x.F32 {
		x.F32[i] = float32(i*7%31) / 31
		times[i/3] = int64(i % 101)
	}
	edges.Graph = plain.Graph.WithEdgeData(x, times)
	all := map[string]*dataset.Dataset{"typed": typed(t, plain), "wide types": wideTypes(t, plain), "edges": &edges, "weighted": &weighted, "float16": &half, "sparse": &sparse, "ones": &ones, "several labels": &multi}
	for name, ds := range all {
		ds.Meta.Name = strings.ReplaceAll(name, " ", "-")
	}
	return all
}

// Training that requests edges, features and labels from servers has, to the bit, the samples and
// weights of training on the same parts on this machine, and so has inference. This holds for any
// division of the data among servers and for any data copied beforehand. Small limits split a
// request into many.
func TestTrainAtServers(t *testing.T) {
	testneed.Raced(t, "it starts servers and trains several times")
	t.Setenv(envknob.Home.Name, t.TempDir())
	for name, ds := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			model := gnb.AnyModel(gnb.SAGE)
			switch name {
			case "edges": // this model reads the features of edges
				model = gnb.GATv2
			case "typed", "wide types":
				model = gnb.RGCN
			case "weighted":
				model = gnb.GCN
			}
			parts, bare := dividedtest.Parts(t, ds, divided.Options{}), dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
			o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, OptimizerOptions: gnb.OptimizerOptions{Batch: 128, Epochs: 2}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
			want := train(t, parts, model, o)
			limits := serve.Limits{Nodes: 100, Edges: 400, Bytes: 3000}
			a, b := servetest.Start(t, bare, serve.Options{Parts: []int{0, 3}, Limits: limits}), servetest.Start(t, bare, serve.Options{Parts: []int{1, 2}})
			both := "grpc://" + a.Addr + "," + b.Addr
			far := load(t, both)
			if far.Graph != nil || far.Features != nil || far.Bytes() > 40*int64(ds.Nodes()) {
				t.Errorf("loading copied more than splits and degrees: %v", far)
			}
			often := name == "edges" || testneed.Soak.Here() // other data take the way with most parts alone
			if often {
				want.compare(t, "divided topology", train(t, far, model, o))
			}
			o.Workers = 4
			want.compare(t, "4 workers", train(t, far, model, o))
			if ds.SparseFeatures == nil && name != "wide types" {
				o.Cache, o.Prefetch = "20%", 3
				got := train(t, far, model, o)
				want.compare(t, "a cache", got)
				if r := got.rows; r == nil || r.Cached == 0 || r.Own != 0 || r.Remote == 0 || r.Window == 0 {
					t.Errorf("the rows by source are %+v", r)
				}
				o.Cache, o.Prefetch = "", 0
			}
			whole := servetest.Start(t, parts, serve.Options{})
			want.compare(t, "copied topology", train(t, load(t, "grpc://"+whole.Addr+"?copy=topology"), model, o))
			o.Workers, o.VirtualRanks = 2, 0
			undivided := servetest.Start(t, ds, serve.Options{})
			want = train(t, ds, model, o)
			want.compare(t, "an undivided dataset", train(t, load(t, "grpc://"+undivided.Addr), model, o))
			if often {
				want.compare(t, "a copy", train(t, load(t, "grpc://"+undivided.Addr+"?copy=all"), model, o))
			}
		})
	}
}

// gives is a program that fails while its next batches wait for a server that has ended.
var gives = gnb.Program("test.serve.gives", func(w *gnb.Worker, server string) error {
	for range w.Batches("train", gnb.Loader{Fanouts: []int{5, 3}, Batch: 2, Ahead: 1000}) {
		w.Log("begun", 1)
		for { // until the server has ended
			c, err := net.Dial("tcp", server)
			if err != nil {
				break
			}
			_ = c.Close()
			time.Sleep(10 * time.Millisecond)
		}
		w.Fail(errors.New("this rank gives up"))
	}
	return nil
})

// A rank whose program fails does not wait for servers that do not answer.
func TestFailWithoutServer(t *testing.T) {
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1200, Features: 8, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := servetest.Start(t, dividedtest.Parts(t, ds, divided.Options{NoTopology: true}), serve.Options{Drain: time.Nanosecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // half of what a request is repeated for
	defer cancel()
	_, err = gnb.Launch(ctx, gives, s.Addr, gnb.LaunchOptions{
		Data:    load(t, "grpc://"+s.Addr),
		Workers: 2,
		Threads: 1,
		Quiet:   true,
		Resume:  gnb.Never,
		RunDir:  t.TempDir(),
		Events: func(e runs.Event) {
			if e.Kind == runs.KindLog {
				s.Stop()
			}
		},
	})
	if err == nil || !strings.Contains(err.Error(), "this rank gives up") || ctx.Err() != nil {
		t.Error(err)
	}
}

// A server is killed and started again while a run trains and evaluates. This delays the run, but
// the run has the same bits.
func TestTrainThroughRestarts(t *testing.T) {
	testneed.Raced(t, "waits for servers that come back")
	t.Setenv(envknob.Home.Name, t.TempDir())
	ds, err := datasets.Planted(datasets.PlantedOptions{Nodes: 1200, Features: 8, Classes: 4, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	parts := dividedtest.Parts(t, ds, divided.Options{NoTopology: true})
	o := gnb.TrainOptions{LaunchOptions: gnb.LaunchOptions{Workers: 2}, OptimizerOptions: gnb.OptimizerOptions{Batch: 32, Epochs: 4}, ModelOptions: gnb.ModelOptions{Dropout: 0.5}}
	want := train(t, parts, gnb.SAGE, o)
	a, b := servetest.Start(t, parts, serve.Options{Parts: []int{0, 1}, Drain: time.Nanosecond}), servetest.Start(t, parts, serve.Options{Parts: []int{2, 3}, Drain: time.Nanosecond})
	far := load(t, "grpc://"+a.Addr+","+b.Addr)
	restarts := 0
	o.Events = func(e runs.Event) {
		if e.Kind == runs.KindEpoch { // the workers are starting the next epoch
			at := []*servetest.Server{a, b}[restarts%2]
			at.Stop()
			time.Sleep(100 * time.Millisecond)
			at.Start()
			restarts++
		}
	}
	got := train(t, far, gnb.SAGE, o)
	if restarts < 4 {
		t.Errorf("the servers were restarted %d times", restarts)
	}
	want.compare(t, "with restarts", got)
}
