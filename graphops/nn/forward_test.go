package nn

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testkit/ref"
)

func planted(tb testing.TB, nodes int) *graphops.Graph {
	tb.Helper()
	var src, dst []int32
	for i := range nodes * 6 {
		src = append(src, int32((i*7919+i/5)%nodes))
		dst = append(dst, int32((i*104729+i*i%101)%(nodes-1))) // the last node has no in-edges
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func gather(x []float32, cols int, ids []int32) []float32 {
	out := make([]float32, 0, len(ids)*cols)
	for _, v := range ids {
		out = append(out, x[int(v)*cols:(int(v)+1)*cols]...)
	}
	return out
}

func batch(tb testing.TB, g *graphops.Graph, fanouts sample.Fanouts, step int, seeds []int32) *sample.Batch {
	tb.Helper()
	s, err := sample.New(g, sample.Config{Picker: fanouts, Seed: 5})
	if err != nil {
		tb.Fatal(err)
	}
	b, err := s.Sample(0, step, sample.Seeds{IDs: seeds})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Three ways compute the same function: the whole graph at once, layer by layer in parts, and
// sampled batches that take all neighbours. Sampled blocks list a node's in-edges in the graph's
// order and rows do not influence each other, so the bits are equal; with dropout as well, whose
// masks belong to nodes. A SAGEConv that narrows transforms first on the whole graph and aggregates
// first on a sampled block, so there they differ in rounding.
func TestThreeWaysAgree(t *testing.T) {
	t.Parallel()
	const n, in, out = 300, 9, 4
	x := expect.Normal(n*in, 1)
	s := ModelConfig{In: in, Hidden: 16, Out: out, Layers: 3, Dropout: 0.4}
	models := everyModel(s)
	for _, v := range sageVariants {
		models["sage "+v.name] = NewSAGEModelWith(s, v.o)
	}
	plain := planted(t, n)
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := suited(plain, name)
			mustCollect(t, m).Init(2)
			for _, train := range []bool{false, true} {
				c := Config{Train: train, Seed: 3, Epoch: 1, Step: 4}
				f := NewFwd(c)
				full := Forward(m, f, FullGraph(g, 3), f.Input(n, in, x, &Space{})).Data()

				if !train {
					lw := NewFwd(Config{Train: true}) // LayerWise turns training off
					got, cols, err := LayerWise(m, lw, g, x, in)
					if err != nil || cols != out {
						t.Fatalf("layer-wise: %d columns, %v", cols, err)
					}
					expect.SameBits(t, "layer-wise", full, got)
				}

				seeds := []int32{299, 0, 17, 250, 3}
				b := batch(t, g, sample.Fanouts{-1, -1, -1}, 0, seeds)
				f2 := NewFwd(c)
				ids := b.InputIDs()
				y := Forward(m, f2, b.Blocks, f2.Input(len(ids), in, gather(x, in, ids), tensor.SrcSpace(b.Blocks[0])))
				what, want := fmt.Sprintf("sampled, train %v", train), gather(full, out, seeds)
				if i := differ(m, want, y.Data()); i >= 0 {
					t.Fatalf("%s: element %d is %v and %v", what, i, want[i], y.Data()[i])
				}
			}
		})
	}
}

// differ returns the first element in which the outputs of m for the whole graph and for a batch
// differ, or -1. They must agree in all bits, or within rounding if m may aggregate before or after
// it transforms.
func differ(m Model, full, sampled []float32) int {
	near := 0.0
	if sage, ok := m.(*SAGE); ok && slices.ContainsFunc(sage.Convs, func(c *SAGEConv) bool { return c.narrows(len(full)) }) {
		near = 2e-5
	}
	for i, v := range full {
		w := sampled[i]
		if v != w && !(math.Abs(float64(v)-float64(w)) <= near*max(1, math.Abs(float64(v)))) {
			return i
		}
	}
	return -1
}

