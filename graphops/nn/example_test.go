package nn_test

import (
	"fmt"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/metrics"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
)

// Full-graph training of the karate club.
func Example() {
	ds := dataset.Karate()
	n := ds.Nodes()
	m := nn.NewSAGEModel(nn.ModelConfig{In: ds.FeatureDim(), Hidden: 16, Out: ds.Classes(), Layers: 2})
	params, err := nn.Collect(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	params.Init(1)
	adam := optim.NewAdam(optim.AdamOptions{LR: 0.02})
	blocks := nn.FullGraph(ds.Graph, m.NumLayers())
	f := nn.NewFwd(nn.Config{})
	for step := range 40 {
		f.Reset(nn.Config{Train: true, Seed: 1, Step: step})
		x := f.Input(n, ds.FeatureDim(), ds.Features.F32, &nn.Space{})
		loss := nn.CrossEntropy(nn.Forward(m, f, blocks, x), ds.Labels)
		params.ZeroGrad()
		loss.Backward()
		adam.Step(params.Flat(), params.Grad(), 1/float32(loss.Weight))
	}
	logits, classes, err := nn.LayerWise(m, f, ds.Graph, ds.Features.F32, ds.FeatureDim())
	if err != nil {
		fmt.Println(err)
		return
	}
	correct, count := metrics.Accuracy(logits, classes, ds.Labels)
	fmt.Printf("%d of %d\n", correct, count)
	// Output: 34 of 34
}

// A user's own layer: it takes the largest features among the neighbours and applies one Linear to
// them.
type pooled struct {
	Lins []*nn.Linear
}

func (m *pooled) NumLayers() int { return len(m.Lins) }

func (m *pooled) Layer(f *nn.Fwd, i int, b *nn.Block, h *nn.Tensor) *nn.Tensor {
	return f.Tanh(m.Lins[i].Forward(f, f.Aggregate(b, h, nn.Max)))
}

func ExampleModel() {
	s := nn.ModelConfig{In: 2, Hidden: 4, Out: 1, Layers: 2}
	m := &pooled{nn.Stack(s, func(in, out int) *nn.Linear { return nn.NewLinear(in, out, true) })}
	params, err := nn.Collect(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(params)
	// Output:
	// parameter      shape   weights
	// lins.0.weight  [4, 2]  8
	// lins.0.bias    [4]     4
	// lins.1.weight  [1, 4]  4
	// lins.1.bias    [1]     1
	// total                  17
}

func ExampleTryForward() {
	g, err := graphops.FromEdges(2, []int32{0}, []int32{1}, graphops.BuildOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := nn.NewSAGEModel(nn.ModelConfig{In: 3, Hidden: 4, Out: 2, Layers: 2})
	f := nn.NewFwd(nn.Config{})
	x := f.Input(2, 5, make([]float32, 10), nil) // 5 features, not 3
	_, err = nn.TryForward(m, f, nn.FullGraph(g, 2), x)
	fmt.Println(err)
	// Output: nn: layer 0 (*nn.SAGEConv) of *nn.SAGE: tensor: Linear: x is [2,5] and the weight is [4,3] [out,in]: x must have 3 columns
}

func ExampleCrossEntropy() {
	f := nn.NewFwd(nn.Config{})
	logits := f.Input(3, 2, []float32{0, 0, 5, 1, 2, 9}, nil)
	loss := nn.CrossEntropy(logits, []int32{0, -1, 1}) // the second row has no label
	fmt.Printf("sum %.4f, weight %v, %d of %d right\n", loss.Sum.Data()[0], loss.Weight, loss.Correct(), loss.Count)
	// Output: sum 0.6941, weight 2, 2 of 2 right
}

// A step moves only the rows that its batch read: nodes 4 and 2 of five.
func ExampleEmbedding() {
	table := nn.NewEmbedding(5, 2)
	table.Init(1, 0, 5)
	f := nn.NewFwd(nn.Config{Train: true})
	ids := []int32{4, 2}
	x := table.Leaf(f, ids, &nn.Space{})
	if err := f.SumAll(x).Backward(); err != nil {
		fmt.Println(err)
		return
	}
	before := append([]float32(nil), table.W...)
	optim.NewSparseAdam(optim.AdamOptions{LR: 0.1}).Step(table.W, table.Cols, ids, x.Grad(), 1)
	for v := range 5 {
		fmt.Printf("node %d moved by %.2f\n", v, before[2*v]-table.W[2*v])
	}
	// Output:
	// node 0 moved by 0.00
	// node 1 moved by 0.00
	// node 2 moved by 0.10
	// node 3 moved by 0.00
	// node 4 moved by 0.10
}

// Users like and dislike items: a network with weights of its own for each relation.
func ExamplePerRelation() {
	schema := &graphops.Schema{
		Nodes: []graphops.NodeType{{Name: "item", Count: 2}, {Name: "user", Count: 3}}, // items 0 and 1, users 2 to 4
		Relations: []graphops.Relation{
			{Src: "user", Name: "likes", Dst: "item"},
			{Src: "user", Name: "dislikes", Dst: "item"},
		},
	}
	edges := graphops.EdgeData{Types: []uint16{0, 0, 1}}
	g, err := graphops.FromEdgesWith(5, []int32{2, 3, 4}, []int32{0, 1, 1}, edges, graphops.BuildOptions{})
	if err == nil {
		g, err = g.WithTypes(schema, g.EdgeTypes)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	conv := nn.PerRelation(schema, func(graphops.Relation) nn.Conv { return nn.NewSAGE(2, 4) }, nn.Sum)
	params, err := nn.Collect(conv)
	if err != nil {
		fmt.Println(err)
		return
	}
	params.Init(1)
	f := nn.NewFwd(nn.Config{})
	y := conv.Forward(f, g.Block(), f.Input(5, 2, make([]float32, 10), &nn.Space{}))
	fmt.Println(y.Rows(), "rows of", y.Cols(), "columns")
	fmt.Println(params.Names()[0])
	// Output:
	// 5 rows of 4 columns
	// convs.<user___dislikes___item>.lin_l.weight
}
