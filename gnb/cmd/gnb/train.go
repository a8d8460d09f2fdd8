package main

import (
	"cmp"
	"context"
	"flag"
	"math"
	"slices"

	"github.com/graphnb/graphnb/gnb"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/linktask"
	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/ranks"
	"github.com/graphnb/graphnb/gnb/links"
	"github.com/graphnb/graphnb/gnb/runs"
	"github.com/graphnb/graphnb/graphops/dataset"
)

var trainCommand = command{"train", "train a model by neighbour sampling", runTrain}

// trainResult is the result of "gnb train". Values that the run lacks are omitted.
type trainResult struct {
	Loss           *float64          `json:"loss,omitempty"`
	ValAccuracy    *float64          `json:"val_accuracy,omitempty"`
	TestAccuracy   *float64          `json:"test_accuracy,omitempty"`
	ValAUC         *float64          `json:"val_auc,omitempty"`
	TestAUC        *float64          `json:"test_auc,omitempty"`
	ValMicroF1     *float64          `json:"val_micro_f1,omitempty"`
	TestMicroF1    *float64          `json:"test_micro_f1,omitempty"`
	ValLoss        *float64          `json:"val_loss,omitempty"`
	BestEpoch      *float64          `json:"best_epoch,omitempty"`
	Eval           string            `json:"eval"`
	Epochs         int               `json:"epochs"`
	Steps          int64             `json:"steps"`
	EpochSeconds   []float64         `json:"epoch_seconds"`
	Seconds        float64           `json:"seconds"`
	SampledEdges   int64             `json:"sampled_edges"`
	UniqueEdges    *int64            `json:"unique_edges,omitempty"`
	Digest         string            `json:"digest,omitempty"`
	PeakRSSBytes   int64             `json:"peak_rss_bytes"`
	Restarts       int               `json:"restarts,omitempty"`
	Rows           *runs.FeatureRows `json:"rows,omitempty"`
	Workers        int               `json:"workers"`
	VirtualRanks   int               `json:"virtual_ranks"`
	Device         string            `json:"device"`
	Precision      string            `json:"precision"`
	Run            string            `json:"run"`
	ParameterCount int               `json:"parameters"`
}

// modelFlags are the flags of the model and its optimiser, which "gnb train" and "gnb scaling"
// share.
type modelFlags struct {
	model   *string
	hops    ranks.Fanouts
	dropout *float64
	split   *int
}

// modelFlagsOf makes the flags. They set o directly; finish sets the rest.
func modelFlagsOf(fs *flag.FlagSet, o *gnb.TrainOptions) *modelFlags {
	m := &modelFlags{model: fs.String("model", "sage", "`model`: sage, gcn, gat, gatv2, gin or mlp")}
	fs.Var(&m.hops, "fanout", "neighbours per hop, seeds' hop first: `15,full` (default 10)")
	ranks.SamplerFlags(fs, &o.Sampler, &o.BatchDependency, &o.LayerDependency)
	fs.IntVar(&o.Layers, "layers", 0, "number of layers (default 2, or one per fanout)")
	fs.IntVar(&o.Hidden, "hidden", 64, "width of the hidden layers")
	fs.IntVar(&o.Embedding, "embedding", 0, "`columns` of learned embeddings, instead of features")
	fs.IntVar(&o.Batch, "batch", 0, "seeds per step over all workers (default 1024)")
	fs.IntVar(&o.BatchPerWorker, "batch-per-worker", 0, "seeds per step and worker, instead of --batch")
	fs.BoolVar(&o.Cooperative, "cooperative", false, "workers make one batch together and repeat no work")
	fs.Float64Var(&o.LR, "lr", 0.01, "learning rate of Adam (0 disables training)")
	fs.Float64Var(&o.WeightDecay, "weight-decay", 0, "weight decay")
	fs.Float64Var(&o.ClipNorm, "clip", 0, "limit of the gradient's norm (0 means none)")
	m.dropout = fs.Float64("dropout", 0.5, "dropout probability between layers")
	fs.Float64Var(&o.InputDropout, "input-dropout", 0, "dropout probability of the first layer's input")
	fs.IntVar(&o.Heads, "heads", 0, "attention heads of gat and gatv2, sharing --hidden (default 1)")
	fs.IntVar(&o.OutHeads, "out-heads", 0, "attention heads of the last layer (default --heads)")
	fs.StringVar(&o.Norm, "norm", "", "normalisation between layers: layer or batch (default none)")
	fs.BoolVar(&o.Residual, "residual", false, "add each layer's input to its output")
	fs.BoolVar(&o.BatchDegrees, "batch-degrees", false, "gcn normalisation by the batch's degrees, not the graph's")
	fs.StringVar(&o.Topology, "topology", "", "edges of a dataset in parts: replicated or divided")
	ranks.RowFlags(fs, &o.Cache, &o.Prefetch)
	ranks.FeaturesFlag(fs, &o.Features)
	fs.IntVar(&o.VirtualRanks, "virtual-ranks", 0, "virtual ranks per worker (default 1, or one per part)")
	fs.IntVar(&o.Threads, "threads", 0, "threads per worker (default an even share of the CPUs)")
	fs.StringVar(&o.Device, "device", "auto", "auto, cpu or cuda")
	precisionFlag(fs, &o.Precision)
	fs.Uint64Var(&o.Seed, "seed", 0, "random seed")
	return m
}

