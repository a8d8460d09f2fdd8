// Package recipe says what training with the options of gnb.Train means: it fills in defaults, refuses
// options that do not fit the data or each other, and keeps the part that determines a run's result,
// the [Recipe]. It also predicts whether such a run fits into memory.
package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/graphnb/graphnb/gnb/internal/entry"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/tally"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/optim"
	"github.com/graphnb/graphnb/graphops/sample"
	"github.com/graphnb/graphnb/internal/philox"
)

// Recipe is the argument of gnb.Train's program: the settings that determine a run's result, with the
// defaults in place of zeros. Runs record it.
type Recipe struct {
	Model   string
	Sizes   nn.ModelConfig
	Fanouts []int
	feed.Sampling
	Batch          int
	BatchPerWorker int
	Cooperative    bool `json:",omitempty"`
	Epochs         int
	Optimizing
	CrossEntropy nn.CrossEntropyOptions `json:",omitzero"`
	OwnLoss      string                 `json:",omitempty"`
	Eval         string
	EvalEvery    int
	EvalBatches  int
	Metric       string `json:",omitempty"` // "" for the dataset's own
	ByLoss       bool   `json:",omitempty"`
	Patience     int    `json:",omitempty"`
	WatchTest    bool   `json:",omitempty"`
	Digest       bool
}

// StepBatch returns the seeds of a step, of all workers; 0 if there is a batch of each worker, or for the default.
func (a Recipe) StepBatch() int { return a.WholeBatch(a.Batch, 1024, a.BatchPerWorker) }

// within returns an error for the first numeric option that is out of bounds.
func (o Settings) within() error {
	epochs := o.Epochs
	if epochs == optim.None {
		epochs = 0
	}
	if err := entry.CheckAll(
		entry.Whole("Layers", o.Layers, 1, sample.MaxHops), entry.Whole("Hidden", o.Hidden, 1, entry.MaxHidden),
		entry.Whole("Heads", o.Heads, 1, entry.MaxHidden), entry.Whole("OutHeads", o.OutHeads, 1, entry.MaxHidden), entry.Whole("Bases", o.Bases, 1, entry.MaxHidden),
		entry.Whole("Embedding", o.Embedding, 1, philox.MaxDraws), entry.Whole("Batch", o.Batch, 1, entry.MaxCount), entry.Whole("BatchPerWorker", o.BatchPerWorker, 1, entry.MaxCount),
		entry.Whole("Epochs", epochs, 1, sample.MaxEpochs), entry.Whole("EvalEvery", o.EvalEvery, 1, sample.MaxEpochs), entry.Whole("EvalBatches", o.EvalBatches, 0, entry.MaxCount),
		entry.Whole("Patience", o.Patience, 0, sample.MaxEpochs),
	); err != nil {
		return err
	}
	return entry.CheckNumbers(
		entry.Share("Dropout", o.Dropout, true), entry.Share("InputDropout", o.InputDropout, false),
		entry.Rate("LR", o.LR, true), entry.Rate("WeightDecay", o.WeightDecay, false), entry.Rate("ClipNorm", o.ClipNorm, false), entry.Share("LabelSmoothing", o.LabelSmoothing, false),
	)
}

// Recipe returns the recipe of training a model on a dataset, or an error if a setting does not fit the
// data or the others.
func (o Settings) Recipe(ds *dataset.Dataset, model string) (Recipe, error) {
	if ds == nil {
		return Recipe{}, errors.New("gnb: Train needs a dataset; get one from gnb.Load")
	}
	a, err := o.Sized(ds, model, ds.Classes())
	if err != nil {
		return a, err
	}
	if err := tally.CheckLabels(ds); err != nil {
		return Recipe{}, err
	}
	if a.CrossEntropy.Weights != nil || a.CrossEntropy.Smoothing > 0 {
		if a.OwnLoss != "" {
			return Recipe{}, fmt.Errorf("gnb: ClassWeights and LabelSmoothing are of the cross-entropy, and OwnLoss is %q; weigh the classes in it", a.OwnLoss)
		}
		if ds.MultiLabels != nil {
			return Recipe{}, fmt.Errorf("gnb: a node of %s can have several labels, for which there are no ClassWeights and no LabelSmoothing; write a loss of your own in a program", ds.Name())
		}
		if err := a.CrossEntropy.Check(ds.Classes()); err != nil {
			return Recipe{}, err
		}
	}
	if err := tally.CheckSplit(ds, "train"); err != nil {
		return a, err
	}
	if splits := Evaluated(ds); a.Eval != "none" && len(splits) > 0 {
		return a, tally.CheckEvaluated(ds, splits[0], a.ByLoss)
	}
	return a, nil
}

