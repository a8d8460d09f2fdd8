// Command hotness measures how many rows of features caches save when a graph is divided into parts: SALIENT++'s table.
//
//	hotness [--parts 4] [--fanouts 15,10,5] [--batch 4096] [--ratios .1,.2,.5] [--method multilevel] [--out FILE] DATASET
//
// It divides the dataset, samples one epoch with the seed --seed, and counts for each cache the rows that the parts'
// batches still read from other parts. The batch is the number of seeds of all parts together. A ratio is the number of
// cached rows of a part divided by the nodes of a mean part. The simulated orders are counted in epochs of another random
// seed, so they do not know the measured epoch.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/hotness"
	"github.com/graphnb/graphnb/graphops/partition"
)

// result is the file that --out names.
type result struct {
	Command string      `json:"command"`
	Dataset string      `json:"dataset"`
	Nodes   int         `json:"nodes"`
	Edges   int64       `json:"edges"`
	Parts   int         `json:"parts"`
	Method  string      `json:"method"`
	Cut     float64     `json:"cut_fraction"`
	Steps   int         `json:"steps"`
	Ratios  []float64   `json:"ratios"`
	Rows    int64       `json:"rows_without_cache"`
	Misses  []misses    `json:"misses"`
	Seconds timeOfSteps `json:"seconds"`
}

type misses struct {
	Cache string  `json:"cache"`
	Rows  []int64 `json:"rows"` // for each ratio
}

type timeOfSteps struct {
	Divide    float64 `json:"divide"`
	Propagate float64 `json:"propagate"`
	Simulate  float64 `json:"simulate_epoch"`
}

