package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// sparseFeatures is a matrix [n, cols] with a third of the elements non-zero, in sparse and dense
// form.
type sparseFeatures struct {
	cols    int
	indptr  []int64
	indices []int32
	values  []float32
	full    []float32
}

func makeSparse(n, cols int) *sparseFeatures {
	x := expect.Normal(n*cols, 9)
	s := &sparseFeatures{cols: cols, indptr: []int64{0}, full: make([]float32, n*cols)}
	for r := range n {
		for c, v := range x[r*cols : (r+1)*cols] {
			if v > 0.4 {
				s.indices = append(s.indices, int32(c))
				s.values = append(s.values, v)
				s.full[r*cols+c] = v
			}
		}
		s.indptr = append(s.indptr, int64(len(s.indices)))
	}
	return s
}

// input returns the rows of the given nodes; nil means all nodes.
func (s *sparseFeatures) input(f *Fwd, ids []int32) *Tensor {
	if ids == nil {
		return f.SparseInput(len(s.indptr)-1, s.cols, s.indptr, s.indices, s.values, &Space{})
	}
	indptr, indices, values := []int64{0}, []int32{}, []float32{}
	for _, v := range ids {
		indices = append(indices, s.indices[s.indptr[v]:s.indptr[v+1]]...)
		values = append(values, s.values[s.indptr[v]:s.indptr[v+1]]...)
		indptr = append(indptr, int64(len(indices)))
	}
	return f.SparseInput(len(ids), s.cols, indptr, indices, values, &Space{IDs: ids})
}

// gradsOf runs one training step with the given number of threads and returns the output and all
// gradients.
func gradsOf(t *testing.T, m Model, p *Params, threads int, blocks []*Block, input func(f *Fwd) *Tensor) (y, grad []float32) {
	t.Helper()
	f := NewFwd(Config{Train: true, Seed: 8, Step: 1, Threads: threads})
	out := Forward(m, f, blocks, input(f))
	labels := make([]int32, out.Rows())
	for i := range labels {
		labels[i] = int32(i%(out.Cols()+1)) - 1
	}
	p.ZeroGrad()
	CrossEntropy(out, labels).Backward()
	return append([]float32(nil), out.Data()...), append([]float32(nil), p.Grad()...)
}

// Sparse features give the same results as dense ones, in training and layer by layer. With sparse
// features, too, the three ways to compute agree to the bit.
func TestSparseFeatures(t *testing.T) {
	t.Parallel()
	const n, in, out = 300, 37, 4
	plain := planted(t, n)
	x := makeSparse(n, in)
	for name, m := range everyModel(ModelConfig{In: in, Hidden: 16, Out: out, Layers: 2, Dropout: 0.4}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := suited(plain, name)
			p := mustCollect(t, m)
			p.Init(2)
			blocks := FullGraph(g, 2)
			sy, sg := gradsOf(t, m, p, 1, blocks, func(f *Fwd) *Tensor { return x.input(f, nil) })
			dy, dg := gradsOf(t, m, p, 1, blocks, func(f *Fwd) *Tensor { return f.Input(n, in, x.full, &Space{}) })
			expect.Near(t, "output", sy, floats64(dy), 2e-5, 2e-5)
			expect.Near(t, "gradient", sg, floats64(dg), 1e-3, 1e-3) // sums over 300 rows

			f := NewFwd(Config{})
			full := Forward(m, f, blocks, x.input(f, nil))
			hidden, err := LayerCols(m, NewFwd(Config{}), 0, in)
			if err != nil {
				t.Fatal(err)
			}
			h := make([]float32, n*hidden)
			for _, part := range [][2]int{{0, 100}, {100, n}} {
				err := LayerRowsFrom(m, NewFwd(Config{}), 0, g, func(f *Fwd) *Tensor { return x.input(f, nil) }, part[0], part[1], h[part[0]*hidden:part[1]*hidden], nil)
				if err != nil {
					t.Fatal(err)
				}
			}
			got := make([]float32, n*out)
			if err := LayerRows(m, NewFwd(Config{}), 1, g, h, hidden, 0, n, got, nil); err != nil {
				t.Fatal(err)
			}
			expect.SameBits(t, "layer-wise", full.Data(), got)

			b := batch(t, g, sample.Fanouts{-1, -1}, 0, []int32{299, 4, 77})
			f2 := NewFwd(Config{})
			y := Forward(m, f2, b.Blocks, x.input(f2, b.InputIDs()))
			want := gather(full.Data(), out, b.Seeds)
			if i := differ(m, want, y.Data()); i >= 0 {
				t.Fatalf("sampled: element %d is %v and %v", i, want[i], y.Data()[i])
			}
		})
	}
}