// Sized is [Settings.Recipe] for a network with out columns; the dataset needs neither labels nor splits.
func (o Settings) Sized(ds *dataset.Dataset, model string, out int) (Recipe, error) {
	if err := o.within(); err != nil {
		return Recipe{}, err
	}
	if err := o.checkEmbedding(ds); err != nil {
		return Recipe{}, err
	}
	switch {
	case o.Norm != "" && o.Norm != "layer" && o.Norm != "batch":
		return Recipe{}, fmt.Errorf(`gnb: Norm is %q; it is "", "layer" or "batch"`, o.Norm)
	case o.JK != "" && o.JK != "cat" && o.JK != "max" && o.JK != "lstm":
		return Recipe{}, fmt.Errorf(`gnb: JK is %q; it is "", "cat", "max" or "lstm"`, o.JK)
	case o.Heads > 0 && cmp.Or(o.Hidden, 64)%o.Heads != 0:
		return Recipe{}, fmt.Errorf("gnb: %d hidden columns do not divide among %d heads", cmp.Or(o.Hidden, 64), o.Heads)
	case o.EdgeWeights && slices.Contains([]string{"gat", "gatv2", "rgcn", "hgt", "mlp"}, model):
		return Recipe{}, fmt.Errorf("gnb: model %s does not read edge weights; leave EdgeWeights (--edge-weights) out, or take sage, gin or gcn", model)
	case o.EdgeWeights && !ds.EdgeShape().Weighted:
		return Recipe{}, fmt.Errorf("gnb: the edges of %s have no weights; leave EdgeWeights (--edge-weights) out", ds.Name())
	case o.BestBy != "" && o.BestBy != "metric" && o.BestBy != "loss":
		return Recipe{}, fmt.Errorf(`gnb: BestBy is %q; it is "metric" or "loss"`, o.BestBy)
	case o.Layers > 0 && o.Fanouts != nil && o.Layers != len(o.Fanouts):
		return Recipe{}, fmt.Errorf("gnb: %d layers and %d fanouts %v; a layer needs a fanout", o.Layers, len(o.Fanouts), o.Fanouts)
	case o.Batch > 0 && o.BatchPerWorker > 0:
		return Recipe{}, fmt.Errorf("gnb: Batch (%d, over all workers) or BatchPerWorker (%d), not both", o.Batch, o.BatchPerWorker)
	}
	if err := sample.Fanouts(o.Fanouts).Check(); err != nil {
		return Recipe{}, fmt.Errorf("gnb: Fanouts: %w", err)
	}
	sampling, err := feed.Sampling{Sampler: o.Sampler, BatchDependency: o.BatchDependency, LayerDependency: o.LayerDependency}.Normal()
	if err != nil {
		return Recipe{}, err
	}
	switch o.Eval = cmp.Or(o.Eval, "full"); o.Eval {
	case "full", "sampled", "none":
	default:
		return Recipe{}, fmt.Errorf(`gnb: Eval is %q; it is "full", "sampled" or "none"`, o.Eval)
	}
	if o.Eval == "sampled" {
		if err := sampling.CheckSampled(); err != nil {
			return Recipe{}, err
		}
	}
	if o.Cooperative {
		if err := feed.CheckCooperative(o.VirtualRanks, nil); err != nil {
			return Recipe{}, err
		}
	}
	how, err := o.Optimizing(inside.OrNone(o.LR, 0.01), inside.OrNone(o.Epochs, 10))
	if err != nil {
		return Recipe{}, err
	}
	layers := cmp.Or(o.Layers, len(o.Fanouts), 2)
	fanouts := slices.Clone(o.Fanouts)
	for len(fanouts) < layers {
		fanouts = append(fanouts, sampling.Fanout())
	}
	var learned []string
	if o.LearnMissing {
		if learned, err = feed.TypesToLearn(ds, o.Embedding > 0, o.Features == "disk"); err != nil {
			return Recipe{}, err
		}
	}
	if sampling, err = sampling.ByRelation(ds.Schema(), fanouts, o.RelationFanouts); err != nil {
		return Recipe{}, err
	}
	return Recipe{
		Model: model,
		Sizes: nn.ModelConfig{
			In: cmp.Or(o.Embedding, ds.FeatureDim()), Embedding: o.Embedding > 0, Learned: learned, Hidden: cmp.Or(o.Hidden, 64), Out: out, Layers: layers, Dropout: inside.OrNone(o.Dropout, 0.5),
			EdgeDim: ds.EdgeFeatureDim(), Schema: ds.Schema(), Bases: o.Bases, InputDropout: o.InputDropout, Heads: o.Heads, OutHeads: o.OutHeads, Norm: o.Norm, Residual: o.Residual, JK: o.JK, BatchDegrees: o.BatchDegrees, EdgeWeights: o.EdgeWeights,
		},
		Fanouts: fanouts, Sampling: sampling, Batch: o.Batch, BatchPerWorker: o.BatchPerWorker, Cooperative: o.Cooperative,
		Epochs: inside.OrNone(o.Epochs, 10), Optimizing: how, CrossEntropy: nn.CrossEntropyOptions{Weights: o.ClassWeights, Smoothing: o.LabelSmoothing}, OwnLoss: o.OwnLoss,
		Eval: o.Eval, EvalEvery: cmp.Or(o.EvalEvery, 1), EvalBatches: o.EvalBatches, Metric: o.Metric, ByLoss: o.BestBy == "loss", Patience: o.Patience, WatchTest: o.WatchTest, Digest: o.Digest,
	}, nil
}