func main() {
	parts := flag.Int("parts", 4, "number of parts")
	fanouts := flag.String("fanouts", "15,10,5", "fanout of each hop")
	batch := flag.Int("batch", 4096, "seeds of a step over all parts")
	ratios := flag.String("ratios", ".1,.2,.5", "cached rows per node of a part")
	method := flag.String("method", "", "method of partitioning")
	split := flag.String("split", "train", "split with the seeds")
	ahead := flag.Int("ahead", 8, "batches that the bounded oracle knows")
	machines := flag.Int("machines", 0, "machines of the parts, which then ask for rows of other machines alone")
	out := flag.String("out", "", "file for the result as JSON")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "hotness: it takes one dataset directory")
		os.Exit(2)
	}
	r, err := measure(context.Background(), flag.Arg(0), *split, *parts, *batch, *ahead, *machines, *method, *fanouts, *ratios)
	if err == nil && *out != "" {
		var text []byte
		if text, err = json.MarshalIndent(r, "", "  "); err == nil {
			err = os.WriteFile(*out, append(text, '\n'), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hotness:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, dir, split string, parts, batch, ahead, machines int, method, fanouts, ratios string) (*result, error) {
	ds, err := dataset.Open(dir)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	j := hotness.Job{Graph: ds.Graph, Parts: parts, Batch: batch}
	if j.Seeds, err = ds.Split(split); err != nil {
		return nil, err
	}
	for f := range strings.SplitSeq(fanouts, ",") {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		j.Fanouts = append(j.Fanouts, n)
	}
	r := &result{Command: strings.Join(os.Args[1:], " "), Dataset: ds.Name(), Nodes: ds.Nodes(), Edges: ds.Graph.NumEdges(), Parts: parts, Steps: j.Steps()}
	for f := range strings.SplitSeq(ratios, ",") {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, err
		}
		r.Ratios = append(r.Ratios, x)
	}
	timed := func(f func() error) (float64, error) {
		start := time.Now()
		err := f()
		return float64(int(time.Since(start).Seconds()*10)) / 10, err
	}
	var d *partition.Parts
	if r.Seconds.Divide, err = timed(func() (err error) {
		d, err = partition.Divide(ctx, ds.Graph, parts, partition.Options{Method: method})
		return err
	}); err != nil {
		return nil, err
	}
	fmt.Println(d, d.Nodes)
	j.Of, r.Method, r.Cut = d.Of, d.Method, d.CutFraction()
	traces, err := hotness.Record(ctx, j, 0, 0)
	if err != nil {
		return nil, err
	}
	for _, t := range traces {
		r.Rows += t.Rows()
	}
	fmt.Printf("%d steps, %d rows from other parts per epoch\n", r.Steps, r.Rows)

	var vip [][]float32
	if r.Seconds.Propagate, err = timed(func() (err error) {
		vip, err = hotness.Propagate(ctx, j)
		return err
	}); err != nil {
		return nil, err
	}
	if machines > 0 {
		ofMachines(j, r, traces, vip, machines, ahead)
		return r, nil
	}
	sim := map[int][][]float32{}
	for _, n := range []int{1, 4} {
		if sim[n], err = hotness.Simulate(ctx, j, hotness.Epochs{Seed: 1, Count: n}); err != nil {
			return nil, err
		}
	}
	r.Seconds.Simulate, err = timed(func() error { _, err := hotness.Simulate(ctx, j, hotness.Epochs{Seed: 1}); return err })
	if err != nil {
		return nil, err
	}
	degrees := hotness.Degrees(ds.Graph)

	add := func(name string, count func(part int, t hotness.Trace, n int) int64) {
		m := misses{Cache: name}
		for _, ratio := range r.Ratios {
			n := int(ratio * float64(r.Nodes) / float64(parts))
			total := int64(0)
			for p, t := range traces {
				total += count(p, t, n)
			}
			m.Rows = append(m.Rows, total)
		}
		r.Misses = append(r.Misses, m)
		fmt.Printf("%-40s", name)
		for _, n := range m.Rows {
			fmt.Printf(" %10d (%5.1f %%)", n, 100*(1-float64(n)/float64(r.Rows)))
		}
		fmt.Println()
	}
	static := func(name string, score func(part int) []float32) {
		order := make([][]int32, parts)
		for p := range order {
			order[p] = hotness.Hottest(score(p), j.Of, p, r.Nodes)
		}
		add(name, func(p int, t hotness.Trace, n int) int64 { return t.Static(order[p][:min(n, len(order[p]))]) })
	}
	static("degree", func(int) []float32 { return degrees })
	static("halo", func(p int) []float32 { return hotness.Halo(ds.Graph, j.Of, p) })
	static("propagated", func(p int) []float32 { return vip[p] })
	for _, n := range []int{1, 4} {
		static(simulatedName(n), func(p int) []float32 { return sim[n][p] })
	}
	add("best static", func(_ int, t hotness.Trace, n int) int64 { return t.Static(t.Best(n)) })
	begin := make([][]int32, parts)
	for p := range begin {
		begin[p] = hotness.Hottest(vip[p], j.Of, p, r.Nodes)
	}
	add("LRU", func(p int, t hotness.Trace, n int) int64 { return t.LRU(n, begin[p]) })
	add(fmt.Sprintf("propagated, and a window of %d batches", ahead), func(p int, t hotness.Trace, n int) int64 {
		return t.Windowed(ahead, begin[p][:min(n, len(begin[p]))])
	})
	add(fmt.Sprintf("oracle of %d batches", ahead), func(p int, t hotness.Trace, n int) int64 { return t.Belady(n, ahead, vip[p], begin[p]) })
	add("oracle of all batches", func(p int, t hotness.Trace, n int) int64 { return t.Belady(n, 0, nil, begin[p]) })
	return r, nil
}

// ofMachines counts the rows that each machine asks others for, if its parts have a cache and a window each, one cache,
// or one of both.
func ofMachines(j hotness.Job, r *result, traces []hotness.Trace, vip [][]float32, machines, ahead int) {
	each, one, both := misses{Cache: "a cache and a window for each part"}, misses{Cache: "one cache for a machine"}, misses{Cache: "one cache and one window for a machine"}
	r.Rows = 0
	for i, ratio := range r.Ratios {
		n := int(ratio * float64(r.Nodes) / float64(r.Parts))
		var sums [3]int64
		for m := range machines {
			here := func(v int32) bool { return int(j.Of[v])*machines/r.Parts == m }
			score := make([]float32, r.Nodes)
			var own []hotness.Trace
			for p, t := range traces {
				if p*machines/r.Parts != m {
					continue
				}
				t = t.Without(here)
				own = append(own, t)
				mine := make([]float32, r.Nodes)
				for v, x := range vip[p] {
					if !here(int32(v)) {
						mine[v] = x
						score[v] += x
					}
				}
				sums[0] += t.Windowed(ahead, hotness.Hottest(mine, j.Of, -1, n))
			}
			shared := hotness.Hottest(score, j.Of, -1, n*len(own))
			for _, t := range own {
				sums[1] += t.Windowed(ahead, shared)
				if i == 0 {
					r.Rows += t.Rows()
				}
			}
			sums[2] += hotness.Merge(own...).Windowed(ahead, shared)
		}
		each.Rows, one.Rows, both.Rows = append(each.Rows, sums[0]), append(one.Rows, sums[1]), append(both.Rows, sums[2])
	}
	r.Misses = []misses{each, one, both}
	fmt.Printf("%d rows of other machines\n", r.Rows)
	for _, m := range r.Misses {
		fmt.Printf("%-40s %d\n", m.Cache, m.Rows)
	}
}

func simulatedName(epochs int) string {
	if epochs == 1 {
		return "simulated, 1 epoch"
	}
	return fmt.Sprintf("simulated, %d epochs", epochs)
}
