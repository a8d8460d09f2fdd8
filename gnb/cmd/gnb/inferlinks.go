package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/outfile"
	"github.com/graphnb/graphnb/gnb/events"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/numbers"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// linkInfer are the flags of "gnb infer" for runs that predict links or triples.
type linkInfer struct {
	fs                       *flag.FlagSet
	pairs, nodes, candidates string
	relation                 string
	k                        int
	exclude, training        bool
	triples, complete        string
	best                     int
	known                    bool
	asOf                     string
}

// newLinkInfer makes the flags.
func newLinkInfer(fs *flag.FlagSet) *linkInfer {
	i := &linkInfer{fs: fs}
	fs.StringVar(&i.pairs, "pairs", "", "`file` of pairs to score or predict, one a line")
	fs.IntVar(&i.k, "recommend", 0, "links: nodes to recommend to each node")
	fs.StringVar(&i.nodes, "nodes", "", "`file` of the nodes to answer about (default all)")
	fs.StringVar(&i.candidates, "candidates", "", "links: `file` of the nodes to recommend (default all)")
	fs.StringVar(&i.relation, "relation", "", "links: `relation` of the pairs (default the run's)")
	fs.BoolVar(&i.exclude, "exclude-known", false, "links: recommend no node that is already a neighbour")
	fs.BoolVar(&i.training, "training-edges", false, "compute on the training edges alone, as evaluation does")
	fs.StringVar(&i.asOf, "as-of", "", "events: `time` that answers are for (default after all)")
	fs.StringVar(&i.triples, "triples", "", "triples: `file` of triples to score, one a line")
	fs.StringVar(&i.complete, "complete", "", "triples: `file` of triples with ? as head or tail")
	fs.IntVar(&i.best, "best", 10, "triples: entities to find for each ?")
	fs.BoolVar(&i.known, "known", false, "triples: also find entities that are known already")
	return i
}

// chosen reports whether a run is one of links or triples.
func (i *linkInfer) chosen(run *runs.Run) bool { return links.Predicts(run) || kg.Trained(run) }

// inferLinksFlags are the names of the flags.
var inferLinksFlags = []string{"pairs", "recommend", "nodes", "candidates", "exclude-known", "training-edges", "relation"}

// check returns an error for flags that do not fit each other or the run.
func (i *linkInfer) check(run *runs.Run) (err error) {
	given := map[string]bool{}
	i.fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := i.checkTriples(run, given); err != nil {
		return err
	}
	for _, name := range append(inferLinksFlags, "as-of") {
		switch {
		case events.TrainedNodes(run) && given[name] && name != "as-of" && name != "nodes":
			return fmt.Errorf("--%s does not apply to run %s, which answers about nodes; give --as-of for another moment, or --nodes for some of them", name, run.Config.ID)
		case events.TrainedNodes(run):
		case name == "as-of" && given[name] && !events.Trained(run):
			return fmt.Errorf("--as-of is for runs on events, and run %s is none; train one by gnb train --task events or node-events", run.Config.ID)
		case events.Trained(run) && given[name] && (name == "training-edges" || name == "relation"):
			return fmt.Errorf("--%s does not apply to run %s, which is on events", name, run.Config.ID)
		case !given[name] || (name == "pairs" || name == "training-edges") && numbers.Trained(run) && numbers.TrainedEdges(run):
		case !links.Predicts(run) && !events.Trained(run):
			return fmt.Errorf("--%s is for runs that predict links or events%s, and run %s does not; train one by gnb train --task links", name, map[bool]string{true: ", or numbers of edges"}[name == "pairs" || name == "training-edges"], run.Config.ID)
		case !given["recommend"] && slices.Contains([]string{"nodes", "candidates", "exclude-known"}, name):
			return fmt.Errorf("--%s goes with --recommend K, which is missing", name)
		}
	}
	switch {
	case given["pairs"] && given["recommend"]:
		return fmt.Errorf("--pairs and --recommend are given; give one of them")
	case given["recommend"] && i.k < 1:
		return fmt.Errorf("--recommend is %d; it is the number of nodes to recommend, 1 or more", i.k)
	}
	return nil
}

// linkResult is what "gnb infer" prints of a run that predicts links or triples.
type linkResult struct {
	Pairs   *int    `json:"pairs,omitempty"`
	Nodes   *int    `json:"nodes,omitempty"`
	Triples *int    `json:"triples,omitempty"`
	Seconds float64 `json:"seconds"`
	Weights string  `json:"weights,omitempty"`
	Out     string  `json:"out"`
}

func (r linkResult) String() string {
	if r.Pairs != nil {
		return fmt.Sprintf("%d pairs in %.3f s\n%s", *r.Pairs, r.Seconds, r.Out)
	}
	if r.Triples != nil {
		return fmt.Sprintf("%d triples in %.3f s\n%s", *r.Triples, r.Seconds, r.Out)
	}
	return fmt.Sprintf("%d nodes in %.3f s\n%s", *r.Nodes, r.Seconds, r.Out)
}

