// Package recipe chooses the options of training: by rules from facts about a graph ([Rules]), or as they were published for
// a set ([Named]).
//
// Source of the arrangement and of the published settings: Y. Luo, L. Shi, X.-M. Wu, "Classic GNNs are strong baselines:
// reassessing GNNs for node classification", NeurIPS 2024, arXiv:2406.08993, and its repository's medium_graph/run_gnn.sh.
package recipe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Strong is the name of the recipe by rules.
const Strong = "strong"

// Facts are what the rules read of a dataset. They know no label of the test split.
type Facts struct {
	Nodes, Edges int64 // Edges counts each direction
	Features     int
	Classes      int
	Train        int     // nodes of the training split
	Homophily    float64 // adjusted, over edges between nodes of train and val; NaN if unknown
	Parts        bool    // the dataset is in parts or on servers, which full-graph steps cannot read
	Typed        bool
	Scaled       bool // sparse features with values other than 1
}

// Degree is the mean in-degree.
func (f Facts) Degree() float64 { return float64(f.Edges) / float64(max(f.Nodes, 1)) }

// PerClass is the mean number of training nodes of a class.
func (f Facts) PerClass() float64 { return float64(f.Train) / float64(max(f.Classes, 1)) }

// Rate is the share of the nodes that are for training.
func (f Facts) Rate() float64 { return float64(f.Train) / float64(max(f.Nodes, 1)) }

// String says the facts in a line.
func (f Facts) String() string {
	h := "homophily unknown"
	if f.Homophily == f.Homophily {
		h = fmt.Sprintf("adjusted homophily %.2f", f.Homophily)
	}
	return fmt.Sprintf("%d nodes with mean degree %.1f, %d features, %.0f training nodes a class (%.1f %% of the nodes), %s", f.Nodes, f.Degree(), f.Features, f.PerClass(), 100*f.Rate(), h)
}

// mostEdges bounds the edges that are read for the homophily.
const mostEdges = 1 << 27

// FactsOf reads the facts of a dataset.
func FactsOf(ds *dataset.Dataset) (Facts, error) {
	f := Facts{
		Nodes: int64(ds.Nodes()), Edges: ds.Edges(), Features: ds.FeatureDim(), Classes: ds.Classes(), Homophily: math.NaN(),
		Parts: ds.Meta.Parts != nil || ds.Graph == nil, Typed: ds.Schema() != nil,
		Scaled: scaled(ds),
	}
	train, err := ds.Split("train")
	if err != nil {
		return f, err
	}
	f.Train = len(train)
	if ds.Graph == nil || ds.Labels == nil || f.Parts || f.Edges > mostEdges {
		return f, nil
	}
	val, err := ds.Split("val")
	if err != nil {
		val = nil // a dataset without one
	}
	known := make([]int32, ds.Nodes())
	for v := range known {
		known[v] = -1
	}
	err = mapped.Guard(func() error {
		for _, ids := range [][]int32{train, val} {
			for _, v := range ids {
				if int(v) < len(known) && v >= 0 && ds.Labels[v] >= -1 {
					known[v] = ds.Labels[v]
				}
			}
		}
		var h graphops.Homophily
		if h = ds.Graph.Homophily(known); h.Edges > 0 {
			f.Homophily = h.Adjusted
		}
		return nil
	})
	return f, err
}

// scaled reports whether features are sparse with values, such as bags of words divided by the sums of their rows.
func scaled(ds *dataset.Dataset) bool {
	return ds.Features == nil && ds.SparseFeatures != nil && ds.SparseFeatures.Values != nil
}

// Settings are what a recipe sets.
type Settings struct {
	Model       string
	Norm        string
	Residual    bool
	PreLinear   bool
	ScaleInput  bool
	Hidden      int
	Layers      int
	Dropout     float64
	LR          float64
	WeightDecay float64
	Epochs      int
	EvalEvery   int
	Patience    int
	FullGraph   bool
	Why         []string
}

// String says the settings in a line.
func (s Settings) String() string {
	parts := []string{"arrangement strong", cmp.Or(s.Norm, "no") + " norm"}
	if s.Residual {
		parts = append(parts, "residual")
	}
	if s.PreLinear {
		parts = append(parts, "a linear layer first")
	}
	if s.ScaleInput {
		parts = append(parts, "scaled input")
	}
	parts = append(parts, fmt.Sprintf("%d layers of %d columns, dropout %v, learning rate %v, weight decay %v, %d epochs", s.Layers, s.Hidden, s.Dropout, s.LR, s.WeightDecay, s.Epochs))
	if s.FullGraph {
		parts = append(parts, "one step an epoch over the whole graph")
	}
	return strings.Join(parts, ", ")
}

// paced sets how often a run of full-graph steps is evaluated, and when it stops.
func (s Settings) paced() Settings {
	s.EvalEvery, s.Patience = 2, max(100, s.Epochs/5)
	if s.Epochs >= 1000 {
		s.EvalEvery = 5
	}
	return s
}

// Names returns the names of the recipes, that of the rules first.
func Names() []string {
	names := []string{Strong}
	for _, p := range published {
		if !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// Named returns the settings published for a set, for a model; "" means the one with the best published result. The published
// results are of bags of words as they are, so the input of a dataset whose bags are divided by the sums of their rows is scaled.
func Named(ds *dataset.Dataset, name, model string) (Settings, error) {
	var models []string
	best := ""
	for _, p := range published {
		if p.name != name {
			continue
		}
		if best = cmp.Or(best, p.model); p.best {
			best = p.model
		}
		models = append(models, p.model)
	}
	if len(models) == 0 {
		return Settings{}, fmt.Errorf("there is no recipe %q; there are %s", name, strings.Join(Names(), ", "))
	}
	model = cmp.Or(model, best)
	for _, p := range published {
		if p.name == name && p.model == model {
			s := p.settings()
			s.Model, s.FullGraph, s.ScaleInput = model, true, scaled(ds)
			s = s.paced()
			s.Patience = 0 // the published runs train on
			return s, nil
		}
	}
	return Settings{}, fmt.Errorf("recipe %s has settings for %s, and the model is %s; take one of these, or the recipe %s", name, strings.Join(models, ", "), model, Strong)
}
