// Package linktask has the flags and the result of "gnb train --task links".
package linktask

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/kg"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Flags are the flag that chooses between the classes of nodes and links, and those of links alone.
type Flags struct {
	fs        *flag.FlagSet
	task      string
	o         links.Options
	times     times
	smoothing float64     // of labels, in knowledge graphs
	n3        float64     // of knowledge graphs
	of        kge.Options // of a run on a knowledge graph that is resumed; there are no flags for them
	encoder   kg.EncoderOptions
	any       bool     // negatives of that run may be known triples
	names     []string // of the flags of links alone
}

// times is the value of --times.
type times []int64

func (t *times) String() string {
	var s []string
	for _, x := range *t {
		s = append(s, strconv.FormatInt(x, 10))
	}
	return strings.Join(s, ",")
}

// Set implements [flag.Value].
func (t *times) Set(text string) error {
	*t = nil
	for _, x := range strings.Split(text, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number; give two, as in 2018,2019", x)
		}
		*t = append(*t, v)
	}
	return nil
}

// splitValue is the value of --split: a set of splits of nodes, or how to split edges.
type splitValue struct {
	flag.Value
	by *string
}

// Set implements [flag.Value].
func (s splitValue) Set(text string) error {
	switch text {
	case "random", "time", "given":
		*s.by = text
		return nil
	}
	return s.Value.Set(text)
}

// String implements [flag.Value].
func (s splitValue) String() string {
	if s.by != nil && *s.by != "" {
		return *s.by
	}
	if s.Value == nil {
		return ""
	}
	return s.Value.String()
}

// New makes the flags.
func New(fs *flag.FlagSet) *Flags {
	l := &Flags{fs: fs}
	fs.StringVar(&l.task, "task", "nodes", "what to predict: nodes (their classes) or links")
	if f := fs.Lookup("split"); f != nil {
		f.Value, f.Usage = splitValue{f.Value, &l.o.SplitBy}, "set of splits; of links: random, time or given"
	}
	had := map[string]bool{}
	fs.VisitAll(func(f *flag.Flag) { had[f.Name] = true })
	fs.StringVar(&l.o.Decoder, "decoder", "dot", "dot, bilinear, mlp, hadamard or structural; of triples see docs/knowledge-graphs.md")
	fs.StringVar(&l.o.Relation, "relation", "", "links: `relation` to predict, such as author:writes:paper")
	fs.StringVar(&l.o.ReverseRelation, "reverse-relation", "", "links: `relation` with the reverse edges of --relation")
	fs.IntVar(&l.o.Dim, "dim", 0, "links: columns of an embedding (default --hidden)")
	fs.Float64Var(&l.o.Val, "val", 0.05, "links: fraction for validation, -1 for none")
	fs.Float64Var(&l.o.Test, "test", 0.1, "links: fraction for the test, -1 for none")
	fs.Float64Var(&l.o.Disjoint, "disjoint", 0, "links: fraction of training edges that are no messages")
	fs.BoolVar(&l.o.FullGraph, "full-graph", false, "links: one step per epoch over the whole graph")
	fs.IntVar(&l.o.Negatives, "negatives", 1, "links: negatives for each training edge")
	fs.StringVar(&l.o.NegativesFrom, "negatives-from", "uniform", "links: uniform, degree, degree75 or in-batch")
	fs.BoolVar(&l.o.KeepSource, "keep-source", false, "links: negatives keep the source of their edge")
	fs.IntVar(&l.o.EvalNegatives, "eval-negatives", 0, "links: negatives per evaluated edge (default 1; ranks: 100)")
	fs.BoolVar(&l.o.KnownMessages, "known-messages", false, "links: evaluate with all earlier edges as messages")
	fs.StringVar(&l.o.Loss, "loss", "bce", "links: bce, softmax, max-margin; triples also kvsall, 1vsall")
	fs.Float64Var(&l.o.PosWeight, "pos-weight", 1, "links: weight of an edge beside a negative, with bce")
	fs.Float64Var(&l.o.Margin, "margin", 1, "links: margin of --loss max-margin")
	fs.StringVar(&l.o.Metric, "metric", "", "`accuracy|auc|ap|macro_f1|micro_f1`; links: auc, ap, mrr, hits_20, …")
	fs.Float64Var(&l.smoothing, "smoothing", 0.1, "triples: smoothing of labels of --loss kvsall")
	fs.StringVar(&l.encoder.Name, "encoder", "", "triples: graph network before the decoder: rgcn or compgcn")
	fs.IntVar(&l.encoder.Layers, "encoder-layers", 0, "triples: layers of --encoder; 0 means its default")
	fs.IntVar(&l.encoder.Bases, "encoder-bases", 0, "triples: bases of --encoder rgcn; 0 means 4")
	fs.IntVar(&l.encoder.Blocks, "encoder-blocks", 0, "triples: diagonal blocks of --encoder rgcn, instead of bases")
	fs.Float64Var(&l.encoder.Dropout, "encoder-dropout", 0.2, "triples: dropout of the layers of --encoder")
	fs.Float64Var(&l.encoder.Messages, "messages", 0.5, "triples: fraction of a step's triples as --encoder's messages")
	fs.Float64Var(&l.n3, "n3", 0, "triples: factor of the N3 regulariser of --loss 1vsall")
	fs.Var(&l.times, "times", "links: `times` from which validation and test begin")
	fs.StringVar(&l.o.ValEdges, "val-edges", "", "links: `file` of the edges for validation, by ids")
	fs.StringVar(&l.o.TestEdges, "test-edges", "", "links: `file` of the edges for the test, by ids")
	fs.VisitAll(func(f *flag.Flag) {
		if !had[f.Name] {
			l.names = append(l.names, f.Name)
		}
	})
	return l
}

