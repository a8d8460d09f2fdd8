package nn

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testneed"
)

// typedGraph returns the graph of testdata/pyg_typed.py.
func typedGraph(t testing.TB) *graphops.Graph {
	t.Helper()
	edges := [][3]int{
		{4, 0, 0},
		{5, 0, 0},
		{4, 1, 0},
		{6, 1, 0},
		{1, 0, 1},
		{2, 0, 1},
		{3, 1, 1},
		{0, 0, 1},
		{2, 3, 1},
		{0, 4, 2},
		{0, 5, 2},
		{1, 4, 2},
		{1, 6, 2},
		{7, 0, 5},
		{7, 2, 5},
		{8, 2, 5},
		{8, 0, 5},
		{4, 0, 6},
		{5, 3, 6},
	}
	var src, dst []int32
	var types []uint16
	for _, e := range edges {
		src, dst, types = append(src, int32(e[0])), append(dst, int32(e[1])), append(types, uint16(e[2]))
	}
	g, err := graphops.FromEdgesWith(9, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err = g.WithTypes(&graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "paper", Count: 4}, {Name: "author", Count: 3}, {Name: "venue", Count: 0}, {Name: "topic", Count: 2}},
		Relations: []graphops.Relation{
			{Src: "author", Name: "writes", Dst: "paper"},
			{Src: "paper", Name: "cites", Dst: "paper"},
			{Src: "paper", Name: "rev_writes", Dst: "author"},
			{Src: "author", Name: "knows", Dst: "author"},
			{Src: "venue", Name: "prints", Dst: "paper"},
			{Src: "topic", Name: "of", Dst: "paper"},
			{Src: "author", Name: "reviews", Dst: "paper"},
		},
	}, g.EdgeTypes)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var typedReverse = []bool{false, false, true, false, false, false, false}

// oneCompGCN is a layer with its relations, whose rows are returned behind those of the nodes.
type oneCompGCN struct {
	*CompGCNConv
	Rel *Param `nn:"rel"`
}

func (c *oneCompGCN) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	y, z := c.CompGCNConv.Forward(f, b, h, f.Param(c.Rel))
	return f.Stack(y, z)
}

// wide reports whether a layer of typedLayers has 6 input columns instead of 5.
func wide(name string) bool { return name == "hgt skip" || name == "rgcn blocks" }

func typedLayers(s *graphops.Schema) map[string]Conv {
	r := len(s.Relations)
	layers := map[string]Conv{
		"rgcn":                        NewRGCN(5, 6, r),
		"rgcn bases":                  NewRGCNWith(5, 6, r, RGCNOptions{Bases: 3}),
		"rgcn bases, sum":             NewRGCNWith(5, 6, r, RGCNOptions{Bases: 2, Aggr: Sum}),
		"rgcn, sum, no root, no bias": NewRGCNWith(5, 6, r, RGCNOptions{Aggr: Sum, NoRoot: true, NoBias: true}),
		"rgcn blocks":                 NewRGCNWith(6, 6, r, RGCNOptions{Blocks: 2}),
		"hgt":                         NewHGT(5, 6, 2, s),
		"hgt skip":                    NewHGT(6, 6, 3, s),
		"hgt one head":                NewHGT(5, 6, 1, s),
		"per relation, sage":          PerRelation(s, func(graphops.Relation) Conv { return NewSAGE(5, 6) }, Sum),
		"per relation, sage, mean":    PerRelation(s, func(graphops.Relation) Conv { return NewSAGE(5, 6) }, Mean),
		"per relation, graph":         PerRelation(s, func(graphops.Relation) Conv { return NewGraphConv(5, 6) }, Sum),
	}
	for _, c := range []Composition{Subtract, Multiply, Correlate} {
		layers["compgcn "+c.String()] = &oneCompGCN{NewCompGCN(5, 6, typedReverse, CompGCNOptions{Composition: c}), NewParam(r, 5)}
	}
	layers["compgcn corr, sum, no bias"] = &oneCompGCN{NewCompGCN(5, 6, typedReverse, CompGCNOptions{Composition: Correlate, Aggr: Sum, NoBias: true}), NewParam(r, 5)}
	return layers
}

