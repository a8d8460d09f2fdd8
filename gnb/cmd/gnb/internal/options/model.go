package options

import (
	"cmp"
	"context"
	"flag"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Nodes are the options of training on nodes, with the model.
type Nodes struct {
	Model gnb.AnyModel `flag:"model" help:"<model>: sage, gcn, gat, gatv2, gin, gine, gatedgcn, pna, rgcn, hgt or mlp (default sage)"`
	gnb.TrainOptions
}

// SplitFlag makes the flag of the set of splits of nodes.
func SplitFlag(fs *flag.FlagSet) { fs.Int("split", 0, "set of splits, for a dataset with several") }

// Load finishes the options after parsing, loads the dataset with the set of splits that the flags choose, and returns the
// model too.
func (o *Nodes) Load(ctx context.Context, out *cli.Output, fs *flag.FlagSet, spec string) (gnb.AnyModel, *dataset.Dataset, error) {
	ds, err := LoadSplitSet(ctx, out, spec, SplitOf(fs))
	if err != nil {
		return nil, nil, err
	}
	model, err := o.Finish(fs, ds)
	return model, ds, err
}

// SplitOf returns the set of splits that the flag of [SplitFlag] chooses, 0 without it.
func SplitOf(fs *flag.FlagSet) (set int) {
	if f := fs.Lookup("split"); f != nil {
		set, _ = strconv.Atoi(f.Value.String())
	}
	return set
}

// applyRecipe sets the options whose flags were not given to those of the recipe; one that is given keeps also a value of 0.
func (o *Nodes) applyRecipe(fs *flag.FlagSet, ds *dataset.Dataset) error {
	model := ""
	if o.Model != nil {
		model = o.Model.Name()
	}
	chosen, model, err := o.WithRecipe(ds, model)
	if err != nil {
		return err
	}
	m, err := gnb.ModelByName(model)
	if err == nil {
		Take(fs, o, &Nodes{Model: m, TrainOptions: chosen})
	}
	return err
}

// Finish sets the options that depend on several flags or on the dataset, after parsing, and returns the model.
func (o *Nodes) Finish(fs *flag.FlagSet, ds *dataset.Dataset) (_ gnb.AnyModel, err error) {
	if o.Recipe != "" && o.Chosen == "" {
		if err := o.applyRecipe(fs, ds); err != nil {
			return nil, err
		}
	}
	SpreadFanouts(fs, o.Layers)
	if f := fs.Lookup("class-weights"); f != nil && f.Value.(*classWeights).balanced {
		o.ClassWeights, err = gnb.BalancedWeights(ds)
	}
	return cmp.Or[gnb.AnyModel](o.Model, gnb.SAGE), err
}

// Set implements [flag.Value].
func (t *tags) Set(s string) error {
	*t = strings.Split(s, ",")
	return runfile.CheckTags(*t)
}

// Precision makes the flag --precision.
func Precision(fs *flag.FlagSet, p *string) {
	fs.StringVar(p, "precision", "", "precision of matrix products: float32, bf16, or tf32 (GPUs)")
}
