package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/internal/inside"
	"github.com/graphnb/graphnb/gnb/internal/recipe"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Options configure [Train]. The zero value trains a GraphSAGE of two layers and a dot decoder on
// 85 % of the edges, with one negative each, and measures the AUC on 5 and 10 %.
type Options struct {
	// TrainOptions are the options of gnb.Train, with these differences: Batch counts edges, Dropout
	// 0 means none, LR 0 means 0.01, or 0.001 if the features of a node add up to more than 100, Epochs 0 means 200 for FullGraph, and neither Eval "sampled" nor BestBy "loss" is
	// there.
	gnb.TrainOptions
	// Relation is the relation to predict of a dataset with types: "author:writes:paper", or its name alone if
	// no other relation has that name. "" is for datasets without types. Edges of the other relations are
	// messages; held-out edges are left out of the relation's reverses too (see [pairs.FindRelation]).
	Relation string
	// ReverseRelation is a relation with the same edges in the other direction; "" means those that are named
	// rev_NAME or have the reverse of each edge.
	ReverseRelation string
	// Model is the encoder; nil means gnb.SAGE, or gnb.RGCN with types.
	Model gnb.AnyModel
	// Decoder is dot, bilinear, mlp, hadamard, structural or one of [DeclareDecoder]; "" means dot.
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
	// EvalNegatives is the number of negatives for each edge of validation and test; 0 means 1, or, if Metric
	// is mrr or hits_K, the larger of 100 and K. hits_K among fewer than K negatives is refused.
	EvalNegatives int
	// KnownMessages evaluates with all edges that are known before a part as messages; see [LoaderOptions].
	KnownMessages bool
	// Loss is bce, softmax or max-margin; "" means bce. LabelSmoothing smooths the labels of bce and softmax, and OwnLoss
	// names a loss of [DeclareLoss] instead of one of these. ClassWeights are refused: see PosWeight.
	Loss string
	// PosWeight is the weight of an edge beside a negative in the loss bce, as PyTorch's pos_weight; 0 means 1.
	PosWeight float64
	// Margin is the margin of max-margin; 0 means 1.
	Margin float64
	// Metric chooses the best epoch: auc, ap, mrr, hits_K, recall_K or ndcg_K, with a number for K; ""
	// means auc. With recall_K and ndcg_K, evaluations rank all nodes; see [Metrics].
	Metric string
	// SplitBy is random, time or given; "" means given if there are ValEdges or TestEdges, time if there
	// are Times, and otherwise random. By time, the edges with the latest times are for the test, and
	// those before them for validation.
	SplitBy string
	// Times are the times from which on edges are for validation and for the test; nil means those that
	// leave the fractions Val and Test of the edges (see [pairs.TimesFor]).
	Times []int64
	// ValEdges and TestEdges are files of the edges for validation and the test, as [pairs.ReadEdges]
	// reads them; all other edges are for training. Workers on other machines need them at the same path.
	ValEdges, TestEdges string
}

// trainArgs is the argument of Train's program: the options that change the result.
type trainArgs struct {
	Model, Decoder string
	Sizes          gnb.ModelConfig
	Split          SplitOptions
	Negatives      NegativeOptions
	Loss           string
	pairs.LossOptions
	OwnLoss   string `json:",omitempty"`
	Margin    float64
	Metric    string
	FullGraph bool
	Loader    gnb.Loader
	Epochs    int
	recipe.Optimizing
	NoEval              bool
	EvalEvery           int
	Patience            int
	Digest              bool
	SplitBy             string    `json:",omitempty"`
	KnownMessages       bool      `json:",omitempty"`
	Times               []int64   `json:",omitempty"`
	ValEdges, TestEdges *edgeFile `json:",omitempty"`
}