// withSplit is modelFlagsOf, with the flag for load.
func withSplit(fs *flag.FlagSet, o *gnb.TrainOptions) *modelFlags {
	m := modelFlagsOf(fs, o)
	m.split = fs.Int("split", 0, "set of splits, for a dataset with several")
	return m
}

// trainFlagsOf makes the other flags of training: how long, by how many workers, and what chooses the
// best epoch.
func trainFlagsOf(fs *flag.FlagSet, o *gnb.TrainOptions) {
	fs.IntVar(&o.Epochs, "epochs", 10, "number of epochs (0 only evaluates the initial weights)")
	fs.IntVar(&o.Workers, "workers", 0, "number of worker processes (default one per GPU, or one)")
	fs.StringVar(&o.Eval, "eval", "full", "evaluation: full, sampled or none")
	fs.IntVar(&o.EvalEvery, "eval-every", 1, "epochs between evaluations")
	fs.IntVar(&o.EvalBatches, "eval-batches", 0, "batches of a sampled evaluation (default all)")
	fs.StringVar(&o.BestBy, "best-by", "metric", "choice of the best epoch: highest metric or lowest loss")
	fs.IntVar(&o.Patience, "patience", 0, "`epochs` without improvement before training stops (default no limit)")
	fs.IntVar(&o.CheckpointEvery, "checkpoint-every", 0, "`steps` between checkpoints, -1 for none (default one per minute)")
	fs.IntVar(&o.KeepCheckpoints, "keep", 3, "number of checkpoints to keep")
	fs.IntVar(&o.Restarts, "restarts", 0, "restarts of failed workers from the last checkpoint (default none)")
	fs.BoolVar(&o.TensorBoard, "tensorboard", false, "also write TensorBoard files during the run")
	fs.BoolVar(&o.Digest, "digest", false, "also compute the digest of all samples")
}

func precisionFlag(fs *flag.FlagSet, p *string) {
	fs.StringVar(p, "precision", "float32", "precision of matrix products: float32, bf16, or tf32 (GPUs)")
}

// finish sets the options that depend on several flags, after parsing, and finds the model. A flag
// set to 0 means zero, for which the options use None.
func (m *modelFlags) finish(fs *flag.FlagSet, o *gnb.TrainOptions) (gnb.AnyModel, error) {
	o.Dropout = *m.dropout
	if err := notZero(fs, "layers", "hidden", "embedding", "batch", "batch-per-worker", "batch-dependency", "heads", "out-heads", "virtual-ranks", "eval-every", "keep"); err != nil {
		return nil, err
	}
	for name, value := range map[string]*float64{"lr": &o.LR, "dropout": &o.Dropout} {
		switch *value {
		case gnb.None:
			return nil, usagef("--%s is -1; it cannot be negative", name)
		case 0:
			*value = gnb.None
		}
	}
	if fs.Lookup("epochs") != nil {
		switch o.Epochs {
		case gnb.None:
			return nil, usagef("--epochs is -1; it cannot be negative")
		case 0:
			o.Epochs = gnb.None
		}
	}
	o.Fanouts = m.hops.Hops(cmp.Or(max(0, min(o.Layers, 1<<10)), 2)) // Train reports the error of more layers
	return gnb.ModelByName(*m.model)
}

// load is finish, and loads the dataset with the set of splits that the flags choose.
func (m *modelFlags) load(ctx context.Context, out *output, fs *flag.FlagSet, o *gnb.TrainOptions, spec string) (gnb.AnyModel, *dataset.Dataset, error) {
	model, err := m.finish(fs, o)
	if err != nil {
		return nil, nil, err
	}
	ds, err := loadSplitSet(ctx, out, spec, *m.split)
	return model, ds, err
}

// notZero returns an error for a flag that was set to 0 but must not be 0, because 0 in the
// options means the default.
func notZero(fs *flag.FlagSet, names ...string) (err error) {
	fs.Visit(func(f *flag.Flag) {
		if err == nil && slices.Contains(names, f.Name) && f.Value.String() == "0" {
			err = usagef("--%s is 0; it must be at least 1", f.Name)
		}
	})
	return err
}

