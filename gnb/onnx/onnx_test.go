package onnx_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/graphs"
	"github.com/graphnb/graphnb/gnb/internal/runtest"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/onnx"
	"github.com/graphnb/graphnb/gnb/predict"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/testneed"
)

func TestMain(m *testing.M) { runtest.MainWithRuns(m) }

const nodes = 150

// world says what a random dataset has.
type world struct{ sparse, weights, edgeFeatures, types, labels, targets, bare, missing bool }

// dataset makes a random dataset. Node 0 has no edges.
func (w world) dataset(t *testing.T) *gnb.Dataset {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 1))
	s := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "user", Count: 90}, {Name: "item", Count: 60}},
		Relations: []graphops.Relation{{Src: "user", Name: "buys", Dst: "item"}, {Src: "item", Name: "sold", Dst: "user"}, {Src: "user", Name: "knows", Dst: "user"}},
	}
	var src, dst []int32
	var d graphops.EdgeData
	starts := s.Starts()
	for range 600 {
		u, v := 1+r.Int32N(nodes-1), 1+r.Int32N(nodes-1)
		if w.types {
			rel := r.IntN(3)
			a, b := s.Ends(rel)
			u, v = int32(starts[a]+1+r.IntN(s.Nodes[a].Count-1)), int32(starts[b]+1+r.IntN(s.Nodes[b].Count-1))
			d.Types = append(d.Types, uint16(rel))
		}
		src, dst = append(src, u), append(dst, v)
		if w.weights {
			d.Weights = append(d.Weights, 0.2+r.Float32())
		}
		if w.edgeFeatures {
			if d.Features == nil {
				d.Features = &graphops.EdgeFeatures{Cols: 3}
			}
			d.Features.F32 = append(d.Features.F32, r.Float32(), r.Float32(), -r.Float32())
		}
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, d, graphops.BuildOptions{})
	if err == nil && w.types {
		g, err = g.WithTypes(s, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	const cols = 12
	ds := &gnb.Dataset{Graph: g, Splits: map[string][]int32{}, Labels: make([]int32, nodes)}
	x := &dataset.Matrix{Rows: nodes, Cols: cols, F32: make([]float32, nodes*cols)}
	for i := range x.F32 {
		if (!w.sparse || r.IntN(4) == 0) && (!w.missing || i < s.Nodes[0].Count*cols) {
			x.F32[i] = r.Float32()
		}
	}
	switch {
	case w.bare:
	case w.sparse:
		sp := &graphops.Sparse{Rows: nodes, Cols: cols, Indptr: []int64{0}, Values: []float32{}}
		for v := range nodes {
			for c, y := range x.Row(v) {
				if y != 0 {
					sp.Indices, sp.Values = append(sp.Indices, int32(c)), append(sp.Values, y)
				}
			}
			sp.Indptr = append(sp.Indptr, int64(len(sp.Indices)))
		}
		ds.SparseFeatures = sp
	default:
		ds.Features = x
	}
	m := &ds.Meta
	m.Name, m.NumClasses, m.ClassNames = "world", 3, []string{"low", "mid", "high"}
	for v := range int32(nodes) {
		ds.Labels[v] = r.Int32N(3)
		split := []string{"train", "train", "val", "test"}[v%4]
		ds.Splits[split] = append(ds.Splits[split], v)
	}
	if w.labels {
		ds.Labels, ds.MultiLabels = nil, &dataset.Multi{Rows: nodes, Cols: 3, Data: make([]int8, 3*nodes)}
		for i := range ds.MultiLabels.Data {
			ds.MultiLabels.Data[i] = int8(r.IntN(2))
		}
		ds.Meta.MultiLabel = true
	}
	if w.targets {
		ds.Targets = &dataset.Matrix{Rows: nodes, Cols: 2, F32: make([]float32, 2*nodes)}
		for i := range ds.Targets.F32 {
			ds.Targets.F32[i] = 1000 + 300*float32(r.NormFloat64())
		}
	}
	return ds
}

func options() (o gnb.TrainOptions) {
	o.Workers, o.Threads, o.Hidden, o.Layers, o.Epochs, o.Seed, o.Quiet = 1, 1, 16, 2, 2, 3, true
	return o
}

func train(t *testing.T, w world, model gnb.AnyModel, change func(o *gnb.TrainOptions)) (*runs.Run, *gnb.Dataset) {
	t.Helper()
	ds, o := w.dataset(t), options()
	if o.RunDir = filepath.Join(t.TempDir(), "run"); change != nil {
		change(&o)
	}
	run, err := gnb.Train(t.Context(), ds, model, o)
	if err != nil {
		t.Fatal(err)
	}
	return run, ds
}

// compare are the lines of docs/onnx.md, for any number of models.
const compare = `
import sys, numpy as np, onnx, onnxruntime as ort
for file in sys.argv[1:]:
    onnx.checker.check_model(onnx.load(file + ".onnx"), full_check=True)
    o = ort.SessionOptions(); o.intra_op_num_threads = 1; o.log_severity_level = 3
    model = ort.InferenceSession(file + ".onnx", o)
    example = np.load(file + ".npz")
    inputs = {i.name: example[i.name] for i in model.get_inputs()}
    compared = 0
    for out, got in zip(model.get_outputs(), model.run(None, inputs)):
        if "expected_" + out.name in example:
            want = example["expected_" + out.name]
            far = np.abs(got - want).max() / np.abs(want).max()
            compared += 1
            if got.shape != want.shape or not far <= 1e-5:
                print("FAR", file, out.name, far, got.shape, want.shape)
    if compared == 0: print("FAR", file, "has nothing to compare")
    meta = model.get_modelmeta().custom_metadata_map
    print(file.split("/")[-1], [i.name for i in model.get_inputs()], [o.name for o in model.get_outputs()], meta["kind"], meta.get("columns"))
`

// Models of runs of all tasks of nodes give in ONNX Runtime what package predict answers, for several nodes together: one without edges,
// with all neighbours and with some.
func TestRunsInRuntime(t *testing.T) {
	testneed.NotShort(t, "it starts ONNX Runtime")
	python := testneed.PythonWith(t, "onnx, onnxruntime")
	dir := t.TempDir()
	var files []string
	of := []string{"0", "7", "44", "101", "7", "149"}
	check := func(name string, run *runs.Run, ds *gnb.Dataset, o predict.Options) {
		t.Helper()
		o.Quiet = true
		e, err := onnx.Export(t.Context(), run, ds, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		defer e.Close()
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		x, err := e.Example(t.Context(), of...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if err := e.WriteFile(file + ".onnx"); err != nil {
			t.Fatal(err)
		}
		if err := x.WriteFile(file + ".npz"); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	nodes := func(name string, w world, m gnb.AnyModel, change func(o *gnb.TrainOptions), p predict.Options) {
		t.Helper()
		run, ds := train(t, w, m, change)
		check(name, run, ds, p)
	}
	nodes("sage", world{}, gnb.SAGE, nil, predict.Options{})
	nodes("sage fanouts", world{}, gnb.SAGE, nil, predict.Options{Fanouts: []int{2, 2}, Seed: 4})
	nodes("sage final hidden layer", world{}, gnb.SAGE, nil, predict.Options{Final: true, Layer: 1})
	nodes("sage sparse strong", world{sparse: true}, gnb.SAGE, func(o *gnb.TrainOptions) {
		o.Arrangement, o.ScaleInput, o.Norm, o.PreLinear = "strong", true, "batch", true
	}, predict.Options{})
	nodes("gcn weights", world{weights: true}, gnb.GCN, nil, predict.Options{Fanouts: []int{3, 2}})
	nodes("gcn batch degrees", world{}, gnb.GCN, func(o *gnb.TrainOptions) { o.BatchDegrees = true }, predict.Options{Fanouts: []int{3, 2}})
	nodes("gatv2 edge features", world{edgeFeatures: true}, gnb.GATv2, func(o *gnb.TrainOptions) { o.Norm = "layer" }, predict.Options{})
	nodes("pna edge features", world{edgeFeatures: true}, gnb.PNA, nil, predict.Options{})
	nodes("rgcn", world{types: true}, gnb.RGCN, nil, predict.Options{})
	nodes("hgt", world{types: true}, gnb.HGT, nil, predict.Options{Fanouts: []int{4, 3}})
	nodes("learned", world{bare: true}, gnb.SAGE, func(o *gnb.TrainOptions) { o.Embedding = 10 }, predict.Options{})
	nodes("learned items", world{types: true, missing: true}, gnb.RGCN, func(o *gnb.TrainOptions) { o.LearnMissing = true }, predict.Options{})
	nodes("labels", world{labels: true}, gnb.GIN, nil, predict.Options{})
	nodes("mlp", world{}, gnb.MLP, nil, predict.Options{})

	// Datasets in parts, without the whole graph.
	for name, w := range map[string]world{"weights": {weights: true}, "sparse": {sparse: true}} {
		run, ds := train(t, w, gnb.GCN, func(o *gnb.TrainOptions) { o.ScaleInput = w.sparse })
		parts, at := make([]int32, ds.Nodes()), filepath.Join(t.TempDir(), "parts")
		for v := range parts {
			parts[v] = int32(v % 3)
		}
		if err := divided.Write(t.Context(), at, ds, parts, 3, divided.Options{NoTopology: true}); err != nil {
			t.Fatal(err)
		}
		d, err := dataset.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		check("parts "+name, run, d, predict.Options{})
	}

	targets := world{targets: true}.dataset(t)
	no := numbers.Options{}
	from := options()
	no.ModelOptions, no.OptimizerOptions, no.LaunchOptions = from.ModelOptions, from.OptimizerOptions, from.LaunchOptions
	no.RunDir, no.Bounded, no.Targets = filepath.Join(t.TempDir(), "run"), true, []string{"1", "0"}
	no.Loss, no.Quantiles = "quantile", []float64{.1, .5}
	run, err := numbers.Train(t.Context(), targets, no)
	if err != nil {
		t.Fatal(err)
	}
	check("numbers", run, targets, predict.Options{})

	linked := world{}.dataset(t)
	lo := links.Options{}
	lo.ModelOptions, lo.OptimizerOptions, lo.LaunchOptions = from.ModelOptions, from.OptimizerOptions, from.LaunchOptions
	lo.RunDir = filepath.Join(t.TempDir(), "run")
	if run, err = links.Train(t.Context(), linked, lo); err != nil {
		t.Fatal(err)
	}
	check("links", run, linked, predict.Options{})

	of = []string{"3", "0", "19"}
	whole := func(name string, ds *gnb.Dataset, model gnb.AnyModel, change func(o *graphs.Options)) {
		t.Helper()
		o := graphs.Options{Model: model}
		o.ModelOptions, o.OptimizerOptions, o.LaunchOptions = from.ModelOptions, from.OptimizerOptions, from.LaunchOptions
		if o.RunDir = filepath.Join(t.TempDir(), "run"); change != nil {
			change(&o)
		}
		run, err := graphs.Train(t.Context(), ds, o)
		if err != nil {
			t.Fatal(err)
		}
		check(name, run, ds, predict.Options{})
		// What the example expects is what package graphs predicts.
		in := graphs.InferOptions{}
		in.Workers, in.Threads, in.Quiet = 1, 1, true
		a, err := graphs.Infer(t.Context(), run, ds, in)
		if err != nil {
			t.Fatal(err)
		}
		e, err := onnx.Export(t.Context(), run, ds, predict.Options{Quiet: true})
		if err != nil {
			return // check has said so
		}
		x, err := e.Example(t.Context(), of...)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range of {
			g, _ := strconv.Atoi(id)
			for c, want := range a.Row(g) {
				if got := x.Expected[0].Floats[i*a.Rows.Cols+c]; math.Abs(float64(got-want)) > 1e-5*(1+math.Abs(float64(want))) {
					t.Errorf("%s: column %d of graph %d is expected to be %v, and graphs.Infer says %v", name, c, g, got, want)
				}
			}
		}
	}
	molecules := gnb.Must(datasets.Load("molecules?graphs=60"))
	for _, pool := range nn.PoolingNames() {
		whole("graphs "+pool, molecules, gnb.GINE, func(o *graphs.Options) { o.Pool, o.Predict, o.VirtualNode = pool, "labels", pool != "mean" })
	}
	for name, m := range map[string]gnb.AnyModel{"gatedgcn": gnb.GatedGCN, "pna": gnb.PNA, "gcn": gnb.GCN, "gat": gnb.GAT, "sage": gnb.SAGE} {
		whole("graphs "+name, molecules, m, func(o *graphs.Options) { o.Predict, o.Layers = "targets", 3 })
	}
	// Graphs with features of their own, weights, sparse features of nodes, and one without nodes.
	odd := oddGraphs(t)
	whole("graphs odd", odd, gnb.GCN, func(o *graphs.Options) { o.Pool = "set2set" })
	whole("graphs odd sage", odd, gnb.SAGE, func(o *graphs.Options) { o.EdgeWeights, o.ScaleInput, o.Arrangement = true, true, "strong" })

	out, err := exec.Command(python, append([]string{"-c", compare}, files...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "FAR") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, want := range []string{`sage ['x', 'src_0', 'dst_0', 'num_dst_0', 'src_1', 'dst_1', 'num_dst_1'] ['logits', 'probabilities'] classes ["low","mid","high"]`, "['standardised', 'numbers'] numbers", "['embeddings'] embeddings", "learned ['row', "} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the models are\n%s\nwithout %s", out, want)
		}
	}
}

// oddGraphs are graphs with features of their own, with weights of edges and sparse features of nodes. Graph 3 has no nodes.
func oddGraphs(t *testing.T) *gnb.Dataset {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 9))
	const n = 20
	g := &dataset.Dataset{Features: &dataset.Matrix{Rows: n, Cols: 2}, Splits: map[string][]int32{}}
	g.Meta.NumClasses, g.Meta.ClassNames = 2, []string{"no", "yes"}
	x := &graphops.Sparse{Cols: 5, Indptr: []int64{0}, Values: []float32{}}
	at := []int64{0}
	var src, dst []int32
	var d graphops.EdgeData
	for i := range int32(n) {
		first, size := int32(at[i]), 2+r.Int32N(5)
		if i == 3 {
			size = 0
		}
		for range 2 * size {
			src, dst, d.Weights = append(src, first+r.Int32N(size)), append(dst, first+r.Int32N(size)), append(d.Weights, .2+r.Float32())
		}
		for range size {
			for c := range int32(x.Cols) {
				if r.IntN(2) == 0 {
					x.Indices, x.Values = append(x.Indices, c), append(x.Values, 1+r.Float32())
				}
			}
			x.Indptr = append(x.Indptr, int64(len(x.Indices)))
		}
		x.Rows += int(size)
		at = append(at, int64(first+size))
		g.Features.F32 = append(g.Features.F32, r.Float32(), r.Float32())
		g.Labels = append(g.Labels, r.Int32N(2))
		split := []string{"train", "train", "val", "test"}[i%4]
		g.Splits[split] = append(g.Splits[split], i)
	}
	ds := &gnb.Dataset{SparseFeatures: x, GraphOffsets: at, Graphs: g, Splits: map[string][]int32{}}
	var err error
	if ds.Graph, err = graphops.FromEdgesWith(x.Rows, src, dst, d, graphops.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	ds.Meta.Name = "odd"
	ds.Describe()
	return ds
}

// What cannot be exported says so.
func TestRefusals(t *testing.T) {
	run, ds := train(t, world{}, gnb.SAGE, nil)
	if _, err := onnx.Export(t.Context(), nil, ds, predict.Options{}); err == nil {
		t.Error("a nil run is exported")
	}
	if _, err := onnx.Export(t.Context(), run, ds, predict.Options{Layer: 9}); err == nil || !strings.Contains(err.Error(), "layers 1 to 2") {
		t.Errorf("layer 9: %v", err)
	}
	e, err := onnx.Export(t.Context(), run, ds, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Example(t.Context(), "4711"); err == nil || !strings.Contains(err.Error(), "is no node of world") {
		t.Errorf("node 4711: %v", err)
	}
	if _, err := e.Example(t.Context()); err == nil {
		t.Error("an example of no nodes")
	}
	if err := e.WriteFile(filepath.Join(t.TempDir(), "no", "such", "x.onnx")); !os.IsNotExist(err) && err == nil {
		t.Error("written where there is no folder")
	}
	if s := e.String(); !strings.Contains(s, "src_1  int64[edges_1]") || !strings.Contains(s, "probabilities  float32[destinations_1, 3]") {
		t.Errorf("it prints\n%s", s)
	}
}

// The Python of the guide runs, in the order of its pieces, and says that the model's outputs are those of the run.
func TestGuide(t *testing.T) {
	testneed.NotShort(t, "it starts ONNX Runtime")
	python := testneed.PythonWith(t, "onnxruntime")
	guide, err := os.ReadFile("../../docs/onnx.md")
	if err != nil {
		t.Fatal(err)
	}
	run, ds := train(t, world{}, gnb.SAGE, nil)
	e, err := onnx.Export(t.Context(), run, ds, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, err := e.Example(t.Context(), "17", "18")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(e.WriteFile(filepath.Join(dir, "model.onnx")), x.WriteFile(filepath.Join(dir, "example.npz"))); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i, piece := range strings.Split(string(guide), "```python\n") {
		if code, _, ok := strings.Cut(piece, "```"); ok && i > 0 {
			lines = append(lines, code)
		}
	}
	c := exec.Command(python, "-c", strings.Join(lines, "\n"))
	c.Dir = dir
	out, err := c.CombinedOutput()
	var far float64
	_, scanned := fmt.Sscanf(string(out), "logits (2, 3) differs by %g", &far)
	if err != nil || scanned != nil || far > 1e-5 || !strings.Contains(string(out), `columns ["low","mid","high"]`) || len(lines) != 2 {
		t.Errorf("%d pieces of the guide print\n%s\n%v", len(lines), out, err)
	}
}
