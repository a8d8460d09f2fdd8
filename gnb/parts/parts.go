// Package parts divides a dataset's nodes into parts of about equal size with few edges between them, so that a
// machine that holds one part has most neighbours of its nodes.
//
// # Basics
//
// [Divide] divides a dataset, shows its progress in a cell or a terminal, and writes the dataset in parts to a directory
// if asked to: gnb.Load opens it, and gnb.Train trains on it with a part or more for each worker. Print the [Division] for a table of the parts:
//
//	ds := gnb.Must(gnb.Load(ctx, "planted"))
//	fmt.Println(gnb.Must(parts.Divide(ctx, ds, 4, parts.Options{Balance: "nodes,train"})))
//
// The command "gnb partition" does the same in a terminal. Package graphops/partition divides a graph alone, and
// describes the methods.
//
// # Caveats
//
// With GPUs, the CPUs sample and gather rows, and the GPUs compute. On several machines each needs the parts of its own
// ranks, at the same path: see docs/partition.md.
package parts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/internal/screen"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/partition"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/atomicfile"
	"github.com/graphnb/graphnb/internal/machine"
	"github.com/graphnb/graphnb/internal/mapped"
	"github.com/graphnb/graphnb/internal/phrase"
)

// Options are the settings of [Divide].
type Options struct {
	// Method is "multilevel" (the default, with the fewest cut edges), "stream" (for graphs that do
	// not fit into memory), "fennel" (the same in one pass, with more cut edges),
	// "range", "random", or "metis", "scotch" or "kahip", which run these programs.
	Method string
	// Preset is "fast" (the default) or "strong", of the multilevel method: about a minute for fewer cut edges.
	Preset string
	// Balance is the quantity of which all parts have about the same amount: "nodes" (the
	// default), "edges" (in-edges of the nodes), or the name of a split, such as "train", for its
	// nodes. The multilevel method takes several, separated by commas: "nodes,edges,train".
	Balance string
	// Imbalance is the fraction by which a part may exceed the mean; 0 means 0.03, and 1e-9 divides as
	// evenly as possible.
	Imbalance float64
	Seed      uint64 // random seed; 0 means the seed 0
	Threads   int    // 0 means all CPUs
	// Out is a directory to make: the dataset in parts, on which gnb.Train trains (package graphops/divided describes
	// its files), and this division in partition.json. "" writes nothing.
	Out string
	// NoTopology leaves the whole graph out of Out, so that each part has the in-edges of its own nodes alone.
	NoTopology bool
	// Fanouts are those of the sampled batches in Division.Remote; nil means 10, 10.
	Fanouts []int
	Quiet   bool // show no progress bar
}

// Division is a division of a dataset's nodes into parts, with measures of its quality.
type Division struct {
	Dataset string `json:"dataset"`
	Parts   int    `json:"parts"`
	Method  string `json:"method"`
	Preset  string `json:"preset,omitempty"` // of the multilevel method
	Balance string `json:"balance"`
	Seed    uint64 `json:"seed"`
	// Edges is the number of pairs of nodes joined by an edge in either direction, and EdgeCut the
	// number of such pairs in different parts.
	Edges       int64   `json:"edges"`
	EdgeCut     int64   `json:"edge_cut"`
	CutFraction float64 `json:"cut_fraction"`
	// Imbalance is the largest part divided by the mean part, in the balanced quantity or the first of them; 1 is best.
	Imbalance float64 `json:"imbalance"`
	// Imbalances is the imbalance in each of several balanced quantities, in the order of Balance.
	// Imbalance is the first.
	Imbalances []float64 `json:"imbalances,omitempty"`
	Nodes      []int64   `json:"nodes"` // nodes per part
	// InEdges is the number of in-edges of each part's nodes, Train the number of its training nodes, and FeatureBytes
	// the size of its nodes' features. The last two are nil for a dataset without the split "train" or without features.
	InEdges      []int64 `json:"in_edges"`
	Train        []int64 `json:"train,omitempty"`
	FeatureBytes []int64 `json:"feature_bytes,omitempty"`
	// Halo is, for each part, the number of nodes of other parts with an edge into it: the rows that one hop of
	// all neighbours needs from other parts.
	Halo []int64 `json:"halo"`
	// Remote is, for each part, the share of the rows of features in sampled batches of its training nodes that other parts
	// have. It is nil for a dataset without the split "train".
	Remote []float64 `json:"remote,omitempty"`
	// ZeroWeights is the number of edges of weight 0, which the written parts leave out.
	ZeroWeights int64   `json:"zero_weights,omitempty"`
	Seconds     float64 `json:"seconds"`
	Out         string  `json:"out,omitempty"`
	// Notes says which parts are much larger than the mean, in which quantity, and what to do about it.
	Notes []string `json:"notes,omitempty"`

	// Of is the part of each node.
	Of []int32 `json:"-"`
}