func runTrain(ctx context.Context, args []string, out *output) error {
	fs := out.flags("[DATASET]", "Trains a model and evaluates it exactly. DATASET is a dataset's directory, or a generator such as karate or planted?nodes=100000&classes=8. With --resume RUN, DATASET and all flags that are not given are the run's own; with --task links, give all flags again.")
	ranks.InsecureFlag(fs)
	var (
		o     gnb.TrainOptions
		model = withSplit(fs, &o)
	)
	trainFlagsOf(fs, &o)
	link := linktask.New(fs)
	fs.StringVar(&o.Resume, "resume", "", "`run` to resume, or never (default the last interrupted run)")
	fs.BoolVar(&o.ResumeChanged, "resume-changed", false, "resume even if data or flags differ, and record it")
	fs.StringVar(&o.RunDir, "run", "", "`directory` of the run (default a new one in runs)")
	rest, err := out.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	old, err := resumedRun(&o)
	if err != nil {
		return err
	}
	if err := link.Check(); err != nil {
		return usagef("%s", err)
	}
	if old != nil && !link.Chosen() {
		if old.Config.Program == links.TrainProgram {
			return usagef("run %s predicts links; add --task links, and give its flags again", old.Dir)
		}
		if err := takeFlags(fs, old); err != nil {
			return err
		}
	}
	switch {
	case len(rest) > 0:
	case old == nil:
		return usagef("the DATASET is missing")
	case old.DatasetSpec() == "":
		return usagef("run %s did not record where its dataset %s came from; give DATASET", old.Dir, old.Config.Dataset)
	default:
		rest = []string{old.DatasetSpec()}
	}
	m, ds, err := model.load(ctx, out, fs, &o, rest[0])
	if err != nil {
		return err
	}
	defer ds.Close()
	o.Events = func(e runs.Event) { trainEvent(out, e) }
	o.Quiet = out.json
	train := func() (*runs.Run, error) { return gnb.Train(ctx, ds, m, o) }
	if link.Chosen() {
		train = func() (*runs.Run, error) { return link.Train(ctx, ds, m, o) }
	}
	run, err := train()
	if err != nil {
		return err
	}
	out.result(struct {
		trainResult
		linktask.Metrics
	}{resultOf(run, o), linktask.MetricsOf(run)})
	out.printf("%s\n", run)
	return nil
}

// resultOf returns the result of a run.
func resultOf(run *runs.Run, o gnb.TrainOptions) trainResult {
	res := run.Result
	result := trainResult{
		Loss: finite(run.Loss()), ValAccuracy: finite(run.ValAccuracy()), TestAccuracy: finite(run.TestAccuracy()),
		ValAUC: finite(run.Value("val_auc")), TestAUC: finite(run.Value("test_auc")),
		ValMicroF1: finite(run.Value("val_micro_f1")), TestMicroF1: finite(run.Value("test_micro_f1")),
		ValLoss: finite(run.Value("val_loss")), BestEpoch: finite(run.Value("best_epoch")),
		Eval: o.Eval, Epochs: res.Epochs, Steps: res.Steps, EpochSeconds: res.EpochSeconds, Seconds: res.Seconds,
		SampledEdges: res.SampledEdges, Digest: res.Text["digest"], PeakRSSBytes: res.PeakMemory, Restarts: res.Restarts, Rows: res.Rows,
		Workers: run.Config.Workers, VirtualRanks: run.Config.VirtualRanks, Device: run.Config.Device, Precision: run.Config.Precision, Run: run.Dir,
	}
	if res.Model != nil {
		result.ParameterCount = res.Model.Parameters
	}
	if u := finite(run.Value("unique_edges")); u != nil {
		n := int64(*u)
		result.UniqueEdges = &n
	} else if run.Config.Workers*run.Config.VirtualRanks == 1 {
		result.UniqueEdges = &res.SampledEdges // one rank samples no edge twice
	}
	return result
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// trainEvent writes a run's event.
func trainEvent(out *output, e runs.Event) {
	fields := map[string]any{"epoch": e.Epoch}
	for _, v := range e.Values {
		if x := finite(v.Value); x != nil {
			fields[v.Name] = *x
		}
	}
	switch e.Kind {
	case runs.KindEpoch:
		if x := finite(e.Loss); x != nil {
			fields["loss"] = *x
		}
		fields["seconds"], fields["stages"] = e.Seconds, e.Stages
	case runs.KindLog, runs.KindMetrics:
	case runs.KindRestart:
		fields["text"], fields["restart"] = e.Text, e.Restart
	default:
		fields["text"] = e.Text
	}
	out.event(string(e.Kind), fields)
}
