package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/feed"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/divided"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Options configure [Train]. The zero value trains a GraphSAGE of two layers and a dot decoder on
// 85 % of the edges, with one negative each, and measures the AUC on 5 and 10 %.
//
// Batch counts edges. LR 0 means 0.01, or 0.001 if the features of a node add up to more than 100, and Epochs 0 means 10, or
// 200 for FullGraph. Metric chooses the best epoch: auc, ap, mrr, hits_K, recall_K or ndcg_K, with a number for K; "" means
// auc. With recall_K and ndcg_K, evaluations rank all nodes; see [Metrics]. Eval is full or none.
type Options struct {
	gnb.ModelOptions
	gnb.SamplerOptions
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
	// Relation is the relation to predict of a dataset with types: "author:writes:paper", or its name alone if
	// no other relation has that name. "" is for datasets without types. Edges of the other relations are
	// messages; held-out edges are left out of the relation's reverses too (see [pairs.FindRelation]).
	Relation string `json:",omitempty" flag:"relation" help:"<relation> to predict, such as author:writes:paper"`
	// ReverseRelation is a relation with the same edges in the other direction; "" means those that are named
	// rev_NAME or have the reverse of each edge.
	ReverseRelation string `json:",omitempty" flag:"reverse-relation" help:"<relation> with the reverse edges of --relation"`
	// Model is the encoder; nil means gnb.SAGE, or gnb.RGCN with types.
	Model gnb.AnyModel `json:"-" flag:"model" help:"encoder: sage, gcn, gat, … (default sage, or rgcn with types)"`
	// Decoder is dot, bilinear, mlp, hadamard, structural or one of [DeclareDecoder]; "" means dot.
	Decoder string `json:",omitempty" flag:"decoder" help:"dot, bilinear, mlp, hadamard or structural (default dot)"`
	// Dim is the number of columns of an embedding; 0 means Hidden.
	Dim int `json:",omitempty" flag:"dim" help:"columns of an embedding (default --hidden)" least:"1"`
	// Val is the fraction of the edges for validation; 0 means 0.05, and a negative number none.
	Val float64 `json:",omitempty" flag:"val" help:"fraction for validation, -1 for none (default 0.05)" nonzero:"it is a fraction of the edges, or -1 for none"`
	// Test is that for the test; 0 means 0.1, and a negative number none.
	Test float64 `json:",omitempty" flag:"test" help:"fraction for the test, -1 for none (default 0.1)" nonzero:"it is a fraction of the edges, or -1 for none"`
	// Disjoint is the fraction of the training edges that are predicted and are no messages; 0 means
	// that all are both, and that each step takes its own out of its messages.
	Disjoint float64 `json:",omitempty" flag:"disjoint" help:"fraction of training edges that are no messages"`
	// FullGraph makes each epoch one step over the whole graph, as graph auto-encoders train; the
	// edges to predict are then messages too, unless the split is disjoint.
	FullGraph bool `json:",omitempty" flag:"full-graph" help:"one step per epoch over the whole graph"`
	// Negatives is the number of negatives for each training edge; 0 means 1.
	Negatives int `json:",omitempty" flag:"negatives" help:"negatives for each training edge (default 1)" least:"1"`
	// NegativesFrom is uniform, degree, degree75 or in-batch; "" means uniform.
	NegativesFrom string `json:",omitempty" flag:"negatives-from" help:"uniform, degree, degree75 or in-batch (default uniform)"`
	// KeepSource draws negatives with the source of their edge, also those of validation and test;
	// otherwise both ends are drawn. Negatives from the batch keep it in training.
	KeepSource bool `json:",omitempty" flag:"keep-source" help:"negatives keep the source of their edge"`
	// EvalNegatives is the number of negatives for each edge of validation and test; 0 means 1, or, if Metric
	// is mrr or hits_K, the larger of 100 and K. hits_K among fewer than K negatives is refused.
	EvalNegatives int `json:",omitempty" flag:"eval-negatives" help:"negatives per evaluated edge (default 1; ranks: 100)" least:"1"`
	// KnownMessages evaluates with all edges that are known before a part as messages; see [LoaderOptions].
	KnownMessages bool `json:",omitempty" flag:"known-messages" help:"evaluate with all earlier edges as messages"`
	// AsOf sees both ends of each edge and of its negatives as of the edge's own time; see [LoaderOptions]. The split is by time.
	// TimeWindow and TimeStrategy say more of what is seen and taken, and ProveTime checks it.
	AsOf bool `json:",omitempty" flag:"as-of" help:"see each edge's ends strictly before its time"`
	// Loss is bce, softmax or max-margin; "" means bce. LabelSmoothing smooths the labels of bce and softmax, and OwnLoss
	// names a loss of [DeclareLoss] instead of one of these.
	Loss string `json:",omitempty" flag:"loss" help:"bce, softmax or max-margin (default bce)"`
	// LabelSmoothing is the smoothing of labels; 0 means none.
	LabelSmoothing float64 `json:",omitempty" flag:"label-smoothing" help:"smoothing of the labels of bce and softmax"`
	OwnLoss        string  `json:",omitempty"`
	// PosWeight is the weight of an edge beside a negative in the loss bce, as PyTorch's pos_weight; 0 means 1.
	PosWeight float64 `json:",omitempty" flag:"pos-weight" help:"weight of an edge beside a negative, with bce" positive:"true"`
	// Margin is the margin of max-margin; 0 means 1.
	Margin float64 `json:",omitempty" flag:"margin" help:"margin of --loss max-margin (default 1)" positive:"true"`
	// SplitBy is random, time or given; "" means given if there are ValEdges or TestEdges, time if there
	// are Times, and otherwise random. By time, the edges with the latest times are for the test, and
	// those before them for validation.
	SplitBy string `json:",omitempty" flag:"split" help:"random, time or given (default random)"`
	// Times are the times from which on edges are for validation and for the test; nil means those that
	// leave the fractions Val and Test of the edges (see [pairs.TimesFor]).
	Times []int64 `json:",omitempty" flag:"times" help:"<times> from which validation and test begin"`
	// ValEdges and TestEdges are files of the edges for validation and the test, as [pairs.ReadEdges]
	// reads them; all other edges are for training. Workers on other machines need them at the same path.
	ValEdges  string `json:",omitempty" flag:"val-edges" help:"<file> of the edges for validation, by ids"`
	TestEdges string `json:",omitempty" flag:"test-edges" help:"<file> of the edges for the test, by ids"`
}

