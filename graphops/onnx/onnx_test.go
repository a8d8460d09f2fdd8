package onnx_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/onnx"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/testneed"
)

// The graph of the tests.
const (
	nodes    = 120
	in       = 6
	edgeDim  = 3
	isolated = 119
)

// graphOf makes a graph with self-loops and, with types, parallel relations, in which the last node has no edges. There are three types
// of nodes, or one.
func graphOf(t *testing.T, seed uint64, weights, features, types, one bool) *graphops.Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &graphops.Schema{
		Nodes:     []graphops.NodeType{{Name: "a", Count: 50}, {Name: "b", Count: 40}, {Name: "c", Count: 30}},
		Relations: []graphops.Relation{{Src: "a", Name: "to", Dst: "b"}, {Src: "b", Name: "to", Dst: "a"}, {Src: "c", Name: "in", Dst: "b"}, {Src: "a", Name: "by", Dst: "c"}, {Src: "a", Name: "near", Dst: "a"}},
	}
	if one {
		s = &graphops.Schema{Nodes: []graphops.NodeType{{Name: "a", Count: nodes}}, Relations: []graphops.Relation{{Src: "a", Name: "r", Dst: "a"}, {Src: "a", Name: "s", Dst: "a"}, {Src: "a", Name: "t", Dst: "a"}}}
	}
	var src, dst []int32
	var d graphops.EdgeData
	starts := s.Starts()
	for range 500 {
		u, v := rng.Int32N(isolated), rng.Int32N(isolated)
		if rng.IntN(10) == 0 {
			v = u
		}
		if types {
			r := rng.IntN(len(s.Relations))
			a, b := s.Ends(r)
			u = int32(starts[a] + rng.IntN(s.Nodes[a].Count))
			v = int32(starts[b] + rng.IntN(s.Nodes[b].Count))
			if u == isolated || v == isolated {
				continue
			}
			d.Types = append(d.Types, uint16(r))
		}
		src, dst = append(src, u), append(dst, v)
		if weights {
			d.Weights = append(d.Weights, 0.2+rng.Float32())
		}
		for range edgeDim {
			if features {
				if d.Features == nil {
					d.Features = &graphops.EdgeFeatures{Cols: edgeDim}
				}
				d.Features.F32 = append(d.Features.F32, rng.Float32()*2-1)
			}
		}
	}
	g, err := graphops.FromEdgesWith(nodes, src, dst, d, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if types {
		if g, err = g.WithTypes(s, g.EdgeTypes); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// network is a model to export, on a graph with what it reads.
type network struct {
	name                     string
	build                    func(s nn.ModelConfig) nn.Model
	weights, features, types bool
	one                      bool // of one type of nodes
	sizes                    nn.ModelConfig
}

func model[M nn.Model](build func(nn.ModelConfig) M) func(nn.ModelConfig) nn.Model {
	return func(s nn.ModelConfig) nn.Model { return build(s) }
}

// networks are the models of package gnb with their options.
func networks() (all []network) {
	add := func(name string, build func(nn.ModelConfig) nn.Model, change ...func(n *network)) {
		for _, norm := range []string{"", "layer", "batch"} {
			n := network{name: name, build: build, sizes: nn.ModelConfig{In: in, Hidden: 8, Out: 5, Layers: 3, Dropout: .3, Norm: norm, Heads: 2, LogDegree: 1.3, Residual: norm == "layer"}}
			for _, c := range change {
				c(&n)
			}
			if norm != "" {
				n.name += " " + norm
			}
			all = append(all, n)
		}
	}
	weighted := func(n *network) { n.name, n.weights, n.sizes.EdgeWeights = n.name+" weights", true, true }
	features := func(n *network) { n.name, n.features, n.sizes.EdgeDim = n.name+" edge features", true, edgeDim }
	typed := func(n *network) { n.types = true }
	knowledge := func(n *network) { n.name, n.types, n.one = n.name+" one type", true, true }
	sized := func(what string, f func(s *nn.ModelConfig)) func(*network) {
		return func(n *network) { n.name += " " + what; f(&n.sizes) }
	}
	strong := sized("strong", func(s *nn.ModelConfig) { s.Arrangement, s.PreLinear, s.Residual = nn.Strong, true, true })
	sage, gcn, gin := model(nn.NewSAGEModel), model(nn.NewGCNModel), model(nn.NewGINModel)
	add("sage", sage)
	add("sage", sage, weighted)
	add("sage", sage, strong)
	for _, jump := range nn.Jumps {
		add("sage", sage, sized("jk "+jump, func(s *nn.ModelConfig) { s.JK = jump }))
	}
	add("sage", sage, sized("pre-linear elu one layer", func(s *nn.ModelConfig) { s.PreLinear, s.Activation, s.Layers = true, "elu", 1 }))
	for _, op := range []nn.Op{nn.Sum, nn.Max} {
		add("sage "+op.String(), func(s nn.ModelConfig) nn.Model {
			return nn.NewSAGEModelWith(s, nn.SAGEOptions{Aggr: op, Normalize: true})
		})
	}
	add("gcn", gcn)
	add("gcn", gcn, weighted)
	add("gcn", gcn, strong)
	add("gcn", gcn, sized("batch degrees", func(s *nn.ModelConfig) { s.BatchDegrees = true }))
	add("gcn", gcn, weighted, sized("batch degrees", func(s *nn.ModelConfig) { s.BatchDegrees = true }))
	add("gat", model(nn.NewGATModel))
	add("gat", model(nn.NewGATModel), strong)
	add("gat", model(nn.NewGATModel), sized("one head", func(s *nn.ModelConfig) { s.Heads = 0 }))
	add("gatv2", model(nn.NewGATv2Model))
	add("gatv2", model(nn.NewGATv2Model), features)
	add("gin", gin)
	add("gin", gin, weighted)
	add("gin eps", func(s nn.ModelConfig) nn.Model { return nn.NewGINModelWith(s, nn.GINOptions{TrainEps: true, Eps: .3}) })
	forward := sized("feed-forward", func(s *nn.ModelConfig) { s.FeedForward = true })
	for name, build := range map[string]func(nn.ModelConfig) nn.Model{"gine": model(nn.NewGINEModel), "gatedgcn": model(nn.NewGatedGCNModel), "pna": model(nn.NewPNAModel)} {
		add(name, build)
		add(name, build, features)
		add(name, build, features, forward)
	}
	add("mlp", model(nn.NewMLPModel))
	add("rgcn", model(nn.NewRGCNModel), typed)
	add("rgcn", model(nn.NewRGCNModel), typed, sized("bases", func(s *nn.ModelConfig) { s.Bases = 2 }))
	add("hgt", model(nn.NewHGTModel), typed)
	add("hgt", model(nn.NewHGTModel), knowledge)
	add("rgcn", model(nn.NewRGCNModel), knowledge)
	add("sage", sage, sized("eight layers", func(s *nn.ModelConfig) { s.Layers, s.JK = 8, "max" }))
	add("hgt", model(nn.NewHGTModel), typed, sized("wide", func(s *nn.ModelConfig) { s.Hidden, s.Heads = 70, 5 }))
	return all
}

// random sets all parameters, those of norms too, to values that differ.
func random(t *testing.T, m nn.Model) *nn.Params {
	t.Helper()
	params, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	params.Init(3)
	rng := rand.New(rand.NewPCG(5, 5))
	for _, e := range params.List() {
		if strings.Contains(e.Name, "avg_deg") || strings.HasSuffix(e.Name, ".eps") && e.Fixed {
			continue
		}
		for i := range e.W {
			if e.W[i] += 0.2 * (rng.Float32() - .5); strings.HasSuffix(e.Name, "running_var") {
				e.W[i] = 0.5 + rng.Float32()
			}
		}
	}
	return params
}

// batches are the batches that a model is run on: sampled ones, one without edges, one of a single node.
func batches(t *testing.T, g *graphops.Graph, layers int) (all [][]*graphops.Block) {
	t.Helper()
	draw := func(fanout int, seeds ...int32) {
		fanouts := make(sample.Fanouts, layers)
		for i := range fanouts {
			fanouts[i] = fanout
		}
		s, err := sample.New(g, sample.Config{Picker: fanouts, Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Sample(0, 0, sample.Seeds{IDs: seeds})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Blocks)
	}
	draw(3, 0, 7, 60, 95, 100, isolated)
	draw(-1, 11, 70, 110)
	draw(2, isolated) // no edges
	draw(1, 55)
	return all
}

const script = `
import sys, os, numpy as np, onnx, onnxruntime as ort
o = ort.SessionOptions(); o.intra_op_num_threads = 1; o.log_severity_level = 3
worst = 0
for case in sorted(os.listdir(sys.argv[1])):
    d = os.path.join(sys.argv[1], case)
    model = onnx.load(os.path.join(d, "model.onnx"))
    onnx.checker.check_model(model, full_check=True)
    s = ort.InferenceSession(os.path.join(d, "model.onnx"), o, providers=["CPUExecutionProvider"])
    for f in sorted(os.listdir(d)):
        if not f.endswith(".npz"): continue
        z = dict(np.load(os.path.join(d, f)))
        want = z.pop("expected")
        got, = s.run(None, z)
        scale = max(np.abs(want).max(initial=0), 1e-3)
        far = np.abs(got - want).max(initial=0) / scale if got.shape == want.shape else np.inf
        worst = max(worst, far)
        if not far <= 1e-5: print("FAR", case, f, far, got.shape, want.shape)
print("worst", worst)
`

func TestRuntime(t *testing.T) {
	testneed.NotShort(t, "it starts ONNX Runtime")
	python := testneed.PythonWith(t, "onnx, onnxruntime")
	dir := t.TempDir()
	cases := 0
	for _, n := range networks() {
		g := graphOf(t, 2, n.weights, n.features, n.types, n.one)
		n.sizes.Schema = g.Schema
		m := n.build(n.sizes)
		params := random(t, m)
		out, err := onnx.Export(m, params, onnx.Options{In: in, EdgeDim: n.sizes.EdgeDim, EdgeWeights: n.weights, Schema: g.Schema})
		if err != nil {
			t.Errorf("%s: %v", n.name, err)
			continue
		}
		at := filepath.Join(dir, strings.ReplaceAll(n.name, " ", "-"))
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := out.WriteFile(filepath.Join(at, "model.onnx")); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(9, 9))
		for i, blocks := range batches(t, g, n.sizes.Layers) {
			b := onnx.Batch{Blocks: blocks, X: make([]float32, blocks[0].NumSrc*in)}
			for k := range b.X {
				b.X[k] = 2*rng.Float32() - 1
			}
			for s := range blocks[0].NumSrc {
				typ := 0
				for g.Schema != nil && int(blocks[0].SrcID(s)) >= g.Schema.Starts()[typ+1] {
					typ++
				}
				b.Types = append(b.Types, int32(typ))
			}
			arrays, err := out.Feed(b)
			if err != nil {
				t.Fatalf("%s: %v", n.name, err)
			}
			f := nn.NewFwd(nn.Config{})
			y, err := nn.TryForward(m, f, blocks, f.Input(blocks[0].NumSrc, in, b.X, tensor.SrcSpace(blocks[0])))
			if err != nil {
				t.Fatalf("%s: %v", n.name, err)
			}
			arrays = append(arrays, onnx.Array{Name: "expected", Shape: []int{y.Rows(), y.Cols()}, Floats: y.Data()})
			z, err := onnx.NPZ(arrays)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("%d.npz", i)), z, 0o644); err != nil {
				t.Fatal(err)
			}
			cases++
		}
	}
	text, err := exec.Command(python, "-c", script, dir).CombinedOutput()
	if err != nil || strings.Contains(string(text), "FAR") {
		t.Errorf("%d batches: %v\n%s", cases, err, text)
	}
	t.Logf("%d batches: %s", cases, text)
}

