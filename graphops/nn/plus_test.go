package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

func plusConfig() ModelConfig {
	return ModelConfig{In: 3, Hidden: 4, Out: 2, Layers: 3, EdgeDim: 3, Norm: "layer", Residual: true, FeedForward: true, EdgeStates: true, LogDegree: 1.2, Dropout: 0.2}
}

// A batch of whole graphs gives each graph the rows that it has alone, with rows of edges that go from layer to layer and with
// dropout, whose masks follow the ids of nodes and the positions of edges.
func TestEdgeStatesOfAGraphAreItsOwn(t *testing.T) {
	t.Parallel()
	m := NewGatedGCNModel(plusConfig())
	mustCollect(t, m).Init(1)
	g := pygEdges(pygGraph(t, false), 3, 7)
	x := expect.Normal(8*3, 1)
	whole := func(b *Block, x []float32) []float32 {
		f := NewFwd(Config{Train: true, Seed: 4})
		return Forward(m, f, []*Block{b, b, b}, f.Input(b.NumSrc, 3, x, tensor.SrcSpace(b))).Data()
	}
	// Two copies of the graph: their nodes and edges have the same ids, so the masks agree too.
	twice := graphops.HostBlock{NumDst: 16, NumSrc: 16, Indptr: append([]int64(nil), g.Indptr...), Graph: g}
	n := int64(len(g.Indices))
	for v := range 16 {
		twice.SrcIDs = append(twice.SrcIDs, int32(v%8))
	}
	for c := range int32(2) {
		for e, u := range g.Indices {
			twice.Indices = append(twice.Indices, u+8*c)
			twice.EdgePos = append(twice.EdgePos, int64(e))
		}
	}
	for _, at := range g.Indptr[1:] {
		twice.Indptr = append(twice.Indptr, at+n)
	}
	one, both := whole(g.Block(), x), whole(twice.Block(), append(append([]float32(nil), x...), x...))
	expect.SameBits(t, "the first graph", one, both[:16])
	expect.SameBits(t, "the second graph", one, both[16:])
}

// Rows of edges change the result, and their gradients are those of the whole network.
func TestEdgeStatesAreCarried(t *testing.T) {
	t.Parallel()
	b := pygEdges(pygGraph(t, false), 3, 7).Block()
	for _, dim := range []int{3, 0} {
		s := plusConfig()
		s.EdgeDim, s.Activation, s.FeedForward = dim, "elu", false // smooth: no kinks, of which three layers have many
		m := NewGatedGCNModel(s)
		in := inputsOf(t, m, 8, 3)
		gradcheck.Checker{Config: Config{Train: true, Seed: 3}, Max: 20}.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
			return Forward(m, f, []*Block{b, b, b}, x[0])
		}, in...)
		f := NewFwd(Config{Grad: true})
		if err := f.SumAll(Forward(m, f, []*Block{b, b, b}, f.Input(8, 3, expect.Normal(24, 1), &Space{}))).Backward(); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*Param{m.Convs[2].C.Weight, m.Convs[1].C.Weight} {
			zero := true
			for _, v := range p.G {
				zero = zero && v == 0
			}
			if zero {
				t.Errorf("with %d features of edges, %s has no gradient", dim, p.Name)
			}
		}
	}
}

// Sampled batches and layer-wise inference refuse states of edges instead of computing something else.
func TestEdgeStatesNeedOneBlock(t *testing.T) {
	t.Parallel()
	m := NewGatedGCNModel(plusConfig())
	mustCollect(t, m).Init(1)
	g := withEdges(planted(t, 60))
	x := expect.Normal(60*3, 1)
	b := batch(t, g, sample.Fanouts{3, 3, 3}, 0, []int32{1, 2})
	f := NewFwd(Config{})
	_, err := TryForward(m, f, b.Blocks, f.Input(b.Blocks[0].NumSrc, 3, gather(x, 3, b.InputIDs()), tensor.SrcSpace(b.Blocks[0])))
	expect.Error(t, err, "layer 1 (*nn.GatedGCNConv) of *nn.GatedGCN", "no states of this block's edges from layer 0", "leave EdgeStates off")
	_, _, err = LayerWise(m, NewFwd(Config{}), g, x, 3)
	expect.Error(t, err, "layer 1", "leave EdgeStates off")

	// A pass does not read the states of the pass before it.
	f.Reset(Config{})
	if y := Forward(m, f, FullGraph(g, 3), f.Input(60, 3, x, &Space{})); y.Cols() != 2 {
		t.Fatal(y)
	}
	f.Reset(Config{})
	if err := Try(func() { m.Layer(f, 1, g.Block(), f.Input(60, 4, make([]float32, 240), &Space{})) }); err == nil {
		t.Error("layer 1 alone runs on states of the pass before")
	}
}

func TestPlusErrors(t *testing.T) {
	t.Parallel()
	with := func(set func(s *ModelConfig)) ModelConfig {
		s := plusConfig()
		set(&s)
		return s
	}
	for want, bad := range map[string]func(){
		`JK is "cat", but these models have no jumping knowledge`: func() { NewGINEModel(with(func(s *ModelConfig) { s.JK = "cat" })) },
		"Hidden is 0": func() { NewPNAModel(with(func(s *ModelConfig) { s.Hidden, s.Layers = 0, 1 })) },
		`the arrangement "strong" and PreLinear true`: func() { NewPNAModel(with(func(s *ModelConfig) { s.Arrangement, s.PreLinear = Strong, true })) },
		"LogDegree is -1": func() { NewPNAModel(with(func(s *ModelConfig) { s.LogDegree = -1 })) },
		"NewBetween: ModelConfig.FeedForward is set, but this model": func() { NewSAGEModel(plusConfig()) },
	} {
		if err := Try(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	// Without a head, the last layer's rows are the output, for a pooling or a head of one's own.
	m := NewGINEModel(plusConfig())
	m.Head = nil
	mustCollect(t, m).Init(1)
	f := NewFwd(Config{})
	if y := Forward(m, f, FullGraph(withEdges(planted(t, 30)), 3), f.Input(30, 3, make([]float32, 90), &Space{})); y.Cols() != 4 {
		t.Errorf("without a head the output is %v", y)
	}
}
