package gnb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/graphnb/graphnb/graphops/nn"
)

// TrainOptions say how [Train] trains. The zero value trains GraphSAGE-sized
// networks sensibly: 2 layers, hidden 64, fanout 10 a layer, global batch 1024,
// 10 epochs, Adam with learning rate 0.01, dropout 0.5, exact evaluation of the
// validation and test split after every epoch.
type TrainOptions struct {
	Layers int // 2; the number of Fanouts where those are given
	Hidden int // 64
	// Dropout is the share of activations dropped between layers, 0.5 by default;
	// -1 turns it off.
	Dropout float64
	// InputDropout is dropped from the first layer's input, 0 by default.
	InputDropout float64
	// Heads is the number of attention heads of a GAT, OutHeads that of its last
	// layer (Heads); Hidden is all heads together.
	Heads    int
	OutHeads int
	// Norm between layers is "", "layer" or "batch"; Residual adds each layer's
	// input to its output.
	Norm     string
	Residual bool
	// BatchDegrees lets a GCN normalise by the sampled batch's degrees instead of
	// the full graph's, as PyG does.
	BatchDegrees bool
	// Fanouts[0] is the hop next to the seeds; -1 takes all neighbours.
	Fanouts []int
	// Batch is the number of seeds of a step over all workers (1024), or
	// BatchPerWorker of each worker or virtual rank.
	Batch          int
	BatchPerWorker int
	Epochs         int     // 10; -1 for none: evaluate the start only
	LR             float64 // 0.01
	WeightDecay    float64
	ClipNorm       float64
	// Eval is "full" (the default: exact, with all neighbours), "sampled" (with
	// Fanouts) or "none"; EvalEvery is the number of epochs between evaluations
	// (1), EvalBatches bounds a sampled one.
	Eval        string
	EvalEvery   int
	EvalBatches int
	// BestBy chooses the epoch whose weights and metrics the run reports, on the
	// validation split: "metric" (the default), the best, or "loss", the lowest.
	// Patience ends the run at the first evaluation so many epochs after the best
	// one; 0 never does.
	BestBy   string
	Patience int
	// Digest also computes the digest of everything that was sampled, the same
	// for every number of workers, and counts edges without repetition. It costs
	// a pass over all samples.
	Digest bool

	// How the run is launched; see [LaunchOptions].
	Workers         int
	VirtualRanks    int
	Threads         int
	Device          string
	Precision       string
	Seed            uint64
	RunDir          string
	Resume          string
	ResumeChanged   bool
	CheckpointEvery int
	KeepCheckpoints int
	TensorBoard     bool
	Quiet           bool
	Events          func(Event) `json:"-"`
}

// trainArgs is the argument of Train's program: what changes the result.
type trainArgs struct {
	Model          string
	Sizes          Sizes
	Fanouts        []int
	Batch          int
	BatchPerWorker int
	Epochs         int
	LR             float64
	WeightDecay    float64
	ClipNorm       float64
	Eval           string
	EvalEvery      int
	EvalBatches    int
	ByLoss         bool `json:",omitempty"`
	Patience       int  `json:",omitempty"`
	Digest         bool
}

