// Command asof times the sampling of seeds with times, for bench/asof/pyg.py to compare with PyG's NeighborLoader:
//
//	go run ./bench/asof --out DIR
//	python bench/asof/pyg.py DIR
//
// It makes a graph of skewed in-degrees with a time for each edge, writes its arrays and the seeds with their times to DIR as raw
// int64, and samples trees of the seeds, uniformly and by the most recent edges.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/sample"
)

func main() {
	nodes := flag.Int("nodes", 1_000_000, "number of nodes")
	edges := flag.Int("edges", 10_000_000, "number of edges")
	batch := flag.Int("batch", 1024, "seeds of a batch")
	steps := flag.Int("steps", 100, "batches to time")
	rounds := flag.Int("rounds", 5, "repetitions, of which the median counts")
	threads := flag.Int("threads", 2, "number of threads")
	prove := flag.Bool("prove", false, "prove each batch, outside the timed part")
	out := flag.String("out", "", "folder to write the arrays to")
	flag.Parse()
	runtime.GOMAXPROCS(*threads)
	g, seeds := made(*nodes, *edges, *batch**steps)
	if *out != "" {
		if err := write(*out, g, seeds); err != nil {
			log.Fatal(err)
		}
	}
	start := time.Now()
	g.TimeOrder(false)
	fmt.Printf("%d nodes, %d edges; in-edges sorted by time in %.2f s\n", g.NumNodes(), g.NumEdges(), time.Since(start).Seconds())
	for _, strategy := range []string{sample.TakeUniform, sample.TakeRecent} {
		if err := run(g, seeds, strategy, *batch, *threads, *rounds, *prove); err != nil {
			log.Fatal(err)
		}
	}
}

// run times the batches of the seeds by a strategy.
func run(g *graphops.Graph, seeds sample.Seeds, strategy string, batch, threads, rounds int, prove bool) error {
	c := sample.Config{Picker: sample.Fanouts{10, 10}, Seed: 1, Disjoint: true, AsOf: sample.AsOf{Strategy: strategy}, Threads: threads}
	s, err := sample.New(g, c)
	if err != nil {
		return err
	}
	var proof *sample.Prover
	if prove {
		if proof, err = sample.ProverOf(g, c); err != nil {
			return err
		}
	}
	steps := seeds.Len() / batch
	var took []float64
	edges, rows := 0, 0
	for round := range 1 + rounds { // the first one is a warm-up
		total := time.Duration(0)
		edges, rows = 0, 0
		for step := range steps {
			of := seeds.Slice(step*batch, (step+1)*batch)
			start := time.Now()
			b, err := s.Sample(round, step, of)
			total += time.Since(start)
			if err != nil {
				return err
			}
			if proof != nil {
				if err := proof.Check(b, of); err != nil {
					return err
				}
			}
			edges, rows = edges+b.Edges(), rows+b.Inputs()
			b.Release()
		}
		if round > 0 {
			took = append(took, total.Seconds())
		}
	}
	slices.Sort(took)
	median := took[len(took)/2]
	n := float64(steps * batch)
	fmt.Printf("%-8s %d threads: %.0f seeds/s, %.1f M edges/s; %.1f edges and %.1f rows of a seed; rounds %.3f to %.3f s\n", strategy, threads, n/median, float64(edges)/median/1e6, float64(edges)/n, float64(rows)/n, took[0], took[len(took)-1])
	if proof != nil {
		fmt.Println(proof.Proof())
	}
	return nil
}

// made makes a graph whose in-degrees and out-degrees are skewed, with times from 0 to 10^9, and seeds with times in the later half.
func made(nodes, edges, seeds int) (*graphops.Graph, sample.Seeds) {
	r := rand.New(rand.NewPCG(1, 46))
	skewed := func() int32 { // about as 1/rank: the square of a uniform number leans towards 0
		x := r.Float64()
		return int32(x * x * float64(nodes))
	}
	degree := make([]int64, nodes+1)
	to := make([]int32, edges)
	for e := range to {
		to[e] = skewed()
		degree[to[e]+1]++
	}
	g := &graphops.Graph{Indptr: degree, Indices: make([]int32, edges)}
	for v := range nodes {
		g.Indptr[v+1] += g.Indptr[v]
	}
	for e := range g.Indices {
		g.Indices[e] = skewed()
	}
	times := make([]int64, edges)
	for e := range times {
		times[e] = r.Int64N(1_000_000_000)
	}
	for v := range nodes {
		slices.Sort(g.Indices[g.Indptr[v]:g.Indptr[v+1]])
	}
	s := sample.Seeds{IDs: make([]int32, seeds), Times: make([]int64, seeds)}
	for i := range s.IDs {
		s.IDs[i], s.Times[i] = to[r.IntN(edges)], 500_000_000+r.Int64N(500_000_000)
	}
	return g.WithEdgeData(nil, times), s
}

func write(dir string, g *graphops.Graph, seeds sample.Seeds) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	wide := func(x []int32) []int64 {
		y := make([]int64, len(x))
		for i, v := range x {
			y[i] = int64(v)
		}
		return y
	}
	for name, x := range map[string][]int64{"indptr": g.Indptr, "indices": wide(g.Indices), "times": g.EdgeTimes, "seeds": wide(seeds.IDs), "seed_times": seeds.Times} {
		b := make([]byte, 0, 8*len(x))
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		if err := os.WriteFile(filepath.Join(dir, name+".i64"), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