// Names, shapes, outputs and gradients equal PyG's, and those of CompGCN a plain implementation's in PyTorch.
func TestTypedLayersArePyG(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/pyg_typed.json")
	if err != nil {
		t.Fatal(err)
	}
	var py struct {
		Cases map[string]struct {
			In            int
			Params, Grads map[string]goldenTensor
			Y, DX         []float64
			Rows          []bool
		}
	}
	if err := json.Unmarshal(raw, &py); err != nil {
		t.Fatal(err)
	}
	g := typedGraph(t)
	layers := typedLayers(g.Schema)
	for name := range py.Cases {
		if layers[name] == nil {
			t.Errorf("pyg_typed.json has %q, but no test uses it", name)
		}
	}
	compare := func(t *testing.T, name string, l Conv) {
		want, ok := py.Cases[name]
		if !ok {
			t.Fatal("pyg_typed.json lacks this case; run scripts/fixtures.sh")
		}
		p := fromPython(t, l, want.Params)
		f := NewFwd(Config{Grad: true})
		h := f.Leaf(9, want.In, pygValues(9*want.In, 0), &Space{})
		y := l.Forward(f, g.Block(), h)
		cols := y.Cols()
		got, weights := append([]float32(nil), y.Data()...), pygValues(y.Rows()*cols, 5)
		for r, there := range want.Rows {
			if !there { // PyG returns no rows for this type
				clear(got[r*cols : (r+1)*cols])
				clear(weights[r*cols : (r+1)*cols])
			}
		}
		expect.Near(t, "output", got, want.Y, 1e-5, 1e-5)
		if err := f.SumAll(f.Mul(y, f.Input(y.Rows(), cols, weights, nil))).Backward(); err != nil {
			t.Fatal(err)
		}
		expect.Near(t, "gradient of the input", h.Grad(), want.DX, 1e-5, 1e-5)
		for _, e := range p.List() {
			expect.Near(t, "gradient of "+e.Name, e.G, want.Grads[e.Name].Data, 1e-5, 1e-5)
		}
	}
	for name, l := range layers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, l)
			if c, ok := l.(*RGCNConv); ok && c.Comp != nil {
				c.ByRelation = true
				compare(t, name, l)
			}
		})
	}
}

// typedInputs are TypedInput, and features for it.
func typedInputs(s *graphops.Schema) (*TypedInput, []Table) {
	return NewTypedInput(s, []int{3, 0, 2, 4}, 5), []Table{{F32: pygValues(12, 3)}, {}, {}, {F32: pygValues(8, 4)}}
}

// A layer's gradients equal central differences of its results, as do those of a typed input.
func TestTypedGradients(t *testing.T) {
	t.Parallel()
	g := typedGraph(t)
	layers := typedLayers(g.Schema)
	layers["typed input"] = inputConv{}
	for name, l := range layers {
		t.Run(name, func(t *testing.T) {
			if name == "hgt skip" || name == "hgt one head" {
				testneed.NotShort(t, "the layer with two heads has run")
			}
			t.Parallel()
			in := 5
			if wide(name) {
				in = 6
			}
			x := pygValues(9*in, 2)
			if _, ok := l.(inputConv); ok {
				m, tables := typedInputs(g.Schema)
				l = inputConv{m, tables}
			}
			p := mustCollect(t, l)
			p.Init(7)
			inputs := []gradcheck.Input{gradcheck.Data(9, in, x).In(&Space{})}
			for _, e := range p.List() {
				inputs = append(inputs, gradcheck.Param(e.Param))
			}
			gradcheck.Check(t, func(f *Fwd, x []*Tensor) *Tensor { return l.Forward(f, g.Block(), x[0]) }, inputs...)
		})
	}
}

// inputConv is a TypedInput as a layer that ignores h.
type inputConv struct {
	In     *TypedInput
	tables []Table
}

func (c inputConv) Forward(f *Fwd, b *Block, _ *Tensor) *Tensor { return c.In.Forward(f, b, c.tables) }