// Divide divides the nodes of ds into n parts with few edges between them, in this process. The same dataset,
// options and seed give the same parts.
func Divide(ctx context.Context, ds *dataset.Dataset, n int, o Options) (d Division, err error) {
	entry.Enter()
	if ds == nil {
		return d, errors.New("parts: Divide needs a dataset; get one from gnb.Load")
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return d, err
	}
	if ds.Graph == nil {
		return d, errors.New("parts: " + ds.WhyNoGraph())
	}
	if err := entry.Check("Threads", o.Threads, 1, machine.MaxThreads()); err != nil {
		return d, err
	}
	if !(o.Imbalance >= 0 && o.Imbalance <= 1e6) {
		return d, fmt.Errorf("parts: Imbalance is %v; it is the fraction by which a part may exceed the mean, such as 0.03", o.Imbalance)
	}
	if err := sample.Fanouts(o.Fanouts).Check(); err != nil {
		return d, fmt.Errorf("parts: Fanouts: %w", err)
	}
	if o.Out != "" {
		if _, err := os.Lstat(o.Out); err == nil {
			return d, fmt.Errorf("parts: %s exists; remove it or choose another directory", o.Out)
		}
	}
	start := time.Now()
	balance := cmp.Or(o.Balance, "nodes")
	var weights [][]int32
	bar := screen.Progress(fmt.Sprintf("dividing %s into %d parts", ds.Name(), n), 100, screen.BarOptions{Options: screen.Options{Quiet: o.Quiet}, Unit: "%"})
	defer bar.Done()
	shown := int64(0)
	var p *partition.Parts
	err = mapped.Guard(func() (err error) {
		if weights, err = balanced(ds, balance); err != nil {
			return err
		}
		p, err = partition.Divide(ctx, ds.Graph, n, partition.Options{
			Method: o.Method, Preset: o.Preset, Seed: o.Seed, Imbalance: o.Imbalance, Weights: weights[0], More: weights[1:], Threads: o.Threads,
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
		return d, fmt.Errorf("parts: dividing %s: %w", ds.Name(), err)
	}
	d = Division{
		Dataset: ds.Name(), Parts: n, Method: p.Method, Preset: p.Preset, Balance: balance, Seed: o.Seed,
		Edges: p.Edges, EdgeCut: p.EdgeCut, CutFraction: p.CutFraction(), Imbalance: p.Imbalance, Nodes: p.Nodes, Halo: p.Halo, Of: p.Of,
	}
	if len(weights) > 1 {
		d.Imbalances = p.Imbalances
	}
	if err := mapped.Guard(func() error { d.count(ds); return nil }); err != nil {
		return d, fmt.Errorf("parts: counting what the parts of %s have: %w", ds.Name(), err)
	}
	bar.Add(100 - shown)
	d.Seconds = time.Since(start).Seconds()
	if err := mapped.Guard(func() (err error) {
		d.Remote, err = remote(ds, d.Of, n, o)
		return err
	}); err != nil {
		return d, fmt.Errorf("parts: sampling %s: %w", ds.Name(), err)
	}
	if o.Out != "" {
		d.Out = o.Out
		if _, d.ZeroWeights, err = ds.WithoutZeroWeights(); err != nil {
			return d, fmt.Errorf("parts: %w", err)
		}
		if err := d.write(ctx, ds, o); err != nil {
			return d, fmt.Errorf("parts: %w", err)
		}
	}
	return d, nil
}

// balanced returns the node weights for each quantity of a value of Options.Balance.
func balanced(ds *dataset.Dataset, names string) (weights [][]int32, err error) {
	for name := range strings.SplitSeq(names, ",") {
		w, err := quantity(ds, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		weights = append(weights, w)
	}
	if len(weights) == 1 && names == "nodes" {
		weights[0] = nil // every node has weight 1
	}
	return weights, nil
}

// quantity returns how much of a quantity each node has.
func quantity(ds *dataset.Dataset, name string) ([]int32, error) {
	switch name {
	case "nodes":
		return slices.Repeat([]int32{1}, ds.Nodes()), nil
	case "edges":
		return ds.Graph.InDegrees(), nil
	}
	ids, err := ds.Split(name)
	if err != nil {
		return nil, fmt.Errorf(`balance %q is neither "nodes" nor "edges" nor a split: %w`, name, err)
	}
	weights := make([]int32, ds.Nodes())
	for _, v := range ids {
		weights[v] = 1
	}
	return weights, nil
}

// write writes the dataset in parts.
func (d *Division) write(ctx context.Context, ds *dataset.Dataset, o Options) error {
	bar := screen.Progress("writing "+o.Out, 100, screen.BarOptions{Options: screen.Options{Quiet: o.Quiet}, Unit: "%"})
	defer bar.Done()
	return divided.Write(ctx, o.Out, ds, d.Of, d.Parts, divided.Options{
		NoTopology: o.NoTopology,
		Progress:   func(share float64) { bar.Set(int64(100*share), 100) },
		More: func(dir string) error {
			text, err := json.MarshalIndent(d, "", "  ")
			if err != nil {
				return err
			}
			return atomicfile.WriteFile(filepath.Join(dir, "partition.json"), append(text, '\n'), 0o644)
		},
	})
}

// String returns a table of the parts.
func (d Division) String() string {
	s := fmt.Sprintf("%s in %d parts by %s: %d of %d edges cut (%.1f %%)",
		d.Dataset, d.Parts, d.Method, d.EdgeCut, d.Edges, 100*d.CutFraction)
	for i, name := range strings.Split(d.Balance, ",") {
		most := d.Imbalance
		if i < len(d.Imbalances) {
			most = d.Imbalances[i]
		}
		s += fmt.Sprintf(", %s %.1f %% above the mean at most", strings.TrimSpace(name), 100*(most-1))
	}
	s += "\n"
	if d.ZeroWeights > 0 {
		s += phrase.Count(int(d.ZeroWeights), "edge") + " of weight 0 left out: nothing samples them\n"
	}
	s += "part      nodes   in-edges"
	if d.Train != nil {
		s += "      train"
	}
	if d.FeatureBytes != nil {
		s += "   features"
	}
	s += "       halo   halo per node"
	if d.Remote != nil {
		s += "   remote share of a sampled batch"
	}
	s += "\n"
	for i, n := range d.Nodes {
		s += fmt.Sprintf("%4d %10d %10d", i, n, d.InEdges[i])
		if d.Train != nil {
			s += fmt.Sprintf(" %10d", d.Train[i])
		}
		if d.FeatureBytes != nil {
			s += fmt.Sprintf(" %10s", phrase.Bytes(d.FeatureBytes[i]))
		}
		s += fmt.Sprintf(" %10d %15.2f", d.Halo[i], float64(d.Halo[i])/float64(max(n, 1)))
		if d.Remote != nil {
			s += fmt.Sprintf(" %15.1f %%", 100*d.Remote[i])
		}
		s += "\n"
	}
	for _, note := range d.Notes {
		s += note + "\n"
	}
	return phrase.Clean(s)
}
