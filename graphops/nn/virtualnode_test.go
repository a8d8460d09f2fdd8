package nn

import (
	"strings"
	"testing"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/tensor"
	"github.com/graphnb/graphnb/graphops/tensor/gradcheck"
	"github.com/graphnb/graphnb/internal/expect"
)

// throughVirtual adds the virtual nodes' rows three times, with two mlps between.
func throughVirtual(f *Fwd, v *VirtualNode, offsets []int32, h *Tensor, sp *Space) *Tensor {
	groups, spread := graphops.Groups(offsets), graphops.Spread(offsets)
	state := v.Start(f, len(offsets)-1, sp)
	for i := range 3 {
		h = v.Spread(f, spread, h, state)
		if i < 2 {
			state = v.Next(f, i, groups, h, state)
		}
	}
	return h
}

func TestVirtualNodeGradients(t *testing.T) {
	t.Parallel()
	v := NewVirtualNode(3, 3, VirtualNodeOptions{Norm: "layer", Dropout: 0.3, Residual: true})
	in := inputsOf(t, v, 7, 3)
	for i := range v.Embedding.W {
		v.Embedding.W[i] = float32(i) / 4
	}
	gradcheck.Checker{Config: Config{Train: true, Seed: 3}}.Check(t, func(f *tensor.Fwd, x []*tensor.Tensor) *tensor.Tensor {
		return throughVirtual(f, v, []int32{0, 4, 4, 7}, x[0], &Space{IDs: []int32{5, 9, 2}})
	}, in...)
}

// A graph's rows do not depend on the batch, also with dropout, whose masks are of the graph's id; nodes keep their space.
func TestVirtualNodeIsTheGraphs(t *testing.T) {
	t.Parallel()
	v := NewVirtualNode(4, 3, VirtualNodeOptions{Dropout: 0.5})
	mustCollect(t, v).Init(1)
	x := expect.Normal(9*4, 1)
	c := Config{Train: true, Seed: 2}
	f, alone := NewFwd(c), NewFwd(c)
	h := f.Input(9, 4, x, &Space{Start: 20})
	all := throughVirtual(f, v, []int32{0, 2, 6, 9}, h, &Space{IDs: []int32{3, 8, 5}})
	one := throughVirtual(alone, v, []int32{0, 4}, alone.Input(4, 4, x[8:24], &Space{Start: 22}), &Space{IDs: []int32{8}})
	expect.SameBits(t, "rows of graph 8", all.Data()[8:24], one.Data())
	if all.Space() != h.Space() {
		t.Errorf("the nodes' rows have the space %v", all.Space())
	}
	for want, bad := range map[string]func(){
		"no mlp after layer 2; the network was said to have 3 layers": func() { v.Next(f, 2, graphops.Groups([]int32{0, 9}), h, v.Start(f, 1, nil)) },
		"0 layers":         func() { NewVirtualNode(4, 0, VirtualNodeOptions{}) },
		`Norm is "graph"`:  func() { NewVirtualNode(4, 2, VirtualNodeOptions{Norm: "graph"}) },
		"Dropout is 1":     func() { NewVirtualNode(4, 2, VirtualNodeOptions{Dropout: 1}) },
		"has no row space": func() { throughVirtual(f, v, []int32{0, 9}, h, nil) },
	} {
		if err := Try(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