// Metric is the metric of nodes that the user has chosen, "" for the dataset's own.
func (l *Flags) Metric() string {
	if l.Chosen() {
		return ""
	}
	return l.o.Metric
}

// Chosen reports whether the task is links.
func (l *Flags) Chosen() bool { return l.task == "links" }

// SameTask returns an error if the user gave another task than that of the run to resume.
func (l *Flags) SameTask(run *runs.Run) error {
	theirs := "nodes"
	if p := run.Config.Program; p == links.TrainProgram || p == kg.TrainProgram {
		theirs = "links"
	}
	var err error
	l.fs.Visit(func(f *flag.Flag) {
		if f.Name == "task" && l.task != theirs {
			err = fmt.Errorf("run %s predicts %s, and --task is %s; leave --task out to resume it, or begin another run (--from %s starts with its weights)", run.Dir, theirs, l.task, run.Dir)
		}
	})
	return err
}

// Check returns an error for flags that do not fit the task.
func (l *Flags) Check() (err error) {
	if l.task != "nodes" && l.task != "links" {
		return fmt.Errorf("--task is %q; it is nodes or links", l.task)
	}
	if !l.Chosen() && l.o.SplitBy != "" {
		return fmt.Errorf("--split %s is for links only; add --task links, or give the number of a set of splits", l.o.SplitBy)
	}
	least := map[string]string{
		"val": "it is a fraction of the edges, or -1 for none", "test": "it is a fraction of the edges, or -1 for none", "margin": "it is a number above 0", "pos-weight": "it is a number above 0",
		"dim": "it must be at least 1", "negatives": "it must be at least 1", "eval-negatives": "it must be at least 1",
	}
	l.fs.Visit(func(f *flag.Flag) {
		switch {
		case err != nil:
		case !l.Chosen() && f.Name != "metric" && slices.Contains(l.names, f.Name):
			err = fmt.Errorf("--%s is for links only; add --task links", f.Name)
		case least[f.Name] != "" && f.Value.String() == "0": // in the options 0 means the default
			err = fmt.Errorf("--%s is 0; %s", f.Name, least[f.Name])
		}
	})
	return err
}

// Train trains on the links of a dataset.
func (l *Flags) Train(ctx context.Context, ds *dataset.Dataset, m gnb.AnyModel, o gnb.TrainOptions) (*runs.Run, error) {
	given := map[string]bool{}
	l.fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if l.ofTriples() {
		return l.trainTriples(ctx, ds, o, given)
	}
	if _, err := pairs.NewDecoder(l.o.Decoder, 1, 0); err != nil {
		return nil, fmt.Errorf("--decoder is %q; links have %s, and triples %s", l.o.Decoder, pairs.DecoderNames, strings.Join(decodersOfTriples, ", "))
	}
	if given["smoothing"] || given["n3"] || anyOf(given, ofEncoder) != "" {
		return nil, fmt.Errorf("--smoothing, --n3 and --encoder are for decoders of triples (%s); --decoder %s is none", strings.Join(decodersOfTriples, ", "), l.o.Decoder)
	}
	if !given["dropout"] {
		o.Dropout = gnb.None
	}
	if !given["epochs"] {
		o.Epochs = 0 // links.Train's default, which depends on --full-graph
	}
	if !given["lr"] {
		o.LR = 0 // links.Train's default, which depends on the features
	}
	if l.o.Relation != "" && !given["model"] {
		m = nil // links.Train's default for a graph with types
	}
	l.o.TrainOptions, l.o.Model, l.o.Times = o, m, l.times
	return links.Train(ctx, ds, l.o)
}

// Take sets the flags that the user did not give to those of a run of links, so that "gnb train --resume
// RUN" alone resumes it. It returns the run's model and its other options.
func (l *Flags) Take(run *runs.Run) (model string, o gnb.TrainOptions, err error) {
	model, had, err := links.OptionsOf(run)
	if err != nil {
		return "", o, err
	}
	given := map[string]bool{}
	l.fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	values := flag.NewFlagSet("run", flag.ContinueOnError)
	values.SetOutput(io.Discard)
	their := New(values)
	had.PosWeight = cmp.Or(had.PosWeight, 1)
	their.o, their.times = had, had.Times
	for _, name := range their.names {
		f := values.Lookup(name)
		if given[name] || err != nil || f.Value.String() == l.fs.Lookup(name).DefValue {
			continue
		}
		if e := l.fs.Set(name, f.Value.String()); e != nil {
			err = fmt.Errorf("run %s has --%s %s, which is not a valid value: %w", run.Dir, name, f.Value, e)
		}
	}
	if l.o.SplitBy == "" && !given["times"] && !given["val-edges"] && !given["test-edges"] {
		l.o.SplitBy = had.SplitBy
	}
	l.task = "links"
	return model, had.TrainOptions, err
}

// metrics are the names of metrics that most runs do not have: of links, and the average precision of nodes.
var metrics = regexp.MustCompile(`^((val|test)_(ap|mrr|mean_rank|hits_\d+|recall_\d+|ndcg_\d+)|(common_neighbours|adamic_adar|resource_allocation)_(auc|recall_\d+|ndcg_\d+))$`)

// WithMetrics returns the fields of a result, which encode as a JSON object, with those of these metrics that a run has.
func WithMetrics(fields any, run *runs.Run) (json.RawMessage, error) {
	b, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(run.Result.Values)) {
		x := run.Result.Values[name]
		if _, has := all[name]; has || !metrics.MatchString(name) || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		value, err := json.Marshal(x)
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(b[:len(b)-1], ",%q:%s}", name, value)
	}
	return b, nil
}
