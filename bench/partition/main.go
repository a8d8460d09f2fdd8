// Command partition measures the partitioners of graphops/partition.
//
//	partition [flags] GRAPH…
//
// A GRAPH is a dataset (what datasets.Load takes), a file of METIS's format that ends in .graph, or a generated
// mesh: grid2:SIDE, grid3:SIDE, tri:SIDE (a grid with one random diagonal in each square) or rgg:NODES (points in
// a square, each with edges to those near it, about 15). For
// each graph, number of parts, method and seed, it divides the graph in a process of its own and prints a
// line of JSON: cut edges, imbalance, seconds without reading the graph, and the peak memory of the process and of
// the programs that it runs.
//
// The methods metis-kway and metis-rb run gpmetis with as many quantities as --balance names. Their CPU seconds are
// those that gpmetis reports for partitioning, without reading and writing files. The same imbalance is allowed to
// all methods: metis-rb, which applies its limit at each bisection, gets the root of it.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/datasets"
	"github.com/graphnb/graphnb/graphops/partition"
	"github.com/graphnb/graphnb/internal/machine"
)

// Result is one line of output.
type Result struct {
	Graph     string  `json:"graph"`
	Parts     int     `json:"parts"`
	Method    string  `json:"method"` // or a preset of the default method
	Seed      uint64  `json:"seed"`
	Nodes     int     `json:"nodes"`
	Edges     int64   `json:"edges"`
	Cut       int64   `json:"cut"`
	Imbalance float64 `json:"imbalance"`
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_seconds"` // of all threads and programs
	LoadedMB  int64   `json:"loaded_mb"`   // peak memory after reading the graph
	PeakMB    int64   `json:"peak_mb"`     // peak memory at the end
	// Balance names the balanced quantities if they are not the nodes alone, and Imbalances has the imbalance in each.
	Balance    string    `json:"balance,omitempty"`
	Imbalances []float64 `json:"imbalances,omitempty"`
}

// settings are the flags.
type settings struct {
	parts, methods, seeds, balance string
	imbalance                      float64
	threads                        int
	one                            bool
}

func main() {
	var f settings
	flag.StringVar(&f.parts, "parts", "2", "numbers of parts, separated by commas")
	flag.StringVar(&f.methods, "methods", "fast", "methods or presets, separated by commas")
	flag.StringVar(&f.seeds, "seeds", "0", "random seeds, separated by commas")
	flag.StringVar(&f.balance, "balance", "nodes", "balanced quantities, separated by commas: nodes, edges, splits")
	flag.Float64Var(&f.imbalance, "imbalance", 0.05, "largest excess of a part over the mean")
	flag.IntVar(&f.threads, "threads", 0, "number of threads (default all CPUs)")
	flag.BoolVar(&f.one, "one", false, "measure in this process")
	flag.Parse()
	if err := f.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "partition:", err)
		os.Exit(1)
	}
}