// Settings returns the settings of a run from its recipe and its configuration, as far as they determine
// its result.
func (a Recipe) Settings(c runs.Config) Settings {
	s := a.Sizes
	o := Settings{
		Layers: s.Layers, Hidden: s.Hidden, Dropout: inside.Given(s.Dropout), InputDropout: s.InputDropout, Heads: s.Heads, OutHeads: s.OutHeads, Bases: s.Bases,
		Norm: s.Norm, Residual: s.Residual, JK: s.JK, BatchDegrees: s.BatchDegrees, EdgeWeights: s.EdgeWeights,
		Fanouts: a.Fanouts, RelationFanouts: a.RelationFanouts(s.Schema), Sampler: a.Sampler, BatchDependency: a.BatchDependency, LayerDependency: a.LayerDependency,
		Batch: a.Batch, BatchPerWorker: a.BatchPerWorker, Cooperative: a.Cooperative, Epochs: inside.Given(a.Epochs),
		ClassWeights: a.CrossEntropy.Weights, LabelSmoothing: a.CrossEntropy.Smoothing, OwnLoss: a.OwnLoss,
		Eval: a.Eval, EvalEvery: a.EvalEvery, EvalBatches: a.EvalBatches, Metric: a.Metric, BestBy: "metric", Patience: a.Patience, WatchTest: a.WatchTest, Digest: a.Digest,
		Workers: c.Workers, Precision: c.Precision, Seed: c.Seed,
	}
	a.Optimizing.Set(&o, c)
	if a.ByLoss {
		o.BestBy = "loss"
	}
	o.LearnMissing = len(s.Learned) > 0
	if s.Embedding {
		o.Embedding = s.In
	}
	if c.Device == "cpu" { // a run on a GPU can resume on a machine without one
		o.Device = c.Device
	}
	return o
}

// Evaluated returns the splits of a dataset that gnb.Train evaluates: those of val and test that are there and are not empty.
func Evaluated(ds *dataset.Dataset) []string {
	return evaluations(ds, func(nodes int) bool { return nodes > 0 })
}

// Empty returns the splits val and test of a dataset that are there and are empty.
func Empty(ds *dataset.Dataset) []string {
	return evaluations(ds, func(nodes int) bool { return nodes == 0 })
}

// evaluations returns those of the splits val and test that a dataset has with a number of nodes that is wanted.
func evaluations(ds *dataset.Dataset, wanted func(nodes int) bool) []string {
	return slices.DeleteFunc([]string{"val", "test"}, func(s string) bool {
		ids, err := ds.Split(s)
		return err != nil || !wanted(len(ids))
	})
}
