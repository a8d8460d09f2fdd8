package nn

import (
	"testing"

	"github.com/graphnb/graphnb/graphops"

	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/internal/expect"
)

// A training step of 3 layers on a batch of 1024 with fanout 15, 10, 5.
func BenchmarkStep(b *testing.B) {
	benchmarkStep(b, ModelConfig{Layers: 3, Dropout: 0.5}, sample.Fanouts{15, 10, 5})
}

// A training step of 6 layers with layer norms and residuals.
func BenchmarkDeepStep(b *testing.B) {
	benchmarkStep(b, ModelConfig{Layers: 6, Dropout: 0.5, Norm: "layer", Residual: true}, sample.Fanouts{4, 3, 2, 2, 2, 2})
}

func benchmarkStep(b *testing.B, sizes ModelConfig, fanouts sample.Fanouts) {
	const n, in, size = 50_000, 128, 1024
	g := planted(b, n)
	sizes.In, sizes.Hidden, sizes.Out = in, 256, 40
	m := NewSAGEModel(sizes)
	p, err := Collect(m)
	if err != nil {
		b.Fatal(err)
	}
	p.Init(1)
	seeds, labels := make([]int32, size), make([]int32, size)
	for i := range seeds {
		seeds[i], labels[i] = int32(i*31), int32(i%40)
	}
	batch := batch(b, g, fanouts, 0, seeds)
	ids := batch.InputIDs()
	x := expect.Normal(len(ids)*in, 1)
	adam := optim.NewAdam(optim.AdamOptions{})
	f := NewFwd(Config{})
	for b.Loop() {
		f.Reset(Config{Train: true, Seed: 1})
		h := f.Input(len(ids), in, x, tensor.SrcSpace(batch.Blocks[0]))
		l := CrossEntropy(Forward(m, f, batch.Blocks, h), labels)
		p.ZeroGrad()
		l.Backward()
		adam.Step(p.Flat(), p.Grad(), 1/float32(l.Weight))
	}
	b.ReportMetric(float64(batch.Edges())*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
}

func BenchmarkAdam(b *testing.B) {
	const n = 1 << 20
	w, g := expect.Normal(n, 1), expect.Normal(n, 2)
	adam := optim.NewAdam(optim.AdamOptions{})
	b.SetBytes(7 * 4 * n) // w, m and v are read and written, g is read
	for b.Loop() {
		adam.Step(w, g, 0.5)
	}
}

func BenchmarkCrossEntropy(b *testing.B) {
	const n, cols = 1024, 40
	x, labels := expect.Normal(n*cols, 1), make([]int32, n)
	f := NewFwd(Config{})
	for b.Loop() {
		f.Reset(Config{Grad: true})
		CrossEntropy(f.Leaf(n, cols, x, nil), labels).Backward()
	}
}

// A forward and a backward pass of one layer over a whole graph of 20,000 nodes with about 6
// in-edges each.
func BenchmarkLayers(b *testing.B) {
	const n, in = 20_000, 128
	g := planted(b, n)
	x, sparse := expect.Normal(n*in, 1), makeSparse(n, in)
	block := g.Block()
	for _, c := range []struct {
		name  string
		layer interface {
			Forward(f *Fwd, b *Block, h *Tensor) *Tensor
		}
		sparse bool
	}{
		{"sage", NewSAGE(in, 64), false},
		{"gcn", NewGCN(in, 64), false},
		{"gcn of sparse features", NewGCN(in, 64), true},
		{"gat of 8 heads", NewGATWith(in, 8, GATOptions{Heads: 8}), false},
		{"gin", NewGIN(NewPerceptron(in, 64, 64)), false},
	} {
		b.Run(c.name, func(b *testing.B) {
			mustCollect(b, c.layer).Init(1)
			f := NewFwd(Config{})
			for b.Loop() {
				f.Reset(Config{Train: true})
				var h *Tensor
				if c.sparse {
					h = sparse.input(f, nil)
				} else {
					h = f.Input(n, in, x, &Space{})
				}
				if err := f.SumAll(c.layer.Forward(f, block, h)).Backward(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(g.NumEdges())*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}

// What a GCN computes on the host for each new block: self-loops, and a factor for each edge. One column makes the layer itself
// cheap.
func BenchmarkGCNFactors(b *testing.B) {
	const n = 100_000
	plain := planted(b, n)
	w := make([]float32, plain.NumEdges())
	for i := range w {
		w[i] = 0.5 + float32(i%7)/7
	}
	for _, c := range []struct {
		name string
		g    *graphops.Graph
	}{{"plain", plain}, {"weighted", plain.WithEdgeWeights(w)}} {
		b.Run(c.name, func(b *testing.B) {
			layer, x := NewGCN(1, 1), make([]float32, n)
			mustCollect(b, layer).Init(1)
			f := NewFwd(Config{Threads: 1})
			for b.Loop() {
				f.Reset(Config{Threads: 1})
				layer.Forward(f, c.g.Block(), f.Input(n, 1, x, &Space{}))
			}
			b.ReportMetric(float64(c.g.NumEdges())*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}

// A training step of a temporal graph network: the memories of 800 nodes, and attention of 290 nodes over 10 events each.
func BenchmarkEventStep(b *testing.B) {
	const roots, k, nodes, width = 290, 10, 800, 100
	type tgn struct {
		GRU  *GRUCell
		Time *TimeEncoder
		Conv *TransformerConv
	}
	m := &tgn{NewGRUCell(3*width, width), NewTimeEncoder(width), NewTransformerWith(width, width/2, TransformerOptions{Heads: 2, Dropout: 0.1, EdgeDim: width})}
	p, err := Collect(m)
	if err != nil {
		b.Fatal(err)
	}
	p.Init(1)
	indptr, indices, pos, ids := make([]int64, roots+1), make([]int32, roots*k), make([]int64, roots*k), make([]int32, nodes)
	for i := range indices {
		indices[i], pos[i], indptr[i/k+1] = int32(i*7%nodes), int64(i), int64(i+1)
	}
	for i := range ids {
		ids[i] = int32(i)
	}
	block := graphops.HostBlock{NumDst: roots, NumSrc: nodes, Indptr: indptr, Indices: indices, EdgePos: pos, SrcIDs: ids}.Block()
	memory, spans := expect.Normal(nodes*width, 1), expect.Normal(roots*k, 2)
	adam := optim.NewAdam(optim.AdamOptions{})
	f := NewFwd(Config{})
	for b.Loop() {
		f.Reset(Config{Train: true, Seed: 1})
		own := f.Input(nodes, width, memory, nil)
		h := m.GRU.ForwardParts(f, []*Tensor{own, own, m.Time.Forward(f, f.Input(nodes, 1, spans[:nodes], nil))}, own)
		y := m.Conv.ForwardEdges(f, block, h, m.Time.Forward(f, f.Input(roots*k, 1, spans, nil)))
		p.ZeroGrad()
		if err := f.SumAll(f.Mul(y, y)).Backward(); err != nil {
			b.Fatal(err)
		}
		adam.Step(p.Flat(), p.Grad(), 1)
	}
}