// A row has the same bits in the whole graph, in a slice of it, and in a block whose rows are in another order
// and whose other destinations are others.
func TestTypedRowsDoNotDependOnTheBlock(t *testing.T) {
	t.Parallel()
	g := typedGraph(t)
	for name, l := range typedLayers(g.Schema) {
		if strings.HasPrefix(name, "compgcn") {
			l = relationsFirst{l.(*oneCompGCN)}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := 5
			if wide(name) {
				in = 6
			}
			mustCollect(t, l).Init(7)
			x := pygValues(9*in, 2)
			f := NewFwd(Config{Threads: 2})
			whole := l.Forward(f, g.Block(), f.Input(9, in, x, &Space{}))
			cols, all := whole.Cols(), append([]float32(nil), whole.Data()...)
			for lo := range 9 {
				f.Reset(Config{})
				part := l.Forward(f, g.Slice(lo, min(lo+2, 9)), f.Input(9, in, x, &Space{}))
				expect.SameBits(t, "rows of a slice", part.Data(), all[lo*cols:min(lo+2, 9)*cols])
			}
			// Destinations 5, 0 and 8; the sources follow in descending order.
			order := []int32{5, 0, 8, 7, 6, 4, 3, 2, 1}
			at := make([]int32, 9)
			rows := make([]float32, 0, len(x))
			for i, v := range order {
				at[v] = int32(i)
				rows = append(rows, x[int(v)*in:(int(v)+1)*in]...)
			}
			h := graphops.HostBlock{NumDst: 3, NumSrc: 9, Graph: g, SrcIDs: order, Indptr: []int64{0}, EdgePos: []int64{}}
			var want []float32
			for _, v := range order[:3] {
				for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
					h.Indices, h.EdgePos = append(h.Indices, at[g.Indices[e]]), append(h.EdgePos, e)
				}
				h.Indptr = append(h.Indptr, int64(len(h.Indices)))
				want = append(want, all[int(v)*cols:(int(v)+1)*cols]...)
			}
			f.Reset(Config{})
			expect.SameBits(t, "rows of a block", l.Forward(f, h.Block(), f.Input(9, in, rows, &Space{IDs: order})).Data(), want)
		})
	}
}

// relationsFirst drops the relations' rows of a oneCompGCN.
type relationsFirst struct {
	Layer *oneCompGCN
}

func (c relationsFirst) Forward(f *Fwd, b *Block, h *Tensor) *Tensor {
	y, _ := c.Layer.CompGCNConv.Forward(f, b, h, f.Param(c.Layer.Rel))
	return y
}