// everyModel returns the models of this package, with the layers that can stand between theirs,
// except layers that depend on the batch.
func everyModel(s ModelConfig) map[string]Model {
	rich := s
	rich.Norm, rich.Residual, rich.InputDropout, rich.Activation = "layer", true, 0.3, "elu"
	heads := rich
	heads.Heads, heads.OutHeads = 4, 2
	cat, greatest, lstm := s, rich, heads
	cat.JK, greatest.JK, lstm.JK = "cat", "max", "lstm"
	edged := heads
	edged.EdgeDim = 3
	plus := rich
	plus.Activation, plus.FeedForward, plus.LogDegree = "", true, 1.5
	plusEdges := plus
	plusEdges.EdgeDim = 3
	strong, plain := heads, s
	strong.Arrangement, strong.PreLinear, strong.JK = Strong, true, "sum"
	plain.Arrangement, plain.Norm, plain.Residual = Strong, "layer", true
	return map[string]Model{
		"gine": NewGINEModel(s), "gine plus edges": NewGINEModel(plusEdges), "gatedgcn": NewGatedGCNModel(s), "gatedgcn plus edges": NewGatedGCNModel(plusEdges),
		"pna": NewPNAModel(plus), "pna plus edges": NewPNAModel(plusEdges),
		"sage jk cat": NewSAGEModel(cat), "gcn jk max": NewGCNModel(greatest), "gat jk lstm": NewGATModel(lstm),
		"sage strong": NewSAGEModel(plain), "gcn strong": NewGCNModel(plain), "gat strong": NewGATModel(plain), "gatv2 strong": NewGATv2Model(plain), "gin strong": NewGINModel(plain),
		"sage strong, sum": NewSAGEModel(strong), "gcn strong, sum": NewGCNModel(strong), "gat strong, sum": NewGATModel(strong), "gin strong, sum": NewGINModel(strong),
		"mlp": NewMLPModel(s), "mlp rich": NewMLPModel(rich), "sage rich": NewSAGEModel(rich),
		"gcn": NewGCNModel(s), "gcn rich": NewGCNModel(rich), "gcn weighted": NewGCNModel(s),
		"gat": NewGATModel(s), "gat rich": NewGATModel(heads), "gatv2": NewGATv2Model(s), "gatv2 rich, edges": NewGATv2Model(edged),
		"gine edges": newEdgeModel(s, newGINELayer), "pna edges": newEdgeModel(s, newPNALayer), "resgated edges": newEdgeModel(s, newResGatedLayer), "gatedgcn layers edges": newEdgeModel(s, newGatedGCNLayer),
		"transformer edges": newEdgeModel(s, newTransformerLayer),
		"gin":               NewGINModelWith(s, GINOptions{TrainEps: true, Eps: 0.5}), "gin rich": NewGINModel(rich),
		"graph weighted": &graphModel{Stack(s, NewGraphConv)},
		"sage weighted":  NewSAGEModelWith(s, SAGEOptions{Weighted: true}), "sage sum weighted": NewSAGEModelWith(s, SAGEOptions{Weighted: true, Aggr: Sum}), "gin weighted": NewGINModelWith(s, GINOptions{Weighted: true}),
	}
}

// suited returns the graph with what the model of this name reads.
func suited(g *graphops.Graph, name string) *graphops.Graph {
	switch {
	case strings.HasSuffix(name, "weighted"):
		return withWeights(g)
	case strings.HasSuffix(name, "edges"):
		return withEdges(g)
	}
	return g
}

// withEdges returns g with 3 features for each edge.
func withEdges(g *graphops.Graph) *graphops.Graph {
	return g.WithEdgeData(&graphops.EdgeFeatures{Cols: 3, F32: expect.Normal(3*int(g.NumEdges()), 5)}, nil)
}

// edgeModel is a model of layers with features of edges that the library has no model of.
type edgeModel struct {
	Convs  []any `nn:"convs"`
	layers []edgeLayer
}

type edgeLayer interface {
	Forward(f *Fwd, b *Block, h *Tensor) *Tensor
}

