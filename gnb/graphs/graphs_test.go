package graphs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/encode"
)

// TestMain becomes a worker if a test starts this binary as one.
func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "graphs")
	if err == nil {
		err = os.Setenv("GNB_RUNS", dir)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// rings are graphs of 6 to 14 nodes with a cycle through all of them, and half of them a chord that closes a triangle, which is
// their class: no node and no degree alone tells it, as the others have a chord too, between nodes that are farther apart. The
// target is 10 plus the number of nodes, the second target is unknown for odd graphs. Labels are "has a triangle" and "has an
// even number of nodes".
func rings(n int, seed uint64) *gnb.Dataset {
	rng := rand.New(rand.NewPCG(seed, 7))
	var src, dst []int32
	at := []int64{0}
	g := &dataset.Dataset{
		Meta: dataset.Metadata{NumClasses: 2, ClassNames: []string{"ring", "triangle"}, TargetNames: []string{"size", "half"}}, Splits: map[string][]int32{},
		Targets: &dataset.Matrix{Rows: n, Cols: 2},
	}
	var x []float32
	for i := range n {
		first, size := int32(at[i]), int32(6+rng.IntN(9))
		triangle := int32(rng.IntN(2))
		for v := range size {
			src, dst = append(src, first+v), append(dst, first+(v+1)%size)
			x = append(x, 1, rng.Float32())
		}
		src, dst = append(src, first), append(dst, first+2+(1-triangle)*(1+rng.Int32N(size-5)))
		at = append(at, int64(first+size))
		g.Labels = append(g.Labels, triangle)
		half := float32(math.NaN())
		if i%2 == 0 {
			half = float32(size) / 2
		}
		g.Targets.F32 = append(g.Targets.F32, 10+float32(size), half)
		split := []string{"train", "train", "train", "val", "test"}[i%5]
		g.Splits[split] = append(g.Splits[split], int32(i))
	}
	nodes := int(at[n])
	ds := &gnb.Dataset{Features: &dataset.Matrix{Rows: nodes, Cols: 2, F32: x}, GraphOffsets: at, Graphs: g, Splits: map[string][]int32{}}
	ds.Graph = gnb.Must(graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{Undirected: true}))
	ds.Meta.Name, ds.Meta.Undirected = "rings", true
	ds.Describe()
	return ds
}

// only returns the dataset with labels or with targets alone, and the first k targets.
func only(ds *gnb.Dataset, labels bool, k int) *gnb.Dataset {
	d, g := *ds, *ds.Graphs
	if labels {
		g.Targets, g.Meta.TargetDim, g.Meta.TargetNames = nil, 0, nil
	} else {
		g.Labels, g.Meta.NumClasses, g.Meta.ClassNames = nil, 0, nil
		y := &dataset.Matrix{Rows: g.Targets.Rows, Cols: k}
		for i := range y.Rows {
			y.F32 = append(y.F32, g.Targets.F32[2*i:2*i+k]...)
		}
		g.Targets, g.Meta.TargetDim, g.Meta.TargetNames = y, k, g.Meta.TargetNames[:k]
	}
	d.Graphs = &g
	d.Meta.Graphs = nil
	d.Describe()
	return &d
}

func quick() (o graphs.Options) {
	o.Workers, o.Threads, o.Hidden, o.Layers, o.LR, o.Epochs, o.Batch, o.Seed, o.Quiet = 1, 1, 32, 3, 0.003, 25, 64, 5, true
	o.Pool = "sum"
	return o
}

func train(t *testing.T, ds *gnb.Dataset, o graphs.Options) *runs.Run {
	t.Helper()
	if o.RunDir == "" {
		o.RunDir = filepath.Join(t.TempDir(), "run")
	}
	run, err := graphs.Train(t.Context(), ds, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// weights returns the bytes of a run's final weights, without the header, which names the run.
func weights(t *testing.T, run *runs.Run) []byte {
	t.Helper()
	b, err := os.ReadFile(run.Weights())
	if err != nil {
		t.Fatal(err)
	}
	return b[8+binary.LittleEndian.Uint64(b):]
}

// A graph network tells rings with a triangle from those without one, which a network that sees no edges cannot, and says the
// same of new graphs.
func TestLearnsStructure(t *testing.T) {
	ds := only(rings(600, 1), true, 0)
	run := train(t, ds, quick())
	if v := run.Result.Values; !(v["test_accuracy"] > 0.9) || !(v["val_accuracy"] > 0.9) || !(v["test_loss"] < 0.5) {
		t.Errorf("a GIN has the values %v", v)
	}
	blind := quick()
	blind.Model = gnb.MLP
	if v := train(t, ds, blind).Result.Values; v["test_accuracy"] > 0.7 {
		t.Errorf("an MLP has the values %v", v)
	}
	more := only(rings(300, 2), true, 0)
	truth := more.Graphs.Labels
	more.Graphs.Labels, more.Graphs.Meta.NumClasses, more.Graphs.Meta.ClassNames, more.Graphs.Splits = nil, 0, nil, map[string][]int32{}
	more.Meta.Graphs = nil
	more.Describe()
	var first *graphs.Answers
	for _, workers := range []int{1, 3} {
		a, err := graphs.Infer(t.Context(), run, more, graphs.InferOptions{InferOptions: gnb.InferOptions{Workers: workers, Threads: 1, Quiet: true}})
		if err != nil {
			t.Fatal(err)
		}
		right := 0
		for i, y := range truth {
			if class, p := a.Class(i); class == int(y) && p >= 0.5 && p <= 1 {
				right++
			}
		}
		if right < 270 || a.ClassName(1) != "triangle" || !slices.Equal(a.Columns(), []string{"ring", "triangle"}) {
			t.Errorf("%d of 300 new graphs are right, with the columns %v", right, a.Columns())
		}
		if first == nil {
			first = a
		} else if !slices.Equal(first.Rows.F32, a.Rows.F32) {
			t.Error("three workers say other things of new graphs than one")
		}
	}
	e, err := graphs.Embed(t.Context(), run, more, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true, Workers: 2}})
	if err != nil || e.Rows.Rows != 300 || e.Rows.Cols != 32 || slices.Max(e.Rows.F32) == 0 {
		t.Errorf("embeddings: %v, %v", e.Rows, err)
	}
	if _, err := graphs.Infer(t.Context(), run, only(rings(10, 3), false, 1), graphs.InferOptions{}); err != nil {
		t.Errorf("graphs with targets alone have no answer of their class: %v", err)
	}
}

