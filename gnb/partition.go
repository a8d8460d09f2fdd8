package gnb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/live"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/partition"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/mapped"
)

// PartitionOptions say how [Partition] divides a dataset's nodes.
type PartitionOptions struct {
	// Method is "multilevel" (the default, and the fewest cut edges), "fennel" (one
	// pass, little memory), "range" or "random": see package partition.
	Method string
	// Balance is what is the same in all parts: "nodes" (the default), "edges" (the
	// nodes' in-edges) or the name of a split, such as "train", whose nodes are.
	Balance string
	// Imbalance is how much above the mean a part may be; 0 means 0.03, and [None] as
	// even as can be.
	Imbalance float64
	Seed      uint64 // 0 means the seed 0
	Threads   int    // 0 means all CPUs
	// Out is a directory to make: partition.json, and parts.npy with the part of
	// each node as int32. "" writes nothing.
	Out   string
	Quiet bool // no progress bar
}

// PartitionResult is a division of a dataset's nodes, and how good it is.
type PartitionResult struct {
	Dataset string `json:"dataset"`
	Parts   int    `json:"parts"`
	Method  string `json:"method"`
	Balance string `json:"balance"`
	Seed    uint64 `json:"seed"`
	// Edges are pairs of nodes with an edge between them, either way; EdgeCut is
	// those between parts.
	Edges       int64   `json:"edges"`
	EdgeCut     int64   `json:"edge_cut"`
	CutFraction float64 `json:"cut_fraction"`
	// Imbalance is the greatest part over the mean, in what is balanced: 1 at best.
	Imbalance float64 `json:"imbalance"`
	Nodes     []int64 `json:"nodes"` // of each part
	// Halo is for each part the nodes of others that have an edge into it: rows that
	// it needs from elsewhere for one hop of all neighbours.
	Halo    []int64 `json:"halo"`
	Seconds float64 `json:"seconds"`
	Out     string  `json:"out,omitempty"`

	// Of is the part of each node.
	Of []int32 `json:"-"`
}

// Partition divides the nodes of ds into parts with few edges between them, here
// in this process. The same dataset, options and seed give the same parts.
//
// Training takes whole datasets for now: parts are for programs of your own, and
// for seeing what a division would cost.
func Partition(ctx context.Context, ds *Dataset, parts int, o PartitionOptions) (r PartitionResult, err error) {
	multigpuEnter()
	if ds == nil {
		return r, errors.New("gnb: there is no dataset to divide: Load one first")
	}
	if ds.Graph == nil {
		return r, noGraph(ds)
	}
	if err := cmp.Or(
		inBounds(bound{"Threads", o.Threads, 1, maxThreads()}),
		numbers(numberBound{name: "Imbalance", value: o.Imbalance, high: 1e6, none: true, what: "how much above the mean a part may be, such as 0.03"}),
	); err != nil {
		return r, err
	}
	if o.Imbalance == None {
		o.Imbalance = 1e-9
	}
	if o.Out != "" {
		if _, err := os.Lstat(o.Out); err == nil {
			return r, fmt.Errorf("gnb: %s is there already; remove it or choose another directory", o.Out)
		}
	}
	start := time.Now()
	balance := cmp.Or(o.Balance, "nodes")
	var weights []int32
	bar := live.ProgressWith(fmt.Sprintf("dividing %s into %d parts", ds.Name(), parts), 100, live.BarOptions{Options: live.Options{Quiet: o.Quiet}, Unit: "%"})
	defer bar.Done()
	shown := int64(0)
	var p *partition.Parts
	err = mapped.Guard(func() (err error) {
		if weights, err = balanced(ds, balance); err != nil {
			return err
		}
		p, err = partition.Divide(ctx, ds.Graph, parts, partition.Options{
			Method: o.Method, Seed: o.Seed, Imbalance: o.Imbalance, Weights: weights, Threads: o.Threads,
			Progress: func(share float64) {
				if at := int64(100 * share); at > shown {
					bar.Add(at - shown)
					shown = at
				}
			},
		})
		return err
	})
	if err != nil {
		return r, fmt.Errorf("gnb: dividing %s: %w", ds.Name(), err)
	}
	r = PartitionResult{
		Dataset: ds.Name(), Parts: parts, Method: p.Method, Balance: balance, Seed: o.Seed,
		Edges: p.Edges, EdgeCut: p.EdgeCut, CutFraction: p.CutFraction(), Imbalance: p.Imbalance, Nodes: p.Nodes, Halo: p.Halo, Of: p.Of,
	}
	bar.Add(100 - shown)
	r.Seconds = time.Since(start).Seconds()
	if o.Out != "" {
		r.Out = o.Out
		if err := r.write(o.Out); err != nil {
			return r, fmt.Errorf("gnb: writing %s: %w", o.Out, err)
		}
	}
	return r, nil
}

// balanced is the nodes' weights for what a balance is called.
func balanced(ds *Dataset, name string) ([]int32, error) {
	switch name {
	case "nodes":
		return nil, nil
	case "edges":
		return ds.Graph.InDegrees(), nil
	}
	ids, err := ds.Split(name)
	if err != nil {
		return nil, fmt.Errorf(`the parts are to be balanced in %q, which is neither "nodes" nor "edges" nor a split: %w`, name, err)
	}
	weights := make([]int32, ds.Nodes())
	for _, v := range ids {
		weights[v] = 1
	}
	return weights, nil
}

// write makes a directory of the result, whole or not at all.
func (r *PartitionResult) write(dir string) error {
	return atomicfile.BuildDir(dir, func(tmp string) error {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.WriteFile(filepath.Join(tmp, "partition.json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
		return dataset.WriteIDs(filepath.Join(tmp, "parts.npy"), r.Of)
	})
}

// String is a table of the parts.
func (r PartitionResult) String() string {
	s := fmt.Sprintf("%s in %d parts by %s: %d of %d edges cut (%.1f %%), %s %.1f %% above the mean at most\n",
		r.Dataset, r.Parts, r.Method, r.EdgeCut, r.Edges, 100*r.CutFraction, r.Balance, 100*(r.Imbalance-1))
	s += "part      nodes       halo   rows from elsewhere for a row of its own\n"
	for i, n := range r.Nodes {
		s += fmt.Sprintf("%4d %10d %10d %10.2f\n", i, n, r.Halo[i], float64(r.Halo[i])/float64(max(n, 1)))
	}
	return live.Clean(s)
}