func newGINELayer(in, out int) edgeLayer {
	return NewGINEWith(NewPerceptron(in, 5, out), in, 3, GINEOptions{TrainEps: true, Eps: 0.5})
}

func newResGatedLayer(in, out int) edgeLayer { return NewResGated(in, out, 3) }

func newPNALayer(in, out int) edgeLayer {
	return NewPNA(in, out, PNAOptions{EdgeDim: 3, LogDegree: 1.5})
}

func newGatedGCNLayer(in, out int) edgeLayer { return NewGatedGCN(in, out, 3) }

func newTransformerLayer(in, out int) edgeLayer {
	return NewTransformerWith(in, out, TransformerOptions{Heads: 2, Mean: true, Beta: true, Dropout: 0.3, EdgeDim: 3})
}

func newEdgeModel(s ModelConfig, layer func(in, out int) edgeLayer) *edgeModel {
	m := &edgeModel{layers: Stack(s, layer)}
	for _, l := range m.layers {
		m.Convs = append(m.Convs, l)
	}
	return m
}

func (m *edgeModel) NumLayers() int { return len(m.layers) }

func (m *edgeModel) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.layers[i].Forward(f, b, h)
}

type graphModel struct{ Convs []*GraphConv }

func (m *graphModel) NumLayers() int { return len(m.Convs) }

func (m *graphModel) Layer(f *Fwd, i int, b *Block, h *Tensor) *Tensor {
	return m.Convs[i].Forward(f, b, h)
}

func withWeights(g *graphops.Graph) *graphops.Graph {
	w := make([]float32, g.NumEdges())
	for i := range w {
		w[i] = float32(i*7%11+1) / 8
	}
	return g.WithEdgeWeights(w)
}

// On any graph, for any seeds, the rows of a batch that takes all neighbours are the rows of the
// whole graph, to the bit where differ requires it.
func TestSampledIsFull(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(r, "nodes")
		node := rapid.Int32Range(0, int32(n-1))
		edges := rapid.IntRange(0, 30).Draw(r, "edges")
		src := rapid.SliceOfN(node, edges, edges).Draw(r, "src")
		dst := rapid.SliceOfN(node, edges, edges).Draw(r, "dst")
		seeds := rapid.SliceOfDistinct(node, rapid.ID).Draw(r, "seeds")
		layers := rapid.IntRange(1, 3).Draw(r, "layers")
		models := everyModel(ModelConfig{In: 3, Hidden: 8, Out: 2, Layers: layers, Dropout: 0.5})
		for _, v := range sageVariants {
			models["sage "+v.name] = NewSAGEModelWith(ModelConfig{In: 3, Hidden: 5, Out: 2, Layers: layers, Dropout: 0.5}, v.o)
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(models))).Draw(r, "model")
		g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{KeepDuplicates: true})
		if err != nil {
			r.Fatal(err)
		}
		if rapid.Bool().Draw(r, "weighted") {
			g = withWeights(g)
		}
		m := models[name]
		g = withEdges(g)
		mustCollect(t, m).Init(1)
		x := expect.Normal(n*3, 1)
		fan := make(sample.Fanouts, layers)
		for i := range fan {
			fan[i] = -1
		}
		c := Config{Train: rapid.Bool().Draw(r, "train"), Seed: 1}
		f := NewFwd(c)
		full := Forward(m, f, FullGraph(g, layers), f.Input(n, 3, x, &Space{})).Data()
		b := batch(t, g, fan, 0, seeds)
		ids := b.InputIDs()
		f = NewFwd(c)
		y := Forward(m, f, b.Blocks, f.Input(len(ids), 3, gather(x, 3, ids), tensor.SrcSpace(b.Blocks[0]))).Data()
		want := gather(full, 2, seeds)
		if i := differ(m, want, y); i >= 0 {
			r.Fatalf("element %d is %v for the whole graph and %v for the batch", i, want[i], y[i])
		}
	})
}