// Targets are learned in their unit, with missing ones, and by quantiles that hold.
func TestLearnsNumbers(t *testing.T) {
	ds := only(rings(500, 4), false, 2)
	o := quick()
	run := train(t, ds, o)
	if v := run.Result.Values; !(v["test_mae"] < 0.5) || !(v["test_r2"] > 0.9) || !(v["test_rmse"] >= v["test_mae"]) || !(v["val_nmae"] < 0.3) {
		t.Errorf("the values are %v", v)
	}
	a, err := graphs.Infer(t.Context(), run, ds, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Columns(), []string{"size", "half"}) || math.Abs(float64(a.Row(1)[0]-ds.Graphs.Target(1)[0])) > 2 || math.Abs(float64(a.Row(1)[1]-(ds.Graphs.Target(1)[0]-10)/2)) > 1 {
		t.Errorf("graph 1 is %v, predicted %v %v", ds.Graphs.Target(1), a.Columns(), a.Row(1))
	}
	o.LossOptions = numbers.LossOptions{Loss: "quantile", Quantiles: []float64{0.1, 0.5, 0.9}, Bounded: true}
	run = train(t, only(ds, false, 1), o)
	if a, err = graphs.Infer(t.Context(), run, only(ds, false, 1), graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Columns(), []string{"size_q0.1", "size_q0.5", "size_q0.9"}) {
		t.Errorf("the columns are %v", a.Columns())
	}
	least, most := slices.Min(a.Rows.F32), slices.Max(a.Rows.F32)
	if least < 16 || most > 24 {
		t.Errorf("bounded predictions go from %v to %v", least, most)
	}
}

// A graph can have several labels, some of them unknown; graphs without nodes and features of graphs are taken.
func TestSeveralLabelsAndEmptyGraphs(t *testing.T) {
	ds := only(rings(300, 8), true, 0)
	g := *ds.Graphs
	y := &dataset.Multi{Rows: 301, Cols: 2}
	g.Features = &dataset.Matrix{Rows: 301, Cols: 1}
	for i, c := range g.Labels {
		even := int8(1 - (ds.GraphOffsets[i+1]-ds.GraphOffsets[i])%2)
		g.Features.F32 = append(g.Features.F32, float32(even))
		if i%7 == 0 {
			even = -1
		}
		y.Data = append(y.Data, int8(c), even)
	}
	y.Data, g.Features.F32 = append(y.Data, 0, 1), append(g.Features.F32, 1)
	g.Labels, g.MultiLabels, g.Meta.ClassNames = nil, y, nil
	g.Splits = map[string][]int32{"train": append(slices.Clone(g.Splits["train"]), 300), "val": g.Splits["val"]}
	d := *ds
	d.Graphs, d.GraphOffsets, d.Meta.Graphs = &g, append(slices.Clone(ds.GraphOffsets), ds.GraphOffsets[300]), nil
	d.Describe()
	o := quick()
	o.Metric, o.Workers = "auc", 2
	run := train(t, &d, o)
	if v := run.Result.Values; !(v["val_auc"] > 0.8) {
		t.Errorf("the values are %v", v)
	}
	a, err := graphs.Infer(t.Context(), run, &d, graphs.InferOptions{InferOptions: gnb.InferOptions{Quiet: true}})
	if err != nil || a.Rows.Rows != 301 || !a.Several() {
		t.Errorf("answers %v: %v", a, err)
	}
}

