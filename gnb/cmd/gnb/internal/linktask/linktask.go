// Package linktask has the flags and the result of "gnb train --task links".
package linktask

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Flags are the flag that chooses between the classes of nodes and links, and those of links alone.
type Flags struct {
	fs    *flag.FlagSet
	task  string
	o     links.Options
	names []string // of the flags of links alone
}

// New makes the flags.
func New(fs *flag.FlagSet) *Flags {
	l := &Flags{fs: fs}
	fs.StringVar(&l.task, "task", "nodes", "what to predict: nodes (their classes) or links")
	had := map[string]bool{}
	fs.VisitAll(func(f *flag.Flag) { had[f.Name] = true })
	fs.StringVar(&l.o.Decoder, "decoder", "dot", "links: dot, bilinear, mlp or hadamard")
	fs.IntVar(&l.o.Dim, "dim", 0, "links: columns of an embedding (default --hidden)")
	fs.Float64Var(&l.o.Val, "val", 0.05, "links: fraction for validation, -1 for none")
	fs.Float64Var(&l.o.Test, "test", 0.1, "links: fraction for the test, -1 for none")
	fs.Float64Var(&l.o.Disjoint, "disjoint", 0, "links: fraction of training edges that are no messages")
	fs.BoolVar(&l.o.FullGraph, "full-graph", false, "links: one step per epoch over the whole graph")
	fs.IntVar(&l.o.Negatives, "negatives", 1, "links: negatives for each training edge")
	fs.StringVar(&l.o.NegativesFrom, "negatives-from", "uniform", "links: uniform, degree, degree75 or in-batch")
	fs.BoolVar(&l.o.KeepSource, "keep-source", false, "links: negatives keep the source of their edge")
	fs.IntVar(&l.o.EvalNegatives, "eval-negatives", 1, "links: negatives for each edge of validation and test")
	fs.StringVar(&l.o.Loss, "loss", "bce", "links: bce, softmax or max-margin")
	fs.Float64Var(&l.o.Margin, "margin", 1, "links: margin of --loss max-margin")
	fs.StringVar(&l.o.Metric, "metric", "auc", "links: best epoch's metric: auc, ap, mrr or hits_10")
	fs.VisitAll(func(f *flag.Flag) {
		if !had[f.Name] {
			l.names = append(l.names, f.Name)
		}
	})
	return l
}

// Chosen reports whether the task is links.
func (l *Flags) Chosen() bool { return l.task == "links" }

// Check returns an error for flags that do not fit the task.
func (l *Flags) Check() (err error) {
	if l.task != "nodes" && l.task != "links" {
		return fmt.Errorf("--task is %q; it is nodes or links", l.task)
	}
	least := map[string]string{
		"val": "it is a fraction of the edges, or -1 for none", "test": "it is a fraction of the edges, or -1 for none", "margin": "it is a number above 0",
		"dim": "it must be at least 1", "negatives": "it must be at least 1", "eval-negatives": "it must be at least 1",
	}
	l.fs.Visit(func(f *flag.Flag) {
		switch {
		case err != nil:
		case !l.Chosen() && slices.Contains(l.names, f.Name):
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
	if !given["dropout"] {
		o.Dropout = gnb.None
	}
	if !given["epochs"] {
		o.Epochs = 0 // links.Train's default, which depends on --full-graph
	}
	l.o.TrainOptions, l.o.Model = o, m
	return links.Train(ctx, ds, l.o)
}

// Metrics are a run's metrics of links that those of other training lack.
type Metrics struct {
	ValAP                 *float64 `json:"val_ap,omitempty"`
	TestAP                *float64 `json:"test_ap,omitempty"`
	ValMRR                *float64 `json:"val_mrr,omitempty"`
	TestMRR               *float64 `json:"test_mrr,omitempty"`
	ValHits10             *float64 `json:"val_hits_10,omitempty"`
	TestHits10            *float64 `json:"test_hits_10,omitempty"`
	CommonNeighboursAUC   *float64 `json:"common_neighbours_auc,omitempty"`
	AdamicAdarAUC         *float64 `json:"adamic_adar_auc,omitempty"`
	ResourceAllocationAUC *float64 `json:"resource_allocation_auc,omitempty"`
}

// MetricsOf returns the metrics that a run has.
func MetricsOf(run *runs.Run) Metrics {
	value := func(name string) *float64 {
		x := run.Value(name)
		if math.IsNaN(x) {
			return nil
		}
		return &x
	}
	return Metrics{
		ValAP: value("val_ap"), TestAP: value("test_ap"), ValMRR: value("val_mrr"), TestMRR: value("test_mrr"),
		ValHits10: value("val_hits_10"), TestHits10: value("test_hits_10"),
		CommonNeighboursAUC: value("common_neighbours_auc"), AdamicAdarAUC: value("adamic_adar_auc"), ResourceAllocationAUC: value("resource_allocation_auc"),
	}
}