// args checks the options and returns the program's argument.
func (o Options) args(ds *gnb.Dataset) (trainArgs, error) {
	var a trainArgs
	if err := o.checkTrain(ds); err != nil {
		return a, err
	}
	switch {
	case o.FullGraph && ds.Meta.Parts != nil:
		return a, fmt.Errorf("links: FullGraph reads the features of all nodes in each step, and %s is divided into parts; leave FullGraph out, or take the undivided dataset", ds.Name())
	case o.Eval == "sampled":
		return a, errors.New(`links: Train evaluates with all neighbours (Eval "full") or not at all ("none")`)
	case o.EvalBatches != 0:
		return a, errors.New("links: EvalBatches is for sampled evaluations, and Train evaluates with all neighbours; leave it out")
	case o.BestBy != "" && o.BestBy != "metric":
		return a, fmt.Errorf("links: BestBy is %q; the best epoch is that with the best Metric", o.BestBy)
	case o.Dim < 0 || o.Negatives < 0 || o.EvalNegatives < 0:
		return a, errors.New("links: Dim, Negatives and EvalNegatives cannot be negative")
	}
	if o.PosWeight == 1 {
		o.PosWeight = 0
	}
	if err := o.checkLoss(); err != nil {
		return a, err
	}
	o.Metric = cmp.Or(o.Metric, o.TrainOptions.Metric, "auc")
	kind, k, err := parseMetric(o.Metric)
	if err != nil {
		return a, err
	}
	of, err := o.relation(ds)
	if err != nil {
		return a, err
	}
	if k, most := topOf(o.Metric), candidatesOf(of, ds.Nodes()); k > most || k == most && kind == "recall" {
		return a, fmt.Errorf("links: Metric is %s, but %s has only %d nodes to recommend to a node; take a smaller number", o.Metric, ds.Name(), most)
	}
	switch {
	case o.EvalNegatives == 0 && kind == "mrr", o.EvalNegatives == 0 && kind == "hits":
		o.EvalNegatives = max(100, k)
	case kind == "hits" && o.EvalNegatives < k && o.Eval != "none":
		return a, &FewNegatives{o.Metric, max(1, o.EvalNegatives)}
	}
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return a, err
	}
	if o.Dropout == 0 {
		o.Dropout = gnb.None
	}
	dim := cmp.Or(o.Dim, o.Hidden, 64)
	if _, err := newDecoder(o.Decoder, dim); err != nil {
		return a, err
	}
	made, sizes, err := inside.Settings(ds, withoutLoss(o.TrainOptions), dim)
	if err != nil {
		return a, err
	}
	epochs := 10
	if o.FullGraph {
		epochs = 200
	}
	setRate(ds, &o.TrainOptions)
	how, err := optimizing(o.TrainOptions, inside.OrNone(o.Epochs, epochs))
	switch {
	case err != nil:
		return a, err
	case how.Accumulate > 0 && o.FullGraph:
		return a, errors.New("links: Accumulate divides batches of edges, and with FullGraph a step is the whole graph; leave one of them out")
	}
	a = trainArgs{
		Model: o.encoder(ds).Name(), Decoder: cmp.Or(o.Decoder, "dot"), Sizes: sizes,
		Split:     SplitOptions{Val: cmp.Or(o.Val, 0.05), Test: cmp.Or(o.Test, 0.1), Disjoint: o.Disjoint, Negatives: max(1, o.EvalNegatives), KeepSource: o.KeepSource, Seed: o.Seed},
		Negatives: NegativeOptions{From: from, PerEdge: max(1, o.Negatives), BothEnds: !o.KeepSource && from != InBatch},
		Loss:      cmp.Or(o.Loss, "bce"), LossOptions: pairs.LossOptions{PosWeight: o.PosWeight, Smoothing: o.LabelSmoothing}, OwnLoss: o.OwnLoss, Margin: cmp.Or(o.Margin, 1), Metric: o.Metric, FullGraph: o.FullGraph, KnownMessages: o.KnownMessages,
		Loader: loaderOf(made.(gnb.Loader), o.TrainOptions),
		Epochs: inside.OrNone(o.Epochs, epochs), Optimizing: how,
		NoEval: o.Eval == "none", EvalEvery: cmp.Or(o.EvalEvery, 1), Patience: o.Patience, Digest: o.Digest && !o.FullGraph,
	}
	if of != nil {
		a.Split.Relation = of.String()
		if o.ReverseRelation != "" {
			i, err := ds.Schema().Relation(o.ReverseRelation)
			if err != nil {
				return a, err
			}
			a.Split.Reverse = ds.Schema().Relations[i].String()
		}
	}
	return a, a.splitBy(ds, o)
}