// recorded are the options as a run records them: with the model by its name, and with the digests of files.
type recorded struct {
	Model string
	Options
	ValSum, TestSum string `json:",omitempty"`
}

// TrainProgram is the name of Train's task, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.links"

// task is the task of [Train].
var task = gnb.DeclareTask(TrainProgram, gnb.TaskDef[recorded]{
	Defaults: func(ds *gnb.Dataset, o *recorded) gnb.Defaults {
		d := gnb.Defaults{LR: rateFor(ds, o.Embedding)}
		if o.FullGraph {
			d.Epochs = 200
		}
		return d
	},
	Check: func(_ context.Context, ds *gnb.Dataset, o *recorded) error { return o.complete(ds) },
	Title: func(ds *gnb.Dataset, o *recorded) string {
		return "links of " + ds.Name() + " by " + o.Model + " and " + o.Decoder
	},
	Start: start,
})

// Train trains a network that predicts the links of a dataset, on a split of its edges, and shows loss, metric and workers live. It runs as gnb.Train does: with interrupts, checkpoints, exact
// resumption and a run directory.
//
// The run's val_auc, test_auc and test_ap (and those of Metric) are those of the epoch with the best Metric
// on the validation edges ("best_epoch"); without validation edges, of the last epoch. With several
// EvalNegatives there is test_mrr too, and from ten on test_hits_10. The test edges are scored once, after the last epoch. best.safetensors holds the weights
// of the best epoch. "common_neighbours_auc", "adamic_adar_auc" and "resource_allocation_auc" are the
// baselines on the test edges; with recall_K or ndcg_K, so are "adamic_adar_recall_20" and such.
func Train(ctx context.Context, ds *gnb.Dataset, o Options) (*runs.Run, error) {
	if ds == nil {
		return nil, errors.New("links: Train needs a dataset; get one from gnb.Load")
	}
	return task.Train(ctx, ds, o.record(ds))
}

// record returns the options as a run records them.
func (o Options) record(ds *gnb.Dataset) recorded {
	full := recorded{Model: o.encoder(ds).Name(), Options: o}
	full.Options.Model = nil
	return full
}

// Task is the task of [Train], for sweep.RunTask.
var Task = gnb.RecordAs(task, func(ds *gnb.Dataset, o Options) recorded { return o.record(ds) }, func(r recorded) (Options, error) {
	o := r.Options
	o.Model = byName(r.Model)
	return o, nil
})

// OptionsOf returns the options of a run of [Train] that determine its result, which include Model. With them, and the run's
// directory as Resume, Train resumes the run. OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (Options, error) {
	o, err := recordedIn(r)
	o.Options.Model = byName(o.Model)
	return o.Options, err
}

