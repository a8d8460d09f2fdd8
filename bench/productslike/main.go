// Command productslike writes a graph of ogbn-products' size for benchmarks: 2,449,029 nodes and
// about 124 million directed edges, 100 normal random features, 47 classes, 196,615 training nodes.
//
//	productslike [--scale 22] [--nodes 2449029] [--degree 30.87] DIR
//
// The edges are those of an undirected R-MAT graph (datasets.RMAT, 2^scale ids, .57/.19/.19/.05,
// seed 0). Of the ids without an edge only as many are kept, chosen at random, as --nodes needs.
// Training nodes are drawn among those of in-degree 10 and more, since the real set trains on the
// products that sell best: with any node as a seed, batches would be a third smaller. Degrees are more
// skewed than the real graph's. The result is a function of the flags alone.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

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
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "productslike: it takes the directory to write")
		os.Exit(2)
	}
	ds, err := generate(*scale, *nodes, *seeds, *degree)
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