func (o TrainOptions) args(ds *Dataset, model string) (trainArgs, error) {
	if ds == nil {
		return trainArgs{}, errors.New("gnb: Train needs a dataset; get one from gnb.Load")
	}
	switch {
	case ds.Features() == 0:
		return trainArgs{}, fmt.Errorf("gnb: %s has no node features to train on; convert it with features (gnb data convert --features)", ds.Name())
	case targets(ds) != nil:
		return trainArgs{}, targets(ds)
	case o.InputDropout < 0 || o.InputDropout >= 1 || math.IsNaN(o.InputDropout):
		return trainArgs{}, fmt.Errorf("gnb: InputDropout is %v; it is the share of the input to drop, from 0 to below 1", o.InputDropout)
	case o.Norm != "" && o.Norm != "layer" && o.Norm != "batch":
		return trainArgs{}, fmt.Errorf(`gnb: Norm is %q; it is "", "layer" or "batch"`, o.Norm)
	case o.Heads < 0 || o.OutHeads < 0:
		return trainArgs{}, errors.New("gnb: Heads and OutHeads cannot be negative")
	case o.Heads > 0 && cmp.Or(o.Hidden, 64)%o.Heads != 0:
		return trainArgs{}, fmt.Errorf("gnb: %d hidden columns do not divide among %d heads", cmp.Or(o.Hidden, 64), o.Heads)
	case o.Layers < 0 || o.Hidden < 0 || o.EvalEvery < 0 || o.EvalBatches < 0:
		return trainArgs{}, errors.New("gnb: Layers, Hidden, EvalEvery and EvalBatches cannot be negative; 0 means the default")
	case o.BestBy != "" && o.BestBy != "metric" && o.BestBy != "loss":
		return trainArgs{}, fmt.Errorf(`gnb: BestBy is %q; it is "metric" or "loss"`, o.BestBy)
	case o.Patience < 0:
		return trainArgs{}, fmt.Errorf("gnb: Patience is %d epochs; it cannot be negative, and 0 means without end", o.Patience)
	case o.Dropout >= 1 || (o.Dropout < 0 && o.Dropout != -1) || math.IsNaN(o.Dropout):
		return trainArgs{}, fmt.Errorf("gnb: Dropout is %v; it is the share of activations to drop, from 0 to below 1, or -1 for none", o.Dropout)
	case o.LR < 0 || o.WeightDecay < 0 || o.ClipNorm < 0 || math.IsNaN(o.LR+o.WeightDecay+o.ClipNorm):
		return trainArgs{}, errors.New("gnb: LR, WeightDecay and ClipNorm cannot be negative")
	case o.Layers > 0 && o.Fanouts != nil && o.Layers != len(o.Fanouts):
		return trainArgs{}, fmt.Errorf("gnb: %d layers and %d fanouts %v; a layer needs a fanout", o.Layers, len(o.Fanouts), o.Fanouts)
	case o.Batch > 0 && o.BatchPerWorker > 0:
		return trainArgs{}, fmt.Errorf("gnb: Batch (%d, over all workers) or BatchPerWorker (%d), not both", o.Batch, o.BatchPerWorker)
	}
	for _, f := range o.Fanouts {
		if f < -1 || f == 0 {
			return trainArgs{}, fmt.Errorf("gnb: a fanout is %d; it is the number of neighbours to sample, or -1 for all", f)
		}
	}
	switch o.Eval = cmp.Or(o.Eval, "full"); o.Eval {
	case "full", "sampled", "none":
	default:
		return trainArgs{}, fmt.Errorf(`gnb: Eval is %q; it is "full", "sampled" or "none"`, o.Eval)
	}
	if ids, err := ds.Split("train"); err != nil {
		return trainArgs{}, err
	} else if len(ids) == 0 {
		return trainArgs{}, fmt.Errorf("gnb: %s's split \"train\" is empty: there is nothing to train on", ds.Name())
	}
	layers := cmp.Or(o.Layers, len(o.Fanouts), 2)
	fanouts := slices.Clone(o.Fanouts)
	for len(fanouts) < layers {
		fanouts = append(fanouts, 10)
	}
	dropout := cmp.Or(o.Dropout, 0.5)
	if dropout < 0 {
		dropout = 0
	}
	return trainArgs{
		Model: model,
		Sizes: Sizes{
			In: ds.Features(), Hidden: cmp.Or(o.Hidden, 64), Out: ds.Classes(), Layers: layers, Dropout: dropout,
			InputDropout: o.InputDropout, Heads: o.Heads, OutHeads: o.OutHeads, Norm: o.Norm, Residual: o.Residual, BatchDegrees: o.BatchDegrees,
		},
		Fanouts: fanouts, Batch: o.Batch, BatchPerWorker: o.BatchPerWorker,
		Epochs: max(0, cmp.Or(o.Epochs, 10)), LR: cmp.Or(o.LR, 0.01), WeightDecay: o.WeightDecay, ClipNorm: o.ClipNorm,
		Eval: o.Eval, EvalEvery: cmp.Or(o.EvalEvery, 1), EvalBatches: o.EvalBatches, ByLoss: o.BestBy == "loss", Patience: o.Patience, Digest: o.Digest,
	}, nil
}

