package gnb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/recipe"
	"github.com/graphnb/graphnb/graphops/nn"
)

// Recipe is a choice of options for [Train]: by rules from facts about a graph, or as they were published for a set of data.
// See docs/recipes.md.
type Recipe struct {
	Name string
	// Model is the name of the model: the given one, or the one that the recipe has.
	Model string
	// Options are what the recipe sets; the other options are zero.
	Options TrainOptions
	// Facts are what the rules read of the dataset, and Why is which rules applied; nil for a published recipe.
	Facts string
	Why   []string
}

// String says what the recipe chose and why.
func (r *Recipe) String() string {
	return r.Options.recipeText(r.Model, r.reasons())
}

// reasons says why the recipe chose what it chose.
func (r *Recipe) reasons() string {
	if r.Facts == "" {
		return "as published for " + r.Name
	}
	return fmt.Sprintf("because of %s: %s", r.Facts, strings.Join(r.Why, "; "))
}

// recipeText says what a recipe chose, with the options that were given in place of its own, and why.
func (o *TrainOptions) recipeText(model, why string) string {
	s := recipe.Settings{
		Norm: o.Norm, Residual: o.Residual, PreLinear: o.PreLinear, ScaleInput: o.ScaleInput, Hidden: o.Hidden, Layers: o.Layers,
		Dropout: o.Dropout, LR: o.LR, WeightDecay: o.WeightDecay, Epochs: o.Epochs, FullGraph: o.FullGraph,
	}
	return fmt.Sprintf("recipe %s for %s: %s\n%s", o.Recipe, model, s, why)
}

// RecipeFor returns a recipe for a dataset: "strong" chooses by rules from its size, degrees, features, label rate and
// homophily (over train and val alone), and the name of a published set, such as "cora", has the settings published for it.
// model is nil for the model that the recipe has. The dataset's labels are read once.
func RecipeFor(ds *Dataset, model AnyModel, name string) (*Recipe, error) {
	entry.Enter()
	if ds == nil {
		return nil, noDataset("RecipeFor")
	}
	of := ""
	if model != nil {
		if err := checkModel(model, "RecipeFor"); err != nil {
			return nil, err
		}
		of = model.Name()
	}
	return recipeFor(ds, of, name, false)
}

// recipeFor is RecipeFor with the model by its name; sample asks the rules for sampled batches.
func recipeFor(ds *Dataset, model, name string, sample bool) (*Recipe, error) {
	if model == "hgt" {
		return nil, fmt.Errorf("gnb: recipes arrange the layers of a model, and hgt has an arrangement of its own; leave Recipe (--recipe) out, or take rgcn")
	}
	r, s := &Recipe{Name: name}, recipe.Settings{}
	if name != recipe.Strong {
		var err error
		if s, err = recipe.Named(ds, name, model); err != nil {
			return nil, fmt.Errorf("gnb: Recipe (--recipe): %w", err)
		}
	} else {
		f, err := recipe.FactsOf(ds)
		if err != nil {
			return nil, err
		}
		s = recipe.Rules(f, model, sample)
		r.Facts, r.Why = f.String(), s.Why
	}
	r.Model = s.Model
	r.Options = TrainOptions{
		ModelOptions: ModelOptions{
			Arrangement: nn.Strong, Norm: s.Norm, Residual: s.Residual, PreLinear: s.PreLinear, ScaleInput: s.ScaleInput, Hidden: s.Hidden, Layers: s.Layers, Dropout: s.Dropout,
		},
		OptimizerOptions:  OptimizerOptions{LR: s.LR, WeightDecay: s.WeightDecay, Epochs: s.Epochs},
		EvaluationOptions: EvaluationOptions{EvalEvery: s.EvalEvery, Patience: s.Patience},
		FullGraph:         s.FullGraph, Recipe: name,
	}
	return r, nil
}

// samples reports whether options are of sampled batches, which a recipe's steps over the whole graph would not be.
func (o *TrainOptions) samples() bool {
	return o.Fanouts != nil || o.RelationFanouts != nil || o.Sampler != "" || o.Batch > 0 || o.BatchPerWorker > 0 || o.Accumulate > 1 || o.VirtualRanks > 1 || o.Cooperative || o.Eval == "sampled" ||
		o.Embedding > 0 || o.Topology != "" || o.Features == "disk"
}

// WithRecipe returns options with those of their Recipe in place of zeros, and with Chosen; model is the model's name, "" for
// the one of the recipe, which it returns. Options without a Recipe, or whose recipe was applied before, stay.
func (o TrainOptions) WithRecipe(ds *Dataset, model string) (TrainOptions, string, error) {
	if o.Recipe == "" || o.Chosen != "" {
		return o, model, nil
	}
	samples := o.samples() && !o.FullGraph
	r, err := recipeFor(ds, model, o.Recipe, samples)
	if err != nil {
		return o, model, err
	}
	had, from := o, r.Options
	o.Arrangement, o.Norm, o.JK = cmp.Or(o.Arrangement, from.Arrangement), cmp.Or(o.Norm, from.Norm), cmp.Or(o.JK, from.JK)
	o.Residual, o.PreLinear, o.Hidden = o.Residual || from.Residual, o.PreLinear || from.PreLinear, cmp.Or(o.Hidden, from.Hidden)
	o.ScaleInput = o.ScaleInput || from.ScaleInput && o.Embedding == 0
	if o.Layers == 0 && o.Fanouts == nil {
		o.Layers = from.Layers
	}
	o.Dropout, o.LR, o.WeightDecay, o.Epochs = cmp.Or(o.Dropout, from.Dropout), cmp.Or(o.LR, from.LR), cmp.Or(o.WeightDecay, from.WeightDecay), cmp.Or(o.Epochs, from.Epochs)
	if o.EvalEvery == 0 && had.Epochs == 0 { // the pace belongs to the recipe's epochs
		o.EvalEvery = from.EvalEvery
	}
	if o.Patience == 0 && had.Epochs == 0 && o.Eval != "none" && slices.Contains(evaluated(ds), "val") {
		o.Patience = from.Patience
	}
	o.FullGraph = o.FullGraph || from.FullGraph && !samples
	o.Chosen = r.reasons()
	return o, r.Model, nil
}

// RecipeHint says what the recipe by rules would add to a run of [Train] with these options, "" if that is little: the options
// arrange a model themselves, the graph is too small to tell, or its steps would be sampled ones too.
func (o TrainOptions) RecipeHint(ds *Dataset, model string) string {
	if o.Recipe != "" || o.Arrangement != "" || o.Norm != "" || o.Residual || o.JK != "" || model == "hgt" || model == "mlp" || o.samples() {
		return ""
	}
	if ds.Nodes() < 500 || ds.FeatureDim() == 0 || !recipe.Whole(int64(ds.Nodes()), ds.Edges()) {
		return ""
	}
	f, err := recipe.FactsOf(ds)
	if err != nil || f.Train < 5*f.Classes {
		return ""
	}
	s := recipe.Rules(f, "", false)
	if !s.FullGraph {
		return ""
	}
	return fmt.Sprintf("--recipe strong would train %s with %s, which usually reads such a graph better and takes longer; see docs/recipes.md", s.Model, s)
}