// A layer's rows computed in several chunks equal those computed in one. A layer that transforms
// before it aggregates gets the chunks that it asks for.
func TestLayerRowsInChunks(t *testing.T) {
	t.Parallel()
	const n = 5000
	g := planted(t, n)
	narrow, wide := ModelConfig{In: 900, Hidden: 8, Out: 3, Layers: 1}, ModelConfig{In: 3, Hidden: 8, Out: 900, Layers: 1}
	for _, tc := range []struct {
		name   string
		s      ModelConfig
		m      Model
		chunks int
	}{
		{"sage, narrow", narrow, NewSAGEModel(narrow), 1},
		{"sage max, narrow", narrow, NewSAGEModelWith(narrow, SAGEOptions{Aggr: Max}), 3},
		{"sage, wide", wide, NewSAGEModel(wide), 3},
		{"gcn, narrow", narrow, NewGCNModel(narrow), 1},
		{"gcn, wide", wide, NewGCNModel(wide), 3},
		{"gat", narrow, NewGATModel(narrow), 3}, /* of chunkFloats/900 rows: more than a quarter */
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in, out := tc.s.In, tc.s.Out
			x := expect.Normal(n*in, 1)
			mustCollect(t, tc.m).Init(2)
			f := NewFwd(Config{})
			full := Forward(tc.m, f, FullGraph(g, 1), f.Input(n, in, x, &Space{})).Data()
			got, chunks, last := make([]float32, n*out), 0, 0
			if err := LayerRows(tc.m, NewFwd(Config{}), 0, g, x, in, 0, n, got, func(rows int) { chunks, last = chunks+1, rows }); err != nil {
				t.Fatal(err)
			}
			if chunks != tc.chunks || last != n {
				t.Errorf("%d chunks, want %d; %d rows at the end", chunks, tc.chunks, last)
			}
			expect.SameBits(t, tc.name, full, got)
		})
	}
}

// Ranges of the rows, computed separately as ranks do, equal the rows of the whole.
func TestLayerRows(t *testing.T) {
	t.Parallel()
	const n, in, hidden = 2500, 6, 8
	g := planted(t, n)
	x := expect.Normal(n*in, 1)
	m := NewSAGEModel(ModelConfig{In: in, Hidden: hidden, Out: 3, Layers: 2})
	mustCollect(t, m).Init(2)
	f := NewFwd(Config{Threads: 2})
	cols, err := LayerCols(m, f, 0, in)
	if err != nil || cols != hidden {
		t.Fatalf("layer 0 has %d columns, %v", cols, err)
	}
	whole, parts := make([]float32, n*hidden), make([]float32, n*hidden)
	if err := LayerRows(m, f, 0, g, x, in, 0, n, whole, nil); err != nil {
		t.Fatal(err)
	}
	last := 0
	for rank := range 4 {
		lo, hi := sample.Share(n, rank, 4)
		last = 0
		err := LayerRows(m, f, 0, g, x, in, lo, hi, parts[lo*hidden:hi*hidden], func(rows int) {
			if rows <= last {
				t.Errorf("progress goes from %d to %d", last, rows)
			}
			last = rows
		})
		if err != nil || last != hi-lo {
			t.Errorf("rank %d: %v after %d rows of %d", rank, err, last, hi-lo)
		}
	}
	expect.SameBits(t, "parts", whole, parts)
	if err := LayerRows(m, f, 0, g, x, in, 5, 5, nil, nil); err != nil {
		t.Errorf("no rows: %v", err)
	}

	expect.Error(t, LayerRows(m, f, 0, g, x, in, 5, n+1, nil, nil), "[5, 2501)", "2500 nodes")
	expect.Error(t, LayerRows(m, f, 0, g, x[1:], in, 0, n, whole, nil), "[2500,6]")
	expect.Error(t, LayerRows(m, f, 0, g, x, in, 0, 2, make([]float32, 3), nil), "3 elements", "2 rows")
	expect.Error(t, LayerRows(m, f, 0, g, x, in, 0, n, make([]float32, n), nil), "returns 8 columns", "output has 1")
	expect.Error(t, LayerRows(m, f, 1, g, x, in, 0, n, whole, nil), "layer 1 (*nn.SAGEConv) of *nn.SAGE", "Linear")
	_, err = LayerCols(m, f, 0, 5)
	expect.Error(t, err, "layer 0 (*nn.SAGEConv) of *nn.SAGE", "[0,5]")
	_, _, err = LayerWise(m, f, g, x[:n*5], 5)
	expect.Error(t, err, "layer 0")
	_, _, err = LayerWise(m, f, g, x[1:], in)
	expect.Error(t, err, "[2500,6]")
	_, _, err = LayerWise(&SAGE{}, f, g, x, in)
	expect.Error(t, err, "*nn.SAGE has no layers")
}

