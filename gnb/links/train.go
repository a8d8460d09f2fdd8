package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/nn"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Options configure [Train]. The zero value trains a GraphSAGE of two layers and a dot decoder on
// 85 % of the edges, with one negative each, and measures the AUC on 5 and 10 %.
type Options struct {
	// TrainOptions are the options of gnb.Train, with these differences: Batch counts edges, Dropout
	// 0 means none, Epochs 0 means 200 for FullGraph, and neither Eval "sampled" nor BestBy "loss" is
	// there.
	gnb.TrainOptions
	// Model is the encoder; nil means gnb.SAGE.
	Model gnb.AnyModel
	// Decoder is dot, bilinear, mlp or hadamard; "" means dot.
	Decoder string
	// Dim is the number of columns of an embedding; 0 means Hidden.
	Dim int
	// Val and Test are the fractions of the edges; 0 means 0.05 and 0.1, a negative number none.
	Val, Test float64
	// Disjoint is the fraction of the training edges that are predicted and are no messages; 0 means
	// that all are both, and that each step takes its own out of its messages.
	Disjoint float64
	// FullGraph makes each epoch one step over the whole graph, as graph auto-encoders train; the
	// edges to predict are then messages too, unless the split is disjoint.
	FullGraph bool
	// Negatives is the number of negatives for each training edge; 0 means 1.
	Negatives int
	// NegativesFrom is uniform, degree, degree75 or in-batch; "" means uniform.
	NegativesFrom string
	// KeepSource draws negatives with the source of their edge, also those of validation and test;
	// otherwise both ends are drawn. Negatives from the batch keep it in training.
	KeepSource bool
	// EvalNegatives is the number of negatives for each edge of validation and test; 0 means 1.
	EvalNegatives int
	// Loss is bce, softmax or max-margin; "" means bce.
	Loss string
	// Margin is the margin of max-margin; 0 means 1.
	Margin float64
	// Metric chooses the best epoch: auc, ap, mrr or hits_10; "" means auc.
	Metric string
}

// trainArgs is the argument of Train's program: the options that change the result.
type trainArgs struct {
	Model, Decoder        string
	Sizes                 gnb.ModelConfig
	Split                 SplitOptions
	Negatives             NegativeOptions
	Loss                  string
	Margin                float64
	Metric                string
	FullGraph             bool
	Fanouts               []int
	Labor                 *gnb.Labor `json:",omitempty"`
	Batch, BatchPerWorker int
	Epochs                int
	LR, WeightDecay       float64
	ClipNorm              float64
	NoEval                bool
	EvalEvery             int
	Patience              int
	Digest                bool
}

// args checks the options and returns the program's argument.
func (o Options) args(ds *gnb.Dataset) (trainArgs, error) {
	var a trainArgs
	if err := checkGraph(ds); err != nil {
		return a, err
	}
	switch {
	case o.Cooperative:
		return a, errors.New("links: Train makes no cooperative batches; leave Cooperative out")
	case o.Embedding != 0:
		return a, errors.New("links: Train does not learn rows of nodes (Embedding) yet; take a dataset with features")
	case o.Eval == "sampled":
		return a, errors.New(`links: Train evaluates with all neighbours (Eval "full") or not at all ("none")`)
	case o.BestBy != "" && o.BestBy != "metric":
		return a, fmt.Errorf("links: BestBy is %q; the best epoch is that with the best Metric", o.BestBy)
	case o.Dim < 0 || o.Negatives < 0 || o.EvalNegatives < 0:
		return a, errors.New("links: Dim, Negatives and EvalNegatives cannot be negative")
	case o.Loss != "" && o.Loss != "bce" && o.Loss != "softmax" && o.Loss != "max-margin":
		return a, fmt.Errorf("links: Loss is %q; it is bce, softmax or max-margin", o.Loss)
	case o.Margin < 0 || math.IsNaN(o.Margin) || math.IsInf(o.Margin, 0):
		return a, fmt.Errorf("links: Margin is %v; it is a number above 0 (0 means 1)", o.Margin)
	}
	if _, err := (Metrics{}).Value(cmp.Or(o.Metric, "auc")); err != nil {
		return a, err
	}
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return a, err
	}
	if o.Dropout == 0 {
		o.Dropout = gnb.None
	}
	dim := cmp.Or(o.Dim, o.Hidden, 64)
	if _, err := pairs.NewDecoder(o.Decoder, dim, 0); err != nil {
		return a, err
	}
	made, sizes, err := inside.Settings(ds, o.TrainOptions, dim)
	if err != nil {
		return a, err
	}
	loader := made.(gnb.Loader)
	a = trainArgs{
		Model: o.encoder().Name(), Decoder: cmp.Or(o.Decoder, "dot"), Sizes: sizes,
		Split:     SplitOptions{Val: o.Val, Test: o.Test, Disjoint: o.Disjoint, Negatives: o.EvalNegatives, KeepSource: o.KeepSource, Seed: o.Seed},
		Negatives: NegativeOptions{From: from, PerEdge: o.Negatives, BothEnds: !o.KeepSource && from != InBatch},
		Loss:      cmp.Or(o.Loss, "bce"), Margin: cmp.Or(o.Margin, 1), Metric: cmp.Or(o.Metric, "auc"), FullGraph: o.FullGraph,
		Fanouts: loader.Fanouts, Batch: o.Batch, BatchPerWorker: o.BatchPerWorker,
		Epochs: o.Epochs, LR: o.LR, WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm,
		NoEval: o.Eval == "none", EvalEvery: cmp.Or(o.EvalEvery, 1), Patience: o.Patience, Digest: o.Digest && !o.FullGraph,
	}
	if l, ok := loader.Sampler.(gnb.Labor); ok {
		a.Labor = &l
	}
	switch a.Epochs {
	case gnb.None:
		a.Epochs = 0
	case 0:
		a.Epochs = 10
		if o.FullGraph {
			a.Epochs = 200
		}
	}
	switch a.LR {
	case gnb.None:
		a.LR = 0
	case 0:
		a.LR = 0.01
	}
	return a, nil
}