// Train trains a model on a dataset by neighbour sampling, showing loss, accuracy
// and workers live. It is a program like any other ([Launch]), and behaves like
// one in every way: interrupts, checkpoints, the run's directory.
//
// The run's val_accuracy and test_accuracy (or val_auc, or val_micro_f1, where the
// dataset is measured by it) are those at the epoch that did best on validation
// (the run's "best_epoch"; see TrainOptions.BestBy), whose weights are in
// best.safetensors; model.safetensors holds the final ones.
func Train(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions) (*Run, error) {
	multigpuEnter()
	return train(ctx, ds, model, o, nil, 0)
}

// train is Train on a dataset that may be shared already, with workers on the GPUs
// from firstGPU on.
func train(ctx context.Context, ds *Dataset, model AnyModel, o TrainOptions, shared *sharedData, firstGPU int) (*Run, error) {
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("gnb: Train needs a model, such as gnb.SAGE")
	}
	if _, err := models.get(model.Name()); err != nil {
		return nil, err
	}
	args, err := o.args(ds, model.Name())
	if err != nil {
		return nil, err
	}
	return Launch(ctx, trainProgram, args, LaunchOptions{
		Data: ds, Workers: o.Workers, VirtualRanks: o.VirtualRanks, Threads: o.Threads, Device: o.Device, Precision: o.Precision, Seed: o.Seed,
		RunDir: o.RunDir, Resume: o.Resume, ResumeChanged: o.ResumeChanged, CheckpointEvery: o.CheckpointEvery, KeepCheckpoints: o.KeepCheckpoints,
		TensorBoard: o.TensorBoard, Quiet: o.Quiet, Events: o.Events, Title: model.Name() + " on " + ds.Name(), shared: shared, firstGPU: firstGPU,
	})
}

// trainProgram is Train, written with what this package exports.
var trainProgram = Program("gnb.train", func(w *Worker, a trainArgs) error {
	net := w.Network(a.Model, a.Sizes)
	opt := w.Optimizer(net, nn.NewAdam(nn.AdamOptions{LR: a.LR, WeightDecay: a.WeightDecay})).Clip(a.ClipNorm)
	loader := Loader{Fanouts: a.Fanouts, Batch: a.Batch, BatchPerWorker: a.BatchPerWorker}
	how := FullNeighbors
	if a.Eval == "sampled" {
		how = Sampled(a.Fanouts, 0, a.EvalBatches)
	}
	how.Loss = a.ByLoss
	splits := slices.DeleteFunc([]string{"val", "test"}, func(s string) bool {
		_, err := w.Dataset().Split(s)
		return err != nil
	})
	if a.Digest {
		w.Digest()
	}
	best := map[string]float64{}
	w.Keep("best", &best)
	for epoch := range w.Epochs(a.Epochs) {
		for b := range w.Batches("train", loader) {
			w.Step(b.Loss(net.Forward(b)), opt)
		}
		if a.Eval == "none" || len(splits) == 0 || ((epoch+1)%a.EvalEvery != 0 && epoch+1 != a.Epochs) {
			continue
		}
		m := w.Evaluate(net, how, splits...)
		score := m.Splits[0].Value()
		if a.ByLoss {
			score = -m.Splits[0].Loss
		}
		if w.SaveBest(net, score) {
			best["best_epoch"] = float64(epoch)
			for i, s := range m.Splits {
				if s.Count > 0 {
					best[s.Split+"_"+m.Kind] = s.Value()
				}
				if a.ByLoss && i == 0 {
					best[s.Split+"_loss"] = s.Loss
				}
			}
		} else if a.Patience > 0 && epoch-int(best["best_epoch"]) >= a.Patience {
			break
		}
	}
	for name, value := range best {
		w.Result(name, value)
	}
	return nil
})

// Network makes a network of a model by name, for programs whose model is an
// argument.
func (w *Worker) Network(model string, s Sizes) *Net[nn.Model] {
	d, err := models.get(model)
	w.check(err)
	m := d.build(s)
	return &Net[nn.Model]{Model: m, network: w.newNetwork(model, s, m)}
}
