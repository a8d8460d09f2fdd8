package kg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/internal/getdata"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
	"github.com/graphnb/graphnb/graphops/kge"
	"github.com/graphnb/graphnb/graphops/pairs"
)

// Options configure [Train]. The zero value trains ComplEx with 100 complex numbers per entity.
//
// Batch counts queries or triples, and 0 means 128; Epochs 0 means 100, LR 0 means 0.003, EvalEvery 0 means 10. Metric chooses
// the best epoch: mrr, hits_1, hits_3 or hits_10; "" means mrr. hits_K among fewer than K other entities is refused, and left
// out of the results. Eval is full (all validation triples are ranked) or none. Training is on CPUs only.
type Options struct {
	gnb.OptimizerOptions
	gnb.EvaluationOptions
	gnb.LaunchOptions
	// Decoder is distmult, complex, transe, rotate or conve; "" means complex.
	Decoder string `json:",omitempty" flag:"decoder" help:"distmult, complex, transe, rotate or conve (default complex)"`
	// Dim is the number of columns of an embedding, of complex numbers for complex and rotate; 0 means
	// 100.
	Dim int `json:",omitempty" flag:"dim" help:"columns of an embedding (default 100)" least:"1"`
	// Of configures the decoder.
	Of kge.Options `json:",omitzero"`
	// Encoder is the graph network before the decoder; the zero value means none.
	Encoder EncoderOptions `json:",omitzero"`
	// Loss is kvsall (the binary cross-entropy of queries with all entities), 1vsall (the cross-entropy
	// of triples' tails among all entities; triples of the same query are scored together), or bce, softmax or max-margin with drawn negatives. "" means
	// kvsall, but max-margin for transe and bce for rotate. OwnLoss names a loss of [DeclareLoss] instead of one of these.
	Loss    string `json:",omitempty" flag:"loss" help:"kvsall, 1vsall, bce, softmax or max-margin (default by decoder)"`
	OwnLoss string `json:",omitempty"`
	// N3 is the factor of the nuclear 3-norm of each triple's rows, added to the loss 1vsall; 0 means
	// none. Weights such as 0.001 to 0.1 are usual ([kge.N3]).
	N3 float64 `flag:"n3" help:"factor of the N3 regulariser of --loss 1vsall"`
	// Smoothing is the smoothing of labels of kvsall; 0 means none, and 0.1 is usual.
	Smoothing float64 `json:",omitempty" flag:"smoothing" help:"smoothing of labels of --loss kvsall; 0.1 is usual"`
	// LabelSmoothing smooths the labels of 1vsall, bce and softmax; 0 means none.
	LabelSmoothing float64 `json:",omitempty" flag:"label-smoothing" help:"smoothing of labels of the other losses"`
	// PosWeight is the weight of a triple beside a negative in the loss bce, as PyTorch's pos_weight; 0 means 1.
	PosWeight float64 `json:",omitempty" flag:"pos-weight" help:"weight of a triple beside a negative, with bce" positive:"true"`
	// Negatives is the number of negatives of each triple on each side, for the losses that draw them;
	// 0 means 16.
	Negatives int `json:",omitempty" flag:"negatives" help:"negatives of each triple on each side (default 16)" least:"1"`
	// AnyNegatives lets a negative be a known triple of training by chance; otherwise none is.
	AnyNegatives bool `json:",omitempty" flag:"any-negatives" help:"negatives can be known triples by chance"`
	// Margin is the margin of max-margin; 0 means 1.
	Margin float64 `json:",omitempty" flag:"margin" help:"margin of --loss max-margin (default 1)" positive:"true"`
	// Dropout is the dropout probability of the rows of heads and relations; 0 means none, and 0.2 is usual for distmult and
	// complex.
	Dropout float64 `json:",omitempty" flag:"dropout" help:"dropout of rows; 0.2 is usual for distmult and complex"`
}

// TrainProgram is the name of Train's task, by which the configuration of a run tells that Train made it.
const TrainProgram = "gnb.kg"

