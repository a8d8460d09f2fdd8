package gnb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/internal/mapped"
)

// Train trains a model on a dataset by neighbour sampling, showing loss, accuracy and workers
// live. It runs as a program ([Launch]) does: with interrupts, checkpoints and a run directory.
//
// The run's val_accuracy and test_accuracy (or val_auc and so on, by TrainOptions.Metric)
// are those of the best epoch on the validation split (the run's "best_epoch"; see
// TrainOptions.BestBy). best.safetensors holds the weights of that epoch, model.safetensors the
// final ones.
func Train(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions) (*runs.Run, error) {
	entry.Enter()
	ds, full, err := o.named(ctx, ds, model, "Train")
	if err != nil {
		return nil, err
	}
	return nodes.Train(ctx, ds, full)
}

// noDataset is the error of what needs a dataset and has none.
func noDataset(what string) error {
	return fmt.Errorf("gnb: %s needs a dataset; get one from gnb.Load", what)
}

// named returns the dataset with the metric of the options and one width of features, and the options with the model's name.
func (o TrainOptions) named(ctx context.Context, ds *Dataset, model AnyModel, method string) (*Dataset, nodeOptions, error) {
	var full nodeOptions
	if err := checkModel(model, method); err != nil {
		return nil, full, err
	}
	if ds == nil {
		return nil, full, noDataset(method)
	}
	ds, err := feed.OneWidth(ctx, ds, o.Quiet)
	if err == nil {
		ds, err = tally.Named(ds, o.Metric)
	}
	return ds, nodeOptions{model.Name(), o}, err
}

// Loader returns the Loader and the ModelConfig that Train uses for these options on a dataset,
// for programs that train like Train. It fails if the options are invalid, and for steps over the whole graph, which have
// no Loader but [Worker.FullGraph].
func (o TrainOptions) Loader(ds *Dataset) (Loader, ModelConfig, error) {
	full, _, err := nodes.complete(context.Background(), ds, nodeOptions{"", o})
	if err != nil {
		return Loader{}, ModelConfig{}, err
	}
	if full.FullGraph {
		return Loader{}, ModelConfig{}, errors.New("gnb: the steps of these options are over the whole graph (FullGraph, or a Recipe that sets it), and have no Loader; take Worker.FullGraph, or give Fanouts for sampled batches")
	}
	l, err := loaderOf(ds, full.SamplerOptions, full.OptimizerOptions)
	l.InputHalo, l.Cooperative = full.BatchDegrees, full.Cooperative
	return l, full.Config(ds, ds.Classes()), err
}

// BalancedWeights returns class weights for [TrainOptions].ClassWeights that give each class of the training split
// the same total weight, as scikit-learn's "balanced": rows/(classes·count). It fails for a dataset whose labels are not
// in one file, because it is in parts or on servers, or whose nodes can have several labels.
func BalancedWeights(ds *Dataset) ([]float32, error) {
	if ds == nil || ds.Labels == nil {
		return nil, errors.New("gnb: BalancedWeights needs a dataset with one label a node, in one file; give ClassWeights yourself")
	}
	ids, err := ds.Split("train")
	if err != nil {
		return nil, err
	}
	labels := make([]int32, len(ids))
	err = mapped.Guard(func() error {
		for i, v := range ids {
			if labels[i] = ds.Labels[v]; labels[i] < -1 || int(labels[i]) >= ds.Classes() {
				return fmt.Errorf("gnb: node %d of %s has label %d, not one of %d classes", v, ds.Name(), labels[i], ds.Classes())
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nn.BalancedWeights(labels, ds.Classes()), nil
}

// Network makes a network of the model with the given name, for programs whose model is an
// argument.
func (w *Worker) Network(model string, s ModelConfig) *Net[nn.Model] {
	s = w.withDegrees(model, s)
	return w.NetworkOf(model, s, w.Build(model, s))
}

// Build builds the model with the given name, for instance as a part of another one; see [Worker.NetworkOf].
func (w *Worker) Build(model string, s ModelConfig) (m nn.Model) {
	d, err := models.Get(model)
	w.check(err)
	s = w.withDegrees(model, s)
	w.built(model, func() { m = d.build(s) })
	return m
}

// NetworkOf makes a network of a model that the program has built, under a name for errors and records; s is what it was
// built from.
func (w *Worker) NetworkOf(name string, s ModelConfig, m nn.Model) *Net[nn.Model] {
	return &Net[nn.Model]{Model: m, network: w.newNetwork(name, s, m)}
}

// TaskOfNodes returns the task of [Train] with a model, for package scaling and for what else takes any task.
func TaskOfNodes(model AnyModel) (*TaskAs[TrainOptions, nodeOptions], error) {
	if err := checkModel(model, "TaskOfNodes"); err != nil {
		return nil, err
	}
	return RecordAs(nodes,
		func(_ *Dataset, o TrainOptions) nodeOptions { return nodeOptions{model.Name(), o} },
		func(o nodeOptions) (TrainOptions, error) { return o.TrainOptions, nil },
	), nil
}

// OptionsOf returns the model of a run of [Train] and those of its options that determine its
// result. With them, and the run's directory as Resume, [Train] resumes the run. OptionsOf fails
// for a run of another program.
func OptionsOf(r *runs.Run) (model string, o TrainOptions, err error) {
	full, err := nodes.OptionsOf(r)
	return full.Model, full.TrainOptions, err
}

// Recorded returns what a run of [Train] with these options records of them, as JSON: those that determine its result, with
// defaults in place of zeros.
func (o TrainOptions) Recorded(ds *Dataset, model AnyModel) (json.RawMessage, error) {
	full, _, err := nodes.complete(context.Background(), ds, nodeOptions{model.Name(), o})
	if err != nil {
		return nil, err
	}
	return json.Marshal(full)
}

// Identify returns the identity of a dataset's content and a model's code, as runs record it.
func Identify(ctx context.Context, ds *Dataset, model AnyModel) (*runs.Identity, error) {
	name, err := json.Marshal(model.Name())
	if err != nil {
		return nil, err
	}
	return identify(ctx, ds, codeOf("", name))
}
