package options

import (
	"cmp"
	"context"
	"flag"
	"strings"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/internal/runfile"
	"github.com/graphnb/graphnb/graphops/dataset"
)

// Model are the flags of the model and its optimiser.
type Model struct {
	Name    *string // of the model
	Hops    ranks.Fanouts
	Dropout *float64

	split   *int
	weights *classWeights
}

// NewModel makes the flags. They set o directly; [Model.Finish] sets the rest.
func NewModel(fs *flag.FlagSet, o *gnb.TrainOptions) *Model {
	m := &Model{Name: fs.String("model", "sage", "`model`: sage, gcn, gat, gatv2, gin, rgcn, hgt or mlp")}
	fs.Var(&m.Hops, "fanout", "neighbours per hop, seeds' hop first: `15,full` (default 10)")
	ranks.RelationFlag(fs, &o.RelationFanouts)
	ranks.SamplerFlags(fs, &o.Sampler, &o.BatchDependency, &o.LayerDependency)
	fs.IntVar(&o.Layers, "layers", 0, "number of layers (default 2, or one per fanout)")
	fs.IntVar(&o.Hidden, "hidden", 64, "width of the hidden layers")
	fs.IntVar(&o.Embedding, "embedding", 0, "`columns` of learned embeddings, instead of features")
	fs.BoolVar(&o.LearnMissing, "learn-missing", false, "learn rows for the node types without features")
	fs.IntVar(&o.Batch, "batch", 0, "seeds per step over all workers (default 1024)")
	fs.IntVar(&o.BatchPerWorker, "batch-per-worker", 0, "seeds per step and worker, instead of --batch")
	fs.BoolVar(&o.Cooperative, "cooperative", false, "workers make one batch together and repeat no work")
	fs.Float64Var(&o.LR, "lr", 0.01, "learning rate of Adam (0 disables training)")
	fs.Var((*schedule)(&o.Schedule), "schedule", "learning rate: `cosine`, step:30:0.1, plateau:5:0.5, onecycle, with ,warmup:5 (default constant)")
	fs.StringVar(&o.Optimizer, "optimizer", "adam", "adam or adamw")
	fs.Float64Var(&o.WeightDecay, "weight-decay", 0, "weight decay")
	fs.Float64Var(&o.ClipNorm, "clip", 0, "limit of the gradient's norm (0 means none)")
	fs.Var((*groups)(&o.Groups), "groups", "parameters with rates of their own: `convs.0:lr=0.001;*.bias:decay=0`")
	fs.Var((*average)(&o.Average), "average", "average of the weights: `ema:0.99`, or swa:START (default none)")
	m.weights = &classWeights{to: &o.ClassWeights}
	fs.Var(m.weights, "class-weights", "classes' weights in the loss: `balanced` or 1,2.5,… (default 1)")
	fs.Float64Var(&o.LabelSmoothing, "label-smoothing", 0, "probability spread over all classes (default none)")
	m.Dropout = fs.Float64("dropout", 0.5, "dropout probability between layers")
	fs.Float64Var(&o.InputDropout, "input-dropout", 0, "dropout probability of the first layer's input")
	fs.IntVar(&o.Heads, "heads", 0, "attention heads of gat, gatv2, hgt, sharing --hidden (default 1)")
	fs.IntVar(&o.OutHeads, "out-heads", 0, "attention heads of the last layer (default --heads)")
	fs.IntVar(&o.Bases, "bases", 0, "bases that rgcn's relations share (default none)")
	fs.StringVar(&o.Norm, "norm", "", "normalisation between layers: layer or batch (default none)")
	fs.BoolVar(&o.Residual, "residual", false, "add each layer's input to its output")
	fs.StringVar(&o.JK, "jk", "", "output from all layers: cat, max or lstm (default last)")
	fs.BoolVar(&o.EdgeWeights, "edge-weights", false, "weighted mean (sage) or sum (gin) by edge weights")
	fs.BoolVar(&o.BatchDegrees, "batch-degrees", false, "gcn normalisation by the batch's degrees, not the graph's")
	fs.StringVar(&o.Topology, "topology", "", "edges of a dataset in parts: replicated or divided")
	ranks.RowFlags(fs, &o.Cache, &o.CachePolicy, &o.Prefetch)
	fs.StringVar(&o.GPUCache, "gpu-cache", "", "rows kept on each GPU: `20%` of a worker's, 2GiB")
	ranks.FeaturesFlag(fs, &o.Features)
	fs.IntVar(&o.VirtualRanks, "virtual-ranks", 0, "virtual ranks per worker (default 1, or one per part)")
	fs.IntVar(&o.Threads, "threads", 0, "threads per worker (default an even share of the CPUs)")
	fs.StringVar(&o.Device, "device", "auto", "auto, cpu or cuda")
	Precision(fs, &o.Precision)
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	return m
}