// relation returns the relation to predict, nil for a dataset without types.
func (o Options) relation(ds *gnb.Dataset) (*Relation, error) {
	switch {
	case ds.Schema() == nil && o.Relation == "" && o.ReverseRelation == "":
		return nil, nil
	case ds.Schema() == nil && o.Relation == "":
		return nil, fmt.Errorf("links: ReverseRelation is %q, but %s has no types of edges; leave it out", o.ReverseRelation, ds.Name())
	case ds.Schema() != nil && (ds.Graph == nil || o.Topology == "divided"):
		return nil, typedDivided(ds)
	}
	if err := checkSplit(ds, SplitOptions{Relation: o.Relation}); err != nil {
		return nil, err
	}
	return pairs.FindRelation(ds.Graph, o.Relation, o.ReverseRelation)
}

func (o Options) encoder(ds *gnb.Dataset) gnb.AnyModel {
	switch {
	case o.Model != nil:
		return o.Model
	case ds.Schema() != nil:
		return gnb.RGCN
	}
	return gnb.SAGE
}

// Train trains a network that predicts the links of a dataset, on a split of its edges, and shows loss, metric and workers live. It runs as gnb.Train does: with interrupts, checkpoints, exact
// resumption and a run directory.
//
// The run's val_auc, test_auc and test_ap (and those of Metric) are those of the epoch with the best Metric
// on the validation edges ("best_epoch"); without validation edges, of the last epoch. With several
// EvalNegatives there is test_mrr too, and from ten on test_hits_10. The test edges are scored once, after the last epoch. best.safetensors holds the weights
// of the best epoch. "common_neighbours_auc", "adamic_adar_auc" and "resource_allocation_auc" are the
// baselines on the test edges; with recall_K or ndcg_K, so are "adamic_adar_recall_20" and such.
func Train(ctx context.Context, ds *gnb.Dataset, o Options) (*runs.Run, error) {
	ds, err := feed.OneWidth(ctx, ds, o.Quiet)
	if err != nil {
		return nil, err
	}
	a, err := o.args(ds)
	if err != nil {
		return nil, err
	}
	lo := inside.LaunchOptions(ds, o.encoder(ds), o.TrainOptions).(gnb.LaunchOptions)
	lo.Title = cmp.Or(o.Title, "links of "+ds.Name()+" by "+a.Model+" and "+a.Decoder)
	return gnb.Launch(ctx, trainProgram, a, lo)
}

// byName is a registered model, by its name.
type byName string

func (m byName) Name() string { return string(m) }

// TrainProgram is the name of Train's program, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.links"

// trainProgram is the training loop of Train.
var trainProgram = gnb.Program(TrainProgram, func(w *gnb.Worker, a trainArgs) error {
	split, err := a.split(w)
	if err != nil {
		return err
	}
	if a.Sizes.Embedding {
		w.WithoutFeatures()
	}
	a.Loader.Batch = a.WholeBatch(a.Loader.Batch, 1024, a.Loader.BatchPerWorker)
	d, err := newDecoder(a.Decoder, a.Sizes.Out)
	if err != nil {
		return err
	}
	loss, err := a.loss()
	if err != nil {
		return err
	}
	l := NewLoader(w, split, LoaderOptions{Loader: a.Loader, Negatives: a.Negatives, KnownMessages: a.KnownMessages, Neighbours: readsGraph(d)})
	sayRate(w, a.LR, a.Sizes)
	net := New(w, byName(a.Model), a.Decoder, a.Sizes)
	items := split.Predicted()
	if a.FullGraph {
		items = 0
	}
	opt := inside.Optimizer(w, net, a.Optimizing, items, a.Loader, a.Epochs).(*gnb.Optimizer)
	if a.Digest {
		w.Digest()
	}
	best := map[string]float64{}
	w.Keep("best", &best)
	if a.Epochs == 0 && !a.NoEval && split.Val.Len() > 0 {
		if _, _, err := a.evaluate(l, net, best); err != nil { // the initial weights
			return err
		}
	}
	for epoch := range w.Epochs(a.Epochs) {
		if a.FullGraph {
			b := l.Whole(epoch)
			w.Step(loss(b, net.Score(b)), opt)
		} else {
			for b := range l.Batches() {
				w.Step(loss(b, net.Score(b)), opt)
			}
		}
		if a.NoEval || split.Val.Len() == 0 || (epoch+1)%a.EvalEvery != 0 && epoch+1 != a.Epochs {
			continue
		}
		better, value, err := a.evaluate(l, net, best)
		if err != nil {
			return err
		}
		opt.Observe(value)
		if better {
			best["best_epoch"] = float64(epoch)
		} else if a.Patience > 0 && epoch-int(best["best_epoch"]) >= a.Patience {
			break
		}
	}
	if !a.NoEval && split.Test.Len() > 0 && math.IsNaN(valueOf(best, "test_auc")) {
		test := func() {
			m := l.evaluate(net, topOf(a.Metric), "test")[0]
			l.sayConstant(m)
			keep(best, a.Metric, m)
		}
		if _, ok := best["best_epoch"]; ok {
			inside.WithBest(w, net.Net, test)
		} else {
			test()
		}
	}
	for name, value := range best {
		w.Result(name, value)
	}
	return a.baselines(l)
})

