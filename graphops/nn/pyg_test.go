package nn

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/internal/expect"
)

// pygCase holds PyG's results for a layer or model: see testdata/pyg_fixtures.py.
type pygCase struct {
	Params, Grads, Buffers map[string]goldenTensor
	Y, DX                  []float64
}

type pygFile struct {
	Cases map[string]pygCase
	BCE   struct {
		Logits, Grad []float64
		Labels       []int8
		Loss         float64
	}
}

func readPyG(t *testing.T) *pygFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/pyg.json")
	if err != nil {
		t.Fatal(err)
	}
	f := &pygFile{}
	if err := json.Unmarshal(raw, f); err != nil {
		t.Fatal(err)
	}
	return f
}

// pygGraph returns the graph of pyg_fixtures.py, with its weights if requested.
func pygGraph(t *testing.T, weighted bool) *graphops.Graph {
	t.Helper()
	src := []int32{1, 2, 3, 4, 5, 2, 3, 1, 1, 6, 4, 0, 5, 6}
	dst := []int32{0, 0, 0, 0, 0, 2, 2, 3, 3, 4, 5, 6, 6, 6}
	g, err := graphops.FromEdges(8, src, dst, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	if !weighted {
		return g
	}
	w := make([]float32, len(src))
	for i := range w {
		w[i] = float32(i%5+1) / 4
	}
	return g.WithEdgeWeights(w)
}

// pygEdges returns g with features of the edges.
func pygEdges(g *graphops.Graph, cols, k int) *graphops.Graph {
	return g.WithEdgeData(&graphops.EdgeFeatures{Cols: cols, F32: pygValues(int(g.NumEdges())*cols, k)}, nil)
}

func pygValues(n, k int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*37+k*11)%29-14) / 16
	}
	return x
}

type forwarder func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor

