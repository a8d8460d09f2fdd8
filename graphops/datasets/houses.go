package datasets

import (
	"fmt"
	"net/url"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/philox"
)

// HousesOptions are the parameters of [Houses]. The zero value is BA-Shapes: 300 nodes and 80 houses.
type HousesOptions struct {
	Nodes  int    // of the graph that the houses are attached to; 0 means 300
	Houses int    // 0 means 80
	Seed   uint64 // 0 is a seed like any other
}

const (
	houseNodes  = 5
	baEdges     = 5 // of a new node
	housesKey   = 0x686f757365732121
	houseInputs = 10
)

// houseEdges and houseClasses are a house: a square of nodes 0 to 3, and a roof, node 4, on nodes 0 and 1.
var (
	houseEdges   = [][2]int32{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}, {1, 4}}
	houseClasses = [houseNodes]int32{1, 1, 2, 2, 3}
)

// Houses generates BA-Shapes, the graph on which explanations of predictions are compared: a Barabási–Albert graph in which each new
// node has five edges, houses of five nodes, each attached to a node of its own choice by one edge, and a tenth as many further random
// edges as there are nodes. The class of a node is its place: 0 outside of houses, 1 at the top, 2 at the bottom, 3 the roof. All ten
// features of all nodes are 1, so nothing but the edges of its house tells a node's class: these are what an explanation should name.
// 80 % of the nodes are train, 10 % val and 10 % test, at random.
//
// The graph comes first: node v ≥ Nodes is in house (v-Nodes)/5. [InHouse] says which edges are those of houses. The result depends
// only on the options. It returns an error for options out of range.
//
// Source: R. Ying, D. Bourgeois, J. You, M. Zitnik, J. Leskovec, "GNNExplainer: generating explanations for graph neural networks",
// NeurIPS 2019, arXiv:1903.03894, section 5.
func Houses(o HousesOptions) (*dataset.Dataset, error) {
	if o.Nodes == 0 {
		o.Nodes = 300
	}
	if o.Houses == 0 {
		o.Houses = 80
	}
	return houses(o)
}

func loadHouses(q url.Values, _ *meter) (*dataset.Dataset, error) {
	o := HousesOptions{Nodes: 300, Houses: 80}
	if err := parseParams("houses", q, []param{wholeParam("nodes", &o.Nodes), wholeParam("houses", &o.Houses), seedParam(&o.Seed)}); err != nil {
		return nil, err
	}
	return houses(o)
}

// InHouse reports whether the edge between nodes u and v of a dataset of [Houses] is one of a house; nodes is HousesOptions.Nodes.
func InHouse(u, v int32, nodes int) bool {
	first := int32(nodes)
	if min(u, v) < first || (u-first)/houseNodes != (v-first)/houseNodes {
		return false
	}
	a, b := (u-first)%houseNodes, (v-first)%houseNodes
	for _, e := range houseEdges {
		if e == [2]int32{a, b} || e == [2]int32{b, a} {
			return true
		}
	}
	return false
}

func houses(o HousesOptions) (*dataset.Dataset, error) {
	const most = 10_000_000
	switch {
	case o.Nodes <= baEdges || o.Nodes > most:
		return nil, fmt.Errorf("dataset: houses: nodes is %d; it must lie in [%d, %d]", o.Nodes, baEdges+1, most)
	case o.Houses < 1 || o.Houses > o.Nodes:
		return nil, fmt.Errorf("dataset: houses: houses is %d; it must lie in [1, nodes]", o.Houses)
	}
	n := o.Nodes + houseNodes*o.Houses
	stream := philox.NewStream(o.Seed^housesKey, 0, 0, philox.C3(philox.User, 0, 0))
	below := func(n int) int32 { return int32(philox.Bounded(stream.Next(), uint32(n))) }
	var src, dst []int32
	join := func(u, v int32) { src, dst = append(src, u), append(dst, v) }
	// ends has each node once for each of its edges, so that a random entry is a node by its degree.
	ends := make([]int32, 0, 2*baEdges*o.Nodes)
	for v := int32(baEdges); v < int32(o.Nodes); v++ {
		chosen := make(map[int32]bool, baEdges)
		for len(chosen) < baEdges {
			u := int32(len(chosen)) // the first new node joins all before it
			if v > baEdges {
				u = ends[below(len(ends))]
			}
			if chosen[u] {
				continue
			}
			chosen[u] = true
			join(u, v)
			ends = append(ends, u)
		}
		for range baEdges {
			ends = append(ends, v)
		}
	}
	// A shuffle's first entries are the nodes that houses hang on.
	order := make([]int32, o.Nodes)
	for i := range order {
		order[i] = int32(i)
	}
	labels := make([]int32, n)
	for h := range o.Houses {
		j := h + int(below(o.Nodes-h))
		order[h], order[j] = order[j], order[h]
		first := int32(o.Nodes + houseNodes*h)
		for _, e := range houseEdges {
			join(first+e[0], first+e[1])
		}
		join(order[h], first)
		copy(labels[first:], houseClasses[:])
	}
	for range n / 10 {
		u, v := below(n), below(n)
		if u != v {
			join(u, v)
		}
	}
	g, err := graphops.FromEdges(n, src, dst, graphops.BuildOptions{Undirected: true})
	if err != nil {
		return nil, err
	}
	x := make([]float32, n*houseInputs)
	for i := range x {
		x[i] = 1
	}
	d := &dataset.Dataset{
		Graph: g, Labels: labels, Features: &dataset.Matrix{Rows: n, Cols: houseInputs, F32: x}, Splits: map[string][]int32{},
		Meta: dataset.Metadata{
			Name: "houses", Undirected: true, NumClasses: 4, ClassNames: []string{"graph", "top", "bottom", "roof"},
			Source: fmt.Sprintf("generated by houses?nodes=%d&houses=%d&seed=%d", o.Nodes, o.Houses, o.Seed), Licence: "CC0-1.0",
		},
	}
	if err := d.SplitAtRandom(dataset.SplitOptions{Seed: o.Seed, Plain: true}); err != nil {
		return nil, err
	}
	d.Describe()
	return d, nil
}