// evaluate measures the network on the validation edges, and returns the Metric, and whether it is the best so far. A
// run without a directory keeps no weights, so it measures the test edges at each best epoch.
func (a trainArgs) evaluate(l *Loader, net *Net, best map[string]float64) (better bool, value float64, err error) {
	parts := []string{"val"}
	if l.w.RunDir() == "" && l.split.Test.Len() > 0 {
		parts = append(parts, "test")
	}
	ms := l.evaluate(net, topOf(a.Metric), parts...)
	l.report(a.Metric, ms[0])
	l.sayConstant(ms[0])
	value, err = ms[0].Value(a.Metric)
	if err == nil && math.IsNaN(value) {
		err = fmt.Errorf("links: the %s of the validation is not a number, because scores are not; take a smaller learning rate (LR, --lr)", a.Metric)
	}
	if err != nil || !l.w.SaveBest(net, value) {
		return false, value, err
	}
	for _, m := range ms {
		keep(best, a.Metric, m)
	}
	return true, value, nil
}

// keep keeps the metrics of a part; metric is one of them.
func keep(best map[string]float64, metric string, m Metrics) {
	names := []string{"auc", "ap"}
	if m.PerEdge() > 1 { // ranks among two say no more than the AUC
		names = append(names, "mrr", "hits_10")
	}
	for _, name := range slices.Concat(names, reported(metric)) {
		if x, err := m.Value(name); err == nil {
			best[m.Part+"_"+name] = x
		}
	}
}

func valueOf(values map[string]float64, name string) float64 {
	if x, ok := values[name]; ok {
		return x
	}
	return math.NaN()
}

// partedBaseline measures a heuristic on the test edges in a run that asks the owners of edges. Collective.
func (a trainArgs) partedBaseline(l *Loader, h pairs.Heuristic) error {
	degrees, err := l.parted.peers.Degrees(l.split.Training)
	if err != nil {
		return err
	}
	score := func(e Edges) ([]float32, error) {
		share, err := l.parted.scoreBy(l.split.Training, degrees, e, func(part Edges, around pairs.Around, put func(i int, score float32)) error {
			scores, err := h.Score(around, part, 0)
			for i, x := range scores {
				put(i, x)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return whole(l.w, share), nil
	}
	pos, err := score(l.split.Test.Edges)
	if err != nil {
		return err
	}
	neg, err := score(l.split.Test.Neg)
	if err != nil {
		return err
	}
	l.w.Result(string(h)+"_auc", pairs.AUC(pos, neg))
	return nil
}

// baselines measures the heuristics on the test edges: their AUC on rank 0, and their recommendations
// on all ranks. Collective.
func (a trainArgs) baselines(l *Loader) error {
	s, k := l.split, topOf(a.Metric)
	if s.Test.Len() == 0 {
		return nil
	}
	for _, h := range pairs.Heuristics() {
		if l.parted != nil { // their recommendations would need the neighbours of all neighbours
			if err := a.partedBaseline(l, h); err != nil {
				return err
			}
			continue
		}
		if l.w.Rank() == 0 {
			pos, err := h.Score(s.Training, s.Test.Edges, 0)
			if err != nil {
				return err
			}
			neg, err := h.Score(s.Training, s.Test.Neg, 0)
			if err != nil {
				return err
			}
			l.w.Result(string(h)+"_auc", pairs.AUC(pos, neg))
		}
		if k == 0 || a.NoEval {
			continue
		}
		r, err := l.rankBy(s.Test, k, func(nodes []int32, o pairs.TopOptions) (pairs.Top, error) {
			return h.TopK(s.Training, nodes, o)
		})
		if err != nil {
			return err
		}
		l.w.Result(fmt.Sprintf("%s_recall_%d", h, k), l.mean(r.recall))
		l.w.Result(fmt.Sprintf("%s_ndcg_%d", h, k), l.mean(r.ndcg))
	}
	return nil
}