// WithSplit is NewModel, with the flag --split for [Model.Load].
func WithSplit(fs *flag.FlagSet, o *gnb.TrainOptions) *Model {
	m := NewModel(fs, o)
	m.split = fs.Int("split", 0, "set of splits, for a dataset with several")
	return m
}

// Training makes the other flags of training: how long, by how many workers, and what chooses the
// best epoch.
func Training(fs *flag.FlagSet, o *gnb.TrainOptions) {
	fs.IntVar(&o.Epochs, "epochs", 10, "number of epochs (0 only evaluates the initial weights)")
	fs.IntVar(&o.Workers, "workers", 0, "number of worker processes (default one per GPU, or one)")
	fs.IntVar(&o.Accumulate, "accumulate", 0, "batches whose gradients one step adds up (default 1)")
	fs.StringVar(&o.Eval, "eval", "full", "evaluation: full, sampled or none")
	fs.IntVar(&o.EvalEvery, "eval-every", 1, "epochs between evaluations")
	fs.IntVar(&o.EvalBatches, "eval-batches", 0, "batches of a sampled evaluation (default all)")
	fs.StringVar(&o.BestBy, "best-by", "metric", "choice of the best epoch: highest metric or lowest loss")
	fs.IntVar(&o.Patience, "patience", 0, "`epochs` without improvement before training stops (default no limit)")
	fs.BoolVar(&o.WatchTest, "watch-test", false, "also evaluate the test split at each evaluation")
	fs.IntVar(&o.CheckpointEvery, "checkpoint-every", 0, "`steps` between checkpoints, -1 for none (default one per minute)")
	fs.IntVar(&o.KeepCheckpoints, "keep", 3, "number of checkpoints to keep")
	fs.IntVar(&o.Restarts, "restarts", 0, "restarts of failed workers from the last checkpoint (default none)")
	fs.StringVar(&o.Title, "title", "", "name of the run in panels and lists")
	fs.Var((*tags)(&o.Tags), "tags", "tags of the run, for filters: `a,b`")
	fs.StringVar(&o.Notes, "notes", "", "text kept with the run")
	fs.BoolVar(&o.TensorBoard, "tensorboard", false, "also write TensorBoard files during the run")
	fs.BoolVar(&o.Digest, "digest", false, "also compute the digest of all samples")
}

// tags is the flag --tags.
type tags []string

func (t *tags) String() string { return strings.Join(*t, ",") }

func (t *tags) Set(s string) error {
	*t = strings.Split(s, ",")
	return runfile.CheckTags(*t)
}

// Precision makes the flag --precision.
func Precision(fs *flag.FlagSet, p *string) {
	fs.StringVar(p, "precision", "float32", "precision of matrix products: float32, bf16, or tf32 (GPUs)")
}

// Finish sets the options that depend on several flags, after parsing, and finds the model. A flag
// set to 0 means zero, for which the options use None.
func (m *Model) Finish(fs *flag.FlagSet, o *gnb.TrainOptions) (gnb.AnyModel, error) {
	o.Dropout = *m.Dropout
	if err := cli.NotZero(fs, "layers", "hidden", "embedding", "batch", "batch-per-worker", "batch-dependency", "accumulate", "heads", "out-heads", "virtual-ranks", "eval-every", "keep"); err != nil {
		return nil, err
	}
	for name, value := range map[string]*float64{"lr": &o.LR, "dropout": &o.Dropout} {
		switch *value {
		case gnb.None:
			return nil, cli.Usagef("--%s is -1; it cannot be negative", name)
		case 0:
			*value = gnb.None
		}
	}
	if fs.Lookup("epochs") != nil {
		switch o.Epochs {
		case gnb.None:
			return nil, cli.Usagef("--epochs is -1; it cannot be negative")
		case 0:
			o.Epochs = gnb.None
		}
	}
	o.Fanouts = m.Hops.Hops(cmp.Or(max(0, min(o.Layers, 1<<10)), 2)) // Train reports the error of more layers
	return gnb.ModelByName(*m.Name)
}

// Load is Finish, and loads the dataset with the set of splits that the flags choose.
func (m *Model) Load(ctx context.Context, out *cli.Output, fs *flag.FlagSet, o *gnb.TrainOptions, spec string) (gnb.AnyModel, *dataset.Dataset, error) {
	model, err := m.Finish(fs, o)
	if err != nil {
		return nil, nil, err
	}
	ds, err := LoadSplitSet(ctx, out, spec, *m.split)
	if err == nil && m.weights.balanced {
		o.ClassWeights, err = gnb.BalancedWeights(ds)
	}
	return model, ds, err
}