// recordedIn returns the options of a run of Train as it has recorded them.
func recordedIn(r *runs.Run) (o recorded, err error) {
	if o, err = task.OptionsOf(r); err != nil {
		return o, fmt.Errorf("links: %w", err)
	}
	if _, err := pairs.ParseDistribution(o.NegativesFrom); err != nil || o.SplitBy == "time" && len(o.Times) != 2 {
		return o, fmt.Errorf("links: the options of run %s are damaged", r.Dir)
	}
	return o, nil
}

// complete checks the options, and fills in their defaults.
func (o *recorded) complete(ds *gnb.Dataset) error {
	if err := o.checkTrain(ds); err != nil {
		return err
	}
	switch {
	case o.FullGraph && ds.Meta.Parts != nil:
		return fmt.Errorf("links: FullGraph reads the features of all nodes in each step, and %s is divided into parts; leave FullGraph out, or take the undivided dataset", ds.Name())
	case o.FullGraph && o.Accumulate > 0:
		return errors.New("links: Accumulate divides batches of edges, and with FullGraph a step is the whole graph; leave one of them out")
	case o.Dim < 0 || o.Negatives < 0 || o.EvalNegatives < 0:
		return errors.New("links: Dim, Negatives and EvalNegatives cannot be negative")
	}
	if err := o.checkAsOf(ds); err != nil {
		return err
	}
	if o.PosWeight == 1 {
		o.PosWeight = 0
	}
	if err := o.checkLoss(); err != nil {
		return err
	}
	o.Metric = cmp.Or(o.Metric, "auc")
	kind, k, err := parseMetric(o.Metric)
	if err != nil {
		return err
	}
	of, err := o.relation(ds)
	if err != nil {
		return err
	}
	if k, most := topOf(o.Metric), candidatesOf(of, ds.Nodes()); k > most || k == most && kind == "recall" {
		return fmt.Errorf("links: Metric is %s, but %s has only %d nodes to recommend to a node; take a smaller number", o.Metric, ds.Name(), most)
	}
	switch {
	case o.EvalNegatives == 0 && (kind == "mrr" || kind == "hits"):
		o.EvalNegatives = max(100, k)
	case kind == "hits" && o.EvalNegatives < k && o.Eval != "none":
		return &FewNegatives{o.Metric, max(1, o.EvalNegatives)}
	}
	from, err := pairs.ParseDistribution(o.NegativesFrom)
	if err != nil {
		return err
	}
	o.NegativesFrom, o.Negatives, o.EvalNegatives = from.String(), max(1, o.Negatives), max(1, o.EvalNegatives)
	o.Dim, o.Decoder = cmp.Or(o.Dim, o.Hidden), cmp.Or(o.Decoder, "dot")
	if _, err := newDecoder(o.Decoder, o.Dim); err != nil {
		return err
	}
	o.Loss, o.Margin, o.Val, o.Test = cmp.Or(o.Loss, "bce"), cmp.Or(o.Margin, 1), cmp.Or(o.Val, 0.05), cmp.Or(o.Test, 0.1)
	o.Digest = o.Digest && !o.FullGraph
	if of != nil {
		o.Relation = of.String()
		if o.ReverseRelation != "" {
			i, err := ds.Schema().Relation(o.ReverseRelation)
			if err != nil {
				return err
			}
			o.ReverseRelation = ds.Schema().Relations[i].String()
		}
	}
	return o.splitBy(ds)
}

// splitOptions are the options of the split in a run with a seed.
func (o *Options) splitOptions(seed uint64) SplitOptions {
	return SplitOptions{
		Val: o.Val, Test: o.Test, Disjoint: o.Disjoint, Negatives: o.EvalNegatives, KeepSource: o.KeepSource, Seed: seed,
		Relation: o.Relation, Reverse: o.ReverseRelation,
	}
}

// checkTrain returns an error for a dataset whose links Train cannot predict.
func (o *Options) checkTrain(ds *gnb.Dataset) error {
	asks, err := feed.CheckTopology(o.Topology, ds)
	switch {
	case err != nil:
		return err
	case !asks:
		return checkRun(ds, o.Topology, "Train")
	case divided.IsFar(ds):
		return farEdges(ds)
	}
	if d, err := newDecoder(o.Decoder, 1); err == nil && topOf(o.Metric) > 0 && readsGraph(d) {
		return errGraphTop(o.Decoder)
	}
	return nil
}

// relation returns the relation to predict, nil for a dataset without types.
func (o *Options) relation(ds *gnb.Dataset) (*Relation, error) {
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

func (o *Options) encoder(ds *gnb.Dataset) gnb.AnyModel {
	switch {
	case o.Model != nil:
		return o.Model
	case ds.Schema() != nil:
		return gnb.RGCN
	}
	return gnb.SAGE
}

// byName is a registered model, by its name.
type byName string

func (m byName) Name() string { return string(m) }