// wide has more columns than a chunk of rows can bound at once, so several
// chunks run.
func TestLayerRowsChunks(t *testing.T) {
	t.Parallel()
	n := chunkMinRows*2 + 5
	g := planted(t, n)
	const in = 4
	m := NewMLPModel(ModelConfig{In: in, Out: chunkFloats/chunkMinRows + 1, Layers: 1})
	mustCollect(t, m).Init(1)
	f := NewFwd(Config{})
	x := expect.Normal(n*in, 1)
	cols := chunkFloats/chunkMinRows + 1
	lo, hi := 3, n
	out := make([]float32, (hi-lo)*cols)
	var done []int
	if err := LayerRows(m, f, 0, g, x, in, lo, hi, out, func(rows int) { done = append(done, rows) }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(done) != fmt.Sprint([]int{chunkMinRows, 2 * chunkMinRows, hi - lo}) {
		t.Errorf("the chunks end at %v", done)
	}
	f.Reset(Config{})
	y := Forward(m, f, FullGraph(g, 1), f.Input(n, in, x, nil)).Data()
	expect.SameBits(t, "chunks", y[lo*cols:], out)
}

// A batch without seeds passes through forward and backward.
func TestNoSeeds(t *testing.T) {
	t.Parallel()
	g := planted(t, 50)
	b := batch(t, g, sample.Fanouts{3, 3}, 0, nil)
	m := NewSAGEModel(ModelConfig{In: 4, Hidden: 4, Out: 2, Layers: 2, Dropout: 0.5})
	p := mustCollect(t, m)
	p.Init(1)
	f := NewFwd(Config{Train: true})
	y, err := TryForward(m, f, b.Blocks, f.Input(0, 4, nil, tensor.SrcSpace(b.Blocks[0])))
	if err != nil {
		t.Fatal(err)
	}
	l := CrossEntropy(y, nil)
	l.Backward()
	if l.Weight != 0 || l.Sum.Data()[0] != 0 {
		t.Errorf("the loss is %v with weight %v", l.Sum.Data(), l.Weight)
	}
	for i, v := range p.Grad() {
		if v != 0 {
			t.Fatalf("gradient %d is %v", i, v)
		}
	}
}

// refModel is a GraphSAGE of two layers with ReLU, dropout and cross entropy.
func refModel(m *SAGE, w []sageWeights, blocks []*Block, x ref.Matrix, labels []int32, c Config) float64 {
	h := x
	for i, b := range blocks {
		h = refSAGE(m.Convs[i], w[i], b, h)
		if i < len(blocks)-1 {
			h = ref.Unary(ops.ReLUOp, h, 0)
			ids := make([]int64, b.NumDst)
			for d := range ids {
				ids[d] = int64(b.DstID(d))
			}
			h = ref.Dropout(h, ids, c.Seed, c.Epoch, c.Step, i, m.Dropout)
		}
	}
	return refCrossEntropy(h, labels)
}

// The gradient of a complete training step equals the reference, on a sampled batch and on the
// whole graph; the step fixes dropout's mask.
func TestModelGradients(t *testing.T) {
	t.Parallel()
	const n, in = 40, 5
	g := planted(t, n)
	seeds := []int32{3, 39, 11, 0}
	all := make([]int32, n)
	labels := make([]int32, n)
	for v := range n {
		all[v], labels[v] = int32(v), int32(v%4)-1
	}
	b := batch(t, g, sample.Fanouts{3, 2}, 7, seeds)
	for name, tc := range map[string]struct {
		blocks []*Block
		ids    []int32
		labels []int32
	}{
		"sampled":    {b.Blocks, b.InputIDs(), []int32{2, 0, -1, 1}},
		"full graph": {FullGraph(g, 2), all, labels},
	} {
		for _, v := range sageVariants {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				m := NewSAGEModelWith(ModelConfig{In: in, Hidden: 6, Out: 3, Layers: 2, Dropout: 0.3}, v.o)
				p := mustCollect(t, m)
				p.Init(4)
				x := expect.Normal(len(tc.ids)*in, 1)
				c := Config{Train: true, Seed: 11, Epoch: 2, Step: 7}
				f := NewFwd(c)
				h := f.Leaf(len(tc.ids), in, x, tensor.SrcSpace(tc.blocks[0]))
				l := CrossEntropy(Forward(m, f, tc.blocks, h), tc.labels)
				l.Backward()

				rx := ref.From(len(tc.ids), in, x)
				w := []sageWeights{weightsOf(m.Convs[0]), weightsOf(m.Convs[1])}
				loss := func() float64 { return refModel(m, w, tc.blocks, rx, tc.labels, c) }
				expect.Near(t, "loss", l.Sum.Data(), []float64{loss()}, 1e-5, 1e-5)
				central(t, "input", rx, h.Grad(), loss)
				for i, conv := range m.Convs {
					central(t, "lin_l.weight", w[i].wl, conv.LinL.Weight.G, loss)
					if conv.LinL.Bias != nil {
						central(t, "lin_l.bias", w[i].bl, conv.LinL.Bias.G, loss)
					}
					if conv.LinR != nil {
						central(t, "lin_r.weight", w[i].wr, conv.LinR.Weight.G, loss)
					}
				}
			})
		}
	}
}

