// Command productslike writes a graph of ogbn-products' size for benchmarks: 2,449,029 nodes and
// about 124 million directed edges, 100 normal random features, 47 classes, 196,615 training nodes.
//
//	productslike [--scale 22] [--nodes 2449029] [--degree 30.87] [--seeds 196615] [--planted] DIR
//
// The edges are those of an undirected R-MAT graph (datasets.RMAT, 2^scale ids, .57/.19/.19/.05,
// seed 0). Of the ids without an edge only as many are kept, chosen at random, as --nodes needs.
// Training nodes are drawn among those of in-degree 10 and more, since the real set trains on the
// products that sell best: with any node as a seed, batches would be a third smaller. Degrees are more
// skewed than the real graph's. The result is a function of the flags alone.
//
// Labels are random, so that there is nothing to learn, unless --planted is given. Then the class of a node is
// the largest of 47 random linear functions of what two hops of x + 4·(mean of the in-neighbours' x) make of
// the features x: own features, neighbours and their neighbours decide it, and the noise of sampled means
// matters. As many nodes as for training are for validation, and for the test.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
)

const (
	features      = 100
	classes       = 47
	minSeedDegree = 10
)

func main() {
	scale := flag.Int("scale", 22, "the R-MAT graph has 2^scale ids")
	nodes := flag.Int("nodes", 2449029, "nodes that are kept")
	degree := flag.Float64("degree", 30.87, "mean degree before edges that coincide are removed")
	seeds := flag.Int("seeds", 196615, "training nodes")
	planted := flag.Bool("planted", false, "labels that follow from the neighbours' features")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "productslike: it takes the directory to write")
		os.Exit(2)
	}
	ds, err := generate(*scale, *nodes, *seeds, *degree)
	if err == nil && *planted {
		plant(ds)
	}
	if err == nil {
		err = dataset.Write(flag.Arg(0), ds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "productslike:", err)
		os.Exit(1)
	}
	fmt.Println(ds)
}

func generate(scale, nodes, seeds int, degree float64) (*dataset.Dataset, error) {
	d, err := datasets.RMAT(datasets.RMATOptions{Scale: scale, Degree: degree, Features: -1, Classes: -1})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(1, 2))
	g, err := dropIsolated(d.Graph, nodes, r)
	if err != nil {
		return nil, err
	}
	var candidates []int32
	for v := range int32(nodes) {
		if g.InDegree(v) >= minSeedDegree {
			candidates = append(candidates, v)
		}
	}
	r.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	ds := &dataset.Dataset{
		Graph:    g,
		Features: &dataset.Matrix{Rows: nodes, Cols: features, F32: make([]float32, nodes*features)},
		Labels:   make([]int32, nodes),
		Splits: map[string][]int32{
			"train": candidates[:min(seeds, len(candidates))],
		},
		Meta: dataset.Metadata{
			Name: "products-like", NumClasses: classes, Undirected: true,
			Source: fmt.Sprintf("productslike --scale %d --nodes %d --degree %v", scale, nodes, degree),
		},
	}
	for i := range ds.Features.F32 {
		ds.Features.F32[i] = float32(r.NormFloat64())
	}
	for v := range ds.Labels {
		ds.Labels[v] = r.Int32N(classes)
	}
	return ds, nil
}

// plant replaces labels by those that the neighbours' features decide, and makes splits for validation and test.
func plant(ds *dataset.Dataset) {
	r := rand.New(rand.NewPCG(3, 4))
	weights := make([]float32, classes*features)
	for i := range weights {
		weights[i] = float32(r.NormFloat64())
	}
	x := ds.Features.F32
	for range 2 {
		x = withNeighbours(ds.Graph, x)
	}
	for v := range ds.Labels {
		largest := float32(math.Inf(-1))
		for c := range int32(classes) {
			score := float32(0)
			for j, w := range weights[c*features:][:features] {
				score += w * x[v*features+j]
			}
			if score > largest {
				largest, ds.Labels[v] = score, c
			}
		}
	}
	used := make([]bool, ds.Nodes())
	for _, v := range ds.Splits["train"] {
		used[v] = true
	}
	var others []int32
	for v := range int32(ds.Nodes()) {
		if !used[v] && ds.Graph.InDegree(v) >= minSeedDegree {
			others = append(others, v)
		}
	}
	r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	n := min(len(ds.Splits["train"]), len(others)/2)
	ds.Splits["val"], ds.Splits["test"] = others[:n:n], others[n:2*n]
	ds.Meta.Source += " --planted"
}

// withNeighbours returns x + 4·(mean of the in-neighbours' x), x [nodes, features].
func withNeighbours(g *graphops.Graph, x []float32) []float32 {
	out := slices.Clone(x)
	for v := range int32(g.NumNodes()) {
		to := out[int(v)*features:][:features]
		scale := 4 / float32(max(1, g.InDegree(v)))
		for _, u := range g.InNeighbors(v) {
			for j, y := range x[int(u)*features:][:features] {
				to[j] += scale * y
			}
		}
	}
	return out
}

// dropIsolated keeps nodes nodes of g: all that have edges, and some of the others.
func dropIsolated(g *graphops.Graph, nodes int, r *rand.Rand) (*graphops.Graph, error) {
	isolated := 0
	for v := range int32(g.NumNodes()) {
		if g.InDegree(v) == 0 {
			isolated++
		}
	}
	keep := nodes - (g.NumNodes() - isolated)
	if keep < 0 || keep > isolated || nodes > math.MaxInt32 {
		return nil, fmt.Errorf("%d nodes have edges and %d have none; --nodes %d cannot be had from them", g.NumNodes()-isolated, isolated, nodes)
	}
	id := make([]int32, g.NumNodes())
	out := &graphops.Graph{Indptr: make([]int64, 1, nodes+1), Indices: g.Indices}
	for v := range id {
		if g.InDegree(int32(v)) == 0 {
			kept := r.IntN(isolated) < keep
			isolated--
			if !kept {
				continue
			}
			keep--
		}
		id[v] = int32(len(out.Indptr) - 1)
		out.Indptr = append(out.Indptr, g.Indptr[v+1])
	}
	for e, u := range out.Indices {
		out.Indices[e] = id[u]
	}
	if len(out.Indptr) != nodes+1 {
		return nil, fmt.Errorf("%d nodes came out, not %d", len(out.Indptr)-1, nodes)
	}
	return out, nil
}
