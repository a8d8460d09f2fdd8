package links

import (
	"encoding/json"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops"
	"github.com/graphnb/graphnb/graphops/pairs"
	"github.com/graphnb/graphnb/graphops/sample"
)

// OptionsOf returns the model of a run of [Train] by its name, and those of its options that determine
// its result, which include Model. With them, and the run's directory as Resume, Train resumes the run.
// OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (model string, o Options, err error) {
	a, err := argsOf(r)
	if err != nil {
		return "", o, err
	}
	c, s := r.Config, a.Sizes
	o = Options{
		TrainOptions: gnb.TrainOptions{
			Layers: s.Layers, Hidden: s.Hidden, Dropout: inside.Given(s.Dropout), InputDropout: s.InputDropout, Heads: s.Heads, OutHeads: s.OutHeads,
			Norm: s.Norm, Residual: s.Residual, JK: s.JK, BatchDegrees: s.BatchDegrees, EdgeWeights: s.EdgeWeights, Bases: s.Bases, LearnMissing: len(s.Learned) > 0,
			Fanouts: a.Loader.Fanouts, Batch: a.Loader.Batch, BatchPerWorker: a.Loader.BatchPerWorker,
			Eval: "full", EvalEvery: a.EvalEvery, Patience: a.Patience, Digest: a.Digest, Epochs: inside.Given(a.Epochs),
			Workers: c.Workers, Precision: c.Precision, Seed: c.Seed,
		},
		Model: byName(a.Model), Decoder: a.Decoder, Dim: s.Out, Val: a.Split.Val, Test: a.Split.Test, Disjoint: a.Split.Disjoint, FullGraph: a.FullGraph,
		Negatives: a.Negatives.PerEdge, NegativesFrom: a.Negatives.From.String(), KeepSource: a.Split.KeepSource, EvalNegatives: a.Split.Negatives,
		Relation: a.Split.Relation, ReverseRelation: a.Split.Reverse,
		Loss: a.Loss, PosWeight: a.PosWeight, Margin: a.Margin, Metric: a.Metric, KnownMessages: a.KnownMessages, SplitBy: a.SplitBy, Times: a.Times,
	}
	o.LabelSmoothing, o.OwnLoss = a.Smoothing, a.OwnLoss
	inside.SetOptimizing(&o.TrainOptions, a.Optimizing, c)
	if a.NoEval {
		o.Eval = "none"
	}
	if s.Embedding {
		o.Embedding = s.In
	}
	setSampler(a.Loader, s.Schema, &o.TrainOptions)
	if f := a.ValEdges; f != nil {
		o.ValEdges = f.Path
	}
	if f := a.TestEdges; f != nil {
		o.TestEdges = f.Path
	}
	if c.Device == "cpu" { // a run on a GPU can resume on a machine without one
		o.Device = c.Device
	}
	return a.Model, o, nil
}

// EmbedOptionsOf is [OptionsOf] for a run of [Embed].
func EmbedOptionsOf(r *runs.Run) (model string, o EmbedOptions, err error) {
	var a embedArgs
	if r.Config.Program != embedProgram.Name() {
		return "", o, fmt.Errorf("links: %s is a run of program %q, not of links.Embed", r.Dir, r.Config.Program)
	}
	if err := json.Unmarshal(r.Config.Args, &a); err != nil || a.Negatives.From < pairs.Uniform || a.Negatives.From > pairs.InBatch {
		return "", o, fmt.Errorf("links: the arguments of run %s are damaged", r.Dir)
	}
	c, s := r.Config, a.Sizes
	o = EmbedOptions{
		TrainOptions: gnb.TrainOptions{
			Dropout: inside.Given(s.Dropout), InputDropout: s.InputDropout, Heads: s.Heads, OutHeads: s.OutHeads, Norm: s.Norm, Residual: s.Residual, JK: s.JK,
			BatchDegrees: s.BatchDegrees, EdgeWeights: s.EdgeWeights, Batch: a.Loader.Batch, BatchPerWorker: a.Loader.BatchPerWorker, Epochs: inside.Given(a.Epochs),
			Digest:  a.Digest,
			Workers: c.Workers, Precision: c.Precision, Seed: c.Seed,
		},
		Dim: s.Out, Length: a.Length, PerNode: a.PerNode, Window: a.Window, P: a.P, Q: a.Q,
		Negatives: a.Negatives.PerEdge, NegativesFrom: a.Negatives.From.String(),
	}
	inside.SetOptimizing(&o.TrainOptions, a.Optimizing, c)
	if a.Model != Table.Name() {
		o.Model, o.Layers, o.Hidden, o.Fanouts = byName(a.Model), s.Layers, s.Hidden, a.Loader.Fanouts
		if s.Embedding {
			o.Embedding = s.In
		}
		setSampler(a.Loader, s.Schema, &o.TrainOptions)
	}
	if c.Device == "cpu" {
		o.Device = c.Device
	}
	return a.Model, o, nil
}

// setSampler sets the options of sampling to those of a loader; schema is that of the dataset, nil without types.
func setSampler(of gnb.Loader, schema *graphops.Schema, o *gnb.TrainOptions) {
	l, ok := of.Sampler.(gnb.Labor)
	if r, is := of.Sampler.(*sample.RelationFanouts); is && schema != nil {
		o.Fanouts, o.RelationFanouts = r.All, feed.Sampling{Relations: r.By}.RelationFanouts(schema)
		if r.Labor == nil {
			return
		}
		l, ok = *r.Labor, true
		l.Fanouts = r.All
	}
	if !ok {
		return
	}
	o.Fanouts, o.Sampler, o.BatchDependency, o.LayerDependency = l.Fanouts, "labor", l.BatchDependency, l.LayerDependency
	if l.Poisson {
		o.Sampler = "labor-poisson"
	}
}

// argsOf returns the argument of a run of Train.
func argsOf(r *runs.Run) (a trainArgs, err error) {
	if r.Config.Program != TrainProgram {
		return a, fmt.Errorf("links: %s is a run of program %q, not of links.Train", r.Dir, r.Config.Program)
	}
	if err := json.Unmarshal(r.Config.Args, &a); err != nil {
		return a, fmt.Errorf("links: the arguments of run %s are damaged: %w", r.Dir, err)
	}
	if a.SplitBy == "time" && len(a.Times) != 2 || a.Negatives.From < pairs.Uniform || a.Negatives.From > pairs.InBatch {
		return a, fmt.Errorf("links: the arguments of run %s are damaged", r.Dir)
	}
	return a, nil
}