type wrongRows struct{ Lins []*Linear }

func (m *wrongRows) NumLayers() int { return len(m.Lins) }

func (m *wrongRows) Layer(f *Fwd, i int, _ *Block, h *Tensor) *Tensor { return m.Lins[i].Forward(f, h) }

type failing struct{ with any }

func (m *failing) NumLayers() int { return 1 }

func (m *failing) Layer(*Fwd, int, *Block, *Tensor) *Tensor {
	if m.with != nil {
		panic(m.with)
	}
	return nil
}

// noSpace drops the row space before dropout.
type noSpace struct{ Convs []any }

func (m *noSpace) NumLayers() int { return 1 }

func (m *noSpace) Layer(f *Fwd, _ int, b *Block, h *Tensor) *Tensor {
	return f.Dropout(f.Custom("mine", nil, b.NumDst, 1, func([]float32) {}, nil), 0.5)
}

func TestForwardErrors(t *testing.T) {
	t.Parallel()
	g := testGraph(t)
	f := NewFwd(Config{Train: true})
	x := f.Input(8, 5, make([]float32, 40), &Space{})
	sage := NewSAGEModel(ModelConfig{In: 5, Hidden: 4, Out: 2, Layers: 2})
	bad := NewSAGEModel(ModelConfig{In: 5, Hidden: 4, Out: 2, Layers: 2})
	bad.Convs[1] = NewSAGE(3, 2)
	broken := NewSAGEModel(ModelConfig{In: 5, Out: 2, Layers: 1})
	broken.Convs[0] = nil
	nilLin := NewSAGEModel(ModelConfig{In: 5, Out: 2, Layers: 1})
	nilLin.Convs[0].LinL = nil
	for _, tc := range []struct {
		name   string
		m      Model
		blocks []*Block
		x      *Tensor
		parts  []string
	}{
		{"no layers", &SAGE{}, nil, x, []string{"*nn.SAGE has no layers"}},
		{"too few blocks", sage, FullGraph(g, 1), x, []string{"2 layers", "1 blocks"}},
		{"nil input", sage, FullGraph(g, 2), nil, []string{"nil tensor"}},
		{"rows", sage, []*Block{sampledBlock(), sampledBlock()}, x, []string{"[8,5]", "6 sources"}},
		{"chain", sage, []*Block{g.Slice(0, 3), g.Block()}, x, []string{"block 1 has 8 sources", "block 0 has 3 destinations"}},
		{"columns", bad, FullGraph(g, 2), x, []string{"nn: layer 1 (*nn.SAGEConv) of *nn.SAGE: tensor: Linear: ", "[8,4]", "[2,3]"}},
		{"nil layer", broken, FullGraph(g, 1), x, []string{"layer 0 (*nn.SAGEConv)", "SAGEConv: the layer is nil"}},
		{"nil linear", nilLin, FullGraph(g, 1), x, []string{"layer 0", "Linear: the layer is nil"}},
		{"rows of sources", &wrongRows{[]*Linear{NewLinear(5, 1, true)}}, []*Block{g.Slice(0, 3)}, x, []string{"layer 0 (*nn.Linear) of *nn.wrongRows", "[8,1]", "3 destinations", "f.Dst"}},
		{"nil output", &failing{}, FullGraph(g, 1), x, []string{"layer 0 of *nn.failing", "nil tensor"}},
		{"dropout", &noSpace{[]any{NewLinear(1, 1, true)}}, FullGraph(g, 1), x, []string{"layer 0 (*nn.Linear) of *nn.noSpace: tensor: Dropout: ", "row space"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			y, err := TryForward(tc.m, f, tc.blocks, tc.x)
			expect.Error(t, err, tc.parts...)
			var te *tensor.Error
			if y != nil || !errors.As(err, &te) {
				t.Errorf("the output is %v and the error %T", y, err)
			}
		})
	}
	var le *LayerError
	if err := Try(func() { Forward(bad, f, FullGraph(g, 2), x) }); !errors.As(err, &le) || le.Layer != 1 {
		t.Errorf("Forward panics with %v", err)
	}
	// Panics of other kinds pass through unchanged.
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("another panic arrives as %v", r)
		}
	}()
	_, _ = TryForward(&failing{"mine"}, f, FullGraph(g, 1), x)
	t.Error("another panic was swallowed")
}