// own is a network of one layer.
type own struct {
	Lin   *nn.Linear `nn:"lin"`
	layer func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor
}

func (*own) NumLayers() int { return 1 }

func (m *own) Layer(f *nn.Fwd, _ int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	return m.layer(f, b, m.Lin.Forward(f, h))
}

// A network that the exporter would get wrong for another batch is refused, with the reason.
func TestRefused(t *testing.T) {
	column := func(f *nn.Fwd, b *nn.Block, of func(d int) float32) *nn.Tensor {
		x := make([]float32, b.NumDst)
		for d := range x {
			x[d] = of(d)
		}
		return f.Input(b.NumDst, 1, x, tensor.DstSpace(b))
	}
	most := func(b *nn.Block) (n int) {
		for d := range b.NumDst {
			n = max(n, b.InDegree(d))
		}
		return n
	}
	for name, c := range map[string]struct {
		want  string
		layer func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor
	}{
		"custom": {"it computes on the host", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			h = f.Dst(b, h)
			return f.Custom("twice", []*nn.Tensor{h}, h.Rows(), h.Cols(), func(out []float32) {
				for i, x := range h.Data() {
					out[i] = 2 * x
				}
			}, nil)
		}},
		"numbers of edges": {"in a way that package onnx does not know", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			return f.MulRows(f.Dst(b, h), column(f, b, func(d int) float32 { return float32(b.InDegree(d) * b.InDegree(d)) }))
		}},
		"a factor by the batch": {"has no ONNX form", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			return f.Scale(f.Dst(b, h), 1/float64(b.NumDst))
		}},
		"a factor by the edges": {"has no ONNX form", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			return f.Scale(f.Dst(b, h), 1/float64(most(b)))
		}},
		"operations by the batch": {"by different operations", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			y := f.Dst(b, h)
			if b.NumDst%2 == 0 {
				y = f.ReLU(y)
			}
			for range b.NumDst {
				y = f.Tanh(y)
			}
			return y
		}},
		"rows of the middle": {"no boundary", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			return f.Add(f.Dst(b, h), f.Stack(f.Rows(f.Dst(b, h), 1, b.NumDst), f.Rows(f.Dst(b, h), 0, 1)))
		}},
		"other edges": {"along edges that it derives", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			indptr := make([]int64, b.NumDst+1)
			for d := range indptr {
				indptr[d] = int64(d)
			}
			indptr[b.NumDst]--
			return f.Aggregate(graphops.HostBlock{NumDst: b.NumDst, NumSrc: b.NumSrc, Indptr: indptr, Indices: make([]int32, b.NumDst)}.Block(), h, nn.Sum)
		}},
		"too few rows": {"a row for each destination", func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor { return f.Rows(h, 0, 1) }},
	} {
		m := &own{nn.NewLinear(in, 4, true), c.layer}
		params, err := nn.Collect(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = onnx.Export(m, params, onnx.Options{In: in}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "layer 0 of *onnx_test.own") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	params, err := nn.Collect(nn.NewLinear(2, 2, false))
	if err != nil {
		t.Fatal(err)
	}
	m := nn.NewSAGEModel(nn.ModelConfig{In: in, Out: 2, Layers: 1})
	for want, o := range map[string]onnx.Options{
		"Options.In is 0":          {},
		"which are no rows":        {In: in, Rows: make([]float32, in+1)},
		"no nodes of type a":       {In: in, Schema: &graphops.Schema{Nodes: []graphops.NodeType{{Name: "a"}}, Relations: []graphops.Relation{{Src: "a", Name: "r", Dst: "a"}}}},
		"needs a network and its ": {In: in},
	} {
		of := params
		if strings.HasPrefix(want, "needs") {
			of = nil
		}
		if _, err := onnx.Export(m, of, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// Outputs of tasks are computed from that of the network.
func TestOutputs(t *testing.T) {
	testneed.NotShort(t, "it starts ONNX Runtime")
	python := testneed.PythonWith(t, "onnx, onnxruntime")
	dir := t.TempDir()
	m := nn.NewMLPModel(nn.ModelConfig{In: 1, Out: 1, Layers: 1})
	params, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	m.Lins[0].Weight.W[0] = 1
	out, err := onnx.Export(m, params, onnx.Options{In: 1})
	if err != nil {
		t.Fatal(err)
	}
	out.Rename("logits", "")
	out.Probabilities("two", false, "")
	out.Probabilities("labels", true, "")
	out.Scaled("prices", []float32{10}, []float32{100}, []float32{95}, []float32{115}, "")
	out.Doc, out.Metadata = "a test", []onnx.Property{{Key: "key", Value: "wert ü"}}
	if err := out.WriteFile(filepath.Join(dir, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(python, "-c", `
import sys, numpy as np, onnx, onnxruntime as ort
m = onnx.load(sys.argv[1]); onnx.checker.check_model(m, full_check=True)
s = ort.InferenceSession(sys.argv[1])
for x in s.run(None, {"x": np.array([[-1], [0], [2]], np.float32), "num_dst_0": np.array([3])}): print(np.round(x, 3).tolist())
print(m.doc_string, s.get_modelmeta().custom_metadata_map)
`, filepath.Join(dir, "model.onnx")).CombinedOutput()
	want := `[[-1.0], [0.0], [2.0]]
[[0.7310000061988831, 0.26899999380111694], [0.5, 0.5], [0.11900000274181366, 0.8809999823570251]]
[[0.26899999380111694], [0.5], [0.8809999823570251]]
[[95.0], [100.0], [115.0]]
a test {'key': 'wert ü'}
`
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text, want)
	}
}