func (o Options) encoder() gnb.AnyModel {
	if o.Model == nil {
		return gnb.SAGE
	}
	return o.Model
}

// Train trains a network that predicts the links of a dataset, on a random split of its edges, and
// shows loss, metric and workers live. It runs as gnb.Train does: with interrupts, checkpoints, exact
// resumption and a run directory.
//
// The run's val_auc, test_auc, test_ap, test_mrr and test_hits_10 are those of the epoch with the best
// Metric on the validation edges ("best_epoch"); without validation edges, of the last epoch.
// best.safetensors holds the weights of that epoch. "common_neighbours_auc", "adamic_adar_auc" and
// "resource_allocation_auc" are the baselines on the test edges.
func Train(ctx context.Context, ds *gnb.Dataset, o Options) (*runs.Run, error) {
	a, err := o.args(ds)
	if err != nil {
		return nil, err
	}
	lo := inside.LaunchOptions(ds, o.encoder(), o.TrainOptions).(gnb.LaunchOptions)
	lo.Title = "links of " + ds.Name() + " by " + a.Model + " and " + a.Decoder
	return gnb.Launch(ctx, trainProgram, a, lo)
}

// byName is a registered model, by its name.
type byName string

func (m byName) Name() string { return string(m) }

// TrainProgram is the name of Train's program, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.links"

// trainProgram is the training loop of Train.
var trainProgram = gnb.Program(TrainProgram, func(w *gnb.Worker, a trainArgs) error {
	split, err := RandomSplit(w.Dataset(), a.Split)
	if err != nil {
		return err
	}
	l := NewLoader(w, split, a.loader())
	net := New(w, byName(a.Model), a.Decoder, a.Sizes)
	adam := nn.NewAdam(nn.AdamOptions{WeightDecay: a.WeightDecay})
	adam.SetLR(a.LR) // 0 means 0 by now
	opt := w.Optimizer(net, adam).Clip(a.ClipNorm)
	if a.Digest {
		w.Digest()
	}
	best := map[string]float64{}
	w.Keep("best", &best)
	for epoch := range w.Epochs(a.Epochs) {
		if a.FullGraph {
			b := l.Whole(epoch)
			w.Step(a.loss(net.Score(b), b.PerEdge), opt)
		} else {
			for b := range l.Batches() {
				w.Step(a.loss(net.Score(b), b.PerEdge), opt)
			}
		}
		if a.NoEval || split.Val.Len() == 0 || (epoch+1)%a.EvalEvery != 0 && epoch+1 != a.Epochs {
			continue
		}
		better, err := a.evaluate(l, net, best)
		if err != nil {
			return err
		}
		if better {
			best["best_epoch"] = float64(epoch)
		} else if a.Patience > 0 && epoch-int(best["best_epoch"]) >= a.Patience {
			break
		}
	}
	if !a.NoEval && split.Val.Len() == 0 && split.Test.Len() > 0 {
		keep(best, l.Evaluate(net, "test"))
	}
	for name, value := range best {
		w.Result(name, value)
	}
	return baselines(w, split)
})

func (a trainArgs) loader() LoaderOptions {
	o := LoaderOptions{Loader: gnb.Loader{Fanouts: a.Fanouts, Batch: a.Batch, BatchPerWorker: a.BatchPerWorker}, Negatives: a.Negatives}
	if a.Labor != nil {
		o.Loader.Fanouts, o.Loader.Sampler = nil, *a.Labor
	}
	return o
}

func (a trainArgs) loss(scores *nn.Tensor, perEdge int) *nn.Loss {
	switch a.Loss {
	case "softmax":
		return Softmax(scores, perEdge)
	case "max-margin":
		return MaxMargin(scores, perEdge, a.Margin)
	}
	return BCE(scores, perEdge)
}

// evaluate measures the network on the validation edges, and reports whether it is the best so far.
// Only then the test edges are measured too, and the metrics kept in best.
func (a trainArgs) evaluate(l *Loader, net *Net, best map[string]float64) (better bool, err error) {
	parts := []string{"val"}
	if l.split.Test.Len() > 0 {
		parts = append(parts, "test") // with the same embeddings
	}
	ms := l.evaluate(net, parts...)
	l.report(a.Metric, ms[0])
	value, err := ms[0].Value(a.Metric)
	if err != nil || !l.w.SaveBest(net, value) {
		return false, err
	}
	for _, m := range ms {
		keep(best, m)
	}
	return true, nil
}

func keep(best map[string]float64, m Metrics) {
	for name, value := range map[string]float64{"auc": m.AUC, "ap": m.AP, "mrr": m.MRR, "hits_10": m.Hits(10)} {
		best[m.Part+"_"+name] = value
	}
}

// baselines measures the heuristics on the test edges, on rank 0.
func baselines(w *gnb.Worker, s *Split) error {
	if w.Rank() != 0 || s.Test.Len() == 0 {
		return nil
	}
	for name, score := range map[string]func(*gnb.Graph, Edges, int) ([]float32, error){
		"common_neighbours": pairs.CommonNeighbours, "adamic_adar": pairs.AdamicAdar, "resource_allocation": pairs.ResourceAllocation,
	} {
		pos, err := score(s.Training, s.Test.Edges, 0)
		if err != nil {
			return err
		}
		neg, err := score(s.Training, s.Test.Neg, 0)
		if err != nil {
			return err
		}
		w.Result(name+"_auc", pairs.AUC(pos, neg))
	}
	return nil
}