func pygModels() map[string]struct {
	model    any
	forward  forwarder
	train    bool
	weighted bool
} {
	type entry = struct {
		model    any
		forward  forwarder
		train    bool
		weighted bool
	}
	m := map[string]entry{}
	type layer interface {
		Forward(f *Fwd, b *Block, h *Tensor) *Tensor
	}
	conv := func(name string, l layer, weighted bool) {
		m[name] = entry{l, func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor { return l.Forward(f, g.Block(), h) }, false, weighted}
	}
	// edged is conv on the graph whose edges have the features of pyg_fixtures.py: cols for each, starting
	// from value k.
	edged := func(name string, l layer, cols, k int) {
		m[name] = entry{l, func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor {
			return l.Forward(f, pygEdges(g, cols, k).Block(), h)
		}, false, false}
	}
	rows := func(name string, l Module, train bool) {
		m[name] = entry{l, func(f *Fwd, _ *graphops.Graph, h *Tensor) *Tensor { return l.Forward(f, h) }, train, false}
	}
	model := func(name string, l Model, train bool) {
		m[name] = entry{l, func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor {
			return Forward(l, f, FullGraph(g, l.NumLayers()), h)
		}, train, false}
	}
	conv("gcn narrow", NewGCN(5, 3), false)
	conv("gcn wide", NewGCN(5, 7), false)
	conv("gcn weighted", NewGCN(5, 3), true)
	conv("gcn without bias", NewGCNWith(5, 3, GCNOptions{NoBias: true, BatchDegrees: true}), false)
	conv("gat", NewGAT(5, 3), false)
	conv("gat heads", NewGATWith(5, 3, GATOptions{Heads: 4}), false)
	conv("gat mean", NewGATWith(5, 3, GATOptions{Heads: 4, Mean: true, NegativeSlope: 0.1}), false)
	conv("gatv2", NewGATv2(5, 3), false)
	edged("gatv2 heads, edges", NewGATv2With(5, 3, GATv2Options{Heads: 4, EdgeDim: 2}), 2, 7)
	edged("gatv2 mean, shared, edges", NewGATv2With(5, 3, GATv2Options{Heads: 4, Mean: true, NegativeSlope: 0.1, ShareWeights: true, EdgeDim: 2}), 2, 7)
	conv("gatv2 without bias", NewGATv2With(5, 3, GATv2Options{Heads: 2, NoBias: true}), false)
	edged("gine", NewGINEWith(NewPerceptron(5, 4, 3), 5, 2, GINEOptions{Eps: 0.25}), 2, 7)
	edged("gine trained", NewGINEWith(NewPerceptron(5, 4, 3), 5, 2, GINEOptions{TrainEps: true}), 2, 7)
	edged("gine, edges as they are", NewGINEWith(NewPerceptron(5, 4, 3), 5, 5, GINEOptions{NoLin: true}), 5, 9)
	conv("transformer", NewTransformer(5, 3), false)
	edged("transformer heads, edges", NewTransformerWith(5, 3, TransformerOptions{Heads: 4, EdgeDim: 2}), 2, 7)
	edged("transformer mean, beta, edges", NewTransformerWith(5, 3, TransformerOptions{Heads: 4, Mean: true, Beta: true, EdgeDim: 2}), 2, 7)
	conv("transformer beta", NewTransformerWith(5, 3, TransformerOptions{Heads: 2, Beta: true}), false)
	edged("transformer without bias, edges", NewTransformerWith(5, 3, TransformerOptions{Heads: 2, NoBias: true, EdgeDim: 2}), 2, 7)
	made := func(name string, l *TransformerConv) {
		m[name] = entry{l, func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor {
			b := g.Block()
			return l.ForwardEdges(f, b, h, f.Mul(f.GatherSrc(b, f.Cols(h, 0, 2)), f.GatherDst(b, f.Cols(h, 1, 3))))
		}, false, false}
	}
	made("transformer heads, rows of edges", NewTransformerWith(5, 3, TransformerOptions{Heads: 4, EdgeDim: 2}))
	made("transformer mean, beta, rows of edges", NewTransformerWith(5, 3, TransformerOptions{Mean: true, Beta: true, EdgeDim: 2}))
	conv("resgated", NewResGated(5, 3, 0), false)
	edged("resgated, edges", NewResGated(5, 3, 2), 2, 7)
	edged("gatedgcn", gatedBoth{NewGatedGCN(5, 3, 0)}, 2, 7)
	edged("gatedgcn, edges", gatedBoth{NewGatedGCN(5, 3, 2)}, 2, 7)
	// The means over the nodes of degrees [3, 4, 0, 2, 1] in pyg_fixtures.py.
	degree, logDegree := 1.4, (4*math.Log(2)+2*math.Log(4)+math.Log(5))/10
	conv("pna", NewPNA(5, 3, PNAOptions{LogDegree: logDegree}), false)
	edged("pna, edges", NewPNA(5, 3, PNAOptions{LogDegree: logDegree, Degree: degree, EdgeDim: 2}), 2, 7)
	conv("pna, other aggregations", NewPNA(5, 3, PNAOptions{Degree: degree, Aggregators: []string{"sum", "var"}, Scalers: []string{"linear", "inverse_linear"}}), false)
	conv("gin", NewGINWith(NewPerceptron(5, 4, 3), GINOptions{Eps: 0.25}), false)
	conv("gin trained", NewGINWith(NewPerceptron(5, 4, 3), GINOptions{TrainEps: true}), false)
	conv("graph", NewGraphConv(5, 3), false)
	conv("graph weighted", NewGraphConv(5, 3), true)
	mean := NewGraphConv(5, 3)
	mean.Aggr = Mean
	conv("graph weighted mean", mean, true)
	rows("layer norm", NewLayerNorm(5), false)
	rows("batch norm", NewBatchNorm(5), true)
	rows("batch norm, evaluated", NewBatchNorm(5), false)
	pool := func(name string, l Pooling, offsets ...int32) {
		m[name] = entry{l, func(f *Fwd, _ *graphops.Graph, h *Tensor) *Tensor { return l.Forward(f, graphops.Groups(offsets), h) }, false, false}
	}
	pool("attention pool", NewAttentionPool(NewPerceptron(5, 4, 1), NewPerceptron(5, 4, 3)), 0, 3, 3, 7, 8)
	pool("attention pool by column", NewAttentionPool(NewLinear(5, 5, true), nil), 0, 3, 3, 7, 8)
	pool("set2set", NewSet2Set(5, 3), 0, 3, 7, 8)
	rows("mixer", NewMixer(4, 5, MixerOptions{}), false)
	row := func(name string, l any, forward func(f *Fwd, h *Tensor) *Tensor) {
		m[name] = entry{l, func(f *Fwd, _ *graphops.Graph, h *Tensor) *Tensor { return forward(f, h) }, false, false}
	}
	gru, within, fresh, span := NewGRUCell(5, 3), NewGRUCell(2, 3), NewGRUCell(5, 3), NewTimeEncoder(3)
	row("gru cell", gru, func(f *Fwd, h *Tensor) *Tensor { return gru.Forward(f, h, f.Input(8, 3, pygValues(24, 2), nil)) })
	row("gru cell, state", within, func(f *Fwd, h *Tensor) *Tensor { return within.Forward(f, f.Cols(h, 3, 5), f.Cols(h, 0, 3)) })
	row("gru cell, from zeros", fresh, func(f *Fwd, h *Tensor) *Tensor { return fresh.Forward(f, h, nil) })
	row("time encoder", span, func(f *Fwd, h *Tensor) *Tensor { return span.Forward(f, f.Scale(f.Cols(h, 1, 2), 64)) })
	virtual := func(name string, train bool, o VirtualNodeOptions) {
		v := NewVirtualNode(5, 3, o)
		m[name] = entry{v, func(f *Fwd, _ *graphops.Graph, h *Tensor) *Tensor {
			return throughVirtual(f, v, []int32{0, 3, 3, 7, 8}, h, nil)
		}, train, false}
	}
	virtual("virtual node", true, VirtualNodeOptions{Norm: "batch"})
	virtual("virtual node, residual", false, VirtualNodeOptions{Norm: "batch", Residual: true})
	s := ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 3}
	model("gcn model", NewGCNModel(s), false)
	s.Norm = "layer"
	model("gcn model, layer norm", NewGCNModel(s), false)
	s.Norm, s.Heads = "", 2
	model("gat model", NewGATModel(s), false)
	model("gatv2 model", NewGATv2Model(s), false)
	s.EdgeDim = 2
	v2 := NewGATv2Model(s)
	m["gatv2 model, edges"] = entry{v2, func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor {
		return Forward(v2, f, FullGraph(pygEdges(g, 2, 7), 3), h)
	}, false, false}
	edgedModel := func(name string, l Model, train bool) {
		m[name] = entry{l, func(f *Fwd, g *graphops.Graph, h *Tensor) *Tensor {
			return Forward(l, f, FullGraph(pygEdges(g, 2, 7), l.NumLayers()), h)
		}, train, false}
	}
	s = ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 2, EdgeDim: 2, LogDegree: logDegree}
	edgedModel("gine model", NewGINEModel(s), false)
	s.Norm, s.Residual = "layer", true
	edgedModel("gatedgcn model", NewGatedGCNModel(s), false)
	s.FeedForward = true
	edgedModel("pna model, plus", NewPNAModel(s), false)
	s.Norm = "batch"
	edgedModel("gine model, plus", NewGINEModel(s), true)
	s.Layers, s.EdgeStates = 3, true
	edgedModel("gatedgcn model, states, plus", NewGatedGCNModel(s), true)
	edgedModel("gatedgcn model, states", NewGatedGCNModel(ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 3, EdgeDim: 2, EdgeStates: true}), false)
	s = ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 3, JK: "cat"}
	model("sage model, jk cat", NewSAGEModel(s), false)
	s.JK, s.Norm = "max", "layer"
	model("gcn model, jk max, layer norm", NewGCNModel(s), false)
	s.Norm, s.Heads = "", 2
	model("gat model, jk max", NewGATModel(s), false)
	s.JK = "lstm"
	model("gatv2 model, jk lstm", NewGATv2Model(s), false)
	model("gin model, jk lstm, batch norm", NewGINModel(ModelConfig{In: 5, Hidden: 5, Out: 3, Layers: 2, JK: "lstm", Norm: "batch"}), true)
	s = ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 2}
	model("gin model", NewGINModel(s), false)
	s.Norm = "batch"
	model("gin model, batch norm", NewGINModel(s), true)
	model("sage model, batch norm", NewSAGEModel(s), true)
	s = ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 3, Arrangement: Strong, Norm: "layer", Residual: true}
	model("strong gcn, layer norm, residual", NewGCNModel(s), false)
	model("strong gcn", NewGCNModel(ModelConfig{In: 5, Hidden: 4, Out: 3, Layers: 2, Arrangement: Strong}), false)
	s.Norm, s.PreLinear = "batch", true
	model("strong sage, batch norm, residual, pre-linear", NewSAGEModel(s), true)
	s = ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 3, Arrangement: Strong, Norm: "layer", JK: "sum", Heads: 2}
	model("strong gat, layer norm, sum", NewGATModel(s), false)
	s.Layers, s.JK = 2, ""
	model("strong gatv2, layer norm", NewGATv2Model(s), false)
	model("strong gin, residual", NewGINModel(ModelConfig{In: 5, Hidden: 6, Out: 3, Layers: 2, Arrangement: Strong, Residual: true}), false)
	return m
}