func TestStack(t *testing.T) {
	t.Parallel()
	pair := func(in, out int) [2]int { return [2]int{in, out} }
	for _, tc := range []struct {
		s    ModelConfig
		want string
	}{
		{ModelConfig{In: 3, Out: 2, Layers: 1}, "[[3 2]]"},
		{ModelConfig{In: 3, Hidden: 7, Out: 2, Layers: 2}, "[[3 7] [7 2]]"},
		{ModelConfig{In: 3, Hidden: 7, Out: 2, Layers: 4}, "[[3 7] [7 7] [7 7] [7 2]]"},
	} {
		if got := fmt.Sprint(Stack(tc.s, pair)); got != tc.want {
			t.Errorf("%v gives %s, want %s", tc.s, got, tc.want)
		}
	}
	for what, s := range map[string]ModelConfig{
		"Layers is 0":    {In: 3, Hidden: 7, Out: 2},
		"In is 0":        {Hidden: 7, Out: 2, Layers: 2},
		"Out is -1":      {In: 3, Hidden: 7, Out: -1, Layers: 2},
		"Hidden is 0":    {In: 3, Out: 2, Layers: 2},
		"Dropout is 1":   {In: 3, Out: 2, Layers: 1, Dropout: 1},
		"Dropout is NaN": {In: 3, Out: 2, Layers: 1, Dropout: nan()},
	} {
		if err := Try(func() { Stack(s, pair) }); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
