package nn

import (
	"slices"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// maskRows numbers the edges of g by their positions, for f.MaskEdges: an edge that a layer adds has no mask.
func maskRows(g *graphops.Graph) func(b *Block) []int32 {
	return func(b *Block) []int32 {
		rows := make([]int32, 0, b.NumEdges())
		indptr := b.Indptr()
		for e := indptr[0]; e < indptr[b.NumDst]; e++ {
			if pos := b.Pos(e); pos < g.NumEdges() {
				rows = append(rows, int32(pos))
			} else {
				rows = append(rows, -1)
			}
		}
		return rows
	}
}

// The mask of an edge multiplies its message in each layer: masks of 1 change nothing, layers differentiate by masks, and with a sum
// an edge with mask 0 is as absent.
func TestMaskedEdges(t *testing.T) {
	t.Parallel()
	const in = 3
	g := testGraph(t)
	g = g.WithEdgeData(&graphops.EdgeFeatures{Cols: 3, F32: expect.Normal(3*int(g.NumEdges()), 5)}, nil)
	b, n, edges := g.Block(), g.NumNodes(), int(g.NumEdges())
	x := expect.Normal(n*in, 3)
	for kind, l := range map[string]interface {
		Forward(f *Fwd, b *Block, h *Tensor) *Tensor
	}{
		"sage": NewSAGE(in, 2), "sage sum": NewSAGEWith(in, 2, SAGEOptions{Aggr: Sum}), "sage max": NewSAGEWith(in, 2, SAGEOptions{Aggr: Max}),
		"sage weighted": NewSAGEWith(in, 2, SAGEOptions{Weighted: true}), "gcn": NewGCN(in, 4), "gat": NewGATWith(in, 2, GATOptions{Heads: 3}),
		"gin": NewGIN(NewPerceptron(in, 4, 2)), "rel": NewGraphConv(in, 2), "gatv2": NewGATv2With(in, 2, GATv2Options{Heads: 3}),
		"gine": NewGINEWith(NewPerceptron(in, 4, 2), in, 3, GINEOptions{}), "gatedgcn": NewGatedGCN(in, 4, 3), "transformer": NewTransformerWith(in, 2, TransformerOptions{Heads: 3}), "transformer edges": NewTransformerWith(in, 2, TransformerOptions{Heads: 3, EdgeDim: 3}),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			mustCollect(t, l).Init(4)
			masked := func(m []float32) []float32 {
				f := NewFwd(Config{})
				if m != nil {
					f.MaskEdges(f.Input(edges, 1, m, nil), maskRows(g))
				}
				return l.Forward(f, b, f.Input(n, in, x, &Space{})).Data()
			}
			ones := make([]float32, edges)
			for i := range ones {
				ones[i] = 1
			}
			var want []float64
			for _, v := range masked(nil) {
				want = append(want, float64(v))
			}
			all := masked(ones)
			expect.Near(t, "masks of 1", all, want, 1e-5, 1e-5)
			gradcheck.Check(t, func(f *Fwd, x []*Tensor) *Tensor {
				f.MaskEdges(x[1], maskRows(g))
				return l.Forward(f, b, x[0])
			}, gradcheck.Data(n, in, x), gradcheck.Random(edges, 1, 8))
			if !slices.Contains([]string{"sage max", "gin", "gine"}, kind) { // what normalises messages has no masks, so these are linear in them
				none, half := masked(make([]float32, edges)), slices.Repeat([]float32{0.5}, edges)
				for i := range none {
					want[i] = (float64(none[i]) + float64(all[i])) / 2
				}
				expect.Near(t, "masks of a half", masked(half), want, 1e-5, 1e-5)
			}
			ones[0] = 0
			if dst := dstOf(b, 0); kind != "sage max" { // another edge may have been the maximum
				changed := false
				y := masked(ones)
				width := len(y) / n
				for i, v := range y {
					if moved := v != all[i]; moved && i/width != dst {
						t.Fatalf("an edge to node %d changes node %d", dst, i/width)
					} else if moved {
						changed = true
					}
				}
				if !changed {
					t.Error("an edge with mask 0 still counts")
				}
			}
		})
	}
}

// Layers that divide a block by the types of its edges take the masks too.
func TestMaskedTypedEdges(t *testing.T) {
	t.Parallel()
	g := typedGraph(t)
	n, edges := g.NumNodes(), int(g.NumEdges())
	r := len(g.Schema.Relations)
	for kind, l := range map[string]Conv{
		"rgcn": NewRGCN(3, 4, r), "rgcn bases": NewRGCNWith(3, 4, r, RGCNOptions{Bases: 2}), "rgcn bases, sum": NewRGCNWith(3, 4, r, RGCNOptions{Bases: 2, Aggr: Sum}),
		"rgcn blocks": NewRGCNWith(4, 4, r, RGCNOptions{Blocks: 2}), "per relation": PerRelation(g.Schema, func(graphops.Relation) Conv { return NewSAGE(3, 4) }, Sum),
	} {
		in := 3
		if kind == "rgcn blocks" {
			in = 4
		}
		x := expect.Normal(n*in, 3)
		mustCollect(t, l).Init(4)
		run := func(m []float32) []float32 {
			f := NewFwd(Config{})
			if m != nil {
				f.MaskEdges(f.Input(edges, 1, m, nil), maskRows(g))
			}
			return l.Forward(f, g.Block(), f.Input(n, in, x, &Space{})).Data()
		}
		ones := make([]float32, edges)
		for i := range ones {
			ones[i] = 1
		}
		var want []float64
		for _, v := range run(nil) {
			want = append(want, float64(v))
		}
		all := run(ones)
		expect.Near(t, kind+": masks of 1", all, want, 1e-5, 1e-5)
		ones[2] = 0
		dst, changed, y := dstOf(g.Block(), 2), false, run(ones)
		for i, v := range y {
			if moved := v != all[i]; moved && i/4 != dst {
				t.Fatalf("%s: an edge to node %d changes node %d", kind, dst, i/4)
			} else if moved {
				changed = true
			}
		}
		if !changed {
			t.Errorf("%s: an edge with mask 0 still counts", kind)
		}
		gradcheck.Check(t, func(f *Fwd, x []*Tensor) *Tensor {
			f.MaskEdges(x[1], maskRows(g))
			return l.Forward(f, g.Block(), x[0])
		}, gradcheck.Data(n, in, x), gradcheck.Random(edges, 1, 8))
	}
}

func dstOf(b *Block, e int64) int {
	for d := range b.NumDst {
		if e < b.Indptr()[d+1] {
			return d
		}
	}
	return -1
}