// Blocks without rows, without edges and without one of the types give rows of the right shape, and gradients.
func TestTypedEmptyBlocks(t *testing.T) {
	t.Parallel()
	g := typedGraph(t)
	layers := typedLayers(g.Schema)
	m, tables := typedInputs(g.Schema)
	layers["typed input"] = inputConv{m, tables}
	for _, c := range []struct {
		name string
		h    graphops.HostBlock
	}{
		{"nothing, of no graph", graphops.HostBlock{Indptr: []int64{0}}},
		{"no rows", graphops.HostBlock{Indptr: []int64{0}, SrcIDs: []int32{}, EdgePos: []int64{}, Graph: g}},
		{"no destinations", graphops.HostBlock{NumSrc: 2, Indptr: []int64{0}, SrcIDs: []int32{8, 1}, EdgePos: []int64{}, Graph: g}},
		{"no edges", graphops.HostBlock{NumDst: 2, NumSrc: 2, Indptr: []int64{0, 0, 0}, SrcIDs: []int32{8, 1}, EdgePos: []int64{}, Graph: g}},
		{"topics alone", graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 0}, SrcIDs: []int32{7}, EdgePos: []int64{}, Graph: g}},
	} {
		for name, l := range layers {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				in := 5
				if wide(name) {
					in = 6
				}
				p := mustCollect(t, l)
				p.Init(1)
				f := NewFwd(Config{Grad: true})
				b := c.h.Block()
				x := f.Leaf(b.NumSrc, in, pygValues(b.NumSrc*in, 1), nil)
				y := l.Forward(f, b, x)
				rows := b.NumDst
				if strings.HasPrefix(name, "compgcn") {
					rows += 7
				}
				if name == "typed input" {
					rows = b.NumSrc
				}
				if y.Rows() != rows || y.Cols() != map[bool]int{false: 6, true: 5}[name == "typed input"] {
					t.Fatalf("the result is [%d,%d] for %d destinations", y.Rows(), y.Cols(), b.NumDst)
				}
				if err := f.SumAll(y).Backward(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// What does not fit is an error that names the layer.
func TestTypedMisuse(t *testing.T) {
	t.Parallel()
	g := typedGraph(t)
	plain := g.Homogeneous()
	big := &graphops.Graph{Indptr: []int64{0, 0, 1}, Indices: []int32{0}, EdgeTypes: []uint16{9}}
	input := func(f *Fwd, n, cols int) *Tensor { return f.Input(n, cols, make([]float32, n*cols), &Space{}) }
	for _, c := range []struct {
		name string
		run  func(f *Fwd)
		want string
	}{
		{"no types", func(f *Fwd) { NewRGCN(2, 2, 3).Forward(f, plain.Block(), input(f, 9, 2)) }, "have no types"},
		{"type out of range", func(f *Fwd) { NewRGCN(2, 2, 3).Forward(f, big.Block(), input(f, 2, 2)) }, "has type 9"},
		{"bases, type out of range", func(f *Fwd) {
			NewRGCNWith(2, 2, 3, RGCNOptions{Bases: 1}).Forward(f, big.Block(), input(f, 2, 2))
		}, "has type 9"},
		{"columns", func(f *Fwd) { NewRGCN(3, 2, 7).Forward(f, g.Block(), input(f, 9, 2)) }, "made for 3 columns"},
		{"no relations", func(*Fwd) { NewRGCN(2, 2, 0) }, "0 relations"},
		{"blocks", func(*Fwd) { NewRGCNWith(6, 4, 2, RGCNOptions{Blocks: 4}) }, "Blocks divides both"},
		{"blocks and bases", func(*Fwd) { NewRGCNWith(6, 4, 2, RGCNOptions{Blocks: 2, Bases: 2}) }, "2 blocks and 2 bases"},
		{"maximum", func(*Fwd) { NewRGCNWith(2, 2, 1, RGCNOptions{Aggr: Max}) }, "Mean or Sum"},
		{"no schema", func(*Fwd) { NewHGT(2, 2, 1, nil) }, "no relations"},
		{"heads", func(*Fwd) { NewHGT(2, 5, 2, g.Schema) }, "not divisible"},
		{"another graph", func(f *Fwd) {
			NewHGT(2, 2, 1, g.Schema).Forward(f, graphops.HostBlock{NumDst: 1, NumSrc: 1, Indptr: []int64{0, 0}, SrcIDs: []int32{9}}.Block(), input(f, 1, 2))
		}, "node 9"},
		{"nil convolution", func(*Fwd) { PerRelation(g.Schema, func(graphops.Relation) Conv { return nil }, Sum) }, "no convolution"},
		{"different widths", func(f *Fwd) {
			n := 0
			PerRelation(g.Schema, func(graphops.Relation) Conv { n++; return NewSAGE(2, n) }, Sum).Forward(f, g.Block(), input(f, 9, 2))
		}, "equally many"},
		{"relations of CompGCN", func(f *Fwd) {
			NewCompGCN(2, 2, typedReverse, CompGCNOptions{}).Forward(f, g.Block(), input(f, 9, 2), input(f, 3, 2))
		}, "7 relations"},
		{"widths", func(*Fwd) { NewTypedInput(g.Schema, []int{1}, 2) }, "1 numbers"},
		{"tables", func(f *Fwd) {
			m, tables := typedInputs(g.Schema)
			tables[0].F32 = tables[0].F32[:3]
			m.Forward(f, g.Block(), tables)
		}, "type paper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Try(func() { c.run(NewFwd(Config{})) })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}
