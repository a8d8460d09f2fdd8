// Command partition measures the partitioners of graphops/partition.
//
//	partition [flags] GRAPH…
//
// A GRAPH is a dataset (what datasets.Load takes) or a file of METIS's format that ends in .graph. For
// each graph, number of parts, method and seed, it divides the graph in a process of its own and prints a
// line of JSON: cut edges, imbalance, seconds without reading the graph, and the peak memory of the process and of
// the programs that it runs.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/graphnb/graphnb/graphops"
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
}

func main() {
	parts := flag.String("parts", "2", "numbers of parts, separated by commas")
	methods := flag.String("methods", "fast", "methods or presets, separated by commas")
	seeds := flag.String("seeds", "0", "random seeds, separated by commas")
	imbalance := flag.Float64("imbalance", 0.05, "largest excess of a part over the mean")
	threads := flag.Int("threads", 0, "number of threads (default all CPUs)")
	one := flag.Bool("one", false, "measure in this process")
	flag.Parse()
	if err := run(*parts, *methods, *seeds, *imbalance, *threads, *one, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "partition:", err)
		os.Exit(1)
	}
}

func run(parts, methods, seeds string, imbalance float64, threads int, one bool, graphs []string) error {
	for _, graph := range graphs {
		for _, k := range strings.Split(parts, ",") {
			for _, method := range strings.Split(methods, ",") {
				for _, seed := range strings.Split(seeds, ",") {
					if !one {
						c := exec.Command(os.Args[0], "--one", "--parts", k, "--methods", method, "--seeds", seed,
							"--imbalance", fmt.Sprint(imbalance), "--threads", fmt.Sprint(threads), graph)
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
					r, err := measure(graph, count, method, number, imbalance, threads)
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

func measure(graph string, parts int, method string, seed uint64, imbalance float64, threads int) (Result, error) {
	g, err := read(graph)
	if err != nil {
		return Result{}, err
	}
	o := partition.Options{Method: method, Seed: seed, Imbalance: imbalance, Threads: threads}
	if method == partition.Fast || method == partition.Strong {
		o.Method, o.Preset = partition.Multilevel, method
	}
	loaded := machine.PeakRSS()
	before, _ := used()
	start := time.Now()
	p, err := partition.Divide(context.Background(), g, parts, o)
	if err != nil {
		return Result{}, err
	}
	cpu, most := used()
	return Result{
		Graph: strings.TrimSuffix(filepath.Base(graph), ".graph"), Parts: parts, Method: method, Seed: seed,
		Nodes: g.NumNodes(), Edges: p.Edges, Cut: p.EdgeCut, Imbalance: p.Imbalance,
		Seconds: time.Since(start).Seconds(), CPU: cpu - before, LoadedMB: loaded >> 20, PeakMB: max(machine.PeakRSS(), most) >> 20,
	}, nil
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

func read(graph string) (*graphops.Graph, error) {
	if !strings.HasSuffix(graph, ".graph") {
		ds, err := datasets.Load(graph)
		if err != nil {
			return nil, err
		}
		return ds.Graph, nil
	}
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