// run scores pairs or triples, recommends, completes triples or computes embeddings, and writes the result to a file: a NumPy array if
// its name ends in .npy, else rows in the format that the name says ([outfile.Write]). Embeddings are always an array, and
// completions never.
func (i *linkInfer) run(ctx context.Context, run *runs.Run, ds *dataset.Dataset, out string, o gnb.InferOptions) (linkResult, error) {
	if kg.Trained(run) {
		return i.runTriples(ctx, run, ds, out, o)
	}
	lo := links.InferOptions{InferOptions: o, Training: i.training, Relation: i.relation}
	if err := outfile.Check(out, true, i.pairs != "" || i.k > 0); err != nil {
		return linkResult{}, err
	}
	array := outfile.IsArray(out)
	var names pairs.Names
	if i.pairs != "" || i.k > 0 {
		ids, err := ds.IDs()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return linkResult{}, err
		}
		names = pairs.NewNames(ids)
	}
	switch {
	case i.pairs != "":
		e, err := i.readPairs(names)
		if err != nil {
			return linkResult{}, err
		}
		s, err := links.Score(ctx, run, ds, e, lo)
		if err != nil {
			return linkResult{}, err
		}
		n := e.Len()
		r := linkResult{Pairs: &n, Seconds: s.Seconds, Weights: s.Weights, Out: out}
		if array {
			return r, dataset.WriteNPY(out, n, 1, s.Values)
		}
		return r, writeScores(out, names, e, s.Values)
	case i.k > 0:
		return i.recommend(ctx, run, ds, names, out, array, lo)
	}
	r, err := links.Infer(ctx, run, ds, out, lo)
	return linkResult{Nodes: &r.Nodes, Seconds: r.Seconds, Weights: r.Weights, Out: r.Out}, err
}

// readPairs reads the pairs of --pairs.
func (i *linkInfer) readPairs(names pairs.Names) (links.Edges, error) {
	e, err := names.Edges(i.pairs)
	if err == nil && e.Len() == 0 {
		err = fmt.Errorf("--pairs %s has no pairs; write a line for each: the source's and the destination's number in the dataset, from 0, or their ids in the tables that the dataset was made of", i.pairs)
	}
	return e, err
}

func (i *linkInfer) recommend(ctx context.Context, run *runs.Run, ds *dataset.Dataset, names pairs.Names, out string, array bool, lo links.InferOptions) (linkResult, error) {
	o := links.RecommendOptions{InferOptions: lo, ExcludeKnown: i.exclude}
	nodes, err := readNodes(names, i.nodes)
	if err != nil {
		return linkResult{}, err
	}
	if o.Candidates, err = readCandidates(names, i.candidates); err != nil {
		return linkResult{}, err
	}
	rec, err := links.Recommend(ctx, run, ds, nodes, i.k, o)
	if err != nil {
		return linkResult{}, err
	}
	n := len(rec.Nodes)
	r := linkResult{Nodes: &n, Seconds: rec.Seconds, Weights: rec.Weights, Out: out}
	if array {
		return r, dataset.WriteIDRows(out, n, i.k, rec.IDs)
	}
	return r, writeTop(out, names, rec.Nodes, rec.Top)
}

// writeScores writes the scores of pairs, a row for each.
func writeScores(file string, names pairs.Names, e links.Edges, scores []float32) error {
	return outfile.Write(file, []string{"source", "target", "score"}, func(yield func([]any) bool) {
		for k, x := range scores {
			if !yield([]any{names.Of(e.Src[k]), names.Of(e.Dst[k]), x}) {
				return
			}
		}
	})
}

// writeTop writes what is recommended to each of some nodes, a row for each of the best.
func writeTop(file string, names pairs.Names, nodes []int32, top pairs.Top) error {
	return outfile.Write(file, []string{"node", "rank", "recommended", "score"}, func(yield func([]any) bool) {
		for k, u := range nodes {
			ids, scores := top.Of(k)
			for j, v := range ids {
				if !yield([]any{names.Of(u), j + 1, names.Of(v), scores[j]}) {
					return
				}
			}
		}
	})
}

// writeEmbeddingsCSV writes embeddings as CSV: a line for each node with its id and its numbers.
func writeEmbeddingsCSV(path string, x *dataset.Matrix) error {
	header := []string{"node"}
	for c := range x.Cols {
		header = append(header, fmt.Sprint("x", c))
	}
	return outfile.Write(path, header, func(yield func([]any) bool) {
		row := make([]any, len(header))
		for v := range x.Rows {
			row[0] = v
			for c, y := range x.F32[v*x.Cols:][:x.Cols] {
				row[1+c] = y
			}
			if !yield(row) {
				return
			}
		}
	})
}

// readCandidates reads a list of nodes, ascending and each once; nil without a file.
func readCandidates(names pairs.Names, path string) ([]int32, error) {
	nodes, err := readNodes(names, path)
	slices.Sort(nodes)
	return slices.Compact(nodes), err
}

// readNodes reads a list of nodes; nil without a file.
func readNodes(names pairs.Names, path string) ([]int32, error) {
	if path == "" {
		return nil, nil
	}
	nodes, err := names.Nodes(path)
	if err == nil && len(nodes) == 0 {
		err = fmt.Errorf("pairs: %s has no nodes; write one id on each line", path)
	}
	return nodes, err
}
