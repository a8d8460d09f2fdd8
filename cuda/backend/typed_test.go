//go:build cuda && linux && cgo

package backend

import (
	"math/rand/v2"
	"testing"

	"github.com/graphnb/graphnb/cuda/internal/fakegpu"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/ops"
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
	layer := func(m any, forward func(f *nn.Fwd, b *nn.Block, h *nn.Tensor) *nn.Tensor) func(t *testing.T, be ops.Backend) (y, dx, dw []float32) {
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
		t.Run(name, func(t *testing.T) {
			y, dx, dw := run(t, nil)
			gotY, gotDX, gotDW := run(t, open(t, fakegpu.Config{Schedule: fakegpu.Random, Seed: 3}))
			near(t, "output", gotY, y)
			near(t, "gradient of the input", gotDX, dx)
			near(t, "gradient of the weights", gotDW, dw)
		})
	}
}