func (f settings) run(graphs []string) error {
	for _, graph := range graphs {
		for _, k := range strings.Split(f.parts, ",") {
			for _, method := range strings.Split(f.methods, ",") {
				for _, seed := range strings.Split(f.seeds, ",") {
					if !f.one {
						c := exec.Command(os.Args[0], "--one", "--parts", k, "--methods", method, "--seeds", seed, "--balance", f.balance,
							"--imbalance", fmt.Sprint(f.imbalance), "--threads", fmt.Sprint(f.threads), graph)
						c.Stdout, c.Stderr = os.Stdout, os.Stderr
						if err := c.Run(); err != nil {
							return fmt.Errorf("%s, %s parts by %s: %w", graph, k, method, err)
						}
						continue
					}
					count, err := strconv.Atoi(k)
					if err != nil {
						return err
					}
					number, err := strconv.ParseUint(seed, 10, 64)
					if err != nil {
						return err
					}
					r, err := f.measure(graph, count, method, number)
					if err != nil {
						return err
					}
					if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (f settings) measure(graph string, parts int, method string, seed uint64) (Result, error) {
	g, weights, err := read(graph, f.balance)
	if err != nil {
		return Result{}, err
	}
	o := partition.Options{Method: method, Seed: seed, Imbalance: f.imbalance, Threads: f.threads, Weights: weights[0], More: weights[1:]}
	if method == partition.Fast || method == partition.Strong {
		o.Method, o.Preset = partition.Multilevel, method
	}
	loaded := machine.PeakRSS()
	before, _ := used()
	start := time.Now()
	var p *partition.Parts
	own := 0.0
	if program, ok := strings.CutPrefix(method, "metis-"); ok {
		if p, own, err = metis(g, parts, program, o); err != nil {
			return Result{}, err
		}
	} else if p, err = partition.Divide(context.Background(), g, parts, o); err != nil {
		return Result{}, err
	}
	cpu, most := used()
	r := Result{
		Graph: strings.TrimSuffix(filepath.Base(graph), ".graph"), Parts: parts, Method: method, Seed: seed,
		Nodes: g.NumNodes(), Edges: p.Edges, Cut: p.EdgeCut, Imbalance: p.Imbalance,
		Seconds: time.Since(start).Seconds(), CPU: cmp.Or(own, cpu-before), LoadedMB: loaded >> 20, PeakMB: max(machine.PeakRSS(), most) >> 20,
	}
	if f.balance != "nodes" {
		r.Balance, r.Imbalances = f.balance, p.Imbalances
	}
	return r, nil
}

// used returns the processor time of this process and the programs that it ran, and the peak memory
// of the largest program.
func used() (seconds float64, peak int64) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) != nil {
			continue
		}
		seconds += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
		if who == syscall.RUSAGE_CHILDREN {
			peak = u.Maxrss << 10
		}
	}
	return seconds, peak
}

// read returns a graph and the weights of its nodes for each quantity of a list.
func read(name, balance string) (*graphops.Graph, [][]int32, error) {
	var ds *dataset.Dataset
	var g *graphops.Graph
	var err error
	kind, size, made := strings.Cut(name, ":")
	switch {
	case strings.HasSuffix(name, ".graph"):
		g, err = readMetis(name)
	case made:
		g, err = mesh(kind, size)
	default:
		if ds, err = datasets.Load(name); err == nil {
			g = ds.Graph
		}
	}
	if err != nil {
		return nil, nil, err
	}
	var weights [][]int32
	for _, quantity := range strings.Split(balance, ",") {
		w := slices.Repeat([]int32{1}, g.NumNodes())
		if quantity == "edges" {
			w = g.InDegrees()
		} else if quantity != "nodes" {
			if ds == nil {
				return nil, nil, fmt.Errorf("%s has no split %q", name, quantity)
			}
			ids, err := ds.Split(quantity)
			if err != nil {
				return nil, nil, err
			}
			clear(w)
			for _, v := range ids {
				w[v] = 1
			}
		}
		weights = append(weights, w)
	}
	return g, weights, nil
}

func readMetis(graph string) (*graphops.Graph, error) {
	f, err := os.Open(graph)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	var src, dst []int32
	nodes, row := -1, int32(-1)
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "%") {
			continue
		}
		fields := strings.Fields(in.Text())
		if nodes < 0 {
			if len(fields) != 2 {
				return nil, fmt.Errorf("%s: the first line is %q; only graphs without weights can be read", graph, in.Text())
			}
			if nodes, err = strconv.Atoi(fields[0]); err != nil {
				return nil, fmt.Errorf("%s: %w", graph, err)
			}
			continue
		}
		row++
		for _, field := range fields {
			u, err := strconv.Atoi(field)
			if err != nil || u < 1 || u > nodes {
				return nil, fmt.Errorf("%s: %q in the line of node %d is no node", graph, field, row+1)
			}
			src, dst = append(src, int32(u-1)), append(dst, row)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return graphops.FromEdges(nodes, src, dst, graphops.BuildOptions{})
}