func floats64(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// For every model, the number of threads changes no bit of outputs or gradients.
func TestModelThreads(t *testing.T) {
	t.Parallel()
	const n, in = 6000, 20
	g := withEdges(withWeights(planted(t, n)))
	seeds := make([]int32, 1500)
	for i := range seeds {
		seeds[i] = int32(i * 4)
	}
	b := batch(t, g, sample.Fanouts{5, 5}, 3, seeds)
	ids := b.InputIDs()
	x, sparse := expect.Normal(n*in, 1), makeSparse(n, in)
	s := ModelConfig{In: in, Hidden: 24, Out: 5, Layers: 2, Dropout: 0.3}
	models := everyModel(s)
	s.Norm, s.BatchDegrees = "batch", true
	models["gcn batch"] = NewGCNModel(s)
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mustCollect(t, m)
			p.Init(1)
			for kind, input := range map[string]func(f *Fwd) *Tensor{
				"dense":  func(f *Fwd) *Tensor { return f.Input(len(ids), in, gather(x, in, ids), tensor.SrcSpace(b.Blocks[0])) },
				"sparse": func(f *Fwd) *Tensor { return sparse.input(f, ids) },
			} {
				y, grad := gradsOf(t, m, p, 1, b.Blocks, input)
				for threads := 2; threads <= 3; threads++ {
					y2, grad2 := gradsOf(t, m, p, threads, b.Blocks, input)
					expect.SameBits(t, fmt.Sprintf("%s output, %d threads", kind, threads), y, y2)
					expect.SameBits(t, fmt.Sprintf("%s gradient, %d threads", kind, threads), grad, grad2)
				}
			}
		})
	}
}

// Ranks that share a batch compute, each for its own seeds, the rows that one rank computes for
// all: the same neighbours, masks and bits.
func TestSharesOfABatch(t *testing.T) {
	t.Parallel()
	const n, in, out = 400, 7, 3
	g := withEdges(withWeights(planted(t, n)))
	x := expect.Normal(n*in, 1)
	seeds := []int32{399, 3, 41, 250, 77, 8, 120}
	for name, m := range everyModel(ModelConfig{In: in, Hidden: 8, Out: out, Layers: 2, Dropout: 0.4}) {
		mustCollect(t, m).Init(3)
		for _, picker := range []sample.Picker{sample.Fanouts{3, 2}, sample.Weighted{Fanouts: sample.Fanouts{3, 2}}} {
			run := func(share []int32) []float32 {
				s, err := sample.New(g, sample.Config{Picker: picker, Seed: 6})
				if err != nil {
					t.Fatal(err)
				}
				b, err := s.Sample(2, 5, sample.Seeds{IDs: share})
				if err != nil {
					t.Fatal(err)
				}
				f := NewFwd(Config{Train: true, Seed: 6, Epoch: 2, Step: 5})
				ids := b.InputIDs()
				return Forward(m, f, b.Blocks, f.Input(len(ids), in, gather(x, in, ids), tensor.SrcSpace(b.Blocks[0]))).Data()
			}
			all := run(seeds)
			for _, cut := range []int{0, 1, 4, 7} {
				parts := append(append([]float32(nil), run(seeds[:cut])...), run(seeds[cut:])...)
				expect.SameBits(t, fmt.Sprintf("%s, %T, cut at %d", name, picker, cut), all, parts)
			}
		}
	}
}