// Task is the task of [Train], for sweep.RunTask.
var Task = gnb.DeclareTask(TrainProgram, gnb.TaskDef[Options]{
	Defaults: func(*gnb.Dataset, *Options) gnb.Defaults {
		return gnb.Defaults{Batch: 128, Epochs: 100, LR: 0.003, EvalEvery: 10}
	},
	Check: func(ctx context.Context, ds *gnb.Dataset, o *Options) error { return o.complete(ctx, ds) },
	Title: func(ds *gnb.Dataset, o *Options) string { return ds.Name() + " by " + o.Decoder },
	Start: start,
})

// Train trains embeddings of a knowledge graph and shows loss, metric and workers live. It runs as
// gnb.Train does: with interrupts, checkpoints, exact resumption and a run directory.
//
// The run's val_mrr, test_mrr, test_hits_1, test_hits_3, test_hits_10 and test_mean_rank are those of the
// epoch with the best Metric on the validation triples ("best_epoch"); without them, of the last epoch.
// best.safetensors holds the weights of that epoch. [Relations] gives the ranks by relation.
func Train(ctx context.Context, ds *dataset.Dataset, o Options) (*runs.Run, error) {
	return Task.Train(ctx, ds, o)
}

// complete checks the options, and fills in their defaults.
func (o *Options) complete(ctx context.Context, ds *gnb.Dataset) error {
	switch {
	case o.Device == "cuda":
		return errors.New(`kg: Train computes on the CPU; leave Device out, or set it to "cpu"`)
	case o.Dim < 0 || o.Negatives < 0:
		return errors.New("kg: Dim and Negatives cannot be negative")
	case o.Margin < 0 || math.IsNaN(o.Margin) || math.IsInf(o.Margin, 0):
		return fmt.Errorf("kg: Margin is %v; it is a number above 0 (0 means 1)", o.Margin)
	case !(o.Smoothing >= 0 && o.Smoothing < 1):
		return fmt.Errorf("kg: Smoothing is %v; it is from 0 to below 1", o.Smoothing)
	case !(o.Dropout >= 0 && o.Dropout < 1):
		return fmt.Errorf("kg: Dropout is %v; it is a probability below 1", o.Dropout)
	case !(o.N3 >= 0) || math.IsInf(o.N3, 0):
		return fmt.Errorf("kg: N3 is %v; it is a number of at least 0", o.N3)
	}
	o.Device = "cpu"
	o.Decoder, o.Dim, o.Negatives, o.Margin, o.Metric = cmp.Or(o.Decoder, "complex"), cmp.Or(o.Dim, 100), cmp.Or(o.Negatives, 16), cmp.Or(o.Margin, 1), cmp.Or(o.Metric, "mrr")
	if _, err := value(kge.Metrics{}, o.Metric); err != nil {
		return err
	}
	d, err := kge.NewDecoder(o.Decoder, o.Dim, o.Of)
	if err != nil {
		return err
	}
	_, cols := d.Cols()
	if o.Encoder, err = o.Encoder.check(o.Decoder, cols); err != nil {
		return err
	}
	if err := o.completeLoss(); err != nil {
		return err
	}
	if o.N3 > 0 && o.Loss != "1vsall" {
		return fmt.Errorf("kg: N3 is for the loss 1vsall, and Loss is %s; leave N3 out", o.Loss)
	}
	if err := getdata.Opened(ctx, ds, o.Quiet); err != nil {
		return err
	}
	data, err := Triples(ds)
	if err != nil {
		return err
	}
	if k := hitsOf(o.Metric); k > 0 && o.Eval != "none" && data.wrongAnswers(data.Val, data.filter()) < k {
		return &FewEntities{o.Metric, data.Entities}
	}
	return nil
}

// labels are the options of the losses but kvsall.
func (o *Options) labels() pairs.LossOptions {
	return pairs.LossOptions{PosWeight: o.PosWeight, Smoothing: o.LabelSmoothing}
}

// OptionsOf returns the options of a run of [Train] that determine its result. With them, and the run's
// directory as Resume, Train resumes the run. OptionsOf fails for a run of another program.
func OptionsOf(r *runs.Run) (Options, error) {
	o, err := Task.OptionsOf(r)
	if err != nil {
		return o, fmt.Errorf("kg: %w", err)
	}
	return o, nil
}

// Trained reports whether [Train] made a run, so that [Score] and [Complete] take it.
func Trained(r *runs.Run) bool { return r != nil && r.Config.Program == TrainProgram }