// Runs with the same workers × virtual ranks have the same weights to the bit: with batch norm, dropout and a last batch that is
// smaller, whatever the poolings.
func TestWorkersHaveTheSameBits(t *testing.T) {
	ds := only(rings(150, 9), true, 0)
	for _, pool := range []string{"mean", "attention", "set2set"} {
		var want []byte
		for _, workers := range []int{1, 2, 4} {
			o := quick()
			o.Pool, o.Norm, o.Dropout, o.Epochs, o.Batch = pool, "batch", 0.3, 3, 32
			o.Workers, o.VirtualRanks, o.VirtualNode = workers, 4/workers, pool == "mean"
			run := train(t, ds, o)
			got := weights(t, run)
			if want == nil {
				want = got
			} else if !bytes.Equal(want, got) {
				t.Errorf("pool %s: %d workers have other weights than one with four virtual ranks", pool, workers)
			}
		}
	}
}

// Training draws signs of Laplacian eigenvectors, the same for any number of workers, unless KeepSigns is set.
func TestTrainingDrawsSigns(t *testing.T) {
	ds, err := encode.Add(t.Context(), only(rings(80, 11), true, 0), encode.Options{Laplacian: 3})
	if err != nil {
		t.Fatal(err)
	}
	run := func(workers int, keep bool) []byte {
		o := quick()
		o.Epochs, o.Workers, o.VirtualRanks, o.KeepSigns = 2, workers, 2/workers, keep
		return weights(t, train(t, ds, o))
	}
	drawn := run(1, false)
	if !bytes.Equal(drawn, run(2, false)) {
		t.Error("two workers draw other signs than one")
	}
	if bytes.Equal(drawn, run(1, true)) {
		t.Error("no signs are drawn")
	}
}

// The rates of a run count graphs.
func TestRatesCountGraphs(t *testing.T) {
	ds, o := only(rings(60, 3), true, 0), quick()
	o.Epochs, o.Workers, o.Batch = 2, 2, 8
	run := train(t, ds, o)
	counted := int64(0)
	for _, n := range run.Result.WorkerSeeds {
		counted += n
	}
	if graphs := int64(o.Epochs * len(ds.Graphs.Splits["train"])); counted != graphs {
		t.Errorf("the workers counted %d; there were %d graphs", counted, graphs)
	}
}

func TestWrongDataIsRefused(t *testing.T) {
	ds := rings(40, 10)
	labels := only(ds, true, 0)
	with := func(d *gnb.Dataset, change func(d, g *gnb.Dataset)) *gnb.Dataset {
		c, g := *d, *d.Graphs
		c.Graphs, c.Meta.Graphs = &g, nil
		change(&c, &g)
		c.Describe()
		return &c
	}
	equal := with(only(ds, false, 1), func(_, g *gnb.Dataset) {
		g.Targets = &dataset.Matrix{Rows: 40, Cols: 1, F32: slices.Repeat([]float32{2.5}, 40)}
	})
	for _, c := range []struct {
		why  string
		ds   *gnb.Dataset
		set  func(o *graphs.Options)
		want string
	}{
		{"one graph", &gnb.Dataset{Graph: ds.Graph, Features: ds.Features, Meta: dataset.Metadata{Name: "one"}}, nil, "one graph, not a dataset of many"},
		{"labels and targets", ds, nil, "say which to predict"},
		{"equal targets", equal, nil, "is 2.5 for all 24 training graphs"},
		{"unknown targets", with(equal, func(_, g *gnb.Dataset) {
			g.Targets = &dataset.Matrix{Rows: 40, Cols: 1, F32: slices.Repeat([]float32{float32(math.NaN())}, 40)}
		}), nil, "unknown (NaN) for all 24"},
		{"unknown labels", with(labels, func(_, g *gnb.Dataset) { g.Labels = slices.Repeat([]int32{-1}, 40) }), nil, "none of the 24 graphs"},
		{"no training split", with(labels, func(_, g *gnb.Dataset) { g.Splits = map[string][]int32{} }), nil, `"train"`},
		{"a pooling that is none", labels, func(o *graphs.Options) { o.Pool = "median" }, "attention"},
		{"a loss of labels", labels, func(o *graphs.Options) { o.Loss = "huber" }, "for targets"},
		{"a metric of numbers for labels", labels, func(o *graphs.Options) { o.Metric = "mae" }, "mae"},
		{"targets that are not there", labels, func(o *graphs.Options) { o.Predict = "targets" }, "no targets to learn"},
		{"learned rows", labels, func(o *graphs.Options) { o.Embedding = 8 }, "other graphs"},
	} {
		o := quick()
		o.Epochs = 1
		if c.set != nil {
			c.set(&o)
		}
		if _, err := graphs.Train(t.Context(), c.ds, o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if _, err := graphs.Train(t.Context(), &gnb.Dataset{Graph: ds.Graph, Features: ds.Features, Meta: dataset.Metadata{Name: "one"}}, quick()); !errors.Is(err, dataset.ErrNoGraphs) {
		t.Errorf("the error is no ErrNoGraphs: %v", err)
	}
	o := quick()
	o.Epochs, o.LR = 5, 1e30
	if _, err := graphs.Train(context.Background(), labels, o); !errors.Is(err, gnb.ErrNotFinite) {
		t.Errorf("a learning rate of 1e30: %v", err)
	}
}
