//go:build cuda && linux && cgo

package backend

import (
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
	"github.com/graphnb/graphnb/internal/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/internal/expect"
	"github.com/graphnb/graphnb/internal/testneed"
)

// Layers over typed graphs have the CPU's results and gradients on the device, up to rounding: also where a
// destination has more edges than a group of lanes adds.
func TestTypedLayers(t *testing.T) {
	testneed.NotShort(t, "it computes on the interpreter")
	const items, users, in, hub = 20, 15, 6, 300
	r := rand.New(rand.NewPCG(1, 1))
	var src, dst []int32
	var types []uint16
	add := func(u, v int, kind uint16) {
		src, dst, types = append(src, int32(u)), append(dst, int32(v)), append(types, kind)
	}
	for range hub {
		add(items+r.IntN(users), 0, uint16(r.IntN(2)))
	}
	for range 60 {
		add(items+r.IntN(users), r.IntN(items), uint16(r.IntN(2)))
		add(r.IntN(items), items+r.IntN(users), 2)
	}
	g, err := graphops.FromEdgesWith(items+users, src, dst, graphops.EdgeData{Types: types}, graphops.BuildOptions{KeepDuplicates: true})
	if err == nil {
		g, err = g.WithTypes(&graphops.Schema{
			Nodes: []graphops.NodeType{{Name: "item", Count: items}, {Name: "user", Count: users}},
			Relations: []graphops.Relation{
				{Src: "user", Name: "likes", Dst: "item"},
				{Src: "user", Name: "dislikes", Dst: "item"},
				{Src: "item", Name: "seen", Dst: "user"},
				{Src: "user", Name: "knows", Dst: "user"},
			},
		}, g.EdgeTypes)
	}
	if err != nil {
		t.Fatal(err)
	}
	x := expect.Normals(r, g.NumNodes()*in)
	layer := func(m any, forward forwardFunc) func(*testing.T, ops.Backend) (y, dx, dw []float32) {
		return onBackend(t, g, in, x, m, forward)
	}
	comp := nn.NewCompGCN(in, 4, []bool{false, false, true, false}, nn.CompGCNOptions{Composition: nn.Correlate})
	z := expect.Normals(r, 4*in)
	bases, all := nn.NewRGCNWith(in, 4, 4, nn.RGCNOptions{Bases: 3}), nn.NewRGCN(in, 4, 4)
	hgt := nn.NewHGT(in, 4, 2, g.Schema)
	each := nn.PerRelation(g.Schema, func(graphops.Relation) nn.Conv { return nn.NewSAGE(in, 4) }, nn.Mean)
	for name, run := range map[string]func(*testing.T, ops.Backend) (y, dx, dw []float32){
		"RGCN bases":  layer(bases, bases.Forward),
		"RGCN":        layer(all, all.Forward),
		"HGT":         layer(hgt, hgt.Forward),
		"PerRelation": layer(each, each.Forward),
		"CompGCN": layer(comp, func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor {
			y, z := comp.Forward(f, b, h, f.Input(4, in, z, nil))
			return f.Stack(y, z)
		}),
	} {
		t.Run(name, func(t *testing.T) { likeCPU(t, run) })
	}
}

// Layers that use features of edges have the CPU's results and gradients on the device, up to rounding: also where a
// destination has more edges than a group of lanes adds, and where one has none.
func TestEdgeLayers(t *testing.T) {
	testneed.NotShort(t, "it computes on the interpreter")
	const nodes, in, dim, hub = 30, 6, 3, 200
	r := rand.New(rand.NewPCG(2, 1))
	var src, dst []int32
	for i := range hub + 90 {
		v := int32(0)
		if i >= hub {
			v = int32(1 + r.IntN(nodes-2)) // none for the last node
		}
		src, dst = append(src, int32(r.IntN(nodes))), append(dst, v)
	}
	g, err := graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{KeepDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	g = g.WithEdgeData(&graphops.EdgeFeatures{Cols: dim, F32: expect.Normals(r, int(g.NumEdges())*dim)}, nil)
	x := expect.Normals(r, nodes*in)
	v2, gine := nn.NewGATv2With(in, 4, nn.GATv2Options{Heads: 2, EdgeDim: dim}), nn.NewGINE(nn.NewPerceptron(in, 5, 4), in, dim)
	transformer := nn.NewTransformerWith(in, 4, nn.TransformerOptions{Heads: 2, EdgeDim: dim, Beta: true})
	for name, run := range map[string]func(*testing.T, ops.Backend) (y, dx, dw []float32){
		"GATv2":       onBackend(t, g, in, x, v2, v2.Forward),
		"GINE":        onBackend(t, g, in, x, gine, gine.Forward),
		"Transformer": onBackend(t, g, in, x, transformer, transformer.Forward),
	} {
		t.Run(name, func(t *testing.T) { likeCPU(t, run) })
	}
}

type forwardFunc func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor

// onBackend returns a function that computes a layer of a graph on a backend: its output y, and the gradients of Σ y² by
// the input x [_, in] and the parameters.
func onBackend(t *testing.T, g *graphops.Graph, in int, x []float32, m any, forward forwardFunc) func(t *testing.T, be ops.Backend) (y, dx, dw []float32) {
	p, err := nn.Collect(m)
	if err != nil {
		t.Fatal(err)
	}
	p.Init(3)
	return func(t *testing.T, be ops.Backend) (y, dx, dw []float32) {
		f := nn.NewFwd(nn.Config{Backend: be, Grad: true})
		defer f.Close()
		h := f.Leaf(g.NumNodes(), in, x, &nn.Space{})
		out := forward(f, g.Block(), h)
		p.ZeroGrad()
		if err := f.SumAll(f.Mul(out, out)).Backward(); err != nil {
			t.Fatal(err)
		}
		return append(y, out.Data()...), append(dx, h.Grad()...), append(dw, p.Grad()...)
	}
}

// likeCPU compares what a function computes on the interpreted GPU with what it computes on the CPU.
func likeCPU(t *testing.T, run func(*testing.T, ops.Backend) (y, dx, dw []float32)) {
	y, dx, dw := run(t, nil)
	gotY, gotDX, gotDW := run(t, open(t, fakegpu.Config{Schedule: fakegpu.Random, Seed: 3}))
	near(t, "output", gotY, y)
	near(t, "gradient of the input", gotDX, dx)
	near(t, "gradient of the weights", gotDW, dw)
}