// With sampled neighbours, the mean of GCN's output over many steps equals its output on the whole
// graph.
func TestGCNIsUnbiased(t *testing.T) {
	t.Parallel()
	const n, in, steps = 60, 2, 4000
	g := withWeights(planted(t, n))
	c := NewGCN(in, 1)
	mustCollect(t, c).Init(1)
	x := expect.Normal(n*in, 3)
	f := NewFwd(Config{})
	full := append([]float32(nil), c.Forward(f, g.Block(), f.Input(n, in, x, &Space{})).Data()...)
	s, err := sample.New(g, sample.Config{Picker: sample.Fanouts{2}, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	seeds := []int32{3, 30, 59}
	sum, square := make([]float64, len(seeds)), make([]float64, len(seeds))
	for step := range steps {
		b, err := s.Sample(0, step, sample.Seeds{IDs: seeds})
		if err != nil {
			t.Fatal(err)
		}
		ids := b.InputIDs()
		f.Reset(Config{})
		y := c.Forward(f, b.Blocks[0], f.Input(len(ids), in, gather(x, in, ids), tensor.SrcSpace(b.Blocks[0])))
		for i, v := range y.Data() {
			sum[i] += float64(v)
			square[i] += float64(v) * float64(v)
		}
		b.Release()
	}
	for i, v := range seeds {
		mean := sum[i] / steps
		sd := math.Sqrt(max(square[i]/steps-mean*mean, 0) / steps)
		if want := float64(full[v]); math.Abs(mean-want) > 4*sd+1e-5 {
			t.Errorf("node %d is %v on average (±%v), and %v on the whole graph", v, mean, sd, want)
		}
	}
}

// Computed by hand. Node 0 has the in-edges 0 <- 1, 2, 3, of which 1 and 3 are sampled, and the
// graph has 1 <- 0. The degrees with self-loops are 4, 2, 1, 1.
func TestGCNDegrees(t *testing.T) {
	t.Parallel()
	g, err := graphops.FromEdges(4, []int32{1, 2, 3, 0}, []int32{0, 0, 0, 1}, graphops.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := graphops.HostBlock{NumDst: 1, NumSrc: 3, Indptr: []int64{0, 2}, Indices: []int32{1, 2}, EdgePos: []int64{0, 2}, SrcIDs: []int32{0, 1, 3}, Graph: g}.Block()
	for _, c := range []struct {
		batch bool
		want  float64
	}{
		{false, 100.0/4 + 1.5*(10/math.Sqrt(4*2)+1/math.Sqrt(4*1))},
		{true, 100.0/3 + 10/math.Sqrt(3) + 1/math.Sqrt(3)},
	} {
		l := NewGCNWith(1, 1, GCNOptions{BatchDegrees: c.batch})
		l.Lin.Weight.W[0] = 1
		f := NewFwd(Config{})
		y := l.Forward(f, b, f.Input(3, 1, []float32{100, 10, 1}, nil))
		expect.Near(t, fmt.Sprintf("batch's degrees %v", c.batch), y.Data(), []float64{c.want}, 1e-5, 1e-6)
	}
	f := NewFwd(Config{})
	expect.Error(t, Try(func() {
		NewGCN(5, 2).Forward(f, sampledBlock(), f.Input(6, 5, make([]float32, 30), nil))
	}), "GCNConv", "has neither Graph nor Degrees", "BatchDegrees")
}

// Gradients in cases that PyG's fixtures do not cover: dropout, sampled blocks, blocks in the
// middle of their arrays, and isolated nodes.
func TestLayerGradients(t *testing.T) {
	t.Parallel()
	const in = 3
	type layer interface {
		Forward(f *Fwd, b *Block, h *Tensor) *Tensor
	}
	for name, b := range testBlocks(t) {
		for kind, l := range map[string]layer{
			"gcn":               NewGCNWith(in, 4, GCNOptions{BatchDegrees: true}),
			"gat":               NewGATWith(in, 2, GATOptions{Heads: 3, Dropout: 0.4}),
			"gin":               NewGINWith(NewPerceptron(in, 4, 2), GINOptions{TrainEps: true}),
			"rel":               NewGraphConv(in, 2),
			"gatv2":             NewGATv2With(in, 2, GATv2Options{Heads: 3, Dropout: 0.4, EdgeDim: 3}),
			"sage weighted":     NewSAGEWith(in, 2, SAGEOptions{Weighted: true}),
			"sage weighted sum": NewSAGEWith(in, 2, SAGEOptions{Weighted: true, Aggr: Sum}),
			"gin weighted":      NewGINWith(NewPerceptron(in, 4, 2), GINOptions{Weighted: true, TrainEps: true}),
			"gatv2 shared":      NewGATv2With(in, 2, GATv2Options{ShareWeights: true}),
			"gine":              NewGINEWith(NewPerceptron(in, 4, 2), in, 3, GINEOptions{TrainEps: true}),
			"gine without lin":  NewGINEWith(NewPerceptron(in, 4, 2), in, in, GINEOptions{NoLin: true}),
			"transformer":       NewTransformerWith(in, 2, TransformerOptions{Heads: 3, Dropout: 0.4}),
			"transformer edges": NewTransformerWith(in, 2, TransformerOptions{Heads: 3, Mean: true, Beta: true, Dropout: 0.4, EdgeDim: 3}),
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				p := mustCollect(t, l)
				p.Init(4)
				inputs := []gradcheck.Input{gradcheck.Random(b.NumSrc, in, 1).In(tensor.SrcSpace(b))}
				for _, e := range p.List() {
					if !e.Fixed {
						inputs = append(inputs, gradcheck.Param(e.Param))
					}
				}
				gradcheck.Checker{Config: Config{Train: true, Seed: 6}}.Check(t, func(f *Fwd, x []*Tensor) *Tensor {
					y := l.Forward(f, b, x[0])
					if y.Rows() != b.NumDst || b.NumDst > 0 && y.Space().ID(0) != int64(b.DstID(0)) {
						t.Errorf("the output is %v in space %v", y, y.Space())
					}
					return y
				}, inputs...)
			})
		}
	}
}

// A node's attention has the same dropout mask in every block.
func TestAttentionDropoutFollowsEdges(t *testing.T) {
	t.Parallel()
	g := testGraph(t)
	c := NewGATWith(2, 3, GATOptions{Heads: 2, Dropout: 0.5})
	mustCollect(t, c).Init(1)
	x := expect.Normal(g.NumNodes()*2, 2)
	run := func(b *Block) []float32 {
		f := NewFwd(Config{Train: true, Seed: 9})
		return c.Forward(f, b, f.Input(g.NumNodes(), 2, x, &Space{})).Data()
	}
	full := run(g.Block())
	expect.SameBits(t, "slice", full[3*6:7*6], run(g.Slice(3, 7)))
	f := NewFwd(Config{})
	eval := c.Forward(f, g.Block(), f.Input(g.NumNodes(), 2, x, &Space{})).Data()
	same := true
	for i, v := range eval {
		same = same && v == full[i]
	}
	if same {
		t.Error("dropout drops nothing")
	}
}

// A batch norm normalises by its rows in training, updates its running statistics, and uses them in
// evaluation. It accepts blocks with no rows and with one row.
func TestBatchNorm(t *testing.T) {
	t.Parallel()
	l := NewBatchNorm(2)
	p := mustCollect(t, l)
	p.Init(1)
	if p.Len() != 4 || len(p.Fixed()) != 4 || len(p.List()) != 4 {
		t.Fatalf("%d weights are trained, %d are fixed\n%v", p.Len(), len(p.Fixed()), p)
	}
	f := NewFwd(Config{Train: true})
	y := l.Forward(f, f.Input(2, 2, []float32{1, 10, 3, 10}, nil)).Data()
	expect.Near(t, "trained", y, []float64{-1, 0, 1, 0}, 1e-5, 0)
	expect.Near(t, "running statistics", p.Fixed(), []float64{0.2, 1, 0.9 + 0.2, 0.9}, 1e-6, 0)
	f.Reset(Config{Train: true})
	if y := l.Forward(f, f.Input(0, 2, nil, nil)); y.Rows() != 0 {
		t.Errorf("a block without rows gives %v", y)
	}
	expect.Near(t, "after no rows", p.Fixed(), []float64{0.2, 1, 1.1, 0.9}, 1e-6, 0)
	expect.Near(t, "one row", l.Forward(f, f.Input(1, 2, []float32{5, 6}, nil)).Data(), []float64{0, 0}, 0, 0)
	expect.Near(t, "after one row", p.Fixed(), []float64{0.68, 1.5, 1.1, 0.9}, 1e-6, 0)
	before := append([]float32(nil), p.Fixed()...)
	f.Reset(Config{})
	y = l.Forward(f, f.Input(1, 2, []float32{0.68, 2.5}, nil)).Data()
	expect.Near(t, "evaluated", y, []float64{0, 1 / math.Sqrt(0.9)}, 1e-4, 0)
	expect.SameBits(t, "evaluation changes nothing", before, p.Fixed())

	// The running statistics are saved and loaded with the weights.
	other := NewBatchNorm(2)
	q := mustCollect(t, other)
	if err := q.Load(p.Values()); err != nil {
		t.Fatal(err)
	}
	expect.SameBits(t, "loaded", before, q.Fixed())
	if names := fmt.Sprint(q.Names()); names != "[module.weight module.bias module.running_mean module.running_var]" {
		t.Errorf("names %s", names)
	}
}

// Fixed parameters get no gradient and do not change the random start of the others. FileShape is
// the shape in files.
func TestFixedAndShape(t *testing.T) {
	t.Parallel()
	type with struct {
		A *Param
		F *Param
		B *Param
	}
	type without struct{ A, B *Param }
	m := &with{NewParam(2, 3), NewFixed(1, 2, 7), NewParam(2, 2)}
	p := mustCollect(t, m)
	p.Init(5)
	q := mustCollect(t, &without{NewParam(2, 3), NewParam(2, 2)})
	q.Init(5)
	expect.SameBits(t, "flat", p.Flat(), q.Flat())
	if m.F.W[0] != 7 || m.F.G != nil || p.Get("f") != m.F || p.Names()[2] != "f" {
		t.Errorf("fixed: %v, gradient %v, names %v", m.F.W, m.F.G, p.Names())
	}
	a := NewParam(1, 6)
	a.FileShape = []int{1, 2, 3}
	s := mustCollect(t, &without{a, NewParam(1, 1)})
	if got := s.Values()["a"].Shape; fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("shape %v", got)
	}
	a.FileShape = []int{2, 2}
	_, err := Collect(&without{a, NewParam(1, 1)})
	expect.Error(t, err, "A is [1,6] but its FileShape is [2 2]")
}

func TestSizesErrors(t *testing.T) {
	t.Parallel()
	s := ModelConfig{In: 2, Hidden: 6, Out: 2, Layers: 2}
	for want, change := range map[string]func(s *ModelConfig){
		"InputDropout is 1":         func(s *ModelConfig) { s.InputDropout = 1 },
		"Heads is -1":               func(s *ModelConfig) { s.Heads = -1 },
		`Norm is "graph"`:           func(s *ModelConfig) { s.Norm = "graph" },
		`Activation is "tanh"`:      func(s *ModelConfig) { s.Activation = "tanh" },
		"Hidden must be a multiple": func(s *ModelConfig) { s.Heads = 4 },
	} {
		c := s
		change(&c)
		expect.Error(t, Try(func() { NewGATModel(c) }), want)
	}
}