// gatedBoth returns the rows of nodes of a GatedGCNConv and, next to them, the sums of its rows of edges.
type gatedBoth struct{ *GatedGCNConv }

func (g gatedBoth) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	var edge *Tensor
	if g.C != nil {
		edge = f.EdgeInput(b, 2)
	}
	y, e := g.ForwardEdges(f, b, h, edge)
	return f.Concat(y, f.AggregateEdges(b, e, Sum))
}

// Names, shapes, outputs, gradients and running statistics equal PyG's.
func TestLayersArePyG(t *testing.T) {
	t.Parallel()
	py := readPyG(t)
	models := pygModels()
	for name := range py.Cases {
		if models[name].model == nil {
			t.Errorf("pyg.json has %q, but no test uses it", name)
		}
	}
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, ok := py.Cases[name]
			if !ok {
				t.Fatal("pyg.json lacks this case; run scripts/fixtures.sh")
			}
			p := fromPython(t, m.model, want.Params)
			g := pygGraph(t, m.weighted)
			f := NewFwd(Config{Train: m.train, Grad: true})
			h := f.Leaf(8, 5, pygValues(40, 0), &Space{})
			y := m.forward(f, g, h)
			expect.Near(t, "output", y.Data(), want.Y, 1e-5, 1e-5)
			n := len(y.Data())
			if err := f.SumAll(f.Mul(y, f.Input(y.Rows(), y.Cols(), pygValues(n, 5), nil))).Backward(); err != nil {
				t.Fatal(err)
			}
			expect.Near(t, "gradient of the input", h.Grad(), want.DX, 1e-5, 1e-5)
			for _, e := range p.List() {
				if e.Fixed {
					expect.Near(t, e.Name, e.W, want.Buffers[e.Name].Data, 1e-6, 1e-6)
				} else {
					expect.Near(t, "gradient of "+e.Name, e.G, want.Grads[e.Name].Data, 1e-5, 1e-5)
				}
			}
		})
	}
}

func TestBCEIsPyTorch(t *testing.T) {
	t.Parallel()
	py := readPyG(t).BCE
	logits := make([]float32, len(py.Logits))
	for i, v := range py.Logits {
		logits[i] = float32(v)
	}
	f := NewFwd(Config{Grad: true})
	x := f.Leaf(4, 3, logits, nil)
	l := BCEWithLogits(x, py.Labels)
	expect.Near(t, "loss", l.Sum.Data(), []float64{py.Loss}, 0, 1e-6)
	if l.Weight != 10 || l.Count != 10 {
		t.Errorf("with 10 labels, the loss has weight %v and counts %d", l.Weight, l.Count)
	}
	l.Backward()
	expect.Near(t, "gradient", x.Grad(), py.Grad, 1e-6, 1e-6)
}
